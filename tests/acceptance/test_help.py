"""Documentation by use through the product: a model that knows nothing but its context finds out how things are used."""

from __future__ import annotations

import re

from tests.acceptance.conftest import Stage
from tests.endpoint import Request

_NOTE = re.compile(r"^Documentation of `([^`]+)`", re.MULTILINE)


def notes(request: Request) -> list[str]:
    """The notes of the newest message, without those that stand in every first message."""
    return _NOTE.findall(request.last.partition("You are agent ")[2] or request.last)


def test_a_model_that_reads_its_context_finds_out_how_to_write_a_table(stage: Stage) -> None:
    """It guesses, is told, looks the rest up, and does it; each step follows from what the context says."""
    said = list[Request]()

    def model(request: Request) -> str:
        said.append(request)
        newest = request.last
        if "You are agent /, called by the user.\n" in newest:
            assert "`sql.query <statement> …` query data files" in newest
            assert "sql.run" not in newest
            return "```HELP sql\n```"
        if newest.startswith("The module `sql`"):
            call = re.search(r"- `(sql\.run) <statement>", newest)
            assert call is not None
            return f"```{call.group(1)} file=shop.duckdb\nCREATE TABLE t AS SELECT 41 + 1 AS n\n```"
        if "was not run" in newest:
            assert "it has no parameter `file`" in newest
            right = re.search(r"It is used so: `sql\.run <statement> (\w+)=…", newest)
            assert right is not None
            return f"```sql.run {right.group(1)}=shop.duckdb\nCREATE TABLE t AS SELECT 41 + 1 AS n\n```"
        if "Result of `sql.run`" in newest:
            return "```sql.query database=shop.duckdb\nSELECT n FROM t\n```"
        assert "42" in newest
        return "It is 42."

    answer = stage.product(stage.endpoint(model)).ask("Keep 41 + 1 in a table of a database, and read it.")
    assert answer.reply == "It is 42."
    assert [notes(one) for one in said] == [[], [], ["sql.run"], [], []]


def test_what_a_task_names_is_documented_for_whoever_gets_it(stage: Stage) -> None:
    endpoint = stage.endpoint(
        {
            "/": [
                "```CALL reader intent=0\nRead a.txt with files.search, and https://example.org/docs too.\n```",
                "Done.",
            ],
            "/reader": ["I have read it."],
        }
    )
    stage.product(endpoint).ask("Let somebody read a.txt; the web page and the docs are files in the shell.")
    first = {request.agent: request for request in endpoint.requests if request.turn == 0}
    assert notes(first["/"]) == [], "ordinary words"
    assert notes(first["/reader"]) == ["files.search"]
    head, reader = (first[path].last.partition("You are agent ") for path in ("/", "/reader"))
    assert "You may read, not change." in reader[2].split("\n")
    assert "You may read, not change." not in head[2]
    assert "files.write" in head[0]
    assert "files.write" not in reader[0]
