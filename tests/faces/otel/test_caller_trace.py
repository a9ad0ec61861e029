"""The trace of a program that sends a message: the work on it is part of that trace, and models are told of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

import pytest
from acp import text_block
from acp.schema import NewSessionResponse, PromptRequest
from mcp.client.client import Client
from mcp.types import RequestParamsMeta

from iact.accounts.rights import LOCAL
from iact.core.errors import UsageError
from iact.core.models.caller import ask_on_behalf_of, trace_of_caller
from iact.core.ports import ChatMessage, ModelEvent
from iact.core.records.dialogue import Say
from iact.core.session.runtime import Runtime
from iact.core.stored.replay import replay
from iact.faces.acp.agent import AcpAgent
from iact.faces.mcp.ask import NewSessions
from iact.faces.mcp.caller import OneCaller
from iact.faces.mcp.server import mcp_server
from iact.faces.otel.span import trace_id
from iact.faces.otel.spans import spans
from iact.faces.trace import traceparent_of
from tests.core.session.fakes import Script, ScriptedModel, replies, runtime
from tests.faces.acp.test_conversation import Screen
from tests.faces.test_memory_of_callers import asking

TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN: Final = "00f067aa0ba902b7"
PARENT: Final = f"00-{TRACE}-{SPAN}-01"
SCRIPT: Final = {
    "/": ["```CALL helper\nCount.\n```", "Seven.", "Gladly."],
    "/helper": ["```READ\na\n```", "7"],
}


class Noting(ScriptedModel):
    """Notes on whose behalf it is asked."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.callers: list[str] = []

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        self.callers.append(trace_of_caller())
        async for event in super().stream(messages, max_tokens=max_tokens):
            yield event


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        (PARENT, True),
        (f"  {PARENT} ", True),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"01-{TRACE}-{SPAN}-01", False),
        (f"00-{'0' * 32}-{SPAN}-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (f"00-{TRACE.upper()}-{SPAN}-01", False),
        (f"{PARENT}\r\nx: y", False),
        ("", False),
        (7, False),
    ],
)
def test_only_a_trace_that_is_recorded_is_continued(value: object, taken: bool) -> None:
    assert bool(traceparent_of({"traceparent": value})) is taken
    assert traceparent_of({"traceparent": value}) in (str(value).strip(), "")
    assert traceparent_of({}) == traceparent_of(None) == ""


async def test_the_work_on_a_message_is_part_of_its_senders_trace(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies(SCRIPT)) as opened:
        session = await opened.open()
        said = await session.say("How many?", traceparent=PARENT)
        await session.answer(said.n)
        said = await session.say("Thanks.")
        await session.answer(said.n)
        records = session.records()
        journal = session.journal

    made = spans(records)
    own = trace_id(session.id)
    began = next(span for span in made if span.name == "create_agent root")
    first, second = (span for span in made if span.name == "invoke_agent root")
    assert (began.trace_id, began.parent_id) == (own, "")
    assert (first.trace_id, first.parent_id) == (TRACE, SPAN)
    assert [(link.trace_id, link.span_id) for link in first.links] == [(own, began.span_id)]
    assert (second.trace_id, second.parent_id, second.links) == (own, began.span_id, ())

    by_id = {span.span_id: span for span in made}
    below = [span for span in made if span.parent_id in by_id]
    assert {span.name.split()[0] for span in below if span.trace_id == TRACE} == {
        "chat", "invoke_agent", "execute_tool",
    }  # fmt: skip
    assert all(span.trace_id == by_id[span.parent_id].trace_id for span in below)
    assert {span.attributes["gen_ai.conversation.id"] for span in made} == {session.id}
    replay(journal, verify=True)


async def test_a_fork_is_no_part_of_it(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies(SCRIPT)) as opened:
        session = await opened.open()
        said = await session.say("How many?", traceparent=PARENT)
        await session.answer(said.n)
        fork = await opened.open(await opened.fork(session.id, session.records()[-1].n))
        said = await fork.say("Thanks.")
        await fork.answer(said.n)
        records = fork.records()
    made = spans(records)
    assert {span.trace_id for span in made} == {trace_id(fork.id)}
    (began,) = [span for span in made if span.name == "create_agent root"]
    assert [link.trace_id for link in began.links] == [TRACE]


