"""The conversation of the tail benchmark, and the five places where its dynamic block can be.

Pure: the conversation is the same in every run and in every layout, except for the model's own replies.
A layout is a function from the turns so far to the messages of the next call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from iact.core.context.first_message import AgentOffer, forked, identity, offer
from iact.core.context.prompt import STANDARD
from iact.core.context.tail import Told, tail
from iact.core.context.tail import changes as state_changes
from iact.core.language import labels
from iact.core.language.actions import ActionSpec
from iact.core.language.variables import Table, text_value
from iact.core.ports import ChatMessage
from iact.core.records.parts import Seen

_MANUAL: Final = """

# About this installation
Reports are short Markdown documents: a heading, one paragraph that says what was found, a table if there are more \
than three numbers, and one line about what is uncertain. Numbers carry their unit. Times are UTC. Sizes are in bytes \
unless they are easier to read in kB, MB or GB. Say where each number comes from.

- Read before you write, and write only below the working directory.
- A file that is larger than a few hundred lines is looked at with head, tail, grep or wc, never as a whole.
- What a command printed is kept as a variable; mention its name instead of copying it.
- If a command fails, read the error, change one thing and try again; after the third failure say what you know.
- Secrets are never printed. A password, a key or a token that stands in a file is replaced by three dots.
- If two sources contradict each other, say so, name both, and prefer the newer one.
- When a task has several independent parts, give each to a child of its own, and put their answers together.
- When you are done, say so in one sentence, and name the variables that hold the result."""

_NAMES: Final = (
    "sales",
    "stock",
    "orders",
    "prices",
    "clients",
    "returns",
    "routes",
    "visits",
    "costs",
    "staff",
)
_STEPS: Final = ("north", "south", "east", "west", "centre")
_CHARACTERS: Final = 5000


def _static() -> str:
    """Enough description of the data to make the prompt equally long, whatever the length of the product's own."""
    files = (
        f"- The file {name}-{step}.csv has one line for each day, with the day, the place, the count and the sum."
        for step in _STEPS
        for name in _NAMES
    )
    text = f"{STANDARD.system}{_MANUAL}\n\n# The data"
    for line in files:
        if len(text) + len(line) > _CHARACTERS:
            break
        text += f"\n{line}"
    return text


STATIC: Final = _static()
"""The static prompt: the product's own, house rules, and a description of the data; 1,000 to 1,500 tokens in all."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: the agent's input and its dynamic block, whole and as the product appends it.

    `reply`: what the model wrote in this layout.
    """

    input: str
    whole: str
    changes: str
    reply: str = ""


def conversation(turns: int) -> list[Turn]:
    """A session of data work: each turn adds the output of a command, and sometimes a variable or a child."""
    table, found, told = Table(), list[Turn](), None
    for number in range(turns):
        if number % 3 == 0:
            size = number * 911 + 400
            table.keep("run", text_value("x" * size, media="text/csv", origin="shell.run"))
        seen = _seen(number)
        whole = tail(seen, table)
        found.append(Turn(_input(number), whole, whole if told is None else state_changes(told, seen, table)))
        told = Told(seen, table.bindings)
    return found


def _file(number: int) -> str:
    return f"{_NAMES[number % len(_NAMES)]}-{_STEPS[number % len(_STEPS)]}.csv"


def command(number: int) -> str:
    """The command whose output is that of turn `number`."""
    return f"wc -lc {_file(number)}"


def printed(number: int) -> str:
    """The output of a command."""
    return f"{_file(number)}\n{number * 37 + 12} lines, {number * 911 + 4096} bytes"


def folder(number: int) -> str:
    """The working directory at a turn."""
    return f"/workspace/data/{_STEPS[number // 6 % len(_STEPS)]}"


def _input(number: int) -> str:
    if number == 0:
        shell = ActionSpec("shell.run", "Run a script in the sandbox.")
        opening = "\n\n".join([*offer(AgentOffer([], [shell], [], [], [])), identity("/", "user", "")])
        return f"{opening}\n\n{labels.message('the user', 'Go through the files one by one and report.', {})}"
    return labels.result("shell.run", printed(number), variable=f"run_{number}", exit_status=0)


