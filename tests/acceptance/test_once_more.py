"""The same call once more: after its container was lost, and after a person said no to it."""

from __future__ import annotations

import contextlib
import threading

import docker

from iact.core.session.replay import replay
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product, until
from tests.acceptance.test_control import shell
from tests.acceptance.test_lost_tool_page import lost


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
