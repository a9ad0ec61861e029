"""The methods of the Agent Client Protocol on a runtime. Each does what a person can do on the page.

`dispatch` takes a message's method and parameters. Failures become JSON-RPC errors with one sentence for people.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from acp.exceptions import RequestError
from acp.meta import PROTOCOL_VERSION
from acp.schema import (
    AgentCapabilities,
    CancelNotification,
    CloseSessionRequest,
    CloseSessionResponse,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    DeleteSessionRequest,
    DeleteSessionResponse,
    ForkSessionRequest,
    ForkSessionResponse,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    ListSessionsRequest,
    ListSessionsResponse,
    LoadSessionRequest,
    LoadSessionResponse,
    NewSessionRequest,
    NewSessionResponse,
    PromptCapabilities,
    PromptRequest,
    PromptResponse,
    ResumeSessionRequest,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionConfigOptionSelectRequest,
    SetSessionModeRequest,
    SetSessionModeResponse,
)
from pydantic import BaseModel, ValidationError

from iact.core.errors import IactError, UsageError
from iact.core.records.ways import ABOUT, WAYS, Way
from iact.core.session.runtime import Runtime
from iact.faces.acp.conversation import AcpClient, Conversation, Spawn
from iact.faces.acp.prompt import read_prompt
from iact.faces.trace import traceparent_of

_Request = TypeVar("_Request", bound=BaseModel)
_Handler = Callable[[object], Awaitable[BaseModel]]

_PAGE: Final = 100
"""The maximum number of sessions in one response."""
_WAY: Final = "way"
_INTENT: Final = "intent"
_LEVELS: Final = {
    0.0: "Observe: look, and change nothing",
    1.0: "Operate: the usual work",
    2.0: "Override: whatever is asked",
}


class AcpAgent:
    """The agent for one client. `intent`, `scope`: for sessions that the client starts."""

    def __init__(
        self,
        runtime: Runtime,
        client: AcpClient,
        spawn: Spawn,
        *,
        version: str,
        intent: str = "1",
        scope: str | None = None,
    ) -> None:
        self._runtime = runtime
        self._client = client
        self._spawn = spawn
        self._version = version
        self._intent = intent
        self._scope = scope
        self._open: dict[str, Conversation] = {}
        self._requests: Mapping[str, _Handler] = {
            "initialize": _on(InitializeRequest, self.initialize),
            "session/new": _on(NewSessionRequest, self.new),
            "session/load": _on(LoadSessionRequest, self.load),
            "session/resume": _on(ResumeSessionRequest, self.resume),
            "session/fork": _on(ForkSessionRequest, self.fork),
            "session/list": _on(ListSessionsRequest, self.list),
            "session/close": _on(CloseSessionRequest, self.close),
            "session/delete": _on(DeleteSessionRequest, self.delete),
            "session/prompt": _on(PromptRequest, self.prompt),
            "session/set_mode": _on(SetSessionModeRequest, self.set_mode),
            "session/set_config_option": _on(SetSessionConfigOptionSelectRequest, self.set_option),
        }

    async def dispatch(self, method: str, params: object, is_notification: bool) -> BaseModel | None:
        """Handle a message.

        Raises:
            RequestError: the request can't be done; the message says why.
        """
        try:
            if is_notification:
                # Other notifications are ignored, as JSON-RPC requires.
                if method == "session/cancel":
                    await self.cancel(CancelNotification.model_validate(params))
                return None
            handler = self._requests.get(method)
            if handler is None:
                raise RequestError(-32601, f"There is no method {method}.")
            return await handler(params)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(one) for one in first["loc"])
            raise RequestError(
                -32602, f"The parameters of {method} are wrong: {where}: {first['msg']}."
            ) from error
        except UsageError as error:
            raise RequestError(-32602, str(error)) from error
        except IactError as error:
            raise RequestError(-32603, str(error)) from error

    async def initialize(self, asked: InitializeRequest) -> InitializeResponse:
        """Report the protocol version and capabilities. The version is always 1, whatever the client supports."""
        able = asked.client_capabilities
        forms = able.elicitation.form if able is not None and able.elicitation is not None else None
        self._client.has_forms = forms is not None

        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="iact", title="iact", version=self._version),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, audio=False, embedded_context=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(), delete=SessionDeleteCapabilities(),
                    fork=SessionForkCapabilities(), resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[],
        )  # fmt: skip

    # --- sessions -------------------------------------------------------------------------------

    async def new(self, asked: NewSessionRequest) -> NewSessionResponse:
        """Start a session that works in the client's directory."""
        folder = Path(asked.cwd)
        if not folder.is_absolute():
            raise UsageError(f"The directory {asked.cwd!r} is not absolute.")
        session = await self._runtime.open(None, intent=self._intent, scope=self._scope, workspace=folder)
        opened = Conversation(session, self._client, self._spawn)
        self._open[session.id] = opened
        await opened.begin(replay=False)
        return NewSessionResponse(
            session_id=session.id, modes=_modes(opened), config_options=_options(opened)
        )

    async def load(self, asked: LoadSessionRequest) -> LoadSessionResponse:
        """Open a stored session and replay its history."""
        opened = await self._opened(asked.session_id, replay=True)
        return LoadSessionResponse(modes=_modes(opened), config_options=_options(opened))

    async def resume(self, asked: ResumeSessionRequest) -> ResumeSessionResponse:
        """Open a stored session without its history."""
        opened = await self._opened(asked.session_id, replay=False)
        return ResumeSessionResponse(modes=_modes(opened), config_options=_options(opened))

    async def fork(self, asked: ForkSessionRequest) -> ForkSessionResponse:
        """Start a new session with the history of another one."""
        last = self._runtime.store.last_record(asked.session_id)
        made = await self._runtime.fork(asked.session_id, last)
        opened = await self._opened(made, replay=False)
        return ForkSessionResponse(session_id=made, modes=_modes(opened), config_options=_options(opened))

    async def list(self, asked: ListSessionsRequest) -> ListSessionsResponse:
        """List the stored sessions, the most recently changed first."""
        found = [
            SessionInfo(
                session_id=one.id, title=one.title or None, updated_at=one.changed,
                cwd=one.workspace if one.workspace != "scratch" else str(self._runtime.store.folder / one.id / "workspace"),
            )
            for one in self._runtime.sessions()
            if not one.foreign
        ]  # fmt: skip
        wanted = [one for one in found if asked.cwd in (None, one.cwd)]
        begin = 0
        if asked.cursor is not None:
            if not asked.cursor.isdecimal():
                raise UsageError(f"There is no page {asked.cursor!r} of the list.")
            begin = int(asked.cursor)
        more = begin + _PAGE < len(wanted)
        return ListSessionsResponse(
            sessions=wanted[begin : begin + _PAGE], next_cursor=str(begin + _PAGE) if more else None
        )

    async def close(self, asked: CloseSessionRequest) -> CloseSessionResponse:
        """End a session's work and close it. It can be loaded again."""
        opened = self._conversation(asked.session_id)
        await opened.cancel()
        del self._open[asked.session_id]
        await self._runtime.close(asked.session_id)
        await opened.end()
        return CloseSessionResponse()

    async def delete(self, asked: DeleteSessionRequest) -> DeleteSessionResponse:
        """Move a session to the trash."""
        self._runtime.store.path_of(asked.session_id)
        opened = self._open.pop(asked.session_id, None)
        if opened is not None:
            await opened.cancel()
        done = await self._runtime.delete([asked.session_id])
        if opened is not None:
            await opened.end()
        if asked.session_id not in done.sessions:
            raise IactError(
                f"The session {asked.session_id} could not be deleted; another process has it open."
            )
        return DeleteSessionResponse()

    async def _opened(self, session_id: str, *, replay: bool) -> Conversation:
        known = self._open.pop(session_id, None)
        if known is not None:
            await known.end()
        session = await self._runtime.open(session_id)
        opened = Conversation(session, self._client, self._spawn)
        self._open[session.id] = opened
        await opened.begin(replay=replay)
        return opened

    def _conversation(self, session_id: str) -> Conversation:
        found = self._open.get(session_id)
        if found is None:
            raise UsageError(f"The session {session_id} is not open here. Load or resume it first.")
        return found

    async def leave(self) -> None:
        """Stop all updates, because the client is gone."""
        for opened in self._open.values():
            await opened.end()

    # --- in a session ---------------------------------------------------------------------------

    async def prompt(self, asked: PromptRequest) -> PromptResponse:
        """Send a message, and respond when the whole reply was sent."""
        trace = traceparent_of(asked.field_meta)
        return await self._conversation(asked.session_id).prompt(read_prompt(asked.prompt), trace)

    async def cancel(self, asked: CancelNotification) -> None:
        """Cancel the running work. The prompt's response reports that."""
        opened = self._open.get(asked.session_id)
        if opened is not None:
            await opened.cancel()

    async def set_mode(self, asked: SetSessionModeRequest) -> SetSessionModeResponse:
        """Choose the way of working for the following messages."""
        opened = self._conversation(asked.session_id)
        opened.way = _way(asked.mode_id)
        await self._tell(opened)
        return SetSessionModeResponse()

    async def set_option(self, asked: SetSessionConfigOptionSelectRequest) -> SetSessionConfigOptionResponse:
        """Choose the way of working, or how much the session may do."""
        opened = self._conversation(asked.session_id)
        if asked.config_id == _WAY:
            opened.way = _way(asked.value)
        elif asked.config_id == _INTENT:
            await opened.session.set_intent(asked.value)
        else:
            raise UsageError(f"There is no option {asked.config_id!r}; there are {_WAY} and {_INTENT}.")
        await self._tell(opened)
        return SetSessionConfigOptionResponse(config_options=_options(opened))

    async def _tell(self, opened: Conversation) -> None:
        session = opened.session.id
        mode = CurrentModeUpdate(session_update="current_mode_update", current_mode_id=opened.way)
        await self._client.update(session, mode)
        options = ConfigOptionUpdate(session_update="config_option_update", config_options=_options(opened))
        await self._client.update(session, options)


