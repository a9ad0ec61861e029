"""A conversation with a session through each face, with a client of that face, and through the page as the reference.

    talk = served("A2A", server, faces, token)
    await talk.say("Make it.")       # returns the root's answer, or nothing if a person is asked
    if talk.asked:
        await talk.answer(allow=True)

If a face refuses, it raises `Refused` with its message. `by` is the same conversation for a user with another token.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import httpx
import openai
from a2a.client.errors import A2AClientError
from a2a.types import TaskState
from a2a.utils.errors import A2AError
from acp import RequestError
from acp.schema import AllowedOutcome, PermissionOption, RequestPermissionResponse, ToolCallUpdate
from google.protobuf.json_format import MessageToDict
from mcp import MCPError
from mcp.client.session import ClientRequestContext
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent
from openai import OpenAI
from openai.types.chat import ChatCompletionToolParam
from openai.types.responses import FunctionToolParam
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection

from iact.core.ports import JSON
from tests.acceptance import test_a2a
from tests.acceptance.editor import Editor, Person, editing
from tests.acceptance.mcp_client import Connected, connected
from tests.acceptance.members import bearer, dial
from tests.acceptance.product import Product, Server
from tests.acceptance.test_mcp_http import post

HttpFace: TypeAlias = Literal["wire", "responses", "chat completions", "A2A", "AG-UI", "MCP by HTTP"]
StdioFace: TypeAlias = Literal["ACP", "MCP"]
HTTP: Final[Sequence[HttpFace]] = get_args(HttpFace)
STDIO: Final[Sequence[StdioFace]] = get_args(StdioFace)


ASKS: Final[FunctionToolParam] = {
    "type": "function",
    "name": "iact_clearance",
    "parameters": {},
    "strict": False,
}
"""The function whose calls ask a person, as a client of Responses declares it."""
CHAT_ASKS: Final[ChatCompletionToolParam] = {"type": "function", "function": {"name": "iact_clearance"}}


class Refused(Exception):
    """A refusal, in the face's words."""


@dataclass(slots=True)
class Talk(ABC):
    """A conversation with one session. `session`: its id, once it exists. `asked`: whether a person is being asked."""

    session: str = ""
    asked: bool = False

    @abstractmethod
    async def say(self, text: str) -> str:
        """Send a message, and wait for the answer or a question. Returns the last answer."""

    @abstractmethod
    async def answer(self, *, allow: bool) -> str:
        """Answer the question, and wait like `say`."""


@dataclass(slots=True)
class Served(Talk):
    """A conversation through a port of `iact serve`. `faces`: the address of the faces."""

    server: Server = field(kw_only=True)
    faces: str = field(kw_only=True)
    token: str = field(kw_only=True)

    def by(self, token: str) -> Served:
        """The same conversation for another user, who knows everything that its client was sent."""
        return dataclasses.replace(self, token=token)


@dataclass(slots=True)
class Wire(Served):
    """A conversation through the page's websocket. `question`: the record of the question."""

    question: int = 0
    digest: str = ""

    async def say(self, text: str) -> str:
        return await asyncio.to_thread(self._do, {"type": "say", "text": text})

    async def answer(self, *, allow: bool) -> str:
        message = {"type": "clear", "call": self.question, "allow": allow, "digest": self.digest}
        return await asyncio.to_thread(self._do, message)

    async def set_intent(self, value: float) -> None:
        """Change the session's intent."""
        await asyncio.to_thread(self._do, {"type": "intent", "value": value}, follow=False)

    def _do(self, message: dict[str, object], *, follow: bool = True) -> str:
        try:
            socket = dial(self.server, **bearer(self.token))
        except InvalidStatus as error:
            raise Refused(str(error)) from error
        with socket:
            _acknowledged(socket, {"type": "hello", "session": self.session or None})
            done, early = _acknowledged(socket, message)
            self.session = str(done.get("session") or self.session)
            return self._heard(socket, done["n"], early) if follow else ""

    def _heard(self, socket: ClientConnection, since: int, early: list[dict[str, Any]]) -> str:
        """The result of a message. `early`: messages that arrived before the acknowledgement."""
        while True:
            frame = early.pop(0) if early else json.loads(socket.recv(timeout=300))
            if frame.get("type") != "record" or frame["n"] <= since:
                continue
            if frame["kind"] == "reply" and frame["agent"] == "/":
                self.asked = False
                return str(frame["body"])
            if frame["kind"] == "clearance" and frame["op"] == "ask":
                self.asked, self.question, self.digest = True, frame["n"], frame["digest"]
                return ""


