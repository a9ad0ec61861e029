"""What a user shares with the agent at an app: the text that the app offers, once they have seen it and said yes.

No agent reads what is typed into an app. An app that has something for its agent answers `GET /share` with it, as text.
Our page shows it to the user, as it is, and asks. The yes is for what was shown: it names its digest, and the app is
asked once more. Only our page can say it, since it also sends back a value that stood on it alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs

from iact.core.characters import HIDDEN, ODD
from iact.core.errors import Changed, IactError
from iact.sandbox import app_page
from iact.sandbox.socket_folder import CheckedSocket

Take = Callable[[str, str], Awaitable[None]]
"""Takes a text that was shared at the app with this name. Raises IactError if nobody can have it."""

_LONGEST: Final = 256 * 1024
"""The longest text that an app can share, in bytes."""
_WITHIN: Final = 20.0
_MOST: Final = 64
"""The most questions that are remembered."""

_NOTHING: Final = "This app has nothing to share."
_DONE: Final = "It is shared: from your next message on, the agent has it as the variable $from_app."


@dataclass(frozen=True, slots=True)
class _Question:
    """What a user was shown, and the value that only its page has."""

    app: str
    digest: str


class AppShares:
    """Asks users about what apps offer, and passes on what they share."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._asked: dict[str, _Question] = {}

    async def ask(self, name: str, socket: CheckedSocket) -> bytes:
        """Our page with what the app offers, and the question."""
        text = await _offered(socket)
        if not text:
            return app_page.told(_NOTHING)

        once = secrets.token_urlsafe(32)
        self._asked[once] = _Question(name, _digest(text))
        while len(self._asked) > _MOST:
            del self._asked[next(iter(self._asked))]
        return app_page.question(text, _digest(text), once)

    async def agree(self, name: str, socket: CheckedSocket, form: bytes) -> bytes:
        """Our page after a yes. `form`: the fields that it sent back."""
        fields = parse_qs(form.decode("ascii", "replace"))
        asked = self._asked.pop(fields.get("once", [""])[0], None)
        if asked is None or asked.app != name:
            return app_page.told(str(Changed()))

        text = await _offered(socket)
        if fields.get("digest") != [asked.digest] or _digest(text) != asked.digest:
            return app_page.told(str(Changed()))
        try:
            await self._take(name, text)
        except IactError as error:
            return app_page.told(str(error))
        return app_page.told(_DONE)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def _offered(socket: CheckedSocket) -> str:
    """The text that an app offers; empty if it offers none."""
    path = socket.target.removeprefix("unix://")
    try:
        async with asyncio.timeout(_WITHIN):
            reader, writer = await asyncio.open_unix_connection(path, limit=_LONGEST)
            try:
                request = f"GET {app_page.ASKED} HTTP/1.0\r\nHost: app\r\nConnection: close\r\n\r\n"
                writer.write(request.encode())
                head = await reader.readuntil(b"\r\n\r\n")
                content = await reader.read(_LONGEST + 1)
                while len(content) <= _LONGEST and (more := await reader.read(_LONGEST + 1)):
                    content += more
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return ""

    status, _, headers = head.partition(b"\r\n")
    is_text = any(
        line.lower().startswith(b"content-type:")
        and line.partition(b":")[2].strip().lower().startswith(b"text/plain")
        for line in headers.split(b"\r\n")
    )
    if status.split(b" ")[1:2] != [b"200"] or not is_text or len(content) > _LONGEST:
        return ""
    return _seen(content.decode("utf-8", "replace")).strip()


def _seen(text: str) -> str:
    """A text as a person sees it, since what is shared is what was shown.

    What is hidden is dropped, and what may only look like a space is one: an app could write in either of them.
    """
    return ODD.sub(" ", HIDDEN.sub("", text))
