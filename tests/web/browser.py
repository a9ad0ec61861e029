"""Debian's Chromium for tests, and what a page of ours must never do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Literal

from playwright import sync_api
from playwright.async_api import Browser, Page, Playwright, WebSocket, async_playwright, expect

from iact.setup import browser
from iact.web.ports import Product, Runtime
from iact.web.server import WebServer
from tests.web.fitting import Traffic

PATIENCE: Final = 120_000
"""Milliseconds that anything in a page may take: these tests run on small machines that do much else."""

expect.set_options(timeout=PATIENCE)
sync_api.expect.set_options(timeout=PATIENCE)

ARGUMENTS: Final = ("--no-sandbox",)
REPORT_VIOLATIONS: Final = (
    "addEventListener('securitypolicyviolation',"
    " event => console.error('POLICY ' + event.violatedDirective + ' ' + event.blockedURI))"
)
"""A script for every page: makes violations of the content policy console errors."""


def chromium() -> str:
    """The browser's path. Its absence is an error, not a reason to skip: `make test` installs it."""
    found = browser.find()
    assert found, "There is no Chromium; install it with: apt-get install chromium"
    return found


@dataclass
class Wrongs:
    """What went wrong in pages that may talk to `origin` only; handlers for Playwright's page events."""

    origin: str
    found: list[str] = field(default_factory=list)

    def script_error(self, error: object) -> None:
        self.found.append(f"script error: {error}")

    def console(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.found.append(f"console: {text}")

    def request(self, url: str) -> None:
        # What a page made itself, such as a picture from a variable's bytes, has its own origin behind "blob:".
        if not url.removeprefix("blob:").startswith(f"{self.origin}/"):
            self.found.append(f"request to {url}")

    def socket(self, socket: WebSocket) -> None:
        """Whatever a page is told must fit the types that its scripts are checked against."""
        traffic = Traffic()
        socket.on("framesent", traffic.asked)

        def told(frame: str | bytes) -> None:
            wrong = traffic.told(frame)
            if wrong:
                self.found.append(f"the server sent what does not fit iact.web.wire: {wrong}")

        socket.on("framereceived", told)

    def forgive(self, *parts: str) -> None:
        """Forget what a test brought about itself."""
        self.found[:] = [line for line in self.found if not any(part in line for part in parts)]

    def forgive_lost_line(self) -> None:
        """Forget what the browser reports of a server that is gone: each connection that came to nothing."""
        self.forgive("WebSocket connection to", "net::ERR_")


@dataclass
class Browsing:
    """A server, a browser, and what went wrong in any of its pages."""

    server: WebServer
    browser: Browser
    wrongs: Wrongs

    async def page(
        self,
        session: str = "",
        *,
        width: int = 1280,
        height: int = 800,
        scheme: Literal["light", "dark"] = "light",
        locale: str = "en-US",
    ) -> Page:
        """A signed-in page that shows `session` (`replay:ID` to look at it only) and is connected."""
        context = await self.browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            reduced_motion="reduce",
            locale=locale,
        )
        context.set_default_timeout(PATIENCE)
        await context.add_init_script(REPORT_VIOLATIONS)
        page = await context.new_page()
        page.on("pageerror", self.wrongs.script_error)
        page.on("console", lambda message: self.wrongs.console(message.type, message.text))
        page.on("websocket", self.wrongs.socket)
        page.on("request", lambda request: self.wrongs.request(request.url))
        # Signed in beforehand, so that the page is loaded once and a later event can't belong to an earlier one.
        await context.request.get(self.server.url)
        await page.goto(f"http://127.0.0.1:{self.server.port}/#{session}")
        await expect(page.locator("[data-role=connection]")).to_have_attribute("data-state", "open")
        return page


class Shared:
    """One event loop, and on it one browser, for all tests of a process: to start them is what takes time.

    Each page has a context of its own, so tests share no cookie, cache or storage.
    """

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._driver: Playwright | None = None
        self._browser: Browser | None = None
        self._own: set[asyncio.Task[object]] = set()

    def run(self, test: Callable[[], Awaitable[None]]) -> None:
        """Run `test` on the loop; what it leaves running is cancelled, as `asyncio.run` would."""

        async def alone() -> None:
            try:
                async with asyncio.timeout(600):
                    await test()
            finally:
                await self._clear()

        if self._runner is None:
            self._runner = asyncio.Runner()
        self._runner.run(alone())

    async def browser(self) -> Browser:
        """The browser, started where there is none, or not any more."""
        assert self._runner is not None, "what opens a page runs in SHARED.run"
        assert asyncio.get_running_loop() is self._runner.get_loop(), "what opens a page runs in SHARED.run"
        if self._browser is None or not self._browser.is_connected():
            before = asyncio.all_tasks()
            if self._driver is None:
                self._driver = await async_playwright().start()
            self._browser = await self._driver.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
            self._own |= asyncio.all_tasks() - before
        return self._browser

    async def _clear(self) -> None:
        """Close every page, and cancel what the test left."""
        for context in self._browser.contexts if self._browser is not None else ():
            await context.close()
        left = asyncio.all_tasks() - self._own - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def close(self) -> None:
        """End the browser and the loop."""
        if self._runner is None:
            return
        if self._browser is not None:
            self._runner.run(self._browser.close())
        if self._driver is not None:
            self._runner.run(self._driver.stop())
        self._runner.close()
        self._runner = self._driver = self._browser = None


SHARED: Final = Shared()


@asynccontextmanager
async def browsing(runtime: Runtime, product: Product | None = None) -> AsyncIterator[Browsing]:
    """A server over `runtime` and the browser (inside `SHARED.run`); at the end nothing may have gone wrong in any page."""
    async with WebServer(runtime, product=product) as server:
        opened = Browsing(server, await SHARED.browser(), Wrongs(f"http://127.0.0.1:{server.port}"))
        try:
            yield opened
            assert opened.wrongs.found == [], opened.wrongs.found
        finally:
            for context in opened.browser.contexts:
                await context.close()
