"""What a module sends in pieces becomes one blob, or leaves nothing."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iact.core.journal.spool import Spool, StoredArtifact


@pytest.fixture
def session(tmp_path: Path) -> Path:
    (tmp_path / "blobs").mkdir()
    return tmp_path


@settings(deadline=None, max_examples=20)
@given(st.lists(st.binary(max_size=3000), min_size=1, max_size=20))
def test_pieces_become_the_blob_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("session")
    (folder / "blobs").mkdir()

    async def main() -> StoredArtifact:
        with Spool(folder) as spool:
            for number, piece in enumerate(pieces):
                await spool.take("a", piece, last=number == len(pieces) - 1)
            return spool.kept["a"]

    kept = asyncio.run(main())
    whole = b"".join(pieces)
    assert kept == StoredArtifact(hashlib.sha256(whole).hexdigest(), len(whole))
    assert [path.name for path in (folder / "blobs").iterdir()] == [kept.sha256]
    assert (folder / "blobs" / kept.sha256).read_bytes() == whole


def test_artifacts_may_come_side_by_side(session: Path) -> None:
    async def main() -> dict[str, StoredArtifact]:
        with Spool(session) as spool:
            for data in (b"1", b"2", b"3"):
                for name in ("a", "b"):
                    await spool.take(name, name.encode() + data, last=data == b"3")
            return spool.kept

    kept = asyncio.run(main())
    assert [(session / "blobs" / kept[name].sha256).read_bytes() for name in "ab"] == [b"a1a2a3", b"b1b2b3"]


def test_what_was_not_completed_is_removed(session: Path) -> None:
    async def main() -> None:
        with Spool(session) as spool:
            await spool.take("a", b"begun", last=False)
            await spool.take("a", b", and gone on with", last=False)
        assert spool.kept == {}

    asyncio.run(main())
    assert list((session / "blobs").iterdir()) == []
