"""The head of every agent's first message: what it may use, and who it is.

What is the same for all agents of an installation comes first: the documentation of the functions that most work needs,
then the list of functions. Agents with the same rights share it byte for byte, right behind the static prompt, so that a
new child begins with a cache hit there, too. Only then come the agent's own path, its rights, its role and its task.

How it is ordered: everyday functions with their signatures, then modules that somebody added to the session, then what
is rarely needed, in one line for all: by the functions that models call unasked, or by the module's name. A module that
is in that line comes with its signatures once a message names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iact.core.context.signature import LEGEND, lines, signature
from iact.core.language.actions import ActionSpec
from iact.core.language.labels import clean, documentation, fenced, inline

ESSENTIAL: Final = ("shell.run", "files.read", "files.write", "files.edit")
"""The functions whose documentation is in every first message. Those that a reader may use come first, so that it
shares their text with agents that may do more."""

RARE: Final[Mapping[str, str]] = {
    "docs": "PDF, Word, Excel",
    "sql": "query data files",
    "git": "status, history, commits",
    "browser": "click through pages",
    "app": "user enters secrets",
    "a2a": "ask foreign agents",
}
"""Shipped modules that most tasks don't need, with three words each."""

NATURAL: Final = ("docs.read", "sql.query", "git.status", "git.diff")
"""Functions of such modules that models call without having read of them. They are given with what they take first."""

_TAKES: Final = 1
"""How many parameters of such a function are given."""

YOU: Final = "You are agent "
"""How the part of a first message begins that is about its agent alone."""

READS_ONLY: Final = "You may read, not change."
"""What an agent is told that may only look. Checks from outside look for these words."""

_WHAT_READERS_WRITE: Final = (
    "Scripts of yours (but not files.write) may write, to test or to compute, without a network; only you see it, and "
    "it is gone when you have answered."
)


@dataclass(frozen=True, slots=True)
class AgentOffer:
    """What an agent may use."""

    documented: Sequence[ActionSpec]
    """Functions that are documented in full."""
    listed: Sequence[ActionSpec]
    """Functions that are listed with their signatures, in their order of use."""
    rare: Sequence[str]
    """Names of modules that are named in one line."""
    natural: Sequence[ActionSpec]
    """Functions of these modules that are given with what they take."""
    models: Sequence[str]
    """The roles of the models that there are."""


def offer(offered: AgentOffer) -> list[str]:
    """Return the paragraphs that agents with the same rights share."""
    notes = [documentation(spec.name, spec.alias, spec.documentation) for spec in offered.documented]
    listed = lines(offered.listed)
    rare = [_rare(module, offered.natural) for module in offered.rare]
    if rare:
        listed.append(f"- rarely needed, `HELP name` tells more: {'; '.join(rare)}")
    if not listed:
        return notes

    functions = "\n".join([f"Functions that you can use ({LEGEND}):", *listed])
    if len(offered.models) > 1:
        roles = ", ".join(f"model={role}" for role in offered.models)
        functions = f"{functions}\nA CALL can name a model: {roles}."
    return [*notes, functions]


def _rare(module: str, natural: Sequence[ActionSpec]) -> str:
    """A module that is rarely needed, by those of its functions that are called unasked, or by its name."""
    shown = [signature(spec, most=_TAKES) for spec in natural if spec.module == module]
    names = ", ".join(f"`{name}`" for name in shown or [module])
    return f"{names} {RARE[module]}"


def identity(agent: str, caller: str, role: str, *, reads_only: bool = False, layer: bool = False) -> str:
    """Return who an agent is: its path, its caller, whether it may only read, and its role.

    `layer`: what a script of an agent that may only read writes is thrown away when it has answered.
    """
    by = "the user" if caller == "user" else caller
    parts = [f"{YOU}{agent}, called by {by}."]
    if reads_only:
        parts.append(_rights(layer=layer))
    return "\n\n".join([*parts, *_role(role)])


def forked(agent: str, caller: str, role: str, *, reads_only: bool = False, layer: bool = False) -> str:
    """Return the head of the first message of a child that begins with its caller's history. `layer`: as in `identity`."""
    parts = [
        f"{YOU}{agent}, called by {caller}.\n\nWhat stands above is your caller's history, which you share "
        "up to here; you are its child from now on, and nothing that you do enters it but your answer."
    ]
    if reads_only:
        parts.append(_rights(layer=layer))
    return "\n\n".join([*parts, *_role(role)])


def _rights(*, layer: bool) -> str:
    return f"{READS_ONLY}\n{_WHAT_READERS_WRITE}" if layer else READS_ONLY


def for_a_small_model(agent: str, caller: str, functions: Sequence[ActionSpec], *, role: str = "") -> str:
    """Return the whole head for a model with a static prompt of its own, in the form that its examples have."""
    head = identity(agent, caller, role)
    if not functions:
        return head

    listed = list[str]()
    for spec in functions:
        alias = f" (alias `{spec.alias}`)" if spec.alias else ""
        listed.append(f"- `{spec.name}`{alias}: {inline(spec.summary)}")
    return "\n".join([f"{head}\n\nFunctions you can use:", *listed])


def _role(role: str) -> list[str]:
    if not role:
        return []
    return [f"Your role, as your caller put it:\n{fenced(clean(role))}"]
