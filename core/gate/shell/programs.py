"""What one command does, from its words: the table of programs, and the programs that need a closer look.

A handler gets the words behind the program's name and says what the command does; programs that run
other commands (`env`, `xargs`, `find -exec`, `sh -c`) hand those back through `Runner`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from core.gate.shell import paths
from core.gate.shell.effects import Effect
from core.gate.shell.options import Options, parse, tables
from core.gate.shell.words import GAP, GLOB, Word, names

IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FREE_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*|LC_[A-Z]+")
_FREE_EXPORTS: Final = names(
    "LANG LANGUAGE TZ COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR TERM CI DEBUG VERBOSE"
)
_WATCHED: Final = re.compile(
    r"PATH|IFS|ENV|HOME|CDPATH|PWD|OLDPWD|FIGNORE|GLOBIGNORE|EXECIGNORE|TMOUT|TMPDIR|BASH.*|SHELL.*|PS\d|LD_.*"
    r"|DYLD_.*|GIT_.*|.*PAGER.*|.*EDITOR.*|VISUAL|BROWSER|LESS.*|MAN.*|PYTHON.*|PERL.*|RUBY.*|NODE.*|JAVA.*|_JAVA.*"
    r"|JDK.*|.*OPTIONS?|.*OPTS|.*FLAGS|.*COMMAND.*|.*_CMD|.*_PATH|RIPGREP_.*|FZF_.*|TAR_.*|GREP_.*|GZIP|BZIP2?|XZ_.*"
    r"|ZSTD_.*|LOCPATH|GCONV.*|TERM.*|HOSTALIASES|RES_.*|MALLOC_.*|GLIBC_.*|SSH_.*|GPG_.*|DOCKER_.*|KUBE.*|CC|CXX"
    r"|MAKE.*|PIP_.*|NPM_.*|CARGO_.*|RUST.*|GO.*|LUA.*|TCL.*|PG.*|MYSQL.*|CURL.*|WGET.*|.*PROXY|OPENSSL.*|NLSPATH|LANG.*"
    r"|POSIXLY_CORRECT|HIST.*|INPUTRC|FUNCNEST|OPT.*|RANDOM|SECONDS|DIRSTACK|GROUPS|UID|EUID|PPID"
)
_WRAPPERS: Final[Mapping[str, tuple[Options, int]]] = {
    "nohup": (Options(), 0),
    "time": (parse("-p"), 0),
    "nice": (parse("-n: -# --adjustment="), 0),
    "ionice": (parse("-t -c: -n: --class= --classdata="), 0),
    "timeout": (parse("-fpv -s: -k: --signal= --kill-after= --preserve-status --foreground --verbose"), 1),
    "stdbuf": (parse("-i: -o: -e: --input= --output= --error="), 0),
    "setsid": (parse("-wcf --wait --fork --ctty"), 0),
    "chronic": (Options(), 0),
    "builtin": (Options(), 0),
    "exec": (Options(), 0),
    "catchsegv": (Options(), 0),
}
"""Programs that run the command behind their own options and that many words of theirs."""

_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh", "rbash"})
_STRONG: Final = frozenset({"base64", "base32", "basenc", "xxd", "rev", "openssl", "uudecode", "gpg"})
WEAK_DECODERS: Final = frozenset(
    {"tr", "sed", "awk", "gawk", "mawk", "cut", "printf", "od", "iconv", "jq", *_STRONG}
)
"""Programs that can make a text out of which nothing of the result can be read in the script."""
NOT_READING: Final = names(
    "echo printf test [ [[ expr seq sleep : true false exit return basename dirname break continue shift date"
)
"""Programs that do not open files named by their operands."""


class Runner(Protocol):
    """What a handler can ask for."""

    def find(self, effect: Effect, what: str) -> None:
        """Note one thing that the command does."""
        ...

    def run(self, words: Sequence[Word]) -> None:
        """Judge a command that this one runs."""
        ...

    def script(self, text: str) -> None:
        """Judge a script that this command runs."""
        ...

    def consume(self) -> None:
        """The command takes names from its input."""
        ...

    def decode(self) -> None:
        """The command's output is not readable in the script."""
        ...


Handler = Callable[[Runner, str, Sequence[Word]], None]


def assignable(name: str, *, exported: bool) -> bool:
    """Whether setting this variable changes nothing about what programs do."""
    if _FREE_NAME.fullmatch(name):
        return not name.endswith("_proxy") or not exported
    if exported:
        return name in _FREE_EXPORTS
    return _WATCHED.fullmatch(name) is None


