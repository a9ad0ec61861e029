"""A response while it is made, as the events of the Responses interface, in its order."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping

from iact.core.ports import JSON
from iact.core.records.dialogue import Reply, Turn
from iact.core.session.events import Delta, Event, RecordAppended
from iact.faces.responses.output import ResponsePlace, message_item, prose


class TextStream:
    """The root's text as it is written: what can still become an action is held back until its turn has ended.

    Gives pieces of text with the place of their item; `None` in place of a piece ends the item.
    """

    def __init__(self) -> None:
        self._written = ""
        self._sent = ""
        self.items: list[str] = []
        """The items that have ended."""

    def take(self, event: Event) -> Iterator[str | None]:
        """The next event of the session."""
        if isinstance(event, Delta) and event.agent == "/" and not event.thought:
            if event.restart:
                yield from self._end(self._sent)
                self._written = ""
            self._written += event.text
            yield from self._send(_safe(self._written))
        elif isinstance(event, RecordAppended) and event.record.agent == "/":
            record = event.record
            if isinstance(record.content, Reply):
                yield from self._end(record.body.strip())
            elif isinstance(record.content, Turn):
                yield from self._end(prose(record.body).strip())

    def _send(self, text: str) -> Iterator[str | None]:
        if text.startswith(self._sent) and len(text) > len(self._sent):
            yield text[len(self._sent) :]
            self._sent = text

    def _end(self, text: str) -> Iterator[str | None]:
        if self._sent and not text.startswith(self._sent):
            self.items.append(self._sent)
            yield None
            self._sent = ""
        yield from self._send(text)
        if self._sent:
            self.items.append(self._sent)
            yield None
        self._written = self._sent = ""


def _safe(text: str) -> str:
    """The part of a text that no later piece can make part of an action, without the white space at its ends."""
    shown = prose(text)
    if shown == text and text.rpartition("\n")[2].lstrip(" ")[:1] in ("`", "~", ""):
        shown = text.rpartition("\n")[0]
    return shown.strip()


class EventStream:
    """Makes the events of one response. `fields`: the response as it is when this is called, with a status."""

    def __init__(self, response: ResponsePlace) -> None:
        self._response = response
        self._number = 0

    def event(self, kind: str, fields: Mapping[str, JSON]) -> str:
        """One event on the wire."""
        told = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return f"event: {kind}\ndata: {json.dumps(told, ensure_ascii=False)}\n\n"

    async def texts(self, events: AsyncIterator[Event], stream: TextStream) -> AsyncGenerator[str, None]:
        """The events of messages, until the root has answered or waits for a person."""
        begun = False
        async for event in events:
            for piece in stream.take(event):
                place = len(stream.items) - (piece is None)
                where: dict[str, JSON] = {
                    "item_id": f"msg_{self._response.id}_{place}",
                    "output_index": place,
                    "content_index": 0,
                }
                if piece is not None:
                    if not begun:
                        begun = True
                        for line in self._opened(place, where):
                            yield line
                    yield self.event("response.output_text.delta", {**where, "delta": piece, "logprobs": []})
                else:
                    begun = False
                    for line in self._closed(place, where, stream.items[place]):
                        yield line

    def item(self, place: int, item: Mapping[str, JSON]) -> Iterator[str]:
        """An item that comes in one piece."""
        yield self.event("response.output_item.added", {"output_index": place, "item": dict(item)})
        if item["type"] == "function_call":
            about: dict[str, JSON] = {"item_id": item["id"], "output_index": place}
            yield self.event("response.function_call_arguments.delta", {**about, "delta": item["arguments"]})
            done = {**about, "name": item["name"], "arguments": item["arguments"]}
            yield self.event("response.function_call_arguments.done", done)
        yield self.event("response.output_item.done", {"output_index": place, "item": dict(item)})

    def _opened(self, place: int, where: Mapping[str, JSON]) -> Iterator[str]:
        item = message_item(self._response, place, "", status="in_progress")
        yield self.event("response.output_item.added", {"output_index": place, "item": item})
        part: dict[str, JSON] = {"type": "output_text", "text": "", "annotations": []}
        yield self.event("response.content_part.added", {**where, "part": part})

    def _closed(self, place: int, where: Mapping[str, JSON], text: str) -> Iterator[str]:
        part: dict[str, JSON] = {"type": "output_text", "text": text, "annotations": []}
        yield self.event("response.output_text.done", {**where, "text": text, "logprobs": []})
        yield self.event("response.content_part.done", {**where, "part": part})
        item = message_item(self._response, place, text)
        yield self.event("response.output_item.done", {"output_index": place, "item": item})
