"""From the syntax tree of a bash script to its findings.

The tree comes from `tree-sitter` with its bash grammar. That parser never fails, so this walk trusts
it with nothing: a type of node that is not named here, an error in the tree, source that no token
covers, and the few places where the grammar is known to differ from bash (joined lines, comments,
here-documents) are all "not understood".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from core.gate.shell import paths
from core.gate.shell.effects import Effect, Finding
from core.gate.shell.programs import (
    FIND_PATTERNS,
    IDENTIFIER,
    NOT_READING,
    WEAK_DECODERS,
    assignable,
    judge_command,
    known_program,
    shown,
    write,
)
from core.gate.shell.words import GAP, Word, names, read_word

_LANGUAGE: Final = Language(tree_sitter_bash.language())
_DEEPEST: Final = 6
"""Scripts within scripts (`sh -c`, `eval`)."""
_DEEPEST_TREE: Final = 150

_PLAIN: Final = names(
    "program list pipeline subshell do_group if_statement elif_clause else_clause while_statement case_statement "
    "case_item negated_command command_substitution process_substitution redirected_statement heredoc_body "
    "parenthesized_expression herestring_redirect"
)
"""Nodes that are no more than what is inside them."""
_WORDS: Final = names(
    "word number string raw_string ansi_c_string concatenation simple_expansion expansion arithmetic_expansion "
    "brace_expression extglob_pattern regex"
)
_LEAVES: Final = names(
    "string_content variable_name special_variable_name file_descriptor heredoc_start heredoc_end heredoc_content "
    "test_operator array"
)
_EXPANSIONS: Final = names("${ } # ## % %% / // /# /% ^ ^^ , ,, :- - :+ + :? ? $ [ ] @ *")
_COMPARISONS: Final = names("-eq -ne -lt -le -gt -ge")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_DELIMITER: Final = re.compile(r"(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _every(node: Node) -> Iterator[Node]:
    left = [node]
    while left:
        one = left.pop()
        yield one
        left.extend(reversed(one.children))


class Walk:
    """Judges one script, and the scripts in it."""

    def __init__(self, *, depth: int = 0) -> None:
        self.findings: list[Finding] = []
        self._depth = depth
        self._constants: dict[str, str] = {}
        self._numeric: frozenset[str] = frozenset()
        self._assigned: dict[str, int] = {}
        self._functions: set[str] = set()
        self._inside: list[str] = []
        self._cooked: set[str] = set()
        self._decoded = False
        self._consumed = False

    # --- what handlers of programs ask for -------------------------------------------------------------

    def find(self, effect: Effect, what: str) -> None:
        """Note one thing that the script can do."""
        self.findings.append(Finding(effect, what))

    def run(self, words: Sequence[Word]) -> None:
        """Judge a command that another one runs."""
        if len(self._inside) > 40:
            self.find("unknown", "commands that run commands, too deep")
            return
        self._inside.append("")
        self._command(list(words))
        self._inside.pop()

    def script(self, text: str) -> None:
        """Judge a script in this one."""
        inner = Walk(depth=self._depth + 1)
        inner.judge(text)
        self.findings.extend(inner.findings)
        # what it defines or decodes is not followed across the border
        if inner._decoded or inner._functions:
            self.find("unknown", "a script within the script defines or decodes something")

    def consume(self) -> None:
        """A command takes names from its input."""
        self._consumed = True

    def decode(self) -> None:
        """A command's output can't be read in the script."""
        self._decoded = True

    # --- the script as a whole ---------------------------------------------------------------------------

    def judge(self, source: str) -> None:
        """Collect the findings of a script."""
        if self._depth > _DEEPEST:
            self.find("unknown", "scripts within scripts, too deep")
            return
        if _CONTROL.search(source) or re.search(r"(?<![ \t])\\\n", source):
            self.find("unknown", "control characters, or a line that is joined within a word")
            return
        data = source.encode("utf-8", "surrogatepass")
        root = Parser(_LANGUAGE).parse(data).root_node
        if root.has_error:
            self.find("unknown", "the script is not one that the parser understands")
            return
        if (wrong := _uncovered(root, data)) is not None:
            self.find("unknown", f"a part of the script that the parser passed over: {wrong}")
            return
        self._prepare(root)
        self._visit(root, 0)
        substitutes = any(
            node.type in ("command_substitution", "process_substitution") for node in _every(root)
        )
        if self._decoded and (self._consumed or substitutes):
            self.find("unknown", "uses a decoded text")

    def _prepare(self, root: Node) -> None:
        """Which variables hold numbers only, and how often each is assigned."""
        values: dict[str, list[bool]] = {}
        firm: set[str] = set()
        named: set[str] = set()
        for node in _every(root):
            if node.type == "variable_assignment" and node.named_children:
                name = _text(node.named_children[0])
                value = node.named_children[-1] if node.named_child_count > 1 else None
                values.setdefault(name, []).append(value is not None and self._number_like(value))
                if node.parent is not None and node.parent.type in ("program", "c_style_for_statement"):
                    firm.add(name)
            elif node.type == "for_statement":
                items = [child for child in node.named_children[1:] if child.type != "do_group"]
                values.setdefault(_text(node.named_children[0]), []).append(
                    bool(items) and all(self._number_like(one) for one in items)
                )
                if items and all(one.type in ("number", "brace_expression", "word") for one in items):
                    firm.add(_text(node.named_children[0]))
            elif node.type in ("word", "variable_name") and _beside_command(node):
                named.add(_text(node))
        self._numeric = frozenset(
            name for name, one in values.items() if all(one) and name in firm and name not in named
        )
        self._assigned = {name: len(one) + (name in named) for name, one in values.items()}
        if "HOME" not in values:
            self._constants["HOME"] = "~"

    def _number_like(self, node: Node) -> bool:
        if node.type in ("number", "arithmetic_expansion", "brace_expression", "binary_expression"):
            return node.type != "brace_expression" or re.fullmatch(r"\{\d+\.\.\d+\}", _text(node)) is not None
        if node.type == "command_substitution":
            return (
                re.search(r"(?:^\$\(|\|)\s*(?:wc -[lcw]|nproc|date \+%s|seq \d+ \d+)[^|;&]*\)$", _text(node))
                is not None
            )
        return re.fullmatch(r"-?\d+|\{\d+\.\.\d+\}", _text(node)) is not None

    # --- nodes -----------------------------------------------------------------------------------------------

    def _visit(self, node: Node, level: int) -> None:
        if level > _DEEPEST_TREE:
            self.find("unknown", "nested too deep")
        elif not node.is_named:
            return
        elif node.type in _PLAIN:
            self._children(node, level)
        elif node.type in _WORDS:
            self._word(node, level)
        elif node.type not in _LEAVES:
            self._special(node, level)

    def _children(self, node: Node, level: int) -> None:
        for child in node.children:
            self._visit(child, level + 1)

    def _special(self, node: Node, level: int) -> None:
        match node.type:
            case "command":
                self._simple_command(node, level)
            case "compound_statement":
                self._compound(node, level)
            case "for_statement":
                self._loop(node, level)
            case "c_style_for_statement":
                for child in node.named_children:
                    self._visit(child, level + 1) if child.type == "do_group" else self._arithmetic(
                        child, level
                    )
            case "variable_assignment":
                self._assignment(node, level, exported=False)
            case "variable_assignments":
                self._children(node, level)
            case "declaration_command":
                self._declaration(node, level)
            case "unset_command":
                self.run(
                    [Word("unset"), *(read_word(child, self._constants) for child in node.named_children)]
                )
                self._children(node, level)
            case "test_command":
                self._test(node, level)
            case "function_definition":
                self._function(node, level)
            case "file_redirect":
                self._redirect(node, level)
            case "heredoc_redirect":
                self._children(node, level)
            case "comment":
                return
            case "command_name":
                self._children(node, level)
            case _:
                self.find(
                    "unknown", f"a piece of shell that is not understood ({node.type}): {_text(node)[:80]}"
                )

    def _word(self, node: Node, level: int, *, secrets: bool = True) -> Word:
        """Judge what a word does while it is expanded, and give it."""
        for inner in _within(node):
            self._expansion(inner, level)
        word = read_word(node, self._constants)
        if secrets and paths.secret(word.text):
            self.find("authority", f"names a secret: {shown([word])}")
        return word

    def _expansion(self, node: Node, level: int) -> None:
        match node.type:
            case "command_substitution" | "process_substitution":
                if _text(node).startswith("`") and "\\" in _text(node):
                    self.find("unknown", f"escapes within backticks: {_text(node)[:80]}")
                self._children(node, level + 1)
            case "arithmetic_expansion":
                for child in node.named_children:
                    self._arithmetic(child, level + 1)
            case "expansion":
                for child in node.children:
                    if not child.is_named and child.type not in _EXPANSIONS and not _cut_out(child, node):
                        self.find("unknown", f"an expansion that is not understood: {_text(node)[:80]}")
                    elif child.type == "subscript":
                        self._subscript(child)
            case _:
                self.find("unknown", f"an expansion that is not understood: {_text(node)[:80]}")

    def _subscript(self, node: Node) -> None:
        """The index of an array is arithmetic."""
        if re.fullmatch(r"\w+\[(?:\d+|@|\*)\]", _text(node), re.ASCII) is None:
            self.find("unknown", f"an index that is not understood: {_text(node)[:80]}")

    def _arithmetic(self, node: Node, level: int) -> None:
        """Arithmetic evaluates the texts of variables, and runs commands that it finds there."""
        text = _text(node)
        match node.type:
            case "number":
                return
            case "variable_name" | "word" | "simple_expansion" | "expansion":
                name = text.removeprefix("$").removeprefix("{").removesuffix("}")
                if name in self._numeric or re.fullmatch(r"\d+|\$[#?$!]|\$\{#\w+(?:\[[@*]\])?\}", text):
                    return
            case "variable_assignment":
                name = _text(node.named_children[0])
                if name in self._numeric:
                    self._arithmetic(node.named_children[-1], level)
                    return
            case (
                "binary_expression"
                | "unary_expression"
                | "postfix_expression"
                | "parenthesized_expression"
                | ("ternary_expression")
                | "arithmetic_expansion"
            ):
                for child in node.named_children:
                    self._arithmetic(child, level + 1)
                return
            case "command_substitution":
                self._children(node, level + 1)
                if self._number_like(node):
                    return
            case "string" if node.named_child_count == 1:
                self._arithmetic(node.named_children[0], level)
                return
            case "test_operator":
                return
        self.find("unknown", f"arithmetic over a text that is not known: {text[:80]}")

    # --- statements -----------------------------------------------------------------------------------------

    def _compound(self, node: Node, level: int) -> None:
        if node.children and node.children[0].type == "((":
            for child in node.named_children:
                self._arithmetic(child, level + 1)
        else:
            self._children(node, level)

    def _loop(self, node: Node, level: int) -> None:
        if node.children[0].type != "for" or not assignable(_text(node.named_children[0]), exported=False):
            self.find("unknown", f"a loop over a variable that programs watch: {_text(node)[:60]}")
        self._children(node, level)

    def _assignment(self, node: Node, level: int, *, exported: bool) -> None:
        name = _text(node.named_children[0])
        if not IDENTIFIER.fullmatch(name) or not assignable(name, exported=exported):
            self.find("unknown", f"sets {name[:60]}, which changes what programs do")
        values = node.named_children[1:]
        for value in values:
            if value.type == "array":
                self._children(value, level)
                continue
            self._visit(value, level + 1)
            if self._decodes(value):
                self._cooked.add(name)
        top = node.parent is not None and node.parent.type in ("program", "variable_assignments")
        if top and self._assigned.get(name) == 1 and len(values) == 1 and values[0].type in _WORDS:
            known = read_word(values[0], self._constants).known
            if known is not None:
                self._constants[name] = known

    def _declaration(self, node: Node, level: int) -> None:
        keyword = node.children[0].type
        exported = keyword == "export"
        for child in node.named_children:
            text = _text(child)
            if child.type == "word" and text.startswith("-"):
                if re.fullmatch(r"-[rgaAxp]+", text) is None:
                    self.find("unknown", f"{keyword} with an option that is not understood: {text[:60]}")
                exported = exported or "x" in text
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assignment(child, level, exported=exported)
            elif child.type != "word" or not _text(child).startswith("-"):
                name = _text(child)
                if not IDENTIFIER.fullmatch(name) or not assignable(name, exported=exported):
                    self.find("unknown", f"{keyword} of {name[:60]}, which changes what programs do")

    def _test(self, node: Node, level: int) -> None:
        double = node.children[0].type == "[["
        for inner in _every(node):
            text = _text(inner)
            if inner.type == "test_operator" and text == "-v":
                self.find("unknown", "a test of a variable by name")
            elif (
                double and inner.type == "test_operator" and text in _COMPARISONS and inner.parent is not None
            ):
                for operand in inner.parent.named_children:
                    self._arithmetic(operand, level)
        for child in node.named_children:
            self._operands(child, level)

    def _operands(self, node: Node, level: int) -> None:
        """The words of a test."""
        if node.type in (
            "binary_expression",
            "unary_expression",
            "parenthesized_expression",
            "negated_command",
        ):
            for child in node.named_children:
                self._operands(child, level + 1)
        elif node.type in _WORDS or node.type == "command_substitution":
            self._visit(node, level + 1)
        elif node.type not in _LEAVES:
            self.find("unknown", f"a test that is not understood: {_text(node)[:80]}")

    def _function(self, node: Node, level: int) -> None:
        name = _text(node.named_children[0])
        self._inside.append(name)
        self._children(node, level)
        self._inside.pop()
        if node.parent is not None and node.parent.type == "program":
            self._functions.add(name)

    def _redirect(self, node: Node, level: int) -> None:
        operator = next((child.type for child in node.children if not child.is_named), "")
        targets = [child for child in node.named_children if child.type != "file_descriptor"]
        for target in targets[:1]:
            word = self._word(target, level) if target.type in _WORDS else Word(GAP)
            if target.type == "process_substitution":
                self._expansion(target, level)
            if paths.network(word.text):
                self.find("send", f"opens a connection: {_text(node)}")
            elif operator == "<" or (operator in (">&", "<&") and re.fullmatch(r"\d+-?|-", word.text)):
                continue
            elif operator in (">", ">>", ">|", "&>", "&>>", ">&"):
                if target.type != "process_substitution":
                    write(self, word, appends=">>" in operator)
            else:
                self.find("unknown", f"a redirection that is not understood: {_text(node)}")
        for more in targets[1:]:
            # the grammar takes words behind the target into the redirection
            self.find("unknown", f"words behind a redirection: {_text(more)[:80]}")
        if not targets and operator not in (">&-", "<&-"):
            self.find("unknown", f"a redirection that is not understood: {_text(node)}")

    # --- commands --------------------------------------------------------------------------------------------

    def _simple_command(self, node: Node, level: int) -> None:
        words: list[Word] = []
        nodes: list[Node] = []
        reads = any(child.type == "command_name" and _text(child) == "read" for child in node.children)
        for child in node.children:
            if child.type == "variable_assignment":
                if reads and re.fullmatch(r"IFS=(?:|'[^']*'|\$'[^']*'|\S)", _text(child)):
                    continue
                self._assignment(child, level, exported=True)
            elif child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                self._visit(child, level + 1)
            elif child.type == "command_name":
                nodes.append(child.named_children[0] if child.named_child_count == 1 else child)
            elif child.is_named or child.type not in (";", "&", "\n"):
                nodes.append(child)
        for position, child in enumerate(nodes):
            if child.type in ("command_substitution", "process_substitution"):
                self._expansion(child, level)
                words.append(read_word(child, self._constants))
            elif child.type in _WORDS:
                words.append(self._word(child, level, secrets=not _pattern(words, position)))
            elif not child.is_named:
                words.append(Word(_text(child)))
            else:
                self.find("unknown", f"a command that is not understood: {_text(node)[:80]}")
                return
        if words:
            self._decoded_operands(words[0], nodes[1:])
            self._command(words)

    def _decoded_operands(self, name: Word, arguments: Sequence[Node]) -> None:
        """A program that opens files is given a name that was made so that it can't be read here."""
        if name.known in NOT_READING:
            return
        for node in arguments:
            variables = {_text(one) for one in _every(node) if one.type == "variable_name"}
            if self._decodes(node) or variables & self._cooked:
                self.find("unknown", f"a file whose name is made at run time: {_text(node)[:80]}")

    def _decodes(self, node: Node) -> bool:
        for inner in _every(node):
            if inner.type == "command_substitution":
                names = {_text(one) for one in _every(inner) if one.type == "command_name"}
                if names & WEAK_DECODERS:
                    return True
        return False

    def _command(self, words: list[Word]) -> None:
        name = words[0].known
        if name is not None and name in self._inside:
            self.find("unknown", f"{name} calls itself")
        elif name is not None and name in self._functions and not known_program(name):
            return
        elif words[0].many and not words[0].text.strip(GAP):
            self.find("unknown", f"which program runs is not known: {shown(words)}")
        else:
            judge_command(self, words)


