"""Programs with a language of their own: sed and awk, by the scripts that only look."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from core.gate.shell.handling import Runner, shown
from core.gate.shell.words import Word
from core.gate.shell.writing import written

_ADDRESS: Final = r"(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?|\d+~\d+|\+\d+)"
_SED_S: Final = (
    r"s(?P<d>[/|,#:@!_%])(?:(?!(?P=d))[^\\\n]|\\.)*(?P=d)(?:(?!(?P=d))[^\\\n]|\\.)*(?P=d)[gpiI0-9]*"
)
_SED: Final = re.compile(
    rf"\s*(?:{_ADDRESS}(?:,{_ADDRESS})?)?\s*!?\s*\{{?\s*"
    rf"(?:[pdDPgGhHxnN=lq]\d*|{_SED_S}|y/[^/\n]*/[^/\n]*/)?\s*\}}?\s*(?:[;\n]|$)",
    re.DOTALL,
)


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
        if text in ("-e", "--expression") and rest:
            scripts.append(rest.pop(0))
        elif word.known and re.fullmatch(r"-[nErsuz]*i.*|--in-place(=.*)?", text):
            in_place = True
        elif word.known and re.fullmatch(
            r"-[nErsuz]+|--quiet|--silent|--regexp-extended|--posix|--null-data", text
        ):
            continue
        elif (word.loose and not scripts) or (text.startswith("-") and len(text) > 1):
            runner.find("unknown", f"sed {shown(arguments)}")
            return
        elif not scripts:
            scripts.append(word)
        else:
            files.append(word)
    if (
        any(word.loose for word in files)
        or not scripts
        or not all(word.known is not None and _sed_looks(word.known) for word in scripts)
    ):
        runner.find("unknown", f"a sed script that is not understood: {shown(arguments)}")
    if in_place:
        written(runner, "edits in place", files, "destroy")


def awk(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    rest = list(arguments)
    while rest and rest[0].text.startswith("-") and not rest[0].loose:
        option = rest.pop(0)
        if option.text in ("-F", "-v") and rest:
            rest.pop(0)
        elif not re.match(r"-[Fv].", option.text):
            runner.find("unknown", f"awk with {shown([option])}")
            return
    program = rest[0].known if rest else None
    if program is None or not _awk_looks(program):
        runner.find("unknown", f"an awk program that is not understood: {shown(arguments)}")


def _awk_looks(program: str) -> bool:
    """Whether an awk program runs nothing, writes no file and opens none."""
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', program) if "/" not in program else program
    if re.search(r"system|getline|@|fflush|close|\|&|(?<!\|)\|(?!\|)|printf?[^;}\n]*>", text):
        return False
    return not re.search(r">>|>\s*[\"$/]|>\s*\(", text)
