"""What stands in each question about a plan, and that each fits into its model's window."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import pytest

from iact.core.context.tokens import estimate
from iact.core.plan import questions
from iact.core.plan.asking import asked
from iact.core.plan.briefing import Briefing, KnownValue, SaidBefore
from iact.core.plan.commands import AskModel
from iact.core.plan.execution import Execution
from iact.core.plan.forms import read_plan
from iact.core.plan.limits import PlanLimits
from iact.core.plan.machine import PlanMachine
from iact.core.plan.modes.base import Mode
from iact.core.plan.modes.profile import Profile
from iact.core.plan.prompt import build, room_in
from iact.core.plan.protocol import FunctionInfo, PlanQuestion, StepFailure, StepSuccess
from tests.core.plan.fakes import Functions

STEPS = """
goal: Find the hosts of the two files
steps:
  - {id: first, call: files.read, params: {path: web.conf}}
  - {id: second, call: files.read, params: {path: mail.yaml}, contract: {non_empty: true}}
  - {id: slow, agent: reader, task: Look at both., after: [first]}
  - {id: last, call: files.write, params: {path: out.md}, after: [slow, second]}
"""
BRIEFING = Briefing(
    date="Friday, 2026-11-27",
    known=[KnownValue("$run_1 (text/plain, 7 B)", "db7")],
    models=["fast", "smart"],
    words=["Now the same for web.conf and mail.yaml only."],
    summary="They named their hosts.",
    conversation=[SaidBefore("person", "Which host does db.conf use?"), SaidBefore("agent", "It uses db7.")],
    files=["web.conf (40 B)", "mail.yaml (90 B)"],
    memory=["prefers answers in French"],
)
INFOS = [
    FunctionInfo("files.read", "Read a file.", signature="- `files.read path` · Read a file"),
    FunctionInfo("files.write", "Write a file.", signature="- `files.write <content> path` · Write a file"),
    FunctionInfo("web.search", "Search.", signature="- `web.search <query>` · Search", returns="JSON"),
]

WORDS = "What the person wrote, word for word, the newest last. It stands above everything else here"
CONVERSATION = "Which host does db.conf use?"
SAID_LATER = "Only mail.yaml, please."
RAN = '## first: files.read {"path": "web.conf"}\nResult: db7'
FAILED = '## second: files.read {"path": "mail.yaml"}\n'
RUNNING = "Running now:\n- slow: agent reader: Look at both."
PLANNED = "- last: "
WAITS = "(waits for slow, second)"
DIAGNOSIS = "- why second failed: no file; it moved; nothing was found to help"
FORM = ("contract:", "join: any_of", "retries:", "timeout:", "intent:", "scope:", "tools:")
WAYS = ("nothing to do", "ask the person", "it can't be done")

TABLE: Mapping[str, tuple[str, ...]] = {
    "replan": (
        WORDS, SAID_LATER, CONVERSATION, "It uses db7.", "They named their hosts.", "$run_1 (text/plain, 7 B): db7",
        "web.conf (40 B)", "prefers answers in French", "`files.write <content> path`", "Search → JSON", *FORM, RAN, FAILED,
        RUNNING, PLANNED, WAITS, DIAGNOSIS, *WAYS,
    ),
    "plan": (
        WORDS, CONVERSATION, "$run_1 (text/plain, 7 B): db7", "web.conf (40 B)", "prefers answers in French",
        "`files.write <content> path`", "→ JSON", *FORM, *WAYS,
    ),
    "patch": (
        WORDS, SAID_LATER, "web.conf (40 B)", "`files.read path`", "others, of which nothing was needed so far: web.search", *FORM, RAN,
        RUNNING, PLANNED, WAITS, DIAGNOSIS, *WAYS,
    ),
    "observe": (WORDS, SAID_LATER, RAN, FAILED, RUNNING, PLANNED, WAITS, DIAGNOSIS, *WAYS),
    "reflect": (WORDS, SAID_LATER, RAN, FAILED, RUNNING, PLANNED, WAITS, DIAGNOSIS, *WAYS),
    "analyze": (WORDS, SAID_LATER, CONVERSATION, "prefers answers in French", RAN, FAILED, DIAGNOSIS),
    "report": (WORDS, SAID_LATER, CONVERSATION, "prefers answers in French", RAN, FAILED, DIAGNOSIS),
}  # fmt: skip
"""What stands in which question: the table of the design, a row for each question."""


def situation() -> tuple[questions.PlanSituation, Execution]:
    """A plan in the middle: one step done, one failed and diagnosed, one running, one planned; the person wrote again."""
    machine = PlanMachine(
        read_plan(STEPS, id="p"), catalogue=Functions.of(*INFOS), asks=True, briefing=BRIEFING,
        limits=PlanLimits(backoff=0.0),
    )  # fmt: skip
    machine.begin(0.0)
    machine.attempt_ended("first", StepSuccess("db7\n"), 1.0)
    machine.attempt_ended("second", StepFailure("raised", "No such file."), 2.0)
    diagnosis = {"failure": "no file", "cause": "it moved", "action": "give_up", "confidence": 0.9}
    machine.answered(1, json.dumps(diagnosis), "", 3.0)
    machine.interject(SAID_LATER, 4.0)
    return machine.run.situation(), machine.run


def made(kind: str, it: questions.PlanSituation) -> questions.Question:
    match kind:
        case "plan":
            return questions.plan(it)
        case "replan":
            return questions.replan(it, "one is missing")
        case "patch":
            return questions.patch(it, it.state.nodes["second"])
        case "observe":
            return questions.observe(it, ["first"])
        case "reflect":
            return questions.reflect(it)
        case "analyze":
            return questions.analyze(it)
        case _:
            return questions.synthesize(it, "", ["mail.yaml could not be read"])


@pytest.mark.parametrize("kind", TABLE)
def test_each_question_has_its_parts(kind: str) -> None:
    text = build(made(kind, situation()[0]))
    missing = [part for part in TABLE[kind] if part not in text]
    assert not missing, text
    assert text.index(WORDS) < 200, "the person's words come first"
    judges = kind in ("observe", "reflect", "patch")
    assert (CONVERSATION in text) != judges
    assert ("web.conf (40 B)" in text) == (kind in ("plan", "replan", "patch")), (
        "who writes steps sees the files"
    )
    assert ("`files.write <content> path`" in text) == (kind in ("plan", "replan", "patch"))


@pytest.mark.parametrize("kind", ["profile", "repair", "reason"])
def test_a_profile_is_asked_for_with_the_same_parts(kind: str) -> None:
    it, run = situation()
    mode = Profile({"files.read(path)": 0.25})
    opening = mode.opening(it)
    assert opening is not None
    text = build(opening.parts)
    told: tuple[str, ...] = (
        WORDS,
        CONVERSATION,
        "web.conf (40 B)",
        "prefers answers in French",
        "- files.read(path): 25% of the calls failed",
    )
    if kind != "profile":
        steps = '[{"id": "first", "call": "files.read", "params": {"path": "x"}}]'
        mode.opened(
            f'{{"steps": {steps}, "confidence": 0.4, "assumptions": ["it is text"], "fragile": ["first: may be gone"], '
            '"recoveries": [{"step": "first", "error": "gone", "set": {"path": "y"}}]}',
            run.catalogue,
        )
        ask = mode.at_rest(it.state)
        assert ask is not None
        text = build(mode.question(ask, it).parts)
        told = (WORDS, CONVERSATION, RAN, "its author was 40% sure", "it takes for granted: it is text", "first: may be gone",
                "if it fails with 'gone'", "how far its results can be trusted")  # fmt: skip
    assert not [part for part in told if part not in text], text


# --- windows --------------------------------------------------------------------------------------------------------


def big(window: int, mode: Mode | None = None) -> Execution:
    """A plan with 24 results of 9 kB, and a request, a conversation and a memory that are long, too."""
    steps = "".join(
        f"  - {{id: s{n}, call: files.read, params: {{path: file-{n}.txt}}}}\n" for n in range(24)
    )
    briefing = Briefing(
        words=["Compare them. " + "word " * 4_000],
        conversation=[SaidBefore("person", f"Question {n}. " + "more " * 500) for n in range(12)],
        files=[f"file-{n}.txt (9.0 kB)" for n in range(24)],
        memory=["prefers French"] * 12,
        known=[KnownValue(f"$v{n} (text/plain, 1 kB)", "x " * 500) for n in range(10)],
    )
    infos = [
        FunctionInfo(f"m{n}.f", signature=f"- `m{n}.f a b=1` · " + "It does much. " * 8) for n in range(60)
    ]
    plan = read_plan(f"goal: Compare\nsteps:\n{steps}", id="p")
    machine = PlanMachine(
        plan, mode=mode, catalogue=Functions.of(*infos, *INFOS), asks=True, briefing=briefing,
        window=lambda role: window, limits=PlanLimits(concurrency=30),
    )  # fmt: skip
    machine.begin(0.0)
    for n in range(23):
        machine.attempt_ended(f"s{n}", StepSuccess(f"line of {n}\n" * 800), n + 1.0)
    machine.attempt_ended("s23", StepFailure("raised", "broken " * 1_200), 30.0)
    return machine.run


@pytest.mark.parametrize("kind", TABLE)
@pytest.mark.parametrize("window", [8_192, 16_384, 131_072])
def test_no_question_is_larger_than_its_window(kind: str, window: int) -> None:
    run = big(window)
    it = run.situation()
    parts = questions.patch(it, it.state.nodes["s23"]) if kind == "patch" else made(kind, it)
    text = build(parts, window)
    assert estimate(text) <= room_in(window) * 1.05 < window * 0.7
    assert "Compare them." in text
    assert ("## s0: files.read" in text) == ("## s22: files.read" in text) == (kind != "plan")
    assert "left out" in text, "what is left out is said"


def test_what_is_short_enough_is_not_touched() -> None:
    parts = questions.reflect(situation()[0])
    assert build(parts, 8_192) == build(parts)


def answered(run: Execution, replies: Mapping[str, str]) -> list[PlanQuestion]:
    """What is asked if a reflection is due, as its model reads it."""
    thinking = asked(run, "reflect", questions.reflect(run.situation()))
    put: list[PlanQuestion] = []
    text: str | None = None
    while True:
        try:
            question = run.addressed(thinking.send(text))
        except StopIteration:
            return put
        put.append(question)
        run.calls += 1
        text = replies.get(question.kind)


def _shorter(ids: Iterable[int]) -> str:
    return json.dumps({"texts": [{"id": f"s{n}", "text": f"In short: {n}."} for n in ids]})


def test_what_is_much_too_long_is_put_into_fewer_words_once() -> None:
    run = big(8_192)
    first = answered(run, {"compact": _shorter(range(24)), "reflect": '{"decision": "continue"}'})
    assert [one.kind for one in first] == ["compact", "compact", "compact", "reflect"]
    assert {one.role for one in first} == {"fast"}
    assert all(estimate(one.text) <= room_in(8_192) * 1.05 for one in first)
    assert "In short: 3." in first[-1].text
    again = answered(run, {"reflect": '{"decision": "continue"}'})
    assert [one.kind for one in again] == ["reflect"]
    assert "In short: 3." in again[0].text


def test_without_an_answer_what_is_too_long_is_only_cut() -> None:
    run = big(8_192)
    put = answered(run, {})
    assert put[-1].kind == "reflect"
    assert "left out" in put[-1].text


def test_a_mode_that_counts_its_calls_has_nothing_put_into_fewer_words() -> None:
    mode = Mode()
    mode.max_calls = 20
    put = answered(big(8_192, mode), {})
    assert [one.kind for one in put] == ["reflect"]


def test_a_question_that_was_too_long_is_asked_once_more_smaller() -> None:
    machine = PlanMachine(
        read_plan("goal: Look", id="p"), asks=True, briefing=Briefing(words=["word " * 5_000])
    )
    machine.begin(0.0)
    (first,) = _asks(machine)
    machine.answered(1, None, "too long", 1.0, too_long=True)
    (again,) = _asks(machine)
    assert (again.thought, again.question.kind) == (1, "plan")
    assert estimate(again.question.text) <= estimate(first.question.text) * 0.6
    machine.answered(1, None, "too long", 2.0, too_long=True)
    assert not _asks(machine), "only once"


def _asks(machine: PlanMachine) -> list[AskModel]:
    return [command for command in machine.take() if isinstance(command, AskModel)]
