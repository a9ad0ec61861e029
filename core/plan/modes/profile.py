"""`profile`: Profile-Then-Reason. One call plans, rules adapt, one call reasons; at most one repair between.

PTR, section 2. The profile holds the steps, what its author knows about their weaknesses (confidence, assumptions,
fragile points), and how to adapt without asking again (auto-resolution, branch rules, recovery rules, replan
conditions). A deterministic risk score routes the run (`pure`: no branch rules; `guarded`; `repair_eligible`). A
deterministic trust score decides whether it needs its one repair. The last call reports from the result store, with the
caveats that the trust score demands.

Model calls: the profile, perhaps one repair, and the report. That is two or three, whatever the number of steps (PTR,
proposition 2.1). A profile that can't be used is asked for once more, and the repair is still available. If the steps
are written already, the profile is about them. If `auto` chose the profile and it does not hold even after its repair,
the run does not end: an adaptive mode continues from there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from iact.core.plan import answers, questions
from iact.core.plan.answers import Analysis, ReflectionAnswer
from iact.core.plan.commands import Assessed, Risk, RuleFired, Trust
from iact.core.plan.contracts import is_empty
from iact.core.plan.expression import Expression, StepOutputs
from iact.core.plan.forms import StepForm, node_of, node_to_json
from iact.core.plan.model import WORK, PlanError, PlanNode, Ref, make_plan
from iact.core.plan.modes.analyze import Analyze
from iact.core.plan.modes.base import DueThought, LeaveOut, Mode, ModeOrder
from iact.core.plan.modes.profile_rules import DomainRule, expressions_for, resolution_of
from iact.core.plan.prompt import Item, QuestionPart, text_part
from iact.core.plan.protocol import FunctionCatalogue, PlanQuestion, QuestionKind, StepFailure
from iact.core.plan.questions import PlanSituation
from iact.core.plan.state import PlanState
from iact.core.plan.validate import PlanInvalid, check, effective_impact
from iact.core.plan.verdict import GoalJudgement
from iact.core.ports import JSON
from iact.core.records.parts import PlanBounds

Route = Literal["pure", "guarded", "repair_eligible"]

COMPONENTS: Final = ("schema", "planning", "method", "scale", "history")
FLAWS: Final = ("failed", "empty", "thin", "branched", "recovered", "diagnosed")
"""What lowers trust, in the order of `PlanBounds.trust_penalties` (PTR, formula 33)."""
STANDARD: Final = PlanBounds()
"""The weights of the risk (positive, sum 1: PTR, formula 15), and the thresholds of its routes and of a repair (34)."""
ADAPTIVE: Final = "analyze"
"""The mode that continues when a profile chosen by `auto` did not hold, even after its repair."""
AUTO: Final = "auto"
"""As a parameter's value: an auto-resolution rule of the domain provides the value."""


# --- the profile ---------------------------------------------------------------------------------------


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _ProfileStep(StepForm):
    auto: dict[str, str] = Field(default_factory=dict)
    """Parameters whose values expressions give just before the step runs."""


class BranchForm(_Form):
    step: str
    when: str
    set: dict[str, JsonValue] = Field(default_factory=dict)
    skip: bool = False


class RecoveryForm(_Form):
    step: str = ""
    error: str = ""
    set: dict[str, JsonValue] = Field(default_factory=dict)


