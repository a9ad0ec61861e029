"""Variables pass by name: large values move between agents and into modules, and contexts stay small."""

from __future__ import annotations

import hashlib

from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Answer
from tests.endpoint import Request

_MEGABYTE = 1_000_000
_MADE = """\
import sys
head, tail = "cat <<'END' | sha256sum\\n", "END\\n"
lines = "".join(f"marker-{n:06d}\\n" for n in range(100_000))
text = head + lines
sys.stdout.write(text[: 1_000_000 - len(tail) - 1] + "\\n" + tail)"""


def _large() -> tuple[str, str]:
    """What the program above prints, and the digest that running it as a script prints."""
    head, tail = "cat <<'END' | sha256sum\n", "END\n"
    text = (
        (head + "".join(f"marker-{n:06d}\n" for n in range(100_000)))[: _MEGABYTE - len(tail) - 1]
        + "\n"
        + tail
    )
    document = text.removeprefix(head).removesuffix(tail)
    return text, hashlib.sha256(document.encode()).hexdigest()


def _results(answer: Answer, agent: str) -> list[Record]:
    return [record for record in answer.records if record.kind == "result" and record.agent == agent]


def _longest(requests: list[Request]) -> int:
    return max(sum(len(content) for _, content in request.messages) for request in requests)


def test_a_megabyte_passes_without_entering_a_context(stage: Stage) -> None:
    """Made by a module in a child, it goes to the parent, into a module by value, and on to another child."""
    text, digest = _large()
    endpoint = stage.endpoint({
        "/": [
            "```CALL maker\nMake it.\n```",
            "```shell.run command=$run_1\n```\n\n```CALL checker\nRun $run_1 and tell me what it prints.\n```",
            "Both agree.",
        ],
        "/maker": [f"```shell.run language=python\n{_MADE}\n```", "Made: $run_1"],
        "/checker": ["```shell.run command=$run_1\n```", "It prints $run_2."],
    })  # fmt: skip
    answer = stage.product(endpoint).ask("Make something large.")

    made = _results(answer, "/maker")[0].fields["blob"]
    assert made == {"sha256": hashlib.sha256(text.encode()).hexdigest(), "size": _MEGABYTE}
    assert [_results(answer, path)[0].body for path in ("/", "/checker")] == [f"{digest}  -\n"] * 2

    assert "$run_1 (text/plain, 1.0 MB" in endpoint.of("/")[1].last
    assert "$run_1 (text/plain, 1.0 MB" in endpoint.of("/checker")[0].last
    for path in ("/", "/checker"):
        assert not any(
            "marker-" in content for request in endpoint.of(path) for _, content in request.messages
        )
    assert not any("marker-05" in content for request in endpoint.requests for _, content in request.messages)
    assert _longest(endpoint.requests) < 20_000
    manifests = sum(len(record.body) for record in answer.records if record.kind == "module")
    assert answer.journal.stat().st_size - manifests < 40_000, "the log holds a reference to it"
    assert [blob.stat().st_size for blob in (answer.journal.parent / "blobs").iterdir()] == [_MEGABYTE]
    assert answer.reply == "Both agree."


def test_code_blocks_of_messages_are_captured(stage: Stage) -> None:
    """A code block that came in is a variable: of the user's message, of a child's reply, of a caller's."""
    endpoint = stage.endpoint({
        "/": ["```shell.run command=$code_1\n```", "~~~CALL coder\nLike this:\n\n```bash\necho two\n```\n~~~",
              "```shell.run command=$code_2\n```", "Done."],
        "/coder": ["```shell.run command=$code_1\n```", "I made:\n\n```text\necho three\n```"],
    })  # fmt: skip
    answer = stage.product(endpoint).ask("Run this:\n\n```sh\necho one\n```")
    assert [record.body for record in _results(answer, "/")] == ["one\n", "three\n"]
    assert [record.body for record in _results(answer, "/coder")] == ["two\n"]
    assert "$code_1 (text/sh, 8 B)" in endpoint.of("/")[0].last


def test_a_block_with_a_name_is_a_variable(stage: Stage) -> None:
    named = "I wrote it.\n\n```python name=solver\nprint(6 * 7)\n```\n\n```shell.run language=python command=$solver\n```"
    endpoint = stage.endpoint({"/": [named, "42."]})
    answer = stage.product(endpoint).ask("Solve it.")
    assert [record.body for record in _results(answer, "/")] == ["42\n"]


