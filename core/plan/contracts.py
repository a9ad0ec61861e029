"""Whether an output satisfies its node's contract: first the deterministic rules, then the judged one.

Code checks its rules first, because they are nearly certain, and only then a model judges. The kind of rule that passed
an output is recorded, because a plan is only as reliable as its validations (Graph Harness, theorem 6.3). What can't be
checked has not passed: the contract fails closed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import jsonschema

from iact.core.plan.model import NO_ERROR, Contract
from iact.core.plan.pattern import Pattern
from iact.core.plan.protocol import StepSuccess
from iact.core.ports import JSON

_REFUSED: Final = ("pattern", "patternProperties", "$ref", "$dynamicRef", "$recursiveRef", "propertyNames")
_MAX_DEPTH: Final = 16

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
    refused = _refused_keyword(dict(schema), 0)
    if refused:
        return f"the schema of its contract uses {refused!r}, which is not allowed here"
    try:
        jsonschema.Draft202012Validator.check_schema(dict(schema))
    except jsonschema.SchemaError as error:
        return f"the schema of its contract is not valid ({error.message[:160]})"
    return None


def _refused_keyword(schema: JSON, depth: int) -> str | None:
    """A keyword that could run forever or reach outside; an over-deep schema counts as one."""
    if depth > _MAX_DEPTH:
        return "nesting"
    items = list(schema.items()) if isinstance(schema, dict) else []
    for name, value in items:
        if name in _REFUSED:
            return name
        if name in ("properties", "$defs", "dependentSchemas") and isinstance(value, dict):
            inner = [_refused_keyword(one, depth + 1) for one in value.values()]
        elif isinstance(value, list) and name not in ("enum", "required", "examples"):
            inner = [_refused_keyword(one, depth + 1) for one in value]
        elif name not in ("const", "default"):
            inner = [_refused_keyword(value, depth + 1)]
        else:
            inner = []
        found = next((one for one in inner if one), None)
        if found:
            return found
    return None


def _schema_violation(schema: Mapping[str, JSON], output: JSON) -> str | None:
    value = output
    if isinstance(output, str) and schema.get("type") not in (None, "string"):
        try:
            value = json.loads(output)
        except ValueError:
            return "The output is not JSON, as its contract's schema asks for."
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(dict(schema)).iter_errors(value))
    if error is None:
        return None
    place = ".".join(map(str, error.absolute_path)) or "the output"
    return f"The output does not fit its contract's schema: {place}: {error.message[:200]}."
