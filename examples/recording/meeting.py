"""A meeting is booked in three steps that pass values on, and a person changes their mind in between.

The calendar of KAIJU, section 4.3, and its interjection, section 4.5: each wave of steps is judged before the next one
starts, and a message to a running plan holds back the steps that have not begun.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from iact.examples.recording.stage import performed
from tests.endpoint import Gate, Reply, Script

MODULES: Final = Path(__file__).parent / "modules"

QUESTION: Final = (
    "Find a time for a sync of the engineering team, put it into the calendar and invite everybody."
)

PLAN: Final = """\
steps:
  - {id: calendars, call: meetings.check, params: {team: engineering}}
  - {id: event, call: meetings.create, params: {title: Sync}, refs: {start: {step: calendars, field: slots.0.start}}}
  - {id: invitations, call: meetings.invite, refs: {event_id: {step: event, field: event_id}, attendees: {step: calendars, field: members}}}
"""

MESSAGE: Final = "Not on Monday, half of them are travelling. Take the next time that suits."

GO_ON: Final = '{"decision": "continue", "reason": "There are three slots, and the members are known.", "progress": "productive"}'

OTHERWISE: Final = (
    '{"decision": "replan", "reason": "The meeting must not be on Monday, so it takes the second slot.", '
    '"progress": "productive"}'
)

AGAIN: Final = """\
steps:
  - {id: later, call: meetings.create, params: {title: Sync}, refs: {start: {step: calendars, field: slots.1.start}}}
  - {id: invite, call: meetings.invite, refs: {event_id: {step: later, field: event_id}, attendees: {step: calendars, field: members}}}
"""

BOOKED: Final = (
    '{"decision": "continue", "reason": "It is booked; the invitations are left.", "progress": "productive"}'
)

DONE: Final = (
    '{"decision": "conclude", "reason": "It is booked, and everybody is invited.", "progress": "productive", '
    '"answer": "The sync is on Wednesday, 6 May, at 14:00. Ada, Grace and Katherine are invited."}'
)


def play(data: Path) -> Path:
    """Run the scene in the data directory `data`. Returns the session's directory."""
    judged = Gate()
    script: Script = {
        "*": [PLAN, Reply(GO_ON, gates={20: judged}), OTHERWISE, AGAIN, BOOKED, DONE],
    }
    with performed(data, script, modules=[MODULES / "meetings"]) as person:
        person.tell({"type": "intent", "value": 2})
        person.tell({"type": "say", "text": QUESTION, "mode": "reflect"})
        assert judged.wait(300)
        person.say(MESSAGE)
        judged.release()
        person.tell({"type": "clear", "call": person.asked(), "allow": True})
        person.answered()
        return person.folder
