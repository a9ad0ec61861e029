"""Reads an action whose arguments are written in another way than ours, if exactly one reading fits its schema.

An action that is written as the grammar says is bound as it is (`core.language.grammar`). Otherwise each of the
`_READINGS` says how else it can be meant, and what fits is taken if all that fit say the same. So nothing is guessed:
where two readings differ, or none fits, its agent is told what is wrong with what it wrote.

Two ways of writing an object would also fit a parameter that takes any text; they are read first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Final

from iact.core.language.actions import ActionSpec
from iact.core.language.grammar import SENTENCE, Argument, Bound, Mistake, bind, split
from iact.core.language.synonyms import parameter_meant
from iact.core.language.variables import Value
from iact.core.ports import JSON

Written = tuple[tuple[Argument, ...], str | None]
"""The arguments and the body of an action."""

_REFERENCE: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_COLON: Final = re.compile(r"(?<![^\s,])(?:--)?([A-Za-z_][\w-]*)[ \t]*(?::[ \t]*|[ \t]*=[ \t]*)(?=\S)")
_FLAG: Final = re.compile(r"(?<!\S)--([A-Za-z_][\w-]*)(?:[ \t]+(?!-)|[ \t]*$)")
_PAIR: Final = re.compile(r"[ \t]*([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*)|[ \t]*)")
_ANY_PAIR: Final = re.compile(r"[ \t]*([A-Za-z_][\w-]*)[ \t]*(?::(?=[ \t]|$)|=)[ \t]*(.*)")
_KEY: Final = re.compile(r"([A-Za-z_][\w-]*)[ \t]*=[ \t]*")
_NAMES_OF_THINGS: Final = frozenset(
    {"path", "url", "at", "of", "old", "new", "branch", "database", "other", "glob"}
)
"""Parameters whose values seldom have blanks: what stands behind such a value is another argument."""
_LATER_KEY: Final = re.compile(r"(?<=[ \t])([a-z_][a-z0-9_-]*)=(?=\S)")
_BLOCK_TEXT: Final = re.compile(r"[|>][-+]?")


def read_action(
    spec: ActionSpec, info: str, body: str | None, table: Mapping[str, Value], *, nested: bool = True
) -> Bound | Mistake:
    """Bind the arguments of an action block. `nested`: as in `split`."""
    rest = "".join(info.split(None, 1)[1:])
    as_object = _whole_object(spec, rest, body)
    if as_object is not None:
        arguments, lines = as_object
        bound = bind(spec, arguments, lines, table)
        if isinstance(bound, Bound):
            return bound

    # As the grammar says.
    parts = split(info, nested=nested)
    as_written: Bound | Mistake
    if isinstance(parts, Mistake):
        as_written = parts
    else:
        arguments, lines = _typed_lines(spec, parts[1], body)
        as_written = bind(spec, arguments, lines, table)
    if isinstance(as_written, Bound):
        marked = _other_marks_among_words(spec, rest, body, table)
        if marked is not None:
            return marked
        if not _goes_on(spec, parts):
            return as_written
    if SENTENCE in rest:
        return as_written

    # Otherwise, if all readings that fit say the same.
    readings = (_unquoted,) if isinstance(as_written, Bound) else _READINGS
    fitting: list[Bound] = []
    for reading in readings:
        for arguments, lines in reading(spec, rest, body):
            bound = bind(spec, arguments, lines, table)
            if isinstance(bound, Bound) and bound not in fitting:
                fitting.append(bound)
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        return as_written
    return _no_such_key(spec, rest, body, table) or as_written


def _other_marks_among_words(
    spec: ActionSpec, rest: str, body: str | None, table: Mapping[str, Value]
) -> Bound | None:
    """`WAIT a timeout: 60`: a parameter of an action of ours whose words without a name could be anything."""
    if not spec.core or spec.rest is None:
        return None

    line = _with_keys(spec, rest)
    if line == rest:
        return None
    for arguments, lines in _split(spec, line, body):
        bound = bind(spec, arguments, lines, table)
        if isinstance(bound, Bound):
            return bound
    return None


def _no_such_key(spec: ActionSpec, rest: str, body: str | None, table: Mapping[str, Value]) -> Mistake | None:
    """What is wrong with `key: value`, if the key is no parameter; None if there is none of that kind.

    Read as words, it would be wrong for a reason that its author does not understand.
    """
    line = _COLON.sub(lambda match: f"{match.group(1)}=", rest)
    parts = split(f"{spec.name} {line}")
    if line == rest or isinstance(parts, Mistake):
        return None

    _, arguments = parts
    if all(argument.key is None or argument.key in spec.properties for argument in arguments):
        return None
    bound = bind(spec, arguments, body, table)
    return bound if isinstance(bound, Mistake) else None


def _goes_on(spec: ActionSpec, taken: tuple[str, tuple[Argument, ...]] | Mistake) -> bool:
    """Whether a text without quotes seems to go on behind its first word: `role=a careful statistician`.

    The words behind it would fill parameters that nobody needs to give.
    """
    if isinstance(taken, Mistake) or spec.rest is not None:
        return False
    arguments = taken[1]
    for argument, following in pairwise(arguments):
        schema = spec.properties.get(argument.key or "", {})
        takes_any_text = schema.get("type") == "string" and "enum" not in schema and "pattern" not in schema
        if not takes_any_text or argument.key in _NAMES_OF_THINGS:
            continue

        a_word_follows = following.key is None and following.form == "bare"
        if argument.form == "bare" and a_word_follows:
            words = sum(other.key is None for other in arguments)
            named = {other.key for other in arguments}
            needed = [name for name in spec.required if name != spec.body and name not in named]
            return words > len(needed)
    return False


# --- objects ------------------------------------------------------------------------------------


def _whole_object(spec: ActionSpec, rest: str, body: str | None) -> Written | None:
    """Arguments as one JSON object behind the name, or as the whole body; None if they are not."""
    if rest.startswith("{"):
        values = _object(rest)
        if values is None or not _fits(spec, values):
            return None
        return _arguments(spec, values), body

    if rest or body is None or not body.lstrip().startswith("{"):
        return None
    values = _object(body)
    if values is None or not _fits(spec, values):
        return None

    # A body that is an object can be meant as it stands, unless it names the parameter that it would be.
    names_body = spec.body is None or any(_name(spec, key, values) == spec.body for key in values)
    if not names_body:
        return None
    return _arguments(spec, values), None


def _object(text: str) -> dict[str, JSON] | None:
    """A text as a JSON object that is not empty; None if it is anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value else None


