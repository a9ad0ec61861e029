"""Memory in the page: searched, with what should be known before it is believed, and forgotten."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from playwright.async_api import expect

from iact.core.ports import Recalled
from tests.core.session.memories import FakeMemory
from tests.web.browser import browsing
from tests.web.fake import FakeRuntime, FakeSession
from tests.web.test_page import run

CHEESE = Recalled(
    id="a",
    text="The moon is of <b>cheese</b> \u202eyllaer.",
    kind="fact",
    score=0.5,
    at="2026-01-02T03:04:05Z",
    session="old",
    agent="/web",
    line="",
    why="by meaning",
    untrusted=("tool:web.fetch",),
    contradicts=("b",),
)
ROCK = replace(CHEESE, id="b", text="The moon is of rock.", untrusted=(), contradicts=(), current=False)


class Shelf(FakeMemory):
    """Finds all that it has, for one query."""

    async def search(
        self, query: str, *, limit: int = 20, project: str | None = None, session: str | None = None
    ) -> Sequence[Recalled]:
        return self.rows if query == "cheese" else self.rows[:1] if not query else ()

    async def forget(self, ids: Sequence[str]) -> int:
        self.rows = tuple(row for row in self.rows if row.id not in ids)
        return 2


def test_memory_is_searched_and_forgotten() -> None:
    memory = Shelf((CHEESE, ROCK))

    async def test() -> None:
        async with browsing(FakeRuntime(memory=memory)) as scene:
            page = await scene.page()
            await page.keyboard.press("Alt+Shift+F")
            dialog = page.get_by_role("dialog", name="Memory")
            field = dialog.get_by_role("searchbox")
            await expect(field).to_be_focused()
            rows = dialog.locator("[data-role=memories-list] > li")
            await expect(rows).to_have_count(1)
            await expect(dialog.get_by_role("status")).to_contain_text("Newest")
            await page.keyboard.type("cheese")
            await page.keyboard.press("Enter")
            await expect(rows).to_have_count(2)
            await expect(rows.first).to_contain_text("The moon is of <b>cheese</b> ‹U+202E›yllaer.")
            await expect(rows.first).to_contain_text("from tool:web.fetch")
            await expect(rows.first).to_contain_text("contradicted")
            await expect(rows.last).to_contain_text("replaced or withdrawn")
            await rows.first.get_by_role("button", name="Forget").click()
            await expect(rows).to_have_count(2)
            await rows.first.get_by_role("button", name="Forget").click()
            await expect(rows).to_have_count(1)
            await expect(dialog.get_by_role("status")).to_have_text("Forgotten.")
            assert [one.id for one in memory.rows] == ["b"]
            await field.fill("something else")
            await page.keyboard.press("Enter")
            await expect(dialog.get_by_role("status")).to_have_text("Memory holds nothing about that.")

    run(test)


def test_a_memory_is_edited_in_its_place() -> None:
    memory = Shelf((replace(CHEESE, text="The moon is of cheese."), ROCK))

    async def test() -> None:
        async with browsing(FakeRuntime(memory=memory)) as scene:
            page = await scene.page()
            await page.keyboard.press("Alt+Shift+F")
            await expect(page.locator("[data-role=memories-query]")).to_be_focused()
            await page.keyboard.type("cheese")
            await page.keyboard.press("Enter")
            dialog = page.get_by_role("dialog", name="Memory")
            row = dialog.locator("[data-role=memories-list] > li").first
            field = row.get_by_role("textbox", name="New text")
            edit = row.get_by_role("button", name="Edit")
            await edit.click()
            await expect(field).to_be_focused()
            await expect(field).to_have_value("The moon is of cheese.")
            await field.fill("Never mind.")
            await page.keyboard.press("Escape")
            await expect(field).to_have_count(0)
            await expect(edit).to_be_focused()
            await expect(row).to_contain_text("The moon is of cheese.")
            await edit.click()
            await field.fill("The moon is of <b>rock</b>.")
            await page.keyboard.press("Enter")
            await expect(row).to_contain_text("The moon is of <b>rock</b>.")
            await expect(row).to_contain_text("from tool:web.fetch")
            await expect(field).to_have_count(0)
            assert [one.text for one in memory.rows] == ["The moon is of <b>rock</b>.", ROCK.text]
            await edit.click()
            await field.fill(" ")
            await row.get_by_role("button", name="Save").click()
            await expect(dialog.get_by_role("status")).not_to_contain_text("Saved")
            await expect(field).to_be_focused()
            await row.get_by_role("button", name="Cancel").click()
            await expect(row).to_contain_text("The moon is of <b>rock</b>.")

    run(test)


def test_memory_is_switched_off_and_everything_is_forgotten() -> None:
    memory = Shelf((CHEESE, ROCK))
    session = FakeSession("s")

    async def test() -> None:
        async with browsing(FakeRuntime(session, memory=memory)) as scene:
            page = await scene.page("s")
            await page.keyboard.press("Alt+Shift+F")
            dialog = page.get_by_role("dialog", name="Memory")
            status = dialog.get_by_role("status")
            everywhere = dialog.get_by_role("checkbox", name="Remember what I say")
            here = dialog.get_by_role("checkbox", name="In this session, too")
            await expect(everywhere).to_be_checked()
            await expect(here).to_be_checked()
            await here.uncheck()
            await expect(status).to_contain_text("Memory is on, but not in this session")
            assert session.memory_off == {"session"}
            await everywhere.uncheck()
            await expect(status).to_contain_text("Memory is off")
            assert not memory.on
            await here.check()
            await expect(here).to_be_enabled()
            assert session.memory_off == set()
            await expect(status).to_contain_text("Memory is off")
            await everywhere.check()
            await expect(status).to_have_text("Memory is on.")
            assert memory.on
            rows = dialog.locator("[data-role=memories-list] > li")
            await expect(rows).to_have_count(1)
            everything = dialog.get_by_role("button", name="Forget everything")
            await everything.click()
            await expect(rows).to_have_count(1)
            await dialog.get_by_role("button", name="Forget it for good?").click()
            await expect(rows).to_have_count(0)
            await expect(status).to_have_text("2 forgotten.")
            assert memory.rows == ()

    run(test)


def test_a_memory_leads_to_where_it_is_from() -> None:
    memory = Shelf((CHEESE,))

    async def test() -> None:
        async with browsing(FakeRuntime(FakeSession("old"), memory=memory)) as scene:
            page = await scene.page()
            await page.keyboard.press("Alt+Shift+F")
            dialog = page.get_by_role("dialog", name="Memory")
            await dialog.get_by_role("button", name="Where it is from").click()
            await expect(dialog).to_be_hidden()
            await expect(page).to_have_url(re.compile("old"))

    run(test)


def test_where_memory_is_off_the_page_says_so() -> None:
    async def test() -> None:
        async with browsing(FakeRuntime()) as scene:
            page = await scene.page()
            await page.keyboard.press("Alt+Shift+F")
            await expect(page.locator("[data-role=memories-query]")).to_be_focused()
            await page.keyboard.type("cheese")
            await page.keyboard.press("Enter")
            status = page.get_by_role("dialog", name="Memory").get_by_role("status")
            await expect(status).to_contain_text("emory is off")

    run(test)


def test_a_model_looks_through_the_session_that_is_shown() -> None:
    memory = Shelf((CHEESE,))

    async def test() -> None:
        async with browsing(FakeRuntime(FakeSession("s"), memory=memory)) as scene:
            page = await scene.page("s")
            await page.keyboard.press("Alt+Shift+F")
            dialog = page.get_by_role("dialog", name="Memory")
            look = dialog.get_by_role("button", name="Look through this session")
            await look.click()
            await expect(dialog.get_by_role("status")).to_have_text("A model was asked about 1 message.")
            await expect(look).to_be_enabled()
            await dialog.get_by_role("checkbox", name="In this session, too").uncheck()
            await page.keyboard.press("Escape")
            await page.keyboard.press("Alt+Shift+F")
            await expect(look).to_be_hidden()

    run(test)
