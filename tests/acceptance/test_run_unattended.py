"""`iact run` in the running product: without a person nothing waits; with one, another command can answer; a signal
ends it cleanly; a bound is named.
"""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess

import pytest

from iact.core.journal import read_journal
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES
from tests.acceptance.test_clearance import MAKE, PATIENCE, asking, clearances, comes, made, records
from tests.command import Command


def test_without_a_person_the_policy_decides_at_once_and_the_report_names_it(stage: Stage) -> None:
    product = asking(stage.product(stage.endpoint({"/": [MAKE, "I was not let."]})))
    ran = product.run("run", "--json", "Make it.")
    assert ran.status == 0
    (decided,) = json.loads(ran.stdout)["undecided"]
    (asked,) = clearances(records(product), "ask")
    assert decided["why"]
    assert {**decided, "why": ""} == {
        "kind": "clearance", "function": "shell.run", "why": "", "record": asked.n, "agent": "/", "allowed": False,
    }  # fmt: skip
    assert "/: no one could be asked whether shell.run may run" in ran.stderr
    assert "waits for your approval" not in ran.stderr
    assert not made(product)


def test_a_terminal_is_not_asked_if_it_wants_no_questions(stage: Stage) -> None:
    product = asking(stage.product(stage.endpoint({"/": [MAKE, "I was not let."]})))
    master, slave = pty.openpty()
    try:
        with Command(
            ["run", "--no-questions", "Make it."],
            env=product.environment, cwd=product.data.parent, stdin=slave, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            stdout, stderr = process.communicate(timeout=PATIENCE)
    finally:
        os.close(master)
        os.close(slave)
    assert (process.returncode, stdout) == (0, "I was not let.\n")
    assert "[N]o: " not in stderr
    assert not made(product)


def test_another_command_answers_a_running_run(stage: Stage) -> None:
    product = asking(stage.product(stage.endpoint({"/": [MAKE, "Made."]})))
    master, slave = pty.openpty()
    try:
        with Command(
            ["run", "Make it."],
            env=product.environment, cwd=product.data.parent, stdin=slave, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            comes(lambda: bool(list(product.data.glob("run.*.json"))), "the address of the run")
            (journal,) = product.journals()
            comes(lambda: bool(clearances(records(product), "ask")), "the question")
            (asked,) = clearances(records(product), "ask")
            cleared = product.agree("clear", "--session", journal.parent.name, str(asked.n), "--allow")
            assert cleared.status == 0, cleared
            stdout, stderr = process.communicate(timeout=PATIENCE)
    finally:
        os.close(master)
        os.close(slave)
    assert (process.returncode, stdout) == (0, "Made.\n")
    assert "(settled)" in stderr
    assert made(product)
    assert not list(product.data.glob("run.*.json"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_with_its_containers_and_its_journal(
    stage: Stage, number: signal.Signals
) -> None:
    endpoint = stage.endpoint({"/": ["```shell.run\ntouch made && sleep 600\n```"]})
    product = stage.product(endpoint)
    with product.started("run", "Make it.") as process:
        comes(lambda: bool(product.journals()) and made(product), "the command")
        assert product.containers()
        process.send_signal(number)
        assert process.wait(PATIENCE) == 128 + number
    assert not product.containers()
    assert records(product)[-1].kind == "close"


def test_a_server_ends_cleanly_with_its_terminal(stage: Stage) -> None:
    product = stage.product(**NO_MODULES)
    with product.serving() as server:
        server.process.send_signal(signal.SIGHUP)
        assert server.process.wait(PATIENCE) == 0
    assert not (product.data / "server.json").exists()


def test_the_bound_that_ended_a_dialogue_is_named(stage: Stage) -> None:
    """The last message is only an action, which was not run; it is not all that the person is told."""
    shown = "```SHOW nothing\n```"
    product = stage.product(stage.endpoint({"/": [shown, shown]}, by_turn=True), **NO_MODULES)
    (product.data / "iact.toml").write_text("[bounds]\nturns = 1\n", encoding="utf-8")
    ran = product.run("run", "--json", "Show it.")
    report = json.loads(ran.stdout)
    assert (ran.status, report["status"], report["bound"]) == (5, "bound", "turns")

    (journal,) = product.journals()
    session = read_journal(journal).records[0].text("session")
    ran = product.run("run", "--session", session, "Show it again.")
    assert ran.status == 5
    assert ran.sentence == (
        "The limit of turns for one task was reached before the task was done. "
        f"To go on: iact run --session {session} TASK."
    )
    assert ran.stdout == f"{shown}\n"
