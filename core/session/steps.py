"""Carries out what the tree says an agent or a plan has to do next."""

from __future__ import annotations

from dataclasses import dataclass

from iact.core.records.dialogue import Reply
from iact.core.session.actions import ActionExecutor
from iact.core.session.live import Live
from iact.core.session.plan_runner import PlanRunner
from iact.core.session.reader_layers import ReaderLayers
from iact.core.session.results import drop
from iact.core.session.routing import Routing
from iact.core.session.scheduler import Ending, Scheduler
from iact.core.session.turns import Turns
from iact.core.tree.agent import Act, Agent, ChooseWay, Deliver, End, Execute, Relay, Step, Think


@dataclass(frozen=True, slots=True)
class StepExecutor:
    """Hands each kind of step to the part of the session that takes it."""

    live: Live
    scheduler: Scheduler
    turns: Turns
    actions: ActionExecutor
    planning: PlanRunner
    routing: Routing
    layers: ReaderLayers

    async def take(self, agent: Agent, step: Step) -> None:
        """Take one step, to its end."""
        match step:
            case Think():
                await self.turns.take(agent)
            case Act(pending):
                await self.actions.act(agent, pending)
                self.scheduler.drive(pending.child)
            case Execute():
                await self.planning.execute(agent)
            case ChooseWay():
                await self.routing.choose(agent, step)
            case Deliver():
                self.turns.deliver(agent, step)
            case Relay():
                self.turns.relay(agent)
            case End():
                drop(self.live, agent, "skipped")
                self.scheduler.cancel_children(agent, "Its caller reached a limit before it was done.")
                self.turns.end(agent, step)

        if not agent.active:
            self.layers.let_go(agent)

    def cancel(self, agent: Agent, why: str) -> None:
        """Tell a plan that it ends before its steps end; otherwise it would try to repair the failed steps."""
        if agent.plan is not None:
            self.planning.cancel(agent, why)

    def end(self, agent: Agent, status: Ending, why: str) -> None:
        """Record that the agent's work ended before it was done; every action gets its outcome before the reply."""
        drop(self.live, agent, "cancelled")
        if agent.plan is not None and status == "cancelled":
            self.planning.end(agent)
        else:
            self.live.record(Reply(to=agent.caller, status=status), agent.path, body=why)
        self.layers.let_go(agent)
