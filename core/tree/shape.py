"""What the fields of each kind of record must be, to say which one is wrong when a record can't be taken in.

Nothing is checked against this while all goes well: a reader ignores what it doesn't know, and the rules of the fold
take what they need. A journal may come from anywhere, though, and where a rule stumbles over a record the person who
reads it hears of the record and the field, and not of a line of our program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.errors import IactError, JournalCorrupt
from core.ports import JSON
from core.records.record import Record

TEXT, NUMBER, TRUTH, LIST, OBJECT = "a text", "a number", "true or false", "a list", "an object"
Shape = str | Mapping[str, "Shape"]
"""A name of a type, or an object's fields; "*" stands for every other field of it."""

_USAGE: Final[Shape] = {"prompt": NUMBER, "cached": NUMBER, "completion": NUMBER, "estimated": TRUTH}
_GRANT: Final[Shape] = {"scope": TEXT, "allow": LIST, "caps": OBJECT, "intent": NUMBER, "user": TEXT}
_ROLES: Final[Shape] = {
    "*": {
        "model": TEXT,
        "context": NUMBER,
        "prompt": TEXT,
        "takes": LIST,
        "static": {"system": TEXT, "examples": LIST},
    }
}
_BLOB: Final[Shape] = {"sha256": TEXT, "size": NUMBER}
_BOUNDS: Final[Shape] = {"*": NUMBER}
_TURN: Final[Mapping[str, Shape]] = {
    "model": TEXT, "role": TEXT, "context": TEXT, "took": LIST, "seen": OBJECT, "usage": _USAGE, "ms": NUMBER,
    "first_ms": NUMBER, "finish": TEXT, "cut": NUMBER, "last": TEXT, "full": NUMBER, "held": TEXT,
}  # fmt: skip
_CALL: Final[Mapping[str, Shape]] = {"turn": NUMBER, "action": NUMBER, "function": TEXT}
_SESSION: Final[Mapping[str, Shape]] = {
    "format": TEXT, "session": TEXT, "models": _ROLES, "grant": _GRANT, "policy": OBJECT, "bounds": _BOUNDS,
    "workspace": TEXT,
}  # fmt: skip

FIELDS: Final[Mapping[str, Mapping[str, Shape]]] = {
    "open": {**_SESSION, "tail": TEXT},
    "turn": _TURN,
    "reply": {**_TURN, "to": TEXT, "status": TEXT, "plan": TEXT, "missing": OBJECT, "warnings": LIST, "bound": TEXT},
    "discard": {"reason": TEXT, "usage": _USAGE},
    "call": {**_CALL, "impact": NUMBER, "args": TEXT, "to": TEXT, "budget": NUMBER},
    "gate": {**_CALL, "allow": TRUTH, "by": TEXT, "impact": NUMBER, "reason": TEXT, "ask": NUMBER},
    "clearance": {
        **_CALL, "op": TEXT, "to": TEXT, "rule": TEXT, "impact": NUMBER, "why": TEXT, "reason": TEXT, "user": TEXT,
        "seconds": NUMBER, "params": OBJECT, "attached": OBJECT, "provenance": OBJECT, "read": LIST, "ask": NUMBER,
        "allow": TRUTH, "by": TEXT,
    },
    "result": {
        **_CALL, "call": NUMBER, "status": TEXT, "var": TEXT, "media": TEXT, "ms": NUMBER, "data": OBJECT,
        "blob": _BLOB, "artifacts": LIST, "rows": LIST, "version": TEXT, "state": OBJECT,
    },
    "recall": {"rows": LIST, "meant": OBJECT, "ms": NUMBER},
    "spawn": {
        "caller": TEXT, "model": TEXT, "allow": LIST, "intent": NUMBER, "fork": TRUTH,
        "plan": {"mode": TEXT, "options": OBJECT, "thinks": TRUTH},
    },
    "select": {**_CALL, "took": LIST, "timed_out": TRUTH},
    "draw": {"tokens": NUMBER},
    "control": {"op": TEXT, "by": TEXT, "mode": TEXT, "policy": OBJECT, "variable": TEXT, "budget": NUMBER},
    "upload": {"file": TEXT, "var": TEXT, "media": TEXT, "blob": _BLOB, "by": TEXT},
    "module": {"name": TEXT, "version": TEXT, "digest": TEXT, "origin": TEXT, "approved": LIST},
    "plan": {"version": NUMBER, "parent": NUMBER, "reason": TEXT, "add": LIST, "drop": LIST, "rewire": LIST},
    "node": {
        "node": TEXT, "version": NUMBER, "cause": TEXT, "from": TEXT, "to": TEXT, "t": NUMBER, "attempt": NUMBER,
        "detail": TEXT, "result": NUMBER,
    },
    "fire": {"node": TEXT, "attempt": NUMBER, "turn": NUMBER, "action": NUMBER, "function": TEXT, "to": TEXT},
    "ask": {"question": TEXT, "node": TEXT, "role": TEXT, "model": TEXT, "digest": TEXT, "usage": _USAGE},
    "state": {"function": TEXT, "state": {"name": TEXT, "offers": LIST, "note": TEXT}},
    "effects": {
        "after": TEXT, "seen": NUMBER, "changes": LIST, "gone": LIST, "writers": LIST, "calls": LIST, "impact": NUMBER,
        "why": TEXT, "apply": TRUTH, "held": TEXT, "reason": TEXT,
    },
    "settle": {"of": NUMBER, "left": LIST, "notes": LIST},
    "fork": {"from": TEXT, "after": NUMBER, "session": TEXT, "workspace": TEXT},
    "adopt": {**_SESSION, "from": TEXT, "after": NUMBER, "sha256": TEXT, "by": TEXT, "left_out": OBJECT},
    "migrate": {"from": TEXT, "to": TEXT, "models": _ROLES},
}  # fmt: skip


STUMBLES: Final = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""What a rule raises over a record that is not as such records are. Live, where we wrote it, that is our bug."""


def damaged(record: Record, error: Exception) -> JournalCorrupt:
    """What is wrong with a record over which a rule of the fold stumbled."""
    found = _misfit(record.fields, FIELDS.get(record.kind, {}), "")
    if isinstance(error, IactError):
        found = str(error).rstrip(".")
    what = found or f"its fields or its text can't be what they say ({type(error).__name__})"
    return JournalCorrupt(f"Record {record.n} ({record.kind}) is damaged: {what}.", n=record.n, offset=None)


def _misfit(fields: Mapping[str, JSON], shapes: Mapping[str, Shape], above: str) -> str:
    """What is wrong with the first field that does not fit; empty if all do."""
    for name, value in fields.items():
        shape = shapes.get(name, shapes.get("*"))
        if shape is None or value is None:
            continue
        place, wanted = f"{above}{name[:60]}", shape if isinstance(shape, str) else OBJECT
        if not _fits(value, wanted):
            return f"its field {place!r} is {_type_of(value)}, and should be {wanted}"
        if isinstance(value, dict) and not isinstance(shape, str):
            found = _misfit(value, shape, f"{place}.")
            if found:
                return found
    return ""


def _fits(value: JSON, wanted: str) -> bool:
    return _type_of(value) == wanted


def _type_of(value: JSON) -> str:
    match value:
        case bool():
            return TRUTH
        case int() | float():
            return NUMBER
        case str():
            return TEXT
        case list():
            return LIST
        case dict():
            return OBJECT
    return "nothing"
