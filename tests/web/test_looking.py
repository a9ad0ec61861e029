"""What the inspector is sent: exact where it fits, honest about what was left out, and visible throughout."""

from __future__ import annotations

import hashlib

from iact.core.stored.replay import SeenContext, SeenMessage
from iact.core.views.view import Variable
from iact.web.inspection import content_fields, context_fields, table_fields
from iact.web.wire.answers import SeenMessage as SeenMessageFields


def shown(*contents: str) -> list[SeenMessageFields]:
    messages = tuple(SeenMessage("user", content, reused=False) for content in contents)
    fields = context_fields(SeenContext("/a", 7, messages))
    assert (fields["agent"], fields["record"]) == ("/a", 7)
    return fields["messages"]


def variable(
    content: bytes,
    *,
    name: str = "x",
    media: str = "text/plain",
    origin: str = "",
    labels: frozenset[str] = frozenset(),
) -> Variable:
    digest, is_text = hashlib.sha256(content).hexdigest(), media.startswith("text/")
    return Variable(name, media, len(content), digest, origin, labels, is_text, lambda: content)


def test_a_context_is_sent_as_it_was() -> None:
    [one, other] = shown("first\n", "<b>second</b> $x")
    assert one == {"role": "user", "reused": False, "text": "first\n", "size": 6}
    assert other["text"] == "<b>second</b> $x"


def test_a_long_message_loses_its_middle() -> None:
    [one] = shown("a" * 100_000 + "b" * 100_000)
    assert one["size"] == 200_000
    assert one["left_out"] == 120_000
    text = str(one["text"])
    assert text.startswith("a" * 60_000)
    assert text.endswith("b" * 20_000)
    assert "120,000 characters are left out" in text


def test_of_too_many_messages_the_newest_keep_their_text() -> None:
    messages = shown(*["x" * 70_000] * 30)
    assert [bool(one["text"]) for one in messages] == [False] * 9 + [True] * 21
    assert all(one["size"] == 70_000 for one in messages)
    assert messages[0]["left_out"] == 70_000


def test_hidden_characters_are_seen() -> None:
    [one] = shown("a\u202eb\x00")
    assert one["text"] == "a‹U+202E›b␀"
    value = variable("x\u200by".encode(), origin="a\u202eb", labels=frozenset({"web\x07"}))
    fields = content_fields("/", value, value.load())
    assert fields["text"] == "x‹U+200B›y"
    assert (fields["origin"], fields["labels"]) == ("a‹U+202E›b", ["web␇"])


def test_variables_are_shown_with_where_they_come_from() -> None:
    two = variable(b"22", name="two", labels=frozenset({"b", "a"}))
    one = variable(b"1", name="one", origin="you")
    assert table_fields([two, one]) == [
        {
            "name": "two",
            "media": "text/plain",
            "size": 2,
            "origin": "",
            "labels": ["a", "b"],
            "sha256": two.sha256,
        },
        {
            "name": "one",
            "media": "text/plain",
            "size": 1,
            "origin": "you",
            "labels": [],
            "sha256": one.sha256,
        },
    ]


def test_content_that_is_no_text_is_not_shown() -> None:
    value = variable(b"\x89PN", media="image/png")
    fields = content_fields("/", value, value.load())
    assert (fields["text"], fields["size"], fields["sha256"]) == (None, 3, value.sha256)


def test_long_content_loses_its_middle() -> None:
    value = variable(b"a" * 1_000_000)
    fields = content_fields("/", value, value.load())
    assert fields["left_out"] == 1_000_000 - 128_000
    assert len(str(fields["text"])) < 129_000
