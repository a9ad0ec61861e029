"""Who is asked about calls, and for how long. No imports: settings read it, and with them every command."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Clearance:
    """Who is asked about calls, and how long they may take, in seconds.

    `url`: an endpoint that is asked about every call, in place of a person; `both`: what it allows and a rule asks
    about is put to a person, too. `attended`: whether a person may come to answer a question.
    """

    url: str | None = None
    both: bool = False
    attended: bool = True
    endpoint_seconds: float = 2.0
    person_seconds: float = 600.0
