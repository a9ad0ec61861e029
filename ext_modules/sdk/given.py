"""Parameters of a function whose JSON Schema is given rather than derived from a signature.

For modules that pass on functions defined elsewhere (an MCP server's tools). Only the most common mistakes are checked
here: names, and the types at the top level. The server that defined the schema checks the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ext_modules.sdk import nested
from ext_modules.sdk.nested import Given
from ext_modules.sdk.parameters import BadArguments, Schema
from ext_modules.sdk.values import JSON, Value

_IS: Final[Mapping[str, Callable[[JSON], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: not isinstance(value, bool)
    and (isinstance(value, int) or (isinstance(value, float) and value.is_integer())),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GivenParameters:
    """The parameters of a function, as the JSON Schema `given`, of type object.

    Its handler receives the `Call` as `call`, and all of the caller's arguments as one mapping, `arguments`.
    """

    given: Schema
    call: str = "call"

    @property
    def names(self) -> Sequence[str]:
        """The names of the parameters."""
        return list(self._properties)

    @property
    def _properties(self) -> Mapping[str, JSON]:
        properties = self.given.get("properties")
        return properties if isinstance(properties, dict) else {}

    def schema(self) -> Schema:
        """The JSON Schema, of type object."""
        return self.given

    def bind(self, arguments: Mapping[str, JSON], values: Mapping[str, Value]) -> dict[str, object]:
        """Return the keyword arguments for the function: `arguments`, checked.

        Raises:
            BadArguments: an argument is missing, unknown, given twice or of the wrong type.
        """
        written, values = nested.put_in(arguments, values)
        bound = {name: _as_json(value) for name, value in written.items()}
        for name in values:
            if name in bound:
                raise BadArguments(f"The parameter {name!r} is given twice; give it once.")
        unpacked = {name: self._unpacked(name, value) for name, value in values.items()}
        bound.update(unpacked)

        for name, argument in bound.items():
            self._check(name, argument)
        required = self.given.get("required")
        if isinstance(required, list):
            for needed in required:
                if needed not in bound:
                    raise BadArguments(f"The parameter {needed!r} is missing.")
        return {"arguments": bound}

    def _check(self, name: str, argument: JSON) -> None:
        """Raise BadArguments if the schema has no parameter of this name, or one of another type."""
        if name not in self._properties and self.given.get("additionalProperties") is False:
            takes = ", ".join(self.names) or "none"
            raise BadArguments(f"There is no parameter {name!r}; the parameters are: {takes}.")

        kinds = self._kinds(name)
        if kinds and not any(_IS[kind](argument) for kind in kinds):
            raise BadArguments(f"The parameter {name!r} takes {' or '.join(kinds)}.")

    def _kinds(self, name: str) -> list[str]:
        """The types that the schema names for a parameter; empty if it names none."""
        schema = self._properties.get(name)
        kind = schema.get("type") if isinstance(schema, dict) else None
        kinds = kind if isinstance(kind, list) else [kind]
        return [each for each in kinds if isinstance(each, str) and each in _IS]

    def _unpacked(self, name: str, value: Value) -> JSON:
        """Convert content passed by value for a parameter: its text, or the JSON it contains."""
        kinds = self._kinds(name)
        if not kinds or "string" in kinds:
            return value.text()

        try:
            parsed: JSON = json.loads(value.data)
        except (ValueError, RecursionError) as error:
            raise BadArguments(
                f"The parameter {name!r} takes {' or '.join(kinds)}, but the value is not JSON: {error}."
            ) from error
        return parsed


def _as_json(given: Given) -> JSON:
    """An argument in which content is text."""
    if isinstance(given, Value):
        return given.text()
    if isinstance(given, list):
        return [_as_json(item) for item in given]
    if isinstance(given, dict):
        return {key: _as_json(item) for key, item in given.items()}
    assert given is None or isinstance(given, (bool, int, float, str))
    return given
