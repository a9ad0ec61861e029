"""From the syntax tree of a bash script to its findings.

The tree comes from `tree-sitter` with its bash grammar. That parser never fails, so this walk does not trust it: a node
type that is not named here, an error in the tree, source that no token covers, and the few places where the grammar is
known to differ from bash (joined lines, comments, here-documents) are all "not understood". In addition, what was
judged must be what an independent second reader finds in the script (see `reader`): the same commands, made of the same
words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from iact.core.gate.shell import paths
from iact.core.gate.shell.arithmetic import doubts, plain_index
from iact.core.gate.shell.effects import Effect, Finding
from iact.core.gate.shell.handlers import IDENTIFIER, assignable, shown, strange_locale
from iact.core.gate.shell.programs import (
    LISTING,
    NOT_READING,
    WEAK_DECODERS,
    is_pattern,
    judge_command,
    known_program,
)
from iact.core.gate.shell.quoting import Misread, Shape
from iact.core.gate.shell.reader import read
from iact.core.gate.shell.repository import CLOSED
from iact.core.gate.shell.syntax import (
    EXPRESSIONS,
    WORDS,
    behind,
    cut_out,
    every,
    flat,
    runs_any,
    span,
    text_of,
    uncovered,
    within,
)
from iact.core.gate.shell.variables import Variables, number_like
from iact.core.gate.shell.words import GAP, GLOB, Word, names, read_word
from iact.core.gate.shell.writers import write

_LANGUAGE: Final = Language(tree_sitter_bash.language())
_DEEPEST, _DEEPEST_TREE = 6, 150
_PLAIN: Final = names(
    "program list pipeline subshell do_group if_statement elif_clause else_clause while_statement case_statement "
    "case_item negated_command command_substitution process_substitution heredoc_body parenthesized_expression"
)
"""Nodes that are no more than their children."""
_LEAVES: Final = names(
    "string_content variable_name special_variable_name file_descriptor heredoc_start heredoc_end heredoc_content "
    "test_operator array"
)
_EXPANSIONS: Final = names("${ } # ## % %% / // /# /% ^ ^^ , ,, :- - :+ + :? ? $ [ ] @ *")
_NUMBERS: Final = names("$# $? $$ $!")
"""Parameters that hold a number; the last may be empty."""
_COMPARISONS: Final = names("-eq -ne -lt -le -gt -ge")
_ARRAYS: Final = re.compile(r"\b(?:mapfile|readarray)\b|\s-\w*[aA]")
"""What could make a variable an array, besides a list of its elements."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Walk:
    """Judges one script, and the scripts in it."""

    def __init__(self, *, depth: int = 0, posix: bool = False) -> None:
        self.findings: list[Finding] = []
        self.written: list[str] = []
        self._depth = depth
        """How many scripts this one is within."""
        self._posix = posix
        """Whether `sh` runs it."""
        self._judged = Shape()
        """What was judged, to be compared with what the second reader finds."""
        self._variables = Variables(())
        self._arrays = False
        """Whether something could make a variable an array."""
        self._reopened = False
        """Whether something opens the target of one of its descriptors for writing."""
        self._redirected = False
        """Whether something leads a descriptor to a file."""
        self._sought = False
        """Whether `find` looks for names of secrets."""
        self._unnamed = False
        """Whether something reads files that the script does not name."""
        self._functions: set[str] = set()
        """Names of functions that the script has defined."""
        self._inside: list[str] = []
        """The functions and the running commands around this place."""
        self._cooked: set[str] = set()
        """Variables that hold the output of a decoder."""
        self._decoded = False
        """Whether a command's output can't be read from the script."""
        self._consumed = False
        """Whether a command takes names from its input."""

    # --- called by handlers of programs -----------------------------------------------------------------------

    def find(self, effect: Effect, what: str) -> None:
        """Note one thing that the script can do."""
        self.findings.append(Finding(effect, what))

    def writes(self, path: str) -> None:
        """Note a file that the script writes."""
        self.written.append(path)

    def run(self, words: Sequence[Word]) -> None:
        """Judge a command that another one runs."""
        if len(self._inside) > 40:
            self.find("unknown", "commands that run commands, too deep")
            return

        self._inside.append("")
        self._command(list(words))
        self._inside.pop()

    def script(self, text: str, *, posix: bool = False) -> bool:
        """Judge a script in this one. `posix`: for `sh`. Returns whether it only reads."""
        inner = Walk(depth=self._depth + 1, posix=posix or self._posix)
        inner.judge(text)
        self.findings.extend(inner.findings)
        self.written.extend(inner.written)

        for name in inner._variables.names():
            self._variables.set_by_command(name)
        self._reopened = self._reopened or inner._reopened
        self._redirected = self._redirected or inner._redirected
        self._sought = self._sought or inner._sought
        self._unnamed = self._unnamed or inner._unnamed

        # Definitions and decoded texts are not followed across the border.
        if inner._decoded or inner._functions:
            self.find("unknown", "a script within the script defines or decodes something")
            return False
        return not inner.findings

    def consume(self) -> None:
        """Note that a command takes names from its input."""
        self._consumed = True

    def decode(self) -> None:
        """Note that a command's output can't be read from the script."""
        self._decoded = True

    def sets(self, name: str) -> None:
        """Note that a command sets a variable."""
        self._variables.set_by_command(name)

    def reopens(self) -> None:
        """Note that a command opens the target of one of its descriptors for writing."""
        self._reopened = True

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

        passed_over = uncovered(root, data)
        if passed_over is not None:
            self.find("unknown", f"a part of the script that the parser passed over: {passed_over}")
            return

        nodes = list(every(root))
        self._variables = Variables(nodes)
        self._arrays = any(node.type == "array" for node in nodes) or _ARRAYS.search(source) is not None
        self._visit(root, 0)
        self._compare(data)
        self._weigh(nodes)

    def _weigh(self, nodes: Sequence[Node]) -> None:
        """Find what no single command does, but several of them together."""
        substitutes = any(node.type in ("command_substitution", "process_substitution") for node in nodes)
        if self._decoded and (self._consumed or substitutes):
            self.find("unknown", "uses a decoded text")

        if doubtful := self._variables.doubtful():
            self.find("unknown", f"sets {doubtful[0][:60]} more than once, and uses it")

        # The outermost script alone knows all of it: each of the two may be in another script within it.
        if self._depth > 0:
            return
        if self._reopened and self._redirected:
            self.find("unknown", "opens a descriptor of its own for writing, while one leads to a file")
        if self._sought and self._unnamed:
            self.find("authority", "looks for files that hold secrets, and reads files that it does not name")

    def _compare(self, data: bytes) -> None:
        """Check that what was judged is what the second reader finds."""
        try:
            shape = read(data, posix=self._posix)
        except Misread as problem:
            self.find("unknown", f"not understood by the second reader: {problem}")
            return

        if shape != self._judged:
            self.find("unknown", "the two readers do not agree where commands begin and end")

    # --- nodes -----------------------------------------------------------------------------------------------

    def _visit(self, node: Node, level: int) -> None:
        if level > _DEEPEST_TREE:
            self.find("unknown", "nested too deep")
        elif not node.is_named:
            return
        elif node.type in _PLAIN:
            self._children(node, level)
        elif node.type in WORDS:
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
            case "redirected_statement":
                self._redirected_statement(node, level)
            case "compound_statement":
                self._compound(node, level)
            case "for_statement":
                self._loop(node, level)
            case "c_style_for_statement":
                self._counting_loop(node, level)
            case "variable_assignment":
                self._assignment(node, level, exported=False)
            case "variable_assignments":
                self._children(node, level)
            case "declaration_command":
                self._declaration(node, level)
            case "unset_command":
                self._record([node.children[0], *node.named_children])
                self.run([Word("unset"), *(read_word(child, {}) for child in node.named_children)])
                self._children(node, level)
            case "test_command":
                self._test(node, level)
            case "function_definition":
                self._function(node, level)
            case "file_redirect":
                self._redirect(node, level)
            case "heredoc_redirect":
                self._document(node, level)
            case "herestring_redirect":
                self._judged.targets.add(span(node.named_children[-1]))
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
        """Judge what a word does while it is expanded, and return it. `secrets`: whether it could name a file."""
        for inner in within(node):
            self._expansion(inner, level)

        word = read_word(node, self._variables.constants)
        if secrets and paths.secret(word.text):
            self.find("authority", f"names a secret: {shown([word])}")
        if paths.connection(word.text):
            self.find("send", f"names a connection: {shown([word])}")
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
                    elif child.type == "subscript" and not plain_index(child):
                        self.find("unknown", f"an index that is not understood: {text_of(child)[:80]}")

            case _:
                self.find("unknown", f"an expansion that is not understood: {text_of(node)[:80]}")

    def _arithmetic(self, node: Node, level: int) -> None:
        """Arithmetic evaluates the texts of variables, and runs commands that it finds there."""
        for doubt in doubts(node, self._variables.numeric):
            self.find("unknown", f"arithmetic over a text that is not known: {text_of(doubt)[:80]}")

        for inner in every(node):
            if inner.type == "command_substitution":
                self._children(inner, level + 1)

    # --- statements -----------------------------------------------------------------------------------------

    def _compound(self, node: Node, level: int) -> None:
        if node.children and node.children[0].type == "((":
            self._judged.conditions.add(span(node))
            for child in node.named_children:
                self._arithmetic(child, level + 1)
        else:
            self._children(node, level)

    def _loop(self, node: Node, level: int) -> None:
        """`for NAME in …`. A `select`, which the grammar has as the same node, asks for input."""
        name = node.named_children[0]
        if node.children[0].type != "for" or not assignable(text_of(name), exported=False):
            self.find("unknown", f"a loop over a variable that programs watch: {text_of(node)[:60]}")

        entered = self._variables.enter(node)
        self._children(node, level)
        self._variables.leave(entered, node)

    def _counting_loop(self, node: Node, level: int) -> None:
        """`for ((…; …; …))`: its first part always runs before the rest."""
        first = node.named_children[0]
        counts = first.type == "variable_assignment"
        if counts:
            self._arithmetic(first.named_children[-1], level)
            if not assignable(text_of(first.named_children[0]), exported=False):
                self.find("unknown", f"a loop over a variable that programs watch: {text_of(node)[:60]}")

        entered = self._variables.enter(node) if counts else ""
        for child in node.named_children[counts:]:
            if child.type == "do_group":
                self._visit(child, level + 1)
            else:
                self._arithmetic(child, level)

        if counts:
            self._variables.leave(entered, node)

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
            if exported and strange_locale(name, read_word(value, self._variables.constants).text):
                self.find(
                    "unknown", f"sets {name}, by which programs find their texts: {text_of(value)[:60]}"
                )
            if runs_any(value, WEAK_DECODERS):
                self._cooked.add(name)

        self._variables.assigned(node)

        # In a declaration, it is a word of the command.
        if node.parent is None or node.parent.type != "declaration_command":
            self._judged.assignments.add(span(node))

    def _declaration(self, node: Node, level: int) -> None:
        self._record([node.children[0], *node.named_children])
        keyword = node.children[0].type
        if keyword == "readonly":
            self.find("unknown", "sets a variable for good, also for later scripts")

        # All options first: one that exports concerns the names before it, too.
        exported = keyword == "export"
        for child in node.named_children:
            if not _is_option(child):
                continue
            option = text_of(child)
            if re.fullmatch(r"-[gaAxp]+|-[fFp]+", option) is None or (keyword == "export" and "f" in option):
                self.find("unknown", f"{keyword} with an option that is not understood: {option[:60]}")
            exported = exported or "x" in option

        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assignment(child, level, exported=exported)
                if keyword != "export" and self._evaluated(child, keyword, text_of(node)):
                    self.find(
                        "unknown", f"{keyword} of what could be a list, which is run: {text_of(child)[:60]}"
                    )
            elif not _is_option(child):
                self._declared(text_of(child), keyword, exported=exported)

    def _declared(self, name: str, keyword: str, *, exported: bool) -> None:
        """Judge a name that is declared without a value."""
        if keyword not in ("export", "readonly"):
            self.sets(name)
        if not IDENTIFIER.fullmatch(name) or not assignable(name, exported=exported):
            self.find("unknown", f"{keyword} of {name[:60]}, which changes what programs do")

    def _evaluated(self, node: Node, keyword: str, declaration: str) -> bool:
        """Whether a declaration could take a text for the list of an array's elements, which bash expands again.

        It does so if the variable is an array, even one from an earlier script. A local variable is new.
        """
        value = node.named_children[-1]
        if node.named_child_count == 1 or value.type == "array":
            return False

        as_array = re.search(r"\s-\w*[aA]", declaration) is not None
        if as_array:
            return True

        word = read_word(value, self._variables.constants)
        could_be_list = word.many or word.loose or word.text.startswith(("(", GAP, GLOB))
        new = keyword == "local" and not self._arrays and not word.text.startswith("(")
        return could_be_list and not new and not number_like(value)

    def _test(self, node: Node, level: int) -> None:
        if node.children[0].type == "[":
            nodes = [node.children[0], *flat(node.children[1:-1]), node.children[-1]]
            self._words_of_command(node, nodes, level)
            return

        self._judged.conditions.add(span(node))
        for inner in every(node):
            if inner.type != "test_operator":
                continue
            operator = text_of(inner)
            if operator in ("-v", "-R"):
                self.find("unknown", "a test of a variable by name")
            elif operator in _COMPARISONS and inner.parent is not None:
                for operand in inner.parent.named_children:
                    self._arithmetic(operand, level)

        for child in node.named_children:
            self._operands(child, level)

    def _operands(self, node: Node, level: int) -> None:
        """Judge the words of a test."""
        if node.type in EXPRESSIONS:
            for child in node.named_children:
                self._operands(child, level + 1)
        elif node.type in WORDS or node.type == "command_substitution":
            self._visit(node, level + 1)
        elif node.type not in _LEAVES:
            self.find("unknown", f"a test that is not understood: {text_of(node)[:80]}")

    def _function(self, node: Node, level: int) -> None:
        name = text_of(node.named_children[0])
        if known_program(name):
            self.find("unknown", f"defines {name[:60]} anew")

        self._inside.append(name)
        self._children(node, level)
        self._inside.pop()

        # Elsewhere it may be defined or not when it is called.
        if node.parent is not None and node.parent.type == "program":
            self._functions.add(name)

    def _redirected_statement(self, node: Node, level: int) -> None:
        """The grammar treats words after a redirection as a part of it; they belong to the command."""
        body = node.child_by_field_name("body")
        after = [word for redirect in node.children_by_field_name("redirect") for word in behind(redirect)]

        command = body if body is not None and body.type == "command" else None
        if command is not None:
            self._simple_command(command, level + 1, after)
        elif after:
            self._words_of_command(node, after, level)

        for child in node.children:
            if command is None or child.id != command.id:
                self._visit(child, level + 1)

    def _document(self, node: Node, level: int) -> None:
        """A here-document. The tree treats the rest of its line as a part of it."""
        words = {word.id for word in behind(node)}
        for child in node.children:
            if child.type == "heredoc_start":
                self._judged.targets.add(span(child))
            elif child.id not in words:
                self._visit(child, level + 1)

    def _redirect(self, node: Node, level: int) -> None:
        operator = next((child.type for child in node.children if not child.is_named), "")
        targets = [child for child in node.named_children if child.type != "file_descriptor"]
        if targets:
            # What follows the target are words of the command (`behind`).
            self._redirect_to(targets[0], operator, node, level)
        elif operator not in (">&-", "<&-"):
            self.find("unknown", f"a redirection that is not understood: {text_of(node)}")

    def _redirect_to(self, target: Node, operator: str, node: Node, level: int) -> None:
        """Judge a redirection, whose node is `node`, to or from a target."""
        self._judged.targets.add(span(target))
        word = self._word(target, level) if target.type in WORDS else Word(GAP)
        is_descriptor = re.fullmatch(r"\d+-?|-", word.text) is not None

        if target.type == "process_substitution":
            self._expansion(target, level)
        elif not paths.harmless(word.text) and not is_descriptor:
            self._redirected = True

        if paths.network(word.text):
            self.find("send", f"opens a connection: {text_of(node)}")
        elif operator == "<" or (operator in (">&", "<&") and is_descriptor):
            return
        elif operator in (">", ">>", ">|", "&>", "&>>", ">&"):
            if target.type != "process_substitution":
                write(self, word, appends=">>" in operator)
        else:
            self.find("unknown", f"a redirection that is not understood: {text_of(node)}")

    # --- commands --------------------------------------------------------------------------------------------

    def _record(self, nodes: Sequence[Node]) -> None:
        """Record the words of a command that was judged."""
        self._judged.commands.add(tuple(span(node) for node in nodes))

    def _simple_command(self, node: Node, level: int, after: Sequence[Node] = ()) -> None:
        """Judge a simple command. `after`: words of it that are elsewhere in the tree."""
        nodes: list[Node] = list(after)
        closed = False
        reads = any(child.type == "command_name" and text_of(child) == "read" for child in node.children)

        for child in node.children:
            if child.type == "variable_assignment":
                text = text_of(child)
                if reads and re.fullmatch(r"IFS=(?:|'[^']*'|\$'[^']*'|\S)", text):
                    self._judged.assignments.add(span(child))
                elif text == CLOSED:
                    self._judged.assignments.add(span(child))
                    closed = True
                else:
                    self._assignment(child, level, exported=True)

            elif child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                self._visit(child, level + 1)
                nodes.extend(behind(child))

            elif child.type == "command_name":
                nodes.append(child.named_children[0] if child.named_child_count == 1 else child)
            elif child.is_named or child.type not in (";", "&", "\n"):
                nodes.append(child)

        # `GIT_ALLOW_PROTOCOL=none git …` is judged as `env` with it, which knows what it means for git.
        before = (Word("env"), Word(CLOSED)) if closed else ()
        in_order = sorted(nodes, key=lambda word: word.start_byte)
        self._words_of_command(node, in_order, level, before)

    def _words_of_command(
        self, node: Node, nodes: Sequence[Node], level: int, before: Sequence[Word] = ()
    ) -> None:
        """Judge a command whose words are `before` followed by `nodes`."""
        words: list[Word] = []
        if nodes:
            self._record(nodes)

        for child in nodes:
            if child.type in ("command_substitution", "process_substitution"):
                self._expansion(child, level)
                words.append(Word(GAP) if number_like(child) else read_word(child, {}))
            elif child.type in WORDS:
                words.append(self._word_of_command(child, words, level))
            elif not child.is_named or child.type == "test_operator":
                words.append(Word(text_of(child)))
            else:
                self.find("unknown", f"a command that is not understood: {text_of(node)[:80]}")
                return

        if words:
            self._decoded_operands(words[0], nodes[1:])
            self._command([*before, *words])

    def _word_of_command(self, node: Node, before: Sequence[Word], level: int) -> Word:
        """Judge one word of a command. `before`: those before it."""
        pattern = is_pattern(before)
        word = self._word(node, level, secrets=not pattern)
        if text_of(node) in _NUMBERS:
            word = Word(GAP, many=text_of(node) == "$!")
        if self._variables.number(node):
            word = Word(GAP)

        if pattern and before[0].known == "find" and paths.secret(word.text):
            self._sought = True
        return word

    def _decoded_operands(self, name: Word, arguments: Sequence[Node]) -> None:
        """Note a program that opens files, if it is given a name that can't be read from the script."""
        if name.known in NOT_READING:
            return

        for node in arguments:
            variables = {text_of(inner) for inner in every(node) if inner.type == "variable_name"}
            if runs_any(node, WEAK_DECODERS) or variables & self._cooked:
                self.find("unknown", f"a file whose name is made at run time: {text_of(node)[:80]}")

    def _command(self, words: list[Word]) -> None:
        name = words[0].known
        if name is not None and name in self._inside:
            self.find("unknown", f"{name} calls itself")
            return

        # What a function does was judged where it was defined.
        if name is not None and name in self._functions and not known_program(name):
            return

        if words[0].many and not words[0].text.strip(GAP):
            self.find("unknown", f"which program runs is not known: {shown(words)}")
            return

        opens_files = name not in NOT_READING and name not in LISTING
        if opens_files and any(word.loose for word in words[1:]):
            self._unnamed = True
        judge_command(self, words)


def _is_option(node: Node) -> bool:
    """Whether a word of a declaration is an option."""
    return node.type == "word" and text_of(node).startswith("-")
