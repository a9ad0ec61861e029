"""Who may request what: one table, without a clock, a file or a socket.

Each message of the page and each route of the server names one right (`web.commands`, `web.safety`); a client without
it is refused. A row of `RULES` says what a right requires: a role on the watched session, or none where it concerns the
user's own data, and the scope that an API token must have. The principal, and what was granted to them, are inputs.

| role | may |
|---|---|
| reader | see a session |
| steerer | also talk to its agents, pause and stop them, and answer what waits for a person |
| owner | everything, including what applies beyond this session, marks data as trusted or gives agents more power |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from iact.core.errors import IactError

Role: TypeAlias = Literal["owner", "steerer", "reader"]
"""A user's role on a session."""

ROLES: Final[tuple[Role, ...]] = ("reader", "steerer", "owner")
"""From the least to the most powerful."""

GRANTED: Final[tuple[Role, ...]] = ("reader", "steerer")
"""The roles that an owner can grant to others."""

ServerRole: TypeAlias = Literal["admin", "user"]
"""A user's role on the server."""

Scope: TypeAlias = Literal["sessions:read", "sessions:write", "clear", "admin"]
"""What an API token may be used for."""

Words: TypeAlias = Literal["all", "newest", "none"]
"""What of all that a program sends is its user's words: the earlier chat that it tells of, too; its newest message only; or
nothing, since it passes on what others write."""

HiddenPart: TypeAlias = Literal["files", "gate"]
"""What a link can leave out as a whole: the session's files, and the gate's decisions."""

SCOPES: Final[tuple[Scope, ...]] = ("sessions:read", "sessions:write", "clear", "admin")
WORDS: Final[tuple[Words, ...]] = ("all", "newest", "none")
HIDDEN_PARTS: Final[tuple[HiddenPart, ...]] = ("files", "gate")

Right: TypeAlias = Literal[
    "public", "greet", "see", "inspect", "steer", "clear", "own", "fork", "list", "change", "approve",
    "account", "admin",
]  # fmt: skip
"""The right that a message or a route requires.

`public`: nothing. `greet`: to be identified, at least by a link. `see`: to see the watched session. `inspect`: to see
everything that is stored of it, which no link shows. `steer`: to have agents do something. `clear`: to answer for them.
`own`: to mark data as trusted, or to decide beyond the session. `list`, `change`, `approve`: for the user's own data,
regardless of the watched session. `account`: for the user's own credentials. `admin`: for the server.
"""

EVERY_SCOPE: Final[frozenset[Scope]] = frozenset(SCOPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who makes a request."""

    user: str
    """An id; empty for a link's holder."""
    name: str = ""
    """As in records; empty if there is one user."""
    admin: bool = False
    scopes: frozenset[Scope] = EVERY_SCOPE
    """What they, or their token, may be used for."""
    link: str = ""
    """The link that they used; they see one session, and nothing else."""
    key: str = ""
    """The credential that they used, so that it can be revoked."""
    words: Words = "newest"
    """What counts as theirs of what is sent with their token."""

    @property
    def whose(self) -> str:
        """A name for their own data, such as files that wait to be downloaded."""
        return f"link {self.link}" if self.link else self.user


LOCAL: Final = Principal(user="local", admin=True)
"""The holder of the secret of a server without accounts."""


NOBODY: Final = Principal(user="", scopes=frozenset())
"""A client that did not identify itself and has only the public rights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkView:
    """What a link leaves out of a session."""

    at: int | None = None
    """The record that it is frozen at; None: it is live."""
    hides: frozenset[HiddenPart] = frozenset()
    variables: frozenset[str] = frozenset()
    """Names of variables whose values are left out."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a right requires."""

    roles: frozenset[Role] | None
    """Any of these on the watched session; None: no session is needed."""
    scope: Scope | None
    """The scope that a token needs; None: none."""
    links: bool = False
    """Whether holding a link is enough."""
    whole: bool = False
    """Whether a token must have every scope, so that it can't be exchanged for one that may do more."""


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
    """Whether a principal who has `role` on the watched session (their own, if none is watched) has a right."""
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
    """A client requested something that it has no right to."""


_REFUSALS: Final[Mapping[Right, str]] = {
    "see": "Your token may not read sessions. Create one with the scope sessions:read.",
    "inspect": "This link does not show this part of the session. Ask the session's owner to share it with you.",
    "steer": "You can only view this session. Ask its owner to make you a steerer, or fork it into your own session.",
    "clear": (
        "You can't answer questions in this session. Ask its owner to make you a steerer, or use a token "
        "with the scope clear."
    ),
    "own": "Only the owner of this session can do that.",
    "fork": "To make your own copy of this session, sign in, or use a token with the scope sessions:write.",
    "list": "A link shows one session and nothing else. Sign in to see your own.",
    "change": "You can view this, but not change anything. Sign in, or use a token with the scope sessions:write.",
    "approve": "You can't approve anything here. Sign in, or use a token with the scope clear.",
    "account": "A token can't change accounts. Sign in to the page to change them.",
    "admin": "Only an administrator of this server can do that.",
}


def refusal(right: Right) -> str:
    """Why a right is missing, for people."""
    return _REFUSALS.get(right, "You may not do that here.")
