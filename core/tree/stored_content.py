"""What records name and do not hold: contents beside the journal, and which of them are lost.

A disk can lose a file, and a backup can be without it. Then a sentence has the place of the content, wherever that was
shown, and the session goes on. That must follow from the records, like everything that enters a context. So opening a
session records which contents are lost (`migrate`, `adopt`): from there on, agents can't pass them on, and a replay has
the sentence in the same places. Content that is stored again, because somebody computed it once more, is lost no longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from iact.core.errors import BlobLost
from iact.core.language import labels
from iact.core.language.variables import Value
from iact.core.records.parts import Artifact, Blob

Read = Callable[[str], bytes]
"""Returns content by its SHA-256. It raises BlobLost for content that is missing or damaged."""
IsThere = Callable[[str, int], bool]
"""Whether there is content with this SHA-256 and this number of bytes, without reading it."""

_SENTENCE: Final = b"(The content of this value was lost.)"


class StoredContents:
    """The contents that a session's records name."""

    def __init__(self, read: Read, *, forgiving: bool) -> None:
        """`forgiving`: content that turns out to be lost while it is read becomes the sentence at once."""
        self._read = read
        self._forgiving = forgiving
        self._is_there: IsThere | None = None
        self.recorded: set[str] = set()
        """What is lost as the records say, until it is stored again."""
        self.found: set[str] = set()
        """What is lost as the disk says."""
        self.unread: set[str] = set()
        """Of these, what turned out to be lost only when it was read."""
        self.told: set[str] = set()
        """What is lost as the records up to here say. Agents can't pass it on any more."""

    def expect(self, *, recorded: Iterable[str], found: Iterable[str], is_there: IsThere | None) -> None:
        """Say what is lost, before any record is taken in. `is_there`: finds out about everything else."""
        self.recorded = set(recorded)
        self.found = set(found)
        self._is_there = is_there

    def settle(self) -> None:
        """Look for nothing more: from here on, what is lost is an error, because no record says how to go on without."""
        self._is_there = None
        self._forgiving = False
        self.recorded |= self.found
        self.found.clear()

    def __call__(self, digest: str) -> bytes:
        """Return content; a sentence in its place if it is lost.

        Raises:
            BlobLost: it is lost, and that was not known.
        """
        return self._content(digest, _SENTENCE)

    def _content(self, digest: str, sentence: bytes) -> bytes:
        if self.is_lost(digest):
            return sentence
        try:
            return self._read(digest)
        except BlobLost:
            if not self._forgiving:
                raise
            self.found.add(digest)
            self.unread.add(digest)
            return sentence

    def is_lost(self, digest: str) -> bool:
        """Whether a sentence has the place of this content."""
        return digest in self.recorded or digest in self.found

    def has(self, blob: Blob | Artifact) -> bool:
        """Whether content that a record names is there."""
        if self._is_there is not None and not self._is_there(blob.sha256, blob.size):
            self.found.add(blob.sha256)
        return not self.is_lost(blob.sha256)

    def value(
        self, blob: Blob | Artifact, media: str, sources: frozenset[str], made_by: str, *, again: bool
    ) -> Value:
        """The value of a record that names its content, which is read when it is needed.

        `again`: the record came after the one that says what is lost, so that its content was stored then.
        """
        digest = blob.sha256
        self.told.discard(digest)
        if again:
            self.recorded.discard(digest)
        if self.has(blob):
            return Value(digest, blob.size, media, partial(self, digest), sources, made_by)

        sentence = f"(The content of this value was lost. It was {labels.about(media, blob.size)}.)".encode()
        load = partial(self._content, digest, sentence)
        return Value(digest, blob.size, media, load, sources, made_by, may_be_lost=True)
