"""What the tree knows of a live directory that is seen through an overlay: as data, changed by `core.tree.effects`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from iact.core.gate.effects import Effect
from iact.core.gate.provenance import NOTHING, Labels
from iact.core.ports import FileChange, FileState
from iact.core.records.calls import Held

After = Literal["call", "person", "open"]
"""What the overlay was looked at after: a call, a person's wish to see, or opening the session."""


@dataclass(frozen=True, slots=True)
class UnseenCall:
    """A call that could write, and whose effects were not looked at yet. `n`: its record; `labels`: of all that it wrote."""

    n: int
    agent: str
    function: str
    labels: Labels


@dataclass(frozen=True, slots=True)
class PendingChange:
    """A change that is in the overlay and not in the directory. `n`: the record that told of its present form.

    `reason`: why it waits, a sentence for people. `calls`, `agents`, `labels`: where it comes from.
    """

    change: FileChange
    effect: Effect
    n: int
    held: Held = ""
    reason: str = ""
    calls: tuple[int, ...] = ()
    agents: tuple[str, ...] = ()
    labels: Labels = NOTHING


@dataclass(frozen=True, slots=True)
class Intention:
    """Changes that are about to be applied or dropped; written ahead as record `n`. `force`: in spite of a conflict."""

    n: int
    op: Literal["apply", "drop"]
    changes: Mapping[str, PendingChange]
    force: frozenset[str] = frozenset()


@dataclass(slots=True)
class LiveFolder:
    """`overlay`: modules see the directory through one. `own`: what this session added to the directory, as it left it.

    `working`: calls whose effects were not looked at yet, by record. `intended`: what was written ahead and is not settled.
    """

    overlay: bool = False
    pending: dict[str, PendingChange] = field(default_factory=dict)
    own: dict[str, FileState] = field(default_factory=dict)
    working: dict[int, UnseenCall] = field(default_factory=dict)
    intended: Intention | None = None
