"""The trace of a program that calls a face, as it names it in the form of W3C's `traceparent`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

FIELD: Final = "traceparent"

_VALUE: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})")
_SAMPLED: Final = 1


def traceparent_of(told: Mapping[str, object] | None) -> str:
    """The trace that headers, or the metadata of a message, name; empty if it is none, or is not recorded.

    A caller that does not record its own trace has no span that ours could continue.
    """
    value = (told or {}).get(FIELD)
    found = _VALUE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or not int(found[1], 16) & _SAMPLED:
        return ""
    return found[0]
