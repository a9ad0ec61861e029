"""Plans for a terminal: the graph in layers with the states of its steps, and what would happen, in words. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from core.plan.limits import Limits
from core.plan.model import WORK, Node, Plan
from core.plan.seams import Catalogue
from core.plan.state import NodeRecord
from core.plan.states import State
from core.plan.validate import effective_impact, levels

MARKS: Final[Mapping[State, str]] = {
    "pending": "○", "ready": "◔", "running": "▶", "waiting_human": "?", "blocked": "‖",
    "executed": "✓", "failed_retryable": "↻", "failed": "✗", "cancelled": "⊗", "skipped": "–",
}  # fmt: skip
_IMPACTS: Final = ("reads", "writes", "destroys, sends out or changes authority")
_WHY: Final = 100


def layers_of(nodes: Mapping[str, Node]) -> list[list[str]]:
    """Ids by dependency wave: what stands in a layer needs only what stands above it."""
    found = levels(nodes)
    rows: list[list[str]] = [[] for _ in range(1 + max(found.values(), default=-1))]
    for one in nodes:
        rows[found[one]].append(one)
    return rows


def draw(nodes: Mapping[str, Node], records: Mapping[str, NodeRecord] | None = None) -> str:
    """The graph: a box for each step, layer by layer, with what it stands behind and, if known, its state."""
    lines: list[str] = []
    for number, row in enumerate(layers_of(nodes), 1):
        if lines:
            lines.append("  │")
        for one in row:
            lead = f"{number:>2}" if one == row[0] else "  "
            corner = "──" if len(row) == 1 else "┬─" if one == row[0] else "└─" if one == row[-1] else "├─"
            lines.append(f"{lead}{corner} {_box(nodes[one], records)}")
    return "\n".join(lines)


def _box(node: Node, records: Mapping[str, NodeRecord] | None) -> str:
    record = records.get(node.id) if records is not None else None
    mark = f"{MARKS[record.state]} " if record is not None else ""
    needs = f"  ← {_needs(node)}" if node.dependencies else ""
    spent = ""
    if record is not None and record.started is not None and record.ended is not None:
        spent = f"  {record.ended - record.started:.1f} s"
    why = f"  {' '.join(record.error.split())[:_WHY]}" if record is not None and record.error else ""
    return f"{mark}{node.id}  {what(node)}{needs}{spent}{why}"


def _needs(node: Node) -> str:
    raced = " | ".join(node.candidates)
    return ", ".join([*node.required, *([f"one of {raced}"] if raced else [])])


def what(node: Node) -> str:
    """What a step does, in a few words."""
    if node.kind == "agent":
        return f"agent {node.call}"
    return node.call if node.kind == "tool" else node.kind.replace("_", " ")


# --- in words -------------------------------------------------------------------------------------------------


def explain(plan: Plan, mode: str, intent: float, catalogue: Catalogue | None) -> str:
    """What would run in which order, what it may change, and what could keep it from being done."""
    parts = [_head(plan, mode), "\n".join(_order(plan)), "\n".join(_impacts(plan, intent, catalogue))]
    return "\n\n".join(part for part in (*parts, "\n".join(_blocks(plan))) if part)


_JUDGED: Final[Mapping[str, str]] = {
    "static": "nobody judges it while it runs; a step that fails is retried if that may help",
    "reflect": "after each wave a model judges the evidence; the next wave waits for the verdict",
    "nreflect": "a model judges the evidence after every few finished steps, and nothing waits for it",
    "orchestrator": "a model looks at each result, and may add or cancel steps",
    "analyze": "when all has run, a model judges whether the goal was reached, and plans anew if not",
    "profile": "rules adapt it while it runs, and one model call reports at the end",
}


def _head(plan: Plan, mode: str) -> str:
    goal = f"Goal: {plan.goal}\n" if plan.goal else ""
    return (
        f"{goal}{len(plan.nodes)} steps in {len(layers_of(plan.nodes))} waves, mode {mode}: {_JUDGED[mode]}."
    )


def _order(plan: Plan) -> Iterator[str]:
    for number, row in enumerate(layers_of(plan.nodes), 1):
        lead = "At once" if number == 1 else "Then"
        for one in row:
            node = plan.nodes[one]
            after = ""
            if node.dependencies:
                after = f" when {_needs(node)} {'has' if len(node.dependencies) == 1 else 'have'} succeeded"
            task = f": {node.task}" if node.task else ""
            yield f"{lead}{after}: {one} ({what(node)}){task}"
            for name, ref in node.refs.items():
                field = f"the field {ref.field} of " if ref.field else ""
                yield f"    its {name} is {field}the result of {ref.step}"


def _impacts(plan: Plan, intent: float, catalogue: Catalogue | None) -> Iterator[str]:
    by_impact: dict[float, list[str]] = {}
    for node in plan.nodes.values():
        if node.kind == "agent":
            by_impact.setdefault(intent, []).append(f"{node.id} (whatever its agent does)")
            continue
        info = catalogue.find(node.call) if catalogue is not None else None
        by_impact.setdefault(effective_impact(node, info), []).append(node.id)
    for impact, ids in sorted(by_impact.items()):
        denied = f"; the intent {intent:g} does not allow that" if impact > intent else ""
        yield f"Impact {impact:g}, {_IMPACTS[min(math.ceil(impact), 2)]}: {', '.join(ids)}{denied}."


def _blocks(plan: Plan) -> Iterator[str]:
    """Which failures would keep what from running."""
    for node in plan.nodes.values():
        lost = sorted(_lost_with(plan, node.id), key=list(plan.nodes).index)
        if lost:
            yield f"If {node.id} fails, {', '.join(lost)} can't run."
        if node.timeout is not None:
            yield f"{node.id} is stopped after {node.timeout:g} s."
    writers: dict[str, list[str]] = {}
    for node in plan.nodes.values():
        shared = (f"the agent {node.call}",) if node.kind == "agent" else node.writes
        for name in shared:
            writers.setdefault(name, []).append(node.id)
    for name, ids in writers.items():
        if len(ids) > 1:
            yield f"{', '.join(ids)} take turns, for each needs {name} to itself."
    if len(plan.nodes) > Limits().concurrency:
        yield f"At most {Limits().concurrency} steps run at a time."


def _lost_with(plan: Plan, failed: str) -> set[str]:
    """The steps that can't run once `failed` has failed for good."""
    lost = {failed}
    grew = True
    while grew:
        grew = False
        for node in plan.nodes.values():
            raced = bool(node.candidates) and all(one in lost for one in node.candidates)
            if node.id not in lost and (raced or any(one in lost for one in node.required)):
                lost.add(node.id)
                grew = True
    return lost - {failed}


def edges_of(nodes: Mapping[str, Node]) -> Sequence[tuple[str, str]]:
    """Pairs (from, to), in the order of the plan."""
    return [(one, node.id) for node in nodes.values() for one in node.dependencies if one in nodes]


def work_of(nodes: Mapping[str, Node]) -> dict[str, Node]:
    """Tool and agent steps alone."""
    return {one: node for one, node in nodes.items() if node.kind in WORK}
