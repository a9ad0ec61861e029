"""A session as people see it: the state of every agent, its variables, and the results of its plans.

Code that shows a session reads it through a `View` and never through the tree behind it, so the tree can be
restructured without affecting that code. A view is read-only. The view of a running session shows its current state on
every access; the view of a journal (`core.stored.replay`) shows the state after a record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from iact.core.errors import UsageError
from iact.core.language.variables import Table, Value
from iact.core.ports import JSON, Usage
from iact.core.tree import budget, child_waits
from iact.core.tree.agent import Agent, AgentState
from iact.core.tree.apply import unread
from iact.core.tree.tree import Tree
from iact.core.tree.uploads import waiting
from iact.core.views.plans import PlanView, plan_result, plan_views

NodeState: TypeAlias = AgentState
"""The state of an agent or a plan."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node of the tree, as a person sees it.

    `paused`: the node itself is paused; `state` is "paused" if it or an ancestor is. `doing`: a few words ("shell.run",
    "waiting for /coder"). Token counts are this node's own; `allowance` and `left`: the tokens for its work, and how
    many of them neither it nor its descendants have used, 0 if it is not at work; `lent`: how many of those left are
    reserved for working children.
    """

    path: str
    name: str
    caller: str
    kind: Literal["agent", "plan"]
    state: AgentState
    paused: bool
    doing: str
    turns: int
    model: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    record: int
    """The number of the newest record of this node."""
    allowance: int = 0
    left: int = 0
    lent: int = 0
    ended: str = ""
    """How its last task ended, if it finished incompletely: the outcome of a plan ("partly", "unknown", "not_reached",
    "stopped"; "partial" or "failed" in journals before format 1.3), the name of a bound
    ("tokens", …), "length" if a limit cut its reply off, or "asks" if it asked its caller something."""
    awaited: tuple[str, ...] = ()
    """Paths of the working children that it waits for."""
    awaited_of: int = 0
    """How many children it waits for in total, including those that have replied."""
    estimated: bool = False
    """Whether some of the token counts are estimates."""
    calls: tuple[int, ...] = ()
    """Records of the function calls that are running for it now."""
    queued: tuple[int, ...] = ()
    """Records of messages from a person that it has not begun to answer."""

    @property
    def depth(self) -> int:
        """0 for the root."""
        return 0 if self.path == "/" else self.path.count("/")

    @property
    def usage(self) -> Usage:
        """Its own token counts."""
        return Usage(self.prompt_tokens, self.cached_tokens, self.completion_tokens, self.estimated)


@dataclass(frozen=True, slots=True)
class BudgetView:
    """A session's tokens: how many it may use in total, how many it has used, and whether its root can't go on.

    `cost`: what its model calls cost, where prices are known; `money`: the limit on that, or None if there is none.
    """

    tokens: int
    used: int
    exhausted: bool
    cost: float = 0.0
    money: float | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of an agent. `size`: in bytes; `labels`: where its content comes from; `load`: returns the content."""

    name: str
    media: str
    size: int
    sha256: str
    origin: str
    labels: frozenset[str]
    is_text: bool
    load: Callable[[], bytes]


