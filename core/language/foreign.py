"""Calls in other languages than ours: how models that were trained on another one write them.

Two things tell such a call: the mark with which it begins, one of `FORMS`, and what stands behind the mark, which is
read by the `_READERS` in turn. Nothing here says that a call is made: `core.language.rewriting` decides where one may
stand, and only a name that exists can act.

Pure; each text is read once for each call in it.
"""

from __future__ import annotations

import ast
import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from iact.core.language.unread import PYTHONS
from iact.core.objects import object_at, objects
from iact.core.ports import JSON

_JSON: Final = json.JSONDecoder(strict=False)
_NAMED: Final = r"[A-Za-z_][\w./:-]{0,120}"
_BAR: Final = "[|｜]"
_LOW: Final = "[_▁]"
LONGEST: Final = 200_000
"""The longest call that is read, in characters."""

_LONGEST_LINE: Final = 32_768
"""How far into a line a mark is looked for."""


@dataclass(frozen=True, slots=True)
class ForeignCall:
    """A call as it was written."""

    name: str
    """What it calls, perhaps with a prefix."""
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    """The arguments with a name."""
    words: tuple[JSON, ...] = ()
    """Arguments without a name, in order."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way of writing calls."""

    source: str
    """The models and programs that write so."""
    opening: str
    """A pattern of the mark with which it begins."""
    closing: str = ""
    """A pattern of the mark with which it ends. Empty: it ends with what can be read."""
    known: bool = True
    """Whether the mark is used for nothing else, so that it is a call although it can't be read."""


_TAGS: Final = (
    r"(?i:(?:[\w.-]+:)?(?:tool_calls?|function_calls?|functioncalls?|toolcalls?|tool_use|use_tool|tool_code))"
)
_LOOSE_TAGS: Final = r"(?:tool|action|actions|function|call|calls|invocation)"

FORMS: Final = (
    Form("Hermes, Qwen, GLM, MiniMax, Seed, Nemotron, Hunyuan", rf"<{_TAGS}>", rf"</{_TAGS}>"),
    Form("Anthropic, DeepSeek V3.2", r"<[^<>\s]{0,20}invoke\s+name\s*=", r"</[^<>\s]{0,20}invoke>"),
    Form("Llama 3.1, Qwen3-Coder, Functionary", r"<function=", r"</function>"),
    Form("Kimi K2", r"<\|tool_calls_section_begin\|>", r"<\|tool_calls_section_end\|>"),
    Form("Kimi K2", r"<\|tool_call_begin\|>", r"<\|tool_call_end\|>"),
    Form(
        "DeepSeek", rf"<{_BAR}tool{_LOW}calls{_LOW}begin{_BAR}>", rf"<{_BAR}tool{_LOW}calls{_LOW}end{_BAR}>"
    ),
    Form("DeepSeek", rf"<{_BAR}tool{_LOW}call{_LOW}begin{_BAR}>", rf"<{_BAR}tool{_LOW}call{_LOW}end{_BAR}>"),
    Form("Llama 3", r"<\|python_tag\|>", r"<\|e[mo]*t?_id\|>"),
    Form("Mistral", r"\[TOOL_CALLS\]"),
    Form(
        "Granite, Phi-4, Gemma 4", r"<\|tool_calls?\|?>", r"<\|/tool_calls?\|>|</tool_calls?>|<tool_call\|>"
    ),
    Form("LFM2", r"<\|tool_call_start\|>", r"<\|tool_call_end\|>"),
    Form("Command", r"<\|START_ACTION\|>", r"<\|END_ACTION\|>"),
    Form("InternLM", r"<\|action_start\|>\s*<\|plugin\|>", r"<\|action_end\|>"),
    Form(
        "gpt-oss",
        r"(?:<\|start\|>assistant)?(?:<\|channel\|>)?(?:commentary|analysis)?\s*to=functions?\.",
        r"<\|call\|>",
    ),
    Form("ReAct", r"(?:\*\*)?Action:(?:\*\*)?[ \t]*(?=[`\w])", known=False),
    Form("Cline and others", rf"<{_LOOSE_TAGS}>", rf"</{_LOOSE_TAGS}>", known=False),
    Form("Cline, with our names", r"<(?=[a-z]\w*\.[a-z]\w*[\s>/])", known=False),
    Form("Llama 3, xLAM and others", r"(?=\{\s*(?:\"|\Z)|\[\s*(?:\{|\Z))", known=False),
    Form("Llama 3.2", r"(?=\[\s*[a-z]\w*\.?\w*\()", known=False),
)
"""All marks; earlier ones win."""

