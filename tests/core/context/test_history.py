"""A history only grows, and its running digest is the digest over all of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.context.history import History, prompt_digest
from iact.core.context.prompt import STANDARD
from iact.core.context.tokens import estimate
from iact.core.ports import ChatMessage, StaticPrompt

speakers = st.sampled_from(["system", "user", "assistant"])
messages = st.builds(ChatMessage, speakers, st.text(max_size=40))
prompts = st.builds(StaticPrompt, st.text(max_size=20), st.lists(messages, max_size=2).map(tuple))


def whole(some: Sequence[ChatMessage]) -> str:
    """The digest of a context, computed from nothing."""
    parts = [(one.role, one.content.encode("utf-8", "surrogatepass")) for one in some]
    return hashlib.sha256(
        b"".join(b"%s %d\n%s" % (role.encode(), len(text), text) for role, text in parts)
    ).hexdigest()[:16]


@given(prompts, st.lists(messages, max_size=6), st.lists(messages, max_size=2))
def test_the_running_digest_is_the_digest_of_the_whole(
    static: StaticPrompt, some: list[ChatMessage], newest: list[ChatMessage]
) -> None:
    history = History(static)
    for one in some:
        history.digest(newest)  # asking changes nothing
        history.push(one)
    start = [ChatMessage("system", static.system), *static.examples]
    assert list(history.messages()) == start + some
    assert history.digest(newest) == whole([*start, *some, *newest])
    assert prompt_digest(static) == whole(start)


@given(prompts, st.lists(st.tuples(messages, messages), max_size=6))
def test_every_context_without_its_newest_message_is_a_prefix_of_the_next(
    static: StaticPrompt, turns: list[tuple[ChatMessage, ChatMessage]]
) -> None:
    history, contexts = History(static), list[list[ChatMessage]]()
    for said, answered in turns:
        contexts.append(history.context(ChatMessage(said.role, said.content + "\n\n(state) time: now")))
        history.push(said)
        history.push(answered)
    for earlier, later in pairwise(contexts):
        assert later[: len(earlier) - 1] == earlier[:-1]
        assert later[len(earlier) - 1].content == earlier[-1].content.removesuffix("\n\n(state) time: now")


@given(st.lists(messages, max_size=4), st.lists(messages, max_size=4))
def test_different_contexts_have_different_digests(one: list[ChatMessage], other: list[ChatMessage]) -> None:
    assert (History(STANDARD).digest(one) == History(STANDARD).digest(other)) is (one == other)


def test_messages_cannot_borrow_from_each_other() -> None:
    joined = [ChatMessage("user", "a"), ChatMessage("user", "b")]
    history = History(StaticPrompt("s"))
    assert history.digest(joined) != history.digest([ChatMessage("user", "auser 1\nb")])
    assert history.digest(joined) != history.digest([ChatMessage("user", "ab")])
    assert history.digest([ChatMessage("user", "a")]) != history.digest([ChatMessage("assistant", "a")])


def test_a_context_that_was_handed_out_does_not_grow() -> None:
    history = History(StaticPrompt("s"))
    context = history.context(ChatMessage("user", "hello"))
    history.push(ChatMessage("user", "hello"))
    assert [one.content for one in context] == ["s", "hello"]
    assert len(history) == 2


def test_a_copy_goes_its_own_way() -> None:
    first = History(StaticPrompt("s"))
    second = first.copy()
    second.push(ChatMessage("user", "x"))
    assert (len(first), len(second)) == (1, 2)
    assert first.digest([ChatMessage("user", "x")]) == second.digest(())
    assert second.tokens > first.tokens


@pytest.mark.parametrize("keep", [1, 3, 5])
def test_a_cut_history_is_static_prompt_first_message_and_the_last_ones(keep: int) -> None:
    static = StaticPrompt("s", (ChatMessage("user", "q"), ChatMessage("assistant", "a")))
    history = History(static)
    for at in range(10):
        history.push(ChatMessage("user" if at % 2 == 0 else "assistant", str(at)))
    first = ChatMessage("user", "first and summary")
    cut = history.cut(first, keep)
    assert cut is not None
    expected = [ChatMessage("system", "s"), *static.examples, first, *history.messages()[-keep:]]
    assert list(cut.messages()) == expected
    assert cut.digest(()) == whole(expected)
    assert len(history) == 13


def test_nothing_is_cut_where_nothing_would_be_gained() -> None:
    history = History(StaticPrompt("s"))
    for at in range(4):
        history.push(ChatMessage("user" if at % 2 == 0 else "assistant", str(at)))
    assert history.cut(ChatMessage("user", "f"), 3) is None


def test_the_static_prompt_keeps_its_budget_and_names_nothing_that_changes() -> None:
    assert estimate(STANDARD.system) < 1200
    assert not re.search(r"20\d\d-|\bUTC\b|/tmp|/home", STANDARD.system)
