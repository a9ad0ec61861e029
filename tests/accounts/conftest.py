"""The two kinds of databases for accounts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from iact.accounts.database import Database, open_database
from tests.postgres import postgres_server


@pytest.fixture(scope="package")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PostgreSQL server for these tests only."""
    with postgres_server(tmp_path_factory) as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    url = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    opened = open_database(tmp_path, url)
    yield opened
    opened.close()
