"""Approvals, policy, secrets, allowed hosts and kept plans, as all hosts of a shared store have them.

Without a store, this is nothing, and imports nothing. With one, a command fetches them before it begins and stores what
it changed at its end; a server does so all the time.
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
"""Seconds between two looks of a server."""


@contextmanager
def shared_files(settings: Settings) -> Iterator[None]:
    """Around a command."""
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
    """Once. Blocks."""
    sync = _sync_of(settings)
    if sync is not None:
        _try(sync)


async def follow(settings: Settings) -> None:
    """Fetch and store changes until this is cancelled; ends at once where there is no store."""
    sync, told = _sync_of(settings), ""
    while sync is not None:
        told = await asyncio.to_thread(_try, sync, told)
        await asyncio.sleep(_EVERY)


def _sync_of(settings: Settings) -> Callable[[], list[str]] | None:
    """Compares the data directory with the store; None without a store, or before this host has the key of the others."""
    if settings.store is None or not (settings.data / "seal.key").is_file():
        return None
    from iact.wiring import shared_of  # only now: without a store nothing of it is needed

    shared = shared_of(settings)
    return shared.documents(settings.data).sync if shared is not None else None


def _try(sync: Callable[[], list[str]], told: str = "") -> str:
    """Why it was not possible, which is logged unless it was `told`; empty if it was."""
    try:
        sync()
    except JournalError as error:
        if str(error) != told:
            _LOG.warning("Approvals, policy and secrets are those of this host alone for now: %s", error)
        return str(error)
    return ""
