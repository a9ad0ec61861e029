"""The items of a response, folded from its records and the root's live text.

A turn of the root is a message. What the root calls, a function of a module or another agent, is an item of the kind that
this API has for calls that a server makes itself (`mcp_call`). Calls of the agents below the root are theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from iact.core.ports import JSON
from iact.core.records.calls import Call, Gate, Result
from iact.core.records.dialogue import Reply, Turn
from iact.core.records.record import Record
from iact.core.session.session import Session
from iact.core.views.ending import outcome_of
from iact.core.views.events import Event, RecordAppended
from iact.core.views.text import ActionBlock, IsAction, looks_like_action, pieces
from iact.faces.responses.output import ResponsePlace, message_item
from iact.faces.root_text import TextStream

_ROOT: Final = "/"
_LONGEST: Final = 100_000
"""The most characters of a call's output. The journal has everything."""
_CORE: Final = "iact"
"""The server that actions without a module are of."""
_OF_CLIENT: Final = "FRONTEND"
"""The action that calls a tool of the client's own, which has an item of its own kind."""

ItemStep: TypeAlias = Literal["opened", "piece", "closed", "called", "returned"]
"""What happens to an item: a message is opened, grows by a piece, is closed; a call is made, and returns."""


@dataclass(frozen=True, slots=True)
class ItemChange:
    """A change to the item at a place of the output. `text`: the piece by which a message grows."""

    step: ItemStep
    place: int
    text: str = ""


@dataclass(slots=True)
class _OpenCall:
    """A call without a result."""

    place: int
    """Its item's place in the output."""
    to: str
    """The agent that it calls, whose reply is its output; empty for a function."""


