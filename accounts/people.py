"""What is known about people, as plain values, so that displaying them needs no database. Times are seconds since 1970,
UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from iact.accounts.rights import LinkView, Role, Scope, ServerRole, Words

AuthenticatorName: TypeAlias = Literal["token", "password", "header", "oidc"]

AuditKind: TypeAlias = Literal[
    "sign-in", "sign-in.failed", "sign-out", "user.added", "user.removed", "user.disabled", "user.enabled", "user.role",
    "user.password", "user.groups", "token.created", "token.revoked", "link.created", "link.revoked", "link.opened",
    "grant.given", "grant.taken", "session.seen", "session.renamed", "session.deleted", "session.restored", "session.purged",
    "policy.changed", "module.added", "module.removed", "module.approved", "secret.changed", "quota.changed",
    "audit.exported",
]  # fmt: skip
"""The events in the server's audit. What happens within sessions is in their journals."""


@dataclass(frozen=True, slots=True)
class User:
    """A person with an account."""

    id: str
    name: str
    """What they sign in with."""
    role: ServerRole
    created: float
    groups: frozenset[str] = frozenset()
    disabled: float | None = None
    """Since when they are; None: they are not."""
    seen: float | None = None
    """When they last did anything; None: never."""


@dataclass(frozen=True, slots=True)
class SignIn:
    """A place where a user is signed in."""

    id: str
    """Identifies it, and gives no access."""
    user: str
    created: float
    seen: float
    """When it was last used, to the minute."""
    ends: float
    address: str
    agent: str
    """What the browser says that it is."""


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token of a user; the token itself was shown once."""

    id: str
    user: str
    name: str
    """What it is for, in the user's words."""
    scopes: frozenset[Scope]
    created: float
    ends: float
    used: float | None = None
    """When it was last used, to the minute; None: never."""
    revoked: float | None = None
    words: Words = "newest"
    """What of all that is sent with it is its user's words."""


@dataclass(frozen=True, slots=True)
class SessionGrant:
    """A role on a session that its owner granted."""

    owner: str
    session: str
    subject: str
    """A user's id, or with `of_group` a group's name."""
    role: Role
    of_group: bool = False


@dataclass(frozen=True, slots=True)
class ShareLink:
    """A link that a user made to one of their sessions."""

    id: str
    owner: str
    session: str
    created: float
    ends: float
    view: LinkView = field(default_factory=LinkView)
    """What it leaves out."""
    public: bool = False
    """Whether it works without an account."""
    opened: int = 0
    """How often it was opened."""
    revoked: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSession:
    """What a user may do with one session of another user."""

    session: str
    owner: str
    """The owner's id."""
    owner_name: str
    """The owner's name, for people."""
    role: Role
    view: LinkView | None = None
    """What a link leaves out; None if it was granted, and nothing is left out."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who changes accounts, for the audit."""

    name: str
    """Their name at that time."""
    address: str = ""
    """Where they connect from, if known."""
    user: str = ""
    """Their id, if they have an account."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """The answer to a request about signing in."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    """JSON for the page's script, or nothing."""


class HttpRequest(Protocol):
    """The parts of a request that show who it comes from. Headers may be repeated; their names are in lower case."""

    @property
    def method(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def cookies(self) -> tuple[str, ...]: ...
    @property
    def authorizations(self) -> tuple[str, ...]: ...
    @property
    def headers(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def peer(self) -> str: ...


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One line of the audit; never content."""

    at: float
    kind: AuditKind
    who: str
    """Their name at that time."""
    address: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    """What it concerns, by name."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A secret that is shown only this once, with the id that is kept."""

    secret: str = field(repr=False)
    id: str
