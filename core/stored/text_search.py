"""Finds text in one session: in what people and agents said, and in the output of tools."""

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
"""Whose words: anyone's, the user's, what agents wrote, the output of tools."""

_WHOSE: Final = {
    "say": "user", "control": "user", "upload": "user", "spawn": "agents", "turn": "agents", "reply": "agents",
    "compress": "agents", "plan": "agents", "result": "tools", "notice": "tools",
}  # fmt: skip
"""The kinds of records for each. Other kinds are about the work, and contain no one's words."""

_LINE: Final = 60
"""How many characters are shown before and after a match."""


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A record that contains the text. `before`, `match`, `after`: the line with the first match; `count`: the number
    of matches."""

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
    """Find `text` in order, ignoring case. `agent`: only in its dialogue. `directory`: the session's, with its blobs.

    If an agent's reply repeats the text of its turn, it is found once.
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
    """The text without case distinctions but with the same length, so that positions in both are the same."""
    lower = text.lower()
    return (
        lower
        if len(lower) == len(text)
        else "".join(one.lower() if len(one.lower()) == 1 else one for one in text)
    )
