"""One record and its bytes: the round trip, damage, a torn end, and how it renders."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from iact.core.errors import JournalCorrupt, UsageError
from iact.core.journal.parser import Parser
from iact.core.journal.record import encode, unbalanced
from iact.core.ports import JSON
from iact.core.records.record import GENESIS, Record
from tests.records import raw_record
from tests.rounds import rounds

AT = "2026-05-04T03:02:01.123456Z"

HOSTILE = [
    "",
    "\n",
    "\n\n\nblank lines first",
    "plain",
    "```\nnever closed",
    "~~~~~~~~\nnever closed",
    "- item\n  ```\n  open in the item",
    "1. a\n\n   ```\n```\nlooks closed, is not",
    "<!-- never closed",
    "<script>\n\nnever closed",
    "<pre>",
    "<?php",
    "<![CDATA[",
    "<!DOCTYPE",
    "<div>\n<b>",
    "> ```\nquote",
    "x\r~~~~~~~~~~\r```\r",
    "NUL \0 and escape \x1b[31m",
    "### 2 · /fake → /",
    '<!-- iact {"n":2,"at":"","kind":"say","agent":"/","step":1,"bytes":0,"prev":"00000000"} -->\n### 2 · x\n\n',
    "\n\n<!-- /N 00000000 -->\n\n",
    '\n\n<!-- /N 00000000 -->\n\n<!-- iact {"n":M,"at":""} -->\n### M · x\n\n' * 3,
    "text\n===",
    "[a]: /url\n[b]",
    "\u2028 \u202e reversed \ufeff",
    "ends with a backslash\\",
    "    indented",
    "|a|\n|-|",
]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
bodies = (
    st.sampled_from(HOSTILE)
    | st.lists(st.sampled_from([*HOSTILE, "\n", "```", "~~~"]), max_size=4).map("".join)
    | text
)
values: st.SearchStrategy[JSON] = st.recursive(
    scalars | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
fields = st.dictionaries(text.map(lambda name: f"f_{name}"), values, max_size=3)
kinds = st.sampled_from(["say", "close", "a_kind_of_later", "another"])


@st.composite
def record(draw: st.DrawFn) -> Record:
    """A record without number, `prev` and digest."""
    agent = draw(st.sampled_from(["/", "/coder", "/a/b"]) | text)
    return raw_record(0, AT, draw(kinds), agent, draw(st.integers(0, 10**9)), draw(bodies), draw(fields))


def chained(some: Iterable[Record]) -> tuple[list[Record], list[bytes]]:
    """`some` numbered and chained, and the bytes of each."""
    records: list[Record] = []
    pieces: list[bytes] = []
    prev = GENESIS
    for n, one in enumerate(some, 1):
        data, digest = encode(replace(one, n=n, prev=prev))
        records.append(replace(one, n=n, prev=prev, digest=digest))
        pieces.append(data)
        prev = digest
    return records, pieces


def parsed(data: bytes, chunk: int = 1 << 20) -> tuple[list[Record], Parser]:
    """What a parser makes of `data`, fed in pieces of `chunk` bytes."""
    parser = Parser()
    found = [one for at in range(0, len(data), chunk) for one in parser.feed(data[at : at + chunk])]
    return found, parser


@cache
def hostile() -> tuple[list[Record], list[bytes]]:
    """A journal of every hostile body; N and M in them become its own number and the next."""
    agents = ["/", "/coder", "/*a*`b`", "/<!-- -->"]
    return chained(
        raw_record(
            0,
            AT,
            "reply",
            agents[n % 4],
            n,
            _numbered(body, n),
            {"to": "-->\n", "status": "ok", "bytes ": [1, {"bytes": 3}]},
        )
        for n, body in enumerate(HOSTILE, 1)
    )


def _numbered(body: str, n: int) -> str:
    return re.sub(r"(?<=/)N\b", str(n), re.sub(r"\bM\b", str(n + 1), body))


@given(st.lists(record(), max_size=4), st.sampled_from([1, 7, 64, 100_000]))
def test_what_is_encoded_is_read_again_however_it_is_cut(some: list[Record], chunk: int) -> None:
    records, pieces = chained(some)
    found, parser = parsed(b"".join(pieces), chunk)
    assert found == records
    assert (parser.pending, parser.offset) == (0, sum(map(len, pieces)))


@settings(max_examples=rounds(50))
@given(st.data())
def test_one_changed_byte_is_noticed_with_the_number_of_its_record(data: st.DataObject) -> None:
    records, pieces = hostile()
    whole = bytearray(b"".join(pieces))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    _noticed(bytes(whole), pieces, at)
    assert len(records) == len(pieces)


@pytest.mark.parametrize("index", range(len(HOSTILE)), ids=[repr(body[:20]) for body in HOSTILE])
def test_one_flipped_bit_is_noticed_in_every_byte_of_the_last_record(index: int) -> None:
    _, pieces = hostile()
    before, last = b"".join(pieces[:index]), pieces[index]
    for at in range(len(last)):
        for bit in (1, 8, 64):
            changed = bytearray(last)
            changed[at] ^= bit
            _noticed(before + bytes(changed), pieces[: index + 1], len(before) + at)


def _noticed(data: bytes, pieces: list[bytes], at: int) -> None:
    """The damage at byte `at` is told as damage of its record: never accepted, never taken for a torn end."""
    number, end = 0, 0
    while end <= at:
        end += len(pieces[number])
        number += 1
    assert _damaged(data) == number, f"byte {at} was changed"


def _damaged(data: bytes) -> int:
    """The number of the first record that is found to be damaged; 0 if none is."""
    parser, count = Parser(), 0
    try:
        for _ in parser.feed(data):
            count += 1
    except JournalCorrupt as error:
        return error.n
    return count + 1 if parser.pending and not parser.torn else 0


def test_a_journal_cut_at_any_byte_keeps_the_whole_records_before_it() -> None:
    records, pieces = hostile()
    whole, ends = b"".join(pieces), [0]
    for piece in pieces:
        ends.append(ends[-1] + len(piece))
    for cut in range(len(whole)):
        found, parser = parsed(whole[:cut])
        kept = sum(1 for end in ends[1:] if end <= cut)
        assert found == records[:kept]
        assert parser.offset == ends[kept]
        assert parser.torn


@pytest.mark.parametrize(
    ("order", "number"),
    [([1, 0, 2], 1), ([0, 2, 1], 2), ([0, 2], 2), ([0, 0, 1], 2), ([0, 1, 1, 2], 3), ([1, 2], 1)],
    ids=["swapped", "swapped later", "missing", "twice", "twice later", "first missing"],
)
def test_records_out_of_their_order_are_noticed(order: list[int], number: int) -> None:
    _, pieces = hostile()
    with pytest.raises(JournalCorrupt) as noticed:
        parsed(b"".join(pieces[index] for index in order))
    assert noticed.value.n == number


def test_a_record_of_another_journal_is_noticed() -> None:
    _, ours = chained([raw_record(0, AT, "say", "/", 1, "a"), raw_record(0, AT, "say", "/", 2, "b")])
    _, other = chained([raw_record(0, AT, "say", "/", 1, "x"), raw_record(0, AT, "say", "/", 2, "b")])
    with pytest.raises(JournalCorrupt, match="does not follow"):
        parsed(ours[0] + other[1])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weight", float("nan")),
        ("weight", float("inf")),
        ("label", "lone \ud800"),
        ("deep", {"x": ["\udfff"]}),
        ("\udc00", 1),
        ("n", 3),
        ("prev", "x"),
        ("wrapped", True),
        ("huge", "x" * (5 << 20)),
    ],
)
def test_a_field_that_cannot_be_stored_is_refused_by_name(name: str, value: JSON) -> None:
    with pytest.raises(UsageError) as refused:
        encode(raw_record(1, AT, "notice", "/", 1, "", {"fine": 1, name: value}))
    assert repr(name) in str(refused.value)


def test_a_field_too_deep_for_json_is_refused_by_name() -> None:
    deep: JSON = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(UsageError, match="'deep'"):
        encode(raw_record(1, AT, "notice", "/", 1, "", {"deep": deep}))


def test_a_body_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(UsageError, match="lone surrogate"):
        encode(raw_record(1, AT, "say", "/", 1, "\ud800"))


def test_a_header_nested_too_deep_is_damage_and_no_crash() -> None:
    with pytest.raises(JournalCorrupt, match="not JSON"):
        parsed(b"<!-- iact " + b"[" * 200_000 + b" -->\n")


def test_long_names_are_shortened_in_the_heading_only() -> None:
    one = raw_record(1, AT, "reply", "/" + "a" * 30_000, 1, "x", {"to": "b" * 30_000, "status": "ok"})
    data, digest = encode(one)
    assert parsed(data)[0] == [replace(one, digest=digest)]


def test_reading_a_long_record_in_small_pieces_is_linear() -> None:
    one = raw_record(1, AT, "say", "/", 1, "x" * 3_000_000)
    data, digest = encode(one)
    assert parsed(data, 100)[0] == [replace(one, digest=digest)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("```\nx\n```", False),
        ("```\nx", True),
        ("````\n```", True),
        ("~~~\n```\n~~~", False),
        ("- ```\n  x", False),
        ("1. a\n\n   ```\n```\n", True),
        ("<!-- x", True),
        ("<!-- x -->", False),
        ("<div>", False),
        ("    ```", False),
        ("> ```", False),
        ("a ``` b", False),
        ("x\r```", True),
    ],
)
def test_which_bodies_would_swallow_what_follows(body: str, expected: bool) -> None:
    assert unbalanced(body) is expected


def headings(pieces: list[bytes]) -> list[str]:
    """The headings that a CommonMark renderer shows at the lines where records have theirs."""
    lines, at = set[int](), 0
    for piece in pieces:
        lines.add(at + 1)
        at += _lines(piece)
    tokens = MarkdownIt("commonmark").parse(b"".join(pieces).decode())
    return [
        tokens[index + 1].content
        for index, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map and token.map[0] in lines
    ]


def _lines(piece: bytes) -> int:
    return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")


def test_every_record_of_a_hostile_journal_is_rendered_as_one() -> None:
    records, pieces = hostile()
    shown = headings(pieces)
    assert [one.split(" ")[0] for one in shown] == [str(record.n) for record in records]


@settings(max_examples=rounds(37))
@given(st.lists(record(), min_size=1, max_size=5))
def test_every_record_is_rendered_as_one(some: list[Record]) -> None:
    _, pieces = chained(some)
    assert [one.split(" ")[0] for one in headings(pieces)] == [str(n) for n in range(1, len(some) + 1)]
