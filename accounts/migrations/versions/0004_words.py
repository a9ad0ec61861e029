"""Add to tokens what of all that is sent with them is their user's words."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("api_tokens", sa.Column("words", sa.String(length=16), nullable=True))
