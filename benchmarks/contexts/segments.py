"""Takes a context apart: which characters of it are the prompt, documentation, results, messages, memory.

Every text that enters a context begins with a line that only the core writes (`core.language.labels`). A segment goes
from such a line to the next one outside of fences, so that a result that quotes a label stays one segment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from iact.core.ports import ChatMessage

Kind = Literal["prompt", "functions", "notes", "results", "messages", "state", "memory", "notices", "own"]
"""What a part of a context is: the fixed prompt, the list of functions with what all agents are told of them, notes of
documentation, results of calls, messages of others, the state at the end, memory, notices, the agent's own replies."""

KINDS: Final[tuple[Kind, ...]] = (
    "prompt", "functions", "notes", "results", "messages", "state", "memory", "notices", "own",
)  # fmt: skip

_LABELS: Final[Sequence[tuple[re.Pattern[str], Kind]]] = [
    (re.compile(r"Documentation of `"), "notes"),
    (
        re.compile(r"(?:Result|Error) of `|`?[\w. ]+`? did not complete|It (?:had printed|also brought)"),
        "results",
    ),
    (re.compile(r"Functions (?:that )?you can use|You may read, not change"), "functions"),
    (re.compile(r"Message from |Intervention by |Your child |You are agent |Your role"), "messages"),
    (re.compile(r"\(state\) "), "state"),
    (re.compile(r"Memory has |What is known"), "memory"),
    (re.compile(r"Notice by the system:"), "notices"),
]
_FENCE: Final = re.compile(r"(`{3,}|~{3,})(.*)")
_NOTE: Final = re.compile(r"Documentation of `([^`]+)`")
_RECALLED: Final = re.compile(r"; memory: .*?(?=; (?:new )?variables: |$)")


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a context. `name`: for a note, the function that it is about."""

    kind: Kind
    text: str
    name: str = ""


def segments(messages: Sequence[ChatMessage]) -> Iterator[Segment]:
    """The parts of a context, or of its last messages, in order. Their texts are together about as long as these."""
    first = bool(messages) and messages[0].role == "system"
    for message in messages:
        if message.role == "system":
            yield Segment("prompt", message.content)
        elif message.role == "assistant":
            yield Segment("own", message.content)
        else:
            yield from _input(message.content, first=first)
            first = False


def _input(text: str, *, first: bool) -> Iterator[Segment]:
    """The parts of one input. `first`: what stands before the first label belongs to the list of functions."""
    kind: Kind = "functions" if first else "results"
    before_message = first
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        opened = _FENCE.match(line)
        if fence:
            closes = opened is not None and opened[1].startswith(fence) and not opened[2].strip()
            fence = "" if closes else fence
        elif opened is not None:
            fence = opened[1]
        elif (found := _labelled(line)) is not None:
            yield from _ended(kind, lines, shared=before_message)
            kind, lines = found, []
            before_message = before_message and found != "messages"
        lines.append(line)
    yield from _ended(kind, lines, shared=before_message)


def _labelled(line: str) -> Kind | None:
    return next((kind for label, kind in _LABELS if label.match(line)), None)


def _ended(kind: Kind, lines: Sequence[str], *, shared: bool) -> Iterator[Segment]:
    """A segment that is complete. `shared`: it stands before an agent's first line, where all agents read the same."""
    text = "\n".join(lines)
    if not text.strip():
        return

    if kind == "notes" and shared:
        yield Segment("functions", text)
    elif kind == "notes":
        named = _NOTE.match(text)
        yield Segment("notes", text, named[1] if named is not None else "")
    elif kind == "state" and (recalled := _RECALLED.search(text)) is not None:
        yield Segment("memory", recalled.group())
        yield Segment("state", text[: recalled.start()] + text[recalled.end() :])
    else:
        yield Segment(kind, text)
