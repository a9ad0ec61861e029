"""Tools for data and code in the running product: as steps of a plan, with versions of the files, and with an undo."""

from __future__ import annotations

import json

import pytest

from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.test_plans import plan, replayed, states
from tests.endpoint import Request
from tests.rounds import short
from tests.sandbox.calling import need_bubblewrap


def step(identity: str, call: str, *after: str, **params: str) -> str:
    return f"{{id: {identity}, call: {call}, params: {json.dumps(params)}, after: {json.dumps(list(after))}}}"


def results(records: list[Record], function: str) -> list[Record]:
    return [one for one in records if one.kind == "result" and one.text("function") == function]


STEPS = (
    step(
        "make",
        "python.run",
        code="import pandas as pd\npd.DataFrame({'a': [1, 2]}).to_csv('t.csv', index=False)",
    ),
    step("ask", "sql.query", "make", statement="SELECT sum(a) AS total FROM 't.csv'"),
    step("keep", "sql.run", "make", database="k.sqlite", statement="CREATE TABLE t AS SELECT 1 AS a"),
    step("begin", "git.start", "ask", "keep"),
    step("commit", "git.commit", "begin", message="All of it"),
    step("wrong", "python.run", "make", code="print(6 * 7)\nraise SystemExit(3)"),
)
CHANGED = "```python.run\nopen('t.csv', 'w').write('gone')\n```\n\n```python.run\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\n```"


@pytest.mark.parametrize("backend", short(["docker"], of=["docker", "bubblewrap"]))
def test_tools_are_steps_of_a_plan_and_what_they_wrote_can_be_undone(stage: Stage, backend: str) -> None:
    if backend == "bubblewrap":
        need_bubblewrap()

    def answer(request: Request) -> str:
        if not request.agent:
            return '{"skip": false, "reason": "it can not be repaired"}'
        return (plan(*STEPS), CHANGED, "Drawn.", "I see.")[request.turn]

    product = stage.product(stage.endpoint(answer), IACT_SANDBOX=backend)
    done = product.ask("Work with the table.")
    assert done.reply == "Drawn."
    became = states(replayed(product, done.journal))
    assert [became[one] for one in ("make", "ask", "keep", "begin", "commit")] == ["executed"] * 5
    assert became["wrong"] == "failed"
    wrong = next(one for one in results(done.records, "python.run") if one.body.startswith("42"))
    assert wrong.fields["data"] == {"exit_status": 3, "left_out": 0, "raised": "SystemExit"}
    (asked,) = results(done.records, "sql.query")
    assert ("| 3 |" in asked.body, asked.text("version")) == (True, "")
    *_, written, drawn = results(done.records, "python.run")
    assert '"media": "image/png"' in json.dumps(drawn.fields["artifacts"])
    assert written.text("version")

    (commit,) = results(done.records, "git.commit")
    assert (done.workspace / "t.csv").read_text(encoding="utf-8") == "gone"
    restored = product.run("workspace", "restore", "--session", done.session, str(commit.n))
    assert restored.status == 0, restored
    assert (done.workspace / "t.csv").read_text(encoding="utf-8") == "a\n1\n2\n"
    assert (done.workspace / ".git" / "HEAD").is_file()
    assert (done.workspace / "k.sqlite").is_file()
