"""Reads models' answers about a plan. Defines the shape that each question asks for, with a safe default for each.

The caller that asks a question requests its shape and fills it in (`core.models.structured`), so what arrives here is
usually one JSON object of that shape. An answer in any other form is still read leniently: as JSON, as YAML, field by
field. An unreadable answer becomes the harmless one: not achieved, contract not satisfied, continue, don't patch. A
reply never raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from iact.core.objects import objects
from iact.core.plan.forms import MAX_BYTES, READ_AT_ONCE, read_data, read_step
from iact.core.plan.model import PlanError, PlanNode
from iact.core.plan.protocol import QuestionKind
from iact.core.plan.verdict import GoalJudgement, JudgementKind
from iact.core.ports import JSON
from iact.core.recent import Recent

VerdictKind = Literal["continue", "conclude", "replan"]


# --- shapes ---------------------------------------------------------------------------------------------------------


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class WrittenStep(BaseModel):
    """A step as a model writes it where it answers with data."""

    model_config = ConfigDict(extra="allow", frozen=True)

    id: str
    call: str = Field("", description="A function; or leave it out, and give `agent` and `task`.")
    params: dict[str, JsonValue] = Field(default_factory=dict)
    refs: dict[str, dict[str, JsonValue]] = Field(
        default_factory=dict,
        description='Parameters that another step gives: {"NAME": {"step": "ID", "field": "a.b.0"}}.',
    )
    after: list[str] = Field(default_factory=list)


WordKind = Literal["stop", "change", "add", "nothing"]
"""What a person's message asks of work that is under way."""

WayOutKind = Literal["nothing to do", "ask the person", "it can't be done"]
"""What a model can say instead of naming steps."""


class _Leaving(_Shape):
    instead: WayOutKind | None = Field(None, description="Only if no step can help.")
    say: str = Field("", description="With `instead`: what the person should read.")


class NotNeeded(_Shape):
    id: str = Field(description="A step that is still planned.")
    why: str = Field("", description="Why it is not needed any more.")


class VerdictShape(_Leaving):
    decision: VerdictKind
    reason: str = Field("", description="One or two sentences, in the language of the goal.")
    not_needed: list[NotNeeded] = Field(
        default_factory=list,
        description="If you continue: planned steps that are not needed, none that the person asked for.",
    )
    reached: bool = Field(True, description="If you conclude: whether the goal is reached.")
    answer: str | None = Field(
        None, description="If you conclude, and it is short: the result. A longer one is written afterwards."
    )


class ObservationShape(_Leaving):
    action: Literal["continue", "inject", "cancel", "reflect"]
    reason: str = ""
    steps: list[WrittenStep] = Field(default_factory=list, description="Those to inject.")
    cancel: list[str] = Field(default_factory=list, description="Ids of planned steps.")


class PatchShape(_Leaving):
    failure: str = Field("", description="What was observed.")
    cause: str = Field("", description="The most likely cause.")
    action: Literal["replace", "skip", "give_up"] | None = None
    confidence: float | None = Field(None, description="In the cause and the action: 0 to 1.")
    steps: list[WrittenStep] = Field(default_factory=list, description="If you replace it.")
    skip: bool = Field(False, description="The goal can be reached without it.")
    reason: str = ""


class AnalysisShape(_Shape):
    achieved: bool
    confidence: float = Field(
        0.0, description="How sure you are that another round of steps would not help: 0 to 1."
    )
    reasoning: str = Field("", description="Why; if it was not achieved, what is missing.")
    final_answer: str | None = Field(
        None, description="If it is short: the answer for the person, in their language, without ids."
    )


class HelperAnswerShape(_Shape):
    answer: str = Field("", description="The answer to the helper, if it can be told from what stands here.")
    ask_person: bool = Field(False, description="Only the person can tell.")
    is_result: bool = Field(
        False, description="It asks nothing that it needs: it is the result, with an offer at its end."
    )


class CompactText(_Shape):
    id: str
    text: str


class CompactShape(_Shape):
    texts: list[CompactText]


class WordShape(_Shape):
    word: WordKind
    reason: str = Field("", description="One sentence, in the language of the person.")


class JudgementShape(_Shape):
    holds: bool


class ProfiledStep(WrittenStep):
    auto: dict[str, str] = Field(default_factory=dict, description="Parameters that an EXPRESSION gives.")


class ProfileShape(_Shape):
    """Only the outline: what a profile's rules must be is looked at by whoever admits it, and told in a correction."""

    steps: list[ProfiledStep] = Field(default_factory=list)
    confidence: float = 0.5
    assumptions: list[str] = Field(default_factory=list)
    fragile: list[str] = Field(default_factory=list)
    branches: list[dict[str, JsonValue]] = Field(default_factory=list)
    recoveries: list[dict[str, JsonValue]] = Field(default_factory=list)
    replan_when: list[str] = Field(default_factory=list)


