"""Which packages of a module that an agent writes wait for a person: those that nobody has named yet. Pure.

A package is code of a stranger's, and its name is asked of an index outside. So the index hears only names that a person
approved in this session, or that the policy has in its set `packages`, by name or as `name==version`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iact.core.language.actions import DEPLOY
from iact.core.ports import JSON
from iact.core.tree.tree import Tree

ALLOWED: Final = "packages"
"""The policy's set of packages that agents may use unasked."""

_SHOWN: Final = 600
"""The most characters of packages that a sentence quotes. The question has all of them below."""


def listed(text: str) -> tuple[str, ...]:
    """The entries of an argument of DEPLOY that lists words, apart by spaces or commas."""
    return tuple(text.replace(",", " ").split())


def unnamed(tree: Tree, function: str, arguments: Mapping[str, JSON]) -> tuple[str, ...]:
    """The packages that a call asks for and that neither a person nor the policy named.

    Whatever is no exact version (`name==version`) is refused later and never asked for.
    """
    if function != DEPLOY.name or not tree.follows_1_3:
        return ()

    named = tree.packages | tree.policy.known.get(ALLOWED, frozenset())
    return tuple(
        package
        for package in listed(str(arguments.get("requirements", "")))
        if "==" in package and package not in named and package.partition("==")[0] not in named
    )


def why_asked(packages: tuple[str, ...]) -> str:
    """The sentence for people about packages that nobody named; empty if there are none."""
    if not packages:
        return ""

    names = ", ".join(packages)
    if len(names) > _SHOWN:
        names = names[: _SHOWN - 1] + "…"
    return f"The module needs packages from the index, and whatever these need in turn: {names}. Nobody named them."
