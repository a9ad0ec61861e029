"""The one way to a module, against modules that run in this process behind the real protocol."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import grpc
import pytest

from ext_modules.sdk import Call, Module
from iact.core.errors import ModuleLost, SandboxError
from iact.core.gate.gate import CallRequest, Denial, Ticket, TicketError, decide
from iact.core.gate.grant import Grant, Scope
from iact.core.language.variables import text_value
from iact.core.modules.client import ArtifactChunk, Completed, Outcome, Raised
from iact.core.modules.instances import InstanceKey
from iact.core.modules.invoker import FunctionCall, Invoker
from iact.core.modules.observer import OnState
from iact.core.modules.outcome import ModuleAsk, ModuleReply, OnAsk, SendReply, StateChange
from iact.core.modules.quota import FolderUse
from iact.core.modules.registry import Start
from iact.core.ports import JSON
from tests.core.modules.clock import HeldClock
from tests.core.modules.local_host import LocalHost

WITHIN = 60
"""Seconds that anything may take; far more than it does."""
IDLE = 900.0
SECRETS = {"KEY": "hunter2", "OTHER": "swordfish"}
_NUMBERS = itertools.count(1)


def make_box() -> Module:
    """A module that holds what it is given, and forgets it when it ends."""
    module = Module("box", "A box.", states={"shut": "Shut.", "open": "Open."})
    held: list[str] = []

    @module.function(impact=0)
    def put(text: str) -> str:
        """Put something in."""
        held.append(text)
        return " ".join(held)

    @module.function(impact=0)
    def tell(call: Call, text: str) -> str:
        """Say it in every way there is."""
        for character in f"said {text}\n":
            call.output(character)
        call.artifact(f"kept {text}".encode(), name=f"{text}.txt")
        return f"told {text}"

    @module.function(impact=0)
    def fail(text: str) -> str:
        """Fail with it."""
        raise ValueError(text)

    @module.function(impact=0)
    async def ask(call: Call, text: str) -> str:
        """Ask about it."""
        about: JSON = {"type": "string", "description": text}
        answer = await call.ask(f"Is it {text}?", {"type": "object", "properties": {"a": about}})
        return answer.action

    @module.function(impact=0)
    def move(call: Call, text: str) -> str:
        """Go to a state."""
        call.move(text)
        return text

    return module


class Scene:
    """One session's door before a local host, and what came out of it."""

    def __init__(self, host: LocalHost, invoker: Invoker) -> None:
        self.host = host
        self.invoker = invoker
        self.output: list[str] = []
        self.chunks: list[ArtifactChunk] = []
        self.fresh: list[str] = []

    async def call(
        self,
        function: str,
        text: str,
        *,
        start: Start | None = None,
        ticket: Ticket | None = None,
        on_state: OnState | None = None,
        on_ask: OnAsk | None = None,
        fills: FolderUse | None = None,
    ) -> Outcome:
        arguments: dict[str, JSON] = {"text": text}
        call = FunctionCall(
            "/", f"box.{function}", next(_NUMBERS), arguments, {}, WITHIN, start or Start(), fills,
            states=("shut", "open"), on_state=on_state, on_ask=on_ask,
            on_fresh=lambda: self.fresh.append(text),
        )  # fmt: skip

        async def keep(chunk: ArtifactChunk) -> None:
            self.chunks.append(chunk)

        return await self.invoker.call(
            ticket or allowed(call.request),
            call,
            on_output=self.output.append,
            on_artifact=keep,
            report=lambda _: None,
        )

    async def die(self, why: str) -> None:
        """The module that was started first ends, and gRPC has noticed: until then a call may still be sent to it."""
        await self.host.started[0].die(why)
        channel = self.invoker._instances.running[InstanceKey("box", "work")].client._channel
        await channel.wait_for_state_change(grpc.ChannelConnectivity.READY)

    async def done(self, function: str, text: str, *, start: Start | None = None) -> Completed:
        outcome = await self.call(function, text, start=start)
        assert isinstance(outcome, Completed), outcome
        return outcome


def allowed(request: CallRequest) -> Ticket:
    ticket = decide(request, 0, Grant(Scope("all", (("*",),)), 2))
    assert not isinstance(ticket, Denial)
    return ticket


@pytest.fixture
def sockets() -> Iterator[Path]:
    # Not pytest's own directory: the path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


def play(
    sockets: Path,
    scene: Callable[[Scene], Awaitable[None]],
    *,
    clock: HeldClock | None = None,
    workspace_bytes: int = 0,
) -> LocalHost:
    async def main() -> LocalHost:
        async with asyncio.timeout(WITHIN):
            host = LocalHost(sockets, {"box": make_box}, SECRETS)
            invoker = Invoker(host, "s", sockets, workspace_bytes=workspace_bytes, clock=clock, idle=IDLE)
            try:
                await scene(Scene(host, invoker))
            finally:
                await invoker.close()
                await host.close()
            return host

    return asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what is waited for happens in tasks that are not ours
        await asyncio.sleep(0.01)


