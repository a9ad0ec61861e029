"""The law of prefixes itself: it lets a compression pass, and nothing that only looks like one."""

from __future__ import annotations

from itertools import pairwise

import pytest

from iact.core.language.labels import SUMMARIZE, compressed
from tests.prefix import Messages, prefix_law

KEY = ("model", "/")
SYSTEM = ("system", "Static.")
FIRST = ("user", "You are agent /.")
CUT = ("user", f"{FIRST[1]}\n\n{compressed('What was.')}")
TURNS = tuple((role, f"{role} {turn}") for turn in range(4) for role in ("assistant", "user"))
REPLY = ("assistant", "The newest reply.")
NEWEST = ("user", "A new input.")
BEFORE = (SYSTEM, FIRST, *TURNS)
ASKED = (*BEFORE[:-1], ("user", SUMMARIZE))


def law(*contexts: Messages) -> int:
    return prefix_law([(KEY, context) for context in contexts])


def test_contexts_that_grow_at_their_end_pass() -> None:
    contexts = [BEFORE[:length] for length in (2, 4, 6, 8)]
    assert law(*contexts) == 3
    for before, now in pairwise(contexts):
        with pytest.raises(AssertionError):
            law(now, before)


@pytest.mark.parametrize("kept", [1, 3])
def test_a_cut_keeps_the_last_turns_and_the_reply_to_them(kept: int) -> None:
    law(BEFORE, (SYSTEM, CUT, *BEFORE[len(BEFORE) - kept + 1 :], REPLY, NEWEST))
    law(ASKED, (SYSTEM, CUT, *BEFORE[-kept - 1 : -1], NEWEST))


@pytest.mark.parametrize(
    "kept",
    [
        (("assistant", "assistant 1"), ("user", "user 3"), REPLY),
        (("assistant", "assistant 3"), ("user", "user 1"), REPLY),
        (("assistant", "invented"), ("user", "invented"), REPLY),
        (("user", "user 3"),),
        (("user", "invented"), REPLY),
    ],
)
def test_a_cut_that_keeps_something_else_breaks_the_law(kept: Messages) -> None:
    with pytest.raises(AssertionError):
        law(BEFORE[:-1], (SYSTEM, CUT, *kept, NEWEST))


def test_a_cut_that_was_asked_for_keeps_only_what_stood_there() -> None:
    with pytest.raises(AssertionError):
        law(ASKED, (SYSTEM, CUT, REPLY, NEWEST))


def test_a_first_message_stays_through_a_cut() -> None:
    other = ("user", CUT[1].replace("agent /.", "agent /a."))
    with pytest.raises(AssertionError):
        law(BEFORE, (SYSTEM, other, REPLY, NEWEST))
