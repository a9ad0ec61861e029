"""The impact of a change in a live directory: the actual change decides, not the command that made it.

A call that works in an overlay of a user's directory changes nothing in the directory itself. The changes that it left
in the overlay are rated here, path by path: additions, and changes to what this session itself had added, are 1;
everything else is 2. A policy can rate whole classes differently, except for changes that could reach beyond the
directory or act with another user's rights. Whatever its impact, a change also says whether it leaves a file that
something runs or reads by itself (`core.gate.additions`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from iact.core.gate.additions import ActingKind, acting_kind
from iact.core.gate.policy import EffectRule, Policy
from iact.core.ports import FileChange, FileState

_SET_ID: Final = 0o6000
_EXECUTE: Final = 0o111
_PERMISSIONS: Final = 0o777
_DONE: Final[Mapping[str, str]] = {"add": "adds", "modify": "changes", "delete": "deletes"}
_NAMED: Final[Mapping[str, str]] = {
    "file": "a file", "folder": "a folder", "link": "a link", "other": "a device, pipe or socket",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Effect:
    """The impact of a change, and the reason, in a sentence for people."""

    impact: float
    why: str
    fixed: bool = False
    """No policy rule can lower the impact."""
    acts: ActingKind | None = None
    """What kind of file the change leaves, if something runs or reads it by itself."""


def rate(change: FileChange, own: FileState | None, policy: Policy, *, additions: bool = True) -> Effect:
    """Rate one change.

    `own`: the state in which this session left what it had added at this path, or None. `additions`: whether files
    that act by themselves are told apart; journals of older formats were written without.
    """
    kind = None
    if additions and change.now is not None:
        kind = acting_kind(change.path, change.now)

    fixed = _reaches_beyond(change)
    if fixed:
        return Effect(2, fixed, fixed=True, acts=kind)

    natural = _by_nature(change, own)
    ruled = _by_rules(change, natural.impact, policy)
    if ruled == natural.impact:
        return Effect(natural.impact, natural.why, acts=kind)
    return Effect(ruled, f"{natural.why} A rule of the policy rates it {ruled:g}.", acts=kind)


def highest(effects: Iterable[Effect]) -> Effect:
    """Return the effect with the most impact, the first of several."""
    return max(effects, key=lambda effect: effect.impact, default=Effect(0, "Nothing changed."))


def same(one: FileState | None, other: FileState | None) -> bool:
    """Whether two states are the same, except for set-id bits, which are never applied."""
    if one is None or other is None:
        return one is other

    # Only a file's size says something; that of a folder is the file system's own affair.
    if one.type == "file" and one.size != other.size:
        return False

    return (one.type, one.mode & _PERMISSIONS, one.target, one.sha256) == (
        other.type,
        other.mode & _PERMISSIONS,
        other.target,
        other.sha256,
    )


def _reaches_beyond(change: FileChange) -> str:
    """Why a change could reach beyond the directory or its owner's rights; empty if it can't."""
    now = change.now
    if any(part in ("", ".", "..") for part in change.path.split("/")):
        return "Its name leads out of the directory."

    if "other" in {state.type for state in (change.was, now) if state is not None}:
        return f"It {_DONE[change.kind]} a device, pipe or socket."

    if now is None:
        return ""
    if now.type == "file" and now.mode & _SET_ID:
        return "It would run with the rights of its owner or group, whoever starts it."
    if now.type == "link" and leads_out(change.path, now.target):
        return "It is a link to something outside of the directory."
    return ""


def leads_out(path: str, target: str) -> bool:
    """Whether a link at `path` with this target leads out of the directory, judged by its text."""
    if target.startswith("/") or not target:
        return True

    depth = path.count("/")
    for part in target.split("/"):
        if part == "..":
            depth -= 1
        elif part not in ("", "."):
            depth += 1

        # Also if it comes back later: what lies between is not in the directory.
        if depth < 0:
            return True
    return False


def _by_nature(change: FileChange, own: FileState | None) -> Effect:
    """The effect of a change if no rule applies."""
    was = change.was
    now = change.now
    does = _DONE[change.kind]
    types = [state.type for state in (was, now) if state is not None]

    if "link" in types:
        return Effect(2, f"It {does} a link, through which other files can be reached.")
    if any(part.startswith(".") for part in change.path.split("/")):
        return Effect(
            2, f"It {does} something whose name begins with a dot; programs take settings from such files."
        )

    if was is not None and now is not None and "file" in types:
        may_run_differs = (was.mode ^ now.mode) & _EXECUTE
        if may_run_differs:
            return Effect(2, "It changes whether a file can be run as a program.")

    # What was there is what the change does away with; of an addition there is only what came.
    kind = _NAMED[types[0]] if types else "something"
    if change.kind == "add":
        return Effect(1, f"It adds {kind}.")
    if own is not None and same(own, was):
        return Effect(1, f"It {does} {kind} that this session had added.")
    return Effect(2, f"It {does} {kind} that this session did not make.")


# --- rules ------------------------------------------------------------------------------------------------


def _by_rules(change: FileChange, impact: float, policy: Policy) -> float:
    """The impact under a policy: within a scope the highest matching rule, of several scopes the highest.

    So a scope that lets a class pass does not override another scope that has no rule for it.
    """
    if not policy.effects:
        return impact

    highest_of: dict[str, float] = {}
    for rule in policy.effects:
        if matches(rule, change):
            highest_of[rule.scope] = max(rule.impact, highest_of.get(rule.scope, rule.impact))

    return max((highest_of.get(scope, impact) for scope in policy.names), default=impact)


def matches(rule: EffectRule, change: FileChange) -> bool:
    """Whether a rule applies to a change."""
    if rule.kinds and change.kind not in rule.kinds:
        return False
    return _pattern(rule.path).fullmatch(change.path) is not None


@functools.lru_cache(maxsize=256)
def _pattern(glob: str) -> re.Pattern[str]:
    """Compile a glob. `*` and `?` stay within a name, `**` is any number of names; leading dots are written out."""
    *folders, last = glob.strip("/").split("/")
    pieces = [_folders(part) for part in folders]

    if last == "**":
        pieces.append(r"[^./][^/]*(?:/[^./][^/]*)*")
    else:
        pieces.append(_name(last))
    return re.compile("".join(pieces), re.DOTALL)


def _folders(part: str) -> str:
    """The pattern of a part of a glob that is not its last, with the slash behind it."""
    if part == "**":
        return r"(?:[^./][^/]*/)*"
    return _name(part) + "/"


def _name(part: str) -> str:
    """The pattern of one name. A wildcard at its beginning doesn't match a dot."""
    wildcards = {"*": "[^/]*", "?": "[^/]"}
    pattern = "".join(wildcards.get(character) or re.escape(character) for character in part)
    return rf"(?!\.){pattern}" if part[:1] in ("*", "?") else pattern
