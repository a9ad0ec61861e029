"""Describes a message, so that `auto` can choose how to work on it: one question to a model, asked once per text and what stands before it.

The page asks while the message is still being written, to show what would be chosen; that answer also counts when the
text is sent. A model with its own static prompt is too small to answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from iact.core.context.tokens import estimate
from iact.core.errors import ModelError, StructuredFailed
from iact.core.models.roles import Models
from iact.core.models.structured import structured
from iact.core.plan.modes import auto
from iact.core.ports import ChatMessage
from iact.core.records.dialogue import Discard
from iact.core.records.parts import Tokens
from iact.core.session.model_calls import ModelCall
from iact.core.session.scheduler import Scheduler
from iact.core.session.session_memory import SessionMemory
from iact.core.stored.experience import Experience
from iact.core.tree import budget, plan_request
from iact.core.tree.agent import Agent, ChooseWay

_ANSWER_TOKENS: Final = 400
_NOTHING: Final = Tokens(prompt=0, cached=0, completion=0)


@dataclass(frozen=True, slots=True)
class RouteAnswer:
    """A model's description of a text; `failed`: why there is none."""

    text: str
    failed: str
    usage: Tokens


class Routing:
    """The choices of one session. `_known`: the answer about the most recent text."""

    def __init__(
        self, scheduler: Scheduler, models: Models, memory: SessionMemory, experience: Experience
    ) -> None:
        self._live = scheduler.live
        self._scheduler = scheduler
        self._models = models
        self._memory = memory
        self._experience = experience
        self._known: tuple[str, RouteAnswer] | None = None
        self._unsent = _NOTHING

    async def foresee(self, text: str) -> auto.Choice:
        """What would be chosen for a text."""
        answer = await self._about(text)
        return plan_request.choice(self._live.tree, text, answer.text, self._experience.ways_that_failed())

    async def choose(self, root: Agent, step: ChooseWay) -> None:
        """Choose for a message, and record the choice, unless the message was cancelled in the meantime."""
        live, wanted = self._live, step.errand
        try:
            async with self._scheduler.cancellable(root):
                answer = await self._about(wanted.said.text)
        except TimeoutError:
            return  # its work was cancelled
        usage, self._unsent, self._known = self._unsent, _NOTHING, None
        if root.errand is not wanted or wanted.mode != "auto":
            live.record(Discard(reason="cancel", usage=usage), root.path, body=answer.text)
            return
        failures = self._experience.ways_that_failed()
        record = plan_request.chosen(live.tree, wanted, answer.text, usage, answer.failed, failures)
        live.record(record, root.path, body=answer.text)

    async def _about(self, text: str) -> RouteAnswer:
        await self._memory.choose_standing()
        question = plan_request.question(self._live.tree, text)
        if self._known is None or self._known[0] != question:
            answer = await self._ask(question)
            self._known = question, answer
            self._unsent = _sum(self._unsent, answer.usage)
        return self._known[1]

    async def _ask(self, question: str) -> RouteAnswer:
        tree = self._live.tree
        role = plan_request.asked(tree)
        if tree.roles[role].small:
            return RouteAnswer("", "The model is too small to choose a mode.", _NOTHING)
        if budget.cost_of_turn(estimate(question)) > tree.root.account.left:
            return RouteAnswer("", "The budget of tokens is used up.", _NOTHING)
        try:
            with ModelCall(self._live, "/") as call:
                found = await structured(
                    self._models.model(role),
                    [ChatMessage("user", question)],
                    auto.Features,
                    max_tokens=_ANSWER_TOKENS,
                    tell=call.take,
                )
        except StructuredFailed as error:
            spent = Tokens(prompt=error.tokens, cached=0, completion=0, estimated=True)
            return RouteAnswer("", str(error), spent)
        except ModelError as error:
            return RouteAnswer("", str(error), _NOTHING)
        return RouteAnswer(found.value.model_dump_json(), "", Tokens.of(found.usage))


def _sum(one: Tokens, other: Tokens) -> Tokens:
    return replace(
        one,
        prompt=one.prompt + other.prompt,
        cached=one.cached + other.cached,
        completion=one.completion + other.completion,
        estimated=one.estimated or other.estimated,
    )
