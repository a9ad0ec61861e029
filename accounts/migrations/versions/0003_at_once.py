"""Create the table of what runs at once for each user on each of several hosts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "at_once",
        sa.Column("host", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("taken", sa.BigInteger(), nullable=False),
        sa.Column("ends", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_at_once_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("host", "user_id", "kind", name=op.f("pk_at_once")),
    )
    op.create_index(op.f("ix_at_once_user_id"), "at_once", ["user_id"], unique=False)
