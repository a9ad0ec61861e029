"""Every command of the hostile corpus where it may only look: nothing changes, whatever the classifier says of it.

On every backend, in a scratch workspace and in a directory of the user's: a worker fills it (`corpus/hostile.toml`), a
viewer runs all commands, and the whole tree is compared: names, types, modes, owners, contents, targets, attributes,
and the times at which files and inodes changed. That the commands do change such a directory where they may write is
seen in `tests/core/gate/test_hostile.py`, and here for the commands of the first attack.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import pytest

from iact.core.ports import Right
from tests.core.gate.hostile import COMMANDS, FAMILIES, SETUP
from tests.rounds import SCALE
from tests.sandbox.backends import AnyHost, AnyInstance, Backend, each_backend
from tests.sandbox.calling import python, shell
from tests.snapshot import differences, snapshot

pytestmark = each_backend

Kind = Literal["scratch", "live"]

RUN: Final = """
import concurrent.futures, json, os, signal, subprocess
commands = json.loads(%r)
surroundings = os.environ | {"HOME": "/workspace/home", "GIT_CONFIG_SYSTEM": "/dev/null"}
def run(command):
    made = subprocess.Popen(["bash", "-c", command, "bash"], cwd="/workspace", env=surroundings, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        made.wait(%d)
    except subprocess.TimeoutExpired:
        os.killpg(made.pid, signal.SIGKILL)
        made.wait()
with concurrent.futures.ThreadPoolExecutor(%d) as pool:
    print(len(list(pool.map(run, commands))))
"""
AT_ONCE: Final = 100
"""Commands in one call."""


@dataclass(frozen=True, slots=True)
class Place:
    """A directory that is filled, and the two instances that see it."""

    folder: Path
    viewer: AnyInstance
    worker: AnyInstance


@pytest.fixture(scope="module", params=["scratch", "live"])
def place(
    loop: asyncio.Runner, host: AnyHost, data: Path, backend: Backend, request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Place]:  # fmt: skip
    kind: Kind = request.param
    folder = (
        data / "sessions" / kind / "workspace" if kind == "scratch" else tmp_path_factory.mktemp("theirs")
    )
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "live":
        folder.parent.chmod(0o755)
        folder.chmod(0o777)  # whoever the engine makes of us may write

    async def start(right: Right) -> AnyInstance:
        return await backend.start(
            host,
            "shell",
            session=kind,
            workspace=folder,
            right=right,
            agent="/" if right == "look" else "/worker",
        )

    worker = loop.run(start("work"))
    outcome = loop.run(shell(worker, f"cd /workspace\nexport HOME=/workspace/home\n{SETUP}"))
    assert outcome.exit_status == 0, outcome
    yield Place(folder, loop.run(start("look")), worker)
    loop.run(host.end_session(kind))


async def run(instance: AnyInstance, commands: list[str], *, seconds: int, beside: int) -> None:
    for start in range(0, len(commands), AT_ONCE):
        piece = commands[start : start + AT_ONCE]
        assert await python(instance, RUN % (json.dumps(piece), seconds, beside)) == str(len(piece))


def test_nothing_changes(loop: asyncio.Runner, place: Place, backend: Backend) -> None:
    """Every eighth at scale 1, all from scale 6 on. Under gVisor processes are slow, so fewer run beside each other."""
    before = snapshot(place.folder, inodes=True)
    step = max(1, round(8 / SCALE))
    commands = [
        one for number, (family, one) in enumerate(COMMANDS) if number % step == 0 or family == "found"
    ]
    loop.run(run(place.viewer, commands, seconds=5, beside=3 if backend.kind == "gvisor" else 6))
    assert differences(before, snapshot(place.folder, inodes=True)) == []


def test_where_it_may_work_the_same_commands_change_it(loop: asyncio.Runner, place: Place) -> None:
    before = snapshot(place.folder)
    loop.run(run(place.worker, FAMILIES["found"], seconds=5, beside=2))
    assert {"came: a", "changed: .git/config"} <= set(differences(before, snapshot(place.folder)))