class ProfileForm(_Form):
    steps: tuple[_ProfileStep, ...] = Field((), max_length=256)
    confidence: Annotated[float, Field(ge=0, le=1)] = 0.5
    assumptions: tuple[str, ...] = ()
    fragile: tuple[str, ...] = ()
    branches: tuple[BranchForm, ...] = ()
    recoveries: tuple[RecoveryForm, ...] = ()
    replan_when: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """If `when` holds before `step` is fired, its parameters are changed, or it is left out."""

    step: str
    when: Expression
    change: Mapping[str, JSON]
    """The parameters that are changed."""
    skip: bool
    """Whether it is left out."""
    always: bool = False
    """Whether it holds on every route: the domain's rules do, a profile's own do not on `pure`."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """If `step` (or any, "") fails with an error that contains `error`, it is tried once more with these changes."""

    step: str
    error: str
    change: Mapping[str, JSON]
    """The parameters that are changed."""


@dataclass(frozen=True, slots=True)
class ProfileObject:
    """p = (w, γ, A, G, C, B, Ξ) of PTR, formula 11."""

    nodes: tuple[PlanNode, ...]
    confidence: float
    """How sure its author is of it, from 0 to 1."""
    assumptions: tuple[str, ...]
    """What it takes for granted."""
    fragile: tuple[str, ...]
    """Where it may break."""
    replan_when: tuple[Expression, ...]
    """If one of these holds at the end, it has not reached what it is for."""
    branches: tuple[Branch, ...]
    recoveries: tuple[Recovery, ...]
    auto: Mapping[str, Mapping[str, Expression]]
    """The parameters to resolve just before a step is fired, by step and name."""


def read_profile(
    text: str,
    catalogue: FunctionCatalogue | None,
    *,
    known: Sequence[str] = (),
    written: Sequence[PlanNode] = (),
    domain: Sequence[DomainRule] = (),
) -> ProfileObject:
    """Read the profile in a reply, if it is admissible. `known`: steps of an earlier profile with results.

    `written`: the existing steps that the profile is about, if it did not write them; they stay as they are. `domain`:
    rules that hold beside the profile's own, which come first.

    Raises:
        PlanError: it is not admissible; a `PlanInvalid` lists everything that is wrong.
    """
    form = _form_of(text)
    if not written and not form.steps:
        raise PlanError("steps: a profile needs at least one")

    problems: list[str] = []
    auto: dict[str, dict[str, Expression]] = {}
    nodes = list(written) or [_admit_step(step, domain, auto, problems) for step in form.steps]
    ids = {node.id for node in nodes}
    readable = {*ids, *known}

    # A profile's own rules come first.
    branches = list(_admit_branches(form.branches, ids, readable, problems))
    branches += [branch for node in nodes for branch in _domain_branches(node, domain)]
    conditions = [_expression(source, readable, "replan condition", problems) for source in form.replan_when]
    problems.extend(
        f"A recovery rule is for the step {rule.step!r}, which does not exist."
        for rule in form.recoveries
        if rule.step and rule.step not in ids
    )

    wired = _wired(nodes, auto, branches)
    misfits = _check_wired(wired, auto, catalogue, known, problems)
    if problems:
        raise PlanInvalid(problems, misfits=misfits)
    return ProfileObject(
        nodes=tuple(wired),
        confidence=form.confidence,
        assumptions=form.assumptions,
        fragile=form.fragile,
        replan_when=tuple(condition for condition in conditions if condition is not None),
        branches=tuple(branches),
        recoveries=(*_recoveries_of(form), *_domain_recoveries(wired, domain)),
        auto=auto,
    )


def _form_of(text: str) -> ProfileForm:
    """Read the form in a reply.

    Raises:
        PlanError: it has another one; the first place where is named.
    """
    try:
        return ProfileForm.model_validate(answers.extract(text))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the profile"
        raise PlanError(f"{place}: {first['msg']}") from error


def _check_wired(
    wired: Sequence[PlanNode],
    auto: Mapping[str, Mapping[str, Expression]],
    catalogue: FunctionCatalogue | None,
    known: Sequence[str],
    problems: list[str],
) -> Mapping[str, Collection[str]]:
    """Check the steps as a plan. Adds what is wrong to `problems`, and returns the part of it about parameters."""
    try:
        shadow = make_plan("profile", [_shadow(node, auto.get(node.id, {})) for node in wired])
        check(shadow, catalogue, known=known, agents=False)
    except PlanInvalid as error:
        problems.extend(error.problems)
        return error.misfits
    return {}


def _recoveries_of(form: ProfileForm) -> Iterator[Recovery]:
    for rule in form.recoveries:
        yield Recovery(rule.step, rule.error, cast(Mapping[str, JSON], rule.set))


def _domain_recoveries(nodes: Sequence[PlanNode], domain: Sequence[DomainRule]) -> Iterator[Recovery]:
    """Yield the recoveries that steps have by the rules of the domain."""
    for node in nodes:
        for rule in domain:
            if rule.error and rule.applies(node.call):
                yield Recovery(node.id, rule.error, rule.change)


def _domain_branches(node: PlanNode, domain: Sequence[DomainRule]) -> Iterator[Branch]:
    """Yield the branches that a step has by the rules of the domain."""
    for rule in domain:
        if rule.when and rule.applies(node.call):
            for when in expressions_for(node, rule.when):
                yield Branch(node.id, when, rule.change, rule.skip, always=True)


def _admit_step(
    step: _ProfileStep,
    domain: Sequence[DomainRule],
    auto: dict[str, dict[str, Expression]],
    problems: list[str],
) -> PlanNode:
    """Return the node of a step without its auto parameters, which are put into `auto`; faults go to `problems`."""
    node = node_of(StepForm.model_validate(step.model_dump(exclude={"auto"}, by_alias=True)))
    if node.contract.judgement is not None:
        problems.append(
            f"Step {node.id!r}: a judged contract costs a model call; use a rule that code can check."
        )

    # A rule of the step's own comes before the domain's.
    rules = dict(step.auto)
    for name, value in node.params.items():
        if value == AUTO and name not in rules:
            resolution = resolution_of(node, name, domain)
            if resolution is not None:
                rules[name] = resolution

    for name, source in rules.items():
        try:
            auto.setdefault(node.id, {})[name] = Expression(source)
        except ValueError as error:
            problems.append(f"Step {node.id!r}, auto parameter {name!r}: {error}.")
    params = {name: value for name, value in node.params.items() if name not in rules}
    return dataclasses.replace(node, params=params)


def _admit_branches(
    forms: Iterable[BranchForm], ids: Collection[str], readable: Collection[str], problems: list[str]
) -> Iterator[Branch]:
    """Yield the branches that can be used; what is wrong with others goes to `problems`."""
    for form in forms:
        if form.step not in ids:
            problems.append(f"A branch rule is for the step {form.step!r}, which does not exist.")
            continue
        when = _expression(form.when, readable, f"branch rule of {form.step!r}", problems)
        if when is not None:
            yield Branch(form.step, when, cast(Mapping[str, JSON], form.set), form.skip)


def _expression(source: str, readable: Collection[str], place: str, problems: list[str]) -> Expression | None:
    """Read an expression about the results of `readable` steps; None, and `problems` say why, if it can't be used."""
    try:
        expression = Expression(source)
    except ValueError as error:
        problems.append(f"The {place}: {error}.")
        return None

    unknown = sorted(expression.steps.difference(readable))
    if unknown:
        problems.append(f"The {place} reads {unknown[0]!r}, which is not a step.")
        return None
    return expression


