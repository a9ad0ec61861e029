"""What a REMEMBER says about what it keeps: the kind of memory, where it holds, and what it replaces. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast, get_args

from iact.core.language.grammar import Bound
from iact.core.ports import WantedScope
from iact.core.tree.interpret import argument_text


@dataclass(frozen=True, slots=True)
class KeptMemory:
    """What is said about a memory besides its text. Empty: nothing was said."""

    kind: str = ""
    """The kind, one of `StatementKind`."""
    replaces: str = ""
    """The id of the memory that it replaces."""
    scope: WantedScope = ""
    """Where it holds."""


def kept_by(bound: Bound) -> KeptMemory:
    """What the arguments of a REMEMBER say."""
    scope = argument_text(bound, "scope")
    # Journals before 1.3 call it `supersedes`.
    replaces = argument_text(bound, "replaces") or argument_text(bound, "supersedes")
    return KeptMemory(
        kind=argument_text(bound, "kind"),
        replaces=replaces,
        scope=cast(WantedScope, scope) if scope in get_args(WantedScope) else "",
    )
