"""The OpenAI client against a scripted endpoint over real HTTP; time is virtual, nothing sleeps."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
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
from iact.core.models.known_windows import KnownWindows
from iact.core.models.openai import ModelEndpoint, OpenAIModel, Timeouts
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
        ModelEndpoint(url=url, key=KEY),
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
    assert 0.5 <= clock.slept[0] <= 0.625
    assert 1.0 <= clock.slept[1] <= 1.25


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
    said = failing(ModelOverloaded, *[Reply(error=HttpError(429, "busy"))] * 10)
    assert "HTTP 429: busy (10 attempts)" in said


@pytest.mark.parametrize("status", [502, 503, 504])
def test_an_endpoint_that_restarts_has_over_two_minutes(status: int) -> None:
    clock = VirtualClock()
    refused = [Reply(error=HttpError(status, "loading the model"))] * 9
    found, endpoint = ask(*refused, "Back again.", clock=clock)
    assert found.text == "Back again."
    assert len(endpoint.requests) == 10
    assert sum(clock.slept) >= 120
    assert clock.slept[0] < 1
    assert [restart.of for restart in found.restarts] == [10] * 9


def test_an_endpoint_that_is_gone_has_over_two_minutes() -> None:
    clock = VirtualClock()
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        with pytest.raises(ModelUnreachable, match="10 attempts"):
            run(url, lambda it: collect(it, MESSAGES), model(url, clock))
    assert sum(clock.slept) >= 120


def test_an_endpoint_that_goes_away_in_a_reply_and_comes_back() -> None:
    clock = VirtualClock()
    gone = [Reply(error=HttpError(503, "loading"))] * 8
    found, _ = ask(Reply("Half of", cut_after=4), *gone, "The whole reply.", clock=clock)
    assert found.text == "The whole reply."
    assert sum(clock.slept) >= 120


def test_a_wait_for_an_endpoint_can_be_stopped() -> None:
    class Standing(VirtualClock):
        """A clock on which no wait ends."""

        async def sleep(self, seconds: float) -> None:
            waits.set()
            await asyncio.Event().wait()

    async def use(client: OpenAIModel) -> None:
        task = asyncio.ensure_future(collect(client, MESSAGES))
        await waits.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    waits = asyncio.Event()
    with Endpoint({"/": [Reply(error=HttpError(503, "loading"))]}) as endpoint:
        run(endpoint.url, use, model(endpoint.url, Standing()))
    assert len(endpoint.requests) == 1


def test_a_fault_of_the_server_itself_is_tried_five_times() -> None:
    said = failing(ModelOverloaded, *[Reply(error=HttpError(500, "a bug"))] * 5)
    assert "HTTP 500: a bug (5 attempts)" in said


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


def _window_after(*replies: Reply | str, known: KnownWindows, max_tokens: int | None = None) -> int:
    """The window that a model of 32,768 tokens is believed to have after an endpoint gave these replies."""
    found: list[int] = []

    async def use(client: OpenAIModel) -> None:
        with contextlib.suppress(ContextTooLong):
            await collect(client, MESSAGES, max_tokens=max_tokens)
        found.append(client.profile.context)

    with Endpoint({"/": list(replies)}) as endpoint:
        client = OpenAIModel(
            ModelEndpoint(url=endpoint.url, key=None),
            profile=ModelProfile("scripted", 32_768),
            clock=VirtualClock(),
            rng=random.Random(1),
            windows=known,
        )
        run(endpoint.url, use, client)
    endpoint.assert_used()
    return found[0]


def _refusal(message: str) -> Reply:
    return Reply(error=HttpError(400, {"error": {"message": message, "type": "invalid_request_error"}}))


def test_a_stated_window_is_believed_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "windows.json"
    said = _refusal("The decoder prompt (length 9001) is longer than the maximum model length of 8192.")
    assert _window_after(said, known=KnownWindows(path)) == 8192
    [name] = json.loads(path.read_bytes())
    endpoint = name.split()[0]
    again = KnownWindows(path)
    assert again.window(endpoint, "scripted", 32_768) == 8192
    assert again.window(endpoint, "scripted", 16_384) == 16_384, "a person set another window since"
    assert again.window(endpoint, "another", 32_768) == 32_768


def test_without_a_number_the_window_is_halved_and_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "windows.json"
    said = _refusal("Please reduce the length of the messages or completion.")
    assert _window_after(said, known=KnownWindows(path)) == 16_384
    assert not path.exists()


def test_halving_ends() -> None:
    known = KnownWindows()
    with Endpoint({"/": [replace(_refusal("too many tokens"), repeat=True)]}) as endpoint:
        client = OpenAIModel(
            ModelEndpoint(url=endpoint.url, key=None),
            profile=ModelProfile("scripted", 32_768),
            clock=VirtualClock(),
            rng=random.Random(1),
            windows=known,
        )

        async def use(client: OpenAIModel) -> None:
            for _ in range(10):
                with pytest.raises(ContextTooLong):
                    await collect(client, MESSAGES)
            assert client.profile.context == 1024

        run(endpoint.url, use, client)


def test_a_number_that_is_already_believed_lowers_it_a_little(tmp_path: Path) -> None:
    path = tmp_path / "windows.json"
    said = _refusal("This model's maximum context length is 32768 tokens.")
    assert _window_after(said, known=KnownWindows(path)) == 28_672
    assert not path.exists()


def test_a_reply_that_has_less_room_is_asked_for_again_at_once() -> None:
    said = _refusal(
        "This model's maximum context length is 8192 tokens. However, you requested 8300 tokens (4204 in the messages, "
        "4096 in the completion)."
    )
    assert _window_after(said, "Done.", known=KnownWindows(), max_tokens=4096) == 8192


def test_the_room_that_an_endpoint_names_is_used() -> None:
    said = _refusal(
        "This model's maximum context length is 4096 tokens and your request has 2104 input tokens."
    )

    async def use(client: OpenAIModel) -> None:
        assert (await collect(client, MESSAGES, max_tokens=2000)).text == "Done."

    with Endpoint({"/": [said, "Done."]}) as endpoint:
        run(endpoint.url, use)
    assert [request.body["max_tokens"] for request in endpoint.requests] == [2000, 4096 - 2104 - 16]


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 64000. This model supports at most 16384 completion tokens, whereas you provided 64000.",
        "max_tokens: 64000 > 16384, which is the maximum allowed number of output tokens for this model",
        "`max_tokens` must be less than or equal to `16384`, the maximum value for `max_tokens` is less than the "
        "`context_window` for this model",
    ],
)
def test_the_most_that_a_model_writes_is_learnt(message: str) -> None:
    async def use(client: OpenAIModel) -> None:
        for _ in range(2):
            assert (await collect(client, MESSAGES, max_tokens=64_000)).text == "Done."

    with Endpoint({"/": [_refusal(message), "Done.", "Done."]}) as endpoint:
        run(endpoint.url, use)
    assert [request.body["max_tokens"] for request in endpoint.requests] == [64_000, 16_384, 16_384]


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
