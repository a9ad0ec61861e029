"""Who may write a journal that several machines can reach: the one that creates its next segment.

A journal in an object store is a series of segments, numbered from 1, each of which can only be *created if it does not
exist*. All safety rests on this. A writer that loses the race for the next segment has lost the session and stops. It
never reloads and continues, because what it knows and has promised rests on a journal that is not the one in the store.
No clock, lease or lock takes part; a lease only signals that trying is pointless.

Segments are never removed or overwritten. A writer that was frozen for a week still remembers a number, and if that
number were free again, its next attempt would succeed.

A writer first reads to the end (*reading*), then creates the next segment, which states that a new epoch begins
(*claiming*). From then on it is the owner (*holding*), and each group of records is one segment (*writing*). A request
without an answer may have been carried out, now or later, so it is repeated; "it exists already" may then mean our own
attempt, so the segment is read (*checking*). Every segment names its writer, an id created for one opening, so that the
bytes of two writers are never equal. If the segment is another writer's, a claiming writer reads on and tries the next
number; an owner has been *superseded*.

A journal that was deleted for good (`core.journal.purge`) has something other than a segment under each of its numbers.
A writer that finds this can neither open nor write it, whatever its phase: for it the journal is *deleted*.

Pure: requests and answers are values. `tests/core/journal/test_fence.py` walks through every interleaving of two
writers, with late requests and lost answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, assert_never

Phase: TypeAlias = Literal["reading", "claiming", "holding", "writing", "checking", "superseded", "deleted"]
Operation: TypeAlias = Literal["get", "create", "empty"]
"""`empty`: only for a purge."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The first line of a segment."""

    epoch: int
    """The number of the writer's time as the owner."""
    writer: str
    """Created for one opening of the journal, so that no two writers ever have the same."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the store."""

    operation: Operation
    segment: int
    """The number of the segment that it is about."""


@dataclass(frozen=True, slots=True)
class SegmentFound:
    """The segment exists and has this stamp (an answer to `get`)."""

    stamp: Stamp


Answer: TypeAlias = SegmentFound | Literal["absent", "deleted", "created", "exists", "unknown"]
"""`absent`, `deleted`: to `get`. `created`, `exists`: to `create`. `unknown`: no answer came; the request may have
been carried out."""


@dataclass(frozen=True, slots=True)
class Fence:
    """One writer's place in a journal."""

    writer: str
    """The writer's own mark, with which it knows its segments again."""
    segment: int = 1
    """The number of the next segment."""
    epoch: int = 0
    """The newest epoch that it knows of."""
    phase: Phase = "reading"
    owner: bool = False
    """Whether it has claimed the journal."""

    @property
    def stamp(self) -> Stamp:
        """The stamp of its next segment."""
        if self.owner:
            return Stamp(self.epoch, self.writer)
        return Stamp(self.epoch + 1, self.writer)

    def request(self) -> Request | None:
        """The next request to the store, or None."""
        match self.phase:
            case "reading" | "checking":
                return Request("get", self.segment)
            case "claiming" | "writing":
                return Request("create", self.segment)
            case "holding" | "superseded" | "deleted":
                return None
            case _ as never:
                assert_never(never)

    def write(self) -> Fence:
        """Begin to store records, as the owner."""
        if self.phase != "holding":
            raise ValueError(f"a writer that is {self.phase} has nothing to write")
        return replace(self, phase="writing")

    def answered(self, answer: Answer) -> Fence:
        """Take the store's answer to `request`."""
        match self.phase, answer:
            case (("reading" | "claiming" | "writing" | "checking"), "unknown"):
                # The request is repeated.
                return self
            case (("reading" | "checking"), "deleted"):
                return replace(self, phase="deleted")
            case "reading", SegmentFound(stamp):
                return self._past(stamp)
            case "reading", "absent":
                return replace(self, phase="claiming")
            case (("claiming" | "writing"), "created"):
                return self._mine()
            case (("claiming" | "writing"), "exists"):
                return replace(self, phase="checking")
            case "checking", SegmentFound(stamp) if stamp.writer == self.writer:
                # An earlier attempt of ours, to which no answer came.
                return self._mine()
            case "checking", SegmentFound() if self.owner:
                return replace(self, phase="superseded")
            case "checking", SegmentFound(stamp):
                return self._past(stamp)
        raise ValueError(f"{answer!r} is no answer to a writer that is {self.phase}")

    def _past(self, stamp: Stamp) -> Fence:
        """Move past another writer's segment, which was read."""
        return replace(self, phase="reading", segment=self.segment + 1, epoch=max(self.epoch, stamp.epoch))

    def _mine(self) -> Fence:
        """The segment is in the store, and ours."""
        return replace(self, phase="holding", segment=self.segment + 1, epoch=self.stamp.epoch, owner=True)
