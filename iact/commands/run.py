"""`iact run`: send one message without a page. The reply goes to stdout, progress to stderr."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import mimetypes
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, TypeAlias

from iact import signals
from iact.commands import ending, undecided
from iact.commands.questions import TerminalQuestions
from iact.commands.review_questions import review
from iact.commands.terminal_text import TerminalText, call_line, ends_a_text, pictures
from iact.core.errors import IactError, UsageError
from iact.core.ports import Usage
from iact.core.records.calls import Call, ClearanceAsk
from iact.core.records.dialogue import BoundName, Choose, Reply, Say
from iact.core.records.record import Record
from iact.core.records.ways import Way
from iact.core.session.models import by_a_small_model
from iact.core.session.runtime import Runtime
from iact.core.session.session import LARGEST_UPLOAD, Session
from iact.core.session.watch import Lagging
from iact.core.views.ending import outcome_of, verdict_json, verdict_on
from iact.core.views.events import Activity, Delta, Event, NoticeEvent, OutputEvent, RecordAppended
from iact.core.views.progress import progress_line
from iact.core.views.question_text import about, told
from iact.core.views.questions import OpenQuestions, Undecided, is_question, undecided_since
from iact.core.views.text import looks_like_action
from iact.run_server import serve_run
from iact.settings import Settings
from iact.wiring import open_runtime

_LOG: Final = logging.getLogger(__name__)

Detail: TypeAlias = Literal["quiet", "usual", "verbose"]
"""How much is printed beside the answer."""

_STATUS: Final[Mapping[str, str]] = {"ok": "done", "concluded": "done"}


def run(
    settings: Settings,
    task: str,
    *,
    session: str | None,
    workspace: str | None,
    intent: str | None,
    scope: str | None,
    as_json: bool,
    release: bool = False,
    mode: Way = "dialogue",
    plan_first: bool = False,
    add_tokens: int = 0,
    add_money: float = 0.0,
    no_questions: bool = False,
    files: Sequence[Path] = (),
    detail: Detail = "usual",
) -> int:
    """Give `task` to the root of a session. Returns what came of it (`EXIT`); 3, too, if it waits for a person who is
    not present.

    `release`: resume agents that are paused. `add_tokens`, `add_money`: by how much to raise the budget first.
    `no_questions`: ask nothing, even if there is a terminal. `files`: what to hand over with the task.
    `detail`: how much to print beside the answer.
    """
    if not task.strip():
        raise UsageError("The task is empty.")

    attended = sys.stdin.isatty() and not no_questions
    if plan_first and not attended:
        raise UsageError(
            "--plan-first needs a terminal, where you are asked whether to start the plan. Leave it out, or give "
            "the task on the page (iact serve)."
        )
    for file in files:
        _check_file(file)

    job = _Task(
        text=task,
        mode=mode,
        plan_first=plan_first,
        files=tuple(files),
        session=session,
        workspace=Path(workspace) if workspace else None,
        intent=intent,
        scope=scope,
        release=release,
        add_tokens=add_tokens,
        add_money=add_money,
        attended=attended,
        as_json=as_json,
        detail=detail,
    )
    return signals.run(_run(settings, job))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """A message with files, where and how to work on it, and what to print."""

    text: str
    mode: Way
    plan_first: bool
    files: tuple[Path, ...]

    session: str | None
    """The session to continue; None: a new one."""
    workspace: Path | None
    intent: str | None
    scope: str | None

    release: bool
    """Whether to resume agents that are paused."""
    add_tokens: int
    add_money: float
    """By how much to raise the budget first."""

    attended: bool
    """Whether a person can be asked."""
    as_json: bool
    detail: Detail


def _check_file(file: Path) -> None:
    """Check a file before a session begins for it.

    Raises:
        UsageError: it is none, or too large to be handed over.
    """
    try:
        status = file.stat()
    except OSError as error:
        raise UsageError(f"The file {str(file)!r} can't be read ({error.strerror}).") from error

    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{str(file)!r} is not a file.")
    if status.st_size > LARGEST_UPLOAD:
        raise UsageError(
            f"{file.name[:80]!r} has {status.st_size:,} bytes; a file may have {LARGEST_UPLOAD:,}."
        )


async def _hand_over(session: Session, file: Path) -> None:
    media = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    try:
        content = await asyncio.to_thread(file.read_bytes)
    except OSError as error:
        raise UsageError(f"The file {str(file)!r} can't be read ({error.strerror}).") from error
    await session.upload(file.name, media, content)


async def _run(settings: Settings, task: _Task) -> int:
    async with open_runtime(settings, task.workspace, attended=task.attended) as runtime:
        if runtime.memory is not None:
            runtime.memory.wake()  # it opens beside the session, so that the first turn has it
        session = await _open(runtime, task)
        before = _Before(session.view.usage, session.view.model_calls, len(session.records()))

        screen = _Screen(session, task.detail, live=_live(session, task.detail, as_json=task.as_json))
        waits: list[Activity] = []
        message, reply = await _answer(settings, runtime, session, task, screen, waits)

        decisions = undecided_since(session.records(), before.records)
        undecided.tell(decisions)
        if reply is None:
            return tell_held(session, as_json=task.as_json, decided=decisions)

        # The answer comes before any question about what was done for it.
        why_not = "" if task.as_json else _show(session, reply, screen)
        pending = await review(session, asks=task.attended and sys.stderr.isatty() and not task.as_json)
        if task.as_json:
            report = {
                **_report(session, message, reply),
                "usage": before.usage_since(session),
                "waits": [_wait(wait) for wait in waits],
                "pending": pending,
                "undecided": [undecided.to_json(decision) for decision in decisions],
            }
            print(json.dumps(report, ensure_ascii=False))

        return _tell_end(session, task, reply, why_not, before.records)


async def _open(runtime: Runtime, task: _Task) -> Session:
    """Open the session of a task.

    Raises:
        IactError: its root is paused, and stays so.
    """
    intent = 1 if task.intent is None else task.intent
    session = await runtime.open(task.session, intent=intent, scope=task.scope)

    # A session that is continued keeps its own intent, unless one was named.
    if task.session is not None and task.intent is not None and session.level(task.intent) != session.intent:
        await session.set_intent(task.intent)
    if not task.release:
        _tell_of_pauses(session)

    return session


async def _answer(
    settings: Settings,
    runtime: Runtime,
    session: Session,
    task: _Task,
    screen: _Screen,
    waits: list[Activity],
) -> tuple[Record, Record | None]:
    """Say the message of a task and wait for its answer, while what happens is shown and asked about.

    Returns the message, and the reply; None: it waits for a person who is not present.
    """
    async with asyncio.TaskGroup() as group:
        questions = TerminalQuestions(session, group.create_task, asks=task.attended)
        beside = [
            group.create_task(show_progress(session, questions, waits, since=session.read, screen=screen)),
            group.create_task(serve_run(settings, runtime, session)),
            group.create_task(_distil_beside(runtime, session)),
        ]
        try:
            with questions.listening():
                if task.add_tokens or task.add_money:
                    await session.raise_budget(task.add_tokens, task.add_money)
                for file in task.files:
                    await _hand_over(session, file)

                message = await session.say(task.text, mode=task.mode, plan_first=task.plan_first)
                if task.release:
                    await _release(session)
                reply = await session.answer_unless_held(message.n)
        finally:
            for activity in beside:
                activity.cancel()

    return message, reply


@dataclass(frozen=True, slots=True)
class _Before:
    """What a session had used, and its number of records, before a task."""

    usage: Usage
    model_calls: int
    records: int

    def usage_since(self, session: Session) -> Mapping[str, object]:
        """What the task took."""
        used = _since(session.view.usage, self.usage)
        return {**used.to_json(), "model_calls": session.view.model_calls - self.model_calls}


def _report(session: Session, message: Record, reply: Record) -> Mapping[str, object]:
    """What came of a task, for programs."""
    assert isinstance(reply.content, Reply)
    mode, why = _way(session, message)
    return {
        "session": session.id,
        "reply": reply.body,
        "journal": str(session.journal),
        "status": _status_of(reply.content),
        "verdict": verdict_json(verdict_on(reply.content)),
        "bound": _bound_of(reply),
        "mode": mode,
        "why": why,
    }


def _tell_end(session: Session, task: _Task, reply: Record, why_not: str, since: int) -> int:
    """Print what is to be known beside the answer. Returns the exit status. `since`: the last record before the task.

    Raises:
        IactError: the task failed.
    """
    assert isinstance(reply.content, Reply)
    outcome = outcome_of(reply.content)
    if outcome == "failed":
        raise _Failed(reply.body) if task.as_json else IactError(why_not or reply.body)

    if by_a_small_model(reply, session.records()):
        print(f"note: {_BY_THE_SMALL_MODEL}", file=sys.stderr)
    note = ending.note(verdict_on(reply.content)) if reply.content.status == "ok" else ""
    if note:
        print(f"note: {note}", file=sys.stderr)
    if task.detail != "quiet":
        _tell_of_the_session(session, since)
    if reply.content.status != "ok":
        print(f"iact: {reply.body if task.as_json else why_not}", file=sys.stderr)

    return ending.EXIT[outcome]


async def _distil_beside(runtime: Runtime, session: Session) -> None:
    """Distil one session that an earlier run left, while a model answers in this one.

    A run ends as soon as there is its answer, so it leaves its own session to the next one. This begins when the model
    has begun to answer, which it must not delay, and is broken off when the run ends.
    """
    with contextlib.suppress(Lagging):
        async with session.watch() as events:
            async for event in events:
                if isinstance(event, Delta):
                    break
    try:
        await runtime.distil_left(1)
    except Exception:  # a bug of ours here must not end the run
        _LOG.exception("An earlier session could not be distilled.")


HELD: Final = 3
"""The exit status of a task that is unfinished and continues when a person has answered."""


def tell_held(session: Session, *, as_json: bool, decided: Sequence[Undecided] = ()) -> int:
    """Print which calls wait for a person, because no one could be asked, and how to answer them."""
    questions = OpenQuestions(session.records()).waiting
    if as_json:
        report = {
            "session": session.id,
            "reply": "",
            "journal": str(session.journal),
            "status": "held",
            "held": [{"record": asked.n, "agent": asked.agent, **about(asked)} for asked in questions],
            "undecided": [undecided.to_json(decision) for decision in decided],
        }
        print(json.dumps(report, ensure_ascii=False))
        return HELD

    for question in questions:
        print(f"Record {question.n}: {told(question)}", file=sys.stderr)
    print(
        f"note: the task is not finished: the calls above need your approval, and no one could be asked. Start a "
        f"server with iact serve, and answer on its page, or with: iact clear --session {session.id} RECORD --allow",
        file=sys.stderr,
    )
    return HELD


def _status_of(reply: Reply) -> str:
    """How a message was answered, in one word: as its plan ended, if it was worked on as a plan."""
    word = reply.plan if reply.plan and reply.status == "ok" else reply.status
    return _STATUS.get(word, word)


def _way(session: Session, message: Record) -> tuple[Way, str]:
    """Return how a message was worked on, and why."""
    later = (record.content for record in session.records(message.n))
    choice = next((content for content in later if isinstance(content, Choose)), None)
    if choice is not None:
        return choice.mode, choice.why

    assert isinstance(message.content, Say)
    why = "This is the default." if message.content.mode == "dialogue" else "You chose it."
    return message.content.mode, why


def _tell_of_the_session(session: Session, since: int) -> None:
    """Print which pictures were made, where everything is, and how to go on."""
    for line in pictures(session.records(since), session.journal.parent):
        print(f"picture: {line}", file=sys.stderr)
    print(f"journal: {session.journal}", file=sys.stderr)
    print(f'to go on: iact run --session {session.id} "…"', file=sys.stderr)


def _live(session: Session, detail: Detail, *, as_json: bool) -> TerminalText | None:
    """What shows the answer while it is written, if a person reads it."""
    if as_json or detail == "quiet" or not sys.stdout.isatty():
        return None

    def is_action(word: str) -> bool:
        # Which functions there are is known better with each turn.
        return (session.view.is_action("/") or looks_like_action)(word)

    return TerminalText(sys.stdout, is_action)


def _show(session: Session, reply: Record, screen: _Screen) -> str:
    """Print the answer, before anything is asked about what was done for it. Returns why there is none."""
    assert isinstance(reply.content, Reply)
    if reply.content.status != "ok":
        return _why_not(session, reply)
    if not screen.shows(reply.body):
        print(reply.body, flush=True)
    return ""


def _why_not(session: Session, reply: Record) -> str:
    """Return why there is no answer, and what to do. Prints what was written so far to stdout."""
    bound = _bound_of(reply)
    if bound is None:
        return reply.body

    why, _, written = reply.body.partition("\n\n")
    if isinstance(reply.content, Reply) and reply.content.generation is not None:
        # The model wrote all of it, in its last turn, and was not done.
        why, written = _REACHED.get(bound, _BOUND_REACHED.format(bound=bound)), reply.body
    if written:
        print(written)

    more = " --add-tokens 1000000" if bound == "tokens" else ""
    return f"{why} To go on: iact run --session {session.id}{more} TASK."


def _bound_of(reply: Record) -> BoundName | None:
    """The bound that ended the work on a message, if one did."""
    return (reply.content.bound or None) if isinstance(reply.content, Reply) else None


def _tell_of_budget(session: Session, told: bool) -> bool:
    """Print once that most of the budget is used. Returns whether that has been printed."""
    budget = session.view.budget
    if told or budget is None or budget.used < _MOST_OF_IT * budget.tokens:
        return told
    print(
        f"note: {budget.used:,} of this session's {budget.tokens:,} tokens are used; add some with: iact run "
        f"--session {session.id} --add-tokens N TASK",
        file=sys.stderr,
        flush=True,
    )
    return True


_BY_THE_SMALL_MODEL: Final = (
    "the small model on board answered, which is often wrong; for real work, connect a model of your own: "
    "OPENAI_BASE_URL, OPENAI_API_KEY, IACT_MODEL."
)


class _Failed(IactError):
    """A failure that the report on stdout already describes."""


def _tell_of_pauses(session: Session) -> None:
    """Report paused agents. No one else can resume them, because the session belongs to this process.

    Raises:
        IactError: the root is paused.
    """
    resume = "iact serve, and then: iact resume --session " + session.id
    for node in session.tree():
        if node.paused and node.path == "/":
            raise IactError(
                f"The root of session {session.id} is paused and can't answer. Resume it with: {resume}"
            )
        if node.paused:
            print(
                f"note: {node.path} is paused; resume it with: {resume} --agent {node.path}",
                file=sys.stderr,
            )


async def _release(session: Session) -> None:
    for node in session.tree():
        if node.paused:
            print(f"note: {node.path} was paused; it continues now.", file=sys.stderr)
            await session.resume(node.path)


def _since(now: Usage, before: Usage) -> Usage:
    return Usage(
        now.prompt_tokens - before.prompt_tokens,
        now.cached_tokens - before.cached_tokens,
        now.completion_tokens - before.completion_tokens,
    )


_REACHED: Final[Mapping[BoundName, str]] = {
    "turns": "The limit of turns for one task was reached before the task was done.",
    "tokens": "The token budget was used up before the task was done.",
}
_BOUND_REACHED: Final = "The limit of {bound} was reached before the task was done."

_MOST_OF_IT: Final = 0.8
"""The used share of a session's tokens at which the user is notified."""