def judge_command(runner: Runner, words: Sequence[Word]) -> None:
    """Say what one simple command does."""
    name = _program(words[0].known)
    if name is None:
        runner.find("unknown", f"which program runs is not known: {shown(words[:1])}")
        return
    arguments = words[1:]
    known = tables()
    if name in _STRONG:
        runner.decode()
    if handler := _HANDLERS.get(name):
        handler(runner, name, arguments)
    elif wrapper := _WRAPPERS.get(name):
        _wrapped(runner, name, arguments, *wrapper)
    elif len(arguments) == 1 and name in known.versioned and arguments[0].known in known.version_options:
        return
    elif effect := known.effects.get(name):
        _effect(runner, effect, words)
    elif options := known.observe.get(name):
        if options.operands(arguments) is None:
            runner.find("unknown", f"options of {name} that are not understood: {shown(words)}")
    else:
        runner.find("unknown", f"runs {name}, which is not understood: {shown(words)}")


def _effect(runner: Runner, effect: str, words: Sequence[Word]) -> None:
    match effect:
        case "destroy" | "send" | "authority":
            runner.find(effect, shown(words))
        case _:
            raise AssertionError(effect)


def known_program(name: str) -> bool:
    """Whether the gate has an opinion of its own about this name."""
    known = tables()
    return name in _HANDLERS or name in _WRAPPERS or name in known.effects or name in known.observe


def _program(name: str | None) -> str | None:
    """The program's bare name, or None if the file that runs is not one of the system's."""
    if name is None or not name:
        return None
    folder, slash, base = name.rpartition("/")
    if slash and folder not in ("/bin", "/usr/bin", "/sbin", "/usr/sbin"):
        return None
    return base if re.fullmatch(r"[A-Za-z0-9_.:\[+-]+", base) else None


def shown(words: Sequence[Word]) -> str:
    """A command for a person."""
    return " ".join(word.text.replace(GAP, "…").replace(GLOB, "*") for word in words)[:120]


# --- programs that run others ----------------------------------------------------------------------


def _front(options: Options, arguments: Sequence[Word]) -> list[Word] | None:
    """The words behind a wrapper's own options, which end at the first operand."""
    for position, word in enumerate(arguments):
        before = arguments[:position]
        if word.known == "--" and options.operands(before) == []:
            return list(arguments[position + 1 :])
        if word.loose:
            return None
        if options.operands(before) == [] and not word.text.startswith("-"):
            return list(arguments[position:])
    return [] if options.operands(arguments) == [] else None


def _wrapped(runner: Runner, name: str, arguments: Sequence[Word], options: Options, own: int) -> None:
    rest = _front(options, arguments)
    if rest is None or len(rest) < own:
        runner.find("unknown", f"options of {name} that are not understood: {shown(arguments)}")
    elif len(rest) > own:
        runner.run(rest[own:])


