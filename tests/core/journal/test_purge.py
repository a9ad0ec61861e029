"""A journal that is deleted for good, in every order of events that hosts which open, write and delete it can make.

The world is that of `test_fence.py`, with the real `Purge` for each host that deletes. One may be cut off at any moment,
and begin anew; the request that it had made may be carried out long after. That nothing is created behind a tombstone,
nothing is emptied before there is one, and no number is ever free again, is looked at with each request.
"""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from dataclasses import replace

import pytest

from iact.core.errors import JournalCorrupt, SessionDeleted, StoreUnavailable, Superseded
from iact.core.journal.fence import Answer, Fence, SegmentFound, Stamp
from iact.core.journal.purge import Found, Purge, purge, purged, unfinished
from iact.core.journal.segments import SegmentWriter, is_deleted, read_segments
from tests.core.journal.test_fence import SEGMENTS, World, Writer, explore, steps
from tests.objects import Objects


def start(writers: int, purges: int, losses: int) -> World:
    return World(
        tuple(Writer(Fence(name)) for name in "abc"[:writers]), losses=losses, purges=(Purge(),) * purges
    )


@pytest.mark.parametrize(("writers", "purges", "losses"), [(2, 1, 0), (2, 1, 1), (1, 2, 1), (2, 2, 0)])
def test_every_interleaving(writers: int, purges: int, losses: int) -> None:
    worlds = explore(start(writers, purges, losses))
    # It is no proof of anything if nothing happened.
    deleted = [one for one in worlds if "tombstone" in one.store]
    assert any(one.fence.owner and one.fence.phase == "deleted" for world in deleted for one in world.writers)
    assert any(
        not one.fence.owner and one.fence.phase == "deleted" for world in deleted for one in world.writers
    )
    assert any(len(world.store) == SEGMENTS + 1 for world in deleted), "a whole journal was deleted"
    done = [world for world in deleted if all(one.request() is None for one in world.purges)]
    assert done
    if losses:
        assert any(world.late for world in done), "a request arrives when all is done"


def test_nobody_has_a_deleted_session_in_the_end() -> None:
    """From every world with a tombstone on, whoever goes on alone learns that it is lost, and has stored nothing since."""
    for world in explore(start(2, 1, 1)):
        if "tombstone" not in world.store:
            continue
        for writer in world.writers:
            alone = replace(world, writers=(writer,), purges=(), late=frozenset(), losses=0)
            for end in explore(alone):
                fence = end.writers[0].fence
                assert len(end.store) == len(world.store)
                assert steps(end) or fence.segment > SEGMENTS or fence.phase in ("deleted", "superseded")


def test_a_purge_that_took_any_last_segment_for_its_own_would_be_found_out() -> None:
    """It would empty a journal that somebody goes on with, or take one for gone."""

    class Careless(Purge):
        def answered(self, found: Found) -> Purge:
            return super().answered("created" if found == "exists" else found)

    with pytest.raises(AssertionError, match=r"somebody may have the session|something is left"):
        explore(replace(start(1, 1, 0), purges=(Careless(),)))


def test_a_host_that_read_on_behind_a_tombstone_would_be_found_out() -> None:
    class Blind(Fence):
        def answered(self, answer: Answer) -> Fence:
            return super().answered(SegmentFound(Stamp(1, "?")) if answer == "deleted" else answer)

    world = start(0, 1, 0)
    with pytest.raises((AssertionError, IndexError)):
        explore(replace(world, writers=(Writer(Fence("a")), Writer(Blind("b")))))


# --- in a store -----------------------------------------------------------------------------------


def writer(store: Objects, minted: str) -> SegmentWriter:
    clock = [0.0]

    def pause(seconds: float) -> None:
        clock[0] += seconds

    return SegmentWriter(store, "s", minted * 32, pause=pause, now=lambda: clock[0])


def journal(store: Objects) -> tuple[SegmentWriter, SegmentWriter]:
    """Two hosts had it, one after the other."""
    first, second = writer(store, "a"), writer(store, "b")
    for data in (b"one", b"two"):
        first.put_blob(data.decode(), data)
        first.append(data)
    assert len(list(second.read())) == 2
    assert second.claim(b"three") is None
    second.put_version("v", b"files")
    return first, second


def test_nothing_is_left_and_nobody_goes_on() -> None:
    store = Objects()
    store.create("sessions/s2/journal/0000000001", b"of another")
    first, second = journal(store)
    purge(store, "s")
    purged(store, "s")
    assert [*store.content.items()] == [
        ("sessions/s2/journal/0000000001", b"of another"),
        ("sessions/s/journal/0000000001", b"iact 1 deleted\n"),
        ("sessions/s/journal/0000000002", b""),
        ("sessions/s/journal/0000000003", b""),
        ("sessions/s/journal/0000000004", b"iact 1 deleted\n"),
    ]
    left = dict(store.content)
    for one in (second, first):
        one.put_blob("late", b"what it was about to name")
        with pytest.raises(Superseded, match="The session s was deleted for good by another host"):
            one.append(b"never")
        with pytest.raises(Superseded, match="deleted for good"):
            one.append(b"nor this")
    with pytest.raises(SessionDeleted, match=r"deleted for good.*its id will not be used again"):
        list(read_segments(store, "s"))
    with pytest.raises(SessionDeleted):
        writer(store, "c").append(b"begun anew")
    assert store.content == left
    assert is_deleted(store, "s")
    assert not is_deleted(store, "s2")


@pytest.mark.parametrize("before", [True, False])
def test_what_is_cut_off_anywhere_is_gone_on_with(before: bool) -> None:
    """At each request: before it was carried out, or after."""
    cut, cuts = 0, 0
    while cut >= 0:
        store = Objects()
        first, second = journal(store)
        after = itertools.count()

        def fail(what: str, name: str) -> None:
            if next(after) == cut:  # noqa: B023 - within the round
                raise StoreUnavailable("No answer came.")

        def lost(what: str, name: str) -> bool:
            return next(after) == cut  # noqa: B023

        if before:
            store.before = fail
        else:
            store.lost = lost
        try:
            purge(store, "s")
            cut = -1
        except StoreUnavailable:
            cut, cuts = cut + 1, cuts + 1
        store.lost, store.before = Objects().lost, Objects().before
        begun = is_deleted(store, "s")
        assert unfinished(store) == (["s"] if begun else [])
        with pytest.raises(Superseded) if begun else nullcontext():
            second.append(b"four")
        purge(store, "s")
        purged(store, "s")
        assert unfinished(store) == []
        assert {one for name, one in store.content.items()} == {b"", b"iact 1 deleted\n"}
        with pytest.raises(Superseded):
            first.append(b"never")
    assert cuts >= (9 if before else 4)


def test_an_empty_segment_alone_is_damage_and_deletes_nothing() -> None:
    store = Objects()
    journal(store)
    store.content["sessions/s/journal/0000000002"] = b""
    with pytest.raises(JournalCorrupt, match="Segment 2 of the journal of session s is damaged"):
        list(read_segments(store, "s"))
    assert not is_deleted(store, "s")
