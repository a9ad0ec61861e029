"""Calls between agents: CALL, CALL_ASYNC and PLAN begin a dialogue; WAIT and QUERY collect replies."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

from iact.core.errors import UsageError
from iact.core.language.grammar import Bound
from iact.core.records.calls import Call, Select
from iact.core.session.grounding import Grounding
from iact.core.session.live import Live
from iact.core.session.long_texts import read_plan_beside
from iact.core.session.results import record_result, result_of
from iact.core.session.session_memory import SessionMemory
from iact.core.stored.experience import Experience
from iact.core.stored.templates import Templates
from iact.core.tree import budget
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.child_waits import ready, satisfied
from iact.core.tree.interpret import argument_text, digest_of
from iact.core.tree.plan_checks import check_plan, values_for
from iact.core.tree.spawns import child_spawn, plan_spawn


class ChildCalls:
    """The dialogues between agents of one session. The code that asked for an action starts the child's asyncio
    task."""

    def __init__(
        self,
        live: Live,
        experience: Experience,
        templates: Templates,
        memory: SessionMemory,
        grounding: Grounding,
    ) -> None:
        self._live = live
        self._experience = experience
        self._templates = templates
        self._memory = memory
        self._grounding = grounding

    def call(self, agent: Agent, pending: Pending, bound: Bound) -> None:
        """Send a message to a child, and create the child if it is new."""
        live, path = self._live, pending.child
        if path not in live.tree.agents:
            live.record(child_spawn(agent, bound), path, body=argument_text(bound, "role"))
        self._hand_over(agent, pending, bound, waits=pending.spec.name == "CALL" and agent.plan is None)

    async def plan(self, agent: Agent, pending: Pending, bound: Bound) -> None:
        """Hand over a plan, which runs as a node of the tree."""
        live, path, kept = self._live, pending.child, bound.arguments.get("from")
        if agent.errand is not None:  # it had no turn for which memory was asked
            await self._memory.recall(agent, live.clock.now())
        files = await self._grounding.listing(live.tree, agent)
        await read_plan_beside(argument_text(bound, "plan"))
        if pending not in agent.actions:
            return  # it was cancelled meanwhile

        if path not in live.tree.agents:
            spawn = plan_spawn(agent, bound)
            if isinstance(kept, str):
                try:
                    template = self._templates.filled(kept, values_for(bound))
                    grant = live.tree.grant_of(agent.path).narrow(patterns=spawn.allow, intent=spawn.intent)
                    check_plan(
                        template, live.tree.registry_under(grant), spawn.plan.mode if spawn.plan else "static"
                    )
                except UsageError as error:
                    failed = replace(result_of(agent, pending, "error"), data={"type": "UsageError"})
                    record_result(live, agent, failed, f"`PLAN` was not run: {error}")
                    return
                spawn = replace(spawn, template=template)
            if spawn.plan is not None and spawn.plan.mode == "profile":
                spawn = replace(spawn, history=self._experience.rates() or None)
            spawn = replace(spawn, files=files)
            live.record(spawn, path)
        self._hand_over(agent, pending, bound, waits=True)

    def _hand_over(self, agent: Agent, pending: Pending, bound: Bound, *, waits: bool) -> None:
        tree, path = self._live.tree, pending.child
        tokens = budget.share(tree, agent, tree.agents[path], waits=waits)
        call = Call(
            turn=agent.turn,
            action=pending.index,
            function=pending.spec.name,
            to=path,
            args=digest_of(bound),
            budget=tokens,
        )
        self._live.record(call, agent.path)

    async def wait(self, agent: Agent, pending: Pending, bound: Bound) -> None:
        """Wait for children to reply. Time passes only while neither the agent nor any caller above it is paused."""
        live = self._live
        given = bound.arguments.get("timeout")
        left = float(given) if isinstance(given, int | float) else None
        while pending in agent.actions:
            paused = live.tree.paused(agent.path)
            if not paused and satisfied(live.tree, agent, pending):
                self.select(agent, pending, timed_out=False)
            elif not paused and left is not None and left <= 0:
                self.select(agent, pending, timed_out=True)
            else:
                since = live.clock.monotonic()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(None if paused else left):
                        await live.moved()
                if left is not None and not paused:
                    left -= live.clock.monotonic() - since

    def select(self, agent: Agent, pending: Pending, *, timed_out: bool) -> None:
        """End a WAIT or QUERY, and record which replies it takes."""
        select = Select(
            turn=agent.turn,
            action=pending.index,
            function=pending.spec.name,
            took=tuple(ready(self._live.tree, agent, pending)),
            timed_out=timed_out,
        )
        self._live.record(select, agent.path)
