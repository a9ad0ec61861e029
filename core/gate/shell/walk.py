"""From the syntax tree of a bash script to its findings.

The tree comes from `tree-sitter` with its bash grammar. That parser never fails, so this walk trusts
it with nothing: a type of node that is not named here, an error in the tree, source that no token
covers, and the few places where the grammar is known to differ from bash (joined lines, comments,
here-documents) are all "not understood".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from core.gate.shell import paths
from core.gate.shell.effects import Effect, Finding
from core.gate.shell.handling import IDENTIFIER, assignable, shown
from core.gate.shell.programs import NOT_READING, WEAK_DECODERS, judge_command, known_program
from core.gate.shell.running import FIND_PATTERNS
from core.gate.shell.syntax import beside_command, cut_out, every, text_of, uncovered, within
from core.gate.shell.words import GAP, Word, names, read_word
from core.gate.shell.writing import write

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
        if (wrong := uncovered(root, data)) is not None:
            self.find("unknown", f"a part of the script that the parser passed over: {wrong}")
            return
        self._prepare(root)
        self._visit(root, 0)
        substitutes = any(
            node.type in ("command_substitution", "process_substitution") for node in every(root)
        )
        if self._decoded and (self._consumed or substitutes):
            self.find("unknown", "uses a decoded text")

    def _prepare(self, root: Node) -> None:
        """Which variables hold numbers only, and how often each is assigned."""
        values: dict[str, list[bool]] = {}
        firm: set[str] = set()
        named: set[str] = set()
        for node in every(root):
            if node.type == "variable_assignment" and node.named_children:
                name = text_of(node.named_children[0])
                value = node.named_children[-1] if node.named_child_count > 1 else None
                values.setdefault(name, []).append(value is not None and self._number_like(value))
                if node.parent is not None and node.parent.type in ("program", "c_style_for_statement"):
                    firm.add(name)
            elif node.type == "for_statement":
                items = [child for child in node.named_children[1:] if child.type != "do_group"]
                values.setdefault(text_of(node.named_children[0]), []).append(
                    bool(items) and all(self._number_like(one) for one in items)
                )
                if items and all(one.type in ("number", "brace_expression", "word") for one in items):
                    firm.add(text_of(node.named_children[0]))
            elif node.type in ("word", "variable_name") and beside_command(node):
                named.add(text_of(node))
        self._numeric = frozenset(
            name for name, one in values.items() if all(one) and name in firm and name not in named
        )
        self._assigned = {name: len(one) + (name in named) for name, one in values.items()}
        if "HOME" not in values:
            self._constants["HOME"] = "~"

    def _number_like(self, node: Node) -> bool:
        if node.type in ("number", "arithmetic_expansion", "brace_expression", "binary_expression"):
            return (
                node.type != "brace_expression" or re.fullmatch(r"\{\d+\.\.\d+\}", text_of(node)) is not None
            )
        if node.type == "command_substitution":
            return (
                re.search(
                    r"(?:^\$\(|\|)\s*(?:wc -[lcw]|nproc|date \+%s|seq \d+ \d+)[^|;&]*\)$", text_of(node)
                )
                is not None
            )
        return re.fullmatch(r"-?\d+|\{\d+\.\.\d+\}", text_of(node)) is not None

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
                    "unknown", f"a piece of shell that is not understood ({node.type}): {text_of(node)[:80]}"
                )

    def _word(self, node: Node, level: int, *, secrets: bool = True) -> Word:
        """Judge what a word does while it is expanded, and give it."""
        for inner in within(node):
            self._expansion(inner, level)
        word = read_word(node, self._constants)
        if secrets and paths.secret(word.text):
            self.find("authority", f"names a secret: {shown([word])}")
        return word

    def _expansion(self, node: Node, level: int) -> None:
        match node.type:
            case "command_substitution" | "process_substitution":
                if text_of(node).startswith("`") and "\\" in text_of(node):
                    self.find("unknown", f"escapes within backticks: {text_of(node)[:80]}")
                self._children(node, level + 1)
            case "arithmetic_expansion":
                for child in node.named_children:
                    self._arithmetic(child, level + 1)
            case "expansion":
                for child in node.children:
                    if not child.is_named and child.type not in _EXPANSIONS and not cut_out(child, node):
                        self.find("unknown", f"an expansion that is not understood: {text_of(node)[:80]}")
                    elif child.type == "subscript":
                        self._subscript(child)
            case _:
                self.find("unknown", f"an expansion that is not understood: {text_of(node)[:80]}")

    def _subscript(self, node: Node) -> None:
        """The index of an array is arithmetic."""
        if re.fullmatch(r"\w+\[(?:\d+|@|\*)\]", text_of(node), re.ASCII) is None:
            self.find("unknown", f"an index that is not understood: {text_of(node)[:80]}")

    def _arithmetic(self, node: Node, level: int) -> None:
        """Arithmetic evaluates the texts of variables, and runs commands that it finds there."""
        text = text_of(node)
        match node.type:
            case "number":
                return
            case "variable_name" | "word" | "simple_expansion" | "expansion":
                name = text.removeprefix("$").removeprefix("{").removesuffix("}")
                if name in self._numeric or re.fullmatch(r"\d+|\$[#?$!]|\$\{#\w+(?:\[[@*]\])?\}", text):
                    return
            case "variable_assignment":
                name = text_of(node.named_children[0])
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
        if node.children[0].type != "for" or not assignable(text_of(node.named_children[0]), exported=False):
            self.find("unknown", f"a loop over a variable that programs watch: {text_of(node)[:60]}")
        self._children(node, level)

    def _assignment(self, node: Node, level: int, *, exported: bool) -> None:
        name = text_of(node.named_children[0])
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
            text = text_of(child)
            if child.type == "word" and text.startswith("-"):
                if re.fullmatch(r"-[rgaAxp]+", text) is None:
                    self.find("unknown", f"{keyword} with an option that is not understood: {text[:60]}")
                exported = exported or "x" in text
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assignment(child, level, exported=exported)
            elif child.type != "word" or not text_of(child).startswith("-"):
                name = text_of(child)
                if not IDENTIFIER.fullmatch(name) or not assignable(name, exported=exported):
                    self.find("unknown", f"{keyword} of {name[:60]}, which changes what programs do")

    def _test(self, node: Node, level: int) -> None:
        double = node.children[0].type == "[["
        for inner in every(node):
            text = text_of(inner)
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
            self.find("unknown", f"a test that is not understood: {text_of(node)[:80]}")

    def _function(self, node: Node, level: int) -> None:
        name = text_of(node.named_children[0])
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
                self.find("send", f"opens a connection: {text_of(node)}")
            elif operator == "<" or (operator in (">&", "<&") and re.fullmatch(r"\d+-?|-", word.text)):
                continue
            elif operator in (">", ">>", ">|", "&>", "&>>", ">&"):
                if target.type != "process_substitution":
                    write(self, word, appends=">>" in operator)
            else:
                self.find("unknown", f"a redirection that is not understood: {text_of(node)}")
        for more in targets[1:]:
            # the grammar takes words behind the target into the redirection
            self.find("unknown", f"words behind a redirection: {text_of(more)[:80]}")
        if not targets and operator not in (">&-", "<&-"):
            self.find("unknown", f"a redirection that is not understood: {text_of(node)}")

    # --- commands --------------------------------------------------------------------------------------------

    def _simple_command(self, node: Node, level: int) -> None:
        words: list[Word] = []
        nodes: list[Node] = []
        reads = any(child.type == "command_name" and text_of(child) == "read" for child in node.children)
        for child in node.children:
            if child.type == "variable_assignment":
                if reads and re.fullmatch(r"IFS=(?:|'[^']*'|\$'[^']*'|\S)", text_of(child)):
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
                words.append(Word(text_of(child)))
            else:
                self.find("unknown", f"a command that is not understood: {text_of(node)[:80]}")
                return
        if words:
            self._decoded_operands(words[0], nodes[1:])
            self._command(words)

    def _decoded_operands(self, name: Word, arguments: Sequence[Node]) -> None:
        """A program that opens files is given a name that was made so that it can't be read here."""
        if name.known in NOT_READING:
            return
        for node in arguments:
            variables = {text_of(one) for one in every(node) if one.type == "variable_name"}
            if self._decodes(node) or variables & self._cooked:
                self.find("unknown", f"a file whose name is made at run time: {text_of(node)[:80]}")

    def _decodes(self, node: Node) -> bool:
        for inner in every(node):
            if inner.type == "command_substitution":
                names = {text_of(one) for one in every(inner) if one.type == "command_name"}
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