def _wired(
    nodes: Sequence[PlanNode], auto: Mapping[str, Mapping[str, Expression]], branches: Sequence[Branch]
) -> list[PlanNode]:
    """Let each step depend on everything that its rules read, so that they do not depend on when it fires."""
    wired = []
    for node in nodes:
        read: set[str] = set()
        for rule in auto.get(node.id, {}).values():
            read |= rule.steps
        for branch in branches:
            if branch.step == node.id:
                read |= branch.when.steps

        more = sorted(read - set(node.dependencies) - {node.id})
        if node.id in read:
            # It is told that it waits for itself when the steps are checked.
            more.append(node.id)
        if more and node.join == "all_of":
            node = dataclasses.replace(node, after=(*node.after, *more))
        wired.append(node)
    return wired


def _shadow(node: PlanNode, auto: Mapping[str, Expression]) -> PlanNode:
    """The node as validation sees it: auto parameters count as refs, because they have no value yet."""
    refs = dict(node.refs)
    params = dict(node.params)
    for name, rule in auto.items():
        if rule.steps:
            refs[name] = Ref(min(rule.steps))
        else:
            params[name] = rule.value(StepOutputs({}))
    return dataclasses.replace(node, refs=refs, params=params)


# --- risk and trust ---------------------------------------------------------------------------------------


def shape_of(function: str, names: Iterable[str]) -> str:
    """A call as its history counts it: the function, and the names of its arguments."""
    return f"{function}({', '.join(sorted(names))})"


def risk_components(
    profile: ProfileObject, catalogue: FunctionCatalogue | None, history: Mapping[str, float]
) -> tuple[float, ...]:
    """Schema, planning, method, scale and history, each in [0, 1] (PTR, formula 13)."""
    nodes = profile.nodes
    resolved = {node.id: profile.auto.get(node.id, {}) for node in nodes}

    # Parameters that have no value before the run.
    late = sum(len(node.refs) + len(resolved[node.id]) for node in nodes)
    total = late + sum(len(node.params) for node in nodes)
    schema = late / total if total else 0.0

    doubts = 1 - 0.8 ** (len(profile.assumptions) + len(profile.fragile))
    planning = min(1.0, 0.7 * (1 - profile.confidence) + 0.3 * doubts)

    infos = [catalogue.find(node.call) if catalogue else None for node in nodes]
    impacts = [effective_impact(node, info, catalogue) for node, info in zip(nodes, infos, strict=True)]
    method = sum(impacts) / (2 * len(nodes))
    scale = min(1.0, len(nodes) / 20)

    shapes = [shape_of(node.call, (*node.params, *node.refs, *resolved[node.id])) for node in nodes]
    rates = [min(1.0, max(0.0, history.get(shape, 0.0))) for shape in shapes]
    return schema, planning, method, scale, max(rates, default=0.0)


def risk_of(components: Sequence[float], bounds: PlanBounds = STANDARD) -> float:
    """The convex combination of the components (PTR, formula 14); in [0, 1], increasing in each."""
    return sum(weight * part for weight, part in zip(bounds.risk_weights, components, strict=True))


def route_of(risk: float, bounds: PlanBounds = STANDARD) -> Route:
    """The route for a risk (PTR, formula 18)."""
    if risk < bounds.guarded_from:
        return "pure"
    return "guarded" if risk < bounds.repair_from else "repair_eligible"


def penalties(bounds: PlanBounds = STANDARD) -> dict[str, float]:
    """How much trust each flaw costs."""
    return dict(zip(FLAWS, bounds.trust_penalties, strict=True))


def trust_of(counts: Mapping[str, int], bounds: PlanBounds = STANDARD) -> float:
    """The penalty form of PTR, formula 33; never increases with another flaw."""
    return max(0.0, 1.0 - sum(weight * counts.get(name, 0) for name, weight in penalties(bounds).items()))


