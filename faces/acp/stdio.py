"""A process that a client starts: the protocol on its standard input and output, one message per line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from io import FileIO
from typing import Final

from acp.connection import Connection, StreamDirection, StreamEvent
from acp.schema import (
    AllowedOutcome,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    DeniedOutcome,
    PermissionOption,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
    ToolCallUpdate,
)
from pydantic import BaseModel

from iact.core.ports import JSON
from iact.core.session.runtime import Runtime
from iact.faces.acp.agent import AcpAgent
from iact.faces.acp.updates import Update

_LONGEST: Final = 64 << 20
"""The maximum number of bytes of a message. A file in a prompt is on one line."""
_ASK: Final = "session/request_permission"
_FORM: Final = "elicitation/create"


class _Client:
    """The client at the other end of the connection."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.has_forms = False
        self._asked: dict[str, int] = {}
        """The request numbers of open questions, each by the parameters of its request as JSON."""

    def observe(self, event: StreamEvent) -> None:
        """Remember the request number of a question."""
        message = event.message
        if event.direction is StreamDirection.OUTGOING and message.get("method") in (_ASK, _FORM):
            self._asked[json.dumps(message["params"])] = message["id"]

    async def update(self, session: str, update: Update | CurrentModeUpdate | ConfigOptionUpdate) -> None:
        """Send an update."""
        assert self.connection is not None
        told = SessionNotification(session_id=session, update=update)
        await self.connection.send_notification("session/update", _dumped(told))

    async def permission(
        self, session: str, call: ToolCallUpdate, options: Sequence[PermissionOption]
    ) -> AllowedOutcome | DeniedOutcome:
        """Ask the client's user for permission."""
        asked = RequestPermissionRequest(session_id=session, tool_call=call, options=list(options))
        answer = await self._ask(_ASK, _dumped(asked))
        return RequestPermissionResponse.model_validate(answer).outcome

    async def form(
        self, session: str, message: str, schema: Mapping[str, JSON], *, record: int
    ) -> Mapping[str, JSON] | None:
        """Ask the client's user to fill in a form."""
        asked = {
            "sessionId": session,
            "mode": "form",
            "message": message,
            "requestedSchema": schema,
            "_meta": {"iact": {"record": record}},
        }
        answer = await self._ask(_FORM, asked)
        if not isinstance(answer, dict) or answer.get("action") != "accept":
            return None
        content = answer.get("content")
        return content if isinstance(content, dict) else {}

    async def _ask(self, method: str, params: Mapping[str, object]) -> object:
        """Send a question, and take it back if this is cancelled."""
        assert self.connection is not None
        key = json.dumps(params)
        try:
            return await self.connection.send_request(method, params)
        except asyncio.CancelledError:
            if key in self._asked:
                taken_back = {"requestId": self._asked[key]}
                await self.connection.send_notification("$/cancel_request", taken_back)
            raise
        finally:
            self._asked.pop(key, None)


def _dumped(model: BaseModel) -> Mapping[str, object]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def serve(
    runtime: Runtime,
    reading: FileIO,
    writing: FileIO,
    *,
    version: str,
    intent: str = "1",
    scope: str | None = None,
) -> None:
    """Serve a client until it closes the connection.

    `version`: the version of this program. `intent`, `scope`: for new sessions.
    """
    loop, client = asyncio.get_running_loop(), _Client()
    reader = asyncio.StreamReader(limit=_LONGEST)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), reading)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), writing
    )
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    async with asyncio.TaskGroup() as group:
        agent = AcpAgent(runtime, client, group.create_task, version=version, intent=intent, scope=scope)
        connection = Connection(agent.dispatch, writer, reader, listening=False, observers=[client.observe])
        client.connection = connection
        try:
            await connection.main_loop()
        finally:
            await connection.close()
            await agent.leave()
