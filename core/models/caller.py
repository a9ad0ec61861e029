"""The trace of the program on whose behalf a model is asked, passed on to the model's endpoint.

A task names it while it asks a model, in the form of W3C's `traceparent`; empty: nobody's.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from iact.core.records.dialogue import is_traceparent

HEADER: Final = "traceparent"

_CALLER: Final[ContextVar[str]] = ContextVar("iact_traceparent", default="")


def trace_of_caller() -> str:
    """The trace that requests of this task belong to; empty if to none."""
    return _CALLER.get()


def ask_on_behalf_of(traceparent: str) -> None:
    """Name the trace that further requests of this task belong to."""
    # A journal that came from elsewhere may name anything, and a header with a line end would be a request of its own.
    _CALLER.set(traceparent if is_traceparent(traceparent) else "")
