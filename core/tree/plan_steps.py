"""Firing a step: each firing becomes an action of its plan, like one that an agent wrote. Pure.

Arguments are not stored where they follow from the step's refs. They carry the labels of what the refs pass on.
`core.tree.plan_briefing` builds the message to a child.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from iact.core.context.excerpt import excerpt
from iact.core.gate.provenance import PICKED
from iact.core.language.actions import CALL, PERSON, ActionSpec
from iact.core.language.grammar import Bound
from iact.core.language.variables import Value, text_value
from iact.core.models.roles import FAST
from iact.core.modules.state_names import of_step
from iact.core.plan.commands import AskAcceptance
from iact.core.plan.contracts import as_text
from iact.core.plan.model import WINNER, PlanNode
from iact.core.plan.protocol import Firing, StepFailure
from iact.core.plan.refs import MissingField, resolve
from iact.core.plan.validate import parameter_faults
from iact.core.ports import JSON
from iact.core.records.plans import Fire
from iact.core.tree import origin
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.plan_briefing import task_of
from iact.core.tree.plan_run import Owed, PlanRun
from iact.core.tree.tree import Tree

_SHOWN: Final = 20_000
"""The most characters of a result that a person reads before they accept it."""
_HANDED: Final = 4_000
"""The most characters of each value that a person is given for a step of theirs."""


def fire(tree: Tree, plan: Agent, run: PlanRun, firing: Firing) -> tuple[Pending, Owed] | StepFailure:
    """Return the action of a firing and its record, or why it can't be carried out."""
    index = run.fired + 1
    action: Pending | StepFailure
    if firing.node.kind == "agent":
        action = _child(tree, plan, run, firing, index)
    elif firing.node.kind == "person":
        action = _for_person(firing, index)
    else:
        action = _tool(tree, plan, run, firing, index)
    if isinstance(action, StepFailure):
        return action

    content = Fire(
        node=firing.node.id,
        attempt=firing.attempt,
        turn=plan.turn,
        action=index,
        function=action.spec.name,
        to=action.child,
        race=action.race,
    )
    return action, Owed(content, _body(run, firing))


def _body(run: PlanRun, firing: Firing) -> str:
    """The arguments, if they differ from what the step's refs resolve to."""
    record = run.state.nodes[firing.node.id]
    try:
        same = resolve(record.node, run.state.outputs, record.winner) == firing.arguments
    except MissingField:
        same = False
    return "" if same else json.dumps(dict(firing.arguments), ensure_ascii=False)


# --- the person ---------------------------------------------------------------------------------------------


def _for_person(firing: Firing, index: int) -> Pending:
    """Ask the person to do a step. They read its task, with what it builds on."""
    node = firing.node
    # A step's result that a ref passes on is there under the ref's name.
    by_ref = {ref.step for ref in node.refs.values()}
    inputs = {step: output for step, output in firing.inputs.items() if step not in by_ref}

    parts = [node.task]
    for name, value in {**inputs, **firing.arguments}.items():
        text = as_text(value).strip()
        lead = "\n" if "\n" in text else " "
        parts.append(f"{name}:{lead}{excerpt(text, _HANDED)}")
    bound = Bound({"task": excerpt("\n\n".join(parts), _SHOWN)}, {})
    return Pending(index, PERSON.name, "", "", PERSON, bound, node=node.id, limit=node.timeout)


def acceptance(run: PlanRun, plan: Agent, asked: AskAcceptance) -> tuple[Pending, Owed]:
    """Return the action that asks the person whether they accept a step's output, and its record."""
    index = run.fired + 1
    bound = Bound({"task": asked.question, "result": excerpt(as_text(asked.output), _SHOWN)}, {})
    pending = Pending(index, PERSON.name, "", "", PERSON, bound, node=asked.node)
    content = Fire(
        node=asked.node,
        attempt=run.state.nodes[asked.node].attempts,
        turn=plan.turn,
        action=index,
        function=PERSON.name,
    )
    return pending, Owed(content, json.dumps({"task": asked.question}, ensure_ascii=False))


