"""A plan's results: the message to its caller, and its data for programs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from iact.core.context.excerpt import excerpt
from iact.core.language import labels
from iact.core.plan.contracts import as_text
from iact.core.plan.model import WORK
from iact.core.plan.result import PlanResult, node_json, shortfall, versions_json
from iact.core.plan.run_figures import figures_of
from iact.core.plan.state import NodeRecord
from iact.core.plan.states import Cause
from iact.core.plan.verdict import verdict_json
from iact.core.ports import JSON
from iact.core.records.dialogue import Reply
from iact.core.records.parts import Diagnosis, Reached, Verdict
from iact.core.tree.agent import Agent
from iact.core.tree.plan_answer import last_steps
from iact.core.tree.plan_run import Ending, PlanRun, variable_of
from iact.core.tree.tree import Tree

_SHOWN: Final = 4000
"""The most characters of one result in the message to the caller; the variable holds all of it."""
_WHY: Final = 300
_LEFT_OUT: Final[frozenset[Cause]] = frozenset({"concluded", "cancelled"})
_JUDGES: Final = frozenset({"reflection", "observer"})
_RESULT: Final = "Result:\n"
_RESULT_OF: Final = re.compile(r"(?:\A|\n\n)Result of (\S+):\n")
_STEPS: Final = "\n\nSteps:\n"
_NO_STEPS: Final = "without any step"
_SAYS: Final = {
    "concluded": "The plan concluded",
    "partial": "The plan came back partial",
    "failed": "The plan failed",
    "stopped": "The plan was stopped",
}


def ending_of(result: PlanResult, answer: JSON) -> Ending:
    """How a run ended. `answer`: what a model said the result is; None if no model did."""
    warnings = (*result.warnings, *result.flags)
    return Ending(result.status, result.verdict, answer, result.bound, warnings, result.confidence)


def reply_of(plan: Agent, ending: Ending) -> Reply:
    """The `reply` record of a plan that ended on its own."""
    verdict = ending.verdict
    return Reply(
        to=plan.caller,
        status="ok",
        plan=ending.status,
        verdict=verdict,
        answer=ending.answer,
        missing=verdict.missing,
        ended_by=ending.bound,
        warnings=ending.warnings,
        shortfall=shortfall(verdict),
        confidence=ending.confidence,
    )


def ending_from(reply: Reply) -> Ending | None:
    """How a plan ended; None if it did not end on its own."""
    if not reply.plan:
        return None
    verdict = reply.verdict or _verdict_before_1_3(reply)
    return Ending(reply.plan, verdict, reply.answer, reply.ended_by, reply.warnings, reply.confidence)


def _verdict_before_1_3(reply: Reply) -> Verdict:
    """The verdict on a plan whose reply says in one word how it ended."""
    reached: Reached = "partly"
    if reply.plan == "concluded":
        reached = "yes"
    elif reply.plan == "failed":
        reached = "no"
    return Verdict(
        reached=reached,
        because=reply.shortfall,
        missing=reply.missing,
        by="bound" if reply.ended_by else "nobody",
    )


def diagnosis_of(written: JSON) -> Diagnosis | None:
    """The diagnosis in a patch's result, in the form of a record."""
    if not isinstance(written, dict):
        return None

    action: Literal["replace", "skip", "give_up"] = "give_up"
    match written.get("action"):
        case "replace":
            action = "replace"
        case "skip":
            action = "skip"
    confidence = written.get("confidence")
    return Diagnosis(
        failure=str(written.get("failure", "")),
        cause=str(written.get("cause", "")),
        action=action,
        confidence=confidence if isinstance(confidence, float) else 0.0,
    )


@dataclass(frozen=True, slots=True)
class Caveats:
    """What a plan's caller must know about its result."""

    left_out: tuple[str, ...] = ()
    """Ids of steps that were not carried out."""
    assumed: tuple[str, ...] = ()
    """What the plan's author took for granted."""
    unverified: tuple[str, ...] = ()
    """Ids of steps whose results were only checked for errors."""


