"""A failure is a failure on every face, in its protocol's own form, and its sentence is said once.

A real `iact serve` and each protocol's client; the model's endpoint refuses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import openai
import pytest
from a2a.types import TaskState
from acp import RequestError
from acp.schema import AgentMessageChunk
from google.protobuf.json_format import MessageToDict
from mcp_types import CallToolResult
from openai import OpenAI

from tests.acceptance import test_a2a
from tests.acceptance.editor import editing
from tests.acceptance.mcp_client import connected
from tests.acceptance.product import NO_MODULES, Product
from tests.acceptance.test_responses import serving
from tests.endpoint import Endpoint, HttpError, Reply, Request

pytestmark = pytest.mark.no_prefix_law("several sessions speak to one endpoint")


@dataclass(frozen=True)
class Case:
    """A way in which the model's endpoint refuses, and what clients are told."""

    message: str
    error: HttpError
    code: str
    status: int
    sentence: str


KEY: Final = Case("key", HttpError(401, "No such key."), "model_refused", 502, "does not accept the API key")
LONG: Final = Case(
    "long",
    HttpError(400, {"error": {"message": "The prompt is too long.", "code": "context_length_exceeded"}}),
    "context_length_exceeded",
    400,
    "too long|is full",
)
CASES: Final = (KEY, LONG)


def _refuses(request: Request) -> Reply:
    said = request.messages[-1][1]
    for case in CASES:
        if case.message in said.split():
            return Reply(error=case.error)
    return Reply("Hello.")


@dataclass(frozen=True)
class Place:
    """A product that serves its faces. `url`: their address. `case`: how its endpoint refuses."""

    case: Case
    product: Product
    endpoint: Endpoint
    url: str

    @property
    def key(self) -> str:
        return str(json.loads((self.product.data / "server.json").read_text())["key"])

    @property
    def sessions(self) -> int:
        return len(self.product.journals())


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.code)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A product of its own for each case: it learns from its endpoint how large the model's window is."""
    with Endpoint(_refuses) as endpoint:
        product = Product.at(tmp_path_factory.mktemp("failures"), endpoint, **NO_MODULES)
        with serving(product) as url:
            yield Place(request.param, product, endpoint, url)


@pytest.fixture
def case(place: Place) -> Case:
    return place.case


@pytest.fixture
def model(place: Place) -> Iterator[OpenAI]:
    """OpenAI's client, which tries twice again unless it is told that this is of no use."""
    with OpenAI(base_url=f"{place.url}/v1", api_key=place.key, max_retries=2) as client:
        yield client


def _assert_told(error: openai.APIError, case: Case) -> None:
    assert error.code == case.code
    assert re.search(case.sentence, error.message)


def test_openais_client_raises_and_does_not_try_again(place: Place, model: OpenAI, case: Case) -> None:
    before = place.sessions
    with pytest.raises(openai.APIStatusError) as raised:
        model.chat.completions.create(model="iact", messages=[{"role": "user", "content": case.message}])
    _assert_told(raised.value, case)
    assert raised.value.status_code == case.status

    with pytest.raises(openai.APIStatusError) as refused:
        model.responses.create(model="iact", input=case.message)
    _assert_told(refused.value, case)
    assert refused.value.status_code == case.status
    assert place.sessions == before + 2, "each was asked once"


def test_a_stream_ends_with_the_error_and_no_answer(model: OpenAI, case: Case) -> None:
    chunks = model.chat.completions.create(
        model="iact", messages=[{"role": "user", "content": case.message}], stream=True
    )
    first = next(chunks)
    assert first.choices[0].delta.content == ""
    with pytest.raises(openai.APIError) as raised:
        next(chunks)
    _assert_told(raised.value, case)

    *_, last = model.responses.create(model="iact", input=case.message, stream=True)
    assert last.type == "response.failed"
    again = model.responses.retrieve(last.response.id)
    for response in (last.response, again):
        assert (response.status, response.output) == ("failed", [])
        assert response.error is not None
        assert response.error.code == case.code
        assert re.search(case.sentence, response.error.message)


def test_a_front_end_gets_one_error(place: Place, case: Case) -> None:
    message = {"id": "m", "role": "user", "content": case.message}
    given = {"threadId": "t", "runId": "r", "state": {}, "messages": [message]}
    headers = {"Authorization": f"Bearer {place.key}"}
    answer = httpx.post(f"{place.url}/ag-ui", headers=headers, json=given, timeout=300)
    lines = [one.removeprefix("data: ") for one in answer.text.splitlines() if one.startswith("data: ")]
    events = [json.loads(one) for one in lines]
    assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", case.code)
    assert re.search(case.sentence, events[-1]["message"])
    assert not [one for one in events if one["type"].startswith("TEXT_MESSAGE")]


async def test_a_task_fails_with_its_status_as_the_only_place(place: Place, case: Case) -> None:
    async with test_a2a.client(place.url, place.key, streaming=False) as agent:
        task = (await test_a2a.told(agent, test_a2a.request(case.message)))[-1].task
    assert task.status.state == TaskState.TASK_STATE_FAILED
    assert MessageToDict(task.metadata)["error"] == {"code": case.code, "retry": False}
    (sentence,) = [one.text for one in task.status.message.parts]
    assert re.search(case.sentence, sentence)
    assert [one.role for one in task.history] == [task.history[0].role], "the user's message alone"
    assert not task.artifacts


async def test_a_tool_of_mcp_reports_an_error(place: Place, case: Case) -> None:
    async with connected(place.product) as client:
        result = await client.client.call_tool("iact_ask", {"task": case.message})
    assert isinstance(result, CallToolResult)
    assert result.is_error
    assert result.structured_content is not None
    assert result.structured_content["error"] == {"code": case.code, "retry": False}


async def test_a_prompt_of_an_editor_ends_with_the_error(tmp_path: Path, place: Place, case: Case) -> None:
    async with editing(place.product) as editor:
        session = (await editor.new(tmp_path)).session_id
        with pytest.raises(RequestError) as raised:
            await editor.prompt(session, case.message)
        assert raised.value.data == {"code": case.code, "retry": False}
        assert re.search(case.sentence, str(raised.value))
        messages = [one for _, one in editor.person.updates if isinstance(one, AgentMessageChunk)]
        assert messages == []
