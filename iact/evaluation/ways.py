"""The ways of working that are compared: each has a mode, bounds, and a text before the task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from iact.core.records.parts import Bounds
from iact.core.records.ways import PLAN_MODES, Way

BASELINE: Final = "react"


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of working. `before`: the text before each task. Where None, the settings apply."""

    name: str
    mode: Way
    before: str = ""
    turns: int | None = None
    concurrency: int | None = None
    patches: int | None = None
    replans: int | None = None

    def of(self, bounds: Bounds) -> Bounds:
        """The bounds of its sessions."""
        plans = bounds.plans
        plans = replace(
            plans,
            concurrency=plans.concurrency if self.concurrency is None else self.concurrency,
            patches=plans.patches if self.patches is None else self.patches,
            replans=plans.replans if self.replans is None else self.replans,
        )
        return replace(bounds, turns=self.turns or bounds.turns, plans=plans)


_CAREFUL: Final = "Think before you act: what is known, what is missing, what went wrong and why. Keep a list of what is done.\n\n"
_PLANNED: Final = "Write down a plan of all calls before the first one, and follow it step by step.\n\n"

_PERSISTENT: Final = "Go on until the task is done: try another way where one fails. Ask nobody anything. Show how you came to your answer.\n\n"

GROUPS: Final = (
    Arm("G0", "dialogue", _CAREFUL),
    Arm("G1", "dialogue"),
    Arm("G2", "dialogue", _PLANNED),
    Arm("G3", "static", concurrency=1, patches=0, replans=0),
    Arm("G4", "static", patches=0, replans=0),
    Arm("G5", "static", replans=0),
    Arm("G6", "static"),
)
"""Graph Harness, table 12: careful loop, naive loop, loop with a plan in its prompt; then an enforced plan: one step at a
time, all ready steps at the same time, with patches, with patches and replans."""

ARMS: Final[Mapping[str, Arm]] = {
    one.name: one
    for one in (
        Arm(BASELINE, "dialogue", turns=15),
        Arm("react8", "dialogue", turns=8),
        Arm("persistent", "dialogue", _PERSISTENT, turns=15),
        Arm("auto", "auto"),
        *(Arm(mode, mode) for mode in PLAN_MODES),
        *GROUPS,
    )
}
"""ReAct is iact's dialogue, with as many turns as in KAIJU; `react8` has as many as in PTR, and `persistent` has KAIJU's demands
of its baseline in words of ours."""

USUAL: Final[Mapping[str, tuple[str, ...]]] = {
    "seven_groups": tuple(one.name for one in GROUPS),
    "gaia": (BASELINE, "reflect"),
    "questions": (BASELINE, "reflect", "nreflect", "orchestrator"),
}
"""The ways for sets whose papers compared others than `PROFILED`."""

PROFILED: Final = (BASELINE, "profile")
