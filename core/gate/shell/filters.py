"""Programs with a language of their own, sed and awk: recognizes scripts that only read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from iact.core.gate.shell.handlers import Runner, shown
from iact.core.gate.shell.words import Word
from iact.core.gate.shell.writers import written

_SET: Final = r"\[\^?\]?(?:\[:\w+:\]|\\[^\]\n]|(?!%s)[^\]\\\n\[])*\]"
"""A bracket expression without the delimiter `%s`. Inside one, some seds do not treat it as the delimiter."""
_ADDRESS: Final = rf"(?:\d+|\$|/(?:\\.|{_SET % '/'}|[^/\\\n\[])*/I?|\d+~\d+|\+\d+)"
_SED_S: Final = (
    rf"s(?P<d>[/|,#:@!_%])(?:\\.|{_SET % '(?P=d)'}|(?!(?P=d))[^\\\n\[])*(?P=d)"
    r"(?:(?!(?P=d))[^\\\n]|\\.)*(?P=d)[gpiImM0-9]*"
)
_SED_TEXT: Final = r"[aic][ \t]*\\?[ \t]*[^\\\n]*(?=\n|\Z)|:[ \t]*\w+|[btT](?:[ \t]*\w+)?"
"""Text that is printed, up to the end of the line; a label; a jump to a label."""
_SED: Final = re.compile(
    rf"\s*(?:{_ADDRESS}(?:,{_ADDRESS})?)?\s*!?\s*\{{?\s*"
    rf"(?:[pdDPgGhHxnN=lqQzF]\d*|{_SED_S}|{_SED_TEXT}|y/[^/\\\n]*/[^/\\\n]*/)?\s*\}}?\s*(?:[;\n]|$)",
    re.DOTALL,
)


_SED_QUIET: Final = re.compile(r"-[nErsuz]+|--quiet|--silent|--regexp-extended|--posix|--null-data")
"""Options of sed that change only how it reads its script and what it prints."""


def _sed_looks(script: str) -> bool:
    """Whether a sed script only prints: no `w`, `e`, `r`, `a`, no file and no command."""
    position = 0
    while position < len(script):
        match = _SED.match(script, position)
        if match is None or match.end() == position:
            return False
        position = match.end()
    return True


def sed(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    scripts: list[Word] = []
    files: list[Word] = []
    in_place = False
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        text = word.text
        if re.fullmatch(r"-[nErsuz]*e|--expression", text) and word.known and rest:
            scripts.append(rest.pop(0))
        elif word.known and text.startswith(("-e", "--expression=")):
            scripts.append(Word(text.removeprefix("--expression=").removeprefix("-e")))
        elif word.known and re.fullmatch(r"-[nErsuz]*i.*|--in-place(=.*)?", text):
            in_place = True
        elif word.known and _SED_QUIET.fullmatch(text):
            continue
        elif (word.loose and not scripts) or (text.startswith("-") and len(text) > 1):
            runner.find("unknown", f"sed {shown(arguments)}")
            return
        elif not scripts:
            scripts.append(word)
        else:
            files.append(word)

    only_prints = all(word.known is not None and _sed_looks(word.known) for word in scripts)
    if not scripts or not only_prints or any(word.loose for word in files):
        runner.find("unknown", f"a sed script that is not understood: {shown(arguments)}")
    if in_place:
        written(runner, "edits in place", files, "destroy")


def awk(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    rest = list(arguments)
    while rest and rest[0].text.startswith("-") and not rest[0].loose:
        option = rest.pop(0)
        if option.text in ("-F", "-v") and rest:
            if rest.pop(0).many:
                runner.find("unknown", f"awk with {shown(arguments)}")
                return
        elif not re.match(r"-[Fv].", option.text):
            runner.find("unknown", f"awk with {shown([option])}")
            return
    program = rest[0].known if rest else None
    if program is None or not _awk_looks(program):
        runner.find("unknown", f"an awk program that is not understood: {shown(arguments)}")


_AWK: Final = re.compile(
    r"""(?P<blank>[ \t]+|\#[^\n]*)|(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<number>\d+\.?\d*|\.\d+)"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<operator>\|\||&&|==|!=|<=|>=|!~|\+\+|--|[-+*%^/]=|[\n{}()\[\],;<>!~?:=+*%^$|&@-])"""
    r"""|(?P<slash>/)"""
)
_AWK_REGEX: Final = re.compile(r"/(?:\\.|\[\^?\]?(?:\[:\w+:\]|[^\]\\/\n\[])*\]|[^/\\\n\[])+/")
_AWK_ACTS: Final = frozenset(
    {
        "system",
        "getline",
        "close",
        "fflush",
        "ARGV",
        "ARGC",
        "PROCINFO",
        "include",
        "load",
        "function",
        "func",
    }
)

_AWK_OPENS: Final = frozenset({"", "\n", *"{(,;!~=<>?:", "&&", "||", "==", "!=", "<=", ">=", "!~"})
_AWK_ENDS: Final = frozenset({")", "]", "1", '"', "++", "--", "$"})
"""What a statement can end with. After anything else, versions of awk differ about whether a newline ends it."""
_AWK_WORDS: Final = frozenset({"print", "printf", "return", "in", "length", "do", "else", "delete", "case"})


def _awk_looks(program: str) -> bool:
    """Whether an awk program runs nothing, writes no file and opens none.

    A slash begins a regular expression only where no value precedes it. Where that is unclear, the program is not
    understood.
    """
    position = depth = 0
    printing = False
    before = ""
    while position < len(program):
        match = _AWK.match(program, position)
        if match is None:
            return False
        token = match[0]
        position = match.end()
        if match.lastgroup == "blank":
            continue

        may_name_file = printing and depth == 0  # in parentheses, `>` compares
        if match.lastgroup == "slash":
            follows_value = before in (")", "]", "1") or (before.isidentifier() and before not in _AWK_WORDS)
            if before in _AWK_OPENS:
                regex = _AWK_REGEX.match(program, match.start())
                if regex is None:
                    return False
                position = regex.end()
                token = '"'
            elif not follows_value:
                return False

        elif token in ("|", "&", "@") or token in _AWK_ACTS or (token == ">" and may_name_file):
            return False
        elif token in ("print", "printf"):
            printing = True
            depth = 0
        elif token in "([":
            depth += 1
        elif token in ")]":
            depth -= 1
        elif token in ";}" or (token == "\n" and (before in _AWK_ENDS or before.isidentifier())):
            printing = False

        before = {"number": "1", "text": '"'}.get(match.lastgroup or "", token)
    return True
