"""What goes into a function and comes out of it, beyond plain Python values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

JSON: TypeAlias = bool | int | float | str | list["JSON"] | dict[str, "JSON"] | None


@dataclass(frozen=True, slots=True)
class Value:
    """Content with a media type: an argument passed by value, or an artifact to give back."""

    data: bytes
    media_type: str = "application/octet-stream"
    name: str = ""

    def text(self) -> str:
        """The content as text; what is not UTF-8 becomes U+FFFD."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Result:
    """A return value with more than the value.

    `value` None: what was streamed is what the function gives back. `data`: what is not text for the
    agent, such as an exit status.
    """

    value: JSON | bytes | Value = None
    media_type: str = ""
    data: Mapping[str, JSON] = field(default_factory=dict)
