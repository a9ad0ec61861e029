"""A model behind any endpoint that speaks the OpenAI protocol: streaming, with retries of our own.

`core.models.chat` transports requests and chunks; this module interprets them. A reply that was cut off in the middle
starts again (`StreamRestart`). Silence is bounded between tokens as well as before the first. Every failure ends as one
sentence that says what a person can do. Lower layers never retry a request that an endpoint answered, so waiting goes
through the `Clock` and people see the reason.

Import this module only if an endpoint is in use: the SDK takes half a second to load.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import random
import re
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal

from iact.core.context.tokens import estimated_usage
from iact.core.models import failures
from iact.core.models.chat import ChunkStream, Completions, ErrorChunk, HttpRefusal, Overlong
from iact.core.models.dialect import ACT, ActionWriter, ArgumentReader, CallFragment, CallReader
from iact.core.models.failures import AttemptFailure, Retries
from iact.core.models.known_windows import KnownWindows
from iact.core.models.reply_text import Pairs, Piece, Thoughts
from iact.core.models.stated_limits import LEAST_WINDOW, TooLong, most_reply
from iact.core.models.structured import Form, FormLadder
from iact.core.models.transport import ConnectTimeout
from iact.core.ports import (
    JSON,
    ChatMessage,
    Clock,
    ModelEvent,
    ModelProfile,
    Part,
    ReasoningDelta,
    StreamEnd,
    StreamRecast,
    StreamRestart,
    StreamRetry,
    StreamUnproven,
    TextDelta,
    Usage,
    UsageReport,
)

_REASONING: Final = ("reasoning_content", "reasoning")
"""Fields of a delta in which endpoints send a model's reasoning."""

_UNMARKED: Final = re.compile(r"deepseek-r1|qwq|thinking|reasoner", re.IGNORECASE)
"""Matches models whose prompt ends in the opening mark of reasoning, so that a reply may contain only the closing
mark."""


_FITS: Final = 2
"""How often one reply is asked for again with a smaller limit, because its endpoint says that it has no more room."""

_SPARE: Final = 16
"""Tokens that stay free between the messages and the limit of a reply, as endpoints count them."""

_LEAST_REPLY: Final = 1 / 16
"""The share of a window that a reply needs at least. With less, the messages are too long."""

_FAULTS: Final = (HttpRefusal, ErrorChunk, ConnectTimeout, Overlong, OSError, ValueError)
"""The exceptions with which a request can end."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits on silence, in seconds."""

    connect: float = 10.0
    """Until there is a connection."""
    first: float = 300.0
    """Until the first event of a reply."""
    between: float = 60.0
    """Between two of its events."""
    ending: float = 5.0
    """Until its end, once it has said how it finished."""


class _Failed(Exception):
    """One attempt failed; never leaves this module."""

    def __init__(self, failure: AttemptFailure) -> None:
        super().__init__(failure.why)
        self.failure = failure


_Wait = Literal["first", "between", "ending"]
"""What silence ends: the wait for the first event, for the next one, for the end. Each is a field of `Timeouts`."""


@dataclass(slots=True)
class _Dialect:
    """What this endpoint turned out not to understand; learnt once and kept."""

    usage_option: bool = True
    unmarked: bool | None = None
    """Whether replies contain only the end of reasoning; None if unknown, so that only the model's name can tell."""
    limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    most_reply: int | None = None
    """The most tokens that a request may allow for a reply, if the endpoint has named such a number."""

    def learn(self, refusal: Exception) -> bool:
        """Adapt to a refusal. Returns False if it is not about the dialect."""
        if not isinstance(refusal, HttpRefusal) or refusal.status not in (400, 422):
            return False

        words = failures.message_of(refusal.body)
        is_about_usage = "stream_options" in words or "include_usage" in words
        if self.usage_option and is_about_usage:
            self.usage_option = False
            return True

        if self.limit_name == "max_tokens" and "max_completion_tokens" in words:
            self.limit_name = "max_completion_tokens"
            return True

        most = most_reply(words)
        if self.most_reply is None and most:
            self.most_reply = most
            return True
        return False

    def limit(self, max_tokens: int) -> int:
        """The limit of a reply that the endpoint accepts."""
        return max_tokens if self.most_reply is None else min(max_tokens, self.most_reply)


