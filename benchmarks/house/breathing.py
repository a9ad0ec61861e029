"""How densely code is written: the lines that a reader can rest at, and those that say several things at once.

Counted in the bodies of functions with at least 12 lines, their docstrings left out, because a short function needs
neither a paragraph nor a comment.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

LEAST: Final = 12
"""The lines of the shortest body that is counted."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Breathing:
    """The counts of some files."""

    lines: int = 0
    """Of the bodies that are counted."""
    comments: int = 0
    """Lines that hold a comment and nothing else."""
    blank: int = 0
    double_assignments: int = 0
    """`a, b = x, y`: two assignments in one statement."""
    ternaries: int = 0
    functions: int = 0
    """All functions, also those that are too short to be counted otherwise."""
    function_lines: int = 0

    HEADER = "| lines of long bodies | comments % | blank % | `a, b = x, y` per 1,000 | ternaries per 1,000 | mean function |"

    def cells(self) -> str:
        """The cells of a table's row, in the order of `HEADER`."""
        lines = max(self.lines, 1)
        mean = self.function_lines / max(self.functions, 1)
        return (
            f"{self.lines:,} | {100 * self.comments / lines:.1f} | {100 * self.blank / lines:.1f}"
            f" | {1000 * self.double_assignments / lines:.1f} | {1000 * self.ternaries / lines:.1f} | {mean:.1f}"
        )


def breathing(sources: Iterable[str]) -> Breathing:
    """Count some files, given as their text. A file that this Python can't read is left out."""
    counts = Breathing()
    for source in sources:
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        _add(counts, tree, source)
    return counts


def _add(counts: Breathing, tree: ast.Module, source: str) -> None:
    lines = source.splitlines()
    comments = _comment_lines(source)
    for function in _functions(tree):
        end = function.end_lineno or function.lineno
        counts.functions += 1
        counts.function_lines += end - function.lineno + 1

        body = without_docstring(function.body)
        if not body:
            continue
        first = body[0].lineno
        if end - first + 1 < LEAST:
            continue

        counts.lines += end - first + 1
        counts.blank += sum(1 for number in range(first, end + 1) if not lines[number - 1].strip())
        counts.comments += len(comments.intersection(range(first, end + 1)))
        for statement in body:
            _add_statement(counts, statement)


def _add_statement(counts: Breathing, statement: ast.stmt) -> None:
    for node in _walked(statement):
        if isinstance(node, ast.IfExp):
            counts.ternaries += 1
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            counts.double_assignments += isinstance(node.targets[0], ast.Tuple)


def _functions(tree: ast.Module) -> Iterator[Function]:
    """The functions of a file. One inside another belongs to that."""
    for node in _walked(tree):
        if isinstance(node, Function):
            yield node


def _walked(node: ast.AST) -> Iterator[ast.AST]:
    """What is in a node, without what is in the functions that are found in it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if isinstance(node, ast.Module | ast.ClassDef) and isinstance(child, Function):
            continue
        yield from _walked(child)


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a function without the text that says what it is for."""
    first = body[0]
    says = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return body[1:] if says else body


def _comment_lines(source: str) -> set[int]:
    """The numbers of lines that hold a comment and nothing else."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        token.start[0]
        for token in tokens
        if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip()
    }
