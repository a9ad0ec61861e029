"""The model that all frameworks are measured with: a scripted endpoint of the chat-completions protocol.

    python -m benchmarks.peers.endpoint

runs in its own process, so that its work is in no framework's processor time, and prints its address. Its
replies depend only on the task in the request, so it needs no state, and a run can be resumed:

    Look through N files …      one call of `read` a turn, N times, then the answer
    Have N parts done …         N calls of `call` in one reply, each with "Do part …", then the answer
    Go down N levels …          one call of `call` with one level less; the deepest answers at once
    Do part N after M ms …      the answer, M milliseconds later
    Do part N when told …       the answer, after a POST to /release; /waiting counts the waiting requests

Calls have the form that the request asks for: function calls if it has `tools`, else iact's action blocks. A
stream sends the reply in one event. The model named `tokens` sends it in pieces of four characters, and uses a
command of the shell instead of `read`. /seen reports how many bytes of prompts came in, and how many of them
were in the same place of an earlier request, which a cache of prefixes could have kept.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from benchmarks.tree.measure import DONE, TEXT

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
Kind: TypeAlias = Literal["look", "fan", "down", "part"]

LOOK: Final = "Look through {count} files, one after the other."
FAN: Final = "Have {count} parts done, {how}."
DOWN: Final = "Go down {count} levels."
PART: Final = "Do part {number} {how}."
READ: Final = "echo file {number}"
AFTER: Final = "after {ms} ms"
WHEN_TOLD: Final = "when told"

_TASKS: Final = re.compile(
    r"Look through (?P<look>\d+) files|Have (?P<fan>\d+) parts done, (?P<each>when told|after \d+ ms)"
    r"|Go down (?P<down>\d+) levels|Do part (?P<part>\d+) (?P<how>when told|after \d+ ms)"
)
TOKENS: Final = "tokens"
_TOKEN: Final = 4
_HEAD_END: Final = b"\r\n\r\n"


class Task(NamedTuple):
    """The task of a conversation. `number`: how many files, parts or levels, or which part. `how`: how a part ends."""

    kind: Kind
    number: int
    how: str
    name: str


class Said(NamedTuple):
    """A reply: its text, and calls as (function, text). `wait`: seconds; None: until released."""

    text: str
    calls: Sequence[tuple[str, str]] = ()
    wait: float | None = 0.0


def task_of(messages: Sequence[Mapping[str, JSON]]) -> tuple[Task, int]:
    """The newest task in a user message, and the number of the model's replies since."""
    turns = 0
    for message in reversed(messages):
        if message.get("role") == "assistant":
            turns += 1
        elif message.get("role") == "user":
            found = list(_TASKS.finditer(_text(message.get("content"))))
            if found:
                return _task(found[-1]), turns
    raise ValueError("no message holds a task that this endpoint knows")


def _task(found: re.Match[str]) -> Task:
    for kind in ("look", "fan", "down", "part"):
        if found[kind] is not None:
            return Task(kind, int(found[kind]), found["each"] or found["how"] or "", found[0])
    raise AssertionError(found)


def _text(content: JSON) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return ""


def reply_to(task: Task, turn: int) -> Said:
    """The model's reply at turn `turn` (from 0) of this task."""
    match task.kind:
        case "look" if turn < task.number:
            return Said(TEXT.format(number=turn), [("read", READ.format(number=turn))])
        case "fan" if turn == 0:
            parts = [PART.format(number=number, how=task.how) for number in range(task.number)]
            return Said("All at once.", [("call", part) for part in parts])
        case "down" if turn == 0 and task.number:
            return Said("Further down.", [("call", DOWN.format(count=task.number - 1))])
        case "part":
            told = task.how == WHEN_TOLD
            return Said(DONE, wait=None if told else int(task.how.split()[1]) / 1000)
        case _:
            return Said(DONE)


def as_blocks(said: Said, read: str = "t.read") -> str:
    """The reply in iact's language. `read`: the name of the reading function."""
    several = len(said.calls) > 1
    blocks = []
    for number, (function, text) in enumerate(said.calls):
        opened = read if function == "read" else f"{'CALL_ASYNC' if several else 'CALL'} child{number}"
        blocks.append(f"```{opened}\n{text}\n```")
    if several:
        blocks.append("```WAIT\n```")
    return "\n\n".join([said.text, *blocks])


def as_message(said: Said, turn: int, tools: Mapping[str, str]) -> dict[str, JSON]:
    """The reply as an assistant message with function calls. The answer goes to `final_answer` if that tool exists.

    `tools`: the parameter of each tool.
    """
    calls = said.calls or ([("final_answer", said.text)] if "final_answer" in tools else [])
    message: dict[str, JSON] = {"role": "assistant", "content": said.text}
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{turn}_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps({tools.get(name, "text"): text})}}
            for number, (name, text) in enumerate(calls)
        ]  # fmt: skip
    return message


@dataclass
class Prompts:
    """Counts how many bytes of the requests' JSON were in the same place of an earlier request."""

    requests: int = 0
    sent: int = 0
    same: int = 0
    """Bytes that were in the previous request of the same conversation."""
    cached: int = 0
    """Bytes that were in any earlier request."""
    latest: dict[str, list[str]] = field(default_factory=dict)

    def take(self, name: str, body: Mapping[str, JSON], messages: Sequence[Mapping[str, JSON]]) -> None:
        """Count one request of the conversation `name`. Parts that are no messages (the tools) come first."""
        parts = [json.dumps(body.get("tools"), sort_keys=True)]
        parts += [json.dumps(message, sort_keys=True) for message in messages]
        before = self.latest.get(name)
        self.requests += 1
        self.sent += sum(map(len, parts))
        same = _shared(before, parts) if before is not None else 0
        self.same += same
        self.cached += max((same, *(_shared(other, parts) for other in self.latest.values())))
        self.latest[name] = parts

    def told(self) -> dict[str, JSON]:
        """The counts, as the answer to /seen."""
        return {"requests": self.requests, "sent": self.sent, "same": self.same, "cached": self.cached}


