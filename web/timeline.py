"""The messages that ask what each agent did when (`core.views.waterfall`), as wire fields."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from iact.core.errors import UsageError
from iact.core.stored.journals import read_records
from iact.core.views.waterfall import Stretch, Waterfall, waterfall
from iact.web.ports import Product, Session
from iact.web.wire import answers, requests

MOST: Final = 4_000
"""Spans in one answer."""


class TimelineClient(Protocol):
    """The part of a connection that this message acts on."""

    def watched(self) -> Session: ...


async def show_timeline(client: TimelineClient, message: requests.ShowTimeline) -> answers.Timeline:
    """Answer `timeline`. It is an error if no session is watched, since reading must not start one."""
    records = list(client.watched().records())
    return await asyncio.to_thread(lambda: timeline_fields(waterfall(records)))


class ExamplesClient(Protocol):
    """The part of a connection that the message about a recording acts on."""

    def product(self) -> Product: ...


async def show_example(client: ExamplesClient, message: requests.ShowExample) -> answers.Timeline:
    """Answer `example.timeline`."""
    examples = client.product().examples()
    folder = next((example.folder for example in examples if example.id == message.example), None)
    if folder is None:
        raise UsageError(f"There is no recording {message.example[:80]!r}.")
    return await asyncio.to_thread(lambda: timeline_fields(waterfall(read_records(folder))))


def timeline_fields(told: Waterfall) -> answers.Timeline:
    """The fields of the answer."""
    place = {path: index for index, path in enumerate(told.agents)}
    shown = _longest(told)
    spans: list[answers.SpanRow] = [
        (place[one.agent], one.kind, _ms(one.begin), None if one.end is None else _ms(one.end), one.n, one.label, one.critical)
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


def _longest(told: Waterfall) -> list[Stretch]:
    """The spans that are returned, in order; those on a critical path and the longest are preferred."""
    if len(told.spans) <= MOST:
        return [*told.spans]

    def weight(place: int) -> tuple[bool, float]:
        one = told.spans[place]
        return one.critical, (told.seconds if one.end is None else one.end) - one.begin

    kept = sorted(range(len(told.spans)), key=weight, reverse=True)[:MOST]
    return [told.spans[place] for place in sorted(kept)]


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
