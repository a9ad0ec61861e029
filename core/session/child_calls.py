"""What agents ask of each other: CALL, CALL_ASYNC and PLAN begin a dialogue, WAIT and QUERY take replies."""

from __future__ import annotations

import asyncio
import contextlib

from core.language.grammar import Bound
from core.ports import JSON
from core.session.live import Live
from core.tree import budget
from core.tree.agent import Agent, Pending
from core.tree.decision import place_fields
from core.tree.interpret import argument_text, digest_of, ready, satisfied
from core.tree.plan_aim import plan_fields


class ChildCalls:
    """The dialogues between agents of one session. Who is called gets its task from whoever asked for the action."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def call(self, agent: Agent, pending: Pending, bound: Bound) -> None:
        """Say something to a child, which is created if it is new."""
        live, path = self._live, pending.child
        if path not in live.tree.agents:
            fields: dict[str, JSON] = {"caller": agent.path}
            model, scope, intent = (bound.arguments.get(name) for name in ("model", "scope", "intent"))
            if isinstance(model, str):
                fields["model"] = model
            if isinstance(scope, str):
                fields["allow"] = [one.strip() for one in scope.split(",") if one.strip()]
            if isinstance(intent, int | float):
                fields["intent"] = intent
            if bound.arguments.get("fork") is True and fields.get("model", agent.model) == agent.model:
                fields["fork"] = True
            live.record("spawn", path, fields, argument_text(bound, "role"))
        self._hand_over(agent, pending, bound, waits=pending.spec.name == "CALL" and agent.plan is None)

    def plan(self, agent: Agent, pending: Pending, bound: Bound) -> None:
        """Hand a plan over; it runs as a node of the tree."""
        path = pending.child
        if path not in self._live.tree.agents:
            fields = {"caller": agent.path, **plan_fields(bound, argument_text(bound, "plan"))}
            self._live.record("spawn", path, fields)
        self._hand_over(agent, pending, bound, waits=True)

    def _hand_over(self, agent: Agent, pending: Pending, bound: Bound, *, waits: bool) -> None:
        tree, path = self._live.tree, pending.child
        tokens = budget.share(tree, agent, tree.agents[path], waits=waits)
        fields = {**place_fields(agent, pending), "to": path, "args": digest_of(bound), "budget": tokens}
        self._live.record("call", agent.path, fields)

    async def wait(self, agent: Agent, pending: Pending, bound: Bound) -> None:
        """Wait for children to reply; time passes only while neither the agent nor one above it is paused."""
        live = self._live
        given = bound.arguments.get("timeout")
        left = float(given) if isinstance(given, int | float) else None
        while pending in agent.actions:
            latched = live.tree.latched(agent.path)
            if not latched and satisfied(live.tree, agent, pending):
                self.select(agent, pending, timed_out=False)
            elif not latched and left is not None and left <= 0:
                self.select(agent, pending, timed_out=True)
            else:
                since = live.clock.monotonic()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(None if latched else left):
                        await live.moved()
                if left is not None and not latched:
                    left -= live.clock.monotonic() - since

    def select(self, agent: Agent, pending: Pending, *, timed_out: bool) -> None:
        """WAIT or QUERY ends; which replies it takes is recorded."""
        fields = {**place_fields(agent, pending), "took": list[JSON](ready(agent, pending))}
        if timed_out:
            fields["timed_out"] = True
        self._live.record("select", agent.path, fields)
