"""Every step of a structured verdict, against a scripted endpoint over real HTTP and a model without the door."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from iact.core.errors import ModelError, ModelGarbled, ModelRefused, StructuredFailed
from iact.core.models.failures import ContextTooLong
from iact.core.models.openai import ModelEndpoint, OpenAIModel
from iact.core.models.structured import FORMS, Form, Formed, FormLadder, Structured, schema_of, structured
from iact.core.ports import JSON, ChatMessage, Model, ModelProfile
from tests.core.models.clock import VirtualClock
from tests.core.session.fakes import ScriptedModel
from tests.endpoint import Endpoint, HttpError, Reply, Request

ASK = [ChatMessage("system", "You judge."), ChatMessage("user", "Is it good?")]


class Verdict(BaseModel):
    """What is asked for in these tests."""

    verdict: Literal["approve", "reject"]
    score: int = Field(ge=0, le=10)


GOOD = '{"verdict": "approve", "score": 7}'
BAD = '{"verdict": "perhaps", "score": 70}'
WANTED = Verdict(verdict="approve", score=7)


def form_of(request: Request) -> Form:
    """The form in which an object was asked for."""
    match request.body:
        case {"response_format": {"type": "json_schema"}}:
            return "schema"
        case {"tools": [_], "tool_choice": _}:
            return "function"
        case {"response_format": {"type": "json_object"}}:
            return "json"
    return "text"


def called(arguments: str) -> Reply:
    """A reply that calls the forced function."""
    head, tail = arguments[:9], arguments[9:]
    call: JSON = {
        "index": 0,
        "id": "c1",
        "type": "function",
        "function": {"name": "Verdict", "arguments": head},
    }
    rest: JSON = {"index": 0, "function": {"arguments": tail}}
    return Reply(deltas=[{"tool_calls": [call]}, {"tool_calls": [rest]}], finish="tool_calls")


def refusal(what: str) -> Reply:
    return Reply(error=HttpError(400, f"Unsupported: {what}"))


class World:
    """An endpoint that answers each form in its own way, and the forms in which it was asked."""

    def __init__(self, **by_form: list[Reply | str]) -> None:
        self.left = by_form
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Reply | str:
        self.requests.append(request)
        form = form_of(request)
        return self.left[form].pop(0) if self.left.get(form) else refusal(form)

    @property
    def forms(self) -> list[Form]:
        return [form_of(request) for request in self.requests]


def ask(world: World, times: int = 1, **options: int) -> list[Structured[Verdict] | ModelError]:
    """So many verdicts from one model, one after another."""

    async def run(url: str) -> list[Structured[Verdict] | ModelError]:
        model = OpenAIModel(
            ModelEndpoint(url=url, key="k"),
            profile=ModelProfile("scripted", 8192),
            clock=VirtualClock(),
            rng=random.Random(1),
        )
        found: list[Structured[Verdict] | ModelError] = []
        for _ in range(times):
            try:
                found.append(await structured(model, ASK, Verdict, max_tokens=options.get("max_tokens")))
            except ModelError as error:
                found.append(error)
        await model.close()
        return found

    with Endpoint(world) as endpoint:
        return asyncio.run(run(endpoint.url))


def good(outcome: Structured[Verdict] | ModelError) -> Structured[Verdict]:
    assert isinstance(outcome, Structured), outcome
    assert outcome.value == WANTED
    return outcome


# --- the steps ------------------------------------------------------------------------------------


def test_a_native_schema_serves() -> None:
    world = World(schema=[GOOD])
    [outcome] = ask(world, max_tokens=77)
    assert good(outcome).step == "native"
    body = world.requests[0].body
    assert body["max_tokens"] == 77
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "Verdict", "schema": schema_of(Verdict)},
    }


def test_a_forced_function_serves_where_schemas_are_refused() -> None:
    world = World(function=[called(GOOD)])
    [outcome] = ask(world)
    assert good(outcome).step == "native"
    assert world.forms == ["schema", "function"]
    match world.requests[1].body:
        case {"tools": [{"function": {"name": name, "parameters": schema}}], "tool_choice": choice}:
            assert (name, schema) == ("Verdict", schema_of(Verdict))
            assert choice == {"type": "function", "function": {"name": "Verdict"}}
        case _:
            pytest.fail("no function was offered")


def test_json_mode_serves_where_nothing_native_is_known() -> None:
    world = World(json=[GOOD])
    assert good(ask(world)[0]).step == "json"
    assert world.forms == ["schema", "function", "json"]


def test_plain_text_serves_where_nothing_else_is_known() -> None:
    world = World(text=["Sure! ```json\n{'verdict': 'approve', 'score': '7',}\n``` Anything else?"])
    assert good(ask(world)[0]).step == "text"
    assert world.forms == list(FORMS)


def test_a_form_that_is_ignored_but_answered_well_is_good_enough() -> None:
    world = World(schema=[f"Here you are:\n```json\n{GOOD}\n```"])
    assert good(ask(world)[0]).step == "native"


def test_what_does_not_fit_goes_down_a_step_without_the_substitute() -> None:
    world = World(schema=[BAD], json=["no idea"], text=[GOOD])
    assert good(ask(world)[0]).step == "text"
    assert world.forms == ["schema", "json", "text"]


def test_an_empty_reply_goes_down_a_step() -> None:
    world = World(schema=["", ""], json=[GOOD])
    assert good(ask(world)[0]).step == "json"


def test_the_first_object_that_fits_is_taken() -> None:
    world = World(schema=[f"An example is {BAD}, and my verdict is {GOOD}."])
    assert good(ask(world)[0]).step == "native"


def test_one_corrective_retry_at_the_last_step() -> None:
    world = World(text=[BAD, GOOD])
    assert good(ask(world)[0]).step == "text"
    *_, asked, answer, told = world.requests[-1].messages
    assert asked[1].startswith("Is it good?")
    assert answer == ("assistant", BAD)
    assert told[0] == "user"
    assert "`verdict`: Input should be 'approve' or 'reject'" in told[1]
    assert "`score`: Input should be less than or equal to 10" in told[1]


def test_titles_that_only_repeat_names_are_not_sent() -> None:
    assert "title" in json.dumps(Verdict.model_json_schema())
    assert "title" not in json.dumps(schema_of(Verdict))


def test_all_steps_ask_the_same_so_that_the_prompt_is_read_once() -> None:
    world = World(text=[GOOD])
    ask(world)
    first, *others = [request.messages for request in world.requests]
    assert all(other == first for other in others)
    assert first[:1] == (("system", "You judge."),)
    assert first[1][1].startswith("Is it good?\n\nAnswer with one JSON object")
    assert json.dumps(schema_of(Verdict), separators=(",", ":")) in first[1][1]


def test_usage_is_that_of_all_requests() -> None:
    world = World(schema=[BAD], json=[BAD], text=[GOOD])
    usage = good(ask(world)[0]).usage
    assert usage.prompt_tokens == sum(request.prompt_tokens for request in world.requests)
    assert usage.cached_tokens == sum(request.cached_tokens for request in world.requests) > 0
    assert usage.completion_tokens == sum(-(-len(text) // 4) for text in (BAD, BAD, GOOD))


# --- memory ---------------------------------------------------------------------------------------


def test_what_was_refused_is_not_asked_for_again() -> None:
    world = World(json=[GOOD, GOOD])
    first, second = ask(world, 2)
    assert good(first).step == good(second).step == "json"
    assert world.forms == ["schema", "function", "json", "json"]


def test_what_does_not_fit_several_times_is_not_asked_for_again() -> None:
    world = World(schema=[BAD] * 9, json=[GOOD] * 9)
    for outcome in ask(world, 5):
        assert good(outcome).step == "json"
    assert world.forms.count("schema") == 3


def test_a_form_that_helps_now_and_then_is_kept() -> None:
    world = World(schema=[BAD, BAD, GOOD] * 3, json=[GOOD] * 9)
    for outcome in ask(world, 9):
        good(outcome)
    assert world.forms.count("schema") == 9


def test_an_endpoint_that_refuses_everything_has_taught_nothing() -> None:
    world = World()
    first, second = ask(world, 2)
    assert type(first) is type(second) is ModelRefused
    assert world.forms == [*FORMS, *FORMS]


# --- ends -----------------------------------------------------------------------------------------


def failed(world: World, **options: int) -> StructuredFailed:
    [outcome] = ask(world, **options)
    assert isinstance(outcome, StructuredFailed)
    assert str(outcome).endswith(".")
    assert "\n" not in str(outcome)
    return outcome


def test_a_failure_says_what_was_wrong_with_the_last_reply() -> None:
    error = failed(World(schema=[BAD], json=[BAD], text=[BAD, '{"verdict": "approve"}']))
    assert "The model scripted returned no usable Verdict" in str(error)
    assert "`score`: Field required" in str(error)
    assert error.reply == '{"verdict": "approve"}'
    assert error.tokens > 100


def test_a_failure_says_that_nothing_was_there() -> None:
    assert "there is no complete JSON object" in str(failed(World(text=["Yes.", "Yes, really."])))


def test_a_failure_says_that_the_limit_was_too_short() -> None:
    cut = Reply('{"verdict": "appr', finish="length")
    assert "cut off by the length limit" in str(failed(World(text=[cut, cut])))


def test_a_context_that_is_too_long_ends_at_once() -> None:
    world = World(schema=[Reply(error=HttpError(400, "maximum context length is 10 tokens"))])
    [outcome] = ask(world)
    assert type(outcome) is ContextTooLong
    assert len(world.requests) == 1


def test_the_last_step_may_be_garbled() -> None:
    world = World(text=["", ""])
    assert type(ask(world)[0]) is ModelGarbled


def test_the_correction_repeats_a_long_reply_shortened() -> None:
    world = World(text=["No. " * 5000, GOOD])
    good(ask(world)[0])
    assert len(world.requests[-1].messages[-2][1]) == 4000


# --- models ---------------------------------------------------------------------------------------


def verdict_of(model: Model, messages: list[ChatMessage]) -> Structured[Verdict]:
    return asyncio.run(structured(model, messages, Verdict, max_tokens=None))


def test_a_model_without_the_door_is_asked_in_text() -> None:
    opening = ChatMessage("user", "You are agent /, called by the user.\n\nJudge.")
    model = ScriptedModel(lambda asked: GOOD)
    assert not isinstance(model, Formed)
    outcome = verdict_of(model, [ASK[0], opening])
    assert (outcome.value, outcome.step) == (WANTED, "text")
    assert len(model.asked) == 1


@pytest.mark.parametrize("made", [FormLadder, FormLadder.plain])
def test_text_is_always_left(made: Callable[[], FormLadder]) -> None:
    ladder = made()
    for form in FORMS:
        ladder.refused(form)
    assert ladder.forms() == ["text"]


def test_the_instruction_stands_in_a_message_of_the_user() -> None:
    world = World(schema=[GOOD])

    async def run(url: str) -> None:
        model = OpenAIModel(
            ModelEndpoint(url=url, key=None),
            profile=ModelProfile("m", 8192),
            clock=VirtualClock(),
            rng=random.Random(1),
        )
        await structured(
            model, [ChatMessage("user", "a"), ChatMessage("assistant", "b")], Verdict, max_tokens=9
        )
        await model.close()

    with Endpoint(world) as endpoint:
        asyncio.run(run(endpoint.url))
    assert [role for role, _ in world.requests[0].messages] == ["user", "assistant", "user"]
