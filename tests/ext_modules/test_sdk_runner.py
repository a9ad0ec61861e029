"""One call of a function, of whatever kind: what streams, what ends it, what cancels it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from ext_modules.sdk import Call, Module, Result, Value, current_call, wire
from ext_modules.sdk.call import HIGH_WATER, Event, Output, Progress, StateChange
from ext_modules.sdk.runner import LARGEST_VALUE, Asked, Ended, Failed, run
from ext_modules.sdk.testing import Bench, Done
from ext_modules.sdk.values import JSON

module = Module("probe", "Functions of every kind.", states={"closed": "No page.", "open": "A page."})


@module.function(impact=0)
def plain(text: str, times: int = 2) -> str:
    """Repeats a text."""
    return text * times


@module.function(impact=0)
async def answers(kind: str) -> object:
    """Gives back one thing of each kind."""
    answer: object = {
        "text": "héllo", "nothing": None, "number": 3.5, "list": [1, {"a": None}], "flag": False,
        "bytes": b"\x00\xff", "value": Value(b"png", "image/png", "shot.png"),
        "result": Result("x", media_type="text/markdown", data={"exit_status": 3}),
        "large": "é" * LARGEST_VALUE, "object": object(),
    }[kind]  # fmt: skip
    return answer


@module.function(impact=0)
async def counts(to: int) -> AsyncIterator[str]:
    """Counts, one line at a time."""
    for number in range(to):
        yield f"{number}\n"


@module.function(impact=0)
def mixes() -> Iterator[object]:
    """A sync generator that yields text, data and content."""
    yield "text\n"
    yield {"a": 1}
    yield b"content"


@module.function(impact=0)
async def tells(call: Call) -> str:
    """Reports, streams and makes an artifact."""
    call.progress("half\nway", 0.5)
    call.output("on the way")
    call.artifact(b"x" * 300_000, name="big.bin", media_type="application/x-big")
    assert current_call() is call
    return f"{call.session} {call.agent} {call.call_id} {call.remaining() > 50}"


@module.function(impact=0)
def fails() -> None:
    """Raises."""
    raise LookupError("no such town")


@module.function(impact=0)
def leaves() -> None:
    """Calls exit."""
    raise SystemExit("bye")


@module.function(impact=1)
async def remembers(call: Call) -> int:
    """Counts its own calls, for each agent."""
    count = call.state.get("count", 0)
    assert isinstance(count, int)
    call.state["count"] = count + 1
    return count + 1


@module.function(impact=1, states=["closed"])
def open_page(call: Call) -> None:
    """Opens."""
    call.move("open", note="the page is now up")


@module.function(impact=1, states=["open"])
def close_page(call: Call) -> None:
    """Closes."""
    call.move("closed")


def play(function: str, arguments: dict[str, JSON] | None = None) -> Done:
    return asyncio.run(Bench(module).call(function, arguments))


def test_a_sync_function_gives_back_text() -> None:
    done = play("plain", {"text": "ab", "times": 3})
    assert (done.output, done.media_type, done.ends) == ("ababab", "text/plain", 1)


@pytest.mark.parametrize(
    ("kind", "output", "media_type"),
    [
        ("text", "héllo", "text/plain"),
        ("nothing", "", ""),
        ("number", "3.5", "application/json"),
        ("list", '[1, {"a": null}]', "application/json"),
        ("flag", "false", "application/json"),
        ("result", "x", "text/markdown"),
    ],
)
def test_results_by_kind(kind: str, output: str, media_type: str) -> None:
    done = play("answers", {"kind": kind})
    assert (done.output, done.media_type, done.error) == (output, media_type, None)
    assert done.data == ({"exit_status": 3} if kind == "result" else {})


@pytest.mark.parametrize(
    ("kind", "value"),
    [("bytes", Value(b"\x00\xff")), ("value", Value(b"png", "image/png", "shot.png"))],
)
def test_content_is_an_artifact(kind: str, value: Value) -> None:
    done = play("answers", {"kind": kind})
    assert done.artifacts[done.artifact] == value


def test_text_too_large_for_a_message_is_streamed() -> None:
    done = play("answers", {"kind": "large"})
    assert done.output == "é" * LARGEST_VALUE
    assert max(len(piece.encode()) for piece in done.streamed) <= LARGEST_VALUE


def test_what_is_no_json_is_an_error_of_the_function() -> None:
    done = play("answers", {"kind": "object"})
    assert done.error is not None
    assert done.error.type == "TypeError"


def test_a_generator_streams_and_its_stream_is_its_result() -> None:
    done = play("counts", {"to": 5})
    assert done.output == "0\n1\n2\n3\n4\n"


def test_a_sync_generator_may_mix() -> None:
    done = play("mixes")
    assert done.output == 'text\n{"a": 1}\n'
    assert [value.data for value in done.artifacts.values()] == [b"content"]


def test_a_call_tells_streams_and_makes_artifacts() -> None:
    done = play("tells")
    assert done.output == "session / 1 True"
    assert done.streamed == ["on the way"]
    assert done.progress == [Progress("half way", 0.5)]
    assert done.artifacts == {"1": Value(b"x" * 300_000, "application/x-big", "big.bin")}


def test_what_a_function_raises_comes_with_the_trace_of_its_own_code() -> None:
    error = play("fails").error
    assert error is not None
    assert (error.type, error.message) == ("LookupError", "no such town")
    assert "in fails" in error.trace
    assert "runner.py" not in error.trace.replace("test_sdk_runner.py", "")


def test_exit_ends_the_call_and_not_the_module() -> None:
    error = play("leaves").error
    assert error is not None
    assert error.type == "SystemExit"


@pytest.mark.parametrize(("function", "kind"), [("nowhere", "UnknownFunction"), ("plain", "BadArguments")])
def test_what_can_not_be_run_says_so_without_a_trace(function: str, kind: str) -> None:
    error = play(function).error
    assert error is not None
    assert (error.type, error.trace) == (kind, "")


def test_a_function_is_found_with_the_name_of_the_module_too() -> None:
    assert play("probe.plain", {"text": "x"}).output == "xx"


def test_state_is_kept_for_each_agent() -> None:
    async def play() -> list[str]:
        bench = Bench(module, session="state")
        return [(await bench.call("remembers", agent=agent)).output for agent in ("/a", "/b", "/a", "/a")]

    assert asyncio.run(play()) == ["1", "1", "2", "3"]


def test_states_decide_what_is_offered() -> None:
    async def play() -> list[Done]:
        bench = Bench(module, session="machine")
        return [await bench.call(name) for name in ("close_page", "open_page", "open_page", "close_page")]

    refused, opened, again, closed = asyncio.run(play())
    assert refused.error is not None
    assert refused.error.type == "NotOffered"
    assert "not offered in the state 'closed'; offered now:" in refused.error.message
    assert "open_page" in refused.error.message
    assert opened.error is None
    assert opened.states == [StateChange("open", (), "the page is now up")]
    assert again.error is not None
    assert closed.states[-1].state == "closed"


def test_a_state_that_is_none_is_refused() -> None:
    async def play() -> None:
        module.agent("x", "/").move("ajar")

    with pytest.raises(ValueError, match="no state 'ajar'; the states are: closed, open"):
        asyncio.run(play())


async def _ignore(event: Event | Ended | Failed) -> None:
    """An emit for those who don't care."""


