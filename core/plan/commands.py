"""What a plan wants done in the world: the answers of `PlanMachine`, in order, to what happened.

Events (`NodeChange`, `PlanVersion`) and notices are to be told; the others (a `Firing` is an attempt to be made) are to
be carried out, and what comes of them is told to the machine.
"""

from __future__ import annotations

from typing import NamedTuple

from core.plan.model import PlanVersion
from core.plan.seams import Firing, Question
from core.plan.state import NodeChange


class StopFiring(NamedTuple):
    """Stop the attempt at a node that is under way; it still has to be told as ended."""

    node: str


class AskModel(NamedTuple):
    """Put a question to a model. `pieces`: its answer is to be told piece by piece, too."""

    thought: int
    question: Question
    pieces: bool


class StopAsking(NamedTuple):
    """Nobody waits for the answer any more."""

    thought: int


class Notice(NamedTuple):
    """Something for a person; nothing that a model sees."""

    text: str


Command = NodeChange | PlanVersion | Firing | StopFiring | AskModel | StopAsking | Notice