_OPENINGS: Final = re.compile("|".join(f"(?P<f{n}>{form.opening})" for n, form in enumerate(FORMS)))
SIGN: Final = r"[<\[{]|Action:|to=function"
"""A pattern of what every mark holds. Most lines hold none, and it is found a hundred times faster than a mark."""

_SIGN: Final = re.compile(SIGN)
_CLOSINGS: Final = {form.closing: re.compile(form.closing) for form in FORMS if form.closing}
_CLOSED_BY: Final = {mark: re.compile(rf"[ \t\r\n`;]*(?:{mark})") for mark in _CLOSINGS}
"""The same, where only signs that say nothing stand between a call and its closing mark."""

INVENTED: Final = re.compile(
    r"^[ \t]*(?:</?tool_(?:response|result|output)s?\b|</?function_(?:results?|response|output)s?\b|<result>"
    r"|(?:\*\*)?Observation:|\[TOOL_RESULTS\]|<\|(?:im_start|start_header_id|tool_response)\|>"
    rf"|<{_BAR}tool{_LOW}outputs?{_LOW}begin{_BAR}>)",
    re.MULTILINE,
)
"""How results begin in those languages. Behind a call, a model invents them."""


@dataclass(frozen=True, slots=True)
class FoundCalls:
    """Calls that stand together."""

    start: int
    """Where they begin in the text."""
    end: int
    """Where they end."""
    calls: tuple[ForeignCall, ...]
    """What was called; empty if the mark of a call is there, and none can be read behind it."""
    form: Form
    """How they are written."""


def opens_in(line: str) -> int | None:
    """Where the first mark is in a line, outside of inline code; None if there is none.

    Marks that are used for other things, too, count at the beginning of a line only.
    """
    line = line[:_LONGEST_LINE]
    if not _SIGN.search(line):
        return None

    first = len(line) - len(line.lstrip(" \t"))
    backticks, counted = 0, 0
    for match in _OPENINGS.finditer(line):
        known = FORMS[_number(match)].known
        if match.start() != first and not known:
            continue

        backticks += line.count("`", counted, match.start())
        counted = match.start()
        if backticks % 2 == 0:
            return match.start()
    return None


def read_at(text: str, start: int) -> FoundCalls | None:
    """Read the calls whose mark stands at `start`. None if the mark is used for other things, and this is no call."""
    match = _OPENINGS.match(text, start)
    if match is None:
        return None

    form = FORMS[_number(match)]
    window = text[start : start + LONGEST]
    if form.source == "ReAct":
        taken = _react(window)
    else:
        taken = _read(window, form, match.group())

    if taken is not None:
        calls, length = taken
        return FoundCalls(start, start + length, tuple(calls), form)
    if form.known:
        return FoundCalls(start, match.end(), (), form)
    return None


def _number(match: re.Match[str]) -> int:
    assert match.lastgroup is not None
    return int(match.lastgroup[1:])


Taken = tuple[list[ForeignCall], int]
"""Calls, and the offset behind them."""


