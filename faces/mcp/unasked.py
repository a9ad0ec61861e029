"""Questions of a session whose client has no way to ask its user.

Such a question is denied at once, unless the policy holds calls like this for a person. Either way the client is told
what was asked, and how its user decides instead. It has no way to answer, so nothing is given away by that.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from mcp_types import ClientCapabilities

from iact.core.errors import IactError
from iact.core.records.forms import FormAsk
from iact.core.records.record import Record
from iact.core.session.session import Session
from iact.core.views.question_text import told
from iact.core.views.questions import held_for_a_person
from iact.faces.conversation import ClientAnswer, answer
from iact.faces.mcp.elicitation import can_ask

_DENIED: Final = (
    "This client can't ask its user, so this was denied: {question} To be asked, go on in the session in a terminal: iact run "
    "--session {session} TEXT. A rule with `hold` in the policy lets such calls wait for a person instead."
)
_HELD: Final = (
    "This waits for a person: {question} Answer with: iact clear {n} --session {session} --allow (or --deny)."
)
_LONGEST: Final = 500
"""The most characters of a question in a line."""


async def deny(
    session: Session, waiting: Sequence[Record], client: ClientCapabilities | None
) -> tuple[list[Record], list[Record]]:
    """Deny the questions that the client can't ask. Returns those, and those that the policy holds instead."""
    denied = []
    held = []
    for question in waiting:
        if can_ask(client, question):
            continue
        if held_for_a_person(session.state, question):
            held.append(question)
            continue
        with suppress(IactError):  # it was answered elsewhere in the meantime
            await answer(session, [ClientAnswer(question.n, "", None)])
            denied.append(question)
    return denied, held


def denied_text(session: str, question: Record) -> str:
    """What a client is told about a question that was denied."""
    return _DENIED.format(question=_in_a_line(question), session=session)


def held_text(session: str, question: Record) -> str:
    """What a client is told about a question that waits for a person."""
    return _HELD.format(question=_in_a_line(question), session=session, n=question.n)


def _in_a_line(question: Record) -> str:
    """What is asked, as one line."""
    first, *rest = told(question).splitlines()
    if not isinstance(question.content, FormAsk):
        return first

    # The first line of a form only says who asks; the words follow it behind bars.
    words = [line.strip().removeprefix("|").strip() for line in rest if line.startswith("  | ")]
    return " ".join([first, *words])[:_LONGEST]
