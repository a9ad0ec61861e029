"""A conversation with a session through each client that others wrote, with one way to use them all.

    async with caller("openai, Responses", server) as program:
        heard = await program.say("Write it.", will="allow")

`will` is what the program's user does about a question: allows or denies it by the means that the client has for it, says
something, or leaves it. What a client was asked is in `Heard.questions`.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import httpx2
import openai
from a2a.client import Client as AgentClient
from a2a.client import ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import CancelTaskRequest, Task, TaskState
from a2a.utils.errors import A2AError
from acp import RequestError
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)
from google.protobuf.json_format import MessageToDict
from mcp import MCPError
from mcp.client.client import Client as McpClient
from mcp.client.session import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitRequestFormParams, ElicitRequestParams, ElicitResult
from openai import AsyncOpenAI

from iact.core.ports import JSON
from tests.acceptance import test_a2a
from tests.acceptance.editor import Editor, Person, editing, shown
from tests.acceptance.product import Product
from tests.acceptance.talks import ASKS, CHAT_ASKS
from tests.clients import FOLDER as PROGRAMS
from tests.clients import variables
from tests.node import FOLDER as NODE_FOLDER
from tests.node import NODE

ALLOW: Final = "allow it"
DENY: Final = "deny it"
LEAVE: Final = "leave it"

_PARAMETERS: Final[dict[str, JSON]] = {"type": "object", "properties": {"city": {"type": "string"}}}
_WEATHER: Final[dict[str, JSON]] = {
    "name": "weather",
    "description": "The weather.",
    "parameters": _PARAMETERS,
}
_RAIN: Final = "Rain in Bonn"


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of a message. `failed`: the failure as this client tells it, with its code."""

    text: str = ""
    failed: str = ""
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Server:
    """A running product. `clients`: the environment of the programs in `tests/clients`. `folder`: what editors have open."""

    product: Product
    url: str
    key: str
    clients: Path
    folder: Path


@dataclass(slots=True)
class Caller(ABC):
    """A program with a conversation. `by_call`: it says that it is asked by calls, where its protocol lets it say so."""

    server: Server
    by_call: bool = False

    async def say(self, text: str, will: str = LEAVE) -> Heard:
        """Send a message and do about each question what `will` says; then the answer is what follows."""
        heard = await self._say(text)
        questions: list[str] = []
        while heard.questions and not heard.failed:
            questions += heard.questions
            if will == LEAVE:
                break
            heard = await (self._decide(will == ALLOW) if will in (ALLOW, DENY) else self._answer(will))
        return Heard(heard.text, heard.failed, tuple(questions))

    @abstractmethod
    async def _say(self, text: str) -> Heard: ...

    async def _answer(self, words: str) -> Heard:
        """Answer a question with words. To most clients that is a message like any other."""
        return await self._say(words)

    async def _decide(self, allow: bool) -> Heard:
        """Answer a question by what the protocol has for it. Without anything, a word is the answer."""
        return await self._say("allow" if allow else "deny")

    @abstractmethod
    async def leave(self, text: str, begun: Callable[[], Awaitable[object]]) -> None:
        """Send a message, and give up what it asked for once a model is at work on it."""


@dataclass(slots=True)
class OpenAIResponses(Caller):
    last: str | None = None
    calls: tuple[str, ...] = ()

    @property
    def _model(self) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=f"{self.server.url}/v1", api_key=self.server.key, timeout=600)

    @property
    def _tools(self) -> list[Any]:
        own = {"type": "function", "strict": False, **_WEATHER}
        return [own, ASKS] if self.by_call else [own]

    async def _say(self, text: str) -> Heard:
        return await self._create(text)

    async def _decide(self, allow: bool) -> Heard:
        if not self.calls:
            return await self._say("allow" if allow else "deny")
        return await self._create(_outputs(self.calls, "allow" if allow else "deny"))

    async def _create(self, given: Any) -> Heard:
        try:
            async with self._model as model:
                response = await model.responses.create(
                    model="iact", input=given, previous_response_id=self.last, tools=self._tools
                )
        except openai.APIStatusError as error:
            return Heard(failed=f"{error.status_code} {error.code} {error.message}")

        self.last = response.id
        calls = [item for item in response.output if item.type == "function_call"]
        own = tuple(call.call_id for call in calls if call.name == "weather")
        if own:
            return await self._create(_outputs(own, _RAIN))
        self.calls = tuple(call.call_id for call in calls)
        return _heard(response.output_text, [call.arguments for call in calls])

    async def leave(self, text: str, begun: Callable[[], Awaitable[object]]) -> None:
        async with self._model as model:
            events = await model.responses.create(
                model="iact", input=text, previous_response_id=self.last, stream=True
            )
            async for event in events:
                if event.type == "response.output_text.delta":
                    break
            await begun()
            await events.close()


