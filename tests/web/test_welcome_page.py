"""What a page without a session shows: what this is, a recording at work in little, and tasks to begin with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import expect

from iact.core.stored.journals import read_records
from iact.core.views.waterfall import waterfall
from iact.examples import EXAMPLES
from iact.web.ports import Recorded
from tests.web.browser import browsing
from tests.web.fake import FakeAround, FakeRuntime, FakeSession, node
from tests.web.test_accessible_page import check
from tests.web.test_page import run, stage


class Connected(FakeRuntime):
    """A server whose model is not the small one on board."""

    model_label = "large-1"
    small_models: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("width", "height", "scheme", "locale"),
    [(1440, 900, "light", "en-US"), (1440, 900, "dark", "de-DE"), (390, 844, "light", "de-DE"), (390, 844, "dark", "en-US")],
)  # fmt: skip
def test_an_empty_page_says_what_this_is_and_has_three_tasks(
    tmp_path: Path, width: int, height: int, scheme: Literal["light", "dark"], locale: str
) -> None:
    async def test() -> None:
        async with browsing(Connected(), FakeAround()) as scene:
            page = await scene.page(width=width, height=height, scheme=scheme, locale=locale)
            tasks = page.locator(".tasks .suggestion")
            await expect(tasks).to_have_count(3)
            await expect(page.locator(".lead")).to_have_count(1)
            await expect(page.locator(".at-work-row")).to_have_count(5)
            # Nothing is at the sides yet.
            await expect(page.locator("#inspector-pane")).to_be_hidden()
            await expect(page.locator("#tree-pane .tree")).to_be_hidden()
            await check(page, f"the first page, {width} wide, {scheme}, {locale}")
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            await page.screenshot(path=tmp_path / f"welcome-{width}-{scheme}-{locale}.png")

            # A task comes with what it needs, and waits for Enter.
            await tasks.first.focus()
            await page.keyboard.press("Enter")
            await expect(page.locator(".attachments li")).to_contain_text("sales.csv")
            field = page.locator("[data-role=text]")
            await expect(field).to_be_focused()
            await expect(field).to_have_value(re.compile(r"attached sales|angehängten Verkäufe"))

    run(test)


def test_the_second_task_has_its_documents() -> None:
    async def test() -> None:
        runtime = Connected()
        async with browsing(runtime, FakeAround()) as scene:
            page = await scene.page()
            await page.locator(".tasks .suggestion").nth(1).click()
            await expect(page.locator(".attachments li")).to_have_count(3)
            await page.keyboard.press("Enter")
            await expect(page.locator(".entry.incoming")).to_contain_text("Compare the attached offers")
            [session] = runtime.known.values()
            assert isinstance(session, FakeSession)
            uploads = [call for call in session.calls if call[0] == "upload"]
            assert [name for _, name, *_ in uploads] == ["offer-north.md", "offer-brook.md", "offer-vale.md"]
            assert all(len(content) > 100 for *_, content in uploads)
            assert session.calls[-1][0] == "say"

    run(test)


def test_the_small_model_is_asked_what_it_can_do() -> None:
    async def test() -> None:
        async with stage() as scene:
            page = await scene.page()
            tasks = page.locator(".tasks .suggestion")
            await expect(tasks).to_have_count(3)
            await expect(tasks.first).to_contain_text("Show me the disk usage of /tmp in your sandbox")
            await tasks.nth(2).click()
            await expect(page.locator("[data-role=text]")).to_have_value(re.compile("shopping list"))

    run(test)


def test_the_picture_is_a_recording_that_plays_and_can_be_stopped() -> None:
    [example] = [one for one in EXAMPLES if one.name == "research"]
    told = waterfall(read_records(example.folder))

    async def test() -> None:
        async with browsing(Connected(), FakeAround()) as scene:
            page = await scene.page()
            rows = page.locator(".at-work-row")
            await expect(rows).to_have_count(len(told.agents))
            for row, path in zip(await rows.all(), told.agents, strict=True):
                await expect(row).to_contain_text("Root agent" if path == "/" else path.rpartition("/")[2])

            # The tests' browser prefers that nothing moves, so it stands in the middle and is played by hand.
            marks = page.locator(".at-work-row .mark")
            states = [await mark.get_attribute("data-state") for mark in await marks.all()]
            assert states[0] == "waiting"
            assert "acting" in states
            await page.get_by_role("button", name="Play the picture").click()
            await expect(page.get_by_role("button", name="Stop the picture")).to_be_focused()
            await expect(marks.first).to_have_attribute("data-state", "done")
            await page.get_by_role("button", name="Stop the picture").click()

            await page.get_by_role("button", name="Watch this recording").click()
            await expect(page.locator("[data-role=replay]")).to_be_visible()
            await expect(page.locator("#inspector-panel")).to_be_visible()

    run(test)


def said() -> FakeSession:
    """A session with a message and its answer."""
    session = FakeSession("s")
    session.append("say", body="Hello.")
    session.append("reply", body="Hello!", to="user", status="ok")
    session.show(node("/", "done"))
    return session


def test_the_picture_begins_again_on_the_next_empty_page() -> None:
    async def test() -> None:
        async with browsing(Connected(said()), FakeAround()) as scene:
            page = await scene.page()
            await page.get_by_role("button", name="Play the picture").click()
            await expect(page.get_by_role("button", name="Stop the picture")).to_be_visible()
            await page.evaluate("location.hash = 's'")
            await expect(page.locator(".lead")).to_have_count(0)
            await page.keyboard.press("Control+k")
            await page.get_by_role("combobox", name="Search commands").fill("new session")
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("button", name="Play the picture")).to_be_visible()
            await expect(page.locator(".at-work-row")).to_have_count(5)

    run(test)


@pytest.mark.parametrize("width", [1280, 390])
def test_who_comes_again_finds_the_earlier_sessions(width: int) -> None:
    async def test() -> None:
        async with browsing(Connected(said()), FakeAround()) as scene:
            page = await scene.page(width=width)
            await page.get_by_role("button", name="Go on with an earlier session").click()
            await expect(page.locator("#side-sessions")).to_be_visible()
            await page.locator("#side-sessions li button").first.click()
            await expect(page.locator(".entry.incoming")).to_contain_text("Hello.")

    run(test)


def test_without_a_session_none_is_offered() -> None:
    async def test() -> None:
        async with browsing(Connected(), FakeAround()) as scene:
            page = await scene.page()
            await expect(page.locator(".tasks .suggestion")).to_have_count(3)
            await expect(page.get_by_role("button", name="Go on with an earlier session")).to_have_count(0)

    run(test)


def test_the_panes_open_with_the_first_message_and_close_with_a_new_session() -> None:
    async def test() -> None:
        async with stage(said()) as scene:
            page = await scene.page("s")
            await expect(page.locator("#inspector-panel dl").first).to_be_visible()
            await expect(page.locator("#tree-pane .tree")).to_be_visible()
            await page.keyboard.press("Control+k")
            await page.get_by_role("combobox", name="Search commands").fill("new session")
            await page.keyboard.press("Enter")
            await expect(page.locator(".lead")).to_be_visible()
            await expect(page.locator("#inspector-pane")).to_be_hidden()
            await expect(page.locator("#tree-pane")).to_be_hidden()

            # The sessions are there as soon as somebody wants them.
            await page.locator("[data-role=sessions]").click()
            await expect(page.locator("#side-sessions")).to_be_visible()
            await page.get_by_role("tab", name="Agents").click()
            await expect(page.locator("#tree-pane")).to_be_hidden()

    run(test)


def test_a_recording_that_is_not_there_is_no_picture() -> None:
    class Without(FakeAround):
        def examples(self) -> Sequence[Recorded]:
            return ()

    async def test() -> None:
        async with browsing(Connected(), Without()) as scene:
            page = await scene.page()
            await expect(page.locator(".tasks .suggestion")).to_have_count(3)
            await expect(page.locator(".at-work")).to_have_count(0)

    run(test)


def test_recorded_sessions_have_titles_in_the_readers_language() -> None:
    async def test() -> None:
        async with browsing(Connected(), FakeAround()) as scene:
            page = await scene.page(locale="de-DE")
            examples = page.locator(".examples button")
            await expect(examples).to_have_count(len(EXAMPLES))
            await expect(examples.first).to_have_text(
                "Recherche nebeneinanderDrei Agenten messen nebeneinander, einer lässt seine Arbeit prüfen, "
                "einer fragt zurück; die Wurzel entscheidet."
            )
            await examples.first.click()
            await expect(page.locator("[data-role=model]")).to_have_text(
                "Aufgezeichnetes Beispiel (ohne Modell)"
            )

    run(test)
