"""The argument grammar of action blocks: what follows the name on the info line.

    info      = name *( separator argument )
    argument  = key "=" value / value
    value     = '"' text with \\" and \\\\ '"'  /  "$" name  /  JSON array or object  /  bare word

A value inside of a JSON array or object may be `$name`, too (`core.language.nested`).

`split` is total: it returns arguments, or a sentence about the first text that it can't read. `bind` matches arguments
and body with an action's parameters. Mistakes of models that don't change the meaning are accepted: commas between
arguments, spaces around "=", single and curly quotes, a quoted number. Every other mistake is returned as a sentence
that names the parameter, the expected type and the value.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from iact.core.language.actions import ActionSpec
from iact.core.language.nested import Nested, end_of, read
from iact.core.language.variables import Value
from iact.core.ports import JSON

_KEY: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)[ \t]*=[ \t]*")
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_SINGLE: Final = re.compile(r"'((?:[^'\\]|\\.)*)'")
_CURLY: Final = re.compile(r"[“”]([^“”]*)[“”]")
_REFERENCE: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_BARE: Final = re.compile(r"""[^\s,"']+(?:,(?=\S)[^\s,"']+)*""")
_SEPARATOR: Final = re.compile(r"[\s,]*")
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_JSON: Final = json.JSONDecoder()
_WORDS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
SENTENCE: Final = "Nothing was run: "
"""How a quote begins that is never closed, and that is itself what its agent is told (`core.models.dialect`)."""

_SHOWN: Final = 200
"""The most characters of a wrong value that a sentence repeats."""

_READ: Final = 65_536
"""The most bytes of a variable that is read as a number, a choice, or JSON."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument as written. `key`: None for a positional one; `form`: how the value was written."""

    key: str | None
    text: str
    form: Literal["bare", "quoted", "reference"]


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with an action block."""

    sentence: str
    """It in one sentence, for the agent that wrote the block."""
    spec: ActionSpec | None = field(default=None, compare=False, repr=False)
    """The action, if its arguments could be read."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Arguments that match.

    `attached`: the variables that were passed by value, by parameter, or by JSON Pointer where one is inside of an
    argument (`core.language.nested`). `labels`: the sources of arguments that were read from a variable, by parameter (see `core.gate.provenance`).
    """

    arguments: Mapping[str, JSON]
    attached: Mapping[str, Value]
    labels: Mapping[str, frozenset[str]] = field(default_factory=dict)
    digests: list[str] = field(default_factory=list, compare=False, repr=False)
    """The digest of both, once it was computed."""


def split(info: str, *, nested: bool = True) -> tuple[str, tuple[Argument, ...]] | Mistake:
    """Split an info line into the action's name and its arguments.

    `nested`: `$name` may stand inside of a JSON argument.
    """
    name, rest = [*info.split(None, 1), "", ""][:2]
    arguments: list[Argument] = []
    position = _skip(rest, 0)
    while position < len(rest):
        key: str | None = None
        key_match = _KEY.match(rest, position)
        if key_match is not None:
            key = key_match.group(1)
            position = key_match.end()

        value = _value(rest, position, nested=nested)
        if value is None:
            return Mistake(_unreadable(name, key, rest[position:]))

        text, form, end = value
        arguments.append(Argument(key, text, form))
        position = _skip(rest, end)
    return name, tuple(arguments)


def _skip(text: str, position: int) -> int:
    match = _SEPARATOR.match(text, position)
    return match.end() if match else position


def _value(
    text: str, start: int, *, nested: bool
) -> tuple[str, Literal["bare", "quoted", "reference"], int] | None:
    """The value that begins at `start`, its form, and where it ends; None if there is none."""
    for pattern in (_DOUBLE, _SINGLE, _CURLY):
        quoted = pattern.match(text, start)
        if quoted is not None and _ends(text, quoted.end()):
            return re.sub(r"\\(.)", _unescape, quoted.group(1)), "quoted", quoted.end()

    if text.startswith(("[", "{"), start):
        try:
            _, end = _JSON.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start
        if end == start and nested:
            end = end_of(text, start) or start
        if end > start and _ends(text, end):
            return text[start:end], "bare", end

    reference = _REFERENCE.match(text, start)
    if reference is not None and _ends(text, reference.end()):
        return reference.group(1), "reference", reference.end()

    bare = _BARE.match(text, start)
    if bare is not None and _ends(text, bare.end()):
        return bare.group(), "bare", bare.end()
    return None


def _ends(text: str, position: int) -> bool:
    return position >= len(text) or text[position] in " \t,"


def _unescape(match: re.Match[str]) -> str:
    """What an escape means: a quote or a backslash; any other stays as it is written, as in `C:\\new`."""
    escaped = match.group(1)
    return escaped if escaped in "\"'\\" else match.group()


def _unreadable(name: str, key: str | None, rest: str) -> str:
    if rest.startswith(f'"{SENTENCE}'):
        return rest[1:]
    where = f"the argument `{key}`" if key else "an argument"
    return (
        f"`{name}` was not run: {where} can't be read at {_shown(rest)}. "
        'Write key=word, key="quoted text" (with \\" inside) or key=$variable.'
    )


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) > _SHOWN:
        text = f"{text[:_SHOWN]}…"
    return json.dumps(text, ensure_ascii=False)


def bind(
    spec: ActionSpec, arguments: tuple[Argument, ...], body: str | None, table: Mapping[str, Value]
) -> Bound | Mistake:
    """Match `arguments` and `body` (None: the block had no lines) with the parameters of `spec`."""
    given: dict[str, JSON] = {}
    attached: dict[str, Value] = {}
    labels: dict[str, frozenset[str]] = {}
    open_slots = [name for name in spec.properties if name != spec.body][: spec.words]

    for argument in arguments:
        if argument.key is None and spec.rest is not None:
            given[spec.rest] = f"{given.get(spec.rest, '')} {argument.text}".strip()
            continue

        # The parameter that it is for.
        if argument.key is None:
            slot = next((name for name in open_slots if name not in given and name not in attached), None)
            if slot is None:
                return _wrong(spec, f"{_shown(argument.text)} is one positional argument too many", hint=True)
        else:
            slot = argument.key
            if slot not in spec.properties:
                return _no_parameter(spec, slot, argument)
            if slot in given or slot in attached:
                return _wrong(spec, f"parameter `{slot}` is given twice")

        # Its value: a variable, an object that names variables, or as it is written.
        if argument.form == "reference":
            value = table.get(argument.text)
            if value is None:
                return _no_variable(spec, slot, argument.text, table)
            schema = spec.properties[slot]
            if _takes_any_text(schema):
                attached[slot] = value
                continue
            if value.size > _READ:
                return _wrong(
                    spec, f"parameter `{slot}` expects {_type(schema)}; ${argument.text} is too long"
                )
            # A mistake names the variable and shows nothing of it: otherwise its agent would read it without a record
            # of that.
            fitted = _fit(spec, slot, value.text().strip(), f"${argument.text}")
            labels[slot] = value.labels
        elif argument.form == "bare" and (inner := _nested(spec, slot, argument.text)) is not None:
            # Variables inside of an argument travel beside it, as whole ones do.
            for pointer, name in inner.names.items():
                value = table.get(name)
                if value is None:
                    return _no_variable(spec, slot, name, table)
                attached[f"/{slot}{pointer}"] = value
            fitted = _Fitted(inner.value)
        else:
            fitted = _fit(spec, slot, argument.text, _shown(argument.text))
        if isinstance(fitted, Mistake):
            return fitted
        given[slot] = fitted.value

    if body is not None and body.strip():
        if spec.body is None:
            return _wrong(spec, "it takes no body", hint=True)
        if spec.body in given or spec.body in attached:
            return _wrong(spec, f"parameter `{spec.body}` is given on the first line and in the body")
        given[spec.body] = body

    for name, schema in spec.properties.items():
        if name in spec.required and name not in given and name not in attached:
            where = " (the lines of the block)" if name == spec.body else ""
            return _wrong(spec, f"parameter `{name}`{where} of type {_type(schema)} is missing")
    return Bound(given, attached, labels)


@dataclass(frozen=True, slots=True)
class _Fitted:
    value: JSON


def _fit(spec: ActionSpec, name: str, text: str, shown: str) -> _Fitted | Mistake:
    """Read one value as the type in the schema. `shown`: how a mistake names it."""
    schema = spec.properties[name]
    for wanted in _types(schema):
        fitted = _read(text, wanted)
        if fitted is None:
            continue
        violated = _outside(schema, fitted.value)
        if violated is not None:
            return _wrong(spec, f"parameter `{name}` {violated}, not {shown}")
        return fitted
    return _wrong(spec, f"parameter `{name}` expects {_type(schema)}, not {shown}")


def _nested(spec: ActionSpec, slot: str, text: str) -> Nested | None:
    """A JSON argument that names variables; None if it names none, or is not of the parameter's type."""
    if not text.startswith(("[", "{")) or "$" not in text:
        return None

    schema = spec.properties[slot]
    nested = read(text, quoted=_holds_content(schema))
    if nested is None or not nested.names:
        return None

    written_as = "array" if isinstance(nested.value, list) else "object"
    return nested if written_as in _types(schema) else None


def _holds_content(schema: Mapping[str, JSON]) -> bool:
    """Whether what is in an object or a list of this schema is content, which nobody writes out by hand."""
    for key in ("additionalProperties", "items"):
        inner = schema.get(key)
        if isinstance(inner, dict) and "contentMediaType" in inner:
            return True
    return False


def _takes_any_text(schema: Mapping[str, JSON]) -> bool:
    """Whether a variable can be passed unread: the schema asks for any text, or for nothing in particular."""
    return "string" in _types(schema) and "enum" not in schema and "pattern" not in schema


def _types(schema: Mapping[str, JSON]) -> tuple[str, ...]:
    """The types that a value may have, in the order in which they are tried."""
    declared = schema.get("type")
    if isinstance(declared, str):
        return (declared,)
    if isinstance(declared, list):
        return _in_order([str(name) for name in declared])

    for union in ("anyOf", "oneOf"):
        options = schema.get(union)
        if isinstance(options, list):
            return _in_order(
                [name for option in options if isinstance(option, dict) for name in _types(option)]
            )

    if isinstance(schema.get("enum"), list):
        return ("string",)
    return ("boolean", "number", "string")


def _in_order(types: Sequence[str]) -> tuple[str, ...]:
    """Text last, because every value is one; null never, because nobody writes it."""
    return tuple(sorted([name for name in types if name != "null"], key=lambda name: name == "string"))


def _read(text: str, wanted: str) -> _Fitted | None:
    """A text as a value of the type `wanted`; None if it is none."""
    match wanted:
        case "string":
            return _Fitted(text)
        case "boolean":
            word = text.lower()
            return _Fitted(_WORDS[word]) if word in _WORDS else None
        case "integer":
            return _Fitted(int(text)) if _INTEGER.fullmatch(text) else None
        case "number":
            return _number(text)
        case _:
            return _json(text, wanted)


def _number(text: str) -> _Fitted | None:
    if _INTEGER.fullmatch(text):
        return _Fitted(int(text))
    if not _NUMBER.fullmatch(text):
        return None

    # `1e999` looks like a number and is none.
    number = float(text)
    return _Fitted(number) if math.isfinite(number) else None


def _json(text: str, wanted: str) -> _Fitted | None:
    try:
        value: JSON = json.loads(text)
    except (ValueError, RecursionError):
        return None

    kinds: dict[str, type] = {"array": list, "object": dict, "null": type(None)}
    return _Fitted(value) if isinstance(value, kinds.get(wanted, object)) else None


def _outside(schema: Mapping[str, JSON], value: JSON) -> str | None:
    """The violated constraint of the value's schema, as "must be …"; None if there is none."""
    options = schema.get("enum")
    if isinstance(options, list) and value not in options:
        return "must be one of " + ", ".join(_shown(option) for option in options)

    pattern = schema.get("pattern")
    if isinstance(pattern, str) and isinstance(value, str):
        matches = "\n" not in value and re.search(pattern, value) is not None
        if not matches:
            return f"must match {pattern}"

    if isinstance(value, (int, float)) and not isinstance(value, bool):
        low = schema.get("minimum")
        high = schema.get("maximum")
        if isinstance(low, (int, float)) and value < low:
            return f"must be at least {low}"
        if isinstance(high, (int, float)) and value > high:
            return f"must be at most {high}"
    return None


def _type(schema: Mapping[str, JSON]) -> str:
    names = " or ".join(_types(schema))
    return names or "a value"


def _wrong(spec: ActionSpec, what: str, *, hint: bool = False) -> Mistake:
    """A mistake in a call. `hint`: whether it also lists the parameters that there are."""
    sentence = f"`{spec.name}` was not run: {what}."
    if hint and spec.properties:
        known = ", ".join(f"`{name}` ({_type(schema)})" for name, schema in spec.properties.items())
        sentence = f"{sentence} Its parameters are {known}."
    return Mistake(sentence, spec)


_FOR_CONTENT: Final = ("stdin", "content", "names", "from")
"""Parameters that take a variable whole, in the order in which they are recommended."""


def _no_parameter(spec: ActionSpec, name: str, argument: Argument) -> Mistake:
    """The mistake of a parameter that does not exist, with what was probably meant."""
    instead = spec.instead.get(name.lower().replace("-", "_"))
    if instead is not None:
        return _wrong(spec, f"it has no parameter `{name}`; {instead}")

    close = difflib.get_close_matches(name, list(spec.properties), n=1)
    meant = f" (did you mean `{close[0]}`?)" if close else ""

    # Who passes a variable under a name of their own wants it to be passed, whatever the parameter is called.
    takes = next((parameter for parameter in _FOR_CONTENT if parameter in spec.properties), None)
    if argument.form == "reference" and takes is not None:
        value = f"${argument.text}"
        if takes == "names":
            value = f'{{"{argument.text}": ${argument.text}}}'
        meant = f"; to pass the variable, write {takes}={value}"
    return _wrong(spec, f"it has no parameter `{name}`{meant}", hint=True)


def _no_variable(spec: ActionSpec, slot: str, name: str, table: Mapping[str, Value]) -> Mistake:
    close = difflib.get_close_matches(name, list(table), n=1)
    meant = f"; the nearest name is ${close[0]}" if close else ""
    return _wrong(spec, f"parameter `{slot}` names the variable ${name}, which you don't have{meant}")
