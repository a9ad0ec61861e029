"""The fence, in every order of events that two or three writers, late requests and lost answers can make.

The world below is the real `Fence` for each writer and a store that creates what is absent. A request travels: it may
be carried out at once, or much later, after its writer has given up on an answer and asked again; its answer may be
lost. Every state that can be reached is looked at, once. Hosts may delete the journal for good, too
(`test_purge.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import pytest

from iact.core.journal.fence import Answer, Fence, Request, SegmentFound, Stamp
from iact.core.journal.purge import Found, Purge

SEGMENTS = 3
"""How far the journal grows: claims and writes together."""


@dataclass(frozen=True, slots=True)
class Segment:
    """In the store. `knew`: how many segments its writer knew, and whose; `intent`: what it promises to do next."""

    stamp: Stamp
    knew: tuple[str, ...]


Gone: TypeAlias = Literal["tombstone", "empty"]
"""In the store in place of a segment: the journal was deleted for good."""


@dataclass(frozen=True, slots=True)
class Underway:
    """A request on its way to the store, with what it would create."""

    writer: int
    request: Request
    content: Segment | Gone


@dataclass(frozen=True, slots=True)
class Writer:
    """A host. `known`: the writers of the segments that it has read or written. `done`: effects, by segment of their intent."""

    fence: Fence
    known: tuple[str, ...] = ()
    done: tuple[int, ...] = ()
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """`purges`: of hosts that delete the journal. `ids`: who wrote the segments, those that are gone, too."""

    writers: tuple[Writer, ...]
    store: tuple[Segment | Gone, ...] = ()
    late: frozenset[Underway] = frozenset()
    losses: int = 1
    purges: tuple[Purge, ...] = ()
    ids: tuple[str, ...] = ()

    def at(self, index: int, writer: Writer) -> World:
        return replace(self, writers=(*self.writers[:index], writer, *self.writers[index + 1 :]))


def answer_of(
    store: tuple[Segment | Gone, ...], request: Request, content: Segment | None
) -> tuple[Answer, tuple[Segment | Gone, ...]]:
    """What the store answers to a writer, and what is in it then."""
    there = request.segment <= len(store)
    if request.operation == "get":
        found = store[request.segment - 1] if there else None
        return "absent" if found is None else SegmentFound(found.stamp) if isinstance(
            found, Segment
        ) else "deleted", store
    if there:
        return "exists", store
    assert content is not None
    return "created", created(store, request, content)


def created(
    store: tuple[Segment | Gone, ...], request: Request, content: Segment | Gone
) -> tuple[Segment | Gone, ...]:
    """The store with one more, if that is absent."""
    if request.segment <= len(store):
        return store
    assert request.segment == len(store) + 1, "a segment was created behind a gap"
    assert "tombstone" not in store, "something was created behind a tombstone"
    return (*store, content)


def found_by(store: tuple[Segment | Gone, ...], request: Request) -> tuple[Found, tuple[Segment | Gone, ...]]:
    """What the store answers to a purge, and what is in it then."""
    at = request.segment
    there = store[at - 1] if at <= len(store) else None
    match request.operation:
        case "get":
            return "absent" if there is None else "segment" if isinstance(there, Segment) else there, store
        case "create":
            return ("created" if there is None else "exists"), created(store, request, "tombstone")
        case "empty":
            assert there is not None, "what is not there was emptied, so that its number may be free"
            assert "tombstone" in store, "something was emptied while somebody may have the session"
            return "emptied", (*store[: at - 1], "tombstone" if at == 1 else "empty", *store[at:])


def told(writer: Writer, answer: Answer, ids: tuple[str, ...]) -> Writer:
    """A writer that has its answer. As owner it carries out what a stored segment of its promises, then."""
    before, fence = writer.fence, writer.fence.answered(answer)
    known, done = writer.known, writer.done
    if fence.segment > before.segment:
        wrote = ids[before.segment - 1]
        known = (*known, wrote)
        if fence.phase == "holding" and before.owner:
            assert wrote == fence.writer
            done = (*done, before.segment)
    return Writer(fence, known, done, waiting=False)


def stored(world: World, store: tuple[Segment | Gone, ...]) -> World:
    """The world with what is in the store now."""
    new = (one.stamp.writer for one in store[len(world.ids) :] if isinstance(one, Segment))
    return replace(world, store=store, ids=(*world.ids, *new))


def steps(world: World) -> list[World]:
    """Everything that can happen next."""
    found = []
    for index, writer in enumerate(world.writers):
        fence = writer.fence
        if fence.phase == "holding" and fence.segment <= SEGMENTS:
            found.append(world.at(index, replace(writer, fence=fence.write())))
        request = fence.request()
        if request is None or request.segment > SEGMENTS:
            continue
        content = Segment(fence.stamp, writer.known) if request.operation == "create" else None
        answer, store = answer_of(world.store, request, content)
        carried_out = stored(world, store)
        found.append(carried_out.at(index, told(writer, answer, carried_out.ids)))
        if world.losses:
            lost = replace(carried_out, losses=world.losses - 1)
            found.append(lost.at(index, told(writer, "unknown", lost.ids)))
            if content is not None:
                underway = Underway(index, request, content)
                delayed = replace(world, late=world.late | {underway}, losses=world.losses - 1)
                found.append(delayed.at(index, told(writer, "unknown", world.ids)))
    for index, purge in enumerate(world.purges):
        found += _purging(world, index, purge)
    for one in world.late:
        # What arrives late is carried out, and nobody waits for its answer any more.
        store = created(world.store, one.request, one.content) if _fits(world, one) else world.store
        found.append(replace(stored(world, store), late=world.late - {one}))
    return found


def _purging(world: World, index: int, purge: Purge) -> list[World]:
    """A purge goes on; is cut off without an answer; or begins anew, which knows of nothing."""

    def now(world: World, purge: Purge) -> World:
        purges = (*world.purges[:index], purge, *world.purges[index + 1 :])
        return replace(world, purges=purges)

    request = purge.request()
    if request is None or (request.operation == "get" and request.segment > SEGMENTS + 1):
        return []
    answer, store = found_by(world.store, request)
    after = stored(world, store)
    found = [now(after, purge.answered(answer))]
    if world.losses:
        lost = replace(after, losses=world.losses - 1)
        found += [now(lost, purge.answered("unknown")), now(lost, Purge())]
        if request.operation == "create":
            underway = Underway(-1 - index, request, "tombstone")
            delayed = replace(world, late=world.late | {underway}, losses=world.losses - 1)
            found.append(now(delayed, purge.answered("unknown")))
    return found


def _fits(world: World, one: Underway) -> bool:
    return one.request.segment <= len(world.store) + 1


def check(world: World) -> None:
    """What must hold, always."""
    ids = world.ids
    there = {number: one for number, one in enumerate(world.store, 1) if isinstance(one, Segment)}
    for number, segment in there.items():
        assert segment.stamp.writer == ids[number - 1]
        assert segment.knew == ids[: number - 1], (
            "a segment rests on another journal than the one in the store"
        )
    epochs = [segment.stamp.epoch for segment in there.values()]
    assert epochs == sorted(epochs)
    for number, left in there.items():
        if (right := there.get(number + 1)) is not None:
            same = left.stamp.writer == right.stamp.writer
            assert same == (left.stamp.epoch == right.stamp.epoch), (
                f"segments {number}, {number + 1}: one epoch, one writer"
            )
    effects = [number for writer in world.writers for number in writer.done]
    assert len(effects) == len(set(effects)), "an effect happened twice"
    for writer in world.writers:
        assert writer.known == ids[: len(writer.known)], "a writer believes what is not in the store"
        for number in writer.done:
            assert ids[number - 1] == writer.fence.writer, "an effect whose intent is not in the journal"
    if any(one.request() is None for one in world.purges):
        assert there == {}, "a purge is done, and something is left of the journal"


def explore(start: World) -> list[World]:
    seen, front = {start}, [start]
    while front:
        world = front.pop()
        check(world)
        for following in steps(world):
            if following not in seen:
                seen.add(following)
                front.append(following)
    return list(seen)


@pytest.mark.parametrize(("writers", "losses"), [(2, 0), (2, 1), (2, 2), (3, 1)])
def test_every_interleaving(writers: int, losses: int) -> None:
    names = ("a", "b", "c")[:writers]
    worlds = explore(World(tuple(Writer(Fence(name)) for name in names), losses=losses))
    phases = [{one.fence.phase for one in world.writers} for world in worlds]
    # It is no proof of anything if nothing happened: owners were superseded, and journals grew to their end.
    assert any("superseded" in found for found in phases)
    assert any(len(world.store) == SEGMENTS for world in worlds)
    assert any(len({*world.ids}) == min(writers, 2) for world in worlds)
    if losses:
        assert any(world.late for world in worlds)
    assert len(worlds) > 100


def test_a_fence_that_trusted_its_retry_would_be_found_out() -> None:
    """The explorer sees what it is there to see: an owner that takes "it exists" for its own success is caught."""

    class Careless(Fence):
        def answered(self, answer: Answer) -> Fence:
            return super().answered("created" if answer == "exists" else answer)

    with pytest.raises(AssertionError):
        explore(World((Writer(Careless("a")), Writer(Careless("b")))))


def test_a_fence_that_reloaded_and_went_on_would_be_found_out() -> None:
    class Reloading(Fence):
        def answered(self, answer: Answer) -> Fence:
            after = super().answered(answer)
            if after.phase == "superseded":
                return replace(after, phase="holding", segment=after.segment + 1)
            return after

    with pytest.raises(AssertionError):
        explore(World((Writer(Reloading("a")), Writer(Reloading("b")))))


@pytest.mark.parametrize("phase", ["holding", "superseded"])
def test_nothing_is_asked_of_the_store_by_who_has_nothing_to_write(phase: str) -> None:
    fence = (
        Fence("a", 4, 2, "holding", owner=True)
        if phase == "holding"
        else Fence("a", 4, 2, "superseded", owner=True)
    )
    assert fence.request() is None
    with pytest.raises(ValueError, match="no answer"):
        fence.answered("created")


def test_who_is_superseded_writes_no_more() -> None:
    with pytest.raises(ValueError, match="superseded"):
        Fence("a", 4, 2, "superseded", owner=True).write()
