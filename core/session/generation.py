"""A model's reply while it streams: shown to watchers, cut after an action, and void if it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, Literal

from iact.core.context.tokens import CHARACTERS_PER_TOKEN, estimate
from iact.core.language.actions import SHOW, Registry
from iact.core.language.bare import Known, may_stand_in
from iact.core.language.rewriting import in_our_language, is_plain
from iact.core.language.scanner import Cut, Scan, Scanner, scan
from iact.core.ports import (
    ChatMessage,
    Model,
    ModelEvent,
    ReasoningDelta,
    StreamEnd,
    StreamRecast,
    StreamRestart,
    StreamUnproven,
    TextDelta,
    Usage,
    UsageReport,
)
from iact.core.records import dialogue as says
from iact.core.records.dialogue import Discard, DiscardReason
from iact.core.records.parts import Tokens
from iact.core.session.live import Live
from iact.core.session.long_texts import read_values_beside
from iact.core.session.model_calls import ModelCall
from iact.core.session.scheduler import StopReason
from iact.core.session.streamed_text import StreamedText
from iact.core.tree.agent import Agent
from iact.core.tree.prepared_context import PreparedContext
from iact.core.tree.replies import ReplyText
from iact.core.tree.window import reply_limit
from iact.core.views.events import Delta

_UNWRITTEN: Final = 32
"""How many records an agent may be ahead of the disk when a reply of its model counts. A crash loses the turns that are
not on disk, and the model is asked for them again; no effect and no acknowledgement ever depends on a lost turn."""

_LONGEST: Final = 2_000_000
"""The most characters of a reply with its reasoning. All of it is read by rules that take seconds for each megabyte."""
TOO_LONG: Final = "The model wrote more than 2 MB. Its reply ends there, and what came after is dropped."

_THOUGHT: Final = 20_000
"""How many characters of a model's reasoning are kept."""


_READ_AT_ONCE: Final = 16_384
"""The most characters of a reply that are read where everything else waits for it: a few milliseconds."""

_READERS: Final = ThreadPoolExecutor(1, thread_name_prefix="iact-replies")
"""Where longer replies are read. One thread, so that they take turns with everything else and not with each other."""


@dataclass(frozen=True, slots=True)
class _Written:
    """The text of a reply, and all that decides how it is read."""

    text: str
    scanner: Scanner = field(compare=False)
    """Where its blocks are, by the actions that there were when it began."""
    registry: Registry
    same_actions: bool
    """Whether these are still the actions that there were when it began."""
    known: Known | None
    """What actions without a fence may name; None where the journal's format has none."""


@dataclass(frozen=True, slots=True)
class _Understood:
    """A reply that was read."""

    scanned: Scan
    """The part that counts, in our language, and the blocks in it."""
    reply: ReplyText
    left_out: int
    """How many characters at its end don't count, because they invent a result in another form."""


def _read(written: _Written) -> _Understood:
    """Read a reply. Takes time in proportion to it."""
    text, registry = written.text, written.registry
    scanned = written.scanner.result()
    known = written.known if may_stand_in(text) else None
    if written.same_actions and known is None and is_plain(text, scanned.blocks):
        return _Understood(scanned, ReplyText(text, scanned.blocks, registry), 0)

    rewritten = in_our_language(text, registry, known)
    if written.same_actions and rewritten.text == text:
        return _Understood(scanned, ReplyText(text, scanned.blocks, registry), 0)

    # In another form, an invented result is seen only now.
    scanned = scan(rewritten.text, registry.is_action)
    left_out = len(rewritten.text.rstrip()) - len(scanned.kept)
    if rewritten.cut:
        left_out = max(left_out, 1)
    return _Understood(scanned, ReplyText(scanned.kept, scanned.blocks, registry), left_out)


def _read_all(written: _Written) -> _Understood:
    """Read a long reply, with everything that may be asked about it."""
    understood = _read(written)
    understood.reply.find_all()
    return understood


