"""Grants: what an agent may do. Authority only shrinks on the way down (law 6).

A grant is a scope (which functions, with which cap on impact), an intent (how much this task may do: 0 observe, 1
operate, 2 override, or a level between them) and the user for whom the agent acts. A person sets the session's grant; a
child's grant is its caller's or narrower. `narrow` can't widen a grant, whatever its arguments.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from iact.core.records.parts import GrantTerms

_NOTHING: Final = -1
"""A cap below every impact."""
_REMEMBERED: Final = 4096
"""How many functions a scope caches results for."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The functions that may be called. A function is in scope if every tuple in `allow` has a pattern that matches it.

    Without any tuple, nothing is in scope. Narrowing appends one more tuple, so a child's scope is a subset by
    construction.
    """

    name: str
    allow: tuple[tuple[str, ...], ...]
    caps: Mapping[str, float] = field(default_factory=dict)
    """The highest impact that a function may have, by pattern; the smallest matching cap counts. A cap may be between
    the three named levels."""
    _known: dict[str, tuple[bool, float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Whether a function is in scope, and its cap: what was looked up before."""
    _glob_caps: list[list[tuple[str, float]]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )
    """Once it was needed, one list: the caps whose patterns are more than a name."""

    def contains(self, function: str) -> bool:
        """Whether calls of `function` can be allowed at all."""
        return self._look(function)[0]

    def cap(self, function: str) -> float:
        """The highest impact that a call of `function` may have."""
        return self._look(function)[1]

    def _look(self, function: str) -> tuple[bool, float]:
        """Whether a function is in scope, and its cap. Cached."""
        known = self._known.get(function)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[function] = self._match(function)
        return known

    def _match(self, function: str) -> tuple[bool, float]:
        inside = bool(self.allow) and all(_patterns(patterns).match(function) for patterns in self.allow)

        caps = [cap for pattern, cap in self._globs() if fnmatch.fnmatchcase(function, pattern)]
        if function in self.caps:
            caps.append(self.caps[function])

        return inside, min(caps, default=2)

    def _globs(self) -> list[tuple[str, float]]:
        if not self._glob_caps:
            globs = [(pattern, cap) for pattern, cap in self.caps.items() if _is_glob(pattern)]
            self._glob_caps.append(globs)
        return self._glob_caps[0]


def _is_glob(pattern: str) -> bool:
    return any(character in pattern for character in "*?[")


@dataclass(frozen=True, slots=True)
class _Patterns:
    """Alternative patterns, with plain names kept separately: most scopes name functions literally."""

    names: frozenset[str]
    globs: tuple[str, ...]

    def match(self, function: str) -> bool:
        return function in self.names or any(fnmatch.fnmatchcase(function, glob) for glob in self.globs)


@lru_cache(maxsize=256)
def _patterns(patterns: tuple[str, ...]) -> _Patterns:
    return _Patterns(
        frozenset(pattern for pattern in patterns if not _is_glob(pattern)),
        tuple(pattern for pattern in patterns if _is_glob(pattern)),
    )


@dataclass(frozen=True, slots=True)
class Narrowing:
    """How an agent's grant is narrower than its caller's. None: not narrower."""

    patterns: tuple[str, ...] | None = None
    intent: float | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """What one agent may do, and for which user."""

    scope: Scope
    intent: float
    user: str = "local"

    def narrow(self, *, patterns: Sequence[str] | None = None, intent: float | None = None) -> Grant:
        """Return this grant or a narrower one: only functions that also match `patterns`, and at most `intent`."""
        lower = self.intent if intent is None else min(self.intent, intent)
        if patterns is None:
            return self if lower == self.intent else replace(self, intent=lower)

        wanted = (patterns,) if isinstance(patterns, str) else tuple(patterns)
        allow = self.scope.allow or ((),)  # nothing is in scope: that stays so with one more tuple
        scope = replace(self.scope, allow=(*allow, wanted))
        return replace(self, scope=scope, intent=lower)

    def terms(self) -> GrantTerms:
        """The grant in its journal form."""
        scope = self.scope
        return GrantTerms(
            scope=scope.name, allow=scope.allow, caps=dict(scope.caps), intent=self.intent, user=self.user
        )

    @staticmethod
    def of(terms: GrantTerms) -> Grant:
        """Read a grant from its journal form."""
        return Grant(Scope(terms.scope, terms.allow, terms.caps), terms.intent, terms.user)

    @staticmethod
    def none() -> Grant:
        """The grant of an agent to which nothing was granted."""
        return Grant(Scope("none", ((),)), 0)


DEFAULT_SCOPE = Scope("default", (("*",),))
"""Every function of every module of the session. In the default catalogue, none of them has egress."""
