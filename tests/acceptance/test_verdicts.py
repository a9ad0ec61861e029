"""How a plan can end, through the real product: mode × what the judge says × what became of a step under a contract.

Each case runs twice: as a file (`iact plan run`, whose steps a person wrote) and as a goal (`iact run`, whose steps a planner
wrote): 210 ways. Further rows: judges that can't be asked, races, profiles, the contract of the whole plan, what a new
plan drops, bounds. Status, verdict, exit status, the page and the faces
must say the same, and none a success that was not one. What a person stops is in `test_stopped_plans`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import pytest
from a2a.types import TaskState
from acp.schema import Usage
from ag_ui.core import RunAgentInput, RunFinishedEvent

from iact.core.journal import read_journal
from iact.core.plan.verdict import STEPS_DONE, STEPS_DONE_IN_PLACES
from iact.core.records.dialogue import Reply
from iact.core.records.record import Record
from iact.core.stored.blobs import blob_reader
from iact.core.views.text import looks_like_action
from iact.faces.a2a.tasks import TaskWords
from iact.faces.acp.conversation import ended as acp_ended
from iact.faces.ag_ui.run import ended as ag_ui_ended
from iact.faces.inspect.log import log_of
from iact.faces.mcp.results import result_of
from iact.faces.otel.spans import spans
from iact.faces.responses.output import ending
from iact.web.records import _short_of
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Product
from tests.endpoint import Gate, HttpError, Request, Script
from tests.endpoint import Reply as Written

Judge = Literal["reached", "not reached", "more", "unreadable", "silent"]
Trouble = Literal["none", "fell", "replaced", "not kept", "left out"]
Reached = Literal["yes", "partly", "no", "unknown"]

JUDGED: Final = ("reflect", "nreflect", "orchestrator", "analyze")
JUDGES: Final[tuple[Judge, ...]] = ("reached", "not reached", "more", "unreadable", "silent")
TROUBLES: Final[tuple[Trouble, ...]] = ("none", "fell", "replaced", "not kept", "left out")

STEPS: Final = """\
goal: Say what is here
steps:
  - {id: a, agent: first, task: "say what is here"}
  - {id: b, agent: second, task: "say that it is kept", contract: {regex: "is kept"}}
"""

_VERDICTS: Final[Mapping[Judge, str]] = {
    "reached": '{"decision": "conclude", "reached": true, "reason": "All is there."}',
    "not reached": '{"decision": "conclude", "reached": false, "reason": "It is not there."}',
    "more": '{"decision": "replan", "reason": "More is needed."}',
    "unreadable": "Hm.",
    "silent": '{"decision": "continue", "reason": "Go on."}',
}
_ANALYSES: Final[Mapping[Judge, str]] = {
    "reached": '{"achieved": true, "confidence": 0.9, "reasoning": "All is there."}',
    "not reached": '{"achieved": false, "confidence": 0.9, "reasoning": "It is not there."}',
    "more": '{"achieved": false, "confidence": 0.1, "reasoning": "More is needed."}',
    "unreadable": "Hm.",
    "silent": "{}",
}
_PATCHES: Final[Mapping[Trouble, str]] = {
    "fell": '{"action": "give_up"}',
    "replaced": '{"steps": [{"id": "c", "agent": "third", "task": "say that it is kept"}]}',
    "not kept": '{"steps": [{"id": "c", "agent": "fourth", "task": "say that it is kept"}]}',
    "left out": '{"skip": true}',
}

EXITS: Final[Mapping[Reached, int]] = {"yes": 0, "partly": 3, "unknown": 3, "no": 4}


def judged(mode: str, judge: Judge) -> Reached:
    """What the judge's answer says, if nothing is missing."""
    if mode == "static":
        return "yes"
    if judge == "more" and mode == "analyze":
        return "no"
    said: dict[Judge, Reached] = {
        "reached": "yes", "not reached": "no", "more": "partly", "unreadable": "unknown", "silent": "unknown",
    }  # fmt: skip
    return said[judge]


def expected(mode: str, judge: Judge, trouble: Trouble) -> Reached:
    """The verdict that the rules lead to."""
    base = judged(mode, judge)
    if trouble in ("none", "replaced") or base == "no":
        return base
    return "partly"


