"""Pages, messages and docstrings avoid the words that the glossary lists as hard to read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
_GLOSSARY: Final = ROOT / "docs" / "glossary.md"
_SOURCES: Final = (
    "accounts", "benchmarks", "cluster", "core", "docs", "ext_modules", "faces", "hippocampus", "iact", "protos", "sandbox", "web",
)  # fmt: skip
_MESSAGES: Final = ROOT / "docs" / "reference" / "messages.md"
_FOR_MODELS: Final = ("core/plan/answers.py", "ext_modules/web/module.py")
"""Descriptions of functions and schemas, which are part of what recorded sessions showed their models."""
_IN_JOURNALS: Final = "It would run with the rights of its owner or group, whoever starts it."
"""A reason of the gate, which old journals derive word for word."""
_CODE: Final = re.compile(r"^(`{3,}).*?^\1$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def _unwanted() -> re.Pattern[str]:
    _, _, section = _GLOSSARY.read_text(encoding="utf-8").partition("## How we write")
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", section, re.MULTILINE)
    words = [word for row in rows if row != "not" for word in row.split(", ")]
    assert len(words) >= 8
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b", re.IGNORECASE)


def _docstrings(source: Path) -> Iterator[str]:
    """Every docstring, of attributes, too."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        match node:
            case ast.Expr(ast.Constant(str() as text)):
                yield text


def _found(texts: Iterator[str]) -> list[str]:
    unwanted = _unwanted()
    return [
        text[max(0, one.start() - 40) : one.end() + 40] for text in texts for one in unwanted.finditer(text)
    ]


@pytest.mark.parametrize("room", _SOURCES)
def test_docstrings_are_in_plain_words(room: str) -> None:
    sources = [
        one
        for one in sorted((ROOT / room).rglob("*.py"))
        if not one.is_symlink() and str(one.relative_to(ROOT)) not in _FOR_MODELS
    ]
    assert sources
    assert _found(text for one in sources for text in _docstrings(one)) == []


def test_pages_are_in_plain_words() -> None:
    pages = [one for one in (ROOT / "docs").rglob("*.md") if "sessions" not in one.parts and one != _MESSAGES]
    pages += ROOT.glob("*.md")
    texts = {one: _CODE.sub("", one.read_text(encoding="utf-8")) for one in pages}
    texts[_GLOSSARY] = texts[_GLOSSARY].partition("## How we write")[0]
    assert _found(iter(texts.values())) == []


def test_messages_are_in_plain_words() -> None:
    assert _found(iter([_MESSAGES.read_text(encoding="utf-8").replace(_IN_JOURNALS, "")])) == []