_KEPT_WAITING: Final = ("limited", "retrying", "stalled", "slot", "loading")


def _wait(kept: Activity) -> dict[str, object]:
    """A wait for a model's endpoint, in the form that the report has."""
    told = {"agent": kept.agent, "state": kept.state, "since": kept.since, "until": kept.until}
    return {**told, "attempt": kept.attempt, "of": kept.of, "why": kept.why}


def _kept_waiting(kept: Activity) -> str:
    """The reason why an agent is waiting, as a line for a terminal."""
    if kept.until:
        seconds = (datetime.fromisoformat(kept.until) - datetime.fromisoformat(kept.since)).total_seconds()
        which = f"attempt {kept.attempt} of {kept.of} " if kept.of else "asked again "
        what = "Rate limited" if kept.state == "limited" else "Waiting"
        return f"{kept.agent}: {what}: {which}in {max(1, round(seconds))} s. {kept.why}".rstrip()
    return f"{kept.agent}: {kept.why}"


@dataclass(slots=True)
class _Screen:
    """What of a session a terminal shows. `live`: where the root's text is printed while it is written."""

    session: Session | None = None
    detail: Detail = "usual"
    live: TerminalText | None = None

    def shows(self, text: str) -> bool:
        """Whether the last thing that was printed is `text`."""
        return self.live is not None and self.live.shows(text)

    def line(self, text: str) -> None:
        """Print a line about what happens."""
        if self.detail == "quiet":
            return
        if self.live is not None:
            self.live.interrupted()
        print(text, file=sys.stderr, flush=True)

    def wrote(self, delta: Delta) -> None:
        """A model wrote on."""
        if self.live is not None:
            self.live.take(delta)
        elif self.detail == "verbose" and delta.thought:
            self._piece(delta.text)

    def printed(self, event: OutputEvent) -> None:
        """A tool printed something."""
        if self.detail == "verbose":
            self._piece(event.text)

    def ended(self, record: Record) -> None:
        """A record ends what the root was writing, if it does."""
        if self.live is not None and ends_a_text(record):
            self.live.end(record.body)

    def words(self, record: Record) -> str:
        """The line about a record; empty if it has none."""
        call = record.content
        if self.session is None or not isinstance(call, Call):
            return progress_line(record)
        turn = self.session.records(call.turn - 1)[0]
        return call_line(record.agent, call, turn.body, self.session.view.is_action(record.agent))

    def _piece(self, text: str) -> None:
        if self.live is not None:
            self.live.interrupted()
        print(text, end="", file=sys.stderr, flush=True)


