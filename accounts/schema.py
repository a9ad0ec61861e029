"""The tables. A change here needs a migration (`migrations/versions`); a test compares the two.

Secrets (cookies, tokens, links) are stored as digests, so that someone who reads the database can't use them. Times are
seconds since 1970, UTC. Ids are minted and never reused, so that a name can be given to another person.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

METADATA: Final = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)


def _user(name: str = "user_id", *, primary_key: bool = False) -> Column[str]:
    return Column(
        name,
        String(32),
        ForeignKey("users.id", ondelete="CASCADE"),
        nullable=False,
        primary_key=primary_key,
        index=not primary_key,
    )


users: Final = Table(
    "users",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("name", String(64), nullable=False),
    # The name in the form that is compared: two names that differ only in case would be confused.
    Column("name_key", String(64), nullable=False, unique=True),
    Column("role", String(16), nullable=False),
    Column("password", String(256)),
    # Their identity at the proxy or provider that vouches for them: `oidc:ISSUER SUBJECT`, `header:NAME`.
    Column("identity", String(512), unique=True),
    Column("created", Double, nullable=False),
    Column("seen", Double),
    Column("disabled", Double),
    CheckConstraint("role IN ('admin', 'user')", name="role"),
)

memberships: Final = Table(
    "memberships",
    METADATA,
    _user(primary_key=True),
    Column("group_name", String(128), primary_key=True),
    # The source: groups that a provider reported are replaced at each sign-in, an administrator's stay.
    Column("told", Boolean, nullable=False, default=False),
)

sign_ins: Final = Table(
    "sign_ins",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    _user(),
    Column("created", Double, nullable=False),
    Column("seen", Double, nullable=False),
    Column("ends", Double, nullable=False),
    Column("address", String(64), nullable=False),
    Column("agent", String(200), nullable=False),
)

api_tokens: Final = Table(
    "api_tokens",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    _user(),
    Column("name", String(64), nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("created", Double, nullable=False),
    Column("ends", Double, nullable=False),
    Column("used", Double),
    Column("revoked", Double),
    # What of all that is sent with it is its user's words; NULL, as before there was a choice: the newest message.
    Column("words", String(16)),
)

grants: Final = Table(
    "grants",
    METADATA,
    Column("owner", String(32), ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("session", String(64), primary_key=True),
    Column("subject", String(128), primary_key=True),
    Column("of_group", Boolean, primary_key=True),
    Column("role", String(16), nullable=False),
    Column("created", Double, nullable=False),
    CheckConstraint("role IN ('reader', 'steerer')", name="role"),
    Index("ix_grants_subject", "subject"),
)

links: Final = Table(
    "links",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    _user("owner"),
    Column("session", String(64), nullable=False),
    Column("at", BigInteger),
    Column("hides", JSON, nullable=False),
    Column("variables", JSON, nullable=False),
    Column("public", Boolean, nullable=False),
    Column("created", Double, nullable=False),
    Column("ends", Double, nullable=False),
    Column("opened", BigInteger, nullable=False, default=0),
    Column("revoked", Double),
)

followed_links: Final = Table(
    "followed_links",
    METADATA,
    # The links by which a signed-in user reached others' sessions; kept for as long as the links are valid.
    _user(primary_key=True),
    Column("link_id", String(32), ForeignKey("links.id", ondelete="CASCADE"), primary_key=True),
)

audit_events: Final = Table(
    "audit_events",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("at", Double, nullable=False, index=True),
    Column("kind", String(32), nullable=False),
    Column("who", String(64), nullable=False),
    Column("address", String(64), nullable=False),
    Column("about", JSON, nullable=False),
)

attempts: Final = Table(
    "attempts",
    METADATA,
    # A token bucket for each name and each address that failed to sign in; it survives a restart.
    Column("subject", String(200), primary_key=True),
    Column("left", Double, nullable=False),
    Column("at", Double, nullable=False),
)

redirects: Final = Table(
    "redirects",
    METADATA,
    # People who were sent to a provider and have not come back. Each row is good for one return.
    Column("digest", String(64), primary_key=True),
    Column("browser", String(64), nullable=False),
    Column("nonce", String(64), nullable=False),
    Column("verifier", String(128), nullable=False),
    Column("ends", Double, nullable=False),
    UniqueConstraint("nonce"),
)


def _spent() -> tuple[Column[int], Column[float]]:
    return Column("tokens", BigInteger, nullable=False), Column("money", Double, nullable=False)


# Whose a quota or usage is: the user with an id, the members of a group together, or each user (no subject).
quotas: Final = Table(
    "quotas",
    METADATA,
    Column("kind", String(8), primary_key=True),
    Column("subject", String(128), primary_key=True),
    Column("tokens", BigInteger),
    Column("money", Double),
    Column("sessions", BigInteger),
    Column("containers", BigInteger),
    CheckConstraint("kind IN ('user', 'group', 'each')", name="kind"),
)

usage: Final = Table(
    "usage",
    METADATA,
    Column("kind", String(8), primary_key=True),
    Column("subject", String(128), primary_key=True),
    Column("month", String(7), primary_key=True),
    *_spent(),
    Column("calls", BigInteger, nullable=False),
)

reservations: Final = Table(
    "reservations",
    METADATA,
    # Reservations of running model calls: a row for each sum that a call counts towards.
    Column("id", String(32), primary_key=True),
    Column("kind", String(8), primary_key=True),
    Column("subject", String(128), primary_key=True),
    Column("month", String(7), nullable=False),
    *_spent(),
    Column("host", String(64), nullable=False),
    Column("ends", Double, nullable=False),
    Index("ix_reservations_subject", "kind", "subject"),
)

at_once: Final = Table(
    "at_once",
    METADATA,
    # How many working sessions and containers each user has on each host, where several share the database. A row that
    # its host does not write again expires.
    Column("host", String(64), primary_key=True),
    _user(primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("taken", BigInteger, nullable=False),
    Column("ends", Double, nullable=False),
    Index("ix_at_once_user_id", "user_id"),
)
