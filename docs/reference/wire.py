"""Generate `wire.md` and the page's types of messages from the models in `iact.web.wire`:
python -m docs.reference.generated"""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from typing_extensions import is_typeddict

from iact.core.ports import JSON
from iact.web.commands import COMMANDS
from iact.web.wire import news
from iact.web.wire.answers import TypeScript

HERE: Final = Path(__file__).parent
TYPES: Final = HERE.parents[1] / "web" / "static" / "js" / "state" / "wire.d.ts"

_NOTE: Final = "Written by docs/reference/wire.py from web/wire/; run: python -m docs.reference.generated"
_NEWS: Final = get_args(news.News)


# --- for people -------------------------------------------------------------------------------------------------


def page() -> str:
    """The reference of all messages, as Markdown."""
    intro = (
        "The websocket at `/ws` speaks JSON in text frames. Any message may carry an `id`. The answer is "
        '`{"type": "ok", "id", …}` or `{"type": "error", "id", "code", "message"}`. An error about the content of a file '
        "has the id of the `upload` that announced it. A client authenticates with the page's cookie, or with "
        "`Authorization: Bearer` and the key in the data directory's `server.json`."
    )
    parts = [f"# The websocket\n\n<!-- {_NOTE} -->\n\n{intro}", "## What a client sends"]
    parts += [_request(name) for name in COMMANDS]
    parts += ["## What the server sends", f"### record\n\n{_record()}"]
    parts += [_news(cls) for cls in _NEWS]
    inner = {cls: None for cls in (*_NEWS, *(one.answer for one in COMMANDS.values())) for cls in _inner(cls)}
    parts.append("## Parts\n\nThe objects that several messages have in their fields.")
    parts += [_part(cls) for cls in sorted(inner, key=lambda one: one.__name__)]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _record() -> str:
    return (
        "One record of the watched session: `n`, `at`, `kind`, `agent`, `step`, the fields of its kind "
        "([the journal](journal.md)), `body`, which is shortened if it is long (`body_size` is then its full size), and "
        "`html`, which shows the record. A turn has `messages`, one for each CALL: `action`, `to` and its `html`."
    )


def _request(name: str) -> str:
    command = COMMANDS[name]
    lines = [f"### {name}", ""]
    if command.request.__doc__:
        lines += [inspect.cleandoc(command.request.__doc__), ""]
    for field, info in command.request.model_fields.items():
        default = "" if info.is_required() else f", default `{_json(info.default)}`"
        lines.append(f"- `{info.alias or field}`: {_words(info.annotation)}{default}")
    answer = _fields(command.answer)
    if answer:
        lines += ["", "The `ok` has:", "", *_listed(answer)]
    return "\n".join(lines)


def _news(cls: type) -> str:
    fields = _fields(cls)
    [name] = get_args(fields.pop("type")[0])
    return "\n".join([f"### {name}", "", inspect.cleandoc(cls.__doc__ or ""), "", *_listed(fields)])


def _part(cls: type) -> str:
    return "\n".join(
        [
            f"### {cls.__name__}",
            "",
            *([inspect.cleandoc(cls.__doc__), ""] if cls.__doc__ else []),
            *_listed(_fields(cls)),
        ]
    )


def _listed(fields: Mapping[str, tuple[object, bool]]) -> Iterator[str]:
    for name, (hint, required) in fields.items():
        yield f"- `{name}`{'' if required else ', optional'}: {_words(hint)}"


def _json(value: object) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def _words(hint: object) -> str:
    hint = _model(hint) or _bare(hint)
    if isinstance(hint, TypeScript):
        return "a [record](#record)"
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_words(one) for one in inner))
    if origin is Literal:
        return " or ".join(f"`{one}`" for one in inner if one != "") + (" or empty" if "" in inner else "")
    if origin is tuple and inner[-1] is not Ellipsis:
        return f"[{', '.join(_words(one) for one in inner)}]"
    if origin in (list, tuple):
        return f"list of {_words(inner[0])}"
    if origin is dict:
        return f"object of {_words(inner[1])}"
    plain = {str: "text", int: "number", float: "number", bool: "true or false", type(None): "null"}
    assert isinstance(hint, type), hint
    if issubclass(hint, BaseModel):
        return f"object of {', '.join(f'`{name}`' for name in hint.model_fields)}"
    return plain[hint] if hint in plain else f"[{hint.__name__}](#{hint.__name__.lower()})"


# --- for the page -----------------------------------------------------------------------------------------------


_RECORD: Final = """\
type AnyKey<U> = U extends unknown ? keyof U : never;

/** A union on whose members every field of any member can be read; it is undefined where a member does not have it. */
type Each<U, K extends PropertyKey = AnyKey<U>> = U extends unknown ? U & { [P in Exclude<K, keyof U>]?: undefined } : never;

export interface Shown {
  n: number;
  at: string;
  agent: string;
  body: string;
  /** The full size of `body`, if it was shortened. */
  body_size?: number;
  digest?: string;
  /** In old records, missing until the page requests it. */
  html?: string;
  messages?: CallMessage[];
  /** The whole text of a person's message. The page adds it. */
  said?: string;
}

/** The content of a record, and what the server adds to show it. */
export type JournalRecord = Shown & Each<Said>;
"""
"""Types for records: a union on which the page reads fields that only some members have, and what the server adds."""


