"""Random plans, outcomes and controls, all from one seed, and the laws that every run must keep."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import dataclass

from iact.core.plan.forms import version_from_json, version_to_json
from iact.core.plan.limits import PlanLimits
from iact.core.plan.model import Contract, PlanExtension, PlanGraph, PlanNode, PlanVersion, Ref, make_plan
from iact.core.plan.modes.base import Mode
from iact.core.plan.protocol import Firing, Outcome, StepFailure, StepSuccess
from iact.core.plan.result import PlanResult
from iact.core.plan.state import DEFAULT_RETRIES, NodeChange, PlanState
from iact.core.plan.states import TERMINAL
from tests.core.plan.engine import PlanEngine, Waiting
from tests.core.plan.fakes import ScriptedAsker, VirtualClock, drive, run

FAULTS = ("raised", "incomplete", "unavailable", "contract", "exception", "hang", "slow_then_gone")


@dataclass
class Scene:
    """What a seed stands for."""

    plan: PlanGraph
    limits: PlanLimits
    outcomes: dict[str, list[tuple[str, float]]]
    """Per node and attempt: "ok" or a fault, and how long it takes."""
    controls: list[tuple[float, str]]


def random_plan(rng: random.Random, *, most: int = 12) -> PlanGraph:
    count = rng.randint(1, most)
    nodes: list[PlanNode] = []
    for i in range(count):
        earlier = [node.id for node in nodes]
        after = tuple(sorted(rng.sample(earlier, min(len(earlier), rng.choice((0, 1, 1, 2, 3))))))
        raced = len(after) >= 2 and rng.random() < 0.35
        refs = {}
        if earlier and rng.random() < 0.3:
            step = rng.choice(earlier)
            if raced and step in after:
                step = "*"
            refs["x"] = Ref(step, rng.choice(("", "", "v", "nothing")))
        nodes.append(
            PlanNode(
                f"n{i:02}",
                kind="agent" if rng.random() < 0.1 else "tool",
                call="f",
                task="t",
                refs=refs,
                after=after,
                join="any_of" if raced else "all_of",
                impact=rng.choice((None, 0, 0, 1)),
                idempotent=rng.random() < 0.5,
                timeout=rng.choice((None, 5.0)),
                retries=rng.choice((None, 0, 1, 3)),
                writes=("db",) if rng.random() < 0.15 else (),
                contract=Contract(non_empty=True) if rng.random() < 0.2 else PlanNode("x").contract,
            )
        )
    rng.shuffle(nodes)
    return make_plan("p", nodes, goal="g")


def random_scene(seed: int, *, controls: bool = True) -> Scene:
    rng = random.Random(seed)
    plan = random_plan(rng)
    bad = rng.choice((0.0, 0.1, 0.3, 0.7))
    outcomes = {
        one: [
            (rng.choice(FAULTS) if rng.random() < bad else "ok", rng.choice((0.0, 0.0, rng.random() * 4)))
            for _ in range(6)
        ]
        for one in plan.nodes
    }
    limits = PlanLimits(
        concurrency=rng.choice((1, 2, 16)),
        node_timeout=rng.choice((3.0, 60.0)),
        wall_clock=rng.choice((4.0, 3600.0, 3600.0)),
        patches=rng.choice((0, 2)),
        replans=rng.choice((0, 1)),
        model_calls=rng.choice((2, 12)),
    )
    some = []
    if controls and rng.random() < 0.6:
        kinds = ("pause", "resume", "cancel", "abort", "interject", "interject")
        some = sorted((rng.random() * 8, rng.choice(kinds)) for _ in range(rng.randint(1, 4)))
        some.append((50.0, "resume"))
    return Scene(plan, limits, outcomes, some)


class RandomRunner:
    """Does what the scene says, and watches that nothing runs that must not."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.active = 0
        self.writers = 0

    async def run(self, firing: Firing, waiting: Waiting) -> Outcome:
        said, seconds = self._scene.outcomes.get(firing.node.id, [("ok", 0.0)])[(firing.attempt - 1) % 6]
        self.active += 1
        self.writers += bool(firing.node.writes)
        assert self.active <= self._scene.limits.concurrency
        assert self.writers <= 1
        try:
            return await self._do(said, seconds)
        finally:
            self.active -= 1
            self.writers -= bool(firing.node.writes)

    async def _do(self, said: str, seconds: float) -> Outcome:
        if said == "hang":
            await asyncio.Event().wait()
        if seconds:
            await asyncio.sleep(seconds)
        if said == "exception":
            raise RuntimeError("boom")
        if said == "contract":
            return StepSuccess("", exit_status=1)
        if said == "slow_then_gone":
            await asyncio.sleep(100)
            return StepFailure("unavailable", "gone")
        if said in ("raised", "incomplete", "unavailable"):
            return StepFailure(said, "no")  # type: ignore[arg-type]
        return StepSuccess({"v": 1}, tokens=3)


