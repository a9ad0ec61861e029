"""The laws of plans over random plans, outcomes and controls: at least 20,000 in a whole run."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iact.core.plan.limits import PlanLimits
from iact.core.plan.model import PlanExtension, PlanNode, PlanVersion
from iact.core.plan.modes.analyze import Analyze
from iact.core.plan.modes.base import Mode
from iact.core.plan.modes.nreflect import NReflect
from iact.core.plan.modes.orchestrator import Orchestrator
from iact.core.plan.modes.reflect import Reflect
from iact.core.plan.modes.static import Static
from iact.core.plan.state import NodeChange, PlanState
from iact.core.plan.states import TERMINAL
from tests.core.plan.engine import PlanEngine
from tests.core.plan.fakes import ScriptedRunner, VirtualClock, run
from tests.core.plan.random_plans import (
    FAULTS,
    Scene,
    check_laws,
    random_plan,
    random_scene,
    refolded,
    run_scene,
)
from tests.rounds import rounds

MODES: dict[str, Callable[[], Mode]] = {
    "static": Static,
    "reflect": Reflect,
    "nreflect": lambda: NReflect(2),
    "orchestrator": Orchestrator,
    "analyze": lambda: Analyze(2),
}
BATCH = 80
"""Plans per example: hypothesis chooses where they start, so that its own cost is shared."""


@pytest.mark.parametrize("name", MODES)
@settings(max_examples=rounds(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(start=st.integers(0, 2**48))
def test_every_run_keeps_the_laws(name: str, start: int) -> None:
    for seed in range(start, start + BATCH):
        scene = random_scene(seed)
        result, _ = run_scene(scene, MODES[name], seed)
        check_laws(scene, result)


def test_the_runs_add_up() -> None:
    assert len(MODES) * 50 * BATCH >= 20_000


@pytest.mark.parametrize("name", MODES)
def test_equal_inputs_give_equal_traces_and_a_replay_folds_to_the_same(name: str) -> None:
    for seed in range(150):
        scene = random_scene(seed)
        first, asked = run_scene(scene, MODES[name], seed)
        second, again = run_scene(random_scene(seed), MODES[name], seed)
        assert [str(one) for one in first.trail] == [str(one) for one in second.trail]
        assert [q.text for q in asked.asked] == [q.text for q in again.asked]
        fold = refolded(first)
        for one, record in first.nodes.items():
            copy = fold.nodes[one]
            assert (copy.state, copy.output, copy.attempts, copy.version, copy.rung) == (
                record.state, record.output, record.attempts, record.version, record.rung
            )  # fmt: skip


def test_readiness_of_all_of_is_monotone() -> None:
    """More executed predecessors never make a ready node unready (Graph Harness, proposition A.1)."""
    for seed in range(300):
        rng = random.Random(seed)
        plan = random_plan(rng)
        order = sorted(plan.nodes)
        done: set[str] = set()
        ready: set[str] = set()
        while order:
            now = {
                one for one in plan.nodes
                if plan.nodes[one].join == "all_of" and set(plan.nodes[one].required) <= done
            }  # fmt: skip
            assert ready <= now
            ready = now
            done.add(order.pop(0))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_every_kind_at_every_node_ends_as_the_ladder_says(fault: str) -> None:
    """200 random plans; only the faulty node and what stands behind it may be without a result."""
    for seed in range(200):
        rng = random.Random(seed)
        plan = random_plan(rng, most=7)
        for target in plan.nodes:
            outcomes = {one: [("ok", 0.0)] * 6 for one in plan.nodes}
            outcomes[target] = [(fault, 0.0)] * 6
            limits = PlanLimits(patches=2, replans=0, node_timeout=20, model_calls=12)
            scene = Scene(plan, limits, outcomes, [])
            result, asked = run_scene(scene, Static, seed)
            check_laws(scene, result)
            record = result.nodes[target]
            assert record.state in ("failed", "skipped")
            if record.state == "failed" and record.attempts:
                claimed = 1 if record.node.kind == "agent" else 0
                effects = claimed if record.node.impact is None else record.node.impact
                transient = fault in ("unavailable", "hang", "slow_then_gone")
                safe = transient and (effects == 0 or bool(record.node.idempotent))
                if record.node.retries is not None:  # the plan's own are for any failure but one
                    undone = effects < 2 or bool(record.node.idempotent)
                    safe = fault != "incomplete" and undone
                retries = 2 if record.node.retries is None else record.node.retries
                if safe:
                    assert record.attempts == 1 + retries
                else:
                    assert record.attempts == 1
            assert asked.kinds.count("patch") <= 2
            behind = _behind(plan.nodes, target)
            for one, other in result.nodes.items():
                field_missing = any(ref.field == "nothing" for ref in other.node.refs.values())
                if one in plan.nodes and one not in behind and not field_missing:
                    lost = other.state in ("failed", "cancelled")
                    assert not lost or _behind_missing(plan.nodes, one), (seed, target, one, other.state)


def _behind(nodes: Mapping[str, PlanNode], target: str) -> set[str]:
    """A node and all that stands behind it."""
    found = {target}
    while more := {one for one, node in nodes.items() if one not in found and found & set(node.dependencies)}:
        found |= more
    return found


def _behind_missing(nodes: Mapping[str, PlanNode], target: str) -> bool:
    """Whether a node stands behind one whose ref leads nowhere."""
    broken = [one for one, node in nodes.items() if any(ref.field == "nothing" for ref in node.refs.values())]
    return any(target in _behind(nodes, one) for one in broken)


def test_half_of_the_events_fold_to_a_state_that_knows_what_can_start() -> None:
    """What a resume after a crash begins with: ready are exactly the nodes whose join holds and that wait."""
    for seed in range(200):
        result = run(
            PlanEngine(random_plan(random.Random(seed)), runner=ScriptedRunner(), clock=VirtualClock()).run()
        )
        fold = PlanState()
        for event in result.trail[: len(result.trail) // 2]:
            if isinstance(event, PlanVersion):
                fold.adopt(event)
            elif isinstance(event, PlanExtension):
                fold.extend(event)
            else:
                fold.apply(event)
        done = {one for one, record in fold.nodes.items() if record.state == "executed"}
        able = [
            one for one, node in sorted(fold.plan.nodes.items())
            if fold.nodes[one].state == "pending" and set(node.required) <= done
            and (node.join == "all_of" or done & set(node.candidates))
        ]  # fmt: skip
        assert list(fold.entries()) == able
        assert fold.open == sum(record.state not in TERMINAL for record in fold.nodes.values())


@pytest.mark.parametrize("name", MODES)
def test_a_plan_goes_on_from_any_event_of_its_journal(name: str) -> None:
    """As after `kill -9`: the laws hold over both runs together, and nothing with an effect runs twice."""
    went_on = 0
    for seed in range(150):
        scene = random_scene(seed)
        first, _ = run_scene(scene, MODES[name], seed)
        cut = random.Random(seed).randint(1, len(first.trail))
        history = first.trail[:cut]
        runner = ScriptedRunner()
        engine = PlanEngine(
            scene.plan,
            runner=runner,
            clock=VirtualClock(),
            mode=MODES[name](),
            limits=scene.limits,
            history=history,
        )
        result = run(engine.run())
        assert result.trail[:cut] == history
        check_laws(scene, result)
        went_on += bool(runner.firings)
        last = {one.node: one for one in history if isinstance(one, NodeChange)}
        begun = {one.node for one in history if isinstance(one, NodeChange) and one.cause == "dispatched"}
        for firing in runner.firings:
            if firing.node.id in begun:
                claimed = (
                    {"agent": 1, "tool": 0}[firing.node.kind]
                    if firing.node.impact is None
                    else firing.node.impact
                )
                known = last[firing.node.id].target not in ("running", "waiting_human")
                own = firing.node.retries is not None and known
                assert claimed == 0 or firing.node.idempotent or (own and claimed < 2)
    assert went_on > 30
