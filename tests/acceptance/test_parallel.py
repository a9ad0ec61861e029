"""Plans whose steps run at once, through the command line and real containers.

That steps ran at once is shown by what they did: each waits for a sign of all others, so none could end if one of
them had to wait for another's end.
"""

from __future__ import annotations

import json
from pathlib import Path

from core.journal import read_journal
from core.records.calls import Call, Result
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product

Json = dict[str, object]

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
    ran = Planned(stage.product(stage.endpoint({})), stage.folder, steps)
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