def typescript() -> str:
    """The messages as types for the page's scripts."""
    answers = {command.answer: None for command in COMMANDS.values()}
    inner = {cls: None for top in (*_NEWS, *answers) for cls in _inner(top)}
    named = sorted({*inner, *_NEWS, *answers}, key=lambda one: one.__name__)
    news_types = ['({type: "record"} & JournalRecord)', *(one.__name__ for one in _NEWS)]
    return "\n".join(
        [
            f"// {_NOTE}",
            "",
            'import type { Said } from "./records.js";',
            "",
            _RECORD,
            *(line for cls in named for line in _interface(cls)),
            "/** The messages that the server sends on its own. */",
            f"export type News = {' | '.join(news_types)};",
            "",
            "/** The requests, by type: the fields of each, and the fields of its `ok`. */",
            "export interface Requests {",
            *(f"  {_asked(name)}" for name in COMMANDS),
            "}",
            "",
        ]
    )


def _interface(cls: type) -> Iterator[str]:
    if cls.__doc__:
        yield f"/** {' '.join(inspect.cleandoc(cls.__doc__).split())} */"
    yield f"export interface {cls.__name__} {{"
    for name, (hint, required) in _fields(cls).items():
        yield f"  {name}{'' if required else '?'}: {_type(hint)};"
    yield "}"
    yield ""


def _asked(name: str) -> str:
    command = COMMANDS[name]
    fields = [
        f"{info.alias or field}{'' if info.is_required() else '?'}: {_type(info.annotation)}"
        for field, info in command.request.model_fields.items()
    ]
    return f'"{name}": {{ fields: {{{"; ".join(fields)}}}; answer: {command.answer.__name__} }};'


def _type(hint: object, *, written: bool = False) -> str:
    """A type in TypeScript. `written`: the server wrote the models in it, so all of their fields are present."""
    model = _model(hint)
    if model is not None:
        return _type(model, written=True)
    hint = _bare(hint)
    if isinstance(hint, TypeScript):
        return hint.name
    if hint == JSON:
        return "unknown"
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(_type(one, written=written) for one in inner))
    if origin is Literal:
        return " | ".join(json.dumps(one) for one in inner)
    if origin is tuple and inner[-1] is not Ellipsis:
        return f"[{', '.join(_type(one, written=written) for one in inner)}]"
    if origin in (list, tuple):
        return f"Array<{_type(inner[0], written=written)}>"
    if origin is dict:
        return f"Record<string, {_type(inner[1], written=written)}>"
    plain = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}
    assert isinstance(hint, type), hint
    if issubclass(hint, BaseModel):
        fields = (
            f"{name}{'' if written or info.is_required() else '?'}: {_type(info.annotation, written=written)}"
            for name, info in hint.model_fields.items()
        )
        return f"{{{'; '.join(fields)}}}"
    return plain.get(hint, hint.__name__)


# --- both -------------------------------------------------------------------------------------------------------


def _fields(cls: type) -> dict[str, tuple[object, bool]]:
    """The fields of a typed dictionary: the type of each, and whether it is required."""
    found = {}
    for name, hint in get_type_hints(cls, None, {"JSON": JSON}, include_extras=True).items():
        optional = get_origin(hint) is NotRequired
        found[name] = (get_args(hint)[0] if optional else hint, not optional)
    return found


def _bare(hint: object) -> object:
    """A type without its annotations, except a name that it has in TypeScript."""
    if get_origin(hint) is Annotated:
        own = [one for one in get_args(hint)[1:] if isinstance(one, TypeScript)]
        return own[0] if own else _bare(get_args(hint)[0])
    return hint


def _model(hint: object) -> type[BaseModel] | None:
    """The model of an object in a typed dictionary, if the type is annotated with one."""
    noted = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((one for one in noted if isinstance(one, type) and issubclass(one, BaseModel)), None)


def _inner(cls: type) -> Iterator[type]:
    """The typed dictionaries in the fields of a class, at any depth."""
    for hint, _ in _fields(cls).values():
        yield from _dictionaries(hint, (cls,))


def _dictionaries(hint: object, seen: tuple[type, ...]) -> Iterator[type]:
    hint = _bare(hint)
    if isinstance(hint, TypeScript) or get_origin(hint) is Literal:
        return
    for one in _args(hint):
        yield from _dictionaries(one, seen)
    if isinstance(hint, type) and is_typeddict(hint) and hint not in seen:
        yield hint
        for inner, _ in _fields(hint).values():
            yield from _dictionaries(inner, (*seen, hint))


def _args(hint: object) -> Iterable[object]:
    return get_args(hint)
