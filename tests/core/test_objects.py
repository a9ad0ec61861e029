"""Objects are found in what models write; the search never raises and is linear."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.objects import objects
from iact.core.ports import JSON

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS: st.SearchStrategy[dict[str, JSON]] = st.dictionaries(TEXTS, VALUES, max_size=4)
PROSE = st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]), max_size=30).filter(
    lambda text: "<" not in text
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('Sure!\n```json\n{"a": 1}\n```\nThat is it.', [{"a": 1}]),
        ('{"a": [1, 2,], "b": 3,}', [{"a": [1, 2], "b": 3}]),
        ('{"a": 1,, "b": 2}', [{"a": 1, "b": 2}]),
        ("{'a': 'x', 'b': True, 'c': None}", [{"a": "x", "b": True, "c": None}]),
        ("{'a': 'it doesn't matter', 'b': 1}", [{"a": "it doesn't matter", "b": 1}]),
        ("{“a”: “x”}", [{"a": "x"}]),
        ("{verdict: approve, score: .5}", [{"verdict": "approve", "score": 0.5}]),
        ('{"a": "two\nlines"}', [{"a": "two\nlines"}]),
        ('{"a": 1, // one\n /* two */ "b": 2 # three\n}', [{"a": 1, "b": 2}]),
        ('{"a": "C:\\dir \\"q\\" \\u00e9\\n"}', [{"a": 'C:\\dir "q" é\n'}]),
        ('x {"a": "\\ud83d\\ude00"}', [{"a": "😀"}]),
        ('Use {name} and {x: 1}, then {"a": 2}.', [{"x": 1}, {"a": 2}]),
        ('<think>maybe {"a": 1}?</think>{"a": 2}', [{"a": 2}]),
        ('{"a": {"b": {"c": []}}} {"d": 1}', [{"a": {"b": {"c": []}}}, {"d": 1}]),
        ("[1, 2]", []),
        ("nothing here", []),
        ("", []),
    ],
)
def test_what_was_meant_is_found(text: str, found: list[JSON]) -> None:
    assert list(objects(text)) == found


@pytest.mark.parametrize(
    "text",
    [
        '{"verdict": "approve", "reason": "it is',
        '{"verdict": {"inner": 1}, "reason": {"verdict": "approve"}',
        '{"draft": {"verdict": "approve"}',
        '{"a": 1 "b": 2}',
        '{"a": 1; "b": 2}',
        '{"a": }',
        '{"a": [null, {}',
    ],
)
def test_an_object_that_is_cut_off_or_broken_is_none_nor_are_its_parts(text: str) -> None:
    assert list(objects(text)) == []


@given(OBJECTS, PROSE, PROSE)
def test_proper_json_is_read_as_json_reads_it(value: dict[str, JSON], before: str, behind: str) -> None:
    text = json.dumps(value)
    assert list(objects(text)) == [json.loads(text)]
    assert list(objects(f"{before}{text}{behind}")) == [json.loads(text)]


@given(OBJECTS.filter(bool), st.data())
def test_what_is_cut_off_gives_nothing(value: dict[str, JSON], data: st.DataObject) -> None:
    text = json.dumps(value)
    assert list(objects(text[: data.draw(st.integers(0, len(text) - 1))])) == []


@given(st.text(st.sampled_from("{}[]:,'\"“”\\/*# \nab1-.eu") | st.characters(), max_size=200))
def test_never_raises(text: str) -> None:
    for found in objects(text):
        assert isinstance(found, dict)


@pytest.mark.parametrize(
    "unit",
    ["{", "{a", '{"a":', '{"', "{'", '{"a":{', "{[", "{a:[", "{a:'", "{/*", "{'a' ", "' ", "{1", "<think>"],
)
def test_is_linear(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        return min(_timed(text) for _ in range(3))

    small, large = seconds(4_000), seconds(32_000)
    assert large < 0.02 + 24 * small, "eight times the text, at most three times eight times the time"


def _timed(text: str) -> float:
    began = time.process_time()
    for _ in objects(text):
        pass
    return time.process_time() - began


def test_depth_and_length_are_bounded() -> None:
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    assert all("a" in found for found in objects(deep))
    assert list(objects('{"a":' * 60 + "1," + "}" * 60))
    assert not list(objects('{"a":' * 70 + "1," + "}" * 5))
    assert list(objects("x{a: " + "9" * 5000 + "}")) == []


@pytest.mark.parametrize("unit", ["{[", '{"a', "{a: 1, ", "{'a': [", "{{", '{"a": 1,, ', "{/**/", "{a:{b:"])
def test_a_long_text_is_read_as_strict_json_or_not_at_all(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading it with tolerance would take seconds, in which nothing else happens."""

    def refuse(*_: object) -> None:
        raise AssertionError("it is read with tolerance")

    monkeypatch.setattr("iact.core.objects._Reader", refuse)
    text = unit * (2_000_000 // len(unit))
    assert list(objects(text)) == []
    value: dict[str, JSON] = {"answer": "word " * 20_000}
    assert list(objects(json.dumps(value))) == [value]
    assert list(objects(f"It is this:\n{json.dumps(value)}\n{text}")) == [value]
