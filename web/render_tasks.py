"""The questions to a render process and its answers, as JSON, and how a question is answered.

Nothing here waits, and nothing is imported that a process that only renders does not need: it starts within a tenth of
a second, which makes it cheap to kill one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from iact.core.ports import JSON
from iact.core.records.calls import ClearanceAnswer, ClearanceAsk, Result
from iact.core.records.codec import decode
from iact.core.records.content import Content
from iact.core.records.control import Inject
from iact.core.records.dialogue import Say, Turn
from iact.core.records.forms import FormAnswer, FormAsk
from iact.core.records.hosts import HostAnswer, HostAsk, HostReach
from iact.core.records.plans import Plan
from iact.core.records.record import Record
from iact.core.session.blobs import blob
from iact.core.session.text import IsAction, mentions
from iact.web import colours, formulas
from iact.web.parser import bounded
from iact.web.records import Fields, blob_of, content_fields
from iact.web.render import Known

SECONDS: Final = 0.25
"""Seconds of processor time for all Markdown of one record."""

SHORT: Final = 1_000
"""The most characters of a text that is rendered in the server itself: 7 ms with the worst pattern known."""

_LARGEST_BLOB: Final = 32 << 20
_NAMES: Final = 500
_FENCED: Final = re.compile(r"(?:^|[\r\n]) {0,3}(?:`{3,}|~{3,})[^\S\r\n]*(\S+)")


@dataclass(frozen=True, slots=True)
class RenderQuestion:
    """A record to render. `folder`: where its blobs are. `words`: the words of its text that begin an action. `names`:
    the variables of its agent that it mentions. `seconds`: the time for its Markdown."""

    record: Record
    folder: str
    words: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    seconds: float = SECONDS

    def to_json(self) -> dict[str, JSON]:
        """The question as a message to a render process."""
        one = self.record
        head: list[JSON] = [one.n, one.at, one.kind, one.agent, one.step, one.body]
        return {
            "record": head,
            "fields": one.fields,
            "folder": self.folder,
            "words": [*self.words],
            "names": [*self.names],
            "seconds": self.seconds,
        }

    @staticmethod
    def from_json(message: Mapping[str, JSON]) -> RenderQuestion:
        """The question in a message. Both sides are ours, so it is valid."""
        head, fields = message["record"], message["fields"]
        assert isinstance(head, list)
        assert isinstance(fields, dict)
        n, at, kind, agent, step, body = head
        words, names, seconds = message["words"], message["names"], message["seconds"]
        assert isinstance(words, list)
        assert isinstance(names, list)
        assert isinstance(n, int)
        assert isinstance(step, int)
        assert isinstance(seconds, float)
        content, extra = decode(str(kind), fields)
        return RenderQuestion(
            Record(n, str(at), str(agent), step, content, str(body), extra=extra),
            str(message["folder"]),
            tuple(map(str, words)),
            tuple(map(str, names)),
            seconds,
        )


def is_short(record: Record) -> bool:
    """Whether a record may be rendered at once: it costs next to nothing, whatever it contains."""
    asks = ClearanceAsk | ClearanceAnswer | HostAsk | HostAnswer | HostReach | FormAsk | FormAnswer
    if isinstance(record.content, asks):
        return True  # none of it is Markdown, and all of it must be shown
    if isinstance(record.content, Say | Inject):
        return len(record.body) <= 20 * SHORT  # shown as it was typed, without a parser
    text = record.body + _reason(record)
    return blob_of(record) is None and len(text) <= SHORT and not _adorned(record.content, text)


def _adorned(content: Content, text: str) -> bool:
    """Whether a text contains code or formulas, which only a separate process has the time to highlight or convert."""
    return not isinstance(content, Result) and (_FENCED.search(text) is not None or formulas.might_hold(text))


def _reason(record: Record) -> str:
    """Text in addition to the body that is shown as Markdown."""
    return record.content.reason if isinstance(record.content, Plan) else ""


def question(
    record: Record, folder: Path, is_action: IsAction, known: Known, seconds: float = SECONDS
) -> RenderQuestion:
    """The question about a record."""
    words: Iterable[str] = (
        dict.fromkeys(_FENCED.findall(record.body)) if isinstance(record.content, Turn) else ()
    )
    if blob_of(record) is not None:
        names: Iterable[str] = islice(known, _NAMES)  # what the blob mentions is not known here
    else:
        names = mentions(f"{record.body}\n{_reason(record)}", known)
    return RenderQuestion(
        record, str(folder), tuple(word for word in words if is_action(word)), tuple(names), seconds
    )


def answer(asked: RenderQuestion) -> Fields:
    """The result of `content_fields` for the record within its time, and the time used, as `seconds`."""
    words, text = frozenset(asked.words), asked.record.body
    # Loaded when needed, and outside a text's time: the first text is rendered like all others.
    if _FENCED.search(text):
        colours.load()
    if formulas.might_hold(text):
        formulas.load()
    began = time.process_time()
    with bounded(asked.seconds):
        fields = content_fields(
            asked.record,
            blob_text(asked.record, Path(asked.folder)),
            lambda name: name in words,
            dict.fromkeys(asked.names),
        )
    return {**fields, "seconds": time.process_time() - began}


def blob_text(record: Record, folder: Path) -> str | None:
    """The text of a record's blob; None if it has none, or if it can't be read, which only affects its display."""
    digest = blob_of(record)
    content = blob(folder, digest, most=_LARGEST_BLOB) if digest is not None else None
    return content.decode("utf-8", "replace") if content is not None else None
