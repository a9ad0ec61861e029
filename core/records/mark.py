"""The one thing that is said of every field of a record: who could have said it.

An *outcome* is what only the world could say: a model's text, a tool's output, a time, who came first, a person's
word. It is taken as it stands. What is *derived* the core said itself, so a verification comes to it again, and names
the first record where it does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias, TypeVar


@dataclass(frozen=True, slots=True)
class Mark:
    """Whose word a field is. `derived`: the core's."""

    derived: bool


@dataclass(frozen=True, slots=True)
class Since:
    """The first format in which a kind or a field stands; those of older formats have its default."""

    format: str


@dataclass(frozen=True, slots=True)
class Group:
    """The field is a class whose fields stand in the header itself, among the others; None: none of them does."""


OUTCOME: Final = Mark(derived=False)
DERIVED: Final = Mark(derived=True)

_T = TypeVar("_T")

Outcome: TypeAlias = Annotated[_T, OUTCOME]
Derived: TypeAlias = Annotated[_T, DERIVED]