def asks_acceptance(pending: Pending) -> bool:
    """Whether an action asks the person whether they accept an output, and not to do a step."""
    return pending.spec is PERSON and pending.bound is not None and "result" in pending.bound.arguments


# --- tools --------------------------------------------------------------------------------------------------


def _tool(tree: Tree, plan: Agent, run: PlanRun, firing: Firing, index: int) -> Pending | StepFailure:
    """The call of a function."""
    node = firing.node
    arguments = firing.arguments
    spec = tree.registry(plan.path).find(node.call)
    # A function that is not there and one that is denied look the same.
    if not isinstance(spec, ActionSpec) or spec.core:
        return StepFailure("incomplete", f"{node.call} did not complete.")

    faults = " ".join(parameter_faults(replace(node, params=arguments, refs={}), spec.parameters))
    if faults:
        return StepFailure("raised", faults)

    provenance = {name: _of_ref(run, plan, node, name) for name in node.refs}
    bound = _bound(spec, node, arguments, provenance, run.given)
    lost = _lost(tree, run, node, bound)
    if lost:
        return StepFailure("incomplete", lost)

    step = ""
    if _keeps(tree, spec.name):
        step = of_step(plan.path, _begun_by(tree, run, node))
    return Pending(
        index, spec.name, "", "", spec, bound, node=node.id, step=step, limit=node.timeout, race=firing.race
    )


def _lost(tree: Tree, run: PlanRun, node: PlanNode, bound: Bound) -> str:
    """Why a call can't be made, if the content of something that it would be given was lost; else empty.

    An agent or a person reads that it was lost. A tool would take the sentence for the content, and write it somewhere.
    """
    told = tree.blobs.told
    if not told:
        return ""

    winner = run.state.nodes[node.id].winner
    for name, ref in node.refs.items():
        step = (winner or "") if ref.step == WINNER else ref.step
        result = run.latest.get(step)
        if result is not None and result.value is not None and result.value.sha256 in told:
            return f"{node.call} was not run: the content of the result of {step}, which is its {name}, was lost."

    for name, value in bound.attached.items():
        if value.sha256 in told:
            return f"{node.call} was not run: the content of the variable that is its {name} was lost."
    return ""


def _keeps(tree: Tree, function: str) -> bool:
    """Whether a call's name matters to its module: calls under one name take turns, or find what earlier ones left."""
    module, _, name = function.partition(".")
    loaded = tree.modules.get(module)
    if loaded is None:
        return False
    if loaded.manifest.states:
        return True
    function_spec = loaded.manifest.function(name)
    return function_spec is not None and function_spec.exclusive


def _begun_by(tree: Tree, run: PlanRun, node: PlanNode) -> str:
    """Return the step whose module state this step uses: usually its own, so that the module is in its initial state.

    A function that the module only offers in another state (reading the open page) needs the state of the step that
    led there: the nearest earlier step that called the module, and so on from that step.
    """
    if not _goes_on(tree, node.call):
        return node.id

    # Backwards, one generation of steps after the other.
    module = node.call.split(".", 1)[0]
    seen = {node.id}
    generation = [node]
    while generation:
        earlier: dict[str, None] = {}
        for step in generation:
            earlier.update(dict.fromkeys(id for id in step.dependencies if id not in seen))
        seen.update(earlier)

        generation = [run.state.nodes[id].node for id in earlier]
        for step in generation:
            if step.kind == "tool" and step.call.split(".", 1)[0] == module:
                return _begun_by(tree, run, step)
    return node.id


def _goes_on(tree: Tree, function: str) -> bool:
    """Whether a function is not offered in its module's initial state."""
    module, _, name = function.partition(".")
    loaded = tree.modules.get(module)
    if loaded is None:
        return False
    function_spec = loaded.manifest.function(name)
    if function_spec is None or not function_spec.states:
        return False
    return loaded.manifest.states[0].name not in function_spec.states


def _of_ref(run: PlanRun, plan: Agent, node: PlanNode, name: str) -> frozenset[str]:
    """The labels of what a ref passes on. The text of a template is its author's."""
    labels = frozenset(run.state.labels_of_ref(node.id, name))
    if node.refs[name].template:
        labels |= origin.by(plan)
    if run.state.picks(node.id, name):
        labels |= {PICKED}
    return labels


