"""Lists that a server returns page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import Final, Protocol, TypeVar

_MOST: Final = 100
"""The most pages of one list, since a server may never end it."""


class _Page(Protocol):
    @property
    def next_cursor(self) -> str | None: ...


PageT = TypeVar("PageT", bound=_Page)
PageT_co = TypeVar("PageT_co", bound=_Page, covariant=True)


class _Listing(Protocol[PageT_co]):
    def __call__(self, *, cursor: str | None) -> Awaitable[PageT_co]: ...


async def pages(listing: _Listing[PageT]) -> AsyncIterator[PageT]:
    """Yield the pages of a list, up to a limit. `listing`: returns the page at a cursor."""
    cursor: str | None = None
    for _ in range(_MOST):
        page = await listing(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return
