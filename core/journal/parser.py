"""Turns bytes, in pieces of any size, into records, each checked against its digest, its number and the one before."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from iact.core.errors import JournalCorrupt
from iact.core.journal.record import HEAD, HEAD_END, MAX_BODY, MAX_HEADER, trailer, unwrap
from iact.core.journal.seal import MARK, MARKED, PLAIN_END, Sealer, Seals
from iact.core.ports import JSON
from iact.core.records.codec import Misfit, decode
from iact.core.records.content import Content, Unknown
from iact.core.records.kinds import is_too_new
from iact.core.records.record import GENESIS, Record
from iact.core.records.session import Adopt

_UNWRITTEN: Final = 16 << 20
"""How many zeros at the end of a file may be an append that was not written."""
_SEALED: Final = ',"seal":""'
"""What a seal adds to a header, beside its digits."""
_MAX_HEADING: Final = 16_384
"""The most bytes of the line for people."""
_BYTES: Final = re.compile(
    rb'"bytes":\d+(?=,"prev":"[0-9a-f]{8}"(?:,"wrapped":true)?(?:,"seal":"[0-9a-f]{16}")?} -->\n$)'
)

_TYPES: Final[Mapping[str, type]] = {
    "n": int, "at": str, "kind": str, "agent": str, "step": int, "bytes": int, "prev": str,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Head:
    """A record's header, and where its parts are in the buffer."""

    header: dict[str, JSON]
    body: int
    """Where its body begins."""
    size: int
    """The bytes of its body."""
    end: int
    """Where the record ends, behind its trailer."""


