"""The small safe grammar of branch rules, replan conditions and auto-resolution.

    either  := both ("or" both)*
    both    := negated ("and" negated)*
    negated := "not" negated | compared
    compared:= value (("==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "contains") value)?
    value   := NUMBER | TEXT | true | false | null | CALL "(" either ")" | PATH | "(" either ")"
    CALL    := len | empty | exists | failed | lower | number
    PATH    := STEP ("." KEY)*

A path leads into the result store; a path that leads nowhere is null. Evaluation never raises or loops, and only calls
the functions listed here (PTR, section 2.1: every rule is evaluable on the execution state).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from iact.core.plan.contracts import is_empty
from iact.core.plan.refs import MissingField, select
from iact.core.ports import JSON

MAX_LENGTH: Final = 500
MAX_DEPTH: Final = 24

_LETTER: Final = r"[^\s\x00-/:-@\[-\^`{-\x7f]"
"""A letter or a digit of any script, or an underline."""

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>-?\d+(?:\.\d+)?(?![\w.-]))|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    rf"|(?P<name>{_LETTER}(?:{_LETTER}|-)*(?:\.-?(?:{_LETTER}|-)+)*)|(?P<sign>==|!=|<=|>=|<|>|\(|\)))"
)
_COMPARE: Final = ("==", "!=", "<", "<=", ">", ">=", "in", "contains")
_CALLS: Final = ("len", "empty", "exists", "failed", "lower", "number")
_WORDS: Final = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class StepOutputs:
    """What expressions can read: outputs by step, and the failed steps."""

    outputs: Mapping[str, JSON]
    failed: Collection[str] = ()


_Value = Callable[[StepOutputs], JSON]


def renamed(source: str, name: str, step: str) -> str:
    """Return an expression that reads `step` wherever this one reads `name`."""

    def read(match: re.Match[str]) -> str:
        token = match["name"]
        if token is None or token.partition(".")[0] != name:
            return match.group()
        start = match.start("name") - match.start()
        return match.group()[:start] + step + token[len(name) :]

    return _TOKEN.sub(read, source)


class Expression:
    """A parsed expression. `steps`: the steps that it reads.

    Raises:
        ValueError: it does not follow the grammar; says what is wrong and where.
    """

    def __init__(self, source: str) -> None:
        if len(source) > MAX_LENGTH:
            raise ValueError(f"the expression has {len(source)} characters, at most {MAX_LENGTH} are allowed")
        self.source = source
        self.steps: set[str] = set()
        self._tokens = self._split(source)
        self._at = 0
        self._depth = 0
        self._value = self._either()
        if self._at < len(self._tokens):
            raise self._wrong(f"{self._tokens[self._at][1]!r} is not expected here")

    def value(self, store: StepOutputs) -> JSON:
        """Return the expression's value."""
        return self._value(store)

    def holds(self, store: StepOutputs) -> bool:
        """Return whether the expression's value is true."""
        return _truth(self._value(store))

    def _wrong(self, what: str) -> ValueError:
        return ValueError(f"the expression {self.source[:80]!r} is not understood: {what}")

    def _split(self, source: str) -> list[tuple[str, str]]:
        tokens, at = [], 0
        while source[at:].strip():
            found = _TOKEN.match(source, at)
            if found is None or found.lastgroup is None:
                raise self._wrong(f"nothing like {source[at:].strip()[:12]!r} is in the grammar")
            tokens.append((found.lastgroup, found[found.lastgroup]))
            at = found.end()
        return tokens

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _either(self) -> _Value:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._wrong("it is nested too deeply")
        parts = [self._both()]
        while self._peek() == "or":
            self._at += 1
            parts.append(self._both())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else lambda store: any(_truth(part(store)) for part in parts)

    def _both(self) -> _Value:
        parts = [self._negated()]
        while self._peek() == "and":
            self._at += 1
            parts.append(self._negated())
        return parts[0] if len(parts) == 1 else lambda store: all(_truth(part(store)) for part in parts)

    def _negated(self) -> _Value:
        count = 0
        while self._peek() == "not":
            self._at += 1
            count += 1
        inner = self._compared()
        return (lambda store: _truth(inner(store)) == (count % 2 == 0)) if count else inner

    def _compared(self) -> _Value:
        left = self._single()
        sign = self._peek()
        if sign not in _COMPARE:
            return left
        self._at += 1
        right = self._single()
        return lambda store: _compare(sign, left(store), right(store))

    def _single(self) -> _Value:
        if self._at >= len(self._tokens):
            raise self._wrong("it ends too early")
        kind, token = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            number: JSON = float(token) if "." in token else int(token)
            return lambda store: number
        if kind == "text":
            text = re.sub(r"\\(.)", r"\1", token[1:-1])
            return lambda store: text
        if token == "(":
            inner = self._either()
            self._expect(")")
            return inner
        if kind == "sign" or token in ("and", "or", "not", *_COMPARE):
            raise self._wrong(f"a value is expected where {token!r} stands")
        if token in _WORDS:
            word = _WORDS[token]
            return lambda store: word
        if self._peek() == "(":
            return self._call(token)
        step, _, path = token.partition(".")
        self.steps.add(step)
        return lambda store: _look(store, step, path)

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            raise self._wrong(f"{token!r} is missing")
        self._at += 1

    def _call(self, name: str) -> _Value:
        if name not in _CALLS:
            raise self._wrong(f"there is no function {name!r}, only {', '.join(_CALLS)}")
        self._at += 1
        if name == "failed":
            step = self._peek()
            self._at += 1
            self._expect(")")
            self.steps.add(step)
            return lambda store: step in store.failed
        inner = self._either()
        self._expect(")")
        return lambda store: _apply(name, inner(store))


def _look(store: StepOutputs, step: str, path: str) -> JSON:
    try:
        return select(store.outputs[step], path) if step in store.outputs else None
    except MissingField:
        return None


def _apply(name: str, value: JSON) -> JSON:
    if name == "len":
        return len(value) if isinstance(value, str | list | dict) else 0
    if name == "empty":
        return is_empty(value)
    if name == "exists":
        return value is not None
    if name == "lower":
        return value.lower() if isinstance(value, str) else value
    try:
        return float(value) if isinstance(value, int | float | str) else None
    except ValueError:
        return None


def _compare(sign: str, left: JSON, right: JSON) -> bool:
    if sign in ("==", "!="):
        return (left == right) == (sign == "==")
    if sign in ("in", "contains"):
        part, whole = (left, right) if sign == "in" else (right, left)
        if isinstance(whole, str):
            return isinstance(part, str) and part in whole
        return (
            part in whole
            if isinstance(whole, list)
            else isinstance(whole, dict) and isinstance(part, str) and part in whole
        )
    if isinstance(left, str) and isinstance(right, str):
        low, high = left, right
        order = (low > high) - (low < high)
    elif isinstance(left, int | float) and isinstance(right, int | float):
        order = (left > right) - (left < right)
    else:
        return False
    return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[sign]


def _truth(value: JSON) -> bool:
    return bool(value)
