"""Models that insist on function calls: they are offered one function, and its calls are rewritten as action blocks.

So history, journal and everything after them know only one language. A call is written when it is complete, in the
order in which text and calls began. Many models call a function of the list in their first message by its own name,
although only one was offered: such a call is written as well. A call that can't be expressed as a block (it is not
JSON, or a name is invalid) becomes a block that can't be parsed, so the model is told what to write and nothing is lost.

Pure: fragments in, text out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from iact.core.language.actions import CORE_ACTIONS
from iact.core.language.containers import Containers
from iact.core.language.grammar import SENTENCE
from iact.core.language.writer import CallWriter, block
from iact.core.objects import objects
from iact.core.ports import JSON, ChatMessage

TOOL: Final = "act"

ACT: Final[dict[str, JSON]] = {
    "type": "function",
    "function": {
        "name": TOOL,
        "description": (
            "Run one action, exactly as the fenced block that begins with its name and has `body` as its lines. "
            "Your earlier calls stand in the history as such blocks."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "action": {"type": "string", "description": "Name of the action, such as CALL or shell.run."},
                "arguments": {
                    "type": "object",
                    "description": "Its arguments by name; $name passes a variable.",
                },
                "body": {"type": "string", "description": "The lines of the block, if the action takes any."},
            },
            "required": ["action"],
        },
    },
}
"""The one function; the same for every agent, because it precedes every prompt."""

FEEDBACK: Final = "SHOW"
"""The action used to report a call that can't be written: every agent has it, and it changes nothing."""

_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*")
_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_RUNS: Final = re.compile(r"`{3,}|~{3,}")
_BREAKS: Final = re.compile(r"[\r\n]")
_ENDS: Final = ("-->", "</pre>", "?>", "]]>", ">")
_QUOTED: Final = 160
_OFFERED: Final = re.compile(r"^functions?[.:/]", re.IGNORECASE)
"""What models put before the name of a function."""

_HOW: Final = (
    f'Call `{TOOL}` with "action" (a name of your list of functions, or of an action such as CALL), "arguments" (an '
    'object) and "body" (a text)'
)


@dataclass(frozen=True, slots=True)
class CallFragment:
    """A piece of one function call."""

    call: int
    """Which call of the reply, by the endpoint's count."""
    id: str = ""
    """The endpoint's name for the call; only in its first piece."""
    name: str = ""
    """The next letters of the function's name."""
    arguments: str = ""
    """The next letters of its arguments, which are JSON."""


class CallReader(Protocol):
    """Turns text and function calls, as they stream in, into the text of the reply."""

    def feed(self, text: str, fragments: Sequence[CallFragment]) -> Iterator[str]:
        """Take the next pieces; yield the text that is now certain."""
        ...

    def end(self) -> Iterator[str]:
        """End the reply; yield what is left."""
        ...


class ArgumentReader:
    """A reply that consists of the arguments of one forced function; further calls are ignored, plain text passes
    through."""

    def feed(self, text: str, fragments: Sequence[CallFragment]) -> Iterator[str]:
        if text:
            yield text
        for fragment in fragments:
            if fragment.call == 0 and fragment.arguments:
                yield fragment.arguments

    def end(self) -> Iterator[str]:
        yield from ()


@dataclass(slots=True)
class _Text:
    """Text that waits for an earlier call."""

    pieces: list[str]


@dataclass(slots=True)
class _Call:
    """One call, as far as it has arrived."""

    id: str
    name: str
    arguments: list[str]
    """The pieces of its arguments."""

    def decoded(self) -> dict[str, JSON] | None:
        """The arguments, if they are complete; otherwise None."""
        try:
            value = json.loads("".join(self.arguments))
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None


