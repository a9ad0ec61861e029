"""The corpus of hostile commands through the product, in a directory of the user.

At intent 0, nothing changes. At intent 1, no existing file changes either: new files are created at once; all other
changes wait until a person applies them. Scale 1 runs a part of the corpus with the machine's own engine; from scale 3
on, all of it runs on every backend. `tests/core/gate/test_hostile.py` checks that each command does change such a
directory where nothing prevents it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from iact.sandbox.docker import isolation
from iact.sandbox.docker.engine import connect
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product
from tests.acceptance.test_live import ask, pending
from tests.acceptance.test_scenes import shell
from tests.core.gate.hostile import COMMANDS, FAMILIES, SETUP
from tests.core.gate.jail import fill
from tests.endpoint import Endpoint
from tests.rounds import SCALE
from tests.sandbox.backends import ALL, Backend, OwnEngine, present
from tests.snapshot import Entry, Snapshot, differences, snapshot

AT_ONCE = 20
PATIENCE: Final = 1200.0
"""Seconds for the commands of one session, each of which may take five."""
STEP = 1 if SCALE >= 3 else max(1, round(16 / SCALE))
SETTINGS: Final = {
    "docker": {"IACT_SANDBOX": "docker"},
    "gvisor": {"IACT_SANDBOX": "docker", "IACT_RUNTIME": "runsc"},
    "mapped": {"IACT_SANDBOX": "docker", "IACT_RUNTIME": "runc"},
    "bubblewrap": {"IACT_SANDBOX": "bubblewrap"},
}


@pytest.fixture(scope="module")
def own_engine() -> Iterator[OwnEngine]:
    made = OwnEngine()
    yield made
    made.close()


@pytest.fixture(scope="module", params=list(ALL) if SCALE >= 3 else ["docker"])
def backend(request: pytest.FixtureRequest, own_engine: OwnEngine) -> Iterator[Backend]:
    """The backends, one after the other; its engine is the one that the product finds meanwhile."""
    with present(request.param, own_engine) as found:
        yield found


def product_on(stage: Stage, backend: Backend, endpoint: Endpoint) -> Product:
    return stage.product(endpoint, **SETTINGS[backend.kind])


def some(step: int) -> list[str]:
    """Every so manieth of the corpus, with every second of the first attack's at least."""
    first = set(FAMILIES["found"][:: 1 if step == 1 else 2])
    return [one for number, (_, one) in enumerate(COMMANDS) if number % step == 0 or one in first]


AGAIN = "cd /workspace && find . -mindepth 1 -delete && cp -a /tmp/kept/. ."
"""Puts back what was there, so that each command finds all that it wants to change."""


def theirs(folder: Path, backend: Backend) -> Path:
    """A directory of the user's, as the corpus wants it; where the engine maps users, of one of those."""
    mine = folder / "mine"
    fill(mine, SETUP)
    if backend.kind == "mapped":
        with closing(connect()) as engine:
            mapped = isolation.of(engine.info(), "runc").mapped
        assert mapped is not None
        isolation.give(mine, mapped.first, mapped.group)
    return mine


def replies(commands: list[str]) -> list[str]:
    return [shell(*commands[start : start + AT_ONCE]) for start in range(0, len(commands), AT_ONCE)]


def held(before: Snapshot, after: Snapshot) -> list[str]:
    """What was there and is not there any more as it was. A folder may have got new names."""

    def plain(entry: Entry) -> tuple[object, ...]:
        folder = entry.mode & 0o170000 == 0o040000
        return (
            entry.mode,
            entry.owner,
            entry.content,
            *(() if folder else (entry.size, entry.modified, entry.links)),
        )

    return [name for name, entry in before.items() if name not in after or plain(entry) != plain(after[name])]


def pieces(commands: list[str], size: int) -> list[list[str]]:
    """As many as one session takes."""
    return [commands[start : start + size] for start in range(0, len(commands), size)]


def test_at_intent_0_nothing_changes(stage: Stage, backend: Backend, tmp_path: Path) -> None:
    mine = theirs(tmp_path, backend)
    before = snapshot(mine, inodes=True)
    for commands in pieces(some(STEP), 300):
        product = product_on(stage, backend, stage.endpoint({"/": [*replies(commands), "Done."]}))
        _, waiting = ask(product, mine, "--intent", "0", seconds=PATIENCE)
        assert waiting == []
    assert differences(before, snapshot(mine, inodes=True)) == []


def test_at_intent_1_what_changes_is_what_a_person_applied(
    stage: Stage, backend: Backend, tmp_path: Path
) -> None:
    for number, commands in enumerate(pieces(some(1 if STEP == 1 else STEP * 4), 40)):
        (folder := tmp_path / str(number)).mkdir()
        mine = theirs(folder, backend)
        before = snapshot(mine)
        calls = [
            f"{AGAIN}; export HOME=/workspace/home; timeout -k 1 5 bash -c {shlex.quote(one)} </dev/null"
            for one in commands
        ]
        last = shell(f"{AGAIN}; rm victim.txt f; echo x > list")
        endpoint = stage.endpoint(
            {"/": [shell("cp -a /workspace /tmp/kept"), *replies(calls), last, "Done."]}
        )
        product = product_on(stage, backend, endpoint)
        session, waiting = ask(product, mine, seconds=PATIENCE)
        assert held(before, snapshot(mine)) == []
        assert {"victim.txt", "f", "list"} <= set(waiting)
        assert set(pending(product, session)) == set(waiting)

        applied = product.agree("workspace", "apply", "--session", session, "f")
        assert applied.status == 0, applied
        assert held(before, snapshot(mine)) == ["f"]
        assert product.run("workspace", "drop", "--session", session).status == 0
        assert held(before, snapshot(mine)) == ["f"]
