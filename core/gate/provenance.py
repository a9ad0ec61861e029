"""Where arguments come from: labels that only the core sets, and what follows from them.

A label names a source: `user`, `model`, `memory`, `tool:<function>`, `agent:<path>`. Labels form a lattice of sets
under union: a value made of several values carries the labels of all of them. `user` is what a person wrote. `model` is
what the agent wrote itself, which is only as trustworthy as what the agent has read: an agent that read untrusted
content is *tainted*, and so is what it writes. `picked` is a value that occurs in its source unchanged, but was chosen
among several by the agent that wrote the reference: the choice is only as trustworthy as the model's word. Everything
else is untrusted unless the policy trusts the source by name. The result of a function is made of its arguments as well
(`returned`), so searching for an attacker's words does not launder them. Only a person can remove a label
(`declassify`).

The idea is that of information-flow control for agents (CaMeL, arXiv 2503.18813; FIDES, arXiv 2505.23643).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

Labels = frozenset[str]

USER: Final = "user"
MODEL: Final = "model"
PICKED: Final = "picked"
OWN: Final = frozenset({USER, MODEL, PICKED})
"""Labels that name only the writer as a source: nothing in such a value comes from outside."""
NOTHING: Final[Labels] = frozenset()


def join(many: Iterable[Labels]) -> Labels:
    """The labels of a value made of several values."""
    return frozenset().union(*many)


def returned(function: str, given: Iterable[Labels]) -> Labels:
    """The labels of a function's result. `given`: those of each of its arguments."""
    return join([frozenset({f"tool:{function}"}), *given])


def untrusted(labels: Labels, trusted: Iterable[str] = ()) -> Labels:
    """The labels that are neither the user's nor the model's own, nor trusted by a pattern of the policy."""
    patterns = tuple(trusted)
    return frozenset(
        label
        for label in labels
        if label not in OWN and not any(fnmatch.fnmatchcase(label, one) for one in patterns)
    )


def declassify(labels: Labels, gone: Labels, *, by: str) -> Labels:
    """The labels left when a person vouches for a value.

    Raises:
        ValueError: `by` is not a person. Neither a model nor a module may remove labels.
    """
    if not by.startswith("person:"):
        raise ValueError(f"Only a person can take labels away, and {by!r} is none; ask the user to.")
    return (labels - gone) | {USER}


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where one call comes from. `arguments`: labels by parameter; `agent`: labels of what the agent has read.

    `said`: texts that the user wrote in this session. `plain`: labels of tools that add nothing to their arguments.
    `unvouched`: labels of functions whose module nobody approved, so a policy that trusts such a name means another
    module.
    """

    arguments: Mapping[str, Labels] = field(default_factory=dict)
    agent: Labels = NOTHING
    said: tuple[str, ...] = ()
    plain: Labels = NOTHING
    unvouched: Labels = NOTHING

    def of(self, parameter: str) -> Labels:
        """The labels of one argument. What the model wrote or picked carries the labels of what the agent has read."""
        labels = self.arguments.get(parameter, frozenset({MODEL}))
        return labels if labels.isdisjoint((MODEL, PICKED)) else labels | self.agent

    def all(self) -> Labels:
        """The labels of all arguments and of the agent that makes the call."""
        return join([self.agent, *self.arguments.values()])

    def strange(self, labels: Labels, trusted: Iterable[str]) -> Labels:
        """Those of `labels` that are untrusted and not plain."""
        return untrusted(labels - self.plain, trusted) | (labels & self.unvouched)