def test_a_newcomer_never_replaces_a_value(stage: Stage) -> None:
    """The clash rule: another value under a taken name comes as name_2, in the text as well."""
    endpoint = stage.endpoint({
        "/": ["```VAR plan\nmine\n```\n\n```CALL other\nWhat is your plan?\n```", "```SHOW plan\n```\n\n```SHOW plan_2\n```",
              "```CALL other\nMine is $plan, same as ever.\n```", "Done."],
        "/other": ["```VAR plan\nyours\n```", "It is $plan, I think.", "Thanks for $plan_2."],
    })  # fmt: skip
    answer = stage.product(endpoint, **NO_MODULES).ask("Compare plans.")
    incoming, shown = endpoint.of("/")[1].last, endpoint.of("/")[2].last
    assert "It is $plan_2, I think." in incoming
    assert "with $plan_2 (text/plain, 5 B)" in incoming
    assert "```\nmine\n```" in shown
    assert "```\nyours\n```" in shown
    assert "Mine is $plan_2, same as ever." in endpoint.of("/other")[2].last
    assert answer.reply == "Done."


def test_only_known_names_are_mentions(stage: Stage) -> None:
    endpoint = stage.endpoint(
        {"/": ["```CALL other\nIt costs $5 at $HOME, not $nothing.\n```", "Done."], "/other": ["Fine."]}
    )
    stage.product(endpoint, **NO_MODULES).ask("Go.")
    heard = endpoint.of("/other")[0].last
    assert "Message from your caller /:\n```\nIt costs $5 at $HOME, not $nothing.\n```" in heard


def test_a_wrong_argument_comes_back_as_feedback(stage: Stage) -> None:
    """The sentence names the parameter, what was expected and what was given; nothing ran."""
    wrong = "```shell.run timeout=soon\necho no\n```\n\n```shell.run command=$absent\n```\n\n```shell.rum\necho no\n```"
    endpoint = stage.endpoint({"/": [wrong, "I see."]})
    answer = stage.product(endpoint).ask("Try.")
    heard = endpoint.requests[1].last
    assert '`shell.run` was not run: parameter `timeout` expects number, not "soon".' in heard
    assert "the variable $absent, which you don't have" in heard
    assert "There is no function `shell.rum`. The nearest names are `shell.run`" in heard
    assert not [record for record in answer.records if record.kind == "call"]


_ORDERS = "item,amount\ntea,3\nbread,4"
_READ = (
    "```shell.run stdin=$orders\nwc -l\n```\n\n"
    "```files.search content=$orders\n^tea\n```\n\n"
    "```sql.query from=$orders form=csv\nSELECT sum(amount) AS sum FROM data\n```"
)


def test_a_variable_reaches_functions_without_a_file(stage: Stage) -> None:
    """As input of a script, as names in Python, as the text to search, as a table; a reader can do it, too."""
    kept = f"```VAR orders type=csv\n{_ORDERS}\n```\n\n"
    endpoint = stage.endpoint({
        "/": [
            f"{kept}{_READ}\n\n"
            '```python.run names={"table": $orders, "same": "$orders"}\nprint(len(table), table == same)\n```\n\n'
            "```files.write path=orders.csv content=$orders\n```\n\n"
            "```CALL reader intent=0\nRead $orders.\n```",
            "Done.",
        ],
        "/reader": [_READ, "Read."],
    })  # fmt: skip
    answer = stage.product(endpoint).ask("Read the orders.")

    read = ["2\n", "2:tea,3\n", "sum\n7\n"]
    root, reader = ([one.body for one in _results(answer, path)] for path in ("/", "/reader"))
    assert root[:4] == [*read, f"{len(_ORDERS)} True\n"]
    assert reader == read
    assert (answer.workspace / "orders.csv").read_text(encoding="utf-8").startswith(_ORDERS)


def test_a_variable_under_a_name_that_no_parameter_has_is_answered_with_the_right_one(stage: Stage) -> None:
    endpoint = stage.endpoint(
        {"/": ["```VAR words\na b\n```\n```shell.run words=$words\ncat\n```", "I see."]}
    )
    stage.product(endpoint).ask("Count.")
    heard = endpoint.requests[1].last
    assert (
        "`shell.run` was not run: it has no parameter `words`; to pass the variable, write stdin=$words"
        in heard
    )
