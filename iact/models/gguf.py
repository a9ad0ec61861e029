"""What a GGUF file says about itself: its name, its licence, the window that the model was trained with.

Only the head of the file is read. Every length in it is checked against what is left, because a file comes from anywhere.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from iact.core.errors import UsageError

MAGIC: Final = b"GGUF"
"""What every such file begins with."""

_VERSIONS: Final = (2, 3)
_MOST_ENTRIES: Final = 10_000
_LONGEST: Final = 1 << 20
"""The longest text that is read; longer ones (templates, vocabularies) are passed over."""

_NUMBERS: Final[Mapping[int, str]] = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
"""How the numbers of each type are written, by the type's number. All are little-endian."""

_STRING: Final = 8
_ARRAY: Final = 9
_PART: Final = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GgufFacts:
    """What the head of a file says; empty or 0 where it says nothing."""

    name: str = ""
    licence: str = ""
    context: int = 0
    """The window in tokens that the model was trained with."""


def is_part(name: str) -> bool:
    """Whether a file is one of several that make up a model."""
    return _PART.search(name) is not None


def read(path: Path) -> GgufFacts:
    """Read the head of a file. Blocks.

    Raises:
        UsageError: it is not a GGUF file, or can't be read.
    """
    try:
        with path.open("rb") as file:
            return _read(file, path)
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}.") from error


def _read(file: BinaryIO, path: Path) -> GgufFacts:
    if file.read(4) != MAGIC:
        raise UsageError(f"{path.name} is not a GGUF file; choose a model's file whose name ends with .gguf.")
    try:
        [version] = _unpack(file, "I")
        if version not in _VERSIONS:
            raise UsageError(f"{path.name} is a GGUF file of version {version}, which can't be read here.")
        _tensors, entries = _unpack(file, "QQ")
        return _facts(file, min(int(entries), _MOST_ENTRIES))
    except (struct.error, KeyError, OverflowError, ValueError) as error:
        raise UsageError(f"{path.name} is a damaged GGUF file; download it again.") from error


def _facts(file: BinaryIO, entries: int) -> GgufFacts:
    found: dict[str, str | int | float | bool | None] = {}
    for _ in range(entries):
        key = _string(file) or ""
        [kind] = _unpack(file, "I")
        if kind == _ARRAY and key.startswith("tokenizer."):
            # The vocabulary is long, and what is wanted stands before it.
            break
        found[key] = _value(file, int(kind))

    trained = next((value for key, value in found.items() if key.endswith(".context_length")), 0)
    return GgufFacts(
        name=_text(found.get("general.name")),
        licence=_text(found.get("general.license")),
        context=trained if isinstance(trained, int) else 0,
    )


def _text(value: object) -> str:
    return " ".join(value.split())[:200] if isinstance(value, str) else ""


def _value(file: BinaryIO, kind: int) -> str | int | float | bool | None:
    """The next value; None for a list and for a text that is too long to be wanted."""
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        [number] = _unpack(file, _NUMBERS[kind])
        return number

    inner, count = _unpack(file, "IQ")
    if inner in _NUMBERS:
        file.seek(struct.calcsize(_NUMBERS[int(inner)]) * int(count), 1)
        return None
    if inner != _STRING:
        raise struct.error("a list of lists, which no model has")
    for _ in range(min(int(count), _MOST_ENTRIES)):
        _value(file, int(inner))
    return None


def _string(file: BinaryIO) -> str | None:
    [length] = _unpack(file, "Q")
    if length > _LONGEST:
        file.seek(int(length), 1)
        return None
    return _exactly(file, int(length)).decode("utf-8")


def _unpack(file: BinaryIO, form: str) -> tuple[int | float | bool, ...]:
    little_endian = "<" + form
    return struct.unpack(little_endian, _exactly(file, struct.calcsize(little_endian)))


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise struct.error("the file ends")
    return data
