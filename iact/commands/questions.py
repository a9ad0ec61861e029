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

from iact.core.characters import escaped
from iact.core.errors import UsageError
from iact.core.ports import JSON
from iact.core.records.calls import ClearanceAnswer, ClearanceAsk, Result
from iact.core.records.hosts import HostAnswer, HostAsk, rule_of
from iact.core.records.record import Record
from iact.core.session.hosts import Lasts
from iact.core.session.session import Session

_QUESTION: Final = "Allow it? [y]es, [a]lways for exactly this call, [N]o: "
_START: Final = "Start this plan? [y]es, [N]o (cancels it): "
_SENTENCE: Final = 600
"""Characters of a sentence of the gate's."""
_WIDTH: Final = 100
"""Characters of one row of a value."""
_VERDICTS: Final[dict[str, tuple[bool, JSON]]] = {
    "y": (True, None), "yes": (True, None), "a": (True, "call"), "always": (True, "call"),
}  # fmt: skip
_HOST: Final = "Allow it? [y] once, [s] in this session, [a]lways, [N]o: "
_LASTS: Final[dict[str, Lasts]] = {
    "y": "once", "yes": "once", "o": "once", "once": "once",
    "s": "session", "session": "session", "a": "always", "always": "always",
}  # fmt: skip


def is_question(record: Record) -> bool:
    """Whether a record asks a person."""
    if isinstance(record.content, HostAsk):
        return True
    return isinstance(record.content, ClearanceAsk) and record.content.to == "person"


def words(agent: str, asked: ClearanceAsk) -> str:
    """A question in full, for a terminal. No value can pass for a line of ours: its own lines stand behind a bar."""
    lines = [
        _inline(f"{agent} asks to run {asked.function} (impact {asked.impact:g}).", _SENTENCE),
        *(_inline(one, _SENTENCE) for one in (asked.reason, asked.why) if one),
    ]
    for name, value in asked.params.items():
        labels = asked.provenance.get(name, ())
        source = f" (from {', '.join(labels)})" if labels else ""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines += [f"  {_inline(f'{name}{source}', _SENTENCE)}: {_about(text)}", *_quoted(text)]
    for name, about in (asked.attached or {}).items():
        if about.sha256:
            lines.append(f"  {_inline(name)}: {about.size} bytes of {_inline(about.media)}")
    return "\n".join(_exact(line) for line in lines)


def host_words(agent: str, asked: HostAsk) -> str:
    """A question about a host, for a terminal."""
    host = _inline(rule_of(asked.host, asked.port), _SENTENCE)
    return (
        f"{_inline(agent)}: the module {asked.module} wants to reach {host}, which nobody allowed so far.\n"
        "If you allow it, data can go there and come from there."
    )


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


def _place(record: Record) -> tuple[str, int, int] | None:
    """The action that a question, its answer or a result is about; of a host, the question itself."""
    content = record.content
    if isinstance(content, HostAsk):
        return "", record.n, 0
    if isinstance(content, HostAnswer):
        return "", content.ask, 0
    if isinstance(content, ClearanceAsk | ClearanceAnswer | Result):
        return record.agent, content.turn, content.action
    return None


class TerminalQuestions:
    """The questions of one session, for the person at a terminal."""

    def __init__(self, session: Session, spawn: Callable[[Coroutine[object, object, None]], object]) -> None:
        self._session = session
        self._spawn = spawn
        self._waiting: list[Record] = []
        self._plans: list[str] = []
        """Plans that were shown, the one that is asked about last."""

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
        for path in self._session.unstarted_plans() if sys.stdin.isatty() else ():
            if path not in self._plans:
                self._plans.append(path)
                text = escaped(self._session.plan_text(path), every=False)
                print(
                    f"The plan {path} waits for you:\n\n{text}\n{_START}", end="", file=sys.stderr, flush=True
                )

    def _note(self, record: Record) -> None:
        if is_question(record):
            self._waiting.append(record)
        elif (place := _place(record)) is not None:  # answered, or its call was withdrawn
            self._waiting = [one for one in self._waiting if _place(one) != place]

    def _show(self) -> None:
        if self._waiting and sys.stdin.isatty():
            agent, asked = self._waiting[0].agent, self._waiting[0].content
            if isinstance(asked, HostAsk):
                print(f"{host_words(agent, asked)}\n{_HOST}", end="", file=sys.stderr, flush=True)
                return
            assert isinstance(asked, ClearanceAsk)
            # The call is named again behind what may have been pages of text.
            last = f"{agent} asks to run {asked.function}. {_QUESTION}"
            print(f"{words(agent, asked)}\n{last}", end="", file=sys.stderr, flush=True)

    def _line(self) -> None:
        line = sys.stdin.readline()
        if not line:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        elif self._waiting and isinstance(self._waiting[0].content, HostAsk):
            lasts = _LASTS.get(line.strip().lower())
            self._spawn(self._answer_host(self._waiting[0].n, lasts))
        elif self._waiting:
            allow, remember = _VERDICTS.get(line.strip().lower(), (False, None))
            self._spawn(self._answer(self._waiting[0].n, allow, remember))
        elif self._plans and self._plans[-1] in self._session.unstarted_plans():
            self._spawn(self._begin(self._plans[-1], line.strip().lower() in ("y", "yes")))

    async def _answer(self, call: int, allow: bool, remember: JSON) -> None:
        try:
            await self._session.clear(call, allow, remember)
        except UsageError as error:
            print(f"note: {error}", file=sys.stderr, flush=True)

    async def _answer_host(self, ask: int, lasts: Lasts | None) -> None:
        try:
            await self._session.clear_host(ask, lasts is not None, lasts or "once")
        except UsageError as error:
            print(f"note: {error}", file=sys.stderr, flush=True)

    async def _begin(self, path: str, start: bool) -> None:
        try:
            await (self._session.start_plan(path) if start else self._session.cancel(path))
        except UsageError as error:  # it was settled elsewhere meanwhile
            print(f"note: {error}", file=sys.stderr, flush=True)
