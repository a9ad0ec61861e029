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
from typing import Final, Literal

from iact.core.errors import IactError
from iact.core.ports import JSON
from iact.faces.asked_text import shown_question
from iact.faces.failure import CANCELLED, WorkFailure, failure_from
from iact.faces.http.server import error_fields
from iact.faces.responses.begun import Begun
from iact.faces.responses.output import ResponsePlace, asked_by
from iact.faces.responses.wire import (
    CompletionMessage,
    CreateCompletion,
    CreateResponse,
    InputItem,
    InputMessage,
    InputText,
    QuestionAnswer,
)
from iact.faces.root_text import TextStream
from iact.faces.usage import used

_REMEMBERED: Final = 4096
"""The maximum number of remembered chats, over all users."""


class Chats:
    """Maps chats to sessions."""

    def __init__(self) -> None:
        self._places: OrderedDict[str, ResponsePlace] = OrderedDict()

    def begun(self, user: str, given: CreateCompletion) -> Chat:
        """Translate a request into a Responses request."""
        *before, last = given.messages
        place = self._places.get(_digest(user, given, before)) if before else None
        shown = shown_question(before[-1].text) if before and before[-1].role == "assistant" else None
        return Chat(self, user, given, _request(before, last, place, shown, given), shown)

    def remember(self, user: str, given: CreateCompletion, answer: str, place: ResponsePlace) -> None:
        """Remember where a chat continues."""
        answered = CompletionMessage(role="assistant", content=answer)
        key = _digest(user, given, [*given.messages, answered])
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
    shown: str | None
    """The id of the question that the chat's last answer asks."""

    def failure(self, begun: Begun) -> WorkFailure | None:
        """Why there is no answer, if there is none. This API has no other word for work that a person stopped."""
        if begun.failure is not None or begun.exchange.questions.waiting:
            return begun.failure
        status, _ = begun.ending()
        if status == "cancelled":
            return WorkFailure(CANCELLED, "The user stopped the work.")
        return None

    def completion(self, begun: Begun) -> dict[str, JSON]:
        """Return the answer in one piece."""
        answer = "\n\n".join(begun.texts)
        calls = _calls(begun)
        self.chats.remember(self.user, self.given, answer, begun.place)
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
        text, first = TextStream(longest=begun.terms.longest), True
        # An answer of a certain form is sent when it is known to be of that form.
        whole = begun.terms.form is not None
        yield self._chunk(begun, {"role": "assistant", "content": ""})
        try:
            async with aclosing(begun.events()) as events:
                async for event in events:
                    for piece in text.take(event) if not whole else ():
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

        said = [] if whole else [*text.items]
        for rest in begun.texts if whole else filter(None, [begun.asked]):
            yield self._chunk(begun, {"content": f"\n\n{rest}" if said else rest})
            said.append(rest)
        calls = _calls(begun)
        if calls:
            yield self._chunk(begun, {"tool_calls": [{"index": n, **one} for n, one in enumerate(calls)]})
        self.chats.remember(self.user, self.given, "\n\n".join(said), begun.place)
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
        if begun.calls:
            return "tool_calls"
        status, _ = begun.ending()
        return "length" if status == "incomplete" else "stop"


def _usage(begun: Begun) -> dict[str, JSON]:
    tokens = used(begun.records)
    return {
        "prompt_tokens": tokens.prompt_tokens,
        "completion_tokens": tokens.completion_tokens,
        "total_tokens": tokens.prompt_tokens + tokens.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": tokens.cached_tokens},
    }


def _calls(begun: Begun) -> list[dict[str, JSON]]:
    found: list[dict[str, JSON]] = []
    for item in begun.calls:
        function: dict[str, JSON] = {"name": item["name"], "arguments": item["arguments"]}
        found.append({"id": item["call_id"], "type": "function", "function": function})
    return found


def _request(
    before: Sequence[CompletionMessage],
    last: CompletionMessage,
    place: ResponsePlace | None,
    shown: str | None,
    given: CreateCompletion,
) -> CreateResponse:
    """The request of a chat as one of Responses."""
    answers = _answers([*before, last])
    previous: str | None = None
    # Only the user's own words can answer a question.
    said = _message("user" if last.role == "user" else "developer", last)
    items: list[InputItem]
    instructions = ""
    if answers:
        previous = asked_by(answers[0].call_id) if place is None else place.id
        items = [*answers]
    elif place is not None or shown is not None:
        previous = place.id if place is not None else asked_by(shown or "")
        items = [said]
    else:
        instructions = "\n\n".join(one.text for one in before if one.role in ("system", "developer"))
        spoken = [one for one in before if one.role in ("user", "assistant") and (one.text or one.files)]
        items = [
            *(_message("assistant" if one.role == "assistant" else "user", one) for one in spoken),
            said,
        ]
    return CreateResponse(
        model=given.model,
        input=items,
        instructions=instructions or None,
        previous_response_id=previous,
        tools=[*(given.tools or ()), *(given.functions or ())],
        tool_choice=given.tool_choice if given.tool_choice is not None else given.function_call,
        text={"format": given.response_format} if given.response_format is not None else None,
        max_output_tokens=given.max_completion_tokens or given.max_tokens,
        store=given.store,
        user=given.user,
        safety_identifier=given.safety_identifier,
    )


def _answers(messages: Sequence[CompletionMessage]) -> list[QuestionAnswer]:
    """The answers to calls at the end of a chat, in their order."""
    found: list[QuestionAnswer] = []
    for one in reversed(messages):
        if one.role != "tool":
            break
        found.append(
            QuestionAnswer(type="function_call_output", call_id=one.tool_call_id or "", output=one.text)
        )
    return found[::-1]


def _message(role: Literal["user", "assistant", "developer"], told: CompletionMessage) -> InputMessage:
    """A message of a chat as one of Responses."""
    if not told.files:
        return InputMessage(role=role, content=told.text)
    text = [InputText(type="input_text", text=told.text)] if told.text else []
    return InputMessage(role=role, content=[*text, *told.files])


def _digest(user: str, given: CreateCompletion, messages: Sequence[CompletionMessage]) -> str:
    """The key of a chat. Two people behind one key who say the same have chats of their own."""
    speakers = [user, given.user or "", given.safety_identifier or ""]
    spoken = [one for one in messages if one.role != "tool"]
    told = [speakers, *([one.role, one.text, *_files(one)] for one in spoken)]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _files(message: CompletionMessage) -> list[str]:
    """What tells the files of a message from others."""
    contents = [part.model_dump_json().encode() for part in message.files]
    return [hashlib.sha256(content).hexdigest() for content in contents]