class Model:
    """Answers every question of a case."""

    def __init__(self, mode: str, judge: Judge, trouble: Trouble) -> None:
        self._mode, self._judge, self._trouble = mode, judge, trouble
        self._patched = False

    def __call__(self, request: Request) -> str:
        if request.agent:
            return self._agent(request.agent)
        question = next(text for _, text in request.messages if text)
        if question.startswith("Plan the steps that reach"):
            return STEPS
        if question.startswith("Plan the steps that are still missing"):
            return "Nothing comes to mind."
        if question.startswith("A step failed"):
            first, self._patched = not self._patched, True
            return _PATCHES[self._trouble] if first else '{"action": "give_up"}'
        if question.startswith("Look at"):
            return '{"action": "continue"}'
        if question.startswith("Judge the evidence"):
            return _VERDICTS[self._judge]
        if question.startswith("Decide whether"):
            return _ANALYSES[self._judge]
        return "This is what is here."

    def _agent(self, path: str) -> str:
        name = path.rsplit("/", 1)[1]
        if name == "second":
            return "It is kept." if self._trouble == "none" else "It is gone."
        return {"third": "It is kept.", "fourth": "It is gone, too."}.get(name, "A table is here.")


def last_reply(journal: Path, agent: str) -> Record:
    """The last reply of an agent in a journal."""
    records = read_journal(journal).records
    return next(one for one in reversed(records) if one.kind == "reply" and one.agent == agent)


RUN: Final = RunAgentInput(
    thread_id="t", run_id="r", state={}, messages=[], tools=[], context=[], forwarded_props={}
)
USAGE: Final = Usage(total_tokens=0, input_tokens=0, output_tokens=0)


def agree(journal: Path, agent: str, reached: Reached) -> None:
    """Check that the page and the faces say the same of what an agent or a plan answered last."""
    reply = last_reply(journal, agent)
    content = reply.content
    assert isinstance(content, Reply)
    assert content.verdict is not None
    assert content.verdict.reached == reached
    done = reached == "yes"
    assert (content.plan == "concluded") == done
    assert (_short_of(content) == "") == done
    assert result_of("s", reply).is_error != done
    assert (ending(reply)[0] == "completed") == done
    status = TaskWords("s", reply).status(reply, reply, ())
    assert (status.state == TaskState.TASK_STATE_COMPLETED) == done
    assert isinstance(ag_ui_ended(RUN, reply, ()), RunFinishedEvent) == done
    told = acp_ended(reply, USAGE).field_meta
    assert told is not None
    assert told["iact/verdict"]["reached"] == reached

    records = read_journal(journal).records
    works = [one for one in spans(records) if one.attributes.get("iact.plan.reached")]
    assert works[-1].attributes["iact.plan.reached"] == reached
    if agent == "/":
        samples = log_of(records, blob_reader(journal.parent), looks_like_action).samples
        assert samples is not None
        assert samples[0].metadata["verdict"]["reached"] == reached


def ran(product: Product, *arguments: str) -> tuple[int, dict[str, object]]:
    done = product.run(*arguments)
    assert "Traceback" not in done.stderr, done
    return done.status, json.loads(done.stdout)


CASES: Final = [("static", "silent"), *((mode, judge) for mode in JUDGED for judge in JUDGES)]


@pytest.mark.parametrize(("mode", "judge"), CASES)
def test_every_way_to_end_is_told_as_what_it_is(stage: Stage, mode: str, judge: Judge) -> None:
    for trouble in TROUBLES:
        reached = expected(mode, judge, trouble)
        case = (mode, judge, trouble)
        file = stage.folder / "plan.yaml"
        file.write_text(STEPS)

        product = stage.product(stage.endpoint(Model(*case)), **NO_MODULES)
        status, report = ran(product, "plan", "run", str(file), "--mode", mode, "--json")
        verdict = report["verdict"]
        assert isinstance(verdict, dict)
        assert (verdict["reached"], status) == (reached, EXITS[reached]), (case, report)
        assert (report["status"] == "concluded") == (reached == "yes"), case
        assert report["achieved"] == (reached == "yes"), case
        assert bool(verdict["missing"]) == (trouble in ("fell", "not kept", "left out")), (case, verdict)
        assert ("b" in verdict["replaced"]) == (trouble in ("replaced", "not kept")), (case, verdict)
        if verdict["by"] == "steps" and reached == "yes":
            done = STEPS_DONE_IN_PLACES if trouble == "replaced" else STEPS_DONE
            assert verdict["because"] == done, (case, verdict)
        agree(Path(str(report["journal"])), "/plan", reached)

        product = stage.product(stage.endpoint(Model(*case)), **NO_MODULES)
        status, report = ran(product, "run", "--mode", mode, "--json", "Say what is here")
        told = report["verdict"]
        assert isinstance(told, dict)
        assert (told["reached"], status) == (reached, EXITS[reached]), (case, report)
        assert (report["status"] == "done") == (reached == "yes"), case
        agree(Path(str(report["journal"])), "/", reached)


