"""What a mode decides: which nodes may start yet, and after which event the plan is thought about.

A mode is a policy over the plan's state. It starts nothing, asks nothing and knows no time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from iact.core.errors import UsageError
from iact.core.plan.answers import Analysis, ReflectionAnswer
from iact.core.plan.commands import Assessed
from iact.core.plan.model import WORK, PlanNode
from iact.core.plan.modes.profile_rules import DomainRule
from iact.core.plan.protocol import FunctionCatalogue, PlanQuestion, QuestionKind, StepFailure
from iact.core.plan.questions import PlanSituation
from iact.core.plan.state import PlanState
from iact.core.plan.validate import levels
from iact.core.plan.verdict import GoalJudgement
from iact.core.ports import JSON
from iact.core.records.parts import PlanBounds
from iact.core.records.ways import OPTIONS


@dataclass(frozen=True, slots=True)
class DueThought:
    """A thought that is due. `subject`: ids of the nodes with new results.

    "own": the mode asks the question itself. `holds`: nothing starts until it is answered. `final`: nothing is left to
    run.
    """

    kind: Literal["reflect", "observe", "analyze", "synthesize", "own"]
    subject: tuple[str, ...] = ()
    holds: bool = False
    final: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """Returned instead of arguments: this node is left out, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class ModeOrder:
    """What a mode is made from, for one plan."""

    options: Mapping[str, str | int]
    """What the plan's author gave, by the names of `core.records.ways`, and `climb` if `auto` chose a profile."""
    bounds: PlanBounds
    """The session's settings for plans."""
    history: Mapping[str, float]
    """How often calls failed in earlier sessions."""
    domain: Sequence[DomainRule]
    """The policy's rules for profiled plans."""

    def number(self, name: str, default: int | None = None) -> int:
        """Return an option, or its default. `default`: a setting that replaces the default of the option.

        Raises:
            UsageError: it is not a number from 1 to 100.
        """
        if default is None:
            default = OPTIONS[name].default

        value = str(self.options.get(name, default))
        if not value.isdecimal() or not 1 <= int(value) <= 100:
            raise UsageError(
                f"The option {name}={value!r} is not a number from 1 to 100; leave it out for {default}."
            )
        return int(value)


class Mode:
    """The policy that never judges; other modes override what they do differently.

    `patches`, `replans`: whether the ladder's upper rungs are available. `on_interjection`: what a person's message
    leads to. `reports`: whether the plan ends with a report in words. `max_calls`: bound on the engine's own model
    calls; None for the plan's. `max_replans`: likewise.
    """

    name = "static"
    judges = False
    """Whether a model is asked whether the goal is reached."""
    patches = True
    replans = True
    agents = True
    reports = False
    on_interjection: Literal["reflect", "replan"] = "reflect"
    max_calls: int | None = None
    max_replans: int | None = None
    judgement: GoalJudgement | None = None
    """What the answer to its own question said about whether the goal is reached."""
    follows_1_3 = True
    """Whether the plan follows the rules of format 1.3. Others are those of journals that were written before."""
    opens = False
    """Whether it begins with its own question, even if the steps are written already."""

    @classmethod
    def make(cls, order: ModeOrder) -> Self:
        """Return a new mode for one plan.

        Raises:
            UsageError: an option can't be used.
        """
        return cls()

    def admits(self, state: PlanState, node: str) -> bool:
        """Whether a node whose join holds may start yet."""
        return True

    def after(self, state: PlanState, node: str) -> DueThought | None:
        """The thought that is due when a tool or agent node has ended."""
        return None

    def together(self, state: PlanState, nodes: Sequence[str]) -> DueThought | None:
        """The thought that is due about results of the same moment, each of which `after` found worth an observer."""
        return DueThought("observe", tuple(nodes))

    def at_rest(self, state: PlanState) -> DueThought | None:
        """The thought that is due when nothing runs and nothing can start."""
        return None

    def decided(self, ask: DueThought, verdict: ReflectionAnswer) -> ReflectionAnswer:
        """Take a reflection's verdict, and perhaps overrule it."""
        return verdict

    def wants_reflection(self, state: PlanState, node: str) -> DueThought | None:
        """The reflection that an observer of `node` asks for, if one is allowed."""
        return None

    def analyzed(self, analysis: Analysis) -> ReflectionAnswer:
        """The verdict that an analysis leads to."""
        return ReflectionAnswer(
            "conclude" if analysis.achieved else "continue", analysis.reasoning, answer=analysis.final_answer
        )

    @property
    def distrust(self) -> str:
        """Why its results can't be trusted, as a sentence; empty if they can, or if it does not tell."""
        return ""

    @property
    def assumed(self) -> Sequence[str]:
        """What its steps take for granted, in sentences, as far as their author said so."""
        return ()

    def rules_applied(self) -> Mapping[str, Sequence[str]]:
        """The rules that changed steps, in words, by step."""
        return {}

    def take_told(self) -> Sequence[Assessed]:
        """Return what is new to report about its assessment of the plan since the last call."""
        return ()

    def falls_back(self) -> bool:
        """Whether to ask for a plan as in other modes, after its opening could not be used."""
        return False

    def facts(self) -> dict[str, JSON]:
        """What it found out, for programs."""
        return {}

    def interjected(self) -> None:
        """Note that a person's message has changed the task."""

    def opening(self, it: PlanSituation, written: Sequence[PlanNode] = ()) -> PlanQuestion | None:
        """The question that the mode begins with instead of asking for a plan. `written`: existing steps."""
        return None

    def opened(self, text: str, catalogue: FunctionCatalogue | None) -> tuple[PlanNode, ...]:
        """Return the steps in the answer to its opening.

        Raises:
            PlanError: the answer can't be used.
        """
        return ()

    def question(self, ask: DueThought, it: PlanSituation) -> PlanQuestion:
        """The question of an "own" thought."""
        raise NotImplementedError(f"the mode {self.name} asks nothing itself")

    def answered(
        self, state: PlanState, ask: DueThought, text: str | None, catalogue: FunctionCatalogue | None
    ) -> tuple[tuple[PlanNode, ...], str | None]:
        """Return what the answer to an "own" thought leads to: further steps, and the plan's result."""
        return (), None

    def restore(
        self, answers: Sequence[tuple[QuestionKind, str]], catalogue: FunctionCatalogue | None
    ) -> None:
        """Restore after a restart. `answers`: what models answered before it."""

    def prepare(self, state: PlanState, node: str, arguments: dict[str, JSON]) -> dict[str, JSON] | LeaveOut:
        """Return the arguments that the node is fired with."""
        return arguments

    def recover(
        self, state: PlanState, node: str, failure: StepFailure, arguments: dict[str, JSON]
    ) -> dict[str, JSON] | None:
        """Return other arguments for another try at once, by a rule; None if there is none."""
        return None


def fresh_work(state: PlanState, seen: set[str]) -> tuple[str, ...]:
    """Tool and agent nodes that have ended and were not `seen`, in order of id."""
    return tuple(
        one
        for one in state.in_state("executed", "failed")
        if one not in seen and state.nodes[one].node.kind in WORK
    )


def open_work(state: PlanState) -> list[str]:
    """Tool and agent nodes that may still run."""
    return [
        one
        for one in state.in_state(
            "pending", "ready", "running", "waiting_human", "blocked", "failed_retryable"
        )
        if state.nodes[one].node.kind in WORK and state.join(one) != "lost"
    ]


def work_levels(state: PlanState) -> dict[str, int]:
    """The dependency wave of each tool and agent node of the current version."""
    return levels({one: node for one, node in state.plan.nodes.items() if node.kind in WORK})
