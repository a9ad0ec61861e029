"""What a person reads when a plan that they asked for has ended: their language, and nothing that only programs read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from iact.core.records.record import Record
from iact.core.session.replay import replay
from tests.core.session.fakes import replies
from tests.core.session.plan_scenes import Answers, runtime


def answered(data: Path, text: str, mode: str, answers: Answers) -> str:
    """The root's reply to a message that is worked on as a plan."""

    async def go() -> tuple[Record, Path]:
        async with runtime(data, replies({"/": ["Nothing."]}), answers=answers) as opened:
            session = await opened.open()
            said = await session.say(text, mode=mode)  # type: ignore[arg-type]
            return await session.answer(said.n), session.journal

    reply, journal = asyncio.run(go())
    replay(journal, verify=True)
    return reply.body


STEPS = "steps:\n  - {id: total, call: t.read, params: {text: '377.10'}}\n"
BROKEN = "steps:\n  - {id: all_good, call: t.read, params: {text: one}}\n  - {id: check-9, call: t.fail, params: {text: two}}\n"
GIVE_UP = {"A step failed.": '{"action": "give_up", "cause": "gone"}'}


def test_one_result_is_the_answer(tmp_path: Path) -> None:
    assert answered(tmp_path, "What is the total?", "static", {"Plan the steps": [STEPS]}) == "377.10"


@pytest.mark.parametrize(
    ("text", "head", "missing"),
    [
        ("Was ist die Summe, und ist sie richtig?", "Es ist nicht alles erledigt.", "Was fehlt:"),
        ("What is the total, and is it right?", "Not all of it is done.", "What is missing:"),
    ],
)
def test_what_is_missing_is_said_in_the_language_of_the_request(
    tmp_path: Path, text: str, head: str, missing: str
) -> None:
    told = answered(tmp_path, text, "static", {"Plan the steps": [BROKEN], "Plan the": "no", **GIVE_UP})
    assert told.startswith(f"{head}\n\none\n\n{missing}\n- t.fail: ")
    assert "it failed" in told, "with the step's own error"
    assert "check-9" not in told
    assert "all_good" not in told
    assert "verified" not in told


def test_a_question_of_the_planner_is_the_answer(tmp_path: Path) -> None:
    told = answered(
        tmp_path, "Print it.", "static", {"Plan the steps": ["ask the person: On which printer?"]}
    )
    assert told == "On which printer?"


def test_what_a_model_wrote_stands_alone(tmp_path: Path) -> None:
    answers = {
        "Plan the steps": [STEPS],
        "Judge the": ['{"decision": "conclude", "reached": true, "answer": "Die Summe ist 377,10."}'],
    }
    assert answered(tmp_path, "Was ist die Summe?", "reflect", answers) == "Die Summe ist 377,10."
