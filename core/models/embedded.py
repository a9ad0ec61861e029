"""The model for a machine without any endpoint: llama.cpp in this process, behind the same protocol.

llama.cpp's own server listens on the loopback interface, on a free port and with a key that only this process knows. So
the embedded model is an `OpenAIModel` like any other, and tests of it cover everything around it. There are three
differences: it starts in a thread when it is first needed; before the first request it measures its bias and leaves the
static prompt in its cache; and it is steered (see `small_model`), because a model of this size does not act on its own.

`python -m iact.core.models.embedded fetch` downloads the model's file.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import random
import secrets
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx

from iact.core.errors import ModelError, ModelUnreachable
from iact.core.models import small_model, weights
from iact.core.models.small_model import LEAD, MENU, STATIC, STRENGTH, TALK, ReplyForm
from iact.core.models.structured import Form, FormLadder
from iact.core.ports import (
    JSON,
    ChatMessage,
    Clock,
    ModelEvent,
    ModelProfile,
    Report,
    StreamEnd,
    StreamRecast,
    StreamRestart,
    StreamUnproven,
    TextDelta,
    Usage,
    UsageReport,
)

if TYPE_CHECKING:
    from iact.core.models.openai import OpenAIModel

LIBRARY: Final = "libgomp1"
"""Debian's package of a library that llama.cpp also needs; minimal systems lack it."""

CONTEXT: Final = 8192
"""The context window that the model was trained for."""

PROFILE: Final = ModelProfile(
    name="SmolLM2-135M-Instruct",
    context=CONTEXT,
    label="SmolLM2-135M, embedded: a tiny demonstration model that can run simple commands, not for real work; "
    "set OPENAI_BASE_URL to use a real one.",
    static=STATIC,
)

_THREADS: Final = (
    1  # its threads spin while they wait for each other; measured on a busy machine, two are 4x slower
)
_BATCH: Final = 256  # tokens; a cancelled request is noticed between batches
_CACHE_MIB: Final = 256
_FLOOR: Final = -15.0  # log probability of a token that is not even among the most likely ones
_LIKELY: Final = 4000
_SECONDS: Final = 120
_FIXED: Final[dict[str, JSON]] = {"temperature": 0, "seed": 1, "timings_per_token": True}


@dataclass(frozen=True, slots=True)
class _Running:
    """A started server: the object that keeps it alive, the client, and the correction of the first step."""

    server: object
    client: OpenAIModel
    bias: list[JSON]


class EmbeddedModel:
    """Implements `core.ports.Model`. Cheap to make: nothing is loaded before `warm` or the first stream.

    `report` receives progress while the model's file is downloaded, from another thread.
    """

    def __init__(self, *, clock: Clock, rng: random.Random, report: Report = lambda line: None) -> None:
        self._clock = clock
        self._rng = rng
        self._report = report
        self._running: _Running | None = None
        self._starting = asyncio.Lock()
        self._closed = False
        self._ladder = FormLadder()

    @property
    def profile(self) -> ModelProfile:
        return PROFILE

    async def warm(self) -> None:
        """Get ready: download what is missing, load the model, and read the static prompt. Quick if already done.

        Raises:
            ModelUnreachable: the file or llama.cpp is not available.
        """
        await self._ready()

    async def close(self) -> None:
        """Stop the server and its threads."""
        self._closed = True
        async with self._starting:
            running, self._running = self._running, None
            if running is not None:
                await running.client.close()
                await asyncio.to_thread(_release, running)

    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent]:
        """See `core.ports.Model.stream`."""
        return self._stream(messages, max_tokens)

    @property
    def ladder(self) -> FormLadder:
        """See `core.models.structured.Formed`; llama.cpp derives a grammar from the schema."""
        return self._ladder

    async def stream_formed(
        self,
        messages: Sequence[ChatMessage],
        *,
        form: Form,
        name: str,
        schema: dict[str, JSON],
        max_tokens: int | None,
    ) -> AsyncGenerator[ModelEvent]:
        """See `core.models.structured.Formed`. Not steered: steering is for agents."""
        client = (await self._ready()).client
        reply = client.stream_formed(
            messages, form=form, name=name, schema=schema, max_tokens=max_tokens, extra=_FIXED
        )
        async with aclosing(reply) as events:
            async for event in events:
                yield event

    async def _ready(self) -> _Running:
        async with self._starting:
            if self._closed:
                raise ModelUnreachable("The embedded model was closed; start the program again.")
            if self._running is None:
                self._running = await _start(self._clock, self._rng, self._report)
            return self._running

    async def _stream(
        self, messages: Sequence[ChatMessage], max_tokens: int | None
    ) -> AsyncGenerator[ModelEvent]:
        running = await self._ready()
        first = Usage()
        match small_model.read(messages, 1 + len(STATIC.examples)):
            case small_model.Task(request, True):
                phrase, first = await self._point(running, messages)
                plan = small_model.commanding(phrase, request) or small_model.talking()
            case small_model.Task():
                plan = small_model.talking()
            case small_model.Outcome() as outcome:
                again = small_model.commanding(outcome.phrase, outcome.request, outcome.tried)
                plan = again if outcome.status and again else small_model.answering(outcome)
        begun = [ChatMessage("assistant", plan.begin)] if plan.begin else []
        fields: dict[str, JSON] = {**_FIXED, "grammar": plan.grammar}
        reply = running.client.stream_with([*messages, *begun], max_tokens=max_tokens, extra=fields)
        async with aclosing(_shown(reply, plan, first)) as events:
            async for event in events:
                yield event

    async def _point(self, running: _Running, messages: Sequence[ChatMessage]) -> tuple[str, Usage]:
        """The first step: the phrase that the model chooses from the menu, or "" for small talk."""
        plan = small_model.pointing()
        said, usage = plan.begin, Usage()
        fields: dict[str, JSON] = {**_FIXED, "grammar": plan.grammar, "logit_bias": running.bias}
        context = [*messages, ChatMessage("assistant", plan.begin)]
        async with aclosing(running.client.stream_with(context, max_tokens=24, extra=fields)) as events:
            async for event in events:
                match event:
                    case TextDelta(text):
                        said += text
                    case StreamRestart() | StreamRecast():
                        said = plan.begin
                    case UsageReport(reported):
                        usage = reported
        return small_model.phrase_of(said), usage