@dataclass(slots=True)
class _Reading:
    """Turns the chunks of one reply into events. Pure except for its own counters."""

    make_calls: Callable[[], CallReader] | None = None
    """Makes a reader of function calls; None if they are not expected."""
    calls: CallReader | None = None
    """The reader of function calls; None if they are not expected."""
    usage: Usage | None = None
    """As the endpoint reports it. None until then: a consumer that closes early estimates it."""
    events: int = 0
    """How many chunks came."""
    text: list[str] = field(default_factory=list)
    """The reply so far."""
    reasoning: list[str] = field(default_factory=list)
    """The reasoning so far."""
    finish: str | None = None
    """Why the reply ended, in the endpoint's word; None until it has."""
    thoughts: Thoughts = field(default_factory=Thoughts)
    """Separates the reasoning from the reply."""
    pairs: Pairs = field(default_factory=Pairs)
    """Joins the surrogate pairs of the reply."""
    thought_pairs: Pairs = field(default_factory=Pairs)
    """Joins those of the reasoning."""
    told: list[ModelEvent] = field(default_factory=list)
    """The events of the newest chunk; a list, because nested generators cost more than everything else here."""

    def feed(self, chunk: object) -> Sequence[ModelEvent]:
        """Take a decoded `chat.completion.chunk`. Raises TypeError or ValueError if it does not have that shape."""
        self.events += 1
        self.told = []
        fields = _fields(chunk)
        for choice in _list(fields.get("choices")):
            # An endpoint that sends several replies is read as if it had sent the first one only.
            if choice.get("index"):
                continue
            self.finish = _text(choice.get("finish_reason")) or self.finish
            self._delta(_fields(choice.get("delta")))

        reported = _reported(fields)
        if reported is not None and reported != self.usage:
            self.usage = reported
            self.told.append(UsageReport(reported))
        return self.told

    def end(self) -> Sequence[ModelEvent]:
        """End the reply; returns the events that were held back."""
        self.told = []
        self._take_all(self.thoughts.end(whole=self.finish != "length"))
        if self.calls is not None:
            for text in self.calls.end():
                self._tell(self.pairs.feed(text))

        self._think(self.thought_pairs.end())
        self._tell(self.pairs.end())
        return self.told

    def _delta(self, delta: _Fields) -> None:
        """Take what a chunk adds: its reasoning first, because a reply follows on reasoning."""
        text = _text(delta.get("content"))
        for name in _REASONING:
            thought = delta.get(name)
            if isinstance(thought, str) and thought:
                self._take_all(self.thoughts.marked())
                self._think(self.thought_pairs.feed(thought))
                break

        # Read before the text is passed on: a chunk that has the wrong form says nothing.
        calls = _list(delta.get("tool_calls")) if self.calls is not None else ()
        fragments = [_fragment(call) for call in calls]
        if text:
            self._take_all(self.thoughts.feed(text))
        if fragments:
            self._say("", fragments)

    def _take_all(self, pieces: Iterator[Piece]) -> None:
        for piece in pieces:
            if piece.recast:
                self._begin_again()
            if piece.thought:
                self._think(self.thought_pairs.feed(piece.text))
            else:
                self._say(piece.text, ())

    def _begin_again(self) -> None:
        """Forget what was read so far: it was not what it was taken for, and comes again."""
        self.text = []
        self.reasoning = []
        self.pairs = Pairs()
        self.thought_pairs = Pairs()
        self.calls = self.make_calls() if self.make_calls else None
        self.told.append(StreamRecast())

    def _say(self, text: str, fragments: Sequence[CallFragment]) -> None:
        if self.calls is None:
            self._tell(self.pairs.feed(text))
        else:
            for piece in self.calls.feed(text, fragments):
                self._tell(self.pairs.feed(piece))

    def _think(self, text: str) -> None:
        if text:
            self.reasoning.append(text)
            self.told.append(ReasoningDelta(text))

    def _tell(self, text: str) -> None:
        if not text:
            return
        self.text.append(text)
        self.told.append(TextDelta(text))

    @property
    def empty(self) -> bool:
        return not any(piece.strip() for piece in self.text)


_Fields = Mapping[str, object]
"""A JSON object of a chunk. The SDK's own types would cost more than everything else that is done to a chunk."""


