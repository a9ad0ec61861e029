"""The tree at every record is what a fold up to that record gives, for sessions with everything in them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from iact.core.records.record import Record
from iact.core.stored.replay import replay
from iact.core.tree.apply import apply
from iact.core.tree.tree import Tree
from iact.core.views.timeline import Timeline
from iact.core.views.view import node_views
from tests.core.session.test_random import Story, live
from tests.web.long import long_journal


def no_blob(digest: str) -> bytes:
    raise AssertionError(f"there is no blob {digest}")


def check(records: Sequence[Record], blobs: Tree | None = None) -> Timeline:
    """Compare at every record."""
    read = blobs.blobs if blobs else no_blob
    timeline, tree = Timeline(read), Tree(strict=False, blobs=read)
    timeline.extend(records)
    for record in records:
        apply(tree, record)
        assert list(timeline.at(record.n)) == list(node_views(tree)), record
    return timeline


@pytest.mark.parametrize("seed", range(24))
def test_random_sessions_at_every_record(tmp_path: Path, seed: int) -> None:
    tree, records = asyncio.run(live(Story(seed, tmp_path)))
    check(records, tree)


def test_a_long_journal_at_every_record(tmp_path: Path) -> None:
    records = replay(long_journal(tmp_path, 900)).records
    timeline = check(records)
    assert len(timeline.at(900)) > len(timeline.at(100)) > 0


def test_growing_piece_by_piece_is_the_same(tmp_path: Path) -> None:
    records = replay(long_journal(tmp_path, 300)).records
    whole, grown = Timeline(no_blob), Timeline(no_blob)
    whole.extend(records)
    for start in range(0, 300, 37):
        grown.extend(records[start : start + 37])
        assert grown.last == min(300, start + 37)
    for n in range(1, 301):
        assert grown.at(n) == whole.at(n)


def test_before_the_first_record_there_is_nothing(tmp_path: Path) -> None:
    timeline = Timeline(no_blob)
    timeline.extend(replay(long_journal(tmp_path, 2)).records)
    assert timeline.at(0) == []
    assert [node.path for node in timeline.at(99)] == ["/"]
