"""Create the tables of quotas, of what people used of models, and of what running calls hold."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "quotas",
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("subject", sa.String(length=128), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=True),
        sa.Column("money", sa.Double(), nullable=True),
        sa.Column("sessions", sa.BigInteger(), nullable=True),
        sa.Column("containers", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("kind IN ('user', 'group', 'each')", name=op.f("ck_quotas_kind")),
        sa.PrimaryKeyConstraint("kind", "subject", name=op.f("pk_quotas")),
    )
    op.create_table(
        "usage",
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("subject", sa.String(length=128), nullable=False),
        sa.Column("month", sa.String(length=7), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("money", sa.Double(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "subject", "month", name=op.f("pk_usage")),
    )
    op.create_table(
        "reservations",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("subject", sa.String(length=128), nullable=False),
        sa.Column("month", sa.String(length=7), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("money", sa.Double(), nullable=False),
        sa.Column("host", sa.String(length=64), nullable=False),
        sa.Column("ends", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", "kind", "subject", name=op.f("pk_reservations")),
    )
    op.create_index("ix_reservations_subject", "reservations", ["kind", "subject"], unique=False)