def thin(output: JSON) -> bool:
    """Whether an output is not empty, but next to nothing: a mapping or list of empty values."""
    if isinstance(output, dict):
        values = list(output.values())
    elif isinstance(output, list):
        values = output
    else:
        return False
    return bool(values) and all(map(is_empty, values))


@dataclass(frozen=True, slots=True)
class Verification:
    """z = (κ, σ, I, η, ξ) of PTR, formula 32."""

    trust: float
    """From 0 to 1."""
    status: Literal["sound", "degraded", "unsound"]
    issues: tuple[str, ...]
    """What went wrong."""
    flags: tuple[str, ...]
    """The same, as caveats for a report."""
    repair: bool
    """Whether the workflow needs to be corrected."""


# --- the mode -----------------------------------------------------------------------------------------------

_CITED: Final = re.compile(r"[ \t]*(?<!\w)\[(?P<ids>[^\[\]():]{2,200}|\w)\](?!\()")
"""Steps named in square brackets; not a link, an index, or a box to be ticked."""

_RULES_FORM: Final = """ "confidence": 0.0 to 1.0, "assumptions": ["…"], "fragile": ["step or point that may break"],
 "branches": [{"step": "a", "when": "EXPRESSION", "set": {"p": 1}, "skip": false}],
 "recoveries": [{"step": "a", "error": "part of the error's text", "set": {"p": 2}}],
 "replan_when": ["EXPRESSION"]}
- `auto`: a parameter whose value an EXPRESSION gives just before the step runs.
- `branches`: if the EXPRESSION holds just before `step` runs, its parameters are changed (`set`), or it is left out (`skip`).
- `recoveries`: if `step` fails with an error that contains this text, it is tried again with these parameters.
- `replan_when`: if one of these holds at the end, the workflow has not reached what it is for.
- An EXPRESSION reads results by step and field, and knows and, or, not, ==, !=, <, <=, >, >=, in, contains, len(), empty(), \
exists(), failed(STEP), lower(), number(). A result that is text has no fields: `STEP contains "…"`."""

_EXAMPLES: Final = """Three examples:
1. Look a word up, and fetch the best hit; the search returns JSON, the page is optional:
{"steps": [{"id": "hits", "call": "web.search", "params": {"query": "iact"}},
  {"id": "page", "call": "web.fetch", "auto": {"url": "hits.0.url"}}],
 "confidence": 0.8, "assumptions": ["the first hit is the right one"], "fragile": ["page: the site may be down"],
 "branches": [{"step": "page", "when": "empty(hits)", "skip": true}], "replan_when": ["empty(hits)"]}
2. Read a file that may have another name:
{"steps": [{"id": "liste", "call": "files.read", "params": {"path": "list.txt"}}], "confidence": 0.6,
 "recoveries": [{"step": "liste", "error": "no such file", "set": {"path": "lists.txt"}}]}
3. Count, and write down what was counted, in another text if there was nothing:
{"steps": [{"id": "数", "call": "shell.run", "params": {"command": "ls | wc -l"}},
  {"id": "note", "call": "files.write", "params": {"path": "note.txt"}, \
"refs": {"content": {"step": "数", "template": "{} files"}}}],
 "confidence": 0.9, "branches": [{"step": "note", "when": "number(数) == 0", "set": {"content": "no files"}}]}"""

_STEPS_FORM: Final = """{"steps": [{"id": "a", "call": "FUNCTION", "params": {}, "refs": {"p": {"step": "other", "field": "x.0"}}, \
"auto": {"q": "EXPRESSION"}, "after": []}],"""
_FIELDS_FORM: Final = """- A step can also have `contract`: {"exit_status": 0, "non_empty": true, "regex": "…"} (what must be true of its result, or it \
has failed), `retries`: 2 (only for what can be done twice), `timeout`: seconds. Only where the person said that they want to do or to \
see it: {"id": "b", "by": "person", "task": "…"} is theirs to do, and with "contract": {"by": "person"} a result counts only if they accept it."""

_FORM: Final = f"""Answer with one JSON object only:
{_STEPS_FORM}
{_RULES_FORM}
{_FIELDS_FORM}

{_EXAMPLES}"""

_FORM_OF_WRITTEN: Final = f"""Answer with one JSON object only:
{{{_RULES_FORM.lstrip()}

{_EXAMPLES}"""


@dataclass(slots=True)
class _Log:
    """What the rules of the profile did."""

    branched: list[str] = field(default_factory=list)
    """Each step that a branch changed or left out, once for every time."""
    recovered: list[str] = field(default_factory=list)
    """Each step that was tried again by a recovery rule, once for every time."""
    fired: list[RuleFired] = field(default_factory=list)


