"""The layouts that the tail benchmark compares are what they are called; the numbers are the benchmark's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from benchmarks.tail.layouts import CHILDREN, LAYOUTS, STATIC, conversation
from benchmarks.tail.product import play
from iact.core.ports import ChatMessage

TURNS = [replace(turn, reply=f"Reply {number}.") for number, turn in enumerate(conversation(12))]


def contexts(name: str) -> list[list[ChatMessage]]:
    return [LAYOUTS[name](TURNS[: number + 1]) for number in range(len(TURNS))]


def shared(name: str) -> list[int]:
    """How many whole messages each context shares with the next one."""
    return [
        next((index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
        for one, other in pairwise(contexts(name))
    ]


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_holds_prompt_input_and_state(name: str) -> None:
    for turn, context in zip(TURNS, contexts(name), strict=True):
        assert [message.role for message in context[:2]] == ["system", "user"]
        assert context[-1].content.startswith(turn.input)
        assert STATIC in context[0].content
        state = turn.changes if name == "changes appended" else turn.whole
        assert any(state in message.content for message in context)


@pytest.mark.parametrize("name", ["changes appended", "at the end, kept"])
def test_where_nothing_is_dropped_a_context_is_a_prefix_of_the_next(name: str) -> None:
    assert shared(name) == [len(context) for context in contexts(name)[:-1]]


def test_a_dropped_tail_changes_the_last_message() -> None:
    assert shared("at the end, dropped") == [
        len(context) - 1 for context in contexts("at the end, dropped")[:-1]
    ]


@pytest.mark.parametrize("name", ["in the middle", "in front"])
def test_elsewhere_nothing_whole_is_shared(name: str) -> None:
    assert shared(name) == [0] * (len(TURNS) - 1)


def test_changes_add_up_to_the_whole_block() -> None:
    told = " ".join(turn.changes for turn in TURNS)
    listed = TURNS[-1].whole.split("variables: ")[1].split("; ")[0]
    assert all(variable in told for variable in listed.split("), "))
    assert TURNS[-1].whole.split("directory: ")[1].split(";")[0] in told
    assert sum(len(turn.changes) for turn in TURNS) < 0.5 * sum(len(turn.whole) for turn in TURNS)


def test_children_begin_where_they_say() -> None:
    own, plain, forked = (build(0, TURNS) for build in CHILDREN.values())
    assert not own[0].content.startswith(STATIC)
    assert plain[0].content == STATIC
    assert forked[: len(forked) - 2] == LAYOUTS["changes appended"](TURNS)


def test_the_product_plays_its_session_as_the_layout_that_is_built() -> None:
    contexts: list[list[ChatMessage]] = []

    async def say(messages: Sequence[ChatMessage]) -> str:
        contexts.append(list(messages))
        return "I looked at the ``file``."

    blocks = asyncio.run(play(say, 12))
    assert [len(context) for context in contexts] == [2 * turn for turn in range(1, 13)]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(contexts))
    assert contexts[0][0].content == STATIC
    assert len(blocks) == 12
    assert all(told.startswith("\n\n(state) time: ") for told, _ in blocks)
    assert blocks[0][0] == blocks[0][1]
    assert all("variables: $run_" in whole and len(told) < len(whole) for told, whole in blocks[2:])
