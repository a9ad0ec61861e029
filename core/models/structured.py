"""A model's verdict as a typed value: the one function for code that needs more than text from a model.

Endpoints differ in what they can guarantee, so the value is requested in three steps, the strictest first: a native
schema (or a forced function call, if that is refused), JSON mode, plain text. The messages of the request are the same
in every step, so a step costs no re-reading of the prompt, and every reply is parsed with tolerance. A step is not
tried again at an endpoint that refuses it but serves a later one, or whose replies to it did not fit several times.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Final, Generic, Literal, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ValidationError

from iact.core.context.tokens import CHARACTERS_PER_TOKEN, estimated_usage
from iact.core.errors import ModelGarbled, ModelRefused, StructuredFailed
from iact.core.models.failures import ContextTooLong
from iact.core.objects import objects
from iact.core.ports import (
    JSON,
    ChatMessage,
    Model,
    ModelEvent,
    StreamEnd,
    StreamRecast,
    StreamRestart,
    TextDelta,
    Usage,
    UsageReport,
)

Step = Literal["native", "json", "text"]
Form = Literal["schema", "function", "json", "text"]
"""How a request asks for an object: `response_format` with a schema, a forced function, JSON mode, or not at all."""

FORMS: Final[tuple[Form, ...]] = ("schema", "function", "json", "text")
_STEPS: Final[dict[Form, Step]] = {"schema": "native", "function": "native", "json": "json", "text": "text"}
_MOST_TOKENS: Final = 32_768
"""The tokens of an answer of which no other bound is known."""
_PATIENCE: Final = 3
_REPEATED: Final = 4000
_NAMED: Final = 3
T = TypeVar("T", bound=BaseModel)


@dataclass(slots=True)
class FormLadder:
    """What one endpoint turned out to support; at first it is trusted to support everything."""

    _useless: dict[Form, int] = field(default_factory=dict)

    @classmethod
    def plain(cls) -> FormLadder:
        """The ladder of a model that can only be asked in text."""
        return cls(dict.fromkeys(FORMS, _PATIENCE))

    def forms(self) -> list[Form]:
        """The forms that are worth a request, the strictest first; always ends with "text"."""
        return [form for form in FORMS if form == "text" or self._useless.get(form, 0) < _PATIENCE]

    def refused(self, form: Form) -> None:
        """Note that the endpoint does not support this form of request."""
        self._useless[form] = _PATIENCE

    def served(self, form: Form, *, fits: bool) -> None:
        """Note that the endpoint replied, and whether the reply fits."""
        self._useless[form] = 0 if fits else self._useless.get(form, 0) + 1


@runtime_checkable
class Formed(Protocol):
    """A model whose endpoint can be told the form of its reply. Other models are asked in plain text."""

    @property
    def ladder(self) -> FormLadder:
        """What its endpoint is known to support."""
        ...

    def stream_formed(
        self,
        messages: Sequence[ChatMessage],
        *,
        form: Form,
        name: str,
        schema: dict[str, JSON],
        max_tokens: int | None,
    ) -> AsyncGenerator[ModelEvent]:
        """Like `core.ports.Model.stream`, in the form `form`; arguments of a forced function arrive as text.

        `schema`: JSON Schema of an object, called `name` (letters, digits, `_`).
        """
        ...


@dataclass(frozen=True, slots=True)
class Structured(Generic[T]):
    """A verdict."""

    value: T
    step: Step
    """Which of the three steps served."""
    usage: Usage
    """Of all requests that it took."""


async def structured(
    model: Model,
    messages: Sequence[ChatMessage],
    shape: type[T],
    *,
    max_tokens: int | None,
    tell: Callable[[ModelEvent], None] = lambda event: None,
) -> Structured[T]:
    """Ask `model` for an object of `shape`, whose JSON Schema must be that of an object.

    `messages` say what is wanted; the form of the answer is appended. `tell`: called with every event.

    Raises:
        StructuredFailed: the model replied, but in no step with a value that fits.
        ModelError: the endpoint can't be used at all (as for `Model.stream`).
    """
    return await _Asking(model, messages, shape, max_tokens, tell).run()


@dataclass(frozen=True, slots=True)
class _Reply:
    """A reply."""

    text: str
    cut: bool
    """Whether the length limit ended it."""


@dataclass(frozen=True, slots=True)
class _Wrong:
    """A reply that does not fit; `what` continues "because …"."""

    what: str


class _Asking(Generic[T]):
    """One verdict from the first request to the last."""

    def __init__(
        self,
        model: Model,
        messages: Sequence[ChatMessage],
        shape: type[T],
        max_tokens: int | None,
        tell: Callable[[ModelEvent], None],
    ) -> None:
        self._tell = tell
        self._model = model
        self._shape = shape
        self._schema = schema_of(shape)
        self._messages = _instructed(messages, self._schema)
        self._max_tokens = max_tokens
        self._longest = (max_tokens or _MOST_TOKENS) * CHARACTERS_PER_TOKEN
        self._usage = Usage()

    async def run(self) -> Structured[T]:
        ladder = self._model.ladder if isinstance(self._model, Formed) else FormLadder.plain()
        refused: list[Form] = []
        has_answered = False
        for form in ladder.forms():
            # It replaces a schema that was refused, not one that did not help.
            if form == "function" and has_answered:
                continue

            try:
                reply = await self._ask(form, self._messages)
            except ContextTooLong:
                raise
            except (ModelRefused, ModelGarbled) as error:
                if form == "text":
                    raise
                if isinstance(error, ModelRefused):
                    refused.append(form)
                continue

            # The forms were the reason for the refusals, because another form is served.
            has_answered = True
            while refused:
                ladder.refused(refused.pop())

            value = self._read(reply)
            fits = not isinstance(value, _Wrong)
            ladder.served(form, fits=fits)
            if not isinstance(value, _Wrong):
                return Structured(value, _STEPS[form], self._usage)
            if form == "text":
                return await self._once_more(reply, value)
        raise AssertionError("the last form either gives a value or raises")

    async def _once_more(self, reply: _Reply, wrong: _Wrong) -> Structured[T]:
        """The corrective retry at the last step."""
        earlier = reply.text if len(reply.text) <= _REPEATED else reply.text[: _REPEATED - 1] + "…"
        request = (
            f"This can't be used, because {wrong.what}. Answer again, with nothing but the whole JSON object."
        )
        dialogue = [ChatMessage("assistant", earlier), ChatMessage("user", request)]
        again = await self._ask("text", [*self._messages, *dialogue])

        value = self._read(again)
        if not isinstance(value, _Wrong):
            return Structured(value, "text", self._usage)

        raise StructuredFailed(
            f"The model {self._model.profile.name} returned no usable {self._shape.__name__}, because "
            f"{value.what}; choose a model that can write JSON, or allow it more tokens.",
            reply=again.text,
            prompt_tokens=self._usage.prompt_tokens,
            completion_tokens=self._usage.completion_tokens,
        )

    async def _ask(self, form: Form, messages: Sequence[ChatMessage]) -> _Reply:
        """One request; its usage is counted even if it fails."""
        text = ""
        cut = False
        usage: Usage | None = None
        try:
            async with aclosing(self._stream(form, messages)) as events:
                async for event in events:
                    self._tell(event)
                    match event:
                        case TextDelta(piece):
                            room = self._longest - len(text)
                            text += piece[:room]
                            if len(piece) > room:
                                cut = True  # its endpoint ignores the limit
                                break
                        case StreamRestart() | StreamRecast():
                            text = ""
                        case UsageReport(reported):
                            usage = reported
                        case StreamEnd(finish):
                            cut = finish == "length"
        finally:
            if usage is None:
                # A request that failed before its first word is not paid for.
                usage = estimated_usage(messages, text) if text else Usage()
            self._usage = _added(self._usage, usage)
        return _Reply(text, cut)

    def _stream(self, form: Form, messages: Sequence[ChatMessage]) -> AsyncGenerator[ModelEvent]:
        if not isinstance(self._model, Formed):
            return self._model.stream(messages, max_tokens=self._max_tokens)

        name = _name(self._shape)
        return self._model.stream_formed(
            messages, form=form, name=name, schema=self._schema, max_tokens=self._max_tokens
        )

    def _read(self, reply: _Reply) -> T | _Wrong:
        """The first object in the reply that fits, or what is wrong with the first one that does not."""
        first = ""
        for fields in objects(reply.text):
            try:
                return self._shape.model_validate(fields)
            except ValidationError as error:
                first = first or "; ".join(_sentences(error))

        if first:
            return _Wrong(first)
        if reply.cut:
            return _Wrong("it was cut off by the length limit before the JSON object was complete")
        return _Wrong("there is no complete JSON object in it")


def _instructed(messages: Sequence[ChatMessage], schema: dict[str, JSON]) -> list[ChatMessage]:
    """`messages` with the form of the answer appended to the user's last one."""
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    instruction = f"Answer with one JSON object that fits this JSON Schema, and nothing else:\n{text}"

    *before, last = messages or [ChatMessage("user", "")]
    if last.role != "user":
        return [*before, last, ChatMessage("user", instruction)]
    return [*before, replace(last, content=f"{last.content}\n\n{instruction}".lstrip())]


