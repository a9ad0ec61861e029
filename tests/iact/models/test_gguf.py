"""The head of a GGUF file: what is read from it, and that no file that lies about itself does harm."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from iact.core.errors import UsageError
from iact.models import gguf as heads
from iact.models.gguf import GgufFacts
from tests.iact.models.hub_server import gguf

WHOLE = gguf(name="A  name", licence="mit", context=4096)


def read(content: bytes, tmp_path: Path) -> GgufFacts:
    path = tmp_path / "it.gguf"
    path.write_bytes(content)
    return heads.read(path)


def test_its_facts_are_read(tmp_path: Path) -> None:
    assert read(WHOLE + b"weights", tmp_path) == GgufFacts("A name", "mit", 4096)


@pytest.mark.parametrize("content", [b"", b"GGU", b"PK\x03\x04 a zip", b"<html>not found</html>"])
def test_another_file_is_none(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a GGUF file"):
        read(content, tmp_path)


def test_an_old_version_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="version 1"):
        read(b"GGUF" + struct.pack("<IQQ", 1, 0, 0), tmp_path)


def test_a_file_that_is_cut_or_changed_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    rng = random.Random(3)
    damaged = [WHOLE[:length] for length in range(8, len(WHOLE))]
    for _ in range(500):
        changed = bytearray(WHOLE)
        changed[rng.randrange(4, len(WHOLE))] = rng.randrange(256)
        damaged.append(bytes(changed))

    refused = 0
    for content in damaged:
        try:
            assert isinstance(read(content, tmp_path), GgufFacts)
        except UsageError:
            refused += 1
    assert refused > len(WHOLE) - 8


@pytest.mark.parametrize(("name", "part"), [("a-00001-of-00002.gguf", True), ("a-q4_k_m.gguf", False)])
def test_parts_are_known_by_their_names(name: str, part: bool) -> None:
    assert heads.is_part(name) is part