def _outputs(calls: Sequence[str], output: str) -> list[dict[str, str]]:
    return [{"type": "function_call_output", "call_id": call, "output": output} for call in calls]


def _heard(text: str, calls: Sequence[str]) -> Heard:
    """What a client of chats heard, in which a question is a call or stands in the text."""
    if calls:
        return Heard(text, questions=tuple(calls))
    asks = 'Answer "' in text or "Answer with" in text
    return Heard(text, questions=(text,) if asks else ())


@dataclass(slots=True)
class OpenAIChat(Caller):
    messages: list[Any] = field(default_factory=list)
    calls: tuple[str, ...] = ()

    @property
    def _model(self) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=f"{self.server.url}/v1", api_key=self.server.key, timeout=600)

    async def _say(self, text: str) -> Heard:
        return await self._complete({"role": "user", "content": text})

    async def _decide(self, allow: bool) -> Heard:
        word = "allow" if allow else "deny"
        if not self.calls:
            return await self._say(word)
        return await self._complete(*_results(self.calls, word))

    async def _complete(self, *new: Any) -> Heard:
        own: dict[str, Any] = {"type": "function", "function": _WEATHER}
        tools: list[Any] = [own, CHAT_ASKS] if self.by_call else [own]
        try:
            async with self._model as model:
                completion = await model.chat.completions.create(
                    model="iact", messages=[*self.messages, *new], tools=tools
                )
        except openai.APIStatusError as error:
            return Heard(failed=f"{error.status_code} {error.code} {error.message}")

        message = completion.choices[0].message
        self.messages += [*new, message.model_dump(exclude_none=True)]
        calls = [call for call in message.tool_calls or () if call.type == "function"]
        weather = tuple(call.id for call in calls if call.function.name == "weather")
        if weather:
            return await self._complete(*_results(weather, _RAIN))
        self.calls = tuple(call.id for call in calls)
        return _heard(message.content or "", [call.function.arguments for call in calls])

    async def leave(self, text: str, begun: Callable[[], Awaitable[object]]) -> None:
        async with self._model as model:
            asked: list[Any] = [*self.messages, {"role": "user", "content": text}]
            chunks = await model.chat.completions.create(model="iact", messages=asked, stream=True)
            async for chunk in chunks:
                if chunk.choices[0].delta.content:
                    break
            await begun()
            await chunks.close()


def _results(calls: Sequence[str], content: str) -> list[dict[str, str]]:
    return [{"role": "tool", "tool_call_id": call, "content": content} for call in calls]


