"""The model on board: llama.cpp in a process of ours, behind the same protocol as every other model.

llama.cpp's own server listens on the loopback interface, on a free port and with a key that only we know. So the model on
board is an `OpenAIModel` like any other, and tests of it cover everything around it. There are four differences. It starts
when it is first needed, which may mean a download. What it has computed for its
static prompt is kept on disk, so that a later start reads it instead of computing it again. After minutes without use
its memory is released. And where it plainly does not get on, it says so instead of trying again.

`python -m iact.models.embedded fetch` downloads the model's file.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import secrets
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import httpx

from iact.core.errors import ModelError, ModelUnreachable
from iact.core.models.structured import Form, FormLadder
from iact.core.ports import (
    JSON,
    ChatMessage,
    Clock,
    ModelEvent,
    ModelProfile,
    StreamEnd,
    StreamRecast,
    StreamRestart,
    StreamWait,
    TextDelta,
    Usage,
    UsageReport,
)
from iact.models import download
from iact.models.added import chosen_file
from iact.models.board import BoardPhase, BoardState, Report
from iact.models.download import FetchProgress, Phase, Tell
from iact.models.giving_up import postscript, surrender
from iact.models.kept_states import KeptState, kept_state
from iact.models.llama_process import LlamaProcess
from iact.models.prompt import STATIC
from iact.models.weights import ChosenFile, ModelFile, OwnFile, select

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iact.core.models.openai import OpenAIModel

CONTEXT: Final = 12_288
"""The window in tokens; the static prompt takes a third of it. The model was trained for more, but each token takes 28 kB of
memory and time to read."""

CONTEXT_OF_LARGE: Final = 16_384
"""The window of a large model's file, if the model was trained for as much."""

REPLY: Final = 640
"""The most tokens of a reply. What it needs more for, it does not get right, and it takes minutes to write it."""

IDLE_SECONDS: Final = 600.0
"""After so long without use, the model's memory is released."""

_SECONDS: Final = 1800
"""For how long llama.cpp may compute the static prompt. A quiet machine needs one minute, a busy one ten times as long."""
_TELL_SECONDS: Final = 2.0
"""How often a person is told how far a download is."""
_PRINT_EVERY: Final = 64 << 20
"""The bytes between two lines of a download that is printed."""
_PHASES: Final[dict[Phase, BoardPhase]] = {
    "waiting": "waiting",
    "hub": "downloading",
    "index": "downloading",
    "checking": "checking",
    "ready": "loading",
}
"""What each phase of a download is for people who wait for the model."""
_SLOT: Final = "/slots/0"
_FIXED: Final[dict[str, JSON]] = {
    "temperature": 0,
    "seed": 1,
    "repeat_penalty": 1.05,  # as its makers recommend, but less: results must be quoted as they are
    "timings_per_token": True,
    "id_slot": 0,
    # What only the system writes ends a reply: a model of this size likes to write results itself.
    "stop": ["\nResult of `", "\nMessage from ", "\n(state)"],
}
_SEPARATE: Final = "How far is it from here"
"""A request that begins like no example, for what comes behind the static prompt."""


@dataclass(frozen=True, slots=True)
class _Running:
    """A started server, and its client."""

    server: LlamaProcess
    client: OpenAIModel