class Parser:
    """Turns bytes into records and checks numbers, digests and the chain.

    Linear in the bytes fed, if the pieces are not much smaller than a header.
    """

    def __init__(self, *, n: int = 0, prev: str = GENESIS, sealer: Sealer | None = None) -> None:
        self.seals = Seals()
        """Which records the sealer made, if there is one."""
        self.offset = 0
        """The position after the last whole record, where a torn tail would be cut."""
        self._sealer = sealer
        self._pieces: list[bytes] = []
        """What was fed and belongs to no whole record yet."""
        self._size = 0
        """The bytes in all pieces."""
        self._wanted = 1
        """The bytes that the next record needs at least."""
        self._n = n
        """The number of the last record."""
        self._prev = prev
        """The digest of the last record."""

    @property
    def pending(self) -> int:
        """How many bytes follow the last whole record."""
        return self._size

    @property
    def torn(self) -> bool:
        """Whether the bytes after the last whole record can be an append that a crash cut short.

        They can't be if they contain a trailer that proves that the record was complete once: its digest is right for
        the length and heading that the record must have had, or the next record follows it.
        """
        buffer = self._joined()
        head = self._head(buffer, 0)
        if head is None:
            return True

        trailers = re.finditer(rb"\n\n<!-- /%d ([0-9a-f]{8}) -->\n\n" % (self._n + 1), buffer)
        for match in trailers:
            digest = match.group(1).decode()
            if _was_whole(buffer, head, match.start(), digest):
                return False
            if Parser(n=self._n + 1, prev=digest).begins(buffer[match.end() :]):
                return False
        return True

    def begins(self, data: bytes) -> bool:
        """Whether `data` starts with a whole record that may come next."""
        try:
            return self._take(data, 0) is not None
        except JournalCorrupt:
            return False

    def feed(self, data: bytes) -> Iterator[Record]:
        """Take the next bytes. Yields every record that is now complete.

        Raises:
            JournalCorrupt: the bytes can't be (the start of) the next record.
        """
        self._pieces.append(data)
        self._size += len(data)
        if self._size < self._wanted:
            return

        buffer = self._joined()
        position = 0
        try:
            while (taken := self._take(buffer, position)) is not None:
                record, end = taken
                if self._sealer is not None:
                    self._judge(record, buffer, position, end, self._sealer)

                self._n = record.n
                self._prev = record.digest
                self._wanted = 1
                self.offset += end - position
                position = end
                yield record
        finally:
            # Also if the caller takes no more: what was not yielded is read again.
            self._pieces = [buffer[position:]]
            self._size = len(buffer) - position

    def _judge(self, record: Record, buffer: bytes, start: int, end: int, sealer: Sealer) -> None:
        """Check the seal of a record in `buffer`; `self.offset` is still the position where it begins in the file."""
        valid = False
        if record.seal:
            # A seal covers the record without its trailer, and its header as it was before the seal was put in.
            view = memoryview(buffer)
            line_end = buffer.index(b"\n", start) + 1
            unsealed_end = line_end - len(PLAIN_END) - len(record.seal) - len(_SEALED)
            covered = view[line_end : end - len(trailer(record.n))]
            seal = sealer.seal(view[start:unsealed_end], PLAIN_END, covered)
            valid = hmac.compare_digest(seal, record.seal)

        self.seals.take(record.n, valid=valid)
        if valid and isinstance(record.content, Adopt):
            self.seals.adopt(self.offset, record.content.sha256)

    def _joined(self) -> bytes:
        if len(self._pieces) != 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    def _bad(self, why: str) -> JournalCorrupt:
        n = self._n + 1
        return JournalCorrupt(f"Record {n} at byte {self.offset} is damaged: {why}.", n=n, offset=self.offset)

    def _take(self, buffer: bytes, start: int) -> tuple[Record, int] | None:
        """The record at `start`, and where it ends; None if it is incomplete."""
        head = self._head(buffer, start)
        if head is None:
            self._wanted = len(buffer) - start + 1
            return None
        if len(buffer) < head.end:
            self._wanted = head.end - start
            return None

        # A whole record ends with the end of a line.
        if _is_unwritten(buffer, head.end - 1):
            self._wanted = len(buffer) - start + 1
            return None

        body_end = head.body + head.size
        digest = hashlib.sha256(memoryview(buffer)[start:body_end]).hexdigest()[:8]
        if buffer[body_end : head.end] != trailer(self._n + 1, digest):
            raise self._bad("its trailer does not match its content")
        return self._record(head.header, buffer[head.body : body_end], digest), head.end

    def _head(self, buffer: bytes, start: int) -> _Head | None:
        """The header and heading of the record at `start`; None if they are incomplete."""
        line_end = buffer.find(b"\n", start)
        if line_end < 0:
            if _is_unwritten(buffer, start):
                return None

            begun = buffer[start : start + len(HEAD)]
            if begun != HEAD[: len(begun)]:
                raise self._bad("its header does not begin as one")
            if len(buffer) - start > MAX_HEADER:
                raise self._bad("its header has no end")
            return None

        line = buffer[start : line_end + 1]
        if not line.startswith(HEAD) or not line.endswith(HEAD_END):
            raise self._bad("its header is not one line of the form <!-- iact {…} -->")
        header = self._header(line[len(HEAD) : -len(HEAD_END)])
        if "seal" in header and not _ends_with_seal(line, header["seal"]):
            raise self._bad("its seal is not at the end of the header")

        body = self._behind_heading(buffer, line_end + 1)
        if body is None:
            return None
        size = header.pop("bytes")
        assert isinstance(size, int)
        return _Head(header, body, size, body + size + len(trailer(self._n + 1)))

    def _behind_heading(self, buffer: bytes, start: int) -> int | None:
        """Where the body begins behind the heading at `start`, the line for people; None if that is incomplete."""
        heading = b"### %d " % (self._n + 1)
        begun = buffer[start : start + len(heading)]
        if begun != heading[: len(begun)]:
            raise self._bad("its heading does not begin as one")

        longest = start - 1 + _MAX_HEADING
        heading_end = buffer.find(b"\n", start, longest)
        if heading_end < 0 and len(buffer) > longest:
            raise self._bad("its heading has no end")
        if heading_end < 0 or len(buffer) == heading_end + 1:
            return None
        if buffer[heading_end + 1 : heading_end + 2] != b"\n":
            raise self._bad("its heading is not followed by an empty line")
        return heading_end + 2

    def _header(self, text: bytes) -> dict[str, JSON]:
        """The fields of the header that may come next, each checked as far as all kinds of records have it."""
        try:
            header = _HEADER.decode(text.decode())
            # We can neither show nor send half a character.
            if b"\\ud" in text.lower():
                json.dumps(header, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise self._bad("its header is not JSON") from error
        if not isinstance(header, dict):
            raise self._bad("its header is not an object")

        for name, proper in _TYPES.items():
            if type(header.get(name)) is not proper:
                raise self._bad(f"its header lacks a proper {name!r}")
        if header["n"] != self._n + 1:
            raise self._bad(f"its number is {header['n']}, not {self._n + 1}")
        if header["prev"] != self._prev:
            raise self._bad("it does not follow the record before it")
        if not 0 <= header["bytes"] <= MAX_BODY:
            raise self._bad("its length is impossible")
        return header

    def _record(self, header: dict[str, JSON], raw: bytes, digest: str) -> Record:
        """The record of a header and the bytes of its body."""
        try:
            body = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._bad("its body is not UTF-8") from error

        if header.pop("wrapped", False):
            if body.count("\n") < 2:
                raise self._bad("its body is not wrapped in a fence, as its header says")
            body = unwrap(body)

        # What is left of the header is the kind's own.
        n = header.pop("n")
        step = header.pop("step")
        at = header.pop("at")
        kind = header.pop("kind")
        agent = header.pop("agent")
        prev = header.pop("prev")
        seal = header.pop("seal", "")
        assert isinstance(n, int)
        assert isinstance(step, int)
        assert isinstance(at, str)
        assert isinstance(kind, str)
        assert isinstance(agent, str)
        assert isinstance(prev, str)
        assert isinstance(seal, str)
        content, extra = self._content(kind, header)
        return Record(n, at, agent, step, content, body, prev, digest, seal, extra)

    def _content(self, kind: str, header: dict[str, JSON]) -> tuple[Content, Mapping[str, JSON]]:
        try:
            return decode(kind, header)
        except Misfit as misfit:
            if kind == "open" and is_too_new(header.get("format")):
                # The reader reports what to do about it.
                return Unknown(kind, header), {}
            n = self._n + 1
            what = f"Record {n} ({kind}) is damaged: {misfit}."
            raise JournalCorrupt(what, n=n, offset=self.offset) from misfit


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


_HEADER: Final = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)


