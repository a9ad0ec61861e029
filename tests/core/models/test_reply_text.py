"""An endpoint's text becomes storable, and reasoning is told from the reply, whatever way it was cut into pieces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.characters import paired
from iact.core.models.reply_text import MARKS, Pairs, ThoughtMark, Thoughts


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


DRAFT = "I could:\n\n```shell.run\nrm -rf .\n```\n\nNo."
ACTION = "```shell.run\nls\n```\n"


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: mark.opening)
@given(sizes)
def test_a_draft_in_any_mark_is_reasoning(mark: ThoughtMark, by: list[int]) -> None:
    opening, closing = mark.opening, mark.closing
    closed = f"{opening}{DRAFT}{closing}{ACTION}"
    assert told(cut(closed, by)) == [(True, DRAFT), (False, ACTION)]
    assert told(cut(closed.upper(), by)) == [(True, DRAFT.upper()), (False, ACTION.upper())]
    assert told(cut(f"{opening}{DRAFT}", by)) == [(True, DRAFT)]
    assert told(cut(f"{opening}{DRAFT}", by), whole=False) == [(True, DRAFT)]
    assert told(cut(f"{DRAFT}\n{closing}{ACTION}", by)) == [(True, f"{DRAFT}\n"), (False, ACTION)]
    assert told(cut(f"{opening}{DRAFT}{closing}{ACTION}", by), marked=True) == [
        (True, DRAFT),
        (False, ACTION),
    ]


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: mark.opening)
@given(sizes)
def test_reasoning_between_texts_is_told_from_them(mark: ThoughtMark, by: list[int]) -> None:
    opening, closing = mark.opening, mark.closing
    text = f"First.\n{opening}{DRAFT}{closing}\nThen.\n {opening}{DRAFT}"
    assert told(cut(text, by)) == [
        (False, "First.\n"),
        (True, DRAFT),
        (False, "\nThen.\n "),
        (True, DRAFT),
    ]


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: mark.opening)
@pytest.mark.parametrize(
    "quoted",
    [
        "```html\n{}\n```\nThat.",
        "~~~~\n```\n{}\n~~~~\nThat.",
        "- so:\n\n  ```\n  {}\n  ```\n",
        "It writes `{}` first.",
        "It writes {} first.",
        "Ends in {}",
    ],
)
@given(sizes)
def test_a_quoted_mark_is_text(mark: ThoughtMark, quoted: str, by: list[int]) -> None:
    text = quoted.format(mark.opening)
    assert told(cut(text, by)) == [(False, text)]


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: mark.opening)
@given(sizes)
def test_nested_reasoning_ends_where_its_first_mark_does(mark: ThoughtMark, by: list[int]) -> None:
    opening, closing = mark.opening, mark.closing
    inner = f"a{opening}b{closing}\n{ACTION}"
    assert told(cut(f"{opening}{inner}{closing}Done.", by)) == [(True, inner), (False, "Done.")]
    assert told(cut(f"{opening}{inner}", by)) == [(True, inner)]
    doubled = f"{opening}\n{opening}\nHm.{closing}Done."
    assert told(cut(doubled, by))[-1] == (False, "Done.")
    mentioned = f"a `{opening}` and '{closing}' b"
    assert told(cut(f"{opening}{mentioned}{closing}Done.", by)) == [(True, mentioned), (False, "Done.")]
    assert told(cut(f"{opening}ends in `code`{closing}Done.", by)) == [
        (True, "ends in `code`"),
        (False, "Done."),
    ]


ANALYSIS = "<|channel|>analysis<|message|>"
FINAL = "<|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"{ANALYSIS}{DRAFT}<|end|>{FINAL}{ACTION}<|return|>", [(True, DRAFT), (False, ACTION)]),
        (f"<|start|>assistant{ANALYSIS}{DRAFT}<|end|>{FINAL}Done.", [(True, DRAFT), (False, "Done.")]),
        (f"{ANALYSIS}{DRAFT}", [(True, DRAFT)]),
        (f"{ANALYSIS}{DRAFT}{FINAL}Done.", [(True, DRAFT), (False, "Done.")]),
        (
            f"First.<|end|><|start|>assistant{ANALYSIS}{DRAFT}<|end|>{FINAL}Done.<|end|>",
            [(False, f"First.<|end|><|start|>assistant{ANALYSIS}{DRAFT}<|end|>{FINAL}Done.<|end|>")],
        ),
        (
            f"{FINAL}First.<|end|><|start|>assistant{ANALYSIS}{DRAFT}<|end|>{FINAL}{ACTION}",
            [(False, "First."), (True, DRAFT), (False, f"\n\n{ACTION}")],
        ),
        (f"{FINAL}```shell.run\nls\n```<|return|>", [(False, "```shell.run\nls\n```")]),
        (f"{FINAL}```\n{ANALYSIS}\n```\n", [(False, f"```\n{ANALYSIS}\n```\n")]),
        ("<|start|>functions.shell.run<|message|>It worked.<|end|>", [(True, "It worked.")]),
        (
            '<|channel|>commentary to=functions.shell.run <|constrain|>json<|message|>{"script": "ls"}<|call|>',
            [(False, '<tool_call>\n{"name": "shell.run", "arguments": {"script": "ls"}}\n</tool_call>\n')],
        ),
        ("<|channel|>final<|mess", [(True, "<|channel|>final<|mess")]),
        ("<|channel|>" + "x" * 400 + f"{FINAL}Done.", [(True, "x" * 400), (False, "Done.")]),
    ],
)
@given(sizes)
def test_only_the_last_channel_of_the_harmony_format_is_the_reply(
    text: str, wanted: list[tuple[bool, str]], by: list[int]
) -> None:
    assert told(cut(text, by)) == wanted


WORDS = [word for mark in MARKS for word in (mark.opening, mark.closing)]
HARMONY = ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "final", "analysis", "to=functions.x"]
PARTS = st.sampled_from([*WORDS, *HARMONY, "a", " ", "\n", "```", "`", "'", "<", "["])


@given(st.lists(PARTS, max_size=12).map("".join), st.booleans(), st.booleans(), sizes)
def test_the_pieces_of_a_text_change_nothing(text: str, unmarked: bool, whole: bool, by: list[int]) -> None:
    assert told(cut(text, by), unmarked=unmarked, whole=whole) == told([text], unmarked=unmarked, whole=whole)


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