def _beside_command(node: Node) -> bool:
    """Whether a name is an argument (`read x`), by which a command can set it."""
    parent = node.parent.type if node.parent is not None else ""
    return parent in ("command", "declaration_command", "unset_command")


def _cut_out(operator: Node, node: Node) -> bool:
    """Whether an expansion takes out a piece by plain numbers; other positions are arithmetic."""
    return operator.type == ":" and bool(re.fullmatch(r"\$\{\w+:\s?-?\d+(?::-?\d+)?\}", _text(node)))


def _pattern(words: Sequence[Word], position: int) -> bool:
    """Whether the next word is a pattern, which opens no file."""
    if not words:
        return False
    name = words[0].known
    if name == "find":
        return words[-1].text in FIND_PATTERNS
    return name in ("grep", "egrep", "fgrep", "rg") and all(
        _PATTERNLESS.fullmatch(word.text) for word in words[1:]
    )


_PATTERNLESS: Final = re.compile(r"-[a-dg-zA-Z0-9]+|--(?:include|exclude|exclude-dir|color|colour)(?:=.*)?")
"""Options of grep that neither are a pattern nor name a file of patterns."""


def _within(node: Node) -> Iterator[Node]:
    """The outermost expansions in a word."""
    if node.type in (
        "command_substitution",
        "process_substitution",
        "arithmetic_expansion",
        "translated_string",
    ):
        yield node
        return
    if node.type == "expansion":
        yield node
    for child in node.children:
        yield from _within(child)