def _read(window: str, form: Form, opening: str) -> Taken | None:
    """The calls behind a mark, by the first reader that finds any, and the offset behind them and their closing mark."""
    invokes = functools.partial(_elements, _INVOKE)
    functions = functools.partial(_elements, _FUNCTION)
    for reader in (invokes, functions, _parameters, _separated, _pythonic, _gemma, _json_calls):
        taken = reader(window, len(opening), form)
        if taken is None:
            continue

        calls, end = taken
        if form.closing:
            end = _behind(_CLOSED_BY[form.closing], window, end)
        return calls, end
    return None


def _behind(pattern: re.Pattern[str], window: str, at: int) -> int:
    """The offset behind what matches here; the same offset if nothing does."""
    match = pattern.match(window, at)
    return at if match is None else match.end()


@dataclass(frozen=True, slots=True)
class _Element:
    """A way of writing a call as an element that holds one for each argument, or all of them as an object."""

    begins: str
    """What a mark holds that is its beginning, and not what stands around it."""
    opening: re.Pattern[str]
    """`name`: what is called."""
    argument: re.Pattern[str]
    """`key` and `value`, up to where the next one or the end can stand."""
    closing: re.Pattern[str]


_INVOKE: Final = _Element(
    "invoke",
    re.compile(r"<[^<>\s]{0,20}invoke\s+name\s*=\s*[\"']?(?P<name>[^\"'<>\s]+)[\"']?\s*>"),
    re.compile(
        r"\s*<[^<>\s]{0,20}parameter\s+name\s*=\s*[\"']?(?P<key>[^\"'<>\s]+)[\"']?[^<>\n]*>(?P<value>.*?)"
        r"</[^<>\s]{0,20}parameter>(?=\s*(?:<[^<>\s]{0,20}parameter\b|</[^<>\s]{0,20}invoke>|\Z))",
        re.DOTALL,
    ),
    re.compile(r"\s*</[^<>\s]{0,20}invoke>"),
)
"""`<invoke name="x"><parameter name="y">v</parameter></invoke>`"""

_FUNCTION: Final = _Element(
    "<function=",
    re.compile(rf"<function\s*=\s*[\"']?(?P<name>{_NAMED})[\"']?\s*>"),
    re.compile(
        r"\s*<parameter\s*=\s*[\"']?(?P<key>[^\"'<>\s]+)[\"']?\s*>(?P<value>.*?)</parameter>"
        r"(?=\s*(?:<parameter\s*=|</function>|</tool_call>|\Z))",
        re.DOTALL,
    ),
    re.compile(r"\s*</function>"),
)
"""`<function=x>{…}</function>` and `<function=x><parameter=y>v</parameter></function>`"""


def _elements(kind: _Element, window: str, at: int, form: Form) -> Taken | None:
    """Calls of one kind, one or several."""
    position = 0 if kind.begins in form.opening else at
    calls: list[ForeignCall] = []
    while (match := kind.opening.match(window, _skip(window, position))) is not None:
        arguments, position = _pairs(kind.argument, window, match.end())
        as_object = _object(window, position)
        if not arguments and as_object is not None:
            arguments, position = as_object

        position = _behind(kind.closing, window, position)
        calls.append(ForeignCall(match["name"], arguments))
    return (calls, position) if calls else None


_TAG: Final = re.compile(rf"\s*<({_NAMED})>")
_GLM: Final = re.compile(
    r"\s*<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>", re.DOTALL
)
_GLM_NAME: Final = re.compile(rf"\s*({_NAMED})\s*(?:<tool_sep>)?(?=\s*<arg_key>|\s*</tool_call>)")


def _parameters(window: str, at: int, form: Form) -> Taken | None:
    """A name with a tag for each argument: `x<arg_key>y</arg_key><arg_value>v</arg_value>`, `<x><y>v</y></x>`, and
    `<name>x</name><arguments>{…}</arguments>`."""
    named = _GLM_NAME.match(window, at)
    if named is not None:
        arguments, position = _pairs(_GLM, window, named.end())
        return [ForeignCall(named.group(1), arguments)], position

    # Where the name itself is the mark, it is read once more.
    begin = 0 if form.source == "Cline, with our names" else at
    tag = _TAG.match(window, begin)
    if tag is None:
        return None
    inside, position = _element(window, tag)
    if inside is None:
        return None

    name = tag.group(1)
    if name in ("name", "tool_name", "tool"):
        return _with_arguments(inside.strip(), window, position)
    if "." not in name:
        return None
    return [_tagged(name, inside)], position