def _fits(spec: ActionSpec, given: Mapping[str, JSON]) -> bool:
    return all(_name(spec, key, given) in spec.properties for key in given)


def _name(spec: ActionSpec, key: str, given: Mapping[str, JSON]) -> str:
    return parameter_meant(spec, key, given) or key


def _arguments(spec: ActionSpec, given: Mapping[str, JSON]) -> tuple[Argument, ...]:
    """The values of an object as arguments; a text that is exactly `$name` is that variable, and null is none."""
    arguments: list[Argument] = []
    for key, value in given.items():
        name = _name(spec, key, given)
        if value is None:
            continue
        if not isinstance(value, str):
            arguments.append(Argument(name, json.dumps(value, ensure_ascii=False), "bare"))
            continue

        reference = _REFERENCE.fullmatch(value)
        if reference is None:
            arguments.append(Argument(name, value, "quoted"))
        else:
            arguments.append(Argument(name, reference.group(1), "reference"))
    return tuple(arguments)


# --- other ways ---------------------------------------------------------------------------------


def _other_marks(spec: ActionSpec, rest: str, body: str | None) -> Iterator[Written]:
    """`key: value`, `--key value`, and other names of parameters."""
    yield from _split(spec, _with_keys(spec, rest), body)


def _with_keys(spec: ActionSpec, rest: str) -> str:
    """A line whose `--key value` and `key: value` are `key=value`, where the key is a parameter."""
    line = _FLAG.sub(lambda match: _as_key(spec, match), rest)
    return _COLON.sub(lambda match: _as_key(spec, match), line)


def _as_key(spec: ActionSpec, match: re.Match[str]) -> str:
    name = match.group(1)
    known = name in spec.properties or parameter_meant(spec, name, ())
    if not known:
        return match.group()
    at_end = match.end() == len(match.string)
    return f"{name}=true" if at_end else f"{name}="


