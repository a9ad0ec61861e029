"""The one table of deceptive characters: derived again from the Unicode data, and asked by everybody who shows text."""

from __future__ import annotations

import itertools
import re
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iact.core.characters import (
    DECEPTIVE,
    DECEPTIVE_IN_CONTEXTS,
    HIDDEN,
    ODD,
    TABLE,
    escape,
    escaped,
    named,
    without_sequences,
)
from iact.core.journal.record import encode
from iact.core.language.labels import clean
from iact.core.models.failures import words as endpoint_words
from iact.core.modules.schema import clean as checked
from tests.records import raw_record

ROOT = Path(__file__).parents[2]

IGNORABLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
"""Default_Ignorable_Code_Point as DerivedCoreProperties.txt has it (Unicode 15.1); Python's data does not hold it."""

PREPENDED = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
"""Prepended_Concatenation_Mark: format characters that everybody sees."""

SEEN_BY_NOBODY = (
    "\u3164\u115f\u1160\u17b4\u034f\uffa0\u200b\u202e\u2066\u00ad\u2028\U000e0041\U000e0101\ufeff\x1b\x9b\x07"
)

CONTEXTS_ESCAPED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""What contexts escaped when journals 1.0 and 1.1 were recorded: their digests hold only as long as it is these."""


def hidden() -> set[int]:
    """The hidden characters, from the Unicode data; some Egyptian ones are younger than that of Python 3.11."""
    ignorable = {code for first, last in IGNORABLE for code in range(first, last + 1)}
    found = set()
    for code in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(code))
        noncharacter = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
        if category in ("Cc", "Cf", "Cs", "Zl", "Zp") or noncharacter or code in ignorable:
            found.add(code)
    return (found | {*range(0x13430, 0x13440)}) - PREPENDED - {ord("\n"), ord("\t")}


def test_the_table_is_what_unicode_says() -> None:
    ours = {code for code in range(sys.maxunicode + 1) if HIDDEN.match(chr(code))}
    assert ours == hidden()


def test_every_blank_but_the_space_is_odd_and_so_are_private_letters() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character) in ("Zs", "Co") and character != " ":
            assert ODD.match(character), hex(code)
        if HIDDEN.match(character):
            assert ODD.match(character), hex(code)


def test_rows_are_in_order_and_apart() -> None:
    rows = sorted(TABLE)
    assert all(first <= last for first, last, _ in rows)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(rows))


def test_contexts_escape_what_they_did_when_old_journals_were_recorded() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if character == "\r":
            continue  # a line's end
        text = f"ab{character}cd"
        if CONTEXTS_ESCAPED.match(character):
            assert clean(text) == f"ab{escape(character)}cd"
        elif character not in "\u200c\u200d" and not (0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF):
            assert clean(text) == text


def test_the_page_of_the_browser_has_the_same_table() -> None:
    source = (ROOT / "web" / "static" / "js" / "base" / "dom.js").read_text(encoding="utf-8")
    (inside,) = re.findall(r"const HIDDEN = /\[(.*)\]/gu;", source)
    rows = re.findall(r"\\u\{([0-9a-f]+)\}(?:-\\u\{([0-9a-f]+)\})?", inside)
    theirs = {code for first, last in rows for code in range(int(first, 16), int(last or first, 16) + 1)}
    shaping = {code for first, last, kind in TABLE for code in range(first, last + 1) if kind == "shaping"}
    assert theirs == hidden() - shaping


@given(st.text(st.characters() | st.sampled_from(SEEN_BY_NOBODY)))
@example(
    "👩\u200d👩\u200d👧 می\u200cخواهم ❤\ufe0f 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
)
@example("\u200d")
@example("rm\ufe0f -rf\u200c x\U000e0101")
def test_what_is_shown_holds_nothing_hidden(text: str) -> None:
    for shown in (escaped(text), named(text)):
        assert all(match["flag"] for match in DECEPTIVE.finditer(shown))
    for shown in (escaped(text, every=True), named(text, every=True)):
        assert not ODD.search(shown)
    if not ODD.search(text):
        assert escaped(text, every=True) == named(text) == text


PLAIN = (
    "(?P<flag>\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f)|[%s]"
    "|(?<![^\x00-\xad\u200b-\u200f\u2028-\u206f])[\u200c\u200d]"
    "|[\u200c\u200d](?![^\x00-\xad\u200b-\u200f\u2028-\u206f])"
    "|(?<![^\x00-\x22\x24-\x29\x2b-\x2f\x3a-\x9f\u200b-\u200f\ufe00-\ufe0f\U000e0100-\U000e01ef])"
    "[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
"""The patterns in the order in which one reads them; `%s`: the hidden characters. Contexts were recorded by these."""

IN_CONTEXTS = ("control", "line", "order", "invisible", "broken")
PIECES = [*"a1#\n ü中بX", "👍", "\u200c", "\u200d", "\ufe0f", "\U000e0100", "\U0001f3f4", "\U000e0067", "\U000e0062",
          "\U000e007f", "\U000e0031", "\u202e", "\x1b", "\xad", "\u2028", "\u206f", "\x9f", "\xa0", "\ufff0"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES) | st.characters(), max_size=12).map("".join))
def test_the_quick_patterns_find_what_the_plain_ones_find(text: str) -> None:
    for quick, kinds in ((DECEPTIVE_IN_CONTEXTS, IN_CONTEXTS), (DECEPTIVE, (*IN_CONTEXTS, "late"))):
        rows = [(first, last) for first, last, kind in TABLE if kind in kinds]
        plain = re.compile(PLAIN % "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in rows))
        found = [(match.span(), bool(match["flag"])) for match in quick.finditer(text)]
        assert found == [(match.span(), bool(match["flag"])) for match in plain.finditer(text)]


def test_letters_and_emoji_keep_what_shapes_them_and_nothing_else_does() -> None:
    for text in ("👩\u200d👩\u200d👧", "می\u200cخواهم", "❤\ufe0f", "#\ufe0f\u20e3"):
        assert escaped(text) == named(text) == text
        assert escaped(text, every=True) != text
    assert named("rm\u200d -rf\ufe0f") == "rm‹U+200D› -rf‹U+FE0F›"


@pytest.mark.parametrize(
    "beginning", ["\x9d", "\x90a", "\x1b]", "\x1b[", "\x9b0", "\x1b ", "\x1bP1;", "\x98\x9f"]
)
def test_a_flood_of_beginnings_of_sequences_is_read_once(beginning: str) -> None:
    # Quadratic, this would take longer than the test may.
    assert without_sequences(beginning * 1_000_000 + "\n\nthe end").endswith("the end")


@pytest.mark.parametrize("character", SEEN_BY_NOBODY)
def test_everybody_asks_the_same_table(character: str) -> None:
    with pytest.raises(ValueError, match="invisible character"):
        checked(f"a{character}b")
    data, _ = encode(raw_record(1, "2026-01-01T00:00:00.000000Z", "turn", f"/a{character}b", 1))
    heading = data.decode().split("\n")[1]
    assert heading == "### 1 · /a�b"
    assert character not in endpoint_words(f"a{character}b")