@pytest.mark.parametrize("mode", JUDGED)
def test_a_judge_that_could_not_be_asked_leaves_it_unknown(stage: Stage, mode: str) -> None:
    """The planner uses up the only call."""
    product = stage.product(stage.endpoint(Model(mode, "reached", "none")), **NO_MODULES)
    (product.data / "iact.toml").write_text("[plans]\ncalls = 1\n")
    status, report = ran(product, "run", "--mode", mode, "--json", "Say what is here")
    verdict = report["verdict"]
    assert isinstance(verdict, dict)
    assert (verdict["reached"], verdict["by"], status) == ("unknown", "nobody", 3), report


# --- races, profiles, the whole ----------------------------------------------------------------------------------

RACE: Final = """\
goal: Say what is here
steps:
  - {id: a, agent: first, task: "say what is here", contract: {regex: "table"}}
  - {id: b, agent: second, task: "say that it is kept", contract: {regex: "is kept"}}
  - {id: c, agent: third, task: "say which", after: [a, b], join: any_of}
"""
WHOLE: Final = STEPS.replace(
    "steps:", 'contract: {judgement: "Does it name a piece of furniture?"}\nsteps:'
).split("  - {id: b")[0]


def checked(
    stage: Stage, script: Script, text: str, mode: str, reached: Reached, *, tools: bool = False
) -> dict[str, object]:
    """Run a plan's file, and check that everybody says how it ended; returns the verdict. `tools`: it calls modules."""
    file = stage.folder / "plan.yaml"
    file.write_text(text)
    product = stage.product(stage.endpoint(script), **({} if tools else NO_MODULES))
    status, report = ran(product, "plan", "run", str(file), "--mode", mode, "--json")
    verdict = report["verdict"]
    assert isinstance(verdict, dict)
    assert (verdict["reached"], status) == (reached, EXITS[reached]), report
    assert (report["status"] == "concluded") == (reached == "yes"), report
    agree(Path(str(report["journal"])), "/plan", reached)
    return verdict


@pytest.mark.parametrize("mode", ["static", *JUDGED])
def test_a_lost_race_is_not_missing_and_a_race_that_nobody_won_is(stage: Stage, mode: str) -> None:
    ends: tuple[tuple[str, Reached], ...] = (("none", "yes"), ("fell", "yes"), ("both fell", "no"))
    for trouble, reached in ends:
        model = Model(mode, "reached", "none" if trouble == "none" else "fell")

        def script(request: Request, model: Model = model, trouble: str = trouble) -> str:
            question = request.last
            if question.startswith("Judge the evidence") and "nothing is planned any more" not in question:
                return '{"decision": "continue"}'
            lost = trouble == "both fell" and request.agent.endswith("/first")
            return "Nothing is here." if lost else model(request)

        verdict = checked(stage, script, RACE, mode, reached)
        assert bool(verdict["missing"]) == (trouble == "both fell"), (trouble, verdict)


@pytest.mark.parametrize("mode", ["static", *JUDGED])
def test_what_the_whole_must_keep_is_judged_or_missing(stage: Stage, mode: str) -> None:
    ends: tuple[tuple[str, Reached], ...] = (("true", "yes"), ("false", "partly"), ("", "partly"))
    for answer, reached in ends:
        model = Model(mode, "reached", "none")

        def script(request: Request, model: Model = model, answer: str = answer) -> Written | str:
            if request.agent or not request.last.startswith("Does the result of this work keep"):
                return model(request)
            return f'{{"holds": {answer}}}' if answer else Written(error=HttpError(400))

        verdict = checked(stage, script, WHOLE, mode, reached)
        missing = verdict["missing"]
        assert isinstance(missing, dict)
        why = {"true": None, "false": "The result was judged not to hold:", "": "Not checked:"}[answer]
        found = missing.get("the whole plan")
        assert found is None if why is None else str(found).startswith(why), verdict


