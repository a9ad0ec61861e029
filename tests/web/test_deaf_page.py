"""A line that swallows bytes: both ends notice it, say so, and go on where they were."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from playwright.async_api import Page, expect

from iact.web.limits import PING_SECONDS, SILENT_SECONDS
from iact.web.server import WebServer
from tests.web.browser import REPORT_VIOLATIONS, SHARED, Wrongs
from tests.web.fake import FakeAround, FakeRuntime, FakeSession
from tests.web.stalling import Direction, StallingProxy

CONNECTION = "[data-role=connection]"
_FASTER = 100
"""How much faster the server's looks at a connection come where a laptop sleeps."""


@dataclass
class Line:
    """A page whose only way to its server is a line that can stall."""

    page: Page
    server: WebServer
    session: FakeSession
    proxy: StallingProxy

    async def left(self) -> None:
        """Wait until the server has no connection of a page."""
        while self.server.watches("s"):  # noqa: ASYNC110 (nothing tells of it)
            await asyncio.sleep(0.05)


@asynccontextmanager
async def line() -> AsyncIterator[Line]:
    session, proxy = FakeSession("s"), StallingProxy()
    session.append("say", body="number 1")
    async with (
        proxy.listening() as origin,
        WebServer(FakeRuntime(session), product=FakeAround(), outside=origin) as server,
    ):
        proxy.port = server.port
        context = await (await SHARED.browser()).new_context(reduced_motion="reduce")
        context.set_default_timeout(120_000)
        await context.add_init_script(REPORT_VIOLATIONS)
        page, wrongs = await context.new_page(), Wrongs(origin)
        page.on("pageerror", wrongs.script_error)
        page.on("websocket", wrongs.socket)
        await context.request.get(f"{origin}/?token={server.token}")
        await page.goto(f"{origin}/#s")
        await expect(page.locator(CONNECTION)).to_have_attribute("data-state", "open")
        await expect(page.locator(".entry")).to_have_count(1)
        # What the page loads once it is shown can't be loaded over a line that stalls.
        await page.wait_for_load_state("networkidle")
        yield Line(page, server, session, proxy)
        assert wrongs.found == [], wrongs.found
        await context.close()


def test_both_looks_come_within_fifteen_seconds() -> None:
    assert SILENT_SECONDS + 2 * PING_SECONDS <= 16
    assert SILENT_SECONDS + PING_SECONDS <= 15


@pytest.mark.parametrize("swallowed", [("up",), ("down",), ("up", "down")], ids="-".join)
def test_a_stalled_line_is_noticed_at_both_ends_and_left(swallowed: tuple[Direction, ...]) -> None:
    async def test() -> None:
        async with line() as there:
            page, session, proxy = there.page, there.session, there.proxy
            proxy.swallowed = set(swallowed)
            session.append("say", body="number 2")
            session.write("/", "half a thought")

            # Nobody claims to be connected any more, and the server keeps nothing for the page.
            await expect(page.locator(CONNECTION)).not_to_have_attribute("data-state", "open")
            await there.left()

            session.append("say", body="number 3")
            proxy.swallowed = set()
            await expect(page.locator(CONNECTION)).to_have_attribute("data-state", "open")
            await expect(page.locator(".entry.draft")).to_contain_text("half a thought")
            texts = await page.locator(".entry:not(.draft) .typed").all_text_contents()
            assert texts == ["number 1", "number 2", "number 3"]

    SHARED.run(test)


@pytest.mark.parametrize("swallowed", [("up",), ("down",), ("up", "down")], ids="-".join)
def test_a_message_into_a_stalled_line_is_told_and_kept_and_said_once(
    swallowed: tuple[Direction, ...],
) -> None:
    """Whether the server has it the page can't know: only the answer may be lost. So it sends it again by its name."""

    async def test() -> None:
        async with line() as there:
            page, session, proxy = there.page, there.session, there.proxy
            field = page.locator("[data-role=text]")
            proxy.swallowed = set(swallowed)
            await field.fill("Are you there?")
            await page.keyboard.press("Enter")
            await expect(page.locator("[data-role=news]")).to_contain_text("before the server answered")
            await expect(field).to_have_value("Are you there?")
            assert len(session.calls) == ("up" not in swallowed)

            proxy.swallowed = set()
            await expect(page.locator(CONNECTION)).to_have_attribute("data-state", "open")
            await expect(field).to_have_value("")
            await expect(page.locator("[data-role=news]")).to_have_text("")
            assert session.calls == [("say", "Are you there?")]
            await expect(page.locator(".entry", has_text="Are you there?")).to_have_count(1)

    SHARED.run(test)


def test_a_laptop_that_sleeps_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser's processes are stopped, as sleep stops them, until the server has given the page up."""
    monkeypatch.setattr("iact.web.server.PING_SECONDS", PING_SECONDS / _FASTER)
    monkeypatch.setattr("iact.web.server.SILENT_SECONDS", SILENT_SECONDS / _FASTER)

    async def test() -> None:
        async with line() as there:
            page, session = there.page, there.session
            session.write("/", "half a thought")
            await expect(page.locator(".entry.draft")).to_contain_text("half a thought")

            processes = await _processes(page)
            assert len(processes) > 2
            try:
                for process in processes:
                    os.kill(process, signal.SIGSTOP)
                session.append("reply", body="a whole one", to="user", status="ok")
                for number in range(2, 40):
                    session.append("say", body=f"number {number}")
                # The page counts its looks and not the time, so it is all the same how long this takes.
                await there.left()
            finally:
                for process in processes:
                    os.kill(process, signal.SIGCONT)

            await expect(page.locator(CONNECTION)).to_have_attribute("data-state", "open")
            await expect(page.locator(".entry .typed", has_text="number 39")).to_have_count(1)
            texts = await page.locator(".entry:not(.draft) .typed").all_text_contents()
            assert texts == [f"number {number}" for number in range(1, 40)]
            await expect(page.locator(".entry", has_text="a whole one")).to_have_count(1)

    SHARED.run(test)


async def _processes(page: Page) -> list[int]:
    """The processes of the browser, which are this test's own."""
    browser = page.context.browser
    assert browser is not None
    session = await browser.new_browser_cdp_session()
    told = await session.send("SystemInfo.getProcessInfo")
    await session.detach()
    return [int(process["id"]) for process in told["processInfo"]]


def test_a_page_that_is_looked_at_again_asks_at_once() -> None:
    async def test() -> None:
        async with line() as there:
            page, proxy = there.page, there.proxy
            before = proxy.opened
            proxy.swallowed = {"up", "down"}
            await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            await expect(page.locator(CONNECTION)).not_to_have_attribute("data-state", "open")
            proxy.swallowed = set()
            await page.evaluate("dispatchEvent(new Event('online'))")
            await expect(page.locator(CONNECTION)).to_have_attribute("data-state", "open")
            assert proxy.opened > before

    SHARED.run(test)


def test_a_page_with_nothing_to_hear_stays_connected() -> None:
    async def test() -> None:
        async with line() as there:
            pings: list[str] = []
            before = there.proxy.opened
            await there.page.reload()
            there.page.on(
                "websocket", lambda socket: socket.on("framesent", lambda text: pings.append(str(text)))
            )
            await there.page.reload()
            await expect(there.page.locator(CONNECTION)).to_have_attribute("data-state", "open")
            while sum('"ping"' in text for text in pings) < 4:
                await there.page.wait_for_timeout(100)
            await expect(there.page.locator(CONNECTION)).to_have_attribute("data-state", "open")
            assert before  # the first load had connections, too

    SHARED.run(test)
