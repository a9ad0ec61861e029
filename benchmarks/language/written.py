"""Writes a recorded call in the ways in which models write actions, and reads it as the product does. Pure.

The models wrote the calls in another form. Here, text with several lines becomes the block's body, or a variable if the
body is already used. Arguments that are null are left out, because they mean the default.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iact.core.language import labels
from iact.core.language.actions import CORE_ACTIONS, ActionSpec, Registry
from iact.core.language.bare import Known
from iact.core.language.grammar import Mistake
from iact.core.language.lenient import read_action
from iact.core.language.rewriting import in_our_language
from iact.core.language.scanner import Scan, Scanner, scan
from iact.core.language.variables import Table, text_value
from iact.core.models.reply_text import Thoughts
from iact.core.ports import JSON

_TYPES: Final[Mapping[type, str]] = {
    str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"
}  # fmt: skip
_RUNS: Final = re.compile("`+|~+")


@dataclass(frozen=True, slots=True)
class Call:
    """One call, as recorded or as read back."""

    function: str
    arguments: Mapping[str, JSON]

    @property
    def bytes(self) -> bytes:
        """The bytes by which two calls are compared."""
        return json.dumps([self.function, self.arguments], sort_keys=True, ensure_ascii=False).encode(
            "utf-8", "surrogatepass"
        )


def given(function: str, arguments: Mapping[str, JSON]) -> Call:
    """A recorded call as a call of the module `recorded`, without arguments that are null."""
    return Call(f"recorded.{function}", {name: one for name, one in arguments.items() if one is not None})


def specs(calls: Iterable[Call]) -> dict[str, ActionSpec]:
    """A function for each function that was called. A parameter has the type that its values had most often.

    The first parameter that ever had a value of several lines is the body.
    """
    types: dict[str, dict[str, Counter[str]]] = {}
    bodies: dict[str, str] = {}
    for call in calls:
        seen = types.setdefault(call.function, {})
        for name, value in call.arguments.items():
            seen.setdefault(name, Counter())[_TYPES[type(value)]] += 1
            if isinstance(value, str) and "\n" in value:
                bodies.setdefault(call.function, name)
    return {
        function: ActionSpec(
            function,
            "",
            {"type": "object", "properties": {n: {"type": c.most_common(1)[0][0]} for n, c in seen.items()}},
            body=bodies.get(function),
        )
        for function, seen in types.items()
    }


def fits(call: Call, spec: ActionSpec) -> bool:
    """Whether all arguments have their parameters' types. Other calls would be rejected by any schema."""
    return all(spec.properties[name]["type"] == _TYPES[type(one)] for name, one in call.arguments.items())


# --- writing ---------------------------------------------------------------------------------------


def block(call: Call, spec: ActionSpec, mark: str = "`", body_fence: int = 0) -> str:
    """One action block, after a `VAR` block for each additional text of several lines.

    `body_fence`: the length of the fence; 0: longer than any in the body.
    """
    before, words, body = [], [call.function], ""
    for name, value in call.arguments.items():
        if name == spec.body and isinstance(value, str) and value.strip():
            body = value
        elif isinstance(value, str) and ("\n" in value or "\r" in value):
            before.append(_fenced(f"VAR given_{name}", value, mark, 0))
            words.append(f"{name}=$given_{name}")
        else:
            words.append(f"{name}={_word(value)}")
    return "\n".join([*before, _fenced(" ".join(words), body, mark, body_fence)])


def _word(value: JSON) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return json.dumps(value, ensure_ascii=False)


def _fenced(info: str, body: str, mark: str, length: int) -> str:
    if "`" in info:
        mark, length = "~", 0  # CommonMark 4.5: info strings of backtick fences can't hold backticks
    longest = max((len(run) for run in _RUNS.findall(body)), default=0)
    fence = mark * (length or max(3, longest + 1))
    return f"{fence}{info}\n{body}\n{fence}" if body else f"{fence}{info}\n{fence}"


def _plain(written: str, raw: str) -> str:
    return written


def _prose(written: str, raw: str) -> str:
    return (
        f"Let me do this first. In `code`, it is *one* step:\n\n{written}\n\nNow I will look at the result.\n"
    )


def _thought(written: str, raw: str) -> str:
    return f"<think>\nShould I write this?\n\n{written}\n\nYes.\n</think>\n\n{written}\n"


def _tagged(written: str, raw: str) -> str:
    tagged = f"```json\n{raw}\n```\n\n```tool_call\n{raw}\n```\n\n```python name=draft\ncall({raw!r})\n```"
    return f"As JSON it would be:\n\n{tagged}\n\n{written}\n"


