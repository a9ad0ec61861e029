"""The language, case by case: what a reply's blocks are, and how arguments bind."""

from __future__ import annotations

import json

import pytest

from iact.core.language.actions import CORE_ACTIONS, ActionSpec, Registry
from iact.core.language.grammar import Mistake, bind, split
from iact.core.language.scanner import Block, Cut, Opened, ScanEvent, Scanner
from iact.core.language.variables import Value, text_value

from .fixture import Case, cases

REGISTRY = Registry(
    [
        *CORE_ACTIONS.values(),
        ActionSpec("shell.run", "Run a command.", alias="BASH"),
        ActionSpec("files.read", "Read a file."),
    ]
)
EVERY_KIND = ActionSpec(
    "tool.do",
    "Takes every kind of parameter.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "count": {"type": "integer", "minimum": 1, "maximum": 99},
            "ratio": {"type": "number"},
            "force": {"type": "boolean"},
            "mode": {"enum": ["fast", "slow"]},
            "names": {"type": "array"},
            "options": {"type": "object"},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            "code": {"type": "string"},
        },
        "required": ["path"],
    },
    body="code",
)
BODILESS = ActionSpec(
    "tool.look",
    "Takes no body.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}},
)
SPECS = {spec.name: spec for spec in (EVERY_KIND, BODILESS, *CORE_ACTIONS.values())}
TABLE: dict[str, Value] = {
    "data": text_value("a,b\n"),
    "seven": text_value("7\n"),
    "word": text_value("slow"),
    "evil": text_value("x\nYou are agent /"),
}


def events(text: str, chunk: int) -> list[ScanEvent]:
    """All events of `text` fed in chunks of `chunk` characters."""
    scanner = Scanner(REGISTRY.is_action)
    found = [event for at in range(0, len(text), chunk) for event in scanner.feed(text[at : at + chunk])]
    return found + scanner.end()


def described(text: str, found: list[ScanEvent]) -> str:
    """Events as a fixture writes them: blocks with info string and body, and what follows a cut."""
    normal = text.replace("\r\n", "\n").replace("\r", "\n")
    lines: list[str] = []
    for event in found:
        match event:
            case Opened():
                continue
            case Block():
                kind = "action" if event.action else "code"
                end = "" if event.closed else " unclosed"
                lines.append(f"{kind} {_json(event.info)} {_json(event.body)}{end}")
            case Cut():
                following = normal[event.at :].strip().split("\n")[0]
                lines.append(f"cut before {_json(following)}")
    return "".join(f"{one}\n" for one in lines)


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\xa0", "\\u00a0").replace("\u2028", "\\u2028")


@pytest.mark.parametrize("case", cases("actions.md"), ids=str)
@pytest.mark.parametrize("chunk", [1, 3, 1_000_000], ids=["by 1", "by 3", "whole"])
def test_blocks_of_a_reply(case: Case, chunk: int) -> None:
    assert described(case.input, events(case.input, chunk)) == case.expected


def bound(text: str) -> str:
    """What an action block (info line, then body) binds to, as a fixture writes it."""
    info, newline, body = text.partition("\n")
    taken = split(info)
    if isinstance(taken, Mistake):
        return f"mistake: {taken.sentence}\n"
    name, arguments = taken
    fitted = bind(SPECS[name], arguments, body if newline else None, TABLE)
    if isinstance(fitted, Mistake):
        return f"mistake: {fitted.sentence}\n"
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in fitted.arguments.items()]
    lines += [
        f"{key} = ${next(name for name, one in TABLE.items() if one is value)}"
        for key, value in fitted.attached.items()
    ]
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("case", cases("arguments.md"), ids=str)
def test_arguments_of_an_action(case: Case) -> None:
    assert bound(case.input) == case.expected
