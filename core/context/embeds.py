"""Embeds, `![caption]($name)`: one message, read in three ways.

To a person it is a picture or a player. To a model that takes such media, the variable's content is a part of the
message (`Part`), behind its text. To any other model it stays what it is, a tag that can be passed on, and the
message says what the variable is. Which of the last two is decided here, from what the model's profile says.

The core reads no content: a part is the variable's bytes, as they are, for the endpoint to decode.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from iact.core.language.variables import Value
from iact.core.ports import Medium, Part

MOST: Final = 8
"""Parts of one message."""

LARGEST: Final = 8 << 20
"""Bytes of one part."""

_EMBED: Final = re.compile(r"!\[[^\]\n]*\]\(\$([A-Za-z_][A-Za-z0-9_]*)\)")
_MEDIA: Final[Mapping[str, Medium]] = {
    "image/png": "image",
    "image/jpeg": "image",
    "image/gif": "image",
    "image/webp": "image",
    "audio/wav": "audio",
    "audio/mpeg": "audio",
}
"""What endpoints take, by media type."""


def embedded(text: str) -> list[str]:
    """Names of the variables that a text embeds, in order, each once."""
    return list(dict.fromkeys(match.group(1) for match in _EMBED.finditer(text))) if "](" in text else []


def part(name: str, value: Value, takes: Collection[Medium]) -> Part | None:
    """A variable as a part of a message; None if the model does not take it, or it is too large."""
    medium = _MEDIA.get(value.media.partition(";")[0].strip().lower())
    if medium is None or medium not in takes or not 0 < value.size <= LARGEST:
        return None
    return Part(name, value.media.partition(";")[0].strip().lower(), medium, value.sha256, value.load)