def _acknowledged(
    socket: ClientConnection, message: dict[str, object]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    socket.send(json.dumps({**message, "id": "talk"}))
    early = []
    while (frame := json.loads(socket.recv(timeout=300))).get("id") != "talk":
        early.append(frame)
    if frame["type"] != "ok":
        raise Refused(json.dumps(frame))
    return frame, early


@dataclass(slots=True)
class Responses(Served):
    """OpenAI's Responses, with the `openai` client. `last`: the previous response. `calls`: calls of the questions."""

    last: str | None = None
    calls: tuple[str, ...] = ()

    async def say(self, text: str) -> str:
        return await asyncio.to_thread(self._create, text)

    async def answer(self, *, allow: bool) -> str:
        word = "allow" if allow else "deny"
        given = [{"type": "function_call_output", "call_id": one, "output": word} for one in self.calls]
        return await asyncio.to_thread(self._create, given)

    def _create(self, given: object) -> str:
        try:
            with OpenAI(base_url=f"{self.faces}/v1", api_key=self.token, max_retries=0) as model:
                made = model.responses.create(  # type: ignore[call-overload]
                    model="iact", input=given, previous_response_id=self.last, tools=[ASKS]
                )
        except openai.APIStatusError as error:
            raise Refused(str(error)) from error
        self.last, self.session = made.id, made.id.split("_")[1]
        self.calls = tuple(one.call_id for one in made.output if one.type == "function_call")
        self.asked = bool(self.calls)
        return str(made.output[-1].content[0].text) if made.output and not self.asked else ""


@dataclass(slots=True)
class Chat(Served):
    """OpenAI's chat completions, with the same client, which sends the whole conversation."""

    messages: tuple[Mapping[str, object], ...] = ()
    calls: tuple[str, ...] = ()

    async def say(self, text: str) -> str:
        return await asyncio.to_thread(self._complete, {"role": "user", "content": text})

    async def answer(self, *, allow: bool) -> str:
        word = "allow" if allow else "deny"
        told = [{"role": "tool", "tool_call_id": one, "content": word} for one in self.calls]
        return await asyncio.to_thread(self._complete, *told)

    def _complete(self, *new: Mapping[str, object]) -> str:
        try:
            with OpenAI(base_url=f"{self.faces}/v1", api_key=self.token, max_retries=0) as model:
                made = model.chat.completions.create(
                    model="iact",
                    messages=[*self.messages, *new],  # type: ignore[list-item]
                    tools=[CHAT_ASKS],
                )
        except openai.APIStatusError as error:
            raise Refused(str(error)) from error
        said = made.choices[0].message
        self.session = made.id.removeprefix("chatcmpl-").rpartition("_")[0]
        self.messages = (*self.messages, *new, said.model_dump(exclude_none=True))
        self.calls = tuple(one.id for one in said.tool_calls or ())
        self.asked = bool(self.calls)
        return said.content or ""


@dataclass(slots=True)
class Tasks(Served):
    """A2A, with the official SDK's client. `task`: the task that asks; `digest`: of what it asks."""

    task: str = ""
    digest: str = ""

    async def say(self, text: str) -> str:
        return await self._send(text, context=self.session)

    async def answer(self, *, allow: bool) -> str:
        return await self._send(f"allow {self.digest}" if allow else "deny", task=self.task)

    async def _send(self, text: str, *, context: str = "", task: str = "") -> str:
        try:
            async with test_a2a.client(self.faces, self.token, streaming=False) as agent:
                request = test_a2a.request(text, context=context, task=task)
                made = (await test_a2a.told(agent, request))[-1].task
        except (A2AError, A2AClientError) as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
        self.session, self.task = made.context_id, made.id
        self.asked = made.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        if self.asked:
            question = MessageToDict(made.status.message.parts[1].data)
            self.digest = question["digest"][:16]
        return test_a2a.answer(made)


@dataclass(slots=True)
class FrontEnd(Served):
    """AG-UI, with its events; `test_ag_ui` tests them with a third-party client. `interrupts`: the ids of questions."""

    interrupts: tuple[str, ...] = ()

    async def say(self, text: str) -> str:
        return await self._run(messages=[{"id": "m", "role": "user", "content": text}])

    async def answer(self, *, allow: bool) -> str:
        word: JSON = "allow" if allow else "deny"
        given: list[JSON] = [
            {"interruptId": one, "status": "resolved", "payload": word} for one in self.interrupts
        ]
        return await self._run(messages=[], resume=given)

    async def _run(self, **given: JSON) -> str:
        state: JSON = {"iact": {"session": self.session}} if self.session else {}
        body: dict[str, JSON] = {"threadId": "t", "runId": "r", "state": state, **given}
        async with httpx.AsyncClient(headers=bearer(self.token), timeout=300) as http:
            answer = await http.post(f"{self.faces}/ag-ui", json=body)
        if answer.status_code != 200:
            raise Refused(f"{answer.status_code}: {answer.text}")
        events = [
            json.loads(one.removeprefix("data: "))
            for one in answer.text.splitlines()
            if one.startswith("data: ")
        ]
        (began,) = [one for one in events if one["type"] == "STATE_SNAPSHOT"]
        self.session = began["snapshot"]["iact"]["session"]
        outcome = events[-1].get("outcome", {})
        self.interrupts = tuple(one["id"] for one in outcome.get("interrupts", ()))
        self.asked = bool(self.interrupts)
        said: dict[str, str] = {}
        for one in events:
            if one["type"] == "TEXT_MESSAGE_CONTENT":
                said[one["messageId"]] = said.get(one["messageId"], "") + one["delta"]
        return [*said.values(), ""][0 if not said else len(said) - 1]


@dataclass(slots=True)
class Posted(Served):
    """MCP over streamable HTTP, with the messages of its newest revision, which keeps no state between two messages;
    `test_mcp_http` tests the official client. `last`: the last request. `state`: the state of the call that asks.
    `keys`: the keys of its questions."""

    last: str = ""
    state: str = ""
    keys: tuple[str, ...] = ()

    async def say(self, text: str) -> str:
        self.last = text
        return await self._call()

    async def answer(self, *, allow: bool) -> str:
        word: JSON = {"action": "accept", "content": {"allow": True}} if allow else {"action": "decline"}
        given: dict[str, JSON] = dict.fromkeys(self.keys, word)
        return await self._call(requestState=self.state, inputResponses=given)

    async def _call(self, **more: JSON) -> str:
        arguments: dict[str, JSON] = {"task": self.last}
        if self.session and not more:
            arguments["session"] = self.session
        told = await asyncio.to_thread(
            post, self.faces, self.token, "tools/call", name="iact_ask", arguments=arguments, **more
        )
        result = told.get("result")
        if not isinstance(result, dict):
            raise Refused(json.dumps(told))
        if result.get("resultType") == "input_required":
            self.asked, self.state = True, str(result["requestState"])
            requests = result["inputRequests"]
            assert isinstance(requests, dict)
            self.keys, self.session = tuple(requests), self.state.partition(".")[0]
            return ""
        self.asked = False
        done = result.get("structuredContent")
        if not isinstance(done, dict):
            raise Refused(json.dumps(result))
        self.session = str(done["session"])
        return str(done["reply"])


_SERVED: Final[Mapping[HttpFace, type[Served]]] = {
    "wire": Wire, "responses": Responses, "chat completions": Chat, "A2A": Tasks, "AG-UI": FrontEnd,
    "MCP by HTTP": Posted,
}  # fmt: skip


def served(face: HttpFace, server: Server, faces: str, token: str) -> Served:
    """A conversation of the user with this token."""
    return _SERVED[face](server=server, faces=faces, token=token)


class Decider(Person):
    """A person who answers a question when the test decides."""

    def __init__(self) -> None:
        super().__init__()
        self.asks = asyncio.Event()
        self._decided: asyncio.Queue[bool] = asyncio.Queue()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: object
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, options))
        chosen = "once" if await self.decision() else "no"
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    async def elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        """Show a question."""
        allow = await self.decision()
        return (
            ElicitResult(action="accept", content={"allow": True})
            if allow
            else ElicitResult(action="decline")
        )

    async def decision(self) -> bool:
        """Wait for the person's decision."""
        self.asks.set()
        return await self._decided.get()

    def decide(self, *, allow: bool) -> None:
        """Decide the current question."""
        self.asks.clear()
        self._decided.put_nowait(allow)


