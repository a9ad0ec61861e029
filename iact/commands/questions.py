"""Asks the person at the terminal about calls that wait for approval. Calls that form one question are asked together.

The same question may be answered elsewhere, or time out; the terminal then continues with the next one. The event loop
reads lines when they arrive, so a question that is never answered occupies no thread.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Literal

from iact.commands.form_lines import FormLines
from iact.core.characters import escaped
from iact.core.errors import Changed, UsageError
from iact.core.ports import JSON
from iact.core.records.calls import ClearanceAsk
from iact.core.records.forms import FormAsk
from iact.core.records.hosts import HostAsk
from iact.core.records.record import Record
from iact.core.session.hosts import Lasts
from iact.core.session.session import Session
from iact.core.stored.question_values import question_values
from iact.core.views.consent import question_digest
from iact.core.views.question_text import form_words, has_long_values, host_words, told, words
from iact.core.views.questions import OpenQuestions

_QUESTION: Final = "Allow it? [y]es, [a]lways for exactly this call, [N]o: "
_FULL: Final = "Read its long values? [f]ull. "
_ALL: Final = "Allow them? [y]es to all {count}, [o]ne by one, [N]o to all: "
_REST: Final = 0.4
"""Seconds during which a call that joins others on the terminal can't be answered: the line was typed for the others."""
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
    """The questions of one session, for the person at a terminal. `asks`: whether there is one."""

    def __init__(
        self, session: Session, spawn: Callable[[Coroutine[object, object, None]], object], *, asks: bool
    ) -> None:
        self._session = session
        self._spawn = spawn
        self.asks: Final = asks
        self._questions = OpenQuestions()
        self._shown: dict[int, float] = {}
        """The questions that the next line answers, and when each was shown."""
        self._digests: dict[int, str] = {}
        """The digest of each question as it was shown."""
        self._sent: set[int] = set()
        """Questions that the person answered here, until the answers are in the journal."""
        self._apart = False
        self._form: FormLines | None = None
        """The form that is being filled in."""
        self._plans: list[str] = []
        """Plans that were shown; the question is about the last one."""
        self._plan_digests: dict[str, str] = {}
        """The digest of each plan as it was shown."""

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Read answers from standard input inside this context, if there is a person."""
        if not self.asks:
            yield
            return
        loop = asyncio.get_running_loop()
        descriptor = sys.stdin.fileno()
        loop.add_reader(descriptor, self._line)
        try:
            yield
        finally:
            loop.remove_reader(descriptor)

    def begin(self, records: Iterable[Record]) -> None:
        """Take over the open questions of a session that is continued."""
        for record in records:
            self._questions.add(record)
        self._show()

    def take(self, record: Record) -> None:
        """Process the next record of the session."""
        self._questions.add(record)

        # Of what is shown, something was answered: here or elsewhere. The rest is asked again.
        waiting = {question.n for question in self._waiting}
        if self._shown and not self._shown.keys() <= waiting:
            self._shown = {}
            self._form = None
            print("(settled)", file=sys.stderr)

        self._show()
        self._show_plans()

    def _show_plans(self) -> None:
        """Show the plans that wait to be started."""
        if not self.asks:
            return

        for path in self._session.unstarted_plans():
            if path not in self._plans:
                self._plans.append(path)
                self._plan_digests[path] = self._session.plan_digest(path)
                text = escaped(self._session.plan_text(path), every=False)
                _ask(f"The plan {path} is waiting for you:\n\n{text}\n{_START}")

    @property
    def _waiting(self) -> tuple[Record, ...]:
        """The questions that the person is asked now."""
        together = self._questions.together(self._sent)
        self._apart = self._apart and len(together) > 1
        return together[:1] if self._apart else together

    def _show(self) -> None:
        """Show the questions that wait and were not shown yet, and ask for an answer to all that are shown."""
        new = [record for record in self._waiting if record.n not in self._shown]
        if not new or not self.asks:
            return

        now = asyncio.get_running_loop().time()
        if self._shown:
            print(file=sys.stderr)  # these join others, whose line is not finished
        self._shown |= {record.n: now for record in new}
        self._digests |= {record.n: question_digest(record) for record in new}

        texts: list[str] = []
        prompt = _QUESTION
        for record in new:
            text, prompt = self._put(record)
            texts.append(text)
        if len(self._shown) > 1:
            prompt = _ALL.format(count=len(self._shown))

        _ask("\n".join([*texts, prompt]))

    def _put(self, record: Record) -> tuple[str, str]:
        """A question in words, and what to ask after them if it is the only one. A form begins here."""
        question = record.content
        if isinstance(question, HostAsk):
            return host_words(record.agent, question), _HOST

        if isinstance(question, FormAsk):
            self._form = FormLines(question)
            return form_words(record.agent, question), self._form.prompt

        assert isinstance(question, ClearanceAsk)
        # Name the call again, after what may have been pages of text.
        more = _FULL if has_long_values(record) else ""
        prompt = f"{record.agent} asks to run {question.function}. {more}{_QUESTION}"
        return words(record.agent, question), prompt

    def _line(self) -> None:
        """Take a line that the person entered: for the questions that are shown, or else for the last plan."""
        line = sys.stdin.readline()
        if not line:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            return

        word = line.strip().lower()
        shown = [record for record in self._waiting if record.n in self._shown]
        if shown:
            self._take_answer(shown, line, word)
        elif self._plans and self._plans[-1] in self._session.unstarted_plans():
            self._spawn(self._begin(self._plans[-1], word in ("y", "yes")))

    def _take_answer(self, shown: Sequence[Record], line: str, word: str) -> None:
        """Take a line for the questions that are shown. `word`: it without blanks, in lower case."""
        if word in ("o", "one") and len(shown) > 1:
            self._apart = True
            self._shown = {}
            self._show()
        elif word in ("f", "full") and any(has_long_values(record) for record in shown):
            self._show_in_full(shown)
        elif isinstance(shown[0].content, HostAsk):
            self._spawn(self._answer_host(shown[0].n, _LASTS.get(word)))
        elif self._form is not None:
            self._fill_in(shown[0].n, self._form, line)
        else:
            allow, remember = _VERDICTS.get(word, (False, None))
            self._spawn(self._answer(self._read_by_now(shown), allow, remember))

    def _read_by_now(self, shown: Sequence[Record]) -> list[int]:
        """The calls that a line answers: those that were shown together with the first, or long enough ago to have been
        read before it was entered."""
        latest = asyncio.get_running_loop().time() - _REST
        first = self._shown[shown[0].n]

        shown_at = {record.n: self._shown[record.n] for record in shown}
        return [n for n, moment in shown_at.items() if moment == first or moment < latest]

    def _show_in_full(self, shown: Sequence[Record]) -> None:
        """Print the questions again, with their long values, and ask again."""
        folder = self._session.journal.parent
        for question in shown:
            print(told(question, question_values(folder, question)), file=sys.stderr)
        _ask(_ALL.format(count=len(shown)) if len(shown) > 1 else _QUESTION)

    async def _answer(self, calls: Sequence[int], allow: bool, remember: JSON) -> None:
        self._sent.update(calls)
        self._shown = {}
        try:
            seen = [self._digests[call] for call in calls]
            await self._session.clear(calls[0], allow, remember, also=calls[1:], seen=seen)
        except UsageError as error:
            print(f"note: {error}", file=sys.stderr, flush=True)
        self._sent.difference_update(calls)
        self._show()

    async def _answer_host(self, ask: int, lasts: Lasts | None) -> None:
        try:
            seen = self._digests[ask]
            await self._session.clear_host(ask, lasts is not None, lasts or "once", seen=seen)
        except UsageError as error:
            print(f"note: {error}", file=sys.stderr, flush=True)

    def _fill_in(self, ask: int, form: FormLines, line: str) -> None:
        """Process a line for the form that is shown."""
        why = form.take(line)
        if form.done:
            self._form = None
            self._spawn(self._answer_form(ask, form.answered))
            return

        _ask(f"{why}\n{form.prompt}" if why else form.prompt)

    async def _answer_form(self, ask: int, values: Mapping[str, JSON] | None) -> None:
        try:
            decision: Literal["accept", "decline"] = "decline" if values is None else "accept"
            await self._session.answer_form(ask, decision, values, seen=self._digests[ask])
        except UsageError as error:
            print(f"note: {error}", file=sys.stderr, flush=True)

    async def _begin(self, path: str, start: bool) -> None:
        try:
            if start:
                await self._session.start_plan(path, seen=self._plan_digests[path])
            else:
                await self._session.cancel(path)
        except Changed as error:
            print(f"note: {error}", file=sys.stderr, flush=True)
            self._plans.remove(path)
            self._show_plans()
        except UsageError as error:  # it was settled elsewhere in the meantime
            print(f"note: {error}", file=sys.stderr, flush=True)


def _ask(text: str) -> None:
    """Print a question, with the cursor after it."""
    print(text, end="", file=sys.stderr, flush=True)