def schema_of(shape: type[BaseModel]) -> dict[str, JSON]:
    """The JSON Schema of a shape, as it is sent."""
    return _untitled(shape.model_json_schema())


def _untitled(schema: dict[str, JSON]) -> dict[str, JSON]:
    """A schema without the titles that pydantic derives from names: they say nothing, and every question pays for
    them."""
    untitled: dict[str, JSON] = {}
    for name, rule in schema.items():
        if name == "title" and isinstance(rule, str):
            continue

        # The names in these are the shape's own: one of its fields may be called "title".
        if name in ("properties", "$defs") and isinstance(rule, dict):
            untitled[name] = {field_name: _untitled_rule(inner) for field_name, inner in rule.items()}
        elif isinstance(rule, list):
            untitled[name] = [_untitled_rule(inner) for inner in rule]
        else:
            untitled[name] = _untitled_rule(rule)
    return untitled


def _untitled_rule(rule: JSON) -> JSON:
    return _untitled(rule) if isinstance(rule, dict) else rule


def _name(shape: type[BaseModel]) -> str:
    """A shape's name, in the signs and the length that endpoints allow."""
    return re.sub(r"[^A-Za-z0-9]", "_", shape.__name__)[:64]


def _sentences(error: ValidationError) -> Iterator[str]:
    """What is wrong with the first few fields."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    for fault in faults[:_NAMED]:
        place = ".".join(str(part) for part in fault["loc"])[:100] or "the object"
        yield f"`{place}`: {fault['msg'][:200]}"
    if len(faults) > _NAMED:
        yield f"and {len(faults) - _NAMED} more"


def _added(usage: Usage, more: Usage) -> Usage:
    return replace(
        usage,
        prompt_tokens=usage.prompt_tokens + more.prompt_tokens,
        cached_tokens=usage.cached_tokens + more.cached_tokens,
        completion_tokens=usage.completion_tokens + more.completion_tokens,
        estimated=usage.estimated or more.estimated,
    )
