"""How a plan ended, as one value for everybody: its report, its caller, the page, programs, exit statuses, faces.

A verdict follows from what the journal holds, by the same rules in all modes:

- A judge that wanted more and was not given it: the goal is reached at most in part.
- A judge that could not be read, or was not asked: unknown. A mode without a judge (`static`) goes by its steps, as long
  as they ran as they were written; what ran in their place is judged by nobody.
- A step that a person asked for and that was left out is missing, and so is a contract that fell or was not checked.
  What nobody needed any more (an observer's cancel, a lost race) is not.

Pure. Nothing else decides how a plan ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from iact.core.plan.model import NO_ERROR, WORK
from iact.core.plan.state import NodeRecord, PlanState
from iact.core.ports import JSON
from iact.core.records.parts import Reached, Verdict, VerdictBy

WHOLE: Final = "the whole plan"
"""What the plan's own contract is about, among what is missing. It can't be the id of a step."""

STEPS_DONE: Final = "Every step did what it was to do."
STEPS_DONE_IN_PLACES: Final = "Some steps were replaced; those in their places did what was asked of them."
STEPS_MISSING: Final = "Some of what was asked for has no result."
NOTHING_DONE: Final = "No step had a result."
NOT_ASKED: Final = "Nobody judged whether the goal was reached."
UNREADABLE: Final = "The judge's answer could not be had, or not be read."
NOT_SAID: Final = "The judge did not say whether the goal was reached."
WANTED_MORE: Final = "The judge wanted more than was done."
JUDGED_REACHED: Final = "The goal was judged to be reached."
JUDGED_NOT_REACHED: Final = "The goal was judged not to be reached."
INSTEAD: Final = "Other steps ran than those that were asked for, and nobody judged whether they do as well."
NOT_BY_PERSON: Final = "It was the user's to do, and other steps were done in its place."
STOPPED: Final = "The user stopped it."

JudgementKind = Literal["reached", "nothing_to_do", "not_reached", "wanted_more", "not_said", "unreadable"]


@dataclass(frozen=True, slots=True)
class GoalJudgement:
    """What was said last about whether the goal is reached."""

    said: JudgementKind
    reason: str = ""
    """In the words of the judge."""
    by: Literal["judge", "person"] = "judge"


@dataclass(frozen=True, slots=True)
class Ended:
    """The facts about a plan that has ended, from which its verdict follows."""

    state: PlanState
    judges: bool = False
    """Whether its mode has a judge."""
    judgement: GoalJudgement | None = None
    """The latest judgement; None if there is none."""
    given: Collection[str] = ()
    """Steps that the plan's caller wrote, and steps in their places."""
    by_person: Collection[str] = ()
    """Those of them that a person wrote."""
    superseded: Collection[str] = ()
    """Steps that count no more."""
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of those, the ones that a model replaced, with the steps in their places; none if it left a step out."""
    wanted_otherwise: Collection[str] = ()
    """Steps of a model that a person wanted otherwise before they began, so that nobody asks for them."""
    heirs: Collection[str] = ()
    """Steps whose contracts were inherited by steps in their places."""
    unneeded: Collection[str] = ()
    """Steps that an observer cancelled."""
    effects: Collection[str] = ()
    """Steps that changed something, or may have."""
    broken: str = ""
    """How the contract of the whole plan fell; empty if it holds."""
    distrust: str = ""
    """Why the results can't be trusted; empty if they can."""
    bound: str = ""
    """The bound that ended it."""
    stopped: str = ""
    """How a person ended it; empty if no one did."""


def verdict_of(ended: Ended) -> Verdict:
    """Return the verdict on a plan that has ended."""
    missing = dict(_missing(ended))
    reached, because, by = _reached(ended, missing)
    replaced = {node: heirs for node, heirs in ended.replaced.items() if heirs}
    return Verdict(
        reached=reached,
        because=because,
        missing=missing or None,
        replaced=replaced or None,
        unchecked=tuple(_unchecked(ended)),
        by=by,
    )


def _reached(ended: Ended, missing: Mapping[str, str]) -> tuple[Reached, str, VerdictBy]:
    """Whether the goal was reached, why, and what that rests on."""
    reached, because, by = _judged(ended)
    any_done = any(record.state == "executed" for record in _work(ended.state))

    # What ended it from outside explains whatever is lacking.
    stopped = ended.stopped or (ended.bound and _bound(ended.bound))
    if stopped and (reached != "yes" or missing):
        return "partly" if any_done else "no", stopped, "person" if ended.stopped else "bound"

    nothing_to_do = ended.judgement is not None and ended.judgement.said == "nothing_to_do"
    if not any_done and not nothing_to_do and by != "person":
        if reached in ("no", "partly"):
            return "no", because, by
        return "no", NOTHING_DONE, "steps"
    if reached == "no":
        return reached, because, by

    if ended.broken and missing.keys() == {WHOLE}:
        return "partly", ended.broken, "check"
    if missing and reached != "partly":
        return "partly", STEPS_MISSING, "steps"
    if ended.distrust and reached != "partly":
        return "partly", ended.distrust, "check"
    return reached, because, by


