"""A plain "stop" while a plan runs ends what runs below it, in real containers, in every mode.

Three steps are at work: a command that sleeps, an agent in the middle of a model's reply, and an agent that has started
a job in the background and thinks on. The seconds from the message to the end of all of them are printed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import pytest
from a2a.types import TaskState
from ag_ui.core import RunFinishedCancelledOutcome, RunFinishedEvent

from iact.core.records.dialogue import Reply as ReplyRecord
from iact.core.records.record import Record
from iact.faces.a2a.tasks import TaskWords
from iact.faces.acp.conversation import ended as acp_ended
from iact.faces.ag_ui.run import ended as ag_ui_ended
from iact.faces.mcp.results import result_of
from iact.faces.responses.output import ending
from iact.web.records import _short_of
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product, Server, acknowledged, until
from tests.acceptance.test_control import sleepers
from tests.acceptance.test_scenes import Spoken, served
from tests.acceptance.test_verdicts import RUN, USAGE
from tests.endpoint import Gate, Reply, Request

MODES: Final = ("static", "reflect", "nreflect", "orchestrator", "analyze", "profile")
STEPS: Final[list[Mapping[str, object]]] = [
    {"id": "waits", "call": "shell.run", "params": {"command": "touch waits; sleep 4326"}},
    {"id": "writes", "agent": "writer", "task": "Write about it."},
    {"id": "works", "agent": "worker", "task": "Work on it."},
    {"id": "after", "call": "shell.run", "params": {"command": "touch never"}, "after": ["waits"]},
]
CALLS: Final[list[Mapping[str, object]]] = [
    STEPS[0],
    {
        "id": "works",
        "call": "shell.run",
        "params": {"command": "touch works; sleep 4327", "background": True},
    },
    STEPS[3],
]
"""The same for a profile, whose steps are calls."""
WORD: Final = "A person wrote something while work"
STOP: Final = "Stop, I do not need it any more."
JOB: Final = "```shell.run background=true\ntouch works; sleep 4327\n```"


def say(product: Product, server: Server, text: str, mode: str) -> Spoken:
    with server.connect() as socket:
        acknowledged(socket, {"type": "hello", "session": None, "since": 0})
        said = acknowledged(socket, {"type": "say", "text": text, "mode": mode})
        return Spoken(product, str(said["session"]))


def told_as_stopped(reply: Record) -> None:
    """Check that the page and the faces say the same: a person stopped it."""
    assert isinstance(reply.content, ReplyRecord)
    assert _short_of(reply.content)
    assert result_of("s", reply).is_error
    assert ending(reply)[0] == "cancelled"
    assert TaskWords("s", reply).status(reply, reply, ()).state == TaskState.TASK_STATE_CANCELED
    assert acp_ended(reply, USAGE).stop_reason == "cancelled"
    finished = ag_ui_ended(RUN, reply, ())
    assert isinstance(finished, RunFinishedEvent)
    assert isinstance(finished.outcome, RunFinishedCancelledOutcome)


@pytest.mark.parametrize("mode", MODES)
def test_a_plain_stop_ends_all_that_runs(stage: Stage, mode: str) -> None:
    gates = {} if mode == "profile" else {"writer": Gate(), "worker": Gate()}
    asked: list[str] = []

    def script(request: Request) -> Reply | str:
        name = request.agent.rpartition("/")[2]
        if name in gates:
            if name == "worker" and request.turn == 0:
                return JOB
            return Reply("I write and write and write.", chunk=4, gates={8: gates[name]})

        question = request.last
        asked.append(question.split("\n")[0])
        if question.startswith(WORD):
            return '{"word": "stop", "reason": "It is not needed any more."}'
        if question.startswith("Write the whole workflow"):
            return json.dumps({"steps": CALLS, "confidence": 0.9})
        return "steps:\n" + "\n".join(f"  - {json.dumps(step)}" for step in STEPS)

    product = stage.product(stage.endpoint(script))
    with served(product) as server:
        spoken = say(product, server, "Do all of it.", mode)
        spoken.appears("waits")
        spoken.appears("works")
        assert all(gate.wait(300) for gate in gates.values())
        until(lambda: len(sleepers(product)) >= 2, "both commands")

        before = len(spoken.records())
        stopped = spoken.control("say", STOP)
        plan = next(one.agent for one in spoken.records() if one.kind == "plan")
        reply = spoken.wait_for("reply", plan)
        until(lambda: not sleepers(product), "the end of what ran in the container")

        gone = datetime.now(UTC)
        said = datetime.fromisoformat(stopped.at)
        for what, when in (("the plan", datetime.fromisoformat(reply.at)), ("all processes", gone)):
            print(f"{mode}: {(when - said).total_seconds():.2f} s from the word to the end of {what}")

        content = reply.content
        assert isinstance(content, ReplyRecord)
        assert content.plan == "stopped"
        assert content.verdict is not None
        assert content.verdict.by == "person"

        later = spoken.records()[before:]
        assert not [one for one in later if one.kind == "fire"], "nothing begins any more"
        ended = {one.agent for one in later if one.kind == "reply"}
        assert ended >= {plan, *(f"{plan}/{name}" for name in gates)}
        answer = spoken.wait_for("reply", "/")
        assert answer.body.startswith("Stopped.")
        told_as_stopped(answer)
        assert asked.count(next(one for one in asked if one.startswith(WORD))) == 1, "it is asked once"
        assert not (spoken.workspace / "never").exists()
        for gate in gates.values():
            gate.release()
