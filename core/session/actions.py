"""Carries out what an agent wrote: hands each action to the part of the session responsible for it, with one outcome
per action."""

from __future__ import annotations

from dataclasses import dataclass

from iact.core.session.child_calls import ChildCalls
from iact.core.session.function_calls import FunctionCalls
from iact.core.session.memory_actions import MemoryActions
from iact.core.session.person_steps import PersonSteps
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.interpret import together


@dataclass(frozen=True, slots=True)
class ActionExecutor:
    """Carries out the actions of one session's agents, and the steps of its plans."""

    children: ChildCalls
    memory: MemoryActions
    functions: FunctionCalls
    person: PersonSteps

    async def act(self, agent: Agent, pending: Pending) -> None:
        """Carry out the first pending action of an agent, or any pending action of a plan."""
        assert pending.bound is not None
        match pending.spec.name:
            case "CALL" | "CALL_ASYNC":
                self.children.call(agent, pending, pending.bound)
            case "PLAN":
                await self.children.plan(agent, pending, pending.bound)
            case "WAIT":
                await self.children.wait(agent, pending, pending.bound)
            case "QUERY":
                self.children.select(agent, pending, timed_out=False)
            case "REMEMBER":
                self.memory.remember(agent, pending, pending.bound)
            case "RECALL":
                await self.memory.recall(agent, pending, pending.bound)
            case "PERSON":
                await self.person.ask(agent, pending)
            case _:
                await self.functions.call(agent, together(agent) if agent.plan is None else [pending])