async def test_models_are_told_of_it_until_the_next_message(tmp_path: Path) -> None:
    model = Noting(replies(SCRIPT))
    async with runtime(tmp_path, replies(SCRIPT), model=model) as opened:
        session = await opened.open()
        for text, traceparent in (("How many?", PARENT), ("Thanks.", "")):
            said = await session.say(text, traceparent=traceparent)
            await session.answer(said.n)
    assert model.callers == [PARENT] * 4 + [""]


@pytest.mark.parametrize("traceparent", [f"{PARENT}\r\nx: y", "é", f"00-{TRACE}-{SPAN}", "-" * 200])
async def test_what_is_no_trace_gets_no_further(tmp_path: Path, traceparent: str) -> None:
    async with runtime(tmp_path, replies(SCRIPT)) as opened:
        session = await opened.open()
        before = session.records()
        with pytest.raises(UsageError, match="traceparent"):
            await session.say("How many?", traceparent=traceparent)
        assert session.records() == before
        said = await session.say("How many?")
        await session.answer(said.n)
        records = session.records()

    # A journal that came from elsewhere may have it.
    assert isinstance(said.content, Say)
    forged = replace(said, content=replace(said.content, traceparent=traceparent))
    altered = [forged if record.n == said.n else record for record in records]
    assert spans(altered) == spans(records)
    ask_on_behalf_of(PARENT)
    ask_on_behalf_of(traceparent)
    assert trace_of_caller() == ""


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {"input": "Go"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Go"}]}),
        (
            "/ag-ui",
            {
                "threadId": "t", "runId": "r", "state": {}, "tools": [], "context": [], "forwardedProps": {},
                "messages": [{"id": "m", "role": "user", "content": "Go"}],
            },
        ),
        (
            "/a2a",
            {
                "jsonrpc": "2.0", "id": 1, "method": "SendMessage",
                "params": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Go"}]}},
            },
        ),
    ],
    ids=["responses", "chat", "ag-ui", "a2a"],
)  # fmt: skip
async def test_each_face_takes_it_from_its_request(tmp_path: Path, path: str, body: object) -> None:
    async with runtime(tmp_path, replies({"/": ["Done."]})) as opened, asking(opened, LOCAL) as http:
        answered = await http.post(path, json=body, headers={"traceparent": PARENT})
        assert answered.status_code == 200, answered.text
        assert await traces(opened) == [PARENT]


async def traces(opened: Runtime) -> list[str]:
    """The traces of the messages in the only session."""
    (info,) = opened.sessions()
    session = await opened.open(info.id)
    return [record.content.traceparent for record in session.records() if isinstance(record.content, Say)]


@pytest.mark.parametrize("era", ["2026-07-28", "legacy"])
async def test_a_call_of_mcp_names_it_beside_its_arguments(tmp_path: Path, era: str) -> None:
    async with runtime(tmp_path, replies({"/": ["Done."]})) as opened:
        server = mcp_server(OneCaller(opened), NewSessions())
        # The SDK's type names no key but its own; the protocol permits others.
        meta = cast(RequestParamsMeta, {"traceparent": PARENT})
        async with Client(server, mode=era) as client:
            await client.call_tool("iact_ask", {"task": "Go"}, meta=meta)
        assert await traces(opened) == [PARENT]


async def test_a_prompt_of_an_editor_names_it_beside_its_text(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    async with (
        runtime(tmp_path / "data", replies({"/": ["Done.", "Again."]})) as opened,
        asyncio.TaskGroup() as group,
    ):
        agent = AcpAgent(opened, Screen(), group.create_task, version="1")
        asked = {"cwd": str(tmp_path / "project"), "mcpServers": []}
        new = await agent.dispatch("session/new", asked, False)
        assert isinstance(new, NewSessionResponse)
        for meta in ({"traceparent": PARENT}, {}):
            prompt = PromptRequest(session_id=new.session_id, prompt=[text_block("Go")], field_meta=meta)
            await agent.dispatch("session/prompt", prompt.model_dump(by_alias=True), False)
        await agent.leave()
        assert await traces(opened) == [PARENT, ""]