def test_an_instance_serves_the_calls_of_a_session_and_ends_with_it(sockets: Path) -> None:
    running: list[int] = []

    async def scene(it: Scene) -> None:
        it.invoker.on_change(lambda: running.append(it.invoker.running))
        assert (await it.done("put", "a")).output == "a"
        assert (await it.done("put", "b")).output == "a b"

    host = play(sockets, scene)
    assert len(host.started) == 1
    assert host.started[0].stopped
    assert host.ended == ["s"]
    assert running == [1, 0]


def test_values_passed_by_name_arrive_whole(sockets: Path) -> None:
    async def scene(it: Scene) -> None:
        call = FunctionCall("/", "box.put", 1, {}, {"text": text_value("from a variable")}, WITHIN)
        outcome = await it.invoker.call(
            allowed(call.request), call,
            on_output=it.output.append, on_artifact=_unexpected, report=lambda _: None,
        )  # fmt: skip
        assert isinstance(outcome, Completed)
        assert outcome.output == "from a variable"

    play(sockets, scene)


async def _unexpected(chunk: ArtifactChunk) -> None:
    raise AssertionError(chunk)


def test_a_ticket_for_another_call_starts_nothing(sockets: Path) -> None:
    async def scene(it: Scene) -> None:
        other = allowed(CallRequest("/", "box.tell", ""))
        with pytest.raises(TicketError, match="another call"):
            await it.call("put", "a", ticket=other)

    assert play(sockets, scene).started == []


def test_a_module_that_died_between_calls_starts_anew_and_the_first_call_says_so(sockets: Path) -> None:
    async def scene(it: Scene) -> None:
        await it.done("put", "a")
        await it.done("put", "b")
        assert it.fresh == []
        await it.die("It ran out of memory.")
        fresh = await it.done("put", "c")
        assert fresh.output == "c"
        await it.done("put", "d")
        assert it.fresh == ["c"]

    play(sockets, scene)


def test_a_module_that_dies_during_a_call_says_why(sockets: Path) -> None:
    async def scene(it: Scene) -> None:
        await it.done("put", "a")
        instance = it.host.started[0]
        await it.die("It ran out of memory.")
        instance.lost = None  # the host has not noticed yet

        async def noticed() -> str | None:
            calls.append("asked")
            return "It ran out of memory." if len(calls) > 1 else None

        calls: list[str] = []
        instance.why_lost = noticed  # type: ignore[method-assign]
        with pytest.raises(ModuleLost, match=r"It ran out of memory\. It is started again"):
            await it.done("put", "b")
        assert it.invoker.running == 0
        assert (await it.done("put", "c")).output == "c"

    play(sockets, scene)


def test_another_way_to_run_ends_the_old_instance(sockets: Path) -> None:
    async def scene(it: Scene) -> None:
        await it.done("put", "a", start=Start("1"))
        other = await it.done("put", "b", start=Start("2", ("example.com:443",), ("KEY",)))
        assert other.output == "b"
        assert [one.stopped for one in it.host.started] == [True, False]
        assert it.host.starts == [Start("1"), Start("2", ("example.com:443",), ("KEY",))]

    play(sockets, scene)


@pytest.mark.parametrize("told", [(), ("KEY",), ("KEY", "OTHER")])
def test_what_a_module_says_holds_no_secret_that_it_was_told(sockets: Path, told: tuple[str, ...]) -> None:
    start = Start(secrets=told)

    async def scene(it: Scene) -> None:
        for name, value in SECRETS.items():
            shown = f"[secret {name}]" if name in told else value
            it.output.clear()
            it.chunks.clear()
            outcome = await it.done("tell", value, start=start)
            assert "".join(it.output) == f"said {shown}\n"
            assert shown in outcome.output
            content = b"".join(chunk.data for chunk in it.chunks)
            assert (value.encode() in content) is (name not in told)
            assert len(content) == len(f"kept {value}"), "its size is what it was"
            assert {chunk.name for chunk in it.chunks} == {f"{shown}.txt"}
            raised = await it.call("fail", value, start=start)
            assert isinstance(raised, Raised)
            assert raised.message == shown
            assert (value in raised.trace) is (name not in told)

    play(sockets, scene)


