"""Decides whether a plan can run, before any of it runs.

Every fault is collected, so that the planner's one corrected try sees them all. A reference to a step that does not
exist is pruned with a warning if the plan stays valid (planners forget steps that they meant to write). A cycle is
never repaired. In a finite acyclic graph every node can be reached from an entry and reaches an exit, so acyclicity is
all that reachability needs.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import jsonschema

from iact.core.plan.contracts import well_formed
from iact.core.plan.model import (
    MAX_NODES,
    NO_ERROR,
    WINNER,
    WORK,
    PlanError,
    PlanGraph,
    PlanNode,
    size_fault,
)
from iact.core.plan.protocol import FunctionCatalogue, FunctionInfo
from iact.core.ports import JSON


class PlanInvalid(PlanError):
    """The plan can't run."""

    def __init__(
        self,
        problems: Collection[str],
        *,
        cycle: Collection[str] = (),
        misfits: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self.problems = tuple(problems)
        """One sentence each, with the step and the remedy."""
        self.cycle = tuple(cycle)
        """The steps that wait for each other, if that is what is wrong."""
        self.misfits = dict(misfits or {})
        """The problems about parameters that a function does not take, by step."""
        super().__init__(" ".join(self.problems))

    @property
    def shaped(self) -> bool:
        """Whether only parameters are wrong: the author knew what to do, but not how to write it."""
        return sum(map(len, self.misfits.values())) == len(self.problems)


class TooManySteps(PlanInvalid):
    """The plan has more steps than it may have. Nothing else of it was looked at."""

    def __init__(self, steps: int, most: int = MAX_NODES) -> None:
        self.steps = steps
        super().__init__([size_fault(steps, most)])


@dataclass(slots=True)
class Checked:
    """A plan that may run, with dangling references pruned, and warnings about what was pruned."""

    nodes: dict[str, PlanNode]
    warnings: list[str] = field(default_factory=list)


def check(
    plan: PlanGraph,
    catalogue: FunctionCatalogue | None = None,
    *,
    known: Collection[str] = (),
    max_nodes: int = MAX_NODES,
    agents: bool = True,
) -> Checked:
    """Validate the nodes of `plan`. `known`: ids of other nodes (kept ones) that may be referred to.

    Without a catalogue, functions and parameters are not checked. `agents`: whether agent nodes are allowed.

    Raises:
        PlanInvalid: with everything that is wrong.
    """
    if not plan.nodes:
        raise PlanInvalid(["The plan has no steps; write at least one."])
    if len(plan.nodes) > max_nodes:
        raise TooManySteps(len(plan.nodes), max_nodes)

    checked = Checked({})
    problems: list[str] = []
    present = {*plan.nodes, *known}
    for node in plan.nodes.values():
        checked.nodes[node.id] = _pruned(node, present, checked.warnings)

    misfits: dict[str, list[str]] = {}
    for node in checked.nodes.values():
        problems.extend(_faults(node, plan.nodes[node.id], checked.nodes, catalogue, agents))
        of_parameters = list(_misfits(node, catalogue))
        if of_parameters:
            misfits[node.id] = of_parameters
            problems.extend(of_parameters)

    cycle = find_cycle(checked.nodes)
    if len(cycle) > 1:  # a step that waits for itself was found above
        problems.append(cycle_fault(cycle))
    if problems:
        raise PlanInvalid(problems, cycle=cycle, misfits=misfits)
    return checked


def find_cycle(nodes: Mapping[str, PlanNode]) -> list[str]:
    """Find a cycle, in order of dependence, starting at its smallest id; empty if there is none (Kahn)."""
    if _is_in_order(nodes):
        return []

    serves, missing = _edges(nodes)
    free = [id for id, count in missing.items() if count == 0]
    done = 0
    while free:
        done += 1
        for follower in serves[free.pop()]:
            missing[follower] -= 1
            if missing[follower] == 0:
                free.append(follower)

    if done == len(nodes):
        return []
    return _walk_cycle(nodes, {id for id, count in missing.items() if count})


def _is_in_order(nodes: Mapping[str, PlanNode]) -> bool:
    """Whether each step was written after those that it depends on, as in most plans."""
    before: set[str] = set()
    for id, node in nodes.items():
        if not before.issuperset(node.dependencies):
            return False
        before.add(id)
    return True


def _edges(nodes: Mapping[str, PlanNode]) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Return which steps wait for each step, and how many steps each waits for. Steps that don't exist are left out."""
    serves: dict[str, list[str]] = {id: [] for id in nodes}
    missing = dict.fromkeys(nodes, 0)
    for id, node in nodes.items():
        for dependency in node.dependencies:
            if dependency in serves:
                serves[dependency].append(id)
                missing[id] += 1
    return serves, missing


def _walk_cycle(nodes: Mapping[str, PlanNode], stuck: set[str]) -> list[str]:
    """Go from a step to one that it depends on, among those that are stuck, until a step comes up again."""
    path: list[str] = []
    place: dict[str, int] = {}
    here = min(stuck)
    while here not in place:
        place[here] = len(path)
        path.append(here)
        here = min(dependency for dependency in nodes[here].dependencies if dependency in stuck)

    cycle = path[place[here] :][::-1]
    smallest = cycle.index(min(cycle))
    return cycle[smallest:] + cycle[:smallest]


def levels(nodes: Mapping[str, PlanNode]) -> dict[str, int]:
    """The dependency wave of each node: 0 for entries, else one more than its latest dependency.

    Raises:
        PlanInvalid: some wait for each other, so they are in no wave.
    """
    serves, missing = _edges(nodes)
    wave_of: dict[str, int] = {}
    wave = [id for id, count in missing.items() if count == 0]
    number = 0
    while wave:
        wave_of.update(dict.fromkeys(wave, number))
        next_wave: list[str] = []
        for id in wave:
            for follower in serves[id]:
                missing[follower] -= 1
                if missing[follower] == 0:
                    next_wave.append(follower)
        wave = next_wave
        number += 1

    if len(wave_of) < len(nodes):
        cycle = find_cycle(nodes)
        raise PlanInvalid([cycle_fault(cycle)], cycle=cycle)
    return wave_of


def cycle_fault(cycle: Sequence[str]) -> str:
    """Say which steps wait for each other."""
    if len(cycle) == 1:
        return f"Step {cycle[0]!r} waits for itself; take {cycle[0]!r} out of its `after` and `refs`."
    return f"The steps {' → '.join((*cycle, cycle[0]))} wait for each other; break the circle."


NOT_UNDERSTOOD: Final = 2.0
"""The impact of a function that the catalogue does not know."""


def effective_impact(node: PlanNode, info: FunctionInfo | None, catalogue: FunctionCatalogue | None) -> float:
    """The impact that the engine assumes for its own rules: the higher of the plan's and the function's.

    A function missing from the catalogue counts as not understood; without a catalogue, nothing is known about any.
    """
    known = 0.0
    if info is not None:
        known = info.impact
    elif node.kind == "tool" and catalogue is not None:
        known = NOT_UNDERSTOOD
    return max(node.impact or 0, known)


def _pruned(node: PlanNode, present: set[str], warnings: list[str]) -> PlanNode:
    """Return a node without references to steps that don't exist, and warn of each."""
    if not node.refs and present.issuperset(node.after):
        return node

    after = tuple(id for id in node.after if id in present)
    refs = {name: ref for name, ref in node.refs.items() if ref.step == WINNER or ref.step in present}
    if len(after) == len(node.after) and len(refs) == len(node.refs):
        return node

    warnings.extend(
        f"Step {node.id!r} comes after {id!r}, which does not exist; the reference was dropped."
        for id in node.after
        if id not in present
    )
    warnings.extend(
        f"Step {node.id!r} takes {name!r} from {ref.step!r}, which does not exist; the reference was dropped."
        for name, ref in node.refs.items()
        if name not in refs
    )
    return dataclasses.replace(node, after=after, refs=refs)


def _faults(
    node: PlanNode,
    written: PlanNode,
    nodes: Mapping[str, PlanNode],
    catalogue: FunctionCatalogue | None,
    agents: bool,
) -> Iterable[str]:
    """Say what is wrong with a node, but for its parameters. `written`: as its author wrote it, before it was pruned."""
    if node.kind not in WORK:
        yield f"Step {node.id!r} has the kind {node.kind!r}, which only the engine makes; use `call:` or `agent:`."
        return

    if node.kind == "agent" and not agents:
        yield f"Step {node.id!r} calls an agent; this mode runs functions only."
    if node.refs or node.join == "any_of" or node.id in node.after:
        yield from _join_faults(node, written)

    contract_fault = well_formed(node.contract) if node.contract is not NO_ERROR else None
    if contract_fault:
        yield f"Step {node.id!r}: {contract_fault}."
    if catalogue is not None and node.kind == "tool":
        yield from _call_faults(node, catalogue.find(node.call), catalogue)
    if node.join == "any_of":
        yield from _race_faults(node, nodes, catalogue)


def _join_faults(node: PlanNode, written: PlanNode) -> Iterable[str]:
    if node.id in node.dependencies:
        yield cycle_fault([node.id])

    if node.join == "any_of" and len(node.after) < 2:
        lost = " (the others do not exist)" if len(written.after) > len(node.after) else ""
        yield f"Step {node.id!r} is any_of, which needs at least two candidates in `after`{lost}."

    for name, ref in node.refs.items():
        if ref.step == WINNER and node.join != "any_of":
            yield f"Step {node.id!r} takes {name!r} from '*', the winner of an any_of join, but is not any_of."
        elif ref.step in node.candidates:
            yield (
                f"Step {node.id!r} takes {name!r} from {ref.step!r}, which may lose the race; use `step: '*'`, its winner."
            )
        if ref.template and "{}" not in ref.template:
            yield f"Step {node.id!r}: the template of {name!r} has no {{}} for the value."


def _race_faults(
    node: PlanNode, nodes: Mapping[str, PlanNode], catalogue: FunctionCatalogue | None
) -> Iterable[str]:
    """Say which candidates of a race could do what can't be undone."""
    for candidate in node.candidates:
        rival = nodes.get(candidate)
        if rival is None:
            continue

        info = None
        if catalogue is not None and rival.kind == "tool":
            # Values from refs are not known yet, so the function's declaration is all there is to go by.
            is_known = not rival.refs
            info = catalogue.of_call(rival.call, rival.params) if is_known else catalogue.find(rival.call)
        if effective_impact(rival, info, catalogue) >= 2:
            yield (
                f"Step {candidate!r} has impact 2 and stands in the any_of race of {node.id!r}; "
                "what can't be undone is not raced: choose one, or put them one after another."
            )


def _call_faults(node: PlanNode, info: FunctionInfo | None, catalogue: FunctionCatalogue) -> Iterable[str]:
    """Say that a step calls what does not exist, and what its author may have meant."""
    if info is not None:
        return
    names = [known.name for known in catalogue.all()]
    close = difflib.get_close_matches(node.call, names, 1, 0.6)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    yield f"Step {node.id!r} calls {node.call!r}, which is not a function that you have{hint}"


def _misfits(node: PlanNode, catalogue: FunctionCatalogue | None) -> Iterable[str]:
    """How a call's parameters don't fit its function."""
    info = catalogue.find(node.call) if catalogue is not None and node.kind == "tool" else None
    if info is not None and info.schema is not None:
        yield from parameter_faults(node, info.schema)


def parameter_faults(
    node: PlanNode, schema: Mapping[str, JSON], *, later: Collection[str] = ()
) -> Iterable[str]:
    """How a node's parameters don't fit. Those in refs or `later` have no value yet and are not checked."""
    comes_later = {*node.refs, *later}
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if name not in node.params and name not in comes_later:
            yield f"Step {node.id!r}: {node.call} needs the parameter {name!r}; add it."

    yield from _ref_faults(node, schema)

    rules = _partial(schema, some_missing=bool(comes_later))
    present = {name: value for name, value in node.params.items() if name not in later}
    for error in jsonschema.Draft202012Validator(rules).iter_errors(present):
        place = ".".join(map(str, error.absolute_path))
        where = f"parameter {place!r}" if place else "its parameters"
        was_told_above = error.validator == "required" and not error.absolute_path
        if not was_told_above:
            yield f"Step {node.id!r}: {where} of {node.call}: {error.message[:160]}."


def _ref_faults(node: PlanNode, schema: Mapping[str, JSON]) -> Iterable[str]:
    """Say which refs can't give a parameter of the function."""
    properties = schema.get("properties")
    parameters = properties if isinstance(properties, dict) else {}
    for name, ref in node.refs.items():
        if name in node.params:
            yield f"Step {node.id!r} gives {name!r} both in `params` and in `refs`; keep one."
        if schema.get("additionalProperties") is False and name not in parameters:
            yield f"Step {node.id!r}: {node.call} has no parameter {name!r}."

        rule = parameters.get(name)
        kind = rule.get("type") if isinstance(rule, dict) else None
        if ref.template and isinstance(kind, str) and kind != "string":
            yield f"Step {node.id!r}: a template makes text, but {name!r} of {node.call} is {kind}; drop the template."


_WHOLE: Final = ("required", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "minProperties",
                 "dependentRequired", "dependentSchemas")  # fmt: skip
"""Rules over all parameters together, which can't be checked while some have no value."""


def _partial(schema: Mapping[str, JSON], *, some_missing: bool) -> dict[str, JSON]:
    """A schema without the rules that can't be checked while some parameters have no value."""
    if not some_missing:
        return dict(schema)
    return {name: rule for name, rule in schema.items() if name not in _WHOLE}
