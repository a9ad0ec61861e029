"""What a program asks for beside its message is kept, through a real `iact serve` and the `openai` client.

Its own tools are called through the gate, an answer has the form and the length that it names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam, ChatCompletionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import BaseModel

from iact.core.journal import read_journal
from tests.acceptance.product import NO_MODULES, Product
from tests.acceptance.test_responses import client, serving, sessions
from tests.endpoint import Endpoint

CALL: Final = '```FRONTEND tool=weather\n{"city": "Bonn"}\n```'
PARAMETERS: Final[dict[str, object]] = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER: Final[FunctionToolParam] = {
    "type": "function",
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": PARAMETERS,
    "strict": False,
}
CHAT_WEATHER: Final[ChatCompletionToolParam] = {
    "type": "function",
    "function": {"name": "weather", "description": "The weather in a city.", "parameters": PARAMETERS},
}


class Person(BaseModel):
    """What a program wants to know."""

    name: str
    age: int


@contextmanager
def serving_one(folder: Path, *replies: str) -> Iterator[tuple[Endpoint, Product, OpenAI]]:
    """A product whose model replies this, and a client. Everything is said in one session, which verifies."""
    with Endpoint({"/": [*replies]}) as endpoint:
        product = Product.at(folder, endpoint, **NO_MODULES)
        with serving(product) as url:
            yield endpoint, product, client(product, url)
        (session,) = sessions(product)
        assert product.run("replay", "--verify", session).status == 0


def test_a_tool_of_the_program_is_called_through_responses(tmp_path: Path) -> None:
    with serving_one(tmp_path, f"I look.\n\n{CALL}", "It rains.", "Yes, still.") as (
        endpoint,
        product,
        model,
    ):
        asked = model.responses.create(model="iact", input="Weather in Bonn?", tools=[WEATHER])
        assert "- weather: The weather in a city." in endpoint.requests[0].messages[-1][1]
        said, call = asked.output
        assert said.type == "message"
        assert (call.type, call.type == "function_call" and call.name) == ("function_call", "weather")
        assert call.type == "function_call"
        assert json.loads(call.arguments) == {"city": "Bonn"}
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "Rain, 9 °C"}
        done = model.responses.create(
            model="iact",
            previous_response_id=asked.id,
            tools=[WEATHER],
            input=[result],  # type: ignore[list-item]
        )
        assert done.output_text == "It rains."
        assert "Rain, 9 °C" in endpoint.requests[-1].messages[-1][1]
        assert model.responses.retrieve(asked.id).output == asked.output
        # The tools are told of once.
        model.responses.create(model="iact", previous_response_id=done.id, tools=[WEATHER], input="Still?")
        assert "- weather:" not in endpoint.requests[-1].messages[-1][1]
        (journal,) = product.journals()
        gates = [one for one in read_journal(journal).records if one.kind == "gate"]
        assert [one.text("function") for one in gates] == ["FRONTEND"]


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_tool_of_the_program_is_called_through_a_chat(tmp_path: Path, streams: bool) -> None:
    with serving_one(tmp_path, CALL, "It rains.") as (_, _, model):
        chat: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Weather in Bonn?"}]
        if streams:
            with model.chat.completions.stream(model="iact", messages=chat, tools=[CHAT_WEATHER]) as stream:
                made: ChatCompletion = stream.get_final_completion()
        else:
            made = model.chat.completions.create(model="iact", messages=chat, tools=[CHAT_WEATHER])
        choice = made.choices[0]
        assert choice.finish_reason == "tool_calls"
        assert choice.message.tool_calls is not None
        call = choice.message.tool_calls[0]
        assert call.type == "function"
        assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "Bonn"})
        chat.append({"role": "assistant", "tool_calls": [call.model_dump()]})  # type: ignore[list-item]
        chat.append({"role": "tool", "tool_call_id": call.id, "content": "no"})
        done = model.chat.completions.create(model="iact", messages=chat, tools=[CHAT_WEATHER]).choices[0]
        assert (done.message.content, done.finish_reason) == ("It rains.", "stop")


def test_an_answer_follows_the_schema_or_is_asked_for_once_more(tmp_path: Path) -> None:
    wrong = 'Here you are:\n\n```json\n{"name": "Ada", "age": "old"}\n```'
    with serving_one(tmp_path, wrong, '{"name": "Ada", "age": 36}', "Gladly.") as (endpoint, product, model):
        parsed = model.responses.parse(model="iact", input="Who?", text_format=Person)
        assert parsed.output_parsed == Person(name="Ada", age=36)
        assert "It must follow this JSON Schema" in endpoint.requests[0].messages[-1][1]
        again = endpoint.requests[1].messages[-1][1]
        assert "['age'], 'old' is not of type 'integer'" in again
        assert model.responses.retrieve(parsed.id).output_text == parsed.output_text
        # What asked once more belongs to the response: what is said next is said in the same session.
        thanks = model.responses.create(model="iact", input="Thanks", previous_response_id=parsed.id)
        assert thanks.output_text == "Gladly."
        assert len(sessions(product)) == 1


def test_a_chat_has_the_answer_in_its_form_as_well(tmp_path: Path) -> None:
    with serving_one(tmp_path, 'Sure: {"name": "Ada", "age": 36}') as (_, _, model):
        chat: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Who?"}]
        with model.chat.completions.stream(model="iact", messages=chat, response_format=Person) as stream:
            completion = stream.get_final_completion()
        assert completion.choices[0].message.parsed == Person(name="Ada", age=36)


def test_an_answer_that_never_follows_the_schema_is_a_failure(tmp_path: Path) -> None:
    with serving_one(tmp_path, "I won't.", "Never.") as (_, _, model):
        with pytest.raises(openai.InternalServerError) as raised:
            model.responses.parse(model="iact", input="Who?", text_format=Person)
        assert raised.value.code == "answer_not_in_form"


def test_an_answer_is_as_long_as_the_program_wants(tmp_path: Path) -> None:
    long = "One two three four five six seven eight nine ten."
    with serving_one(tmp_path, long, long) as (_, _, model):
        chat: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Count."}]
        choice = model.chat.completions.create(model="iact", messages=chat, max_tokens=5).choices[0]
        assert (choice.message.content, choice.finish_reason) == (long[:20], "length")
        chat += [{"role": "assistant", "content": long[:20]}, {"role": "user", "content": "Again."}]
        pieces, finish = [], None
        for chunk in model.chat.completions.create(model="iact", messages=chat, max_tokens=5, stream=True):
            pieces.append(chunk.choices[0].delta.content or "")
            finish = chunk.choices[0].finish_reason or finish
        assert ("".join(pieces), finish) == (long[:20], "length")
