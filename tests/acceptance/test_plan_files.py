"""`iact plan check|graph|explain|run` on files that can't be plans, and the recovery of a file's steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES
from tests.acceptance.test_plans import shell
from tests.endpoint import Request

_COMMANDS: Final = ("check", "graph", "explain", "run")
_HUGE: Final = 100 << 20
"""The size of the largest file, in bytes. It has holes, so it takes no space."""


def steps(*lines: str) -> str:
    return "\n".join(["goal: Look around", "steps:", *(f"  - {line}" for line in lines)]) + "\n"


CHAIN: Final = [shell("s0", "true"), *(shell(f"s{n}", "true", f"s{n - 1}") for n in range(1, 5000))]

UNFIT: Final = {
    "circle": (
        steps(shell("a", "true", "c"), shell("b", "true", "a"), shell("c", "true", "b")),
        "The steps a → b → c → a wait for each other; break the circle.",
    ),
    "itself": (
        steps(shell("a", "true", "a")),
        "Step 'a' waits for itself; take 'a' out of its `after` and `refs`.",
    ),
    "alias": ("goal: &goal [*goal]\n", "the plan uses a YAML alias (*name)"),
    "300 steps": (steps(*CHAIN[:300]), "The plan has 300 steps, at most 256 are allowed; merge some.\n"),
    "5000 steps": (steps(*CHAIN), "The plan has 5000 steps, at most 256 are allowed; merge some.\n"),
    "deep": (f"goal: x\nsteps: {'[' * 300_000}", "the plan is nested more than 100 levels deep"),
}


@pytest.mark.parametrize("command", _COMMANDS)
def test_a_file_that_can_not_run_costs_one_sentence(stage: Stage, command: str) -> None:
    product = stage.product(**NO_MODULES)
    for name, (text, sentence) in UNFIT.items():
        file = stage.folder / "plan.yaml"
        file.write_text(text, encoding="utf-8")

        ran = product.run("plan", command, str(file))

        is_read = text.startswith("goal: Look")
        assert ran.status == (1 if command == "check" and is_read else 2), (name, ran)
        assert sentence in ran.stdout + ran.stderr, (name, ran)
        assert len((ran.stdout + ran.stderr).splitlines()) == 1, (name, ran)

    huge = stage.folder / "huge.yaml"
    with huge.open("wb") as opened:
        opened.truncate(_HUGE)
    refused = product.run("plan", command, str(huge))
    assert refused.status == 2
    assert "the plan has more than 1048576 characters" in refused.sentence
    assert not (product.data / "sessions").exists(), "no session was begun for it"


def test_steps_of_a_file_are_replaced_where_a_model_is_there(stage: Stage) -> None:
    def answer(request: Request) -> str:
        assert "A step failed" in request.last
        assert "shell.run" in request.last
        fixed = json.dumps([{"id": "fixed", "call": "shell.run", "params": {"command": "echo fixed"}}])
        return (
            f'{{"failure": "no such host", "cause": "a typing error", "action": "replace", "steps": {fixed}}}'
        )

    file = stage.folder / "plan.yaml"
    file.write_text(steps(shell("bad", "exit 4")))
    product = stage.product(stage.endpoint(answer))

    report = json.loads(product.run("plan", "run", str(file), "--json").stdout)

    became = {one: node["state"] for one, node in report["nodes"].items() if node["kind"] == "tool"}
    assert became == {"bad": "failed", "fixed": "executed"}
    assert report["result"] == "fixed\n"


def test_without_a_model_it_says_that_steps_are_not_replaced(stage: Stage) -> None:
    file = stage.folder / "plan.yaml"
    file.write_text(steps(shell("bad", "exit 4"), shell("good", "echo good")))

    ran = stage.product().run("plan", "run", str(file))

    notes = [line for line in ran.stderr.splitlines() if "no model is configured" in line]
    assert len(notes) == 1, ran
    assert "is not replaced" in notes[0]
    assert Path(ran.stderr.rsplit("journal: ", 1)[1].strip()).is_file()
