"""The two ends of a journal: enough to list many sessions, without reading any of them completely."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from iact.core.errors import JournalCorrupt
from iact.core.journal.file import last_number, open_regular
from iact.core.journal.parser import Parser
from iact.core.journal.seal import Sealer
from iact.core.records.record import Record

_END: Final = 65_536
"""Bytes at each end of a journal that are read first."""
_FAR: Final = 4 << 20
"""Bytes at a journal's end that are searched for the last record, which may be long, on the second attempt."""
_TRIES: Final = 16
"""How many places in the last record's own text may look like its header."""


@dataclass(frozen=True, slots=True)
class JournalEnds:
    """What a list of sessions shows of one, without its middle."""

    first: tuple[Record, ...]
    """The records at its start, up to the user's first message."""
    last: int
    """The number of the last whole record, or 0."""
    sealed: bool
    """Whether that one has the sealer's seal. All others are checked when the session is opened."""

    @property
    def title(self) -> str:
        """The first words of the user."""
        return next((record.body for record in self.first if record.kind == "say"), "")

    @staticmethod
    def of(file: Path, sealer: Sealer) -> JournalEnds:
        """Read the ends of a journal's file.

        Raises:
            OSError: it can't be read, or is not a plain file.
            JournalCorrupt: it does not begin like a journal.
        """
        with open_regular(file) as stream:
            first = tuple(_until_said(Parser().feed(stream.read(_END))))

            last = last_number(file)
            size = os.fstat(stream.fileno()).st_size
            for length in (_END, _FAR):
                stream.seek(max(0, size - length))
                sealed = _is_sealed(stream.read(length), last, sealer)
                if sealed is not None or size <= length:
                    break
        return JournalEnds(first, last, bool(sealed))


def _until_said(records: Iterator[Record]) -> Iterator[Record]:
    for record in records:
        yield record
        if record.kind == "say":
            return


def _is_sealed(data: bytes, n: int, sealer: Sealer) -> bool | None:
    """Whether record `n`, the last whole one in `data`, has the sealer's seal; None if part of it is missing."""
    begin = b'<!-- iact {"n":%d,' % n
    place = len(data)
    for _ in range(_TRIES):
        place = data.rfind(begin, 0, place)
        if place < 0:
            break

        # The record before it isn't there, so the chain is taken at this record's own word.
        header = data[place : data.find(b"\n", place)]
        prev = header[header.rfind(b'"prev":"') + 8 :][:8]
        parser = Parser(n=n - 1, prev=prev.decode("ascii", "replace"), sealer=sealer)
        try:
            if next(parser.feed(data[place:]), None) is not None:
                return not parser.seals.unsealed
        except JournalCorrupt:
            # Text in its body that looks like its header.
            continue
    return None


_HEADER: Final = re.compile(rb'(?:^|\n)(<!-- iact \{"n":(\d+),[^\n]*?"prev":"([0-9a-f]{8})")')


def sealed_end(file: Path, sealer: Sealer, least: int, most: int) -> list[Record]:
    """Return the records in the last `most` bytes of a journal's file, if each has the sealer's seal.

    Returns none if anything else is between or after them, and none for a journal of fewer than `least` bytes, which is
    read as a whole just as quickly. Text in a record that looks like records has no seals, so it can't pose as records.

    Raises:
        OSError: it can't be read, or is not a plain file.
    """
    with open_regular(file) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size < least:
            return []
        stream.seek(max(0, size - most))
        data = stream.read(most)

    for match in islice(_HEADER.finditer(data), _TRIES):
        parser = Parser(n=int(match[2]) - 1, prev=match[3].decode(), sealer=sealer)
        with suppress(JournalCorrupt):
            records = list(parser.feed(data[match.start(1) :]))
            if records and not parser.seals.unsealed:
                return records
    return []


def newest(file: Path, most: int = 8_192) -> list[Record]:
    """Return the records that are complete in the last `most` bytes of a journal's file.

    The last record is missing if it is longer than that.

    Raises:
        OSError: it can't be read, or is not a plain file.
    """
    with open_regular(file) as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - most))
        data = stream.read(most)

    for match in islice(_HEADER.finditer(data), _TRIES + 1):
        parser = Parser(n=int(match[2]) - 1, prev=match[3].decode())
        records = list[Record]()
        # Text in a body that looks like a header, or damage behind the records that were read.
        with suppress(JournalCorrupt):
            records.extend(parser.feed(data[match.start(1) :]))
        if records:
            return records
    return []
