"""What one command does, judged by its words: the table of programs, and the programs that need a closer look.

A handler receives the words after the program's name and reports what the command does. Programs that run other
commands (`env`, `xargs`, `find -exec`, `sh -c`) pass those back through `Runner`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from iact.core.gate.shell import filters, paths, repository, runners, writers
from iact.core.gate.shell.handlers import IDENTIFIER, Handler, Runner, assignable, shown
from iact.core.gate.shell.options import parse, tables
from iact.core.gate.shell.words import GAP, GLOB, Word, names

_STRONG: Final = frozenset({"base64", "base32", "basenc", "xxd", "rev", "openssl", "uudecode", "gpg"})
WEAK_DECODERS: Final = frozenset(
    {"tr", "sed", "awk", "gawk", "mawk", "cut", "printf", "od", "iconv", "jq", *_STRONG}
)
"""Programs whose output can be a text that is not visible anywhere in the script."""
NOT_READING: Final = names(
    "echo printf test [ [[ expr seq sleep : true false exit return basename dirname break continue shift date"
)
"""Programs that do not open files named by their operands."""


LISTING: Final = names("ls find stat file wc du realpath readlink xargs env tree")
"""Programs that reveal only that files exist."""
_PATTERNLESS: Final = re.compile(r"-[a-dg-zA-Z0-9]+|--(?:include|exclude|exclude-dir|color|colour)(?:=.*)?")
"""Options of grep that are neither a pattern nor the name of a file of patterns."""


def is_pattern(words: Sequence[Word]) -> bool:
    """Whether the next word is a pattern, which opens no file."""
    if not words:
        return False
    name = words[0].known
    if name == "find":
        return words[-1].text in runners.FIND_PATTERNS

    # Of a program of the family, the pattern is the first word that is no option.
    searches = name in ("grep", "egrep", "fgrep", "rg")
    return searches and all(_PATTERNLESS.fullmatch(word.text) for word in words[1:])


def judge_command(runner: Runner, words: Sequence[Word]) -> None:
    """Report what one simple command does."""
    name = _program(words[0].known)
    if name is None:
        runner.find("unknown", f"which program runs is not known: {shown(words[:1])}")
        return

    arguments = words[1:]
    known = tables()
    if name in _STRONG:
        runner.decode()
    if len(arguments) == 1 and _says_what_it_is(name, arguments[0].known):
        return

    # The closest look first: a program with a handler may also be in a table.
    if handler := _HANDLERS.get(name):
        handler(runner, name, arguments)
    elif wrapper := runners.WRAPPERS.get(name):
        runners.wrapped(runner, name, arguments, *wrapper)
    elif effect := known.effects.get(name):
        _effect(runner, effect, words)
    elif options := known.observe.get(name):
        if options.operands(arguments) is None:
            runner.find("unknown", f"options of {name} that are not understood: {shown(words)}")
    else:
        runner.find("unknown", f"runs {name}, which is not understood: {shown(words)}")


def _says_what_it_is(name: str, option: str | None) -> bool:
    """Whether a program with only this option prints its version or its options, and exits."""
    known = tables()
    if option in known.versioned.get(name, ()):
        return True
    return option in ("--version", "--help") and name in known.observe


def _effect(runner: Runner, effect: str, words: Sequence[Word]) -> None:
    match effect:
        case "destroy" | "send" | "authority":
            runner.find(effect, shown(words))
        case _:
            raise AssertionError(effect)


def known_program(name: str) -> bool:
    """Whether the gate has its own judgement about this name."""
    known = tables()
    judged_by = (_HANDLERS, runners.WRAPPERS, known.effects, known.observe, known.versioned)
    return any(name in table for table in judged_by)


def _program(name: str | None) -> str | None:
    """The program's bare name, or None if the file that runs is not one of the system's."""
    if not name:
        return None

    folder, slash, base = name.rpartition("/")
    if slash and folder not in ("/bin", "/usr/bin", "/sbin", "/usr/sbin"):
        return None
    return base if re.fullmatch(r"[A-Za-z0-9_.:\[+-]+", base) else None


# --- builtins ------------------------------------------------------------------------------------------------


def _printf(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """`-v` sets a variable, and so does `%n` in the format: the variable that the matching argument names."""
    rest = arguments[1:] if [word.known for word in arguments[:1]] == ["--"] else arguments
    if not rest:
        return

    form = rest[0]
    counting = re.search(r"%[^A-Za-z%\\]*[hlLjztq]*n", form.text.replace("%%", ""))
    may_count = form.known is None or counting is not None
    sets_by_count = may_count and not _texts(rest[1:])

    if form.loose or form.text.startswith("-v") or sets_by_count:
        runner.find("unknown", f"printf {shown(arguments)}")


def _texts(words: Sequence[Word]) -> bool:
    """Whether none of `words` can be the name of a variable."""
    return all(word.known is not None and not IDENTIFIER.fullmatch(word.known) for word in words)


def _read(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    runner.consume()
    options = parse("-rse -d: -n: -N: -p: -t: -u: -a:" if name == "read" else "-t -d: -n: -O: -s:")
    operands = options.operands(arguments)
    names = [word.known or "" for word in [*(operands or []), *options.values(arguments, "a")]]

    # Without a name, `read` sets REPLY, and `mapfile` sets MAPFILE.
    for variable in names or ["REPLY", "MAPFILE"]:
        runner.sets(variable)
    if operands is None or not all(map(_is_settable, names)):
        runner.find("unknown", f"{name} {shown(arguments)}")


def _is_settable(variable: str) -> bool:
    """Whether this is the name of a variable that changes nothing about what programs do."""
    return IDENTIFIER.fullmatch(variable) is not None and assignable(variable, exported=False)


def _unset(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """The index of an array element is arithmetic, which runs commands that it contains."""
    names = [word.known or "" for word in arguments if word.known != "-v"]
    for variable in names:
        runner.sets(variable)
    if not all(map(_is_settable, names)):
        runner.find("unknown", f"unset {shown(arguments)}")


def _test(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """`-v` and `-R` take a name, and the index in `a[…]` is arithmetic. An unknown word could be one of them."""
    words = list(arguments[:-1] if name == "[" else arguments)
    following: list[Word | None] = [*words[1:], None]
    for word, after in zip(words, following, strict=False):
        after_could_be_element = after is not None and (after.known is None or "[" in after.text)
        could_be_operator = word.known is None and after_could_be_element
        if word.known in ("-v", "-R") or word.many or could_be_operator:
            runner.find("unknown", f"{name} {shown(arguments)}")
            return


_SET_WORDS: Final = names(
    "-e -u -x -eu -ex -eux -euo -exo -euxo -o pipefail errexit nounset xtrace +e +u +x +o -eo -C noclobber "
    "-f +f noglob -v -n"
)
_SHOPT_WORDS: Final = names("-s -u -q nullglob globstar dotglob failglob nocaseglob nocasematch lastpipe -p")


def _shell_option(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    harmless = _SET_WORDS if name == "set" else _SHOPT_WORDS
    if not all(word.known in harmless for word in arguments):
        runner.find("unknown", f"{name} {shown(arguments)}")


def _kill(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """`-0` only asks whether a process exists; a signal after it would count instead."""
    option = arguments[0].known if arguments else None
    rest = arguments[1:]

    asks = option == "-0" and len(rest) == 1 and not (rest[0].many and rest[0].loose)
    lists = option in ("-l", "-L") and not any(word.loose or word.text.startswith("-") for word in rest)
    if not asks and not lists:
        runner.find("destroy", f"kill {shown(arguments)}")


def _cd(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """A later relative path is known only if this directory is."""
    operands = parse("-LPe@").operands(arguments)
    if operands is None or any(word.known is None for word in operands):
        runner.find("unknown", f"goes to a directory that is not known: {name} {shown(arguments)}")
    elif any(paths.guarded(word.text) for word in operands):
        runner.find("authority", f"goes where secrets are, or where code is configured: {shown(operands)}")


def _date(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """An operand sets the clock, unless it is a format."""
    options = parse("+ -uR -d: -r: -I: -I --utc --universal --date= --reference= --rfc-2822 --rfc-email --iso-8601 "
                    "--iso-8601= --rfc-3339= --debug")  # fmt: skip
    operands = options.operands(arguments)
    if operands is None or not all(word.text.startswith("+") and not word.many for word in operands):
        runner.find("unknown", f"date {shown(arguments)}")


def _getent(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """Of some databases, what is not on this machine is asked of the network."""
    if arguments and (arguments[0].known is None or "shadow" in arguments[0].text):
        runner.find("authority", f"reads passwords: getent {shown(arguments)}")
        return

    local = ("passwd", "group", "services", "protocols", "aliases", "networks")
    is_local = bool(arguments) and arguments[0].known in local
    if not is_local or any(word.loose or word.text.startswith("-") for word in arguments[1:]):
        runner.find("send", f"asks the network: getent {shown(arguments)}")


def _ps(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """Without a dash, `e` shows the environment of every process. What is not known could have an `e`."""
    for before, word in zip([None, *arguments], arguments, strict=False):
        is_value = before is not None and re.fullmatch(r"-\w*[oOCuUpgGtqs]|--\w[\w-]*", before.text)
        could_have_e = re.fullmatch(rf"[A-Za-z{GAP}{GLOB}]*[e{GAP}{GLOB}][A-Za-z{GAP}{GLOB}]*", word.text)
        shows_environments = could_have_e is not None and not is_value

        if word.loose or "environ" in word.text or shows_environments:
            runner.find("authority", f"shows environments: ps {shown(arguments)}")
            return


def _lsof(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """The text after an `@` is a host, whose name is looked up."""
    could_name_host = any(
        "@" in word.text or (GAP in word.text and word.text[0] not in "/.") for word in arguments
    )
    if could_name_host:
        runner.find("send", f"asks the network: lsof {shown(arguments)}")
    elif tables().observe["lsof"].operands(arguments) is None:
        runner.find("unknown", f"options of lsof that are not understood: {shown(arguments)}")


_LOOKS: Final[Mapping[str, re.Pattern[str]]] = {
    "crontab": re.compile(r"-l"),
    "systemctl": re.compile(
        r"(?:--no-pager )?(?:status|is-active|is-enabled|is-failed|list-units|list-unit-files|list-timers|show|cat)"
        r"(?: (?:--no-pager|--all|--failed|--type=\w+|[\w@.][\w@.-]*))*"
    ),
    "service": re.compile(r"\w[\w.-]* status|--status-all"),
    "apt": re.compile(
        r"(?:list|show|policy|search|depends|rdepends)(?: (?:--installed|--upgradable|[a-z0-9][a-z0-9.+-]*))*"
    ),
    "apt-cache": re.compile(
        r"(?:show|search|policy|depends|rdepends|pkgnames|stats|madison|showpkg|showsrc)(?: [a-z0-9][a-z0-9.+-]*)*"
    ),
    "apt-mark": re.compile(r"show(?:manual|auto|hold)(?: [a-z0-9][a-z0-9.+-]*)*"),
    "dpkg-deb": re.compile(r"(?:-[cIf]|--contents|--info|--field) [\w./][\w./+~-]*(?: [A-Z][\w-]*)*"),
    "dpkg": re.compile(
        r"-[lLsSI]|--get-selections|-[cI] [\w./][\w./+~-]*|-[lLsS] [\w./*][\w./+*-]*|--(?:list|listfiles|status|search|print-architecture)(?: [\w./][\w./+-]*)?"
    ),
    "ip": re.compile(
        r"(?:-(?:[46rsjcdo]|br|brief) )*(?:a|addr|address|r|route|l|link|n|neigh|rule|maddr)"
        r"(?: (?:show|list|ls)(?:(?: dev)? [\w.]+)?)?|r(?:oute)? get [\d.]+|netns(?: list)?"
    ),
    "ss": re.compile(
        r"(?:(?:-[tulnpaesmo46]+|--(?:tcp|udp|listening|numeric|processes|all|summary|extended)) ?)*"
    ),
    "netstat": re.compile(r"(?:-[tulnpaersi46]+ ?)*"),
    "top": re.compile(r"(?:-b ?|-n ?\d+ ?|-bn ?\d+ ?|-o [%A-Z+]+ ?|-H ?|-p \d+ ?)+"),
    **dict.fromkeys(
        ("pip", "pip3"),
        re.compile(
            r"(?:list|freeze|show|check)(?: (?:--format=\w+|--user|--local|--not-required|(?!-)[A-Za-z0-9._-]+))*|config list"
        ),
    ),
    "rpm": re.compile(r"-q[ailcdfR]*(?: [\w./*][\w./+*-]*)*"),
    "man": re.compile(r"(?:\d |-[kf] )?[a-z0-9][a-z0-9._-]*"),
    "ulimit": re.compile(r"-[aSHnusvtcdflmp]+|"),
    "hash": re.compile(r""),
    "alias": re.compile(r"|-p"),
    "dmesg": re.compile(
        r"(?:(?:-[THkLxwdetruP]+|-l [a-z,]+|--(?:ctime|human|kernel|userspace|follow|decode|reltime|nopager|notime"
        r"|level=[a-z,]+|facility=[a-z,]+)) ?)*"
    ),
    "compgen": re.compile(r"-[abcdefgjksuv]+(?: [\w./][\w./-]*)?"),
    "openssl": re.compile(r"version(?: -a)?"),
    "ar": re.compile(r"-?[tp]v?(?: [\w./][\w./+-]*)+"),
    "systemd-analyze": re.compile(r"|time|blame|critical-chain(?: \w[\w@.-]*)?"),
    "hostnamectl": re.compile(r"|status"),
    "timedatectl": re.compile(r"|status|show|list-timezones|timesync-status"),
    "localectl": re.compile(r"|status|list-locales|list-keymaps"),
    "loginctl": re.compile(r"|list-(?:sessions|users|seats)"),
    "update-alternatives": re.compile(r"--(?:display|list|query) \w[\w.+-]*|--get-selections"),
    "mount": re.compile(r"|-l"),
    "swapon": re.compile(r"--show|-s"),
    "chage": re.compile(r"-l [\w-]+"),
    "sysctl": re.compile(r"-a|(?:-n )?[a-z0-9_.]+"),
    "ldd": re.compile(r"(?!)"),
    "tput": re.compile(
        r"cols|lines|colors|sgr0|bold|dim|smul|rmul|smso|rmso|rev|blink|set[ab]f? \d+|cup \d+ \d+|clear|el|ed|longname"
    ),
    "ldconfig": re.compile(r"-[vN]*p[vN]*|--print-cache"),
    "route": re.compile(r"-n|"),
    "ifconfig": re.compile(r"-a|"),
}
"""Programs for which it is easier to describe read-only commands as a whole."""


def _whole(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    known = [word.known for word in arguments]
    text = " ".join(piece for piece in known if piece is not None)

    looks = None not in known and _LOOKS[name].fullmatch(text) is not None
    if looks:
        if name == "top":
            runner.find("modify", "top makes a folder for its settings")
        return

    if effect := tables().effects.get(name):
        _effect(runner, effect, [Word(name), *arguments])
    elif name in ("crontab", "systemctl", "service", "ip", "hash", "chage"):
        runner.find("authority", f"{name} {shown(arguments)}")
    else:
        runner.find("unknown", f"{name} {shown(arguments)}")


_HANDLERS: Final[Mapping[str, Handler]] = {
    **dict.fromkeys(runners.SHELLS, runners.shell),
    "eval": runners.evaluate, "trap": runners.trap,
    **dict.fromkeys(("mkdir", "touch", "mktemp"), writers.make),
    **dict.fromkeys(("cp", "mv"), writers.copy),
    **dict.fromkeys(("gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd"), writers.pack),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), filters.awk),
    **dict.fromkeys(("read", "mapfile", "readarray"), _read),
    **dict.fromkeys(("test", "["), _test),
    **dict.fromkeys(("set", "shopt"), _shell_option),
    **dict.fromkeys(("cd", "pushd"), _cd),
    **dict.fromkeys(_LOOKS, _whole),
    "env": runners.env, "watch": runners.watch, "xargs": runners.xargs, "command": runners.command, "find": runners.find, "ln": writers.link, "tee": writers.tee, "dd": writers.dd,
    "tar": writers.tar, "unzip": writers.unzip, "sed": filters.sed, "printf": _printf, "kill": _kill, "getent": _getent, "date": _date, "ps": _ps, "lsof": _lsof, "unset": _unset, "git": repository.git,
}  # fmt: skip
