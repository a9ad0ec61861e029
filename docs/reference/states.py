"""Generate `states.md` in this folder from the tables in `core.tree.states`: python -m docs.reference.states"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from iact.core.tree.states import PAUSES, TRANSITIONS, Transition

PAGE: Final = Path(__file__).with_suffix(".md")

_MEANINGS: Final = {
    "idle": "was created and has not been called yet",
    "thinking": "waits for its model to begin a reply, or the model is writing one",
    "acting": "an action that it wrote is being carried out",
    "waiting": "waits for a child to reply, or for a person to decide whether a call may be made",
    "paused": "has work to do, but it or an agent above it is paused",
    "done": "has answered; it can be called again",
    "failed": "its model failed; it can be called again",
    "cancelled": "was cancelled; it can be called again",
}

_HEAD: Final = """\
# States

<!-- Written by docs/reference/states.py from core/tree/states.py; change that and run: python -m docs.reference.states -->

The states of an agent in the tree, and the events that change them. The tables are data in the program
(`core/tree/states.py`). Its tests check that they contain every change in recorded sessions.
"""

_GUARDS: Final = """\
The events: `message` is a message from the user, from the agent's caller, or from a person who intervenes. `child` is
the reply of a child, and `answer` the answer to a question for clearance. `pause` and `resume` come from a pause of the
agent or of an agent above it. The other events are the agent's own records. The condition is the first of the agent's
actions that are not settled (`action`, `child`, `clearance` or `nothing`), how the agent replied, or whether it is
paused. `plan` means that it is a plan, which is acting from its start to its end.
"""

_PAUSES: Final = """\
## Pauses

Each agent can be paused separately. An agent works only while neither it nor any agent above it is paused (`closed`).
Resuming a parent therefore does not resume a child that was paused separately.
"""


def page() -> str:
    """The page as Markdown."""
    return "\n".join(
        [
            _HEAD,
            *_table(("state", "the agent"), _MEANINGS.items()),
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
    """One arrow for each pair of states, labelled with the events that cause the change."""

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
