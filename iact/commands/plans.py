"""Commands about plans: `plan run`, `check`, `graph`, `explain`, and commands for a plan of a session.

A plan runs as it would in a dialogue: in its own session, through the gate, in containers, with a journal. The steps
are those in the file. If there is only a goal, a planner model writes them.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from iact import signals
from iact.commands import catalogue, ending, journals, remote, undecided
from iact.commands.plan_text import draw, edges_of, layers_of
from iact.commands.plan_text import explain as in_words
from iact.commands.questions import TerminalQuestions
from iact.commands.run import show_progress, tell_held
from iact.core.errors import SandboxError, UsageError
from iact.core.plan.validate import TooManySteps
from iact.core.ports import JSON
from iact.core.records.dialogue import Reply
from iact.core.session.catalogue import KnownModule
from iact.core.session.ending import outcome_of, verdict_on
from iact.core.session.journals import journal_file, names_journal
from iact.core.session.plans import PlanCheck, StepView, WrittenPlan
from iact.core.session.policy import read_policies
from iact.core.session.questions import undecided_since
from iact.core.session.replay import replay
from iact.core.session.templates import Template, Templates, read_template
from iact.settings import Settings
from iact.wiring import open_runtime

_LARGEST: Final = 1 << 20

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
    values = _pairs(rest)

    if goal is not None:
        if not goal.strip():
            raise UsageError("The goal is empty.")
        if values:
            raise UsageError("A goal has no parameters. Write the values into it.")
        return WrittenPlan.of_goal(goal)
    if template is not None:
        plan = _parse(Templates(settings.data).filled(template, values), template)
    else:
        plan = read(str(path), values, goal_alone=True)
    if plan.size:
        _refuse(plan.check(None).problems)  # at once, before anything is started for it
    return plan


def _pairs(words: Iterable[str]) -> dict[str, str]:
    """Values by name, from KEY=VALUE.

    Raises:
        UsageError: a word is something else, or a name is there twice.
    """
    found: dict[str, str] = {}
    for word in words:
        name, is_pair, value = word.partition("=")
        if not is_pair or not name:
            raise UsageError(f"{word!r} is not NAME=VALUE.")
        if name in found:
            raise UsageError(f"There are two values for {name!r}.")
        found[name] = value
    return found


def read(path: str, values: Mapping[str, str] | None = None, *, goal_alone: bool = False) -> WrittenPlan:
    """Read a plan file; - is standard input. `goal_alone`: the plan needs no steps.

    `values`: for its parameters; None: those that it had when it was saved, so that it can be looked at.

    Raises:
        UsageError: it can't be read, is not a plan with steps, or a value is missing or wrong.
        TooManySteps: it is a plan, which can't run because it has too many.
    """
    text = text_of(path)
    try:
        template = read_template(text)
    except TooManySteps:
        raise
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    text = template.fill(template.examples() if values is None else values, name=path)
    plan = _parse(text, path)
    if not plan.size and not goal_alone:
        raise UsageError(f"{path} has a goal and no steps. `iact plan run` lets a planner write them.")
    return plan


def text_of(path: str) -> str:
    """Return the text of a plan file; - is standard input.

    Raises:
        UsageError: it can't be read.
    """
    try:
        if path == "-":
            return sys.stdin.read(_LARGEST + 1)
        with Path(path).open(encoding="utf-8") as file:
            return file.read(_LARGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The plan {path} can't be read: {error}.") from error


def _refuse(problems: Sequence[str]) -> None:
    """Refuse a plan that can't run.

    Raises:
        UsageError: there are problems.
    """
    if problems:
        raise UsageError(" ".join(problems))


def _parse(text: str, name: str) -> WrittenPlan:
    try:
        return WrittenPlan.read(text)
    except TooManySteps:
        raise
    except UsageError as error:
        raise UsageError(f"{name}: {error}.") from error


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


# --- without running -------------------------------------------------------------------------------------------


def check(settings: Settings, path: str, *, mode: str, as_json: bool) -> int:
    """Report whether a plan can run. Returns 1 if it can't."""
    waves = 0
    try:
        plan = read(path)
    except TooManySteps as error:
        # Nothing else of it was looked at.
        size = error.steps
        found = PlanCheck(error.problems, ())
    else:
        size = plan.size
        found = plan.check(None, mode)
        # A plan of a wrong shape is refused before anything is started to look functions up.
        if not found.problems:
            found = plan.check(_modules(settings), mode)
        if not found.problems:
            waves = len(layers_of(plan.steps()))

    if as_json:
        report = {
            "ok": not found.problems,
            "steps": size,
            "problems": found.problems,
            "warnings": found.warnings,
        }
        print(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        for one in found.warnings:
            print(f"note: {one}")
        for one in found.problems:
            print(one)
        if not found.problems:
            print(f"{path}: {size} steps in {waves} waves; it can run.")
    return 1 if found.problems else 0


def graph(settings: Settings, path: str, *, as_json: bool) -> int:
    """Draw a plan from its file, or the plans of a journal with the states of their steps."""
    drawn: list[tuple[str, str]] = []
    report: list[dict[str, JSON]] = []
    for name, steps in _graphs(settings, path):
        drawn.append((name, draw(steps)))
        graph: dict[str, JSON] = {
            "path": name,
            "layers": [[*row] for row in layers_of(steps)],
            "edges": [[*edge] for edge in edges_of(steps)],
        }
        if any(step.state is not None for step in steps.values()):
            graph["states"] = {one: step.state for one, step in steps.items()}
        report.append(graph)
    if as_json:
        print(json.dumps(report, ensure_ascii=False, indent=2))
        return 0
    for name, picture in drawn:
        print(f"{name}\n{picture}")
    return 0


def _graphs(settings: Settings, path: str) -> list[tuple[str, Mapping[str, StepView]]]:
    try:
        journal = journals.find(settings, path)
    except UsageError:
        journal = None
    if journal is None or (journal.is_file() and not names_journal(journal)):
        return [(path, read(path).steps())]
    plans = replay(journal).view.plans()
    if not plans:
        raise UsageError(f"The journal {journal_file(journal)} contains no plan.")
    return [(name, plan.steps) for name, plan in plans.items()]


def explain(settings: Settings, path: str, *, mode: str, intent: str, as_json: bool) -> int:
    """Describe what a plan would do, in which order, and what could stop it."""
    plan = read(path)
    _refuse(plan.check(None).problems)
    modules = _modules(settings)
    _refuse(plan.check(modules).problems)
    way, reason = plan.mode(mode)
    text = in_words(plan, way, read_policies(settings.data).level(intent), plan.impacts(modules))
    if reason:
        text = f"{text}\n\nThe mode was chosen because: {reason}"
    print(json.dumps({"mode": way, "text": text}, ensure_ascii=False) if as_json else text)
    return 0


def _modules(settings: Settings) -> Sequence[KnownModule] | None:
    """Return the modules of the catalogue, or None, with a note, if no sandbox is available."""
    try:
        return signals.run(catalogue.known_modules(settings))
    except SandboxError as error:
        print(f"note: functions were not checked: {error}", file=sys.stderr)
        return None


# --- saved plans, and plans of sessions --------------------------------------------------------------------------


def templates(settings: Settings, name: str | None, *, as_json: bool) -> int:
    """List the saved plans, or describe one.

    Raises:
        UsageError: there is none of this name, or it can't be used.
    """
    kept = Templates(settings.data)
    if name is not None:
        _describe(name, kept.template(name), as_json=as_json)
        return 0
    names = kept.names()
    if as_json:
        print(json.dumps(names))
    elif names:
        print("\n".join(kept.lines()))
    else:
        print(
            "No plans are saved yet. Save one with `iact plan save` or in the page's plan view.",
            file=sys.stderr,
        )
    return 0


def _describe(name: str, template: Template, *, as_json: bool) -> None:
    if as_json:
        parameters: list[JSON] = [
            {
                "name": one.name,
                "kind": one.kind,
                "was": one.example,
                "default": one.default,
                "about": one.about,
            }
            for one in template.parameters
        ]
        report = {"name": name, "goal": template.goal, "parameters": parameters}
        print(json.dumps(report, ensure_ascii=False, indent=2))
        return
    print(f"{name} {template.line}".rstrip())
    if template.goal:
        print(template.goal)
    for one in template.parameters:
        was = f"it was {one.shown(one.example)}" if one.example is not None else ""
        otherwise = f"{one.shown(one.default)} if it is left out" if one.default is not None else ""
        facts = ", ".join(filter(None, (one.kind, was, otherwise, one.about)))
        print(f"  {one.name}: {facts}")


def show(settings: Settings, session: str, path: str, *, as_json: bool) -> int:
    """Print a plan of a session running on the server, as a person would write it."""
    answer = remote.ask_session(settings, session, {"type": "plan.text", "path": path})
    text = str(answer.get("text", ""))
    print(json.dumps({"text": text}, ensure_ascii=False) if as_json else text.rstrip("\n"))
    return 0


def save(
    settings: Settings, session: str, path: str, name: str, parameters: Sequence[str], *, as_json: bool
) -> int:
    """Save a plan of a session running on the server, and print its file.

    `parameters`: values of the plan to leave open, as NAME=VALUE. Without any, those that could be are listed.
    """
    marked: dict[str, JSON] = {**_pairs(parameters)}
    frame: remote.Frame = {"type": "plan.save", "path": path, "name": name, "parameters": marked}
    answer = remote.ask_session(settings, session, frame)
    if not marked:
        offered = remote.ask_session(settings, session, {"type": "plan.offers", "path": path})
        _tell_offers(offered.get("list"))
    print(json.dumps({"file": answer.get("file")}, ensure_ascii=False) if as_json else answer.get("file"))
    return 0


def _tell_offers(offered: JSON) -> None:
    """Say which values of a saved plan could be left open."""
    pairs = (
        [f"{one['name']}={one['value']}" for one in offered if isinstance(one, dict)]
        if isinstance(offered, list)
        else []
    )
    if pairs:
        options = " ".join(f"--parameter {shlex.quote(pair)}" for pair in pairs)
        print(
            f"note: all its values are fixed. To give others when it is used, save it with some of: {options}",
            file=sys.stderr,
        )
