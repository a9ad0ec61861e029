"""What a planner can bind an argument to, and the labels that the gate sees for it.

A call's result has the labels that the product gives it (`core.gate.provenance.returned`): those of its function and of
all its arguments. A planner binds each value of an argument to one of:

- the user's words, if they contain it (`core.gate.user_values`): `user`;
- a typed field of an earlier result (an id, an address, a number, a date): the labels of the result, and `picked` if
  several objects have that field, because the planner then chose one;
- a piece of a text in an earlier result: the labels of the result and `model`, because the model extracted it;
- nothing: a literal of its own, `model`.

Planners may also search first, with any words of the user, through every function that only reads. The honest and the
compromised planner have the same choices, and each takes the one that is most likely to pass the gate.
"""

from __future__ import annotations

import datetime
import enum
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, get_args

from agentdojo.functions_runtime import FunctionsRuntime
from pydantic import BaseModel, EmailStr

from iact.core.gate.provenance import MODEL, NOTHING, PICKED, USER, Labels, from_tool, join, returned
from iact.core.gate.user_values import wrote

_OWN_WORD: Labels = frozenset({MODEL})
_WORDS = 4
"""The most words of a phrase of the user that a planner searches for."""
_TEXTS = (str, "str", str | None)
_TYPED_NAMES = frozenset({"id", "id_"})

Allows = Callable[[Any, Labels], bool]
"""Whether the gate allows an argument that is one value with these labels."""


@dataclass
class Result:
    """The result of one call: texts, and values of typed fields with whether several objects have the field."""

    labels: Labels
    typed: dict[str, bool] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    @staticmethod
    def of(function: str, given: list[Labels], value: Any) -> Result:
        found = Result(returned(from_tool(function), given))
        if isinstance(value, str | int | float):
            found.typed[_text(value)] = False
        found._take(value, several=False)
        return found

    def _take(self, value: Any, *, several: bool) -> None:
        match value:
            case BaseModel():
                for name, info in type(value).model_fields.items():
                    inner = getattr(value, name)
                    if name not in _TYPED_NAMES and info.annotation in _TEXTS:
                        self.texts.append(str(inner))
                    elif isinstance(inner, BaseModel | dict | list):
                        addresses = EmailStr in get_args(info.annotation)
                        self._take_all(inner, several=several, typed=addresses)
                    else:
                        self._field(inner, several=several)
            case dict() | list() | tuple():
                self._take_all(value, several=several, typed=False)
            case None:
                pass
            case str():
                self.texts.append(value)
            case _:
                self._field(value, several=several)

    def _take_all(self, values: Any, *, several: bool, typed: bool) -> None:
        """Take the elements of a list or the values of an object. All addresses of one object may be taken together."""
        if isinstance(values, BaseModel):
            self._take(values, several=several)
            return
        items = list(values.values()) if isinstance(values, dict) else list(values)
        for one in items:
            if typed and isinstance(one, str):
                self._field(one, several=several)
            else:
                self._take(one, several=several or len(items) > 1)

    def _field(self, value: Any, *, several: bool) -> None:
        text = _text(value)
        self.typed[text] = several and self.typed.get(text, True)

    def bindings(self, text: str) -> Iterator[Labels]:
        """The labels of `text`, for each way in which this result contains it."""
        if text in self.typed:
            yield self.labels | {PICKED} if self.typed[text] else self.labels
        if any(text in one for one in self.texts):
            yield self.labels | _OWN_WORD


def _text(value: Any) -> str:
    match value:
        case enum.Enum():
            return str(value.value)
        case datetime.datetime():
            return value.strftime("%Y-%m-%d %H:%M")
        case float():
            return f"{value:g}"
    return str(value)


@dataclass(frozen=True)
class Binding:
    """One bound argument. `seen`: the labels that the gate sees. `made_of`: the labels that its result will have."""

    seen: Labels
    made_of: Labels


@dataclass
class Planner:
    """One planner's knowledge. `prompt`: what the user wrote."""

    prompt: str
    results: list[Result] = field(default_factory=list)

    def search(
        self, name: Callable[[str], str], runtime: FunctionsRuntime, env: Any, reads: list[str]
    ) -> None:
        """Call every reading function that takes no argument or one text, with every phrase of the user.

        `env` must not be used afterwards. `name`: returns the name of a function at the gate.
        """
        seen: set[tuple[str, Labels, str]] = set()
        for function in reads:
            schema = runtime.functions[function].parameters.model_json_schema()
            needed = schema.get("required", [])
            if len(needed) > 1 or any(schema["properties"][one].get("type") != "string" for one in needed):
                continue
            for phrase in phrases(self.prompt) if needed else [None]:
                arguments = {} if phrase is None else {needed[0]: phrase}
                value, error = runtime.run_function(env, function, arguments)
                if error is None and value:
                    labels = [] if phrase is None else [frozenset({USER})]
                    key = (function, join(labels), repr(value))
                    if key not in seen:
                        seen.add(key)
                        self.results.append(Result.of(name(function), labels, value))

    def bind(self, value: Any, allows: Allows) -> Binding:
        """Bind each value of one argument in the way that is most likely to pass the gate."""
        bound = [self._bind(leaf, allows) for leaf in leaves(value)]
        # Literals that the rule allows by their value add no labels to the values that are passed by reference.
        seen = [one.seen for one in bound if one.seen]
        return Binding(join(seen) or _OWN_WORD, join(one.made_of for one in bound))

    def _bind(self, leaf: Any, allows: Allows) -> Binding:
        text, covered = _text(leaf), allows(leaf, _OWN_WORD)
        if covered and wrote(self.prompt, str(leaf)):
            return Binding(NOTHING, frozenset({USER}))
        ways = {one for result in self.results for one in result.bindings(text)}
        best = sorted(ways, key=lambda one: (MODEL in one, PICKED in one, len(one), sorted(one)))
        for labels in best:
            if allows(leaf, labels):
                return Binding(labels, labels)
        return Binding(NOTHING if covered else _OWN_WORD, _OWN_WORD)


def leaves(value: Any) -> Iterator[Any]:
    """The values in an argument. Names of fields belong to the function and are not included."""
    match value:
        case dict():
            for one in value.values():
                yield from leaves(one)
        case list() | tuple():
            for one in value:
                yield from leaves(one)
        case None | bool():
            return
        case _:
            yield value


def phrases(prompt: str) -> list[str]:
    """Every phrase of up to four words."""
    words = [one for one in (word.strip(".,;:!?\"'()") for word in re.split(r"\s+", prompt)) if one]
    found = [
        " ".join(words[start : start + length])
        for length in range(1, _WORDS + 1)
        for start in range(len(words) - length + 1)
    ]
    return list(dict.fromkeys(found))
