"""What waits in a live directory, as people and programs are shown it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from iact.core.ports import JSON, FileChange
from iact.core.tree.effects import change_json
from iact.core.tree.pending import PendingChange

Row = Mapping[str, JSON]
"""A change that waits, as people and programs are shown it."""


def rows(pending: Mapping[str, PendingChange]) -> list[Row]:
    """One row for each path that waits, in order; an addition and a deletion of the same content name each other."""
    moved = renames(item.change for item in pending.values())
    return [_row(item, moved) for item in pending.values()]


def _row(item: PendingChange, moved: Mapping[str, str]) -> dict[str, JSON]:
    found: dict[str, JSON] = {
        **change_json(item.change),
        "impact": item.effect.impact,
        "why": item.effect.why,
        "held": item.held,
        "reason": item.reason,
        "n": item.n,
        "calls": list[JSON](item.calls),
        "agents": list[JSON](item.agents),
        "labels": list[JSON](sorted(item.labels)),
    }
    if other := moved.get(item.change.path):
        found["from" if item.change.kind == "add" else "to"] = other
    return found


def renames(changes: Iterable[FileChange]) -> dict[str, str]:
    """Files that look as if they were renamed: from the old path to the new one, and back.

    Only where it can't be doubted: one file of that content was deleted, and one added.
    """
    gone: dict[str, list[str]] = {}
    come: dict[str, list[str]] = {}
    for change in changes:
        state, side = (change.was, gone) if change.kind == "delete" else (change.now, come)
        if (
            change.kind != "modify"
            and state is not None
            and state.type == "file"
            and state.size
            and state.sha256
        ):
            side.setdefault(state.sha256, []).append(change.path)
    found: dict[str, str] = {}
    for content, old in gone.items():
        new = come.get(content, [])
        if len(old) == len(new) == 1:
            found |= {old[0]: new[0], new[0]: old[0]}
    return found


def counts(patch: str) -> tuple[int, int] | None:
    """Lines that a unified diff adds and takes away; None if it shows none, because of what the change is of."""
    lines = patch.split("\n")
    begin = next((at for at, line in enumerate(lines) if line.startswith("@@ ")), None)
    if begin is None:
        return None
    body = lines[begin:]
    return sum(line.startswith("+") for line in body), sum(line.startswith("-") for line in body)
