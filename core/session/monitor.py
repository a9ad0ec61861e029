"""The reference monitor of a session: every call of a module's function passes here, and nowhere else.

What follows from the tree is decided by `core.tree.decision`. This is the shell around it: it asks the endpoint or the
person who must answer, waits for the answer, records question, answer and decision, and makes a denial take as long as
a failure. A question is in the journal before anyone is asked. So a question that a crash cut off is asked again, and
an answered one is not.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from iact.core.errors import UsageError
from iact.core.gate.clearance import ClearancePort, ClearanceRequest, kept
from iact.core.gate.delay import Delays
from iact.core.gate.gate import Answer, Denial, Question, Ticket
from iact.core.gate.policy import Then
from iact.core.modules.approval import Approvals
from iact.core.ports import JSON
from iact.core.records.record import Record, timestamp
from iact.core.session.clearance import Clearance
from iact.core.session.live import Live
from iact.core.session.person import signed
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.ahead import behind
from iact.core.tree.decision import (
    Asked,
    Decision,
    answer_content,
    ask_content,
    by_policy,
    decide_call,
    gate_content,
    nobody_answered,
    without_person,
)
from iact.core.tree.held import is_held
from iact.core.views.questions import alike


@dataclass(frozen=True, slots=True)
class Authorities:
    """Who decides about calls. `endpoint`: asked about every call, instead of a person. `seconds`: how long a person
    has.

    `both`: a call that an endpoint allows and that a rule wants asked about is put to a person as well. `attended`:
    whether a person may be available to answer; if not, the policy says at once what becomes of a question, and without
    a rule the answer is no. `approvals`: what
    people approved of modules that do not ship with the product. `delays`: how long calls have taken so far; None: each
    session starts without data.
    """

    endpoint: ClearancePort | None = None
    both: bool = False
    attended: bool = True
    seconds: float = Clearance().person_seconds
    approvals: Approvals | None = None
    delays: Delays | None = None
    chance: random.Random = field(default_factory=random.Random)


class Monitor:
    """The gate of one running session."""

    def __init__(self, live: Live, authorities: Authorities) -> None:
        self._live = live
        self._authorities = authorities
        self._delays = authorities.delays or Delays()

    async def decide(self, agent: Agent, pending: Pending) -> Ticket | Denial | None:
        """Decide an agent's call. None: nothing was decided, because the call was withdrawn or must wait for a pause to
        end."""
        at, decision = self._look(agent, pending)
        while isinstance(decision.verdict, Question):
            assert decision.asked is not None
            await self._ask(agent, pending, decision, decision.asked)
            if pending not in agent.actions or self._live.tree.halted(agent, pending):
                return None
            # Changes made while the question was open count: the intent may be lower now.
            at, decision = self._look(agent, pending)
        self._live.record(gate_content(agent, pending, decision), agent.path, at=at)
        return decision.verdict

    def would_ask(self, agent: Agent, pending: Pending) -> bool:
        """Whether a call would need someone's approval now."""
        return isinstance(self._look(agent, pending)[1].verdict, Question)

    async def linger(self, function: str) -> None:
        """Let a denial take as long as a lost call of that function (law 7)."""
        await self._live.clock.sleep(self._delays.draw(function, self._authorities.chance))

    def took(self, function: str, seconds: float, *, lost: bool) -> None:
        """Record how long an allowed call took from its decision until it was lost or completed."""
        self._delays.record(function, seconds, lost=lost)

    def _look(self, agent: Agent, pending: Pending) -> tuple[str, Decision]:
        """The time, and the gate's current decision."""
        at = timestamp(self._live.clock.now())
        # The endpoint or person that answered counts, even if the settings have changed since.
        answered = pending.answer is not None
        endpoint = pending.asked_of == "endpoint" if answered else self._authorities.endpoint is not None
        return at, decide_call(self._live.tree, agent, pending, at=at, endpoint=endpoint)

    # --- clearance ------------------------------------------------------------------------------

    async def _ask(self, agent: Agent, pending: Pending, decision: Decision, asked: ClearanceRequest) -> None:
        """Get the answer to a question into the journal, unless it is already there."""
        endpoint = None if pending.passed else self._authorities.endpoint
        to: Asked = "person" if endpoint is None else "endpoint"
        if pending.answer is None and pending.asked_of != to:
            held = not self._authorities.attended and without_person(self._live.tree, pending) == "hold"
            seconds = self._authorities.seconds if to == "person" and not held else None
            question, blobs = ask_content(agent, pending, asked, decision.impact, to, seconds)
            record = self._live.record(question, agent.path, blobs=blobs)
            if to == "person" and self._authorities.attended and agent.actions[0] is pending:
                record = self._ask_behind(agent, record)
            await self._live.durable(record)
        self._live.changed()
        if endpoint is not None and pending.answer is None:
            answer = await endpoint.ask(asked)
            self._answer(agent, pending, answer, "endpoint")
        elif pending.answer is None and (then := self._said_by_policy(pending)) is not None:
            self._answer(agent, pending, by_policy(then), "policy")
        else:
            await self._wait(agent, pending)

    def _ask_behind(self, agent: Agent, first: Record) -> Record:
        """Together with the first call, ask about later calls that wait for the same reason. Returns the last
        question."""
        last = first
        for pending, bound in list(behind(self._live.tree, agent)):
            if pending.asked or pending.call:
                continue

            at = timestamp(self._live.clock.now())
            shown = replace(pending, bound=bound)
            decision = decide_call(self._live.tree, agent, shown, at=at, endpoint=False)
            if not isinstance(decision.verdict, Question) or decision.asked is None:
                continue

            question, blobs = ask_content(
                agent, shown, decision.asked, decision.impact, "person", self._authorities.seconds
            )
            if alike(first.content, question):
                last = self._live.record(question, agent.path, blobs=blobs)
        return last

    def _said_by_policy(self, pending: Pending) -> Then | None:
        """The policy's answer if no person is available; None: a person may come, or the question is held until one
        does."""
        if self._authorities.attended:
            return None

        # Without a rule the answer is no, at once: nobody would come within any time.
        then = without_person(self._live.tree, pending) or "deny"
        return None if then == "hold" else then

    def _answer(
        self, agent: Agent, pending: Pending, answer: Answer, by: Literal["endpoint", "time", "policy"]
    ) -> None:
        if pending in agent.actions and pending.answer is None:
            both = by == "endpoint" and answer.allow and self._authorities.both
            said = answer_content(agent, pending, answer, by, then="person" if both else "")
            self._live.record(said, agent.path)

    async def _wait(self, agent: Agent, pending: Pending) -> None:
        """Wait for a person; their time runs only while nothing above is paused."""
        live = self._live
        loop = asyncio.get_running_loop()
        is_without_end = is_held(live.tree, pending)
        left = math.inf if is_without_end else pending.seconds or self._authorities.seconds
        while pending in agent.actions and pending.answer is None:
            is_paused = live.tree.halted(agent, pending)
            since = loop.time()
            try:
                async with asyncio.timeout(None if is_paused or is_without_end else left):
                    await live.moved()
            except TimeoutError:
                self._answer(agent, pending, nobody_answered(pending.seconds), "time")

            if not is_paused:
                left -= loop.time() - since

    def asked(self, calls: Sequence[int]) -> list[str]:
        """The agents whose calls wait for a person since these records.

        Raises:
            UsageError: no call waits for an answer to one of them.
        """
        return [self._open(call)[0].path for call in calls]

    def person(self, calls: Sequence[int], *, allow: bool, remember: JSON) -> Record:
        """Answer the questions at these records on behalf of a person, all in the same way. Returns the last answer.

        Raises:
            UsageError: no call waits for an answer to one of them, or `remember` is not possible; then none is
                answered.
        """
        questions = [self._open(call) for call in calls]
        if remember is not None:
            if not allow or not self._live.tree.policy.remember:
                raise UsageError("Only an approval can be remembered, and only if the policy allows it.")
            for agent, pending in questions:
                decision = self._look(agent, pending)[1]
                if decision.asked is not None:
                    kept(remember, decision.asked.question, decision.asked.user)  # raises if it can't be

        answers: list[Record] = []
        for agent, pending in questions:
            content = answer_content(agent, pending, Answer(allow, ""), "user", remember=remember)
            answers.append(self._live.record(signed(content), agent.path))
        return answers[-1]

    def _open(self, call: int) -> tuple[Agent, Pending]:
        for agent in self._live.tree.agents.values():
            for pending in agent.actions:
                if pending.asked == call and pending.asked_of == "person" and pending.answer is None:
                    return agent, pending
        raise UsageError(f"No call waits for an answer to record {call}.")
