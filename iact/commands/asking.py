"""Asks the person at the terminal about calls that wait for clearance, one after the other.

The same question may be answered elsewhere, or run out of time: the terminal then goes on with the next. Lines are
read when they are there, by the loop itself, so that a question which nobody answers keeps no thread.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from core import Session
from core.characters import escaped
from core.errors import UsageError
from core.ports import JSON
from core.records.record import Record

_QUESTION: Final = "Allow it? [y]es, [a]lways exactly this, [N]o: "
_SENTENCE: Final = 600
"""Characters of a sentence of the gate's."""
_WIDTH: Final = 100
"""Characters of one row of a value."""
_VERDICTS: Final[dict[str, tuple[bool, JSON]]] = {
    "y": (True, None), "yes": (True, None), "a": (True, "call"), "always": (True, "call"),
}  # fmt: skip


def is_question(record: Record) -> bool:
    """Whether a record asks a person."""
    return record.kind == "clearance" and record.text("op") == "ask" and record.text("to") == "person"


def words(record: Record) -> str:
    """A question in full, for a terminal. No value can pass for a line of ours: its own lines stand behind a bar."""
    params, origins = record.fields.get("params"), record.fields.get("provenance")
    lines = [
        _inline(
            f"{record.agent} asks to call {record.text('function')}, impact {record.fields.get('impact')}.",
            _SENTENCE,
        ),
        *(_inline(record.text(name), _SENTENCE) for name in ("reason", "why") if record.text(name)),
    ]
    for name, value in params.items() if isinstance(params, dict) else ():
        labels = origins.get(name) if isinstance(origins, dict) else None
        source = f" (from {', '.join(map(str, labels))})" if isinstance(labels, list) and labels else ""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines += [f"  {_inline(f'{name}{source}', _SENTENCE)}: {_about(text)}", *_quoted(text)]
    attached = record.fields.get("attached")
    for name, about in attached.items() if isinstance(attached, dict) else ():
        if isinstance(about, dict) and "sha256" in about:
            lines.append(
                f"  {_inline(name)}: {about.get('size')} bytes of {_inline(str(about.get('media')))}"
            )
    return "\n".join(_exact(line) for line in lines)


def _exact(text: str) -> str:
    """Text for somebody who decides by it: nothing is taken out, nothing is unseen."""
    return escaped(text, every=True)


def _inline(text: str, limit: int = 200) -> str:
    """It as part of one line."""
    line = " ".join(_exact(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _about(text: str) -> str:
    """A value that fits behind its name, or how long the one is that follows."""
    lines = _lines(text)
    return lines[0] if len(lines) == 1 else f"{len(text)} characters in {len(lines)} lines"


def _quoted(text: str) -> list[str]:
    lines = _lines(text)
    return [f"  | {line}" for line in lines] if len(lines) > 1 else []


def _lines(text: str) -> list[str]:
    """The lines that a terminal would make of a text, one at least: the long ones cut into pieces of their own."""
    rows = [
        row[at : at + _WIDTH]
        for row in _exact(text).splitlines()
        for at in range(0, max(1, len(row)), _WIDTH)
    ]
    return rows or [""]


def _place(record: Record) -> tuple[str, int, int]:
    return record.agent, record.number("turn"), record.number("action")


class Asking:
    """The questions of one session, for the person at a terminal."""

    def __init__(self, session: Session, spawn: Callable[[Coroutine[object, object, None]], object]) -> None:
        self._session = session
        self._spawn = spawn
        self._waiting: list[Record] = []

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Read answers from standard input meanwhile, if that is a terminal."""
        if not sys.stdin.isatty():
            yield
            return
        loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
        loop.add_reader(descriptor, self._line)
        try:
            yield
        finally:
            loop.remove_reader(descriptor)

    def begin(self, records: Iterable[Record]) -> None:
        """What a session that is gone on with was asking when it was left."""
        for record in records:
            self._note(record)
        self._show()

    def take(self, record: Record) -> None:
        """The next record of the session."""
        shown = self._waiting[:1]
        self._note(record)
        if self._waiting[:1] != shown:
            if shown:
                print("(settled)", file=sys.stderr)
            self._show()

    def _note(self, record: Record) -> None:
        if is_question(record):
            self._waiting.append(record)
        elif record.kind in ("clearance", "result"):  # answered, or its call was withdrawn
            place = _place(record)
            self._waiting = [one for one in self._waiting if _place(one) != place]

    def _show(self) -> None:
        if self._waiting and sys.stdin.isatty():
            question = self._waiting[0]
            # The call is named again behind what may have been pages of text.
            last = f"That was {question.agent} asking to call {question.text('function')}. {_QUESTION}"
            print(f"{words(question)}\n{last}", end="", file=sys.stderr, flush=True)

    def _line(self) -> None:
        line = sys.stdin.readline()
        if not line:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        elif self._waiting:
            allow, remember = _VERDICTS.get(line.strip().lower(), (False, None))
            self._spawn(self._answer(self._waiting[0].n, allow, remember))

    async def _answer(self, call: int, allow: bool, remember: JSON) -> None:
        try:
            await self._session.clear(call, allow, remember)
        except UsageError as error:
            print(f"note: {error}", file=sys.stderr, flush=True)
