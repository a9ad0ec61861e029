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

    async def run(self, message: Frame) -> Frame:
        """Answer a message of one of these types."""
        kind = str(message.get("type"))
        right = COMMANDS[kind].right
        if not may(self._who, right, "owner"):  # the host would only refuse it after opening the session
            return {**_error(message, refusal(right)), "code": "forbidden"}

        try:
            if kind in _OF_ALL:
                return await self._at_all(message)
            if kind in _OF_SEVERAL:
                return await self._on_several(kind, message)

            session = message.get("session")
            return await self._at_its_host(session if isinstance(session, str) else "", message)
        except IactError as error:
            return _error(message, str(error))

    async def _at_all(self, message: Frame) -> Frame:
        """The lists of all hosts as one."""
        hosts = await self._placement.hosts()
        answers = await all_of(self._at(lease, message) for lease in hosts)
        rows = [row for answer in answers for row in _list(answer, "list")]
        return {"type": "ok", "id": message.get("id"), "list": rows}

    async def _on_several(self, kind: str, message: Frame) -> Frame:
        """What came of it for each of several sessions."""
        # Where a deleted session is, nobody notes: each host is asked. One that is not deleted has its host.
        hosts = None if kind == "session.delete" else await self._placement.hosts()
        sessions = [str(session) for session in _list(message, "sessions")]
        return _together(message, await all_of(self._on(session, message, hosts) for session in sessions))

    async def _on(
        self, session: str, message: Frame, hosts: Sequence[HostLease] | None
    ) -> tuple[str, Sequence[Frame]]:
        """The answers about one of several sessions: from these hosts, or from the one that has it or is assigned
        it."""
        about_one: Frame = {**message, **dict[str, JSON](sessions=[session])}
        if hosts is None:
            return session, [await self._at_its_host(session, about_one)]
        return session, await all_of(self._at(lease, about_one) for lease in hosts)

    async def _at_its_host(self, session: str, message: Frame) -> Frame:
        try:
            name = name_of(self._who.user, session)
            location = await self._placement.place(name)
            return await self._at(location.lease, message)
        except IactError as error:
            return _error(message, str(error))

    async def _at(self, lease: HostLease, message: Frame) -> Frame:
        """A host's answer to a message."""
        try:
            async with self._room, asyncio.timeout(_SECONDS), self._connect(lease) as host:
                # A host sends other messages, too: the answer is that with this id.
                await host.send(json.dumps({**message, "id": "forwarded"}))
                while True:
                    answer = json.loads(await host.recv())
                    if answer.get("id") == "forwarded":
                        return {**answer, "id": message.get("id")}
        except (OSError, TimeoutError, WebSocketException) as error:
            reason = str(error).rstrip(".") or type(error).__name__
            return _error(message, f"The host {lease.host} does not answer: {reason}.")

    def _connect(self, lease: HostLease) -> connect:
        scheme = "wss" if self._tls else "ws"
        return connect(
            f"{scheme}://{lease.page}{SOCKET_PATH}", ssl=self._tls, additional_headers=self._headers(lease, SOCKET_PATH),
            open_timeout=_CONNECTING, compression=None, proxy=None, max_size=None, logger=_log_http,
        )  # fmt: skip


def _list(frame: Frame, name: str) -> Sequence[JSON]:
    value = frame.get(name)
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _error(message: Frame, sentence: str) -> Frame:
    return {"type": "error", "id": message.get("id"), "code": "failed", "message": sentence}


def _together(message: Frame, answers: Sequence[tuple[str, Sequence[Frame]]]) -> Frame:
    """One answer about several sessions: done if any host has done it, otherwise refused with the first host's
    reason."""
    done: list[JSON] = []
    refused: dict[str, JSON] = {}
    notes: dict[str, None] = {}  # each once, in their order
    for session, frames in answers:
        successes = [frame for frame in frames if frame.get("type") == "ok"]
        if successes:
            done.append(session)
            notes |= {str(frame["note"]): None for frame in successes if frame.get("note")}
        else:
            refused[session] = next((frame.get("message") for frame in frames), "No host is running.")

    if not done and len(refused) == 1:
        reason = next(iter(refused.values()))
        return _error(message, str(reason))
    return {
        "type": "ok",
        "id": message.get("id"),
        "sessions": done,
        "refused": refused,
        "note": " ".join(notes),
    }
