"""Arguments and results of functions that are more than plain Python values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

JSON: TypeAlias = bool | int | float | str | list["JSON"] | dict[str, "JSON"] | None


@dataclass(frozen=True, slots=True)
class Value:
    """Content with a media type: an argument passed by value, or an artifact to return."""

    data: bytes
    media_type: str = "application/octet-stream"
    name: str = ""
    """The name of the variable or the file; empty: it has none."""
    written: bool = field(default=False, compare=False)
    """Whether it was written in the call, and not passed by value."""

    def text(self) -> str:
        """The content as text; bytes that are not UTF-8 become U+FFFD."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Result:
    """A return value with additional information."""

    value: JSON | bytes | Value = None
    """None: the streamed text is the result."""
    media_type: str = ""
    data: Mapping[str, JSON] = field(default_factory=dict)
    """Details that are not text for the agent, such as an exit status."""
