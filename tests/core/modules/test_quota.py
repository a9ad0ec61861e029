"""The bound of a workspace on disk: what is counted, and which calls it lets run."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from iact.core.modules import quota
from iact.core.modules.outcome import Completed, Outcome, Raised
from iact.core.modules.quota import FolderUse, Quota, disk_usage

MIB = 1 << 20
DONE = Completed("done", "text/plain", {}, None, (), None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


def write(folder: Path, name: str, size: int) -> None:
    (folder / name).write_bytes(b"x" * size)


def said(outcome: Outcome) -> str:
    assert isinstance(outcome, Raised), outcome
    assert outcome.type == "WorkspaceFull"
    return outcome.message


def test_a_full_workspace_refuses_one_call_and_lets_those_run_that_make_room(folder: Path) -> None:
    held, ran = Quota(FolderUse(folder), 8 * MIB), 0

    async def idle() -> Outcome:
        nonlocal ran
        ran += 1
        return DONE

    async def frees() -> Outcome:
        (folder / "first").unlink()
        return DONE

    async def main() -> None:
        assert await held.hold(idle) is DONE
        write(folder, "first", 6 * MIB)
        write(folder, "second", 9 * MIB)
        assert said(await held.hold(idle)) == (
            "The workspace takes more than the 8 MiB that it may. It was not run. Delete files first; "
            "calls may run as long as they make room."
        )
        assert ran == 1
        assert await held.hold(idle) is DONE
        assert await held.hold(idle) is DONE
        assert await held.hold(frees) is DONE, "it made room, if not enough: that is no try lost"
        assert await held.hold(idle) is DONE
        assert "Ask the user to make room" in said(await held.hold(idle))
        assert ran == 4
        (folder / "second").unlink()
        assert await held.hold(idle) is DONE
        write(folder, "second", 9 * MIB)
        assert "Delete files first" in said(await held.hold(idle)), "room was made, so it is told anew"

    asyncio.run(main())


def test_a_call_that_takes_too_much_is_stopped_and_the_next_may_make_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "_LOOK", 0.01)
    stopped = asyncio.Event()

    async def fills() -> Outcome:
        write(folder, "big", 2 * MIB)
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        raise AssertionError("it is never over")

    async def frees() -> Outcome:
        (folder / "big").unlink()
        return DONE

    async def main() -> None:
        held = Quota(FolderUse(folder), MIB)
        async with asyncio.timeout(300):
            assert "It was stopped. Delete files, or write less." in said(await held.hold(fills))
            assert stopped.is_set()
            assert await held.hold(frees) is DONE

    asyncio.run(main())


def test_a_call_that_waits_takes_its_time_while_there_is_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "_LOOK", 0.01)
    looked = 0

    def look(folder: Path) -> int:
        nonlocal looked
        looked += 1
        return 0

    monkeypatch.setattr(quota, "disk_usage", look)

    async def waits() -> Outcome:
        while looked < 4:  # noqa: ASYNC110 - what is waited for happens in threads
            await asyncio.sleep(0.01)
        return DONE

    async def main() -> None:
        async with asyncio.timeout(300):
            assert await Quota(FolderUse(folder), 1).hold(waits) is DONE

    asyncio.run(main())


def test_what_a_call_raises_comes_through(folder: Path) -> None:
    async def breaks() -> Outcome:
        raise RuntimeError("broken")

    for most in (0, MIB):
        with pytest.raises(RuntimeError, match="broken"):
            asyncio.run(Quota(FolderUse(folder), most).hold(breaks))


def test_no_bound_looks_at_nothing(tmp_path: Path) -> None:
    async def runs() -> Outcome:
        return DONE

    assert asyncio.run(Quota(FolderUse(tmp_path / "missing"), 0).hold(runs)) is DONE


def test_what_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"x" * MIB)
    folder = tmp_path / "workspace"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "link").symlink_to(outside)
    empty = disk_usage(folder)
    assert empty < MIB
    (folder / "a" / "file").write_bytes(b"x" * MIB)
    os.link(folder / "a" / "file", folder / "a" / "again")
    assert MIB <= disk_usage(folder) - empty < 2 * MIB
    monkeypatch.setattr(quota, "_DEPTH", 1)
    assert disk_usage(folder) > 1 << 60
    assert disk_usage(tmp_path / "missing") == 0
