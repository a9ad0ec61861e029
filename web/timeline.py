"""The message that asks what each agent did when (`core.session.waterfall`), as wire fields."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from iact.core.ports import JSON
from iact.core.session.waterfall import Span, Waterfall, waterfall
from iact.web.messages import Message
from iact.web.ports import Session
from iact.web.records import Fields

MOST: Final = 4_000
"""Spans in one answer."""


class ShowTimeline(Message):
    """What each agent did when, and what the root's answers waited for.

    The `ok` has `started` (the time of the first record), `ms` (from there to the last), `agents` (paths, in order of
    creation), and `spans`, each `[agent, kind, begin, end, n, label, critical]`: the agent's place in `agents`; model,
    tool, wait, approval or paused; milliseconds since `started`, `end` null for what goes on; the record that tells of
    it; what it was; and whether the critical path of an answer goes through it. `critical`: milliseconds of work on
    critical paths; `more`: short ones that are not told.
    """


class Watching(Protocol):
    """The side of a connection that this message acts on."""

    def watched(self) -> Session: ...


async def show_timeline(client: Watching, message: ShowTimeline) -> Fields:
    """Answer `timeline`; who watches nothing is told so, since a look must not begin a session."""
    records = list(client.watched().records())
    return await asyncio.to_thread(lambda: timeline_fields(waterfall(records)))


def timeline_fields(told: Waterfall) -> Fields:
    """The fields of the answer."""
    place = {path: index for index, path in enumerate(told.agents)}
    shown = _longest(told)
    spans: list[JSON] = [
        [place[one.agent], one.kind, _ms(one.begin), None if one.end is None else _ms(one.end), one.n, one.label, one.critical]
        for one in shown
    ]  # fmt: skip
    return {
        "started": told.started,
        "ms": _ms(told.seconds),
        "agents": [*told.agents],
        "spans": spans,
        "critical": _ms(told.critical),
        "more": len(told.spans) - len(shown),
    }


def _longest(told: Waterfall) -> list[Span]:
    """As many as are told, in order; those on a critical path and the long ones first."""
    if len(told.spans) <= MOST:
        return [*told.spans]

    def weight(place: int) -> tuple[bool, float]:
        one = told.spans[place]
        return one.critical, (told.seconds if one.end is None else one.end) - one.begin

    kept = sorted(range(len(told.spans)), key=weight, reverse=True)[:MOST]
    return [told.spans[place] for place in sorted(kept)]


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