def _fields(value: object) -> _Fields:
    """An object of a chunk; empty if it is missing. Raises TypeError."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError("no object where one is due")
    return value


def _list(value: object) -> Sequence[_Fields]:
    """A list of objects of a chunk; empty if it is missing. Raises TypeError."""
    if value is not None and not isinstance(value, list):
        raise TypeError("no list where one is due")
    for item in value or ():
        if not isinstance(item, dict):
            raise TypeError("no object where one is due")
    return value or ()


def _text(value: object) -> str:
    """A text of a chunk; empty if it is missing. Raises TypeError."""
    if value is not None and not isinstance(value, str):
        raise TypeError("no text where one is due")
    return value or ""


def _count(value: object) -> int:
    """A number of tokens; 0 if it is missing. Raises TypeError or ValueError."""
    if value is not None and not isinstance(value, int | float):
        raise TypeError("no number where one is due")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("no finite number")
    return int(value or 0)


def _fragment(call: _Fields) -> CallFragment:
    """A piece of a function call; raises as `_Reading.feed`."""
    function = _fields(call.get("function"))
    index = call.get("index")
    return CallFragment(
        call=index if isinstance(index, int) else 0,
        id=_text(call.get("id")),
        name=_text(function.get("name")),
        arguments=_text(function.get("arguments")),
    )


def _reported(chunk: _Fields) -> Usage | None:
    """The usage in a chunk: the standard field, or the timings of a llama.cpp server."""
    usage = _fields(chunk.get("usage"))
    if usage:
        details = _fields(usage.get("prompt_tokens_details"))
        prompt = _count(usage.get("prompt_tokens"))
        cached = _count(details.get("cached_tokens"))
        completion = _count(usage.get("completion_tokens"))
        return Usage(prompt, cached, completion)

    timings = chunk.get("timings")
    if not isinstance(timings, dict):  # checking for `Mapping` at each piece takes three calls to say no
        return None
    reused = timings.get("cache_n")
    fresh = timings.get("prompt_n")
    written = timings.get("predicted_n")
    if isinstance(reused, int) and isinstance(fresh, int) and isinstance(written, int):
        return Usage(reused + fresh, reused, written)
    return None


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """Where a model is, and how it is asked."""

    url: str
    """The address of the API, which usually ends in /v1."""
    key: str | None
    """The API key; None or empty if there is none."""
    extra: Mapping[str, JSON] = field(default_factory=dict)
    """Further fields for every request, such as a temperature."""
    direct: bool = False
    """Whether the proxies of the environment are ignored."""
    dialect: Literal["text", "tools"] = "text"
    """ "tools" for a model that insists on function calls, which are then written back as action blocks."""


class OpenAIModel:
    """Implements `core.ports.Model` and `core.models.structured.Formed`.

    One object serves any number of concurrent streams on one event loop.
    """

    def __init__(
        self,
        endpoint: ModelEndpoint,
        *,
        profile: ModelProfile,
        clock: Clock,
        rng: random.Random,
        timeouts: Timeouts | None = None,
        retries: Retries | None = None,
        windows: KnownWindows | None = None,
    ) -> None:
        """`rng`: spreads the waits before another attempt. `windows`: what is known about the windows of endpoints.

        Raises:
            UsageError: the endpoint's address is not an http or https address.
        """
        self._name = failures.endpoint_name(endpoint.url)
        self._endpoint = endpoint
        self._profile = profile
        self._clock = clock
        self._rng = rng
        self._timeouts = timeouts or Timeouts()
        self._retries = retries or Retries()

        # What the endpoint turns out to be.
        self._dialect = _Dialect()
        self._windows = windows or KnownWindows()
        self._ladder = FormLadder()

        self._chat = Completions(
            base_url=endpoint.url,
            key=endpoint.key,
            connect=self._timeouts.connect,
            direct=endpoint.direct,
        )

    @property
    def profile(self) -> ModelProfile:
        """What is known about the model. Its window is what its endpoint really has, once that is known."""
        configured = self._profile.context
        window = self._windows.window(self._name, self._profile.name, configured)
        return self._profile if window == configured else replace(self._profile, context=window)

    @property
    def endpoint(self) -> str:
        """The endpoint's address in a form that may be shown."""
        return self._name

    async def warm(self) -> None:
        """Do nothing: the endpoint is run by others."""

    async def close(self) -> None:
        await self._chat.close()

    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent]:
        """See `core.ports.Model.stream`. A `StreamRestart` is sent before each wait for another attempt."""
        if self._endpoint.dialect == "text":
            return self.stream_with(messages, max_tokens=max_tokens, extra={})
        return self.stream_with(
            messages,
            max_tokens=max_tokens,
            extra={"tools": [ACT]},
            calls=partial(ActionWriter, messages),
        )

    @property
    def ladder(self) -> FormLadder:
        """The forms of structured output that the endpoint serves, as far as known."""
        return self._ladder

    def stream_formed(
        self,
        messages: Sequence[ChatMessage],
        *,
        form: Form,
        name: str,
        schema: dict[str, JSON],
        max_tokens: int | None,
        extra: Mapping[str, JSON] | None = None,
    ) -> AsyncGenerator[ModelEvent]:
        """See `core.models.structured.Formed.stream_formed`. `extra`: as in `stream_with`."""
        fields = {**(extra or {}), **_formed(form, name, schema)}
        calls = ArgumentReader if form == "function" else None
        return self.stream_with(messages, max_tokens=max_tokens, extra=fields, calls=calls)

    async def stream_with(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int | None,
        extra: Mapping[str, JSON],
        calls: Callable[[], CallReader] | None = None,
    ) -> AsyncGenerator[ModelEvent]:
        """Like `stream`, with request fields for this call only. `calls` makes the reader of function calls, if any
        come."""
        last_sign = self._clock.monotonic()
        attempt = 0
        limit = max_tokens
        fits = 0
        while True:
            attempt += 1
            try:
                async with aclosing(self._attempt(messages, limit, extra, calls)) as events:
                    async for event in events:
                        if isinstance(event, TextDelta | ReasoningDelta):
                            last_sign = self._clock.monotonic()
                        yield event
                return
            except _Failed as failed:
                failure = failed.failure

            # What did not fit is no failure of the endpoint: it is asked again at once, and that counts as no attempt.
            if failure.too_long is not None:
                smaller = self._room(failure.too_long, limit)
                await self._believe(failure.too_long, fits=smaller is not None)
                if smaller is not None and fits < _FITS:
                    limit = smaller
                    fits += 1
                    attempt -= 1
                    continue

            elapsed = self._clock.monotonic() - last_sign
            wait = self._retries.wait(failure, attempt=attempt, elapsed=elapsed, rng=self._rng)
            if wait is None:
                raise failure.error(self._name, attempt)

            why = f"The model endpoint {self._name} {failure.why}."
            most = self._retries.limit(failure)
            yield StreamRestart(why, attempt + 1, most, wait, limited=failure.limited)
            await self._clock.sleep(wait)
            yield StreamRetry()

    def _room(self, stated: TooLong, limit: int | None) -> int | None:
        """The limit for a reply with which a refused request would fit; None if its messages are too long."""
        if limit is None or stated.window is None or stated.prompt is None:
            return None
        room = stated.window - stated.prompt - _SPARE
        return room if stated.window * _LEAST_REPLY <= room < limit else None

    async def _believe(self, stated: TooLong, *, fits: bool) -> None:
        """Lower the window to what the endpoint says that it has.

        If it names no number, the window is halved; if it names the one that is believed already, our count of tokens
        is too low, and an eighth less is used. Neither is its word, so neither is kept. `fits`: the messages fit, and
        only the limit of the reply was too high.
        """
        model = self._profile.name
        configured = self._profile.context
        believed = self.profile.context
        if stated.window is not None and stated.window < believed:
            self._windows.believe(self._name, model, configured, stated.window)
            await asyncio.to_thread(self._windows.keep, self._name, model, configured)
            return

        if not fits and believed > LEAST_WINDOW:
            less = believed // 2 if stated.window is None else believed * 7 // 8
            self._windows.believe(self._name, model, configured, max(LEAST_WINDOW, less))

    async def _attempt(
        self,
        messages: Sequence[ChatMessage],
        max_tokens: int | None,
        extra: Mapping[str, JSON],
        calls: Callable[[], CallReader] | None,
    ) -> AsyncGenerator[ModelEvent]:
        """One request from beginning to end; raises `_Failed`."""
        dialect = self._dialect
        is_named_so = _UNMARKED.search(self._profile.name) is not None
        thoughts = Thoughts(unmarked=is_named_so if dialect.unmarked is None else dialect.unmarked)
        if dialect.unmarked is None and not is_named_so:
            yield StreamUnproven()

        reading = _Reading(calls, thoughts=thoughts)
        if calls is not None:
            reading.calls = calls()
        reply = await self._open(messages, max_tokens, extra)
        try:
            while (chunk := await self._next(reply, reading)) is not None:
                events = _events(reading, chunk)
                # Known once: a model that did it may do it again, whatever else it sends in between.
                dialect.unmarked = thoughts.closed_alone or dialect.unmarked
                for event in events:
                    yield event
        finally:
            await reply.close()

        if reading.finish is None:
            raise _Failed(_unfinished(reading))
        for event in reading.end():
            yield event

        # Reasoning that the limit cut off may have had no mark yet.
        if dialect.unmarked is None and reading.finish != "length":
            dialect.unmarked = False
        if reading.empty:
            raise _Failed(_nothing(reading.finish, thought=bool(reading.reasoning)))

        if reading.usage is None:
            written = "".join((*reading.reasoning, *reading.text))
            yield UsageReport(estimated_usage(messages, written))
        yield StreamEnd("length" if reading.finish == "length" else "stop")

    async def _open(
        self, messages: Sequence[ChatMessage], max_tokens: int | None, extra: Mapping[str, JSON]
    ) -> ChunkStream:
        """Send the request and wait for the head of the response."""
        wire_messages = _wire(messages)

        # Each round teaches the dialect something that it did not know, so there are only a few.
        while True:
            try:
                return await self._chat.open(
                    self._request(wire_messages, max_tokens, extra), self._timeouts.first
                )
            except _FAULTS as error:
                if self._dialect.learn(error):
                    continue
                failure = self._failure(error, "first")
            # Not inside of `except`: what the SDK raises would be kept as its context, with the request in it.
            raise _Failed(failure)

    def _request(
        self, wire_messages: list[JSON], max_tokens: int | None, extra: Mapping[str, JSON]
    ) -> dict[str, JSON]:
        """The fields of a request, in the endpoint's dialect."""
        request: dict[str, JSON] = {
            "model": self._profile.name,
            "messages": wire_messages,
            "stream": True,
            **self._endpoint.extra,
            **extra,
        }
        if max_tokens is not None:
            request[self._dialect.limit_name] = self._dialect.limit(max_tokens)
        if self._dialect.usage_option:
            request["stream_options"] = {"include_usage": True}
        return request

    async def _next(self, reply: ChunkStream, reading: _Reading) -> object | None:
        """The next chunk; None at the end. After the finish was seen, any fault counts as the end."""
        wait: _Wait = "first"
        if reading.finish:
            wait = "ending"
        elif reading.events:
            wait = "between"

        try:
            return await reply.next(getattr(self._timeouts, wait))
        except _FAULTS as error:
            if reading.finish:
                return None
            failure = self._failure(error, wait)

        if not reading.empty and failure.again == "yes":
            # An endpoint that breaks off again and again after some text is not one that restarts.
            failure = replace(failure, again="few")
        raise _Failed(failure)

    def _failure(self, error: Exception, wait: _Wait) -> AttemptFailure:
        """The failure that one of `_FAULTS` means. `wait`: what was waited for."""
        # A TimeoutError is an OSError, and two of the last are ValueErrors: the special ones come first.
        match error:
            case HttpRefusal():
                return self._from_body(error.status, error.body, error.headers)
            case ConnectTimeout():
                return failures.unreachable(f"can't be reached within {self._timeouts.connect:g} seconds")
            case TimeoutError():
                seconds = getattr(self._timeouts, wait)
                when = "" if wait == "first" else " in the middle of a reply"
                return failures.unreachable(f"stayed silent for {seconds:g} seconds{when}", again="few")
            case OSError():
                return _no_connection(error, begun=wait != "first")
            case ErrorChunk():
                return self._from_body(_status_in(error.body), error.body, {})

            # What was sent is not what the protocol says.
            case Overlong():
                return failures.garbled(str(error))
            case json.JSONDecodeError():
                return failures.garbled("what it streams is not JSON")
            case UnicodeDecodeError():
                return failures.garbled("what it streams is not UTF-8")
            case _:
                return failures.garbled("what it streams has the wrong form")

    def _from_body(self, status: int, body: object, headers: Mapping[str, str]) -> AttemptFailure:
        """The failure that an error of the endpoint means."""
        return failures.from_status(
            status,
            body,
            headers,
            model=self._profile.name,
            now=self._clock.now(),
            secret=self._endpoint.key,
        )


