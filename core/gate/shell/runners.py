"""Programs that run other programs: what they run is judged instead."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from iact.core.gate.shell import paths, repository
from iact.core.gate.shell.handlers import Runner, assignable, shown, strange_locale
from iact.core.gate.shell.options import OptionTable, parse
from iact.core.gate.shell.words import GAP, GLOB, Word, names

WRAPPERS: Final[Mapping[str, tuple[OptionTable, int]]] = {
    "nohup": (OptionTable(), 0),
    "time": (parse("-p"), 0),
    "nice": (parse("-n: -# --adjustment="), 0),
    "ionice": (parse("-t -c: -n: --class= --classdata="), 0),
    "timeout": (parse("-fpv -s: -k: --signal= --kill-after= --preserve-status --foreground --verbose"), 1),
    "stdbuf": (parse("-i: -o: -e: --input= --output= --error="), 0),
    "setsid": (parse("-wcf --wait --fork --ctty"), 0),
    "chronic": (OptionTable(), 0),
    "builtin": (OptionTable(), 0),
    "exec": (OptionTable(), 0),
    "catchsegv": (OptionTable(), 0),
}
"""Programs that run a command. Their own options precede it, and this many words of their own."""

SHELLS: Final = frozenset({"sh", "bash", "dash", "rbash"})
"""Shells whose language is read here. Syntax that only bash reads this way is not understood in the others' scripts."""


def _front(options: OptionTable, arguments: Sequence[Word]) -> list[Word] | None:
    """Return the words after a wrapper's own options, which end at the first operand."""
    for position, word in enumerate(arguments):
        before = arguments[:position]
        if any(option.many for option in before):
            return None
        only_options = options.operands(before) == []  # and with all of their values

        if word.known == "--" and only_options:
            return list(arguments[position + 1 :])
        if word.loose:
            return None
        if only_options and not word.text.startswith("-"):
            return list(arguments[position:])
    return [] if options.operands(arguments) == [] else None


def wrapped(runner: Runner, name: str, arguments: Sequence[Word], options: OptionTable, own: int) -> None:
    """Judge what a wrapper runs. `own`: how many words of its own are between its options and the command."""
    rest = _front(options, arguments)
    if rest is None or len(rest) < own:
        runner.find("unknown", f"options of {name} that are not understood: {shown(arguments)}")
        return

    # One that becomes several words shifts the command.
    if any(word.many for word in rest[:own]):
        runner.find("unknown", f"{name} with what could be several words: {shown(arguments)}")
        return

    if len(rest) > own:
        if name == "nohup":
            runner.find("modify", "writes nohup.out where there is a terminal")
        runner.run(rest[own:])


