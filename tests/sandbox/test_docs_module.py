"""The docs module in its sandbox: text, tables and pages of documents, and documents that mean harm."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from iact.core.modules.client import Completed, Raised
from tests.sandbox.backends import AnyHost, AnyInstance, Backend, either_backend
from tests.sandbox.documents import HOSTILE, TABLE, paragraph, pdf, ruled, said, word, word_table, workbook
from tests.sandbox.inside import called

pytestmark = either_backend("docker")

CSV = "".join(f"{','.join(row)}\n" for row in TABLE)


@pytest.fixture(scope="module")
def docs(loop: asyncio.Runner, host: AnyHost, workspace: Path, backend: Backend) -> Iterator[AnyInstance]:
    files = {
        "paper.pdf": pdf([said("A first page"), ruled(), ""]),
        "letter.docx": word(paragraph("Dear Ada") + word_table()),
        "towns.xlsx": workbook([*TABLE, *[("x", "1")] * 60]),
        "page.html": b"<html><script>alert(1)</script><h1>Title</h1><table><tr><td>a</td></tr></table></html>",
        "misnamed.txt": pdf([said("Still a PDF")]),
        **HOSTILE,
    }
    for name, content in files.items():
        (workspace / name).write_bytes(content)
    (workspace / "link.pdf").symlink_to("/etc/passwd")
    instance = loop.run(backend.start(host, "docs", session="one", workspace=workspace))
    yield instance
    loop.run(instance.stop())


def test_documents_are_read_as_markdown_and_their_tables_taken_out(
    loop: asyncio.Runner, docs: AnyInstance
) -> None:
    async def scenario() -> None:
        async with called(docs) as caller:
            paper = await caller.outcome("read", {"path": "paper.pdf"})
            assert isinstance(paper, Completed)
            assert paper.data == {"kind": "pdf", "pages": 3, "title": "", "more": False}
            assert paper.media == "text/markdown"
            assert "[Page 1 of 3]\n\nA first page\n" in paper.output
            assert "[It has no text; docs.page gives it as a picture.]" in paper.output
            assert "A first page" not in await caller.text("read", path="paper.pdf", pages="2-")
            assert "go on with start=20" in await caller.text("read", path="paper.pdf", most=20)
            assert "Still a PDF" in await caller.text("read", path="misnamed.txt")
            assert "1: page 2, 3 rows, 2 columns: town, people\n" in await caller.text(
                "tables", path="paper.pdf"
            )
            assert await caller.text("tables", path="paper.pdf", number=1) == CSV
            found = await caller.outcome("read", {"path": "paper.pdf", "find": "PAGE first"})
            assert isinstance(found, Completed)
            assert found.output == (
                "[Page 1 of 3]\nA first page\n[1 pages have no text; docs.page gives them as pictures.]\n"
            )
            assert found.data == {"found": 1}
            assert "holds 'nowhere'.]" in await caller.text("read", path="letter.docx", find="nowhere")
            place = await caller.text("read", path="letter.docx", find="oslo")
            start = int(place.partition(":")[0].removeprefix("start="))
            assert (await caller.text("read", path="letter.docx", start=start)).startswith("| Oslo | 709 |")
            assert "Only a PDF has pages" in await caller.error("read", path="letter.docx", pages="1")
            letter = await caller.text("read", path="letter.docx")
            assert "Dear Ada" in letter
            assert "| Oslo | 709 |" in letter
            assert await caller.text("tables", path="letter.docx", number=1) == CSV
            towns = await caller.text("read", path="towns.xlsx")
            assert towns.startswith("## Towns\n\n| town | people |\n| --- | --- |\n| Oslo | 709 |\n")
            assert "13 more rows; docs.tables number=1 gives all" in towns
            assert (await caller.text("tables", path="towns.xlsx", number=1)).startswith(CSV)
            page = await caller.text("read", path="page.html")
            assert "# Title" in page
            assert "alert" not in page
            drawn = await caller.outcome("page", {"path": "paper.pdf", "number": 2})
            assert isinstance(drawn, Completed)
            assert [(one.name, one.media) for one in drawn.artifacts] == [("page-2.png", "image/png")]
            assert caller.artifacts[drawn.artifact or ""].startswith(b"\x89PNG\r\n")

    loop.run(scenario())


def test_what_can_not_be_read_is_told(loop: asyncio.Runner, docs: AnyInstance) -> None:
    told = {
        "notes.txt": "Text is for files.read",
        "old.doc": "an old Office",
        "link.pdf": "outside of the workspace",
        "/etc/passwd": "outside of the workspace",
        "gone.pdf": "There is no file gone.pdf",
        "bomb.docx": "more than 256 MiB when it is unpacked",
        "many.docx": "more than 256 MiB when it is unpacked",
    }

    async def scenario() -> None:
        async with called(docs) as caller:
            for path, why in told.items():
                assert why in await caller.error("read", path=path)
            assert "names no pages" in await caller.error("read", path="paper.pdf", pages="two")
            assert "There are 3 pages" in await caller.error("page", path="paper.pdf", number=4)
            assert "Give either path" in await caller.error("read")

    loop.run(scenario())


def test_a_hostile_document_costs_its_caller_only(loop: asyncio.Runner, docs: AnyInstance) -> None:
    async def scenario() -> None:
        async with called(docs) as caller:
            for path in HOSTILE:
                for function in ("read", "tables"):
                    outcome = await caller.outcome(function, {"path": path}, seconds=90)
                    assert isinstance(outcome, (Completed, Raised)), (path, outcome)
                    assert "root:" not in outcome.output, path
                    assert len(outcome.output) < 200_000, path
            assert "Dear Ada" in await caller.text("read", path="letter.docx")

    loop.run(scenario())