async def show_progress(
    session: Session,
    asking: TerminalQuestions,
    waits: list[Activity] | None = None,
    *,
    since: int | None = None,
    screen: _Screen | None = None,
) -> None:
    """Print on stderr what happens, until this is cancelled or the session is closed.

    `waits`: collects the waits for models. `since`: the number of the record after which all is told; default: only
    what happens from now on.
    """
    screen = screen or _Screen(session)
    last = len(session.records()) if since is None else since
    has_warned = False
    is_behind = True
    asking.begin(session.records())
    try:
        # A terminal that falls behind watches again, from the last record that was told.
        while is_behind:
            is_behind = False
            async with session.watch() as events:
                for record in session.records(last):
                    last = _tell(record, asking, screen)
                try:
                    async for event in events:
                        _show_event(event, screen, waits)
                        if isinstance(event, RecordAppended) and event.record.n > last:
                            last = _tell(event.record, asking, screen)
                            has_warned = _tell_of_budget(session, has_warned)
                except Lagging:
                    is_behind = True
    finally:
        # The answer may be there before its last lines were told.
        for record in session.records(last):
            _print_line(record, asking, screen)


def _show_event(event: Event, screen: _Screen, waits: list[Activity] | None) -> None:
    """Show what happens beside the records. `waits`: collects the waits for models."""
    match event:
        case Delta():
            screen.wrote(event)
        case OutputEvent():
            screen.printed(event)
        case NoticeEvent(text):
            screen.line(text)
        case Activity() if event.state in _KEPT_WAITING:
            screen.line(_kept_waiting(event))
            if waits is not None:
                waits.append(event)


def _decided_at_once(record: Record) -> bool:
    """Whether a record asks what the policy answers, if there is no person. That is told at the end."""
    held = isinstance(record.content, ClearanceAsk) and record.content.seconds is None
    return is_question(record) and not held


def _tell(record: Record, asking: TerminalQuestions, screen: _Screen) -> int:
    """Print the line about a record, if it has one, and ask its question. Returns the record's number."""
    _print_line(record, asking, screen)
    asking.take(record)
    return record.n


def _print_line(record: Record, asking: TerminalQuestions, screen: _Screen) -> None:
    screen.ended(record)
    line = screen.words(record)
    if line and (asking.asks or not _decided_at_once(record)):
        screen.line(line)
