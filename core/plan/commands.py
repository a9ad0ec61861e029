"""What a plan wants done in the world: the answers of `PlanMachine`, in order, to what happened.

Events (`NodeChange`, `PlanVersion`) and notices are to be told; the others (a `Firing` is an attempt to be made) are to
be carried out, and what comes of them is told to the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from iact.core.plan.model import PlanExtension, PlanVersion
from iact.core.plan.protocol import Firing, PlanQuestion
from iact.core.plan.state import NodeChange


class StopFiring(NamedTuple):
    """Stop the attempt at a node that is under way; it still has to be told as ended."""

    node: str


class TakeOverCopy(NamedTuple):
    """What the attempt at a node wrote in its copy of the workspace is to stand in the workspace: then it has succeeded."""

    node: str


class AskModel(NamedTuple):
    """Put a question to a model. `pieces`: its answer is to be told piece by piece, too."""

    thought: int
    question: PlanQuestion
    pieces: bool


class StopAsking(NamedTuple):
    """Nobody waits for the answer any more."""

    thought: int


class PlanNotice(NamedTuple):
    """Something for a person; nothing that a model sees."""

    text: str


class Risk(NamedTuple):
    """How a profile is judged before it runs (PTR, formulas 13 to 18). `rules`: what it says for each case, in words."""

    risk: float
    components: Mapping[str, float]
    route: str
    confidence: float
    assumptions: tuple[str, ...]
    fragile: tuple[str, ...]
    rules: tuple[str, ...]


class RuleFired(NamedTuple):
    """A rule of a profile changed a step, without a model's word."""

    node: str
    what: Literal["auto", "branch", "recovery"]
    rule: str


class Trust(NamedTuple):
    """How what a profile gave is judged (PTR, formulas 32 to 34). `penalties`: what the trust lost for each kind of trouble.

    `repair`: it is repaired once. `climbs`: the mode that judges the plan from here on, "" if none.
    """

    trust: float
    penalties: Mapping[str, float]
    verification: Literal["sound", "degraded", "unsound"]
    issues: tuple[str, ...]
    flags: tuple[str, ...]
    repair: bool
    climbs: str


Assessed = Risk | RuleFired | Trust
"""What a mode tells of its judgement of a plan."""

Command = (
    NodeChange
    | PlanVersion
    | PlanExtension
    | Firing
    | StopFiring
    | TakeOverCopy
    | AskModel
    | StopAsking
    | PlanNotice
    | Assessed
)
