"""One turn of an agent: build its context, stream the model's reply, record what counts of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from core.context.tail import Seen
from core.context.tokens import estimate
from core.errors import ModelError
from core.language.labels import SUMMARIZE
from core.language.scanner import Cut, Scanner
from core.models.roles import Models
from core.ports import JSON, ChatMessage, Model, StreamEnd, StreamRestart, TextDelta, Usage, UsageReport
from core.session.events import Delta
from core.session.live import Live
from core.session.remembering import Remembering
from core.tree import budget
from core.tree.agent import Agent, End, Think
from core.tree.inputs import choose_notes, prepare
from core.tree.interpret import KEPT, running_children
from core.tree.prepared import Prepared

StopReason = Literal["pause", "interrupt", "cancel"]

_TELL: Final = 0.7
"""Share of its window, less room for a reply, from which an agent is asked to compress its history."""

_COMPRESS: Final = 0.9
"""Share from which the core does it."""

_UNWRITTEN: Final = 32
"""How many records an agent may be ahead of the disk when a reply of its model counts. A crash takes the turns
that are not on disk, and the model is asked for them again; no effect and no acknowledgement ever follows from one."""


@dataclass(slots=True)
class Generation:
    """A model's reply while it streams. `stop` ends it; what it wrote is kept as discarded.

    `records`: how many there were when the context was prepared. Until the next one, it can't be another.
    """

    agent: Agent
    prepared: Prepared
    scanner: Scanner
    started: float
    records: int
    scope: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    first: float | None = None
    finish: Literal["stop", "length", "cut"] = "stop"
    usage: Usage | None = None
    stopped: bool = False


class Thinking:
    """The model calls of one session that are under way."""

    def __init__(
        self,
        live: Live,
        models: Models,
        remembering: Remembering,
        cancel_children: Callable[[Agent], None],
    ) -> None:
        self._live = live
        self._models = models
        self._remembering = remembering
        self._cancel_children = cancel_children
        self._generations: dict[str, Generation] = {}

    async def think(self, agent: Agent) -> None:
        """Let the agent's model speak once, and record it: as a turn, a reply, or a failure."""
        live, tree = self._live, self._live.tree
        await self._remembering.recall(agent, live.clock.now())
        if not isinstance(tree.next_step(agent.path), Think):
            return  # it was paused or cancelled while memory was asked
        now = live.clock.now()
        running = tuple(running_children(tree, agent))
        notes = choose_notes(tree, agent)
        catalogue = tree.catalogue if agent.context.fresh or notes else None
        minute = now.strftime("%Y-%m-%d %H:%M UTC")
        seen = Seen(minute, agent.directory, running, budget.low(tree, agent), catalogue)
        prepared = prepare(tree, agent, seen, notes=notes)
        size = tree.tokens(agent, prepared.newest)
        cost = budget.cost_of_turn(size)
        tokens = budget.short(tree, agent, cost)
        if tokens:
            live.record("draw", agent.path, {"tokens": tokens})
        window = tree.roles[agent.model].context
        share = size / (window - min(tree.bounds.reply_tokens, window // 8))
        bound = self._bound(agent, cost, now)
        if (
            bound is None
            and share >= _COMPRESS
            and agent.context.history.cut(prepared.newest, KEPT) is not None
        ):
            await self._compress(agent, prepared)
            return
        if bound is None and share >= 1:
            bound = End(
                "context", f"The context of {tree.roles[agent.model].model} ({window} tokens) is full."
            )
        if bound is not None:
            self.end(agent, bound)
            return
        last = budget.last_turn(tree, agent, cost)
        full = round(share * 100) if share >= _TELL and not agent.context.full_told else 0
        if last or full:
            prepared = prepare(tree, agent, seen, notes=notes, last=last, full=full)
        await self._generate(agent, prepared)

    def stop(self, agent: Agent, reason: StopReason) -> None:
        """End the agent's generation, if there is one; its text is recorded as discarded."""
        generation = self._generations.get(agent.path)
        if generation is None or generation.stopped:
            return
        generation.stopped = True
        generation.scope.reschedule(asyncio.get_running_loop().time())
        self._discard(generation, reason)

    def _bound(self, agent: Agent, cost: int, now: datetime) -> End | None:
        """Why the agent can't have even one more turn, of `cost` tokens."""
        bounds = self._live.tree.bounds
        if agent.guards.turns >= bounds.turns:
            return End("turns", f"The bound of {bounds.turns} turns for one task was reached.")
        if agent.account.left * 2 < cost:
            return End("tokens", "The budget of tokens is used up.")
        if self._live.elapsed(agent, now) > bounds.activation:
            return End("time", f"The bound of {bounds.activation:.0f} s for one task was reached.")
        return None

    def end(self, agent: Agent, why: End) -> None:
        """Return to the caller because a bound was hit, with what the agent said last."""
        said = [one.content for one in agent.context.history.messages()[-1:] if one.role == "assistant"]
        text = why.sentence + ("\n\nWhat it had so far:\n\n" + said[0] if said and agent.all_turns else "")
        fields: dict[str, JSON] = {"to": agent.caller, "status": "bound", "bound": why.bound}
        self._live.record("reply", agent.path, fields, text)

    def _fail(self, agent: Agent, error: ModelError) -> None:
        self._live.record("reply", agent.path, {"to": agent.caller, "status": "failed"}, str(error))

    async def _generate(self, agent: Agent, prepared: Prepared) -> None:
        registry = self._live.tree.registry(agent.path)
        generation = Generation(
            agent,
            prepared,
            Scanner(registry.is_action),
            self._live.clock.monotonic(),
            self._live.tree.records,
        )
        if await self._write(generation, self._models.model(agent.model), prepared.newest):
            self._finish(generation, prepared)

    async def _compress(self, agent: Agent, prepared: Prepared) -> None:
        """The agent did not cut its history itself: have it summarized, by the "fast" model if that can hold it."""
        live, roles = self._live, self._live.tree.roles
        own = roles[agent.model]
        fits = (
            "fast" in roles
            and roles["fast"].context >= own.context
            and {*own.takes} <= {*roles["fast"].takes}
        )
        role = "fast" if fits else agent.model
        generation = Generation(
            agent, prepared, Scanner(lambda name: False), live.clock.monotonic(), live.tree.records
        )
        if await self._write(generation, self._models.model(role), ChatMessage("user", SUMMARIZE)):
            fields: dict[str, JSON] = {
                "role": role,
                "model": roles[role].model,
                "usage": self._usage(generation),
            }
            live.record("compress", agent.path, fields, generation.scanner.text.strip())

    async def _write(self, generation: Generation, model: Model, newest: ChatMessage) -> bool:
        """Stream one reply to the agent's history and `newest`; False if it was stopped or failed."""
        live, agent = self._live, generation.agent
        self._generations[agent.path] = generation
        live.writing[agent.path] = ""
        live.changed()
        try:
            async with generation.scope:
                await self._stream(generation, model, agent.context.history.context(newest))
                # Models write while the disk does: a slow disk must slow the agent, not only lengthen a queue.
                await live.journal.durable(agent.record - _UNWRITTEN)
        except ModelError as error:
            if not generation.stopped:
                self._fail(agent, error)
            return False
        except TimeoutError:
            if not generation.stopped:
                raise
        finally:
            del self._generations[agent.path]
            live.writing.pop(agent.path, None)
        return not generation.stopped

    async def _stream(self, generation: Generation, model: Model, messages: Sequence[ChatMessage]) -> None:
        stream = model.stream(messages, max_tokens=self._live.tree.bounds.reply_tokens)
        async with aclosing(stream) as events:
            async for event in events:
                match event:
                    case TextDelta(text):
                        if self._take(generation, text):
                            return
                    case StreamRestart():
                        self._restart(generation)
                    case UsageReport(usage):
                        generation.usage = usage
                    case StreamEnd(finish):
                        generation.finish = finish
        if any(isinstance(event, Cut) for event in generation.scanner.end()):
            generation.finish = "cut"

    def _take(self, generation: Generation, text: str) -> bool:
        """Take the next piece of text; whether the reply must be cut here."""
        live, agent = self._live, generation.agent
        if generation.first is None:
            generation.first = live.clock.monotonic()
        live.writing[agent.path] += text
        live.publish(Delta(agent.path, text))
        cut = any(isinstance(event, Cut) for event in generation.scanner.feed(text))
        if cut:
            generation.finish = "cut"
        return cut

    def _restart(self, generation: Generation) -> None:
        """The model port starts over: the text so far is void."""
        live, agent = self._live, generation.agent
        if live.writing[agent.path]:
            self._discard(generation, "restart")
        live.writing[agent.path] = ""
        generation.scanner = Scanner(live.tree.registry(agent.path).is_action)
        live.publish(Delta(agent.path, "", restart=True))

    def _discard(self, generation: Generation, reason: str) -> None:
        fields: dict[str, JSON] = {"reason": reason, "usage": self._usage(generation)}
        self._live.record("discard", generation.agent.path, fields, generation.scanner.text)
        self._live.publish(Delta(generation.agent.path, "", restart=True))

    def _finish(self, generation: Generation, prepared: Prepared) -> None:
        """Record a reply that came to its end."""
        live, agent, tree = self._live, generation.agent, self._live.tree
        if tree.records != generation.records and not self._stands(generation, prepared):
            # The functions on offer changed while the model wrote its first reply: it must see them.
            self._discard(generation, "changed")
            return
        tree.foreseen[agent.path] = (tree.records, prepared)
        text = generation.scanner.kept
        acts = self._acts(generation, text)
        held = agent.caller != "user" and any(
            message.kind == "intervention" and message.n not in prepared.took for message in agent.mail.inbox
        )
        fields = self._fields(generation, prepared, text)
        if prepared.last:
            self._cancel_children(agent)
            ending: dict[str, JSON] = (
                {"status": "bound", "bound": prepared.last} if acts else {"status": "ok"}
            )
            live.record(
                "reply", agent.path, {"to": agent.caller, **ending, "last": prepared.last, **fields}, text
            )
            return
        if not acts and not held and not agent.guards.warned and running_children(tree, agent):
            fields, held = {"held": "children", **fields}, True
        if acts or held:
            live.record("turn", agent.path, fields, text)
            return
        self._cancel_children(agent)
        live.record("reply", agent.path, {"to": agent.caller, "status": "ok", **fields}, text)

    def _stands(self, generation: Generation, prepared: Prepared) -> bool:
        """Whether the context that was sent is still the one that a replay builds."""
        again = prepare(
            self._live.tree, generation.agent, prepared.seen,
            notes=prepared.notes, took=prepared.took, last=prepared.last, full=prepared.full,
        )  # fmt: skip
        return again.digest == prepared.digest

    def _acts(self, generation: Generation, text: str) -> bool:
        scanner = Scanner(self._live.tree.registry(generation.agent.path).is_action)
        events = scanner.feed(text) + scanner.end()
        return any(getattr(event, "action", False) for event in events)

    def _fields(self, generation: Generation, prepared: Prepared, text: str) -> dict[str, JSON]:
        live, agent = self._live, generation.agent
        now = live.clock.monotonic()
        fields: dict[str, JSON] = {
            "model": live.tree.roles[agent.model].model,
            "role": agent.model,
            "context": prepared.digest,
            "took": list(prepared.took),
            "seen": prepared.seen.to_json(),
            "usage": self._usage(generation),
            "ms": round((now - generation.started) * 1000),
            "first_ms": round(((generation.first or now) - generation.started) * 1000),
            "finish": generation.finish,
        }
        if prepared.notes:
            fields["notes"] = dict(prepared.notes)
        if prepared.full:
            fields["full"] = prepared.full
        cut = len(generation.scanner.text) - len(text)
        if generation.finish == "cut" and cut:
            fields["cut"] = cut
        return fields

    def _usage(self, generation: Generation) -> JSON:
        """Token counts as the endpoint reported them, else estimated from the characters."""
        usage = generation.usage
        if usage is None:
            prompt = self._live.tree.tokens(generation.agent, generation.prepared.newest)
            written = estimate(generation.scanner.text)
            return {"prompt": prompt, "cached": 0, "completion": written, "estimated": True}
        counts: dict[str, JSON] = {
            "prompt": usage.prompt_tokens,
            "cached": usage.cached_tokens,
            "completion": usage.completion_tokens,
        }
        return {**counts, "estimated": True} if usage.estimated else counts