class RunningReply:
    """One reply. `size`: the tokens of its prompt, as estimated. `stamp`: identifies the state in which its context was
    built; the context stays the same until the state changes.

    `is_action`: which blocks are actions, so that text after an action is cut off. `summarizer`: the role of the model,
    if it is asked for a summary of the history and not for a reply to what is new.
    """

    def __init__(
        self,
        live: Live,
        agent: Agent,
        prepared: PreparedContext,
        size: int,
        *,
        is_action: Callable[[str], bool] | None = None,
        summarizer: str = "",
    ) -> None:
        self.agent: Final = agent
        self.prepared: Final = prepared
        self.stamp: Final = live.tree.stamp(agent)
        self.stopped = False
        self._size = size
        self._summarizes = bool(summarizer)
        self._role = summarizer or agent.model
        self._live = live
        self._is_action = is_action or live.tree.registry(agent.path).is_action
        self._scanner = Scanner(self._is_action)
        self._started: Final = live.clock.monotonic()
        self._first: float | None = None
        self._finish: Literal["stop", "length", "cut"] = "stop"
        self._usage: Usage | None = None
        self._reasoning = StreamedText()
        self._written = 0
        """The characters that came and count, reasoning included."""
        self.too_long = False
        """Whether more came than a reply may have, and the rest was dropped."""
        self._ahead: tuple[_Written, _Understood] | None = None
        """What was read in a thread, and what came of it."""
        self._unproven = False
        self._left_out = 0
        self._asking = ModelCall(live, agent.path)
        self._scope = asyncio.timeout(None)

    @property
    def text(self) -> str:
        """Everything that was written."""
        return self._scanner.text

    def understood(self) -> _Understood:
        """The part that counts, in our language."""
        written = self._written_now()
        if self._ahead is not None and self._ahead[0] == written:
            understood = self._ahead[1]
        else:
            understood = _read(written)

        self._left_out = len(self.text) - len(written.text) if self._finish == "cut" else 0
        if understood.left_out:
            self._finish = "cut"
            self._left_out += understood.left_out
        return understood

    def _written_now(self) -> _Written:
        """The text so far, up to where it was cut, with what decides how it is read now."""
        tree = self._live.tree
        agent = self.agent
        known: Known | None = None
        if tree.follows_1_3:
            known = Known(frozenset(agent.children), self.prepared.table)

        return _Written(
            self._scanner.kept,
            self._scanner,
            registry=tree.registry(agent.path),
            same_actions=tree.stamp(agent) == self.stamp,
            known=known,
        )

    async def _read_ahead(self) -> None:
        """Read a long reply in a thread. Everything else goes on meanwhile."""
        if self._summarizes or self._written <= _READ_AT_ONCE:
            return
        written = self._written_now()
        understood = await asyncio.get_running_loop().run_in_executor(_READERS, _read_all, written)
        self._ahead = written, understood

    async def _read_what_it_shows(self) -> None:
        """Read the long variables that the reply names beside a SHOW."""
        text = self.text
        if SHOW.name not in text.upper():
            return
        table = self.agent.table
        await read_values_beside([value for name, value in table.items() if name in text])

    def stop(self, reason: StopReason, why: str) -> None:
        """Stop the reply; what was written is recorded as discarded."""
        if not self.stopped and reason != "calls":
            self.stopped = True
            self._scope.reschedule(asyncio.get_running_loop().time())
            self.discard(reason)

    def discard(self, reason: DiscardReason) -> None:
        """Record that what was written does not count."""
        read = () if self._summarizes else self.prepared.took
        content = Discard(reason=reason, usage=self.usage(), read=read)
        self._live.record(content, self.agent.path, body=self.text)
        self._live.publish(Delta(self.agent.path, "", restart=True))

    async def write(self, model: Model, messages: Sequence[ChatMessage]) -> None:
        """Let the model write the reply, to its end or until it is stopped.

        Raises:
            ModelError: the model failed.
        """
        live = self._live
        agent = self.agent
        live.writing[agent.path] = StreamedText()
        live.thinking[agent.path] = self._reasoning
        live.changed()

        try:
            async with self._scope:
                with self._asking:
                    await self._stream(model, messages)

                await self._read_ahead()
                if agent.table and not self._summarizes:
                    await self._read_what_it_shows()
                # Models write while the disk does: a slow disk must slow down the agent, and not just lengthen a queue.
                await live.journal.durable(agent.record - _UNWRITTEN)
        except TimeoutError:
            if not self.stopped:
                raise
        finally:
            live.writing.pop(agent.path, None)
            live.thinking.pop(agent.path, None)

    async def _stream(self, model: Model, messages: Sequence[ChatMessage]) -> None:
        limit = reply_limit(self._live.tree, self._role, self._size)
        await self._read(model.stream(messages, max_tokens=limit), limit)

        # However it ended: a block that is still open is read as in the recorded text, which the fold reads alone.
        if any(isinstance(event, Cut) for event in self._scanner.end()):
            self._finish = "cut"

    async def _read(self, stream: AsyncGenerator[ModelEvent], limit: int) -> None:
        """Take what the model says, until it ends or nothing more of it counts. `limit`: of the reply, in tokens."""
        async with aclosing(stream) as events:
            async for event in events:
                self._asking.take(event)
                match event:
                    case TextDelta(text):
                        if self._take(text[: _LONGEST - self._written]):
                            return
                    case ReasoningDelta(text):
                        self._think(text[: _LONGEST - self._written])
                    case StreamRestart():
                        self._restart()
                    case StreamRecast():
                        self._void()
                    case StreamUnproven():
                        self._unproven = True
                    case UsageReport(usage):
                        self._usage = usage
                    case StreamEnd(finish) if self._finish != "cut":
                        self._finish = finish

                if self._written >= _LONGEST:
                    self._finish = "length"
                    self.too_long = True
                    return
                if self._written > limit * CHARACTERS_PER_TOKEN:
                    self._finish = "length"  # its endpoint ignores the limit
                    return

    def _take(self, text: str) -> bool:
        """Take the next piece of text. Returns whether nothing more is awaited.

        Text after an action is ignored. But if the model may have been thinking aloud, the end of its thoughts can
        still come and make the whole text void, so its stream is read to the end.
        """
        if self._finish == "cut":
            return False

        path = self.agent.path
        if self._first is None:
            self._first = self._live.clock.monotonic()
        self._live.writing[path].add(text)
        self._written += len(text)
        self._live.publish(Delta(path, text))

        events = self._scanner.feed(text)  # most pieces contain none
        is_cut = bool(events) and any(isinstance(event, Cut) for event in events)
        if is_cut:
            self._finish = "cut"
        return is_cut and not self._unproven

    def _think(self, text: str) -> None:
        """Take the next piece of the model's reasoning."""
        self._reasoning.add(text)
        self._written += len(text)
        self._live.publish(Delta(self.agent.path, text, thought=True))

    def _restart(self) -> None:
        """The model port starts again: the text so far is void."""
        if self._live.writing[self.agent.path]:
            self.discard("restart")
        self._void()

    def _void(self) -> None:
        """Discard what came so far."""
        path = self.agent.path
        self._live.writing[path].clear()
        self._reasoning.clear()
        self._written = 0
        self._scanner = Scanner(self._is_action)
        self._finish = "stop"
        self._live.publish(Delta(path, "", restart=True))

    def told(self) -> says.Generation:
        """What the record of the turn or reply says about it."""
        prepared = self.prepared
        role = self.agent.model
        now = self._live.clock.monotonic()
        first = self._first or now

        return says.Generation(
            model=self._live.tree.roles[role].model,
            role=role,
            context=prepared.digest,
            took=prepared.took,
            seen=prepared.seen,
            usage=self.usage(),
            ms=round((now - self._started) * 1000),
            first_ms=round((first - self._started) * 1000),
            finish=self._finish,
            notes=dict(prepared.notes) or None,
            full=prepared.full,
            reasoning=_shown(self._reasoning.text),
            waits=tuple(self._asking.waits),
            cut=self._left_out,
        )

    def usage(self) -> Tokens:
        """Token counts as reported by the endpoint, or estimated from the characters."""
        if self._usage is not None:
            return Tokens.of(self._usage)

        prompt = self._live.tree.tokens(self.agent, self.prepared.newest)
        completion = estimate(self._reasoning.text + self.text)
        return Tokens(prompt=prompt, cached=0, completion=completion, estimated=True)


def _shown(reasoning: str) -> str:
    """A model's reasoning as it is kept for people: cut if it is very long."""
    left_out = len(reasoning) - _THOUGHT
    return reasoning if left_out <= 0 else f"{reasoning[:_THOUGHT]} … ({left_out} more characters)"
