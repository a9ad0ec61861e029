"""The tree of agents as shared state of a front end: one snapshot, then JSON patches with the changes.

The tree is under `iact`. Everything else in a front end's state is left unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ag_ui.core import StateDeltaEvent, StateSnapshotEvent

from iact.core.ports import JSON
from iact.core.views.view import NodeView


class FrontEndState:
    """The state that the front end has now."""

    def __init__(self, session: str, given: object) -> None:
        self._session = session
        self._others = {**given} if isinstance(given, dict) else {}
        self._tree: dict[str, dict[str, JSON]] = {}
        self._record = 0

    def snapshot(self, record: int, nodes: Iterable[NodeView]) -> StateSnapshotEvent:
        """The whole state. `record`: the last record that is reported to the front end."""
        self._record, self._tree = record, {one.path: _fields(one) for one in nodes}
        ours = {"session": self._session, "record": record, "tree": self._tree}
        return StateSnapshotEvent(snapshot={**self._others, "iact": ours})

    def changed(self, record: int, nodes: Sequence[NodeView]) -> list[StateDeltaEvent]:
        """The changes since the last call."""
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
