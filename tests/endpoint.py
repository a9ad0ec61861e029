"""A scripted model endpoint that uses the real wire protocol, for tests from outside.

Acceptance tests need a model whose every word is known, with the same HTTP, server-sent events and usage
figures as a real one; a fake port would leave the client untested. It runs in its own thread with its own
event loop, so the code under test may block, crash or be another process:

    gate = Gate()
    with Endpoint({
        "/": ["Let me ask.\\n\\n```CALL coder\\nFix it.\\n```", "Done."],
        "/coder": [Reply("Working…", gates={4: gate}), Reply(error=HttpError(429))],
    }) as endpoint:
        … point OPENAI_BASE_URL at endpoint.url …
        assert gate.wait()          # four characters were sent, the stream waits
        gate.release()
    endpoint.assert_used()

A script is either a mapping from agent path to its replies, or a function `(Request) -> Reply | str`
that runs in the endpoint's thread. The path is the one in the agent's opening, `You are agent PATH,
called by CALLER.`, so agents that run in parallel each get their own replies; the key "*" serves agents
without a key of their own, and requests that have no opening at all. Replies are used in order (a retry
takes the next one), unless `Reply(repeat=True)`. With `by_turn=True`, they are chosen by the number of the
agent's replies in the request's history, so a session that was killed and resumed gets the same replies as
without the kill. A request without a scripted reply gets HTTP 400, and `assert_used()` fails.

Usage is computed from the messages: four characters are one token, and the cached tokens are the
longest common prefix with any earlier request. As a separate process:

    python -m tests.endpoint --script FILE.json --port 0

prints `endpoint: ready http://127.0.0.1:PORT/v1`. The file: {"agents": {PATH: [reply, …]}, "api_key":
…, "by_turn": …, "models": […]}, where a reply is a string or an object with the fields of `Reply`
(`"error": [status, body, headers]`, `"gates": {"4": "name"}`). It is controlled over HTTP:
`GET /control/requests`, `GET /control/gates`, `POST /control/release/NAME`, `GET /control/problems`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Final

from iact.core.ports import JSON
from tests.http_protocol import Connection, Head
from tests.prefix import Conversation
from tests.scripted import (
    CHARACTERS_PER_TOKEN,
    Gate,
    HttpError,
    Player,
    Reply,
    Request,
    Script,
    Unforeseen,
    settle,
    tokens,
)

__all__ = ["Endpoint", "Gate", "HttpError", "Reply", "Request", "Script", "load", "tokens"]

_OPENING: Final = re.compile(r"^You are agent (\S+), called by .+\.$", re.MULTILINE)


class _Cache:
    """The prefix cache that a real endpoint would have. Keeps every earlier prompt."""

    def __init__(self) -> None:
        self._prompts: list[str] = []

    def look_up_and_add(self, prompt: str) -> int:
        """The length in characters of the longest prefix shared with an earlier prompt. Adds the prompt."""
        shared = max((_common_prefix(prompt, earlier) for earlier in self._prompts), default=0)
        self._prompts = [earlier for earlier in self._prompts if not prompt.startswith(earlier)]
        self._prompts.append(prompt)
        return shared


def _common_prefix(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _messages(body: Mapping[str, JSON]) -> tuple[tuple[str, str], ...]:
    found = body.get("messages")
    if not isinstance(found, list):
        return ()
    return tuple(
        (str(item.get("role")), _content(item.get("content"))) for item in found if isinstance(item, dict)
    )


def _content(content: JSON) -> str:
    if isinstance(content, list):  # content as parts
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def _opening(messages: Sequence[tuple[str, str]]) -> tuple[str, int]:
    """The agent's path and the index of its opening. Examples of a static prompt may come before it."""
    for index in range(len(messages) - 1, -1, -1):
        match = _OPENING.match(messages[index][1])
        if match and messages[index][0] == "user":
            return match.group(1), index
    for index, (role, content) in enumerate(messages):
        match = _OPENING.search(content)
        if match and role == "user":
            return match.group(1), index
    return "", 0


