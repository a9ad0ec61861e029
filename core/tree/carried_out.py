"""What a session knows about what leaves, as data: pages that were read, and what a person let go.

`core.tree.carried` has the rules that read and change it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from iact.core.gate.carried import SendingKind
from iact.core.language.variables import Value


@dataclass(slots=True)
class CarriedOut:
    """What a session knows about what leaves. A fold of its records."""

    allowed: set[tuple[str, SendingKind]] = field(default_factory=set)
    """Destinations, each with what a person let go there."""
    pages: list[Value] = field(default_factory=list)
    """The texts of pages from outside that agents were given."""
    shown: dict[str, str] = field(default_factory=dict)
    """The host of the page that an agent's browser shows. Empty: a page of the agent's own making."""