class Profile(Mode):
    """One run of Profile-Then-Reason.

    `history`: failure rates in [0, 1] by function and shape of arguments, from earlier runs.
    """

    name = "profile"
    judges = True
    patches = False
    replans = False
    agents = False
    opens = True
    max_calls: int | None = 3

    def __init__(
        self,
        history: Mapping[str, float] | None = None,
        *,
        climb: bool = False,
        bounds: PlanBounds | None = None,
        domain: Sequence[DomainRule] = (),
    ) -> None:
        self._bounds = bounds or PlanBounds()
        self._history = history or {}
        self._domain = domain
        self._climb = climb
        """Whether an adaptive mode goes on if the profile does not hold."""
        self._above: Mode | None = None
        """That adaptive mode; None before it goes on."""

        self.profile: ProfileObject | None = None
        self.risk = 0.0
        self.route: Route = "pure"
        self.verification: Verification | None = None
        self.repaired = False

        self._written: Sequence[PlanNode] = ()
        """The existing steps that the profile is about."""
        self._openings = 0
        """How many profiles were read."""
        self._told: list[Assessed] = []
        """What is new to report."""
        self._judged: Risk | None = None
        """The risk, as it was reported last."""
        self._trusted: Trust | None = None
        """The trust, as it was reported last."""
        self._log = _Log()
        self._reported = False
        """Whether the report was asked for."""
        self._penalties: Mapping[str, float] = {}
        """What lowered the trust, and by how much."""
        self._issues_before: tuple[str, ...] = ()
        """What went wrong in the workflow before it was corrected."""
        self._assumed_before: tuple[str, ...] = ()
        """What that workflow took for granted, which its results still rest on."""
        self._corrected: set[str] = set()
        """The steps of that workflow."""
        self._before_repair: dict[str, JSON] | None = None
        """The facts about that workflow, for programs; None if none was corrected."""
        self._unsupported: Sequence[str] = ()
        """What is wrong with the citations of the report."""

    @classmethod
    def make(cls, order: ModeOrder) -> Self:
        climbs = order.options.get("climb") == 1
        return cls(order.history, climb=climbs, bounds=order.bounds, domain=order.domain)

    @property
    def assumed(self) -> Sequence[str]:
        now = self.profile.assumptions if self.profile is not None else ()
        return tuple(dict.fromkeys((*self._assumed_before, *now)))

    def rules_applied(self) -> Mapping[str, Sequence[str]]:
        applied: dict[str, list[str]] = {}
        for fired in self._log.fired:
            applied.setdefault(fired.node, []).append(fired.rule)
        return applied

    def opening(self, it: PlanSituation, written: Sequence[PlanNode] = ()) -> PlanQuestion | None:
        self._written = written
        told = (
            *questions.request(it), *questions.surroundings(it), self._history_part(it), self._domain_part(it),
        )  # fmt: skip
        functions = questions.offered(it)
        if written:
            steps = "\n".join(json.dumps(node_to_json(node), ensure_ascii=False) for node in written)
            # Its steps stand: only where they may break is asked for.
            parts = (
                text_part(
                    "task", "Say of a written workflow where it may break. Its steps stay as they are."
                ),
                *told,
                text_part("steps", f"Steps:\n{steps}", share=2),
                functions,
                text_part("form", _FORM_OF_WRITTEN),
            )
            return PlanQuestion("profile", parts=parts)

        parts = (
            text_part("task", "Write the whole workflow for a task, and where it may break."),
            *told,
            functions,
            text_part("form", _FORM),
            text_part("ways", questions.WAYS),
        )
        return PlanQuestion("profile", parts=parts)

    def _history_part(self, it: PlanSituation) -> QuestionPart:
        """How such calls went in this user's earlier sessions (PTR, equation 4: the historical summary H)."""
        names = {info.name for info in it.infos}
        lines = [
            f"- {shape}: {rate:.0%} of the calls failed"
            for shape, rate in sorted(self._history.items())
            if shape.partition("(")[0] in names
        ]
        head = "How such calls went in earlier sessions:"
        return QuestionPart("attempts", head if lines else "", tuple(map(Item, lines)), share=0.5)

    def _domain_part(self, it: PlanSituation) -> QuestionPart:
        """The rules that hold for its functions whatever the profile says."""
        names = [info.name for info in it.infos]
        lines = [f"- {rule.in_words()}" for rule in self._domain if any(map(rule.applies, names))]
        head = "Rules that hold anyway, beside those that you write:"
        return QuestionPart("rules", head if lines else "", tuple(map(Item, lines)), share=0.5)

    def opened(self, text: str, catalogue: FunctionCatalogue | None) -> tuple[PlanNode, ...]:
        self._openings += 1
        # A profile that is asked for once more does not cost the repair.
        self.max_calls = max(3, 2 + self._openings)
        profile = read_profile(text, catalogue, written=self._written, domain=self._domain)
        return self._take(profile, catalogue)

    def restore(
        self, answers: Sequence[tuple[QuestionKind, str]], catalogue: FunctionCatalogue | None
    ) -> None:
        for kind, text in answers:
            if kind not in ("profile", "correct", "repair"):
                continue
            if kind == "repair":
                self.repaired = True
            with contextlib.suppress(PlanError):
                self.opened(text, catalogue)

    def _take(self, profile: ProfileObject, catalogue: FunctionCatalogue | None) -> tuple[PlanNode, ...]:
        """Let a profile hold: its steps, its risk and its route. Returns its steps."""
        if self.profile is not None:
            self._corrected |= {node.id for node in self.profile.nodes}
        self._corrected -= {node.id for node in profile.nodes}

        self.profile = profile
        components = risk_components(profile, catalogue, self._history)
        self.risk = risk_of(components, self._bounds)
        self.route = route_of(self.risk, self._bounds)
        self._judged = Risk(
            round(self.risk, 6), _rounded(zip(COMPONENTS, components, strict=True)), self.route, profile.confidence,
            profile.assumptions, profile.fragile, tuple(_in_words(profile)),
        )  # fmt: skip
        self._told.append(self._judged)
        return profile.nodes

    # --- execution: resolve, branch, recover ---------------------------------------------------------------

    def prepare(self, state: PlanState, node: str, arguments: dict[str, JSON]) -> dict[str, JSON] | LeaveOut:
        if self.profile is None:
            return arguments

        store = self._store(state)
        for name, rule in self.profile.auto.get(node, {}).items():
            arguments[name] = rule.value(store)
            self._fire(node, "auto", f"{name} = {rule.source}")

        for branch in self.profile.branches:
            if self.route == "pure" and not branch.always:
                continue
            if branch.step == node and branch.when.holds(store):
                self._log.branched.append(node)
                self._fire(node, "branch", _branch_in_words(branch))
                if branch.skip:
                    return LeaveOut(f"Left out by the rule: {branch.when.source}.")
                arguments.update(branch.change)
        return arguments

    def recover(
        self, state: PlanState, node: str, failure: StepFailure, arguments: dict[str, JSON]
    ) -> dict[str, JSON] | None:
        if self.profile is None or failure.kind == "incomplete":
            return None
        if self._log.recovered.count(node) >= self._bounds.recoveries:
            return None

        for rule in self.profile.recoveries:
            if rule.step in ("", node) and rule.error.lower() in failure.message.lower():
                changed = {**arguments, **rule.change}
                if changed == arguments:
                    continue
                self._log.recovered.append(node)
                self._fire(node, "recovery", _recovery_in_words(rule))
                return changed
        return None

    def _fire(self, node: str, what: Literal["auto", "branch", "recovery"], rule: str) -> None:
        fired = RuleFired(node, what, rule)
        self._log.fired.append(fired)
        self._told.append(fired)

    def take_told(self) -> Sequence[Assessed]:
        news = self._told
        self._told = []
        return news

    def facts(self) -> dict[str, JSON]:
        risk = self._judged
        trust = self._trusted
        if risk is None:
            return {}

        facts: dict[str, JSON] = {
            "risk": risk.risk,
            "components": dict(risk.components),
            "route": risk.route,
            "confidence": risk.confidence,
            "assumptions": list(risk.assumptions),
            "fragile": list(risk.fragile),
            "rules": [
                {"step": fired.node, "kind": fired.what, "rule": fired.rule} for fired in self._log.fired
            ],
            "trust": trust.trust if trust else None,
            "penalties": dict(trust.penalties) if trust else {},
            "verification": trust.verification if trust else None,
            "issues": list(trust.issues) if trust else [],
            "flags": list(trust.flags) if trust else [],
            "repaired": self.repaired,
            "unsupported": list(self._unsupported),
            "before_repair": self._before_repair,
            "climbed": self._above.name if self._above is not None else None,
        }
        return {"profile": facts}

    def _store(self, state: PlanState) -> StepOutputs:
        """What expressions read."""
        failed = [id for id, record in state.nodes.items() if record.state == "failed"]
        return StepOutputs(state.outputs, failed)

    # --- verification, one repair, one report ----------------------------------------------------------------

    def verify(self, state: PlanState) -> Verification:
        """Judge whether the trace supports a report; a function of the trace alone (PTR, section 2.1)."""
        assert self.profile is not None
        given_up = _given_up(state)
        current = sorted({id for id in self._standing(state) if id not in given_up})
        records = [state.nodes[id] for id in current]
        done = [
            record for record in records if record.state == "executed" and record.validation != "left_out"
        ]

        failed = [record.node.id for record in records if record.state in ("failed", "skipped", "cancelled")]
        empty = [record.node.id for record in done if is_empty(record.output)]
        meagre = [record.node.id for record in done if thin(record.output)]
        store = self._store(state)
        met = [condition.source for condition in self.profile.replan_when if condition.holds(store)]

        counts = {
            "failed": len(failed),
            "empty": len(empty),
            "thin": len(meagre),
            "diagnosed": min(1, len(met)),
            "branched": sum(id in current for id in self._log.branched),
            "recovered": sum(id in current for id in self._log.recovered),
        }
        self._penalties = _rounded(
            (name, weight * counts[name]) for name, weight in penalties(self._bounds).items() if counts[name]
        )

        issues = (
            *(f"{id} gave no result" for id in failed),
            *(f"{id} gave an empty result" for id in empty),
            *(f"{id} gave a thin result" for id in meagre),
            *(f"the condition {source} was met" for source in met),
        )
        trust = trust_of(counts, self._bounds)
        is_trusted = trust >= self._bounds.trust_below
        status: Literal["sound", "degraded", "unsound"] = "degraded" if issues else "sound"
        if not is_trusted:
            status = "unsound"
        flags = tuple(f"Caveat: {issue}." for issue in issues)
        return Verification(trust, status, issues, flags, repair=not is_trusted or bool(failed))

    def _standing(self, state: PlanState) -> Iterator[str]:
        """The steps of the workflow as it stands: without those of one that was corrected, or that a person took out or
        had tried again, and with those that a person added.
        """
        replaced = {node.spawned_by for node in state.plan.nodes.values()}
        for id, node in state.plan.nodes.items():
            if node.kind in WORK and id not in self._corrected and id not in replaced:
                yield id

    def at_rest(self, state: PlanState) -> DueThought | None:
        if self._above is not None:
            return self._above.at_rest(state)
        if self.profile is None or self._reported:
            return None

        result = self.verify(state)
        self.verification = result
        repairs = result.repair and not self.repaired
        climbs = result.repair and not repairs and self._climb
        self._trusted = Trust(
            round(result.trust, 6),
            self._penalties,
            result.status,
            result.issues,
            result.flags,
            repairs,
            ADAPTIVE if climbs else "",
        )
        self._told.append(self._trusted)

        if climbs:
            return self._climb_up().at_rest(state)
        if repairs:
            self.repaired = True
            before = self.facts()["profile"]
            self._before_repair = before if isinstance(before, dict) else None
            self._issues_before = result.issues
            self._assumed_before = self.profile.assumptions
            return DueThought("own", reason="repair", final=True)
        self._reported = True
        return DueThought("own", reason="report", final=True)

    def _climb_up(self) -> Mode:
        """Let an adaptive mode go on, which has its own bound on model calls."""
        self._above = Analyze(self._bounds.rounds, confident=self._bounds.confidence)
        self.max_calls = None
        return self._above

    @property
    def distrust(self) -> str:
        result = self.verification
        if result is None or result.status != "unsound" or self._above is not None:
            return ""
        return f"The results can't be trusted: {'; '.join(result.issues)}."

    def falls_back(self) -> bool:
        """If `auto` chose the profile, ask for a plan without one, and have it judged."""
        if self._climb:
            self._climb_up()
        return self._climb

    def after(self, state: PlanState, node: str) -> DueThought | None:
        return self._above.after(state, node) if self._above is not None else None

    def analyzed(self, analysis: Analysis) -> ReflectionAnswer:
        return self._above.analyzed(analysis) if self._above is not None else super().analyzed(analysis)

    def interjected(self) -> None:
        if self._above is not None:
            self._above.interjected()
            return

        # What the person asks for is verified and reported again, and what that costs is not the profile's.
        self._reported = False
        if self.max_calls is not None:
            self.max_calls += 1

    def question(self, ask: DueThought, it: PlanSituation) -> PlanQuestion:
        issues = "\n".join(f"- {issue}" for issue in self._all_issues()) or "- none"
        around = questions.surroundings(it) if ask.reason == "repair" else questions.said_before(it)
        told = (*questions.request(it), *around, self._profile_part(), *questions.course(it))

        if ask.reason == "repair":
            parts = (
                text_part(
                    "task",
                    "A workflow did not go well. Write a corrected one for what is still missing. It is corrected only once: if "
                    "this one does not go well either, the work ends. Use new ids; results below can be read by their ids. "
                    "Do not answer the task.",
                ),
                *told,
                text_part("issues", f"Problems:\n{issues}", share=1),
                questions.offered(it),
                text_part("form", _FORM),
                text_part("ways", questions.WAYS),
            )
            return PlanQuestion("repair", parts=parts)

        parts = (
            text_part(
                "task",
                "Answer the task from these results only. In the first line: `reached: yes`, `reached: partly` or `reached: no`, "
                "and after a comma why: whether the results show that the task is done. Then the answer, without a word about "
                "that line. After each claim name its step in square brackets, like [a]; the "
                "brackets are taken out before a person reads it.",
            ),
            *told,
            text_part(
                "issues", f"What did not go well, to be passed on as far as it matters:\n{issues}", share=1
            ),
            text_part("form", questions.REPORT),
        )
        return PlanQuestion("reason", parts=parts)

    def _profile_part(self) -> QuestionPart:
        """What the profile says of itself, and how its results are trusted (PTR, equations 35 and 37)."""
        assert self.profile is not None
        profile = self.profile
        lines = [f"- its author was {profile.confidence:.0%} sure of it"]
        lines += [f"- it takes for granted: {assumption}" for assumption in self.assumed]
        lines += [f"- it may break: {point}" for point in profile.fragile]
        lines += [f"- its rules: {rule}" for rule in _in_words(profile)]

        if self._trusted is not None:
            lines.append(
                f"- how far its results can be trusted: {self._trusted.trust:.0%} ({self._trusted.verification})"
            )
        return QuestionPart("known", "About the workflow:", tuple(map(Item, lines)), share=1)

    def _all_issues(self) -> list[str]:
        """What went wrong, in the workflow that was corrected, too: its caveats do not end with it."""
        now = self.verification.issues if self.verification is not None else ()
        return list(dict.fromkeys((*self._issues_before, *now)))

    def answered(
        self, state: PlanState, ask: DueThought, text: str | None, catalogue: FunctionCatalogue | None
    ) -> tuple[tuple[PlanNode, ...], str | None]:
        """The steps of a repair, or the report."""
        if ask.reason != "repair":
            return (), self._report(state, text)
        if text is None:
            return (), None

        known = [id for id in state.in_state("executed") if state.nodes[id].node.kind in WORK]
        profile = read_profile(text, catalogue, known=known, domain=self._domain)
        taken = [node.id for node in profile.nodes if node.id in state.nodes]
        if taken:
            raise PlanError(f"the repaired plan uses the id {taken[0]!r} again; choose a new one")
        return self._take(profile, catalogue), None

    def _report(self, state: PlanState, text: str | None) -> str | None:
        """The report as a person reads it: without the ids of the steps that its claims rest on."""
        if text is None or is_empty(text):
            self.judgement = GoalJudgement("unreadable")
            return None

        self.judgement, report = answers.report(text)
        self._unsupported = _uncited(report, state.in_state("executed"))

        def without(match: re.Match[str]) -> str:
            return "" if _is_citation(match["ids"], state.nodes) else match[0]

        return _CITED.sub(without, report).strip()


