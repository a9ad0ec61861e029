"""A question to a person as text in a chat, and the answer as a text: for clients that have no other place for them.

A yes is a yes to what was shown. The text ends with the question's id, which names its session, its record and the digest
of what is asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from iact.core.records.forms import CHANGE, FormAsk
from iact.core.records.record import Record
from iact.core.views.question_text import told
from iact.faces.conversation import field_for_words, is_in_words, is_verdict
from iact.faces.message import question_id

_HOW: Final = 'Answer "allow" or "deny" ("yes" or "no").'
_HOW_WITH_VALUES: Final = 'Answer with the last line of this and your values in it, or "deny".'
_HOW_IN_WORDS: Final = "Your next message is the answer."
_HOW_STEP: Final = (
    'Answer with what came of it, with "yes" if there is nothing to say, or with "no" if you did not do it.'
)
_HOW_ACCEPTED: Final = 'Answer "yes" to accept it, "no" to refuse it, or with what should be changed.'
_MORE: Final = "{count} more questions wait after this one."
_ONE_MORE: Final = "One more question waits after this one."
_LATER: Final = "Your message is read when this is answered."

_SHOWN: Final = re.compile(r"`(call_\S{1,120}_\d{1,9}_[0-9a-f]{16})`\s*\Z")
_RUNS: Final = re.compile(r"`+")
_SHORTEST_FENCE: Final = 3


def asked_text(session: str, question: Record, *, more: int = 0, later: bool = False) -> str:
    """Return a question as text in Markdown. `more`: how many wait after it. `later`: a message waits for its answer.

    Its last line is its id.
    """
    identity = question_id(session, question)
    return f"{question_words(question, more=more, later=later)}\n\n`{identity}`"


def question_words(question: Record, *, more: int = 0, later: bool = False) -> str:
    """Return a question as text in Markdown, for a client that knows by itself which one is answered.

    What is asked about is in a fence that nothing of it can end: it may hold what strangers wrote, and a chat program
    would show pictures and links.
    """
    shown = "\n".join([told(question), *_values_line(question)])
    longest = max((len(run) for run in _RUNS.findall(shown)), default=0)
    fence = "`" * max(_SHORTEST_FENCE, longest + 1)

    sentences = [_LATER] if later else []
    sentences.append(_how(question))
    if more:
        sentences.append(_ONE_MORE if more == 1 else _MORE.format(count=more))

    return f"{fence}text\n{shown}\n{fence}\n\n{' '.join(sentences)}"


def _how(question: Record) -> str:
    """How a question is answered. The names of fields are a stranger's, and are in the fence only."""
    if is_in_words(question):
        return _HOW_IN_WORDS
    if field := field_for_words(question):
        return _HOW_ACCEPTED if field == CHANGE else _HOW_STEP
    return _HOW_WITH_VALUES if _values_line(question) else _HOW


def _values_line(question: Record) -> Sequence[str]:
    """The line with which a form is answered; none if a yes leaves every field as it is."""
    asked = question.content
    if not isinstance(asked, FormAsk) or is_in_words(question):
        return []
    needed = [field.name for field in asked.fields if field.required and field.default is None]
    if not needed:
        return []
    line = {"allow": True, "values": dict.fromkeys(needed, "…")}
    return [json.dumps(line, ensure_ascii=False)]


def shown_question(text: str) -> str | None:
    """Return the id of the question that a text asks, or None if it asks none."""
    found = _SHOWN.search(text)
    return found[1] if found is not None else None


def needs_words(question: Record) -> bool:
    """Whether a yes or no is not all that a person can say to a question: words, or values that a form needs."""
    return is_in_words(question) or bool(field_for_words(question)) or bool(_values_line(question))


def is_answer(question: Record, text: str) -> bool:
    """Whether a message answers a question. For approvals only a word for yes or no does, or JSON that says it."""
    return is_in_words(question) or bool(field_for_words(question)) or is_verdict(text)
