"""Chat completions: each request contains the whole chat, and the session with its beginning is found again.

Answered chats are remembered by a digest, only in memory. After a restart, or if the chat was changed, a new session
begins with the earlier chat as part of its first message.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from iact.core.errors import IactError
from iact.core.ports import JSON
from iact.faces.failure import CANCELLED, Failure, failure_from
from iact.faces.http.server import error_fields
from iact.faces.responses import work
from iact.faces.responses.begun import Begun
from iact.faces.responses.output import ResponsePlace, asked_by, question_item, texts
from iact.faces.responses.wire import (
    CompletionMessage,
    CreateCompletion,
    CreateResponse,
    InputMessage,
    QuestionAnswer,
)
from iact.faces.root_text import TextStream

_REMEMBERED: Final = 4096
"""The maximum number of remembered chats, over all users."""


class Chats:
    """Maps chats to sessions."""

    def __init__(self) -> None:
        self._places: OrderedDict[str, ResponsePlace] = OrderedDict()

    def begun(self, user: str, given: CreateCompletion) -> Chat:
        """Translate a request into a Responses request."""
        *before, last = given.messages
        place = self._places.get(_digest(user, before)) if before else None
        return Chat(self, user, given, _request(before, last, place, given))

    def remember(
        self, user: str, messages: Sequence[CompletionMessage], answer: str, place: ResponsePlace
    ) -> None:
        """Remember where a chat continues."""
        key = _digest(user, [*messages, CompletionMessage(role="assistant", content=answer)])
        self._places[key] = place
        self._places.move_to_end(key)
        while len(self._places) > _REMEMBERED:
            self._places.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Chat:
    """One request of a chat, and the format of its answer."""

    chats: Chats
    user: str
    given: CreateCompletion
    request: CreateResponse

    def failure(self, begun: Begun) -> Failure | None:
        """Why there is no answer, if there is none. This API has no other word for work that a person stopped."""
        if begun.failure is not None or begun.exchange.questions.waiting:
            return begun.failure
        _, status, _ = begun.output()
        if status == "cancelled":
            return Failure(CANCELLED, begun.exchange.reply.body or "The user stopped the work.")
        return None

    def completion(self, begun: Begun) -> dict[str, JSON]:
        """Return the answer in one piece."""
        answer = "\n\n".join(texts(begun.records))
        calls = _calls(begun)
        self.chats.remember(self.user, self.given.messages, answer, begun.place)
        message: dict[str, JSON] = {"role": "assistant", "content": answer or None, "refusal": None}
        if calls:
            message["tool_calls"] = [*calls]
        return {
            **self._head(begun, "chat.completion"),
            "choices": [
                {"index": 0, "message": message, "finish_reason": self._finish(begun), "logprobs": None}
            ],
            "usage": _usage(begun),
        }

    async def stream(self, begun: Begun) -> AsyncGenerator[str, None]:
        """Stream the answer."""
        text, first = TextStream(), True
        yield self._chunk(begun, {"role": "assistant", "content": ""})
        try:
            async with aclosing(begun.events()) as events:
                async for event in events:
                    for piece in text.take(event):
                        if piece is not None:
                            apart = "\n\n" if text.items and first else ""
                            first = False
                            yield self._chunk(begun, {"content": apart + piece})
                        else:
                            first = True
            failure = self.failure(begun)
        except IactError as error:
            failure = failure_from(error)
        else:
            begun.told = True
        if failure is not None:
            yield f"data: {json.dumps(error_fields(failure), ensure_ascii=False)}\n\n"
            return

        calls = _calls(begun)
        if calls:
            yield self._chunk(begun, {"tool_calls": [{"index": n, **one} for n, one in enumerate(calls)]})
        self.chats.remember(self.user, self.given.messages, "\n\n".join(text.items), begun.place)
        yield self._chunk(begun, {}, self._finish(begun))
        options = self.given.stream_options
        if options is not None and options.include_usage:
            last = {**self._head(begun, "chat.completion.chunk"), "choices": [], "usage": _usage(begun)}
            yield f"data: {json.dumps(last, ensure_ascii=False)}\n\n"
        yield "data: [DONE]\n\n"

    def _chunk(self, begun: Begun, delta: dict[str, JSON], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        told = {**self._head(begun, "chat.completion.chunk"), "choices": [choice]}
        return f"data: {json.dumps(told, ensure_ascii=False)}\n\n"

    def _head(self, begun: Begun, kind: str) -> dict[str, JSON]:
        identity = f"chatcmpl-{begun.place.id.removeprefix('resp_')}"
        return {"id": identity, "object": kind, "created": int(time.time()), "model": self.given.model}

    def _finish(self, begun: Begun) -> str:
        if begun.exchange.questions.waiting:
            return "tool_calls"
        _, status, _ = begun.output()
        return "length" if status == "incomplete" else "stop"


def _usage(begun: Begun) -> dict[str, JSON]:
    used = work.used(begun.records)
    return {
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
        "total_tokens": used.prompt_tokens + used.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": used.cached_tokens},
    }


def _calls(begun: Begun) -> list[dict[str, JSON]]:
    found: list[dict[str, JSON]] = []
    for one in begun.exchange.questions.waiting:
        item = question_item(begun.session.id, one)
        function: dict[str, JSON] = {"name": item["name"], "arguments": item["arguments"]}
        found.append({"id": item["call_id"], "type": "function", "function": function})
    return found


def _request(
    before: Sequence[CompletionMessage],
    last: CompletionMessage,
    place: ResponsePlace | None,
    given: CreateCompletion,
) -> CreateResponse:
    if last.role == "tool":
        answers = []
        for one in reversed([*before, last]):
            if one.role != "tool":
                break
            answers.append(
                QuestionAnswer(type="function_call_output", call_id=one.tool_call_id or "", output=one.text)
            )
        previous = asked_by(answers[0].call_id) if place is None else place.id
        return CreateResponse(
            model=given.model, input=list(reversed(answers)), previous_response_id=previous, tools=given.tools
        )
    if place is not None:
        return CreateResponse(
            model=given.model,
            input=[InputMessage(role="user", content=last.text)],
            previous_response_id=place.id,
            tools=given.tools,
        )
    instructions = "\n\n".join(one.text for one in before if one.role in ("system", "developer"))
    spoken = [_spoken(one.role, one.text) for one in before if one.role in ("user", "assistant") and one.text]
    return CreateResponse(
        model=given.model,
        input=[*spoken, InputMessage(role="user", content=last.text)],
        instructions=instructions or None,
        tools=given.tools,
    )


def _spoken(role: str, text: str) -> InputMessage:
    return InputMessage(role="assistant" if role == "assistant" else "user", content=text)


def _digest(user: str, messages: Sequence[CompletionMessage]) -> str:
    told = [user, *((one.role, one.text) for one in messages if one.role != "tool")]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()
