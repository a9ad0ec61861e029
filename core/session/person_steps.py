"""Steps of plans that are the person's: they do one, or accept what one gave.

The plan's call becomes a question to the person, who has all the time that they want unless the step says otherwise.
What they write is the step's result. A question that is open when the session is left is asked again afterwards.
"""

from __future__ import annotations

from typing import Final

from iact.core.characters import escaped
from iact.core.modules.outcome import ModuleReply
from iact.core.records.calls import Call, ResultStatus
from iact.core.records.form_values import LONGEST_TEXT, FormField
from iact.core.records.forms import CHANGE
from iact.core.session.forms import LATE, Forms
from iact.core.session.live import Live
from iact.core.session.results import record_result, result_of
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.interpret import argument_text, digest_of
from iact.core.tree.plan_steps import asks_acceptance

DONE: Final = "Done."
"""The result of a step that the person did and said nothing about."""

_DONE: Final = FormField(name="answer", kind="text", title="What came of it", most=LONGEST_TEXT)
_CHANGE: Final = FormField(
    name=CHANGE,
    kind="text",
    title="What should be changed",
    description="Leave it empty to accept the result.",
    most=LONGEST_TEXT,
)
_NOTHING: Final = "—"
"""Stands for an empty result."""
_NOT_DONE: Final = "The user did not do it."
_TOO_LATE: Final = "The user did not do it in time."
_NOBODY: Final = "Nobody was there to do it."


class PersonSteps:
    """The steps of one session's plans that are the person's."""

    def __init__(self, live: Live, forms: Forms) -> None:
        self._live = live
        self._forms = forms

    async def ask(self, plan: Agent, pending: Pending) -> None:
        """Ask the person, and record what they say as the outcome of the plan's call."""
        bound, accepts = pending.bound, asks_acceptance(pending)
        assert bound is not None
        if not pending.call:
            args = digest_of(bound)
            call = Call(turn=plan.turn, action=pending.index, function=pending.spec.name, args=args)
            self._live.record(call, plan.path)

        parts = (argument_text(bound, "task"), argument_text(bound, "result"))
        words = "\n\n".join(filter(None, parts)) or _NOTHING
        try:
            reply = await self._forms.decide(
                plan,
                pending,
                escaped(words, every=True),
                fields=(_CHANGE,) if accepts else (_DONE,),
                seconds=pending.limit or 0,
            )
        finally:
            self._forms.end(pending.call)
        if pending not in plan.actions:
            return

        status, text = _accepted(reply) if accepts else _done(reply)
        record_result(self._live, plan, result_of(plan, pending, status), text)


def _done(reply: ModuleReply) -> tuple[ResultStatus, str]:
    """The outcome of a step that the person was asked to do."""
    if reply.action == "accept":
        return "ok", str(reply.values.get("answer") or "").strip() or DONE
    if reply.action == "decline":
        return "error", _NOT_DONE
    return "error", _TOO_LATE if reply.reason == LATE else _NOBODY


def _accepted(reply: ModuleReply) -> tuple[ResultStatus, str]:
    """The outcome of the question of whether a result is accepted. An error says what should be other."""
    if reply.action == "cancel":
        return "incomplete", ""
    change = str(reply.values.get(CHANGE) or "").strip()
    if reply.action == "accept" and not change:
        return "ok", ""
    return "error", change
