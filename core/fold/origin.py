"""Where values come from, followed through the tree: the labels that agents, messages and calls carry.

Labels are set here and where the fold makes values, from records alone; nothing that a model or a module says
sets one. An agent carries the labels of all that it has read (its caller's and its children's messages included:
what they wrote carries what they had read), and whatever it writes carries them on. Files are the one thing that
agents share without a message, so the workspace carries the labels of every agent that changed something, and
what is read from it carries them too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from core.fold.agent import Agent
from core.fold.tree import Tree
from core.gate.provenance import (
    MODEL,
    NOTHING,
    OWN,
    USER,
    Labels,
    Provenance,
    declassify,
    join,
    returned,
    untrusted,
)
from core.gate.rules import texts_of
from core.gate.wording import wrote
from core.language.actions import ActionSpec
from core.language.grammar import Bound
from core.ports import JSON

OUTSIDE: Final = frozenset({"web", "browser"})
"""Shipped modules whose results come from outside, whatever they say about themselves."""

WRITTEN: Final[Labels] = frozenset({USER})
"""The labels of what a person wrote."""


_SHORT: Final = 1_000
"""Characters of an argument that may stand in what the user wrote; a longer one is the agent's word."""
_FEW: Final = 16
"""Values in one argument that are looked for there."""


def given(tree: Tree, agent: Agent, bound: Bound) -> dict[str, Labels]:
    """The labels of each argument of a call: what a variable carries; the user's words; or the agent's own."""
    named = {**bound.labels, **{name: value.labels for name, value in bound.attached.items()}}
    written = {
        name: _written(tree, agent, value) for name, value in bound.arguments.items() if name not in named
    }
    return named | written


def _written(tree: Tree, agent: Agent, value: JSON) -> Labels:
    texts = texts_of(value)
    short = len(texts) <= _FEW and sum(map(len, texts)) <= _SHORT
    users = short and texts and all(any(wrote(said, text) for said in tree.said) for text in texts)
    return WRITTEN if users else by(agent)


def passed(bound: Bound | None) -> Labels:
    """The labels of what an action was handed by name. An action of the core passes it on, or shows it."""
    if bound is None:
        return NOTHING
    return join([*bound.labels.values(), *(value.labels for value in bound.attached.values())])


def of_call(tree: Tree, agent: Agent, function: str, bound: Bound | None) -> Labels:
    """The labels of what a call gives back: made of what it was given, and of the files."""
    return returned(function, given(tree, agent, bound).values() if bound is not None else ()) | tree.files


def of_tool(tree: Tree, function: str) -> Labels:
    """The labels of what a module says by itself."""
    return returned(function, ()) | tree.files


def by(agent: Agent) -> Labels:
    """The labels of what an agent writes: its own word, and all that it has read."""
    return agent.labels | {MODEL}


def read(agent: Agent, labels: Labels) -> None:
    """An agent reads something; its own and the user's words leave no trace."""
    agent.labels |= labels - OWN


def document(agent: Agent, specs: Iterable[ActionSpec]) -> None:
    """An agent reads documentation: what nobody vouches for is the word of its module."""
    read(agent, frozenset(f"tool:{spec.name}" for spec in specs if not spec.vouched))


def change_files(tree: Tree, agent: Agent, bound: Bound, function: str) -> None:
    """An agent changes something, files perhaps: who reads them reads what it had read, and what it passed on."""
    touch_files(tree, agent.labels | passed(bound) | {f"tool:{function}"})


def touch_files(tree: Tree, labels: Labels) -> None:
    """Something of these labels was written into files."""
    tree.files |= frozenset(one for one in labels - OWN if not inside(tree, one))


def vouch(agent: Agent, variable: str, *, by: str) -> None:
    """A person vouches for a variable, or (none named) for all that the agent has read so far."""
    if not variable:
        agent.labels = declassify(agent.labels, agent.labels, by=by) - {USER}
    elif variable in agent.table:
        value = agent.table[variable]
        agent.table.define(variable, replace(value, labels=declassify(value.labels, value.labels, by=by)))


def inside(tree: Tree, label: str) -> bool:
    """Whether a label is of a shipped module that reaches nothing outside: as good as what it was given."""
    kind, _, function = label.partition(":")
    module = function.split(".", 1)[0]
    if kind != "tool" or module in OUTSIDE:
        return False
    if module == "DEPLOY":
        return True  # what it tells is about the agent's own source
    loaded = tree.modules.get(module)
    return loaded is not None and loaded.origin == "shipped" and not loaded.egress


def strange(tree: Tree, labels: Labels) -> Labels:
    """The labels that come from outside, and that the policy does not trust."""
    outside = frozenset(one for one in labels if not inside(tree, one))
    unvouched = frozenset(one for one in outside if not _vouched(tree, one))
    return untrusted(outside, tree.policy.trusted) | unvouched


def provenance_of(tree: Tree, agent: Agent, bound: Bound) -> Provenance:
    """Where a call comes from."""
    named = {**bound.labels, **{name: value.labels for name, value in bound.attached.items()}}
    labels = join([agent.labels, *named.values()])
    plain = frozenset(one for one in labels if inside(tree, one))
    unvouched = frozenset(one for one in labels - plain if not _vouched(tree, one))
    return Provenance(named, agent.labels - plain, tuple(tree.said), plain, unvouched)


def _vouched(tree: Tree, label: str) -> bool:
    """Whether a label that a policy names can be meant: not that of a function which an agent put there."""
    kind, _, function = label.partition(":")
    spec = tree.functions.get(function)
    return kind != "tool" or spec is None or spec.vouched
