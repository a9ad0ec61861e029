"""The calendar of a company that is not there: who is free when, in a file of the workspace."""

import json
import os
from pathlib import Path

from ext_modules.sdk import Module

module = Module(
    "meetings",
    "Looks into calendars, books meetings and invites people to them.",
    keywords=["meeting", "calendar", "appointment", "slot", "book", "invite", "team"],
)

_MEMBERS = ["ada@example.org", "grace@example.org", "katherine@example.org"]
_FREE = [
    {"start": "2026-05-04T09:00", "room": "Ceres"},
    {"start": "2026-05-06T14:00", "room": "Vesta"},
    {"start": "2026-05-07T10:30", "room": "Pallas"},
]


def _book() -> Path:
    return Path(os.environ.get("IACT_WORKSPACE", "/workspace")) / "calendar.json"


def _events() -> list[dict[str, object]]:
    return json.loads(_book().read_text(encoding="utf-8")) if _book().exists() else []


@module.function(
    impact=0, summary="When all members of a team are free, and who they are.", media_type="application/json"
)
def check(team: str) -> dict[str, object]:
    """Gives the next slots that suit all, and the addresses of the members.

    ```meetings.check team=engineering
    ```
    """
    return {"team": team, "slots": _FREE, "members": _MEMBERS}


@module.function(
    impact=1, summary="Put a meeting into the calendar.", media_type="application/json", idempotent=False
)
def create(title: str, start: str) -> dict[str, object]:
    """`start`: as `meetings.check` gives it.

    ```meetings.create title=Sync start=2026-05-04T09:00
    ```
    """
    events = _events()
    event = {"event_id": f"ev-{len(events) + 1}", "title": title, "start": start}
    _book().write_text(json.dumps([*events, event], indent=1) + "\n", encoding="utf-8")
    return event


@module.function(impact=2, summary="Invite people to a meeting.", idempotent=False)
def invite(event_id: str, attendees: list[str]) -> str:
    """Sends each of them an invitation. It can't be called back.

    ```meetings.invite event_id=ev-1 attendees='["ada@example.org"]'
    ```
    """
    event = next((one for one in _events() if one["event_id"] == event_id), None)
    if event is None:
        raise ValueError(f"There is no meeting {event_id}.")
    return f"Invited {', '.join(attendees)} to {event['title']} at {event['start']}.\n"