def _env(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    rest = _front(parse("-i0 -u: -C: --ignore-environment --null --unset= --chdir="), arguments)
    if rest is None:
        runner.find("unknown", f"options of env that are not understood: {shown(arguments)}")
        return
    while rest and re.match(r"[A-Za-z_]\w*=", rest[0].text):
        variable = rest.pop(0).text.partition("=")[0]
        if not assignable(variable, exported=True):
            runner.find("unknown", f"sets {variable} for a program")
    if rest:
        runner.run(rest)


def _xargs(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    runner.consume()
    options = parse(
        "-0rtx -n: -P: -L: -I: -d: -a: -s: -E: --null --no-run-if-empty --max-args= --max-procs= --max-lines= "
        "--delimiter= --arg-file= --verbose"
    )
    rest = _front(options, arguments)
    if rest is None:
        runner.find("unknown", f"options of xargs that are not understood: {shown(arguments)}")
        return
    own = arguments[: len(arguments) - len(rest)]
    mark = _replaced(own)
    if not rest:
        return
    if mark is None:
        runner.run([*rest, Word(GAP, many=True, loose=True)])
    else:
        runner.run([_filled(word, mark) for word in rest])


def _replaced(own: Sequence[Word]) -> str | None:
    """What `-I` says is replaced by the input."""
    for position, word in enumerate(own):
        if word.text == "-I":
            return own[position + 1].text
        if word.text.startswith("-I"):
            return word.text[2:]
    return None


def _filled(word: Word, mark: str) -> Word:
    if mark not in word.text:
        return word
    return Word(word.text.replace(mark, GAP), word.many, word.loose or word.text.startswith(mark))


def _shell(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """`sh -c TEXT …` is judged; a script file, or a script from the input, is other code."""
    if len(arguments) >= 2 and re.fullmatch(r"-[eux]*c", arguments[0].text):
        text = arguments[1].known
        if text is not None:
            runner.script(text)
            return
    if len(arguments) == 1 and arguments[0].known in tables().version_options:
        return
    runner.find("unknown", f"runs other code: {name} {shown(arguments)}")


def _eval(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    texts = [word.known for word in arguments]
    if name == "trap":
        texts = texts[:1]
    if any(text is None for text in texts):
        runner.find("unknown", f"runs a text that is not known: {name} {shown(arguments)}")
    else:
        runner.script(" ".join(text for text in texts if text and text != "-"))


def _command(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
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


def _find(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word.loose:
            runner.find("unknown", f"find with an argument that is not known: {shown(arguments)}")
        elif word.text in _FIND_ALONE or not word.text.startswith("-"):
            continue
        elif word.text in _FIND_VALUED and rest:
            rest.pop(0)
        elif word.text in ("-exec", "-execdir", "-ok", "-okdir"):
            _find_exec(runner, rest)
        elif word.text == "-delete":
            runner.find("destroy", f"find {shown(arguments)}")
        elif word.text in ("-fprint", "-fprint0", "-fprintf", "-fls"):
            runner.find("destroy", f"writes over a file: find {shown(arguments)}")
        else:
            runner.find("unknown", f"find with {word.text}: {shown(arguments)}")


def _find_exec(runner: Runner, rest: list[Word]) -> None:
    command: list[Word] = []
    while rest:
        word = rest.pop(0)
        if word.known == ";" or (word.known == "+" and command and command[-1].text.endswith(GAP)):
            break
        # what find puts in begins with one of its starting points, never with a dash
        command.append(Word(word.text.replace("{}", GAP), word.many, word.loose))
    if command:
        runner.run(command)


# --- programs that write -----------------------------------------------------------------------------


def _written(runner: Runner, what: str, targets: Sequence[Word], effect: Effect) -> None:
    """Note writes to `targets`; more than `effect` where code or a secret is."""
    for word in targets:
        if paths.network(word.text):
            runner.find("send", f"{what}: {shown([word])}")
        elif paths.secret(word.text) or paths.code(word.text):
            runner.find("authority", f"{what}, where more than data is kept: {shown([word])}")
    runner.find(effect, f"{what}: {shown(targets)}")


def _make(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    specs = {
        "mkdir": "-pv --parents --verbose",
        "touch": "-acm -d: -r: -t: --date= --reference= --no-create",
        "mktemp": "-dqut -p: --directory --suffix= --tmpdir --tmpdir= --dry-run",
    }
    operands = parse(specs[name]).operands(arguments)
    if operands is None:
        runner.find("unknown", f"options of {name} that are not understood: {shown(arguments)}")
    else:
        _written(runner, name, operands, "modify")


def _copy(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """`cp` and `mv` write over what is there unless `-n` says no."""
    operands = parse("-aLPRrfiuvpnxHTd -t: --no-clobber --recursive --archive --parents").operands(arguments)
    if operands is None:
        runner.find("unknown", f"options of {name} that are not understood: {shown(arguments)}")
        return
    kept = any(
        word.known and re.fullmatch(r"-[a-zA-Z]*n[a-zA-Z]*|--no-clobber", word.known) for word in arguments
    )
    kept = kept and not any(re.match(r"-\w*[ft]", word.text) for word in arguments)
    _written(
        runner,
        name,
        operands[-1:],
        "modify" if kept and not any(word.loose for word in operands) else "destroy",
    )


def _link(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    operands = parse("! -srvnTL --symbolic --relative").operands(arguments)
    if operands is None or any(word.known is None for word in operands):
        runner.find(
            "destroy" if any("f" in word.text[:3] for word in arguments) else "unknown",
            f"ln {shown(arguments)}",
        )
    else:
        _written(runner, name, operands, "modify")


def _tee(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    operands = parse("! -ai --append --ignore-interrupts").operands(arguments)
    if operands is None:
        runner.find("unknown", f"options of tee that are not understood: {shown(arguments)}")
        return
    appends = any(word.known in ("-a", "--append", "-ai", "-ia") for word in arguments)
    for word in operands:
        write(runner, word, appends=appends)


def write(runner: Runner, word: Word, *, appends: bool) -> None:
    """A file is opened for writing: a redirection, or `tee`."""
    if paths.harmless(word.text):
        return
    if word.known is None:
        runner.find(
            "unknown" if word.loose else "destroy", f"writes to a file that is not known: {shown([word])}"
        )
    safe = appends or paths.passing(word.text)
    _written(runner, "appends to" if appends else "writes over", [word], "modify" if safe else "destroy")


def _dd(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    for word in arguments:
        if word.loose or not re.match(r"(?:if|bs|count|skip|ibs|obs|status|iflag|conv)=", word.text):
            runner.find("destroy", f"dd {shown(arguments)}")
            return


def _pack(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """gzip and its kin replace their input, unless they write to the output or only test."""
    harmless = any(word.known and re.fullmatch(r"-[dfkqv0-9]*[clt][dcltfkqv0-9]*|--stdout|--list|--test", word.known)
                   for word in arguments)  # fmt: skip
    plain = all(
        re.fullmatch(r"-[cdltfkqv0-9]+|--stdout|--list|--test|[^-].*|-", word.text) for word in arguments
    )
    if not (harmless and plain) or any(word.loose for word in arguments):
        runner.find("destroy", f"{name} {shown(arguments)}")


def _tar(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    first = arguments[0].known if arguments else None
    listing = first is not None and re.fullmatch(r"-?[vzjJa]*t[vzjJa]*f?|--list", first)
    rest = parse("! -vzjJa -f: -C: --verbose --wildcards --file= --directory=").operands(arguments[1:])
    if not listing or rest is None:
        writes = first is not None and re.fullmatch(r"-?[cxrua][a-zA-Z]*", first) and rest is not None
        runner.find("destroy" if writes else "unknown", f"tar {shown(arguments)}")


def _unzip(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    looks = arguments and arguments[0].known in ("-l", "-v", "-t", "-Z", "-lv", "-p", "-c", "-Z1")
    if not looks or any(word.text.startswith("-") or word.loose for word in arguments[1:]):
        runner.find("destroy", f"unzip {shown(arguments)}")


# --- programs with a language of their own --------------------------------------------------------------

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


def _sed(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
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
        _written(runner, "edits in place", files, "destroy")


def _awk(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
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


# --- builtins ------------------------------------------------------------------------------------------------


def _printf(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    if arguments and (arguments[0].loose or arguments[0].text.startswith("-v")):
        runner.find("unknown", f"printf {shown(arguments)}")


def _read(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    runner.consume()
    spec = "! -rse -d: -n: -N: -p: -t: -u: -a:" if name == "read" else "! -t -d: -n: -O: -s:"
    operands = parse(spec).operands(arguments)
    values = [word.known or "" for word in operands or []]
    array = [arguments[i + 1].known or "" for i, word in enumerate(arguments[:-1]) if word.text == "-a"]
    if operands is None or not all(
        IDENTIFIER.fullmatch(one) and assignable(one, exported=False) for one in [*values, *array]
    ):
        runner.find("unknown", f"{name} {shown(arguments)}")


def _unset(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """The index of an array element is arithmetic, which runs what it finds."""
    names = [word.known or "" for word in arguments if word.known != "-v"]
    if not all(IDENTIFIER.fullmatch(one) and assignable(one, exported=False) for one in names):
        runner.find("unknown", f"unset {shown(arguments)}")


def _test(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    if any(word.loose or word.text == "-v" for word in arguments if len(arguments) < 2 or word.text == "-v"):
        runner.find("unknown", f"{name} {shown(arguments)}")


_SET_WORDS: Final = names(
    "-e -u -x -eu -ex -eux -euo -exo -euxo -o pipefail errexit nounset xtrace +e +u +x +o -eo -C noclobber "
    "-f +f noglob -v -n"
)
_SHOPT_WORDS: Final = names("-s -u -q nullglob globstar dotglob failglob nocaseglob nocasematch lastpipe")


def _shell_option(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    if not all(word.known in (_SET_WORDS if name == "set" else _SHOPT_WORDS) for word in arguments):
        runner.find("unknown", f"{name} {shown(arguments)}")


def _kill(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    if not arguments or arguments[0].known not in ("-0", "-l", "-L"):
        runner.find("destroy", f"kill {shown(arguments)}")


def _cd(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """Where a later relative path leads is known only if this is."""
    operands = parse("-LPe@").operands(arguments)
    if operands is None or any(word.known is None for word in operands):
        runner.find("unknown", f"goes to a directory that is not known: {name} {shown(arguments)}")
    elif any(paths.guarded(word.text) for word in operands):
        runner.find("authority", f"goes where secrets are, or where code is configured: {shown(operands)}")


def _date(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    """An operand sets the clock, unless it is a format."""
    options = parse("-uR -d: -r: -I: -I --utc --universal --date= --reference= --rfc-2822 --rfc-email --iso-8601 "
                    "--iso-8601= --rfc-3339= --debug")  # fmt: skip
    operands = options.operands(arguments)
    if operands is None or not all(word.text.startswith("+") and not word.many for word in operands):
        runner.find("unknown", f"date {shown(arguments)}")


def _getent(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    local = ("passwd", "group", "services", "protocols", "shadow", "aliases", "networks")
    if not arguments or arguments[0].known not in local:
        runner.find("send", f"asks the network: getent {shown(arguments)}")


_LOOKS: Final[Mapping[str, re.Pattern[str]]] = {
    "crontab": re.compile(r"-l"),
    "systemctl": re.compile(
        r"(?:--no-pager )?(?:status|is-active|is-enabled|is-failed|list-units|list-unit-files|list-timers|show|cat)"
        r"(?: (?:--no-pager|--all|--failed|--type=\w+|[\w@.-]+))*"
    ),
    "journalctl": re.compile(
        r"(?:--no-pager|-[nbkxe]|-u|\d+|[\w.]+)(?: (?:--no-pager|-[nbkxeu]|\d+|[\w.]+))*"
    ),
    "service": re.compile(r"[\w.-]+ status|--status-all"),
    "apt": re.compile(
        r"(?:list|show|policy|search|depends|rdepends)(?: (?:--installed|--upgradable|[a-z0-9.+-]+))*"
    ),
    "apt-cache": re.compile(r"(?:show|search|policy|depends|rdepends|pkgnames|stats)(?: [a-z0-9.+-]+)*"),
    "dpkg": re.compile(
        r"-[lLsSI]|-[lLsS] [\w./+*-]+|--(?:list|listfiles|status|search|print-architecture)(?: [\w./+-]+)?"
    ),
    "ip": re.compile(
        r"(?:-[46brsj]+ |-br |-c )*(?:a|addr|address|r|route|l|link|n|neigh|rule|maddr)(?: (?:show|list|ls))?(?: dev)?(?: [\w.]+)?"
    ),
    "ss": re.compile(r"(?:-[tulnpaesmo46]+ ?)*"),
    "netstat": re.compile(r"(?:-[tulnpaers46]+ ?)*"),
    "top": re.compile(r"(?:-b ?|-n ?\d+ ?|-bn ?\d+ ?|-o [%A-Z+]+ ?|-H ?|-p \d+ ?)+"),
    "pip": re.compile(r"(?:list|freeze|show|check)(?: (?:--outdated|--format=\w+|[A-Za-z0-9._-]+))*"),
    "pip3": re.compile(r"(?:list|freeze|show|check)(?: (?:--format=\w+|[A-Za-z0-9._-]+))*"),
    "npm": re.compile(r"(?:ls|list)(?: (?:--depth=\d+|-g|--all))*"),
    "man": re.compile(r"[a-z0-9._-]+|\d [a-z0-9._-]+"),
    "ulimit": re.compile(r"-[aSHnusvtcdflmp]+|"),
    "hash": re.compile(r""),
    "alias": re.compile(r"|-p"),
    "dmesg": re.compile(r"(?:-[THkLxw]+ ?|--ctime ?)*"),
    "mount": re.compile(r"|-l"),
    "swapon": re.compile(r"--show|-s"),
    "chage": re.compile(r"-l [\w-]+"),
    "sysctl": re.compile(r"-a|(?:-n )?[a-z0-9_.]+"),
    "ldd": re.compile(r"(?!)"),
    "route": re.compile(r"-n|"),
    "ifconfig": re.compile(r"-a|"),
}
"""For programs where it is easier to say how a command that only looks is written as a whole."""


def _whole(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    known = [word.known for word in arguments]
    text = " ".join(one for one in known if one is not None)
    if len(known) == 1 and name in tables().versioned and text in tables().version_options:
        return
    if None in known or _LOOKS[name].fullmatch(text) is None:
        if effect := tables().effects.get(name):
            _effect(runner, effect, [Word(name), *arguments])
        else:
            authority = name in ("crontab", "systemctl", "service", "ip", "hash", "chage")
            runner.find("authority" if authority else "unknown", f"{name} {shown(arguments)}")


# --- git -------------------------------------------------------------------------------------------------------

_GIT_EFFECTS: Final[Mapping[str, Effect]] = {
    **dict.fromkeys(("push", "fetch", "pull", "clone", "ls-remote", "send-email", "request-pull", "svn", "archive"), "send"),
    **dict.fromkeys(
        ("reset", "clean", "checkout", "restore", "rm", "mv", "rebase", "gc", "prune", "filter-branch", "filter-repo",
         "update-ref", "reflog", "switch", "worktree", "replace", "read-tree", "apply", "am", "revert", "cherry-pick",
         "merge", "repack", "fsck", "notes", "symbolic-ref", "stash", "branch", "tag"), "destroy"),
    **dict.fromkeys(("config", "remote", "submodule", "credential", "init", "hook", "daemon", "maintenance"), "authority"),
    "add": "modify",
}  # fmt: skip
_GIT_LOOKS: Final[Mapping[str, re.Pattern[str]]] = {
    "branch": re.compile(r"(?:-[avr]+|--all|--list|--show-current|--remotes|--verbose|--merged|--no-merged|-vv)?"),
    "tag": re.compile(r"(?:-l|--list|-n\d*)?(?: [\w.*-]+)?|--sort=\S+|"),
    "remote": re.compile(r"(?:-v|--verbose|)|get-url \w+"),
    "stash": re.compile(r"list|show(?: -p)?(?: stash@\S+)?"),
    "config": re.compile(r"(?:--global |--local |--system )?(?:--get(?:-all|-regexp)? [\w.*-]+|--list|-l)(?: --show-origin)?"),
    "worktree": re.compile(r"list"),
    "submodule": re.compile(r"status|summary|"),
    "notes": re.compile(r"list|show"),
}  # fmt: skip


def _git(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
    rest = list(arguments)
    while rest and rest[0].known in ("--no-pager", "--literal-pathspecs", "--no-optional-locks", "-C", "-P"):
        if rest.pop(0).known == "-C" and rest and rest.pop(0).known is None:
            runner.find("unknown", f"git in a directory that is not known: {shown(arguments)}")
            return
    command = rest.pop(0).known if rest else None
    if command in ("--version", "--help", None) and not rest and arguments:
        return
    text = " ".join(word.text for word in rest)
    look = _GIT_LOOKS.get(command or "")
    if (
        look
        and all(word.known is not None for word in rest)
        and (look.fullmatch(text) or (command == "tag" and not rest))
    ):
        return
    options = tables().git.get(command or "")
    if options is not None and not text.startswith(("expire", "delete")):
        if options.operands(rest) is None:
            runner.find("unknown", f"git options that are not understood: {shown(arguments)}")
        return
    effect = _GIT_EFFECTS.get(command or "")
    if effect == "modify" and (
        any(word.loose for word in rest) or parse("! -Auvnf --all --update").operands(rest) is None
    ):
        effect = None
    runner.find(effect or "unknown", f"git {shown(arguments)}")


_HANDLERS: Final[Mapping[str, Handler]] = {
    **dict.fromkeys(_SHELLS, _shell),
    **dict.fromkeys(("eval", "trap"), _eval),
    **dict.fromkeys(("mkdir", "touch", "mktemp"), _make),
    **dict.fromkeys(("cp", "mv"), _copy),
    **dict.fromkeys(("gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd"), _pack),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    **dict.fromkeys(("read", "mapfile", "readarray"), _read),
    **dict.fromkeys(("test", "["), _test),
    **dict.fromkeys(("set", "shopt"), _shell_option),
    **dict.fromkeys(("cd", "pushd"), _cd),
    **dict.fromkeys(_LOOKS, _whole),
    "env": _env, "xargs": _xargs, "command": _command, "find": _find, "ln": _link, "tee": _tee, "dd": _dd,
    "tar": _tar, "unzip": _unzip, "sed": _sed, "printf": _printf, "kill": _kill, "getent": _getent, "date": _date, "unset": _unset, "git": _git,
}  # fmt: skip
