"""The tree's knowledge of a live directory seen through an overlay, as data that `core.tree.effects` changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from iact.core.gate.effects import Effect
from iact.core.gate.installs import Installer
from iact.core.gate.provenance import NOTHING, Labels
from iact.core.ports import FileChange, FileState
from iact.core.records.calls import Held

After = Literal["call", "person", "open"]
"""What the overlay was inspected after: a call, a person's request, or opening the session."""


@dataclass(frozen=True, slots=True)
class UnseenCall:
    """A call that could write, and whose effects were not inspected yet.

    `n`: its record. `labels`: of all that it wrote.
    """

    n: int
    agent: str
    function: str
    labels: Labels
    installs: Installer | None = None
    """The installer that it runs and nothing else, if no stranger was met (`core.tree.installing`)."""


@dataclass(frozen=True, slots=True)
class PendingChange:
    """A change that is in the overlay and not in the directory. `n`: the record that reported its present form.

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
    """Changes that are about to be applied or dropped, recorded in advance as record `n`.

    `force`: paths that are applied in spite of a conflict.
    """

    n: int
    op: Literal["apply", "drop"]
    changes: Mapping[str, PendingChange]
    force: frozenset[str] = frozenset()


@dataclass(slots=True)
class LiveFolder:
    """The state of a live directory. `overlay`: modules see the directory through one. `own`: what this session added
    to the directory, as it left it.

    `working`: calls whose effects were not inspected yet, by record. `intended`: an intention that was recorded and is
    not settled yet.
    """

    overlay: bool = False
    pending: dict[str, PendingChange] = field(default_factory=dict)
    own: dict[str, FileState] = field(default_factory=dict)
    working: dict[int, UnseenCall] = field(default_factory=dict)
    intended: Intention | None = None
