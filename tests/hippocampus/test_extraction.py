"""What is worth remembering of what happened, and for whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from iact.core.ports import MemoryEvent
from iact.hippocampus.extraction import PASSAGE, fragments_of, is_preference, passages
from tests.hippocampus.fakes import say, told


def kinds(event: MemoryEvent) -> list[tuple[str, str, str]]:
    return [(one.kind, one.scope.kind, one.text) for one in fragments_of(event, "u")]


def test_the_first_message_is_the_goal_and_its_wishes_stand_alone() -> None:
    assert kinds(say("s", 2, "Build a web shop for my bakery. Please always use German.", first=True)) == [
        ("goal", "user", "Build a web shop for my bakery."),
        ("preference", "user", "Please always use German."),
    ]


def test_a_goal_that_is_a_wish_stays_a_goal() -> None:
    text = "From now on I want you to plan my holidays."
    assert kinds(say("s", 2, text, first=True)) == [("goal", "user", text), ("preference", "user", text)]


@pytest.mark.parametrize(
    ("event", "kind", "scope"),
    [
        (say("s", 3, "My server has two disks."), "fact", "user"),
        (told("s", 3, "The disk is full.", occasion="reply"), "result", "session"),
        (told("s", 3, "The disk is full.", occasion="reply", agent="/", project="p"), "result", "project"),
        (
            told("s", 3, "shell.run failed: no space left", occasion="failure", project="p"),
            "lesson",
            "project",
        ),
        (told("s", 3, "No, use the second disk.", occasion="correction"), "lesson", "user"),
        (told("s", 3, "We talked about disks.", occasion="cut"), "result", "session"),
        (told("s", 3, "The port is 80.", kind="lesson"), "lesson", "user"),
        (told("s", 3, "The port is 80.", project="p"), "fact", "project"),
        (told("s", 3, "We call it Halden.", kind="decision", project="p"), "decision", "project"),
        (told("s", 3, "No names.", kind="preference", scope="project", project="p"), "preference", "project"),
        (told("s", 3, "No names.", kind="preference", scope="session"), "preference", "session"),
        (
            told("s", 3, "We call it Halden.", kind="decision", scope="person", project="p"),
            "decision",
            "user",
        ),
        (told("s", 3, "We call it Halden.", kind="decision", scope="project"), "decision", "session"),
        (told("s", 3, "It is 80.", untrusted=("tool:web",), scope="person", project="p"), "fact", "project"),
        (told("s", 3, "It is 80.", untrusted=("tool:web",), scope="session", project="p"), "fact", "session"),
        (told("s", 3, "The port is 80.", untrusted=("tool:web",)), "fact", "session"),
        (told("s", 3, "I prefer port 80.", untrusted=("tool:web",), kind="preference"), "fact", "session"),
        (told("s", 3, "The port is 80.", untrusted=("tool:web",), project="p"), "fact", "project"),
    ],
)
def test_kind_and_scope(event: MemoryEvent, kind: str, scope: str) -> None:
    assert [one[:2] for one in kinds(event)] == [(kind, scope)]


def test_labels_and_origin_stay() -> None:
    (one,) = fragments_of(told("s", 3, "The port is 80.", untrusted=("tool:web",), agent="/a/b"), "u")
    assert (one.id, one.agent, one.record, one.untrusted) == ("s/3", "/a/b", 3, ("tool:web",))


@pytest.mark.parametrize(
    "text", ["I prefer tea", "Please never use tabs.", "My favourite colour is blue", "Call me Bo"]
)
def test_preferences(text: str) -> None:
    assert is_preference(text)


@pytest.mark.parametrize(
    "text", ["Do I like tea?", "What is always true", "The tests never end", "List the files"]
)
def test_no_preferences(text: str) -> None:
    assert not is_preference(text)


@given(some.text(max_size=3000))
def test_passages_are_short_and_hold_words(text: str) -> None:
    found = passages(text)
    assert all(0 < len(one) <= PASSAGE for one in found)
    assert (
        bool(found) == any(character.isalnum() or character == "_" for character in text)
        or len(text) > PASSAGE
    )


@given(
    some.text(max_size=200), some.sampled_from(["say", "remember", "reply", "failure", "correction", "cut"])
)
def test_ids_are_unique_and_the_same_each_time(text: str, occasion: str) -> None:
    for known in ("say", "remember", "reply", "failure", "correction", "cut"):
        if known == occasion:
            found = fragments_of(told("s", 3, text, occasion=known), "u")
            assert len({one.id for one in found}) == len(found)
            assert found == fragments_of(told("s", 3, text, occasion=known), "u")
