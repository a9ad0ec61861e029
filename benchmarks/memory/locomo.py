"""Reads conversations in LoCoMo's format (https://github.com/snap-research/locomo).

A file is a list of samples: `conversation` contains `session_N` (turns with `speaker`, `dia_id`, `text`) and
`session_N_date_time`; `qa` contains questions with the ids of the turns that are their evidence. Questions
without evidence (the adversarial ones) are left out.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from iact.core.errors import UsageError

TYPES: Final = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""LoCoMo's category numbers, as its evaluation code uses them; 5 is adversarial."""

SHIPPED: Final = Path(__file__).parent / "conversations.json"
"""Our own conversations."""

_DATES: Final = ("%I:%M %p on %d %B, %Y", "%Y-%m-%dT%H:%M:%S", "%d %B, %Y")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. `n`: its position in its session, from 1."""

    id: str
    session: int
    n: int
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    type: str
    evidence: frozenset[str]
    answer: str = ""
    """What is expected."""


@dataclass(frozen=True, slots=True)
class Conversation:
    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def read(path: Path) -> list[Conversation]:
    """Every conversation of a file.

    Raises:
        UsageError: the file is not in LoCoMo's format.
    """
    try:
        samples = json.loads(path.read_text(encoding="utf-8"))
        return [_conversation(sample, n) for n, sample in enumerate(samples)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"The file {path} is not in LoCoMo's format ({type(error).__name__}: {error}); see benchmarks/memory/locomo.py."
        ) from error


def _conversation(sample: dict[str, object], n: int) -> Conversation:
    talk, asked = sample["conversation"], sample["qa"]
    if not isinstance(talk, dict) or not isinstance(asked, list):
        raise TypeError("'conversation' must be an object and 'qa' a list")
    numbers = sorted(int(key.split("_")[1]) for key in talk if re.fullmatch(r"session_\d+", key))
    turns = [turn for number in numbers for turn in _session(talk, number)]
    ids = {turn.id for turn in turns}
    questions = []
    for one in asked:
        evidence = frozenset(re.findall(r"D\d+:\d+", " ".join(map(str, one.get("evidence") or ())))) & ids
        kind = TYPES.get(one.get("category"))
        if evidence and kind:
            questions.append(Question(str(one["question"]), kind, evidence, str(one.get("answer", ""))))
    return Conversation(str(sample.get("sample_id", n)), tuple(turns), tuple(questions))


def _session(talk: dict[str, object], number: int) -> list[Turn]:
    at = _time(str(talk.get(f"session_{number}_date_time", "")))
    turns = talk[f"session_{number}"]
    if not isinstance(turns, list):
        raise TypeError(f"'session_{number}' must be a list")
    found = []
    for n, turn in enumerate(turns, 1):
        caption = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
        found.append(
            Turn(str(turn["dia_id"]), number, n, at, f"{turn['speaker']}: {turn.get('text', '')}{caption}")
        )
    return found


def _time(text: str) -> datetime:
    for form in _DATES:
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise ValueError(f"the date {text!r} can't be read")
