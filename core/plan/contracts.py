"""Whether an output satisfies its node's contract: first the deterministic rules, then the judged one.

Code checks its rules first, because they are nearly certain, and only then a model judges. The kind of rule that passed
an output is recorded, because a plan is only as reliable as its validations (Graph Harness, theorem 6.3). What can't be
checked has not passed: the contract fails closed.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

import jsonschema

from iact.core.plan.model import NO_ERROR, Contract
from iact.core.plan.pattern import Pattern
from iact.core.plan.protocol import StepSuccess
from iact.core.ports import JSON

_MAX_DEPTH: Final = 16
"""The deepest nesting of a contract's schema."""

_UNSAFE: Final = frozenset(
    {"pattern", "patternProperties", "propertyNames", "$ref", "$dynamicRef", "unevaluatedProperties", "unevaluatedItems",
     "uniqueItems", "format"}
)  # fmt: skip
"""Keywords that jsonschema knows, and that could run for ever, reach outside, or depend on what is installed."""
_CHECKED: Final = (
    frozenset(jsonschema.Draft202012Validator.VALIDATORS) | {"then", "else", "minContains", "maxContains"}
) - _UNSAFE
"""Keywords that are held against an output."""
_NOTES: Final = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema", "$defs"}
)  # fmt: skip
"""Keywords that promise nothing of an output."""

_SCHEMA: Final = frozenset({"items", "contains", "additionalProperties", "not", "if", "then", "else"})
"""Keywords whose value is a schema."""
_SCHEMAS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords whose value is a list of schemas."""
_NAMED_SCHEMAS: Final = frozenset({"properties", "dependentSchemas"})
"""Keywords whose value maps free names to schemas."""

JUDGED_NOT_TO_HOLD: Final = "The result was judged not to hold"


def well_formed(contract: Contract) -> str | None:
    """What is wrong with a contract, as a phrase; None if it can be checked."""
    if contract.empty:
        return "its contract has no rule; give it at least one"
    if contract.pattern is not None:
        try:
            compiled(contract.pattern)
        except ValueError as error:
            return f"{error}"
    if contract.schema is not None:
        return _schema_fault(contract.schema)
    return None


def violation(contract: Contract, success: StepSuccess) -> str | None:
    """The first deterministic rule that the output breaks, as a sentence; None if all hold."""
    if contract is NO_ERROR:
        if success.exit_status:
            return f"The exit status is {success.exit_status}, not 0."
        return None
    if contract.exit_status is not None and (success.exit_status or 0) != contract.exit_status:
        return f"The exit status is {success.exit_status}, not {contract.exit_status}."
    if contract.non_empty and is_empty(success.output):
        return "The output is empty."
    if contract.pattern is not None and not compiled(contract.pattern).found_in(as_text(success.output)):
        return f"The output does not match {contract.pattern!r}."
    if contract.schema is not None:
        return _schema_violation(contract.schema, success.output)
    return None


def passed_by(contract: Contract) -> str:
    """The kinds of rules that passed an output, strongest last: "syntactic", or "syntactic+judged".

    "accepted" is a person's word, which takes the place of a model's.
    """
    if contract is NO_ERROR:
        return "no_error"

    kinds = ["syntactic"] if _has_rules(contract) else []
    if contract.by:
        kinds.append("accepted")
    elif contract.judgement:
        kinds.append("judged")
    return "+".join(kinds) or "syntactic"


def is_empty(output: JSON) -> bool:
    """Whether an output is None, blank text, or an empty list or mapping."""
    if isinstance(output, str):
        return not output.strip()
    return output is None or output == [] or output == {}


def as_text(output: JSON) -> str:
    """An output as text: text unchanged, anything else as JSON."""
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Pattern:
    """Compile a pattern, once.

    Raises:
        ValueError: the pattern can't be used.
    """
    return Pattern(pattern)


def _has_rules(contract: Contract) -> bool:
    """Whether code checks anything of it."""
    return (
        contract.schema is not None
        or contract.pattern is not None
        or contract.non_empty
        or contract.exit_status is not None
    )


def _schema_fault(schema: Mapping[str, JSON]) -> str | None:
    fault = next(_keyword_faults(dict(schema), 0), None)
    if fault is not None:
        return f"the schema of its contract {fault}"
    try:
        jsonschema.Draft202012Validator.check_schema(dict(schema))
    except jsonschema.SchemaError as error:
        return f"the schema of its contract is not valid ({error.message[:160]})"
    return None


def _keyword_faults(schema: JSON, depth: int) -> Iterator[str]:
    """Yield what makes a schema unfit for a contract: a keyword that would promise something which nothing checks."""
    if depth > _MAX_DEPTH:
        yield f"is nested more than {_MAX_DEPTH} levels deep"
        return
    if not isinstance(schema, dict):
        return  # a boolean; anything else is refused by the dialect's own schema

    for name, value in schema.items():
        if name not in _CHECKED and name not in _NOTES:
            yield _unchecked(name)
        for part in _subschemas(name, value):
            yield from _keyword_faults(part, depth + 1)


def _subschemas(name: str, value: JSON) -> Iterator[JSON]:
    """Yield the schemas in the value of a keyword."""
    if name in _SCHEMA:
        yield value
    elif name in _SCHEMAS and isinstance(value, list):
        yield from value
    elif name in _NAMED_SCHEMAS and isinstance(value, dict):
        yield from value.values()


def _unchecked(name: str) -> str:
    """That a keyword is not checked, as a phrase, and what could be used instead."""
    if name in ("pattern", "format"):
        return f"uses {name!r}, which is not checked in a schema; use the `regex` of the contract"
    close = [] if name in _UNSAFE else difflib.get_close_matches(name, sorted(_CHECKED), 1, 0.7)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"uses {name!r}, which is not checked here{hint}"


def _schema_violation(schema: Mapping[str, JSON], output: JSON) -> str | None:
    value = output
    if isinstance(output, str) and schema.get("type") not in (None, "string"):
        try:
            value = json.loads(output)
        except (ValueError, RecursionError):
            return "The output is not JSON, as its contract's schema asks for."
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(dict(schema)).iter_errors(value))
    if error is None:
        return None
    place = ".".join(map(str, error.absolute_path)) or "the output"
    return f"The output does not fit its contract's schema: {place}: {error.message[:200]}."