def _seen(number: int) -> Seen:
    children = tuple(f"reader_{index + 1}" for index in range(number // 4 % 3))
    return Seen(f"2026-11-21 {2 + number // 20:02}:{number * 3 % 60:02} UTC", folder(number), children)


# --- layouts --------------------------------------------------------------------------------------

Layout = Callable[[Sequence[Turn]], list[ChatMessage]]
"""From the turns so far, the last of them without a reply, to the messages of the call."""


def front(turns: Sequence[Turn]) -> list[ChatMessage]:
    """The dynamic block before everything else, in the system prompt."""
    return [ChatMessage("system", f"{turns[-1].whole}\n\n{STATIC}"), *_history(turns)]


def middle(turns: Sequence[Turn]) -> list[ChatMessage]:
    """The dynamic block between the static prompt and the history."""
    return [ChatMessage("system", f"{STATIC}\n\n{turns[-1].whole}"), *_history(turns)]


def dropped(turns: Sequence[Turn]) -> list[ChatMessage]:
    """The whole dynamic block after the newest input, removed at the next turn."""
    *before, last = _history(turns)
    newest = ChatMessage("user", f"{last.content}\n\n{turns[-1].whole}")
    return [ChatMessage("system", STATIC), *before, newest]


def kept(turns: Sequence[Turn]) -> list[ChatMessage]:
    """The whole dynamic block after every input, kept."""
    return [ChatMessage("system", STATIC), *_history(turns, lambda turn: turn.whole)]


def changes(turns: Sequence[Turn]) -> list[ChatMessage]:
    """Only the changes of the dynamic block, after every input, kept."""
    return [ChatMessage("system", STATIC), *_history(turns, lambda turn: turn.changes)]


LAYOUTS: Final[dict[str, Layout]] = {
    "changes appended": changes,
    "at the end, dropped": dropped,
    "at the end, kept": kept,
    "in the middle": middle,
    "in front": front,
}


def _history(turns: Sequence[Turn], state: Callable[[Turn], str] | None = None) -> list[ChatMessage]:
    """Inputs and replies in turn. `state`: the text after each input."""
    messages: list[ChatMessage] = []
    for turn in turns:
        messages.append(ChatMessage("user", f"{turn.input}\n\n{state(turn)}" if state else turn.input))
        messages.append(ChatMessage("assistant", turn.reply))
    return messages[:-1]


# --- children -------------------------------------------------------------------------------------

_TASK: Final = "Add up the bytes of all files that were read so far, and name the three largest."


def child_own(number: int, turns: Sequence[Turn]) -> list[ChatMessage]:
    """A child with its own prompt, none of which the server has read before."""
    role = f"You are reader number {number + 1}, a specialist for part {number + 1} of the data."
    return [ChatMessage("system", f"{role}\n\n{STATIC}"), _task(number, turns)]


def child_shared(number: int, turns: Sequence[Turn]) -> list[ChatMessage]:
    """A child with the static prompt of all agents. Its caller tells it what it must know."""
    return [ChatMessage("system", STATIC), _task(number, turns)]


def child_forked(number: int, turns: Sequence[Turn]) -> list[ChatMessage]:
    """A child that begins with its caller's history and is told only what to do."""
    head = forked(f"/reader_{number + 1}", "/", "")
    task = labels.message("your caller /", _TASK, {})
    return [
        *changes(turns),
        ChatMessage("assistant", turns[-1].reply),
        ChatMessage("user", f"{head}\n\n{task}"),
    ]


CHILDREN: Final[dict[str, Callable[[int, Sequence[Turn]], list[ChatMessage]]]] = {
    "prompt of its own": child_own,
    "static prompt shared": child_shared,
    "forked from the caller": child_forked,
}


def _task(number: int, turns: Sequence[Turn]) -> ChatMessage:
    """The first message to a child that sees nothing of its caller. It repeats everything that was read."""
    known = "\n".join(f"{turn.input}" for turn in turns[1:])
    opening = identity(f"/reader_{number + 1}", "/", "")
    told = labels.message("your caller /", f"{known}\n\n{_TASK}", {})
    return ChatMessage("user", f"{opening}\n\n{told}")