def _split(spec: ActionSpec, line: str, body: str | None) -> Iterator[Written]:
    parts = split(f"{spec.name} {line}")
    if isinstance(parts, Mistake):
        return

    written = {argument.key for argument in parts[1] if argument.key is not None}
    arguments: list[Argument] = []
    for argument in parts[1]:
        key = argument.key
        if key is not None:
            key = parameter_meant(spec, key, written) or key
        arguments.append(Argument(key, argument.text, argument.form))

    yield tuple(arguments), body
    moved = _body_among_words(spec, tuple(arguments), body)
    if moved is not None:
        yield moved


def _body_among_words(spec: ActionSpec, arguments: tuple[Argument, ...], body: str | None) -> Written | None:
    """The only word without a name as the body of a block without lines; None if there are several."""
    words = [argument for argument in arguments if argument.key is None]
    if len(words) != 1 or spec.body is None or spec.rest is not None:
        return None
    has_lines = body is not None and bool(body.strip())
    if has_lines:
        return None

    others = tuple(argument for argument in arguments if argument.key is not None)
    return (*others, Argument(spec.body, words[0].text, words[0].form)), None


def _unquoted_with_colons(spec: ActionSpec, rest: str, body: str | None) -> Iterator[Written]:
    """`role: a careful reader`, up to the next `key:`."""
    line = _COLON.sub(lambda match: _as_key(spec, match), rest)
    if line != rest:
        yield from _unquoted(spec, line, body)


def _unquoted(spec: ActionSpec, rest: str, body: str | None) -> Iterator[Written]:
    """Values that go on to the next `key=` or to the end of the line, without their quotes."""
    keys = [match for match in _KEY.finditer(rest) if match.group(1) in spec.properties]
    if not keys:
        return
    before = split(f"{spec.name} {rest[: keys[0].start()]}")
    if isinstance(before, Mistake):
        return

    arguments = list(before[1])
    ends = [*[key.start() for key in keys[1:]], len(rest)]
    for key, end in zip(keys, ends, strict=True):
        value = rest[key.end() : end].strip(" \t,")
        alone = split(f"{spec.name} {key.group(1)}={value}")
        if not isinstance(alone, Mistake) and len(alone[1]) == 1:
            arguments += alone[1]
            continue

        # Behind it stands a parameter that does not exist, which must be said.
        begins_otherwise = value[:1] in ('"', "'", "“", "[", "{", "$", "")
        if begins_otherwise or _LATER_KEY.search(value):
            return
        arguments.append(Argument(key.group(1), value, "quoted"))
    yield tuple(arguments), body


def _lists(spec: ActionSpec, rest: str, body: str | None) -> Iterator[Written]:
    """A word, or words with commas between them, where a list of texts is wanted: `files=a.py,b.py`."""
    taken = split(f"{spec.name} {rest}")
    if isinstance(taken, Mistake):
        return
    arguments: list[Argument] = []
    for argument in taken[1]:
        words = [word.strip() for word in argument.text.split(",")]
        is_list = argument.form != "reference" and not argument.text.lstrip().startswith("[") and all(words)
        if is_list and _takes_texts(spec.properties.get(argument.key or "", {})):
            arguments.append(Argument(argument.key, json.dumps(words), "bare"))
        else:
            arguments.append(argument)
    yield tuple(arguments), body


def _takes_texts(schema: Mapping[str, JSON]) -> bool:
    """Whether a parameter takes a list of texts, and no single text."""
    union = schema.get("anyOf")
    schemas = union if isinstance(union, list) else [schema]
    options = [option for option in schemas if isinstance(option, dict)]
    if any(option.get("type") == "string" for option in options):
        return False
    items = [option.get("items") for option in options if option.get("type") == "array"]
    return any(isinstance(item, dict) and item.get("type") == "string" for item in items)


def _body_on_the_line(spec: ActionSpec, rest: str, body: str | None) -> Iterator[Written]:
    """What stands behind the arguments on the first line as the body of a block without lines."""
    if spec.body is None or spec.body not in spec.required:
        return
    has_lines = body is not None and bool(body.strip())
    if has_lines:
        return

    position = 0
    arguments: list[Argument] = []
    while (match := _KEY.match(rest, position)) is not None and match.group(1) in spec.properties:
        word = rest[match.start() :].split(None, 1)[0]
        alone = split(f"{spec.name} {word}")
        if isinstance(alone, Mistake) or len(alone[1]) != 1:
            return
        arguments += alone[1]
        position = match.start() + len(word)
        position += len(rest[position:]) - len(rest[position:].lstrip())

    text = rest[position:].strip()
    if not text or any(match.group(1) in spec.properties for match in _LATER_KEY.finditer(text)):
        return
    alone = split(f"{spec.name} {text}")
    if not isinstance(alone, Mistake):
        if all(argument.key is not None for argument in alone[1]):
            # Parameters that do not exist, which must be said.
            return
        if len(alone[1]) == 1 and alone[1][0].form == "quoted":
            text = alone[1][0].text
    yield tuple(arguments), text


