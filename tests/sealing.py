"""Seals for tests: one key for all data directories, so that a journal made in one is valid in all of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final

from iact.core.journal.file import FILE, read_journal
from iact.core.journal.record import encode
from iact.core.journal.seal import KEY, Sealer
from iact.core.records.record import GENESIS

THE_KEY: Final = bytes(range(32))
SEALER: Final = Sealer(THE_KEY)


def give_key(data: Path) -> None:
    """Give a data directory the key of all tests, unless it already has a key."""
    data.mkdir(parents=True, exist_ok=True)
    if not (data / KEY).exists():
        (data / KEY).write_bytes(THE_KEY)
        (data / KEY).chmod(0o600)


def seal(directory: Path, sealer: Sealer = SEALER) -> None:
    """Write the journal of a session again with seals, as if it had been made by the installation with this key."""
    data, prev = b"", GENESIS
    for record in read_journal(directory).records:
        encoded, prev = encode(dataclasses.replace(record, prev=prev), sealer)
        data += encoded
    (directory / FILE).write_bytes(data)