class View:
    """A read-only view of one session."""

    def __init__(self, tree: Tree) -> None:
        self._tree: Final = tree

    @property
    def id(self) -> str:
        """The session's id."""
        return self._tree.session

    @property
    def record(self) -> int:
        """The number of the last record that the view includes."""
        return self._tree.records

    @property
    def intent(self) -> float:
        """How much the session may do: 0 observe, 1 operate, 2 override, or a level between them."""
        return self._tree.grant.intent

    @property
    def levels(self) -> Mapping[str, float]:
        """The levels of intent that its policy names, by name."""
        return dict(sorted(self._tree.policy.levels))

    @property
    def models(self) -> tuple[str, ...]:
        """The names of its models, each once."""
        return tuple(dict.fromkeys(role.model for role in self._tree.roles.values()))

    @property
    def workspace(self) -> str:
        """The directory of the user's that it works in, or "scratch" for its own."""
        return self._tree.workspace

    @property
    def usage(self) -> Usage:
        """Token counts over the whole tree."""
        return self._tree.usage()

    @property
    def budget(self) -> BudgetView | None:
        """Its tokens; None before it has a root."""
        tree = self._tree
        if "/" not in tree.agents:
            return None
        used = budget.used(tree.root, tree.agents)
        money = tree.bounds.money
        poor = money is not None and (tree.cost >= money or tree.root.ended == "money")
        over = budget.exhausted(tree) or poor
        return BudgetView(tree.root.account.allowance, used, over, tree.cost, money)

    @property
    def model_calls(self) -> int:
        """How often a model was asked: turns of agents, and questions about plans."""
        agents = self._tree.agents.values()
        return sum(agent.all_turns + (agent.plan.asked if agent.plan else 0) for agent in agents)

    def plans(self) -> Mapping[str, PlanView]:
        """Its plans, by path."""
        return plan_views(self._tree)

    def plan_result(self, path: str) -> dict[str, JSON]:
        """The result of a finished plan, as in `iact plan run --json`."""
        return plan_result(self._tree, path, self.model_calls)

    @property
    def lockdown(self) -> bool:
        """Whether every call is denied."""
        return self._tree.lockdown

    @property
    def open_ends(self) -> tuple[int, ...]:
        """The records that still have something open, in order: running calls, unanswered questions, and messages of a
        person that no agent has begun to answer."""
        found = set[int]()
        for agent in self._tree.agents.values():
            if agent.active:
                found.update(one.call for one in agent.calls)
                found.update(one.asked for one in agent.actions if one.asked and one.answer is None)
            found.update(one.n for one in unread(agent))
        return tuple(sorted(found))

    # --- agents ---------------------------------------------------------------------------------

    def nodes(self) -> tuple[NodeView, ...]:
        """Every agent and plan, in order of creation."""
        return node_views(self._tree)

    def refused(self, n: int) -> tuple[str, ...]:
        """What was wrong with actions of the turn before the one with record `n` that could not be started."""
        return self._tree.refused.get(n, ())

    def is_action(self, path: str) -> Callable[[str], bool] | None:
        """A function that says which words begin an action of an agent; None if there is no such agent."""
        return self._tree.registry(path).is_action if path in self._tree.agents else None

    def names(self, path: str) -> Mapping[str, object]:
        """The names of an agent's variables, for lookup; empty if there is no such agent."""
        agent = self._tree.agents.get(path)
        return agent.table if agent is not None else {}

    def variables(self, path: str) -> tuple[Variable, ...]:
        """The variables of an agent, most recently bound first, including those that it is about to read.

        Raises:
            UsageError: there is no such agent.
        """
        return tuple(_variable(name, value) for name, value in self._table(path).newest())

    def variable(self, path: str, name: str) -> Variable:
        """One variable of an agent.

        Raises:
            UsageError: there is no such agent or variable.
        """
        table = self._table(path)
        if name not in table:
            raise UsageError(f"The agent {path} has no variable ${name}.")
        return _variable(name, table[name])

    def _table(self, path: str) -> Table:
        agent = self._tree.agents.get(path)
        if agent is None:
            raise UsageError(f"There is no agent {path!r} in this session.")
        # Unread messages count, so that an uploaded file is available at once.
        return waiting(agent)


def _variable(name: str, value: Value) -> Variable:
    return Variable(
        name, value.media, value.size, value.sha256, value.origin, value.labels, value.is_text, value.load
    )


def node_views(tree: Tree) -> tuple[NodeView, ...]:
    """Every agent and plan of a tree, in order of creation."""
    return tuple(node_view(tree, agent) for agent in tree.agents.values())


def node_view(tree: Tree, agent: Agent) -> NodeView:
    """One agent or plan."""
    is_agent = agent.plan is None
    role = tree.roles.get(agent.model)
    awaited, awaited_of = child_waits.awaited(tree, agent)
    # What children have been lent is still the agent's, though it can't use it now.
    left = 0
    if agent.account.allowance:
        left = agent.account.allowance - budget.used(agent, tree.agents)

    return NodeView(
        path=agent.path,
        name=agent.name,
        caller=agent.caller,
        kind="agent" if is_agent else "plan",
        state=tree.state(agent),
        paused=agent.paused,
        doing=_doing(agent),
        turns=agent.all_turns,
        model=role.model if role and is_agent else "",
        prompt_tokens=agent.usage.prompt_tokens,
        cached_tokens=agent.usage.cached_tokens,
        completion_tokens=agent.usage.completion_tokens,
        record=agent.record,
        allowance=agent.account.allowance,
        left=max(0, left),
        lent=max(0, left - agent.account.left),
        ended=agent.ended if not agent.active and agent.rest == "done" else "",
        awaited=tuple(awaited),
        awaited_of=awaited_of,
        estimated=agent.usage.estimated,
        calls=tuple(action.call for action in agent.calls) if agent.active else (),
        queued=tuple(message.n for message in unread(agent)),
    )


def _doing(agent: Agent) -> str:
    if agent.active and agent.plan is not None:
        return ", ".join(agent.plan.state.in_state("running", "waiting_human"))
    if not agent.active or not agent.actions:
        return ""
    head = agent.actions[0]
    doing = f"waiting for {head.child}" if agent.called else head.spec.name
    return f"{doing} waits for clearance" if agent.asks else doing
