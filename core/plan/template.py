"""Kept plans with parameters: what a person may leave open when a plan is kept, and how it is filled in when it is used.

A kept plan is the text of a plan. Its key `parameters:` says what is open, and `{{name}}` in any of its texts is where the
value goes. The values are put in, and the plan is checked, before any of it runs, so that whatever runs plans knows nothing
of templates. A plan without that key is used as it is, whatever braces its commands have.

A value goes where it was marked, as it is written: a command that needs quotes around a name with blanks has them in the
template.
"""

from __future__ import annotations

import dataclasses
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from iact.core.plan.forms import read_form, read_written
from iact.core.plan.model import PlanError
from iact.core.plan.validate import TooManySteps
from iact.core.ports import JSON
from iact.core.records.ways import OPTIONS

Kind = Literal["text", "number", "yes or no"]

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}\Z")
"""What a parameter can be called: what can stand before a `=` in the first line of an action."""

TAKEN: Final = frozenset({"name", "plan", "from", "mode", *OPTIONS, "report", "scope", "intent"})
"""Names that mean something to PLAN already, beside which the parameters stand."""

_MOST: Final = 32
"""The most parameters of a template."""

_LONGEST: Final = 16_384
"""The most characters of a value."""

_SHOWN: Final = 60
"""The most characters of a value that a sentence repeats."""

_PLACE: Final = re.compile(r"\{\{[ ]*([A-Za-z_][A-Za-z0-9_-]*)[ ]*\}\}")

_YES: Final[Mapping[str, bool]] = {
    "true": True, "yes": True, "on": True, "ja": True, "是": True,
    "false": False, "no": False, "off": False, "nein": False, "否": False,
}  # fmt: skip

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?")