def _bound(
    spec: ActionSpec,
    node: PlanNode,
    arguments: Mapping[str, JSON],
    provenance: Mapping[str, frozenset[str]],
    handed: Mapping[str, Value],
) -> Bound:
    """Bind arguments as a dialogue's call does: text from another step is passed by value.

    `handed`: variables from the plan's caller, by name. A parameter that is exactly `$name` is replaced by the
    variable.
    """
    written: dict[str, JSON] = {}
    attached: dict[str, Value] = {}
    for name, value in arguments.items():
        is_ref = name in node.refs
        if not isinstance(value, str):
            written[name] = value
        elif is_ref and _any_text(spec, name):
            attached[name] = text_value(value, labels=provenance[name], origin=node.refs[name].step)
        elif not is_ref and value[:1] == "$" and value[1:] in handed:
            attached[name] = handed[value[1:]]
        else:
            written[name] = value

    labels = {name: provenance[name] for name in written if name in node.refs}
    return Bound(written, attached, labels)


def _any_text(spec: ActionSpec, name: str) -> bool:
    schema = spec.properties.get(name, {})
    return schema.get("type") == "string" and "enum" not in schema and "pattern" not in schema


# --- agents -------------------------------------------------------------------------------------------------


def _child(tree: Tree, plan: Agent, run: PlanRun, firing: Firing, index: int) -> Pending | StepFailure:
    """The CALL of an agent."""
    node = firing.node
    path = f"{plan.path}/{node.call}"
    left_behind: tuple[str, ...] = ()
    if tree.follows_1_3:
        before = _failed_before(tree, path, firing)
        if before is not None:
            # Who tries again reads what there is, and not how it failed (Graph Harness, section 5.4).
            left_behind = tuple(before.context.chronicle.files)
            path = f"{path}-{firing.attempt}"

    refused = _no_child(tree, plan, path, node)
    if refused:
        return StepFailure("raised", refused)

    refs = {name: _of_ref(run, plan, node, name) for name in node.refs}
    bound = task_of(tree, run, plan, node, firing.arguments, refs, left_behind=left_behind)
    name = path.rpartition("/")[2]
    bound = replace(bound, arguments={**bound.arguments, "name": name})
    return Pending(index, name, "", "", CALL, bound, child=path, node=node.id)


def _failed_before(tree: Tree, path: str, firing: Firing) -> Agent | None:
    """The agent that tried a step before, if it did nothing else: then its dialogue is about the failure alone."""
    if firing.attempt < 2:
        return None
    before = tree.agents.get(f"{path}-{firing.attempt - 1}") or tree.agents.get(path)
    if before is None or before.plan is not None:
        return None
    did_only_this = len(before.context.chronicle.heard) <= 1
    return before if did_only_this else None


def _no_child(tree: Tree, plan: Agent, path: str, node: PlanNode) -> str:
    """Why an agent step can't be carried out; empty if it can."""
    child = tree.agents.get(path)
    if child is not None:
        if child.plan is not None:
            return f"{path} is a plan."
        if tree.follows_1_3 and _has_other_rights(child, node):
            return f"The agent {node.call} is at work with other rights; give the agent of this step a name of its own."
        return ""

    if node.model not in ("", FAST) and node.model not in tree.roles:
        return f"There is no model role {node.model!r}; there are {', '.join(sorted(tree.roles))}."
    if plan.depth + 1 > tree.bounds.depth:
        return f"Agents may be at most {tree.bounds.depth} deep."
    if len(tree.agents) >= tree.bounds.agents:
        return f"There are {tree.bounds.agents} agents, the most there may be."
    return ""


def _has_other_rights(child: Agent, node: PlanNode) -> bool:
    """Whether a step wants its agent to have other rights than the agent has that was called before."""
    other_intent = node.intent is not None and node.intent != child.narrowing.intent
    patterns = tuple(child.narrowing.patterns or ())
    other_scope = bool(node.scope) and tuple(node.scope) != patterns
    return other_intent or other_scope
