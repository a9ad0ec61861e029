"""The OpenAI client against a scripted endpoint over real HTTP; time is virtual, nothing sleeps."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import TypeVar

import pytest

from iact.core.errors import (
    ModelError,
    ModelGarbled,
    ModelOverloaded,
    ModelRefused,
    ModelUnreachable,
    UsageError,
)
from iact.core.models.failures import ContextTooLong, Retries
from iact.core.models.openai import OpenAIModel, Timeouts
from iact.core.ports import JSON, ChatMessage, ModelProfile, StreamEnd, TextDelta, Usage
from tests.core.models import conformance
from tests.core.models.clock import VirtualClock
from tests.core.models.conformance import Collected, collect
from tests.endpoint import Endpoint, Gate, HttpError, Reply, Request

KEY = "sk-very-secret-0123456789"
MESSAGES = [
    ChatMessage("system", "You are a test. " * 20),
    ChatMessage("user", "You are agent /, called by the user.\n\nMessage from the user:\n```\nGo on.\n```"),
]
SILENCE = 0.15
T = TypeVar("T")


def model(
    url: str, clock: VirtualClock | None = None, *, silence: float = 20.0, **retries: float
) -> OpenAIModel:
    return OpenAIModel(
        base_url=url,
        key=KEY,
        profile=ModelProfile("scripted", 8192),
        clock=clock or VirtualClock(),
        rng=random.Random(7),
        timeouts=Timeouts(connect=5, first=silence, between=silence, ending=silence),
        retries=Retries(**retries),  # type: ignore[arg-type]
    )


def run(
    url: str, use: Callable[[OpenAIModel], Coroutine[None, None, T]], made: OpenAIModel | None = None
) -> T:
    async def whole() -> T:
        client = made or model(url)
        try:
            return await use(client)
        finally:
            await client.close()

    return asyncio.run(whole())


def ask(
    *replies: Reply | str,
    clock: VirtualClock | None = None,
    silence: float = 20.0,
    reject: tuple[str, ...] = (),
) -> tuple[Collected, Endpoint]:
    """One stream over scripted replies, all of which must be used."""
    with Endpoint({"/": replies}, reject=reject) as endpoint:
        client = model(endpoint.url, clock, silence=silence)
        found = run(endpoint.url, lambda it: collect(it, MESSAGES), client)
    endpoint.assert_used()
    return found, endpoint


def failing(kind: type[ModelError], *replies: Reply | str, silence: float = 20.0) -> str:
    """The sentence of the error that scripted replies, all of which must be used, end in."""
    with Endpoint({"/": replies}) as endpoint:
        client = model(endpoint.url, silence=silence)
        with pytest.raises(kind) as caught:
            run(endpoint.url, lambda it: collect(it, MESSAGES), client)
        url = endpoint.url
    endpoint.assert_used()
    sentence = str(caught.value)
    assert type(caught.value) is kind
    assert url in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert KEY not in sentence
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return sentence


# --- a good reply -----------------------------------------------------------------------------------


def test_conforms() -> None:
    with Endpoint({"/": [Reply("Hello there, this is a reply.", chunk=3, repeat=True)]}) as endpoint:
        run(endpoint.url, lambda it: conformance.check_everything(it, MESSAGES))


def test_text_arrives_in_pieces_and_in_order() -> None:
    found, _ = ask(Reply("Ünïcode, 1 2 3, and `code`.\n", chunk=1))
    assert found.text == "Ünïcode, 1 2 3, and `code`.\n"
    assert found.ends == ["stop"]
    assert not found.restarts


def test_a_delta_is_passed_on_before_the_reply_is_complete() -> None:
    gate = Gate()

    async def use(client: OpenAIModel) -> str:
        async with aclosing(client.stream(MESSAGES)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    gate.release()  # without this the stream never ends
                    return event.text
        return ""

    with Endpoint({"/": [Reply("early, late", chunk=5, gates={5: gate})]}) as endpoint:
        assert run(endpoint.url, use) == "early"


def test_usage_is_what_the_endpoint_counts_with_cached_tokens() -> None:
    with Endpoint({"/": ["One.", "Two, a bit longer."]}) as endpoint:
        longer = [*MESSAGES, ChatMessage("assistant", "One."), ChatMessage("user", "More.")]

        async def use(client: OpenAIModel) -> tuple[Usage | None, Usage | None]:
            return (await collect(client, MESSAGES)).usage, (await collect(client, longer)).usage

        first, second = run(endpoint.url, use)
    assert first == Usage(endpoint.requests[0].prompt_tokens, 0, 1)
    assert second is not None
    assert second.cached_tokens == endpoint.requests[1].cached_tokens
    assert second.cached_tokens >= endpoint.requests[0].prompt_tokens - 1
    assert not second.estimated


def test_usage_is_estimated_where_the_endpoint_is_silent() -> None:
    found, _ = ask(Reply("Some words of a reply.", usage=False))
    assert found.usage is not None
    assert found.usage.estimated
    assert found.usage.prompt_tokens > 80
    assert 4 <= found.usage.completion_tokens <= 12


def test_length_limit_is_sent_and_reported() -> None:
    with Endpoint({"/": [Reply("It is cut", finish="length")]}) as endpoint:
        run(endpoint.url, lambda it: conformance.check_length_limit(it, MESSAGES))
    assert endpoint.requests[0].body["max_tokens"] == 3


def test_reasoning_is_not_text() -> None:
    found, _ = ask(Reply("The answer.", reasoning="Hm, let me think."))
    assert found.text == "The answer."


def test_the_request_is_what_was_asked_for() -> None:
    _, endpoint = ask("Fine.")
    request = endpoint.requests[0]
    assert request.messages == tuple((message.role, message.content) for message in MESSAGES)
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body["stream"] is True
    assert request.body["model"] == "scripted"
    assert request.body["stream_options"] == {"include_usage": True}


def test_an_endpoint_that_does_not_know_stream_options_is_asked_without() -> None:
    with Endpoint({"/": ["One.", "Two."]}, reject=["stream_options"]) as endpoint:

        async def use(client: OpenAIModel) -> list[str]:
            return [(await collect(client, MESSAGES)).text, (await collect(client, MESSAGES)).text]

        assert run(endpoint.url, use) == ["One.", "Two."]
    assert endpoint.connections <= 3
    assert all("stream_options" not in request.body for request in endpoint.requests)


def test_a_reply_counts_once_its_finish_was_seen() -> None:
    found, _ = ask(Reply("Whole.", done=False))
    assert found.ends == ["stop"]


def test_many_streams_at_once() -> None:
    def script(request: Request) -> Reply:
        return Reply(f"reply to {request.agent}", chunk=2)

    async def use(client: OpenAIModel) -> list[str]:
        async def one(number: int) -> str:
            opening = f"You are agent /a{number}, called by /."
            return (await collect(client, [ChatMessage("user", opening)])).text

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(number)) for number in range(100)]
        return [task.result() for task in tasks]

    with Endpoint(script) as endpoint:
        assert run(endpoint.url, use) == [f"reply to /a{number}" for number in range(100)]


# --- closing ----------------------------------------------------------------------------------------


def test_closing_ends_the_request_at_the_endpoint() -> None:
    gate = Gate()  # never released: only a disconnect can end this request

    async def use(client: OpenAIModel) -> None:
        async with aclosing(client.stream(MESSAGES)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        await endpoint.requests[0].over()

    with Endpoint({"/": [Reply("Begun but never done", gates={8: gate})]}) as endpoint:
        run(endpoint.url, use)
    assert endpoint.requests[0].disconnected
    assert endpoint.requests[0].sent == 8


@pytest.mark.parametrize("reply", [Reply(hang=True), Reply("Half a reply", hang_after=4)])
def test_cancelling_ends_the_request_at_the_endpoint(reply: Reply) -> None:
    async def use(client: OpenAIModel) -> None:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(collect(client, MESSAGES))
            assert await asyncio.to_thread(endpoint.wait_for, 1)
            task.cancel()
        await endpoint.requests[0].over()

    with Endpoint({"/": [reply]}) as endpoint:
        run(endpoint.url, use)
    assert endpoint.requests[0].disconnected


# --- failures that are retried ----------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_a_busy_endpoint_is_asked_again(status: int) -> None:
    clock = VirtualClock()
    found, _ = ask(
        Reply(error=HttpError(status, "busy")), Reply(error=HttpError(status)), "Now.", clock=clock
    )
    assert found.text == "Now."
    assert [restart.attempt for restart in found.restarts] == [2, 3]
    assert f"HTTP {status}: busy" in found.restarts[0].reason
    assert len(clock.slept) == 2
    assert 0.25 <= clock.slept[0] <= 0.5
    assert 0.5 <= clock.slept[1] <= 1.0


def test_retry_after_is_obeyed_but_not_for_ever() -> None:
    clock = VirtualClock()
    limits = [Reply(error=HttpError(429, "slow down", {"retry-after": value})) for value in ("7", "86400")]
    ask(*limits, "Now.", clock=clock)
    assert clock.slept == [7.0, 60.0]


def test_a_stream_that_is_cut_starts_over() -> None:
    found, _ = ask(Reply("The answer is 4", cut_after=8), Reply("Forty-two.", chunk=4))
    assert found.text == "Forty-two."
    assert len(found.restarts) == 1
    assert "broke off in the middle of a reply" in found.restarts[0].reason


def test_a_stream_that_ends_without_finish_starts_over() -> None:
    found, _ = ask(Reply("The answer", finish=None), "All of it.")
    assert found.text == "All of it."


def test_silence_before_and_within_a_reply_is_bounded() -> None:
    found, endpoint = ask(
        Reply(hang=True), Reply("Half a reply", hang_after=4), "All of it.", silence=SILENCE
    )
    assert found.text == "All of it."
    assert [" in the middle" in restart.reason for restart in found.restarts] == [False, True]
    assert endpoint.requests[0].disconnected
    assert endpoint.requests[1].disconnected


def test_a_slow_drip_is_no_silence() -> None:
    found, _ = ask(Reply("drip drop", chunk=1, delay=0.03), silence=0.25)
    assert found.text == "drip drop"
    assert not found.restarts


def test_silence_after_the_finish_costs_nothing() -> None:
    broken = (
        b'data: {"choices":[{"index":0,"delta":{"content":"Done."},"finish_reason":"stop"}]}\n\n: and now\n'
    )
    found, _ = ask(Reply(garbage=broken))
    assert found.text == "Done."
    assert found.ends == ["stop"]


def test_an_error_in_the_middle_of_a_stream_starts_over() -> None:
    error = b'data: {"error": {"message": "out of memory", "code": 500}}\n\n'
    found, _ = ask(Reply("The answer", garbage=error, garbage_after=4), "All of it.")
    assert found.text == "All of it."
    assert "out of memory" in found.restarts[0].reason


def test_one_empty_reply_is_forgiven() -> None:
    found, _ = ask(Reply(" \n"), "Something.")
    assert found.text == "Something."


# --- failures that are final --------------------------------------------------------------------------


def test_an_endpoint_that_stays_busy() -> None:
    said = failing(ModelOverloaded, *[Reply(error=HttpError(429, "busy"))] * 5)
    assert "HTTP 429: busy (5 attempts)" in said


def test_no_attempt_begins_after_the_time_limit() -> None:
    clock = VirtualClock()
    with Endpoint({"/": [Reply(error=HttpError(503, "", {"retry-after": "40"}), repeat=True)]}) as endpoint:
        client = model(endpoint.url, clock, attempts=100, seconds=100)
        with pytest.raises(ModelOverloaded, match="3 attempts"):
            run(endpoint.url, lambda it: collect(it, MESSAGES), client)
    assert clock.slept == [40.0, 40.0]


def test_nothing_listens() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://user:{KEY}@127.0.0.1:{held.getsockname()[1]}/v1?token={KEY}"
        with pytest.raises(ModelUnreachable, match="OPENAI_BASE_URL") as caught:
            run(url, lambda it: collect(it, MESSAGES))
    assert KEY not in str(caught.value)
    assert "user:" not in str(caught.value)


def test_an_endpoint_that_is_always_silent() -> None:
    said = failing(ModelUnreachable, *[Reply(hang=True)] * 5, silence=0.25)
    assert "stayed silent for 0.25 seconds (5 attempts)" in said


def test_a_stream_that_is_always_cut() -> None:
    failing(ModelUnreachable, *[Reply("The answer", cut_after=4)] * 5)


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (400, "check IACT_MODEL"),
        (401, "OPENAI_API_KEY"),
        (403, "OPENAI_API_KEY"),
        (404, "IACT_MODEL"),
        (422, "check"),
    ],
)
def test_a_refusal_is_not_retried(status: int, hint: str) -> None:
    said = failing(ModelRefused, Reply(error=HttpError(status, f"no\x1b[31m\n way with {KEY}" + "!" * 500)))
    assert hint in said
    assert "no [31m way with" in said
    assert "\x1b" not in said
    assert len(said) < 500


def test_a_wrong_key_against_an_endpoint_that_checks() -> None:
    with Endpoint({}, api_key="another") as endpoint, pytest.raises(ModelRefused, match="OPENAI_API_KEY"):
        run(endpoint.url, lambda it: collect(it, MESSAGES))


def test_no_credit_is_not_retried() -> None:
    error: JSON = {"message": "You exceeded your current quota.", "code": "insufficient_quota"}
    assert "no credit" in failing(ModelRefused, Reply(error=HttpError(429, {"error": error})))


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "too much", "code": "context_length_exceeded"}},
        {"error": {"message": "This model's maximum context length is 8192 tokens."}},
        {
            "error": {
                "type": "exceed_context_size_error",
                "message": "the request exceeds the available context size",
            }
        },
    ],
)
def test_a_context_that_is_too_long_is_told_apart(body: dict[str, dict[str, str]]) -> None:
    said = failing(ContextTooLong, Reply(error=HttpError(400, {"error": dict(body["error"])})))
    assert "IACT_CONTEXT" in said
    assert issubclass(ContextTooLong, ModelRefused)


@pytest.mark.parametrize(
    "garbage",
    [
        b"<html><body>It works!</body></html>",
        b"",
        b"data: this is not JSON\n\n",
        b"data: 5\n\n",
        b"data: [1, 2]\n\n",
        b"data: \xff\xfe\n\n",
        b'data: {"choices": 5}\n\n',
        b'data: {"choices": [{"delta": {"content": 7}}]}\n\n',
        b'data: {"choices": [null]}\n\n',
        b'data: {"choices": [{"delta": "text"}]}\n\n',
        b'data: {"choices": [{"delta": {}, "finish_reason": ["stop"]}]}\n\n',
        b'data: {"choices": [], "usage": 7}\n\n',
        b'data: {"choices": [], "usage": {"prompt_tokens": "many"}}\n\n',
        b'data: {"choices": [], "usage": {"prompt_tokens": Infinity}}\n\n',
        b"\x00\x01\x02" * 1000,
    ],
)
def test_garbage_is_retried_a_little(garbage: bytes) -> None:
    assert "did not answer in the OpenAI protocol" in failing(ModelGarbled, *[Reply(garbage=garbage)] * 2)


def test_an_empty_reply_twice() -> None:
    assert "empty reply" in failing(ModelGarbled, "", " ")


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://host/v1", "http://", "http://host:port/v1"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(UsageError, match="OPENAI_BASE_URL"):
        model(url)


def test_exactly_one_end() -> None:
    async def use(client: OpenAIModel) -> list[StreamEnd]:
        return [event async for event in client.stream(MESSAGES) if isinstance(event, StreamEnd)]

    with Endpoint({"/": [Reply("One", cut_after=2), "Two"]}) as endpoint:
        assert run(endpoint.url, use) == [StreamEnd("stop")]
