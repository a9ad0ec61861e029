"""Which statements every agent of a new session is told: wishes and constraints of its person, decisions of its project.

Pure. What the person can't bear comes first, then rules and the language, then the newest; the rest is left to recall.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from iact.core.ports import Recalled
from iact.hippocampus.ranking import quoted, tokens, told
from iact.hippocampus.statement import Statement

_HEALTH: Final = re.compile(
    r"\b(?:allerg\w+|intoleran\w+|unverträglich\w*|co?eliac|zöliakie|diabet\w+|vegetari\w+|vegan\w*|halal|kosher|koscher"
    r"|blind|deaf|colou?r.?blind|(?:can't|cannot|don't|never|no longer) (?:eat|drink)|(?:esse|trinke|vertrage) (?:kein|nie|nicht))\b",
    re.IGNORECASE,
)
_RULE: Final = re.compile(
    r"\b(?:always|never|call me|from now on|immer|nie|niemals|nenn\w* mich|ab jetzt|künftig)\b|\b(?:answer|reply|write|antworte|schreib\w*) .*\b(?:in|auf) \w+",
    re.IGNORECASE,
)

_DECISIONS: Final = 0.4
"""The share of the budget that is kept for the project's decisions, if there are so many."""


def standing(wishes: Iterable[Statement], decisions: Iterable[Statement], budget: int) -> list[Recalled]:
    """Choose the standing statements, the most important first, within a budget of tokens."""
    newest_wishes = sorted(filter(_stands, wishes), key=_newest, reverse=True)
    ordered = sorted(newest_wishes, key=_rank)
    newest = sorted(filter(_stands, decisions), key=_newest, reverse=True)

    # Some decisions have room whatever the wishes are; those that are left share what the wishes leave.
    room = budget
    chosen: list[Recalled] = []
    for statements, share in ((newest, _DECISIONS), (ordered, 1.0), (newest, 1.0)):
        left = min(room, int(budget * share))
        for statement in statements:
            row = _row(statement)
            cost = tokens(row.line) + 1  # its bullet
            if cost <= left and row not in chosen:
                chosen.append(row)
                left -= cost
                room -= cost

    return sorted(chosen, key=lambda row: row.kind == "decision")


def _stands(statement: Statement) -> bool:
    """Whether a statement may be told to everybody: what came from outside, or is disputed, may not."""
    return statement.holds and not statement.untrusted and not statement.contradicts


def _newest(statement: Statement) -> tuple[str, str]:
    return statement.at, statement.id


def _rank(statement: Statement) -> int:
    """How important a wish is; the smaller, the more."""
    if _HEALTH.search(statement.text):
        return 0
    return 1 if _RULE.search(statement.text) else 2


def _row(statement: Statement) -> Recalled:
    whose = "decision of this project" if statement.kind == "decision" else "preference"
    return told(statement, f"{whose}: {quoted(statement.text)}", score=1.0, why="standing")
