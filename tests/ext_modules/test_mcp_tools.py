"""What an MCP server says, made fit for the contract: tools, their schemas, and what they give back."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ext_modules.mcp.results import delivery_of
from ext_modules.mcp.schema import allowed
from ext_modules.mcp.tools import tools_of
from ext_modules.sdk.given import GivenParameters
from ext_modules.sdk.parameters import BadArguments
from ext_modules.sdk.values import JSON, Value
from iact.core.modules.manifest import Function
from iact.core.modules.schema import check_schema
from tests.rounds import rounds


def tool(name: str, schema: JSON = None, **more: JSON) -> dict[str, JSON]:
    return {"name": name, "inputSchema": schema or {"type": "object"}, **more}


def test_names_become_names_of_functions() -> None:
    listed = [
        tool(name) for name in ("get_time", "getTime", "get-time", "admin/Get.Time", "7up", "é", "get_time")
    ]
    assert [(each.name, each.called) for each in tools_of(listed)] == [
        ("get_time", "get_time"), ("get_time_2", "getTime"), ("get_time_3", "get-time"),
        ("admin_get_time", "admin/Get.Time"), ("tool_7up", "7up"), ("tool", "é"), ("get_time_4", "get_time"),
    ]  # fmt: skip


def test_impact_is_as_hinted_and_the_worst_where_nothing_is() -> None:
    hints: list[dict[str, JSON]] = [
        {}, {"readOnlyHint": True}, {"destructiveHint": False}, {"destructiveHint": False, "idempotentHint": True}, {"readOnlyHint": "yes"}
    ]  # fmt: skip
    found = [
        (each.impact, each.idempotent) for each in tools_of([tool("t", annotations=one) for one in hints])
    ]
    assert found == [(2, False), (0, True), (1, False), (1, True), (2, False)]


def test_what_does_not_fit_is_left_out_and_the_rest_stays() -> None:
    odd: list[dict[str, JSON]] = [
        {"name": 7}, {"name": "a", "inputSchema": 1}, tool("spaced", {"type": "object", "properties": {"a b": {}}})
    ]  # fmt: skip
    assert [each.name for each in tools_of([*odd, tool("good")])] == ["good"]
    assert len(tools_of([tool(f"t{number}") for number in range(150)])) == 100


def test_texts_are_short_and_visible() -> None:
    said = "First\u202e line.\n" + "word " * 3000 + "\nline" * 40
    (made,) = tools_of([tool("t", description=said)])
    assert made.summary == "First line."
    Function(
        name=made.name, summary=made.summary, documentation=made.documentation, schema_text=json.dumps(made.schema), impact=made.impact
    )  # fmt: skip  # the core takes it


def test_references_are_followed_and_circles_cut() -> None:
    schema: dict[str, JSON] = {
        "type": "object",
        "properties": {
            "tree": {"$ref": "#/$defs/Tree"},
            "far": {"$ref": "http://x/y"},
            "title": {"type": "string"},
        },
        "$defs": {"Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}}},
    }
    assert allowed(schema)["properties"] == {
        "tree": {"type": "object", "properties": {"left": {}}}, "far": {}, "title": {"type": "string"}
    }  # fmt: skip


def test_references_that_multiply_end() -> None:
    definitions: dict[str, JSON] = {
        f"d{number}": {"anyOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 8} for number in range(10)
    }
    schema: dict[str, JSON] = {
        "properties": {"a": {"$ref": "#/$defs/d0"}, "b": {"type": "integer"}},
        "$defs": definitions,
    }
    check_schema(json.dumps(allowed(schema)))


TEXT = st.sampled_from(
    ["type", "object", "string", "properties", "$ref", "#/properties/a", "#/$defs/a", "pattern", "$defs", "a", "enum", "required",
     "anyOf", "items", "additionalProperties", "\u202e", "default", "str"]
)  # fmt: skip
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=25,
)


@settings(deadline=None, max_examples=rounds(50))
@given(schema=st.dictionaries(TEXT, ANY, max_size=5))
def test_the_core_takes_whatever_is_made_of_a_schema(schema: dict[str, JSON]) -> None:
    made = allowed(schema)
    properties = made["properties"]
    assert isinstance(properties, dict)
    made["properties"] = {name: value for name, value in properties.items() if name.isidentifier()}
    check_schema(json.dumps(made))


def test_arguments_are_checked_at_the_top() -> None:
    takes = GivenParameters(
        {
            "type": "object",
            "properties": {
                "n": {"type": "integer"},
                "s": {"type": ["string", "null"]},
                "o": {"type": "object"},
            },
            "required": ["n"],
            "additionalProperties": False,
        }
    )
    assert takes.bind({"n": 2.0, "s": None}, {}) == {"arguments": {"n": 2.0, "s": None}}
    by_value = takes.bind({"n": 1}, {"o": Value(b'{"a": 1}'), "s": Value(b"text")})
    assert by_value == {"arguments": {"n": 1, "o": {"a": 1}, "s": "text"}}
    refused: list[tuple[dict[str, JSON], dict[str, Value], str]] = [
        ({}, {}, "missing"), ({"n": True}, {}, "takes integer"), ({"n": 1, "x": 1}, {}, "There is no parameter 'x'"),
        ({"n": 1}, {"n": Value(b"1")}, "given twice"), ({"n": 1}, {"o": Value(b"{")}, "not JSON"),
        ({"n": 1.5}, {}, "takes integer"), ({"n": 1, "s": 3}, {}, "takes string or null"),
    ]  # fmt: skip
    for arguments, values, why in refused:
        with pytest.raises(BadArguments, match=why):
            takes.bind(arguments, values)


def test_results_by_kind() -> None:
    picture = base64.b64encode(b"\x89PNG").decode()
    blocks: list[JSON] = [
        {"type": "text", "text": "one"},
        {"type": "image", "data": picture, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a/b.bin", "blob": picture}},
        {"type": "resource", "resource": {"uri": "file:///a/b.txt", "text": "two"}},
        {"type": "resource_link", "name": "doc", "uri": "file:///doc"},
        {"type": "image", "data": "not base64!", "mimeType": "image/png"},
        {"type": "hologram"},
    ]
    found = delivery_of({"content": blocks, "structuredContent": {"a": 1}})
    assert found.artifacts == [
        Value(b"\x89PNG", "image/png"),
        Value(b"\x89PNG", "application/octet-stream", "b.bin"),
    ]
    assert found.text.splitlines() == [
        "one", "two", "doc: file:///doc", "[content of the type image/png that is not base64]",
        "[content of the kind hologram, which is not known here]",
    ]  # fmt: skip
    assert (found.structured, found.failed) == ({"a": 1}, False)


def test_structured_content_is_not_said_twice() -> None:
    same = delivery_of(
        {"content": [{"type": "text", "text": '{"a": 1}'}], "structuredContent": {"a": 1}, "isError": True}
    )
    assert (same.text, same.structured, same.failed) == ("", {"a": 1}, True)
    wrapped: list[tuple[list[str], JSON]] = [(["done"], "done"), (["true"], True), (["a", "1"], ["a", 1])]
    for texts, result in wrapped:
        blocks: list[JSON] = [{"type": "text", "text": text} for text in texts]
        found = delivery_of({"content": blocks, "structuredContent": {"result": result}})
        assert (found.text, found.structured) == ("\n".join(texts), None)
