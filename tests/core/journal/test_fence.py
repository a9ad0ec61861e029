"""The fence, in every order of events that two or three writers, late requests and lost answers can make.

The world below is the real `Fence` for each writer and a store that creates what is absent. A request travels: it may
be carried out at once, or much later, after its writer has given up on an answer and asked again; its answer may be
lost. Every state that can be reached is looked at, once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from iact.core.journal.fence import Answer, Fence, Request, SegmentFound, Stamp

SEGMENTS = 3
"""How far the journal grows: claims and writes together."""


@dataclass(frozen=True, slots=True)
class Segment:
    """In the store. `knew`: how many segments its writer knew, and whose; `intent`: what it promises to do next."""

    stamp: Stamp
    knew: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Underway:
    """A request on its way to the store, with what it would create."""

    writer: int
    request: Request
    content: Segment | None


@dataclass(frozen=True, slots=True)
class Writer:
    """A host. `known`: the writers of the segments that it has read or written. `done`: effects, by segment of their intent."""

    fence: Fence
    known: tuple[str, ...] = ()
    done: tuple[int, ...] = ()
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class World:
    writers: tuple[Writer, ...]
    store: tuple[Segment, ...] = ()
    late: frozenset[Underway] = frozenset()
    losses: int = 1

    def at(self, index: int, writer: Writer) -> World:
        return replace(self, writers=(*self.writers[:index], writer, *self.writers[index + 1 :]))


def answer_of(
    store: tuple[Segment, ...], request: Request, content: Segment | None
) -> tuple[Answer, tuple[Segment, ...]]:
    """What the store answers, and what is in it then."""
    there = request.segment <= len(store)
    if request.operation == "get":
        return (SegmentFound(store[request.segment - 1].stamp) if there else "absent"), store
    if there:
        return "exists", store
    assert content is not None
    assert request.segment == len(store) + 1, "a segment was created behind a gap"
    return "created", (*store, content)


def told(writer: Writer, answer: Answer, store: tuple[Segment, ...]) -> Writer:
    """A writer that has its answer. As owner it carries out what a stored segment of its promises, then."""
    before, fence = writer.fence, writer.fence.answered(answer)
    known, done = writer.known, writer.done
    if fence.segment > before.segment:
        stored = store[before.segment - 1]
        known = (*known, stored.stamp.writer)
        if fence.phase == "holding" and before.owner:
            assert stored.stamp.writer == fence.writer
            done = (*done, before.segment)
    return Writer(fence, known, done, waiting=False)


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
        carried_out = replace(world, store=store)
        found.append(carried_out.at(index, told(writer, answer, store)))
        if world.losses:
            lost = replace(carried_out, losses=world.losses - 1)
            found.append(lost.at(index, told(writer, "unknown", store)))
            underway = Underway(index, request, content)
            if request.operation == "create":
                delayed = replace(world, late=world.late | {underway}, losses=world.losses - 1)
                found.append(delayed.at(index, told(writer, "unknown", world.store)))
    for one in world.late:
        # What arrives late is carried out, and nobody waits for its answer any more.
        _, store = (
            answer_of(world.store, one.request, one.content) if _fits(world, one) else ("", world.store)
        )
        found.append(replace(world, store=store, late=world.late - {one}))
    return found


def _fits(world: World, one: Underway) -> bool:
    return one.request.segment <= len(world.store) + 1


def check(world: World) -> None:
    """What must hold, always."""
    ids = [segment.stamp.writer for segment in world.store]
    for number, segment in enumerate(world.store, 1):
        assert segment.knew == tuple(ids[: number - 1]), (
            "a segment rests on another journal than the one in the store"
        )
    epochs = [segment.stamp.epoch for segment in world.store]
    assert epochs == sorted(epochs)
    for number, (left, right) in enumerate(zip(world.store, world.store[1:], strict=False), 1):
        same = left.stamp.writer == right.stamp.writer
        assert same == (left.stamp.epoch == right.stamp.epoch), (
            f"segments {number}, {number + 1}: one epoch, one writer"
        )
    effects = [number for writer in world.writers for number in writer.done]
    assert len(effects) == len(set(effects)), "an effect happened twice"
    for writer in world.writers:
        assert writer.known == tuple(ids[: len(writer.known)]), "a writer believes what is not in the store"
        for number in writer.done:
            assert ids[number - 1] == writer.fence.writer, "an effect whose intent is not in the journal"


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
    assert any(len({one.stamp.writer for one in world.store}) == min(writers, 2) for world in worlds)
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
