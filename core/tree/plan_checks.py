"""Checks whether a `PLAN` action can be carried out, before any of it runs. Pure, like all settling of actions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from iact.core.errors import UsageError
from iact.core.gate.impact import RUNS_ON
from iact.core.gate.judge import judge_call
from iact.core.language import labels
from iact.core.language.actions import PLAN, ActionSpec, Registry
from iact.core.language.grammar import Bound, Mistake, split
from iact.core.plan.forms import goal_text, read_form, read_plan
from iact.core.plan.model import PlanError, make_plan
from iact.core.plan.modes.auto import way_of
from iact.core.plan.modes.registry import make_mode
from iact.core.plan.validate import check
from iact.core.ports import JSON
from iact.core.records.ways import DEFAULT_MODE, OPTIONS
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.plan_functions import Functions
from iact.core.tree.tree import Tree

_STEPS: Final = re.compile(r"^steps[ \t]*:", re.MULTILINE)


def judge_in(tree: Tree, spec: ActionSpec, arguments: Mapping[str, JSON]) -> float:
    """The impact of a call, as the gate would rate it now."""
    live = tree.at_stake(spec.module)
    believed = tree.believed(spec)
    judged = judge_call(spec.name, spec.impact, arguments, live=live, believed=believed, policy=tree.policy)
    return judged.level


def copied_in(tree: Tree, spec: ActionSpec, arguments: Mapping[str, JSON]) -> bool:
    """Whether all that a call writes is in the session's own workspace, so that it can be made in a copy of the
    workspace.

    This is unknown for a module that does not ship with the product, and effects outside cannot be undone. A job that
    keeps running, or a call that needs what another call left in its module, cannot use a copy, which is discarded.
    """
    loaded = tree.modules.get(spec.module or "")
    if tree.workspace != "scratch" or loaded is None or loaded.origin != "shipped":
        return False

    manifest = loaded.manifest
    reaches_outside = bool(loaded.egress or loaded.secrets)
    if manifest.needs.workspace != "write" or reaches_outside:
        return False

    keeps_running = arguments.get(RUNS_ON.get(spec.name, ""), False) is not False
    if keeps_running:
        return False

    # In a copy, a module begins in its first state.
    function = manifest.function(spec.name.split(".", 1)[1])
    if function is None:
        return False
    return not function.states or manifest.states[0].name in function.states


def patterns_of(scope: str) -> list[str]:
    """Return the patterns of a `scope` argument: names with commas or blanks between them, or a list in JSON."""
    names = (name.strip("[]\"'") for name in scope.replace(",", " ").split())
    return [name for name in names if name]


_OF_PLAN: Final = re.compile(r"(?:^|\s)(?:mode|from)=")
"""What the first line of a CALL has if it opens a plan."""


_FROM: Final = re.compile(r"(?:^|\s)from=")
"""What the first line of an action has if it uses a kept plan."""


_WRITTEN: Final = 400
"""The most characters that are shown of how an action should be written."""


def with_parameters(spec: ActionSpec, info: str) -> ActionSpec:
    """Return PLAN as it is written with a kept plan: whatever else its first line gives are values for that plan.

    Which of them the kept plan takes, only the world can say. Its own goal counts if none is given.
    """
    parts = split(info)
    if _FROM.search(info) is None or isinstance(parts, Mistake):
        return spec

    properties: dict[str, JSON] = {name: dict(schema) for name, schema in spec.properties.items()}
    for argument in parts[1]:
        if argument.key is not None:
            properties.setdefault(argument.key, {"type": "string"})
    return replace(spec, parameters={**spec.parameters, "properties": properties, "required": []})


def values_for(bound: Bound) -> dict[str, JSON]:
    """Return the values that a PLAN gives for the parameters of a kept plan."""
    written = {name: value for name, value in bound.arguments.items() if name not in PLAN.properties}
    passed = {name: value.text() for name, value in bound.attached.items() if name not in PLAN.properties}
    return {**written, **passed}


def opens_plan(info: str) -> bool:
    """Whether a CALL with this first line opens a plan under its name, as PLAN does."""
    return _OF_PLAN.search(info) is not None


def with_goal(bound: Bound) -> Bound:
    """Return the arguments of a PLAN that was written as a CALL, or for a kept plan: a text in prose is its goal."""
    text = bound.arguments.get("plan")
    if not isinstance(text, str) or _STEPS.search(text):
        return bound
    try:
        read_form(text)
    except PlanError:
        return replace(bound, arguments={**bound.arguments, "plan": goal_text(text.strip())}, digests=[])
    return bound


def with_kept(tree: Tree, pending: Pending) -> str:
    """Return how a kept plan is used, for a PLAN without steps that has its name; empty for any other."""
    _, name, values = [*pending.info.split(None, 2), "", "", ""][:3]
    is_kept = name in {kept.partition(" ")[0] for kept in tree.kept}
    if not is_kept or _FROM.search(pending.info) or _STEPS.search(pending.body):
        return ""

    written = f"PLAN {name} from={name} {values}".strip()
    return f"`PLAN` was not run: it has no steps. The kept plan is used so: `{labels.inline(written, _WRITTEN)}`."


def aim(tree: Tree, agent: Agent, pending: Pending, bound: Bound, text: str) -> str | None:
    """Note the path that a PLAN will have in the tree. Returns a sentence if it can't be run."""
    if agent.depth + 1 > tree.bounds.depth:
        return f"`PLAN` was not run: the tree may be at most {tree.bounds.depth} deep. Do this yourself."

    scope = bound.arguments.get("scope")
    intent = bound.arguments.get("intent")
    grant = tree.grant_of(agent.path).narrow(
        patterns=patterns_of(scope) if isinstance(scope, str) else None,
        intent=intent if isinstance(intent, int | float) else None,
    )

    mode = str(bound.arguments.get("mode", DEFAULT_MODE))
    try:
        if not _is_kept(bound, text):
            check_plan(text, tree.registry_under(grant), mode, exact=not tree.follows_1_3)
    except UsageError as error:
        return with_kept(tree, pending) or f"`PLAN` was not run: {error}"
    pending.child = free_path(tree, agent.path, str(bound.arguments.get("name", "plan")))
    return None


