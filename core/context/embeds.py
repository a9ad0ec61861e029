"""Embeds, `![caption]($name)`: one message that is read in three ways.

A person sees a picture or a player. For a model that takes such media, the variable's content is a part of the message
(`Part`), after its text. For any other model it stays a tag that can be passed on, and the message describes the
variable. The model's profile decides which of the last two applies. The core does not read the content: a part is the
variable's bytes, unchanged, for the endpoint to decode.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from iact.core.language.variables import Value
from iact.core.ports import Medium, Part

MOST: Final = 8
"""The most parts of one message."""

LARGEST: Final = 8 << 20
"""The most bytes of one part."""

_EMBED: Final = re.compile(r"!\[[^\]\n]*\]\(\$([A-Za-z_][A-Za-z0-9_]*)\)")
_MEDIA: Final[Mapping[str, Medium]] = {
    "image/png": "image",
    "image/jpeg": "image",
    "image/gif": "image",
    "image/webp": "image",
    "audio/wav": "audio",
    "audio/mpeg": "audio",
}
"""The media that endpoints take, by media type."""


def embedded(text: str) -> list[str]:
    """Return the names of the variables that a text embeds, in order, each once."""
    if "](" not in text:
        return []
    return list(dict.fromkeys(match.group(1) for match in _EMBED.finditer(text)))


def medium_of(value: Value) -> Medium | None:
    """What kind of media a variable is; None if endpoints take nothing of its type."""
    return _MEDIA.get(_type_of(value))


def _type_of(value: Value) -> str:
    """A media type without its parameters."""
    return value.media.partition(";")[0].strip().lower()


def part(name: str, value: Value, takes: Collection[Medium]) -> Part | None:
    """Return a variable as a part of a message; None if the model does not take it, or it is too large."""
    medium = medium_of(value)
    if medium is None or medium not in takes:
        return None
    if not 0 < value.size <= LARGEST:
        return None
    return Part(name, _type_of(value), medium, value.sha256, value.load)
