"""An agent's page: what is on it, where it went, and how to find what the agent means.

Playwright's snapshot of a page for models names every element that can be acted on ("[ref=e12]"). An agent points
with such a name, or with what it sees: a label, a button's or a link's text.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from playwright.async_api import BrowserContext, Error, Frame, Locator, Page, Request
from playwright.async_api import TimeoutError as Late

from ext_modules.sdk.call import AgentState

_GRACE: Final = 0.5
"""Seconds after an action in which a page may begin to go elsewhere."""
_ARRIVE: Final = 20_000.0
"""Milliseconds that a page may take to load."""
_ACT: Final = 10_000.0
_FIELDS: Final = "input:not([type=hidden]), textarea, select, [contenteditable=true]"
_REFERENCE: Final = re.compile(r"(f\d+)?e\d+")


class NotFound(Exception):
    """Nothing on the page is what was named; the message says how to name it."""


@dataclass(eq=False)  # without slots: Playwright leaves notes on the object whose methods listen
class Tab:
    """One agent's page, in a context of its own. Moves the agent's state when the page changes, however it does."""

    context: BrowserContext
    page: Page
    state: AgentState
    _requested: asyncio.Event = field(default_factory=asyncio.Event)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    async def make(cls, context: BrowserContext, state: AgentState) -> Tab:
        """An empty page in `context`."""
        tab = cls(context, await context.new_page(), state)
        context.on("page", tab._follow)
        tab._listen(tab.page)
        return tab

    def _listen(self, page: Page) -> None:
        page.set_default_timeout(_ACT)
        page.on("request", self._on_request)
        page.on("framenavigated", self._on_arrival)
        page.on("crash", lambda _: self.state.move("closed", note="the page crashed"))

    async def _follow(self, page: Page) -> None:
        """A link opened another page: that is the page now."""
        if page is self.page:
            return
        self._listen(page)
        before, self.page = self.page, page
        with suppress(Error):
            await before.close()

    def _on_request(self, request: Request) -> None:
        with suppress(Error):  # it has no frame yet when a page is being made
            if request.is_navigation_request() and request.frame == self.page.main_frame:
                self._requested.set()

    async def _on_arrival(self, frame: Frame) -> None:
        if frame == self.page.main_frame:
            self._arrived.set()
            with suppress(Error):
                await self.page.wait_for_load_state("domcontentloaded", timeout=_ARRIVE)
                await self.settle()

    async def settle(self) -> None:
        """Say which state fits the page as it is now."""
        fields = await self.page.locator(_FIELDS).count()
        name, note = ("form" if fields else "page"), f"the page is now {self.page.url}"[:200]
        if (self.state.name, self.state.now.note) != (name, note):
            self.state.move(name, note=note)

    def expect(self) -> None:
        """Take note from now on of whether the page goes elsewhere."""
        self._requested.clear()
        self._arrived.clear()

    async def follow(self, *, sure: bool = False) -> None:
        """After an action: wait until the page that it led to is there, if it led to one, as it does if that is `sure`."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._requested.wait(), _ARRIVE / 1000 if sure else _GRACE)
            await asyncio.wait_for(self._arrived.wait(), _ARRIVE / 1000)
        with suppress(Late):
            await self.page.wait_for_load_state("load", timeout=_ARRIVE)
        await self.settle()

    async def find(self, target: str) -> Locator:
        """The element that `target` names; without a name the one that has the focus.

        Raises:
            NotFound: there is none.
        """
        page = self.page
        if not target:
            ways = [page.locator(":focus"), page.locator("form"), page.locator("body")]
        elif _REFERENCE.fullmatch(target):
            ways = [page.locator(f"aria-ref={target}")]
        else:
            ways = [
                page.get_by_label(target, exact=True),
                page.get_by_role("button", name=target, exact=True),
                page.get_by_role("link", name=target, exact=True),
                page.get_by_placeholder(target, exact=True),
                page.get_by_label(target),
                page.get_by_role("button", name=target),
                page.get_by_role("link", name=target),
                page.get_by_text(target),
            ]
        for way in ways:
            with suppress(Error):
                if await way.count():
                    return way.first
        raise NotFound(
            f"Nothing on the page is called {target[:100]!r}; read the page, and use a reference such as e12 or a label."
        )

    async def close(self) -> None:
        """Close it with all that belongs to it."""
        with suppress(Error):
            await self.context.close()
