"""Variables inside of a JSON argument: read where they stand, and never taken for text or the other way round."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.language.actions import ActionSpec
from iact.core.language.grammar import Bound, Mistake, bind, split
from iact.core.language.nested import parameter_of, put_in, read
from iact.core.language.variables import text_value
from iact.core.ports import JSON

TABLE = {"a": text_value("first"), "b": text_value("second")}
CONTENT: JSON = {
    "type": "object",
    "additionalProperties": {"type": "string", "contentMediaType": "application/octet-stream"},
}
SPEC = ActionSpec(
    "t.f",
    "",
    parameters={
        "type": "object",
        "properties": {
            "names": CONTENT,
            "query": {"type": "object"},
            "list": {"type": "array"},
            "text": {"type": "string"},
            "stdin": {"type": "string"},
        },
    },
)


def bound(info: str) -> Bound | Mistake:
    taken = split(info)
    return taken if isinstance(taken, Mistake) else bind(SPEC, taken[1], None, TABLE)


@pytest.mark.parametrize(
    ("info", "arguments", "attached"),
    [
        ('names={"df": $a}', {"names": {"df": None}}, {"/names/df": "a"}),
        ('names={"df": "$a"}', {"names": {"df": None}}, {"/names/df": "a"}),
        ('names={"x": $a, "y": $b} text=z', {"names": {"x": None, "y": None}, "text": "z"}, {"/names/x": "a", "/names/y": "b"}),
        ('query={"deep": [1, {"in/side": $a}]}', {"query": {"deep": [1, {"in/side": None}]}}, {"/query/deep/1/in~1side": "a"}),
        ('query={"sum": "$a"}', {"query": {"sum": "$a"}}, {}),
        ('list=[$a,$b,"$a"]', {"list": [None, None, "$a"]}, {"/list/0": "a", "/list/1": "b"}),
        ('names={"note": "costs $a and more"}', {"names": {"note": "costs $a and more"}}, {}),
        ('text={"df":"$a"}', {"text": '{"df":"$a"}'}, {}),
        ('names={"df": "\\u0000a"}', {"names": {"df": "\0a"}}, {}),
    ],
)  # fmt: skip
def test_what_is_a_variable(info: str, arguments: dict[str, JSON], attached: dict[str, str]) -> None:
    found = bound(f"t.f {info}")
    assert isinstance(found, Bound), found
    assert dict(found.arguments) == arguments
    assert dict(found.attached) == {name: TABLE[one] for name, one in attached.items()}


@pytest.mark.parametrize(
    ("info", "sentence"),
    [
        ('names={"df": $c}', "parameter `names` names the variable $c, which you don't have"),
        ('names={"df": "$c"}', "parameter `names` names the variable $c, which you don't have"),
        ('names={"df": $a', "can't be read"),
        ('names={"df": $a $b}', "can't be read"),
        ('names={"df": $a, "x": "\\u0000a"}', "can't be read"),
        ("names=[$a]", "parameter `names` expects object"),
        ("words=$a", "it has no parameter `words`; to pass the variable, write stdin=$a"),
    ],
)
def test_what_is_refused_in_words(info: str, sentence: str) -> None:
    found = bound(f"t.f {info}")
    assert isinstance(found, Mistake)
    assert sentence in found.sentence


def test_before_format_1_3_it_was_a_mistake() -> None:
    assert isinstance(split('t.f names={"df": $a}', nested=False), Mistake)


def test_no_argument_names_more_than_a_bounded_number() -> None:
    many = ", ".join("$a" for _ in range(33))
    assert read(f"[{many}]") is None


keys = st.text(max_size=4)
trees = st.recursive(
    st.just("$a") | st.integers(0, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
).filter(lambda value: isinstance(value, (list, dict)))


@given(trees)
def test_what_is_taken_out_can_be_put_back(value: JSON) -> None:
    found = read(json.dumps(value), quoted=True)
    if found is None:
        return  # a key that holds a NUL
    whole = put_in({"p": found.value}, {f"/p{pointer}": f"${name}" for pointer, name in found.names.items()})
    assert whole == {"p": value}
    assert all(parameter_of(f"/p{pointer}") == "p" for pointer in found.names)
