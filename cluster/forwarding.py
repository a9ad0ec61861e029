"""Carries out a gateway client's requests about sessions that it does not watch, on the hosts that have them.

Renaming, pinning, deleting or archiving a session is done by the host that has it open, or is assigned it. Deleted
sessions stay on the host where they were deleted, so all hosts are asked about those.
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
"""The types of these messages."""

_CONNECTING: Final = 3.0
_SECONDS: Final = 60.0
"""How long a host may take to answer."""
_TOGETHER: Final = 8
"""How many messages of one client are sent to hosts at the same time."""

_log_http = logging.getLogger("iact.cluster.http")

Frame = Mapping[str, JSON]

Headers = Callable[[HostLease, str], Mapping[str, str]]
"""The headers with which a client's request is sent to a path of a host, so that the host knows who the client is."""


class Forwarder:
    """Asks hosts on behalf of one client. `who`: the client; `headers`: what a host expects for one of its paths;
    `tls`: encrypts the connections."""

    def __init__(
        self, placement: Placement, who: Principal, headers: Headers, tls: SSLContext | None = None
    ) -> None:
        self._tls = tls
        self._placement = placement
        self._who = who
        self._headers = headers
        self._room = asyncio.Semaphore(_TOGETHER)

    async def run(self, said: Frame) -> Frame:
        """Answer a message of one of these types."""
        kind, session = str(said.get("type")), said.get("session")
        right = COMMANDS[kind].right
        if not may(self._who, right, "owner"):  # the host would only refuse it after opening the session
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
        """The answers about one of several sessions: from these hosts, or from the one that has it or is assigned
        it."""
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
        """A host's answer to a message."""
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
    """One answer about several sessions: done if any host has done it, otherwise refused with the first host's
    reason."""
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