def test_exclusive_calls_of_one_agent_run_one_at_a_time_and_others_at_once() -> None:
    timed = Module("timed", "Overlaps.")
    running: dict[str, int] = {}
    most: dict[str, int] = {}
    meet: asyncio.Barrier

    @timed.function(impact=1, exclusive=True)
    async def step(call: Call) -> None:
        running[call.agent] = running.get(call.agent, 0) + 1
        most[call.agent] = max(most.get(call.agent, 0), running[call.agent])
        await meet.wait()
        running[call.agent] -= 1

    async def play() -> None:
        nonlocal meet
        # Each round needs one call of each agent at the same time; a second one of the same would hang.
        meet = asyncio.Barrier(2)
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            for number in range(6):
                group.create_task(run(timed, Asked(str(number), "s", f"/{number % 2}", "step"), _ignore))

    asyncio.run(play())
    assert most == {"/0": 1, "/1": 1}


def test_cancelling_a_call_cancels_the_function() -> None:
    slow = Module("slow", "Waits.")
    begun: asyncio.Event
    ended: list[str] = []

    @slow.function(impact=0)
    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("yes")

    async def play() -> None:
        nonlocal begun
        begun = asyncio.Event()
        task = asyncio.ensure_future(run(slow, Asked("1", "s", "/", "wait"), _ignore))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task], timeout=5)
        assert task.cancelled()

    asyncio.run(play())
    assert ended == ["yes"]