SHAPES: Final[Mapping[QuestionKind, type[BaseModel]]] = {
    "reflect": VerdictShape,
    "interject": VerdictShape,
    "observe": ObservationShape,
    "patch": PatchShape,
    "analyze": AnalysisShape,
    "judge": JudgementShape,
    "word": WordShape,
    "profile": ProfileShape,
    "repair": ProfileShape,
    "compact": CompactShape,
    "answer": HelperAnswerShape,
}
"""The shape of the answer to each question that is answered with data.

Plans have their own format and are read while they are being written.
"""


# --- answers --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WayOut:
    """What a model says instead of naming steps, because no step can help."""

    kind: WayOutKind
    text: str
    """What the person should read: what is there already, a question, or why it can't be done."""


@dataclass(frozen=True, slots=True)
class ReflectionAnswer:
    """A reflection's answer: what to do with the rest of the plan."""

    decision: VerdictKind
    reason: str = ""
    not_needed: Mapping[str, str] = field(default_factory=dict)
    """Planned steps that are not needed any more, each with the reason."""
    answer: str | None = None
    """The result, if it concludes with one."""
    reached: bool | None = None
    """Whether the goal is reached; None if it does not say."""
    way_out: WayOut | None = None
    """What it says instead of naming steps."""
    goes_on_with_nothing: bool = False
    """Whether it says to go on, though nothing is left to go on with."""


@dataclass(frozen=True, slots=True)
class Observation:
    """An observer's answer about one result."""

    action: Literal["continue", "inject", "cancel", "reflect"]
    steps: tuple[PlanNode, ...] = ()
    cancel: tuple[str, ...] = ()
    reason: str = ""
    way_out: WayOut | None = None


@dataclass(frozen=True, slots=True)
class DiagnosisAnswer:
    """Why a step failed and what to do: failure, cause, action, confidence (Graph Harness, definition 6.4)."""

    failure: str
    cause: str
    action: Literal["replace", "skip", "give_up"]
    confidence: float


@dataclass(frozen=True, slots=True)
class PatchAnswer:
    """A micro-planner's answer: replacement steps, or to skip the failed step, or (neither) to leave it failed."""

    steps: tuple[PlanNode, ...] = ()
    skip: bool = False
    reason: str = ""
    diagnosis: DiagnosisAnswer | None = None
    way_out: WayOut | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """An analyzer's answer about the whole plan."""

    achieved: bool
    confidence: float
    """How sure it is that another round would not help, from 0 to 1."""
    reasoning: str
    final_answer: str | None = None


UNREADABLE: Final = "The reply could not be read."
_FENCED: Final = re.compile(r"(?:```|~~~)[\w-]*\n(.*?)(?:```|~~~)", re.DOTALL)
_YAML: Final = re.compile(r"^(?:steps|nodes):\s*$", re.MULTILINE)
"""A list of steps in YAML, whose items may look like separate objects."""
_BEGINS: Final = re.compile(r"^(?:goal|constraints|steps)[ \t]*:|^[ \t]*(?:[{\[]|- *\{)", re.MULTILINE)
"""The first line of a plan, whatever text comes before it."""
_BEHIND: Final = re.compile(r"(?!(?:goal|constraints|steps|contract)[ \t]*:)[^\s\-{}\[\]#\"]")
"""A line that is not part of a plan."""
SAYS_REACHED: Final = re.compile(
    r"[\s*_`>#-]*reached[\s*_`]*[:=][\s*_`]*(?P<reached>yes|partly|no)\b[\s*_`.,;:–—-]*(?P<reason>[^\n]*)$",
    re.IGNORECASE,
)
"""The line of a report that says whether the goal is reached: `reached: partly, because …`."""
_REACHED: Final[Mapping[str, JudgementKind]] = {
    "yes": "reached",
    "partly": "wanted_more",
    "no": "not_reached",
}
_TRUE: Final = frozenset({"true", "yes", "1", "pass", "passed"})
_LONGEST: Final = 500
"""The most characters of a diagnosis's sentence that are kept."""


_EXTRACTED: Final = Recent[str, dict[str, JSON]](MAX_BYTES)
"""The mappings in long replies, which the session looks for in a thread before they are read here."""


def extract(text: str) -> dict[str, JSON]:
    """Return the mapping that a reply holds; {} if none can be found."""
    if len(text) <= READ_AT_ONCE:
        return _extract(text)
    return dict(_EXTRACTED.get(text, len(text), partial(_extract, text)))


