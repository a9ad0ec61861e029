"""`iact acp` with a third-party client in another language: npm's SDK of the protocol, run by Node."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product
from tests.acceptance.test_clearance import MAKE, asking
from tests.command import program
from tests.node import FOLDER, NODE


def played(product: Product, folder: Path, option: str, between: Sequence[str] = ()) -> dict[str, object]:
    """What a client saw that answers questions with `option`. `between`: a command that starts and represents ours."""
    folder.mkdir()
    ours = [*between, *program("acp")]
    command = [NODE, str(FOLDER / "acp_client.js"), str(folder), option, *ours]
    done = subprocess.run(
        command, env=product.environment, cwd=product.data.parent, capture_output=True, text=True, timeout=180,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return dict(json.loads(done.stdout))


def kinds(updates: object) -> list[str]:
    assert isinstance(updates, list)
    return [one["sessionUpdate"] for one in updates]


@pytest.mark.parametrize("option", ["once", "no"])
def test_a_foreign_client_prompts_answers_and_loads(stage: Stage, option: str) -> None:
    product = asking(stage.product(stage.endpoint({"/": [MAKE, "Over."]})))
    folder = stage.folder / "project"
    seen = played(product, folder, option)
    assert seen["status"] == 0
    assert str(seen["refused"]).endswith("is not open here. Load or resume it first.")
    assert seen["listed"] == [seen["session"]]
    assert "auto" in str(seen["modes"])
    asked = seen["asked"]
    assert isinstance(asked, list)
    assert asked[0]["toolCall"]["rawInput"] == {"command": "touch made"}
    assert (folder / "made").exists() == (option == "once")
    assert {"agent_message_chunk", "tool_call", "tool_call_update"} <= set(kinds(seen["updates"]))
    assert kinds(seen["replayed"])[0] == "user_message_chunk"
    ended = seen["ended"]
    assert isinstance(ended, dict)
    assert ended["stopReason"] == "end_turn"
    for journal in product.journals():
        assert product.run("replay", "--verify", str(journal)).status == 0


def test_a_foreign_client_cancels_and_the_question_is_taken_back(stage: Stage) -> None:
    product = asking(stage.product(stage.endpoint({"/": [MAKE]})))
    seen = played(product, stage.folder / "project", "wait")
    ended = seen["ended"]
    assert isinstance(ended, dict)
    assert ended["stopReason"] == "cancelled"
    assert seen["withdrawn"] == 1
    assert not (stage.folder / "project" / "made").exists()
