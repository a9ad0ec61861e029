"""A second, independent reading of a script: where its commands begin and end.

The parser of `walk` never fails, and where it differs from bash, a command can hide: it takes a newline for a blank
(`echo =~` newline `rm x` is one command to it), and ignores words after a here-document. This reader only knows the
shape of bash's grammar: quotes, substitutions, here-documents, separators, reserved words. It follows the grammar of
the manual, one function for each production. Anything that it does not know is a `Misread`, never a guess.

`walk` judges what the parser found, and trusts it only if both found the same commands, made of the same words at the
same places. So a script would have to be misread by two readers in the same way.
"""

from __future__ import annotations

import re
from typing import Final

from iact.core.gate.shell.quoting import Misread, Quoting, Shape, Span

_BLANKS: Final = re.compile(r"(?:[ \t]|\\\n)*")
_COMMENT: Final = re.compile(r"#[^\n]*")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=")
_REDIRECTION: Final = re.compile(r"(?:\d+)?(?:<<-|<<<|<<|<>|<&|>>|>&|>\||<|>)|&>>|&>")
_OPENED: Final = re.compile(r"\{[A-Za-z_]\w*\}[<>]|\{[A-Za-z_]\w*\[.*\}[<>]")
_DELIMITER: Final = re.compile(r"(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1(?=[ \t\n;&|()<>]|$)")
_RESERVED: Final = re.compile(
    r"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|in|function|select|coproc|\{|\}|!|\[\[|\]\])"
    r"(?=[ \t\n;&|()<>]|$)"
)
_DECLARES: Final = frozenset({"declare", "typeset", "export", "readonly", "local"})
_BASH_ALONE: Final = re.compile(
    r"\$'|\$\"|\[\[(?![:.=])|&>|<<<|[<>]\(|\|&|\+=|=\(|(?<!\$)\(\(|;&|;;&|\bfunction\b|\bselect\b|\bcoproc\b|>&[^0-9-]"
)
_ENDS: Final = frozenset({")", "then", "elif", "else", "fi", "do", "done", "esac", "}"})


def read(data: bytes, *, posix: bool = False) -> Shape:
    """Return the shape of a script. `posix`: for `sh`, which reads bash's own syntax as something else.

    Raises:
        Misread: the script has something that this reader does not know.
    """
    text = data.decode("latin-1")  # one character for each byte, so that places match the parser's
    if posix and _BASH_ALONE.search(text):
        raise Misread("only bash reads this so")
    reader = _Reader(text, Shape(), 0, len(text))
    try:
        reader.script()
    except RecursionError:
        raise Misread("nested too deep") from None
    return reader.shape


