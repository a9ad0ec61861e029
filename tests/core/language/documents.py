"""Random Markdown for the properties of the scanner, and what markdown-it-py makes of it."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from markdown_it import MarkdownIt

from iact.core.language.scanner import Block, scan

_PARSER = MarkdownIt("commonmark").disable(["inline"], ignoreInvalid=True)

_LEAVES = [
    "",
    "",
    "text",
    "more text",
    "```",
    "```",
    "````",
    "`````",
    "```python",
    "```shell.run timeout=3",
    "```BASH",
    "``` a`b",
    "``",
    "~~~",
    "~~~~ `x`",
    "~~~ yaml ~~~",
    "# heading",
    "===",
    "---",
    "***",
    "-",
    "*",
    "+",
    "1.",
    "2)",
    "<div>",
    "</div>",
    "<!-- note",
    "-->",
    "<!-- whole -->",
    "<pre>",
    "</pre>",
    "<script>x",
    "</script>",
    "<?php",
    "?>",
    "<b>",
    "<custom-tag a='1' b>",
    "<![CDATA[",
    "]]>",
    "<!DOCTYPE",
    "`code`",
    "$run_1",
    "\\```",
    "&amp;",
    "    indented",
    "Result of `BASH`:",
    "Message from the user:",
    "shell.run did not complete.",
]
_PREFIXES = [
    "",
    "",
    "",
    "- ",
    "* ",
    "+ ",
    "1. ",
    "2. ",
    "10) ",
    "> ",
    ">",
    "-   ",
    "-     ",
    "1.  ",
    "-\t",
    ">\t",
]
_INDENTS = ["", "", "", "", " ", "  ", "   ", "    ", "     ", "      ", "\t", " \t"]


@st.composite
def line(draw: st.DrawFn, indents: list[str], prefixes: list[str]) -> str:
    """One line: indentation and container marks in any order, then a leaf."""
    marks = draw(st.lists(st.tuples(st.sampled_from(indents), st.sampled_from(prefixes)), max_size=2))
    lead = "".join(indent + prefix for indent, prefix in marks)
    return lead + draw(st.sampled_from(indents)) + draw(st.sampled_from(_LEAVES))


def documents(*, tabs: bool = True, ends: tuple[str, ...] = ("\n",)) -> st.SearchStrategy[str]:
    """Documents of up to 14 lines of lists, quotes, HTML, fences and prose, in any indentation."""
    indents = _INDENTS if tabs else [one for one in _INDENTS if "\t" not in one]
    prefixes = _PREFIXES if tabs else [one for one in _PREFIXES if "\t" not in one]
    ended = st.tuples(line(indents, prefixes), st.sampled_from(ends)).map("".join)
    return st.lists(ended, max_size=14).map("".join)


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block of the top level, comparable across parsers; `line` counts from 0."""

    line: int
    info: str
    body: str


def theirs(text: str) -> list[Fence]:
    """The top-level fences that markdown-it-py's CommonMark preset finds."""
    found = [token for token in _PARSER.parse(text) if token.type == "fence" and token.level == 0]
    return [
        Fence(token.map[0] if token.map else -1, token.info.strip(), token.content.removesuffix("\n"))
        for token in found
    ]


def ours(text: str) -> list[Fence]:
    """The top-level fences that the scanner finds when no action is registered."""
    normal = text.replace("\r\n", "\n").replace("\r", "\n")
    return [_fence(normal, block) for block in scan(text, lambda name: False).blocks]


def _fence(text: str, block: Block) -> Fence:
    return Fence(text.count("\n", 0, block.start), block.info.strip(), block.body)