def caveats(run: PlanRun) -> Caveats:
    """What was left out, assumed and not verified. Empty for plans of older formats, which did not record it."""
    if run.machine is None:
        return Caveats()

    steps = [step for step in run.work() if step.node.id not in run.machine.run.superseded]
    left_out = [step.node.id for step in steps if _is_left_out(step)]

    # A model that judged has looked at all results.
    nodes = run.state.nodes.values()
    is_judged = any(step.node.kind in _JUDGES and step.state == "executed" for step in nodes)
    unverified: list[str] = []
    if not is_judged:
        executed = [step for step in steps if step.state == "executed"]
        unverified = [step.node.id for step in executed if step.validation == "no_error"]
    return Caveats(tuple(left_out), tuple(run.machine.run.mode.assumed), tuple(unverified))


def _is_left_out(step: NodeRecord) -> bool:
    """Whether a step was not carried out, though nothing failed."""
    if step.validation == "left_out":
        return True
    return step.state in ("skipped", "cancelled") and step.cause in _LEFT_OUT


def report(run: PlanRun, ending: Ending) -> str:
    """The message to the caller: the outcome, the result of each step, what is missing and why."""
    work = [record for record in run.state.nodes.values() if record.node.kind in WORK]
    done = sum(record.state == "executed" for record in work)
    versions = f", {len(run.state.versions)} versions" if len(run.state.versions) > 1 else ""
    if not work:
        head = f"{_SAYS[ending.status]} {_NO_STEPS}. {in_words(ending)}"
        return "\n\n".join([head, *_results(run, ending), *_lacks(run, ending), *_planner(ending)])

    head = f"{_SAYS[ending.status]}: {done} of {len(work)} steps executed{versions}. {in_words(ending)}"
    before = "\n\n".join([head, *_results(run, ending)])
    steps = "\n".join(_line(run, record) for record in work)
    return "\n\n".join([f"{before}{_STEPS}{steps}", *_lacks(run, ending)])


def _planner(ending: Ending) -> Iterator[str]:
    """What the caller of a plan that got no steps can do: it wrote a goal, and nothing in it was wrong."""
    if ending.status == "failed" and ending.answer is None and not ending.bound:
        yield "Its steps were to come from a planner. Write them yourself, or work without a plan."


_REACHED: Final[Mapping[Reached, str]] = {
    "yes": "Its goal is reached.",
    "partly": "Its goal is reached in part.",
    "no": "Its goal is not reached.",
    "unknown": "Whether its goal is reached is not known.",
}


def in_words(ending: Ending) -> str:
    """The verdict in sentences: whether the goal is reached, and why not."""
    verdict = ending.verdict
    sentence = _REACHED[verdict.reached]
    if verdict.by == "person":
        sentence = "It was stopped."
    if verdict.reached == "yes" or not verdict.because:
        return sentence
    return f"{sentence} {verdict.because}"


def _lacks(run: PlanRun, ending: Ending) -> Iterator[str]:
    """Paragraphs about what a reader must not take for granted."""
    verdict = ending.verdict
    if verdict.missing:
        missing = (f"- {step}: {_short(why)}" for step, why in verdict.missing.items())
        yield "\n".join(["Missing:", *missing])
    if verdict.replaced:
        replaced = (f"- {step}: {', '.join(heirs)}" for step, heirs in verdict.replaced.items())
        yield "\n".join(["Done in place of what was planned:", *replaced])

    known = caveats(run)
    if known.left_out:
        yield f"Left out: {', '.join(known.left_out)}."
    if known.assumed:
        assumed = (f"- {_short(assumption)}" for assumption in known.assumed)
        yield "\n".join(["Assumed, and not checked:", *assumed])
    # A verdict that the goal is reached covers what led to it; anything else leaves it open whether results are right.
    if known.unverified and verdict.reached != "yes":
        yield f"Nobody checked whether these results are right: {', '.join(known.unverified)}."

    if ending.warnings:
        warnings = (f"- {_short(warning)}" for warning in ending.warnings)
        yield "\n".join(["Notes:", *warnings])


def _results(run: PlanRun, ending: Ending) -> Iterator[str]:
    """The result: as a model said it, or what the last steps gave."""
    if ending.answer is not None:
        yield f"{_RESULT}{as_text(ending.answer)}"
        return
    for record in last_steps(run):
        if record.output is not None:
            text = excerpt(as_text(record.output).rstrip("\n"), _SHOWN, variable_of(record.node.id))
            yield f"Result of {record.node.id}:\n{text}"


