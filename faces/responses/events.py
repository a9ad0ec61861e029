"""A response while it is generated, as events of the Responses API, in their order."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping

from iact.core.ports import JSON
from iact.core.session.events import Event
from iact.faces.responses.output import ResponsePlace, message_item
from iact.faces.root_text import TextStream


class EventStream:
    """Makes the events of one response."""

    def __init__(self, response: ResponsePlace) -> None:
        self._response = response
        self._number = 0

    def event(self, kind: str, fields: Mapping[str, JSON]) -> str:
        """Encode one event."""
        told = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return f"event: {kind}\ndata: {json.dumps(told, ensure_ascii=False)}\n\n"

    async def texts(self, events: AsyncIterator[Event], stream: TextStream) -> AsyncGenerator[str, None]:
        """Yield the events of messages, until the root has answered or waits for a person."""
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

    def message(self, place: int, text: str) -> Iterator[str]:
        """Yield the events of a message that arrives in one piece."""
        where: dict[str, JSON] = {
            "item_id": f"msg_{self._response.id}_{place}",
            "output_index": place,
            "content_index": 0,
        }
        yield from self._opened(place, where)
        yield self.event("response.output_text.delta", {**where, "delta": text, "logprobs": []})
        yield from self._closed(place, where, text)

    def item(self, place: int, item: Mapping[str, JSON]) -> Iterator[str]:
        """Yield the events of an item that arrives in one piece."""
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
