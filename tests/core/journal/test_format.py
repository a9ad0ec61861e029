"""The bytes of records, written out: what other programs and later versions rely on, and people read."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest

from iact.core.errors import UsageError
from iact.core.journal import record as format_of
from iact.core.journal.parser import Parser
from iact.core.journal.record import encode
from iact.core.ports import JSON
from iact.core.records.record import Record, timestamp
from tests.records import raw_record

AT = "2026-05-04T03:02:01.123456Z"


def encoded(record: Record) -> str:
    return encode(record)[0].decode()


def test_a_record_byte_by_byte() -> None:
    before = (
        '<!-- iact {"n":3,"at":"2026-05-04T03:02:01.123456Z","kind":"call","agent":"/a","step":7,'
        '"function":"t.read","text":"a\\u003eb\\u2028c\\u2029dé","bytes":6,"prev":"0badcafe"} -->\n'
        "### 3 · /a · call t.read\n\nhellö"
    ).encode()
    digest = hashlib.sha256(before).hexdigest()[:8]
    one = raw_record(
        3, AT, "call", "/a", 7, "hellö", {"function": "t.read", "text": "a>b\u2028c\u2029dé"}, "0badcafe"
    )
    assert encode(one) == (before + f"\n\n<!-- /3 {digest} -->\n\n".encode(), digest)


@pytest.mark.parametrize(
    ("body", "wrapped"),
    [
        ("```\nopen", "~~~text\n```\nopen\n~~~"),
        ("~~~\nopen", "~~~~text\n~~~\nopen\n~~~~"),
        ("~~~~~\nopen", "~~~~~~text\n~~~~~\nopen\n~~~~~~"),
    ],
)
def test_a_body_that_leaves_something_open_stands_in_a_fence(body: str, wrapped: str) -> None:
    head, _, rest = encoded(raw_record(1, AT, "turn", "/", 1, body)).partition("\n")
    assert '"wrapped":true' in head
    assert f'"bytes":{len(wrapped)},' in head
    assert rest.startswith(f"### 1 · /\n\n{wrapped}\n\n<!-- /1 ")


FUNCTION: dict[str, JSON] = {"function": "t.read"}


@pytest.mark.parametrize(
    ("kind", "agent", "fields", "expected"),
    [
        ("say", "/a", {}, "user → /"),
        ("reply", "/a", {}, "/a → user"),
        ("reply", "/a", {"to": "/b"}, "/a → /b"),
        ("call", "/a", FUNCTION, "/a · call t.read"),
        ("result", "/a", FUNCTION, "/a · result t.read"),
        ("gate", "/a", FUNCTION, "/a · gate t.read"),
        ("clearance", "/a", FUNCTION, "/a · clearance t.read"),
        ("turn", "/a", {}, "/a"),
        ("notice", "/a", FUNCTION, "/a · notice"),
        ("turn", "/*a*`b`", {}, "/\\*a\\*\\`b\\`"),
        ("turn", "/a\nb\u202e", {}, "/a�b�"),
        ("turn", "a" * 200, {}, "a" * 200),
        ("turn", "a" * 201, {}, "a" * 199 + "…"),
        ("call", "a" * 300, {"function": "f"}, "a" * 199 + "…"),
    ],
)
def test_the_line_for_people(kind: str, agent: str, fields: dict[str, JSON], expected: str) -> None:
    assert encoded(raw_record(3, AT, kind, agent, 1, "", fields)).split("\n")[1] == f"### 3 · {expected}"


def test_fields_of_another_type_are_read_as_nothing() -> None:
    fields: dict[str, JSON] = {"text": "x", "number": 3, "true": True, "list": ["x"]}
    one = raw_record(1, AT, "say", "/", 1, "", fields)
    assert [one.text(name) for name in (*fields, "none")] == ["x", "", "", "", ""]
    assert [one.number(name) for name in (*fields, "none")] == [0, 3, 0, 0, 0]


def test_times_have_microseconds_and_a_z() -> None:
    assert timestamp(datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)) == "2026-05-04T03:02:01.000000Z"


def test_bounds_of_what_a_record_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(format_of, "MAX_BODY", 10)
    encode(raw_record(1, AT, "say", "/", 1, "x" * 10))
    with pytest.raises(UsageError, match=r"^A journal can't store a body of 11 bytes; keep it as a blob\.$"):
        encode(raw_record(1, AT, "say", "/", 1, "x" * 11))
    with pytest.raises(UsageError, match=r"^A journal can't store a body that holds a lone surrogate\.$"):
        encode(raw_record(1, AT, "say", "/", 1, "\ud800"))

    plain: dict[str, JSON] = {"zshort": "x", "long": "x" * 50, "among": "x" * 20}
    size = len(encoded(raw_record(1, AT, "say", "/", 1, "", plain)).partition("\n\n")[0].encode()) + 2
    monkeypatch.setattr(format_of, "MAX_HEADER", size)
    encode(raw_record(1, AT, "say", "/", 1, "", plain))
    monkeypatch.setattr(format_of, "MAX_HEADER", size - 1)
    with pytest.raises(UsageError, match="the field 'long': it is too long; put it in the body"):
        encode(raw_record(1, AT, "say", "/", 1, "", plain))


def test_a_parser_that_was_fed_nothing_holds_nothing() -> None:
    parser = Parser()
    assert (parser.pending, parser.offset) == (0, 0)
