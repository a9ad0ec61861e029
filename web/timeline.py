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


async def show_timeline(session: Session, message: requests.ShowTimeline) -> answers.Timeline:
    """Answer `timeline`."""
    records = list(session.records())
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


def timeline_fields(timeline: Waterfall) -> answers.Timeline:
    """The fields of the answer."""
    place = {path: index for index, path in enumerate(timeline.agents)}
    spans = _longest(timeline)

    return {
        "started": timeline.started,
        "ms": _ms(timeline.seconds),
        "agents": [*timeline.agents],
        "spans": [_span_row(span, place[span.agent]) for span in spans],
        "critical": _ms(timeline.critical),
        "more": len(timeline.spans) - len(spans),
    }


def _span_row(span: Stretch, agent: int) -> answers.SpanRow:
    """A span, with the place of its agent in the list of agents."""
    end = None if span.end is None else _ms(span.end)
    return (agent, span.kind, _ms(span.begin), end, span.n, span.label, span.critical)


def _longest(timeline: Waterfall) -> list[Stretch]:
    """The spans that are returned, in order; those on a critical path and the longest are preferred."""
    if len(timeline.spans) <= MOST:
        return [*timeline.spans]

    def weight(place: int) -> tuple[bool, float]:
        span = timeline.spans[place]
        end = timeline.seconds if span.end is None else span.end
        return span.critical, end - span.begin

    places = sorted(range(len(timeline.spans)), key=weight, reverse=True)[:MOST]
    return [timeline.spans[place] for place in sorted(places)]


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
