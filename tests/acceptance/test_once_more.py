"""The same call once more: after its container was lost, and after a person said no to it."""

from __future__ import annotations

import contextlib
import threading
from typing import Final

import docker

from iact.core.stored.replay import replay
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product, until
from tests.acceptance.test_control import shell
from tests.acceptance.test_lost_tool_page import lost

PYTHON: Final = "I act.\n\n```python.run\n{}\n```"


def kill_once(product: Product) -> threading.Thread:
    """Kill the container in which `sleep 4325` runs, as soon as there is one."""

    def kill() -> None:
        def is_killed() -> bool:
            with contextlib.suppress(docker.errors.APIError):  # a container that ends meanwhile
                return lost(product)
            return False

        until(is_killed, "no script to kill", every=0.1)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    return killer


def test_a_lost_container_is_started_again_for_the_same_call(stage: Stage) -> None:
    """A file that the first attempt left in the workspace tells the second to end."""
    # The words that are looked for stand in no other process than the one that sleeps.
    same = "nap=sleep; test -f ended || { touch ended; $nap 4325; }"
    endpoint = stage.endpoint(
        {"/": [shell("echo ready"), shell(same), shell(same), shell("echo on"), "Done."]}
    )
    product = stage.product(endpoint)
    killer = kill_once(product)
    answer = product.ask("Work.", "--intent", "2")
    killer.join()

    assert (answer.status, answer.reply) == ("done", "Done.")
    results = [record for record in answer.records if record.kind == "result"]
    assert [record.text("status") for record in results] == ["ok", "incomplete", "ok", "ok"]
    assert [bool(record.fields.get("fresh")) for record in results] == [False, False, True, False]
    _, first, lost_one, second, third = endpoint.requests
    assert "started afresh" not in first.last
    assert "shell.run did not complete." in lost_one.last
    assert "started afresh" not in lost_one.last, "only a result says so"
    assert "The module `shell` was started afresh" in second.last
    assert "exit status 0" in second.last
    assert "started afresh" not in third.last
    replay(answer.journal, verify=True)


def test_an_agent_is_told_that_its_interpreter_ended_with_the_command(stage: Stage) -> None:
    """Each `iact run --session` is a process of its own, and so are its interpreters."""
    endpoint = stage.endpoint({"/": [PYTHON.format("y = 42"), "Kept.", PYTHON.format("print(y)"), "Gone."]})
    product = stage.product(endpoint)
    first = product.ask("Keep it.", "--intent", "2")
    second = product.ask("What is it?", session=first.session)

    assert (first.reply, second.reply) == ("Kept.", "Gone.")
    _, kept, asked, missed = [request.last for request in endpoint.requests]
    assert "The module `python` is in the state `running` now" in kept
    assert "`python` was started afresh: its processes and what it had in memory are gone" in asked
    assert "NameError" in missed
    state = missed.rpartition("(state)")[2]
    assert state.endswith(" `python` is in the state `running`"), "the time may be told before it"
    replay(second.journal, verify=True)
