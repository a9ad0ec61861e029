"""Recorded calls written in iact's language and read back, tested on made-up calls: the recorded ones are not here."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from benchmarks.language.__main__ import NESTED, TWICE, WORDS, main, measure, read
from benchmarks.language.written import (
    WAYS,
    Call,
    acts,
    block,
    given,
    nested,
    pieces,
    registry,
    scanned,
    specs,
)
from iact.core.language.grammar import Mistake
from iact.core.ports import JSON

CALLS: list[tuple[str, dict[str, JSON]]] = [
    ("send", {"to": ["ann@example.com"], "subject": 'He said "no" \\ yes', "body": "Dear Ann,\n\n```\nls\n```\n"}),
    ("send", {"to": [], "subject": "two\nlines, with `code`", "body": "short", "copy": None}),
    ("pay", {"amount": 1.5, "sure": True, "why": {"text": "`rent`", "of": ["May", 5]}}),
    ("pay", {"amount": 12, "sure": False, "why": {}}),
    ("look", {}),
]  # fmt: skip


def write(folder: Path, calls: list[tuple[str, dict[str, JSON]]], answer: str) -> None:
    run = {"calls": [{"function": name, "args": args} for name, args in calls], "answer": answer}
    with gzip.open(folder / "made.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.write(json.dumps(run) + "\n")


def test_every_call_comes_back_from_every_way_of_writing_and_nothing_else_acts(tmp_path: Path) -> None:
    write(tmp_path, CALLS, "It is done:\n\n```json\n{}\n```\n\n> ```recorded.look\n> ```")
    found = measure(read(tmp_path), seed=1)
    assert found.turns == found.right
    assert not found.other.total()
    assert dict(found.turns) == {**dict.fromkeys((*WAYS, TWICE), len(CALLS)), NESTED: 1, WORDS: 1}


def test_the_places_where_a_turn_is_cut_change_nothing() -> None:
    call = given(*CALLS[0])
    known, draw = registry(specs([call]).values()), random.Random(1)
    text = WAYS["a draft in `<think>` first"](block(call, specs([call])[call.function]), "{}")
    assert {repr(acts(scanned(pieces(text, draw), known), known)) for _ in range(50)} == {repr([call])}


def test_a_body_may_hold_a_fence_with_a_language_tag_in_a_fence_of_the_same_length() -> None:
    call = given("send", {"body": "a\nb"})
    spec = specs([call])[call.function]
    inside = nested(call, spec)
    assert inside is not None
    assert "\n```python\na\nb\n```\n```" in inside[1]
    assert acts(scanned([inside[1]], registry([spec])), registry([spec])) == [inside[0]]


def test_a_call_that_acts_unasked_is_counted_and_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, CALLS, "Once more:\n\n```recorded.look\n```")
    assert measure(read(tmp_path), seed=1).other == {**dict.fromkeys((*WAYS, TWICE, NESTED), 0), WORDS: 1}
    assert main(["--data", str(tmp_path)]) == 1
    assert f"| {WORDS} | 1 | 0 | 0 | 1 |" in capsys.readouterr().out


def test_a_parameter_that_our_language_cannot_name_is_refused_and_not_another_call() -> None:
    call = Call("recorded.look", {"File Id": "12"})
    spec = specs([call])[call.function]
    [made] = acts(scanned([block(call, spec)], registry([spec])), registry([spec]))
    assert isinstance(made, Mistake)


@pytest.mark.parametrize(
    "content",
    [None, b"no gzip", gzip.compress(b"no JSON"), gzip.compress(b'{"runs": 1}')],
    ids=["nothing", "no gzip", "no JSON", "no runs"],
)
def test_what_is_missing_or_wrong_is_said_in_one_sentence(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "made.jsonl.gz").write_bytes(content)
    with pytest.raises(SystemExit, match=r"^benchmarks\.language: .*\.$"):
        read(tmp_path)
