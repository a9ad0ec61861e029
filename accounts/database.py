"""The database of accounts: opened, migrated, and used in short transactions.

It is SQLite in the data directory, in WAL mode and readable by its owner only; or PostgreSQL, where several hosts share
it. Everything here blocks: from an event loop, call it in a thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from iact.accounts import migrations
from iact.core.errors import UsageError

FILE: Final = "accounts.db"
_PATIENCE: Final = 10.0
"""Seconds that a write waits for another one."""

_LOCK: Final = 0x69616374
"""The number of PostgreSQL's advisory lock: the one host that migrates holds it."""


class Database:
    """An open database with the tables of `schema`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._writer = engine.execution_options(writes=True)

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._engine.dialect.name

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads."""
        with self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that may write. It is rolled back if the block raises."""
        with self._writer.begin() as connection:
            yield connection

    def alone(self, connection: Connection, what: int) -> None:
        """Wait until no other writing transaction holds the lock `what`. SQLite has only one writer at any time anyway.

        `what`: a number for the decisions that depend on what was read.
        """
        if self.dialect == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({what})")

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()


def open_database(data: Path, url: str | None = None) -> Database:
    """Open the database of a data directory, create it if it is missing, and migrate it.

    Raises:
        UsageError: it can't be opened, or a newer version of the program wrote it.
    """
    target = _target(data, url)
    try:
        engine = _engine(target)
        _migrate(engine)
    except (SQLAlchemyError, OSError) as error:
        raise _cannot_open(target.render_as_string(), error) from error
    return Database(engine)


def look_at_database(data: Path, url: str | None = None) -> str:
    """Where the accounts are, in words for people, without creating or changing anything.

    Raises:
        UsageError: the database can't be reached.
    """
    if url is None:
        file = data / FILE
        return str(file) if file.is_file() else f"{file}, which is made when it is first needed"

    target = _target(data, url)
    shown = target.set(drivername="postgresql").render_as_string()
    engine = _engine(target)
    try:
        with engine.connect() as connection:
            revision = MigrationContext.configure(connection).get_current_revision()
    except (SQLAlchemyError, OSError) as error:
        raise _cannot_open(shown, error) from error
    finally:
        engine.dispose()
    return shown if revision is not None else f"{shown}, whose tables are made when they are first needed"


def _cannot_open(shown: str, error: Exception) -> UsageError:
    reason = str(error.__cause__ or error).strip().partition("\n")[0]
    return UsageError(f"The accounts in {shown} can't be opened: {reason}.")


def _target(data: Path, url: str | None) -> URL:
    """The database that the settings mean. `url`: None: a file in the data directory, which is made if it is missing."""
    if url is None:
        path = data / FILE
        # Created here, so that no other user can read it even for a moment. SQLite's journal files inherit the mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        return URL.create("sqlite", database=str(path))

    try:
        target = make_url(url)
    except ArgumentError as error:
        raise UsageError(
            "IACT_ACCOUNTS_URL is no database address, such as postgresql://USER@HOST/NAME."
        ) from error
    if target.get_backend_name() != "postgresql":
        raise UsageError(
            "Accounts are kept in SQLite (without IACT_ACCOUNTS_URL) or PostgreSQL, not in "
            f"{target.get_backend_name()!r}."
        )
    return target.set(drivername="postgresql+psycopg")


def _engine(target: URL) -> Engine:
    try:
        if target.get_backend_name() != "sqlite":
            return sqlalchemy.create_engine(target, pool_pre_ping=True, pool_size=4)
    except (ImportError, NoSuchModuleError) as error:
        raise UsageError(
            "PostgreSQL can't be used, since a package is missing. Install it: pip install 'iact[accounts]'."
        ) from error

    engine = sqlalchemy.create_engine(target, connect_args={"timeout": _PATIENCE})
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    """Configure SQLite. `_begin` begins transactions; the driver would do so only at the first write."""
    connection.isolation_level = None
    cursor = connection.cursor()
    for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _begin(connection: Connection) -> None:
    # SQLite refuses a write in a transaction that began as a read if another write came first, so begin it as a write.
    writes = connection.get_execution_options().get("writes", False)
    statement = "BEGIN IMMEDIATE" if writes else "BEGIN"
    connection.exec_driver_sql(statement)


def _migrate(engine: Engine) -> None:
    """Bring the tables to the newest revision. Raises UsageError if that is older than theirs."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    script = ScriptDirectory.from_config(config)

    with engine.execution_options(writes=True).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        current = MigrationContext.configure(connection).get_current_revision()
        if current == script.get_current_head():
            return

        known = {revision.revision for revision in script.walk_revisions()}
        if current is not None and current not in known:
            raise UsageError(
                f"The accounts were written by a newer version of iact (their version is {current}). "
                "Use that version, or restore a backup that this one made."
            )
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
