"""A reply is shown in the pieces that the interpreter made of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iact.core.language.scanner import scan
from iact.core.views.text import ActionBlock, calls, looks_like_action, mentions, pieces

LINES = st.lists(
    st.sampled_from(
        [
            "Prose.",
            "",
            "```CALL ann\nDo it.",
            "```",
            "```python\nx = 1",
            "~~~WAIT",
            "~~~",
            "```shell.run\nls",
            "> ```CALL b",
        ]
    ),
    max_size=12,
).map("\n".join)


@given(LINES)
def test_the_actions_are_those_that_the_scanner_finds(text: str) -> None:
    blocks = [block for block in scan(text, looks_like_action).blocks if block.action]
    found = [one for one in pieces(text) if isinstance(one, ActionBlock)]
    assert [(one.index, one.body) for one in found] == [(n, block.body) for n, block in enumerate(blocks)]
    assert [f"{one.name} {one.arguments}".strip() for one in found] == [
        block.info.strip() for block in blocks
    ]


@given(LINES)
def test_prose_is_what_is_left(text: str) -> None:
    rest, position = [], 0
    for block in scan(text, looks_like_action).blocks:
        if block.action:
            rest.append(text[position : block.start])
            position = block.end
    rest.append(text[position:])
    assert [one for one in pieces(text) if isinstance(one, str)] == [one for one in rest if one.strip()]


def test_a_call_says_to_whom() -> None:
    text = '```CALL ann intent=0\nLook.\n```\n\n```WAIT\n```\n\n```CALL_ASYNC name=bob message="Go on."\n```\n\n```CALL "\n```'
    assert [(one.index, one.to, one.message) for one in calls(text)] == [
        (0, "ann", "Look."),
        (2, "bob", "Go on."),
    ]
    assert calls("No action is here.") == []


def test_aliases_of_functions_are_known_to_their_session_alone() -> None:
    text = "```plot\nx\n```"
    assert pieces(text) == [text]
    (block,) = pieces(text, lambda word: word == "plot")
    assert isinstance(block, ActionBlock)


def test_variables_that_a_text_mentions() -> None:
    assert mentions("$b and $a, $b, $c, $abc", ["a", "b"]) == ["b", "a"]
    assert mentions("nothing", {"nothing": 1}) == []
