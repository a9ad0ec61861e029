"""What a command can do, and what impact that has, given what is at stake.

A shell script is judged as a list of findings, one for each thing that it can do. Its impact is the worst of them under
the stake of the place where it runs. Anything that the classifier does not positively understand is a finding too:
`unknown`.
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
    """One thing that a script can do."""

    effect: Effect
    what: str
    """A few words for a person, with the piece of the script."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Everything that a script can do. Without findings, it only reads."""

    findings: tuple[Finding, ...] = ()
    written: tuple[str, ...] = ()
    """Files that it is known to write, as the script names them. There may be others."""

    @property
    def worst(self) -> Finding:
        """The finding that decides, the first of equal ones."""
        only_looks = Finding("observe", "only looks")
        return max(self.findings, key=lambda finding: _RANK[finding.effect], default=only_looks)

    @property
    def effect(self) -> Effect:
        """The worst effect."""
        return self.worst.effect

    def impact(self, *, live: bool) -> int:
        """Return 0 if it observes, 1 if it modifies, 2 if it endangers something of the user's or the outside world."""
        return (_LIVE if live else _SCRATCH)[self.effect]
