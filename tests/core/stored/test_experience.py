"""What is counted of this user's sessions, so that `auto` chooses better."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from iact.core.plan.modes.auto import Features
from iact.core.records.dialogue import Choose, Reply
from iact.core.records.parts import Reached, Tokens, Verdict, VerdictBy
from iact.core.records.record import Record
from iact.core.stored.experience import Experience
from iact.core.tree.tree import Tree

LIKE: Final = Features(steps=4, foreseeable=True, depends=False, repeat=True, branches=False)
NOTHING: Final = Tokens(prompt=0, cached=0, completion=0)


def session(
    experience: Experience, *, mode: str = "analyze", reached: Reached = "yes", by: VerdictBy = "judge"
) -> None:
    """Let it see a session in which `auto` chose a way, and how that ended."""
    tree = Tree(strict=False, blobs=lambda digest: b"")
    choose = Choose(of=1, mode=mode, why="", role="fast", model="m", digest="", usage=NOTHING)  # type: ignore[arg-type]
    experience.learn(tree, Record(2, "t", "/", 1, choose, LIKE.model_dump_json()))
    verdict = Verdict(reached=reached, because="", by=by) if mode != "dialogue" else None
    reply = Reply(to="user", status="ok", verdict=verdict)
    experience.learn(tree, Record(3, "t", "/", 2, reply, "Done."))


def test_what_failed_is_counted_once_there_is_enough_and_tried_again_after_dialogues(tmp_path: Path) -> None:
    experience = Experience(tmp_path / "experience.json")
    for _ in range(2):
        session(experience, reached="no")
    assert experience.ways_that_failed() == {}
    session(experience, reached="partly")
    assert experience.ways_that_failed() == {"repeat": 1.0}
    assert experience.rates() == {}, "it is nothing that a profile's calls are rated by"

    experience.keep()
    again = Experience(tmp_path / "experience.json")
    for expected in (0.75, 0.6, 0.5):
        session(again, mode="dialogue")
        assert again.ways_that_failed() == {"repeat": expected}


@pytest.mark.parametrize(("reached", "by"), [("unknown", "nobody"), ("partly", "person")])
def test_what_nobody_judged_or_a_person_stopped_says_nothing(reached: Reached, by: VerdictBy) -> None:
    experience = Experience()
    for _ in range(4):
        session(experience, reached=reached, by=by)
    session(experience, reached="no")
    assert experience.ways_that_failed() == {}
