"""Where values come from, followed through the tree: the labels that agents, messages and calls carry.

Labels are set here and where the fold makes values, from records alone; nothing that a model or a module says
sets one. An agent carries the labels of all that it has read (its caller's and its children's messages included:
what they wrote carries what they had read), and whatever it writes carries them on. Files are the one thing that
agents share without a message, so the workspace carries the labels of every agent that changed something, and
what is read from it carries them too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from core.fold.agent import Agent
from core.fold.tree import Tree
from core.gate.provenance import MODEL, USER, Labels, Provenance, declassify, join, untrusted
from core.language.grammar import Bound

OUTSIDE: Final = frozenset({"web", "browser"})
"""Shipped modules whose results come from outside, whatever they say about themselves."""

WRITTEN: Final[Labels] = frozenset({USER})
"""The labels of what a person wrote."""


def of_tool(tree: Tree, function: str) -> Labels:
    """The labels of what a function gives back."""
    return frozenset({f"tool:{function}"}) | tree.files


def by(agent: Agent) -> Labels:
    """The labels of what an agent writes: its own word, and all that it has read."""
    return agent.labels | {MODEL}


def read(agent: Agent, labels: Labels) -> None:
    """An agent reads something; its own and the user's words leave no trace."""
    agent.labels |= labels - {USER, MODEL}


def change_files(tree: Tree, agent: Agent, bound: Bound, function: str) -> None:
    """An agent changes something, files perhaps: who reads them reads what it had read, and what it passed on."""
    given = join([*bound.labels.values(), *(value.labels for value in bound.attached.values())])
    own = agent.labels | given | {f"tool:{function}"}
    tree.files |= frozenset(one for one in own - {USER, MODEL} if not inside(tree, one))


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
    return frozenset(one for one in untrusted(labels, tree.policy.trusted) if not inside(tree, one))


def provenance_of(tree: Tree, agent: Agent, bound: Bound) -> Provenance:
    """Where a call comes from."""
    named = {**bound.labels, **{name: value.labels for name, value in bound.attached.items()}}
    return Provenance(
        {name: _outer(tree, labels) for name, labels in named.items()},
        _outer(tree, agent.labels),
        tuple(tree.said),
    )


def _outer(tree: Tree, labels: Labels) -> Labels:
    """Without the labels of modules that add nothing: what they were given is in the others."""
    return frozenset(one for one in labels if not inside(tree, one))
