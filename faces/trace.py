"""The trace of a program that calls a face, as it names it in the form of W3C's `traceparent`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iact.core.records.dialogue import is_traceparent

FIELD: Final = "traceparent"

_SAMPLED: Final = 1


def traceparent_of(told: Mapping[str, object] | None) -> str:
    """The trace that headers, or the metadata of a message, name; empty if it is none, or is not recorded.

    A caller that does not record its own trace has no span that ours could continue.
    """
    value = (told or {}).get(FIELD)
    if not isinstance(value, str):
        return ""
    traceparent = value.strip()
    if not is_traceparent(traceparent):
        return ""

    flags = int(traceparent.rpartition("-")[2], 16)
    return traceparent if flags & _SAMPLED else ""
