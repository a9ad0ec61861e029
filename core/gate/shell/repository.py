"""Git: which of its commands only read, and what the others do.

A repository's own configuration names programs that git runs when it reads: a file system monitor for everything that
looks at the work tree, converters and filters for differences, a checker for signatures, and a transport for missing
objects. The author of the repository is also the author of its configuration. So `status`, `diff` and `blame` are not
understood. Commands that never look at the work tree are read-only under `GIT_ALLOW_PROTOCOL=none` with the options
that turn off the rest. Commands that read no object are read-only anyway. Both were tried on a repository with every
such setting that git has: `tests/core/gate/test_repository.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from iact.core.gate.shell.effects import Effect
from iact.core.gate.shell.handlers import Runner, shown
from iact.core.gate.shell.options import parse, tables
from iact.core.gate.shell.words import GAP, Word

_GIT_EFFECTS: Final[Mapping[str, Effect]] = {
    **dict.fromkeys(("push", "fetch", "pull", "clone", "ls-remote", "send-email", "request-pull", "svn", "archive"), "send"),
    **dict.fromkeys(
        ("reset", "clean", "checkout", "restore", "rm", "mv", "rebase", "gc", "prune", "filter-branch", "filter-repo",
         "update-ref", "reflog", "switch", "worktree", "replace", "read-tree", "apply", "am", "revert", "cherry-pick",
         "merge", "repack", "fsck", "notes", "symbolic-ref", "stash", "branch", "tag"), "destroy"),
    **dict.fromkeys(("config", "remote", "submodule", "credential", "init", "hook", "daemon", "maintenance"), "authority"),
    "add": "modify",
}  # fmt: skip
_PLAIN: Final[Mapping[str, re.Pattern[str]]] = {
    "branch": re.compile(r"--show-current"),
    "remote": re.compile(r"(?:-v|--verbose|)|get-url \w+"),
    "config": re.compile(r"(?:--global |--local |--system )?(?:--get(?:-all|-regexp)? [\w.*-]+|--list|-l)(?: --show-origin)?"),
    "worktree": re.compile(r"list"),
    "rev-parse": re.compile(
        r"(?:(?:--(?:show-toplevel|abbrev-ref|short|verify|git-dir|is-inside-work-tree|show-prefix|show-cdup|quiet|all"
        r"|symbolic-full-name|absolute-git-dir|is-bare-repository|branches|tags)|-q|[A-Za-z][\w./-]*) ?)+"
    ),
    "count-objects": re.compile(r"(?:-v|-H|-vH|)"),
    "help": re.compile(r"(?:-a|-g|)"),
    "version": re.compile(r"(?:--build-options|)"),
    "var": re.compile(r"[A-Z_]+|-l"),
}  # fmt: skip
"""Whole commands that read neither objects nor the work tree."""
_CLOSED: Final[Mapping[str, re.Pattern[str]]] = {
    "branch": re.compile(r"(?:-[avr]+|--all|--list|--remotes|--verbose|--merged|--no-merged|-vv)?"),
    "tag": re.compile(r"(?:-l|--list|-n\d*)(?: (?!-)[\w.*-]+)?|--sort=(?!\S*signature)\S+|"),
    "stash": re.compile(r"list --no-show-signature --oneline"),
}
_SIGNED: Final = frozenset({"log", "show", "reflog", "whatchanged", "rev-list"})
"""Commands that check signatures if they are told to, also by a format."""
_NO_PATCH: Final = frozenset({"--no-patch", "-s"})
_NO_PROGRAMS: Final = frozenset({"--no-ext-diff", "--no-textconv", "--submodule=short"})
_DIFFERENCES: Final = re.compile(r"-(?!-)[A-Za-z]*[puUcmGSL]|--(?:patch|cc|word-diff)")
"""Options that compare contents anyway: the last of `-p` and `--no-patch` counts, and `-G` compares to search."""
_FORMS: Final = frozenset({"oneline", "short", "medium", "full", "fuller", "reference", "email", "raw"})
"""Git's own formats, which no configuration can change."""
CLOSED: Final = "GIT_ALLOW_PROTOCOL=none"
"""With this in its environment, git does not fetch missing objects."""


def git(runner: Runner, name: str, arguments: Sequence[Word], *, closed: bool = False) -> None:
    """Judge a git command. `closed`: it may not fetch."""
    rest = list(arguments)
    while rest and rest[0].known in ("--no-pager", "--literal-pathspecs", "--no-optional-locks", "-C", "-P"):
        if rest.pop(0).known == "-C" and rest and rest.pop(0).known is None:
            runner.find("unknown", f"git in a directory that is not known: {shown(arguments)}")
            return

    command = rest.pop(0).known if rest else None
    if command in ("--version", "--help", None) and not rest and arguments:
        return
    if _looks(command or "", rest, closed=closed):
        return

    # A command that would look if git could not fetch does nothing worse than to run what is configured.
    would_look = _looks(command or "", rest, closed=True) or [word.known for word in rest] == ["list"]
    effect = None if would_look else _GIT_EFFECTS.get(command or "")
    if effect == "modify" and not _is_understood(rest):
        effect = None
    runner.find(
        effect or "unknown", f"runs what the repository's configuration names: git {shown(arguments)}"
    )


def _is_understood(rest: Sequence[Word]) -> bool:
    """Whether the options of a command that modifies are known to change no more."""
    if any(word.loose for word in rest):
        return False
    return parse("-Auvnf --all --update").operands(rest) is not None


def _looks(command: str, rest: Sequence[Word], *, closed: bool) -> bool:
    """Whether a command only reads. `closed`: it may not fetch."""
    known = all(word.known is not None for word in rest)
    text = " ".join(word.text for word in rest)
    if known and command in _PLAIN and _PLAIN[command].fullmatch(text):
        return True
    if not closed:
        return False
    if known and command in _CLOSED and _CLOSED[command].fullmatch(text):
        return True

    options = tables().git.get(command)
    if options is None or options.operands(rest) is None:
        return False

    given = {word.text for word in rest}
    if command == "for-each-ref" and any("signature" in argument or GAP in argument for argument in given):
        return False
    return command not in _SIGNED or _runs_nothing(command, given)


def _runs_nothing(command: str, given: set[str]) -> bool:
    """Whether a command of `_SIGNED` runs nothing that a configuration names. `given`: its arguments."""
    if command != "rev-list" and "--no-show-signature" not in given:
        return False
    if any("%G" in text or GAP in text for text in given):
        return False

    # Without a format, the repository's own is taken. The name of a format may be one that it defines.
    forms = [text.partition("=")[2] for text in given if re.match(r"--(?:format|pretty)=", text)]
    if not forms and "--oneline" not in given:
        return False
    if not all("%" in form or form in _FORMS for form in forms):
        return False

    if any(text.startswith("--submodule=") and text != "--submodule=short" for text in given):
        return False
    compares_nothing = bool(given & _NO_PATCH) and not any(map(_DIFFERENCES.match, given))
    return given >= _NO_PROGRAMS or compares_nothing
