"""What is known of people, as plain values: whoever shows it needs no database for that. Times are seconds since 1970, UTC."""

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
"""What the audit of the server keeps; what happened inside of sessions is in their journals."""


@dataclass(frozen=True, slots=True)
class User:
    """Somebody with an account. `name`: what they sign in with; `disabled`: since when, None: they are not."""

    id: str
    name: str
    role: ServerRole
    created: float
    groups: frozenset[str] = frozenset()
    disabled: float | None = None
    seen: float | None = None


@dataclass(frozen=True, slots=True)
class SignIn:
    """Where somebody is signed in. `id` tells one from another and lets nobody in."""

    id: str
    user: str
    created: float
    seen: float
    ends: float
    address: str
    agent: str


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token of a user; what it is was shown once. `used`: last, to the minute."""

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
    """A role on a session that its owner gave. `subject`: a user's id, or with `of_group` a group's name."""

    owner: str
    session: str
    subject: str
    role: Role
    of_group: bool = False


@dataclass(frozen=True, slots=True)
class ShareLink:
    """A link that a user made to one of their sessions. `public`: it works without an account. `opened`: how often it
    was."""

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
    """What somebody may do with one session of another user. `owner`: the owner's id; `owner_name`: for people.

    `view`: what a link leaves out; None: it was granted, and nothing is left out.
    """

    session: str
    owner: str
    owner_name: str
    role: Role
    view: LinkView | None = None


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something to accounts, for the audit. `name`: as they are called; `address`: from where, if it is known.

    `user`: their id, if they have an account."""

    name: str
    address: str = ""
    user: str = ""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What a request about signing in is answered with. `body`: JSON for the page's script, or nothing."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""


class HttpRequest(Protocol):
    """What is read of a request to say who it comes from. Headers may be repeated; their names are in lower case."""

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
    """One line of the audit: when, who (a name, as it was then), from which address, what; never content."""

    at: float
    kind: AuditKind
    who: str
    address: str = ""
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shown:
    """A secret that is shown this once, with what is kept of it."""

    secret: str = field(repr=False)
    id: str
