"""A session as events of AG-UI: a child's text is sent while it is written, and closed as the protocol requires."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ag_ui.core import (
    BaseEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)

from iact.core.records.record import Record
from iact.core.views.events import Delta, Event, RecordAppended
from iact.faces.ag_ui.events import EventFold
from tests.faces.acp.test_updates import call, reply, turn

CALLED = [turn(2, "```CALL coder\nWrite.\n```"), call(3, 2, function="CALL", to="/coder")]
PLANNED = [turn(2, "```PLAN audit\nLook.\n```"), call(3, 2, function="PLAN", to="/audit")]


def told(events: Sequence[Event | Record], before: Sequence[Record] = ()) -> list[BaseEvent]:
    fold = EventFold("s", lambda agent: None, before)
    found: list[BaseEvent] = []
    for one in events:
        found += fold.take(RecordAppended(one) if isinstance(one, Record) else one)
    return [*found, *fold.end(suspended=None)]


def said(events: Sequence[BaseEvent]) -> list[str]:
    """The messages of subagents in short: "+" a beginning, "." an end, and what is between."""
    found = []
    for one in events:
        match one:
            case TextMessageStartEvent(subagent_run_id=str()):
                found.append("+")
            case TextMessageContentEvent(subagent_run_id=str()):
                found.append(one.delta)
            case TextMessageEndEvent(subagent_run_id=str()):
                found.append(".")
            case SubagentStartedEvent():
                found.append("begins")
            case SubagentFinishedEvent():
                found.append("done")
    return found


TABLE: dict[str, tuple[list[Event | Record], list[str]]] = {
    "in pieces": (
        [*CALLED, Delta("/coder", "It is", restart=True), Delta("/coder", " written."), reply(4, "It is written.", "/coder", "/")],
        ["begins", "+", "It is", " written.", ".", "done"],
    ),
    "not seen while it was written": (
        [*CALLED, reply(4, "It is written.", "/coder", "/")], ["begins", "+", "It is written.", ".", "done"],
    ),
    "written anew": (
        [*CALLED, Delta("/coder", "It was", restart=True), Delta("/coder", "", restart=True), Delta("/coder", "Done."),
         reply(4, "Done.", "/coder", "/")],
        ["begins", "+", "It was", ".", "+", "Done.", ".", "done"],
    ),
    "what may become an action is held back": (
        [*CALLED, Delta("/coder", "Now.\n", restart=True), Delta("/coder", "```files.read\na\n```"),
         turn(4, "Now.\n\n```files.read\na\n```", "/coder")],
        ["begins", "+", "Now.", "."],
    ),
    "what may become a call in another form is held back": (
        [*CALLED, Delta("/coder", "Now.\n<tool", restart=True), Delta("/coder", "_call>{}</tool_call>"),
         turn(4, "Now.\n\n```files.read\na\n```", "/coder")],
        ["begins", "+", "Now.", "."],
    ),
    "what may become an action in a list item is held back": (
        [*CALLED, Delta("/coder", "Now.\n1. ``", restart=True), Delta("/coder", "`files.read\n   a\n   ```"),
         turn(4, "Now.\n\n```files.read\na\n```", "/coder")],
        ["begins", "+", "Now.", "."],
    ),
    "an answer of an earlier turn is said once": (
        [*CALLED, Delta("/coder", "It is.", restart=True), turn(4, "It is.", "/coder"), Delta("/coder", "ANSWER", restart=True),
         turn(5, "```ANSWER\n```", "/coder"), reply(6, "It is.", "/coder", "/", of=4)],
        ["begins", "+", "It is.", ".", "done"],
    ),
    "an answer with an action in it is said once": (
        [*CALLED, turn(4, "It is.\n\n```VAR v\n1\n```\n\nSo far.", "/coder"), reply(5, "It is.\n\nSo far.", "/coder", "/", of=4)],
        ["begins", "+", "It is.", ".", "+", "So far.", ".", "done"],
    ),
    "an answer in a block is said once": (
        [*CALLED, Delta("/coder", "```ANSWER\nIt is.\n```"), turn(4, "```ANSWER\nIt is.\n```", "/coder"), reply(5, "It is.", "/coder", "/", of=4)],
        ["begins", "+", "It is.", ".", "done"],
    ),
    "what it thinks is none of it": ([*CALLED, Delta("/coder", "Hm.", thought=True)], ["begins"]),
    "a plan that is being written says nothing": ([*PLANNED, Delta("/audit", "steps:", restart=True)], ["begins"]),
    "cut off by the end of the run": (
        [*CALLED, Delta("/coder", "It is", restart=True)], ["begins", "+", "It is", "."],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_what_a_child_says(name: str) -> None:
    happens, expected = TABLE[name]
    assert said(told(happens)) == expected


def test_a_run_that_goes_on_begins_the_child_before_what_it_says() -> None:
    events: list[Event | Record] = [
        Delta("/coder", "Written.", restart=True),
        reply(4, "Written.", "/coder", "/"),
    ]
    assert said(told(events, before=CALLED)) == ["begins", "+", "Written.", ".", "done"]


def test_the_end_of_a_message_comes_before_that_of_its_subagent() -> None:
    kinds = [type(one).__name__ for one in told([*CALLED, Delta("/coder", "It is", restart=True)])]
    assert kinds.index("TextMessageEndEvent") < kinds.index("SubagentErrorEvent")