class Endpoint:
    """The server. A context manager; `start()` and `stop()` do the same explicitly.

    `api_key`: if given, requests with another key get HTTP 401. `reject`: names of request fields that get HTTP
    400, as from an endpoint that doesn't know them. `crashes`: a process that asks it may be killed. `requests`
    lists all chat requests in the order of arrival.
    """

    def __init__(
        self,
        script: Script,
        *,
        port: int = 0,
        api_key: str | None = None,
        by_turn: bool = False,
        crashes: bool = False,
        models: Sequence[str] = ("scripted",),
        reject: Sequence[str] = (),
        gates: Mapping[str, Gate] | None = None,
    ) -> None:
        self.requests: list[Request] = []
        self.conversation = Conversation(crashes=crashes)
        self.problems: list[str] = []
        self.connections = 0
        self._player = Player(script, by_turn)
        self._cache = _Cache()
        self._port = port
        self._api_key = api_key
        self._models = tuple(models)
        self._reject = tuple(reject)
        self._gates = dict(gates or {})
        self.open: set[Connection] = set()
        self._ready: Future[int] = Future()
        self._changed = threading.Condition()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="scripted-endpoint", daemon=True)

    # --- for tests --------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The base URL, as in OPENAI_BASE_URL."""
        return f"http://127.0.0.1:{self._ready.result(20)}/v1"

    def start(self) -> Endpoint:
        self._thread.start()
        self._ready.result(20)
        return self

    def stop(self) -> None:
        """Close all connections and end the thread."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(300)

    def __enter__(self) -> Endpoint:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def of(self, agent: str) -> list[Request]:
        """The requests of one agent."""
        return [request for request in self.requests if request.agent == agent]

    def wait_for(self, count: int, *, agent: str | None = None, timeout: float = 300.0) -> bool:
        """Block until `count` requests (of `agent`) have arrived. Returns False after `timeout` seconds."""

        def enough() -> bool:
            return len(self.requests if agent is None else self.of(agent)) >= count

        with self._changed:
            return self._changed.wait_for(enough, timeout)

    def assert_used(self) -> None:
        """Fail unless every scripted reply was requested, and every request had a scripted reply."""
        wrong = self.problems + [f"never asked for: {line}" for line in self._player.unused()]
        if wrong:
            raise AssertionError("The scripted endpoint was not used as scripted:\n" + "\n".join(wrong))

    # --- the server -------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            self.problems.append(f"the endpoint itself failed: {error!r}")

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            server = await self._loop.create_server(
                lambda: Connection(self, group), "127.0.0.1", self._port, backlog=4096
            )
            self._ready.set_result(server.sockets[0].getsockname()[1])
            await self._stop.wait()
            server.close()
            for connection in list(self.open):
                connection.abort()

    async def handle(self, connection: Connection, head: Head, content: bytes) -> None:
        """Answer one HTTP request."""
        if not self._admits(head):
            return connection.answer(401, _error(401, "Incorrect API key provided."))
        match head.method, head.path:
            case "POST", "/v1/chat/completions":
                await self._chat(connection, head, content)
            case "GET", "/v1/models":
                data: list[JSON] = [
                    {"id": name, "object": "model", "owned_by": "test"} for name in self._models
                ]
                connection.answer(200, {"object": "list", "data": data})
            case _, path if path.startswith("/control/"):
                self._control(connection, path.removeprefix("/control/"))
            case _:
                connection.answer(404, _error(404, f"There is no {head.method} {head.path} here."))
        return None

    def _admits(self, head: Head) -> bool:
        if self._api_key is None or not head.path.startswith("/v1/"):
            return True
        return head.headers.get("authorization") == f"Bearer {self._api_key}"

    def _control(self, connection: Connection, what: str) -> None:
        if what == "requests":
            listed: list[JSON] = [_listed(request) for request in self.requests]
            connection.answer(200, listed)
        elif what == "gates":
            gates: dict[str, JSON] = {
                name: {"arrived": gate.arrived.done(), "released": gate.released.done()}
                for name, gate in self._gates.items()
            }
            connection.answer(200, gates)
        elif what == "problems":
            wrong: list[JSON] = [
                *self.problems,
                *(f"never asked for: {line}" for line in self._player.unused()),
            ]
            connection.answer(200, wrong)
        elif what.startswith("release/") and (gate := self._gates.get(what.removeprefix("release/"))):
            gate.release()
            connection.answer(200, {})
        else:
            connection.answer(404, _error(404, f"There is no control {what!r} here."))

    async def _chat(self, connection: Connection, head: Head, content: bytes) -> None:
        try:
            body: JSON = json.loads(content)
        except ValueError:
            body = None
        if not isinstance(body, dict) or not body.get("messages"):
            self.problems.append(f"a chat request that isn't one: {content[:200]!r}")
            return connection.answer(400, _error(400, "The body is not a chat request."))
        for name in self._reject:
            if name in body:
                return connection.answer(400, _error(400, f"Unrecognized request argument supplied: {name}"))
        request = self._record(head, body)
        try:
            reply = self._player.choose(request)
            await _Answer(connection, request, reply).play()
        except Unforeseen as error:
            self.problems.append(str(error))
            connection.answer(400, _error(400, str(error)))
        except asyncio.CancelledError:
            request.disconnected = True
            raise
        finally:
            settle(request.ended)
        return None

    def _record(self, head: Head, body: dict[str, JSON]) -> Request:
        messages = _messages(body)
        agent, start = _opening(messages)
        prompt = "".join(f"<{role}>{content}" for role, content in messages)
        request = Request(
            number=len(self.requests) + 1,
            headers=head.headers,
            body=body,
            messages=messages,
            agent=agent,
            turn=sum(role == "assistant" for role, _ in messages[start:]),
            prompt_tokens=tokens(prompt),
            cached_tokens=self._cache.look_up_and_add(prompt) // CHARACTERS_PER_TOKEN,
        )
        with self._changed:
            self.requests.append(request)
            self.conversation.take(str(request.body.get("model")), request.agent, request.messages)
            self._changed.notify_all()
        return request


def _listed(request: Request) -> JSON:
    return {
        "number": request.number,
        "agent": request.agent,
        "turn": request.turn,
        "sent": request.sent,
        "disconnected": request.disconnected,
        "ended": request.ended.done(),
        "prompt_tokens": request.prompt_tokens,
        "cached_tokens": request.cached_tokens,
        "body": dict(request.body),
    }


def _error(status: int, message: str) -> JSON:
    return {"error": {"message": message, "type": "scripted", "code": None, "param": None, "status": status}}


class _Answer:
    """Sends one reply on one connection."""

    def __init__(self, connection: Connection, request: Request, reply: Reply) -> None:
        self._connection = connection
        self._request = request
        self._reply = reply
        self._streams = request.body.get("stream") is True

    async def play(self) -> None:
        reply, connection = self._reply, self._connection
        if reply.first_delay:
            await asyncio.sleep(reply.first_delay)
        if reply.hang:
            await connection.hang()
        if reply.error is not None:
            status, body, headers = reply.error
            connection.answer(status, _error(status, body) if isinstance(body, str) else body, headers)
        elif reply.garbage is not None and reply.garbage_after is None:
            connection.answer_raw(200, reply.garbage, reply.content_type, {})
        elif self._streams:
            await self._stream()
        else:
            connection.answer(200, self._whole())

    async def _stream(self) -> None:
        reply, connection = self._reply, self._connection
        connection.start_stream(reply.content_type)
        self._event({"role": "assistant", "content": ""})
        if reply.reasoning:
            self._event({"reasoning_content": reply.reasoning})
        position = 0
        for stop in self._stops():
            while position < stop:
                end = min(stop, position + reply.chunk)
                if reply.delay:
                    await asyncio.sleep(reply.delay)
                self._event({"content": reply.text[position:end]})
                await asyncio.sleep(0)  # notices a client that has disconnected
                self._request.sent = position = end
            if await self._stop_at(position):
                return
        for delta in reply.deltas:
            self._event(delta)
            await asyncio.sleep(0)
        if reply.finish is not None:
            self._event({}, finish=reply.finish)
        if reply.usage and self._wants_usage():
            self._send({"choices": [], "usage": self._usage()})
        if reply.done:
            connection.send_event("[DONE]")
        connection.end_stream()

    def _stops(self) -> list[int]:
        reply = self._reply
        places = (*reply.gates, reply.cut_after, reply.hang_after, reply.garbage_after, len(reply.text))
        return sorted({min(place, len(reply.text)) for place in places if place is not None})

    async def _stop_at(self, position: int) -> bool:
        """Do what is scripted at `position`. Returns True if this ended the stream."""
        reply = self._reply
        if gate := reply.gates.get(position):
            await gate.pass_through()
        if reply.hang_after == position:
            await self._connection.hang()
        if reply.garbage_after == position and reply.garbage is not None:
            self._connection.send_chunk(reply.garbage)
            self._connection.end_stream()
            return True
        if reply.cut_after == position:
            self._connection.cut()
            return True
        return False

    def _wants_usage(self) -> bool:
        options = self._request.body.get("stream_options")
        return isinstance(options, dict) and options.get("include_usage") is True

    def _usage(self) -> JSON:
        request = self._request
        completion = self._reply.completion
        if completion is None:
            completion = tokens(self._reply.text) + tokens(self._reply.reasoning)
        return {
            "prompt_tokens": request.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": request.prompt_tokens + completion,
            "prompt_tokens_details": {"cached_tokens": request.cached_tokens},
        }

    def _event(self, delta: dict[str, JSON], finish: str | None = None) -> None:
        self._send({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def _send(self, fields: dict[str, JSON]) -> None:
        self._connection.send_event(json.dumps(self._frame("chat.completion.chunk") | fields))

    def _frame(self, kind: str) -> dict[str, JSON]:
        model = self._request.body.get("model")
        return {
            "id": f"scripted-{self._request.number}",
            "object": kind,
            "created": int(time.time()),
            "model": model,
        }

    def _whole(self) -> JSON:
        """The reply to a request that doesn't ask for a stream."""
        message: JSON = {"role": "assistant", "content": self._reply.text}
        choice: JSON = {"index": 0, "message": message, "finish_reason": self._reply.finish}
        self._request.sent = len(self._reply.text)
        return self._frame("chat.completion") | {"choices": [choice], "usage": self._usage()}


