"""Where arguments come from: labels that only the core sets, and what follows from them.

A label names a source: `user`, `model`, `memory`, `tool:<function>`, `agent:<path>`. Labels form a lattice of sets
under union: what is made of several values carries the labels of all. `user` is what a person wrote;
`model` is what the agent wrote by itself, which is as good as what the agent has read: an agent that read
untrusted content is *tainted*, and what it writes carries that. `picked` is a value that stands in its source as
it is, but was chosen among several by whoever wrote the reference: the choice is as good as the model's word.
Everything else is untrusted unless the policy trusts the source by name. What a function gives back is made of
what it was given (`returned`), so a search for words of an attacker's is not washed by the search. A label is
taken away by a person only (`declassify`).

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
"""Labels that name no source but those who wrote: nothing in them comes from outside."""
NOTHING: Final[Labels] = frozenset()


def join(many: Iterable[Labels]) -> Labels:
    """The labels of what is made of several values."""
    return frozenset().union(*many)


def returned(function: str, given: Iterable[Labels]) -> Labels:
    """The labels of what a function gives back. `given`: those of each of its arguments."""
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
        ValueError: `by` is not a person: neither a model nor a module may take labels away.
    """
    if not by.startswith("person:"):
        raise ValueError(f"Only a person can take labels away, and {by!r} is none; ask the user to.")
    return (labels - gone) | {USER}


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where one call comes from. `arguments`: labels by parameter; `agent`: what the agent has read.

    `said`: texts that the user wrote in this session. `plain`: labels of tools that add nothing to what they were given.
    `unvouched`: labels of functions whose module nobody approved: a policy that trusts a name means another one.
    """

    arguments: Mapping[str, Labels] = field(default_factory=dict)
    agent: Labels = NOTHING
    said: tuple[str, ...] = ()
    plain: Labels = NOTHING
    unvouched: Labels = NOTHING

    def of(self, parameter: str) -> Labels:
        """The labels of one argument: what the model wrote or picked carries what the agent has read."""
        labels = self.arguments.get(parameter, frozenset({MODEL}))
        return labels if labels.isdisjoint((MODEL, PICKED)) else labels | self.agent

    def all(self) -> Labels:
        """The labels of all arguments and of the agent that makes the call."""
        return join([self.agent, *self.arguments.values()])

    def strange(self, labels: Labels, trusted: Iterable[str]) -> Labels:
        """Those of `labels` that are untrusted, and add something."""
        return untrusted(labels - self.plain, trusted) | (labels & self.unvouched)