def _with_arguments(name: str, window: str, at: int) -> Taken | None:
    """A call whose arguments are an object in the element that begins here, or that has none."""
    content: str | None = None
    tag = _TAG.match(window, at)
    if tag is not None:
        content, at = _element(window, tag)

    arguments = _decoded(content or "")
    if arguments is None:
        return None
    return [ForeignCall(name, arguments)], at


def _tagged(name: str, inside: str) -> ForeignCall:
    """A call whose arguments are tags, JSON or plain text."""
    arguments: dict[str, JSON] = {}
    position = 0
    while (tag := _TAG.match(inside, position)) is not None:
        value, position = _element(inside, tag)
        if value is None:
            break
        arguments[tag.group(1)] = _lines(value)
    if arguments:
        return ForeignCall(name, arguments)

    as_object = _decoded(inside)
    if as_object:
        return ForeignCall(name, as_object)

    if not inside.strip():
        return ForeignCall(name)
    return ForeignCall(name, {}, (inside.strip("\n"),))


def _element(window: str, tag: re.Match[str]) -> tuple[str | None, int]:
    """The content of an element, and where it ends; None if it has no end."""
    closing = f"</{tag.group(1)}>"
    end = window.find(closing, tag.end())
    if end < 0:
        return None, tag.end()
    return window[tag.end() : end], end + len(closing)


_SEPARATORS: Final = re.compile(
    rf"\s*(?:<{_BAR}tool{_LOW}call{_LOW}begin{_BAR}>)?(?:function<{_BAR}tool{_LOW}sep{_BAR}>)?\s*({_NAMED})\s*"
    rf"(?:<{_BAR}tool{_LOW}sep{_BAR}>|<\|tool_call_argument_begin\|>|<\|constrain\|>\s*(?:json)?\s*<\|message\|>|<\|message\|>"
    r"|\[ARGS\]|\[CALL_ID\]\w*\[ARGS\]|(?=\s*(?:json\s*)?\{)|(?=\s*```))"
    r"\s*(?:json\s*(?=\{))?(?:```(?:json)?\s*)?"
)
_SEPARATED_END: Final = re.compile(
    rf"\s*(?:```)?\s*(?:<{_BAR}tool{_LOW}call{_LOW}end{_BAR}>|<\|call\|>|\[TOOL_CALLS\])?"
)


def _separated(window: str, at: int, form: Form) -> Taken | None:
    """A name, a mark and an object: DeepSeek, Kimi, newer Mistral, gpt-oss."""
    if form.source in ("Cline, with our names", "Llama 3, xLAM and others"):
        return None
    calls: list[ForeignCall] = []
    position = at
    while (match := _SEPARATORS.match(window, position)) is not None:
        as_object = _object(window, match.end())
        if as_object is None:
            break

        arguments, end = as_object
        position = _behind(_SEPARATED_END, window, end)
        calls.append(ForeignCall(match.group(1), arguments))
    return (calls, position) if calls else None


_GEMMA: Final = re.compile(rf"\s*call:({_NAMED})(?=\{{)")


def _gemma(window: str, at: int, form: Form) -> Taken | None:
    """`call:x{y:<|"|>v<|"|>}`."""
    match = _GEMMA.match(window, at)
    if match is None:
        return None

    end = window.find("}", match.end()) + 1
    inside = window[match.end() : end].replace('<|"|>', '"')
    arguments = next(objects(inside), None)
    if arguments is None:
        return None
    return [ForeignCall(match.group(1), arguments)], end