@dataclass(slots=True)
class Piped(Talk):
    """A conversation through a process that the client starts, on its standard input and output."""

    person: Decider = field(kw_only=True)
    group: asyncio.TaskGroup = field(kw_only=True)
    _working: asyncio.Task[str | Refused] | None = None

    async def say(self, text: str) -> str:
        self._working = self.group.create_task(self._caught(text))
        return await self._heard()

    async def answer(self, *, allow: bool) -> str:
        self.person.decide(allow=allow)
        return await self._heard()

    @abstractmethod
    async def _said(self, text: str) -> str:
        """Send a message, and wait for the end of the answer."""

    async def _caught(self, text: str) -> str | Refused:
        try:
            return await self._said(text)
        except Refused as error:
            return error

    async def _heard(self) -> str:
        assert self._working is not None
        asks = asyncio.ensure_future(self.person.asks.wait())
        try:
            await asyncio.wait({self._working, asks}, return_when=asyncio.FIRST_COMPLETED, timeout=300)
        finally:
            asks.cancel()
        self.asked = not self._working.done()
        told = "" if self.asked else self._working.result()
        if isinstance(told, Refused):
            raise told
        return told


@dataclass(slots=True)
class InEditor(Piped):
    """ACP, with the official SDK's client. `folder`: the directory that the editor has open."""

    editor: Editor = field(kw_only=True)
    folder: Path = field(kw_only=True)

    async def load(self, session: str) -> None:
        """Continue an existing session."""
        try:
            await self.editor.agent.load_session(cwd=str(self.folder), session_id=session, mcp_servers=[])
        except RequestError as error:
            raise Refused(str(error)) from error
        self.session = session

    async def _said(self, text: str) -> str:
        if not self.session:
            self.session = (await self.editor.new(self.folder)).session_id
        self.person.updates.clear()
        await self.editor.prompt(self.session, text)
        return self.person.said


