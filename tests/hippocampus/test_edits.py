"""Forgetting and editing: nothing is left of what is gone, and all that was made of it follows."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from iact.core.errors import MemoryUnavailable
from iact.core.ports import Memory
from tests.hippocampus.fakes import say, told
from tests.hippocampus.scene import contents, run


async def test_forgetting_leaves_no_trace(tmp_path: Path) -> None:
    secret = say("s1", 2, "My locker at the pool opens with zanzibarkrill.")
    stored = [
        secret,
        *(say("s1", 3 + n, f"Note {n}: the heating of room {n} is loud.") for n in range(20)),
    ]
    async with run(tmp_path, *stored) as opened:
        memory = opened.of("anna")
        assert b"zanzibarkrill" in contents(tmp_path)
        assert await memory.forget(["s1/2"]) == 1
        assert not [row for row in await memory.search("locker pool") if "zanzibarkrill" in row.text]
        assert len(await memory.search("heating room", limit=50)) == 20
    assert b"zanzibarkrill" not in contents(tmp_path)
    async with run(tmp_path) as opened:
        assert await opened.of("anna").rebuild(stored) == 20
        assert not [row for row in await opened.of("anna").search("locker") if "zanzibarkrill" in row.text]
    assert b"zanzibarkrill" not in contents(tmp_path)


async def test_forgetting_what_replaced_something_makes_that_current_again(tmp_path: Path) -> None:
    stored = [say("s1", 2, "I prefer dark mode.", days=9), say("s2", 2, "I prefer light mode.", days=3)]
    async with run(tmp_path, *stored) as opened:
        memory = opened.of("anna")
        await memory.forget(["s2/2"])
        assert [(row.text, row.current) for row in await memory.search("mode")] == [
            ("I prefer dark mode.", True)
        ]


async def test_an_edit_survives_a_rebuild(tmp_path: Path) -> None:
    stored = [say("s1", 2, "The office closes at six on weekdays.")]
    async with run(tmp_path, *stored) as opened:
        memory = opened.of("anna")
        await memory.edit("s1/2", "The office closes at seven on weekdays.")
        await memory.rebuild(stored)
        assert [row.text for row in await memory.search("office")] == [
            "The office closes at seven on weekdays."
        ]
        with pytest.raises(MemoryUnavailable, match="no memory"):
            await memory.edit("s7/7", "x")


def test_an_edit_leaves_nothing_of_the_old_text(tmp_path: Path) -> None:
    secret, edited = "I prefer that the vault opens with 4711.", "I prefer that the vault opens with a key."

    async def texts(memory: Memory) -> list[object]:
        shown = [await memory.show(identity) for identity in ("s1/2", "s1/2.1")]
        return [one and one["text"] for one in shown]

    async def scene() -> None:
        stored = [say("s1", 2, secret, first=True), say("s1", 3, "The cat is called Pixel.")]
        async with run(tmp_path, *stored, journals=stored) as opened:
            memory = opened.of("anna")
            assert await texts(memory) == [secret, secret]  # the goal, and the wish in it
            await memory.edit("s1/2.1", edited.replace(" opens", "\n opens "))
            for _ in range(2):
                assert await texts(memory) == [edited, edited]
                assert not any("4711" in row.text for row in await memory.search("4711"))
                assert await memory.rebuild() == 3
            for text in (" ", "x" * 481):
                with pytest.raises(MemoryUnavailable, match="1 to 480"):
                    await memory.edit("s1/2.1", text)

    asyncio.run(scene())
    assert b"4711" not in contents(tmp_path)


async def test_an_edit_of_a_message_takes_the_wishes_that_stood_in_it(tmp_path: Path) -> None:
    stored = [say("s1", 2, "I prefer tabs. I like short lines.", first=True)]
    async with run(tmp_path, *stored, journals=stored) as opened:
        memory = opened.of("anna")
        assert {row.id for row in await memory.search("tabs and lines")} >= {"s1/2.1", "s1/2.2"}
        await memory.edit("s1/2", "I like short lines.")
        for _ in range(2):
            shown = [await memory.show(identity) for identity in ("s1/2", "s1/2.1", "s1/2.2")]
            assert [one and one["text"] for one in shown] == [
                "I like short lines.",
                None,
                "I like short lines.",
            ]
            await memory.rebuild()


async def test_an_edit_is_compared_with_what_else_is_known_as_if_it_had_been_said_so(tmp_path: Path) -> None:
    stored = [
        say("s1", 2, "I prefer dark mode in the editor.", days=9),
        say("s2", 2, "I prefer light mode in the editor.", days=3),
    ]
    async with run(tmp_path, *stored, journals=stored) as opened:
        memory = opened.of("anna")
        await memory.edit("s2/2", "I prefer strong tea in the morning.")
        for _ in range(2):
            found = {row.text: row.current for row in await memory.search("mode of the editor")}
            assert found["I prefer dark mode in the editor."] is True
            await memory.rebuild()
        await memory.edit("s2/2", "I prefer light mode in the editor.")
        found = {row.text: row.current for row in await memory.search("mode of the editor")}
        assert found["I prefer dark mode in the editor."] is False


async def test_what_an_agent_replaced_stays_replaced_when_either_is_edited(tmp_path: Path) -> None:
    stored = [
        told("s1", 2, "The backup server listens on port 9000.", days=9),
        replace(told("s1", 3, "Its port is 9001 by now.", days=8), supersedes=("s1/2",)),
    ]
    async with run(tmp_path, *stored, journals=stored) as opened:
        memory = opened.of("anna")
        for identity in ("s1/2", "s1/3"):
            await memory.edit(identity, f"The text of {identity} about the backup server.")
            found = {row.id: row.current for row in await memory.search("")}
            assert found == {"s1/2": False, "s1/3": True}


def test_forgetting_what_was_merged_forgets_what_it_was_made_of(tmp_path: Path) -> None:
    async def distill(prompt: str) -> str:
        return "The nightly backup of the shop database runs on Monday, Tuesday and Friday."

    async def scene() -> None:
        days = ("Monday", "Tuesday", "Friday")
        stored = [
            told("s1", 3 + n, f"The nightly backup of the shop database runs on {day}.", agent="/")
            for n, day in enumerate(days)
        ]
        async with run(tmp_path, *stored) as opened:
            memory = opened.of("anna")
            assert await memory.consolidate(distill) == 1
            (merged,) = [row for row in await memory.search("nightly backup") if row.current]
            assert await memory.forget([merged.id]) == 4
            assert await memory.search("nightly backup") == []
            assert await memory.rebuild(stored) == 0

    asyncio.run(scene())


def test_an_edit_takes_what_was_distilled_from_the_old_text_with_it(tmp_path: Path) -> None:
    facts = [f"The nightly backup of the shop database goes to server number {n}." for n in range(3)]

    async def distill(prompt: str) -> str:
        return "The nightly backup of the shop database goes to the servers number 0, 1 and 2."

    async def scene() -> None:
        stored = [told("s1", 3 + n, text, agent="/", days=5 - n) for n, text in enumerate(facts)]
        async with run(tmp_path, *stored) as opened:
            memory = opened.of("anna")
            assert await memory.consolidate(distill) == 1
            await memory.edit("s1/3", "Nightly, the database of the shop is dumped.")
            found = {row.text: row.current for row in await memory.search("nightly backup of the database")}
            expected = ["Nightly, the database of the shop is dumped.", *facts[1:]]
            assert found == dict.fromkeys(expected, True)

    asyncio.run(scene())


def test_an_edit_of_what_was_distilled_stays_when_it_is_distilled_again(tmp_path: Path) -> None:
    facts = [f"The nightly backup of the shop database goes to server number {n}." for n in range(3)]

    async def distill(prompt: str) -> str:
        return "The nightly backup of the shop database goes to the servers number 0, 1 and 2."

    async def scene() -> None:
        stored = [told("s1", 3 + n, text, agent="/", days=5 - n) for n, text in enumerate(facts)]
        async with run(tmp_path, *stored, journals=stored) as opened:
            memory = opened.of("anna")
            edited = "The nightly backup of the shop database goes to three servers."
            await memory.consolidate(distill)
            (merged,) = [row for row in await memory.search("nightly backup") if row.current]
            await memory.edit(merged.id, edited)
            assert [row.text for row in await memory.search("nightly backup") if row.current] == [edited]
            await memory.rebuild()
            assert await memory.consolidate(distill) == 1
            assert [row.text for row in await memory.search("nightly backup") if row.current] == [edited]

    asyncio.run(scene())
