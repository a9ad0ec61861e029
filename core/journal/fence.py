"""Who may write a journal that several machines can reach: whoever creates its next segment.

A journal in an object store is a row of segments, numbered from 1, each of which can only be *created if it is absent*.
That is all the safety there is, and all that is needed: whoever loses the race for the next segment has lost the
session and stops. It never reloads and goes on, since what it knows and has promised rests on a journal that is not
the one in the store. No clock, lease or lock takes part; a lease only says that nobody needs to try.

Segments are never removed or overwritten. A writer that was frozen for a week still has a number in mind, and if that
number were free again, its next attempt would succeed.

A writer first reads to the end (*reading*), then creates the next segment, which says that a new epoch begins
(*claiming*). From then on it is the owner (*holding*), and each group of records is one segment (*writing*). A request
without an answer may have been carried out, now or later, so it is made again; "it exists already" may then mean our
own attempt, and is looked into (*checking*). Every segment names its writer, an id minted for one opening, so that the
bytes of two writers are never equal. Found somebody else's: who was claiming reads on and tries the next number; who
was the owner has been *superseded*.

A journal that was deleted for good (`core.journal.purge`) has something that is no segment under each of its numbers.
Whoever finds that has nothing to open or to write, whatever it was about to do: for it the journal is *deleted*.

Pure: requests and answers are values. `tests/core/journal/test_fence.py` walks through every interleaving of two
writers, with requests that are late and answers that are lost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, assert_never

Phase: TypeAlias = Literal["reading", "claiming", "holding", "writing", "checking", "superseded", "deleted"]
Operation: TypeAlias = Literal["get", "create", "empty"]
"""`empty`: of a purge alone."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What stands at the head of a segment. `writer`: minted for one opening of the journal; `epoch`: its number."""

    epoch: int
    writer: str


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask of the store."""

    operation: Operation
    segment: int


@dataclass(frozen=True, slots=True)
class SegmentFound:
    """The segment is there, and is this writer's (an answer to `get`)."""

    stamp: Stamp


Answer: TypeAlias = SegmentFound | Literal["absent", "deleted", "created", "exists", "unknown"]
"""`absent`, `deleted`: to `get`. `created`, `exists`: to `create`. `unknown`: no answer came; the request may have been carried out."""


@dataclass(frozen=True, slots=True)
class Fence:
    """One writer's place in a journal. `segment`: the next one; `epoch`: the newest that it knows of; `owner`: it has claimed."""

    writer: str
    segment: int = 1
    epoch: int = 0
    phase: Phase = "reading"
    owner: bool = False

    @property
    def stamp(self) -> Stamp:
        """What its next segment is stamped with."""
        return Stamp(self.epoch if self.owner else self.epoch + 1, self.writer)

    def request(self) -> Request | None:
        """What is to be asked of the store now; None: nothing."""
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
        """The owner has records to store."""
        if self.phase != "holding":
            raise ValueError(f"a writer that is {self.phase} has nothing to write")
        return replace(self, phase="writing")

    def answered(self, answer: Answer) -> Fence:
        """The store's answer to `request`."""
        match self.phase, answer:
            case (("reading" | "claiming" | "writing" | "checking"), "unknown"):
                return self  # and asks again
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
                return self._mine()
            case "checking", SegmentFound(stamp):
                return replace(self, phase="superseded") if self.owner else self._past(stamp)
        raise ValueError(f"{answer!r} is no answer to a writer that is {self.phase}")

    def _past(self, stamp: Stamp) -> Fence:
        """Somebody else's segment was read."""
        return replace(self, phase="reading", segment=self.segment + 1, epoch=max(self.epoch, stamp.epoch))

    def _mine(self) -> Fence:
        """The segment is in the store, and ours."""
        return replace(self, phase="holding", segment=self.segment + 1, epoch=self.stamp.epoch, owner=True)