class ActionWriter:
    """Passes text through and turns function calls into action blocks.

    `messages`: what the model was sent. The functions that it may use stand there.
    """

    def __init__(self, messages: Sequence[ChatMessage] = ()) -> None:
        self._messages = messages
        self._waiting: list[_Text | _Call] = []
        """Text and calls in the order in which they began; the first is a call."""
        self._calls: dict[int, _Call] = {}
        """The newest call of each number."""
        self._written: list[str] = []
        """The text since the last block."""
        self._begun = False
        self._writer = CallWriter()

    def feed(self, text: str, fragments: Sequence[CallFragment]) -> Iterator[str]:
        if text:
            yield from self._text(text)
        for fragment in fragments:
            yield from self._fragment(fragment)

    def end(self) -> Iterator[str]:
        waiting = self._waiting
        self._waiting = []
        for item in waiting:
            yield self._say(item)

    def _text(self, text: str) -> Iterator[str]:
        if self._waiting and isinstance(newest := self._waiting[-1], _Text):
            newest.pieces.append(text)
        else:
            self._waiting.append(_Text([text]))
            yield from self._release()

    def _fragment(self, fragment: CallFragment) -> Iterator[str]:
        """Continue a call, or begin one: some endpoints count every call as their first, and only its id is another."""
        call = self._calls.get(fragment.call)
        if call is not None and fragment.id in ("", call.id):
            call.name += fragment.name
            call.arguments.append(fragment.arguments)
            return

        call = _Call(fragment.id, fragment.name, [fragment.arguments])
        self._calls[fragment.call] = call
        self._waiting.append(call)
        yield from self._release()

    def _release(self) -> Iterator[str]:
        """Write what comes before a new item, as far as it is complete; text is written at once."""
        while self._waiting:
            first = self._waiting[0]
            if isinstance(first, _Call):
                is_newest = len(self._waiting) == 1
                if is_newest or first.decoded() is None:
                    return

            del self._waiting[0]
            yield self._say(first)

    def _say(self, item: _Text | _Call) -> str:
        """The text of the next item."""
        if isinstance(item, _Call):
            text = self._block(item)
            self._written.clear()
        else:
            text = "".join(item.pieces)
            self._written.append(text)
        self._begun = True
        return text

    def _block(self, call: _Call) -> str:
        """A complete call as blocks, separated from the text before."""
        return self._lead() + "\n\n".join(self._blocks(call)) + "\n"

    def _lead(self) -> str:
        """What must come first so that a block can start here: blank lines, and the end of an open fence or comment."""
        if not self._begun:
            return ""

        text = "".join(self._written).replace("\r\n", "\n").replace("\r", "\n")
        if not _unending(text):
            return "\n" if text.endswith("\n") or not text else "\n\n"

        # Which of the fences in the text is open is not known: the longest ends them all.
        fences = sorted(set(_RUNS.findall(text)), key=len, reverse=True)
        closing = next((end for end in (*fences, *_ENDS) if not _unending(f"{text}\n{end}")), "")
        return f"\n{closing}\n\n"

    def _blocks(self, call: _Call) -> list[str]:
        raw = "".join(call.arguments)
        fields = call.decoded() or next(objects(raw), None)
        name = _OFFERED.sub("", call.name)
        if name != TOOL:
            return self._native(name, fields, raw)

        if fields is None:
            return [_refused("the function call is no complete JSON object", raw)]
        action, arguments, body = _parts(fields)
        if not isinstance(action, str) or not _NAME.fullmatch(action):
            return [_refused("the function call names no action", raw)]

        return self._written_call(self._called(action) or action, arguments, body, raw)

    def _native(self, name: str, fields: dict[str, JSON] | None, raw: str) -> list[str]:
        """A call of a function or an action by its own name, which was not offered as such."""
        action = self._called(name)
        if action is None:
            return [_refused(f"there is no function {name}", raw)]
        if fields is None and raw.strip():
            return [_refused(f"the arguments of {name} are no complete JSON object", raw)]

        _, arguments, body = _parts({"action": action, **(fields or {})})
        return self._written_call(action, arguments, body, raw)

    def _called(self, name: str) -> str | None:
        """The action that a name means: many models may not write a dot in it. None if nothing is called so here."""
        if name.upper() in CORE_ACTIONS:
            return name.upper()

        readings = [name] if "." in name else _dotted(name)
        for reading in readings:
            if self._is_told_of(rf"`{re.escape(reading)}(?!\w)"):
                return reading

        # Of a module that is rarely needed only the name stands there; it has functions, too.
        for reading in readings:
            module = reading.split(".", 1)[0]
            if self._is_told_of(rf"`{re.escape(module)}[.`]"):
                return reading
        return None

    def _is_told_of(self, name: str) -> bool:
        """Whether the model was sent a name, which we write between backticks. `name`: a pattern."""
        pattern = re.compile(name)
        return any(pattern.search(message.content) for message in self._messages)

    def _written_call(self, action: str, arguments: JSON, body: str | None, raw: str) -> list[str]:
        """The blocks of a call: its own, after those of the variables that hold its texts of several lines."""
        if not isinstance(arguments, Mapping):
            return [_refused("the arguments of the function call are no object", raw)]
        wrong = next((key for key in arguments if not _KEY.fullmatch(key)), None)
        if wrong is not None:
            return [_refused(f"the name of an argument is none: {wrong}", raw)]

        # A text of several lines for the parameter that is the body of the block is its body.
        parameter = self._body_of(action)
        lines = arguments.get(parameter)
        if body is None and isinstance(lines, str) and _BREAKS.search(lines):
            body = lines
            arguments = {key: value for key, value in arguments.items() if key != parameter}
        return self._writer.call(action, arguments, body)

    def _body_of(self, action: str) -> str:
        """The parameter that is the body of an action's block, as far as the model was told; empty if there is none."""
        if action in CORE_ACTIONS:
            return CORE_ACTIONS[action].body or ""

        shown = re.compile(rf"`{re.escape(action)} \[?<(\w+)>")
        for message in self._messages:
            match = shown.search(message.content)
            if match is not None:
                return match[1]
        return ""


def _dotted(name: str) -> list[str]:
    """What a name with underscores can mean, as names of functions: the longest name of a module first."""
    if name.count("__") == 1:
        return [name.replace("__", ".")]

    inner = range(1, len(name) - 1)
    places = [at for at in inner if name[at] == "_"]
    return [f"{name[:at]}.{name[at + 1 :]}" for at in reversed(places)]


def _parts(fields: dict[str, JSON]) -> tuple[JSON, JSON, str | None]:
    """Action, arguments and body. Arguments next to the `arguments` field, or JSON inside a string, are accepted as
    well."""
    arguments = fields.get("arguments")
    if isinstance(arguments, str):
        inside: JSON = next(objects(arguments), None) if arguments.strip() else {}
        arguments = arguments if inside is None else inside
    if arguments is None or isinstance(arguments, dict):
        beside = {key: value for key, value in fields.items() if key not in ("action", "arguments", "body")}
        arguments = {**beside, **(arguments or {})}

    body = fields.get("body")
    if body is not None and not isinstance(body, str):
        body = json.dumps(body, ensure_ascii=False)
    return fields.get("action"), arguments, body


def _refused(what: str, raw: str) -> str:
    """A block that is a sentence for its agent: its quote is never closed, so it can't be run."""
    quoted = f" It was: {raw[:_QUOTED]}" if raw.strip() else ""
    sentence = f"{SENTENCE}{what}. {_HOW}.{quoted}".replace('"', "'")
    one_line = " ".join(sentence.split())
    return block(f'{FEEDBACK} "{one_line}', None)


def _unending(text: str) -> bool:
    blocks = Containers()
    blocks.read(text + "\n\n")
    return blocks.unending