_COMMENTED: Final = names(
    "program list compound_statement do_group if_statement elif_clause else_clause case_item subshell while_statement "
    "command_substitution process_substitution pipeline case_statement for_statement redirected_statement"
)


_LITERAL: Final = names("raw_string ansi_c_string comment heredoc_start heredoc_end")
_LIVE_TEXT: Final = re.compile(r"`|\$[A-Za-z_0-9({\[*@#?$!'\"-]")


def _uncovered(root: Node, data: bytes) -> str | None:
    """The first piece of source that no token covers, or that the grammar may have read unlike bash."""
    end = quoted = 0
    heredocs: dict[int, tuple[int, bool]] = {}
    until, literal = 0, False
    for node in _every(root):
        if node.type == "string":
            quoted = max(quoted, node.end_byte)
        if node.type == "comment" and not _comment_stands(node, data):
            return _text(node)[:60]
        if node.type == "heredoc_redirect":
            found = _heredoc(node, data)
            if found is None or node.start_point.row in heredocs:
                return _text(node)[:60]
            heredocs[node.start_point.row] = found
            until, literal = found
        if node.child_count:
            continue
        gap = data[end : node.start_byte]
        # inside quotes and here-documents the grammar leaves text between its nodes
        text = gap.decode("utf-8", "replace")
        inside = node.start_byte < quoted or node.start_byte <= until
        if gap.replace(b"\\\n", b"").strip(b" \t\n") and (not inside or (_runs(text) and not literal)):
            return text[:60]
        if (
            node.is_named
            and node.type not in _LITERAL
            and not _literal_leaf(node, literal)
            and _runs(_text(node))
        ):
            return _text(node)[:60]
        end = max(end, node.end_byte)
    return data[end:].decode("utf-8", "replace").strip(" \t\n") or None