async def _shown(
    reply: AsyncGenerator[ModelEvent], plan: ReplyForm, first: Usage
) -> AsyncGenerator[ModelEvent]:
    """A reply's events for the consumer: with the given parts added and the mark of small talk removed."""
    held: str | None = ""
    async with aclosing(reply) as events:
        async for event in events:
            match event:
                case TextDelta(text) if held is not None:
                    held += text
                    if not TALK.startswith(held):
                        yield TextDelta(plan.begin + held.removeprefix(TALK))
                        held = None
                case StreamRestart() | StreamRecast():
                    held = ""
                    yield event
                case StreamUnproven():
                    pass  # the embedded model does not think before it replies
                case UsageReport(usage):
                    yield UsageReport(_both(first, usage))
                case StreamEnd("stop") if plan.end:
                    yield TextDelta(plan.end)
                    yield event
                case _:
                    yield event


def _both(first: Usage, second: Usage) -> Usage:
    """Merge the usage of two requests over the same messages. The second's cache hits are the first's work and don't
    count."""
    if not first.prompt_tokens:
        return second
    completion = first.completion_tokens + second.completion_tokens
    return replace(second, cached_tokens=first.cached_tokens, completion_tokens=completion)


# --- the server -----------------------------------------------------------------------------------


async def _start(clock: Clock, rng: random.Random, report: Report) -> _Running:
    """Start llama.cpp's server and warm it up. Cancelling takes no longer than loading the file."""
    from iact.core.models.openai import OpenAIModel

    key = secrets.token_hex(16)
    try:
        server, address = await asyncio.to_thread(_load, key, report)
        async with aclosing(_Native(address, key)) as native:
            bias = await _bias(native)
    except (httpx.HTTPError, ValueError, KeyError, IndexError) as error:
        raise ModelUnreachable(
            f"The embedded model does not start ({error}); run make setup again, or set OPENAI_BASE_URL to a "
            "model endpoint of your own."
        ) from error
    client = OpenAIModel(
        base_url=f"{address}/v1", key=key, profile=PROFILE, clock=clock, rng=rng, direct=True
    )
    return _Running(server, client, bias)


def _load(key: str, report: Report) -> tuple[object, str]:
    return serve(str(weights.model_file() if weights.present() else weights.fetch(report)), key)


def serve(path: str, key: str) -> tuple[object, str]:
    """Start llama.cpp's server over the model's file. Returns the object that keeps it alive, and its address. Blocks.

    Raises:
        ModelUnreachable: llama.cpp is not installed, or can't load the file.
    """
    try:
        import xllamacpp  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise ModelUnreachable(
            "The embedded model needs the package xllamacpp, which is not installed; run make setup, or set "
            "OPENAI_BASE_URL to a model endpoint of your own."
        ) from error
    except ImportError as error:
        raise ModelUnreachable(
            f"The embedded model needs a library of the system ({error}); run `sudo apt-get install {LIBRARY}`, or set "
            "OPENAI_BASE_URL to a model endpoint of your own."
        ) from error
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.n_batch = _BATCH
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = _THREADS
    params.cpuparams_batch.n_threads = _THREADS
    params.cache_ram_mib = _CACHE_MIB
    params.verbosity = 0
    params.api_keys = [key]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.ui = False
    params.endpoint_slots = False
    try:
        server = xllamacpp.Server(params)
    except (RuntimeError, OSError) as error:
        raise ModelUnreachable(
            f"The embedded model can't be loaded ({error}); free some memory, or set OPENAI_BASE_URL to a "
            "model endpoint of your own."
        ) from error
    address = str(server.listening_address)
    _seen_working(address, key)
    return server, address