def _pythonic(window: str, at: int, form: Form) -> Taken | None:
    """`[x(y="v"), …]` and `x(y="v")`, to the end of the marked text."""
    end = len(window)
    if form.closing:
        closing = _CLOSINGS[form.closing].search(window, at)
        end = len(window) if closing is None else closing.start()

    calls = python_calls(window[at:end])
    return (calls, end) if calls else None


_BETWEEN: Final = re.compile(r"\s*[;,]\s*(?=\{)")


def _json_calls(window: str, at: int, form: Form) -> Taken | None:
    """Objects with a name and arguments, one after another or in a list."""
    position = at
    calls: list[ForeignCall] = []
    while True:
        decoded = _value(window, _skip(window, position))
        if decoded is None:
            break
        value, end = decoded
        calls_here = calls_of(value)
        if not calls_here:
            break

        calls += calls_here
        position = _behind(_BETWEEN, window, end)
    return (calls, position) if calls else None


def _value(window: str, at: int) -> tuple[JSON, int] | None:
    """A JSON value, or an object with the mistakes that models make."""
    if window[at : at + 1] not in ("{", "["):
        return None
    try:
        return _JSON.raw_decode(window, at)
    except (ValueError, RecursionError):
        return _object(window, at)


def _object(window: str, at: int) -> tuple[dict[str, JSON], int] | None:
    """The object that begins here, and where it ends."""
    at = _skip(window, at)
    if window[at : at + 1] != "{":
        return None
    try:
        value, end = _JSON.raw_decode(window, at)
    except (ValueError, RecursionError):
        # It has a mistake. Its braces say where it ends, unless they are wrong, too.
        balanced = _balanced(window, at)
        if balanced is None:
            return object_at(window, at)
        end = balanced
        value = next(objects(window[at:end]), None)
    return (value, end) if isinstance(value, dict) else None


_BRACES: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]', re.DOTALL)


def _balanced(window: str, at: int) -> int | None:
    """Where the braces that open here are closed, outside of strings; None if they are not."""
    depth = 0
    for match in _BRACES.finditer(window, at):
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        if depth == 0:
            return match.end()
    return None


def _skip(window: str, at: int) -> int:
    while at < len(window) and window[at].isspace():
        at += 1
    return at


def _pairs(pattern: re.Pattern[str], window: str, at: int) -> tuple[dict[str, JSON], int]:
    """Consecutive arguments: `key` and `value` of each match."""
    arguments: dict[str, JSON] = {}
    while (match := pattern.match(window, at)) is not None:
        arguments[match["key"].strip()] = _lines(match["value"])
        at = match.end()
    return arguments, at


def _lines(value: str) -> str:
    """A value as it was meant: the line ends next to its tags belong to the tags."""
    return value.removeprefix("\n").removesuffix("\n")


def _decoded(text: str) -> dict[str, JSON] | None:
    """A text that is an object; nothing counts as an empty one."""
    stripped = text.strip()
    if not stripped:
        return {}
    if not stripped.startswith("{"):
        return None
    return next(objects(text), None)


# --- what a call is -----------------------------------------------------------------------------

_NAMES: Final = ("name", "tool_name", "tool", "function", "function_name", "action", "recipient_name")
_ARGUMENTS: Final = (
    "arguments",
    "parameters",
    "args",
    "input",
    "action_input",
    "tool_input",
    "params",
    "kwargs",
)
_LISTS: Final = ("tool_calls", "tool_uses", "function_calls", "calls", "actions")
_INSIDE: Final = ("function", "functionCall", "function_call", "toolUse", "tool_use", "tool_call")
_BESIDE: Final = frozenset(
    {"id", "type", "tool_call_id", "call_id", "index", "thought", "body", "description", "reason"}
)


