"""Stopping, queueing and pausing in a real browser, on real sessions with a scripted model and functions that hold."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

from playwright.async_api import Locator, Page, expect

from iact.core.session.session import Session
from tests.core.session.fakes import Asked, ScriptedModel, World, runtime
from tests.core.session.test_control import until
from tests.web.browser import browsing
from tests.web.test_page import run


class Room:
    """A browser beside a session whose model writes when `go` is set, and whose function "held" ends when `hold` is."""

    def __init__(self, page: Page, session: Session, model: ScriptedModel, world: World) -> None:
        self.page = page
        self.session = session
        self.model = model
        self.world = world

    @property
    def field(self) -> Locator:
        return self.page.locator("[data-role=text]")

    async def say(self, text: str) -> None:
        await self.field.fill(text)
        await self.field.press("Enter")
        await expect(self.field).to_have_value("")

    async def dialogue(self) -> list[str]:
        """What was said and answered, in the order in which the page shows it."""
        entries = self.page.locator(
            ".dialogue .entry.incoming .entry-body, .dialogue .entry.reply .entry-body"
        )
        return [re.sub(r"\s+", " ", text).strip() for text in await entries.all_inner_texts()]

    async def shows(self, *texts: str) -> None:
        await until_async(lambda: self.dialogue(), lambda shown: shown == list(texts))


async def until_async(look: Callable[[], Awaitable[list[str]]], holds: Callable[[list[str]], bool]) -> None:
    shown: list[str] = []
    try:
        async with asyncio.timeout(300):
            while not holds(shown := await look()):  # noqa: ASYNC110 - the page is outside of this loop
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"the page shows {shown}") from None


def in_a_room(
    data: Path, script: Callable[[Asked], str], test: Callable[[Room], Awaitable[None]], *, go: asyncio.Event | None = None,
    hold: asyncio.Event | None = None,
) -> None:  # fmt: skip
    async def main() -> None:
        world = World(hold={"held": hold} if hold is not None else {})
        model = ScriptedModel(script, holds={"/": go} if go is not None else {})
        async with runtime(data, script, model=model, world=world) as opened:
            session = await opened.open()
            async with browsing(opened) as browser:
                page = await browser.page(session.id)
                await test(Room(page, session, model, world))

    run(main)


def answers(asked: Asked) -> str:
    said = [word for word in ("one", "two", "three", "four") if f"```\n{word}\n```" in asked.newest]
    return f"Answer to {' and '.join(said)}."


def test_what_is_said_meanwhile_is_a_bubble_until_its_turn_comes(tmp_path: Path) -> None:
    """Send "one", "twp", "three" and "four"; change one, take one back; the answers stand below their questions."""
    go = asyncio.Event()

    async def test(room: Room) -> None:
        page = room.page
        await room.say("one")
        await until(lambda: room.model.asked)
        for text in ("twp", "three"):
            await room.say(text)
        bubbles = page.locator(".queued")
        await expect(bubbles).to_have_count(2)
        await expect(bubbles.first).to_contain_text("Waits until the answer is finished")
        await room.shows("one")
        # Under what is being written.
        assert await bubbles.first.evaluate(
            "one => document.querySelector('.drafts').getBoundingClientRect().bottom <= one.getBoundingClientRect().top"
        )

        await bubbles.first.get_by_role("button", name="Edit").click()
        await bubbles.first.get_by_label("Message").fill("two")
        await bubbles.first.get_by_role("button", name="Save").click()
        await expect(bubbles.first.locator(".queued-text")).to_have_text("two")
        await bubbles.nth(1).get_by_role("button", name="Remove").click()
        await expect(bubbles).to_have_count(1)
        await page.reload()
        await expect(bubbles.locator(".queued-text")).to_have_text("two")
        go.set()
        await room.shows("one", "Answer to one.", "two", "Answer to two.")
        await expect(bubbles).to_have_count(0)
        await page.reload()
        await room.shows("one", "Answer to one.", "two", "Answer to two.")

        # Sent now, what is being written is stopped, and the message read.
        go.clear()
        asked = len(room.model.asked)
        await room.say("three")
        await until(lambda: len(room.model.asked) > asked)
        await room.say("four")
        await bubbles.get_by_role("button", name="Send now").click()
        await until(lambda: len(room.model.asked) > asked + 1)
        go.set()
        await expect(page.locator(".entry.reply").last).to_contain_text("Answer to three and four.")
        assert (await room.dialogue())[-3:] == ["three", "four", "Answer to three and four."]

    in_a_room(tmp_path, answers, test, go=go)


def test_one_press_stops_and_what_waited_is_read_next(tmp_path: Path) -> None:
    """The square beside the field, and Escape twice; queued messages stay."""
    go = asyncio.Event()

    async def test(room: Room) -> None:
        page = room.page
        await expect(page.locator("[data-role=stop]")).to_be_hidden()
        await room.say("one")
        await until(lambda: room.model.asked)
        await expect(page.locator("[data-role=stop]")).to_be_visible()
        await expect(page.locator("[data-role=send]")).to_be_hidden()
        await room.field.fill("two")
        await expect(page.locator("[data-role=send]")).to_be_visible()
        await room.field.press("Enter")
        await expect(page.locator(".queued")).to_have_count(1)
        await page.locator("[data-role=stop]").click()
        await until(lambda: len(room.model.asked) == 2)
        assert "```\ntwo\n```" in room.model.asked[1].newest
        assert "Your work was cancelled here by the user." in room.model.asked[1].newest
        await expect(page.locator(".queued")).to_have_count(0)
        await room.field.press("Escape")
        await room.field.press("Escape")
        await expect(page.locator("[data-role=agent-state]")).to_have_text("stopped")
        await expect(page.locator("[data-role=stop]")).to_be_hidden()
        assert (await page.locator(".dialogue").inner_text()).count("topped") == 2, "once for each stop"
        await expect(page.locator("[data-role=send]")).to_be_visible()

    in_a_room(tmp_path, answers, test, go=go)


LEAF = {
    "/": ["```CALL a\nTask.\n```", "Root done."],
    "/a": ["```WRITE\nheld\n```\n```WRITE\nafter\n```", "I stopped.", "Done."],
}


def test_a_running_tool_is_interrupted_paused_and_stopped_and_the_page_says_before_what_ends(
    tmp_path: Path,
) -> None:
    hold = asyncio.Event()

    async def test(room: Room) -> None:
        page = room.page
        await room.say("Go")
        await until(lambda: room.world.done)
        # A pause below is visible above; what runs is named, and can be ended.
        await page.locator('[data-path="/a"]').click()
        await page.locator("[data-role=controls]").get_by_role("button", name="Pause").click()
        held = page.locator(".pause-line")
        await expect(held).to_contain_text("Still running until finished: t.write (")
        await page.locator('[data-path="/"] > .node').click()
        await expect(held).to_contain_text("/a is paused.")
        await expect(page.locator('[data-path="/"] > .node .node-doing')).to_contain_text("/a is paused")
        await page.locator('[data-path="/a"]').click()
        await held.get_by_role("button", name="Stop it now").click()
        await expect(page.locator(".entry .card.result")).to_have_count(1)
        await expect(page.locator(".entry .card.result").first).to_contain_text("held")
        await expect(held).to_be_hidden()
        assert [one.state for one in room.session.tree()] == [
            "paused" if one.path == "/a" else "waiting" for one in room.session.tree()
        ]
        await page.locator("[data-role=controls]").get_by_role("button", name="Resume").click()
        await expect(page.locator(".entry.own.reply")).to_contain_text("I stopped.")
        assert [text for _, _, text in room.world.done] == ["held"]

    in_a_room(tmp_path, lambda asked: LEAF[asked.path][asked.turn], test, hold=hold)


def test_stop_and_read_now_offers_to_end_the_tool_and_keeps_what_it_printed(tmp_path: Path) -> None:
    hold = asyncio.Event()

    async def test(room: Room) -> None:
        page = room.page
        await room.say("Go")
        await until(lambda: room.world.done)
        await page.locator('[data-path="/a"]').click()
        await page.get_by_role("radio", name="Interrupt").check()
        offer = page.locator("[data-role=ends-calls]")
        await expect(offer).to_contain_text("also stop t.write (")
        await expect(offer.get_by_role("checkbox")).to_be_checked()
        await room.say("Stop now.")
        await expect(page.locator(".entry.own.reply")).to_contain_text("I stopped.")
        await expect(page.locator(".entry .card.result").first).to_contain_text("held")
        heard = next(one.newest for one in room.model.asked if (one.path, one.turn) == ("/a", 1))
        assert "It had printed this" in heard
        assert "Stop now." in heard
        assert not hold.is_set()

    in_a_room(tmp_path, lambda asked: LEAF[asked.path][asked.turn], test, hold=hold)


def test_a_text_that_is_stopped_stays_as_it_was_read_and_one_line_says_so(tmp_path: Path) -> None:
    go = asyncio.Event()

    async def test(room: Room) -> None:
        page = room.page
        await room.say("one")
        await until(lambda: room.model.asked)
        written = page.locator(".entry.draft .entry-body")
        await expect(written).to_have_text(re.compile("Cities.*Some", re.S))
        await page.locator("[data-role=stop]").click()
        await expect(page.locator(".entry.draft")).to_have_count(0)
        kept = page.locator(".entry[data-kind=discard] .entry-body")
        await expect(kept.locator("h2")).to_have_text("Cities")
        await expect(kept).to_contain_text("Some")
        await expect(page.locator(".entry[data-kind=reply] .entry-body")).to_have_text("Stopped.")
        assert "show the text" not in await page.locator(".dialogue").inner_text()

    in_a_room(tmp_path, lambda asked: "## Cities\n\nSome **bold** words.", test, go=go)
