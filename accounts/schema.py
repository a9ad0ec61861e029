"""The tables. What changes here needs a migration beside it (`migrations/versions`); a test compares the two.

Secrets (cookies, tokens, links) are stored as digests: whoever reads the database can't use them. Times are seconds since
1970, UTC; ids are minted and never used again, so that a name can be given to somebody else.
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
    # As it is compared: two people whose names differ in case only would be taken for each other.
    Column("name_key", String(64), nullable=False, unique=True),
    Column("role", String(16), nullable=False),
    Column("password", String(256)),
    # Who they are to whoever vouches for them: `oidc:ISSUER SUBJECT`, `header:NAME`.
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
    # Who says so: groups that a provider told are replaced at each sign-in, those of an admin stay.
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
    # By which links a user, signed in, came to sessions of others; they stay with them for as long as the links are good.
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
    # A token bucket for each name and each address that failed to sign in; the same after a restart.
    Column("subject", String(200), primary_key=True),
    Column("left", Double, nullable=False),
    Column("at", Double, nullable=False),
)

redirects: Final = Table(
    "redirects",
    METADATA,
    # Of people who were sent to a provider and have not come back. Each is good for one return.
    Column("digest", String(64), primary_key=True),
    Column("browser", String(64), nullable=False),
    Column("nonce", String(64), nullable=False),
    Column("verifier", String(128), nullable=False),
    Column("ends", Double, nullable=False),
    UniqueConstraint("nonce"),
)


def _spent() -> tuple[Column[int], Column[float]]:
    return Column("tokens", BigInteger, nullable=False), Column("money", Double, nullable=False)


# Whose a quota, and what was used, is: the user of an id, the members of a group together, or each user (no subject).
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
    # Room for calls of models that are under way: a row for each sum that one counts towards.
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
    # How many sessions at work and containers each user has on each host, where several share the database. A row that its
    # host does not write again counts no longer.
    Column("host", String(64), primary_key=True),
    _user(primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("taken", BigInteger, nullable=False),
    Column("ends", Double, nullable=False),
    Index("ix_at_once_user_id", "user_id"),
)
