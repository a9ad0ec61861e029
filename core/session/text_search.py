"""Finds text in one session: in what people and agents said, and in what tools gave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from iact.core.errors import JournalError
from iact.core.journal.file import read_blob
from iact.core.records.calls import Result
from iact.core.records.dialogue import Reply, Spawn, Turn, Upload
from iact.core.records.record import Record

Whose = Literal["", "user", "agents", "tools"]
"""Whose words: anybody's, the user's, what agents wrote, what tools gave."""

_WHOSE: Final = {
    "say": "user", "control": "user", "upload": "user", "spawn": "agents", "turn": "agents", "reply": "agents",
    "compress": "agents", "plan": "agents", "result": "tools", "notice": "tools",
}  # fmt: skip
"""By kind of record. The others are about the work, and hold no words of it."""

_LINE: Final = 60
"""Characters before and after what was found."""


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A record that holds the text. `before`, `match`, `after`: the line where it is first; `count`: how often."""

    n: int
    agent: str
    kind: str
    before: str
    match: str
    after: str
    count: int


def find(
    records: Iterable[Record], text: str, *, agent: str = "", whose: Whose = "", directory: Path
) -> Iterator[TextMatch]:
    """Where `text` is, in order, upper and lower case alike. `agent`: only in its dialogue. `directory`: the session's, with its blobs.

    What an agent answers in the words of its turn is found once.
    """
    wanted = _folded(text)
    written: dict[str, str] = {}
    for record in records:
        whom = _WHOSE.get(record.kind)
        content = record.content
        if isinstance(content, Turn):
            written[record.agent] = record.body
        again = isinstance(content, Reply) and written.get(record.agent, "").strip() == record.body.strip()
        if whom is None or again or (whose and whom != whose) or (agent and record.agent != agent):
            continue
        found = _place(record, _text(record, directory), wanted)
        if found is not None:
            yield found


def _text(record: Record, directory: Path) -> str:
    content = record.content
    if isinstance(content, Upload):
        return f"{content.file}\n{record.body}"
    if isinstance(content, Spawn):
        return f"{record.agent}\n{record.body}"
    if isinstance(content, Result) and content.blob is not None:
        try:
            return read_blob(directory, content.blob.sha256).decode("utf-8", "replace")
        except JournalError:
            return ""
    return record.body


def _place(record: Record, text: str, wanted: str) -> TextMatch | None:
    folded = _folded(text)
    at = folded.find(wanted)
    if at < 0:
        return None
    end = at + len(wanted)
    before = text[max(0, at - _LINE) : at].split("\n")[-1]
    after = text[end : end + _LINE].split("\n")[0]
    count = folded.count(wanted)
    return TextMatch(record.n, record.agent, record.kind, before, text[at:end], after, count)


def _folded(text: str) -> str:
    """Without regard to case, and of the same length, so that places in it are places in the text."""
    lower = text.lower()
    return (
        lower
        if len(lower) == len(text)
        else "".join(one.lower() if len(one.lower()) == 1 else one for one in text)
    )
