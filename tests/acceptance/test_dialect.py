"""The product with a model that insists on function calls: everything except the endpoint sees action blocks."""

from __future__ import annotations

import json

from iact.core.ports import JSON
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES
from tests.endpoint import Reply


def acts(text: str, action: str, body: str, **arguments: str) -> Reply:
    """A reply that says `text` and calls the one function that it was offered."""
    wanted = json.dumps({"action": action, "arguments": arguments, "body": body})
    calls: list[JSON] = [
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "act", "arguments": piece}}
        if number == 0
        else {"index": 0, "function": {"arguments": piece}}
        for number, piece in enumerate((wanted[:9], wanted[9:]))
    ]
    return Reply(text, deltas=[{"tool_calls": [call]} for call in calls], finish="tool_calls")


def test_function_calls_go_through_the_product_as_action_blocks(stage: Stage) -> None:
    endpoint = stage.endpoint(
        {
            "/": [
                acts("Let me note it.", "VAR", "a,b\n1,2", name="sales", type="text/csv"),
                acts("Now ask.", "CALL", "What is in $sales?", name="reader"),
                "It has one row.",
            ],
            "/reader": ["One row: $sales."],
        }
    )
    answer = stage.product(endpoint, IACT_DIALECT="tools", **NO_MODULES).ask("Count the rows.")

    assert answer.reply == "It has one row."
    tools = [request.body.get("tools") for request in endpoint.requests]
    assert all(tool == tools[0] and tool for tool in tools), "the same function in front of every prompt"
    turns = [record.body for record in answer.records if record.kind == "turn"]
    assert turns == [
        'Let me note it.\n\n```VAR name="sales" type="text/csv"\na,b\n1,2\n```',
        'Now ask.\n\n```CALL name="reader"\nWhat is in $sales?\n```',
    ]
    history = endpoint.of("/")[-1].messages
    assert [content for role, content in history if role == "assistant"] == turns
    assert "$sales (text/csv, 7 B)" in endpoint.of("/reader")[0].last


def natively(name: str, /, **arguments: str) -> Reply:
    """A reply that calls a function or an action by its own name, which was not offered."""
    function: JSON = {"name": name, "arguments": json.dumps(arguments)}
    call: JSON = {"index": 0, "id": "c1", "type": "function", "function": function}
    return Reply("", deltas=[{"tool_calls": [call]}], finish="tool_calls")


def test_a_function_that_is_called_by_its_own_name_is_run(stage: Stage) -> None:
    endpoint = stage.endpoint(
        {
            "/": [
                natively("shell_run", command="echo one\necho two"),
                natively("functions.shell.run", command="echo three"),
                natively("SHOW", name="$run_1"),
                natively("open_browser", url="https://example.org"),
                "One, two, three.",
            ],
        }
    )
    answer = stage.product(endpoint, IACT_DIALECT="tools").ask("Count.")

    assert answer.reply == "One, two, three."
    read = [request.last for request in endpoint.requests]
    assert "one\ntwo" in read[1]
    assert "three" in read[2]
    assert "one\ntwo" in read[3]
    assert "Nothing was run: there is no function open_browser." in read[4]


def test_no_function_is_offered_otherwise(stage: Stage) -> None:
    endpoint = stage.endpoint({"/": ["Hello."]})
    assert stage.product(endpoint, **NO_MODULES).ask("Hi.").reply == "Hello."
    assert "tools" not in endpoint.requests[0].body
