"""An editor's conversation with a session: questions that take words are answered by the next prompt, and changed
files come with their places and texts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from acp.schema import (
    AgentMessageChunk,
    AllowedOutcome,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    DeniedOutcome,
    FileEditToolCallContent,
    PermissionOption,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
)

from iact.core.ports import JSON
from iact.core.records.forms import FormAnswer
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.faces.acp.conversation import Conversation
from iact.faces.acp.prompt import Prompt
from iact.faces.acp.updates import Update
from tests.core.session import plan_scenes
from tests.core.session.fakes import replies
from tests.core.session.live_fakes import Overlays, does, live_runtime
from tests.core.session.test_plans import PAINTER

ASKS_PERSON: Final = {
    "A helper asks something": '{"ask_person": true}',
    "A step failed.": "{}",
    "Plan the": "no",
}


@dataclass
class Screen:
    """A client that shows what it is sent. `choose`: the option that its user takes for every question. `fills_in`: what
    its user fills into its forms, one after the other; None for nothing."""

    choose: str = ""
    has_forms: bool = False
    fills_in: list[Mapping[str, JSON] | None] = field(default_factory=list)
    forms: list[tuple[str, Mapping[str, JSON]]] = field(default_factory=list)
    updates: list[Update | CurrentModeUpdate | ConfigOptionUpdate] = field(default_factory=list)
    asked: list[ToolCallUpdate] = field(default_factory=list)

    async def update(self, session: str, update: Update | CurrentModeUpdate | ConfigOptionUpdate) -> None:
        self.updates.append(update)

    async def permission(
        self, session: str, call: ToolCallUpdate, options: Sequence[PermissionOption]
    ) -> AllowedOutcome | DeniedOutcome:
        self.asked.append(call)
        return AllowedOutcome(outcome="selected", option_id=self.choose)

    async def form(
        self, session: str, message: str, schema: Mapping[str, JSON], *, record: int
    ) -> Mapping[str, JSON] | None:
        self.forms.append((message, schema))
        return self.fills_in.pop(0)

    @property
    def said(self) -> list[str]:
        """The agent's messages, in the pieces in which they came."""
        chunks = [one for one in self.updates if isinstance(one, AgentMessageChunk)]
        return [chunk.content.text for chunk in chunks if chunk.content.type == "text"]


