"""What a client of a gateway asks about sessions that it does not watch, done at the hosts that have them.

To rename, pin, delete or archive a session is for the host that has it open, or is given it. Deleted sessions lie where
they were deleted, so all hosts are asked for those.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from ssl import SSLContext
from typing import Final

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from iact.accounts.rights import Principal, may, refusal
from iact.cluster.control import all_of
from iact.cluster.leases import HostLease
from iact.cluster.placement import Placement
from iact.cluster.user_sessions import name_of
from iact.core.errors import IactError
from iact.core.ports import JSON
from iact.web.commands import COMMANDS
from iact.web.safety import SOCKET_PATH

_OF_ONE: Final = ("session.rename", "session.pin", "session.archive")
_OF_SEVERAL: Final = ("session.delete", "session.restore", "session.purge")
_OF_ALL: Final = ("session.deleted",)
FORWARDED: Final = (*_OF_ONE, *_OF_SEVERAL, *_OF_ALL)
"""The types of such messages."""

_CONNECTING: Final = 3.0
_SECONDS: Final = 60.0
"""For which a host may take to do it."""
_TOGETHER: Final = 8
"""Messages of one client that are on their way to hosts at the same time."""

_log_http = logging.getLogger("iact.cluster.http")

Frame = Mapping[str, JSON]

Headers = Callable[[HostLease, str], Mapping[str, str]]
"""With which a host is asked for a path on behalf of a client, so that it knows who that is."""


class Forwarder:
    """Asks hosts on behalf of one client. `who`: that one; `headers`: what a host wants to be shown, for a path of it; `tls`:
    encrypted."""

    def __init__(
        self, placement: Placement, who: Principal, headers: Headers, tls: SSLContext | None = None
    ) -> None:
        self._tls = tls
        self._placement = placement
        self._who = who
        self._headers = headers
        self._room = asyncio.Semaphore(_TOGETHER)

    async def run(self, said: Frame) -> Frame:
        """The answer to a message of one of these types."""
        kind, session = str(said.get("type")), said.get("session")
        right = COMMANDS[kind].right
        if not may(self._who, right, "owner"):  # the host says so, too, but opens the session for it
            return {**_error(said, refusal(right)), "code": "forbidden"}
        try:
            if kind in _OF_ALL:
                answers = await all_of(self._at(one, said) for one in await self._placement.hosts())
                return {
                    "type": "ok",
                    "id": said.get("id"),
                    "list": [row for one in answers for row in _list(one, "list")],
                }
            if kind in _OF_SEVERAL:
                hosts = None if kind == "session.delete" else await self._placement.hosts()
                each = (self._on(str(one), said, hosts) for one in _list(said, "sessions"))
                return _together(said, await all_of(each))
            return await self._at_its_host(session if isinstance(session, str) else "", said)
        except IactError as error:
            return _error(said, str(error))

    async def _on(
        self, session: str, said: Frame, hosts: Sequence[HostLease] | None
    ) -> tuple[str, Sequence[Frame]]:
        """What is answered about one session of several: by these hosts, or by the one that has it or is given it."""
        message: Frame = {**said, **dict[str, JSON](sessions=[session])}
        if hosts is None:
            return session, [await self._at_its_host(session, message)]
        return session, await all_of(self._at(one, message) for one in hosts)

    async def _at_its_host(self, session: str, said: Frame) -> Frame:
        try:
            name = name_of(self._who.user, session)
            return await self._at((await self._placement.place(name)).lease, said)
        except IactError as error:
            return _error(said, str(error))

    async def _at(self, lease: HostLease, said: Frame) -> Frame:
        """What a host answers to a message."""
        try:
            async with (
                self._room,
                asyncio.timeout(_SECONDS),
                connect(
                    f"{'wss' if self._tls else 'ws'}://{lease.page}{SOCKET_PATH}", ssl=self._tls, additional_headers=self._headers(lease, SOCKET_PATH),
                    open_timeout=_CONNECTING, compression=None, proxy=None, max_size=None, logger=_log_http,
                ) as host,
            ):  # fmt: skip
                await host.send(json.dumps({**said, "id": "forwarded"}))
                while True:
                    answer = json.loads(await host.recv())
                    if answer.get("id") == "forwarded":
                        return {**answer, "id": said.get("id")}
        except (OSError, TimeoutError, WebSocketException) as error:
            why = str(error).rstrip(".") or type(error).__name__
            return _error(said, f"The host {lease.host} does not answer: {why}.")


def _list(frame: Frame, name: str) -> Sequence[JSON]:
    found = frame.get(name)
    return found if isinstance(found, Sequence) and not isinstance(found, str) else ()


def _error(said: Frame, sentence: str) -> Frame:
    return {"type": "error", "id": said.get("id"), "code": "failed", "message": sentence}


def _together(said: Frame, answers: Sequence[tuple[str, Sequence[Frame]]]) -> Frame:
    """One answer about several sessions: done if one host has done it, otherwise refused as the first one says."""
    done, refused, notes = list[JSON](), dict[str, JSON](), dict[str, None]()
    for session, frames in answers:
        good = [one for one in frames if one.get("type") == "ok"]
        if good:
            done.append(session)
            notes |= {str(one["note"]): None for one in good if one.get("note")}
        else:
            refused[session] = next((one.get("message") for one in frames), "No host is running.")
    if not done and len(refused) == 1:
        return _error(said, str(next(iter(refused.values()))))
    return {"type": "ok", "id": said.get("id"), "sessions": done, "refused": refused, "note": " ".join(notes)}
