"""A file that a user hands in: a variable of the root's from its next turn on, wherever that comes from."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from iact.core.errors import UsageError
from iact.core.session.events import Delta
from iact.core.session.replay import replay
from iact.core.tree.uploads import LARGEST, variable_name
from tests.core.session.fakes import ScriptedModel, replies, runtime

CSV = b"year,revenue\n2024,43950\n"


async def test_an_upload_waits_for_the_next_turn_and_is_passed_on_by_name(tmp_path: Path) -> None:
    script = {
        "/": ["Hello.", "```CALL reader\nRead $sales_csv.\n```\n", "It was read."],
        "/reader": ["```READ text=$sales_csv\n```\n", "Seen."],
    }
    model = ScriptedModel(replies(script), chunk=4096)
    async with runtime(tmp_path, replies(script), model=model) as opened:
        session = await opened.open()
        first = await session.upload("C:\\data\\sales.csv", "text/csv", CSV)
        assert (first.text("var"), first.text("file")) == ("sales_csv", "sales.csv")
        assert not session.state.root.active
        again = await session.upload("sales.csv", "text/csv", b"other")
        assert again.text("var") == "sales_csv_2"
        same = await session.upload("sales.csv", "text/csv", CSV)
        assert same.text("var") == "sales_csv"
        assert session.state.root.table.get("sales_csv") is None
        await session.ask("Hello?")
        table = session.state.root.table
        assert (table["sales_csv"].load(), table["sales_csv_2"].load()) == (CSV, b"other")
        assert table["sales_csv"].labels == {"upload"}
        assert "with $sales_csv (text/csv, 24 B)" in model.asked[0].newest
        assert "I uploaded the file 'sales.csv' as $sales_csv" in model.asked[0].newest
        await session.ask("Have it read.")
        child = session.state.agents["/reader"].table
        assert child["sales_csv"].load() == CSV
        # Small files are read where they are handed over, and so is what an agent hands to a child.
        assert f"$sales_csv:\n```\n{CSV.decode()}```" in model.asked[0].newest
        assert f"$sales_csv:\n```\n{CSV.decode()}```" in model.asked[2].newest
        assert session.state.agents["/reader"].labels >= {"upload"}
        journal = session.journal
    assert replay(journal, verify=True).tree.root.table["sales_csv"].load() == CSV


async def test_an_upload_while_a_model_writes_is_for_the_turn_after(tmp_path: Path) -> None:
    holds = {"/": asyncio.Event()}
    script = {"/": ["This is the answer.", "And now the file."]}
    model = ScriptedModel(replies(script), holds=holds)
    async with runtime(tmp_path, replies(script), model=model) as opened:
        session = await opened.open()
        async with session.watch() as events:
            said = await session.say("Go.")
            async for event in events:
                if isinstance(event, Delta):
                    break
        await session.upload("notes.txt", "text/plain", b"note")
        holds["/"].set()
        await session.answer(said.n)
        assert not session.state.root.active
        assert len(model.asked) == 1
        await session.ask("And?")
        assert "notes_txt" in model.asked[1].newest
        journal = session.journal
    replay(journal, verify=True)


async def test_an_upload_is_there_after_the_session_was_closed(tmp_path: Path) -> None:
    script = replies({"/": ["It is there."]})
    async with runtime(tmp_path, script) as opened:
        session = await opened.open()
        await session.upload("picture.png", "image/png", b"\x89PNG")
        name = session.id
    async with runtime(tmp_path, script) as opened:
        session = await opened.open(name)
        await session.ask("Is it there?")
        value = session.state.root.table["picture_png"]
        assert (value.load(), value.media, value.is_text) == (b"\x89PNG", "image/png", False)


async def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({})) as opened:
        session = await opened.open()
        for name, content in (("", b"x"), ("/", b"x"), ("a", bytes(LARGEST + 1))):
            with pytest.raises(UsageError):
                await session.upload(name, "text/plain", content)
        odd = await session.upload("a", "text/html; <script>", b"x")
        assert odd.text("media") == "application/octet-stream"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("sales 2025.csv", "sales_2025_csv"),
        ("2025.csv", "file_2025_csv"),
        ("…", "file"),
        ("a" * 99, "a" * 48),
    ],
)
def test_names_of_variables(file: str, name: str) -> None:
    assert variable_name(file) == name
