"""Ways of working, chosen through the command line and the websocket, with real modules."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from iact.core.journal import read_journal
from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.product import acknowledged
from tests.acceptance.test_plans import replayed
from tests.command import Command
from tests.endpoint import Request

STEPS = 'steps:\n  - {id: one, call: shell.run, params: {command: "echo one"}}'
STEPS += '\n  - {id: two, call: shell.run, params: {command: "echo two"}}'
ACHIEVED = (
    '{"achieved": true, "confidence": 0.9, "reasoning": "Both are there.", "final_answer": "One and two."}'
)
PROFILE = json.dumps(
    {
        "steps": [
            {"id": "one", "call": "shell.run", "params": {"command": "echo one"}},
            {"id": "two", "call": "shell.run", "params": {"command": "echo two"}},
        ],
        "confidence": 0.9,
        "assumptions": ["echo is there"],
        "branches": [{"step": "two", "when": "one contains 'one'", "set": {"command": "echo branched"}}],
    }
)


def like(steps: int, **said: bool) -> str:
    plain = {"foreseeable": True, "depends": False, "repeat": False, "branches": False}
    return json.dumps({"steps": steps, **plain, **said})


class Model:
    """Answers questions by what they begin with, and agents with one sentence; keeps what it was asked."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, request: Request) -> str:
        if request.agent:
            self.asked.append("agent")
            return "I looked: it was Ada."
        start = next((one for one in self.answers if one in request.last), "")
        assert start, request.last
        self.asked.append(start)
        return self.answers[start]


ALL = {
    "Say what a request is like": like(4, repeat=True),
    "Plan the steps": STEPS,
    "Decide whether a goal was reached": ACHIEVED,
    "Answer from the results": "One and two.",
}


def test_run_in_a_plan_mode_is_a_plan_whose_report_is_the_reply(stage: Stage) -> None:
    model = Model(ALL)
    product = stage.product(stage.endpoint(model))
    ran = product.run("run", "--mode", "analyze", "--json", "Find one and two.")
    assert ran.status == 0, ran
    told = json.loads(ran.stdout)
    assert (told["mode"], told["status"]) == ("analyze", "done")
    assert "One and two." in told["reply"]
    assert "agent" not in model.asked
    assert replayed(product, ran.answer().journal)["plans"]
    again = product.run("run", "--session", told["session"], "--json", "And who?")
    assert json.loads(again.stdout)["mode"] == "dialogue"
    seen = product.run("context", str(ran.answer().journal), "--agent", "/").stdout
    assert (
        seen.index("Find one and two.")
        < seen.index("One and two.", seen.index("plan"))
        < seen.index("And who?")
    )


@pytest.mark.parametrize(
    ("said", "mode", "why"),
    [
        (like(4, repeat=True), "analyze", "judged"),
        (like(4, depends=True), "dialogue", "sees each result before it goes on"),
        ("I would rather not say.", "dialogue", "Nothing in its form"),
    ],
)
def test_auto_chooses_and_says_why(stage: Stage, said: str, mode: str, why: str) -> None:
    product = stage.product(
        stage.endpoint(Model({**ALL, "Say what a request is like": said, "can't be used": said}))
    )
    ran = product.run("run", "--mode", "auto", "--json", "In which town was the director born?")
    told = json.loads(ran.stdout)
    assert (told["mode"], ran.status) == (mode, 0), ran
    assert why in told["why"]
    assert why in ran.stderr
    assert ("Ada" in told["reply"]) == (mode == "dialogue")
    replayed(product, ran.answer().journal)


def test_auto_learns_from_this_user_s_journals(stage: Stage) -> None:
    """A way that failed in three sessions is not chosen in the fourth, also if what was counted is lost."""
    missed = '{"achieved": false, "confidence": 0.95, "reasoning": "It is not there."}'
    model = Model({**ALL, "Decide whether a goal was reached": missed})
    product = stage.product(stage.endpoint(model))

    def ask() -> tuple[str, str, int, Path]:
        ran = product.run("run", "--mode", "auto", "--json", "Make it good enough.")
        told = json.loads(ran.stdout)
        return told["mode"], told["why"], ran.status, Path(told["journal"])

    for _ in range(3):
        mode, why, status, _ = ask()
        assert (mode, status) == ("analyze", 4)
        assert "judged" in why
    (product.data / "experience.json").unlink()

    mode, why, status, journal = ask()

    assert (mode, status) == ("dialogue", 0)
    assert why == (
        "In 100% of your sessions, plans for requests like this did not reach their goal: a dialogue sees each result."
    )
    replayed(product, journal)
    chosen = next(one for one in read_journal(journal).records if one.kind == "choose")
    assert chosen.fields["failures"] == {"repeat": 1.0}


def test_a_goal_is_planned_and_run(stage: Stage) -> None:
    model = Model(ALL)
    product = stage.product(stage.endpoint(model))
    options = (
        "--goal",
        "Find one and two",
        "--mode",
        "analyze",
        "--rounds",
        "1",
        "--concurrency",
        "1",
        "--model",
        "smart",
    )
    ran = product.run("plan", "run", *options, "--json")
    assert ran.status == 0, ran
    told = json.loads(ran.stdout)
    assert (told["status"], told["achieved"], told["confidence"]) == ("concluded", True, 0.9)
    one, two = told["nodes"]["one"], told["nodes"]["two"]
    assert two["started"] >= one["ended"] or one["started"] >= two["ended"]
    assert model.asked[0] == "Plan the steps"


