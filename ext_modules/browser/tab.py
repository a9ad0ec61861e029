"""An agent's page: its content, where it navigated, and how to find the element that the agent means.

Playwright's snapshot of a page for models gives every element that can be acted on a name ("[ref=e12]"). An agent
refers to an element by such a name, or by what it sees: a label, or the text of a button or link.
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
"""Seconds after an action in which a page may begin to navigate."""
_ARRIVE: Final = 20_000.0
"""Milliseconds that a page may take to load."""
_ACT: Final = 10_000.0
_FIELDS: Final = "input:not([type=hidden]), textarea, select, [contenteditable=true]"
_REFERENCE: Final = re.compile(r"(f\d+)?e\d+")


class NotFound(Exception):
    """No element on the page has that name; the message says how to name one."""


@dataclass(eq=False)  # without slots: Playwright stores notes on the object whose methods listen
class Tab:
    """One agent's page, in its own context. Moves the agent's state whenever the page changes, whatever the cause."""

    context: BrowserContext
    page: Page
    state: AgentState
    _requested: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the page asks for another one."""
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the page is another one."""

    @classmethod
    async def make(cls, context: BrowserContext, state: AgentState) -> Tab:
        """Open an empty page in `context`."""
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
        """Switch to another page that a link opened."""
        if page is self.page:
            return

        self._listen(page)
        before = self.page
        self.page = page
        with suppress(Error):
            await before.close()

    def _on_request(self, request: Request) -> None:
        with suppress(Error):  # it has no frame yet while a page is being created
            if request.is_navigation_request() and request.frame == self.page.main_frame:
                self._requested.set()

    async def _on_arrival(self, frame: Frame) -> None:
        if frame == self.page.main_frame:
            self._arrived.set()
            with suppress(Error):
                await self.page.wait_for_load_state("domcontentloaded", timeout=_ARRIVE)
                await self.settle()

    async def settle(self) -> None:
        """Move to the state that fits the current page."""
        fields = await self.page.locator(_FIELDS).count()
        name = "form" if fields else "page"
        note = f"the page is now {self.page.url}"[:200]
        if self.state.name != name or self.state.now.note != note:
            self.state.move(name, note=note)

    def expect(self) -> None:
        """Watch for navigation from now on."""
        self._requested.clear()
        self._arrived.clear()

    async def follow(self, *, sure: bool = False) -> None:
        """After an action: wait until the page it led to has loaded, if any. `sure`: the action does lead to a page."""
        patience = _ARRIVE / 1000 if sure else _GRACE
        with suppress(TimeoutError):
            await asyncio.wait_for(self._requested.wait(), patience)
            await asyncio.wait_for(self._arrived.wait(), _ARRIVE / 1000)

        with suppress(Late):
            await self.page.wait_for_load_state("load", timeout=_ARRIVE)
        await self.settle()

    async def find(self, target: str) -> Locator:
        """Find the element that `target` names; without a name, the element with the focus.

        Raises:
            NotFound: there is none.
        """
        for way in self._ways_to(target):
            with suppress(Error):
                if await way.count():
                    return way.first
        raise NotFound(
            f"Nothing on the page is called {target[:100]!r}; read the page, and use a reference such as e12 or a label."
        )

    def _ways_to(self, target: str) -> list[Locator]:
        """What a name can mean: exact names first, and what a person would act on before mere text."""
        page = self.page
        if not target:
            return [page.locator(":focus"), page.locator("form"), page.locator("body")]
        if _REFERENCE.fullmatch(target):
            return [page.locator(f"aria-ref={target}")]
        return [
            page.get_by_label(target, exact=True),
            page.get_by_role("button", name=target, exact=True),
            page.get_by_role("link", name=target, exact=True),
            page.get_by_placeholder(target, exact=True),
            page.get_by_label(target),
            page.get_by_role("button", name=target),
            page.get_by_role("link", name=target),
            page.get_by_text(target),
        ]

    async def close(self) -> None:
        """Close the page with its context."""
        with suppress(Error):
            await self.context.close()
