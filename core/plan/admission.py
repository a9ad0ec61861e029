"""Decides which steps may join a running plan: valid with the existing steps, under unused ids, within its bounds."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Container, Iterable, Sequence
from typing import Final

from iact.core.plan import answers
from iact.core.plan.forms import read_plan
from iact.core.plan.limits import PlanLimits
from iact.core.plan.model import NO_ERROR, WORK, Contract, PlanError, PlanNode, PlanVersion, Ref, make_plan
from iact.core.plan.modes.base import Mode
from iact.core.plan.protocol import FunctionCatalogue
from iact.core.plan.state import PlanState
from iact.core.plan.states import State
from iact.core.plan.validate import Checked, check

DONE_OR_RUNNING: Final[tuple[State, ...]] = ("executed", "running", "waiting_human")
NOT_STARTED: Final[tuple[State, ...]] = ("pending", "ready", "blocked")
UNDER_WAY: Final[tuple[State, ...]] = ("running", "waiting_human")

_RENAMED: Final = re.compile(r"-v\d+\Z")
"""What is added to an id that is taken."""


class Admission:
    """Checks steps for one plan; changes nothing."""

    def __init__(
        self, state: PlanState, mode: Mode, limits: PlanLimits, catalogue: FunctionCatalogue | None
    ) -> None:
        self._state = state
        self._mode = mode
        self._limits = limits
        self._catalogue = catalogue

    def check(self, nodes: Iterable[PlanNode], known: Collection[str]) -> Checked:
        """Check whether `nodes` may join. `known`: ids of the plan that they may refer to.

        Raises:
            PlanError: they may not; a `PlanInvalid` lists everything that is wrong.
        """
        room = self._limits.nodes - sum(one.node.kind in WORK for one in self._state.nodes.values())
        plan = make_plan(self._state.plan.id, nodes)
        return check(plan, self._catalogue, known=known, max_nodes=max(room, 0), agents=self._mode.agents)

    def check_renamed(self, nodes: Iterable[PlanNode], known: Collection[str]) -> Checked:
        """Check steps whose writer did not know which ids are taken, after renaming them.

        Raises:
            PlanError: they may not join.
        """
        return self.check(renamed(nodes, taken=self._state.nodes, suffix=self._suffix), known)

    @property
    def _suffix(self) -> str:
        return f"-v{self._state.plan.version + 1}"

    def read(self, text: str) -> tuple[PlanNode, ...]:
        """Return the steps in a reply that writes a plan, under free ids. Does not check whether they may join.

        Raises:
            PlanError: the reply has no readable steps.
        """
        written = read_plan(answers.plan_text(text), id=self._state.plan.id).nodes.values()
        return renamed(written, taken=self._state.nodes, suffix=self._suffix)

    def read_rest(self, text: str) -> Checked | None:
        """Return the steps in a reply that the plan does not have yet; None if it has them all.

        Raises:
            PlanError: the reply has no readable steps, or they may not join.
        """
        state = self._state
        written = read_plan(answers.plan_text(text), id=state.plan.id).nodes.values()
        rest = [one for one in written if one.id not in state.nodes]
        known = [one for one in state.plan.nodes if state.nodes[one].state not in ("cancelled", "skipped")]
        return self.check(rest, known) if rest else None


def spawned(nodes: Iterable[PlanNode], by: str) -> tuple[PlanNode, ...]:
    """Return the nodes as follow-ups or replacements of node `by`."""
    return tuple(dataclasses.replace(one, spawned_by=by) for one in nodes)


def graft(state: PlanState, failed: str, new: Sequence[PlanNode]) -> PlanVersion:
    """Return the version in which `new`, which may be empty, replaces `failed`.

    Raises:
        PlanError: a dependent needs a value of `failed`, and nothing replaces it.
    """
    lasts = last_of(new)
    rewired = {
        one: rewire(state.plan.nodes[one], failed, lasts)
        for one in state.nodes[failed].serves
        if one in state.plan.nodes and state.nodes[one].state in ("pending", "blocked")
    }
    instead = f"replaced by {', '.join(one.id for one in new)}" if new else "left out"
    return state.plan.revise(f"patch: {failed} is {instead}", add=new, rewire=rewired)


def last_of(nodes: Sequence[PlanNode]) -> tuple[str, ...]:
    """The ids of the nodes that none of the others builds on."""
    inner = {one for node in nodes for one in node.dependencies}
    return tuple(node.id for node in nodes if node.id not in inner)


def inheriting(nodes: Sequence[PlanNode], contract: Contract) -> tuple[PlanNode, ...]:
    """Return nodes that take a step's place, under the contract of its slot.

    It binds the one that gives the result: the last of them, whose output its dependents read.
    """
    lasts = last_of(nodes)
    if contract is NO_ERROR or not lasts:
        return tuple(nodes)
    return tuple(
        dataclasses.replace(node, contract=contract) if node.id == lasts[-1] else node for node in nodes
    )


def former_id(id: str) -> str:
    """The id that a node was written under, if `Admission` renamed it; else its own."""
    return _RENAMED.sub("", id)


def renamed(nodes: Iterable[PlanNode], *, taken: Container[str], suffix: str) -> tuple[PlanNode, ...]:
    """Return new nodes under ids that are not taken. They keep referring to each other."""
    new = list(nodes)
    ids = {one.id: f"{one.id[:56]}{suffix}" for one in new if one.id in taken}
    if not ids:
        return tuple(new)
    return tuple(
        dataclasses.replace(
            one,
            id=ids.get(one.id, one.id),
            after=tuple(ids.get(d, d) for d in one.after),
            refs={name: dataclasses.replace(r, step=ids.get(r.step, r.step)) for name, r in one.refs.items()},
        )
        for one in new
    )


def rewire(node: PlanNode, failed: str, lasts: Sequence[str]) -> PlanNode:
    """Let a dependent of `failed` depend on `lasts` instead; a ref points to the last of them.

    Raises:
        PlanError: it needs a value of `failed`, and nothing replaces it.
    """
    after: list[str] = []
    for one in node.after:
        after.extend(lasts if one == failed else (one,))
    refs: dict[str, Ref] = {}
    for name, ref in node.refs.items():
        if ref.step == failed:
            if not lasts:
                raise PlanError(
                    f"{node.id!r} takes {name!r} from {failed!r}, so {failed!r} can't be left out"
                )
            ref = dataclasses.replace(ref, step=lasts[-1])
        refs[name] = ref
    join = node.join if len(after) > 1 else "all_of"
    return dataclasses.replace(node, after=tuple(dict.fromkeys(after)), refs=refs, join=join)