class EmbeddedModel:
    """Implements `core.ports.Model`. Cheap to make: nothing is loaded before `warm` or the first stream.

    `selection`: which file is used; None: what fits the machine. `report` receives how far the model is, also from other
    threads. `idle`: seconds without use after which the memory is released. `bare`: without its static prompt, which takes
    a minute to compute, for a model that is only tried.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        rng: random.Random,
        selection: ChosenFile | None = None,
        report: Report = lambda state: None,
        idle: float = IDLE_SECONDS,
        bare: bool = False,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._report = report
        self._idle = idle
        self._selection = selection or select(None)
        self._profile = profile_of(self._selection)
        if bare:
            self._profile = replace(self._profile, static=None)
        self._running: _Running | None = None
        self._starting = asyncio.Lock()
        self._uses = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._ladder = FormLadder()
        self._progress: FetchProgress | None = None
        self._was_ready = False

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    @property
    def loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._running is not None

    @property
    def progress(self) -> FetchProgress | None:
        """How far a download is; None if there was none."""
        return self._progress

    async def warm(self) -> None:
        """Get ready: download what is missing, load the model, and read the static prompt. Quick if already done.

        Raises:
            ModelUnreachable: the file or llama.cpp is not available.
        """
        with self._in_use():
            await self._ready()

    async def close(self) -> None:
        """Stop the server and its threads."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        async with self._starting:
            running, self._running = self._running, None
            if running is not None:
                await running.client.close()
                await asyncio.to_thread(running.server.stop)

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
        """See `core.models.structured.Formed`."""
        with self._in_use():
            client = (await self._ready()).client
            reply = client.stream_formed(
                messages,
                form=form,
                name=name,
                schema=schema,
                max_tokens=self._limit(max_tokens),
                extra=_FIXED,
            )
            async with aclosing(reply) as events:
                async for event in events:
                    yield event

    def _limit(self, max_tokens: int | None) -> int | None:
        if self._profile.static is None:
            return max_tokens
        return REPLY if max_tokens is None else min(REPLY, max_tokens)

    async def _stream(
        self, messages: Sequence[ChatMessage], max_tokens: int | None
    ) -> AsyncGenerator[ModelEvent]:
        words = ""
        if self._profile.static is not None:
            words = surrender(messages, 1 + len(STATIC.examples))
        if words:
            yield TextDelta(words)
            yield UsageReport(Usage())
            yield StreamEnd("stop")
            return

        with self._in_use():
            ready = asyncio.ensure_future(self._ready())
            told = ""
            try:
                while not (await asyncio.wait([ready], timeout=_TELL_SECONDS))[0]:
                    why = self._waiting_for()
                    if why != told:
                        told = why
                        yield StreamWait(why)
            finally:
                ready.cancel()
            client = ready.result().client
            reply = client.stream_with(messages, max_tokens=self._limit(max_tokens), extra=_FIXED)
            async with aclosing(reply) as events:
                async for event in self._completed(events, max_tokens):
                    yield event

    async def _completed(
        self, events: AsyncIterator[ModelEvent], max_tokens: int | None
    ) -> AsyncIterator[ModelEvent]:
        """What the model says, and behind it where to find a larger one, if this plainly was no answer."""
        # A caller may want a few words only, and then a reply that ends there is not too long.
        whole = max_tokens is None or max_tokens >= REPLY
        written: list[str] = []
        async for event in events:
            match event:
                case TextDelta(text):
                    written.append(text)
                case StreamRestart() | StreamRecast():
                    written.clear()
                case StreamEnd(finish) if whole and self._profile.static is not None:
                    more = postscript("".join(written), cut=finish == "length")
                    if more:
                        yield TextDelta(more)
            yield event

    def _waiting_for(self) -> str:
        """Why a first reply takes longer, for people."""
        fetched = self._progress is not None and self._progress.phase == "ready"
        if self._progress is None or fetched:
            return "The small model on board is being loaded."
        return f"The small model on board comes: {self._progress}."

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """Keep the model in memory while this lasts, and for a while after it."""
        self._uses += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            yield
        finally:
            self._uses -= 1
            if not self._uses and not self._closed:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(self._idle, self._let_go, loop)

    def _let_go(self, loop: asyncio.AbstractEventLoop) -> None:
        """Release the memory, if nobody uses the model."""
        if self._uses or self._running is None:
            return
        running, self._running = self._running, None
        loop.run_in_executor(None, running.server.stop)

    async def _ready(self) -> _Running:
        async with self._starting:
            if self._closed:
                raise ModelUnreachable("The model on board was closed; start the program again.")
            if self._running is not None and not self._running.server.running:
                # Something ended it, such as a system without memory.
                await self._running.client.close()
                self._running = None
            if self._running is None:
                self._running = await self._reported_start()
            return self._running

    async def _reported_start(self) -> _Running:
        """Start, and report how far it is. A later start, after the memory was released, is reported only if it fails."""
        try:
            running = await self._start()
        except ModelError as error:
            self._was_ready = False
            self._report(BoardState("failed", why=str(error)))
            raise
        self._was_ready = True
        self._report(BoardState("ready"))
        return running

    async def _start(self) -> _Running:
        """Start llama.cpp's server and warm it up. Cancelling ends it at once."""
        from iact.core.models.openai import ModelEndpoint, OpenAIModel

        weights = self._selection.weights
        if weights is None:
            # In a terminal, no link is beside it.
            reason = self._selection.reason
            raise ModelUnreachable(f"{reason} Connect one in the settings, or with `iact model add`.")
        path = await asyncio.to_thread(download.fetch, weights, self._note)
        key = secrets.token_hex(16)
        server = LlamaProcess(path, key, self._profile.context)
        try:
            address = await asyncio.to_thread(server.start)
            if self._profile.static is not None:
                async with httpx.AsyncClient(
                    base_url=address,
                    headers={"Authorization": f"Bearer {key}"},
                    timeout=_SECONDS,
                    trust_env=False,
                ) as native:
                    await _read_static_prompt(native, weights)
        except (httpx.HTTPError, ValueError, KeyError) as error:
            server.stop()
            detail = str(error) or type(error).__name__  # httpx's errors about time have no words
            raise ModelUnreachable(
                f"The model on board does not start ({detail}); run make setup again, or connect a model of your own "
                "(OPENAI_BASE_URL)."
            ) from error
        except BaseException:
            server.stop()
            raise
        client = OpenAIModel(
            ModelEndpoint(url=f"{address}/v1", key=key, direct=True),
            profile=self._profile,
            clock=self._clock,
            rng=self._rng,
        )
        return _Running(server, client)

    def _note(self, progress: FetchProgress) -> None:
        if self._closed:
            # Raised through the download, which then ends; what has come is kept for the next start.
            raise ModelUnreachable("The model on board was closed; start the program again.")
        self._progress = progress
        if not self._was_ready:
            self._report(BoardState(_PHASES[progress.phase], progress.done, progress.total))


