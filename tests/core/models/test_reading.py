"""An endpoint's text becomes storable, and reasoning is told from the reply, whatever way it was cut into pieces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.characters import paired
from core.models.reading import Pairs, Thoughts


def cut(text: str, sizes: Sequence[int]) -> list[str]:
    """The text in pieces of these sizes, over and over."""
    pieces: list[str] = []
    at = 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    return pieces


def told(pieces: Sequence[str]) -> list[tuple[bool, str]]:
    """What was thought and what was said, in order."""
    reader = Thoughts()
    found = [one for piece in pieces for one in reader.feed(piece)] + [*reader.end()]
    return [
        (key, "".join(one.text for one in group)) for key, group in groupby(found, lambda one: one.thought)
    ]


sizes = st.lists(st.integers(1, 7), min_size=1, max_size=5)


@given(st.text(st.sampled_from("a\ud83d\ude00\U0001f600é"), max_size=20), sizes)
def test_halves_are_put_together_or_replaced(text: str, by: list[int]) -> None:
    pairs = Pairs()
    found = "".join([*map(pairs.feed, cut(text, by)), pairs.end()])
    assert found == paired(text)
    assert found.encode("utf-8").decode("utf-8") == found


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Plain.", [(False, "Plain.")]),
        ("<think>Hm.</think>Done.", [(True, "Hm."), (False, "Done.")]),
        ("\n <THINK>Hm.</Think>\n\nDone.", [(True, "Hm."), (False, "\n\nDone.")]),
        ("<think>a < b </thin </think><thinking>c</thinking>d", [(True, "a < b </thin c"), (False, "d")]),
        ("<think>It was cut off", [(True, "It was cut off")]),
        ("<thin", [(False, "<thin")]),
        ("<thin air>", [(False, "<thin air>")]),
        ("Say <think>no</think>", [(False, "Say <think>no</think>")]),
        ("", []),
        ("  ", [(False, "  ")]),
    ],
)
@given(sizes)
def test_reasoning_before_the_reply_is_told_from_it(
    text: str, wanted: list[tuple[bool, str]], by: list[int]
) -> None:
    assert told(cut(text, by)) == wanted
