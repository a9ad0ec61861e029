"""The one cut: its numbers are true for every text, and head, what SHOW gives for the rest, and tail are the whole."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iact.core.context.excerpt import (
    AT_ONCE,
    READ_AT_ONCE,
    Passage,
    Selection,
    beginning,
    excerpt,
    readable,
    select,
)
from iact.core.language.variables import Value, text_value

NOTICE = re.compile(
    r"\[… (line|lines|character|characters) ([0-9,]+)(?:–([0-9,]+))? of ([0-9,]+)(?: of (lines=\S+))? (?:is|are) left out"
    r"(?:: `SHOW run_1 ([^`]*)`)? …\]"
)

LINES = st.lists(
    st.text(st.characters(exclude_characters="[\n", codec="utf-8"), max_size=120), min_size=1, max_size=60
)
TEXTS = st.builds("\n".join, LINES)
LONG_LINES = st.builds("".join, st.lists(st.sampled_from(["a", "\n", "word ", "x" * 300]), max_size=80))


def number(text: str) -> int:
    return int(text.replace(",", ""))


def asked(text: str, arguments: str) -> Selection:
    """What the arguments of a hint select."""
    given = dict(one.split("=") for one in arguments.split())
    found = select(text, given.get("lines", ""), given.get("chars", ""))
    assert isinstance(found, Selection)
    assert not found.beyond
    return found


@given(TEXTS | LONG_LINES, st.integers(1, 2_000))
def test_head_and_the_lines_left_out_and_tail_are_the_whole_text(text: str, room: int) -> None:
    shown = excerpt(text, room, "run_1")
    notice = NOTICE.search(shown)
    if notice is None:
        assert shown == text
        return

    head, tail = shown[: notice.start() - 1], shown[notice.end() + 1 :]
    first, last = number(notice[2]), number(notice[3] or notice[2])
    assert len(head) + len(tail) <= room
    if notice[1].startswith("line"):
        assert number(notice[4]) == len(text.split("\n"))
        left = select(text, f"{first}-{last}")
        assert isinstance(left, Selection)
        assert "\n".join([head, left.text, tail]) == text
    else:
        assert number(notice[4]) == len(text)
        left = select(text, "", f"{first}-{last}")
        assert isinstance(left, Selection)
        assert head + left.text + tail == text


@given(TEXTS | LONG_LINES, st.integers(1, 2_000))
def test_the_hint_reads_the_beginning_of_what_is_left_out_and_is_answered_whole(text: str, room: int) -> None:
    shown = excerpt(text, room, "run_1")
    notice = NOTICE.search(shown)
    if notice is None:
        return

    found = asked(text, notice[6])
    left = select(text, f"{notice[2]}-{notice[3] or notice[2]}".replace(",", ""))
    if notice[1].startswith("line"):
        assert isinstance(left, Selection)
        assert left.text.startswith(found.text)
    assert beginning(found, AT_ONCE, "run_1") == found.text


@given(TEXTS | LONG_LINES, st.integers(1, 2_000))
@example(
    "\n" * 9 + "\n".join("0" * length for length in (1, 3, 3, 9, 13, 14, 17, 17, 17, 19, 35)) + "\n", 100
)
def test_nothing_is_cut_to_save_less_than_the_notice_costs(text: str, room: int) -> None:
    shown = excerpt(text, room, "run_1")
    if shown != text:
        notice = NOTICE.search(shown)
        assert notice is not None
        assert len(text) - len(shown) > len(notice[0]) - 2


@given(TEXTS | LONG_LINES, st.integers(1, 2_000))
def test_reading_on_as_told_reads_everything(text: str, room: int) -> None:
    """Following the notices of SHOW, from the first answer on, gives the whole text."""
    read, selected = "", select(text)
    while True:
        assert isinstance(selected, Selection)
        shown = beginning(selected, room, "run_1")
        notice = NOTICE.search(shown)
        if notice is None:
            read += shown
            break
        by_lines = notice[1].startswith("line")
        read += shown[: notice.start()] if by_lines else shown[: notice.start() - 1]
        arguments = notice[5] or ""
        last = number(notice[3] or notice[2])
        what = "lines" if by_lines else "chars"
        selected = asked(text, f"{'' if by_lines else arguments} {what}={number(notice[2])}-{last}")
    assert read == text


def test_a_long_result_is_cut_at_lines() -> None:
    text = "\n".join(f"line {number} {'.' * 30}" for number in range(1, 1001))
    shown = excerpt(text, 6_000, "run_1")

    lines = shown.split("\n")
    assert lines[0].startswith("line 1 ")
    assert lines[-1].startswith("line 1000 ")
    notice = next(line for line in lines if line.startswith("[…"))
    first = int(lines[lines.index(notice) - 1].split()[1]) + 1
    last = int(lines[lines.index(notice) + 1].split()[1]) - 1
    assert (
        notice == f"[… lines {first}–{last} of 1,000 are left out: `SHOW run_1 lines={first}-{first + 99}` …]"
    )


def test_one_huge_line_is_read_by_characters() -> None:
    text = "abcdefghij" * 10_000
    shown = excerpt(text, 6_000, "run_1")
    assert "[… characters 4,001–98,000 of 100,000 are left out: `SHOW run_1 chars=4001-10000` …]" in shown


def test_a_huge_line_among_others_is_read_by_its_characters() -> None:
    text = "\n".join(["head " * 20] * 35 + ["x" * 50_000] + ["tail " * 20] * 19)
    shown = excerpt(text, 6_000, "run_1")
    assert "[… line 36 of 55 is left out: `SHOW run_1 lines=36 chars=1-6000` …]" in shown


def test_without_a_variable_the_notice_only_counts() -> None:
    assert "[… lines 6–98 of 100 are left out …]" in excerpt("\n".join(["0123456789"] * 100), 90)


@pytest.mark.parametrize(
    ("lines", "chars", "title", "text"),
    [
        ("2-3", "", " lines=2-3 of 4", "two\nthree"),
        ("2", "", " lines=2 of 4", "two"),
        ("3-", "", " lines=3-4 of 4", "three\nfour"),
        ("-2", "", " lines=1-2 of 4", "one\ntwo"),
        ("2–3", "", " lines=2-3 of 4", "two\nthree"),
        (" 2 - 3 ", "", " lines=2-3 of 4", "two\nthree"),
        ("", "2-5", " chars=2-5 of 18", "ne\nt"),
        ("3-4", "2-4", " lines=3-4 of 4 chars=2-4 of 10", "hre"),
    ],
)
def test_ranges(lines: str, chars: str, title: str, text: str) -> None:
    found = select("one\ntwo\nthree\nfour", lines, chars)
    assert isinstance(found, Selection)
    assert (found.title, found.text, found.beyond) == (title, text, "")


def test_a_range_past_the_end_is_told() -> None:
    found = select("one\ntwo", "2-40")
    assert isinstance(found, Selection)
    assert (found.text, found.beyond) == ("two", "It has 2 lines; nothing follows.")
    found = select("one\ntwo", "", "5-40")
    assert isinstance(found, Selection)
    assert (found.text, found.beyond) == ("two", "It has 7 characters; nothing follows.")


@pytest.mark.parametrize(
    ("lines", "chars"),
    [
        ("5-9", ""),
        ("0-2", ""),
        ("9-3", ""),
        ("all", ""),
        ("-", ""),
        ("", "x"),
        ("", "40-50"),
        ("2", "7-9"),
        ("1-2-3", ""),
    ],
)
def test_what_selects_nothing_is_said(lines: str, chars: str) -> None:
    assert isinstance(select("one\ntwo", lines, chars), str)


def test_a_text_is_read_without_the_end_of_its_last_line_only() -> None:
    assert readable(text_value("a\r\nb\n\n")) == "a\nb\n"


def test_a_passage_is_cut_once_whatever_it_stands_beside() -> None:
    text = "\n".join(f"line {number}" for number in range(1, 1001))
    passage = Passage("Result of `BASH`:", text, 6_000, "run_1")
    assert "of 1,000 are left out" in str(passage)
    assert "of 1,000 are left out" in passage.within(800)
    assert str(passage).startswith("Result of `BASH`:\n```\nline 1\n")


@pytest.mark.parametrize("lost_first", [True, False])
def test_what_an_adopted_session_lost_is_no_text_of_its_digest(lost_first: bool) -> None:
    """A long text is kept by its digest for all sessions. What one reads never depends on what another one has."""
    content = f"{lost_first} ".encode() * READ_AT_ONCE
    digest = hashlib.sha256(content).hexdigest()
    lost = Value(digest, len(content), "text/plain", lambda: b"It is lost.", may_be_lost=True)
    there = Value(digest, len(content), "text/plain", lambda: content)

    readings = {value.load(): readable(value) for value in ([lost, there] if lost_first else [there, lost])}
    assert readings == {b"It is lost.": "It is lost.", content: content.decode()}