def _judged(ended: Ended) -> tuple[Reached, str, VerdictBy]:
    """What the judge says; in a mode without one, what the steps say."""
    judgement = ended.judgement
    if judgement is None:
        if ended.judges:
            return "unknown", NOT_ASKED, "nobody"
        if not ended.replaced:
            return "yes", STEPS_DONE, "steps"
        if _promises_were_kept(ended):
            return "yes", STEPS_DONE_IN_PLACES, "steps"
        return "unknown", INSTEAD, "nobody"

    match judgement.said:
        case "reached" | "nothing_to_do":
            return "yes", judgement.reason or JUDGED_REACHED, judgement.by
        case "not_reached":
            return "no", judgement.reason or JUDGED_NOT_REACHED, judgement.by
        case "wanted_more":
            return "partly", judgement.reason or WANTED_MORE, judgement.by
        case "not_said":
            return "unknown", NOT_SAID, "nobody"
        case "unreadable":
            return "unknown", UNREADABLE, "nobody"


def _promises_were_kept(ended: Ended) -> bool:
    """Whether all steps that ran in others' places ran under their contracts."""
    nodes = ended.state.nodes
    for node, heirs in ended.replaced.items():
        if node in ended.wanted_otherwise:
            continue
        is_checked = nodes[node].node.contract is not NO_ERROR and node in ended.heirs
        if not heirs or not is_checked:
            return False
    return True


def _bound(name: str) -> str:
    return f"The bound on {name.replace('_', ' ')} ended it."


# --- what is missing ---------------------------------------------------------------------------------------------


def _missing(ended: Ended) -> Iterator[tuple[str, str]]:
    """Yield what the plan owes: steps, and contracts that nothing was held against."""
    for record in _work(ended.state):
        why = _lacks(ended, record)
        if why:
            yield record.node.id, why
    if ended.broken:
        yield WHOLE, ended.broken


def _lacks(ended: Ended, record: NodeRecord) -> str:
    """What a step owes, as a sentence; empty if nothing."""
    id = record.node.id
    promised = record.node.contract is not NO_ERROR and id in ended.given
    wanted = id in ended.by_person

    if id in ended.replaced:
        return _lacks_replaced(ended, record, promised=promised, wanted=wanted)
    if id in ended.superseded:
        return ""
    if record.validation == "left_out":
        return "A rule of the plan left it out." if wanted or promised else ""
    if record.state == "executed":
        return ""

    if id in ended.unneeded:
        return _unheld() if promised else ""
    dropped = id not in ended.state.plan.nodes
    if dropped or record.cause == "concluded":
        return _lacks_left_out(ended, record, promised=promised, wanted=wanted)
    if record.cause == "lost_race" or ended.state.superfluous(id):
        return ""
    return record.error or f"It is {record.state}."


def _lacks_replaced(ended: Ended, record: NodeRecord, *, promised: bool, wanted: bool) -> str:
    """What a step owes that a model replaced or left out."""
    id = record.node.id
    if not ended.replaced[id]:
        # No matter who wrote the contract: it fell, and nothing was held against it since.
        fell = record.node.contract is not NO_ERROR
        left_out = f"It failed and was left out: {record.error}" if record.error else "It was left out."
        return left_out if wanted or fell else ""
    if promised and id not in ended.heirs:
        return _unheld()

    a_person_does_it = any(ended.state.nodes[heir].node.kind == "person" for heir in ended.replaced[id])
    if record.node.kind == "person" and id in ended.given and not a_person_does_it:
        return NOT_BY_PERSON
    return ""


def _lacks_left_out(ended: Ended, record: NodeRecord, *, promised: bool, wanted: bool) -> str:
    """What a step owes that never ran, because a model thought that it could do without."""
    judgement = ended.judgement
    is_judged_reached = judgement is not None and judgement.said == "reached"
    if judgement is not None and is_judged_reached and judgement.by == "person":
        return ""  # a person may do without what a person wanted

    if wanted or promised:
        return f"It was left out: {record.error}" if record.error else "It was left out."
    dropped = record.node.id not in ended.state.plan.nodes
    if is_judged_reached or dropped:
        return ""
    return record.error or "It was left out."


def _unheld() -> str:
    return "What was promised of its result was not checked."


def _unchecked(ended: Ended) -> Iterator[str]:
    """Yield the steps that changed something and that no rule was held against."""
    for record in _work(ended.state):
        is_unchecked = record.state == "executed" and record.validation == "no_error"
        had_effect = record.node.id in ended.effects
        if is_unchecked and had_effect and record.node.id not in ended.superseded:
            yield record.node.id


def _work(state: PlanState) -> Iterator[NodeRecord]:
    """Yield the steps of all versions, in the order in which they were written."""
    for record in state.nodes.values():
        if record.node.kind in WORK:
            yield record


# --- for programs --------------------------------------------------------------------------------------------------


def verdict_json(verdict: Verdict) -> dict[str, JSON]:
    """A verdict as `--json` and the wire have it."""
    return {
        "reached": verdict.reached,
        "because": verdict.because,
        "missing": dict(verdict.missing or {}),
        "replaced": {node: list(heirs) for node, heirs in (verdict.replaced or {}).items()},
        "unchecked": list(verdict.unchecked),
        "by": verdict.by,
    }