def calls_of(value: JSON) -> list[ForeignCall]:
    """The calls that a JSON value is; empty if it is anything else."""
    if isinstance(value, list):
        calls_by_item = [calls_of(item) for item in value]
        if not all(calls_by_item):
            return []
        return [call for calls in calls_by_item for call in calls]

    if not isinstance(value, dict):
        return []
    for name in _LISTS:
        if isinstance(value.get(name), list):
            return calls_of(value[name])
    for name in _INSIDE:
        if isinstance(value.get(name), dict):
            return calls_of(value[name])
    return _call_of(value)


def _call_of(value: dict[str, JSON]) -> list[ForeignCall]:
    """The call that an object is, which holds a name and arguments, and nothing that calls don't have."""
    name_key = next((key for key in _NAMES if isinstance(value.get(key), str)), None)
    arguments_key = next((key for key in _ARGUMENTS if key in value), None)
    if name_key is None or arguments_key is None:
        return []
    if set(value) - _BESIDE - {name_key, arguments_key}:
        return []

    name = str(value[name_key]).strip()
    if not re.fullmatch(_NAMED, name):
        return []

    arguments = value[arguments_key]
    if isinstance(arguments, str):
        decoded = _decoded(arguments)
        if decoded is None:
            return [ForeignCall(name, {}, (arguments,))]
        arguments = decoded
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        return []

    body = value.get("body")
    if isinstance(body, str):
        return [ForeignCall(name, arguments, (body,))]
    return [ForeignCall(name, arguments)]


_LIKE_PYTHON: Final = re.compile(r"\s*\[?\s*(?:await\s+)?[A-Za-z_][\w.]{0,120}\s*\(")


