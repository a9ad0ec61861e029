"""The python module in its sandbox: its packages are there, plots are pictures, and code that is stopped is ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iact.core.modules.client import Completed, ModuleClient, StateChange
from tests.sandbox.backends import AnyHost, AnyInstance, Backend, either_backend
from tests.sandbox.inside import Caller, called

pytestmark = either_backend("bubblewrap")

PLOT = """
import numpy as np, pandas as pd, matplotlib.pyplot as plt
table = pd.DataFrame({"x": np.arange(5), "y": np.arange(5) ** 2})
for column in table:
    table[column].plot(title=column); plt.figure()
plt.close()
table.to_csv("table.csv", index=False)
int(table.y.sum())
"""


@pytest.fixture(scope="module")
def python(loop: asyncio.Runner, host: AnyHost, workspace: Path, backend: Backend) -> Iterator[AnyInstance]:
    instance = loop.run(backend.start(host, "python", session="one", workspace=workspace, agent="/"))
    yield instance
    loop.run(instance.stop())


def test_data_are_computed_with_and_drawn(loop: asyncio.Runner, python: AnyInstance, workspace: Path) -> None:
    async def scenario() -> None:
        async with called(python) as caller:
            assert "NotOffered" in await caller.error("variables")
            done = await caller.outcome("run", {"code": PLOT}, seconds=120)
            assert isinstance(done, Completed)
            assert done.output.endswith("30\n"), done.output
            assert done.state == StateChange("running", (), "")
            assert [(one.name, one.media) for one in done.artifacts] == [
                ("figure-1.png", "image/png"), ("figure-2.png", "image/png")
            ]  # fmt: skip
            assert all(one.startswith(b"\x89PNG\r\n") for one in caller.artifacts.values())
            assert (workspace / "table.csv").read_text(encoding="utf-8").startswith("x,y\n0,0\n")
            assert "table: DataFrame = shape (5, 2)" in await caller.text("variables")
            assert "plots are closed" in await caller.text(
                "run", code="'plots are closed' if not plt.get_fignums() else plt.get_fignums()"
            )
            await caller.text("restart")
            assert "NotOffered" in await caller.error("variables")

    loop.run(scenario())


def test_a_call_that_is_stopped_or_times_out_leaves_the_variables(
    loop: asyncio.Runner, python: AnyInstance
) -> None:
    async def scenario() -> None:
        async with ModuleClient(python.target) as client:
            caller = Caller(client, "/other")
            await caller.text("run", code="held = 1")
            going = asyncio.ensure_future(
                caller.outcome("run", {"code": "import time\nwhile True: time.sleep(1)"})
            )
            await asyncio.sleep(0.5)
            before = time.monotonic()
            going.cancel()
            await asyncio.wait([going])
            assert await caller.text("run", code="held") == "1\n"
            assert time.monotonic() - before < 10  # a second where nothing else runs
            done = await caller.outcome("run", {"code": "while True: pass", "timeout": 1})
            assert isinstance(done, Completed)
            assert done.data["exit_status"] == 124

    loop.run(scenario())


HOSTILE = """
import os, socket
found = {}
def tried(what, act):
    try:
        found[what] = repr(act())
    except BaseException as error:
        found[what] = type(error).__name__
tried("net", lambda: socket.create_connection(("1.1.1.1", 80), 2))
tried("name", lambda: socket.getaddrinfo("example.com", 80))
tried("own code", lambda: open("/module/module.py", "a"))
tried("own packages", lambda: open("/run/site/numpy/__init__.py", "a"))
tried("root", lambda: os.setuid(0) if os.getuid() else "was root")
tried("system", lambda: open("/etc/passwd", "a"))
found
"""


def test_code_has_the_walls_of_every_module(loop: asyncio.Runner, python: AnyInstance) -> None:
    async def scenario() -> None:
        async with ModuleClient(python.target) as client:
            caller = Caller(client, "/hostile")
            said = await caller.text("run", code=HOSTILE)
            for one in ("net", "name", "own code", "own packages", "system"):
                assert f"'{one}': '" in said
                assert "rror" in said.partition(f"'{one}': '")[2].partition("'")[0], said
            ate = await caller.outcome(
                "run", {"code": "x = []\nwhile True: x.append(bytearray(1 << 26))"}, seconds=90
            )
            assert isinstance(ate, Completed)
            assert "MemoryError" in ate.output or "lack of memory" in ate.output or "ended" in ate.output
            bomb = await caller.outcome(
                "run",
                {
                    "code": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
                    "timeout": 3,
                },
            )
            assert isinstance(bomb, Completed)
            assert "2\n" in await caller.text("run", code="1 + 1")

    loop.run(scenario())