# --- arguments in the first lines of the body ---------------------------------------------------


def _typed_lines(
    spec: ActionSpec, arguments: tuple[Argument, ...], body: str | None
) -> tuple[tuple[Argument, ...], str | None]:
    """Take `key: value` from the beginning of a body where the value is a number, a choice, or yes and no.

    No script and no message begins like that. A line whose value is any text is only taken if it must be.
    """
    if body is None or spec.body is None:
        return arguments, body
    if not _PAIR.match(body):
        return arguments, body

    named = {argument.key for argument in arguments}
    from_lines: list[Argument] = []
    lines = body.split("\n")
    while len(from_lines) < len(lines):
        match = _PAIR.fullmatch(lines[len(from_lines)])
        if match is None:
            break

        name = match.group(1)
        value = (match.group(2) or "").strip()
        argument = Argument(name, value.strip("\"'"), "quoted")
        if name in named or not _is_typed(spec, argument):
            break
        from_lines.append(argument)
        named.add(name)

    if not from_lines:
        return arguments, body
    return (*arguments, *from_lines), "\n".join(lines[len(from_lines) :])


def _is_typed(spec: ActionSpec, argument: Argument) -> bool:
    """Whether an argument is for a parameter of a few values or a number, and is one of those."""
    name = argument.key or ""
    schema = spec.properties.get(name, {})
    takes_few = schema.get("type") in ("number", "integer", "boolean") or "enum" in schema
    if not takes_few:
        return False

    alone = ActionSpec(spec.name, "", parameters={"type": "object", "properties": {name: dict(schema)}})
    return isinstance(bind(alone, (argument,), None, {}), Bound)


def _first_lines(spec: ActionSpec, rest: str, body: str | None) -> Iterator[Written]:
    """`key: value` in the first lines of the body, up to a line that is none."""
    parts = split(f"{spec.name} {rest}")
    if isinstance(parts, Mistake) or body is None:
        return

    on_the_line = parts[1]
    arguments = list(on_the_line)
    named = {argument.key for argument in on_the_line if argument.key is not None}
    lines = body.strip("\n").split("\n")
    while lines and (match := _ANY_PAIR.fullmatch(lines[0])) is not None:
        key = match.group(1)
        value = (match.group(2) or "").strip()
        name = key
        if key not in spec.properties:
            name = parameter_meant(spec, key, named)
        if not name or name in named:
            break

        del lines[0]
        named.add(name)
        if name == spec.body:
            # All that follows is the body; `|` behind the key says that its lines are indented.
            is_block = not value or _BLOCK_TEXT.fullmatch(value) is not None
            first = [] if is_block else [value]
            yield tuple(arguments), "\n".join([*first, *_dedented(lines, block=is_block)])
            return
        arguments += _value_of(name, value)

    if len(arguments) == len(on_the_line):
        return
    while lines and lines[0].strip() in ("", "---"):
        del lines[0]
    yield tuple(arguments), "\n".join(lines) if lines else None


def _value_of(name: str, value: str) -> tuple[Argument, ...]:
    """A value at the end of a line, with or without quotes."""
    alone = split(f"x {name}={value}")
    if not isinstance(alone, Mistake) and len(alone[1]) == 1:
        return alone[1]
    return (Argument(name, value, "quoted"),)


def _dedented(lines: list[str], *, block: bool) -> list[str]:
    """Lines below a key, without the indentation that all of them have."""
    depths = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip()]
    depth = min(depths, default=0) if block else 0
    return [line[depth:] for line in lines]


_READINGS: Final[tuple[Callable[[ActionSpec, str, str | None], Iterator[Written]], ...]] = (
    _other_marks,
    _lists,
    _unquoted,
    _unquoted_with_colons,
    _body_on_the_line,
    _first_lines,
)
