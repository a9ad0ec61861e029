"""The standing statements of a session, as its tree holds them (`core.tree.standing`)."""

from __future__ import annotations

from dataclasses import dataclass

from iact.core.gate.provenance import NOTHING, Labels


@dataclass(frozen=True, slots=True)
class Standing:
    """What every agent of the session is told from the start."""

    lines: tuple[str, ...] = ()
    """The statements as agents read them."""
    labels: Labels = NOTHING
    """The labels of those who read them."""
