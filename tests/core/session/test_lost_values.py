"""A value that is lost beside its journal: it is named as lost, once, and the session goes on."""

from __future__ import annotations

from pathlib import Path

from tests.core.session.fakes import ScriptedModel, replies, runtime

CSV = b"year,revenue\n2024,43950\n" * 400


async def test_a_session_with_a_lost_value_opens_says_so_once_and_goes_on(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({"/": ["Seen."]})) as opened:
        session = await opened.open()
        uploaded = await session.upload("sales.csv", "text/csv", CSV)
        await session.ask("Look at it.")
        folder = session.journal.parent
    for place in ("blobs", "workspace"):
        for file in (folder / place).iterdir():
            if file.is_file():
                file.unlink()

    model = ScriptedModel(replies({"/": ["", "```SHOW sales\n```\n", "It is lost."]}), chunk=4096)
    async with runtime(tmp_path, replies({}), model=model) as opened:
        session = await opened.open(folder.name)
        assert (await session.ask("Show it.")).body == "It is lost."
        assert "[This value is lost: The blob " in model.asked[-1].newest
        assert not (folder / "workspace" / "sales.csv").exists(), "a lost value makes no file"
        notices = [record for record in session.records() if record.kind == "notice"]
        assert [notice.text("code") for notice in notices] == ["lost"]
        assert str(uploaded.text("var")) == "sales"

    async with runtime(tmp_path, replies({})) as opened:
        session = await opened.open(folder.name)
        assert sum(record.kind == "notice" for record in session.records()) == 1