def _extract(text: str) -> dict[str, JSON]:
    if _YAML.search(text) is None:
        first = next((mapping for mapping in objects(text) if mapping), None)
        if first is not None:
            return first

    for piece in (*_FENCED.findall(text), text):
        try:
            data = read_data(piece)
        except PlanError:
            continue
        if isinstance(data, dict):
            return {str(name): value for name, value in data.items()}
        if isinstance(data, list) and data and all(isinstance(item, dict) for item in data):
            return {"steps": data}
    return {}


def plan_text(text: str) -> str:
    """Return the plan in a planner's reply: the content of a fence, or else from its first line to its last."""
    fenced = _FENCED.findall(text)
    if fenced:
        longest: str = max(fenced, key=len)
        return longest

    first_line = _BEGINS.search(text)
    if first_line is None:
        return text
    lines = text[first_line.start() :].split("\n")
    end = next((number for number, line in enumerate(lines) if _BEHIND.match(line)), len(lines))
    return "\n".join(lines[:end])


def verdict(text: str, *, final: bool) -> ReflectionAnswer:
    """Read a reflection's reply. Default: continue, or conclude if it is the final one."""
    data = extract(text)
    written = str(data.get("decision", data.get("verdict", ""))) or _field(text, "decision")
    word = written.lower()
    reached = data.get("reached")
    answer = data.get("answer")
    return ReflectionAnswer(
        _decision(word, final=final),
        str(data.get("reason", "")) if word else UNREADABLE,
        _not_needed(data.get("not_needed")),
        answer if isinstance(answer, str) and answer else None,
        _truth(reached) if reached is not None else None,
        way_out(text, data),
        goes_on_with_nothing=final and word == "continue",
    )


def _decision(word: str, *, final: bool) -> VerdictKind:
    """The decision that a word means. Where nothing is left to run, there is nothing to continue with."""
    if word == "replan":
        return "replan"
    if word == "conclude" or final:
        return "conclude"
    return "continue"