def test_what_a_module_asks_holds_no_secret_that_it_was_told(sockets: Path) -> None:
    asked: list[ModuleAsk] = []

    async def on_ask(ask: ModuleAsk, reply: SendReply) -> None:
        asked.append(ask)
        await reply(ModuleReply("decline"))

    async def scene(it: Scene) -> None:
        for start in (Start(), Start(secrets=("KEY",))):
            outcome = await it.call("ask", "hunter2", start=start, on_ask=on_ask)
            assert isinstance(outcome, Completed)
            assert outcome.output == "decline"

    play(sockets, scene)
    assert [one.message for one in asked] == ["Is it hunter2?", "Is it [secret KEY]?"]
    assert ["hunter2" in one.schema for one in asked] == [True, False]


def test_what_it_says_of_itself_is_kept_for_its_digest(sockets: Path) -> None:
    async def scene(it: Scene) -> None:
        manifest = await it.invoker.describe("box", print, digest="1")
        assert [one.name for one in manifest.functions] == ["put", "tell", "fail", "ask", "move"]
        assert it.host.remembered == {"1": manifest.to_proto()}
        await it.invoker.describe("box", print)
        assert list(it.host.remembered) == ["1"], "no digest was named"

    play(sockets, scene)


def test_a_module_can_be_started_before_its_first_call(sockets: Path) -> None:
    async def scene(it: Scene) -> None:
        await it.invoker.warm("box", print, Start("1"))
        assert it.invoker.running == 1
        await it.done("put", "a", start=Start("1"))

    assert len(play(sockets, scene).started) == 1


def test_calls_at_the_same_time_start_it_once(sockets: Path) -> None:
    async def scene(it: Scene) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(5):
                group.create_task(it.done("put", "a"))

    assert len(play(sockets, scene).started) == 1


def test_an_instance_that_will_not_stop_does_not_keep_the_others_running(sockets: Path) -> None:
    async def scene(it: Scene) -> None:
        await it.done("put", "a")
        it.host.started[0].stubborn = True

    host = play(sockets, scene)
    assert host.ended == ["s"]


def test_a_session_that_rests_runs_nothing_until_its_next_call(sockets: Path) -> None:
    clock = HeldClock()

    async def scene(it: Scene) -> None:
        await it.done("put", "a")
        clock.advance(IDLE - 1)
        assert (await it.done("put", "b")).output == "a b"
        clock.advance(IDLE - 1)
        assert it.invoker.running == 1, "the time counts from the last call"
        clock.advance(1)
        await until(lambda: it.host.started[0].stopped)
        assert it.invoker.running == 0
        fresh = await it.done("put", "c")
        assert fresh.output == "c"
        it.host.started[1].stubborn = True
        clock.advance(IDLE)
        await until(lambda: it.host.started[1].stopped)
        assert (await it.done("put", "d")).output == "d", "what can't be stopped is the host's to remove"

    play(sockets, scene, clock=clock)


def test_a_module_that_told_of_a_state_is_left_running(sockets: Path) -> None:
    clock = HeldClock()

    async def scene(it: Scene) -> None:
        await it.done("put", "a")
        await it.done("move", "open")
        clock.advance(10_000)
        again = await it.done("put", "b")
        assert again.output == "a b"

    play(sockets, scene, clock=clock)


def test_changes_between_calls_are_told_of_once_without_secrets(sockets: Path) -> None:
    heard: list[StateChange] = []

    async def hear(change: StateChange) -> None:
        heard.append(change)

    async def scene(it: Scene) -> None:
        start = Start(secrets=("KEY",))
        outcome = await it.call("move", "open", start=start, on_state=hear)
        assert isinstance(outcome, Completed)
        assert outcome.state == StateChange("open", (), "")
        state = it.host.modules[0].agent("s", "/")
        state.move("shut", note="hunter2 was used")
        await until(lambda: len(heard) == 1)
        await it.call("move", "open", start=start, on_state=hear)
        state.move("shut", note="again")
        await until(lambda: len(heard) == 2)

    play(sockets, scene)
    assert heard == [StateChange("shut", (), "[secret KEY] was used"), StateChange("shut", (), "again")]


def test_a_full_workspace_holds_back_what_may_write_alone(sockets: Path) -> None:
    (sockets / "big").write_bytes(b"x" * (2 << 20))

    async def scene(it: Scene) -> None:
        full = await it.call("put", "a", fills=FolderUse(sockets))
        assert isinstance(full, Raised)
        assert full.type == "WorkspaceFull"
        assert it.host.started == []
        await it.done("put", "b")

    play(sockets, scene, workspace_bytes=1 << 20)


def test_a_module_that_can_not_be_started_is_none_that_runs(sockets: Path) -> None:
    async def scene(it: Scene) -> None:
        with pytest.raises(SandboxError, match="no module 'other'"):
            await it.invoker.warm("other", print, Start())
        assert it.invoker.running == 0

    play(sockets, scene)
