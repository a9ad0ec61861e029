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
from iact.core.stored.blobs import blob
from iact.core.views.text import IsAction, mentions
from iact.web import colours, formulas
from iact.web.draft import DraftHtml, formatted
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

    def __str__(self) -> str:
        return f"Record {self.record.n}"

    def to_json(self) -> dict[str, JSON]:
        """The question as a message to a render process."""
        record = self.record
        head: list[JSON] = [record.n, record.at, record.kind, record.agent, record.step, record.body]
        return {
            "record": head,
            "fields": record.fields,
            "folder": self.folder,
            "words": [*self.words],
            "names": [*self.names],
            "seconds": self.seconds,
        }

    @staticmethod
    def from_json(message: Mapping[str, JSON]) -> RenderQuestion:
        """The question in a message. Both sides are ours, so it is valid."""
        head = message["record"]
        fields = message["fields"]
        assert isinstance(head, list)
        assert isinstance(fields, dict)
        n, at, kind, agent, step, body = head
        assert isinstance(n, int)
        assert isinstance(step, int)
        content, extra = decode(str(kind), fields)
        record = Record(n, str(at), str(agent), step, content, str(body), extra=extra)

        words, names, seconds = _bounds_in(message)
        return RenderQuestion(record, str(message["folder"]), words, names, seconds)


@dataclass(frozen=True, slots=True)
class DraftQuestion:
    """What a model is still writing. `words`, `names`, `seconds`: as in `RenderQuestion`."""

    text: str
    words: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    seconds: float = SECONDS

    @property
    def is_short(self) -> bool:
        """Whether it may be rendered at once: it costs next to nothing, whatever it contains."""
        adorned = _FENCED.search(self.text) is not None or formulas.might_hold(self.text)
        return len(self.text) <= SHORT and not adorned

    def is_action(self, word: str) -> bool:
        """Whether a word begins an action."""
        return word in self.words

    def __str__(self) -> str:
        return "A reply that is being written"

    def to_json(self) -> dict[str, JSON]:
        """The question as a message to a render process."""
        return {
            "draft": self.text,
            "words": [*self.words],
            "names": [*self.names],
            "seconds": self.seconds,
        }

    @staticmethod
    def from_json(message: Mapping[str, JSON]) -> DraftQuestion:
        """The question in a message. Both sides are ours, so it is valid."""
        words, names, seconds = _bounds_in(message)
        return DraftQuestion(str(message["draft"]), words, names, seconds)


def _bounds_in(message: Mapping[str, JSON]) -> tuple[tuple[str, ...], tuple[str, ...], float]:
    """What is the same in both: the words that begin an action, the names of variables, and the time."""
    words = message["words"]
    names = message["names"]
    seconds = message["seconds"]
    assert isinstance(words, list)
    assert isinstance(names, list)
    assert isinstance(seconds, float)
    return tuple(map(str, words)), tuple(map(str, names)), seconds


def draft_question(text: str, is_action: IsAction, known: Known, seconds: float = SECONDS) -> DraftQuestion:
    """The question about what a model is still writing."""
    words = tuple(word for word in dict.fromkeys(_FENCED.findall(text)) if is_action(word))
    return DraftQuestion(text, words, tuple(mentions(text, known)), seconds)


def question_in(message: Mapping[str, JSON]) -> RenderQuestion | DraftQuestion:
    """The question in a message to a render process."""
    return DraftQuestion.from_json(message) if "draft" in message else RenderQuestion.from_json(message)


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
    words: tuple[str, ...] = ()
    if isinstance(record.content, Turn):
        words = tuple(word for word in dict.fromkeys(_FENCED.findall(record.body)) if is_action(word))

    if blob_of(record) is not None:
        names: Iterable[str] = islice(known, _NAMES)  # what the blob mentions is not known here
    else:
        names = mentions(f"{record.body}\n{_reason(record)}", known)

    return RenderQuestion(record, str(folder), words, tuple(names), seconds)


def answer(asked: RenderQuestion | DraftQuestion) -> Fields:
    """The result of `content_fields` for a record, or of `web.draft.formatted` for a draft, within its time; and the
    time used, as `seconds`."""
    text = asked.text if isinstance(asked, DraftQuestion) else asked.record.body

    # Loaded when needed, and outside a text's time: the first text is rendered like all others.
    if _FENCED.search(text):
        colours.load()
    if formulas.might_hold(text):
        formulas.load()

    began = time.process_time()
    with bounded(asked.seconds):
        fields = _fields(asked)
    return {**fields, "seconds": time.process_time() - began}


def _fields(asked: RenderQuestion | DraftQuestion) -> Fields:
    known = dict.fromkeys(asked.names)
    if isinstance(asked, DraftQuestion):
        draft = formatted(asked.text, asked.is_action, known)
        return {"closed": draft.closed, "html": draft.html, "open": draft.open}

    words = frozenset(asked.words)
    content = blob_text(asked.record, Path(asked.folder))
    return content_fields(asked.record, content, lambda name: name in words, known)


def draft_html(answered: Mapping[str, JSON] | None) -> DraftHtml:
    """What a render process answered about a draft; empty if there was no answer in time."""
    match answered:
        case {"closed": int(closed), "html": str(html), "open": str(rest)}:
            return DraftHtml(closed, html, rest)
    return DraftHtml()


def blob_text(record: Record, folder: Path) -> str | None:
    """The text of a record's blob; None if it has none, or if it can't be read, which only affects its display."""
    digest = blob_of(record)
    if digest is None:
        return None

    content = blob(folder, digest, most=_LARGEST_BLOB)
    return None if content is None else content.decode("utf-8", "replace")