class _ParameterForm(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    example: str | int | float | bool | None = None
    default: str | int | float | bool | None = None
    about: str = Field("", max_length=200)


class _ParametersForm(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    parameters: dict[str, _ParameterForm] = Field(default_factory=dict, max_length=_MOST)

    @field_validator("parameters", mode="before")
    @classmethod
    def _a_value_is_an_example(cls, value: object) -> object:
        """`file: report.csv` is short for `file: {example: report.csv}`."""
        if not isinstance(value, dict):
            return value
        return {
            name: form if isinstance(form, dict | _ParameterForm) else {"example": form}
            for name, form in value.items()
        }


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a kept plan leaves open."""

    name: str
    kind: Kind = "text"
    """What its values are."""
    example: JSON = None
    """The value that the plan had when it was kept; None: unknown."""
    default: JSON = None
    """The value if none is given; None: one must be given."""
    about: str = ""
    """What it is for, in its author's words."""

    def shown(self, value: JSON) -> str:
        """One of its values as a person writes it; empty if there is none."""
        return "" if value is None else _as_text(value)

    def take(self, value: JSON) -> JSON:
        """Read a value that somebody gave.

        Raises:
            PlanError: it is not of the parameter's kind.
        """
        text = str(value).strip()
        if isinstance(value, bool):
            text = "true" if value else "false"
        if len(text) > _LONGEST:
            raise PlanError(
                f"`{self.name}` has {len(text)} characters; at most {_LONGEST} are put into a plan."
            )

        if self.kind == "number":
            number = _number(text)
            if number is None:
                raise PlanError(f"`{self.name}` is a number, which {_shown(value)} is not.")
            return number

        if self.kind == "yes or no":
            if text.lower() not in _YES:
                raise PlanError(f"`{self.name}` is yes or no, and not {_shown(value)}.")
            return _YES[text.lower()]

        return value if isinstance(value, str) else text


@dataclass(frozen=True, slots=True)
class Template:
    """A kept plan."""

    text: str
    """It, as a person may have written it."""
    parameters: tuple[Parameter, ...] = ()
    """What it leaves open, in its author's order."""
    goal: str = ""
    """What it is for, with the places of its parameters."""

    @property
    def line(self) -> str:
        """Its parameters as somebody who uses it writes them: `file=… count=…`."""
        return " ".join(f"{parameter.name}=…" for parameter in self.parameters)

    def examples(self) -> dict[str, JSON]:
        """A value for each parameter whose kept value is known, so that the plan can be looked at without others."""
        known = {
            parameter.name: parameter.default if parameter.example is None else parameter.example
            for parameter in self.parameters
        }
        return {name: value for name, value in known.items() if value is not None}

    def fill(self, values: Mapping[str, JSON], *, name: str) -> str:
        """The text of the plan with these values. `name`: the template's, for what is wrong.

        Raises:
            PlanError: a value is missing, is of another kind, or is for a parameter that there is not.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        unknown = [name for name in values if name not in known]
        if unknown and not known:
            raise PlanError(f"The plan template {name!r} has no parameters, so it takes no {unknown[0]!r}.")
        if unknown:
            raise PlanError(
                f"The plan template {name!r} has no parameter {unknown[0]!r}; it has {', '.join(known)}."
            )

        missing = [
            parameter
            for parameter in self.parameters
            if parameter.name not in values and parameter.default is None
        ]
        if missing:
            names = ", ".join(parameter.name for parameter in missing)
            raise PlanError(
                f"The plan template {name!r} needs values for {names}; write for example {_as_written(missing)}."
            )
        if not self.parameters:
            return self.text

        taken = {
            parameter.name: parameter.take(values.get(parameter.name, parameter.default))
            for parameter in self.parameters
        }
        data = cast("dict[str, JSON]", read_written(self.text))
        plan = {key: value for key, value in data.items() if key != "parameters"}
        return _dump({key: _filled(value, taken, key) for key, value in plan.items()})


def read_template(text: str) -> Template:
    """Read a kept plan, and check what can be checked before its values are known.

    Raises:
        PlanError: it is not a plan, or its parameters can't be used.
        TooManySteps: it has so many that they are not looked at.
    """
    try:
        data = read_written(text)
        if not isinstance(data, dict) or "parameters" not in data:
            return Template(text, goal=read_form(text).goal)
    except TooManySteps:
        raise
    except PlanError as error:
        raise PlanError(f"{error}.") from error  # theirs are parts of sentences, ours are whole

    try:
        forms = _ParametersForm.model_validate(data).parameters
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise PlanError(f"The plan's {place} can't be read: {first['msg']}.") from error
    for name in forms:
        _check_name(name)

    plan = {key: value for key, value in data.items() if key != "parameters"}
    places = {match for written in _texts(plan) for match in _PLACE.findall(written)}
    unused = [name for name in forms if name not in places]
    if unused:
        raise PlanError(f"The plan has no place for the value of the parameter {unused[0]!r}.")

    template = Template(text, tuple(_parameter(name, form) for name, form in forms.items()))
    # A plan whose steps can't be read with any values can't be read with these.
    stand_ins = {parameter.name: _any_value(parameter) for parameter in template.parameters}
    filled = template.fill(stand_ins, name="plan")
    try:
        read_form(filled)
    except TooManySteps:
        raise
    except PlanError as error:
        raise PlanError(f"{error}.") from error
    goal = plan.get("goal")
    return dataclasses.replace(template, goal=goal if isinstance(goal, str) else "")


def _parameter(name: str, form: _ParameterForm) -> Parameter:
    known = form.example if form.example is not None else form.default
    kind: Kind = "text"
    if isinstance(known, bool):
        kind = "yes or no"
    elif isinstance(known, int | float):
        kind = "number"
    return Parameter(name, kind, form.example, form.default, form.about)


def _any_value(parameter: Parameter) -> JSON:
    for known in (parameter.example, parameter.default):
        if known is not None:
            return known
    return "x"


def _check_name(name: str) -> None:
    if NAME.match(name) is None:
        raise PlanError(
            f"{name[:_SHOWN]!r} can't name a parameter. Use up to 40 letters (a to z), digits, - and _, a letter first."
        )
    if name in TAKEN:
        raise PlanError(
            f"{name!r} can't name a parameter, since it means something to PLAN already; choose another."
        )


def _as_written(parameters: Iterable[Parameter]) -> str:
    """Values for parameters as one writes them: those that the plan had when it was kept."""
    return " ".join(f"{parameter.name}={_shown(_any_value(parameter))}" for parameter in parameters)


def _shown(value: JSON) -> str:
    """A value as a sentence repeats it: a text in quotes, and not all of a long one."""
    if isinstance(value, str) and len(value) > _SHOWN:
        value = f"{value[:_SHOWN]}…"
    return json.dumps(value, ensure_ascii=False)


def _number(text: str) -> JSON:
    if _NUMBER.fullmatch(text) is None:
        return None
    return float(text) if "." in text else int(text)


def _texts(value: JSON) -> Iterator[str]:
    """Every text in a plan's data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)


def _dump(data: Mapping[str, JSON]) -> str:
    return str(yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True, width=110))


# --- using it -----------------------------------------------------------------------------------


def _filled(value: JSON, values: Mapping[str, JSON], key: str) -> JSON:
    """Some of a plan's data with the values in their places. `key`: under which it stands."""
    if isinstance(value, list):
        return [_filled(item, values, key) for item in value]
    if isinstance(value, dict):
        return {name: _filled(item, values, name) for name, item in value.items()}
    if not isinstance(value, str):
        return value

    whole = _PLACE.fullmatch(value)
    if whole is not None and whole[1] in values:
        # A value that is all of its text keeps its type.
        return values[whole[1]] if key != "regex" else _as_pattern(values[whole[1]])

    def put(match: re.Match[str]) -> str:
        if match[1] not in values:
            return match[0]
        return _as_pattern(values[match[1]]) if key == "regex" else _as_text(values[match[1]])

    return _PLACE.sub(put, value)


def _as_text(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _as_pattern(value: JSON) -> str:
    """What matches a value and nothing else."""
    return re.escape(_as_text(value))


# --- keeping it ---------------------------------------------------------------------------------


def mark(text: str, marks: Mapping[str, str]) -> str:
    """The text of a template: this plan with the values that a person marked, by the name of the parameter that each is.

    Raises:
        PlanError: it is not a plan, a name can't be used, or the plan does not have a value.
    """
    if not marks:
        read_template(text)
        return text

    data = read_written(text)
    if not isinstance(data, dict):
        data = {"steps": data}

    if len(marks) > _MOST:
        raise PlanError(f"A plan template has at most {_MOST} parameters.")

    already = {match for written in _texts(data) for match in _PLACE.findall(written)}
    names: dict[str, str] = {}
    for name, value in marks.items():
        _check_name(name)
        if name in already:
            raise PlanError(f"The plan has a place for {name!r} already; choose another name.")
        if not value.strip():
            raise PlanError(
                f"The value of the parameter {name!r} is empty, so it stands nowhere in the plan."
            )
        if value in names:
            raise PlanError(f"{_shown(value)} can't be two parameters, {names[value]!r} and {name!r}.")
        names[value] = name

    marking = _Marking(names)
    kept = {key: marking.mark(value, key) for key, value in data.items() if key != "parameters"}
    nowhere = [name for name in marks if name not in marking.examples]
    if nowhere:
        raise PlanError(
            f"The plan does not have {_shown(marks[nowhere[0]])} in it, so it can't be the parameter {nowhere[0]!r}."
        )

    parameters: dict[str, JSON] = {name: {"example": marking.examples[name]} for name in marks}
    template = _dump({"parameters": parameters, **kept})
    read_template(template)
    return template


class _Marking:
    """Puts the places of parameters where their values are. `names`: the parameter of each value."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self.examples: dict[str, JSON] = {}
        """What each parameter was, with its type; only of those that were found."""
        # The longest first: a path is itself, even if its name is marked, too.
        longest_first = sorted(names, key=len, reverse=True)
        self._plain = re.compile("|".join(map(re.escape, longest_first)))
        self._patterns = {re.escape(value): name for value, name in names.items()}

    def mark(self, value: JSON, key: str) -> JSON:
        if key in _FIXED:
            return value
        if isinstance(value, list):
            return [self.mark(item, key) for item in value]
        if isinstance(value, dict):
            return {name: self.mark(item, name) for name, item in value.items()}
        if isinstance(value, str):
            return self._in_pattern(value) if key == "regex" else self._in_text(value)
        if value is None:
            return value

        name = self._names.get(json.dumps(value))
        if name is None:
            return value
        self.examples[name] = value
        return f"{{{{{name}}}}}"

    def _in_text(self, text: str) -> str:
        def put(match: re.Match[str]) -> str:
            return self._place(match.group()) if _stands_alone(match) else match.group()

        return self._plain.sub(put, text)

    def _in_pattern(self, pattern: str) -> str:
        for escaped in sorted(self._patterns, key=len, reverse=True):
            if escaped in pattern:
                pattern = pattern.replace(escaped, self._place(re.sub(r"\\(.)", r"\1", escaped)))
        return pattern

    def _place(self, value: str) -> str:
        name = self._names[value]
        self.examples.setdefault(name, _typed(value))
        return f"{{{{{name}}}}}"


def _typed(value: str) -> JSON:
    """A number in a text as the number that it is, if it is written as numbers are."""
    number = _number(value)
    return number if number is not None and json.dumps(number) == value else value


_FIXED: Final = frozenset(
    {"id", "call", "agent", "after", "join", "step", "field", "schema", "impact", "idempotent", "timeout", "retries",
     "exit_status", "non_empty", "simple", "model", "writes", "intent", "scope", "tools", "replaces", "by"}
)  # fmt: skip
"""Keys of a plan that say how it runs and not what it works on."""


def _stands_alone(match: re.Match[str]) -> bool:
    """Whether a value is not just a part of a longer word or number: not the 3 of `v3`, `30` or `1.3`."""
    text = match.string
    start = match.start()
    end = match.end()
    before = text[start - 1 : start]
    behind = text[end : end + 1]
    if _joined(before, text[start]) or _joined(text[end - 1], behind):
        return False
    if _NUMBER.fullmatch(match[0]) is None:
        return True

    fraction_before = before == "." and text[start - 2 : start - 1].isdigit()
    fraction_behind = behind == "." and text[end + 1 : end + 2].isdigit()
    return not (fraction_before or fraction_behind)


def _joined(one: str, other: str) -> bool:
    """Whether two characters side by side belong to one word. Scripts without blanks between words have no such thing."""
    return bool(one and other) and _in_word(one) and _in_word(other)


def _in_word(character: str) -> bool:
    return character == "_" or (character.isalnum() and unicodedata.category(character) != "Lo")


# --- what could be marked -----------------------------------------------------------------------

_ADDRESS: Final = re.compile(r"https?://[^\s\"'<>|;)]+")
_PATH: Final = re.compile(
    r"(?<![\w./:-])(?:~?/|\.{1,2}/)?(?:[\w.-]+/)*[\w-]+(?:\.[\w-]+)*\.[A-Za-z][A-Za-z0-9]{0,4}(?![\w/])"
)
_FOLDER: Final = re.compile(r"(?<![\w./:-])(?:~?/|\.{1,2}/)?(?:[\w.-]+/)+[\w.-]*")
_ALONE: Final = re.compile(r"(?<![\w.{-])-?[0-9]+(?:\.[0-9]+)?(?![\w}]|\.[0-9])")
_QUOTED: Final = re.compile(
    r"[\"“„«「『]([^\"“”„«»「」『』\n]{2,60})[\"”“»」』]|(?<!\w)'([^'\n]{2,60})'(?!\w)"
)
_WORD: Final = re.compile(r"[^\W\d_][\w-]*")
_OFFERED: Final = 12
"""The most values that are offered."""
_NAMED: Final = 3
"""The fewest characters of a word that could be a name, in a script that has letters."""


@dataclass(frozen=True, slots=True)
class OfferedValue:
    """A value of a plan that a person may want to leave open."""

    name: str
    """What the parameter could be called."""
    value: str


def offers(text: str) -> tuple[OfferedValue, ...]:
    """What could be left open in a plan: its files and addresses, the names in its goal, its numbers.

    Raises:
        PlanError: it is not a plan.
    """
    form = read_form(text)
    worked_on: list[tuple[str, str]] = []
    for step in form.steps:
        worked_on += [(key, written) for key, value in step.params.items() for written in _scalars(value)]
        worked_on.append(("", step.task))
    everything = [*worked_on, ("", form.goal), *(("", constraint) for constraint in form.constraints)]

    # What a step calls a value says more than that it is a file, so such a name replaces a kind.
    name_of: dict[str, str] = {}
    for key, written in everything:
        for value, name in _things(written, key):
            if name_of.get(value, "file") in ("address", "file", "folder"):
                name_of[value] = name

    for value in _names(form.goal, [written for _, written in worked_on]):
        if not any(value in longer for longer in name_of):
            name_of.setdefault(value, _as_name(value, "word"))

    for _, written in everything:
        for number in _ALONE.findall(_without(written, name_of)):
            name_of.setdefault(number, "number")
    return tuple(_with_names(list(name_of.items())[:_OFFERED]))


def _scalars(value: JSON) -> Iterator[str]:
    """The texts and numbers in a value, as they are written."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        yield json.dumps(value)
    elif isinstance(value, str):
        yield value
    else:
        for item in value if isinstance(value, list) else value.values():
            yield from _scalars(item)


def _things(text: str, key: str) -> Iterator[tuple[str, str]]:
    """The addresses, files and folders in a text, each with a name for it. `key`: the parameter whose value it is."""
    rest = text
    kinds: tuple[tuple[re.Pattern[str], str], ...] = (
        (_ADDRESS, "address"),
        (_PATH, "file"),
        (_FOLDER, "folder"),
    )
    for pattern, kind in kinds:
        for match in pattern.finditer(rest):
            value = match.group().rstrip(".,:")
            whole = value == text.strip() and NAME.match(key) is not None and key not in TAKEN
            yield value, key if whole else kind
        rest = pattern.sub(" ", rest)


def _names(goal: str, worked_on: Iterable[str]) -> Iterator[str]:
    """What the goal names: what it has in quotes, and words of it that a step works on."""
    for quoted in _QUOTED.findall(goal):
        yield from (name.strip() for name in quoted if name.strip())

    words = set(_WORD.findall(goal))
    for text in worked_on:
        for word in _WORD.findall(text):
            if word in words and (len(word) >= _NAMED or not word.isascii()):
                yield word


def _without(text: str, values: Iterable[str]) -> str:
    """A text without these values, the longest of which are taken out first."""
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, " ")
    return text


def _as_name(value: str, otherwise: str) -> str:
    """A value as the name of a parameter, as far as it can be one."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", value.lower()).strip("_-")
    return name if NAME.match(name) and name not in TAKEN else otherwise


def _with_names(values: Iterable[tuple[str, str]]) -> Iterator[OfferedValue]:
    """Give each value a name of its own: `file`, `file_2`, …"""
    taken: set[str] = set()
    for value, wanted in values:
        name = wanted
        count = 1
        while name in taken:
            count += 1
            name = f"{wanted}_{count}"

        taken.add(name)
        yield OfferedValue(name, value)
