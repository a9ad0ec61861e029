"""Files that something runs or reads by itself, in a directory of the user's: whoever has read a stranger is held."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from iact.core.gate.additions import KINDS
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from tests.core.gate.acting_scenes import SAMPLES
from tests.core.session.fakes import Asked, Script, ScriptedModel
from tests.core.session.live_fakes import Overlays, live_runtime

REASONS = {kind.name: kind.reason for kind in KINDS}
FETCH = "```web.fetch\npage\n```"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A directory of the user's."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    return folder


def turns(*replies: str) -> Script:
    """An agent that says one thing after the other, and then "Done."."""
    return lambda asked: replies[asked.turn] if asked.turn < len(replies) else "Done."


def do(*lines: str) -> str:
    """One call of the module that works in the directory."""
    return "```DO\n" + "\n".join(lines) + "\n```"


def held(
    data: Path, workspace: Path | None, script: Script, *, intent: float = 2, policy: str = ""
) -> dict[str, tuple[str, str]]:
    """What waits after one message, and why; the session is verified."""

    async def main() -> tuple[str, dict[str, tuple[str, str]]]:
        async with live_runtime(data, script, open_live=Overlays(), policy=policy) as runtime:
            session = await runtime.open(intent=intent, workspace=workspace)
            await session.ask("Go")
            return session.id, await _waiting(session)

    identity, found = asyncio.run(main())
    replay(data / "sessions" / identity, verify=True)
    return found


async def _waiting(session: Session) -> dict[str, tuple[str, str]]:
    pending = await session.effects.pending()
    return {path: (item.held, item.reason) for path, item in pending.items()}


def adds(name: str) -> str:
    """A call that adds the sample of a kind, in a folder of its own."""
    path = f"{name}-in/{SAMPLES[name]}"
    lines = [f"write {path} x"]
    if name == "executable":
        lines.append(f"chmod 755 {path}")
    return do(*lines)


_PARTS: Final = 4
"""An agent has only so many turns, so the kinds are spread over several sessions."""


@pytest.mark.parametrize("part", range(_PARTS))
@pytest.mark.parametrize("intent", [1, 2])
@pytest.mark.parametrize("live", [True, False], ids=["live", "scratch"])
@pytest.mark.parametrize("tainted", [True, False], ids=["tainted", "clean"])
def test_every_kind_waits_from_a_tainted_agent_in_a_live_directory_alone(
    tmp_path: Path, mine: Path, *, tainted: bool, live: bool, intent: float, part: int
) -> None:
    kinds = list(SAMPLES)[part::_PARTS]
    replies = [FETCH] if tainted else []
    replies += [adds(name) for name in kinds]
    if not live:
        assert asked_in_scratch(tmp_path, replies, kinds, intent=intent) == 0
        return

    found = held(tmp_path, mine, turns(*replies), intent=intent)
    for name in kinds:
        place = f"{name}-in/{SAMPLES[name]}"
        begins_with_a_dot = "/." in place
        if begins_with_a_dot and intent == 1:
            # As for everybody: settings of programs have impact 2.
            assert found[place] == ("impact", "The changes have impact 2, and the intent of / is 1.")
        elif tainted:
            why = f"{place}: {REASONS[name]} It is touched by tool:web.fetch."
            assert found[place] == ("provenance", why)
        else:
            assert place not in found
            assert (mine / place).exists()
    if tainted:
        assert list(mine.rglob("*")) == [mine / "notes.txt"]


def asked_in_scratch(data: Path, replies: Sequence[str], kinds: Sequence[str], *, intent: float) -> int:
    """How many questions there are in a workspace of the session's own, where every file is there afterwards."""

    async def main() -> tuple[str, int]:
        async with live_runtime(data, turns(*replies), open_live=Overlays()) as runtime:
            session = await runtime.open(intent=intent)
            await session.ask("Go")
            return session.id, sum(record.kind in ("clearance", "effects") for record in session.records())

    identity, asked = asyncio.run(main())
    folder = data / "sessions" / identity / "workspace"
    for name in kinds:
        assert (folder / f"{name}-in" / SAMPLES[name]).exists()
    return asked


def test_ordinary_files_of_a_tainted_agent_are_there_at_once(tmp_path: Path, mine: Path) -> None:
    script = turns(FETCH, do("write README.md x", "write src/main.py x", "mkdir more", "write data.json x"))
    assert held(tmp_path, mine, script, intent=1) == {}
    assert (mine / "src" / "main.py").exists()


def test_at_the_default_intent_the_person_is_told_why(tmp_path: Path, mine: Path) -> None:
    (mine / "Makefile").write_text("all:")
    found = held(tmp_path, mine, turns(FETCH, do("write GNUmakefile x")), intent=1)
    assert found == {
        "GNUmakefile": (
            "provenance",
            "GNUmakefile: `make` runs this file instead of your makefile or Makefile."
            " It is touched by tool:web.fetch.",
        )
    }
    assert not (mine / "GNUmakefile").exists()