def _literal_leaf(node: Node, literal: bool) -> bool:
    """Whether a piece of a here-document's body stands behind a quoted delimiter."""
    return literal and node.type in ("heredoc_body", "heredoc_content")


def _runs(text: str) -> bool:
    """Whether text holds an expansion that the parser did not make a node of."""
    return _LIVE_TEXT.search(re.sub(r"\\.", "", text, flags=re.DOTALL)) is not None


def _comment_stands(node: Node, data: bytes) -> bool:
    before = data[node.start_byte - 1 : node.start_byte]
    parent = node.parent.type if node.parent is not None else ""
    return (not before or before in b" \t\n;&|()") and parent in _COMMENTED


def _heredoc(node: Node, data: bytes) -> tuple[int, bool] | None:
    """Where a here-document ends, and whether its delimiter is quoted.

    None unless it ends where bash ends it: at the first line that is the delimiter.
    """
    start = next((child for child in node.children if child.type == "heredoc_start"), None)
    end = next((child for child in node.children if child.type == "heredoc_end"), None)
    match = _DELIMITER.fullmatch(_text(start)) if start is not None else None
    if start is None or end is None or match is None:
        return None
    tabs = any(child.type == "<<-" for child in node.children)
    rows = data.split(b"\n")
    for row in range(start.start_point.row + 1, len(rows)):
        line = rows[row].lstrip(b"\t") if tabs else rows[row]
        if line == match[2].encode():
            return (end.end_byte, bool(match[1])) if end.start_point.row == row else None
    return None
