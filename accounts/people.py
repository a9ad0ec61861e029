"""What is known about people, as plain values, so that displaying them needs no database. Times are seconds since 1970,
UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from iact.accounts.rights import LinkView, Role, Scope, ServerRole

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
    """A person with an account. `name`: what they sign in with; `disabled`: since when, or None if they are not."""

    id: str
    name: str
    role: ServerRole
    created: float
    groups: frozenset[str] = frozenset()
    disabled: float | None = None
    seen: float | None = None


@dataclass(frozen=True, slots=True)
class SignIn:
    """A place where a user is signed in. `id` identifies it and gives no access."""

    id: str
    user: str
    created: float
    seen: float
    ends: float
    address: str
    agent: str


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token of a user; the token itself was shown once. `used`: when it was last used, to the minute."""

    id: str
    user: str
    name: str
    scopes: frozenset[Scope]
    created: float
    ends: float
    used: float | None = None
    revoked: float | None = None


@dataclass(frozen=True, slots=True)
class SessionGrant:
    """A role on a session that its owner granted. `subject`: a user's id, or with `of_group` a group's name."""

    owner: str
    session: str
    subject: str
    role: Role
    of_group: bool = False


@dataclass(frozen=True, slots=True)
class ShareLink:
    """A link that a user made to one of their sessions. `public`: it works without an account. `opened`: how often it
    was opened."""

    id: str
    owner: str
    session: str
    created: float
    ends: float
    view: LinkView = field(default_factory=LinkView)
    public: bool = False
    opened: int = 0
    revoked: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSession:
    """What a user may do with one session of another user. `owner`: the owner's id; `owner_name`: for people.

    `view`: what a link leaves out; None if it was granted, and nothing is left out.
    """

    session: str
    owner: str
    owner_name: str
    role: Role
    view: LinkView | None = None


@dataclass(frozen=True, slots=True)
class Actor:
    """Who changes accounts, for the audit. `name`: their name at that time; `address`: where they connect from, if
    known; `user`: their id, if they have an account."""

    name: str
    address: str = ""
    user: str = ""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """The answer to a request about signing in. `body`: JSON for the page's script, or nothing."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""


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
    """One line of the audit: when, who (the name at that time), from which address, what; never content."""

    at: float
    kind: AuditKind
    who: str
    address: str = ""
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shown:
    """A secret that is shown only this once, with the id that is kept."""

    secret: str = field(repr=False)
    id: str
