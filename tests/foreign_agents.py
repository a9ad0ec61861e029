"""Third-party agents, made with the official SDK: one that works, one without streams, and some that lie.

They share one port and are distinguished by the host name of the request.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.server.routes import create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

AGENT: Final = "agent.test"
"""An agent that works, with streams."""
PLAIN: Final = "plain.test"
"""The same without streams: clients must poll its tasks."""
MOVED: Final = "moved.test"
"""Redirects its clients to this machine."""
LIAR: Final = "liar.test"
"""Its card is that of an agent on another host."""
FLOOD: Final = "flood.test"
"""Its card never ends."""
REST: Final = "rest.test"
"""Accepts messages with the binding HTTP+JSON."""
OLD: Final = "old.test"
"""Uses version 0.3 of the protocol, with a card of that version."""
HOSTS: Final = (AGENT, PLAIN, MOVED, LIAR, FLOOD)


class Server:
    """The messages that the agents received, and their conversations. `stopped`: tasks that were cancelled."""

    def __init__(self) -> None:
        self.port = 0
        self.heard: list[str] = []
        self.contexts: list[str | None] = []
        self.tokens: list[str] = []
        self.led_here: list[str] = []
        self.stopped: list[str] = []
        self.hanging = threading.Event()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


class _Agent(AgentExecutor):
    def __init__(self, server: Server) -> None:
        self._server = server

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.get_user_input()
        self._server.heard.append(text)
        self._server.contexts.append(context.context_id)
        if text.startswith("echo "):
            await event_queue.enqueue_event(new_text_message(text.removeprefix("echo ")))
            return
        assert context.message is not None
        if text == "greet":
            await event_queue.enqueue_event(new_text_message("Hello from afar."))
            return
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        assert context.task_id is not None
        assert context.context_id is not None
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task is not None:
            await updater.add_artifact([Part(text=f"Booked for {text}.")], artifact_id="booking")
            await updater.complete()
            return
        await self._work(text, updater)

    async def _work(self, text: str, updater: TaskUpdater) -> None:
        match text.partition(" ")[0]:
            case "book":
                await updater.requires_input(updater.new_agent_message([Part(text="For which day?")]))
            case "count":
                await updater.start_work(updater.new_agent_message([Part(text="counting")]))
                for number, piece in enumerate(("One, ", "two, ", "three.")):
                    await updater.add_artifact([Part(text=piece)], artifact_id="count", append=number > 0)
                await updater.add_artifact([Part(raw=b"\x00\x01", filename="count.bin")], artifact_id="file")
                await updater.complete()
            case "fail":
                await updater.failed(updater.new_agent_message([Part(text="There are no trains.")]))
            case "hang":
                await updater.start_work(updater.new_agent_message([Part(text="thinking")]))
                self._server.hanging.set()
                await asyncio.Event().wait()
            case _:  # sends more than any client reads
                for number in range(60):
                    await updater.add_artifact(
                        [Part(text="blah " * 50_000)], artifact_id="talk", append=number > 0
                    )

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        self._server.stopped.append(context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def _old_card(host: str, scheme: str) -> dict[str, object]:
    return {
        "name": "Timetable", "description": "Knows the trains.", "version": "3", "url": f"{scheme}://{host}/rpc",
        "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0", "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [],
    }  # fmt: skip


def _card(host: str, *, streaming: bool, scheme: str) -> AgentCard:
    rest = host == REST
    return AgentCard(
        name="Timetable",
        description="Knows the trains.",
        version="3",
        supported_interfaces=[
            AgentInterface(
                url=f"{scheme}://{host}/{'rest' if rest else 'rpc'}",
                protocol_binding="HTTP+JSON" if rest else "JSONRPC",
                protocol_version="1.0",
            )
        ],
        capabilities=AgentCapabilities(streaming=streaming),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="book", name="Book", description="Books a train.", tags=["trains"])],
    )


async def _flood(request: Request) -> AsyncIterator[bytes]:
    yield b'{"name": "'
    while not await request.is_disconnected():
        yield b"blah " * 50_000


def _app(server: Server, scheme: str) -> Starlette:
    handler = DefaultRequestHandler(
        _Agent(server), InMemoryTaskStore(), _card(AGENT, streaming=True, scheme=scheme)
    )

    async def card(request: Request) -> Response:
        host = request.headers["host"]
        server.tokens.append(request.headers.get("authorization", ""))
        match host.partition(":")[0]:
            case "moved.test":
                return RedirectResponse(f"http://{server.address}/.well-known/agent-card.json", 302)
            case "liar.test":
                return JSONResponse(agent_card_to_dict(_card(AGENT, streaming=True, scheme=scheme)))
            case "flood.test":
                return StreamingResponse(_flood(request), media_type="application/json")
            case "old.test":
                return JSONResponse(_old_card(host, scheme))
            case "127.0.0.1":
                server.led_here.append(str(request.url))
        return JSONResponse(agent_card_to_dict(_card(host, streaming=host != PLAIN, scheme=scheme)))

    return Starlette(
        routes=[
            Route("/.well-known/agent-card.json", card),
            *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True),
            *create_rest_routes(handler, path_prefix="/rest"),
        ]
    )


@contextmanager
def foreign_agents(*, tls: Sequence[str] = ()) -> Iterator[Server]:
    """Serve the agents on a port of this machine. `tls`: files with certificate and key, for encrypted connections."""
    server = Server()
    scheme = "https" if tls else "http"
    config = uvicorn.Config(
        _app(server, scheme), host="127.0.0.1", port=0, log_config=None, timeout_graceful_shutdown=1, loop="asyncio",
        ssl_certfile=tls[0] if tls else None, ssl_keyfile=tls[1] if tls else None,
    )  # fmt: skip
    running, ready = _Ready(config), threading.Event()
    running.ready = ready
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        assert ready.wait(300)
        server.port = running.servers[0].sockets[0].getsockname()[1]
        yield server
    finally:
        running.should_exit = True
        thread.join(300)


class _Ready(uvicorn.Server):
    """A server that reports when it accepts connections."""

    ready: threading.Event

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup()
        self.ready.set()
