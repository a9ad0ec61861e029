"""Plans whose steps run at once, through the command line and real containers.

The steps themselves show that they ran in parallel: each waits for a signal from all others, so none could end if one
of them had to wait for the end of another.
"""

from __future__ import annotations

import json
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from iact.core.journal import read_journal
from iact.core.records.calls import Call, Result
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product
from tests.acceptance.test_scenes import served, speak
from tests.endpoint import Gate, Reply, Request

Json = dict[str, object]

_LONG = 300.0
"""Seconds of patience where a container must start first."""

TOGETHER = "touch {name}; until [ $(ls | grep -c '^s[0-9]') = {count} ]; do sleep 0.02; done; echo met"
"""A script that ends when so many have begun."""


class Planned:
    """A plan that was run from a file."""

    def __init__(self, product: Product, folder: Path, steps: list[Json], *options: str) -> None:
        file = folder / "plan.json"
        file.write_text(json.dumps({"goal": "Do it", "steps": steps}))
        self.product = product
        self.ran = product.run("plan", "run", str(file), "--json", *options)
        self.report = json.loads(self.ran.stdout)
        self.nodes = self.report["nodes"]
        self.journal = Path(self.report["journal"])
        self.workspace = self.journal.parent / "workspace"
        verified = product.run("replay", str(self.journal), "--verify", "--json")
        assert json.loads(verified.stdout)["verified"] is True, verified

    @property
    def states(self) -> dict[str, str]:
        return {one: node["state"] for one, node in self.nodes.items()}

    def output(self, node: str) -> str:
        return str(self.nodes[node]["output"])

    @property
    def records(self) -> list[object]:
        return [record.content for record in read_journal(self.journal).records]


def unpatched(stage: Stage) -> Product:
    """A product that asks no model about a step that failed, or for a report: these tests are about the steps."""
    product = stage.product(stage.endpoint({}))
    (product.data / "iact.toml").write_text(
        "[plans]\npatches = 0\nreplans = 0\nreport = false\n", encoding="utf-8"
    )
    return product


def shell(identity: str, command: str, **others: object) -> Json:
    return {"id": identity, "call": "shell.run", "params": {"command": command}, **others}


def test_steps_that_need_nothing_of_each_other_run_at_once(stage: Stage) -> None:
    steps = [shell(f"s{n}", TOGETHER.format(name=f"s{n}", count=16)) for n in range(16)]
    ran = Planned(stage.product(stage.endpoint({})), stage.folder, steps)
    assert set(ran.states.values()) == {"executed"}
    assert {ran.output(f"s{n}") for n in range(16)} == {"met\n"}


def test_each_step_begins_where_its_module_is_as_at_first(stage: Stage) -> None:
    """What one step did to its shell is not found by another, also not by one that comes after it."""
    steps = [
        shell("a", "mkdir deep; cd deep; export WHO=a"),
        shell("b", 'pwd; echo "[$WHO]"', after=["a"]),
        shell("c", "echo hello > said; cat said", after=["b"]),
    ]
    ran = Planned(stage.product(stage.endpoint({})), stage.folder, steps)
    assert ran.output("b") == "/workspace\n[]\n"
    assert (ran.workspace / "said").read_text() == "hello\n", "all of them share the files"


def test_a_step_goes_on_with_what_the_step_before_it_left_running(stage: Stage) -> None:
    """`shell.output` is there only while a job runs: each finds the job of the step that it stands behind."""
    steps: list[Json] = []
    for name in ("one", "two"):
        command = {"command": f"echo {name}", "background": True}
        steps.append({"id": f"begin_{name}", "call": "shell.run", "params": command})
        waits = {"job": 1, "wait": 60}
        end: Json = {"id": f"end_{name}", "call": "shell.output", "params": waits, "after": [f"begin_{name}"]}
        steps.append(end)
    ran = Planned(stage.product(stage.endpoint({})), stage.folder, steps)
    assert ran.output("end_one").startswith("one\n")
    assert ran.output("end_two").startswith("two\n")


def test_a_time_limit_is_the_steps_own(stage: Stage) -> None:
    """It begins when the module has the call: a step that is quick is not late because its container was not there."""
    steps = [
        shell("quick", "echo quick", timeout=3),
        shell("slow", "echo began; sleep 600", timeout=2, retries=0),
    ]
    ran = Planned(unpatched(stage), stage.folder, steps)
    assert ran.states == {"quick": "executed", "slow": "failed"}
    assert "It was stopped after 2 s, its time limit." in ran.nodes["slow"]["error"]
    assert "began" in ran.nodes["slow"]["error"]


def test_a_version_names_all_calls_that_ran_since_the_last(stage: Stage) -> None:
    steps = [
        shell("s1", TOGETHER.format(name="s1", count=2)),
        shell("s2", TOGETHER.format(name="s2", count=2)),
        shell("alone", "echo alone > alone", after=["s1", "s2"]),
    ]
    product = stage.product(stage.endpoint({}))
    ran = Planned(product, stage.folder, steps)
    calls = [record.n for record in read_journal(ran.journal).records if isinstance(record.content, Call)]
    results = [one for one in ran.records if isinstance(one, Result)]
    both, alone = set(calls[:2]), calls[2]
    first = next(one for one in results if one.version)
    assert {first.call, *first.beside} == both
    assert results[-1].call == alone
    assert results[-1].beside == ()
    session = ran.journal.parent.name
    listed = json.loads(product.run("workspace", "log", "--session", session, "--json").stdout)
    assert set(listed[0]["calls"]) == both
    assert listed[-1]["calls"] == [alone]
    told = product.run("workspace", "log", "--session", session).stdout.splitlines()
    assert f"shell.run (calls {calls[0]}, {calls[1]})" in told[0]


