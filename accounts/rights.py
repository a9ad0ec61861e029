"""Who may ask for what: one table, without a clock, a file or a socket.

Each message of the page and each route of the server names one right (`web.commands`, `web.safety`); who lacks it is
refused. What a right asks for is a row of `RULES`: a role on the session that is watched, or none where it is about one's
own things, and the scope that an API token must have. Who somebody is, and what was granted to them, is an input.

| role | may |
|---|---|
| reader | see a session |
| steerer | also talk to its agents, pause and stop them, and answer what waits for a person |
| owner | all: also what holds beyond this session, and what vouches for data or gives agents more power |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from iact.core.errors import IactError

Role: TypeAlias = Literal["owner", "steerer", "reader"]
"""What somebody is to a session."""

ROLES: Final[tuple[Role, ...]] = ("reader", "steerer", "owner")
"""From the least to the most."""

GRANTED: Final[tuple[Role, ...]] = ("reader", "steerer")
"""The roles that an owner can give to others."""

ServerRole: TypeAlias = Literal["admin", "user"]
"""What somebody is on the server."""

Scope: TypeAlias = Literal["sessions:read", "sessions:write", "clear", "admin"]
"""What an API token may be used for."""

HiddenPart: TypeAlias = Literal["files", "gate"]
"""What a link can leave out as a whole: the files of the session, and what the gate decided."""

SCOPES: Final[tuple[Scope, ...]] = ("sessions:read", "sessions:write", "clear", "admin")
HIDDEN_PARTS: Final[tuple[HiddenPart, ...]] = ("files", "gate")

Right: TypeAlias = Literal[
    "public", "greet", "see", "inspect", "steer", "clear", "own", "fork", "list", "change", "approve",
    "account", "admin",
]  # fmt: skip
"""What a message or a route needs.

`public`: nothing. `greet`: to be somebody, a link at least. `see`: the session that is watched. `inspect`: all that is
stored of it, which no link shows. `steer`: to have agents do something. `clear`: to answer for them. `own`: to vouch, or
to decide beyond the session. `list`, `change`, `approve`: one's own things, whatever is watched. `account`: by what they themselves come in.
`admin`: the server.
"""

EVERY_SCOPE: Final[frozenset[Scope]] = frozenset(SCOPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks. `user`: an id, empty for the holder of a link; `name`: as records have it, empty where there is one user.

    `scopes`: what they, or their token, may be used for. `key`: by what they came, so that it can be withdrawn.
    """

    user: str
    name: str = ""
    admin: bool = False
    scopes: frozenset[Scope] = EVERY_SCOPE
    link: str = ""
    """The link by which they came: they see one session, and nothing else."""
    key: str = ""

    @property
    def whose(self) -> str:
        """A name for their own things, such as files that wait to be downloaded."""
        return f"link {self.link}" if self.link else self.user


LOCAL: Final = Principal(user="local", admin=True)
"""Whoever holds the secret of a server without accounts."""


NOBODY: Final = Principal(user="", scopes=frozenset())
"""Whoever did not say who they are: for them is what everybody may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkView:
    """What a link leaves out of a session. `at`: the record that it is frozen at; None: it is live."""

    at: int | None = None
    hides: frozenset[HiddenPart] = frozenset()
    variables: frozenset[str] = frozenset()
    """Names of variables whose values are left out."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """`roles`: any of these on the watched session; None: it is not about one. `scope`: None: none is needed.

    `links`: whether it is enough to hold a link. `whole`: a token must have every scope, so that none can be
    exchanged for one that may do more.
    """

    roles: frozenset[Role] | None
    scope: Scope | None
    links: bool = False
    whole: bool = False


_ANY: Final[frozenset[Role]] = frozenset({"owner", "steerer", "reader"})
_ACTING: Final[frozenset[Role]] = frozenset({"owner", "steerer"})
_OWNER: Final[frozenset[Role]] = frozenset({"owner"})

RULES: Final[Mapping[Right, _Rule]] = {
    "public": _Rule(None, None, links=True),
    "greet": _Rule(None, None, links=True),
    "see": _Rule(_ANY, "sessions:read", links=True),
    "inspect": _Rule(_ANY, "sessions:read"),
    "steer": _Rule(_ACTING, "sessions:write"),
    "clear": _Rule(_ACTING, "clear"),
    "own": _Rule(_OWNER, "clear"),
    "fork": _Rule(_ANY, "sessions:write"),
    "list": _Rule(None, "sessions:read"),
    "change": _Rule(None, "sessions:write"),
    "approve": _Rule(None, "clear"),
    "account": _Rule(None, None, whole=True),
    "admin": _Rule(None, "admin"),
}


def may(who: Principal, right: Right, role: Role) -> bool:
    """Whether somebody who has `role` on the session that they watch (their own, if they watch none) has a right."""
    rule = RULES[right]
    if who.link and not rule.links:
        return False
    if right == "admin" and not who.admin:
        return False
    if rule.whole and not who.scopes >= EVERY_SCOPE:
        return False
    if rule.scope is not None and rule.scope not in who.scopes:
        return False
    return rule.roles is None or role in rule.roles


class Forbidden(IactError):
    """Somebody asked for what they may not."""


_REFUSALS: Final[Mapping[Right, str]] = {
    "see": "Your token may not read sessions. Create one with the scope sessions:read.",
    "inspect": "This link shows less of the session. Ask its owner to share the session with you.",
    "steer": "You can only look at this session. Ask its owner to make you a steerer, or fork it into one of your own.",
    "clear": "You can't answer for this session. Ask its owner to make you a steerer, or use a token with the scope clear.",
    "own": "Only the owner of this session can do that.",
    "fork": "To make a session of your own of this one, sign in, or use a token with the scope sessions:write.",
    "list": "A link shows one session and nothing else. Sign in to see your own.",
    "change": "You may look, but not change anything. Sign in, or use a token with the scope sessions:write.",
    "approve": "You can't approve anything here. Sign in, or use a token with the scope clear.",
    "account": "Accounts are changed by whoever signs in to the page, not by a token.",
    "admin": "Only an administrator of this server can do that.",
}


def refusal(right: Right) -> str:
    """Why somebody lacks a right, for people."""
    return _REFUSALS.get(right, "You may not do that here.")
