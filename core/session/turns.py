"""The turns of agents: builds a context, streams the model's reply, and records the part that counts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from iact.core.errors import ModelError, ModelGarbled, ModelOnlyThought, QuotaExceeded, UsageError
from iact.core.language.labels import summarize
from iact.core.models.failures import ContextTooLong
from iact.core.models.roles import Models
from iact.core.ports import ChatMessage, Model
from iact.core.records.dialogue import Compress, Draw, Reply, Turn
from iact.core.records.parts import MINUTE, Seen, Tokens
from iact.core.records.record import Record
from iact.core.session.generation import TOO_LONG, RunningReply
from iact.core.session.grounding import Grounding
from iact.core.session.models import learnt
from iact.core.session.person import signed
from iact.core.session.scheduler import Scheduler
from iact.core.session.session_memory import SessionMemory
from iact.core.tree import budget, plan_request
from iact.core.tree.agent import Agent, Deliver, End, Think
from iact.core.tree.child_questions import asks_caller
from iact.core.tree.child_waits import running_children
from iact.core.tree.compression import Fault, can_cut, fault, summarizer, words_for
from iact.core.tree.contexts import complete, compose, prepare
from iact.core.tree.notes import choose_notes
from iact.core.tree.prepared_context import Foreseen, PreparedContext
from iact.core.tree.replies import read_reply
from iact.core.tree.tree import Tree
from iact.core.tree.window import COMPRESS, usable

_TELL: Final = 0.7
"""The share of its window, excluding room for a reply, at which an agent is asked to compress its history."""

_SUMMARIES: Final = 2
"""How often a summary is asked for before the core writes down itself what it knows."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """How a history is cut: the record, and the summary that is its body, empty if none was fit."""

    content: Compress
    summary: str


def _used_up(tree: Tree, agent: Agent) -> str:
    """The message about a used-up budget, for the user or the caller."""
    if agent.caller != "user":
        return "The budget of tokens is used up."
    return (
        f"This session's budget of {tree.bounds.tokens:,} tokens is used up, so this was not "
        "answered. Add tokens to get an answer, or continue in a new session."
    )


class Turns:
    """The model calls of one session that are under way."""

    def __init__(
        self,
        scheduler: Scheduler,
        models: Models,
        memory: SessionMemory,
        grounding: Grounding,
    ) -> None:
        self._live = scheduler.live
        self._scheduler = scheduler
        self._models = models
        self._memory = memory
        self._grounding = grounding
        self._summary: tuple[RunningReply, asyncio.Event] | None = None
        """The summary of the root's history that a person asked for, while it is written, and the event of its end."""

    async def take(self, agent: Agent) -> None:
        """Ask the agent's model once, and record the result as a turn, a reply, or a failure."""
        live, tree = self._live, self._live.tree
        if agent is tree.root and self._summary is not None:
            summary, ended = self._summary
            summary.stop("changed", "")  # the history that it summarizes grows
            await ended.wait()
        if self._memory.exists and not await self._recalls(agent):
            return
        files = await self._grounding.look(tree, agent)
        if not isinstance(tree.next_step(agent.path), Think):
            return  # it was paused or cancelled while memory was asked
        self._learn()
        now = live.clock.now()
        running = tuple(running_children(tree, agent))
        notes = choose_notes(tree, agent)
        catalogue = tree.catalogue if agent.context.fresh or notes else None
        minute = now.strftime(MINUTE)
        seen = Seen(minute, agent.directory, running, budget.low(tree, agent), catalogue, files)
        composed = compose(tree, agent, seen, notes=notes)
        newest = composed.newest
        size = tree.tokens(agent, newest)
        cost = budget.cost_of_turn(size)
        tokens = budget.short(tree, agent, cost)
        if tokens:
            live.record(Draw(tokens=tokens, seen=seen), agent.path)
        room = usable(tree, agent)
        bound = self._bound(agent, cost, now)
        if bound is None and size >= room * COMPRESS and can_cut(tree, agent):
            await self._compress(agent, complete(tree, agent, composed))
            return
        if bound is None and size >= room:
            model, window = tree.roles[agent.model].model, tree.roles[agent.model].context
            bound = End("context", f"The context of {model} ({window} tokens) is full.")
        if bound is not None:
            self.end(agent, bound)
            return

        last = budget.last_turn(tree, agent, cost)
        full = round(size / room * 100) if self._fills_up(agent, size, room) else 0
        # The lines that are added here have less tokens than a reply's limit keeps free.
        await self._generate(agent, complete(tree, agent, composed, last=last, full=full), size)

    async def _recalls(self, agent: Agent) -> bool:
        """Ask memory for a turn. Returns whether the turn goes on: it was not cancelled meanwhile."""
        try:
            async with self._scheduler.cancellable(agent):
                await self._memory.recall(agent, self._live.clock.now())
        except TimeoutError:
            return False
        return True

    def _fills_up(self, agent: Agent, size: int, room: int) -> bool:
        """Whether an agent should be told now that its context of `size` tokens is filling up."""
        context = agent.context
        # What a cut has left is no news: half of what was free behind it must be used first.
        return not context.full_told and size >= max(room * _TELL, (context.after_cut + room) / 2)

    def _learn(self) -> bool:
        """Believe what endpoints have said about their windows. Returns whether there was anything new."""
        said = learnt(self._live.tree, self._models)
        if said is not None:
            self._live.record(said, "/")
        return said is not None

    def _bound(self, agent: Agent, cost: int, now: datetime) -> End | None:
        """The bound that prevents another turn, which would cost `cost` tokens; None if there is none."""
        bounds = self._live.tree.bounds
        if agent.guards.turns >= bounds.turns:
            return End("turns", f"The bound of {bounds.turns} turns for one task was reached.")
        if agent.account.left * 2 < cost:
            return End("tokens", _used_up(self._live.tree, agent))
        if self._live.elapsed(agent, now) > bounds.activation:
            return End("time", f"The bound of {bounds.activation:.0f} s for one task was reached.")
        return None

    def end(self, agent: Agent, why: End) -> None:
        """Return to the caller because a bound was reached, with the agent's last answer."""
        # Only an answer to the current task: an earlier answer does not answer later messages.
        last = agent.context.history.messages()[-1:] if agent.guards.turns else ()
        said = [one.content for one in last if one.role == "assistant"]
        text = why.sentence + (f"\n\nLast answer before the limit:\n\n{said[0]}" if said else "")
        reply = Reply(to=agent.caller, status="bound", bound=why.bound)
        self._live.record(reply, agent.path, body=text)

    def relay(self, root: Agent) -> None:
        """Answer with the result of the plan that a person asked for."""
        passed_on = plan_request.relay(root)
        assert passed_on is not None
        self._live.record(passed_on[0], root.path, body=passed_on[1])

    def _fail(self, agent: Agent, error: ModelError) -> None:
        reply = Reply(to=agent.caller, status="failed", fault=error.fault)
        self._live.record(reply, agent.path, body=str(error))

    async def _generate(self, agent: Agent, prepared: PreparedContext, size: int) -> None:
        """`size`: the tokens of the context, as estimated."""
        generation = RunningReply(self._live, agent, prepared, size)
        if await self._write(generation, self._models.model(agent.model), prepared.newest):
            self._finish(generation)
            if generation.too_long:
                self._live.notice(agent.path, "model", TOO_LONG)

    def is_short(self, agent: Agent) -> bool:
        """Whether there is too little history to compress."""
        return not can_cut(self._live.tree, agent)

    def _unnoted(self, agent: Agent) -> PreparedContext:
        """The context that the agent would get now, without anything new from others."""
        minute = self._live.clock.now().strftime(MINUTE)
        return prepare(self._live.tree, agent, Seen(minute, agent.directory), notes={})

    async def compress(self, root: Agent) -> Record:
        """Summarize and cut the root's history on behalf of a person, even if that takes more tokens than it has left.

        Raises:
            UsageError: the root is at work, or its history is too short.
            ModelError: its model can't be asked.
        """
        if self._summary is not None:
            raise UsageError("The history is being compressed already.")
        if root.active:
            raise UsageError("The root agent is working. Compress its history after it has answered.")
        if not can_cut(self._live.tree, root):
            raise UsageError("There is not enough history to compress yet.")

        ended = asyncio.Event()
        try:
            cut = await self._summarize(root, self._unnoted(root), ended)
        finally:
            self._summary = None
            ended.set()
        if cut is None:
            raise UsageError("The session changed in the meantime, so nothing was compressed. Try again.")
        return self._live.record(signed(replace(cut.content, by="user")), root.path, body=cut.summary)

    async def _compress(self, agent: Agent, prepared: PreparedContext) -> None:
        """Summarize and cut the history of an agent that did not cut it."""
        try:
            cut = await self._summarize(agent, prepared)
        except QuotaExceeded as error:
            self.end(agent, End(error.bound, str(error)))
        except ModelError as error:
            self._fail(agent, error)
        else:
            if cut is not None:
                self._live.record(cut.content, agent.path, body=cut.summary)

    async def _summarize(
        self, agent: Agent, prepared: PreparedContext, ended: asyncio.Event | None = None
    ) -> _Cut | None:
        """Ask for a summary of an agent's history, twice if the first is unfit, and return the record of the cut.

        Whatever comes, the history can be cut: without a summary, the tree lists what it knows itself. None if the
        summary was stopped or the session changed. `ended`: set when a person's wish for a cut is over.

        Raises:
            ModelError: the model can't be asked.
        """
        live, tree = self._live, self._live.tree
        role = summarizer(tree, agent)
        wrong: Fault = ""
        for _ in range(_SUMMARIES):
            asked = ChatMessage("user", summarize(words_for(tree, agent), wrong))
            size = tree.tokens(agent, asked)
            if size > tree.roles[role].context * 7 // 8:
                break  # there would be no room for the summary

            generation = RunningReply(
                live, agent, prepared, size, is_action=lambda name: False, summarizer=role
            )
            if ended is not None:
                self._summary = (generation, ended)
            try:
                with self._scheduler.working(agent, generation):
                    await generation.write(self._models.model(role), agent.context.history.context(asked))
            except ContextTooLong:
                if generation.stopped:
                    return None
                self._learn()
                break
            except ModelError as error:
                if generation.stopped:
                    return None
                # An empty reply, or thoughts alone, is one that can be replaced.
                if not isinstance(error, ModelGarbled):
                    raise
            if generation.stopped:
                return None

            works = ended is None
            if tree.stamp(agent) != generation.stamp or agent.active != works:
                generation.discard("changed")
                return None

            summary = generation.text.strip()
            wrong = fault(tree, agent, summary)
            if not wrong:
                return _Cut(self._cut(role, generation.usage()), summary)
            generation.discard("summary")
        return _Cut(self._cut(role, Tokens(prompt=0, cached=0, completion=0)), "")

    def _cut(self, role: str, usage: Tokens) -> Compress:
        return Compress(role=role, model=self._live.tree.roles[role].model, usage=usage)

    async def _write(self, generation: RunningReply, model: Model, newest: ChatMessage) -> bool:
        """Let the model write one reply to the agent's history and `newest`. Returns False if it was stopped or
        failed."""
        agent = generation.agent
        try:
            with self._scheduler.working(agent, generation):
                await generation.write(model, agent.context.history.context(newest))
        except QuotaExceeded as error:
            if not generation.stopped:
                self.end(agent, End(error.bound, str(error)))
            return False
        except ContextTooLong as error:
            # With a smaller window, the next context is another one.
            if not generation.stopped and not self._learn():
                self._fail(agent, error)
            return False
        except ModelOnlyThought as error:
            if generation.stopped:
                return False
            # Its agent is asked for the reply, once.
            was_asked = agent.guards.only_thought or generation.prepared.last
            if was_asked:
                self._fail(agent, error)
            return not was_asked
        except ModelError as error:
            if not generation.stopped:
                self._fail(agent, error)
            return False
        return not generation.stopped

    def _finish(self, generation: RunningReply) -> None:
        """Record a reply that is complete."""
        live = self._live
        tree = live.tree
        agent = generation.agent
        prepared = generation.prepared
        if tree.stamp(agent) != generation.stamp and not self._stands(generation):
            # The available functions changed while the model wrote its first reply: it must see them.
            generation.discard("changed")
            return

        understood = generation.understood()
        scanned = understood.scanned
        text = scanned.kept
        # What a person says to an agent that another one called must be read before the agent returns.
        interrupted = agent.caller != "user" and any(
            message.kind == "intervention" and message.n not in prepared.took for message in agent.mail.inbox
        )
        told = generation.told()
        read = read_reply(
            tree,
            agent,
            text,
            scanned.blocks,
            told,
            table=prepared.table,
            interrupted=interrupted,
            reply=understood.reply,
        )
        # The fold of the record needs what was just read, and would read it again.
        tree.foreseen[agent.path] = Foreseen(tree.stamp(agent), prepared, scanned, read)

        if prepared.last:
            # A bound leaves it this one reply: it returns, and actions in it are not carried out.
            self._scheduler.cancel_children(agent)
            reply = Reply(
                to=agent.caller,
                status="bound" if read.acts else "ok",
                bound=prepared.last if read.acts else "",
                last=prepared.last,
                generation=told,
                asks=not read.acts and asks_caller(tree, agent, text),
            )
            live.record(reply, agent.path, body=text)
            return

        if read.acts or interrupted or read.held:
            live.record(Turn(held=read.held, generation=told), agent.path, body=text)
            return

        self._scheduler.cancel_children(agent)
        asks = asks_caller(tree, agent, text)
        live.record(Reply(to=agent.caller, status="ok", generation=told, asks=asks), agent.path, body=text)

    def deliver(self, agent: Agent, answer: Deliver) -> None:
        """Record an answer that was written in an earlier turn."""
        self._scheduler.cancel_children(agent)
        asks = asks_caller(self._live.tree, agent, answer.text)
        reply = Reply(to=agent.caller, status="ok", of=answer.of, asks=asks)
        self._live.record(reply, agent.path, body=answer.text)

    def _stands(self, generation: RunningReply) -> bool:
        """Whether a replay would still build the context that was sent."""
        prepared = generation.prepared
        again = prepare(
            self._live.tree, generation.agent, prepared.seen,
            notes=prepared.notes, took=prepared.took, last=prepared.last, full=prepared.full,
        )  # fmt: skip
        return again.digest == prepared.digest
