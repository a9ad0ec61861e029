"""A scripted model of a careful worker, for three small tasks. Its answers depend on what it was shown, in any form.

It knows neither modes nor plans. It reads the facts in its context, and does what a person with just these facts would
do: makes the next call in a dialogue, plans the calls that can be foreseen, or judges whether the facts suffice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from tests.scripted import Reply, Request

FIRST: Final = 0.15
"""Seconds until the first word."""
RATE: Final = 800
"""Characters per second."""
_CHUNK: Final = 40

Kind: TypeAlias = Literal[
    "dialogue", "plan", "reflect", "observe", "patch", "analyze", "profile", "judge", "report"
]

_TELLS: Final[Sequence[tuple[str, Kind]]] = (
    ("achieved", "analyze"), ("decision", "reflect"), ("inject", "observe"), ("replan_when", "profile"),
    ("skip", "patch"), ("holds", "judge"), ("steps", "plan"),
)  # fmt: skip
"""The fields of the requested answer that identify a question, the most reliable first."""


@dataclass(frozen=True, slots=True)
class Look:
    """One call of a tool. `body`: the text of its block in a dialogue."""

    call: str
    params: dict[str, str]
    body: bool = True

    def step(self, id: str) -> dict[str, object]:
        """The call as a step of a plan."""
        return {"id": id, "call": self.call, "params": self.params}

    def block(self) -> str:
        """The call as an action of a dialogue."""
        if self.body:
            return f"```{self.call}\n{next(iter(self.params.values()))}\n```"
        given = " ".join(f"{name}={value}" for name, value in self.params.items())
        return f"```{self.call} {given}\n```"


def _shell(command: str) -> Look:
    return Look("shell.run", {"command": command})


class LookUps:
    """Four numbers from four places that answer slowly, and their sum."""

    expected = "42 people"
    name = "independent look-ups"
    goal = "Ask north.sh, south.sh, east.sh and west.sh how many people they count (run each with sh), and add it up."
    _PLACES: Final = ("north", "south", "east", "west")
    files: Final = {
        f"{one}.sh": f"sleep 1\necho the {one} counts {number} people\n"
        for one, number in zip(_PLACES, (17, 20, 3, 2), strict=True)
    }

    def next(self, shown: str) -> Sequence[Look]:
        """The next call."""
        return [_shell(f"sh {one}.sh") for one in self._PLACES if f"the {one} counts" not in shown]

    def foreseen(self) -> Sequence[Look]:
        """The calls that can be planned before anything was seen."""
        return self.next("")

    def answer(self, shown: str) -> str | None:
        """The answer, if it is known."""
        found = dict(re.findall(r"the (\w+) counts (\d+) people", shown))
        return None if len(found) < len(self._PLACES) else f"Together {sum(map(int, found.values()))} people."


class Chain:
    """A note that leads to another note. The place of the third note can't be foreseen."""

    expected = "heliotrope"
    name = "a chain with a surprise"
    goal = "Follow the notes that begin in start.txt, and tell me the word at their end."
    files: Final = {
        "start.txt": "Go on in drawer.txt.\n",
        "drawer.txt": "This note was moved. Go on in attic/old-notes-2.txt.\n",
        "attic/old-notes-2.txt": "The word is heliotrope.\n",
    }

    def next(self, shown: str) -> Sequence[Look]:
        """The next call."""
        led = ["start.txt", *re.findall(r"Go on in (\S+\.txt)\.", shown)]
        return [_shell(f"cat {dict.fromkeys(led) and led[-1]}")]

    def foreseen(self) -> Sequence[Look]:
        """The calls that can be planned before anything was seen: the first one."""
        return [_shell("cat start.txt")]

    def answer(self, shown: str) -> str | None:
        """The answer, if it is known."""
        found = re.search(r"The word is (\w+)", shown)
        return f"The word is {found[1]}." if found else None


class Failing:
    """The obvious way fails; another one is found by looking around."""

    expected = "4120"
    name = "a failing tool"
    goal = "What is the total in register.txt?"
    files: Final = {
        "archive/register-2026.txt": "the total is 4120\n",
        "readme.txt": "Old files go to archive/.\n",
    }

    def next(self, shown: str) -> Sequence[Look]:
        """The next call."""
        return [_shell("grep -r total .")] if "There is no register.txt" in shown else self.foreseen()

    def foreseen(self) -> Sequence[Look]:
        """The calls that can be planned before anything was seen."""
        return [Look("files.read", {"path": "register.txt"}, body=False)]

    def answer(self, shown: str) -> str | None:
        """The answer, if it is known."""
        found = re.search(r"the total is (\d+)", shown)
        return f"The total is {found[1]}." if found else None


Task: TypeAlias = LookUps | Chain | Failing
TASKS: Final[tuple[Task, ...]] = (LookUps(), Chain(), Failing())


def answer(request: Request) -> Reply:
    """Answer a request at the pace of a model."""
    text = _say(request)
    return Reply(text, chunk=_CHUNK, delay=_CHUNK / RATE, first_delay=FIRST)


def kind_of(request: Request) -> Kind:
    """What the model is asked for. A dialogue is recognized by its first message."""
    if request.agent:
        return "dialogue"
    form = json.dumps(request.body.get("response_format", "")) + request.last
    return next((kind for field, kind in _TELLS if f'"{field}"' in form or f"{field}:" in form), "report")


def _say(request: Request) -> str:
    shown = "\n".join(content for role, content in request.messages if role == "user")
    task = next(one for one in TASKS if one.goal in shown)
    told = task.answer(shown)
    looks = task.next(shown)
    new = f"s{request.number}"
    steps = [one.step(f"{new}_{number}") for number, one in enumerate(looks)]
    match kind_of(request):
        case "dialogue" | "report":
            asks = "\n\n".join(one.block() for one in looks)
            return told or (asks if request.agent else "It could not be told from what was found.")
        case "plan":
            return json.dumps({"steps": steps})
        case "profile":
            return json.dumps(
                {
                    "steps": steps,
                    "confidence": 0.7,
                    "assumptions": ["the files are where they are said to be"],
                }
            )
        case "patch":
            return json.dumps({"steps": steps, "failure": "not found", "cause": "it was moved", "action": "replace", "confidence": 0.7})  # fmt: skip
        case "analyze":
            return json.dumps({"achieved": told is not None, "confidence": 0.9 if told else 0.4, "reasoning": "By the results.", "final_answer": told})  # fmt: skip
        case "reflect":
            planned = "Still planned:\n- nothing" not in shown and told is None
            decision = "conclude" if told else "continue" if planned else "replan"
            return json.dumps(
                {
                    "decision": decision,
                    "reason": "By the results.",
                    "progress": "productive",
                    "answer": told or "",
                }
            )
        case "observe":
            return json.dumps(
                {"action": "inject", "steps": steps}
                if _led_on(shown) and not told
                else {"action": "continue"}
            )
        case "judge":
            return json.dumps({"holds": True})


def _led_on(shown: str) -> bool:
    return "Go on in" in shown