@asynccontextmanager
async def talking(session: Session, screen: Screen) -> AsyncIterator[Conversation]:
    """A conversation that an editor has open."""
    async with asyncio.TaskGroup() as group:

        def spawn(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
            return group.create_task(work)

        conversation = Conversation(session, screen, spawn)
        await conversation.begin(replay=False)
        yield conversation
        await conversation.end()


def answers(session: Session) -> list[tuple[str, object]]:
    """How each form was answered, and with which values."""
    forms = [one.content for one in session.records() if isinstance(one.content, FormAnswer)]
    return [(form.decision, dict(form.values or {})) for form in forms]


async def test_an_agents_question_is_said_and_the_next_prompt_answers_it(tmp_path: Path) -> None:
    async with plan_scenes.runtime(tmp_path, replies(PAINTER), answers=ASKS_PERSON) as opened:
        session = await opened.open()
        screen = Screen()
        async with talking(session, screen) as conversation:
            asked = await conversation.prompt(Prompt("Go", ()))
            assert asked.stop_reason == "end_turn"
            assert "Which colour?" in screen.said[-1]
            assert screen.said[-1].endswith("Your next message is the answer.")
            assert not screen.asked
            done = await conversation.prompt(Prompt("Green", ()))
        assert done.stop_reason == "end_turn"
        assert screen.said[-1] == "Done."
        assert answers(session) == [("accept", {"answer": "Green"})]


@pytest.mark.parametrize(
    ("fills_in", "answered"),
    [
        ([{"answer": "Green"}], ("accept", {"answer": "Green"})),
        ([{"colour": "Green"}, {"answer": "Blue"}], ("accept", {"answer": "Blue"})),
        ([{"colour": "Green"}] * 3, ("decline", {})),
        ([None], ("decline", {})),
    ],
    ids=["fits", "fits the second time", "never fits", "nothing"],
)
async def test_a_client_with_forms_is_asked_by_one_while_its_prompt_goes_on(
    tmp_path: Path, fills_in: Sequence[Mapping[str, JSON] | None], answered: tuple[str, object]
) -> None:
    async with plan_scenes.runtime(tmp_path, replies(PAINTER), answers=ASKS_PERSON) as opened:
        session = await opened.open()
        screen = Screen(has_forms=True, fills_in=[*fills_in])
        async with talking(session, screen) as conversation:
            done = await conversation.prompt(Prompt("Go", ()))
        assert done.stop_reason == "end_turn"
        assert screen.said[-1] == "Done."
        assert not [text for text in screen.said if "Which colour?" in text]
        message, schema = screen.forms[0]
        assert "Which colour?" in message
        assert schema["required"] == ["answer"]
        assert len(screen.forms) == len(fills_in)
        assert answers(session) == [answered]


async def test_a_session_that_is_loaded_says_what_it_asks(tmp_path: Path) -> None:
    async with plan_scenes.runtime(tmp_path, replies(PAINTER), answers=ASKS_PERSON) as opened:
        session = await opened.open()
        async with talking(session, Screen()) as conversation:
            await conversation.prompt(Prompt("Go", ()))
        screen = Screen()
        async with talking(session, screen) as conversation:
            (text,) = screen.said
            assert "Which colour?" in text
            await conversation.prompt(Prompt("Blue", ()))
        assert answers(session) == [("accept", {"answer": "Blue"})]


def live(data: Path, *scripts: str) -> Runtime:
    return live_runtime(data, does(*scripts), open_live=Overlays())


def edits(content: object) -> list[tuple[str, str | None, str]]:
    """The changes of files among what a tool call shows."""
    assert isinstance(content, list)
    shown = [one for one in content if isinstance(one, FileEditToolCallContent)]
    return [(one.path, one.old_text, one.new_text) for one in shown]


async def test_a_new_file_is_shown_with_its_call_and_stays_with_it(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    async with live(tmp_path / "data", "write new.txt hello") as opened:
        session = await opened.open(intent=1, workspace=mine)
        screen = Screen()
        async with talking(session, screen) as conversation:
            await conversation.prompt(Prompt("Go", ()))
    (call,) = [one for one in screen.updates if isinstance(one, ToolCallStart)]
    progress = [one for one in screen.updates if isinstance(one, ToolCallProgress)]
    (placed,) = [one for one in progress if one.locations]
    assert placed.locations is not None
    assert [place.path for place in placed.locations] == [str(mine / "new.txt")]
    (last,) = [one for one in progress if one.status == "completed"]
    assert last.tool_call_id == placed.tool_call_id == call.tool_call_id
    made = [(str(mine / "new.txt"), None, "hello")]
    assert edits(placed.content) == edits(last.content) == made


async def test_changes_that_wait_are_shown_as_differences(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "a.txt").write_text("old", encoding="utf-8")
    (mine / "gone.txt").write_text("bye", encoding="utf-8")
    async with live(tmp_path / "data", "write a.txt new\nrm gone.txt") as opened:
        session = await opened.open(intent=1, workspace=mine)
        screen = Screen("apply")
        async with talking(session, screen) as conversation:
            await conversation.prompt(Prompt("Go", ()))
    (review,) = screen.asked
    assert review.locations is not None
    assert [place.path for place in review.locations] == [str(mine / "a.txt"), str(mine / "gone.txt")]
    assert edits(review.content) == [
        (str(mine / "a.txt"), "old", "new"),
        (str(mine / "gone.txt"), "bye", ""),
    ]
    assert (mine / "a.txt").read_text(encoding="utf-8") == "new"
    assert not (mine / "gone.txt").exists()