def _seen_working(address: str, key: str) -> None:
    """Wait for the server's first reply: a server that is dropped before its loop has begun never ends."""
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=address, headers=headers, timeout=_SECONDS, trust_env=False) as client:
        client.post("/completion", json={"prompt": "a", "n_predict": 1})


def _release(running: _Running) -> None:
    """Drop the last reference to the server, which stops it; blocks until its threads have ended."""
    del running


class _Native:
    """The few calls to llama.cpp's server that are not part of the OpenAI protocol."""

    def __init__(self, address: str, key: str) -> None:
        self._client = httpx.AsyncClient(
            base_url=address, headers={"Authorization": f"Bearer {key}"}, timeout=_SECONDS, trust_env=False
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def post(self, path: str, body: Mapping[str, JSON]) -> dict[str, JSON]:
        found = (await self._client.post(path, json=body)).raise_for_status().json()
        if not isinstance(found, dict):
            raise ValueError(f"llama.cpp's server answers {path} in an unknown form")
        return found

    async def first_token(self, text: str) -> int:
        """The id of the first token of `text`."""
        tokens = (await self.post("/tokenize", {"content": text}))["tokens"]
        assert isinstance(tokens, list)
        token = tokens[0]
        assert isinstance(token, int)
        return token

    async def next_token(self, messages: Sequence[ChatMessage], begun: str) -> dict[int, float]:
        """Log probabilities of the likeliest next tokens after `begun` in the reply to `messages`."""
        listed: list[JSON] = [{"role": message.role, "content": message.content} for message in messages]
        prompt = (await self.post("/apply-template", {"messages": listed}))["prompt"]
        assert isinstance(prompt, str)
        found = await self.post(
            "/completion", {"prompt": prompt + begun, "n_predict": 1, "n_probs": _LIKELY, "temperature": 0}
        )
        return _likeliest(found)


def _likeliest(found: JSON) -> dict[int, float]:
    """Token ids to log probabilities, from the server's data about its first token."""
    match found:
        case {"completion_probabilities": [{"top_logprobs": list(listed)}, *_]}:
            return {
                token: float(value)
                for item in listed
                if isinstance(item, dict)
                and isinstance(token := item.get("id"), int)
                and isinstance(value := item.get("logprob"), int | float)
            }
    raise ValueError("llama.cpp's server gives no probabilities")


async def _bias(native: _Native) -> list[JSON]:
    """How much to add to each phrase's first token: its log probability after requests that say nothing.

    It is the same for the same model, prompt and menu, so it is stored next to the model's file. Either way the static
    prompt is left in the server's cache.
    """
    asked = [_blank(text) for text in small_model.BLANKS]
    kept = weights.cache_folder() / f"prejudice-{_digest(asked)}.json"
    known = _read(kept)
    if known is not None:
        await native.next_token(asked[0], LEAD)
        return known
    tokens = {await native.first_token(f" {phrase}") for phrase in MENU}
    blanks = [await native.next_token(messages, LEAD) for messages in asked]
    bias: list[JSON] = [[await native.first_token(" some"), -small_model.DOUBT]]
    for token in sorted(tokens):
        mean = sum(blank.get(token, _FLOOR) for blank in blanks) / len(blanks)
        bias.append([token, -STRENGTH * mean])
    with contextlib.suppress(OSError):  # a cache that can't be written costs the next start three seconds
        _write(kept, bias)
    return bias


def _digest(asked: Sequence[Sequence[ChatMessage]]) -> str:
    """The digest of everything that the bias depends on."""
    said = [[[message.role, message.content] for message in messages] for messages in asked]
    parts: JSON = [weights.SHA256, LEAD, list(MENU), STRENGTH, small_model.DOUBT, _FLOOR, json.dumps(said)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _read(path: Path) -> list[JSON] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, list) else None


def _write(path: Path, bias: list[JSON]) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        whole = Path(folder) / path.name
        whole.write_text(json.dumps(bias), encoding="utf-8")
        os.replace(whole, path)


def _blank(request: str) -> list[ChatMessage]:
    opening = (
        "You are agent /, called by the user.\n\nFunctions you can use:\n"
        "- `shell.run` (alias `BASH`): Run a bash or Python script in the sandbox.\n\n"
        f"Message from the user:\n```\n{request}\n```\n\n(state) time: 2026-11-21 02:31 UTC"
    )
    return [ChatMessage("system", STATIC.system), *STATIC.examples, ChatMessage("user", opening)]


# --- command line ---------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """`fetch`: download the model's file, with progress on stdout."""
    if list(arguments) != ["fetch"]:
        print("usage: python -m iact.core.models.embedded fetch", file=sys.stderr)
        return 2
    try:
        weights.fetch(lambda line: print(line, flush=True))
    except ModelError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
