"""What is known about a script's variables: texts that are certain, and numbers, which are safe in arithmetic.

A shell outlives its script, and so do exported variables: a variable that a script did not set itself may hold
anything, including `a[$(rm x)]`, which arithmetic would run. So a variable is known only after an assignment that every
path through the script has passed, and only if nothing else in the script sets it: not `read`, not `+=`, not an
evaluated text, not a loop.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from tree_sitter import Node

from iact.core.gate.shell.syntax import text_of
from iact.core.gate.shell.words import read_word

_RANGE = re.compile(r"\{\d+\.\.\d+\}")
_INTEGER = re.compile(r"-?\d+")
_COUNTS = re.compile(r"wc -[lcw]|nproc|date \+%s")
_COUNT_UP = re.compile(r"\$\(seq \d+ \d+\)")
_SETTING = re.compile(r"(?<![=!<>])=(?!=)|\+\+|--|[-+*/%&|^]=|<<=|>>=")


class Variables:
    """The variables of one script, from the nodes of its tree."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        are_numbers: dict[str, list[bool]] = {}
        set_by_arithmetic: Counter[str] = Counter()
        for node in nodes:
            if node.type == "variable_assignment" and node.named_children:
                value = node.named_children[-1] if node.named_child_count > 1 else None
                name = text_of(node.named_children[0])
                are_numbers.setdefault(name, []).append(value is not None and number_like(value))

            elif node.type == "for_statement":
                items = _items(node)
                name = text_of(node.named_children[0])
                are_numbers.setdefault(name, []).append(bool(items) and all(map(_numbers, items)))

            elif node.type in ("arithmetic_expansion", "compound_statement") and node.children[0].type != "{":
                text = text_of(node)
                if _SETTING.search(text):
                    set_by_arithmetic.update(re.findall(r"[A-Za-z_]\w*", text))

        self._numbers = {name for name, values in are_numbers.items() if all(values)}
        """Variables of which every value is a number."""
        self._assigned = (
            Counter({name: len(values) for name, values in are_numbers.items()}) + set_by_arithmetic
        )
        """How often the script assigns something to each variable."""
        self._set: set[str] = set()
        """Variables that commands set."""
        self._certain: Counter[str] = Counter()
        """How many assignments of each variable every path to this place has passed."""
        self._constants: dict[str, str] = {} if "HOME" in are_numbers else {"HOME": "~"}
        """Texts that are known at this place."""
        self._used: set[str] = set()
        """Variables that were taken for numbers."""

    @property
    def constants(self) -> dict[str, str]:
        """Variables whose text is known at this place of the script."""
        return self._constants

    def names(self) -> set[str]:
        """All variables that the script sets."""
        return {*self._assigned, *self._set}

    def set_by_command(self, name: str) -> None:
        """Note that a command sets this variable, so nothing is known about its text."""
        self._set.add(name)

    def assigned(self, node: Node) -> None:
        """Note an assignment."""
        if not _always(node) or node.children[1].type != "=":
            return

        name = text_of(node.named_children[0])
        self._certain[name] += 1

        values = node.named_children[1:]
        if self._assigned[name] == 1 and len(values) == 1 and values[0].type != "array":
            text = read_word(values[0], self._constants).known
            if text is not None:
                self._constants[name] = text

    def enter(self, node: Node) -> str:
        """Enter the body of a loop, in which its variable has one of the loop's values."""
        first = node.named_children[0]
        name = text_of(first.named_children[0] if first.type == "variable_assignment" else first)
        self._certain[name] += 1
        return name

    def leave(self, name: str, node: Node) -> None:
        """Leave the body of a loop."""
        # Over literal items it runs at least once, and its variable keeps the last of them.
        literal = all(item.type in ("number", "brace_expression") for item in _items(node))
        if not (_always(node) and literal):
            self._certain[name] -= 1

    def numeric(self, name: str) -> bool:
        """Whether a variable holds a number at this place."""
        if name in self._numbers and self._certain[name] > 0:
            self._used.add(name)
            return True
        return False

    def number(self, node: Node) -> bool:
        """Whether an unquoted variable holds a number. It is then one word, and no option except one of digits."""
        if node.type not in ("simple_expansion", "expansion"):
            return False
        return self.numeric(text_of(node).removeprefix("$").removeprefix("{").removesuffix("}"))

    def doubtful(self) -> list[str]:
        """Variables that counted as known, but that something in the script sets without being seen."""
        constant = {name for name in self._constants if self._assigned[name] > 1 or name in self._set}
        return sorted(constant | (self._used & self._set))


def _items(node: Node) -> list[Node]:
    return [child for child in node.named_children[1:] if child.type != "do_group"]


def _always(node: Node) -> bool:
    """Whether a statement is one that the script always runs, in its own process."""
    if node.parent is not None and node.parent.type == "variable_assignments":
        node = node.parent

    at_top = node.parent is not None and node.parent.type == "program"
    in_background = node.next_sibling is not None and node.next_sibling.type == "&"
    return at_top and not in_background


def number_like(node: Node) -> bool:
    """Whether a word expands to one number."""
    match node.type:
        case "number" | "arithmetic_expansion" | "binary_expression":
            return True
        case "command_substitution":
            return _counts(node)
        case _:
            return _INTEGER.fullmatch(text_of(node)) is not None


def _numbers(node: Node) -> bool:
    """Whether a word expands to numbers."""
    text = text_of(node)
    return number_like(node) or _RANGE.fullmatch(text) is not None or _COUNT_UP.fullmatch(text) is not None


def _counts(node: Node) -> bool:
    """Whether a substitution is one command that prints a number, or a pipe into such a command."""
    marks = [child.type for child in node.children if not child.is_named]
    if node.named_child_count != 1 or marks not in (["$(", ")"], ["`", "`"]):
        return False

    last = node.named_children[0]
    if last.type == "pipeline":
        last = last.named_children[-1]

    # It may read from a file; if its output goes elsewhere, the substitution is empty.
    if last.type == "redirected_statement":
        redirections = last.named_children[1:]
        if any(child.type != "file_redirect" or child.children[0].type != "<" for child in redirections):
            return False
        last = last.named_children[0]
    return last.type == "command" and _COUNTS.fullmatch(text_of(last)) is not None
