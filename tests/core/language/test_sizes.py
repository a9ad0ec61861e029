"""Reading a reply takes work in proportion to its length, whatever is in it.

What is counted is not time: the functions that are called, and the characters that are copied from the text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from itertools import count
from types import FrameType
from typing import Final, SupportsIndex

import pytest

from iact.core.context.excerpt import AT_ONCE, excerpt
from iact.core.language import rewriting, unread
from iact.core.language.actions import CORE_ACTIONS, ActionSpec, Registry
from iact.core.language.announcing import announces
from iact.core.language.bare import Known
from iact.core.language.rewriting import in_our_language
from iact.core.language.scanner import scan
from iact.core.ports import JSON
from iact.core.tree.replies import ReplyText

SHORT: Final = 4_000
TIMES: Final = 4
GROWTH: Final = TIMES * 1.5
"""How much more work a text takes that is `TIMES` as long. Twice the exponent would take `TIMES` squared."""

MOST_CALLS_FOR_A_CHARACTER: Final = 30
MOST_COPIES: Final = 60
"""How often each character is copied, at most: a copy of the rest of the text for each line would be thousands."""


def _text(name: str, *required: str) -> ActionSpec:
    properties: dict[str, JSON] = {one: {"type": "string"} for one in required}
    schema: dict[str, JSON] = {"type": "object", "properties": properties, "required": list[JSON](required)}
    return ActionSpec(name, "", schema, body=required[-1])


REGISTRY: Final = Registry(
    [
        *CORE_ACTIONS.values(),
        _text("shell.run", "command"),
        _text("python.run", "code"),
        _text("files.write", "path", "content"),
    ]
)

REPEATED: Final[Mapping[str, str]] = {
    "prose": "The quick brown fox jumps over the lazy dog, and so on. ",
    "blocks": "Text here.\n\n```python\nprint(1)\n```\n\n",
    "actions": "```shell.run\nls\n```\n\n",
    "backticks": "`",
    "fences": "```\n",
    "inline code": "a `b` c `` d ``` e\n",
    "lines without a fence": "WAIT any\n\n",
    "lines that name children": "WAIT reader\nCALL reader\n\n",
    "lines with no blank between": "HELP docs\n",
    "lines in code": "`SHOW run_1` and\n",
    "functions in code": "`shell.run ls`\n",
    "lines behind a quote": ">a\nWAIT any\n",
    "answers": "ANSWER\n",
    "plans": "PLAN keys\ngoal: x\n\n",
    "calls without a body": "CALL x\n",
    "small letters": "```wait any\n```\n",
    "lists": "- item\n  - sub\n    ```python\n    x\n    ```\n",
    "blocks in lists that have no end": "- ```python\n",
    "actions in lists that have no end": "- ```shell.run\n  ```x\n  ```\n",
    "quotes": "> ```shell.run\n",
    "HTML": "<div>\n\n",
    "marks of calls": "<tool_call>\n",
    "marks of calls on one line": "` <tool_call> ",
    "calls": '<tool_call>{"name": "shell.run", "arguments": {"command": "ls"}}</tool_call>\n',
    "calls on one line": '<tool_call>{"name": "shell.run", "arguments": {"command": "ls"}}</tool_call> and ',
    "JSON": '{"name": "shell.run", "arguments": {"command": "ls"}}\n',
    "braces": "{",
    "open objects": "Action: shell.run\nAction Input: {\n",
    "calls in Python": "```python\nshell.run(command='ls')\n```\n",
    "dots": ".",
    "blank lines": "\n",
    "returns": "a\r",
}


class _Counted(str):
    """A text that counts the characters that are copied from it. What is copied counts no longer."""

    copied: int

    def _count(self, part: str) -> str:
        self.copied += len(part)
        return str(part)

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        return self._count(super().__getitem__(key))

    def lstrip(self, chars: str | None = None) -> str:
        return self._count(super().lstrip(chars))

    def rstrip(self, chars: str | None = None) -> str:
        return self._count(super().rstrip(chars))

    def strip(self, chars: str | None = None) -> str:
        return self._count(super().strip(chars))


def _work(do: Callable[[str], object], text: str) -> tuple[int, int]:
    """How many functions are called, and how many characters are copied from the text."""
    counted = _Counted(text)
    counted.copied = 0
    calls = count()

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            next(calls)

    sys.setprofile(note)
    try:
        do(counted)
    finally:
        sys.setprofile(None)
    return next(calls), counted.copied


def _read(text: str) -> None:
    """All that is done with a reply when it is complete."""
    blocks = scan(text, REGISTRY.is_action).blocks
    in_our_language(text, REGISTRY, Known())
    ReplyText(text, blocks, REGISTRY).find_all()
    announces(text)
    unread.command_at_end(f"{text}```", ())


def _long(unit: str, size: int) -> str:
    return (unit * (size // len(unit) + 1))[:size]


@pytest.mark.parametrize("unit", REPEATED.values(), ids=REPEATED.keys())
def test_a_text_that_is_longer_takes_no_more_work_for_each_character(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # These bounds do not depend on the length, and are beyond it here.
    monkeypatch.setattr(rewriting, "_LEAST_IN_VAIN", 0)
    monkeypatch.setattr(rewriting, "_MOST", 10)
    _read(_long(unit, 500))  # what is computed once

    few = _work(_read, _long(unit, SHORT))
    many = _work(_read, _long(unit, SHORT * TIMES))

    print(f"{few} for {SHORT}, {many} for {SHORT * TIMES} characters")
    for less, more in zip(few, many, strict=True):
        assert more <= less * GROWTH + 2_000
    assert many[0] <= SHORT * TIMES * MOST_CALLS_FOR_A_CHARACTER
    assert many[1] <= SHORT * TIMES * MOST_COPIES


@pytest.mark.parametrize("unit", ["a line of a text\n", "\n", "x"])
def test_a_long_text_is_shortened_without_taking_its_lines_apart(unit: str) -> None:
    def shorten(text: str) -> None:
        excerpt(text, 2_000, "run_1")

    few = _work(shorten, _long(unit, SHORT))
    many = _work(shorten, _long(unit, SHORT * TIMES))

    assert many[0] == few[0]
    assert many[1] <= 2 * (2_000 + AT_ONCE)


def test_a_text_that_is_cut_exactly_between_two_lines_stays_whole() -> None:
    text = "a" * 4_000 + "\n" + "b" * 2_000

    assert excerpt(text, 6_000, "run_1") == text
