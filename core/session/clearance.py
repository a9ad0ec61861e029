"""Who is asked about calls, and for how long. Imports nothing, because settings import it, and so every command
does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Clearance:
    """Who is asked about calls, and how long they may take to answer, in seconds.

    `url`: an endpoint that is asked about every call, instead of a person; `both`: a call that the endpoint allows and
    that a rule wants asked about is put to a person as well. `attended`: whether a person may be available to answer
    questions.
    """

    url: str | None = None
    both: bool = False
    attended: bool = True
    endpoint_seconds: float = 2.0
    person_seconds: float = 600.0