@dataclass(slots=True)
class OverMcp(Piped):
    """MCP, with the official SDK's client."""

    connection: Connected = field(kw_only=True)

    async def _said(self, text: str) -> str:
        going_on = {"session": self.session} if self.session else {}
        try:
            result = await self.connection.client.call_tool("iact_ask", {"task": text, **going_on})
        except MCPError as error:
            raise Refused(str(error)) from error
        first = result.content[0]
        assert isinstance(result, CallToolResult)
        assert isinstance(first, TextContent)
        if result.structured_content is None:
            raise Refused(first.text)
        self.session = str(result.structured_content["session"])
        return first.text


@asynccontextmanager
async def in_editor(product: Product, folder: Path, *options: str) -> AsyncIterator[InEditor]:
    """An editor with a directory."""
    person = Decider()
    async with editing(product, person, *options) as editor, asyncio.TaskGroup() as group:
        yield InEditor(person=person, group=group, editor=editor, folder=folder)


@asynccontextmanager
async def over_mcp(product: Product, *options: str) -> AsyncIterator[OverMcp]:
    """A program that has `iact mcp` as a server."""
    person = Decider()
    async with (
        connected(product, *options, answering=person.elicit) as connection,
        asyncio.TaskGroup() as group,
    ):
        yield OverMcp(person=person, group=group, connection=connection)
