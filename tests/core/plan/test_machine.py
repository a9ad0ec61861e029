"""The machine without a loop: events in any order that the world may choose, and the same ones once more.

A `World` keeps what the machine wants done, and draws from a seed which of it happens next: an attempt ends, an answer
comes (whole or in pieces), a timer is due, a person acts. So far more orders are seen than those in which tasks of a
loop happen to end.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from iact.core.plan.commands import AskModel, StopAsking, StopFiring
from iact.core.plan.forms import read_plan
from iact.core.plan.machine import PlanMachine
from iact.core.plan.model import PlanGraph, make_plan
from iact.core.plan.modes.analyze import Analyze
from iact.core.plan.modes.base import Mode
from iact.core.plan.modes.nreflect import NReflect
from iact.core.plan.modes.orchestrator import Orchestrator
from iact.core.plan.modes.reflect import Reflect
from iact.core.plan.modes.static import Static
from iact.core.plan.protocol import FailureKind, Firing, Outcome, StepFailure, StepSuccess
from iact.core.plan.result import PlanResult
from tests.core.plan.random_plans import REPLIES, Scene, check_laws, random_plan, random_scene
from tests.rounds import rounds

MODES: dict[str, Callable[[], Mode]] = {
    "static": Static,
    "reflect": Reflect,
    "nreflect": lambda: NReflect(2),
    "orchestrator": Orchestrator,
    "analyze": Analyze,
}
FAULTS: tuple[FailureKind, ...] = ("raised", "incomplete", "unavailable", "timeout")
MOST = 5_000
"""Happenings after which a plan counts as endless."""

Happening = tuple[str, tuple[object, ...]]


@dataclass
class World:
    """What is under way, and what has happened so far."""

    machine: PlanMachine
    chance: random.Random
    now: float = 0.0
    firings: dict[str, Firing] = field(default_factory=dict)
    stopping: set[str] = field(default_factory=set)
    asked: dict[int, AskModel] = field(default_factory=dict)
    happened: list[Happening] = field(default_factory=list)

    def tell(self, name: str, *about: object) -> None:
        self.happened.append((name, about))
        getattr(self.machine, name)(*about)
        for command in self.machine.take():
            match command:
                case Firing():
                    self.firings[command.node.id] = command
                case StopFiring():
                    self.stopping.add(command.node)
                case AskModel():
                    self.asked[command.thought] = command
                case StopAsking():
                    self.asked.pop(command.thought, None)

    def step(self, controls: list[tuple[float, str]]) -> None:
        """Let one thing happen."""
        choices: list[Callable[[], None]] = [
            *(lambda node=node: self._end(node) for node in sorted(self.firings)),
            *(lambda number=number: self._answer(number) for number in sorted(self.asked)),
        ]
        if controls and self.chance.random() < 0.2:
            _, name = controls.pop(0)
            choices = [lambda: self._act(name)]
        elif not choices or (self.machine.due is not None and self.chance.random() < 0.15):
            assert self.machine.due is not None or controls, "it waits for nothing"
            choices = (
                [self._wake] if self.machine.due is not None else [lambda: self._act(controls.pop(0)[1])]
            )
        self.now += self.chance.choice((0.0, 0.001, 0.3))
        self.chance.choice(choices)()

    def _wake(self) -> None:
        assert self.machine.due is not None
        self.now = max(self.now, self.machine.due)
        self.tell("wake", self.now)

    def _end(self, node: str) -> None:
        firing = self.firings.pop(node)
        outcome: Outcome | None = self._outcome(firing)
        if node in self.stopping:
            self.stopping.discard(node)
            outcome = None if self.chance.random() < 0.9 else outcome
        self.tell("attempt_ended", node, outcome, self.now)

    def _outcome(self, firing: Firing) -> Outcome:
        if self.chance.random() < 0.25:
            return StepFailure(self.chance.choice(FAULTS), "no", tokens=1)
        return StepSuccess({"v": 1} if self.chance.random() < 0.9 else "", tokens=3)

    def _answer(self, number: int) -> None:
        command = self.asked.pop(number)
        replies = REPLIES.get(command.question.kind)
        if replies is None or self.chance.random() < 0.1:
            self.tell("answered", number, None, "Nobody answers.", self.now)
            return
        self.tell("answered", number, self.chance.choice(replies), "", self.now)

    def _act(self, name: str) -> None:
        match name:
            case "cancel" | "abort":
                self.happened.append(("cancel", (self.now, name)))
                self.machine.cancel(self.now, abort=name == "abort")
                self.tell("wake", self.now)
            case "interject":
                self.tell("interject", "Look again.", self.now)
            case _:
                self.tell(name, self.now)


def machine_of(scene: Scene, mode: str) -> PlanMachine:
    return PlanMachine(scene.plan, mode=MODES[mode](), limits=scene.limits, asks=True)


def explored(scene: Scene, mode: str, seed: int) -> tuple[PlanResult, list[Happening]]:
    """One order of events, drawn from a seed, to the plan's end."""
    world = World(machine_of(scene, mode), random.Random(seed))
    controls = list(scene.controls)
    world.tell("begin", 0.0)
    for _ in range(MOST):
        if world.machine.over:
            break
        world.step(controls)
    assert world.machine.over, f"endless: {world.happened[-5:]}"
    assert not world.firings, "it ends when nothing runs any more"
    return world.machine.result(), world.happened