def _given_up(state: PlanState) -> set[str]:
    """The steps that a person cancelled, and those that came to nothing only for want of them."""
    gone = {
        id
        for id, record in state.nodes.items()
        if record.state == "cancelled" and record.cause == "cancelled"
    }
    # The list grows while it is gone through: what was skipped for want of one makes others skipped.
    waiting = list(gone)
    for id in waiting:
        for follower in state.nodes[id].serves:
            if state.nodes[follower].state == "skipped" and follower not in gone:
                gone.add(follower)
                waiting.append(follower)
    return gone


def _rounded(named: Iterable[tuple[str, float]]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in named}


def _in_words(profile: ProfileObject) -> Iterator[str]:
    """Describe every rule of a profile."""
    for step, rules in profile.auto.items():
        yield from (f"{step}: {name} = {rule.source}" for name, rule in rules.items())
    yield from (f"{branch.step}: {_branch_in_words(branch)}" for branch in profile.branches)
    yield from (f"{rule.step or 'any step'}: {_recovery_in_words(rule)}" for rule in profile.recoveries)
    yield from (f"replan if {condition.source}" for condition in profile.replan_when)


def _branch_in_words(branch: Branch) -> str:
    change = "leave it out" if branch.skip else _change_in_words(branch.change)
    return f"if {branch.when.source}: {change}"


def _recovery_in_words(rule: Recovery) -> str:
    return f"if it fails with {rule.error!r}: {_change_in_words(rule.change)}"


def _change_in_words(change: Mapping[str, JSON]) -> str:
    return ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in change.items())


def _cited_in(ids: str) -> list[str]:
    return [id.strip() for id in re.split(r"[,;]", ids) if id.strip()]


def _is_citation(ids: str, steps: Container[str]) -> bool:
    """Whether brackets name steps; a single word that is none is a step that the model thought there was."""
    cited = _cited_in(ids)
    if any(id in steps for id in cited):
        return True
    is_word = len(ids) > 1 and ids.isalpha()
    return len(cited) == 1 and is_word


def _uncited(text: str, executed: Collection[str]) -> list[str]:
    """What is wrong with a report's citations: there are none, or they name steps without a result."""
    cited = dict.fromkeys(
        id
        for match in _CITED.finditer(text)
        if _is_citation(match["ids"], executed)
        for id in _cited_in(match["ids"])
    )
    if not any(id in executed for id in cited):
        return ["No claim in this report names the step that it rests on."] if executed else []
    wrong = [f"[{id}]" for id in cited if id not in executed]
    return [f"Cited without a result behind it: {', '.join(wrong)}."] if wrong else []