def _shared(before: Sequence[str], now: Sequence[str]) -> int:
    length = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            return length + next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
        length += len(new)
    return length


class Server:
    """The state that all connections share. `counting`: compare prompts with earlier ones, which takes time."""

    def __init__(self) -> None:
        self.waiting = 0
        self.told = asyncio.Event()
        self.counting = False
        self.prompts = Prompts()

    def control(self, path: str) -> dict[str, JSON]:
        """Answer a request that is not for the model."""
        match path:
            case "/release":
                self.told.set()
            case "/count":
                self.counting, self.prompts, self.told = True, Prompts(), asyncio.Event()
            case "/ignore":
                self.counting, self.prompts, self.told = False, Prompts(), asyncio.Event()
            case "/seen":
                return self.prompts.told()
            case _:
                pass
        return {"waiting": self.waiting}

    async def chat(self, body: Mapping[str, JSON]) -> tuple[Said, Mapping[str, JSON]]:
        """Wait until the reply is due, and return it."""
        messages = body["messages"]
        assert isinstance(messages, Sequence)
        sent = [one for one in messages if isinstance(one, Mapping)]
        task, turn = task_of(sent)
        if self.counting:
            self.prompts.take(task.name, body, sent)
        said = reply_to(task, turn)
        if said.wait is None:
            self.waiting += 1
            await self.told.wait()
            self.waiting -= 1
        elif said.wait:
            await asyncio.sleep(said.wait)
        return said, as_message(said, turn, _parameters(body.get("tools")))


def _parameters(tools: JSON) -> dict[str, str]:
    """The first parameter of each function that a request offers."""
    found = {}
    for one in tools if isinstance(tools, list) else ():
        function = one["function"]
        found[str(function["name"])] = next(iter(function["parameters"]["properties"]))
    return found


class Connection(asyncio.Protocol):
    """One keep-alive connection, one request at a time."""

    def __init__(self, server: Server, group: asyncio.TaskGroup) -> None:
        self._server, self._group = server, group
        self._parts: list[bytes] = []
        self._wanted = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)
        self._wanted -= len(data)
        if self._wanted > 0:
            return  # a long body; tried again when it is complete
        raw = b"".join(self._parts)
        head, found, body = raw.partition(_HEAD_END)
        size = _length(head) if found else 0
        self._parts = [raw]
        self._wanted = size - len(body) if found else 1
        if self._wanted <= 0 and found:
            self._parts, self._wanted = [body[size:]] if body[size:] else [], 0
            self._group.create_task(self._answer(head.split(b" ", 2)[1].decode(), body[:size]))

    async def _answer(self, path: str, content: bytes) -> None:
        if not path.endswith("/chat/completions"):
            self._send(200, "application/json", json.dumps(self._server.control(path)).encode())
            return
        body = json.loads(content)
        try:
            said, message = await self._server.chat(body)
        except ValueError as error:
            self._send(400, "application/json", json.dumps({"error": {"message": str(error)}}).encode())
            return
        if body.get("stream"):
            # Only iact sends no tools and asks for a stream.
            shell = body.get("model") == TOKENS
            text = said.text if body.get("tools") else as_blocks(said, "shell.run" if shell else "t.read")
            self._send(200, "text/event-stream", _stream(body, text, message))
        else:
            whole = {**_frame(body, "chat.completion"), "usage": _USAGE}
            finish = "tool_calls" if "tool_calls" in message else "stop"
            whole["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
            self._send(200, "application/json", json.dumps(whole).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            head = (
                f"HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
            )
            self._transport.write(head.encode() + body)


_USAGE: Final[JSON] = {"prompt_tokens": 100, "completion_tokens": 25, "total_tokens": 125}


def _length(head: bytes) -> int:
    found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return int(found[1]) if found else 0


def _frame(body: Mapping[str, JSON], kind: str) -> dict[str, JSON]:
    return {"id": "scripted", "object": kind, "created": 1, "model": body.get("model")}


def _stream(body: Mapping[str, JSON], text: str, message: Mapping[str, JSON]) -> bytes:
    """The reply as server-sent events."""
    size = _TOKEN if body.get("model") == TOKENS else len(text)
    deltas: list[JSON] = [
        {"role": "assistant", "content": text[at : at + size]} for at in range(0, len(text), size)
    ]
    calls = message.get("tool_calls") if body.get("tools") else None
    if isinstance(calls, Sequence):
        deltas.append(
            {
                "tool_calls": [
                    {"index": at, **call} for at, call in enumerate(calls) if isinstance(call, Mapping)
                ]
            }
        )
    frame = _frame(body, "chat.completion.chunk")
    finish = "tool_calls" if calls else "stop"
    choices: list[JSON] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    events: list[JSON] = [{**frame, "choices": [choice]} for choice in choices]
    events.append({**frame, "choices": [], "usage": _USAGE})
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode() + b"data: [DONE]\n\n"


async def serve(ready: Callable[[str], None]) -> None:
    """Serve on a free port of this machine until a signal arrives. `ready` is called with the address."""
    loop, ended, server = asyncio.get_running_loop(), asyncio.Event(), Server()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with asyncio.TaskGroup() as group:
        listening = await loop.create_server(lambda: Connection(server, group), "127.0.0.1", 0, backlog=4096)
        ready(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
        await ended.wait()
        server.told.set()
        listening.close()


if __name__ == "__main__":
    asyncio.run(serve(lambda address: print(address, flush=True)))
