"""Reads and writes plans as YAML or JSON. Text from a model or a person is validated with pydantic.

A step's kind follows from its keys: `call:` is a tool, `agent:` with a `task:` is an agent. JSON is YAML, so one reader
does for both. Only plain data is read: no tags, and no anchors that multiply.
"""

from __future__ import annotations

import dataclasses
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, cast

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
)

from iact.core.plan.model import (
    NO_ERROR,
    Contract,
    PlanError,
    PlanGraph,
    PlanNode,
    PlanVersion,
    Ref,
    make_plan,
)
from iact.core.plan.validate import TooManySteps
from iact.core.ports import JSON
from iact.core.recent import Recent
from iact.core.records.ways import OPTIONS

MAX_BYTES: Final = 1 << 20
MAX_STEPS: Final = 1_000
"""The most steps that are looked at one by one. Far fewer can run; more take longer than a session can stand still."""
MAX_DEPTH: Final = 100
"""The deepest nesting of lists and mappings in a plan's text."""
MAX_ID: Final = 64
"""The most characters of an id."""

_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""Characters that YAML does not take unescaped."""


def id_of(value: object) -> object:
    """An id as a step has it: a word of any script, with `-` for the blanks between several; a number is its digits."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return value
    return unicodedata.normalize("NFC", "-".join(str(value).split()))


def _is_id(value: str) -> str:
    is_of_letters = all(
        character in "_-" or unicodedata.category(character)[0] in "LMN" for character in value
    )
    if not is_of_letters or not 0 < len(value) <= MAX_ID or value[0] == "-":
        raise ValueError(f"an id is a word of at most {MAX_ID} letters, digits, `_` and `-`, in any script")
    return value


StepId = Annotated[str, BeforeValidator(id_of), AfterValidator(_is_id)]
Named = Annotated[str, BeforeValidator(id_of)]
"""The id of another step."""


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RefForm(_Form):
    step: Named
    field: str = ""
    template: str = ""

    @field_validator("field", mode="before")
    @classmethod
    def _numbers_are_names(cls, value: object) -> object:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class ContractForm(_Form):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    json_schema: dict[str, JsonValue] | None = Field(None, alias="schema")
    regex: str | None = None
    non_empty: bool = False
    exit_status: int | None = None
    judgement: str | None = None
    by: Literal["person"] | None = None
    """Who must accept the output, besides the rules."""


class StepForm(_Form):
    id: StepId
    call: str = ""
    agent: str = ""
    task: str = ""
    by: Literal["person"] | None = None
    """Who does it, if neither a function nor an agent does."""
    role: str = ""
    params: dict[str, JsonValue] = {}
    refs: dict[str, RefForm] = {}
    after: tuple[Named, ...] = ()
    join: Literal["all_of", "any_of"] = "all_of"
    impact: int | None = Field(None, ge=0, le=2)
    idempotent: bool | None = None
    timeout: float | None = Field(None, gt=0)
    retries: int | None = Field(None, ge=0, le=10)
    contract: ContractForm | None = None
    model: str = ""
    simple: bool = False
    writes: tuple[str, ...] = ()
    intent: float | None = Field(None, ge=0)
    """The most impact that an agent step may have."""
    scope: tuple[str, ...] = ()
    """Patterns of the functions that an agent step may call, among those of the plan."""
    tools: tuple[str, ...] = ()
    """Functions that an agent step should use."""
    replaces: str = ""
    """A step of an earlier version whose place this one takes."""

    @field_validator("after", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list | tuple) else (value,)

    @field_validator("scope", "tools", mode="before")
    @classmethod
    def _words_are_a_list(cls, value: object) -> object:
        return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


