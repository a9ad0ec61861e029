"""Which instance serves a call, what goes with the call from one to another, how many run, and what ends them."""

from __future__ import annotations

import asyncio
import itertools
import math
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ext_modules.sdk import AgentState, Call, Module
from iact.core.errors import ModuleFault, ModuleLost, SandboxUnavailable
from iact.core.gate.gate import Denial, decide
from iact.core.gate.grant import Grant, Scope
from iact.core.modules.client import ArtifactChunk, Completed, Outcome
from iact.core.modules.instance_limit import InstanceLimit
from iact.core.modules.instances import MOST
from iact.core.modules.invoker import FunctionCall, Invoker
from iact.core.modules.registry import Start
from iact.core.modules.state_names import of_step
from iact.core.ports import JSON, AtOnce
from tests.core.modules.local_host import LocalHost

WITHIN: Final = 60
SHARED: Final = Start(views=True)
OWN: Final = Start(views=True, own=True)
ONE: Final = Start()
_NUMBERS = itertools.count(1)


class Den:
    """Modules that say which of them was called; `gates` hold calls back, and `ended` is who was asked to end."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.gates: dict[str, asyncio.Event] = {}
        self.arrived: set[str] = set()
        self.ended: list[str] = []
        self.ends = True

    def make(self) -> Module:
        module = Module("den", "A den.", states={"empty": "Empty.", "full": "Full."})
        number = next(self.numbers)

        @module.function(impact=0)
        async def where(call: Call, text: str = "") -> int:
            """Which one it is."""
            self.arrived.add(text)
            if text in self.gates:
                await self.gates[text].wait()
            return number

        @module.function(impact=0)
        def keep(call: Call, text: str) -> str:
            """Carry it on, and tell what came."""
            came = call.carried.decode()
            if text:
                call.carry(text.encode())
            return came

        @module.function(impact=0)
        def move(call: Call, text: str) -> int:
            """Go to a state."""
            call.agent_state._known = {text: ""}  # the core has to see to it, not the SDK
            call.move(text)
            return number

        if self.ends:

            @module.ends_background
            async def end(agent: AgentState) -> None:
                self.ended.append(f"{number} {agent.agent}")

        return module


class Scene:
    def __init__(self, host: LocalHost, invoker: Invoker, den: Den) -> None:
        self.host = host
        self.invoker = invoker
        self.den = den

    async def call(
        self,
        function: str,
        text: str = "",
        *,
        impact: float = 0,
        agent: str = "/",
        start: Start = SHARED,
        intent: float = 2,
        held: bool = False,
        exclusive: bool = False,
        step: str = "",
        seconds: float = WITHIN,
    ) -> Outcome:
        arguments: dict[str, JSON] = {"text": text}
        call = FunctionCall(
            agent, f"den.{function}", next(_NUMBERS), arguments, {}, seconds, start,
            exclusive=exclusive, states=("empty", "full"), step=step,
        )  # fmt: skip
        ticket = decide(call.request, impact, Grant(Scope("all", (("*",),)), intent), held=held)
        assert not isinstance(ticket, Denial)
        return await self.invoker.call(
            ticket, call, on_output=lambda _: None, on_artifact=_drop, report=lambda _: None
        )

    async def seat(
        self,
        text: str = "",
        *,
        function: str = "where",
        impact: float = 0,
        agent: str = "/",
        start: Start = SHARED,
        intent: float = 2,
        held: bool = False,
    ) -> tuple[str, str]:
        """The right and the agent of the instance that served a call."""
        outcome = await self.call(
            function, text, impact=impact, agent=agent, start=start, intent=intent, held=held
        )
        assert isinstance(outcome, Completed), outcome
        return self.host.seats[int(outcome.output)]

    async def waits(self, text: str) -> None:
        """Until a call that waits at a gate has arrived there."""
        while text not in self.den.arrived:  # noqa: ASYNC110 - it arrives in a task of the module's server
            await asyncio.sleep(0.005)


async def _drop(chunk: ArtifactChunk) -> None:
    return None


def play(scene: Callable[[Scene], Awaitable[None]], *, ends: bool = True) -> LocalHost:
    async def main(sockets: Path) -> LocalHost:
        async with asyncio.timeout(WITHIN):
            den = Den()
            den.ends = ends
            host = LocalHost(sockets, {"den": den.make})
            invoker = Invoker(host, "s", sockets)
            try:
                await scene(Scene(host, invoker, den))
            finally:
                await invoker.close()
                await host.close()
            return host

    # Not pytest's own directory: the path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory() as directory:
        return asyncio.run(main(Path(directory)))


_CALLS = st.lists(
    st.tuples(
        st.sampled_from([0, 0.5, 1, 2]), st.sampled_from(["/", "/a"]), st.sampled_from([SHARED, OWN]),
        st.booleans(), st.booleans(),
    ),
    min_size=1, max_size=8,
)  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(_CALLS)
def test_a_call_of_impact_0_never_reaches_a_worker(
    calls: list[tuple[float, str, Start, bool, bool]],
) -> None:
    """Whatever came before, and whatever is under way."""

    async def scene(it: Scene) -> None:
        async def made(impact: float, agent: str, start: Start, held: bool) -> None:
            right, whose = await it.seat(impact=impact, agent=agent, start=start, held=held)
            assert right == ("work" if impact > 0 or held else "look")
            assert whose == (agent if start.own else "")

        async with asyncio.TaskGroup() as group:
            for impact, agent, start, held, together in calls:
                task = group.create_task(made(impact, agent, start, held))
                if not together:
                    await task

    play(scene)


def test_an_agent_of_intent_0_has_no_worker_not_even_for_what_is_held() -> None:
    async def scene(it: Scene) -> None:
        assert await it.seat(intent=0, held=True) == ("look", "")
        assert await it.seat(intent=1, held=True) == ("work", "")
        assert await it.seat(intent=0.5, impact=0.5) == ("work", "")
        assert await it.seat(intent=0, start=ONE) == ("work", ""), "it can't write anyway"

    play(scene)


def test_what_is_carried_goes_from_instance_to_instance_and_to_no_other_agent() -> None:
    async def kept(it: Scene, text: str, *, impact: float, agent: str = "/a") -> str:
        outcome = await it.call("keep", text, impact=impact, agent=agent, start=OWN)
        assert isinstance(outcome, Completed)
        return outcome.output

    async def scene(it: Scene) -> None:
        assert await kept(it, "one", impact=0) == ""
        assert await kept(it, "", impact=1) == "one"
        assert await kept(it, "two", impact=1) == "one"
        assert await kept(it, "", impact=0, agent="/b") == ""
        await it.invoker.halt(lambda _: True, most=-math.inf, idle=True)
        assert await kept(it, "", impact=0) == "two", "whatever became of the instances"
        await it.invoker.drop("den")
        assert await kept(it, "", impact=0) == "", "the module was removed"

    play(scene)


def test_what_served_an_app_that_ended_serves_nothing_more() -> None:
    """Files and processes that the app left would tell the next one what a person typed into it."""

    async def which(it: Scene) -> str:
        outcome = await it.call("where", impact=1, agent="/a", start=OWN)
        assert isinstance(outcome, Completed)
        return outcome.output

    async def scene(it: Scene) -> None:
        first = await which(it)
        assert await which(it) == first, "nothing was served yet"
        for instance in it.host.started:
            instance.serves_apps = True
        await it.call("move", "full", impact=1, agent="/a", start=OWN)
        assert await which(it) == first, "the app is served"
        await it.call("move", "empty", impact=1, agent="/a", start=OWN)
        assert await which(it) != first

    play(scene)


def test_other_modules_serve_on_when_what_they_held_has_ended() -> None:
    async def scene(it: Scene) -> None:
        await it.call("move", "full", impact=1, agent="/a", start=OWN)
        await it.call("move", "empty", impact=1, agent="/a", start=OWN)
        await it.call("where", impact=1, agent="/a", start=OWN)
        assert len(it.host.started) == 1

    play(scene)


def test_looks_of_several_agents_overlap_and_exclusive_calls_of_one_do_not() -> None:
    async def scene(it: Scene) -> None:
        gates = it.den.gates = {name: asyncio.Event() for name in ("a", "b", "first")}
        async with asyncio.TaskGroup() as group:
            for name in ("a", "b"):
                group.create_task(it.call("where", name, agent=f"/{name}"))
            await it.waits("a")
            await it.waits("b")
            for gate in (gates["a"], gates["b"]):
                gate.set()
            group.create_task(it.call("where", "first", impact=1, exclusive=True, start=OWN))
            await it.waits("first")
            later = group.create_task(it.call("where", "second", impact=0, exclusive=True, start=OWN))
            await it.call("where", "third", impact=0, exclusive=True, start=OWN, agent="/other")
            assert "second" not in it.den.arrived
            assert not later.done()
            gates["first"].set()

    play(scene)


def test_only_so_many_run_and_the_one_that_was_idle_longest_goes() -> None:
    async def scene(it: Scene) -> None:
        it.invoker._instances.most = 3
        for agent in ("/a", "/b", "/c", "/a", "/d"):
            await it.seat(agent=agent, start=OWN)
        assert [one.agent for one in it.invoker._instances.running] == ["/a", "/c", "/d"]
        await it.call("move", "full", agent="/c", start=OWN)
        for agent in ("/a", "/d", "/e"):
            await it.seat(agent=agent, start=OWN)
        assert [one.agent for one in it.invoker._instances.running] == ["/c", "/d", "/e"], (
            "/c holds something"
        )

        gates = it.den.gates = {name: asyncio.Event() for name in ("/c", "/d", "/e")}
        async with asyncio.TaskGroup() as group:
            for agent in gates:
                group.create_task(it.seat(agent, agent=agent, start=OWN))
                await it.waits(agent)
            waiting = group.create_task(it.seat(agent="/f", start=OWN))
            await asyncio.sleep(0)
            assert it.invoker.running == 3
            gates["/d"].set()
            await waiting
            assert it.invoker.running == 3
            gates["/c"].set()
            gates["/e"].set()

    play(scene)
    assert MOST < 100


class TwoAtOnce:
    """Limits of a user who may have two modules running."""

    async def sessions(self, *, begun: bool = False) -> None:
        """Any number."""

    async def containers(self) -> AtOnce:
        return AtOnce(2)

    def count(self, kind: str, taken: Callable[[], int]) -> None:
        """Nobody shares them."""


async def test_all_sessions_of_a_user_together_run_no_more_than_they_may() -> None:
    limit, den = InstanceLimit(TwoAtOnce()), Den()
    with tempfile.TemporaryDirectory() as directory:
        host = LocalHost(Path(directory), {"den": den.make})
        mine, other = (
            Scene(host, Invoker(host, name, Path(directory), limit=limit), den) for name in ("s", "t")
        )
        async with asyncio.timeout(WITHIN):
            assert isinstance(await other.call("where", start=OWN, agent="/"), Completed)
            assert isinstance(await mine.call("where", start=OWN, agent="/"), Completed)
            # Its own idle instance makes room for another one; that of another session doesn't.
            assert isinstance(await mine.call("where", start=OWN, agent="/a"), Completed)
            assert (mine.invoker.running, other.invoker.running) == (1, 1)
            den.gates["held"] = asyncio.Event()
            held = asyncio.create_task(mine.call("where", "held", start=OWN, agent="/a"))
            await mine.waits("held")
            with pytest.raises(SandboxUnavailable, match="No more than 2 of your modules"):
                await mine.call("where", start=OWN, agent="/b")
            await other.invoker.close()
            assert isinstance(await mine.call("where", start=OWN, agent="/b"), Completed)
            den.gates["held"].set()
            assert isinstance(await held, Completed)
            await mine.invoker.close()
            await host.close()


@pytest.mark.parametrize("states", [("empty", "full"), ()])
def test_a_state_that_the_manifest_does_not_name_is_the_modules_fault(states: tuple[str, ...]) -> None:
    async def scene(it: Scene) -> None:
        call = FunctionCall("/", "den.move", 1, {"text": "a" * 40}, {}, WITHIN, SHARED, states=states)
        ticket = decide(call.request, 0, Grant(Scope("all", (("*",),)), 1))
        assert not isinstance(ticket, Denial)
        with pytest.raises(
            ModuleFault, match=r"reported the state 'aaa.*not in its manifest; it names (empty, full|none)\."
        ):
            await it.invoker.call(ticket, call, on_output=print, on_artifact=_drop, report=print)

    play(scene)


def test_what_a_module_is_asked_of_itself_it_answers_where_it_can_only_look() -> None:
    async def scene(it: Scene) -> None:
        manifest = await it.invoker.describe("den", print, digest="1")
        assert manifest.name == "den"
        assert it.host.seats == [("look", "")]
        await it.seat(start=Start("1"))
        assert it.host.seats == [("look", "")], "it needs no files, so it is the one there is"

    play(scene)


# --- rights that change -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "idle"), [(math.inf, False), (1, True), (0, True), (-math.inf, True)])
def test_a_worker_that_holds_something_is_frozen_and_stopped(most: float, idle: bool) -> None:
    async def scene(it: Scene) -> None:
        for agent in ("/a", "/a/b", "/c"):
            await it.call("move", "full", impact=1, agent=agent, start=OWN)
        await it.seat(impact=0, agent="/a", start=OWN)
        await it.invoker.halt(lambda agent: idle or agent.startswith("/a"), most=most, idle=idle)
        assert [one.frozen for one in it.host.started] == [True, True, idle, False]
        await it.seat(impact=1, agent="/a", start=OWN)
        assert len(it.host.started) == 5, "its next call starts it again"

    host = play(scene)
    assert all(one.stopped for one in host.started)


@pytest.mark.parametrize("idle", [False, True])
def test_a_call_that_may_go_on_does_and_what_runs_beside_it_is_ended(idle: bool) -> None:
    async def scene(it: Scene) -> None:
        gate = it.den.gates["slow"] = asyncio.Event()
        await it.call("move", "full", impact=1, agent="/a", start=OWN)
        slow = asyncio.ensure_future(it.seat("slow", impact=1, agent="/a", start=OWN))
        await it.waits("slow")
        await it.invoker.halt(lambda agent: agent == "/a", most=1 if idle else math.inf, idle=idle)
        assert it.den.ended == ["0 /a"]
        assert not it.host.started[0].frozen
        gate.set()
        assert await slow == ("work", "/a")
        assert it.host.started[0].stopped, "behind the last of its calls"
        assert it.invoker.running == 0

    play(scene)


@pytest.mark.parametrize("ends", [True, False])
def test_what_an_agent_left_running_is_ended_and_everything_else_goes_on(ends: bool) -> None:
    async def scene(it: Scene) -> None:
        for agent in ("/a", "/b"):
            await it.call("move", "full", impact=1, agent=agent)
        await it.call("move", "full", impact=1, agent="/plan", step=of_step("/plan", "s"))
        await it.invoker.end_background(lambda agent: agent in ("/a", "/plan"))
        assert sorted(it.den.ended) == (["0 /a", "0 /plan#s"] if ends else [])
        assert not it.host.started[0].frozen
        assert not it.host.started[0].stopped
        assert await it.seat(impact=1, agent="/b")
        assert it.invoker.running == 1

    play(scene, ends=ends)


@pytest.mark.parametrize("ends", [True, False])
def test_what_an_instance_holds_for_others_outlives_a_pause_of_one_agent(ends: bool) -> None:
    """Only a module that can't end one agent's work alone is ended as a whole."""

    async def scene(it: Scene) -> None:
        for agent in ("/a", "/b"):
            await it.call("move", "full", impact=1, agent=agent)
        await it.invoker.halt(lambda agent: agent == "/a", most=math.inf, idle=False)
        assert it.den.ended == (["0 /a"] if ends else [])
        assert it.host.started[0].frozen is not ends
        if ends:
            assert await it.seat(impact=1, agent="/b")
            assert len(it.host.started) == 1, "it goes on as it was"
            await it.invoker.halt(lambda agent: agent == "/b", most=math.inf, idle=False)
            assert it.host.started[0].frozen, "nobody else is in it now"

    play(scene, ends=ends)


def test_a_module_that_can_not_end_what_it_holds_is_ended_with_its_calls() -> None:
    async def scene(it: Scene) -> None:
        it.den.gates["slow"] = asyncio.Event()
        await it.call("move", "full", impact=1, agent="/a", start=OWN)
        slow = asyncio.ensure_future(it.seat("slow", impact=1, agent="/a", start=OWN))
        await it.waits("slow")
        await it.invoker.halt(lambda agent: agent == "/a", most=math.inf, idle=False)
        assert it.host.started[0].frozen
        with pytest.raises(ModuleLost, match="the permissions of its agent were changed"):
            await slow

    play(scene, ends=False)


@pytest.mark.parametrize("impact", [0, 1])
def test_a_call_that_does_more_than_it_may_now_is_lost_wherever_it_is(impact: float) -> None:
    async def scene(it: Scene) -> None:
        it.den.gates["slow"] = asyncio.Event()
        slow, queued = [
            asyncio.ensure_future(
                it.call("where", text, impact=impact, agent="/a", start=OWN, exclusive=True)
            )
            for text in ("slow", "next")
        ]
        await it.waits("slow")
        await it.invoker.halt(lambda _: True, most=impact, idle=True)
        assert not slow.done()
        await it.invoker.halt(lambda _: True, most=impact - 0.1, idle=True)
        for lost in (slow, queued):
            with pytest.raises(ModuleLost, match="the permissions of its agent were changed"):
                await lost
        assert "next" not in it.den.arrived
        assert it.host.started[0].frozen

    play(scene)


def test_what_others_share_is_ended_only_for_what_it_holds_for_those_who_may_less() -> None:
    async def scene(it: Scene) -> None:
        await it.seat(impact=1, agent="/a")
        await it.invoker.halt(lambda agent: agent == "/a", most=math.inf, idle=False)
        assert not it.host.started[0].frozen
        await it.call("move", "full", impact=1, agent="/b")
        await it.invoker.halt(lambda agent: agent == "/a", most=math.inf, idle=False)
        assert not it.host.started[0].frozen
        await it.invoker.halt(lambda agent: agent == "/b", most=math.inf, idle=False)
        assert it.host.started[0].frozen

    play(scene)


def test_a_module_without_files_keeps_what_it_holds_over_a_pause_and_not_over_a_lockdown() -> None:
    async def scene(it: Scene) -> None:
        await it.call("move", "full", impact=1, start=ONE)
        await it.invoker.halt(lambda _: True, most=math.inf, idle=False)
        assert not it.host.started[0].frozen
        await it.invoker.halt(lambda _: True, most=-math.inf, idle=True)
        assert it.host.started[0].frozen

    play(scene)


@pytest.mark.parametrize("start", [ONE, SHARED, OWN])
def test_steps_of_one_plan_have_each_a_part_of_a_module(start: Start) -> None:
    """In one instance: what one step carries on comes to no other, and their exclusive calls overlap."""

    async def scene(it: Scene) -> None:
        one, two = of_step("/p", "one"), of_step("/p", "two")
        await it.call("keep", "kept", agent="/p", start=start, step=one)
        other = await it.call("keep", agent="/p", start=start, step=two)
        again = await it.call("keep", agent="/p", start=start, step=one)
        assert isinstance(other, Completed)
        assert isinstance(again, Completed)
        assert (other.output, again.output) == ("", "kept")
        it.den.gates = {"one": asyncio.Event(), "two": asyncio.Event()}
        async with asyncio.TaskGroup() as group:
            for text, step in (("one", one), ("two", two)):
                calls = it.call("where", text, agent="/p", start=start, exclusive=True, step=step)
                group.create_task(calls)
            await it.waits("one")
            await it.waits("two")
            for gate in it.den.gates.values():
                gate.set()
        assert len(it.host.seats) == 1

    play(scene)


@pytest.mark.parametrize("start", [ONE, SHARED, OWN])
def test_the_time_of_a_call_does_not_begin_while_it_waits_for_its_turn(start: Start) -> None:
    async def scene(it: Scene) -> None:
        it.den.gates["first"] = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(it.call("where", "first", start=start, exclusive=True))
            await it.waits("first")
            second = group.create_task(it.call("where", "second", start=start, exclusive=True, seconds=1))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.5):
                    await asyncio.shield(second)
            it.den.gates["first"].set()
        assert isinstance(second.result(), Completed)

    play(scene)


def test_what_steps_left_running_is_ended_with_the_rights_of_their_plan() -> None:
    async def scene(it: Scene) -> None:
        for one in ("one", "two"):
            await it.call("move", "full", impact=1, agent="/p", step=of_step("/p", one))
        await it.call("move", "full", impact=1, agent="/q", step=of_step("/q", "one"))
        it.den.gates["goes on"] = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(it.call("where", "goes on", impact=1, agent="/q"))
            await it.waits("goes on")
            await it.invoker.halt(lambda agent: agent == "/p", most=math.inf, idle=False)
            it.den.gates["goes on"].set()
        assert sorted(it.den.ended) == ["0 /p#one", "0 /p#two"]

    play(scene)
