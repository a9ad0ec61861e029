"""The product on a machine without an engine: tools run under bubblewrap, and it says so."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import Stage
from tests.acceptance.test_scenes import shell
from tests.sandbox.calling import need_bubblewrap


@pytest.mark.parametrize("backend", ["bubblewrap", "auto"])
def test_a_tool_runs_without_an_engine(stage: Stage, backend: str) -> None:
    need_bubblewrap()
    endpoint = stage.endpoint({"/": [shell("echo $((6 * 7)) > made && cat made && id -un"), "It says 42."]})
    product = stage.product(endpoint, IACT_SANDBOX=backend, DOCKER_HOST="unix:///nonexistent/docker.sock")
    answer = product.ask("Work it out.")
    assert answer.reply == "It says 42."
    (result,) = [record for record in answer.records if record.kind == "result"]
    assert result.body.split() == ["42", "nobody"]
    assert "new or changed files: made (3 B)" in endpoint.requests[-1].messages[-1][1]
    assert (answer.workspace / "made").read_text(encoding="utf-8") == "42\n"