def _on(model: type[_Request], act: Callable[[_Request], Awaitable[BaseModel]]) -> _Handler:
    async def handler(params: object) -> BaseModel:
        return await act(model.model_validate(params if params is not None else {}))

    return handler


def _way(name: str) -> Way:
    for way in WAYS:
        if way == name:
            return way
    raise UsageError(f"There is no way of working {name!r}; there are {', '.join(WAYS)}.")


def _modes(opened: Conversation) -> SessionModeState:
    modes = [SessionMode(id=way, name=about.label, description=about.help) for way, about in ABOUT.items()]
    return SessionModeState(current_mode_id=opened.way, available_modes=modes)


def _options(opened: Conversation) -> list[SessionConfigOptionSelect | SessionConfigOptionBoolean]:
    session = opened.session
    levels = {f"{value:g}": text for value, text in _LEVELS.items()}
    levels |= {name: f"Level {value:g}" for name, value in session.levels.items()}
    named = {value: name for name, value in session.levels.items()}
    current = (
        f"{session.intent:g}"
        if session.intent in _LEVELS
        else named.get(session.intent, f"{session.intent:g}")
    )
    levels.setdefault(current, f"Level {current}")
    return [
        SessionConfigOptionSelect(
            type="select", id=_WAY, name="Way of working", category="mode", current_value=opened.way,
            options=[
                SessionConfigSelectOption(value=way, name=about.label, description=about.help)
                for way, about in ABOUT.items()
            ],
        ),
        SessionConfigOptionSelect(
            type="select", id=_INTENT, name="Intent", description="How much the session may do", current_value=current,
            options=[SessionConfigSelectOption(value=value, name=text) for value, text in levels.items()],
        ),
    ]  # fmt: skip