def _quoted(written: str, raw: str) -> str:
    quoted = "\n".join(f"> {line}" for line in written.split("\n"))
    return f"The manual says:\n\n{quoted}\n\nSo:\n\n{written}\n"


def _listed(written: str, raw: str) -> str:
    lines = "\n".join(f"   {line}" if line else "" for line in written.split("\n"))
    return f"My steps:\n\n1. I call it:\n\n{lines}\n2. Then I look at the result.\n"


def _other_form(written: str, raw: str) -> str:
    return f"I call it.\n\n<tool_call>\n{raw}\n</tool_call>\n"


def _shown(written: str, raw: str) -> str:
    fence = "`" * (max((len(run) for run in _RUNS.findall(written)), default=0) + 1)
    return f"It is written like this:\n\n{fence}markdown\n{written}\n{fence}\n\n{written}\n"


def _invented(written: str, raw: str) -> str:
    label = labels.result_label(json.loads(raw)["name"], variable=None, exit_status=None)
    return f"{written}\n\n{label}\n```\nIt worked.\n```\n\nOnce more:\n\n{written}\n"


def _returns(written: str, raw: str) -> str:
    return f"I call it.\n\n{written}\n".replace("\n", "\r\n")


WAYS: Final[Mapping[str, Callable[[str, str], str]]] = {
    "as it is": _plain,
    "prose before and after": _prose,
    "a draft in `<think>` first": _thought,
    "the call as JSON and code first": _tagged,
    "quoted first": _quoted,
    "in a list item": _listed,
    "as `<tool_call>`": _other_form,
    "in a fence of Markdown first": _shown,
    "result invented, then again": _invented,
    "lines end in CR LF": _returns,
}
"""The ways to write a turn around its call. In each of them, the call must be made exactly once."""


def twice(written: str) -> str:
    """A turn that makes its call twice, with a sentence between."""
    return f"{written}\n\nI do it once more, to be sure.\n\n{written}\n"


def nested(call: Call, spec: ActionSpec) -> tuple[Call, str] | None:
    """The same call with its body in a nested fence of the same length, with a language tag. None if it has no body."""
    body = call.arguments.get(spec.body) if spec.body is not None else None
    if spec.body is None or not isinstance(body, str) or not body.strip() or "```" in body or "~~~" in body:
        return None
    inside = Call(call.function, {**call.arguments, spec.body: f"```python\n{body}\n```"})
    return inside, block(inside, spec, body_fence=3)


# --- reading ---------------------------------------------------------------------------------------


def pieces(text: str, draw: random.Random) -> list[str]:
    """The text cut at random places: at few places, at many, or after every character."""
    if draw.random() < 0.05:
        return list(text)
    cuts = sorted(draw.randrange(len(text) + 1) for _ in range(draw.choice((1, 4, 16, 64))))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def scanned(arriving: Iterable[str], registry: Registry) -> Scan:
    """The parsed reply, read as in the product: reasoning is removed, the scanner runs, and what was written in another
    form is rewritten in our language."""
    thoughts, scanner = Thoughts(), Scanner(registry.is_action)

    def take(piece_thought: bool, recast: bool, text: str) -> None:
        nonlocal scanner
        if recast:
            scanner = Scanner(registry.is_action)
        if not piece_thought:
            scanner.feed(text)

    for chunk in arriving:
        for piece in thoughts.feed(chunk):
            take(piece.thought, piece.recast, piece.text)
    for piece in thoughts.end():
        take(piece.thought, piece.recast, piece.text)
    scanner.end()
    return scan(in_our_language(scanner.kept, registry, Known()).text, registry.is_action)


def acts(found: Scan, registry: Registry) -> list[Call | Mistake]:
    """The calls that would be made, with their arguments."""
    table, made = Table(), list[Call | Mistake]()
    for one in (each for each in found.blocks if each.action and each.closed):
        name = one.info.split(None, 1)[0]
        spec = registry.find(name)
        if not isinstance(spec, ActionSpec):
            made.append(Mistake(f"There is no {name}."))
            continue
        bound = read_action(spec, one.info, one.body, table)
        if isinstance(bound, Mistake):
            made.append(bound)
        elif spec.name == "VAR":
            table.define(str(bound.arguments["name"]), text_value(one.body))
        else:
            passed = {name: value.text() for name, value in bound.attached.items()}
            made.append(Call(spec.name, {**bound.arguments, **passed}))
    return made


def registry(functions: Iterable[ActionSpec]) -> Registry:
    """The functions, and all core actions."""
    return Registry([*CORE_ACTIONS.values(), *functions])


def same(made: Sequence[Call | Mistake], wanted: Sequence[Call]) -> bool:
    """Whether exactly these calls came back, byte for byte."""
    return [one.bytes if isinstance(one, Call) else b"" for one in made] == [one.bytes for one in wanted]
