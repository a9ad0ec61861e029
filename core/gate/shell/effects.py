"""What a command can do to the world, and how much that is, given what is at stake.

A shell script is judged as a list of findings, one for each thing that it can do; its impact is the
worst of them under the stake of the place where it runs. What the classifier does not positively
understand is a finding too: `unknown`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Effect = Literal["observe", "modify", "destroy", "send", "authority", "unknown"]

_SCRATCH: Final[dict[Effect, int]] = {
    "observe": 0, "modify": 1, "destroy": 1, "send": 1, "authority": 1, "unknown": 1
}  # fmt: skip
_LIVE: Final[dict[Effect, int]] = {
    "observe": 0, "modify": 1, "unknown": 2, "destroy": 2, "send": 2, "authority": 2
}  # fmt: skip
_RANK: Final[dict[Effect, int]] = {effect: rank for rank, effect in enumerate(_LIVE)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a script can do. `what`: a few words for a person, with the piece of the script."""

    effect: Effect
    what: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """All that a script can do; nothing found means that it only looks."""

    findings: tuple[Finding, ...] = ()
    written: tuple[str, ...] = ()
    """Files that it is known to write, as they are named in it; there may be others."""

    @property
    def worst(self) -> Finding:
        """The finding that counts. Of equal ones the first."""
        return max(self.findings, key=lambda one: _RANK[one.effect], default=Finding("observe", "only looks"))

    @property
    def effect(self) -> Effect:
        """The worst effect."""
        return self.worst.effect

    def impact(self, *, live: bool) -> int:
        """0 observes, 1 modifies, 2 endangers something of the user's or of the world outside."""
        return (_LIVE if live else _SCRATCH)[self.effect]