@dataclass(slots=True)
class Program(Caller):
    """A process that has the client, and is told what to do a line at a time."""

    process: asyncio.subprocess.Process = field(kw_only=True)

    async def _do(self, step: Mapping[str, JSON]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{json.dumps(step)}\n".encode())
        line = await asyncio.wait_for(self.process.stdout.readline(), 300)
        assert line, f"{type(self).__name__} ended at {step}"
        return dict(json.loads(line))


@dataclass(slots=True)
class ChatProgram(Program):
    """A program of `tests/clients`."""

    calls: bool = False

    async def _say(self, text: str) -> Heard:
        return self._told(await self._do({"say": text}))

    async def _decide(self, allow: bool) -> Heard:
        if not self.calls:
            return await self._say("allow" if allow else "deny")
        return self._told(await self._do({"decide": allow}))

    def _told(self, result: Mapping[str, Any]) -> Heard:
        if result.get("failed"):
            return Heard(failed=str(result["failed"]))
        self.calls = bool(result["asked"])
        return _heard(str(result["text"]), ["a call"] if self.calls else [])

    async def leave(self, text: str, begun: Callable[[], Awaitable[object]]) -> None:
        left = await self._do({"leave": text})
        assert left.get("text"), left
        await begun()


@dataclass(slots=True)
class FrontEnd(Program):
    """npm's client of AG-UI."""

    async def _say(self, text: str) -> Heard:
        return await self._run({"say": text})

    async def _answer(self, words: str) -> Heard:
        return await self._run({"resume": words})

    async def _decide(self, allow: bool) -> Heard:
        return await self._run({"resume": {"allow": allow}})

    async def _run(self, step: dict[str, JSON]) -> Heard:
        run = await self._do({**step, "tools": [_WEATHER]})
        assert run["warnings"] == []
        error = _error_of(run["events"])
        if run["failed"] or error:
            return Heard(failed=f"{run['failed']} {error}")

        results = {event["toolCallId"] for event in run["events"] if event["type"] == "TOOL_CALL_RESULT"}
        own = [
            event for event in run["events"]
            if event["type"] == "TOOL_CALL_START" and event["toolCallName"] == "weather" and event["toolCallId"] not in results
        ]  # fmt: skip
        if own:
            return await self._run({"result": _RAIN})
        last = run["messages"][-1]
        text = str(last.get("content") or "") if last["role"] == "assistant" else ""
        return Heard(text, questions=tuple(str(one["message"]) for one in run["interrupts"]))

    async def leave(self, text: str, begun: Callable[[], Awaitable[object]]) -> None:
        run = await self._do({"say": text, "abort": "TEXT_MESSAGE_CONTENT", "tools": [_WEATHER]})
        assert "RUN_FINISHED" not in {event["type"] for event in run["events"]}
        await begun()


def _error_of(events: Sequence[Mapping[str, Any]]) -> str:
    return next((str(event.get("code")) for event in events if event["type"] == "RUN_ERROR"), "")


@dataclass(slots=True)
class OtherAgent(Caller):
    """The client of A2A's SDK."""

    context: str = ""
    task: str = ""
    digest: str = ""

    @asynccontextmanager
    async def _agent(self, *, streaming: bool = False) -> AsyncIterator[AgentClient]:
        headers = {"Authorization": f"Bearer {self.server.key}"}
        async with httpx.AsyncClient(headers=headers, timeout=600) as http:
            config = ClientConfig(httpx_client=http, streaming=streaming)
            yield await ClientFactory(config).create_from_url(self.server.url)

    async def _say(self, text: str) -> Heard:
        return await self._send(text, context=self.context)

    async def _answer(self, words: str) -> Heard:
        # A yes names what it is a yes to.
        return await self._send(f"allow {self.digest}" if words == "allow" else words, task=self.task)

    async def _decide(self, allow: bool) -> Heard:
        return await self._send(f"allow {self.digest}" if allow else "deny", task=self.task)

    async def _send(self, text: str, *, context: str = "", task: str = "") -> Heard:
        try:
            async with self._agent() as agent:
                asked = test_a2a.request(text, context=context, task=task)
                made = (await test_a2a.told(agent, asked))[-1].task
        except (A2AError, A2AClientError) as error:
            return Heard(failed=f"{type(error).__name__} {error}")
        self.context, self.task = made.context_id, made.id
        return self._heard(made)

    def _heard(self, task: Task) -> Heard:
        if task.status.state == TaskState.TASK_STATE_FAILED:
            return Heard(failed=json.dumps(MessageToDict(task.metadata)))
        if task.status.state != TaskState.TASK_STATE_INPUT_REQUIRED:
            return Heard(test_a2a.answer(task))
        asked = task.status.message.parts
        data = [MessageToDict(part.data) for part in asked if part.HasField("data")]
        self.digest = str(data[0].get("digest", ""))[:16] if data else ""
        return Heard(questions=tuple(part.text for part in asked if part.text))

    async def leave(self, text: str, begun: Callable[[], Awaitable[object]]) -> None:
        async with self._agent(streaming=True) as agent:
            async for event in agent.send_message(test_a2a.request(text, context=self.context)):
                task = event.task.id or event.status_update.task_id
                if task:
                    await begun()
                    await agent.cancel_task(CancelTaskRequest(id=task))
                    break


@dataclass(slots=True)
class ToolClient(Caller):
    """The client of MCP's SDK, over HTTP. `asks`: it can ask its user."""

    asks: bool = True
    session: str = ""
    will: str = LEAVE
    questions: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[McpClient]:
        headers = {"Authorization": f"Bearer {self.server.key}"}
        async with httpx2.AsyncClient(headers=headers, timeout=600) as http:
            transport = streamable_http_client(f"{self.server.url}/mcp", http_client=http)
            asks = self._elicit if self.asks else None
            async with McpClient(transport, elicitation_callback=asks) as client:
                yield client

    async def _elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.questions.append(params.message)
        if self.will == DENY:
            return ElicitResult(action="decline")
        if self.will == ALLOW:
            return ElicitResult(action="accept", content={"allow": True})
        (name,) = params.requested_schema["properties"]
        return ElicitResult(action="accept", content={name: self.will})

    async def say(self, text: str, will: str = LEAVE) -> Heard:
        self.will = will
        self.questions.clear()
        heard = await self._say(text)
        return Heard(heard.text, heard.failed, tuple(self.questions))

    async def _say(self, text: str) -> Heard:
        named = {"session": self.session} if self.session else {}
        try:
            async with self._client() as client:
                result = await client.call_tool("iact_ask", {"task": text, **named})
        except (MCPError, httpx2.HTTPError) as error:
            return Heard(failed=str(error))
        except BaseExceptionGroup as errors:
            return Heard(failed=" ".join(str(error) for error in _leaves(errors)))
        assert isinstance(result, CallToolResult)
        told = result.structured_content or {}
        self.session = str(told.get("session") or self.session)
        if result.is_error:
            return Heard(failed=json.dumps(told))
        return Heard(str(told["reply"]))

    async def leave(self, text: str, begun: Callable[[], Awaitable[object]]) -> None:
        async with self._client() as client:
            call = asyncio.create_task(client.call_tool("iact_ask", {"task": text}))
            await begun()
            call.cancel()
            await asyncio.wait([call])


def _leaves(errors: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    return [
        leaf for error in errors.exceptions
        for leaf in (_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    ]  # fmt: skip


class Deciding(Person):
    """An editor's user, who does what `will` says."""

    will: str = LEAVE

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[str] = []

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: object
    ) -> RequestPermissionResponse:
        self.questions.append(shown(tool_call))
        if self.will == LEAVE:
            await self.leaves.wait()
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        chosen = "once" if self.will == ALLOW else "no"
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))


