"""What happened to an agent, in lines: what it keeps of its history when that is cut, whatever a summary says.

It grows with the agent's records and survives every cut. Pure, like everything that it is made of.
"""

from __future__ import annotations

from typing import Final

from iact.core.language import labels
from iact.core.language.variables import Table, text_value
from iact.core.modules.outcome_reader import exit_status
from iact.core.modules.registry import SKILLS
from iact.core.records.calls import Result
from iact.core.records.dialogue import Reply
from iact.core.records.record import Record
from iact.core.tree import origin
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.agent_context import Answered, Chronicle, Heard
from iact.core.tree.mail import Incoming

_SHORT: Final = 600
"""A message of at most this many characters is kept whole; of a longer one its first line is, and its variable."""

_LINE: Final = 160
"""The most characters of a line about a call, a reply or a file."""

_SOURCES: Final = {"say": "the user", "intervention": "the user, an intervention", "caller": "your caller"}


def hear(agent: Agent, message: Incoming, record: Record) -> None:
    """Note a message that the agent has read with this record."""
    chronicle = agent.context.chronicle
    if message.kind in _SOURCES:
        own = message.own if message.by_person else ""
        chronicle.heard.append(
            Heard(
                _SOURCES[message.kind],
                message.text,
                message.labels,
                first=agent.context.fresh,
                own=own,
                record=message.n,
                read=record.n,
                at=record.at,
            )
        )
    elif message.kind == "child":
        said = labels.inline(message.text, _LINE)
        how = "" if message.status == "ok" else f" ({message.status})"
        chronicle.replies.append(f"{message.child}{how}: {said}")


def note_answer(agent: Agent, record: Record, reply: Reply) -> None:
    """Note the agent's answer to its caller."""
    if agent.plan is None and reply.status in ("ok", "bound") and record.body.strip():
        chronicle = agent.context.chronicle
        chronicle.answers.append(Answered(len(chronicle.heard), record.body, origin.by(agent)))


def note_result(agent: Agent, pending: Pending, record: Record, result: Result) -> None:
    """Note the outcome of a call, the file that it wrote, and the skill that it used. What it waited for is among the
    replies."""
    if pending.spec.name in ("WAIT", "QUERY"):
        return

    chronicle = agent.context.chronicle
    chronicle.done.append(f"`{pending.written}` {_arguments(pending)}: {_outcome(record, result)}")

    module = pending.spec.module or ""
    if module.startswith(SKILLS) and result.status == "ok":
        chronicle.skills.pop(module, None)
        chronicle.skills[module] = None

    path = pending.bound.arguments.get("path") if pending.bound is not None else None
    wrote = result.status == "ok" and pending.spec.module is not None and pending.spec.impact > 0
    if wrote and isinstance(path, str):
        chronicle.files.pop(path, None)  # the newest is last
        chronicle.files[path] = None


def _arguments(pending: Pending) -> str:
    """What a call was about: its parameters as they were written, and the first line of its body."""
    written = pending.info.partition(" ")[2]
    body = pending.body.strip().partition("\n")[0]
    return labels.inline(f"{written} {body}", _LINE) or "(nothing)"


def _outcome(record: Record, result: Result) -> str:
    status = exit_status(dict(result.data or {}))
    if result.status == "ok":
        return "done" if not status else f"exit status {status}"
    if result.status == "error":
        return f"error, {labels.inline(record.body.strip().partition(chr(10))[0], _LINE)}"
    # A denied call, a lost module and an expired question are the same here, too: the law of silence.
    return "did not complete" if result.status == "incomplete" else result.status


def message_lines(chronicle: Chronicle, table: Table, *, seen: str) -> list[str]:
    """The messages of the caller and of people, oldest first, without those that `seen` holds.

    A long one becomes a variable, once.
    """
    lines = list[str]()
    for index, heard in enumerate(chronicle.heard):
        text = labels.clean(heard.text)
        if text in seen:
            continue

        if len(text) <= _SHORT:
            lines.append(f"- {heard.source}:{_quoted(text.strip())}")
            continue

        if not heard.variable:
            value = text_value(heard.text, labels=heard.labels, origin=heard.source)
            heard = chronicle.heard[index] = heard.kept_as(table.keep("message", value))
        first = labels.inline(text.strip().partition("\n")[0], _LINE)
        lines.append(f"- {heard.source}, {len(text)} characters, kept as ${heard.variable}: {first}")
    return lines


def _quoted(text: str) -> str:
    """A text behind its label: on the same line, or in a fence if it has several and could imitate lines of ours."""
    return f" {text}" if "\n" not in text else f"\n{labels.fenced(text)}"
