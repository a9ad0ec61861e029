"""What models answer about a plan, read tolerantly, with a safe default for each.

A reply is looked through for a JSON object, then read as YAML, then searched field by field. What still
can't be read becomes the harmless answer: not achieved, contract not kept, go on, don't patch. A reply
never raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from core.plan.forms import read_data, read_step
from core.plan.model import Node, PlanError
from core.ports import JSON

VerdictKind = Literal["continue", "conclude", "replan"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A reflection's: what to do with the rest of the plan. `answer`: the result, if it concludes with one."""

    decision: VerdictKind
    reason: str = ""
    diminishing: bool = False
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """An observer's, about one result."""

    action: Literal["continue", "inject", "cancel", "reflect"]
    steps: tuple[Node, ...] = ()
    cancel: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Patch:
    """A micro-planner's: replacement steps, or to do without the failed one, or (neither) to leave it failed."""

    steps: tuple[Node, ...] = ()
    skip: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Analysis:
    """An analyzer's, about the whole plan. `confidence` in [0, 1]."""

    achieved: bool
    confidence: float
    reasoning: str
    final_answer: str | None = None


UNREADABLE: Final = "The reply could not be read."
_FENCED: Final = re.compile(r"(?:```|~~~)[\w-]*\n(.*?)(?:```|~~~)", re.DOTALL)
_TRUE: Final = frozenset({"true", "yes", "1", "pass", "passed"})


def extract(text: str) -> dict[str, JSON]:
    """The mapping that a reply holds; {} if none can be found."""
    for piece in (*_FENCED.findall(text), text):
        found = _object(piece)
        if found is not None:
            return found
    for piece in (*_FENCED.findall(text), text):
        try:
            data = read_data(piece)
        except PlanError:
            continue
        if isinstance(data, dict):
            return {str(name): value for name, value in data.items()}
        if isinstance(data, list) and data and all(isinstance(one, dict) for one in data):
            return {"steps": data}
    return {}


def plan_text(text: str) -> str:
    """The part of a planner's reply that is the plan: what stands in a fence, or all of it."""
    fenced = _FENCED.findall(text)
    return max(fenced, key=len) if fenced else text


def verdict(text: str, *, final: bool) -> Verdict:
    """A reflection's reply. Default: go on, or, at the end, conclude."""
    data = extract(text)
    said = str(data.get("decision", data.get("verdict", ""))).lower() or _field(text, "decision").lower()
    default: VerdictKind = "conclude" if final else "continue"
    decision: VerdictKind = (
        "replan" if said == "replan" else "conclude" if said == "conclude" else
        default if said != "continue" or final else "continue"
    )  # fmt: skip
    answer = data.get("answer")
    return Verdict(
        decision,
        str(data.get("reason", "")) if said else UNREADABLE,
        str(data.get("progress", "")).lower() == "diminishing",
        answer if isinstance(answer, str) and answer else None,
    )


def observation(text: str) -> Observation:
    """An observer's reply. Default: go on."""
    data = extract(text)
    action = str(data.get("action", "continue")).lower()
    reason = str(data.get("reason", ""))
    if action == "inject":
        steps = _steps(data)
        return (
            Observation("inject", steps, reason=reason)
            if steps
            else Observation("continue", reason=UNREADABLE)
        )
    if action == "cancel":
        named = data.get("cancel", data.get("nodes", []))
        ids = tuple(map(str, named)) if isinstance(named, list) else (str(named),)
        return Observation("cancel", cancel=ids, reason=reason)
    return Observation("reflect" if action == "reflect" else "continue", reason=reason)


def patch(text: str) -> Patch:
    """A micro-planner's reply. Default: leave it failed."""
    data = extract(text)
    steps = _steps(data)
    reason = str(data.get("reason", ""))
    if steps:
        return Patch(steps, reason=reason)
    return Patch(skip=_truth(data.get("skip")), reason=reason if data else UNREADABLE)


def analysis(text: str) -> Analysis:
    """An analyzer's reply, by fields if its JSON is broken. Default: not achieved, confidence 0."""
    data = extract(text)
    achieved = data.get("achieved", _field(text, "achieved") or None)
    if achieved is None:
        return Analysis(False, 0.0, UNREADABLE)
    answer = data.get("final_answer", _field(text, "final_answer") or None)
    return Analysis(
        _truth(achieved),
        _confidence(data.get("confidence", _field(text, "confidence"))),
        str(data.get("reasoning", _field(text, "reasoning"))),
        answer if isinstance(answer, str) and answer else None,
    )


def judged(text: str) -> bool:
    """A judge's reply: whether the contract holds. Default: it does not."""
    data = extract(text)
    if "holds" in data:
        return _truth(data["holds"])
    return text.strip().lower().rstrip(".!").split("\n")[0] in ("yes", "true")


def _steps(data: Mapping[str, JSON]) -> tuple[Node, ...]:
    """The steps in a reply; none at all if one of them is not well-formed."""
    raw = data.get("steps", data.get("nodes"))
    try:
        return tuple(read_step(one) for one in raw) if isinstance(raw, list) else ()
    except PlanError:
        return ()


def _object(text: str) -> dict[str, JSON] | None:
    """The first JSON object in `text` that can be read."""
    decoder = json.JSONDecoder()
    for attempt, found in enumerate(re.finditer(r"\{", text)):
        if attempt > 20:
            return None
        try:
            data, _ = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            return data
    return None


def _field(text: str, name: str) -> str:
    """The value after `name` in a text that is almost JSON."""
    found = re.search(rf'"?{name}"?\s*[:=]\s*(?:"((?:[^"\\]|\\.){{0,20000}})"|([^\s,}}]{{1,100}}))', text)
    return (found[1] if found[1] is not None else found[2]) if found else ""


def _truth(value: JSON) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() in _TRUE)


def _confidence(value: JSON) -> float:
    try:
        number = float(value) if isinstance(value, int | float | str) else 0.0
    except ValueError:
        return 0.0
    return min(1.0, max(0.0, number)) if number == number else 0.0
