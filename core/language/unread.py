"""The parts of a reply that are not run: blocks that end too early, blocks in quotes, commands without an action.

Each is found from the text and its fenced blocks alone, so reading a recorded reply again finds the same. The
sentences about it, one line each, are in `core.language.labels`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from iact.core.language import labels
from iact.core.language.actions import Registry
from iact.core.language.containers import IN_LIST
from iact.core.language.scanner import Block, IsAction

_MARK: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_QUOTED: Final = re.compile(rf"^{IN_LIST}" + r">[ \t>]*(?:`{3,}|~{3,})[ \t]*([^\s`]+)", re.MULTILINE)

SHELLS: Final = frozenset({"bash", "sh", "shell", "console", "zsh", "terminal", "shell-session"})
PYTHONS: Final = frozenset({"python", "py", "python3"})
RUNNERS: Final = {**dict.fromkeys(SHELLS, "shell.run"), **dict.fromkeys(PYTHONS, "python.run")}
"""The languages of blocks that are meant to be run, each with the function that runs it."""


def closed_early(text: str, blocks: Sequence[Block], *, writes: Callable[[Block], bool]) -> int | None:
    """The first action block whose body probably goes on behind the fence that closed it; None if there is none.

    `writes`: whether a block's body is a text that is kept or sent, and not a program.

    The fences of such a block can't be told from those of an action with text and an ordinary block behind it:

        ```files.write path=README.md      ```shell.run
        Install it:                        ls
        ```                                ```
        pip install it                     It prints
        ```                                ```
        Then use it.                       a.txt
        ```                                ```

    What tells them apart are blank lines. Code within a fence touches both of its fences; a sentence between two blocks
    has a blank line on each side, or at least on one. So text between the closing fence and a bare fence of the same
    length or longer, without another block between them, makes a block doubtful

    - if its body is a text: unless the text between has a blank line on both sides. A file that lost its end does more
      harm than one more turn.
    - if its body is a program: only if the text between has a blank line on neither side.
    """
    for index, block in enumerate(blocks[:-1]):
        following = blocks[index + 1]
        if not block.action or following.info or not block.closed:
            continue

        same_kind = _mark(text, following).startswith(_mark(text, block)[0])
        between = text[block.end : following.start].removeprefix("\n").removesuffix("\n")
        if not same_kind or not between.strip():
            continue

        lines = between.split("\n")
        touches = (bool(lines[0].strip()), bool(lines[-1].strip()))
        doubtful = any(touches) if writes(block) else all(touches)
        if doubtful:
            return index
    return None


def fence_of(text: str, block: Block) -> str:
    """The fence that opens a block."""
    return _mark(text, block)


def _mark(text: str, block: Block) -> str:
    match = _MARK.match(text, block.start)
    return "" if match is None else match.group(1)


def outside(text: str, blocks: Sequence[Block]) -> Iterator[str]:
    """Yield the pieces of text before, between and behind the blocks."""
    position = 0
    for block in blocks:
        yield text[position : block.start]
        position = block.end
    yield text[position:]


def prose(text: str, blocks: Sequence[Block]) -> str:
    """A reply without its action blocks, as its caller reads it."""
    acting = [block for block in blocks if block.action]
    pieces = [piece.strip() for piece in outside(text, acting)]
    return "\n\n".join(piece for piece in pieces if piece)


def quoted(text: str, blocks: Sequence[Block], is_action: IsAction) -> str:
    """The name of the first action block in a block quote; empty if there is none."""
    if ">" not in text:
        return ""
    for piece in outside(text, blocks):
        for match in _QUOTED.finditer(piece):
            if is_action(match.group(1)):
                return match.group(1)
    return ""


_FUNCTION: Final = re.compile(r"([a-z][a-z0-9_]*)\.([a-z][a-z0-9_]*)")
_ACTION: Final = re.compile(r"[A-Z][A-Z_]{3,}")
_SUFFIXES: Final = frozenset(
    [
        "bat",
        "c",
        "cc",
        "cfg",
        "conf",
        "cpp",
        "cs",
        "css",
        "csv",
        "dart",
        "diff",
        "env",
        "ex",
        "fs",
        "go",
        "h",
        "hpp",
        "html",
        "ini",
        "ipynb",
        "java",
        "js",
        "json",
        "jsx",
        "kt",
        "lock",
        "log",
        "lua",
        "md",
        "mjs",
        "net",
        "patch",
        "php",
        "pl",
        "proto",
        "ps1",
        "py",
        "pyi",
        "r",
        "rb",
        "rs",
        "rst",
        "sass",
        "scala",
        "scss",
        "sh",
        "sql",
        "svg",
        "swift",
        "tex",
        "tf",
        "toml",
        "ts",
        "tsx",
        "tsv",
        "txt",
        "vue",
        "xml",
        "yaml",
        "yml",
        "zig",
    ]
)
"""Endings of names of files, and of languages such as asp.net, with which blocks of code begin, too."""
_LANGUAGES: Final = frozenset(
    [
        "abnf",
        "ascii",
        "bash",
        "console",
        "cpp",
        "csharp",
        "diff",
        "dockerfile",
        "ebnf",
        "fortran",
        "graphql",
        "haskell",
        "html",
        "http",
        "java",
        "javascript",
        "json",
        "latex",
        "makefile",
        "markdown",
        "mermaid",
        "perl",
        "plaintext",
        "powershell",
        "python",
        "ruby",
        "rust",
        "scala",
        "scheme",
        "shell",
        "text",
        "toml",
        "typescript",
        "yaml",
        "cobol",
        "pascal",
    ]
)
"""Languages whose names are written in capitals, too."""


def unknown_name(blocks: Sequence[Block]) -> str:
    """The first word of the first block that looks like an action and is none; empty if there is none."""
    for block in blocks:
        word = block.info.split(None, 1)[0] if block.info else ""
        if block.action or not word:
            continue
        function = _FUNCTION.fullmatch(word)
        if function is not None and function[2] not in _SUFFIXES:
            return word
        if _ACTION.fullmatch(word) and word.lower() not in _LANGUAGES:
            return word
    return ""


_OPENS_CODE: Final = re.compile(IN_LIST + r"(?P<mark>`{3,})[ \t]*(?P<language>[\w-]+)[^`\n]*")
"""A line that opens a block and names its language, also in a list item."""


def command_at_end(text: str, blocks: Sequence[Block]) -> str:
    """The language of a block of commands or code with which a reply ends, also in a list item; empty if it ends
    otherwise."""
    behind_blocks = text.rstrip()[blocks[-1].end :] if blocks else text.rstrip()
    language = ""
    if blocks and not behind_blocks.strip():
        if not blocks[-1].action:
            language = blocks[-1].info
    elif behind_blocks.endswith("```"):
        # The scanner reads no block within a list item.
        language = _language_of_last_block(behind_blocks)

    word = language.split(None, 1)[0] if language.strip() else ""
    return word if word.lower() in RUNNERS else ""


def _language_of_last_block(text: str) -> str:
    """The language of the block of code that the last line of a text closes; empty if it names none.

    The lines are read from the last one upwards, to the fence that would have closed the block before.
    """
    lines = text.split("\n")
    mark = lines.pop().strip(" \t")
    if mark.strip("`"):
        return ""

    language = ""
    for line in reversed(lines):
        if line.strip(" \t") == mark:
            break
        opening = _OPENS_CODE.fullmatch(line)
        if opening is not None and opening["mark"] == mark:
            language = opening["language"]
    return language


_FENCED: Final = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*([^\s`]+)", re.MULTILINE)
_MOST: Final = 5


def actions_in(body: str, is_action: IsAction) -> tuple[str, ...]:
    """The actions whose blocks are in the body of another one, the first few of them."""
    names = [match.group(1) for match in _FENCED.finditer(body)]
    return tuple(dict.fromkeys(name for name in names if is_action(name)))[:_MOST]


_COMMANDS: Final = ("bash", "sh", "shell", "zsh", *sorted(PYTHONS))
"""Languages of blocks that hold commands or code, and not what a terminal shows."""

PASSED_OVER: Final = frozenset(labels.passed_over(language, RUNNERS[language]) for language in _COMMANDS)
"""All that `passed_over` may say."""

_EXAMPLE: Final = re.compile(
    r"\b(?:examples?|e\.g|for instance|such as|like this|instead of|later|yourself|you (?:can|could|may)"
    r"|Beispiel|z\. ?B|etwa|später|selbst)\b",
    re.IGNORECASE,
)
LONGEST_HINT: Final = 2_000
"""How many characters before a block may say that it is an example."""

_MOST_LINES: Final = 5
"""The most lines of a block that was probably meant to be run; a longer one is shown, or kept in a file."""


def is_example(before: str) -> bool:
    """Whether a text says of what stands behind it that it is an example."""
    end = before[-LONGEST_HINT:].rstrip()
    return _EXAMPLE.search(end.rpartition("\n")[2]) is not None


def passed_over(text: str, blocks: Sequence[Block], registry: Registry) -> str:
    """What is said about the first block of commands beside actions, unless it is called an example; or nothing.

    For a reply that is no answer: of an answer, such a block is a part of what its reader is told.
    """
    if not any(block.action for block in blocks):
        return ""

    position = 0
    for block in blocks:
        before = text[position : block.start]
        position = block.end
        language = block.info.lower()
        if block.action or language not in _COMMANDS or RUNNERS.get(language, "") not in registry:
            continue
        commands = [line for line in block.body.split("\n") if line.strip()]
        if 1 <= len(commands) <= _MOST_LINES and not is_example(before):
            return labels.passed_over(language, RUNNERS[language])
    return ""
