"""Shell arithmetic does more than calculate: bash evaluates the text of variables and runs commands that it finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from tree_sitter import Node

from iact.core.gate.shell.syntax import text_of
from iact.core.gate.shell.variables import number_like
from iact.core.gate.shell.words import names

_KNOWN: Final = re.compile(r"\d+|\$[#?$!]|\$\{#\w+(?:\[[@*]\])?\}")
_INSIDE: Final = names(
    "binary_expression unary_expression postfix_expression parenthesized_expression ternary_expression "
    "arithmetic_expansion"
)


def plain_index(node: Node) -> bool:
    """Whether the index of an array, which is arithmetic too, is a number or stands for all elements."""
    return re.fullmatch(r"\w+\[(?:\d+|@|\*)\]", text_of(node), re.ASCII) is not None


def doubts(node: Node, numeric: Callable[[str], bool]) -> Iterator[Node]:
    """The parts of an expression that could be more than a number. `numeric`: whether a variable holds a number."""
    text = text_of(node)
    if node.type in _INSIDE:
        for child in node.named_children:
            yield from doubts(child, numeric)
        return

    # Whatever does not return here is a doubt.
    match node.type:
        case "number" | "test_operator":
            return

        case "variable_name" | "word" | "simple_expansion" | "expansion":
            name = text.removeprefix("$").removeprefix("{").removesuffix("}")
            if numeric(name) or _KNOWN.fullmatch(text):
                return

        case "variable_assignment":
            if numeric(text_of(node.named_children[0])):
                yield from doubts(node.named_children[-1], numeric)
                return

        case "command_substitution":
            if number_like(node):
                return

        case "string" if node.named_child_count == 1:
            yield from doubts(node.named_children[0], numeric)
            return
    yield node
