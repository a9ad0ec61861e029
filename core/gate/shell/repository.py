"""Git: which of its commands only look, and what the others do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from core.gate.shell.effects import Effect
from core.gate.shell.handling import Runner, shown
from core.gate.shell.options import parse, tables
from core.gate.shell.words import Word

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


def git(runner: Runner, name: str, arguments: Sequence[Word]) -> None:
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
