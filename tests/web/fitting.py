"""Holds what a server sends to the types of `iact.web.wire`, wherever a test listens."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from functools import cache
from itertools import islice
from typing import Annotated, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError
from typing_extensions import is_typeddict

from iact.core.ports import JSON
from iact.web.commands import COMMANDS
from iact.web.wire import news

LOOKED_AT = 20
"""Of a long list, so many are looked at."""
_RECORD = ("n", "at", "kind", "agent", "step", "body")

_NEWS = {get_args(get_type_hints(one, None, {"JSON": JSON})["type"])[0]: one for one in get_args(news.News)}


class Traffic:
    """What one client asked, and what it was told."""

    def __init__(self) -> None:
        self._asked: dict[str, str] = {}

    def asked(self, frame: str | bytes) -> None:
        """A client sends this."""
        try:
            message = json.loads(frame)
            self._asked[json.dumps(message["id"])] = message["type"]
        except (ValueError, TypeError, KeyError, AttributeError):
            return  # tests send what is no message at all, too

    def told(self, frame: str | bytes) -> str:
        """What is wrong with what the server sends; "" if nothing is."""
        message = json.loads(frame)
        kind = message["type"]
        if kind == "error":
            return wrong(message, news.ErrorAnswer, "error")
        if kind == "ok":
            asked = self._asked.get(json.dumps(message["id"]))
            body = {name: value for name, value in message.items() if name not in ("type", "id")}
            if asked is None or asked not in COMMANDS:
                return ""
            return wrong(body, COMMANDS[asked].answer, f"ok of {asked}")
        if kind == "record":
            return _record(message, "record")
        return wrong(message, _NEWS[kind], kind) if kind in _NEWS else f"unknown news {kind!r}"


def wrong(value: object, hint: object, where: str) -> str:
    """Where a value does not fit its type; "" if it does."""
    if get_origin(hint) is Annotated:
        name = getattr(get_args(hint)[1], "name", "")
        if name == "JournalRecord":
            return _record(value, where)
        model = get_args(hint)[1]
        assert issubclass(model, BaseModel), model
        try:
            model.model_validate_json(json.dumps(value))
        except ValidationError as error:
            return f"{where}: {error}"
        return ""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        found = [wrong(value, one, where) for one in inner]
        return "" if "" in found else found[0]
    if origin is Literal:
        return "" if value in inner else f"{where} is {value!r}"
    if origin is list:
        if not isinstance(value, list):
            return f"{where} is no list"
        return next(
            filter(None, (wrong(one, inner[0], f"{where}[]") for one in islice(value, LOOKED_AT))), ""
        )
    if origin is tuple:
        if not isinstance(value, list) or len(value) != len(inner):
            return f"{where} has other parts than {inner}"
        return next(
            filter(None, (wrong(one, of, f"{where}[]") for one, of in zip(value, inner, strict=True))), ""
        )
    if origin is dict:
        if not isinstance(value, dict):
            return f"{where} is no object"
        return next(
            filter(None, (wrong(one, inner[1], f"{where}.{name}") for name, one in value.items())), ""
        )
    assert isinstance(hint, type), hint
    if is_typeddict(hint):
        return _object(value, hint, where)
    if hint is float:
        return "" if isinstance(value, int | float) else f"{where} is {value!r}"
    fits = isinstance(value, hint) and (hint is bool or not isinstance(value, bool))
    return "" if fits else f"{where} is {value!r}"


def _object(value: object, cls: type, where: str) -> str:
    if not isinstance(value, dict):
        return f"{where} is no object"
    fields = _fields(cls)
    for name, (hint, required) in fields.items():
        if name in value:
            found = wrong(value[name], hint, f"{where}.{name}")
            if found:
                return found
        elif required:
            return f"{where} has no {name}"
    more = value.keys() - fields.keys()
    return f"{where} has {sorted(more)}, which its type has not" if more else ""


def _record(value: object, where: str) -> str:
    if not isinstance(value, dict):
        return f"{where} is no object"
    missing = [name for name in _RECORD if name not in value]
    return f"{where} has no {missing}" if missing else ""


@cache
def _fields(cls: type) -> Mapping[str, tuple[object, bool]]:
    found = {}
    for name, hint in get_type_hints(cls, None, {"JSON": JSON}, include_extras=True).items():
        optional = get_origin(hint) is NotRequired
        found[name] = (get_args(hint)[0] if optional else hint, not optional)
    return found
