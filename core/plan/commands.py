"""What a plan wants done in the world: the commands that `PlanMachine` returns, in order.

Events (`NodeChange`, `PlanVersion`) and notices are to be reported. The other commands are to be carried out (a
`Firing` is an attempt to make), and their results are passed to the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from iact.core.plan.model import PlanExtension, PlanVersion
from iact.core.plan.protocol import Firing, PlanQuestion
from iact.core.plan.state import NodeChange
from iact.core.ports import JSON


class StopFiring(NamedTuple):
    """Stop a node's attempt in progress. Its end must still be reported."""

    node: str


class TellAgent(NamedTuple):
    """Answer the question of an agent that works on a step; it goes on with its task."""

    node: str
    answer: str


class TakeReply(NamedTuple):
    """Take what an agent asked as its step's result, because it is one."""

    node: str


class AskPerson(NamedTuple):
    """Ask the person what an agent that works on a step has asked. The answer must be reported."""

    node: str
    question: str


class AskAcceptance(NamedTuple):
    """Ask the person whether they accept a step's output, as its contract demands. The answer must be reported.

    `question`: what they are to judge; empty: only whether it is right.
    """

    node: str
    question: str
    output: JSON


class TakeOverCopy(NamedTuple):
    """Take over what a node's attempt wrote in its copy of the workspace into the workspace. Then it has succeeded."""

    node: str


class AskModel(NamedTuple):
    """Ask a model a question. `pieces`: its answer is also reported piece by piece."""

    thought: int
    question: PlanQuestion
    pieces: bool


class StopAsking(NamedTuple):
    """Stop a question whose answer is no longer needed."""

    thought: int


class PlanNotice(NamedTuple):
    """A message for a person; models do not see it."""

    text: str


class Risk(NamedTuple):
    """The assessment of a profile before it runs (PTR, formulas 13 to 18).

    `rules`: what it does in each case, in words.
    """

    risk: float
    components: Mapping[str, float]
    route: str
    confidence: float
    assumptions: tuple[str, ...]
    fragile: tuple[str, ...]
    rules: tuple[str, ...]


class RuleFired(NamedTuple):
    """A rule of a profile changed a step, without asking a model."""

    node: str
    what: Literal["auto", "branch", "recovery"]
    rule: str


class Trust(NamedTuple):
    """The assessment of a profile's result (PTR, formulas 32 to 34). `penalties`: what each kind of trouble cost in
    trust.

    `repair`: it is repaired once. `climbs`: the mode that judges the plan from here on; "" if none.
    """

    trust: float
    penalties: Mapping[str, float]
    verification: Literal["sound", "degraded", "unsound"]
    issues: tuple[str, ...]
    flags: tuple[str, ...]
    repair: bool
    climbs: str


Assessed = Risk | RuleFired | Trust
"""What a mode reports about its assessment of a plan."""

Command = (
    NodeChange
    | PlanVersion
    | PlanExtension
    | Firing
    | StopFiring
    | TakeOverCopy
    | TellAgent
    | TakeReply
    | AskPerson
    | AskAcceptance
    | AskModel
    | StopAsking
    | PlanNotice
    | Assessed
)