REPLIES = {
    "reflect": ['{"decision": "continue"}', '{"decision": "replan", "reason": "more"}', "mumble", '{"decision": "conclude"}'],
    "interject": ['{"decision": "continue"}', '{"decision": "replan"}', '{"decision": "conclude", "answer": "done"}'],
    "observe": [
        '{"action": "continue"}',
        '{"action": "inject", "steps": [{"id": "extra", "call": "f"}]}',
        '{"action": "cancel", "cancel": ["n03", "n05", "n99"]}',
        '{"action": "reflect"}',
    ],
    "patch": ['{"steps": [{"id": "new", "call": "f"}]}', '{"skip": true}', "no idea", '{"steps": [{"id": "n00", "call": "f"}]}'],
    "replan": ["steps: [{id: more, call: f}, {id: last, call: f, after: [more, n00]}]", "garbage"],
    "correct": ["steps: [{id: corrected, call: f}]"],
    "analyze": ['{"achieved": false, "confidence": 0.2, "reasoning": "r"}', '{"achieved": true, "confidence": 1}'],
    "synthesize": ["All is well."],
}  # fmt: skip


def run_scene(scene: Scene, mode: Callable[[], Mode], seed: int) -> tuple[PlanResult, ScriptedAsker]:
    """Run it once in virtual time; the model's replies are drawn from the seed too."""
    rng = random.Random(seed)
    asker = ScriptedAsker({kind: rng.sample(some, len(some)) for kind, some in REPLIES.items()})

    async def scenery() -> PlanResult:
        engine = PlanEngine(
            scene.plan,
            runner=RandomRunner(scene),
            clock=VirtualClock(),
            asker=asker,
            mode=mode(),
            limits=scene.limits,
        )
        acts: dict[str, Callable[[], None]] = {
            "pause": engine.pause,
            "resume": engine.resume,
            "cancel": engine.cancel,
            "abort": lambda: engine.cancel(abort=True),
            "interject": lambda: engine.interject("Look again."),
        }
        return await drive(engine, *((at, acts[name]) for at, name in scene.controls))

    return run(scenery()), asker


def check_laws(scene: Scene, result: PlanResult) -> None:
    """Every law of plans, checked on the trail alone and not with the engine's own bookkeeping."""
    nodes: dict[str, PlanNode] = {}
    state: dict[str, str] = {}
    attempts: dict[str, int] = {}
    version = 0
    was_ready: set[str] = set()
    for event in result.trail:
        if isinstance(event, PlanVersion):
            assert event.version == version + 1
            assert event.parent == (version or None)
            assert event.reason
            version = event.version
            for one in event.drop:
                assert state[one] in ("cancelled", "skipped")
            for node in event.rewire:
                assert state[node.id] in ("pending", "ready", "blocked")
            for node in (*event.add, *event.rewire):
                nodes[node.id] = node
                state.setdefault(node.id, "pending")
            continue
        if isinstance(event, PlanExtension):
            assert event.version == version
            for node in event.add:
                nodes[node.id] = node
                state.setdefault(node.id, "pending")
            continue
        assert event.version == version, "a change names the version that governed it"
        assert event.source == state[event.node]
        assert event.source not in TERMINAL, "terminal states absorb"
        state[event.node] = event.target
        if event.cause in ("joined", "dispatched"):
            node = nodes[event.node]
            assert all(state[one] == "executed" for one in node.required)
            if node.join == "any_of":
                assert any(state[one] == "executed" for one in node.candidates)
        if event.cause == "joined":
            was_ready.add(event.node)
        if event.cause == "dispatched":
            assert event.node in was_ready
            attempts[event.node] = attempts.get(event.node, 0) + 1
            retries = nodes[event.node].retries
            assert attempts[event.node] <= 1 + (DEFAULT_RETRIES if retries is None else retries)
    assert set(state.values()) <= TERMINAL, "every node ends"
    assert result.model_calls <= scene.limits.model_calls
    assert len(nodes) - len(scene.plan.nodes) <= scene.limits.nodes
    if scene.limits.wall_clock == 4.0:
        assert result.seconds <= 56, "its own clock stands still while it is paused, for at most 50 s here"
    if result.status == "concluded":
        assert not result.missing


def refolded(result: PlanResult) -> PlanState:
    """The state that the events lead to when they come from a journal."""
    fold = PlanState("p", "g")
    for event in result.trail:
        if isinstance(event, PlanVersion):
            fold.adopt(version_from_json(json.loads(json.dumps(version_to_json(event)))))
        elif isinstance(event, PlanExtension):
            fold.extend(event)
        else:
            fold.apply(NodeChange.from_json(json.loads(json.dumps(event.to_json()))))
    return fold
