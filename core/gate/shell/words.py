"""What the shell will make of one word, as far as that can be known before it runs.

A word is text with gaps: the text of an expansion, a substitution or a glob is not known. Two questions matter to the
gate: is the whole text known, and could the word (or one of several words that it may become) begin with something
unknown, and so turn out to be an option?
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

GAP: Final = "\0"
"""Stands for text that is not known."""
GLOB: Final = "\1"
"""Stands for what a glob matches within one component of a path."""

_SIMPLE_ESCAPES: Final = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ANSI: Final = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(c.)|(.))", re.DOTALL
)
_ESCAPED: Final = re.compile(r'\\(?:([$`"\\])|\n)')
_NUMERIC: Final = re.compile(r"\$[?#$!]|\$\{#[A-Za-z_][A-Za-z0-9_]*(?:\[[@*]\])?\}|\$\{[?#$!]\}")
_ONE_WORD: Final = re.compile(
    r"\$\((?:uname(?: -[srm])?|arch|nproc|whoami|id -[ug]n?|date \+(?:%F|%s|%Y-?%m-?%d))\)", re.ASCII
)
"""Substitutions whose result is one word, without blanks and without a leading dash."""
_SPECIAL: Final = re.compile(r"[\\*?\[]")
_BRACES: Final = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}|\{|\}")


@dataclass(frozen=True, slots=True)
class Word:
    """One word."""

    text: str
    """With `GAP` and `GLOB` for what is not known."""
    many: bool = False
    """It may become several words, or none."""
    loose: bool = False
    """What it becomes may begin with anything."""

    @property
    def known(self) -> str | None:
        """The whole text, if it is one word and all of it is known."""
        return None if self.many or GAP in self.text or GLOB in self.text else self.text


def ansi_c(source: str) -> str:
    r"""Return the text inside a `$'…'`. What bash leaves to the locale or ends at a NUL is a gap."""

    def decode(match: re.Match[str]) -> str:
        short, four, eight, octal, control, other = match.groups()
        hexadecimal = short or four or eight
        if control:
            return GAP
        if other:
            return _SIMPLE_ESCAPES.get(other, "\\" + other)

        code = int(hexadecimal, 16) if hexadecimal else int(octal, 8)
        return chr(code) if 0 < code < 128 else GAP

    return _ANSI.sub(decode, source)


def names(text: str) -> frozenset[str]:
    """Split a text at spaces into a set of names."""
    return frozenset(text.split())


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def read_word(node: Node, constants: Mapping[str, str]) -> Word:
    """Return the word at `node`. `constants`: variables whose value is known."""
    word = _read(node, constants)
    begins_unknown = word.text[:1] in (GAP, GLOB)

    # Most words are plain, and have no braces.
    if node.type == "word" and not node.child_count and b"{" not in (node.text or b""):
        return Word(word.text, word.many, word.loose or begins_unknown)

    if _BRACES.search(_unquoted(node).replace("{}", "")):
        return Word(word.text.partition("{")[0] + GAP, many=True, loose=True)

    # The grammar parts a bracket expression into pieces: where it ends is not known.
    if node.type == "concatenation" and any(_text(child) == "[" for child in node.children):
        is_loose = not word.text[:1].strip(GAP + GLOB)
        return Word(word.text.partition(GLOB)[0] + GAP, many=True, loose=is_loose)

    return Word(word.text, word.many, word.loose or begins_unknown)


def _unquoted(node: Node) -> str:
    """The unquoted text of a word, where braces would be expanded, without escaped characters."""
    if node.type in ("word", "brace_expression", "extglob_pattern", "number"):
        return re.sub(r"\\.|\{\}", "", _text(node), flags=re.DOTALL)
    if node.type == "concatenation":
        return "".join(_unquoted(child) for child in node.children)
    return "x"


def _read(node: Node, constants: Mapping[str, str]) -> Word:
    match node.type:
        case "word" | "number" | "command_name" | "variable_name":
            if node.named_child_count:
                return _joined([_read(child, constants) for child in node.named_children])
            return _bare(_text(node))
        case "raw_string":
            return Word(_text(node)[1:-1])
        case "ansi_c_string":
            return Word(ansi_c(_text(node)[2:-1]))
        case "string":
            return _quoted(node, constants)
        case "concatenation":
            return _joined([_read(child, constants) for child in node.children])
        case "simple_expansion" | "expansion":
            return _variable(node, constants)
        case "arithmetic_expansion":
            return Word(GAP)
        case "command_substitution" if _ONE_WORD.fullmatch(_text(node)):
            return Word(GAP)
        case "process_substitution":
            return Word("/dev/fd/" + GAP)
        case _:
            return Word(GAP, many=True, loose=True)


def _joined(parts: list[Word]) -> Word:
    return Word(
        "".join(part.text for part in parts),
        any(part.many for part in parts),
        any(part.loose for part in parts),
    )


def _bare(text: str) -> Word:
    """An unquoted piece, with escapes resolved and globs as gaps."""
    if not _SPECIAL.search(text):
        return Word(text)

    pieces: list[str] = []
    many = False
    position = 0
    while position < len(text):
        character = text[position]
        if character == "\\" and position + 1 < len(text):
            pieces.append(text[position + 1])
            position += 1
        elif character in "*?[":
            pieces.append(GLOB)
            many = True
            if character == "[":
                end = text.find("]", position + 1)
                position = max(position, end)
        else:
            pieces.append(character)
        position += 1
    return Word("".join(pieces), many)


def _variable(node: Node, constants: Mapping[str, str]) -> Word:
    """An unquoted expansion."""
    known = _constant(node, constants)
    if known and not re.search(r"[\s*?\[\\]", known):  # which it would be split at, or expanded again
        return Word(known)
    if _NUMERIC.fullmatch(_text(node)):
        return Word(GAP)
    return Word(GAP, many=True, loose=True)


def _constant(node: Node, constants: Mapping[str, str]) -> str | None:
    match = re.fullmatch(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})", _text(node), re.ASCII)
    return constants.get(match[1] or match[2]) if match else None


def _quoted(node: Node, constants: Mapping[str, str]) -> Word:
    """A double-quoted text. Text between the nodes belongs to it."""
    source = node.text or b""
    pieces: list[str] = []
    end = 1  # of what was read, behind the quotation mark
    several = False  # `"$@"` and `"${a[@]}"` become as many words as there are elements
    for child in node.children[1:-1]:
        start = child.start_byte - node.start_byte
        pieces.append(source[end:start].decode("utf-8", "replace"))
        end = child.end_byte - node.start_byte

        text = _text(child)
        if child.type == "string_content":
            pieces.append(_ESCAPED.sub(r"\1", text))
            continue
        several = several or "@" in text[:3] or "[@]" in text
        pieces.append(_inside_quotes(child, constants))

    pieces.append(source[end : len(source) - 1].decode("utf-8", "replace"))
    return Word("".join(pieces), many=several, loose=several)


def _inside_quotes(node: Node, constants: Mapping[str, str]) -> str:
    """The text of an expansion, or another piece, in a double-quoted text."""
    if node.type in ("simple_expansion", "expansion"):
        known = _constant(node, constants)
        return known if known is not None else GAP
    return _text(node) if node.type == "word" else GAP