def watch(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """Judge the words that `watch` runs repeatedly, as one text that `sh` parses again."""
    options = parse(
        "-bcegptw -d -d? -n: --beep --color --differences --errexit --interval= --no-title --precise"
    )
    rest = _front(options, arguments)
    texts = [word.known for word in rest or ()]
    if not rest or None in texts:
        runner.find("unknown", f"watch with what is not understood: {shown(arguments)}")
    else:
        runner.script(" ".join(text for text in texts if text is not None), posix=True)


_ENV: Final = "-i0 -u: -C: --ignore-environment --null --unset= --chdir="


def env(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """Judge what `env` runs, and the variables and the folder that it runs it with."""
    rest = _front(parse(_ENV), arguments)
    if rest is None:
        runner.find("unknown", f"options of env that are not understood: {shown(arguments)}")
        return

    own = arguments[: len(arguments) - len(rest)]
    for folder in parse(_ENV).values(own, "C"):
        if folder.known is None or paths.guarded(folder.text):
            runner.find(
                "authority", f"goes where secrets are, or where code is configured: {shown([folder])}"
            )
    if any(word.text.startswith("--chdir") for word in own):
        runner.find("unknown", f"options of env that are not understood: {shown(arguments)}")

    if len(rest) > 1 and rest[0].known == repository.CLOSED and rest[1].known == "git":
        repository.git(runner, "git", rest[2:], closed=True)
        return

    while rest and re.match(r"[A-Za-z_]\w*=", rest[0].text):
        variable, _, value = rest.pop(0).text.partition("=")
        if not assignable(variable, exported=True) or strange_locale(variable, value):
            runner.find("unknown", f"sets {variable} for a program")
    if rest:
        runner.run(rest)


def xargs(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """Judge what `xargs` runs, with words from its input that nobody knows."""
    runner.consume()
    options = parse(
        "-0rtx -n: -P: -L: -I: -d: -a: -s: -E: --null --no-run-if-empty --max-args= --max-procs= --max-lines=? "
        "--delimiter= --arg-file= --verbose"
    )
    rest = _front(options, arguments)
    if rest is None:
        runner.find("unknown", f"options of xargs that are not understood: {shown(arguments)}")
        return
    if not rest:
        return

    own = arguments[: len(arguments) - len(rest)]
    marks = options.values(own, "I")
    if not marks:
        runner.run([*rest, Word(GAP, many=True, loose=True)])
        return

    # Of mutually exclusive options the last counts: with -n or -L after it, -I is ignored.
    mark = marks[0].known
    by_letter = any(options.values(own, letter) for letter in "nL")
    by_name = any(word.text.startswith("--max-") for word in own)
    if len(marks) > 1 or not mark or by_letter or by_name:
        runner.find("unknown", f"xargs with options that exclude each other: {shown(arguments)}")
    else:
        runner.run([_filled(word, mark) for word in rest])


def _filled(word: Word, mark: str) -> Word:
    """A word with something unknown in place of a mark."""
    if mark not in word.text:
        return word
    return Word(word.text.replace(mark, GAP), word.many, word.loose or word.text.startswith(mark))


def shell(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """`sh -c TEXT …` is judged. A script file, or a script from the input, is other code. `-n` only reads it."""
    if len(arguments) >= 2:
        option = arguments[0]
        script = arguments[1]

        if re.fullmatch(r"-[eux]*c", option.text) and script.known is not None:
            runner.script(script.known, posix=name in ("sh", "dash"))
            return

        # The next word could be an option, too, of which the last counts.
        only_reads = option.known == "-n" and not re.match(rf"[-+{GAP}{GLOB}]", script.text)
        if only_reads:
            return

    runner.find("unknown", f"runs other code: {name} {shown(arguments)}")


def evaluate(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """Judge what `eval` runs: its words, joined, as a script."""
    texts = [word.known for word in arguments]
    if any(text is None for text in texts):
        runner.find("unknown", f"runs a text that is not known: {name} {shown(arguments)}")
    else:
        runner.script(" ".join(text for text in texts if text and text != "-"))


_SIGNALS: Final = names(
    "EXIT INT TERM HUP QUIT PIPE USR1 USR2 0 1 2 3 13 15 SIGINT SIGTERM SIGHUP SIGQUIT SIGPIPE"
)


def trap(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """A trap runs its command elsewhere: in another folder, with other variables, once or after every command."""
    texts = [word.known for word in arguments]
    if texts in ([], ["-l"], ["-p"]):
        return

    action, *signals = texts
    if action is None or not signals or not all(signal in _SIGNALS for signal in signals):
        runner.find("unknown", f"a trap that is not understood: {shown(arguments)}")
    elif action not in ("", "-") and not runner.script(action):
        runner.find("unknown", f"a trap that does more than look: {shown(arguments)}")


def command(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """Judge what `command` runs. With `-v` it only says what a name stands for."""
    if arguments and arguments[0].known in ("-v", "-V"):
        return

    if arguments and arguments[0].text.startswith("-"):
        runner.find("unknown", f"options of command that are not understood: {shown(arguments)}")
    elif arguments:
        runner.run(arguments)


_FIND_ALONE: Final = names(
    "-print -print0 -ls -prune -quit -empty -depth -d -mount -xdev -true -false -not ! ( ) -a -o -and -or , -readable "
    "-writable -executable -nouser -nogroup -daystart -follow -noleaf -warn -nowarn -H -L -P"
)
_FIND_VALUED: Final = names(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size -mtime -mmin -atime "
    "-amin -ctime -cmin -newer -newermt -newerct -neweraa -anewer -cnewer -perm -user -group -uid -gid -links -inum "
    "-samefile -maxdepth -mindepth -printf -regextype -fstype -used"
)
FIND_PATTERNS: Final = frozenset(
    word for word in _FIND_VALUED if "name" in word or "path" in word or "regex" in word
)
"""Primaries whose value is a pattern and opens no file."""


_SUFFIXED: Final = re.compile(rf"^[^{GAP}]*{GLOB}\.\w+$")
"""A glob that was meant for find but that the shell expands: no primary ends in a dot and letters."""


def find(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """Judge what `find` looks for, and what it runs."""
    plain = _begins_plainly(arguments)
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word.loose:
            runner.find("unknown", f"find with an argument that is not known: {shown(arguments)}")
        elif word.text in _FIND_ALONE or not word.text.startswith("-"):
            continue
        elif word.text in _FIND_VALUED and rest:
            value = rest.pop(0)
            if value.many and not _SUFFIXED.search(value.text):
                runner.find("unknown", f"find with an argument that is not known: {shown(arguments)}")
        elif word.text in ("-exec", "-ok"):
            _find_exec(runner, rest, plain=plain)
        elif word.text == "-delete":
            runner.find("destroy", f"find {shown(arguments)}")
        elif word.text in ("-fprint", "-fprint0", "-fprintf", "-fls"):
            runner.find("destroy", f"writes over a file: find {shown(arguments)}")
        else:
            runner.find("unknown", f"find with {word.text}: {shown(arguments)}")


def _begins_plainly(arguments: Sequence[Word]) -> bool:
    """Whether what find inserts begins like the name of a file: with one of its starting points.

    A word that begins with `+` or `@` could be an option of the program that find runs.
    """
    rest = list(arguments)
    while rest and rest[0].known in ("-H", "-L", "-P"):
        rest.pop(0)

    for word in rest:
        if re.match(r"[-!(]", word.text):
            return True
        if not re.match(r"[\w./~]", word.text):
            return False
    return True


def _find_exec(runner: Runner, rest: list[Word], *, plain: bool) -> None:
    """Judge what find runs, up to its end. `plain`: what is inserted begins like the name of a file."""
    command: list[Word] = []
    several = False  # whether it ends with `{} +`, and so is given many files at once
    doubtful = False  # whether a word before could have been its end
    while rest:
        word = rest.pop(0)
        several = word.known == "+" and bool(command) and command[-1].text == GAP
        if word.known == ";" or several:
            break

        # An unknown word could be the end, or the braces before a plus: what follows then belongs to find.
        if word.many or (doubtful and (word.loose or word.text.startswith("-"))):
            runner.find("unknown", f"find with a command whose end is not known: {shown([*command, word])}")
        doubtful = doubtful or (word.known is None and not word.text.strip(GAP + GLOB + ";{}+"))

        loose = word.loose or (word.text.startswith("{}") and not plain)
        command.append(Word(word.text.replace("{}", GAP), word.many, loose))
    else:
        runner.find("unknown", f"find with a command that does not end: {shown(command)}")

    if several:
        command[-1] = Word(GAP, many=True, loose=command[-1].loose)
    if command:
        runner.run(command)
