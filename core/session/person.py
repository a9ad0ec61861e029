"""The user who acts on a session at this moment, for the records of what people do.

A server with several users sets the name around each message. Without a name there is only one user, and records have
no name. Only methods that a person calls read it, at the moment they make their record: what an agent does is never
signed with a person's name, even if its task began in a message from that person.
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
    """Everything done to sessions inside is done by the person `name`."""
    token = _ACTING.set(name)
    try:
        yield
    finally:
        _ACTING.reset(token)


def acting_user() -> str:
    """The name of the acting user; empty if there is only one user."""
    return _ACTING.get()


def signed(content: _Content) -> _Content:
    """Add the name of the acting user to the content of a record."""
    name = acting_user()
    return replace(content, who=name) if name else content