@dataclass(slots=True)
class InEditor(Caller):
    """The client of ACP's SDK, which starts the command."""

    stack: AsyncExitStack = field(kw_only=True)
    person: Deciding = field(default_factory=Deciding)
    editor: Editor | None = None
    session: str = ""

    async def _opened(self) -> Editor:
        if self.editor is None:
            self.editor = await self.stack.enter_async_context(editing(self.server.product, self.person))
            if self.session:
                await self.editor.agent.load_session(
                    cwd=str(self.server.folder), session_id=self.session, mcp_servers=[]
                )
            else:
                self.session = (await self.editor.new(self.server.folder)).session_id
        return self.editor

    async def say(self, text: str, will: str = LEAVE) -> Heard:
        self.person.will = will
        self.person.questions.clear()
        heard = await self._say(text)
        if "Your next message is the answer" in heard.text or "Answer with" in heard.text:
            self.person.questions.append(heard.text)
            heard = await self._say(will)
        return Heard(heard.text, heard.failed, tuple(self.person.questions))

    async def _say(self, text: str) -> Heard:
        editor = await self._opened()
        self.person.updates.clear()
        try:
            await editor.prompt(self.session, text)
        except RequestError as error:
            return Heard(failed=f"{error.data} {error}")
        return Heard(self.person.said)

    async def leave(self, text: str, begun: Callable[[], Awaitable[object]]) -> None:
        editor = await self._opened()
        async with asyncio.TaskGroup() as group:
            prompt = group.create_task(editor.prompt(self.session, text))
            await begun()
            await editor.agent.cancel(session_id=self.session)
        assert prompt.result().stop_reason == "cancelled"

    async def killed(self) -> None:
        """Kill the command. The next message is sent to a new one, which loads the session."""
        assert self.editor is not None
        await self.editor.kill()
        self.editor, self.person = None, Deciding()


CHAT_PROGRAMS: Final = {
    "langchain-openai": ("langchain_program.py", "chat"),
    "langchain-openai, Responses": ("langchain_program.py", "responses"),
    "openai-agents": ("agents_program.py", "responses"),
    "openai-agents, chat": ("agents_program.py", "chat"),
}
"""The programs of `tests/clients`, each with the interface that it uses."""


@asynccontextmanager
async def caller(name: str, server: Server, *, by_call: bool = False) -> AsyncIterator[Caller]:
    """A program with one of the clients in `clients.CLIENTS`."""
    async with AsyncExitStack() as stack:
        match name:
            case "openai, Responses":
                yield OpenAIResponses(server, by_call)
            case "openai, chat":
                yield OpenAIChat(server, by_call)
            case "a2a-sdk":
                yield OtherAgent(server, by_call)
            case "mcp":
                yield ToolClient(server, by_call)
            case "agent-client-protocol":
                yield InEditor(server, by_call, stack=stack)
            case "@ag-ui/client":
                command = [NODE, str(NODE_FOLDER / "ag_ui_client.js"), f"{server.url}/ag-ui", server.key, "-"]
                yield FrontEnd(server, by_call, process=await stack.enter_async_context(_process(*command)))
            case _:
                file, interface = CHAT_PROGRAMS[name]
                python = str(server.clients / "bin" / "python")
                asked = "yes" if by_call else "no"
                command = [python, str(PROGRAMS / file), server.url, server.key, interface, asked]
                yield ChatProgram(
                    server, by_call, process=await stack.enter_async_context(_process(*command))
                )


@asynccontextmanager
async def _process(*command: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that ends with its standard input."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=variables(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )
    assert process.stdin is not None
    try:
        yield process
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), 60) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