def python_calls(text: str) -> list[ForeignCall]:
    """The calls that a Python expression is, alone, in a list, or in `print(…)`; empty if it is anything else."""
    if not _LIKE_PYTHON.match(text):
        return []
    try:
        tree = ast.parse(text.strip(), mode="exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []

    calls: list[ForeignCall] = []
    for statement in tree.body:
        if not isinstance(statement, ast.Expr):
            return []
        for item in _items(statement.value):
            call = _python_call(item)
            if call is None:
                return []
            calls.append(call)
    return calls


def _items(expression: ast.expr) -> list[ast.expr]:
    if isinstance(expression, ast.List | ast.Tuple):
        return expression.elts
    return [expression]


def _python_call(item: ast.expr) -> ForeignCall | None:
    """A call with a name and values that JSON can hold; None if it is anything else."""
    if isinstance(item, ast.Await):
        item = item.value
    if not isinstance(item, ast.Call):
        return None

    name = _dotted(item.func)
    if name == "print" and len(item.args) == 1 and not item.keywords:
        return _python_call(item.args[0])

    try:
        words = tuple(ast.literal_eval(word) for word in item.args)
        arguments = {word.arg: ast.literal_eval(word.value) for word in item.keywords if word.arg is not None}
        json.dumps([words, arguments])
    except (ValueError, TypeError, RecursionError, MemoryError, SyntaxError):
        return None

    spreads_others = len(arguments) < len(item.keywords)
    if not name or spreads_others:
        return None
    return ForeignCall(name, arguments, words)


def _dotted(node: ast.expr) -> str:
    """A name with dots; empty if it is none."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


_REACT: Final = re.compile(
    rf"(?:\*\*)?Action:(?:\*\*)?[ \t]*`?({_NAMED})`?[ \t]*\n+[ \t]*(?:\*\*)?(?:Action Input|Input|Arguments):(?:\*\*)?[ \t]*"
)
_REACT_SHORT: Final = re.compile(
    rf"(?:\*\*)?Action:(?:\*\*)?[ \t]*`?({_NAMED})(?:\[(.*)\]|(\(.*\)))`?[ \t]*(?=\n|\Z)"
)
_REACT_FENCED: Final = re.compile(
    r"(?:\*\*)?Action:(?:\*\*)?[ \t]*```(?:json)?\s*\n(.*?)\n[ \t]*```", re.DOTALL
)
_REACT_END: Final = re.compile(r"\n[ \t]*(?:\*\*)?(?:Observation|Thought|Final Answer|Action|PAUSE)\b")
_FENCED: Final = re.compile(r"```\w*\n(.*)\n```", re.DOTALL)


def _react(window: str) -> Taken | None:
    """`Action: x[…]`, a fenced object behind `Action:`, or `Action: x` and `Action Input: …`."""
    short = _REACT_SHORT.match(window)
    if short is not None:
        calls = _short_react(*short.groups())
        return (calls, short.end()) if calls else None

    fenced = _REACT_FENCED.match(window)
    if fenced is not None:
        decoded = _value(fenced.group(1), 0)
        calls = [] if decoded is None else calls_of(decoded[0])
        return (calls, fenced.end()) if calls else None

    match = _REACT.match(window)
    if match is None:
        return None
    name = match.group(1)
    as_object = _object(window, match.end())
    if as_object is not None:
        arguments, end = as_object
        return [ForeignCall(name, arguments)], end

    # A text, up to the next heading of its kind.
    following = _REACT_END.search(window, match.end())
    end = len(window) if following is None else following.start()
    return [_react_call(name, window[match.end() : end].strip())], end


def _short_react(name: str, plain: str | None, python: str | None) -> list[ForeignCall]:
    """`x[plain]`, or `x(python)`."""
    if python:
        return python_calls(f"{name}{python}")
    if plain:
        return [ForeignCall(name, {}, (plain,))]
    return [ForeignCall(name)]


def _react_call(name: str, text: str) -> ForeignCall:
    """A call whose input is an object or a text, fenced or not."""
    fenced = _FENCED.fullmatch(text)
    if fenced is not None:
        text = fenced.group(1)

    if text.startswith("{"):
        arguments = _decoded(text)
        if arguments is not None:
            return ForeignCall(name, arguments)
    if not text:
        return ForeignCall(name)
    return ForeignCall(name, {}, (text.strip("\"'`"),))


# --- calls in code blocks -----------------------------------------------------------------------

CALL_LANGUAGES: Final = frozenset(
    {
        "json",
        "tool_code",
        "tool_call",
        "tool_calls",
        "tool",
        "tool_use",
        "function_call",
        "function",
        "action",
        "xml",
        "jsonc",
    }
)
"""Languages of code blocks that can hold nothing but calls in another form."""


def calls_in_block(language: str, body: str) -> tuple[ForeignCall, ...]:
    """The calls that are the whole content of a code block; empty if it has any other."""
    if len(body) > LONGEST:
        return ()

    if language in PYTHONS:
        return tuple(python_calls(body))
    if language == "tool_code":
        as_python = python_calls(body)
        if as_python:
            return tuple(as_python)
    if language not in CALL_LANGUAGES:
        return ()

    position = _skip(body, 0)
    calls: list[ForeignCall] = []
    while position < len(body):
        read = read_at(body, position)
        if read is None or not read.calls:
            return ()

        calls += read.calls
        position = _skip(body, read.end)
    return tuple(calls)


Resolve = Callable[[str], str]
"""The name of the function or action that a name means; empty if there is none."""


@functools.lru_cache(maxsize=64)
def resolver(names: tuple[str, ...]) -> Resolve:
    """Return what finds the function or action that a name means: the name itself, with a prefix, without its dot."""
    exact = frozenset(names)
    plain: dict[str, set[str]] = {}
    for name in names:
        plain.setdefault(_plain(name), set()).add(name)

    def resolve(name: str) -> str:
        bare = re.sub(r"^(?:functions?|tools?)[./:]+|:\d+$|\.call$", "", name)
        if bare in exact:
            return bare

        # Names that differ only in their signs mean nothing in particular.
        candidates = plain.get(_plain(bare), set())
        return next(iter(candidates)) if len(candidates) == 1 else ""

    return resolve


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower())