def test_a_thread_sees_that_its_call_was_cancelled() -> None:
    slow = Module("slow", "Yields for ever.")
    begun, ended = threading.Event(), threading.Event()

    @slow.function(impact=0)
    def pour() -> Iterator[str]:
        try:
            while True:
                begun.set()
                yield "x"
        finally:
            ended.set()

    async def play() -> None:
        task = asyncio.ensure_future(run(slow, Asked("1", "s", "/", "pour"), _ignore))
        await asyncio.to_thread(begun.wait, 5)
        task.cancel()
        await asyncio.wait([task], timeout=5)
        assert await asyncio.to_thread(ended.wait, 5)

    asyncio.run(play())


@pytest.mark.parametrize("function", ["from_the_loop", "from_a_thread"])
def test_a_slow_reader_holds_the_writer_back(function: str) -> None:
    fast = Module("fast", "Writes as fast as it may.")
    written = 0

    @fast.function(impact=0)
    async def from_the_loop() -> AsyncIterator[str]:
        nonlocal written
        while True:
            written += 10_000
            yield "x" * 10_000

    @fast.function(impact=0)
    def from_a_thread(call: Call) -> None:
        nonlocal written
        while not call.cancelled:
            written += 10_000
            call.output("x" * 10_000)

    async def play() -> None:
        stuck = asyncio.Event()

        async def emit(event: Event | Ended | Failed) -> None:
            assert isinstance(event, Output)
            await stuck.wait()

        task = asyncio.ensure_future(run(fast, Asked("1", "s", "/", function), emit))
        await _settled(lambda: written)
        task.cancel()
        await asyncio.wait([task], timeout=5)

    asyncio.run(play())
    assert HIGH_WATER // 2 < written < HIGH_WATER * 2


async def _settled(measure: Callable[[], int]) -> None:
    """Wait until a number has not changed for a while, ten seconds at most."""
    before, until = -1, time.monotonic() + 10
    while (now := measure()) != before and time.monotonic() < until:
        before = now
        await asyncio.sleep(0.2)


def test_texts_that_wait_are_joined_in_order() -> None:
    chatty = Module("chatty", "Writes many small pieces.")

    @chatty.function(impact=0)
    async def chat(call: Call) -> None:
        for number in range(1000):
            call.output(f"{number} ")

    done = asyncio.run(Bench(chatty).call("chat"))
    assert done.output == "".join(f"{number} " for number in range(1000))
    assert len(done.streamed) < 10


@pytest.mark.parametrize("state", ["ajar"])
def test_a_function_can_not_be_offered_in_a_state_that_is_none(state: str) -> None:
    with pytest.raises(TypeError, match="not a state of the module"):
        module.function(impact=0, states=[state])(_unnamed)


def test_the_body_must_be_a_parameter() -> None:
    with pytest.raises(TypeError, match="not one of its parameters"):
        module.function(impact=0, body="text")(_unnamed)


def _unnamed() -> Awaitable[None] | None:
    """A function that is never registered."""
    return None


def test_what_a_call_carries_on_the_next_one_finds_if_it_succeeded() -> None:
    module = Module("bag", "A bag.", own_instances=True)

    @module.function(impact=0, held=True)
    def put(call: Call, text: str) -> str:
        found = call.carried.decode()
        call.carry((found + text).encode())
        if text == "x":
            raise ValueError("It breaks.")
        return found

    @module.function(impact=0)
    def much(call: Call) -> None:
        call.carry(b"\0" * (256 * 1024 + 1))

    bench = Bench(module)

    async def scene() -> list[str]:
        calls = [("a", "/"), ("b", "/"), ("x", "/"), ("c", "/other"), ("c", "/")]
        found = [(await bench.call("put", {"text": text}, agent=agent)).output for text, agent in calls]
        error = (await bench.call("much")).error
        assert error is not None
        assert error.message == "262,145 bytes can't be carried from call to call; the most is 262,144."
        return found

    assert asyncio.run(scene()) == ["", "a", "", "", "ab"]
    manifest = wire.manifest(module)
    assert manifest.needs.own_instances
    assert [function.held for function in manifest.functions] == [True, False]


def test_text_in_small_pieces_is_told_of_in_few_and_none_is_lost() -> None:
    module = Module("drip", "It drips.")

    @module.function(impact=0)
    async def drip(call: Call) -> None:
        for _ in range(5_000):
            call.output("drop\n")
            await asyncio.sleep(0)

    done = asyncio.run(Bench(module).call("drip"))
    assert done.output == "drop\n" * 5_000
    assert len(done.streamed) < 1_000
