"""What models are asked about a plan: each question stands alone and knows only its task.

No question speaks of scheduling, modes, retries or the gate (KAIJU, section 4.7: execution mechanics
do not improve reasoning); results come as bounded excerpts, marked as data. Diagnosis sees the failure
history, nodes under execution never do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from core.plan.contracts import as_text
from core.plan.forms import node_to_json
from core.plan.model import Node
from core.plan.seams import FunctionInfo
from core.plan.state import NodeRecord, PlanState
from core.ports import JSON

EXCERPT: Final = 10_000
"""Characters of one result in a judgement (DAG-mode documentation)."""
BRIEF: Final = 500
"""Characters of one result when planning anew."""

_UNDER_WAY: Final = ("running", "waiting_human")

_STEP_FORM: Final = """Answer with YAML only:
steps:
  - {id: short-name, call: FUNCTION, params: {NAME: VALUE}, refs: {NAME: {step: OTHER-ID, field: a.b.0}}, after: [OTHER-ID]}
  - {id: other-name, agent: NAME, task: "what it shall do", after: [short-name]}
A step starts when all steps in its `after` and `refs` are done; independent steps need neither."""


def excerpt(output: JSON, limit: int = EXCERPT) -> str:
    """An output as text, its middle left out if it is longer than `limit` characters."""
    text = as_text(output)
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def evidence(records: Iterable[NodeRecord], limit: int = EXCERPT) -> str:
    """What came of steps: each with what it was to do and its result, or its error."""
    parts = []
    for record in records:
        node = record.node
        head = f"## {node.id}: {node.task or node.call}"
        if record.state == "executed":
            parts.append(f"{head}\nResult:\n{excerpt(record.output, limit)}")
        elif record.state in ("failed", "failed_retryable"):
            parts.append(f"{head}\nError: {record.error[:limit]}")
        else:
            parts.append(f"{head}\nNo result.")
    return "\n\n".join(parts) or "No results yet."


def functions(infos: Sequence[FunctionInfo]) -> str:
    """Names and one-line descriptions, not schemas."""
    return "\n".join(f"- {info.name}: {info.summary}" for info in infos) or "- none"


def plan(goal: str, infos: Sequence[FunctionInfo], context: str = "") -> str:
    """Asks for a plan."""
    return f"Plan the steps that reach this goal.\n\nGoal: {goal}\n\nFunctions:\n{functions(infos)}\n\n{context}{_STEP_FORM}"


def correct(question: str, reply: str, problems: Sequence[str]) -> str:
    """Asks for a plan once more, with what is wrong with the first."""
    listed = "\n".join(f"- {one}" for one in problems)
    return f"{question}\n\nAn earlier answer was:\n{reply[:EXCERPT]}\n\nIt can't be used:\n{listed}\nWrite it again, corrected."


def replan(goal: str, infos: Sequence[FunctionInfo], state: PlanState, reason: str) -> str:
    """Asks for further steps, given what is there and what went wrong."""
    done = evidence((r for r in work(state) if r.ended is not None), BRIEF)
    history = [f"{v.version}: {v.reason}" for v in state.versions][-8:]
    running = [f"{r.node.id} ({r.node.task or r.node.call})" for r in work(state) if r.state in _UNDER_WAY]
    under_way = f"Under way, and not to be planned again: {', '.join(running)}.\n\n" if running else ""
    context = (
        f"So far:\n{done}\n\n{under_way}Why other steps are needed: {reason}\n"
        f"Earlier versions: {'; '.join(history)}\n"
        "Plan only what is still to do; results above can be used in `refs` and `after` by their ids; "
        "choose new ids.\n\n"
    )
    return plan(goal, infos, context)


def reflect(goal: str, state: PlanState, fresh: Sequence[str], message: str = "") -> str:
    """Asks whether the evidence suffices."""
    waiting = [f"- {r.node.id}: {r.node.task or r.node.call}" for r in work(state) if r.ended is None]
    rest = "\n".join(waiting) or "- nothing"
    note = f"\nFurther information:\n{message}\n" if message else ""
    shown = evidence(state.nodes[one] for one in fresh)
    return (
        f"Judge the evidence gathered for a goal.\n\nGoal: {goal}\n\nEvidence:\n{shown}\n{note}\n"
        f"Still planned:\n{rest}\n\n"
        'Answer with JSON only: {"decision": "continue" | "conclude" | "replan", "reason": "…", '
        '"progress": "productive" | "diminishing", "answer": "the result, if you conclude"}'
    )


def observe(goal: str, record: NodeRecord, waiting: Sequence[str]) -> str:
    """Asks about one result."""
    return (
        f"Look at one result on the way to a goal.\n\nGoal: {goal}\n\n{evidence([record])}\n\n"
        f"Still planned: {', '.join(waiting) or 'nothing'}\n\n"
        'Answer with JSON only: {"action": "continue"} or {"action": "inject", "steps": [{"id", "call", "params"}]} '
        'or {"action": "cancel", "cancel": ["id"]} or {"action": "reflect", "reason": "…"}'
    )


def patch(
    goal: str, record: NodeRecord, siblings: Iterable[NodeRecord], infos: Sequence[FunctionInfo]
) -> str:
    """Asks for a replacement of one failed step."""
    return (
        f"A step failed. Replace it.\n\nGoal: {goal}\n\nThe step: {node_to_json(record.node)}\n"
        f"Its error: {record.error[:EXCERPT]}\n\nResults beside it:\n{evidence(siblings, BRIEF)}\n\n"
        f"Functions:\n{functions(infos)}\n\n"
        'Answer with JSON only: {"steps": [{"id", "call", "params", "refs"}]} (new ids), '
        'or {"skip": true, "reason": "…"} if the goal can be reached without it.'
    )


def analyze(goal: str, state: PlanState) -> str:
    """Asks whether the whole plan reached its goal."""
    return (
        f"Decide whether a goal was reached.\n\nGoal: {goal}\n\n{evidence(work(state))}\n\n"
        "Compare results of different sources; contradictions lower your confidence. "
        'Answer with JSON only: {"achieved": true | false, "confidence": 0.0 to 1.0, "reasoning": "…", '
        '"final_answer": "… or null"}'
    )


def synthesize(goal: str, state: PlanState, reasoning: str) -> str:
    """Asks for the answer in words."""
    return (
        f"Answer from the results, directly, in the language of the goal.\n\nGoal: {goal}\n\n"
        f"{evidence(r for r in work(state) if r.state == 'executed')}\n\nAssessment: {reasoning}"
    )


def judge(node: Node, question: str, output: JSON) -> str:
    """Asks whether an output keeps its contract."""
    return (
        f"Does this result keep its condition?\n\nStep: {node.task or node.call}\nCondition: {question}\n\n"
        f'Result:\n{excerpt(output)}\n\nAnswer with JSON only: {{"holds": true | false}}'
    )


def work(state: PlanState) -> list[NodeRecord]:
    """Tool and agent nodes of the present version, in its order."""
    return [state.nodes[one] for one, node in state.plan.nodes.items() if node.kind in ("tool", "agent")]
