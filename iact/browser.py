"""Opens the page in the user's browser without revealing the token to other users of the machine.

A program's arguments can be read by every user of the machine (`/proc/PID/cmdline`), so the address with its token must
not be an argument. Instead, the browser is given the path of a small file, readable only by its owner, that redirects
to the address and is deleted as soon as the browser has signed in.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from iact.web.markup import html

_PATIENCE: Final = 60.0
"""Seconds in which a browser is expected to have read the file."""


async def open_page(data: Path, url: str, signed_in: Callable[[], Awaitable[None]]) -> None:
    """Open `url`. Returns when `signed_in` does, or when the browser took too long; the file is deleted then."""
    with _leading_to(data, url) as file:
        # Some browsers stay in the foreground until they are closed; nothing here waits for that.
        threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
        try:
            async with asyncio.timeout(_PATIENCE):
                await signed_in()
        except TimeoutError:
            pass


@contextmanager
def _leading_to(data: Path, url: str) -> Iterator[Path]:
    """Create a file in `data` that redirects a browser to `url`."""
    for left in data.glob("open-*.html"):  # left by a server that was killed
        left.unlink(missing_ok=True)
    file = (data / f"open-{secrets.token_hex(8)}.html").resolve()
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(
                html(
                    '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
                    '<meta http-equiv="refresh" content="0;url={}"><title>iact</title>\n',
                    url,
                )
            )
        yield file
    finally:
        file.unlink(missing_ok=True)