class PlanForm(_Form):
    goal: str = ""
    constraints: tuple[str, ...] = ()
    steps: tuple[StepForm, ...] = ()
    contract: ContractForm | None = None

    @field_validator("constraints", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value


_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Reads plain data, no objects. The loader in C is ten times as fast."""


def read_data(text: str) -> JSON:
    """Return YAML or JSON text as plain data.

    Raises:
        PlanError: it is neither, or too large.
    """
    if len(text) > MAX_BYTES:
        raise PlanError(
            f"the plan has more than {MAX_BYTES} characters, which is the most that is read; shorten it"
        )

    try:
        _refuse_traps(text)
        data: object = yaml.load(text, Loader=_LOADER)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise PlanError(f"the plan is neither YAML nor JSON ({_yaml_place(error)})") from error
    return cast(JSON, data)


def _refuse_traps(text: str) -> None:
    """Look through a text for what would multiply, or would overflow the stack of the loader, which is in C.

    Raises:
        PlanError: it holds such a thing.
        YAMLError: it is not YAML.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise PlanError("the plan uses a YAML alias (*name), which could multiply; write the value out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1

        if depth > MAX_DEPTH:
            raise PlanError(f"the plan is nested more than {MAX_DEPTH} levels deep; write it flatter")


_SENTENCE: Final = re.compile(
    r"^(?P<before>[ ]*(?:-[ ]+)?(?:goal|task|constraints)[ ]*:[ ]+|[ ]*-[ ]+)(?P<text>[^\s\"'\[{|>&*!%@`#-][^\n]*: [^\n]*)$",
    re.MULTILINE,
)
"""A line whose text has a colon in it, where YAML would begin another mapping."""

_KEY: Final = re.compile(r"[a-z_]+[ ]*:")
"""What a step in YAML's block form begins with."""


def _with_quotes(text: str) -> str:
    """The same plan with quotes around sentences that have a colon in them: `goal: Compare: a and b`."""

    def quoted(match: re.Match[str]) -> str:
        is_item = match["before"].strip() == "-"
        if is_item and _KEY.match(match["text"]):
            return match.group()
        return match["before"] + json.dumps(match["text"].rstrip(), ensure_ascii=False)

    return _SENTENCE.sub(quoted, text)


def read_written(text: str) -> JSON:
    """Return a plan's text as plain data: as it stands, or else with the quotes that its sentences lack.

    Raises:
        PlanError: it is neither YAML nor JSON, or too large.
    """
    try:
        return read_data(text)
    except PlanError:
        repaired = _with_quotes(text)
        if len(text) > MAX_BYTES or repaired == text:
            raise

        try:
            return read_data(repaired)
        except PlanError:
            pass
        raise


def _sentence_of(item: JSON) -> JSON:
    """A constraint that YAML takes for a mapping, as the sentence that it is: `Language: English only`."""
    if not isinstance(item, dict) or len(item) != 1:
        return item
    ((key, value),) = item.items()
    is_sentence = isinstance(key, str) and isinstance(value, str)
    return f"{key}: {value}" if is_sentence else item


READ_AT_ONCE: Final = 16_384
"""The most characters of a plan's text that are read where everything else waits for it: some milliseconds."""

_READ: Final = Recent[tuple[str, bool], "PlanForm | PlanError"](2 * MAX_BYTES)
"""What long texts were read as: a form, or what is wrong with it. The session reads a long text in a thread first, and
the fold finds it here."""


def read_form(text: str, *, exact: bool = False) -> PlanForm:
    """Read the body of a `PLAN` action, or a plan file.

    A list of steps, or a single step, is read as a plan with these steps. `exact`: as before format 1.3, when a sentence
    with a colon needed quotes.

    Raises:
        PlanError: names the place that is wrong.
        TooManySteps: it has so many that they are not looked at.
    """
    if not READ_AT_ONCE < len(text) <= MAX_BYTES:
        return _read_form(text, exact)

    def read() -> PlanForm | PlanError:
        try:
            return _read_form(text, exact)
        except PlanError as error:
            return error

    form = _READ.get((text, exact), len(text), read)
    if isinstance(form, PlanError):
        raise form.with_traceback(None)
    return form


_BESIDE_THE_NAME: Final = ("mode", *OPTIONS, "report", "from", "scope", "intent")
"""What says how a plan is carried out, and is easily taken for a part of it."""


def _read_form(text: str, exact: bool) -> PlanForm:
    data = read_data(text) if exact else read_written(text)
    constraints = data.get("constraints") if isinstance(data, dict) else None
    if isinstance(data, dict) and isinstance(constraints, list) and not exact:
        data = {**data, "constraints": [_sentence_of(item) for item in constraints]}

    is_single_step = isinstance(data, dict) and "id" in data and "steps" not in data
    if isinstance(data, list):
        data = {"steps": data}
    elif is_single_step:
        data = {"steps": [data]}
    if not isinstance(data, dict):
        raise PlanError("a plan is a mapping with `goal`, `steps` or both, in YAML or JSON")

    # Counted before they are looked at one by one.
    steps = data.get("steps")
    if isinstance(steps, list) and len(steps) > MAX_STEPS:
        raise TooManySteps(len(steps))

    misplaced = next((name for name in _BESIDE_THE_NAME if name in data), "")
    if misplaced:
        raise PlanError(
            f"`{misplaced}` is not a part of the plan: it is given beside it, as {misplaced}=… behind the plan's name "
            f"where PLAN is written, or as an option of the command"
        )

    try:
        form = PlanForm.model_validate(data)
    except ValidationError as error:
        raise PlanError(_sentence(error, data)) from error
    if not form.goal and not form.steps:
        raise PlanError("the plan has neither a `goal` nor `steps`; give one of them")
    return form


def read_step(data: JSON) -> PlanNode:
    """Read one step of a stream, already parsed as data.

    Raises:
        PlanError: names the place that is wrong.
    """
    try:
        return node_of(StepForm.model_validate(data))
    except ValidationError as error:
        raise PlanError(_sentence(error, {"steps": [data]}, ("steps", 0))) from error


def read_plan(text: str, *, id: str, exact: bool = False) -> PlanGraph:
    """Read version 1 of the plan in `text`. It has no steps if only a goal is given. `exact`: as in `read_form`.

    Raises:
        PlanError: names the place that is wrong.
    """
    form = read_form(text, exact=exact)
    if form.contract is not None and form.contract.by:
        raise PlanError(
            "a person accepts the result of a step, not of a whole plan; put `by: person` into the contract of the step "
            "that gives the result"
        )

    return make_plan(
        id,
        (node_of(step) for step in form.steps),
        goal=form.goal,
        contract=contract_of(form.contract),
        constraints=form.constraints,
    )


def goal_text(goal: str) -> str:
    """Write a plan that has only a goal, as `read_plan` reads it."""
    quoted = json.dumps({"goal": goal}, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def node_of(step: StepForm) -> PlanNode:
    """Return the node that a step describes.

    Raises:
        PlanError: it is not exactly one of a call, a task for an agent and a task for a person.
    """
    if step.by:
        return _node_of_person(step)
    does_both_or_none = bool(step.call) == bool(step.agent)
    if does_both_or_none:
        raise PlanError(
            f"step {step.id!r} needs either `call:` (a function) or `agent:` (a name) with `task:`, not both or none"
        )

    if step.agent and not step.task:
        raise PlanError(
            f"step {step.id!r} calls the agent {step.agent!r} without a `task:`; say what it shall do"
        )
    if step.call and (step.intent is not None or step.scope or step.tools):
        raise PlanError(
            f"step {step.id!r} calls a function; `intent`, `scope` and `tools` are for a step with `agent:`"
        )

    return PlanNode(
        id=step.id,
        kind="agent" if step.agent else "tool",
        call=step.agent or step.call,
        task=step.task,
        params=cast(Mapping[str, JSON], step.params),
        refs={name: Ref(ref.step, ref.field, ref.template) for name, ref in step.refs.items()},
        after=tuple(dict.fromkeys(step.after)),
        join=step.join,
        impact=step.impact,
        idempotent=step.idempotent,
        timeout=step.timeout,
        retries=step.retries,
        contract=contract_of(step.contract),
        model=step.model or ("fast" if step.simple and step.agent else ""),
        role=step.role,
        writes=step.writes,
        intent=step.intent,
        scope=step.scope,
        tools=step.tools,
        spawned_by=step.replaces,
    )


def _node_of_person(step: StepForm) -> PlanNode:
    """Return the node of a step that the person does.

    Raises:
        PlanError: it says more than what the person is to do.
    """
    if step.call or step.agent:
        raise PlanError(
            f"step {step.id!r} is `by: person`, so it has neither `call:` nor `agent:`; say in `task:` what is to be done"
        )

    if not step.task:
        raise PlanError(f"step {step.id!r} is `by: person` without a `task:`; say what they are to do")
    if step.contract is not None and step.contract.by:
        raise PlanError(
            f"step {step.id!r} is done by the person, who need not accept it as well; take `by` out of its contract"
        )

    return PlanNode(
        id=step.id,
        kind="person",
        task=step.task,
        params=cast(Mapping[str, JSON], step.params),
        refs={name: Ref(ref.step, ref.field, ref.template) for name, ref in step.refs.items()},
        after=tuple(dict.fromkeys(step.after)),
        join=step.join,
        timeout=step.timeout,
        contract=contract_of(step.contract),
        spawned_by=step.replaces,
    )


def contract_of(form: ContractForm | None) -> Contract:
    """Return the contract that a form describes, or the default contract, which only requires no error."""
    if form is None:
        return NO_ERROR
    return Contract(
        cast(Mapping[str, JSON] | None, form.json_schema),
        form.regex,
        form.non_empty,
        form.exit_status,
        form.judgement,
        form.by or "",
    )


def step_of(node: PlanNode) -> dict[str, JSON]:
    """Return a tool or agent node in the form of a step, without defaults."""
    out = node_to_json(node)
    del out["kind"]
    _name_worker(node, out)
    rules = out.get("contract")
    if isinstance(rules, dict):
        out["contract"] = _with_written_names(rules)

    for name in ("endpoint", "spawned_by"):
        out.pop(name, None)
    return out


def _with_written_names(rules: Mapping[str, JSON]) -> dict[str, JSON]:
    """A contract of the journal with the names that its form has."""
    return {"regex" if name == "pattern" else name: rule for name, rule in rules.items()}


def plan_text(goal: str, nodes: Iterable[PlanNode]) -> str:
    """Write a plan as a person would, in the form that `read_plan` reads."""
    data: dict[str, JSON] = {"goal": goal} if goal else {}
    data["steps"] = [_written(node) for node in nodes]
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110))


def _written(node: PlanNode) -> JSON:
    """Return a step with the keys of its form."""
    data = {
        name: value
        for name, value in node_to_json(node).items()
        if name not in ("kind", "spawned_by", "endpoint")
    }
    _name_worker(node, data)

    # At the end, as its author would write it.
    contract = data.pop("contract", None)
    if isinstance(contract, dict):
        data["contract"] = _with_written_names(contract)
    return data


def _name_worker(node: PlanNode, data: dict[str, JSON]) -> None:
    """Say who does a step with the key of its form."""
    match node.kind:
        case "agent":
            data["agent"] = data.pop("call")
        case "person":
            data["by"] = "person"


# --- the journal form of events -----------------------------------------------------------------


def node_to_json(node: PlanNode) -> dict[str, JSON]:
    """Return a node in its journal form, without defaults."""
    plain = PlanNode(node.id)
    out: dict[str, JSON] = {"id": node.id, "kind": node.kind}

    for field in dataclasses.fields(PlanNode):
        value = getattr(node, field.name)
        is_default = value == getattr(plain, field.name)
        if field.name not in out and not is_default:
            out[field.name] = _plain(value)
    return out


def node_from_json(data: Mapping[str, JSON]) -> PlanNode:
    """Read a node from a journal. Fields unknown to this version are ignored.

    Raises:
        PlanError: it holds no node.
    """
    names = [field.name for field in dataclasses.fields(PlanNode)]
    known: dict[str, Any] = {name: data[name] for name in names if name in data}
    try:
        if "refs" in known:
            known["refs"] = {name: Ref(**ref) for name, ref in known["refs"].items()}
        if "contract" in known:
            known["contract"] = Contract(**known["contract"])

        for name in ("after", "writes", "scope", "tools"):
            if name in known:
                known[name] = tuple(known[name])

        return PlanNode(**known)
    except (TypeError, AttributeError) as error:
        raise PlanError(f"the journal holds a plan node that can't be read ({error})") from error


def version_to_json(version: PlanVersion) -> dict[str, JSON]:
    """Return a version in its journal form."""
    return {
        "version": version.version,
        "parent": version.parent,
        "reason": version.reason,
        "add": [node_to_json(node) for node in version.add],
        "drop": list(version.drop),
        "rewire": [node_to_json(node) for node in version.rewire],
    }


def version_from_json(data: Mapping[str, Any]) -> PlanVersion:
    """Read a version from a journal.

    Raises:
        PlanError: it holds no version.
    """
    try:
        return PlanVersion(
            int(data["version"]),
            None if data["parent"] is None else int(data["parent"]),
            str(data["reason"]),
            tuple(node_from_json(node) for node in data.get("add", ())),
            tuple(map(str, data.get("drop", ()))),
            tuple(node_from_json(node) for node in data.get("rewire", ())),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise PlanError(f"the journal holds a plan version that can't be read ({error!r})") from error


def _plain(value: object) -> JSON:
    """A value of a node as plain data, without the defaults of its parts."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]

    if isinstance(value, Ref | Contract):
        empty: object = Ref("") if isinstance(value, Ref) else Contract()
        return {
            field.name: _plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if getattr(value, field.name) != getattr(empty, field.name)
        }
    return cast(JSON, value)


def _yaml_place(error: Exception) -> str:
    """Where a text is no YAML, and why."""
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}, column {mark.column + 1}: {what}" if mark else what[:200]


def _sentence(error: ValidationError, data: object, prefix: Sequence[str | int] = ()) -> str:
    """The first fault, with its place: "step 'cves' (number 3), field `retries`: …"."""
    first = error.errors()[0]
    path = [*prefix, *first["loc"]]
    place = ".".join(map(str, path)) or "the plan"
    is_of_a_step = len(path) > 1 and path[0] == "steps" and isinstance(path[1], int)
    if is_of_a_step:
        fields = ".".join(map(str, path[2:]))
        place = f"step {_name_of(data, int(path[1]))}" + (f", field `{fields}`" if fields else "")

    value = first.get("input")
    shown = f", not {str(value)[:60]!r}" if isinstance(value, str | int | float | bool) else ""
    further = len(error.errors()) - 1
    also = f" (and {further} more)" if further else ""
    message = first["msg"]
    return f"{place}: {message[:1].lower()}{message[1:]}{shown}{also}"


def _name_of(data: object, index: int) -> str:
    """A step by its id, as far as it has one, and its number."""
    steps = data.get("steps") if isinstance(data, dict) else None
    step = steps[index] if isinstance(steps, list) and index < len(steps) else None
    name = step.get("id") if isinstance(step, dict) else None
    return f"{name!r} (number {index + 1})" if name is not None else f"number {index + 1}"


__all__ = [
    "NO_ERROR", "PlanForm", "StepForm", "contract_of", "node_from_json", "node_of", "node_to_json",
    "read_data", "read_form", "read_plan", "read_step", "read_written", "step_of", "version_from_json", "version_to_json",
]  # fmt: skip