def _is_kept(bound: Bound, text: str) -> bool:
    """Whether nothing of a plan was written but the name under which it is kept."""
    return "from" in bound.arguments and not text.strip()


def check_plan(
    text: str,
    registry: Registry,
    mode: str,
    options: Mapping[str, str | int] | None = None,
    *,
    exact: bool = False,
) -> tuple[str, str]:
    """Check that a plan can run. Returns its mode, and the reason if `auto` chose it. `exact`: as in `read_plan`.

    Raises:
        UsageError: it can't run.
    """
    plan = read_plan(text, id="plan", exact=exact)
    way, why = way_of(mode, plan)
    policy = make_mode(way, options)
    if plan.nodes:
        check(plan, Functions(registry), agents=policy.agents)
    return way, why


def plan_fields(bound: Bound, text: str) -> dict[str, JSON]:
    """The fields of a plan's `spawn` record about the plan and its grant, as its PLAN requests them."""
    arguments = bound.arguments
    written = make_plan("plan", ()) if _is_kept(bound, text) else read_plan(text, id="plan")
    way, reason = way_of(str(arguments.get("mode", DEFAULT_MODE)), written)
    reason = str(arguments.get("chosen", reason))

    options = {name: arguments[name] for name in OPTIONS if name in arguments}
    if "report" in arguments:
        options["report"] = int(arguments["report"] is True)
    if reason and way == "profile":
        options["climb"] = 1
    plan: dict[str, JSON] = {"mode": way, "options": options}
    if reason:
        plan["chosen"] = reason
    if arguments.get("first") is True:
        plan["first"] = True

    fields: dict[str, JSON] = {"plan": plan}
    scope = arguments.get("scope")
    intent = arguments.get("intent")
    if isinstance(scope, str):
        fields["allow"] = list[JSON](patterns_of(scope))
    if isinstance(intent, int | float):
        fields["intent"] = intent
    return fields


def free_path(tree: Tree, caller: str, name: str) -> str:
    """A free path for a plan called `name`. Each plan has its own path: `audit`, `audit-2`, …"""
    path = first = f"{caller.rstrip('/')}/{name}"
    count = 1
    while path in tree.agents:
        count += 1
        path = f"{first}-{count}"
    return path