def again(scene: Scene, mode: str, happened: list[Happening]) -> PlanResult:
    """The same events, told to a fresh machine."""
    machine = machine_of(scene, mode)
    for name, about in happened:
        if name == "cancel":
            at, how = about
            assert isinstance(at, float)
            machine.cancel(at, abort=how == "abort")
        else:
            getattr(machine, name)(*about)
    return machine.result()


@pytest.mark.parametrize("mode", MODES)
def test_whatever_happens_in_whatever_order_the_laws_hold_and_equal_events_lead_to_equal_events(
    mode: str,
) -> None:
    for seed in range(rounds(100)):
        scene = random_scene(seed)
        if scene.limits.wall_clock == 4.0:  # how late a timer is told is this world's choice
            scene.limits = replace(scene.limits, wall_clock=5.0)
        result, happened = explored(scene, mode, seed * 7 + 1)
        check_laws(scene, result)
        assert again(scene, mode, happened) == result, f"seed {seed}"


SMALL = {
    "a fan": "goal: g\nsteps: [{id: a, call: f}, {id: b, call: f}, {id: c, call: f, after: [a, b]}]",
    "a race": "goal: g\nsteps: [{id: a, call: f}, {id: b, call: f}, {id: c, call: f, after: [a, b], join: any_of}]",
    "agents": "goal: g\nsteps: [{id: a, agent: x, task: t}, {id: b, agent: x, task: t}, {id: c, call: f, after: [a]}]",
}


@pytest.mark.parametrize("title", SMALL)
@pytest.mark.parametrize("mode", MODES)
def test_many_orders_of_one_small_plan(title: str, mode: str) -> None:
    plan = read_plan(SMALL[title], id="p")
    orders = set()
    for seed in range(rounds(50)):
        scene = Scene(plan, random_scene(1).limits, {}, [(0.0, "pause"), (0.0, "resume")])
        result, happened = explored(scene, mode, seed)
        check_laws(scene, result)
        assert again(scene, mode, happened) == result
        orders.add(tuple(str(one) for one in result.trail))
    assert len(orders) > 10, "the seeds must lead to different runs"


def test_what_is_told_after_the_end_changes_nothing() -> None:
    scene = random_scene(3, controls=False)
    world = World(machine_of(scene, "static"), random.Random(3))
    world.tell("begin", 0.0)
    while not world.machine.over:
        world.step([])
    before = world.machine.result()
    world.tell("interject", "too late", world.now)
    world.tell("cancel_node", next(iter(scene.plan.nodes)), world.now)
    world.tell("answered", 99, "who?", "", world.now)
    world.tell("wake", world.now)
    assert world.machine.result() == before


def test_a_plan_that_is_fed_piece_by_piece_starts_each_step_as_soon_as_it_is_whole() -> None:
    machine = PlanMachine(make_plan("p", ()), growing=True)
    machine.begin(0.0)
    machine.write("steps:\n  - {id: a, call: f}\n", 1.0)
    assert [one.node.id for one in machine.take() if isinstance(one, Firing)] == ["a"]
    machine.write("  - {id: b, call: f, after: [a]}\n", 2.0)
    machine.written(3.0)
    machine.attempt_ended("a", StepSuccess("x"), 4.0)
    assert [one.node.id for one in machine.take() if isinstance(one, Firing)] == ["b"]
    machine.attempt_ended("b", StepSuccess("y"), 5.0)
    assert machine.over
    assert machine.result().status == "concluded"


def test_random_plans_are_plans() -> None:
    """A guard for the tests above: what they explore has joins, races, refs and failures."""
    plans: list[PlanGraph] = [random_plan(random.Random(seed)) for seed in range(200)]
    nodes = [node for plan in plans for node in plan.nodes.values()]
    assert any(node.join == "any_of" for node in nodes)
    assert any(node.refs for node in nodes)
    assert any(node.kind == "agent" for node in nodes)


def test_a_message_that_was_taken_back_holds_nothing_up() -> None:
    """Its step is cancelled while it waits for what runs: nobody thinks about it, and what waited goes on."""
    steps = "steps:\n  - {id: a, call: f}\n  - {id: b, call: f, after: [a]}\n"
    machine = PlanMachine(read_plan(steps, id="p"), asks=True)
    machine.begin(0.0)
    machine.interject("Look again.", 1.0)
    machine.cancel_node("interjection-1", 2.0, reason="No.")
    machine.take()
    machine.attempt_ended("a", StepSuccess("x"), 3.0)
    fired = [one.node.id for one in machine.take() if isinstance(one, Firing)]
    assert fired == ["b"]
    machine.attempt_ended("b", StepSuccess("y"), 4.0)
    assert machine.over
    assert machine.result().status == "concluded"