def test_a_list_of_them_is_named_in_one_sentence(tmp_path: Path, mine: Path) -> None:
    names = ("Makefile", "build.rs", "conftest.py", "package.json", "setup.py")
    found = held(tmp_path, mine, turns(FETCH, do(*(f"write {name} x" for name in names))), intent=1)
    assert found.keys() == set(names)
    ((_, reason),) = set(found.values())
    assert reason.startswith("Makefile: `make` runs this file")
    assert "So it is with build.rs, conftest.py, package.json and 1 more." in reason


ROUNDABOUT = {
    "renamed": [do("write a.txt x"), do("rm a.txt", "write Makefile x")],
    "made to run": [do("write tool x"), do("chmod 755 tool")],
    "in a new folder": [do("mkdir new"), do("write new/conftest.py x")],
    "in pieces": [
        do("write docs/config x", "write docs/objects/x x", "write docs/refs/x x"),
        do("write docs/HEAD x"),
    ],
    "beside an ordinary file": [do("write a.txt x", "write GNUmakefile x")],
    "by a link": [do("write a.txt x"), do("ln a.txt Makefile")],
}


@pytest.mark.parametrize("way", ROUNDABOUT)
@pytest.mark.parametrize("intent", [1, 2])
def test_no_way_around_adds_one(tmp_path: Path, mine: Path, way: str, intent: float) -> None:
    found = held(tmp_path, mine, turns(FETCH, *ROUNDABOUT[way]), intent=intent)
    assert found
    for path in ("Makefile", "new/conftest.py", "docs/HEAD", "GNUmakefile"):
        assert not (mine / path).exists()
    assert not os.access(mine / "tool", os.X_OK)


def test_what_a_clean_agent_added_is_not_changed_by_a_tainted_one(tmp_path: Path, mine: Path) -> None:
    found = held(
        tmp_path, mine, turns(do("write Makefile mine"), FETCH, do("write Makefile other")), intent=1
    )
    assert found["Makefile"][0] == "provenance"
    assert (mine / "Makefile").read_text() == "mine"


def test_the_child_of_a_clean_agent_is_held_and_so_is_whoever_heard_it(tmp_path: Path, mine: Path) -> None:
    def script(asked: Asked) -> str:
        if asked.path == "/":
            return ["```CALL reader\nRead.\n```", do("write conftest.py x"), "Done."][asked.turn]
        return [FETCH, do("write Makefile x"), "Read."][asked.turn]

    found = held(tmp_path, mine, script, intent=1)
    assert {path: one[0] for path, one in found.items()} == {
        "Makefile": "provenance",
        "conftest.py": "provenance",
    }


@pytest.mark.parametrize("line", ["write Makefile x", "rm notes.txt"])
def test_what_a_stranger_touched_is_not_put_into_place_by_a_clean_agent(
    tmp_path: Path, mine: Path, line: str
) -> None:
    """The builder has read nothing. But its call can read what the reader wrote, and it may be what it writes."""
    read = asyncio.Event()

    def script(asked: Asked) -> str:
        if asked.path == "/":
            calls = "```CALL_ASYNC reader\nRead.\n```\n\n```CALL_ASYNC builder\nBuild.\n```"
            return [calls, "```WAIT\n```", "```WAIT\n```"][asked.turn] if asked.turn < 3 else "Done."
        if asked.path == "/reader":
            return [FETCH, do("write heard.txt x"), "Read."][asked.turn]
        return [do(line), "Built."][asked.turn]

    async def main() -> dict[str, tuple[str, str]]:
        model = ScriptedModel(script, holds={"/builder": read})
        async with live_runtime(tmp_path, script, open_live=Overlays(), model=model) as runtime:
            session = await runtime.open(intent=2, workspace=mine)
            said = await session.say("Go")
            while not (mine / "heard.txt").exists():
                await session._live.grew.wait()
            read.set()
            await session.answer(said.n)
            return await _waiting(session)

    found = asyncio.run(main())
    assert {path: one[0] for path, one in found.items()} == {line.split()[1]: "provenance"}


def test_a_source_that_the_policy_trusts_is_no_stranger(tmp_path: Path, mine: Path) -> None:
    policy = '[scope.default]\nfunctions = ["*"]\ntrusted = ["tool:web.fetch"]\n'
    assert held(tmp_path, mine, turns(FETCH, do("write Makefile x")), intent=1, policy=policy) == {}
    assert (mine / "Makefile").exists()


def test_a_person_applies_it_and_it_is_there(tmp_path: Path, mine: Path) -> None:
    async def main() -> None:
        script = turns(FETCH, do("write Makefile x"))
        async with live_runtime(tmp_path, script, open_live=Overlays()) as runtime:
            session = await runtime.open(intent=1, workspace=mine)
            await session.ask("Go")
            await session.effects.apply(["Makefile"])

    asyncio.run(main())
    assert (mine / "Makefile").read_text() == "x"