def profile_of(selection: ChosenFile) -> ModelProfile:
    """What is known about a selected model, with a sentence for people about what it is."""
    weights = selection.weights
    if weights is None:
        return ModelProfile(name="none", context=CONTEXT, label=selection.reason, static=STATIC)
    if isinstance(weights, OwnFile) and not weights.small:
        context = min(CONTEXT_OF_LARGE, weights.trained or CONTEXT_OF_LARGE)
        return ModelProfile(name=weights.name, context=context, label=f"{weights.name}, run on this machine")
    label = (
        f"{weights.name}, the small model on board: good for small tasks, often wrong. Connect a model of your own for "
        "real work."
    )
    if selection.reason:
        label = f"{label} {selection.reason}"
    return ModelProfile(name=weights.name, context=CONTEXT, label=label, static=STATIC)


# --- the static prompt ----------------------------------------------------------------------------


def _kept_state(weights: ModelFile | OwnFile) -> KeptState:
    """Where the computed state is kept: another for each model, prompt, window and library."""
    import importlib.metadata

    said = [[message.role, message.content] for message in _static_messages()]
    parts = [weights.sha256, said, CONTEXT, importlib.metadata.version("xllamacpp")]
    return kept_state(weights.sha256, json.dumps(parts).encode())


def _static_messages() -> list[ChatMessage]:
    return [ChatMessage("system", STATIC.system), *STATIC.examples]


async def _read_static_prompt(native: httpx.AsyncClient, weights: ModelFile | OwnFile) -> None:
    """Leave the static prompt in the server's cache: from disk, or computed and then kept on disk."""
    state = _kept_state(weights)
    if await asyncio.to_thread(state.find):
        restored = await native.post(f"{_SLOT}?action=restore", json={"filename": state.name})
        if restored.is_success:
            return

    messages = [*_static_messages(), ChatMessage("user", _SEPARATE)]
    listed: list[JSON] = [{"role": message.role, "content": message.content} for message in messages]
    answer = await native.post("/apply-template", json={"messages": listed})
    prompt = str(answer.raise_for_status().json()["prompt"])
    static = prompt[: prompt.rindex(_SEPARATE)]
    computed = await native.post("/completion", json={"prompt": static, "n_predict": 0, "id_slot": 0})
    computed.raise_for_status()

    # A state that can't be kept costs the next start some seconds. It is written under another name first, because
    # another process may be reading it.
    written = f".{state.name}-{secrets.token_hex(4)}"
    saved = await native.post(f"{_SLOT}?action=save", json={"filename": written})
    with contextlib.suppress(OSError):
        if saved.is_success:
            await asyncio.to_thread(state.put, written)


# --- command line ---------------------------------------------------------------------------------


class Spaced:
    """Passes on the progress of a download, but not each piece: the last, and one in so many bytes."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._phase = ""
        self._done = 0

    def __call__(self, progress: FetchProgress) -> None:
        same_phase = progress.phase == self._phase
        little = progress.done - self._done < _PRINT_EVERY and progress.done < progress.total
        if same_phase and little:
            return
        self._phase = progress.phase
        self._done = progress.done
        self._tell(progress)


def main(arguments: Sequence[str], say: Callable[[str], None] = lambda line: print(line, flush=True)) -> int:
    """`fetch`: download the model's file that fits this machine, with progress on stdout."""
    if list(arguments) != ["fetch"]:
        print("usage: python -m iact.models.embedded fetch", file=sys.stderr)
        return 2
    from iact.settings import load

    try:
        settings = load()
        if not settings.without_endpoint:
            say("a model endpoint is configured, so the model on board is not downloaded")
            return 0
        selection = chosen_file(settings.embedded, settings.data)
        if selection.reason:
            say(selection.reason)
        if selection.weights is not None:
            download.fetch(selection.weights, Spaced(lambda progress: say(str(progress))))
    except ModelError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
