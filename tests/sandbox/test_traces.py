"""Of the calls of a module that says that it forgets nothing is left, and what a call runs apart sees its own files alone."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path

import pytest

import ext_modules
from tests.sandbox.backends import Backend, each_backend
from tests.sandbox.calling import write_module
from tests.sandbox.inside import called, hosting_on

PROBE = '''
import json, os, subprocess, sys, tempfile
from pathlib import Path

from ext_modules.sdk import Call, Module, apart

module = Module("probe", "Leaves what it can.")
HERE = Path(__file__)


@module.function(impact=1)
def leave() -> str:
    """Leaves files of all kinds."""
    os.makedirs("/tmp/deep/er")
    Path("/tmp/deep/er/note").write_text("MARK")
    os.symlink("/workspace", "/tmp/link")
    os.mkfifo("/tmp/pipe")
    os.chmod("/tmp/deep/er", 0)
    return "Left."


@module.function(impact=1)
async def run(call: Call) -> str:
    """Leaves a process that leaves its session, and tells what the program sees."""
    said, _ = await apart.ask(HERE.with_name("worker.py"), {}, call, limit=20)
    return json.dumps(dict(said))


@module.function(impact=1)
def look() -> str:
    """What is there."""
    processes = [Path(f"/proc/{one}/cmdline").read_text() for one in os.listdir("/proc") if one.isdigit()]
    return json.dumps({"tmp": os.listdir("/tmp"), "sleeps": sum("sleep" in one for one in processes)})
'''

WORKER = """
import os, subprocess, tempfile
from pathlib import Path

from ext_modules.sdk.apart import serve


def works(what):
    try:
        what()
        return True
    except OSError:
        return False


def work(request):
    subprocess.Popen(["setsid", "sleep", "600"], env={})
    return {
        "own": works(lambda: Path(tempfile.gettempdir(), "x").write_text("x")),
        "workspace": works(lambda: Path("/workspace/x").write_text("x")),
        "tmp": works(lambda: Path("/tmp/x").write_text("x")),
        "listed": works(lambda: os.listdir("/tmp")),
        "shared memory": works(lambda: Path("/dev/shm/x").write_text("x")),
        "null": works(lambda: Path("/dev/null").write_text("x")),
        "python": works(lambda: __import__("sqlite3")),
    }, b""


serve(work)
"""


def probes(folder: Path, *, forgets: bool) -> Path:
    """The module as one that ships."""
    needs = f'workspace = "write"\nforgets = {str(forgets).lower()}'
    shipped = write_module(folder, "probe", PROBE, needs=needs)
    (shipped / "probe" / "worker.py").write_text(WORKER, encoding="utf-8")
    return shipped


@each_backend
@pytest.mark.parametrize("forgets", [True, False])
def test_nothing_outlives_a_call_of_a_module_that_forgets(
    loop: asyncio.Runner, tmp_path: Path, backend: Backend, forgets: bool
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir(mode=0o777)
    workspace.chmod(0o777)

    async def scenario() -> None:
        shipped = probes(tmp_path / "shipped", forgets=forgets)
        async with hosting_on(backend, tmp_path / "data", shipped=shipped) as host:
            probe = await backend.start(host, "probe", session="s", workspace=workspace)
            async with called(probe) as call:
                ran = await call.text("run")
                assert await call.text("leave") == "Left."
                there = await call.text("look")
        if forgets:
            assert there == '{"tmp": [], "sleeps": 0}'
        else:
            assert "deep" in there, "this is what a module that keeps something finds"
        assert '"own": true, "workspace": true, "tmp": false, "listed": false' in ran
        assert '"shared memory": false, "null": true, "python": true' in ran

    loop.run(scenario())


def test_every_shipped_module_that_serves_all_agents_and_has_no_states_forgets_or_is_outside() -> None:
    """What a call could leave in any other would reach the next agent; `core.tree.origin.holder_of` counts on it."""
    found = {}
    for card in Path(ext_modules.__path__[0]).glob("*/module.toml"):
        needs = tomllib.loads(card.read_text(encoding="utf-8"))["needs"]
        found[card.parent.name] = (
            "forgets" if needs.get("forgets") else "own" if needs.get("own_instances") else ""
        )
    assert found == {
        "a2a": "", "app": "own", "browser": "", "docs": "forgets", "files": "forgets", "git": "forgets",
        "python": "own", "shell": "own", "sql": "forgets", "web": "forgets",
    }  # fmt: skip
