"""An endpoint's text becomes storable, and reasoning is told from the reply, whatever way it was cut into pieces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.characters import paired
from iact.core.models.reply_text import Pairs, Thoughts


def cut(text: str, sizes: Sequence[int]) -> list[str]:
    """The text in pieces of these sizes, over and over."""
    pieces: list[str] = []
    at = 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    return pieces


def told(
    pieces: Sequence[str], *, unmarked: bool = False, whole: bool = True, marked: bool = False
) -> list[tuple[bool, str]]:
    """What was thought and what was said, in order. `marked`: the endpoint then says that it tells reasoning apart."""
    reader = Thoughts(unmarked=unmarked)
    came = [one for piece in pieces for one in reader.feed(piece)]
    came += [*(reader.marked() if marked else ()), *reader.end(whole=whole)]
    starts = [at for at, one in enumerate(came) if one.recast]
    found = [one for one in came[starts[-1] if starts else 0 :] if one.text]
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
        ("Hm.\n\n```\nx\n```\n</think>\nDone.", [(True, "Hm.\n\n```\nx\n```\n"), (False, "\nDone.")]),
        ("Hm.\n</think>\n<think>More.</think>Done", [(True, "Hm.\nMore."), (False, "Done")]),
        ("</think>\n\nDone.", [(False, "\n\nDone.")]),
        ("```md\n</think>\n```\nThat.", [(False, "```md\n</think>\n```\nThat.")]),
        ("<think>a</think>b\n</think>c", [(True, "a"), (False, "b\n</think>c")]),
        ("It ends </th", [(False, "It ends </th")]),
        ("", []),
        ("  ", [(False, "  ")]),
    ],
)
@given(sizes)
def test_reasoning_before_the_reply_is_told_from_it(
    text: str, wanted: list[tuple[bool, str]], by: list[int]
) -> None:
    assert told(cut(text, by)) == wanted


@pytest.mark.parametrize(
    ("text", "whole", "marked", "wanted"),
    [
        ("Hm. </think>Done.", True, False, [(True, "Hm. "), (False, "Done.")]),
        (" <think>Hm.</think>Done.", True, False, [(True, "Hm."), (False, "Done.")]),
        ("It was the reply.", True, False, [(False, "It was the reply.")]),
        ("It was cut off", False, False, [(True, "It was cut off")]),
        ("It was the reply.", True, True, [(False, "It was the reply.")]),
        ("", True, False, []),
    ],
)
@given(sizes)
def test_reasoning_whose_beginning_is_not_marked_is_expected(
    text: str, whole: bool, marked: bool, wanted: list[tuple[bool, str]], by: list[int]
) -> None:
    assert told(cut(text, by), unmarked=True, whole=whole, marked=marked) == wanted
