"""What a person reads when a plan that they asked for has ended: their language, and nothing that only programs read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from iact.core.errors import ModelUnreachable
from iact.core.plan.contracts import violation
from iact.core.plan.model import Contract
from iact.core.plan.protocol import StepSuccess
from iact.core.ports import JSON
from iact.core.records.record import Record
from iact.core.stored.replay import replay
from iact.core.tree.plan_answer_reasons import told_reason
from iact.core.tree.plan_report import results_in
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
WAITING = f"{BROKEN}  - {{id: last-7, call: t.read, params: {{text: 合计}}, after: [check-9]}}\n"
GIVE_UP = {"A step failed.": '{"action": "give_up", "cause": "gone"}'}


def test_one_result_is_the_answer(tmp_path: Path) -> None:
    assert answered(tmp_path, "What is the total?", "static", {"Plan the steps": [STEPS]}) == "377.10"


@pytest.mark.parametrize(
    ("text", "head", "missing"),
    [
        ("Was ist die Summe, und ist sie richtig?", "Es ist nicht alles erledigt.", "Was fehlt:"),
        ("What is the total, and is it right?", "Not all of it is done.", "What is missing:"),
        ("读取 orders.csv，合计是多少？对吗？", "没有全部完成。", "缺少的部分："),
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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "What is the total?",
            "It is not done. No reply could be had from the model. Nothing answers at port 1. "
            "No plan could be had, so nothing was done.",
        ),
        (
            "Was ist die Summe?",
            "Es ist nicht erledigt. Vom Modell war keine Antwort zu bekommen. Nothing answers at port 1. "
            "Ohne Plan wurde nichts getan.",
        ),
        (
            "合计是多少？",
            "没有完成。 没有得到模型的回答。Nothing answers at port 1. 没有计划，所以什么都没做。",
        ),
    ],
)
def test_without_a_planner_it_says_why_nothing_was_done(tmp_path: Path, text: str, told: str) -> None:
    assert (
        answered(tmp_path, text, "static", {"Plan the steps": ModelUnreachable("Nothing answers at port 1.")})
        == told
    )


def test_a_plan_that_can_not_be_used_says_why_nothing_was_done(tmp_path: Path) -> None:
    unfit = "steps:\n  - {id: total, call: t.gone, params: {text: one}}\n"
    told = answered(tmp_path, "What is the total?", "static", {"": unfit})
    assert told.startswith("It is not done. The plan could not be used, also after one correction. ")
    assert "t.gone" in told


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


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Was ist die Summe, und ist sie richtig?", "Etwas, das davor kommt, ist nicht gelungen."),
        ("What is the total, and is it right?", "Something that it needs did not succeed."),
        ("读取 orders.csv，合计是多少？对吗？", "它之前的步骤没有成功。"),
        ("合計はいくらですか。", "Something that it needs did not succeed."),
    ],
)
def test_a_reason_of_ours_is_said_in_the_language_of_the_request(tmp_path: Path, text: str, why: str) -> None:
    told = answered(tmp_path, text, "static", {"Plan the steps": [WAITING], "Plan the": "no", **GIVE_UP})
    assert told.endswith(f": {why}")
    assert "check-9" not in told
    assert "last-7" not in told


ENGLISH: Final = re.compile(r"\b(the|is|it|of|and|with|which|that|you|nothing|for|not|did)\b", re.IGNORECASE)

OUTPUT: Final[Mapping[str, JSON]] = {"type": "object", "required": ["total"]}


@pytest.mark.parametrize(
    ("contract", "success"),
    [
        (Contract(exit_status=0), StepSuccess("", exit_status=3)),
        (Contract(pattern="total [0-9]"), StepSuccess("none")),
        (Contract(schema=OUTPUT), StepSuccess({"sum": 1})),
    ],
)
def test_no_contract_that_fell_is_told_in_english_to_others(contract: Contract, success: StepSuccess) -> None:
    why = violation(contract, success)
    assert why
    chinese = told_reason(why, "zh")
    assert re.search("[\u4e00-\u9fff]", chinese)
    assert not re.search("[A-Za-z]", chinese)
    assert re.search("Rückgabewert|Was dabei herauskam", told_reason(why, "de"))
    assert "[0-9]" not in told_reason(why, "en")


@pytest.mark.parametrize(
    "why",
    [
        "A rule of the plan left it out.",
        "Left out by the rule: empty(hits).",
        "The output is empty.",
        "It took longer than 120 seconds and was stopped.",
        "shell.run did not complete.",
        "shell.run was cancelled before it ended.",
        "shell.run was interrupted; its outcome is unknown.",
        "shell.run was not carried out: the session was forked here.",
        "The program stopped while it ran.",
        "The user cancelled this step.",
        "A message of the user ended the plan.",
        "The plan has concluded.",
        "The user was not asked any more.",
        "The user did not accept the result.",
        "The user did not accept the result. They say: 太短了",
        "Nobody was there to accept the result.",
        "It asked something that nobody answered.",
        "It never started; it waited for first.",
        "What it stands on was lost meanwhile.",
        "Not needed any more: 够了",
        "It is skipped.",
        "It failed.",
        "The bound on wall_clock was hit.",
        "The agent did not finish (cancelled): The user cancelled this work.",
        "shell.run was cancelled before it ended. It had printed: 一",
        "The results can't be trusted: first gave no result.",
        "No plan could be had, so nothing was done.",
        "An internal error ended this plan (KeyError).",
    ],
)
def test_each_reason_of_ours_is_told_in_the_language_of_the_request(why: str) -> None:
    assert not re.search("[A-Za-z]", told_reason(why, "zh"))
    german = told_reason(why, "de")
    assert german != why
    assert not ENGLISH.search(german)


def test_what_a_program_printed_stays_as_it_is() -> None:
    told = told_reason(
        "The exit status is 1, not 0. Its output: cat: zwei.txt: Datei oder Verzeichnis nicht gefunden", "de"
    )
    assert (
        told
        == "Der Rückgabewert ist 1 statt 0. Die Ausgabe: cat: zwei.txt: Datei oder Verzeichnis nicht gefunden"
    )
    assert told_reason("no such host", "zh") == "no such host"
    assert (
        told_reason("It failed and was left out: no such host", "zh") == "它失败了，因此被省略：no such host"
    )


@pytest.mark.parametrize("again", [1, 5_000])
def test_a_program_that_prints_our_words_is_told_as_it_is(again: int) -> None:
    printed = "It was left out: " * again
    assert told_reason(f"It failed and was left out: {printed}", "en").endswith(f"out: {printed}")


@pytest.mark.parametrize(
    ("told", "results"),
    [
        (
            "The plan concluded: 1 of 1 steps executed.\n\nResult:\nAll.\n\nSteps:\n- a (t.read): executed",
            [("", "All.")],
        ),
        (
            "Done.\n\nResult of a:\n1\n\nSteps:\nmine\n\nResult of 数:\n2\n\nSteps:\n- a (t.read): executed\n\nMissing:\n- c: no",
            [("a", "1\n\nSteps:\nmine"), ("数", "2")],
        ),
        ("The plan failed: 0 of 1 steps executed.\n\nSteps:\n- a (t.read): failed", []),
        ("The plan failed without any step. Its goal is not reached.\n\nNotes:\n- No plan could be had.", []),
        ("It could not be planned.", None),
    ],
)
def test_the_results_are_found_in_a_report(told: str, results: list[tuple[str, str]] | None) -> None:
    assert results_in(told) == results
