"""A file that a user hands in: a variable of the root's from its next turn on, wherever that comes from."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from iact.core.errors import UsageError, WorkspaceError
from iact.core.session.session import LONGEST_SAID
from iact.core.session.uploaded_files import choose_path, put
from iact.core.stored.replay import replay
from iact.core.tree.uploads import LARGEST, file_name, variable_name
from iact.core.views.events import Delta
from tests.core.session.fakes import ScriptedModel, replies, runtime
from tests.core.session.memories import FakeMemory

CSV = b"year,revenue\n2024,43950\n"


async def test_an_upload_waits_for_the_next_turn_and_is_passed_on_by_name(tmp_path: Path) -> None:
    script = {
        "/": ["Hello.", "```CALL reader\nRead $sales.\n```\n", "It was read."],
        "/reader": ["```READ text=$sales\n```\n", "Seen."],
    }
    model = ScriptedModel(replies(script), chunk=4096)
    async with runtime(tmp_path, replies(script), model=model) as opened:
        session = await opened.open()
        first = await session.upload("C:\\data\\sales.csv", "text/csv", CSV)
        assert (first.text("var"), first.text("file")) == ("sales", "sales.csv")
        assert not session.state.root.active
        again = await session.upload("sales.csv", "text/csv", b"other")
        assert again.text("var") == "sales_2"
        same = await session.upload("sales.csv", "text/csv", CSV)
        assert same.text("var") == "sales"
        assert session.state.root.table.get("sales") is None
        await session.ask("Hello?")
        table = session.state.root.table
        assert (table["sales"].load(), table["sales_2"].load()) == (CSV, b"other")
        assert table["sales"].labels == {"upload"}
        assert "with $sales (text/csv, 24 B)" in model.asked[0].newest
        said = model.asked[0].newest
        assert "sales.csv: file /workspace/sales.csv and variable $sales\n" in said
        assert "sales.csv: file /workspace/sales-2.csv and variable $sales_2\n" in said
        folder = session.journal.parent / "workspace"
        assert (folder / "sales.csv").read_bytes() == CSV
        assert (folder / "sales-2.csv").read_bytes() == b"other"
        assert sorted(one.name for one in folder.iterdir()) == ["sales-2.csv", "sales.csv"]
        assert session.state.shared.files == {"upload"}
        await session.ask("Have it read.")
        child = session.state.agents["/reader"].table
        assert child["sales"].load() == CSV
        # Small files are read where they are handed over, and so is what an agent hands to a child.
        assert f"$sales:\n```\n{CSV.decode()}```" in model.asked[0].newest
        assert f"$sales:\n```\n{CSV.decode()}```" in model.asked[2].newest
        assert session.state.agents["/reader"].labels >= {"upload"}
        journal = session.journal
    assert replay(journal, verify=True).tree.root.table["sales"].load() == CSV


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
        assert "notes" in model.asked[1].newest
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
        value = session.state.root.table["picture"]
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
        ("sales 2025.csv", "sales_2025"),
        ("2025.csv", "file_2025"),
        ("…", "file"),
        ("a" * 99, "a" * 48),
    ],
)
def test_names_of_variables(file: str, name: str) -> None:
    assert variable_name(file) == name


# --- as files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("orders.csv", "orders.csv"),
        ("a/b\\c/orders.csv", "orders.csv"),
        ("my orders (2025).csv", "my orders (2025).csv"),
        ("Überblick.pdf", "Überblick.pdf"),
        ("-rf", "_rf"),
        ("..", "file"),
        ("a\nb\x1b[31m.txt", "a_b_[31m.txt"),
        ("re\u202egnp.exe", "re_gnp.exe"),
        (".gitignore", ".gitignore"),
        ("é" * 300 + ".csv", "é" * 98 + ".csv"),
    ],
)
def test_names_of_files(tmp_path: Path, name: str, path: str) -> None:
    assert choose_path(tmp_path, file_name(name), b"x") == path
    put(tmp_path, path, b"x")
    assert [one.name for one in tmp_path.iterdir()] == [path]


def test_nothing_that_is_there_is_replaced_or_followed(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    workspace.mkdir()
    outside.write_bytes(b"mine")
    (workspace / "a.csv").symlink_to(outside)
    (workspace / "b.csv").mkdir()
    (workspace / "c.csv").write_bytes(b"other")
    (workspace / "d.csv").write_bytes(b"same")
    os.mkfifo(workspace / "e.csv")

    for name, path in (("a", "a-2"), ("b", "b-2"), ("c", "c-2"), ("d", "d"), ("e", "e-2")):
        assert choose_path(workspace, f"{name}.csv", b"same") == f"{path}.csv"
    put(workspace, "a.csv", b"same")  # an agent made the link after the name was chosen
    assert outside.read_bytes() == b"mine"
    assert (workspace / "a.csv").is_symlink()


def test_a_workspace_that_is_a_link_or_is_not_there_takes_no_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert choose_path(tmp_path / "link", "a.csv", b"x") == ""
    assert choose_path(tmp_path / "none", "a.csv", b"x") == ""
    with pytest.raises(WorkspaceError):
        put(tmp_path / "link", "a.csv", b"x")


async def test_a_file_that_a_crash_left_out_is_made_when_the_session_opens_again(tmp_path: Path) -> None:
    script = replies({"/": ["Hello."]})
    async with runtime(tmp_path, script) as opened:
        session = await opened.open()
        await session.upload("a.csv", "text/csv", CSV)
        file, name = session.journal.parent / "workspace" / "a.csv", session.id
    file.unlink()
    async with runtime(tmp_path, script) as opened:
        await opened.open(name)
        assert file.read_bytes() == CSV


async def test_an_upload_never_becomes_a_file_of_the_users_own_folder(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    model = ScriptedModel(replies({"/": ["Hello."]}))
    async with runtime(tmp_path / "data", replies({}), model=model) as opened:
        session = await opened.open(workspace=mine)
        record = await session.upload("a.csv", "text/csv", CSV)
        assert record.text("path") == ""
        await session.ask("Hello?")
        assert (
            "a.csv: variable $a. It is no file: the workspace is a folder of mine." in model.asked[0].newest
        )
        assert [*mine.iterdir()] == []
        journal = session.journal
    replay(journal, verify=True)


# --- messages that are too long to be read at once


async def test_a_long_message_is_a_file_whose_beginning_and_end_are_said(tmp_path: Path) -> None:
    long = "\n".join(f"line {number}" for number in range(1, 20_000))
    model = ScriptedModel(replies({"/": ["```SHOW message lines=9000-9001\n```\n", "Seen."]}), chunk=4096)
    async with runtime(tmp_path, replies({}), model=model) as opened:
        session = await opened.open()
        await session.ask(long)
        assert session.state.root.table["message"].load() == long.encode()
        assert (session.journal.parent / "workspace" / "message.md").read_text() == long

        read, shown = model.asked[0].newest, model.asked[1].newest
        assert "line 1\nline 2\n" in read
        assert "line 19998\nline 19999" in read
        assert "of 19,999 are left out: `SHOW message lines=" in read
        assert len(read) < 2 * LONGEST_SAID
        assert "line 9000\nline 9001" in shown
        journal = session.journal
    replay(journal, verify=True)


async def test_a_message_of_sixteen_megabytes_is_taken_and_one_over_the_bound_is_told(tmp_path: Path) -> None:
    model = ScriptedModel(replies({"/": ["Seen."]}), chunk=4096)
    async with runtime(tmp_path, replies({}), model=model) as opened:
        session = await opened.open()
        with pytest.raises(UsageError, match="a message may have 33,554,432"):
            await session.say("ä" * (LARGEST // 2 + 1))

        await session.ask("ä" * (8 << 20))
        assert session.state.root.table["message"].size == 16 << 20


async def test_a_long_goal_begins_no_plan_once_the_root_has_begun_to_work(tmp_path: Path) -> None:
    """While it is stored as a file, somebody else speaks."""
    memory = FakeMemory(gate=asyncio.Event())
    assert memory.gate is not None
    async with runtime(tmp_path, replies({"/": ["Hello."]}), memory=memory) as opened:
        session = await opened.open()
        goal = asyncio.create_task(session.say("x" * (LONGEST_SAID + 1), mode="reflect"))
        await asyncio.sleep(0)  # it has begun, and waits for the disk
        said = await session.say("Hello?")
        with pytest.raises(UsageError, match="can't start a plan"):
            await goal

        memory.gate.set()
        assert (await session.answer(said.n)).body == "Hello."
        assert [record.kind for record in session.records()].count("say") == 1
        journal = session.journal
    replay(journal, verify=True)


async def test_a_message_just_short_enough_is_said_as_it_is(tmp_path: Path) -> None:
    model = ScriptedModel(replies({"/": ["Seen."]}), chunk=4096)
    async with runtime(tmp_path, replies({}), model=model) as opened:
        session = await opened.open()
        await session.ask("x" * LONGEST_SAID)
        assert "x" * LONGEST_SAID in model.asked[0].newest
        assert "upload" not in [record.kind for record in session.records()]