# --- what the gate knows of a call is what the plan goes by ------------------------------------------------------


def test_steps_that_write_one_file_run_one_after_the_other(stage: Stage) -> None:
    """Of two scripts that append to one file, and a third that writes another, only the third overlaps."""
    append = "for i in 1 2 3 4 5 6 7 8; do echo {name} >> log; sleep 0.05; done"
    steps: list[Json] = [
        shell("s1", append.format(name="one")),
        shell("s2", append.format(name="two").replace(">> log", ">> ./log")),
        {"id": "s3", "call": "files.write", "params": {"path": "log", "content": "over\n"}, "after": ["s4"]},
        shell("s4", "until [ -s log ]; do sleep 0.02; done; echo other > other"),
    ]
    ran = Planned(stage.product(stage.endpoint({})), stage.folder, steps)
    assert set(ran.states.values()) == {"executed"}
    ends = {one: ran.nodes[one]["ended"] for one in ("s1", "s2", "s3")}
    starts = {one: ran.nodes[one]["started"] for one in ("s1", "s2", "s3")}
    turns = sorted(ends, key=lambda one: starts[one])
    for before, behind in pairwise(turns):
        assert ends[before] <= starts[behind], "one after the other"
    assert ran.nodes["s4"]["started"] < min(ends.values()), "what writes another file does not wait"
    lines = (ran.workspace / "log").read_text().split()
    assert len([one for one, _ in groupby(lines)]) == len(set(lines)), (
        "no line of one is among those of another"
    )


def test_what_only_looks_is_repeated_by_itself_and_what_writes_is_not(stage: Stage) -> None:
    """Both are too slow; `shell.run` may write, but the first of these scripts can't."""
    steps = [
        shell("looks", "sleep 600", timeout=1),
        shell("writes", "echo x >> tries; sleep 600", timeout=1),
        shell("same", "echo x >> same; sleep 600", timeout=1, idempotent=True),
    ]
    ran = Planned(unpatched(stage), stage.folder, steps)
    assert {one: node["attempts"] for one, node in ran.nodes.items()} == {"looks": 3, "writes": 1, "same": 3}
    assert (ran.workspace / "tries").read_text() == "x\n"
    assert (ran.workspace / "same").read_text() == "x\n" * 3


def test_a_steps_own_retries_are_for_any_failure(stage: Stage) -> None:
    """A script that fails, and one whose output does not keep the step's contract, until it does."""
    steps = [
        shell("fails", "echo x >> fails; [ $(wc -l < fails) = 3 ]", retries=2),
        shell("wrong", "echo x >> wrong; wc -l < wrong", retries=1, contract={"regex": "2"}),
        shell("once", "echo x >> once; exit 1"),
    ]
    ran = Planned(unpatched(stage), stage.folder, steps)
    assert ran.states == {"fails": "executed", "wrong": "executed", "once": "failed"}
    assert {one: node["attempts"] for one, node in ran.nodes.items()} == {"fails": 3, "wrong": 2, "once": 1}


def test_readers_race(stage: Stage) -> None:
    """The slow one of two that only look is stopped as soon as the other has won."""
    steps: list[Json] = [
        shell("slow", "sleep 600; date"),
        shell("quick", "echo quick"),
        {
            "id": "first", "call": "shell.run", "after": ["slow", "quick"], "join": "any_of",
            "refs": {"command": {"step": "*", "template": "echo {}"}},
        },
    ]  # fmt: skip
    ran = Planned(stage.product(stage.endpoint({})), stage.folder, steps)
    assert ran.states == {"slow": "skipped", "quick": "executed", "first": "executed"}
    assert "quick" in ran.output("first")


@pytest.mark.parametrize("valid", [True, False])
def test_only_what_looks_starts_before_its_plan_is_there(stage: Stage, valid: bool) -> None:
    """A planner is held in the middle of its plan: a step that looks has run by then, one that writes has not."""
    looks = shell("looks", "echo looked")
    writes = shell("writes", "echo wrote > wrote")
    rest = shell("rest", "echo rest > rest", after=["writes"] if valid else ["rest"])
    lines = [f"  - {json.dumps(one)}\n" for one in (looks, writes, rest)]
    written = "steps:\n" + "".join(lines)
    gate = Gate()

    def answer(request: Request) -> Reply | str:
        if request.agent:
            return "```PLAN p\ngoal: Look, and write\n```" if request.turn == 0 else "Done."
        if "Look, and write" in request.last and not answered_once:
            answered_once.append(True)
            return Reply(written, gates={len("steps:\n" + lines[0] + lines[1]): gate})
        return "I can't."

    answered_once: list[bool] = []
    product = stage.product(stage.endpoint(answer))
    with served(product) as server:
        spoken = speak(product, server, "Go.")
        assert gate.wait(_LONG)
        spoken.wait_for("node", "/p", node="looks", to="executed")
        assert not (spoken.workspace / "wrote").exists()
        fired = [one.text("node") for one in spoken.records() if one.kind == "fire"]
        assert fired == ["looks"]
        gate.release()
        spoken.wait_for("reply", "/")
    assert (spoken.workspace / "wrote").exists() is valid
    assert (spoken.workspace / "rest").exists() is valid
    ran = product.run("replay", str(spoken.folder), "--verify")
    assert ran.status == 0, ran
