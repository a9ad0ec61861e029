"""The data that a plan and its runner exchange: what to fire and ask, and the results.

A `FunctionCatalogue` knows the functions in the caller's scope. A plan knows neither agents nor modules nor models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol

from pydantic import BaseModel

from iact.core.plan.model import PlanNode
from iact.core.plan.prompt import QuestionPart
from iact.core.ports import JSON

# --- firing nodes ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepSuccess:
    """A node's work is done. `labels`: the sources of its output. `exit_status`: the tool's, if it has one."""

    output: JSON
    labels: tuple[str, ...] = ()
    exit_status: int | None = None
    tokens: int = 0


FailureKind = Literal[
    "raised", "incomplete", "unavailable", "timeout", "contract", "crashed", "interrupted", "conflict"
]
"""raised: the tool's own error. incomplete: denied or unreachable, which look alike and are never retried. unavailable:
overloaded or not up yet (transient). crashed: our own runner raised. conflict: what it wrote in a copy could not be
taken over, because the workspace had changed there meanwhile (transient: the next attempt gets a new copy).
"""

TRANSIENT: frozenset[FailureKind] = frozenset({"unavailable", "timeout", "interrupted", "conflict"})


@dataclass(frozen=True, slots=True)
class StepFailure:
    """A node's work did not succeed. `message` is for the planner and shows a tool's own error in full."""

    kind: FailureKind
    message: str
    exit_status: int | None = None
    tokens: int = 0

    @property
    def transient(self) -> bool:
        """Whether the same call may succeed if it is made again."""
        return self.kind in TRANSIENT


Outcome = StepSuccess | StepFailure

Decision = Literal["approved", "denied", "expired"]
"""The result of asking a person about a call; expired: the person did not decide in time."""


class Firing(NamedTuple):
    """One attempt at one node. `arguments`: with every ref resolved. `labels`: the sources of the arguments.

    `inputs`: for an agent node, the outputs of its dependencies, by id. `race`: the node for which it races in a copy
    of the workspace; empty: it works in the workspace itself.
    """

    plan: str
    version: int
    node: PlanNode
    attempt: int
    arguments: Mapping[str, JSON]
    labels: tuple[str, ...]
    inputs: Mapping[str, JSON]
    race: str = ""


# --- asking models ---------------------------------------------------------------------------------

QuestionKind = Literal[
    "plan", "correct", "replan", "reflect", "interject", "observe", "patch", "analyze", "judge",
    "profile", "repair", "reason", "synthesize", "compact", "answer", "word",
]  # fmt: skip


ROLES: Final[Mapping[QuestionKind, str]] = {
    "plan": "smart", "correct": "smart", "replan": "smart", "profile": "smart", "repair": "smart",
    "analyze": "smart", "reason": "smart",
    "reflect": "fast", "interject": "fast", "observe": "fast", "patch": "fast", "judge": "fast", "synthesize": "fast",
    "compact": "fast", "answer": "fast", "word": "fast",
}  # fmt: skip
"""Which model answers which question, unless the plan's limits say otherwise. Inventing steps, or judging the whole of
a goal, needs the better model; looking at evidence does not (KAIJU, section 6; DAG mode, model roles).
"""


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """One self-contained model call over task-focused evidence."""

    kind: QuestionKind
    text: str = ""
    """What the model reads; the plan's run builds it out of `parts`, for the window of the model that is asked."""
    node: str = ""
    """The id of the node that represents it in the plan; empty if none does."""
    role: str = ""
    """Which model; the plan's run decides it when the question is asked."""
    shape: type[BaseModel] | None = None
    """The shape of the answer, if it is data and not prose."""
    parts: tuple[QuestionPart, ...] = ()
    """What it is made of."""
    smaller: bool = False
    """Whether it is asked once more, smaller, because its endpoint found it too long."""


# --- available functions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """A function in the caller's scope. `schema`: JSON Schema of its parameters, already checked to be safe.

    `impact`: as the policy rates it. `writes`: resources that it writes. `endpoint`: whose rate limit applies. `body`:
    the parameter that an agent writes as a block.
    """

    name: str
    summary: str = ""
    schema: Mapping[str, JSON] | None = None
    impact: float = 0
    idempotent: bool = False
    writes: tuple[str, ...] = ()
    endpoint: str = ""
    body: str = ""
    signature: str = ""
    """Its line in a list of functions, as agents read it (`core.context.signature`); empty: it is made from `schema`."""
    returns: str = ""
    """What it returns, in a word or two; empty: text."""
    copies: bool = False
    """For a specific call: all that it writes is in the workspace, so it can be made in a copy of the workspace."""


class FunctionCatalogue(Protocol):
    """The functions that the caller may use; functions outside its scope do not exist."""

    def find(self, name: str) -> FunctionInfo | None: ...
    def of_call(self, name: str, arguments: Mapping[str, JSON]) -> FunctionInfo | None:
        """Return a function as one call of it: with the call's impact here, and what it is known to write."""
        ...

    def all(self) -> Sequence[FunctionInfo]: ...
