"""Asks the person at the terminal about calls that wait for clearance, one after the other.

The same question may be answered elsewhere, or run out of time: the terminal then goes on with the next. Lines are
read when they are there, by the loop itself, so that a question which nobody answers keeps no thread.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from iact.core.characters import escaped
from iact.core.errors import UsageError
from iact.core.ports import JSON
from iact.core.records.calls import ClearanceAsk
from iact.core.records.hosts import HostAsk
from iact.core.records.record import Record
from iact.core.session.hosts import Lasts
from iact.core.session.question_text import host_words, words
from iact.core.session.questions import OpenQuestions
from iact.core.session.session import Session

_QUESTION: Final = "Allow it? [y]es, [a]lways for exactly this call, [N]o: "
_START: Final = "Start this plan? [y]es, [N]o (cancels it): "
_VERDICTS: Final[dict[str, tuple[bool, JSON]]] = {
    "y": (True, None), "yes": (True, None), "a": (True, "call"), "always": (True, "call"),
}  # fmt: skip
_HOST: Final = "Allow it? [y] once, [s] in this session, [a]lways, [N]o: "
_LASTS: Final[dict[str, Lasts]] = {
    "y": "once", "yes": "once", "o": "once", "once": "once",
    "s": "session", "session": "session", "a": "always", "always": "always",
}  # fmt: skip


class TerminalQuestions:
    """The questions of one session, for the person at a terminal."""

    def __init__(self, session: Session, spawn: Callable[[Coroutine[object, object, None]], object]) -> None:
        self._session = session
        self._spawn = spawn
        self._questions = OpenQuestions()
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
            self._questions.add(record)
        self._show()

    def take(self, record: Record) -> None:
        """The next record of the session."""
        shown = self._waiting[:1]
        self._questions.add(record)
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

    @property
    def _waiting(self) -> tuple[Record, ...]:
        return self._questions.waiting

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
