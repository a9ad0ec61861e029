"""Writes action blocks: the one form in which the journal, the history and the prompt know an action."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from iact.core.characters import paired
from iact.core.language.actions import ActionSpec
from iact.core.language.synonyms import parameter_meant
from iact.core.ports import JSON

_REFERENCE: Final = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
_BREAKS: Final = re.compile(r"[\r\n]")
_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def block(info: str, body: str | None) -> str:
    """A fenced block whose fence nothing inside can close. `info`: one line."""
    mark = "~" if "`" in info else "`"
    longest = max((len(run) for run in re.findall(f"{mark}+", body or "")), default=0)
    fence = mark * max(3, longest + 1)

    if not body:
        return f"{fence}{paired(info)}\n{fence}"
    return f"{fence}{paired(info)}\n{paired(body)}\n{fence}"


def written(value: JSON) -> str:
    """A value in the argument grammar, which has no line ends in texts; they become spaces."""
    if isinstance(value, str) and _REFERENCE.fullmatch(value):
        return value
    if isinstance(value, str):
        text = _BREAKS.sub(" ", value).replace("\\", "\\\\").replace('"', '\\"')
        return f'"{text}"'
    return json.dumps(value, ensure_ascii=False)


class CallWriter:
    """Writes the calls of one reply, whose texts of several lines become variables where the body can't hold them."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        """How many variables were made for the parameters of a name."""

    def blocks(self, spec: ActionSpec, arguments: Mapping[str, JSON], words: Sequence[JSON] = ()) -> str:
        """A call as action blocks. `words`: arguments without a name, in the order of the function's parameters."""
        named = self._named(spec, arguments, words)
        body: JSON = None
        if spec.body is not None:
            body = named.pop(spec.body, None)

        known = {name: value for name, value in named.items() if _KEY.fullmatch(name)}
        if isinstance(body, str) and _REFERENCE.fullmatch(body):
            known[spec.body or ""] = body
            body = None
        return "\n\n".join(self.call(spec.name, known, _text(body)))

    def call(self, action: str, arguments: Mapping[str, JSON], body: str | None) -> list[str]:
        """The blocks of a call: its own, behind those of the variables that hold its texts of several lines."""
        before: list[str] = []
        line = [action]
        for name, value in arguments.items():
            if isinstance(value, str) and _BREAKS.search(value) and value.strip():
                variable = self._variable(name)
                before.append(block(f"VAR {variable}", value))
                line.append(f"{name}=${variable}")
            elif value is not None:
                line.append(f"{name}={written(value)}")
        return [*before, block(" ".join(line), body)]

    def _variable(self, parameter: str) -> str:
        """A name for the value of a parameter, which it says: `old_1`."""
        number = self._numbers.get(parameter, 0) + 1
        self._numbers[parameter] = number
        return f"{parameter.replace('-', '_')}_{number}"

    def _named(
        self, spec: ActionSpec, arguments: Mapping[str, JSON], words: Sequence[JSON]
    ) -> dict[str, JSON]:
        """All arguments by name."""
        named: dict[str, JSON] = {}
        for key, value in arguments.items():
            named[parameter_meant(spec, key, arguments) or key] = value

        slots = self._slots(spec, named)
        return {**named, **dict(zip(slots, words, strict=False))}

    @staticmethod
    def _slots(spec: ActionSpec, given: Mapping[str, JSON]) -> Iterator[str]:
        """The parameters that words without a name fill: a single required one first, then in order."""
        missing = [name for name in spec.properties if name not in given]
        required = [name for name in missing if name in spec.required]
        first = required[:1] if len(required) == 1 else []
        yield from [*first, *(name for name in missing if name not in first)]


def _text(body: JSON) -> str | None:
    if body is None or isinstance(body, str):
        return body
    return json.dumps(body, ensure_ascii=False)