class OutputItems:
    """The items of one response. It must be given the events after the response's start, in order.

    `before`: the session's records up to the start, for calls whose turn was part of an earlier response. `longest`: the
    most characters of all messages. `messages`: whether what the root says is among the items.
    """

    def __init__(
        self,
        response: ResponsePlace,
        is_action: IsAction,
        before: Sequence[Record] = (),
        *,
        longest: int | None = None,
        messages: bool = True,
    ) -> None:
        self._response = response
        self._is_action = is_action
        self._messages = messages
        self._text = TextStream(longest=longest)
        self._open_message: int | None = None
        """The place of the message that is being written."""
        self._open_calls: dict[tuple[int, int], _OpenCall] = {}
        """By turn and action."""
        self._blocks: tuple[int, dict[int, ActionBlock]] = (0, {})
        """The record and the actions of the root's newest turn."""
        self.items: list[dict[str, JSON]] = []

        turns = (one for one in reversed(before) if one.agent == _ROOT and isinstance(one.content, Turn))
        newest = next(turns, None)
        if newest is not None:
            self._keep_blocks(newest)

    @classmethod
    def of(
        cls, session: Session, start: Record, *, longest: int | None = None, messages: bool = True
    ) -> OutputItems:
        """The items of the response in a session that begins with the record `start`."""
        is_action = session.view.is_action(_ROOT) or looks_like_action
        before = session.records()[: start.n]
        return cls(ResponsePlace(session.id, start.n), is_action, before, longest=longest, messages=messages)

    def take(self, event: Event) -> Iterator[ItemChange]:
        """Process the next event, and yield what it changes."""
        if self._messages:
            yield from self._written(event)
        if not isinstance(event, RecordAppended):
            return

        record = event.record
        content = record.content
        if isinstance(content, Reply) and record.agent != _ROOT:
            yield from self._replied(record, content)
        if record.agent != _ROOT:
            return

        match content:
            case Turn():
                self._keep_blocks(record)
            case Call() if content.function != _OF_CLIENT:
                yield self._begin(content.turn, content.action, content.function, content.to)
            case Gate(allow=False) if content.function != _OF_CLIENT:
                yield self._begin(content.turn, content.action, content.function)
                why = f"Denied by {content.by}: {content.reason}".rstrip(": ")
                yield self._end((content.turn, content.action), why, well=False)
            case Result() if content.function != _OF_CLIENT:
                yield from self._returned(record, content)

    def close(self) -> None:
        """Note that the response ends: calls that go on are incomplete in it."""
        for call in self._open_calls.values():
            self.items[call.place]["status"] = "incomplete"

    # --- messages -------------------------------------------------------------------------------

    def _written(self, event: Event) -> Iterator[ItemChange]:
        for piece in self._text.take(event):
            if self._open_message is None:
                self._open_message = self._add(
                    message_item(self._response, len(self.items), "", status="in_progress")
                )
                yield ItemChange("opened", self._open_message)
            place = self._open_message

            if piece is not None:
                yield ItemChange("piece", place, piece)
                continue
            self.items[place] = message_item(self._response, place, self._text.items[-1])
            self._open_message = None
            yield ItemChange("closed", place)

    # --- calls ----------------------------------------------------------------------------------

    def _keep_blocks(self, record: Record) -> None:
        found = [one for one in pieces(record.body, self._is_action) if isinstance(one, ActionBlock)]
        self._blocks = record.n, {block.index: block for block in found}

    def _begin(self, turn: int, action: int, function: str, to: str = "") -> ItemChange:
        module, _, name = function.rpartition(".")
        item: dict[str, JSON] = {
            "type": "mcp_call",
            "id": f"mcp_{self._response.id}_{len(self.items)}",
            "server_label": module or _CORE,
            "name": name,
            "arguments": json.dumps(self._given(turn, action), ensure_ascii=False),
            "status": "in_progress",
            "output": None,
            "error": None,
            "approval_request_id": None,
        }
        place = self._add(item)
        self._open_calls[turn, action] = _OpenCall(place, to)
        return ItemChange("called", place)

    def _given(self, turn: int, action: int) -> dict[str, JSON]:
        """An action's input, as its agent wrote it."""
        newest, blocks = self._blocks
        block = blocks.get(action) if newest == turn else None
        return {} if block is None else {"arguments": block.arguments, "body": block.body}

    def _returned(self, record: Record, result: Result) -> Iterator[ItemChange]:
        key = (result.turn, result.action)
        call = self._open_calls.get(key)
        if call is None:
            if not result.call:
                return  # it was denied, which was reported, or it only concerns the agent
            # The call was made in an earlier response, which ended with a question.
            yield self._begin(result.turn, result.action, result.function)
        elif call.to and result.status == "ok":
            return  # it was passed to an agent, whose reply is its output

        text = record.body
        if not text and result.blob is not None:
            text = f"{result.blob.size} bytes of {result.media or 'text'}"
        yield self._end(key, text or result.status, well=result.status == "ok")

    def _replied(self, record: Record, reply: Reply) -> Iterator[ItemChange]:
        """End the calls that an agent's reply answers."""
        well = outcome_of(reply) == "reached"
        answered = [key for key, call in self._open_calls.items() if call.to == record.agent]
        for key in answered:
            yield self._end(key, record.body or reply.status, well=well)

    def _end(self, key: tuple[int, int], text: str, *, well: bool) -> ItemChange:
        place = self._open_calls.pop(key).place
        item = self.items[place]
        told = text
        if len(text) > _LONGEST:
            told = f"{text[:_LONGEST]}\n… ({len(text) - _LONGEST} more characters)"

        if well:
            item["status"] = "completed"
            item["output"] = told
        else:
            item["status"] = "failed"
            item["error"] = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": told}]}
        return ItemChange("returned", place)

    def _add(self, item: dict[str, JSON]) -> int:
        self.items.append(item)
        return len(self.items) - 1


def items_of(items: OutputItems, records: Iterable[Record]) -> list[dict[str, JSON]]:
    """The items after these records, which have all that belongs to the response."""
    for record in records:
        for _ in items.take(RecordAppended(record)):
            pass
    items.close()
    return items.items
