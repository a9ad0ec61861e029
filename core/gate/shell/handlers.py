"""What the handler of a program receives and can call, and what several handlers share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from iact.core.gate.shell.effects import Effect
from iact.core.gate.shell.words import GAP, GLOB, Word, names

IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FREE_NAME: Final = re.compile(r"[a-z][a-z0-9_]*|LC_[A-Z]+")
_FREE_EXPORTS: Final = names(
    "LANG LANGUAGE TZ COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR TERM CI DEBUG VERBOSE"
)
_WATCHED: Final = re.compile(
    r"PATH|IFS|ENV|HOME|CDPATH|PWD|OLDPWD|FIGNORE|GLOBIGNORE|EXECIGNORE|TMOUT|TMPDIR|BASH.*|SHELL.*|PS\d|LD_.*"
    r"|DYLD_.*|GIT_.*|.*PAGER.*|.*EDITOR.*|VISUAL|BROWSER|LESS.*|MAN.*|PYTHON.*|PERL.*|RUBY.*|NODE.*|JAVA.*|_JAVA.*"
    r"|JDK.*|.*OPTIONS?|.*OPTS|.*FLAGS|.*COMMAND.*|.*_CMD|.*_PATH|RIPGREP_.*|FZF_.*|TAR_.*|GREP_.*|GZIP|BZIP2?|XZ_.*"
    r"|ZSTD_.*|LOCPATH|GCONV.*|TERM.*|HOSTALIASES|RES_.*|MALLOC_.*|GLIBC_.*|SSH_.*|GPG_.*|DOCKER_.*|KUBE.*|CC|CXX"
    r"|MAKE.*|PIP_.*|NPM_.*|CARGO_.*|RUST.*|GO.*|LUA.*|TCL.*|PG.*|MYSQL.*|CURL.*|WGET.*|.*PROXY|OPENSSL.*|NLSPATH|LANG.*"
    r"|POSIXLY_CORRECT|HIST.*|INPUTRC|FUNCNEST|OPT.*|RANDOM|SECONDS|DIRSTACK|GROUPS|UID|EUID|PPID|_.*|IACT.*"
)


class Runner(Protocol):
    """What a handler can call."""

    def find(self, effect: Effect, what: str) -> None:
        """Note one thing that the command does."""
        ...

    def writes(self, path: str) -> None:
        """Note a file that the command is known to write."""
        ...

    def run(self, words: Sequence[Word]) -> None:
        """Judge a command that this one runs."""
        ...

    def script(self, text: str, *, posix: bool = False) -> bool:
        """Judge a script that this command runs. Returns whether it only reads.

        `posix`: `sh` runs it, which reads some of bash's syntax differently.
        """
        ...

    def consume(self) -> None:
        """Note that the command takes names from its input."""
        ...

    def decode(self) -> None:
        """Note that the command's output can't be read from the script."""
        ...

    def sets(self, name: str) -> None:
        """Note that the command sets a variable."""
        ...

    def reopens(self) -> None:
        """Note that the command opens the target of one of its descriptors for writing."""
        ...


Handler = Callable[[Runner, str, Sequence[Word]], None]


def assignable(name: str, *, exported: bool) -> bool:
    """Whether setting this variable leaves the behaviour of programs unchanged."""
    if name in ("histchars", "auto_resume"):
        return False
    if _FREE_NAME.fullmatch(name):
        return not name.endswith("_proxy") or not exported
    if exported:
        return name in _FREE_EXPORTS
    return _WATCHED.fullmatch(name) is None


def strange_locale(name: str, value: str) -> bool:
    """Whether a variable makes programs take their messages from a file that somebody else provides."""
    return (
        re.fullmatch(r"LANG.*|LC_.*", name) is not None
        and re.fullmatch(r"[\w.@:-]*", value, re.ASCII) is None
    )


def shown(words: Sequence[Word]) -> str:
    """Format a command for a person."""
    return " ".join(word.text.replace(GAP, "…").replace(GLOB, "*") for word in words)[:120]
