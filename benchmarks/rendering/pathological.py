"""Markdown of any length that is hard for a parser: from attackers, and from fuzzers of other parsers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

_REPEATED: Final[Mapping[str, str]] = {
    "images that open": "![",
    "links that open": "[",
    "links that open, with text": "[a",
    "links with open addresses": "[a](",
    "links with open titles": '[a](b "',
    "links with angles": "[a](<b",
    "whole images": "![a](b)",
    "emphasis that opens": "*a_ ",
    "mixed emphasis": "*a **b ",
    "strong mixed": "***a*b_c__",
    "markers only": "*_",
    "strikes": "~~a ",
    "backticks": "`` ` ",
    "escaped backticks": "\\`",
    "quotes": ">",
    "quoted lines": ">a\n",
    "lists in one line": "- ",
    "lists and lazy lines": "- a\n",
    "loose lists": "- a\n\n  b\n",
    "headings": "a\n=\n",
    "rules": "* * *\n",
    "tables without end": "|a",
    "entities": "&#x41;",
    "entities that open": "&a",
    "tags": "<a ",
    "comments": "<!--",
    "data sections": "<![CDATA[",
    "addresses that open": "<http://a",
    "fences": "```\n~~~\n",
    "definitions": "[a]: b\n",
    "percents": "[a](%",
    "hard breaks": "a  \n",
    "terminal strings": "\x9d",
    "formulas": "$a$ ",
    "formulas that open": "$a",
    "formulas on lines that open": "$$a\n",
    "round formulas that open": "\\(a",
    "square formulas that open": "\\[a\n",
    "quoted formulas that open": "> $$\n",
    "boxes": "- [x] a\n",
}

_GROWN: Final[Mapping[str, Callable[[int], str]]] = {
    "images that open and close": lambda n: "![" * (n // 3) + "]" * (n // 3),
    "links that open and close": lambda n: "[" * (n // 2) + "]" * (n // 2),
    "whole images between openings": lambda n: "![a](b)[" * (n // 8) + "]",
    "nested images": lambda n: "![a" * (n // 6) + "](b)" * (n // 6),
    "runs of backticks": lambda n: "".join("`" * size + " " for size in range(1, int((2 * n) ** 0.5))),
    "a table of small cells": lambda n: "a|b\n-|-\n" + "a|b\n" * (n // 4),
    "one definition, many uses": lambda n: "[a]: b\n\n" + "[a]" * (n // 3),
    "nested lists": lambda n: "".join("  " * depth + "- a\n" for depth in range(int(n**0.5))),
    "a lazy quote": lambda n: "> a\n" + "b\n" * (n // 2),
    "a long word": lambda n: "a" * n,
    "a long blank": lambda n: "a" + " " * n + "b",
}

PATTERNS: Final[tuple[str, ...]] = (*_REPEATED, *_GROWN)


def pathological(pattern: str, length: int) -> str:
    """About `length` characters of a pattern."""
    if pattern in _GROWN:
        return _GROWN[pattern](length)
    piece = _REPEATED[pattern]
    return piece * (length // len(piece))
