"""Laws of the scanner: chunking changes nothing, CommonMark decides what a fence is, cost is linear."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from iact.core.language.containers import Containers
from iact.core.language.labels import IMITATION
from iact.core.language.scanner import Block, Cut, Opened, ScanEvent, Scanner, scan
from tests.rounds import rounds

from .documents import documents, ours, theirs
from .fixture import FOLDER

ENDS = ("\n", "\n", "\r\n", "\r")


def is_action(name: str) -> bool:
    return name in ("BASH", "shell.run")


def fed(text: str, sizes: list[int]) -> tuple[list[ScanEvent], str]:
    """Events and kept text when the chunks have `sizes` in turn."""
    scanner, events, at, turn = Scanner(is_action), list[ScanEvent](), 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        events += scanner.feed(text[at : at + size])
        at, turn = at + size, turn + 1
    return events + scanner.end(), scanner.kept


@settings(max_examples=rounds(100))
@given(documents(ends=ENDS) | st.text(max_size=80), st.lists(st.integers(1, 9), min_size=1, max_size=4))
@example("```BASH\r\nls\r\n```\r", [1])
@example("```BASH\nls\n```\n \u00a0\n", [1])
@example("```BASH\nls\n```\n \t```BASH\n", [3, 1])
def test_chunks_do_not_matter(text: str, sizes: list[int]) -> None:
    assert fed(text, sizes) == fed(text, [max(1, len(text))])


@settings(max_examples=rounds(100))
@example(">\t\n    >\ttext\n</pre>\n```\n")
@given(documents(ends=ENDS))
def test_top_level_fences_are_those_of_markdown_it(text: str) -> None:
    assert ours(text) == theirs(text)


def _examples() -> list[str]:
    text = (FOLDER / "commonmark-0.31.2.txt").read_text("utf-8").replace("→", "\t")
    return re.split(r"^%% example \d+\n", text, flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("text", _examples())
def test_top_level_fences_of_the_specification(text: str) -> None:
    assert ours(text) == theirs(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("-\n\n  ```", 1),  # an item begins with at most one blank line
        ("-\n  ```", 0),
        ("-\n  a\n\n  ```", 0),
        ("a\n===\n2. x\n   ```", 0),  # behind a heading any number begins a list
        ("a\n2. x\n   ```", 1),  # behind text only 1 does
        ("a\n1. x\n   ```", 0),
        ("a\n-\n  ```", 1),
        ("- a\nlazy\n  ```", 0),  # lazy text keeps the item open
        ("- a\n\nnot lazy\n  ```", 1),
        ("- ```\nnot lazy\n  ```", 1),
        ("- # a\nnot lazy\n  ```", 1),
        ("- > a\nlazy\n  ```", 0),
        ("> a\n2. b\n   ```", 0),
        ("- a\n2. b\n   ```", 0),
        ("> ```\n> a\n2. b\n   ```", 0),
        ("> a\n<b>\n```", 1),
        ("- a\n<b>\n```", 1),
        ("<b>\n```", 0),
        ("a\n<b>\n```", 1),
        ("a\n<div>\n```", 0),
        ("- <div>\n```", 1),
        ("- <!--\n\n  ```\n-->", 0),
        ("-     code\n\n  ```", 0),
        ("-     code\n\n ```", 1),
        ("10) a\n\n   ```", 1),
        ("10) a\n\n    ```\n    ```\n   ```", 1),
        ("-\ta\n\n  ```", 1),
        ("1234567890. a\n   ```", 1),
        ("* * *\n  ```", 1),
        ("- - a\n\n  ```", 0),
        ("- - a\n\n ```", 1),
        ("- ```\n  a\n  ```\n  ```\n- b\n  ```", 0),
    ],
)
def test_what_decides_whether_a_fence_is_of_the_top_level(text: str, count: int) -> None:
    assert len(ours(text)) == count
    assert ours(text) == theirs(text)


def test_the_specification_has_the_examples_that_we_think_it_has() -> None:
    assert len(_examples()) == 40
    assert sum(len(theirs(text)) for text in _examples()) >= 25


@settings(max_examples=rounds(75))
@given(documents(ends=ENDS) | st.text(st.characters(), max_size=200))
@example("```BASH\n```\nx\r")
def test_events_fit_the_text(text: str) -> None:
    scanner = Scanner(is_action)
    events = scanner.feed(text) + scanner.end()
    normal = text.replace("\r\n", "\n").replace("\r", "\n")
    assert scanner.text == normal
    assert normal.startswith(scanner.kept)
    opened: Opened | None = None
    position = 0
    for event in events:
        match event:
            case Opened():
                assert opened is None
                assert event.start >= position
                opened = event
            case Block():
                assert opened == Opened(event.start, event.info, event.action)
                assert event.info in normal[event.start : event.end]
                opened, position = None, event.end
            case Cut():
                assert event is events[-1]
                assert position <= event.at == scanner.cut
                assert IMITATION.match(normal, event.at)
    assert opened is None


@settings(max_examples=rounds(50))
@given(documents())
def test_what_was_kept_reads_the_same_again(text: str) -> None:
    first = scan(text, is_action)
    again = scan(first.kept, is_action)
    assert [block.body.rstrip() for block in again.blocks if block.action] == [
        block.body.rstrip() for block in first.blocks if block.action
    ]
    assert again.kept == first.kept


@settings(max_examples=rounds(100))
@given(documents(ends=ENDS) | st.text(max_size=80), st.lists(st.integers(1, 9), min_size=1, max_size=4))
@example("```BASH\nls\n\n", [1])
@example("```BASH\nls\n```  \n", [3])
@example("```BASH\nls\n```\nSo it is.", [4])
@example("```BASH\nls\n```\nSo it is.\n\nResult of `BASH`:\n```\nx\n```", [1])
@example("```text\nls\n\u00a0\n", [9])
def test_what_was_read_in_pieces_is_what_one_look_at_the_kept_text_finds(text: str, sizes: list[int]) -> None:
    scanner, at, turn = Scanner(is_action), 0, 0
    while at < len(text):
        scanner.feed(text[at : at + sizes[turn % len(sizes)]])
        at, turn = at + sizes[turn % len(sizes)], turn + 1
    scanner.end()
    assert scanner.result() == scan(scanner.kept, is_action)


def test_after_a_cut_nothing_is_read() -> None:
    scanner = Scanner(is_action)
    scanner.feed("```BASH\nls\n```\nand\nResult of `BASH`:\n")
    assert scanner.cut is not None
    assert scanner.feed("\n```BASH\nrm x\n```\n") == []
    assert scanner.end() == []
    assert scanner.kept == "```BASH\nls\n```\nand"


@pytest.mark.parametrize("ended", ["\n", None])
def test_a_cut_is_told_when_its_line_is_complete(ended: str | None) -> None:
    scanner = Scanner(is_action)
    scanner.feed("```BASH\nls\n```\n")
    assert [event for character in "Message from the user:" for event in scanner.feed(character)] == []
    assert (scanner.feed(ended) if ended else scanner.end()) == [Cut(15)]


def test_ending_twice_says_nothing_new() -> None:
    scanner = Scanner(is_action)
    scanner.feed("```BASH\nls")
    assert len(scanner.end()) == 1
    assert scanner.end() == []


def test_ending_twice_adds_no_line_to_the_text() -> None:
    scanner = Scanner(is_action)
    scanner.feed("```BASH\n```\r")
    assert len(scanner.end()) == 1
    assert scanner.end() == []
    assert scanner.text == "```BASH\n```\n"


def test_events_say_exactly_where_a_block_lies() -> None:
    text = "a\n\n~~~ py\nx\n~~~\nb\n```BASH now\nls\n```\nand\n(state) x"
    first, second = text.index("~~~ py"), text.index("```BASH")
    end = text.index("\nand")
    cut = text.index("(state)")
    assert fed(text, [1]) == (
        [
            Opened(first, "py", False),
            Block(first, text.index("\nb"), "py", "x", action=False, closed=True),
            Opened(second, "BASH now", True),
            Block(second, end, "BASH now", "ls", action=True, closed=True),
            Cut(cut),
        ],
        text[: cut - 1],
    )


@pytest.mark.parametrize("ending", ["", "\n", "\r", "\r\n"])
def test_a_block_without_a_closing_fence_goes_to_the_end_of_the_text(ending: str) -> None:
    text = "one\n```BASH\nls\n\npwd" + ending
    events, kept = fed(text, [3])
    end = len("one\n```BASH\nls\n\npwd") + bool(ending)
    assert events == [Opened(4, "BASH", True), Block(4, end, "BASH", "ls\n\npwd", action=True, closed=False)]
    assert kept == "one\n```BASH\nls\n\npwd"


def test_only_spaces_and_tabs_are_taken_from_an_info_string() -> None:
    (block,) = scan("``` \t\u00a0x\u00a0\t \ny\n```\u00a0\n```\n", is_action).blocks
    assert (block.info, block.body) == ("\u00a0x\u00a0", "y\n```\u00a0")


@pytest.mark.parametrize(
    ("line", "left"), [("  \tx", " \tx"), ("\tx", "   x"), (" x", "x"), ("x", "x"), ("   x", "  x")]
)
def test_no_more_than_the_fences_own_indentation_is_taken_from_a_line(line: str, left: str) -> None:
    text = f" ```\n{line}\n ```\n"
    assert [block.body for block in scan(text, is_action).blocks] == [left]
    assert ours(text) == theirs(text)


ADVERSARIAL: dict[str, Callable[[int], str]] = {
    "prose": lambda n: "word " * (n // 5),
    "fences that open nothing": lambda n: "``` a`b\n" * (n // 8),
    "indented fences below one item": lambda n: "- a\n" + "  ``` a\n" * (n // 8),
    "candidates behind items": lambda n: "- a\n\n ``` x\n ```\n" * (n // 17),
    "items": lambda n: "- " * (n // 2) + "\n" + "\n" * 500 + "x\n",
    "quotes": lambda n: ">" * (n // 2) + "\n" + ">\n" * (n // 4) + " ```\n",
    "nested items, blank lines": lambda n: "- " * (n // 4) + "\n\n" * (n // 4) + " ```\n",
    "items deeper and deeper": lambda n: (
        "".join(" " * depth + "- a\n" for depth in range(0, int(n**0.5), 2)) + " ```\n"
    ),
    "spaces": lambda n: "- a\n   ```x" + " " * n + "x\n",
    "a tag with many attributes": lambda n: "<a" + " b  " * (n // 4) + "\n ```\n",
    "a tag with one long value": lambda n: '<a b="' + "x" * n + "\n ```\n",
    "nested action": lambda n: "```BASH\n" + "```x\n" * (n // 5),
    "blank line behind an action": lambda n: "```BASH\n```\n" + " " * n,
    "labels that are none behind an action": lambda n: "```BASH\n```\n" + "Result of a\n" * (n // 12),
    "words behind an action": lambda n: "```BASH\n```\n" + "shell.runs " * (n // 11),
    "fence line behind an action": lambda n: "```BASH\n```\n```" + "x" * n,
    "html": lambda n: "<div>\n ```\n\n" * (n // 12),
    "carriage returns": lambda n: "\r" * n,
    "stars": lambda n: "*" * n + "x\n ```\n",
}


def _seconds(text: str, chunk: int) -> float:
    best = float("inf")
    for _ in range(3):
        scanner, started = Scanner(is_action), time.process_time()
        for at in range(0, len(text), chunk):
            scanner.feed(text[at : at + chunk])
        scanner.end()
        best = min(best, time.process_time() - started)
    return best


@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.parametrize("chunk", [1, 1 << 30], ids=["by 1", "whole"])
def test_cost_is_linear_whatever_the_text(name: str, chunk: int) -> None:
    small, large = ADVERSARIAL[name](10_000), ADVERSARIAL[name](80_000)
    # Eight times the text; a quadratic scanner takes 64 times as long.
    assert _seconds(large, chunk) < 24 * _seconds(small, chunk) + 0.02


def test_block_rules_tell_what_takes_the_rest() -> None:
    blocks = Containers()
    blocks.read("<pre>\n\n")
    assert blocks.unending
    blocks.read("</pre>\n")
    assert not blocks.unending
