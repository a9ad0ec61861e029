"""Journals that somebody wrote by hand: any field can hold anything, and numbers and digests are in order all the same."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iact.core.journal.record import trailer
from iact.core.ports import JSON
from iact.core.records.record import GENESIS, Record

PLACES: Final = tuple(
    sorted(
        path.parent
        for place in ("tests/journals/1.0", "tests/journals/1.1", "tests/journals/1.3", "examples")
        for path in (Path(__file__).resolve().parents[2] / place).glob("*/journal.md")
    )
)
"""Sessions that were recorded, all foreign."""


def _deep(levels: int) -> JSON:
    found: JSON = []
    for _ in range(levels):
        found = [found]
    return found


VALUES: Final[Sequence[JSON]] = (
    None, True, False, 0, 1, -1, 3, 2**63, -(2**63), 10**30, 10**4000, 0.5, -0.0, 1e308, 5e-324, "", "x", "/", "user", "1",
    "\x1b]0;owned\x07\x1b[2J", "a/../b", "\u202e", "\u0000", "\ud800", "9" * 400, "2026-01-01", "2026-01-01T00:00:00", "inf",
    "0" * 64, "x" * 70_000, [], [1], ["x"], [None, {}], [[["x"]]], {}, {"a": 1}, {"sha256": "0" * 64, "size": 5},
    {"sha256": 7}, {"": {"": {"": []}}}, _deep(40), _deep(400),
)  # fmt: skip
"""Every type of JSON, and what each has at its ends."""

OWN: Final = ("at", "kind", "agent", "step", "wrapped")
KINDS: Final = (
    "open",
    "reply",
    "spawn",
    "turn",
    "adopt",
    "fork",
    "module",
    "gate",
    "plan",
    "close",
    "x\x1b[1m",
)


@dataclass(frozen=True, slots=True)
class Change:
    """Field `path` of record `n` becomes `value`; `gone`: it is not there any more."""

    n: int
    path: tuple[str, ...]
    value: JSON
    gone: bool = False

    def __str__(self) -> str:
        return (
            f"record {self.n}, {'.'.join(self.path)}: {'gone' if self.gone else json.dumps(self.value)[:60]}"
        )


def header_of(record: Record) -> dict[str, JSON]:
    """A record's header as it is written, but for its length and its chain."""
    own: dict[str, JSON] = {
        "n": record.n, "at": record.at, "kind": record.kind, "agent": record.agent, "step": record.step,
    }  # fmt: skip
    return own | dict(record.fields)


def written(header: Mapping[str, JSON], body: str, prev: str) -> tuple[bytes, str]:
    """The bytes of a record with this header, and its digest: nothing is checked."""
    data = body.encode("utf-8", "replace")
    fields = {**header, "bytes": len(data), "prev": prev}
    if "seal" in fields:
        fields["seal"] = fields.pop("seal")  # it stands last
    text = json.dumps(fields, ensure_ascii=True, separators=(",", ":")).replace(">", "\\u003e")
    covered = f"<!-- iact {text} -->\n### {header['n']} · crafted\n\n".encode() + data
    digest = hashlib.sha256(covered).hexdigest()[:8]
    n = header["n"]
    assert isinstance(n, int)
    return covered + trailer(n, digest), digest


def chain(headers: Sequence[Mapping[str, JSON]], bodies: Sequence[str]) -> bytes:
    """A whole journal."""
    data, prev = b"", GENESIS
    for header, body in zip(headers, bodies, strict=True):
        encoded, prev = written(header, body, prev)
        data += encoded
    return data


def fields_in(record: Record) -> Iterator[tuple[str, ...]]:
    """Every field of a record's header, and those inside it, three deep."""
    left: list[tuple[tuple[str, ...], JSON]] = [((name,), value) for name, value in header_of(record).items()]
    yield ("wrapped",)
    while left:
        path, value = left.pop()
        if path != ("n",):
            yield path
        if isinstance(value, dict) and len(path) < 3:
            left += [((*path, name), inner) for name, inner in value.items()]


def changes(records: Sequence[Record], dice: random.Random) -> Iterator[Change]:
    """Changes without end, each of one field."""
    places = [(record.n, path) for record in records for path in fields_in(record)]
    while True:
        n, path = dice.choice(places)
        value = dice.choice(KINDS) if path == ("kind",) and dice.random() < 0.5 else dice.choice(VALUES)
        yield Change(n, path, value, gone=dice.random() < 0.05)


def crafted(records: Sequence[Record], change: Change, dice: random.Random) -> bytes:
    """The journal with one change; now and then the body of that record goes as well."""
    headers = [header_of(record) for record in records]
    bodies = [record.body for record in records]
    headers[change.n - 1] = json.loads(json.dumps(headers[change.n - 1]))
    inner: JSON = headers[change.n - 1]
    for name in change.path[:-1]:
        assert isinstance(inner, dict)
        inner = inner[name]
    assert isinstance(inner, dict)
    if change.gone:
        inner.pop(change.path[-1], None)
    else:
        inner[change.path[-1]] = change.value
    if dice.random() < 0.1:
        bodies[change.n - 1] = dice.choice(("", "x", "one line", "{}", "[1]", "```", "\x1b[31m", "9" * 5000))
    return chain(headers, bodies)
