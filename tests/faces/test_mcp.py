"""The MCP server inside the test process: questions about hosts, pages of the list, and reading files."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

import pytest
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    BlobResourceContents,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    TextResourceContents,
)
from starlette.types import Message

from iact.accounts.rights import LOCAL, Principal, Right
from iact.core.ports import JSON
from iact.core.records.dialogue import Reply, Say
from iact.core.records.hosts import HostAnswer
from iact.core.records.record import Record
from iact.core.session.hosts import kept_hosts
from iact.core.session.live import Live
from iact.core.session.runtime import Runtime
from iact.core.views.questions import OpenQuestions
from iact.faces.http.access import Access
from iact.faces.mcp.ask import NewSessions
from iact.faces.mcp.caller import OneCaller
from iact.faces.mcp.server import mcp_server
from iact.faces.mcp.streamable_http import StreamableHTTP
from tests.core.session.fakes import FakeHost, ScriptedModel, World, replies, runtime
from tests.core.session.test_forms import asks
from tests.core.session.test_hosts import fetch


def server(opened: Runtime) -> Server[None]:
    return mcp_server(OneCaller(opened), NewSessions())


@pytest.mark.parametrize("era", ["2026-07-28", "legacy"])
@pytest.mark.parametrize(
    ("answer", "reached", "kept"),
    [
        (
            ElicitResult(action="accept", content={"allow": True, "for": "always"}),
            "yes",
            [("web", "new.example")],
        ),
        (ElicitResult(action="accept", content={"allow": True, "for": "nonsense"}), "yes", []),
        (ElicitResult(action="decline"), "no", []),
        (ElicitResult(action="cancel"), "no", []),
    ],
)
async def test_a_host_is_asked_about_and_reached_as_the_user_says(
    tmp_path: Path, era: str, answer: ElicitResult, reached: str, kept: list[tuple[str, str]]
) -> None:
    world = World()
    asked: list[ElicitRequestParams] = []

    async def answering(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params)
        return answer

    script = replies({"/": [fetch("new.example:443"), "Done."]})
    async with (
        runtime(tmp_path, script, world=world, host=FakeHost(more=True)) as opened,
        Client(server(opened), mode=era, elicitation_callback=answering) as client,
    ):
        await client.call_tool("iact_ask", {"task": "Fetch it."})
        (session,) = opened.opened.values()
        said = [one.content for one in session.records() if isinstance(one.content, HostAnswer)]
    (question,) = asked
    assert isinstance(question, ElicitRequestFormParams)
    assert "the module web wants to reach new.example" in question.message
    assert question.requested_schema["properties"]["for"]["enum"] == ["once", "session", "always"]
    assert [text for _, _, text in world.done] == [f"new.example:443={reached}"]
    assert [one.allow for one in said] == [reached == "yes"]
    assert kept_hosts(tmp_path) == kept


@pytest.mark.parametrize("era", ["2026-07-28", "legacy"])
async def test_a_call_that_is_given_up_before_its_message_is_stored_ends_the_work(
    tmp_path: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model is asked while the disk still writes what was said."""
    held, stored, durable = asyncio.Event(), asyncio.Event(), Live.durable

    async def slowly(live: Live, record: Record) -> Record:
        if isinstance(record.content, Say):
            await stored.wait()
        return await durable(live, record)

    monkeypatch.setattr(Live, "durable", slowly)
    model = ScriptedModel(replies({"/": ["It takes its time to say this."]}), holds={"/": held}, crashes=True)
    async with (
        runtime(tmp_path, replies({}), model=model) as opened,
        Client(server(opened), mode=era) as client,
        asyncio.timeout(60),
    ):
        call = asyncio.create_task(client.call_tool("iact_ask", {"task": "Do it."}))
        while not model.asked:  # noqa: ASYNC110  # a fake, which tells nobody
            await asyncio.sleep(0)
        call.cancel()
        for _ in range(100):  # the server hears of it
            await asyncio.sleep(0)
        stored.set()
        await asyncio.gather(call, return_exceptions=True)
        (session,) = opened.opened.values()
        while not (said := [one for one in session.records() if isinstance(one.content, Say)]):  # noqa: ASYNC110  # a thread of its own writes it
            await asyncio.sleep(0)
        reply = (await session.answer(said[0].n)).content
        assert isinstance(reply, Reply)
        assert not held.is_set()
        assert reply.status == "cancelled"


@pytest.mark.parametrize("era", ["2026-07-28", "legacy"])
@pytest.mark.parametrize(
    ("answer", "heard"),
    [
        (
            ElicitResult(action="accept", content={"town": "Oslo", "nights": 3}),
            'accept {"town": "Oslo", "nights": 3, "room": "single"}',
        ),
        (ElicitResult(action="decline"), "decline {}"),
        (ElicitResult(action="cancel"), "decline {}"),
    ],
)
async def test_what_a_module_asks_is_asked_of_the_clients_user(
    tmp_path: Path, era: str, answer: ElicitResult, heard: str
) -> None:
    world = World()
    asked: list[ElicitRequestParams] = []

    async def answering(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params)
        return answer

    async with (
        runtime(tmp_path, replies({"/": [asks(), "Done."]}), world=world) as opened,
        Client(server(opened), mode=era, elicitation_callback=answering) as client,
    ):
        await client.call_tool("iact_ask", {"task": "Book it."})
    (question,) = asked
    assert isinstance(question, ElicitRequestFormParams)
    assert "t.read asks you something. These are the words of the module t:" in question.message
    properties = question.requested_schema["properties"]
    assert properties["room"] == {"type": "string", "enum": ["single", "double"], "default": "single"}
    assert question.requested_schema["required"] == ["town"]
    assert [text for _, _, text in world.done] == [heard]