@pytest.mark.parametrize("written", [False, True])
def test_a_profile_of_a_goal_and_of_steps_that_somebody_wrote_is_there_for_programs(
    stage: Stage, written: bool
) -> None:
    answers = {
        "Answer the task": "reached: yes, both are there\n\nIt is one [one] and two [two].",
        "where it may break": PROFILE,
    }
    model = Model(answers)
    product = stage.product(stage.endpoint(model))
    file = stage.folder / "plan.yaml"
    file.write_text(f"goal: Find one and two\n{STEPS}\n")
    what = (str(file),) if written else ("--goal", "Find one and two")
    ran = product.run("plan", "run", *what, "--mode", "profile", "--json")
    assert ran.status == 0, ran
    told = json.loads(ran.stdout)
    assert model.asked == ["where it may break", "Answer the task"]
    found = told["profile"]
    assert {"risk", "components", "route", "rules", "trust", "verification", "flags"} <= found.keys()
    assert set(found["components"]) == {"schema", "planning", "method", "scale", "history"}
    assert 0 < found["trust"] <= 1
    assert found["unsupported"] == []
    assert told["result"] == "It is one and two."
    assert told["nodes"]["one"]["output"].strip() == "one"
    replayed(product, _journal(told))


def _journal(told: dict[str, object]) -> Path:
    return Path(str(told["journal"]))


def test_the_websocket_says_in_a_mode_and_foresees_what_auto_would_choose(stage: Stage) -> None:
    product = stage.product(stage.endpoint(Model(ALL)))
    with product.serving() as server, server.connect() as socket:
        acknowledged(socket, {"type": "hello", "session": None, "since": 0})
        found = acknowledged(socket, {"type": "foresee", "text": "Tune it until it is good"})
        assert found["mode"] == "analyze"
        said = acknowledged(socket, {"type": "say", "text": "Find one and two.", "mode": "analyze"})
        while True:
            told = json.loads(socket.recv(timeout=120))
            if told.get("type") == "record" and told.get("kind") == "reply" and told.get("agent") == "/":
                break
        assert told["n"] > said["n"]
        assert "One and two." in told["body"]
        server.process.terminate()
        assert server.process.wait(300) == 0


def test_each_part_of_a_plan_is_asked_at_the_endpoint_of_its_role(stage: Stage) -> None:
    """Roles with endpoints and keys of their own; `[plans]` says who plans, judges and reports; `[rates]` holds steps back."""
    smart, planner = Model({}), Model({"Plan the steps": STEPS})
    judge = Model(
        {key: ALL[key] for key in ALL if key not in ("Plan the steps", "Say what a request is like")}
    )
    there = {name: stage.endpoint(model) for name, model in (("planner", planner), ("judge", judge))}
    product = stage.product(stage.endpoint(smart), PLANNER_KEY="theirs")
    (product.data / "iact.toml").write_text(
        f"""
[models.planner]
base_url = "{there["planner"].url}"
key = "PLANNER_KEY"
model = "p"

[models.judge]
base_url = "{there["judge"].url}"
model = "j"

[plans]
planner = "planner"
judge = "judge"
reporter = "judge"

[rates.shell]
per_second = 0.5
"""
    )
    ran = product.run("plan", "run", "--goal", "Find one and two", "--mode", "analyze", "--json")
    assert ran.status == 0, ran
    told = json.loads(ran.stdout)
    assert (smart.asked, planner.asked) == ([], ["Plan the steps"])
    assert judge.asked[0] == "Decide whether a goal was reached"
    asked = [one for one in replayed_records(told) if one.kind == "ask"]
    assert {(one.text("role"), one.text("model")) for one in asked} == {("planner", "p"), ("judge", "j")}
    started = sorted(node["started"] for name, node in told["nodes"].items() if name in ("one", "two"))
    assert started[1] - started[0] >= 1.9
    replayed(product, _journal(told))


def replayed_records(told: dict[str, object]) -> list[Record]:
    return list(read_journal(_journal(told).parent).records)


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_plan_is_looked_at_on_the_terminal_before_it_begins(stage: Stage, answer: str) -> None:
    product = stage.product(stage.endpoint(Model(ALL)))
    theirs, ours = os.openpty()
    with Command(
        ["run", "--mode", "static", "--plan-first", "Say one and two."],
        env=product.environment,
        cwd=product.data.parent,
        stdin=ours,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        shown = ""
        while "Start this plan?" not in shown:
            piece = process.stderr.read(1)
            assert piece, shown
            shown += piece
        assert "command: echo one" in shown
        os.write(theirs, f"{answer}\n".encode())
        out, _ = process.communicate(timeout=120)
    os.close(theirs)
    os.close(ours)
    (journal,) = product.journals()
    ran = [one for one in read_journal(journal.parent).records if one.kind == "result"]
    assert len(ran) == (2 if answer == "y" else 0)
    assert ("two" in out, process.returncode) == ((True, 0) if answer == "y" else (False, 5))


def test_without_a_terminal_nobody_can_start_a_plan(stage: Stage) -> None:
    ran = stage.product(None).run("run", "--mode", "static", "--plan-first", "Say one and two.")
    assert ran.status == 2
    assert "--plan-first needs a terminal" in ran.stderr
