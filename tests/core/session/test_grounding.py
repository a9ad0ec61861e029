"""What agents are told of the files around them: the newest first, then what is different, and never names that they should not read."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from iact.core.context.tail import BUDGET, Told, changes, tail
from iact.core.language.variables import Table
from iact.core.records.codec import encode_part
from iact.core.records.parts import Seen, SeenFile, SeenFiles
from iact.core.session.grounding import _difference, _walked
from iact.core.stored.replay import replay
from tests.core.session.fakes import Asked, runtime


def write(folder: Path, name: str, text: str = "x", *, at: int = 1) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    os.utime(folder / name, ns=(at, at))


def test_the_newest_come_first_and_the_rest_is_counted(tmp_path: Path) -> None:
    for number in range(20):
        write(tmp_path, f"f{number:02}", at=number + 1)
    said = _difference({}, _walked(tmp_path))
    assert said is not None
    assert [one.path for one in said.new] == [f"f{number:02}" for number in range(19, 7, -1)]
    assert said.more == 8


def test_only_what_is_different_is_said_then(tmp_path: Path) -> None:
    for name in ("kept", "changed", "gone"):
        write(tmp_path, name)
    before = _walked(tmp_path)
    assert _difference(before, _walked(tmp_path)) is None
    write(tmp_path, "changed", "y", at=7)
    write(tmp_path, "sub/new", "zz", at=9)
    (tmp_path / "gone").unlink()
    assert _difference(before, _walked(tmp_path)) == SeenFiles(
        (SeenFile("sub/new", 2), SeenFile("changed", 1)), gone=("gone",)
    )


def test_what_programs_made_is_passed_over_and_no_link_is_followed(tmp_path: Path) -> None:
    secret = tmp_path / "host"
    write(secret, "secret")
    workspace = tmp_path / "workspace"
    for name in ("a", ".git/config", "node_modules/x/y", "__pycache__/z", ".local/bin/pip"):
        write(workspace, name)
    (workspace / "out").symlink_to(secret)
    (workspace / "deep").joinpath(*["d"] * 40).mkdir(parents=True)
    os.mkfifo(workspace / "pipe")
    assert set(_walked(workspace)) == {"a", "out", "pipe"}
    (tmp_path / "link").symlink_to(workspace)
    assert _walked(tmp_path / "link") == {}
    assert _walked(tmp_path / "nowhere") == {}


def test_a_folder_without_end_is_looked_at_so_far(tmp_path: Path) -> None:
    for number in range(2_100):
        (tmp_path / f"f{number}").touch()
    assert len(_walked(tmp_path)) == 2_000


@pytest.mark.parametrize("name", ["a\nb; time: never", "x" * 250, "\u202etxt.exe", "%0A"])
def test_a_name_can_say_nothing_of_its_own(name: str) -> None:
    said = tail(Seen("now", files=SeenFiles((SeenFile(name, 1),) * 12, more=3)), Table())
    assert "\n" not in said
    assert "\u202e" not in said
    assert "; time: never" not in said or '"' in said
    assert len(said) <= BUDGET


def test_the_words() -> None:
    files = SeenFiles((SeenFile("a.py", 9), SeenFile("data/b.csv", 1200)), more=2)
    assert tail(Seen("now", files=files), Table()) == (
        "(state) time: now; files, newest first: a.py (9 B), data/b.csv (1.2 kB) and 2 more"
    )
    told = Told(Seen("now", files=files), 0)
    assert changes(told, Seen("now"), Table()) == ""
    fresh = SeenFiles((SeenFile("a.py", 10),), gone=("c",), more_gone=1)
    assert changes(told, Seen("now", files=fresh), Table()) == (
        "(state) new or changed files: a.py (10 B); files that are gone: c and 1 more"
    )


def test_it_stands_in_the_record_only_where_there_is_something() -> None:
    assert "files" not in str(encode_part(Seen("now")))
    said = encode_part(Seen("now", files=SeenFiles((SeenFile("a", 1),))))
    assert said["files"] == {"new": [{"path": "a", "size": 1}]}


def test_a_session_tells_its_agents_of_files_and_verifies(tmp_path: Path) -> None:
    asked = list[Asked]()

    def script(one: Asked) -> str:
        asked.append(one)
        return "Yes."

    async def scenario() -> Path:
        async with runtime(tmp_path, script) as opened:
            session = await opened.open()
            await session.ask("First.")  # the workspace is empty
            write(session.workspace, "a.txt")
            await session.ask("Second.")
            await session.ask("Third.")
            (session.workspace / "a.txt").unlink()
            await session.ask("Fourth.")
            return session.journal

    journal = asyncio.run(scenario())
    told = [one.newest for one in asked]
    assert ["file" in one for one in told] == [False, True, False, True]
    assert "files, newest first: a.txt (1 B)" in told[1] or "new or changed files: a.txt (1 B)" in told[1]
    assert "files that are gone: a.txt" in told[3]
    replay(journal, verify=True)


def test_a_reopened_session_tells_only_what_was_changed_since(tmp_path: Path) -> None:
    asked = list[Asked]()
    old, new = 1_000_000_000, time.time_ns() + 10**15

    def script(one: Asked) -> str:
        asked.append(one)
        return "Yes."

    async def scenario() -> Path:
        async with runtime(tmp_path, script) as opened:
            session = await opened.open()
            write(session.workspace, "kept.txt", at=old)
            write(session.workspace, "edited.txt", at=old)
            await session.ask("First.")
        async with runtime(tmp_path, script) as opened:
            session = await opened.open(session.id)
            write(session.workspace, "edited.txt", "longer", at=new)
            await session.ask("Second.")
            return session.journal

    journal = asyncio.run(scenario())
    assert "kept.txt" in asked[0].newest
    assert "new or changed files: edited.txt (6 B)" in asked[1].newest
    assert "kept.txt" not in asked[1].newest
    replay(journal, verify=True)


def test_names_that_others_chose_are_told_to_who_has_read_what_they_wrote(tmp_path: Path) -> None:
    asked = list[Asked]()

    def script(one: Asked) -> str:
        asked.append(one)
        return "Yes."

    async def scenario() -> None:
        async with runtime(tmp_path, script) as opened:
            session = await opened.open()
            tree = session._live.tree
            tree.shared.files = frozenset({"tool:web.fetch"})
            write(session.workspace, "obey-me")
            await session.ask("First.")
            tree.agents["/"].labels |= {"tool:web.fetch"}
            await session.ask("Second.")

    asyncio.run(scenario())
    assert ["obey-me" in one.newest for one in asked] == [False, True]