def _ends_with_seal(line: bytes, seal: JSON) -> bool:
    """Whether a header's line ends with this seal, written exactly as this program writes seals."""
    mark = MARK.match(line, max(0, len(line) - MARKED))
    return mark is not None and mark[1].decode() == seal


def _was_whole(buffer: bytes, head: _Head, end: int, digest: str) -> bool:
    """Whether a record whose body ends at `end` had this digest, except for its length or the end of its heading."""
    line_end = buffer.index(b"\n") + 1
    counted = _BYTES.sub(b'"bytes":%d' % (end - head.body), buffer[:line_end])
    with_this_length = counted + buffer[line_end:end]

    body = end - head.size
    with_this_heading = buffer[: max(body - 2, 0)] + b"\n\n" + buffer[max(body, 0) : end]
    return any(
        hashlib.sha256(record).hexdigest()[:8] == digest for record in (with_this_length, with_this_heading)
    )


def _is_unwritten(buffer: bytes, start: int) -> bool:
    """Whether there are only zeros from `start` on: where the power fails, a file may have grown without its content.

    It is an unfinished append, like one that was cut off.
    """
    return (
        buffer[start : start + 1] == b"\0"
        and len(buffer) - start <= _UNWRITTEN
        and not buffer[start:].strip(b"\0")
    )
