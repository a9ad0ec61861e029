"""A manifest is the word of a hostile party: what is let through, and what is refused and why."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.errors import ModuleFault
from iact.core.language.actions import CORE_ACTIONS
from iact.core.modules.manifest import Manifest
from iact.core.ports import JSON
from protos.iact.ext_module.v1 import ext_module_pb2 as pb

SCHEMA: dict[str, JSON] = {
    "type": "object",
    "properties": {"place": {"type": "string"}, "days": {"type": "integer"}},
}


def proper() -> pb.Manifest:
    return pb.Manifest(
        protocol=1,
        name="weather",
        version="1.2",
        purpose="Forecasts for a place.",
        keywords=["weather", "rain"],
        functions=[
            pb.Function(
                name="forecast", alias="FORECAST", summary="Forecast for a place", documentation="place: a town\n\tdays",
                parameters_schema=json.dumps(SCHEMA), body_parameter="place", result_media_type="text/markdown; charset=utf-8",
                impact=pb.IMPACT_OPERATE, idempotent=True, exclusive=True, states=["ready"], default_timeout_ms=1500,
            ),
            pb.Function(name="stations", parameters_schema='{"type": "object"}'),
        ],
        states=[pb.State(name="ready", summary="It is ready."), pb.State(name="busy")],
        needs=pb.Needs(
            egress=["api.met.no:443"], secrets=["MET_KEY"], workspace=pb.Needs.WORKSPACE_READ, memory_bytes=1 << 29,
            cpu=0.5, pids=64,
        ),
    )  # fmt: skip


def read(message: pb.Manifest) -> Manifest:
    return Manifest.from_proto(message.SerializeToString())


def test_a_proper_manifest_is_read_whole() -> None:
    manifest = read(proper())
    forecast = manifest.function("forecast")
    assert forecast is not None
    assert (manifest.name, manifest.keywords) == ("weather", ("weather", "rain"))
    assert (forecast.alias, forecast.body, forecast.impact, forecast.timeout) == ("FORECAST", "place", 1, 1.5)
    assert forecast.parameters == SCHEMA
    assert (manifest.needs.workspace, manifest.needs.cpu) == ("read", 0.5)
    assert manifest.function("nowhere") is None


def test_a_function_without_parameters_has_properties_all_the_same() -> None:
    stations = read(proper()).function("stations")
    assert stations is not None
    assert stations.parameters == {"type": "object", "properties": {}}


def test_all_forms_hold_the_same() -> None:
    manifest = read(proper())
    assert Manifest.from_json(manifest.to_json()) == manifest
    assert Manifest.from_proto(manifest.to_proto()) == manifest
    assert Manifest.from_json(manifest.model_dump_json()) == manifest


def test_the_digest_is_that_of_the_content() -> None:
    changed = proper()
    changed.functions[0].impact = pb.IMPACT_OBSERVE
    assert read(proper()).digest() == read(proper()).digest()
    assert read(proper()).digest() != read(changed).digest()


def test_a_field_of_a_newer_version_is_ignored() -> None:
    data: dict[str, JSON] = json.loads(read(proper()).to_json())
    assert Manifest.from_json(json.dumps({**data, "colour": "blue"})) == read(proper())


def test_json_is_checked_as_strictly() -> None:
    data = json.loads(read(proper()).to_json())
    data["functions"][0]["alias"] = "CALL"
    with pytest.raises(ModuleFault, match=r"functions\.0\.alias: CALL is an action of the core"):
        Manifest.from_json(json.dumps(data))


Change = Callable[[pb.Manifest], object]


def put(path: str, value: object) -> Change:
    """Sets a field of the manifest, or of its first function ("f."), of its needs ("n.")."""

    def change(message: pb.Manifest) -> None:
        owner, _, name = path.rpartition(".")
        target = {"": message, "f": message.functions[0], "n": message.needs}[owner]
        if isinstance(value, list):
            target.ClearField(name)
            getattr(target, name).extend(value)
        else:
            setattr(target, name, value)

    return change


@pytest.mark.parametrize(
    "change",
    [
        put("protocol", 0), put("protocol", 2),
        put("name", ""), put("name", "Weather"), put("name", "1weather"), put("name", "w" * 33), put("name", "we.ather"),
        put("name", "weather\n"), put("name", "weäther"),
        put("version", "1" * 65), put("version", "1\n2"),
        put("purpose", "x" * 601), put("purpose", "two\nlines"), put("purpose", "reads \u202edrawkcab"),
        put("purpose", "zero\u200bwidth"), put("purpose", "tag\U000e0041"), put("purpose", "bell\x07"), put("purpose", "a\x85b"),
        put("keywords", ["w"] * 101), put("keywords", [""]), put("keywords", ["w" * 41]), put("keywords", ["a\nb"]),
        put("f.name", ""), put("f.name", "weather.forecast"), put("f.name", "f" * 49), put("f.name", "stations"),
        put("f.alias", "F"), put("f.alias", "forecast"), put("f.alias", "F" * 33), put("f.alias", "FORE CAST"),
        *[put("f.alias", name) for name in sorted(CORE_ACTIONS)],
        put("f.summary", "x" * 201), put("f.summary", "a\nb"), put("f.summary", "a\u2066b"),
        put("f.documentation", "\n" * 20), put("f.documentation", "é" * 2049), put("f.documentation", "a\u202eb"),
        put("f.documentation", "a\rb"), put("f.documentation", "\x1b[2J"),
        put("f.body_parameter", "town"), put("f.body_parameter", "days"),
        put("f.result_media_type", "text"), put("f.result_media_type", "text/plain\nx"),
        put("f.impact", 3), put("f.impact", -1),
        put("f.states", ["sleeping"]),
        put("f.default_timeout_ms", 86_400_001),
        put("n.egress", ["api.met.no"]), put("n.egress", ["https://api.met.no:443"]), put("n.egress", ["*:443"]),
        put("n.egress", ["a:443"] * 51), put("n.secrets", ["met key"]), put("n.secrets", ["a"]),
        put("n.workspace", 7), put("n.cpu", float("nan")), put("n.cpu", -1.0), put("n.memory_bytes", 1 << 60),
        lambda message: message.ClearField("functions"),
        lambda message: message.functions.extend([pb.Function(name=f"f{n}", parameters_schema='{"type": "object"}') for n in range(99)]),
        lambda message: message.states.append(pb.State(name="busy")),
        lambda message: message.states.append(pb.State(name="Not A Name")),
        lambda message: setattr(message.functions[1], "alias", "FORECAST"),
    ],
)  # fmt: skip
def test_what_is_refused(change: Change) -> None:
    message = proper()
    change(message)
    with pytest.raises(ModuleFault, match=r"^The module's manifest is refused at .+: .+\.$") as caught:
        read(message)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "schema",
    [
        "", "null", "[]", "{", "NaN", '{"type": "string"}', '{"properties": {}}',
        '{"type": "object", "properties": {"a": {"type": "text"}}}',
        '{"type": "object", "properties": {"a b": {}}}',
        '{"type": "object", "properties": {"a\\u202eb": {}}}',
        '{"type": "object", "properties": {"a": {"description": "x\\u202ey"}}}',
        '{"type": "object", "properties": {"a": {"$ref": "http://evil.test/schema"}}}',
        '{"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}',
        '{"type": "object", "properties": {"a": {"$ref": "#"}}}',
        '{"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}',
        '{"type": "object", "$defs": {"b": {"$ref": "#/$defs/b"}}}',
        '{"type": "object", "$defs": {"b": {"not": {"$ref": "#/$defs/c"}}, "c": {"items": {"$ref": "#/$defs/b"}}}}',
        '{"type": "object", "properties": {"a": {"pattern": "(a+)+$"}}}',
        '{"type": "object", "properties": {"a": {"anyOf": [{"patternProperties": {}}]}}}',
        '{"type": "object", "properties": {"a": {"$dynamicRef": "#x"}}}',
        '{"type": "object", "unevaluatedProperties": false}',
        '{"type": "object", "properties": {"a": {"unevaluatedItems": false}}}',
        '{"type": "object", "$defs": {"a": {"uniqueItems": true}}}',
        '{"type": "object", "$id": "http://evil.test/"}',
        '{"type": "object", "$schema": "http://evil.test/"}',
        '{"type": "object", "minimum": ' + "9" * 5000 + "}",
        '{"type": "object", "description": "' + "x" * (16 << 10) + '"}',
        '{"type": "object", "not": ' + '{"not": ' * 100 + "{}" + "}" * 101,
        '{"type": "object", "not": ' + '{"not":' * 2000 + "{}" + "}" * 2001,
    ],
)  # fmt: skip
def test_schemas_that_are_refused(schema: str) -> None:
    message = proper()
    message.functions[1].parameters_schema = schema
    with pytest.raises(ModuleFault, match=r"refused at functions\.1"):
        read(message)


def test_references_that_multiply_are_refused() -> None:
    """Twenty small definitions, each naming the next one twice, would be a million parts."""
    definitions = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(20)}
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/d0"}},
        "$defs": {**definitions, "d20": {}},
    }
    message = proper()
    message.functions[1].parameters_schema = json.dumps(schema)
    with pytest.raises(ModuleFault, match="more than 2000 parts"):
        read(message)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"type": "integer"}}},
        {"type": "object", "properties": {"pattern": {"type": "string"}, "id": {"default": {"$ref": "x"}}}},
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["a"],
            "properties": {"a": {"enum": [1, None]}},
        },
        {"type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema"},
    ],
)
def test_schemas_that_are_let_through(schema: dict[str, JSON]) -> None:
    message = proper()
    message.functions[1].parameters_schema = json.dumps(schema)
    read(message)


@given(st.binary(max_size=300))
def test_garbage_is_the_modules_fault_and_nothing_else(data: bytes) -> None:
    with pytest.raises(ModuleFault):
        Manifest.from_proto(data)


@given(st.binary(max_size=8), st.integers(min_value=0, max_value=600))
def test_a_damaged_manifest_is_read_or_the_modules_fault(damage: bytes, at: int) -> None:
    good = proper().SerializeToString()
    try:
        manifest = Manifest.from_proto(good[:at] + damage + good[at + len(damage) :])
    except ModuleFault:
        return
    assert Manifest.from_json(manifest.to_json()) == manifest
