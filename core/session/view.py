"""A session as people see it: what every agent is at, what it holds, what its plans came to.

Whoever shows a session reads it through a `View` and never through the tree behind it, so that the tree can be cut
anew without anybody outside noticing. Nothing can be changed through one. The view of a running session shows it as
it is at each question; that of a journal (`core.session.replay`), as it was after a record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from iact.core.errors import UsageError
from iact.core.language.variables import Table, Value
from iact.core.ports import JSON, Usage
from iact.core.session.plans import PlanView, plan_result, plan_views
from iact.core.tree import budget, interpret
from iact.core.tree.agent import Agent, AgentState
from iact.core.tree.apply import unread
from iact.core.tree.tree import Tree
from iact.core.tree.uploads import waiting

NodeState: TypeAlias = AgentState
"""What an agent or a plan is at."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node of the tree, as a person sees it.

    `paused`: it is paused itself; `state` is "paused" where it or an ancestor is.
    `doing`: a few words ("shell.run", "waiting for /coder"). Token counts are this node's own; `allowance` and
    `left`: tokens for its work, and what neither it nor those below it have used of them, 0 for one that is not at
    work; `lent`: of those left, how many are set aside for children at work.
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
    """Number of the newest record of this node."""
    allowance: int = 0
    left: int = 0
    lent: int = 0
    ended: str = ""
    """How its last work ended, if it is done and not all was done: "partial" or "failed" of a plan, the name of a
    bound ("tokens", …), or "length" where a limit cut its reply off."""
    awaited: tuple[str, ...] = ()
    """Paths of the children at work for which it waits."""
    awaited_of: int = 0
    """For how many it waits in all, those that have replied included."""
    estimated: bool = False
    """Whether some of the token counts are estimates."""
    calls: tuple[int, ...] = ()
    """Records of the calls of functions that run for it now."""
    queued: tuple[int, ...] = ()
    """Records of what a person said to it that it has not begun to answer."""

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
    """A session's tokens: how many it may use in all, how many it has used, and whether its root can't go on.

    `cost`: what its calls of models came to, where prices are known; `money`: what they may, None: there is no bound.
    """

    tokens: int
    used: int
    exhausted: bool
    cost: float = 0.0
    money: float | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of an agent. `size` in bytes; `labels`: where its content comes from; `load` gives the content."""

    name: str
    media: str
    size: int
    sha256: str
    origin: str
    labels: frozenset[str]
    is_text: bool
    load: Callable[[], bytes]


class View:
    """One session, to be read."""

    def __init__(self, tree: Tree) -> None:
        self._tree: Final = tree

    @property
    def id(self) -> str:
        """The session's id."""
        return self._tree.session

    @property
    def record(self) -> int:
        """Number of the record up to which this is what happened."""
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
        """The directory of the user's that it works in, or "scratch" for one of its own."""
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
        """What a finished plan came to, as `iact plan run --json` has it."""
        return plan_result(self._tree, path, self.model_calls)

    @property
    def lockdown(self) -> bool:
        """Whether every call is denied."""
        return self._tree.lockdown

    @property
    def open_ends(self) -> tuple[int, ...]:
        """Numbers of the records on which something still hangs, in order: calls that run, questions without an
        answer, and messages of a person that nobody has begun to answer."""
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
        """What was wrong with actions of the turn before the one with record `n`, which could not even be begun."""
        return self._tree.refused.get(n, ())

    def is_action(self, path: str) -> Callable[[str], bool] | None:
        """Tells which words begin an action of an agent; None if there is no such agent."""
        return self._tree.registry(path).is_action if path in self._tree.agents else None

    def names(self, path: str) -> Mapping[str, object]:
        """The names of an agent's variables, to look them up; none if there is no such agent."""
        agent = self._tree.agents.get(path)
        return agent.table if agent is not None else {}

    def variables(self, path: str) -> tuple[Variable, ...]:
        """The variables of an agent, the one bound last first, with those that it is about to read.

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
        # What waits to be read counts, so that a file that was uploaded is there at once.
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
    role = tree.roles.get(agent.model)
    awaited, of = interpret.awaited(tree, agent)
    left = agent.account.allowance - budget.used(agent, tree.agents) if agent.account.allowance else 0
    return NodeView(
        path=agent.path,
        name=agent.name,
        caller=agent.caller,
        kind="agent" if agent.plan is None else "plan",
        state=tree.state(agent),
        paused=agent.paused,
        doing=_doing(agent),
        turns=agent.all_turns,
        model=role.model if role and agent.plan is None else "",
        prompt_tokens=agent.usage.prompt_tokens,
        cached_tokens=agent.usage.cached_tokens,
        completion_tokens=agent.usage.completion_tokens,
        record=agent.record,
        allowance=agent.account.allowance,
        left=max(0, left),
        lent=max(0, left - agent.account.left),
        ended=agent.ended if not agent.active and agent.rest == "done" else "",
        awaited=tuple(awaited),
        awaited_of=of,
        estimated=agent.usage.estimated,
        calls=tuple(one.call for one in agent.calls) if agent.active else (),
        queued=tuple(one.n for one in unread(agent)),
    )


def _doing(agent: Agent) -> str:
    if agent.active and agent.plan is not None:
        return ", ".join(agent.plan.state.in_state("running", "waiting_human"))
    if not agent.active or not agent.actions:
        return ""
    head = agent.actions[0]
    doing = f"waiting for {head.child}" if agent.called else head.spec.name
    return f"{doing} waits for clearance" if agent.asks else doing
