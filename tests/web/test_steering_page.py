"""A person steers a plan on the page, at a desk and on a phone, and reads about it in the language of their page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from iact.core.stored.replay import replay
from tests.core.session.fakes import ScriptedModel, World
from tests.core.session.plan_scenes import runtime, until
from tests.web.browser import SHARED, browsing
from tests.web.test_accessible_page import check
from tests.web.test_language import ENGLISH
from tests.web.test_plan_wire import GOAL, STOP, WISH, Planner

run = SHARED.run


@dataclass(frozen=True)
class Words:
    """What a person and their models say in one language, and what the page says to them."""

    locale: str
    goal: str
    wish: str
    stop: str
    answer: str
    reached: str
    stopped: str


ENGLISH_WORDS = Words("en-US", GOAL, WISH, STOP, "All is there.", "Its goal is reached.", "Stopped.")
GERMAN_WORDS = Words(
    "de-DE",
    "Schreib auf, was da ist.",
    "Schreib auch das Dritte auf.",
    "Halt, ich brauche es nicht mehr.",
    "Alles ist da.",
    "Sein Ziel ist erreicht.",
    "Angehalten.",
)


@dataclass
class Desk:
    """The page, and the plan that stands in its first step."""

    page: Page
    world: World
    hold: asyncio.Event
    planner: Planner
    folder: Path

    @property
    def narrow(self) -> bool:
        size = self.page.viewport_size
        assert size is not None
        return size["width"] < 700

    @property
    def pane(self) -> Locator:
        """The details of what is selected."""
        return self.page.locator("#inspector-panel")

    async def say(self, text: str) -> None:
        field = self.page.locator("[data-role=text]")
        await field.fill(text)
        await field.press("Enter")
        await expect(field).to_have_value("")

    async def begin(self, goal: str, mode: str) -> None:
        """Give the goal to a mode, and wait until its plan stands in its first step."""
        self.hold.clear()
        before = self.written.count("held")
        await self.page.locator("[data-role=way]").select_option(mode)
        await self.say(goal)
        await until(lambda: self.written.count("held") > before)

    async def select(self, path: str) -> None:
        """Choose an agent in the tree, which is behind a button on a phone."""
        if self.narrow:
            await self.page.locator("[data-drawer=tree]").click()
        await self.page.locator(f'[data-path="{path}"] > .node').click()

    async def details(self, tab: str) -> None:
        """Show a tab of the details, which are behind a button on a phone."""
        if self.narrow:
            await self.page.locator("[data-drawer=inspector]").click()
        await self.page.locator(f"#tab-{tab}").click()

    async def picture(self, name: str) -> None:
        await self.page.screenshot(path=self.folder / f"{name}.png")

    @property
    def written(self) -> list[str]:
        return [text for _, _, text in self.world.done]


@asynccontextmanager
async def at_desk(folder: Path, words: Words, width: int) -> AsyncIterator[Desk]:
    """A new session on the page. At the end it verifies."""
    hold = asyncio.Event()
    world = World(hold={"held": hold})
    planner = Planner(wish=words.wish, answer=words.answer)
    model = ScriptedModel(planner)
    async with runtime(folder, planner, world=world, model=model) as opened, browsing(opened) as browser:
        page = await browser.page(width=width, locale=words.locale)
        yield Desk(page, world, hold, planner, folder)
        (info,) = opened.sessions()
        session = await opened.open(info.id)
    replay(session.journal, verify=True)


def in_their_language(words: Words, read: str) -> None:
    """Check that nothing that a person reads is English, if their page is not."""
    if words.locale != ENGLISH_WORDS.locale:
        assert not ENGLISH.findall(read), read


@pytest.mark.parametrize(
    ("words", "width", "mode"),
    [
        (ENGLISH_WORDS, 1280, "reflect"),
        (GERMAN_WORDS, 1280, "profile"),
        (GERMAN_WORDS, 390, "analyze"),
        (ENGLISH_WORDS, 390, "static"),
    ],
    ids=lambda value: getattr(value, "locale", value),
)
def test_a_plan_is_changed_added_to_and_stopped_on_the_page(
    tmp_path: Path, words: Words, width: int, mode: str
) -> None:
    async def test() -> None:
        async with at_desk(tmp_path, words, width) as desk:
            page = desk.page
            await desk.begin(words.goal, mode)

            # Pause it, change a step and add one, and let it go on.
            await desk.select("/plan")
            await page.locator("[data-role=controls] [data-control=pause]").click()
            await desk.details("plan")
            await desk.pane.locator('[data-key^="plan "]').first.click()
            form = page.locator("[data-role=plan-form-text]")
            await expect(form).to_be_visible()
            text = await form.input_value()
            added = "- id: more\n  call: t.write\n  params: {text: more}\n  after: [frist]\n"
            await form.fill(text.replace("text: two", "text: changed") + added)
            await page.locator("[data-role=plan-form-send]").click()
            news = page.locator("[data-role=plan-form-news]")
            await expect(news).to_contain_text("frist")
            in_their_language(words, await news.inner_text())
            await desk.picture("refused")
            await form.fill((text.replace("text: two", "text: changed") + added).replace("frist", "first"))
            await page.locator("[data-role=plan-form-send]").click()
            await expect(form).to_be_hidden()
            await expect(desk.pane.locator("svg .step")).to_have_count(3)
            await check(page, "a plan that was changed")
            await desk.picture("changed")
            if desk.narrow:
                await page.keyboard.press("Escape")
            await page.locator("[data-role=controls] [data-control=pause]").click()
            desk.hold.set()

            # Its end stands in the dialogue of the one who asked, and its answer once.
            await desk.select("/")
            answer = page.locator(".entry.own.reply").last
            await expect(answer).to_contain_text(words.answer if mode != "static" else "more")
            await expect(page.locator(".plan-ended")).to_have_text(words.reached)
            assert sorted(desk.written) == ["changed", "held", "more"]
            await expect(page.locator(".plan-rest")).to_be_hidden()
            await desk.picture("answer")

            # Another one, to which the person adds by a word.
            desk.planner.word = "add"
            await desk.begin(words.goal, mode)
            await desk.say(words.wish)
            await until(lambda: desk.planner.wished)
            desk.hold.set()
            await expect(page.locator(".plan-ended")).to_have_text([words.reached] * 2)
            assert "three" in desk.written
            await desk.picture("wish")

            # And one that they stop.
            desk.planner.word = "stop"
            await desk.begin(words.goal, mode)
            await desk.say(words.stop)
            await expect(page.locator(".entry.own.reply").last).to_contain_text(words.stopped)
            await until(lambda: not desk.world.running)
            await desk.picture("stopped")
            await check(page, "plans in a dialogue")
            said = await page.locator("[data-role=dialogue]").inner_text()
            await desk.select("/plan")
            await desk.details("plan")
            await expect(desk.pane.locator(".plan-outcome")).to_be_visible()
            await desk.picture("plan")
            in_their_language(words, said)
            in_their_language(words, await desk.pane.inner_text())
            in_their_language(words, await page.locator("[data-role=dialogue]").inner_text())

    run(test)