_WAY_OUT: Final = re.compile(
    r"^[ \t>*_`#-]*(?P<kind>nothing to do|ask the person|it can(?:'|’)?t be done)[*_`]*[ \t]*:[ \t*_]*(?P<text>\S.*)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
"""A line that says what there is instead of steps; its text goes on to the end of the reply."""


def way_out(text: str, data: Mapping[str, JSON] | None = None) -> WayOut | None:
    """Read what a reply says instead of naming steps; None if it says nothing of the kind.

    `data`: the mapping that the reply holds, if its answer is data.
    """
    fields = data or {}
    say = str(fields.get("say") or "").strip()
    kind = _way_out_kind(str(fields.get("instead") or ""))
    if kind is not None and say:
        return WayOut(kind, say)
    if data:
        return None

    line = _WAY_OUT.search(text)
    kind = _way_out_kind(line["kind"]) if line is not None else None
    if line is None or kind is None:
        return None
    say = line["text"].strip().removesuffix("```")
    return WayOut(kind, say.strip().strip("\"'"))


def _way_out_kind(written: str) -> WayOutKind | None:
    """The way out that is named, as models spell them; None if it is none."""
    word = written.strip().lower().replace("’", "'")
    if word in ("nothing to do", "nothing"):
        return "nothing to do"
    if word in ("ask the person", "ask"):
        return "ask the person"
    if word.startswith("it can") or word == "impossible":
        return "it can't be done"
    return None


def _not_needed(written: JSON) -> dict[str, str]:
    """Read which steps are not needed: a list of ids with reasons, or a mapping."""
    if isinstance(written, dict):
        return {str(id): str(why or "") for id, why in written.items()}

    reasons: dict[str, str] = {}
    for item in written if isinstance(written, list) else ():
        if isinstance(item, dict) and item.get("id"):
            reasons[str(item["id"])] = str(item.get("why") or item.get("reason") or "")
        elif isinstance(item, str):
            reasons[item] = ""
    return reasons


@dataclass(frozen=True, slots=True)
class HelperAnswer:
    """What to do about the question of an agent that works on a step."""

    text: str = ""
    """The answer; empty: the person is asked."""
    is_result: bool = False
    """Whether it is no question but the step's result."""


def helper_answer(text: str) -> HelperAnswer:
    """Read the answer to an agent's question. Default: the person is asked."""
    data = extract(text)
    if _truth(data.get("is_result")):
        return HelperAnswer(is_result=True)
    if _truth(data.get("ask_person")):
        return HelperAnswer()
    return HelperAnswer(str(data.get("answer") or "").strip())


def compacted(text: str) -> dict[str, str]:
    """Read texts in fewer words, by their ids. Default: none."""
    texts = extract(text).get("texts")
    rows = texts if isinstance(texts, list) else []
    return {
        str(row["id"]): str(row["text"])
        for row in rows
        if isinstance(row, dict) and row.get("id") and str(row.get("text") or "").strip()
    }


def observation(text: str) -> Observation:
    """Read an observer's reply. Default: continue."""
    data = extract(text)
    action = str(data.get("action", "continue")).lower()
    reason = str(data.get("reason", ""))
    leaving = way_out(text, data)
    if leaving is not None:
        return Observation("continue", reason=reason, way_out=leaving)

    if action == "inject":
        steps = _steps(data)
        if not steps:
            return Observation("continue", reason=UNREADABLE)
        return Observation("inject", steps, reason=reason)
    if action == "cancel":
        named = data.get("cancel", data.get("nodes", []))
        ids = tuple(map(str, named)) if isinstance(named, list) else (str(named),)
        return Observation("cancel", cancel=ids, reason=reason)
    if action == "reflect":
        return Observation("reflect", reason=reason)
    return Observation("continue", reason=reason)


def patch(text: str) -> PatchAnswer:
    """Read a micro-planner's reply. Default: leave the step failed."""
    data = extract(text)
    steps = _steps(data)
    reason = str(data.get("reason", "")) or str(data.get("cause", ""))
    skip = not steps and (_truth(data.get("skip")) or data.get("action") == "skip")
    diagnosis = _diagnosis(data, bool(steps), skip)
    leaving = way_out(text, data) if not steps and not skip else None
    return PatchAnswer(steps, skip, reason if data else UNREADABLE, diagnosis, leaving)


def _diagnosis(data: Mapping[str, JSON], replaces: bool, skips: bool) -> DiagnosisAnswer | None:
    """Read the diagnosis in a reply; its action is what the reply leads to. None if it has neither failure nor cause."""
    failure = str(data.get("failure") or "")[:_LONGEST]
    cause = str(data.get("cause") or "")[:_LONGEST]
    if not failure and not cause:
        return None

    action: Literal["replace", "skip", "give_up"] = "give_up"
    if replaces:
        action = "replace"
    elif skips:
        action = "skip"
    return DiagnosisAnswer(failure, cause, action, _confidence(data.get("confidence")))


def analysis(text: str) -> Analysis:
    """Read an analyzer's reply, by fields if its JSON is broken. Default: not achieved, confidence 0."""
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


def word(text: str) -> tuple[WordKind, str]:
    """Read what a person's message asks of the work, and why. Default: a change, which is thought about when what runs
    has ended.
    """
    data = extract(text)
    written = str(data.get("word") or _field(text, "word")).strip().lower()
    reason = str(data.get("reason", ""))
    for kind in get_args(WordKind):
        if written == kind:
            return kind, reason
    return "change", reason


def judged(text: str) -> bool:
    """Read a judge's reply: whether the contract holds. Default: it does not."""
    data = extract(text)
    if "holds" in data:
        return _truth(data["holds"])
    first_line = text.strip().lower().rstrip(".!").split("\n")[0]
    return first_line in ("yes", "true")


def report(text: str) -> tuple[GoalJudgement, str]:
    """Read a report that says in its first line, or its last, whether the goal is reached: the judgement, and the rest.

    Default: it does not say.
    """
    lines = text.strip().split("\n")
    for place in (0, -1):
        line = SAYS_REACHED.match(lines[place])
        if line is None:
            continue
        del lines[place]
        kind = _REACHED[line["reached"].lower()]
        reason = line["reason"].strip(" *_")
        return GoalJudgement(kind, reason), "\n".join(lines).strip()
    return GoalJudgement("not_said"), text.strip()


def _steps(data: Mapping[str, JSON]) -> tuple[PlanNode, ...]:
    """The steps in a reply; none at all if one of them is malformed."""
    written = data.get("steps", data.get("nodes"))
    if not isinstance(written, list):
        return ()
    try:
        return tuple(map(read_step, written))
    except PlanError:
        return ()


def _field(text: str, name: str) -> str:
    """The value after `name` in text that is almost JSON."""
    match = re.search(rf'"?{name}"?\s*[:=]\s*(?:"((?:[^"\\]|\\.){{0,20000}})"|([^\s,}}]{{1,100}}))', text)
    if match is None:
        return ""
    quoted, bare = match.groups()
    return str(quoted if quoted is not None else bare)


def _truth(value: JSON) -> bool:
    """Whether a value says yes, as models write it."""
    return value is True or (isinstance(value, str) and value.strip().lower() in _TRUE)


def _confidence(value: JSON) -> float:
    """A number from 0 to 1; 0 if it is none."""
    try:
        number = float(value) if isinstance(value, int | float | str) else 0.0
    except ValueError:
        return 0.0
    if math.isnan(number):
        return 0.0
    return min(1.0, max(0.0, number))