async def test_the_list_comes_in_pages_and_each_session_is_on_one(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({})) as opened, Client(server(opened)) as client:
        made = {(await opened.open()).id for _ in range(31)}
        while not all(session.records() for session in opened.opened.values()):  # noqa: ASYNC110  # what is on disk is listed
            await asyncio.sleep(0)
        first = await client.list_resources()
        assert (len(first.resources), first.next_cursor is None) == (90, False)
        second = await client.list_resources(cursor=first.next_cursor)
        assert (len(second.resources), second.next_cursor) == (3, None)
        assert {one.uri.split("/")[3] for one in [*first.resources, *second.resources]} == made
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.name for one in templates] == ["journal", "variable", "file"]


async def test_files_are_read_as_they_are_and_nothing_outside_of_the_workspace(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({})) as opened, Client(server(opened)) as client:
        session = await opened.open()
        folder = session.workspace
        (folder / "my notes").mkdir(parents=True)
        (folder / "my notes" / "a?.md").write_text("# Größe\n", encoding="utf-8")
        (folder / "raw.bin").write_bytes(b"\xff\x00\xfe")
        (folder / "way out").symlink_to(session.journal)
        base = f"iact://session/{session.id}/files"
        (listed,) = (await client.read_resource(base)).contents
        assert isinstance(listed, TextResourceContents)
        files = {one["path"]: one["uri"] for one in json.loads(listed.text)}
        assert set(files) == {"my notes/a?.md", "raw.bin"}
        (text,) = (await client.read_resource(files["my notes/a?.md"])).contents
        assert isinstance(text, TextResourceContents)
        assert text.text == "# Größe\n"
        (raw,) = (await client.read_resource(files["raw.bin"])).contents
        assert isinstance(raw, BlobResourceContents)
        assert base64.b64decode(raw.blob) == b"\xff\x00\xfe"
        for path in ("../journal.md", "%2E%2E/journal.md", "way%20out", "none", "my%20notes"):
            with pytest.raises(MCPError):
                await client.read_resource(f"{base}/{path}")


async def test_who_may_not_answer_is_not_asked(tmp_path: Path) -> None:
    asked: list[ElicitRequestParams] = []

    async def answering(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params)
        return ElicitResult(action="accept", content={"allow": True})

    class Asker(OneCaller):
        def may(self, context: ServerRequestContext[None], right: Right) -> bool:
            return right != "clear"

    script = replies({"/": [fetch("new.example:443"), "Done."]})
    world = World()
    async with (
        runtime(tmp_path, script, world=world, host=FakeHost(more=True)) as opened,
        Client(mcp_server(Asker(opened), NewSessions()), elicitation_callback=answering) as client,
        asyncio.TaskGroup() as group,
    ):
        call = group.create_task(client.call_tool("iact_ask", {"task": "Fetch it."}))
        while not (found := opened.opened):
            await client.list_tools()
        (session,) = found.values()
        while not (waiting := OpenQuestions(session.records()).waiting):
            await client.list_tools()
        for _ in range(20):
            await client.list_tools()
        assert not call.done(), "nothing but the session's own time limit answers"
        await session.clear_host(waiting[0].n, False, "once")
        await call
    assert asked == []
    assert [text for _, _, text in world.done] == ["new.example:443=no"]


async def test_an_old_clients_session_may_end_while_it_is_told_something(tmp_path: Path) -> None:
    """It is acknowledged once, and what it said after its own end goes nowhere."""
    async with runtime(tmp_path, replies({})) as opened, asyncio.TaskGroup() as group:
        service = StreamableHTTP(Access(Local(opened)), NewSessions())
        running = group.create_task(service.run())
        await service.ready.wait()
        hello: JSON = {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        }  # fmt: skip
        begun = await asked_of(service, "POST", {"id": 1, "method": "initialize", "params": hello})
        (identity,) = [value for name, value in begun[0]["headers"] if name == b"mcp-session-id"]

        async def end() -> None:
            assert (await asked_of(service, "DELETE", None, identity))[0]["status"] == 200

        told = await asked_of(service, "POST", {"method": "notifications/initialized"}, identity, end)
        assert [one.get("status") for one in told if one["type"] == "http.response.start"] == [202]
        running.cancel()


class Local:
    """The only user there is."""

    def __init__(self, opened: Runtime) -> None:
        self._opened = opened

    def identify(self, authorization: str, peer: str) -> Principal | None:
        return LOCAL

    def lease(self, who: Principal) -> AbstractAsyncContextManager[Runtime]:
        return nullcontext(self._opened)


async def asked_of(
    service: StreamableHTTP,
    method: str,
    message: dict[str, JSON] | None,
    session: bytes = b"",
    after: Callable[[], Awaitable[None]] | None = None,
) -> list[Message]:
    """All that a request is answered. `after`: awaited when the answer has come and the service goes on with it."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode() if message is not None else b""
    headers = [
        (b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream"),
        (b"content-length", str(len(body)).encode()), (b"mcp-protocol-version", b"2025-11-25"),
    ]  # fmt: skip
    scope = {
        "type": "http", "method": method, "path": "/mcp", "query_string": b"",
        "headers": headers + ([(b"mcp-session-id", session)] if session else []),
    }  # fmt: skip
    sent: list[Message] = []
    given = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Message:
        found = next(given, None)
        return found if found is not None else await asyncio.Future()

    async def send(message: Message) -> None:
        sent.append(message)
        if after is not None and message["type"] == "http.response.body":
            await after()

    await service.ask(LOCAL, scope, receive, send)
    return sent
