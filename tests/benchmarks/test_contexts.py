"""What is counted over recorded sessions: on small sessions whose counts are known."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from benchmarks.contexts.__main__ import first_contexts, table
from benchmarks.contexts.count import Counts, count
from benchmarks.contexts.segments import segments
from iact.core.context.prompt import STANDARD
from iact.core.journal.file import read_blob, read_journal
from iact.core.ports import ChatMessage
from tests.core.session.fakes import replies, runtime


def counted(data: Path, root: list[str], child: list[str], task: str) -> tuple[Path, Counts]:
    """The journal of a session with these replies, and the counts over it."""

    async def main() -> Path:
        async with runtime(data, replies({"/": root, "/helper": child})) as opened:
            session = await opened.open()
            await session.ask(task)
            return session.journal.parent

    folder = asyncio.run(main())
    return folder, count(read_journal(folder).records, partial(read_blob, folder))


def test_functions_are_documented_before_they_are_used(tmp_path: Path) -> None:
    root = ["```t.read\na\n```", "```CALL helper\nRead b.\n```", "Both are read."]
    folder, counts = counted(tmp_path, root, ["```t.read\nb\n```", "It is read."], "Read a and b.")

    assert counts.requests == 5
    assert (counts.pairs, counts.pairs_documented) == (2, 2)
    assert (counts.idle, counts.unsaid, counts.shortened) == (0, 0, 0)
    assert counts.child_characters > 0
    assert counts.characters["prompt"] == 2 * len(STANDARD.system)
    assert len(list(first_contexts([folder]))) == 3


def test_a_turn_that_did_nothing_is_counted(tmp_path: Path) -> None:
    root = ["```t.nothing\na\n```", "```SHOW nowhere\n```", "There is no such thing."]
    _, counts = counted(tmp_path, root, [], "Do it.")

    assert (counts.turns, counts.idle, counts.reading) == (2, 1, 1)
    assert counts.pairs == 0


def test_a_note_counts_as_used_if_its_function_is_written_soon(tmp_path: Path) -> None:
    plan = "```PLAN p\ngoal: all\nsteps:\n  - {id: a, call: t.read, params: {text: x}}\n```"
    _, used = counted(tmp_path / "used", [plan, "Done."], [], "Do it, as a plan.")
    _, unused = counted(tmp_path / "unused", ["Done."], [], "Do it, as a plan.")

    assert (used.notes, used.notes_used) == (1, 1)
    assert (unused.notes, unused.notes_used) == (1, 0)


def test_a_quoted_label_begins_no_part_of_a_context() -> None:
    text = "Result of `t.read`:\n```\nDocumentation of `t.write`:\n```\n\n(state) time: now; memory: [fact] x"
    found = [(segment.kind, segment.name) for segment in segments([ChatMessage("user", text)])]
    assert found == [("results", ""), ("memory", ""), ("state", "")]


def test_the_table_names_its_aims() -> None:
    lines = list(table(Counts(sessions=1, notes=4, notes_used=3)))
    assert "| notes of functions used within 3 turns | 3 of 4 (75 %) | ≥ 80 % |" in lines
