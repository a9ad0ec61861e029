"""Who acts on a session at this moment, for the records of what a person does.

A server with several users says so around each message; where nobody says anything, there is one user, and records
have no name. Only the methods that a person calls look here, at the moment in which they make their record: what an
agent does is never signed with the name of a person, though its task may have begun in a message of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Final, TypeVar

from iact.core.records.person import PersonContent

_ACTING: Final[ContextVar[str]] = ContextVar("acting", default="")

_Content = TypeVar("_Content", bound=PersonContent)


@contextmanager
def acting(name: str) -> Iterator[None]:
    """What is done to sessions in here, the person `name` does."""
    token = _ACTING.set(name)
    try:
        yield
    finally:
        _ACTING.reset(token)


def signed(content: _Content) -> _Content:
    """What a person does, with the name of whoever does it."""
    name = _ACTING.get()
    return replace(content, who=name) if name else content
