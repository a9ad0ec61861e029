"""`plan run`.

A plan runs as it would in a dialogue: in its own session, through the gate, in containers, with a journal. The steps
are those in the file. If there is only a goal, a planner model writes them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from iact import signals
from iact.commands import ending, plan_files, undecided
from iact.commands.plan_text import draw
from iact.commands.questions import TerminalQuestions
from iact.commands.run import show_progress, tell_held
from iact.core.errors import UsageError
from iact.core.records.dialogue import Reply
from iact.core.stored.templates import Templates
from iact.core.views.ending import outcome_of, verdict_on
from iact.core.views.questions import undecided_since
from iact.core.views.written_plans import WrittenPlan
from iact.settings import Settings
from iact.wiring import open_runtime

_WITHOUT_MODEL: Final = (
    "no model is configured, so a step that fails is tried again where that may help, but is not replaced, and the "
    "rest is not planned again. For that: OPENAI_BASE_URL, OPENAI_API_KEY, IACT_MODEL."
)


def wanted(
    settings: Settings, words: Sequence[str], *, template: str | None, goal: str | None
) -> WrittenPlan:
    """Return the plan to run: from a file, from the saved plans, or to be written by a planner for a goal.

    `words`: the file, unless the plan is from elsewhere, and values for its parameters as KEY=VALUE.

    Raises:
        UsageError: it can't be read, not exactly one source is given, or a value is missing or wrong.
    """
    rest = list(words)
    path = rest.pop(0) if rest and template is None and goal is None else None
    if [path, template, goal].count(None) != 2:
        raise UsageError("Give exactly one of these: a FILE with a plan, --from NAME, or --goal TEXT.")
    if any("=" not in word for word in rest):
        if template is not None or goal is not None:
            raise UsageError("Give exactly one of these: a FILE with a plan, --from NAME, or --goal TEXT.")
        raise UsageError(f"{rest[0]!r} is not KEY=VALUE, a value for a parameter of the plan.")
    values = plan_files.values_in(rest)

    if goal is not None:
        if not goal.strip():
            raise UsageError("The goal is empty.")
        if values:
            raise UsageError("A goal has no parameters. Write the values into it.")
        return WrittenPlan.of_goal(goal)
    if template is not None:
        plan = plan_files.parse(Templates(settings.data).filled(template, values), template)
    else:
        plan = plan_files.read(str(path), values, goal_alone=True)
    if plan.size:
        plan_files.refuse(plan.check(None).problems)  # at once, before anything is started for it
    return plan


def run(
    settings: Settings,
    plan: WrittenPlan,
    *,
    mode: str,
    options: Mapping[str, str | int],
    intent: str,
    scope: str | None,
    as_json: bool,
) -> int:
    """Run a plan to its end.

    Returns what came of it (`EXIT`); 3, too, if it waits for a person who is not present.
    """
    return signals.run(_run(settings, plan, mode, options, intent, scope, as_json))


async def _run(
    settings: Settings,
    plan: WrittenPlan,
    mode: str,
    options: Mapping[str, str | int],
    intent: str,
    scope: str | None,
    as_json: bool,
) -> int:
    attended = sys.stdin.isatty()
    thinks = plan.thinks(mode) or not settings.without_endpoint
    if not thinks:
        print(f"note: {_WITHOUT_MODEL}", file=sys.stderr)
    async with open_runtime(settings, attended=attended) as runtime:
        session = await runtime.open(None, intent=intent, scope=scope)
        async with asyncio.TaskGroup() as group:
            asking = TerminalQuestions(session, group.create_task, asks=attended)
            progress = group.create_task(show_progress(session, asking))
            try:
                with asking.listening():
                    reply = await session.run_plan(plan.text, mode=mode, thinks=thinks, options=options)
            finally:
                progress.cancel()
        decided = undecided_since(session.records(), 0)
        undecided.tell(decided)
        if reply is None:
            return tell_held(session, as_json=as_json, decided=decided)
        report = session.view.plan_result(reply.agent)
        report |= {
            "session": session.id,
            "journal": str(session.journal),
            "undecided": [undecided.to_json(one) for one in decided],
        }
        assert isinstance(reply.content, Reply)
        if told := ending.note(verdict_on(reply.content)):
            print(f"note: {told}", file=sys.stderr)
        if as_json:
            print(json.dumps(report, ensure_ascii=False, indent=2))
        else:
            print(draw(session.view.plans()[reply.agent].steps))
            print(f"\n{reply.body}")
            print(f"journal: {session.journal}", file=sys.stderr)
        return ending.EXIT[outcome_of(reply.content)]