def _formed(form: Form, name: str, schema: dict[str, JSON]) -> dict[str, JSON]:
    """Request fields that ask for an object."""
    match form:
        case "schema":
            named: dict[str, JSON] = {"name": name, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": named}}

        case "function":
            function: dict[str, JSON] = {
                "name": name,
                "description": "Give the answer.",
                "parameters": schema,
            }
            choice: dict[str, JSON] = {"type": "function", "function": {"name": name}}
            return {"tools": [{"type": "function", "function": function}], "tool_choice": choice}

        case "json":
            return {"response_format": {"type": "json_object"}}
        case "text":
            return {}


def _wire(messages: Sequence[ChatMessage]) -> list[JSON]:
    return [{"role": message.role, "content": _content(message)} for message in messages]


def _content(message: ChatMessage) -> JSON:
    """The content of a message: a text, or with parts a list in which each part follows its name."""
    if not message.parts:
        return message.content

    content: list[JSON] = [{"type": "text", "text": message.content}]
    for part in message.parts:
        content += [{"type": "text", "text": f"${part.name}:"}, _part(part)]
    return content


def _part(part: Part) -> JSON:
    data = base64.b64encode(part.load()).decode("ascii")
    match part.medium:
        case "image":
            return {"type": "image_url", "image_url": {"url": f"data:{part.media};base64,{data}"}}
        case "audio":
            form = "wav" if part.media == "audio/wav" else "mp3"
            return {"type": "input_audio", "input_audio": {"data": data, "format": form}}


def _events(reading: _Reading, chunk: object) -> Sequence[ModelEvent]:
    """The events of a chunk; raises `_Failed`, without what was wrong with it."""
    try:
        return reading.feed(chunk)
    except (TypeError, ValueError):
        pass
    raise _Failed(failures.garbled("what it streams has the wrong form"))


def _unfinished(reading: _Reading) -> AttemptFailure:
    """The failure of a stream that ended without saying why."""
    if not reading.events:
        return failures.garbled("it sent no server-sent events")
    again: failures.Again = "yes" if reading.empty else "few"
    return failures.cut("without a finish reason", again=again)


def _nothing(finish: str, *, thought: bool) -> AttemptFailure:
    """The failure of a reply without text. `thought`: there was reasoning."""
    if finish == "content_filter":
        return replace(failures.empty(), why="withheld the reply (content filter)", again="no")
    if thought:
        return failures.only_thought(cut_off=finish == "length")
    if finish == "length":
        return replace(failures.empty(), why="reached the length limit before any text", again="no")
    return failures.empty()


def _no_connection(error: Exception, *, begun: bool) -> AttemptFailure:
    """The failure of a connection. `begun`: some of the reply came."""
    causes = _causes(error)
    first = causes[-1]
    reason = failures.words(str(first)) or type(first).__name__
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return failures.unreachable(f"has no certificate that this machine trusts ({reason})", again="no")
    if begun:
        return failures.cut(reason)

    # A name that nobody knows is rarely known a minute later; a server that is being restarted is there again.
    is_unknown = any(isinstance(cause, socket.gaierror) for cause in causes)
    return failures.unreachable(f"can't be reached ({reason})", again="few" if is_unknown else "yes")


def _causes(error: BaseException) -> list[BaseException]:
    """An exception, and those behind it; the first that happened is the last."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    return causes


def _status_in(body: object) -> int:
    """The HTTP status that an error object in a stream stands for; 500 if it has none."""
    code = body.get("code") if isinstance(body, Mapping) else None
    if isinstance(code, str) and code.isdigit():
        code = int(code)
    if isinstance(code, int) and 400 <= code < 600:
        return code
    marks = f"{failures.codes_of(body)} {failures.message_of(body)}"
    return 400 if "invalid_request" in marks or "exceed_context" in marks else 500
