"""Forgetting and editing: nothing is left of what is gone, and all that was made of it follows."""

from __future__ import annotations

import asyncio
import json
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

    async def text(memory: Memory) -> object:
        shown = await memory.show("s1/2")
        return shown and shown["text"]

    async def scene() -> None:
        stored = [say("s1", 2, secret), say("s1", 3, "The cat is called Pixel.")]
        async with run(tmp_path, *stored, journals=stored) as opened:
            memory = opened.of("anna")
            assert await text(memory) == secret
            await memory.edit("s1/2", edited.replace(" opens", "\n opens "))
            for _ in range(2):
                assert await text(memory) == edited
                assert not any("4711" in row.text for row in await memory.search("4711"))
                assert await memory.rebuild() == 2
            for wrong in (" ", "x" * 241):
                with pytest.raises(MemoryUnavailable, match="1 to 240"):
                    await memory.edit("s1/2", wrong)

    asyncio.run(scene())
    assert b"4711" not in contents(tmp_path)


async def test_statements_of_one_message_are_changed_and_forgotten_one_by_one(tmp_path: Path) -> None:
    stored = [
        say("s1", 2, "I'm allergic to peanuts."),
        replace(say("s1", 2, "I like short lines."), ordinal=1),
    ]
    async with run(tmp_path, *stored, journals=stored) as opened:
        memory = opened.of("anna")
        await memory.edit("s1/2.1", "I like long lines.")
        assert await memory.forget(["s1/2"]) == 1
        for _ in range(2):
            assert [row.text for row in await memory.search("")] == ["I like long lines."]
            await memory.rebuild()


async def test_what_older_versions_were_told_to_forget_stays_forgotten(tmp_path: Path) -> None:
    """Their lists name whole records. What they had edited were messages, which can't be taken over."""
    told_then = {"forgotten": {"s1/2": ""}, "edited": {"s1/3": "Draft the letter, and mention tea."}}
    (tmp_path / "decisions.json").write_text(json.dumps(told_then), encoding="utf-8")
    stored = [
        say("s1", 2, "I like red ink."),
        replace(say("s1", 2, "I like coffee."), ordinal=1),
        say("s1", 3, "I like tea."),
        say("s1", 4, "I like plums."),
    ]
    async with run(tmp_path, *stored) as opened:
        memory = opened.of("anna")
        assert [row.text for row in await memory.search("")] == ["I like plums."]
        assert await memory.forget(["s1/4"]) == 1
    async with run(tmp_path, *stored) as opened:
        assert await opened.of("anna").search("") == []


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
        told("s1", 3, "Its port is 9001 by now.", days=8, replaces="s1/2"),
    ]
    async with run(tmp_path, *stored, journals=stored) as opened:
        memory = opened.of("anna")
        for identity in ("s1/2", "s1/3"):
            await memory.edit(identity, f"The text of {identity} about the backup server.")
            found = {row.id: row.current for row in await memory.search("")}
            assert found == {"s1/2": False, "s1/3": True}
