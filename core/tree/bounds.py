"""The bounds of a session (law 9). Each is a setting; a bound that is hit is a reported outcome."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

from core.ports import JSON


@dataclass(frozen=True, slots=True)
class Bounds:
    """Depths and counts are inclusive; times in seconds; `shown`: characters of a result in a context."""

    depth: int = 8
    agents: int = 256
    turns: int = 40
    tokens: int = 2_000_000
    activation: float = 3600.0
    tool: float = 120.0
    shown: int = 6000
    reply_tokens: int = 4096

    def to_json(self) -> dict[str, JSON]:
        """As it stands in an `open` record."""
        return dict(asdict(self))

    @staticmethod
    def from_json(data: JSON) -> Bounds:
        """Back from a journal; what is missing has its default."""
        given = data if isinstance(data, dict) else {}
        known = {
            one.name: given[one.name]
            for one in fields(Bounds)
            if isinstance(given.get(one.name), int | float)
        }
        return Bounds(**known)  # type: ignore[arg-type]