def results_in(told: str) -> list[tuple[str, str]] | None:
    """The results in a message that `report` wrote, each with the id of its step; "" for what a model said the result is.

    None if the message is not of its form.
    """
    # The steps behind them are one line each, so the last such heading is the report's own.
    before, heading, _ = told.rpartition(_STEPS)
    if not heading:
        head, _, _ = told.partition(". ")
        is_without = head in {f"{says} {_NO_STEPS}" for says in _SAYS.values()}
        return [] if is_without and _RESULT not in told else None

    _, _, results = before.partition("\n\n")
    if results.startswith(_RESULT):
        return [("", results.removeprefix(_RESULT))]

    _, *parts = _RESULT_OF.split(results)
    return list(zip(parts[::2], (text.rstrip("\n") for text in parts[1::2]), strict=True))


def _line(run: PlanRun, record: NodeRecord) -> str:
    """One step with its state, and where its result is or why it has none."""
    node = record.node
    who = node.call
    if node.kind == "agent":
        who = f"agent {node.call}"
    elif node.kind == "person":
        who = "the user"
    line = f"- {node.id} ({who}): {record.state}"

    if record.state != "executed":
        return f"{line}: {_short(record.error)}" if record.error else line
    settled = run.latest.get(node.id)
    has_value = settled is not None and settled.value is not None
    return f"{line}, ${variable_of(node.id)}" if has_value else line


def _short(text: str) -> str:
    return labels.inline(text, _WHY)


# --- for programs ------------------------------------------------------------------------------------------------


def plan_json(tree: Tree, plan: Agent) -> dict[str, JSON]:
    """A plan as `iact replay --json` shows it."""
    run = plan.plan
    assert run is not None
    return {
        "path": plan.path,
        "caller": plan.caller,
        "mode": run.mode,
        "goal": run.source.goal,
        "state": tree.state(plan),
        "status": run.ending.status if run.ending is not None else None,
        **_judged(run.ending),
        "versions": versions_json(run.state.versions),
        "nodes": {one: node_json(record) for one, record in run.state.nodes.items()},
        "figures": figures_of(run.state).to_json(),
        **facts_of(run),
    }


def _judged(ending: Ending | None) -> dict[str, JSON]:
    """The verdict, whether the goal counts as reached, how confident the judge was, and why not."""
    if ending is None:
        return {"verdict": None, "achieved": False, "confidence": None, "reason": ""}
    return {
        "verdict": verdict_json(ending.verdict),
        "achieved": ending.verdict.reached == "yes",
        "confidence": ending.confidence,
        "reason": shortfall(ending.verdict),
    }


def facts_of(run: PlanRun) -> dict[str, JSON]:
    """What the mode of a plan found out: how a profile is assessed, or whether an analysis found the goal reached."""
    return run.machine.run.mode.facts() if run.machine is not None else {}


def result_json(run: PlanRun, model_calls: int, tokens: int) -> dict[str, JSON]:
    """A finished plan as `iact plan run --json` prints it."""
    ending = run.ending
    known = caveats(run)
    result: JSON = None if ending is None else ending.answer
    outputs = {record.node.id: record.output for record in last_steps(run)}
    if result is None and len(outputs) == 1:
        result = next(iter(outputs.values()))
    elif result is None and outputs:
        result = dict(outputs)

    return {
        "status": ending.status if ending is not None else "failed",
        **_judged(ending),
        "result": result,
        "missing": dict(ending.verdict.missing or {}) if ending is not None else {},
        "versions": versions_json(run.state.versions),
        "nodes": {node: node_json(record) for node, record in run.state.nodes.items()},
        "usage": {"model_calls": model_calls, "tokens": tokens},
        "figures": figures_of(run.state).to_json(),
        "warnings": list(ending.warnings) if ending is not None else [],
        "left_out": list(known.left_out),
        "assumed": list(known.assumed),
        "not_verified": list(known.unverified),
        "mode": run.mode,
        **facts_of(run),
    }
