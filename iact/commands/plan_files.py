"""Commands about a plan that does not run: `plan check`, `graph`, `explain`, and reading the files for all commands.

They are typed while a plan is written, again and again. So nothing is imported for them that only a session needs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from iact import signals
from iact.commands.plan_text import draw, edges_of, layers_of
from iact.commands.plan_text import explain as in_words
from iact.core.errors import SandboxError, UsageError
from iact.core.ports import JSON
from iact.core.stored.policy import read_policies
from iact.core.stored.templates import read_template
from iact.core.views.known_modules import KnownModule
from iact.core.views.written_plans import PlanCheck, StepView, TooManySteps, WrittenPlan
from iact.declared_modules import declared_modules
from iact.settings import Settings

_LARGEST: Final = 1 << 20


def values_in(words: Iterable[str]) -> dict[str, str]:
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
    plan = parse(text, path)
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


def refuse(problems: Sequence[str]) -> None:
    """Refuse a plan that can't run.

    Raises:
        UsageError: there are problems.
    """
    if problems:
        raise UsageError(" ".join(problems))


def parse(text: str, name: str) -> WrittenPlan:
    try:
        return WrittenPlan.read(text)
    except TooManySteps:
        raise
    except UsageError as error:
        raise UsageError(f"{name}: {error}.") from error


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
    # What reads journals takes longer to import than a plan to draw.
    from iact.core.stored.journals import journal_file, names_journal

    file = Path(path)
    if path == "-" or (file.is_file() and not names_journal(file)):
        return [(path, read(path).steps())]

    from iact.commands import journals
    from iact.core.stored.replay import replay

    try:
        journal = journals.find(settings, path)
    except UsageError:
        return [(path, read(path).steps())]
    plans = replay(journal).view.plans()
    if not plans:
        raise UsageError(f"The journal {journal_file(journal)} contains no plan.")
    return [(name, plan.steps) for name, plan in plans.items()]


def explain(settings: Settings, path: str, *, mode: str, intent: str, as_json: bool) -> int:
    """Describe what a plan would do, in which order, and what could stop it."""
    plan = read(path)
    refuse(plan.check(None).problems)
    modules = _modules(settings)
    refuse(plan.check(modules).problems)
    way, reason = plan.mode(mode)
    text = in_words(plan, way, read_policies(settings.data).level(intent), plan.impacts(modules))
    if reason:
        text = f"{text}\n\nThe mode was chosen because: {reason}"
    print(json.dumps({"mode": way, "text": text}, ensure_ascii=False) if as_json else text)
    return 0


def _modules(settings: Settings) -> Sequence[KnownModule] | None:
    """Return the modules of the catalogue, or None, with a note, if no sandbox is available."""
    try:
        return signals.run(declared_modules(settings))
    except SandboxError as error:
        print(f"note: functions were not checked: {error}", file=sys.stderr)
        return None
