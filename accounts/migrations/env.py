"""Run by Alembic, which passes the connection that `database` opened; the migrations run in its transaction."""

from __future__ import annotations

from alembic import context

from iact.accounts.schema import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
context.run_migrations()
