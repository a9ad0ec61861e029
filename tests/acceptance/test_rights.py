"""A change of rights affects running jobs: pause, lockdown and a lower intent end them at any depth within a second."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import pytest

from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.product import acknowledged, until
from tests.acceptance.test_scenes import Spoken, call, served, speak
from tests.endpoint import Gate, Reply
from tests.rounds import short
from tests.sandbox.calling import need_bubblewrap

JOB: Final = "I start it.\n\n```shell.run background=true\nwhile :; do date >> log; sleep 0.05; done\n```"
WORK: Final = "I work.\n\n```shell.run timeout=60\ntouch begun; until [ -e go ]; do sleep 0.05; done; echo it was done\n```"

CHANGES: Final[dict[str, dict[str, object]]] = {
    "pause": {"type": "pause", "path": "/a"},
    "lockdown": {"type": "lockdown", "value": True},
    "intent": {"type": "intent", "value": 0},
}


def results(spoken: Spoken) -> list[Record]:
    """The outcomes of the child's scripts."""
    return [one for one in spoken.records() if (one.kind, one.agent) == ("result", "/a/b")]


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("backend", short(["bubblewrap"], of=["docker", "bubblewrap"]))
def test_a_job_two_levels_down_ends_within_a_second(
    stage: Stage, backend: str, change: str, busy: bool
) -> None:
    if backend == "bubblewrap":
        need_bubblewrap()
    gate = Gate()
    endpoint = stage.endpoint(
        {
            "/": [call("a"), "Done."],
            "/a": [call("b"), "Done."],
            "/a/b": [
                JOB,
                *([WORK] if busy else []),
                Reply("I am done.", gates={0: gate}),
                *(["I am done."] if change == "pause" and not busy else []),  # what was begun is discarded
            ],
        }
    )
    product = stage.product(endpoint, IACT_SANDBOX=backend)
    with served(product) as server:
        spoken = speak(product, server, "Go on.")
        log = spoken.workspace / "log"
        until(lambda: size(log) > 200, "the job", within=120)
        if busy:
            spoken.appears("begun")
        else:
            assert gate.wait()

        with server.connect() as socket:
            acknowledged(socket, {"type": "hello", "session": spoken.session, "since": 0})
            acknowledged(socket, CHANGES[change])
        sizes = [size(log)]
        for _ in range(5):
            time.sleep(0.2)
            sizes.append(size(log))
        assert sizes[-1] == sizes[-3], "it has ended"

        (spoken.workspace / "go").touch()
        if busy:
            until(lambda: len(results(spoken)) == 2, "the call's outcome")
            result = results(spoken)[1]
            assert (result.text("status"), "it was done" in result.body) == (
                ("ok", True) if change == "pause" else ("incomplete", False)
            )
        if change == "pause":
            spoken.control("resume", "--agent", "/a")
        gate.release()
        assert spoken.wait_for("reply", "/").body == "Done."
        time.sleep(0.1)
        assert size(log) == sizes[-1], "and stays ended"
