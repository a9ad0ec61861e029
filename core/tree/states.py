"""The states of an agent and how they change, as one table.

An agent's state is never stored. It follows from four facts about the agent, each a fold of its records (`Tree.state`):
whether it owes its caller a reply (*active*), how it came to rest if it does not, whether it or one above it is paused
(*paused*), and what comes first among the actions that it has not settled (*head*). There is one state for each way of
being at rest, and for an active agent

    paused                             paused
    no action left                     thinking    its model must reply
    head: a call to carry out          acting
    head: a CALL in progress, a WAIT   waiting     for a child
    head: a call asked about           waiting     for clearance

A plan that is neither paused nor at rest is acting, whatever its steps do.

A record changes an agent's state by an *event*, which says what the record means to that agent: it is either its own
(`choice`, `turn`, `call`, `result`, `select`, `ask`, `reply`), or it reaches the agent from outside (`message`: from
the user, its caller or an intervention; `child`: a child's reply; `answer`: to its question; `pause`, `resume`: of the
agent or of one above it). Where an event can lead to several states, a *guard* distinguishes them: the current head of
its actions, how it replied, or whether it is paused. State, event and guard have one outcome.

Pauses are a separate machine, one for each agent, independent of each other and of the work. A pause stops what is
below it without changing it, and the end of the pause changes nothing else. Work that ran when the pause began may
still end; that changes what the agent will do next, but not its state. An agent at rest stays at rest when it is
paused, until a message wakes it.

What is not in the table does not happen. The tests fold scripted and random sessions record by record, find every
change of every agent's state in the table, and every row of the table in the sessions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from iact.core.records.calls import Call, ClearanceAnswer, ClearanceAsk, Result, Select
from iact.core.records.control import Inject, Pause, RaiseBudget, Resume, StartPlan
from iact.core.records.dialogue import Choose, Reply, Say, Turn
from iact.core.records.record import Record
from iact.core.tree.agent import Agent, AgentState
from iact.core.tree.tree import Tree

Event = Literal[
    "message",
    "choice",
    "turn",
    "call",
    "result",
    "select",
    "ask",
    "reply",
    "child",
    "answer",
    "pause",
    "resume",
]
Guard = Literal[
    "open", "paused", "action", "child", "clearance", "plan", "nothing", "ok", "failed", "cancelled", ""
]
PauseState = Literal["open", "closed"]


@dataclass(frozen=True, slots=True)
class Transition:
    """One row: in `source`, `event` under `guard` leads to `target`."""

    source: AgentState
    event: Event
    guard: Guard
    target: AgentState
    cause: str
    """What happened, for people."""


_RESTS: Final[tuple[AgentState, ...]] = ("idle", "done", "failed", "cancelled")
_WORKS: Final[tuple[AgentState, ...]] = ("thinking", "acting", "waiting")

TRANSITIONS: Final[tuple[Transition, ...]] = (
    *(
        Transition(rest, "message", "open", "thinking", "a message wakes it")
        for rest in _RESTS
    ),
    *(
        Transition(rest, "message", "paused", "paused", "a message wakes it while it is paused")
        for rest in _RESTS
    ),
    *(
        Transition(rest, "message", "action", "acting", "a message is the goal of a plan")
        for rest in _RESTS
    ),
    Transition("idle", "message", "plan", "acting", "a plan is handed over"),
    Transition("acting", "reply", "ok", "done", "a plan ended by itself"),
    Transition("acting", "reply", "cancelled", "cancelled", "it is cancelled"),
    Transition("thinking", "choice", "action", "acting", "a plan is chosen for a message"),
    Transition("thinking", "turn", "action", "acting", "it wrote a call"),
    Transition("thinking", "turn", "child", "waiting", "it wrote WAIT"),
    Transition("thinking", "reply", "ok", "done", "it answers, or a bound ends its work"),
    Transition("thinking", "reply", "failed", "failed", "its model fails"),
    Transition("thinking", "reply", "cancelled", "cancelled", "it is cancelled"),
    Transition("acting", "call", "child", "waiting", "a CALL is under way, or WAIT is next"),
    Transition("acting", "call", "nothing", "thinking", "a CALL_ASYNC was its last action"),
    Transition("acting", "result", "child", "waiting", "a call has its outcome, and WAIT is next"),
    Transition("acting", "result", "nothing", "thinking", "its last call has its outcome"),
    Transition("acting", "select", "child", "waiting", "QUERY took what was there, and WAIT is next"),
    Transition("acting", "select", "nothing", "thinking", "QUERY took what was there, and was the last"),
    Transition("acting", "ask", "clearance", "waiting", "its call needs clearance"),
    Transition("waiting", "answer", "action", "acting", "it was answered whether its call may be made"),
    Transition("waiting", "child", "action", "acting", "the child replied, and a call is next"),
    Transition("waiting", "child", "nothing", "thinking", "the child replied to the last CALL"),
    Transition("waiting", "select", "action", "acting", "WAIT ended, and a call is next"),
    Transition("waiting", "select", "nothing", "thinking", "WAIT ended, and was the last"),
    Transition("waiting", "result", "action", "acting", "its CALL or WAIT was dropped, and a call is next"),
    Transition("waiting", "result", "nothing", "thinking", "its CALL or WAIT was dropped, and was the last"),
    *(
        Transition(work, "pause", "", "paused", "it or one above it is paused")
        for work in _WORKS
    ),
    Transition("paused", "resume", "nothing", "thinking", "nothing at it or above it is paused any more"),
    Transition("paused", "resume", "action", "acting", "nothing at it or above it is paused any more"),
    Transition("paused", "resume", "child", "waiting", "nothing at it or above it is paused any more"),
    Transition("paused", "resume", "clearance", "waiting", "nothing at it or above it is paused any more"),
    Transition("paused", "resume", "plan", "acting", "nothing at it or above it is paused any more"),
    Transition("paused", "reply", "cancelled", "cancelled", "it is cancelled"),
)  # fmt: skip

TABLE: Final = {(row.source, row.event, row.guard): row for row in TRANSITIONS}
assert len(TABLE) == len(TRANSITIONS), "state, event and guard have one outcome"


@dataclass(frozen=True, slots=True)
class PauseTransition:
    """One row of the pause machine."""

    source: PauseState
    op: Literal["pause", "resume"]
    target: PauseState


PAUSES: Final[tuple[PauseTransition, ...]] = (
    PauseTransition("open", "pause", "closed"),
    PauseTransition("open", "resume", "open"),
    PauseTransition("closed", "pause", "closed"),
    PauseTransition("closed", "resume", "open"),
)


def event_of(record: Record, agent: Agent) -> Event | None:
    """What a record means to an agent; None if it does not concern its state."""
    own = record.agent == agent.path
    match record.content:
        case Say() if own:
            return "message"
        case Choose() if own:
            return "choice"
        case Turn() if own:
            return "turn"
        case Select() if own:
            return "select"
        case Result() if own:
            return "result"
        case ClearanceAsk() if own:
            return "ask"
        case ClearanceAnswer() if own:
            return "answer"
        case Call(to=to) if own or to == agent.path:
            return "call" if own else "message"
        case Reply(to=to) if own or to == agent.path:
            return "reply" if own else "child"
        case Inject() | StartPlan() | RaiseBudget() if own:
            return "message"
        case Pause() if _above(record.agent, agent.path):
            return "pause"
        case Resume() if _above(record.agent, agent.path):
            return "resume"
    return None


def _above(path: str, below: str) -> bool:
    return path == below or below.startswith(path.rstrip("/") + "/")


def guard_of(event: Event, record: Record, tree: Tree, agent: Agent) -> Guard:
    """The guard that decides where an event leads, read from the tree after the record."""
    match event:
        case "message":
            if tree.paused(agent.path):
                return "paused"
            if agent.plan is not None:
                return "plan"
            return "action" if agent.actions else "open"
        case "pause":
            return ""
        case "reply":
            # A bound that ended its work is an answer, too.
            status = record.content.status if isinstance(record.content, Reply) else "ok"
            return status if status in ("cancelled", "failed") else "ok"

    # The other events lead to what the agent has to do next.
    if agent.plan is not None:
        return "plan"
    if not agent.actions:
        return "nothing"
    if agent.asks:
        return "clearance"
    waits = agent.called or agent.actions[0].spec.name == "WAIT"
    return "child" if waits else "action"
