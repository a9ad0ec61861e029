"""The pending changes of a live directory, as people and programs are shown them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NotRequired

from typing_extensions import TypedDict

from iact.core.ports import ChangeKind, FileChange, FileState, FileType
from iact.core.records.calls import Held
from iact.core.tree.live_folder import PendingChange
from iact.core.views.consent import change_digest
from iact.core.views.review_noise import Noise, NoiseOf


class StateRow(TypedDict):
    """The state of a path: a type and permission bits, for a file its size and SHA-256, for a link its `target`."""

    type: FileType
    mode: int
    size: NotRequired[int]
    content: NotRequired[str]
    target: NotRequired[str]


_Moved = TypedDict("_Moved", {"from": NotRequired[str], "to": NotRequired[str]})


class PendingRow(_Moved):
    """A pending change, as people and programs are shown it: what `was` in the directory, and what would be `now`.

    `digest`: of all of this, which a yes to it sends back (`core.views.consent`).
    `conflict`: the path was also changed in the directory in the meantime. `impact`, `why`: how much the change does.
    `held`, `reason`: what it waits for. `n`: the record that reported its present form. `calls`, `agents`, `labels`:
    where it comes from. `from`, `to`: the other path of a file that seems to have been moved. `noise`: what tools keep
    beside the work, which is shown folded (`core.views.review_noise`).
    """

    path: str
    kind: ChangeKind
    digest: str
    was: NotRequired[StateRow]
    now: NotRequired[StateRow]
    conflict: NotRequired[bool]
    impact: float
    why: str
    held: Held
    reason: str
    n: int
    calls: list[int]
    agents: list[str]
    labels: list[str]
    noise: NotRequired[Noise]


def rows(pending: Mapping[str, PendingChange], directory: Path) -> list[PendingRow]:
    """One row for each pending path, in order; an addition and a deletion of the same content refer to each other.

    `directory`: the user's. Blocks.
    """
    moved = renames(item.change for item in pending.values())
    noise = NoiseOf(directory)
    return [_row(item, moved, noise) for item in pending.values()]


def _row(item: PendingChange, moved: Mapping[str, str], noise: NoiseOf) -> PendingRow:
    """One pending change, as people are shown it. `moved`: as `renames` returns it."""
    change = item.change
    row: PendingRow = {
        "path": change.path,
        "kind": change.kind,
        "digest": change_digest(item),
        "impact": item.effect.impact,
        "why": item.effect.why,
        "held": item.held,
        "reason": item.reason,
        "n": item.n,
        "calls": [*item.calls],
        "agents": [*item.agents],
        "labels": sorted(item.labels),
    }

    if change.was is not None:
        row["was"] = _state(change.was)
    if change.now is not None:
        row["now"] = _state(change.now)
    if change.conflict:
        row["conflict"] = True

    other_path = moved.get(change.path)
    if other_path and change.kind == "add":
        row["from"] = other_path
    elif other_path:
        row["to"] = other_path

    noise_kind = noise.of(change)
    if noise_kind:
        row["noise"] = noise_kind
    return row


def _state(state: FileState) -> StateRow:
    found: StateRow = {"type": state.type, "mode": state.mode}
    if state.size:
        found["size"] = state.size
    if state.sha256:
        found["content"] = state.sha256
    if state.target:
        found["target"] = state.target
    return found


def renames(changes: Iterable[FileChange]) -> dict[str, str]:
    """Files that seem to have been renamed: from the old path to the new one, and back.

    Only unambiguous cases: exactly one file of that content was deleted, and exactly one added.
    """
    deleted: dict[str, list[str]] = {}
    added: dict[str, list[str]] = {}
    for change in changes:
        if change.kind == "delete":
            deleted.setdefault(_content_of(change.was), []).append(change.path)
        elif change.kind == "add":
            added.setdefault(_content_of(change.now), []).append(change.path)
    deleted.pop("", None)

    moved: dict[str, str] = {}
    for content, old_paths in deleted.items():
        new_paths = added.get(content, [])
        if len(old_paths) == len(new_paths) == 1:
            moved[old_paths[0]] = new_paths[0]
            moved[new_paths[0]] = old_paths[0]
    return moved


def _content_of(state: FileState | None) -> str:
    """The digest of a file's content; empty if it is no file, or an empty one: those are all the same."""
    if state is None or state.type != "file" or not state.size:
        return ""
    return state.sha256


def counts(patch: str) -> tuple[int, int] | None:
    """How many lines a unified diff adds and removes; None if it shows no lines, because of the kind of the change."""
    lines = patch.split("\n")
    begin = next((at for at, line in enumerate(lines) if line.startswith("@@ ")), None)
    if begin is None:
        return None
    body = lines[begin:]
    return sum(line.startswith("+") for line in body), sum(line.startswith("-") for line in body)
