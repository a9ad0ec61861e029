"""The nodes of a syntax tree, and the source that none of them covers: a parser that never fails is not trusted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tree_sitter import Node

from iact.core.gate.shell.words import names

Span = tuple[int, int]

WORDS: Final = names(
    "word number string raw_string ansi_c_string concatenation simple_expansion expansion arithmetic_expansion "
    "brace_expression extglob_pattern regex"
)
EXPRESSIONS: Final = names("binary_expression unary_expression parenthesized_expression negated_command")
_OUTERMOST: Final = names("command_substitution process_substitution arithmetic_expansion translated_string")
"""Expansions that are judged with all that is in them."""
_DELIMITER: Final = re.compile(r"(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")


def text_of(node: Node) -> str:
    """Return the source of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def every(node: Node) -> Iterator[Node]:
    """Iterate over a node and everything below it, in source order."""
    left = [node]
    while left:
        next_node = left.pop()
        yield next_node
        left.extend(reversed(next_node.children))


def within(node: Node) -> Iterator[Node]:
    """The outermost expansions in a word."""
    if node.type in _OUTERMOST:
        yield node
        return

    if node.type == "expansion":
        yield node
    for child in node.children:
        yield from within(child)


def cut_out(operator: Node, node: Node) -> bool:
    """Whether an expansion takes a substring at literal positions; other positions are arithmetic."""
    return operator.type == ":" and bool(re.fullmatch(r"\$\{\w+:\s?-?\d+(?::-?\d+)?\}", text_of(node)))


_COMMENTED: Final = names(
    "program list compound_statement do_group if_statement elif_clause else_clause case_item subshell while_statement "
    "command_substitution process_substitution pipeline case_statement for_statement redirected_statement"
)


_LITERAL: Final = names("raw_string ansi_c_string comment heredoc_start heredoc_end")
_LIVE_TEXT: Final = re.compile(r"`|\$[A-Za-z_0-9({\[*@#?$!'\"-]")


def uncovered(root: Node, data: bytes) -> str | None:
    """Return the first piece of source that no token covers, or that the grammar may read differently from bash."""
    covered = 0  # where the last token ends
    quoted_until = 0
    document_until = 0
    document_rows: set[int] = set()
    # Whether the delimiter of the last here-document is quoted, so that nothing in it is expanded.
    literal = False

    for node in every(root):
        if node.type == "string":
            quoted_until = max(quoted_until, node.end_byte)
        if node.type == "comment" and not _comment_stands(node, data):
            return text_of(node)[:60]

        # Two here-documents that begin on one line are not understood.
        if node.type == "heredoc_redirect":
            document = _heredoc(node, data)
            if document is None or node.start_point.row in document_rows:
                return text_of(node)[:60]
            document_rows.add(node.start_point.row)
            document_until, literal = document

        if node.child_count:
            continue

        # Inside quotes and here-documents, the grammar leaves text between its nodes.
        gap = data[covered : node.start_byte]
        text = gap.decode("utf-8", "replace")
        inside = node.start_byte < quoted_until or node.start_byte <= document_until
        may_be_passed_over = inside and (literal or not _runs(text))
        if gap.replace(b"\\\n", b"").strip(b" \t\n") and not may_be_passed_over:
            return text[:60]

        if not _is_literal(node, literal) and _runs(text_of(node)):
            return text_of(node)[:60]
        covered = max(covered, node.end_byte)
    return data[covered:].decode("utf-8", "replace").strip(" \t\n") or None


def _is_literal(node: Node, literal: bool) -> bool:
    """Whether bash expands nothing in a token. `literal`: it would not in the last here-document."""
    if not node.is_named or node.type in _LITERAL:
        return True
    return literal and node.type in ("heredoc_body", "heredoc_content")


def _runs(text: str) -> bool:
    """Whether text contains an expansion for which the parser made no node."""
    return _LIVE_TEXT.search(re.sub(r"\\.", "", text, flags=re.DOTALL)) is not None


def _comment_stands(node: Node, data: bytes) -> bool:
    """Whether bash reads a comment here, too: between words, where commands are."""
    parent = node.parent.type if node.parent is not None else ""
    if parent not in _COMMENTED:
        return False

    before = data[node.start_byte - 1 : node.start_byte]
    return not before or before in b" \t\n;&|()"


def _heredoc(node: Node, data: bytes) -> tuple[int, bool] | None:
    """Where a here-document ends, and whether its delimiter is quoted.

    None unless it ends where bash ends it: at the first line that equals the delimiter.
    """
    start = next((child for child in node.children if child.type == "heredoc_start"), None)
    end = next((child for child in node.children if child.type == "heredoc_end"), None)
    match = _DELIMITER.fullmatch(text_of(start)) if start is not None else None
    if start is None or end is None or match is None:
        return None

    strips_tabs = any(child.type == "<<-" for child in node.children)
    lines = data.split(b"\n")
    for row in range(start.start_point.row + 1, len(lines)):
        line = lines[row].lstrip(b"\t") if strips_tabs else lines[row]
        if line == match[2].encode():
            return (end.end_byte, bool(match[1])) if end.start_point.row == row else None
    return None


def span(node: Node) -> Span:
    """The first byte of a node, and its last byte + 1."""
    return node.start_byte, node.end_byte


def behind(redirect: Node) -> list[Node]:
    """Words after a redirection, which the tree has as parts of it."""
    if redirect.type == "file_redirect":
        return [child for child in redirect.named_children if child.type != "file_descriptor"][1:]
    if redirect.type == "heredoc_redirect":
        return [
            child
            for child in redirect.named_children
            if child.type in WORDS or child.type == "command_substitution"
        ]
    return []


def flat(nodes: Sequence[Node]) -> list[Node]:
    """The words of a `[`, which the tree has as an expression."""
    words: list[Node] = []
    for node in nodes:
        if node.type in EXPRESSIONS:
            words.extend(flat(node.children))
        else:
            words.append(node)
    return words


def runs_any(node: Node, programs: frozenset[str]) -> bool:
    """Whether a substitution in a word runs one of `programs`."""
    return any(
        text_of(inner) in programs
        for substitution in every(node)
        if substitution.type == "command_substitution"
        for inner in every(substitution)
        if inner.type == "command_name"
    )