CALLS: Final = """\
goal: Say what is here
steps:
  - {id: a, call: shell.run, params: {command: "echo A table is here."}}
  - {id: b, call: shell.run, params: {command: "echo It is kept."}, contract: {regex: "is kept"}}
"""
REASONS: Final[tuple[tuple[str, Reached], ...]] = (
    ("reached: yes, all of it is there\n\nA table [a].", "yes"),
    ("reached: partly, the rest is not there\n\nA table [a].", "partly"),
    ("reached: no, it is not there\n\nNothing [a].", "no"),
    ("A table is here [a].", "unknown"),
)


@pytest.mark.parametrize("fell", [False, True])
def test_a_profile_ends_as_its_reasoner_says_and_its_contracts_allow(stage: Stage, fell: bool) -> None:
    for answer, said in REASONS:

        def script(request: Request, answer: str = answer) -> str:
            question = request.last
            if question.startswith("Say of a written workflow"):
                return '{"confidence": 0.9}'
            return answer if question.startswith("Answer the task") else "Nothing comes to mind."

        reached: Reached = "partly" if fell and said != "no" else said
        text = CALLS.replace("It is kept", "It is gone") if fell else CALLS
        verdict = checked(stage, script, text, "profile", reached, tools=True)
        assert bool(verdict["missing"]) == fell, verdict


# --- steps that a model does without, bounds ---------------------------------------------------------------------

CHAIN: Final = """\
goal: Say what is here
steps:
  - {id: a, agent: first, task: "say what is here"}
  - {id: b, agent: second, task: "say that it is kept", after: [a]}
"""


def planned(stage: Stage, script: Script, mode: str, reached: Reached) -> dict[str, object]:
    """Have a planner write the steps for a goal, and check that everybody says how it ended; returns the verdict."""
    product = stage.product(stage.endpoint(script), **NO_MODULES)
    status, report = ran(product, "run", "--mode", mode, "--json", "Say what is here")
    verdict = report["verdict"]
    assert isinstance(verdict, dict)
    assert (verdict["reached"], status) == (reached, EXITS[reached]), report
    agree(Path(str(report["journal"])), "/", reached)
    return verdict


REPLANS: Final[Mapping[str, tuple[Reached, Reached]]] = {
    'steps:\n  - {id: c, agent: third, task: "look again"}': ("yes", "yes"),
    "nothing to do: All is there.": ("partly", "partly"),
}
"""What a new plan says, and how a plan ends whose step it drops: one that a person wrote, one that a planner did. A judge that
wanted more and was not given it: at most partly, whoever wrote the step."""


@pytest.mark.parametrize("answer", REPLANS)
def test_what_a_new_plan_drops_is_replaced_or_missing(stage: Stage, answer: str) -> None:
    def script(request: Request) -> str:
        question = next(said for _, said in request.messages if said)
        if request.agent:
            return "A table is here."
        if question.startswith("Plan the steps that reach"):
            return CHAIN
        if question.startswith("Plan the steps that are still missing"):
            return answer
        if question.startswith("Judge the evidence"):
            return _VERDICTS["reached" if "## c:" in question else "more"]
        return "This is what is here."

    by_person, by_planner = REPLANS[answer]
    verdict = checked(stage, script, CHAIN, "reflect", by_person)
    if by_person == "yes":
        assert verdict["replaced"] == {"b": ["c"]}
        assert verdict["missing"] == {}
    else:
        assert verdict["missing"] == {"b": "It was left out: All is there."}
    planned(stage, script, "reflect", by_planner)


@pytest.mark.parametrize("mode", ["static", *JUDGED])
def test_a_plan_that_a_bound_ended_was_stopped(stage: Stage, mode: str) -> None:
    """The bound on its time, while an agent's model is silent."""
    gate = Gate()
    model = Model(mode, "reached", "none")

    def script(request: Request) -> Written | str:
        if request.agent.endswith("/second"):
            return Written("It is kept.", gates={0: gate})
        return model(request)

    product = stage.product(stage.endpoint(script), **NO_MODULES)
    (product.data / "iact.toml").write_text("[plans]\nseconds = 2\n")
    file = stage.folder / "plan.yaml"
    file.write_text(STEPS)
    status, report = ran(product, "plan", "run", str(file), "--mode", mode, "--json")
    gate.release()

    verdict = report["verdict"]
    assert isinstance(verdict, dict)
    assert (status, verdict["by"]) == (5, "bound"), report
    assert verdict["reached"] in ("partly", "no")
    assert report["status"] in ("partial", "failed")
    agree(Path(str(report["journal"])), "/plan", verdict["reached"])
