"""Approvals, policy, secrets, allowed hosts and saved plans, shared by all hosts of a store.

Without a store, this does and imports nothing. With one, a command fetches these files before it starts, and stores its
changes at the end; a server does both continuously.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from iact.core.errors import JournalError

if TYPE_CHECKING:
    from iact.settings import Settings

_LOG: Final = logging.getLogger(__name__)
_EVERY: Final = 2.0
"""Seconds between two synchronizations by a server."""


@contextmanager
def shared_files(settings: Settings) -> Iterator[None]:
    """Synchronize before and after a command."""
    sync = _sync_of(settings)
    if sync is None:
        yield
        return
    _try(sync)
    try:
        yield
    finally:
        _try(sync)


def fetch(settings: Settings) -> None:
    """Synchronize once. Blocks."""
    sync = _sync_of(settings)
    if sync is not None:
        _try(sync)


async def follow(settings: Settings) -> None:
    """Fetch and store changes until this is cancelled. Returns immediately without a store."""
    sync, told = _sync_of(settings), ""
    while sync is not None:
        told = await asyncio.to_thread(_try, sync, told)
        await asyncio.sleep(_EVERY)


def _sync_of(settings: Settings) -> Callable[[], list[str]] | None:
    """The function that synchronizes with the store, or None without a store or before this host has the shared key."""
    if settings.store is None or not (settings.data / "seal.key").is_file():
        return None
    from iact.wiring import shared_of  # imported late: not needed without a store

    shared = shared_of(settings)
    return shared.documents(settings.data).sync if shared is not None else None


def _try(sync: Callable[[], list[str]], told: str = "") -> str:
    """Synchronize. Returns why it failed, or an empty string. A failure is logged unless it equals `told`."""
    try:
        sync()
    except JournalError as error:
        if str(error) != told:
            _LOG.warning("Approvals, policy and secrets can't be shared with other hosts for now: %s", error)
        return str(error)
    return ""
