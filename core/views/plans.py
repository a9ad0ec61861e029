"""Plans of a session, for people: what each is, and its steps with their results.

A plan that a person wrote and that does not run yet is shown in the same form: `core.views.written_plans`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iact.core.plan.model import WORK
from iact.core.plan.run_figures import PlanFigures, figures_of
from iact.core.ports import JSON
from iact.core.tree.agent import Agent, AgentState
from iact.core.tree.plan_report import plan_json, result_json
from iact.core.tree.plan_run import PlanRun
from iact.core.tree.tree import Tree
from iact.core.views.written_plans import StepView, steps_of


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan of a session. `version`: 0 before its first. `facts`: the complete plan, as in `iact replay --json`."""

    path: str
    mode: str
    state: AgentState
    version: int
    steps: Mapping[str, StepView]
    facts: Mapping[str, JSON]
    figures: PlanFigures


def plan_views(tree: Tree) -> dict[str, PlanView]:
    """The plans of a session, by path."""
    return {
        agent.path: _view(tree, agent, agent.plan) for agent in tree.agents.values() if agent.plan is not None
    }


def plan_result(tree: Tree, path: str, model_calls: int) -> dict[str, JSON]:
    """The result of a finished plan, as in `iact plan run --json`; `model_calls`: of its whole session."""
    run, used = tree.agents[path].plan, tree.usage()
    assert run is not None
    return result_json(run, model_calls, used.prompt_tokens + used.completion_tokens)


def _view(tree: Tree, agent: Agent, run: PlanRun) -> PlanView:
    version = run.state.plan.version if run.state.versions else 0
    work = {one: node for one, node in run.state.plan.nodes.items() if node.kind in WORK}
    steps = steps_of(work, run.state.nodes)
    return PlanView(
        agent.path, run.mode, tree.state(agent), version, steps, plan_json(tree, agent), figures_of(run.state)
    )