class _Reader(Quoting):
    """Reads the commands of a text."""

    def _script(self, start: int, end: int) -> None:
        _Reader(self._text, self.shape, start, end).script()

    def _substitution(self) -> None:
        inner = _Reader(self._text, self.shape, self._at, self._end)
        inner._list(frozenset({")"}))
        if inner._documents:
            raise Misread("a here-document does not end in its substitution")
        self._at = inner._at

    # --- lists -----------------------------------------------------------------------------------------------

    def script(self) -> None:
        """Read the whole text as a list of commands."""
        if self._list(frozenset()) != "" or self._documents:
            raise Misread("something after the script")

    def _list(self, ends: frozenset[str]) -> str:
        """Read commands up to and including one of `ends`, and return it; "" is the end of the text."""
        while True:
            self._lines()
            if self._at >= self._end:
                if ends:
                    raise Misread("an end is missing")
                return ""

            if word := self._ender():
                if word not in ends:
                    raise Misread(f"{word} out of place")
                # What ends a branch of a case is read by `_case`.
                if not (word == "esac" or word.startswith(";")):
                    self._at += len(word)
                return word

            self._pipeline()
            self._blanks()
            self._separator()

    def _separator(self) -> None:
        """Read what may follow a pipeline in a list, unless it ends the list or is a newline."""
        following = self._text[self._at : self._at + 2]
        if self._at >= self._end or following[0] in "\n)":
            return

        if following in ("&&", "||"):
            self._at += 2
            self._lines()
            if self._at >= self._end or self._ender():
                raise Misread("a command is missing")
            self._pipeline_follows()
            return

        if following[0] not in ";&":
            raise Misread(following)
        if following in (";;", ";&"):
            return

        self._at += 1
        self._blanks()
        after = self._text[self._at : self._at + 2]
        if after[:1] in (";", "&") and after not in (";;", ";&"):
            raise Misread("an empty command")

    def _pipeline_follows(self) -> None:
        """Read a pipeline after `&&` or `||`, and all that are joined to it in the same way."""
        self._pipeline()
        self._blanks()
        if self._text[self._at : self._at + 2] in ("&&", "||"):
            self._at += 2
            self._lines()
            if self._at >= self._end or self._ender():
                raise Misread("a command is missing")
            self._pipeline_follows()

    def _ender(self) -> str:
        """The word that could end a list here."""
        here = self._text[self._at : self._at + 3]
        if here[:1] == ")":
            return ")"
        if here == ";;&":
            return ";;&"
        if here[:2] in (";;", ";&"):
            return here[:2]

        reserved = self._reserved()
        return reserved if reserved in _ENDS else ""

    def _pipeline(self) -> None:
        if self._reserved() == "!":
            self._at += 1
            self._blanks()
            if self._reserved() == "!":
                raise Misread("! !")

        while True:
            self._blanks()
            self._command()
            self._blanks()
            is_pipe = self._text.startswith("|", self._at) and not self._text.startswith("||", self._at)
            if not is_pipe:
                return

            self._at += 2 if self._text.startswith("|&", self._at) else 1
            self._lines()

    # --- blanks ----------------------------------------------------------------------------------------------

    def _blanks(self) -> None:
        """Skip blanks and a comment."""
        self._skip(_BLANKS)
        if self._at >= self._end or self._text[self._at] != "#":
            return

        # Within a word, it is no comment.
        before = self._text[self._at - 1 : self._at]
        if not before or before in " \t\n;&|()":
            self._skip(_COMMENT)

    def _lines(self) -> None:
        """Skip blanks, comments and newlines. After a newline come the texts of here-documents."""
        while True:
            self._blanks()
            if self._at >= self._end or self._text[self._at] != "\n":
                return
            self._newline()

    def _newline(self) -> None:
        self._at += 1
        for delimiter, quoted, tabs in self._documents:
            self._document(delimiter, quoted, tabs)
        self._documents.clear()

    def _document(self, delimiter: str, quoted: bool, tabs: bool) -> None:
        """Read the text of a here-document and its delimiter. `tabs`: those before its lines don't count."""
        start = self._at
        while True:
            if self._at >= self._end:
                raise Misread("a here-document does not end")
            end = self._text.find("\n", self._at, self._end)
            if end < 0:
                end = self._end

            line = self._text[self._at : end]
            if tabs:
                line = line.lstrip("\t")
            if line == delimiter:
                break
            self._at = min(end + 1, self._end)

        if not quoted:
            inner = _Reader(self._text, self.shape, start, self._at)
            inner.expansions()

        # What follows is at the beginning of a line.
        self._at = min(end + 1, self._end)

    # --- commands --------------------------------------------------------------------------------------------

    def _reserved(self) -> str:
        match = _RESERVED.match(self._text, self._at, self._end)
        return match[0] if match else ""

    def _command(self) -> None:
        if self._at >= self._end:
            raise Misread("a command is missing")

        reserved = self._reserved()
        if self._text.startswith("((", self._at):
            start = self._at
            self._at += 2
            self._arithmetic()
            self.shape.conditions.add((start, self._at))
        elif self._text[self._at] == "(":
            self._at += 1
            self._list(frozenset({")"}))
        elif reserved:
            self._compound(reserved)
        else:
            self._simple()
            return

        self._redirections()

    def _compound(self, word: str) -> None:
        start = self._at
        self._at += len(word)
        match word:
            case "{":
                self._list(frozenset({"}"}))
            case "if":
                self._if()
            case "while" | "until":
                self._list(frozenset({"do"}))
                self._list(frozenset({"done"}))
            case "for":
                self._for()
            case "case":
                self._case()
            case "[[":
                self._condition()
                self.shape.conditions.add((start, self._at))
            case "function":
                self._blanks()
                self._name()
                self._blanks()
                if self._text.startswith("()", self._at):
                    self._at += 2
                self._body()
            case _:
                raise Misread(word)

    def _if(self) -> None:
        """Read from after `if` to the end of `fi`."""
        self._list(frozenset({"then"}))
        while True:
            end = self._list(frozenset({"elif", "else", "fi"}))
            if end == "else":
                end = self._list(frozenset({"fi"}))
            if end == "fi":
                return
            self._list(frozenset({"then"}))

    def _redirections(self) -> None:
        """Read the redirections of a compound command; no word may follow it."""
        while True:
            self._blanks()
            if not self._redirection():
                break

        if self._at < self._end and self._text[self._at] not in ";&|\n)":
            raise Misread("words after a compound command")

    def _name(self) -> None:
        name = _NAME.match(self._text, self._at, self._end)
        if name is None:
            raise Misread("a name is missing")

        following = self._text[name.end() : name.end() + 1]
        if following not in (*" \t\n;(", ""):
            raise Misread("a name is missing")
        self._at = name.end()

    def _body(self) -> None:
        """Read the compound command of a function."""
        self._lines()
        is_subshell = self._text.startswith("(", self._at) and not self._text.startswith("((", self._at)
        if not is_subshell and self._reserved() not in ("{", "if", "while", "until", "for", "case"):
            raise Misread("a function's body")
        self._command()

    def _for(self) -> None:
        self._blanks()
        if self._text.startswith("((", self._at):
            self._at += 2
            self._arithmetic(parts=True)
        else:
            self._name()
            self._lines()
            if self._reserved() == "in":
                self._at += 2
                self._blanks()
                while self._at < self._end and self._text[self._at] not in ";\n":
                    self._word()
                    self._blanks()

        self._blanks()
        if self._text.startswith(";", self._at):
            self._at += 1
        self._lines()

        if self._reserved() != "do":
            raise Misread("a loop without do")
        self._at += 2
        self._list(frozenset({"done"}))

    def _case(self) -> None:
        """Read from after `case` to the end of `esac`."""
        self._blanks()
        self._word()
        self._lines()
        if self._reserved() != "in":
            raise Misread("a case without in")
        self._at += 2

        while True:
            self._lines()
            if self._reserved() == "esac":
                self._at += 4
                return

            self._patterns()
            end = self._list(frozenset({";;", ";&", ";;&", "esac"}))
            self._at += len(end)
            if end == "esac":
                return

    def _patterns(self) -> None:
        """Read the patterns of one branch of a case, up to and including their parenthesis."""
        if self._text.startswith("(", self._at):
            self._at += 1

        while True:
            self._blanks()
            self._word()
            self._blanks()
            if self._text.startswith(")", self._at):
                self._at += 1
                return
            if not self._text.startswith("|", self._at):
                raise Misread("a pattern of a case")
            self._at += 1

    def _condition(self) -> None:
        """Read from after `[[` to the end of `]]`."""
        regex = False  # whether the next word is on the right of `=~`
        while True:
            self._skip(_BLANKS)
            if self._at >= self._end or self._text[self._at] in "\n;#":
                raise Misread("a condition that does not end on its line")
            if self._reserved() == "]]":
                self._at += 2
                return

            here = self._text[self._at]
            if self._text[self._at : self._at + 2] in ("&&", "||"):
                self._at += 2
            elif regex:
                self._word(regex=True)
                regex = False
            elif here in "()":
                self._at += 1
            elif here in "<>":
                if self._text[self._at + 1 : self._at + 2] not in (" ", "\t"):
                    raise Misread("a comparison without blanks")
                self._at += 1
            elif here in "&|":
                raise Misread(here)
            else:
                start, end = self._word()
                regex = self._text[start:end] == "=~"

    def _simple(self) -> None:
        """Read assignments, words and redirections in any order, up to a separator."""
        words: list[Span] = []
        while True:
            self._blanks()
            if self._at >= self._end or self._text[self._at] in ";|\n)":
                break
            if _OPENED.match(self._text, self._at, self._end):
                raise Misread("a redirection that sets a variable")

            # Before the `&`, with which a redirection of both outputs begins.
            if self._redirection():
                continue
            if self._text[self._at] == "&":
                break

            if self._text[self._at] == "(":
                if len(words) != 1 or not _NAME.fullmatch(self._text, *words[0]):
                    raise Misread("a parenthesis")
                self._function()
                return

            self._assignment_or_word(words)
        if words:
            self.shape.commands.add(tuple(words))

    def _assignment_or_word(self, words: list[Span]) -> None:
        """Read an assignment, or the next of a command's words. `words`: those before it; it is added to them."""
        start = self._at
        declares = bool(words) and self._text[slice(*words[0])] in _DECLARES
        assignment = _ASSIGNMENT.match(self._text, self._at, self._end)

        can_be_array = assignment is not None and (not words or declares)
        if assignment and can_be_array and self._text[assignment.end() : assignment.end() + 1] == "(":
            self._at = assignment.end()
            self._array()
        else:
            self._word()

        if assignment and not words:
            self.shape.assignments.add((start, self._at))
        else:
            words.append((start, self._at))
            self._timed(words)

    def _timed(self, words: list[Span]) -> None:
        """`time` is a reserved word: what follows it is a pipeline, not an argument."""
        if len(words) > 1 or self._text[slice(*words[0])] != "time":
            return

        self._blanks()
        if self._text.startswith("-p ", self._at):
            self._at += 2
            words.append((self._at - 2, self._at))
            self._blanks()

        assigns = _ASSIGNMENT.match(self._text, self._at, self._end)
        if assigns or self._reserved() or self._text.startswith("(", self._at):
            raise Misread("time before more than a simple command")

    def _function(self) -> None:
        self._at += 1
        self._blanks()
        if not self._text.startswith(")", self._at):
            raise Misread("a parenthesis")
        self._at += 1
        self._body()

    def _array(self) -> None:
        self._at += 1
        while True:
            self._lines()
            if self._at >= self._end:
                raise Misread("an array does not end")

            if self._text[self._at] == ")":
                self._at += 1
                # To bash, text joined to it is still part of the assignment, and the command is the next word.
                if self._text[self._at : self._at + 1] not in (*" \t\n;&|)", ""):
                    raise Misread("a word joined to an array")
                return

            if self._text[self._at] == "[":
                raise Misread("an array with indices")
            self._word()

    def _redirection(self) -> bool:
        """Read a redirection, if there is one here. Returns whether there was."""
        match = _REDIRECTION.match(self._text, self._at, self._end)
        if match is None:
            return False

        # A process substitution is a word.
        operator = match[0].lstrip("0123456789")
        if operator in ("<", ">") and self._text.startswith("(", match.end()):
            if match[0] != operator:
                raise Misread("a number before a process substitution")
            return False

        self._at = match.end()
        if operator in ("<&", ">&") and self._text.startswith("-", self._at):
            self._at += 1
            if self._text[self._at : self._at + 1] not in (*" \t\n;&|)", ""):
                raise Misread("words after a closed descriptor")
            return True

        self._blanks()
        start = self._at
        if operator in ("<<", "<<-"):
            delimiter = _DELIMITER.match(self._text, self._at, self._end)
            if delimiter is None:
                raise Misread("the delimiter of a here-document")
            self._at = delimiter.end()
            self._documents.append((delimiter[2], bool(delimiter[1]), operator == "<<-"))
        else:
            self._word()
        self.shape.targets.add((start, self._at))
        return True
