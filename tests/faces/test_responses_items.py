"""What the root called is among the items of a response, whole, streamed, and told again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from iact.accounts.rights import LOCAL
from iact.core.errors import ModelUnreachable
from iact.core.records.dialogue import Say
from iact.core.session.runtime import Runtime
from iact.faces.responses.given import kept
from iact.faces.responses.output import ResponsePlace
from tests.core.session.fakes import Asked, ScriptedModel, replies, runtime
from tests.core.session.test_control import until
from tests.faces.test_memory_of_callers import asking
from tests.faces.test_responses_requests import READS, answer

CALLS: Final = {
    "/": ["I look.\n\n```READ\na\n```\n\n```CALL helper\nCount them.\n```", "Seven."],
    "/helper": ["There are seven."],
}


async def stream(http: httpx.AsyncClient, method: str, path: str, **body: Any) -> list[dict[str, Any]]:
    """The events of a streamed response."""
    answered = await http.request(method, path, json=body or None)
    assert answered.status_code == 200, answered.text
    return [json.loads(line[6:]) for line in answered.text.splitlines() if line.startswith("data: ")]


def told(item: Mapping[str, Any]) -> tuple[object, ...]:
    """An item in short."""
    if item["type"] == "message":
        return ("message", item["content"][0]["text"])
    error = item["error"] and item["error"]["content"][0]["text"]
    return (item["server_label"], item["name"], item["status"], item["output"], error)


def without_ids(value: object, identity: str) -> object:
    """A part of a response, with its id left out."""
    return json.loads(json.dumps(value).replace(identity, "ID"))


async def test_calls_and_agents_are_items_in_their_order(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies(CALLS)) as opened, asking(opened, LOCAL) as http:
        response = await answer(http, input="How many?")
        assert [told(item) for item in response["output"]] == [
            ("message", "I look."),
            ("t", "read", "completed", "a", None),
            ("iact", "CALL", "completed", "There are seven.", None),
            ("message", "Seven."),
        ]
        given = [json.loads(item["arguments"]) for item in response["output"] if item["type"] == "mcp_call"]
        assert given == [
            {"arguments": "", "body": "a"},
            {"arguments": "helper", "body": "Count them."},
        ]
        again = await http.get(f"/v1/responses/{response['id']}")
        assert again.json()["output"] == response["output"]


@pytest.mark.no_prefix_law("two sessions speak to one model")
async def test_a_stream_has_the_same_items_and_so_has_one_that_is_told_again(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies(CALLS)) as opened, asking(opened, LOCAL) as http:
        whole = await answer(http, input="How many?")
        streamed = await stream(http, "POST", "/v1/responses", input="How many?", stream=True)
        again = await stream(http, "GET", f"/v1/responses/{whole['id']}?stream=true")

    for events in (streamed, again):
        identity = events[0]["response"]["id"]
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        assert "verdict" not in events[0]["response"]
        assert events[-1]["type"] == "response.completed"
        output = events[-1]["response"]["output"]
        assert without_ids(output, identity) == without_ids(whole["output"], whole["id"])
        done = [event for event in events if event["type"] == "response.output_item.done"]
        assert {event["output_index"]: event["item"] for event in done} == dict(enumerate(output))
        calls = [event["type"] for event in events if "mcp_call" in event["type"]]
        assert calls.count("response.mcp_call.in_progress") == 2
        assert calls.count("response.mcp_call_arguments.done") == 2
        assert calls.count("response.mcp_call.completed") == 2
    assert again[-1]["response"]["usage"] == whole["usage"]


async def test_a_call_that_was_denied_has_failed_and_says_why(tmp_path: Path) -> None:
    async with (
        runtime(tmp_path, replies({"/": ["```READ\na\n```", "No."]}), policy=READS) as opened,
        asking(opened, LOCAL) as http,
    ):
        asked = await answer(http, input="Read it.")
        assert [item["type"] for item in asked["output"]] == ["message"]
        done = await answer(http, previous_response_id=asked["id"], input="deny")
        called, said = done["output"]
        assert told(called)[:4] == ("t", "read", "failed", None)
        assert str(told(called)[4]).startswith("Denied by clearance")
        assert json.loads(called["arguments"])["body"] == "a"
        assert told(said) == ("message", "No.")
        assert (await http.get(f"/v1/responses/{asked['id']}")).json()["output"] == asked["output"]


@pytest.mark.no_prefix_law("two sessions speak to one model")
async def test_a_client_that_sends_all_items_back_goes_on_in_the_session(tmp_path: Path) -> None:
    async with (
        runtime(tmp_path, replies({"/": [*CALLS["/"], "Gladly."], "/helper": CALLS["/helper"]})) as opened,
        asking(opened, LOCAL) as http,
    ):
        first = await answer(http, input="How many?")
        history = [{"role": "user", "content": "How many?"}, *first["output"]]
        second = await answer(http, input=[*history, {"role": "user", "content": "Thanks."}])
        assert [told(item) for item in second["output"]] == [("message", "Gladly.")]
        assert len(opened.sessions()) == 1


async def test_an_answer_of_a_certain_form_comes_after_the_calls(tmp_path: Path) -> None:
    form = {"type": "json_schema", "name": "it", "schema": {"type": "object", "required": ["name"]}}
    script = {"/": ["I look.\n\n```READ\na\n```", '{"name": "a"}']}
    async with runtime(tmp_path, replies(script)) as opened, asking(opened, LOCAL) as http:
        response = await answer(http, input="Which?", text={"format": form})
        assert [item["type"] for item in response["output"]] == ["mcp_call", "message"]
        assert told(response["output"][1]) == ("message", '{"name": "a"}')
        again = await stream(http, "GET", f"/v1/responses/{response['id']}?stream=true")
        assert again[-1]["response"]["output"] == response["output"]


async def test_nothing_is_told_from_the_middle(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({"/": ["Hello."]})) as opened, asking(opened, LOCAL) as http:
        response = await answer(http, input="Hello")
        refused = await http.get(f"/v1/responses/{response['id']}?stream=true&starting_after=3")
        assert refused.status_code == 400
        assert "starting_after" in refused.json()["error"]["message"]


async def test_what_failed_is_told_from_a_beginning_without_an_error(tmp_path: Path) -> None:
    def fails(asked: Asked) -> str:
        raise ModelUnreachable("The endpoint is away.")

    async with runtime(tmp_path, fails) as opened, asking(opened, LOCAL) as http:
        events = await stream(http, "POST", "/v1/responses", input="Hello", stream=True)
        identity = events[-1]["response"]["id"]
        again = await stream(http, "GET", f"/v1/responses/{identity}?stream=true")
    for told_events in (events, again):
        assert told_events[0]["type"] == "response.created"
        assert told_events[0]["response"]["error"] is None
        assert told_events[-1]["type"] == "response.failed"
        assert told_events[-1]["response"]["error"]["code"] == "model_unreachable"


def said_in(opened: Runtime) -> list[ResponsePlace]:
    """The responses that begin with the messages of open sessions."""
    return [
        ResponsePlace(session.id, record.n)
        for session in opened.opened.values()
        for record in session.records()
        if isinstance(record.content, Say)
    ]


async def test_an_answer_of_a_certain_form_is_told_once_it_was_checked(tmp_path: Path) -> None:
    form = {"type": "json_schema", "name": "it", "schema": {"type": "object", "required": ["name"]}}
    script = replies({"/": ['{"name": "a"}']})
    goes_on = asyncio.Event()
    async with (
        runtime(tmp_path, script, model=ScriptedModel(script, chunk=4, holds={"/": goes_on})) as opened,
        asking(opened, LOCAL) as http,
    ):
        answering = asyncio.create_task(answer(http, input="Which?", text={"format": form}))
        await until(lambda: said_in(opened))
        (place,) = said_in(opened)
        folder = opened.opened[place.session].journal.parent
        await until(lambda: kept(folder, place.record).in_form)

        refused = await http.get(f"/v1/responses/{place.id}?stream=true")
        assert refused.status_code == 400
        assert "without stream" in refused.json()["error"]["message"]
        assert (await http.get(f"/v1/responses/{place.id}")).json()["status"] == "in_progress"

        goes_on.set()
        response = await answering
        assert response["id"] == place.id
        again = await stream(http, "GET", f"/v1/responses/{place.id}?stream=true")
        assert again[-1]["response"]["output"] == response["output"]