# --- as a process of its own ----------------------------------------------------------------------


def load(text: str, *, port: int = 0) -> Endpoint:
    """Create an endpoint from the text of a script file."""
    script = json.loads(text)
    gates: dict[str, Gate] = {}
    agents = {path: [_load_reply(item, gates) for item in items] for path, items in script["agents"].items()}
    return Endpoint(
        agents,
        port=port,
        api_key=script.get("api_key"),
        by_turn=script.get("by_turn", False),
        models=script.get("models", ["scripted"]),
        gates=gates,
    )


def _load_reply(item: object, gates: dict[str, Gate]) -> Reply:
    if isinstance(item, str):
        return Reply(item)
    if not isinstance(item, dict):
        raise ValueError(f"A reply is a string or an object, not {item!r}.")
    fields = dict(item)
    if "error" in fields:
        fields["error"] = HttpError(*fields["error"])
    if "garbage" in fields:
        fields["garbage"] = fields["garbage"].encode()
    named = fields.pop("gates", {})
    return Reply(**fields, gates={int(at): gates.setdefault(name, Gate(name)) for at, name in named.items()})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.endpoint", description=__doc__)
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with load(options.script.read_text(encoding="utf-8"), port=options.port) as endpoint:
        print(f"endpoint: ready {endpoint.url}", flush=True)
        ended.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
