"""A response while it is generated, as events of the Responses API, in their order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from iact.core.ports import JSON
from iact.core.views.events import Event
from iact.faces.responses.items import OutputItems
from iact.faces.responses.output import ResponsePlace, message_item


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

    def ended(self, status: str, response: Mapping[str, JSON]) -> str:
        """Encode the last event. `status`: the response's; one that a person stopped has no kind of event of its own."""
        kind = status if status in ("completed", "incomplete", "failed") else "failed"
        return self.event(f"response.{kind}", {"response": dict(response)})

    def changed(self, items: OutputItems, event: Event) -> Iterator[str]:
        """Yield the events of what an event of the session changes among the items."""
        for change in items.take(event):
            place = change.place
            item = items.items[place]
            match change.step:
                case "opened":
                    yield from self._opened(place)
                case "piece":
                    fields = {**self._where(place), "delta": change.text, "logprobs": []}
                    yield self.event("response.output_text.delta", fields)
                case "closed":
                    yield from self._closed(place, _text_of(item))
                case "called":
                    yield from self._called(place, item)
                case "returned":
                    yield from self._returned(place, item)

    def message(self, place: int, text: str) -> Iterator[str]:
        """Yield the events of a message that arrives in one piece."""
        yield from self._opened(place)
        yield self.event("response.output_text.delta", {**self._where(place), "delta": text, "logprobs": []})
        yield from self._closed(place, text)

    def item(self, place: int, item: Mapping[str, JSON]) -> Iterator[str]:
        """Yield the events of an item that arrives in one piece."""
        if item["type"] == "message":
            yield from self.message(place, _text_of(item))
            return
        if item["type"] == "mcp_call":
            yield from self._called(place, {**item, "status": "in_progress", "output": None, "error": None})
            yield from self._returned(place, item)
            return

        yield self.event("response.output_item.added", {"output_index": place, "item": dict(item)})
        if item["type"] == "function_call":
            about: dict[str, JSON] = {"item_id": item["id"], "output_index": place}
            yield self.event("response.function_call_arguments.delta", {**about, "delta": item["arguments"]})
            done = {**about, "name": item["name"], "arguments": item["arguments"]}
            yield self.event("response.function_call_arguments.done", done)
        yield self.event("response.output_item.done", {"output_index": place, "item": dict(item)})

    def _called(self, place: int, item: Mapping[str, JSON]) -> Iterator[str]:
        about: dict[str, JSON] = {"item_id": item["id"], "output_index": place}
        yield self.event("response.output_item.added", {"output_index": place, "item": dict(item)})
        yield self.event("response.mcp_call.in_progress", about)
        yield self.event("response.mcp_call_arguments.delta", {**about, "delta": item["arguments"]})
        yield self.event("response.mcp_call_arguments.done", {**about, "arguments": item["arguments"]})

    def _returned(self, place: int, item: Mapping[str, JSON]) -> Iterator[str]:
        about: dict[str, JSON] = {"item_id": item["id"], "output_index": place}
        if item["status"] == "completed":
            yield self.event("response.mcp_call.completed", about)
        elif item["status"] == "failed":
            yield self.event("response.mcp_call.failed", about)
        yield self.event("response.output_item.done", {"output_index": place, "item": dict(item)})

    def _where(self, place: int) -> dict[str, JSON]:
        """The place of a message's text."""
        return {"item_id": f"msg_{self._response.id}_{place}", "output_index": place, "content_index": 0}

    def _opened(self, place: int) -> Iterator[str]:
        item = message_item(self._response, place, "", status="in_progress")
        yield self.event("response.output_item.added", {"output_index": place, "item": item})
        part: dict[str, JSON] = {"type": "output_text", "text": "", "annotations": []}
        yield self.event("response.content_part.added", {**self._where(place), "part": part})

    def _closed(self, place: int, text: str) -> Iterator[str]:
        where = self._where(place)
        part: dict[str, JSON] = {"type": "output_text", "text": text, "annotations": []}
        yield self.event("response.output_text.done", {**where, "text": text, "logprobs": []})
        yield self.event("response.content_part.done", {**where, "part": part})
        item = message_item(self._response, place, text)
        yield self.event("response.output_item.done", {"output_index": place, "item": item})


def _text_of(message: Mapping[str, JSON]) -> str:
    """The text of a message's item."""
    parts = message["content"]
    assert isinstance(parts, list)
    texts = [str(part["text"]) for part in parts if isinstance(part, dict)]
    return "".join(texts)
