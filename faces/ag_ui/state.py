"""The tree of agents as the state that a front end shares: one snapshot, then JSON patches of what changed.

What else a front end keeps in its state stays as it is: ours is under `iact`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ag_ui.core import StateDeltaEvent, StateSnapshotEvent

from iact.core.ports import JSON
from iact.core.session.view import NodeView


class FrontEndState:
    """The state as the front end has it by now."""

    def __init__(self, session: str, given: object) -> None:
        self._session = session
        self._others = {**given} if isinstance(given, dict) else {}
        self._tree: dict[str, dict[str, JSON]] = {}
        self._record = 0

    def snapshot(self, record: int, nodes: Iterable[NodeView]) -> StateSnapshotEvent:
        """All of it. `record`: the last one that the front end is told of."""
        self._record, self._tree = record, {one.path: _fields(one) for one in nodes}
        ours = {"session": self._session, "record": record, "tree": self._tree}
        return StateSnapshotEvent(snapshot={**self._others, "iact": ours})

    def changed(self, record: int, nodes: Sequence[NodeView]) -> list[StateDeltaEvent]:
        """What changed since the last time."""
        tree = {one.path: _fields(one) for one in nodes}
        patches: list[Mapping[str, JSON]] = [
            {"op": "remove", "path": _pointer(path)} for path in self._tree if path not in tree
        ]
        for path, fields in tree.items():
            before = self._tree.get(path)
            if before is None:
                patches.append({"op": "add", "path": _pointer(path), "value": fields})
            elif before != fields:
                patches.append({"op": "replace", "path": _pointer(path), "value": fields})
        if record != self._record:
            patches.append({"op": "replace", "path": "/iact/record", "value": record})
        self._record, self._tree = record, tree
        return [StateDeltaEvent.model_validate({"type": "STATE_DELTA", "delta": patches})] if patches else []


def _fields(node: NodeView) -> dict[str, JSON]:
    return {
        "kind": node.kind, "caller": node.caller, "state": node.state, "doing": node.doing, "model": node.model,
        "turns": node.turns, "prompt_tokens": node.prompt_tokens, "completion_tokens": node.completion_tokens,
        "ended": node.ended,
    }  # fmt: skip


def _pointer(path: str) -> str:
    return "/iact/tree/" + path.replace("~", "~0").replace("/", "~1")
