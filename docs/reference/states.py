"""Writes `states.md` beside itself, from the tables in `core.tree.states`: python -m docs.reference.states"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from iact.core.tree.states import PAUSES, TRANSITIONS, Transition

PAGE: Final = Path(__file__).with_suffix(".md")

_MEANINGS: Final = {
    "idle": "was created and has not been called yet",
    "thinking": "its model is to speak, or speaks",
    "acting": "an action that it wrote is carried out",
    "waiting": "a child is to reply, or somebody is to say whether a call may be made",
    "paused": "it has work, and it or one above it is paused",
    "done": "it has answered; it can be called again",
    "failed": "its model failed; it can be called again",
    "cancelled": "it was cancelled; it can be called again",
}

_HEAD: Final = """\
# States

<!-- Written by docs/reference/states.py from core/tree/states.py; change that and run: python -m docs.reference.states -->

What the tree shows of an agent, and what changes it. The tables are data in the program
(`core/tree/states.py`), and its tests find every change in recorded sessions in them.
"""

_GUARDS: Final = """\
The events: `message` is a word of the user, of its caller or an intervention; `child` is a reply by a
child, `answer` one to a question for clearance; `pause` and `resume` come from a pause of the agent or of one above it; the others are the agent's own
records. The condition says what comes first among the actions that it has not settled (`action`, `child`,
`clearance` or `nothing`), how it replied, or whether it is paused; `plan` says that it is a plan,
which is acting from its start to its end.
"""

_PAUSES: Final = """\
## Pauses

Each agent can be paused by itself. Work goes on only where neither the agent nor one above it is
closed, so resuming a parent does not resume a child that was paused by itself.
"""


def page() -> str:
    """The whole page."""
    return "\n".join(
        [
            _HEAD,
            *_table(("state", "an agent in it"), _MEANINGS.items()),
            "",
            "## Agents",
            "",
            *_mermaid(_arrows()),
            "",
            _GUARDS,
            *_table(("state", "event", "condition", "next state", "what happened"), _rows()),
            "",
            _PAUSES,
            *_mermaid(f"{row.source} --> {row.target}: {row.op}" for row in PAUSES),
            "",
        ]
    )


def _rows() -> Iterator[tuple[str, ...]]:
    for row in TRANSITIONS:
        yield row.source, f"`{row.event}`", f"`{row.guard}`" if row.guard else "", row.target, row.cause


def _arrows() -> Iterator[str]:
    """One arrow for each pair of states, labelled with the events that lead along it."""

    def ends(row: Transition) -> tuple[str, str]:
        return row.source, row.target

    yield "[*] --> idle"
    for (source, target), rows in groupby(sorted(TRANSITIONS, key=ends), key=ends):
        yield f"{source} --> {target}: {', '.join(dict.fromkeys(row.event for row in rows))}"


def _mermaid(lines: Iterable[str]) -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield from (f"    {line}" for line in lines)
    yield "```"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
