"""Plans as text for a terminal: the graph in layers with the states of its steps, and an explanation. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from iact.core.records.ways import ABOUT
from iact.core.views.written_plans import CONCURRENCY, StepView, WrittenPlan

MARKS: Final[Mapping[str, str]] = {
    "pending": "○", "ready": "◔", "running": "▶", "waiting_human": "?", "blocked": "‖",
    "executed": "✓", "failed_retryable": "↻", "failed": "✗", "cancelled": "⊗", "skipped": "–",
}  # fmt: skip
_IMPACTS: Final = ("reads", "writes", "destroys, sends out or changes authority")
_WHY: Final = 100


def layers_of(steps: Mapping[str, StepView]) -> list[list[str]]:
    """Group step ids by dependency wave: the steps of a layer need only steps of the layers above."""
    rows: list[list[str]] = [[] for _ in range(1 + max((one.layer for one in steps.values()), default=-1))]
    for one, step in steps.items():
        rows[step.layer].append(one)
    return rows


def draw(steps: Mapping[str, StepView]) -> str:
    """Draw the graph: a box for each step, layer by layer, with what it waits for and, if it ran, its state."""
    lines: list[str] = []
    for number, row in enumerate(layers_of(steps), 1):
        if lines:
            lines.append("  │")
        for one in row:
            lead = f"{number:>2}" if one == row[0] else "  "
            corner = "──" if len(row) == 1 else "┬─" if one == row[0] else "└─" if one == row[-1] else "├─"
            lines.append(f"{lead}{corner} {_box(steps[one])}")
    return "\n".join(lines)


def _box(step: StepView) -> str:
    mark = f"{MARKS[step.state]} " if step.state is not None else ""
    needs = f"  ← {_needs(step)}" if step.needs else ""
    spent = ""
    if step.started is not None and step.ended is not None:
        spent = f"  {step.ended - step.started:.1f} s"
    why = f"  {' '.join(step.error.split())[:_WHY]}" if step.error else ""
    return f"{mark}{step.id}  {what(step)}{needs}{spent}{why}"


def _needs(step: StepView) -> str:
    raced = " | ".join(step.candidates)
    return ", ".join([*step.required, *([f"one of {raced}"] if raced else [])])


def what(step: StepView) -> str:
    """Describe briefly what a step does."""
    if step.kind == "agent":
        return f"agent {step.call}"
    if step.kind == "person":
        return "you"
    return step.call if step.kind == "tool" else step.kind.replace("_", " ")


# --- in words -------------------------------------------------------------------------------------------------


def explain(plan: WrittenPlan, mode: str, intent: float, impacts: Mapping[str, float]) -> str:
    """Explain what would run, in which order, what it may change, and what could stop it."""
    steps = plan.steps()
    parts = [
        _head(plan.goal, steps, mode),
        "\n".join(_order(steps)),
        "\n".join(_impacts(steps, intent, impacts)),
        "\n".join(_blocks(steps)),
    ]
    return "\n\n".join(part for part in parts if part)


_FAILED: Final = (
    "A step that fails is tried again if that may help, and then replaced or planned again, as far as the mode does that "
    "and there is a model to ask."
)


def _head(goal: str, steps: Mapping[str, StepView], mode: str) -> str:
    aim = f"Goal: {goal}\n" if goal else ""
    size = f"{len(steps)} steps in {len(layers_of(steps))} waves"
    return f"{aim}{size}, mode {mode}. {ABOUT[mode].help}. {_FAILED}"


def _order(steps: Mapping[str, StepView]) -> Iterator[str]:
    for number, row in enumerate(layers_of(steps), 1):
        lead = "At once" if number == 1 else "Then"
        for one in row:
            step = steps[one]
            after = ""
            if step.needs:
                after = f" when {_needs(step)} {'has' if len(step.needs) == 1 else 'have'} succeeded"
            task = f": {step.task}" if step.task else ""
            yield f"{lead}{after}: {one} ({what(step)}){task}"
            for name, (source, path) in step.refs.items():
                field = f"the field {path} of " if path else ""
                yield f"    its {name} is {field}the result of {source}"


def _impacts(steps: Mapping[str, StepView], intent: float, impacts: Mapping[str, float]) -> Iterator[str]:
    by_impact: dict[float, list[str]] = {}
    for one, step in steps.items():
        if step.kind == "person":
            continue
        if step.kind == "agent":
            by_impact.setdefault(intent, []).append(f"{one} (anything its agent does)")
        else:
            by_impact.setdefault(impacts[one], []).append(one)
    for impact, ids in sorted(by_impact.items()):
        denied = f"; the intent {intent:g} does not allow that" if impact > intent else ""
        yield f"Impact {impact:g}, {_IMPACTS[min(math.ceil(impact), 2)]}: {', '.join(ids)}{denied}."


def _blocks(steps: Mapping[str, StepView]) -> Iterator[str]:
    """List which failures would keep which steps from running."""
    served: dict[str, list[str]] = {one: [] for one in steps}
    for source, target in edges_of(steps):
        served[source].append(target)
    for one, step in steps.items():
        lost = _lost_with(steps, served, one)
        if lost:
            yield f"If {one} fails, {', '.join(lost)} can't run."
        if step.kind == "person":
            yield f"{one} is yours: the plan asks you, and goes on when you have answered."
        elif step.accepted:
            yield f"{one} counts only if you accept its result; the plan asks you."
        if step.timeout is not None:
            yield f"{one} is stopped if it takes longer than {step.timeout:g} s."
    writers: dict[str, list[str]] = {}
    for one, step in steps.items():
        shared = (f"the agent {step.call}",) if step.kind == "agent" else step.writes
        for name in shared:
            writers.setdefault(name, []).append(one)
    for name, ids in writers.items():
        if len(ids) > 1:
            yield f"{', '.join(ids)} run one after another, because each needs {name} to itself."
    if len(steps) > CONCURRENCY:
        yield f"At most {CONCURRENCY} steps run at the same time."


def _lost_with(steps: Mapping[str, StepView], served: Mapping[str, Sequence[str]], failed: str) -> list[str]:
    """The steps that can't run once `failed` has failed permanently, in the order of the plan.

    `served`: for each step, those that need it.
    """
    lost = {failed}
    found = [failed]
    for one in found:
        for follower in served[one]:
            step = steps[follower]
            raced = bool(step.candidates) and all(each in lost for each in step.candidates)
            if follower not in lost and (raced or one in step.required):
                lost.add(follower)
                found.append(follower)
    return [one for one in steps if one in lost and one != failed]


def edges_of(steps: Mapping[str, StepView]) -> Sequence[tuple[str, str]]:
    """The edges as pairs (from, to), in the order of the plan."""
    return [(one, step.id) for step in steps.values() for one in step.needs if one in steps]
