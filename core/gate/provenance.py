"""Where arguments come from: labels that only the core sets, and what follows from them.

A label names a source: `user`, `model`, `memory`, `tool:<function>`, `inside:<function>`, `agent:<path>`. Labels form
a lattice of sets under union: a value made of several values carries the labels of all of them. `user` is what a person wrote. `model` is
what the agent wrote itself, which is only as trustworthy as what the agent has read: an agent that read untrusted
content is *tainted*, and so is what it writes. `picked` is a value that occurs in its source unchanged, but was chosen
among several by the agent that wrote the reference: the choice is only as trustworthy as the model's word. `inside` is
the result of a function that reached nothing outside while it was made: it is as trustworthy as what the function was
given, whose labels the result carries as well. Everything else is untrusted unless the policy trusts the source by
name; there, `tool:files.read` names the function `files.read` whether or not it reached anything. The result of a function is made of its arguments as well
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

_TOOL: Final = "tool:"
_INSIDE: Final = "inside:"

REMEMBERED: Final = f"{_INSIDE}RECALL"
"""The label of what memory recalled. Nobody distrusts it for that, but it isn't public."""


def join(many: Iterable[Labels]) -> Labels:
    """The labels of a value made of several values."""
    return frozenset().union(*many)


def from_tool(function: str) -> str:
    """The label of what a function brings from outside."""
    return _TOOL + function


def from_inside(function: str) -> str:
    """The label of what a function makes of its arguments and of the files alone."""
    return _INSIDE + function


def is_inside(label: str) -> bool:
    """Whether a label says of its function that it reached nothing outside."""
    return label.startswith(_INSIDE)


def source_of(label: str) -> str:
    """A label as policies name it: that of a function does not say whether it reached anything."""
    return _TOOL + label.removeprefix(_INSIDE) if is_inside(label) else label


def function_of(label: str) -> str:
    """The function that a label names; empty if it names another kind of source."""
    for kind in (_TOOL, _INSIDE):
        if label.startswith(kind):
            return label.removeprefix(kind)
    return ""


def returned(label: str, given: Iterable[Labels]) -> Labels:
    """The labels of a function's result. `label`: the function's; `given`: those of each of its arguments."""
    return join([frozenset({label}), *given])


def untrusted(labels: Labels, trusted: Iterable[str] = ()) -> Labels:
    """The labels that are neither the user's nor the model's own, nor from inside, nor trusted by a pattern of the policy."""
    patterns = tuple(trusted)
    return frozenset(
        label
        for label in labels - OWN
        if not is_inside(label) and not any(fnmatch.fnmatchcase(label, pattern) for pattern in patterns)
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
    """Where one call comes from."""

    arguments: Mapping[str, Labels] = field(default_factory=dict)
    """Labels by parameter."""
    agent: Labels = NOTHING
    """Labels of what the agent has read."""
    said: tuple[str, ...] = ()
    """Texts that the user wrote in this session."""
    unvouched: Labels = NOTHING
    """Labels of functions whose module nobody approved, so a policy that trusts such a name means another module."""

    def of(self, parameter: str) -> Labels:
        """The labels of one argument. What the model wrote or picked carries the labels of what the agent has read."""
        labels = self.arguments.get(parameter, frozenset({MODEL}))
        return labels if labels.isdisjoint((MODEL, PICKED)) else labels | self.agent

    def all(self) -> Labels:
        """The labels of all arguments and of the agent that makes the call."""
        return join([self.agent, *self.arguments.values()])

    def strange(self, labels: Labels, trusted: Iterable[str]) -> Labels:
        """Those of `labels` that are untrusted."""
        return untrusted(labels, trusted) | (labels & self.unvouched)
