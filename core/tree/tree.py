"""The call tree as data: all agents of one session, and what each has to do next.

The tree changes in one way only, by `core.tree.apply.apply`, live as well as on replay. Everything
here is a question about its state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from iact.core.context.tail import Layout
from iact.core.context.tokens import Calibration, weight
from iact.core.gate.clearance import Remembered
from iact.core.gate.grant import Grant
from iact.core.gate.hosts import Hosts
from iact.core.gate.nobody import Spent
from iact.core.gate.policy import Policy
from iact.core.gate.rate import Tally
from iact.core.language.actions import CALL_AT, CORE_ACTIONS, ActionSpec, Registry
from iact.core.modules.registry import Loaded, specs_of
from iact.core.ports import ChatMessage, Usage
from iact.core.records.forms import FormAsk
from iact.core.records.kinds import FORMAT
from iact.core.records.parts import Artifact, Bounds
from iact.core.tree.agent import (
    Act,
    Agent,
    AgentState,
    ChooseWay,
    End,
    Execute,
    Pending,
    Relay,
    Rest,
    Step,
    Think,
)
from iact.core.tree.live_folder import LiveFolder, PendingChange
from iact.core.tree.prepared_context import Foreseen, Stamp
from iact.core.tree.roles import Role
from iact.core.tree.shared_state import SharedState
from iact.core.tree.user_words import UserWords


class Tree:
    """All agents of one session. `blobs` reads a blob by its SHA-256.

    `said`: what the user wrote. `shared`: labels of what agents share. `live`: a directory of the user's that is seen
    through an overlay, and what waits there. `format`: whose rules the records follow now; `outdated`: a static prompt
    is another one than they say.

    With `strict`, folding checks every record against what the core itself would have done.
    """

    def __init__(self, *, strict: bool, blobs: Callable[[str], bytes]) -> None:
        self._strict: Final = strict
        self.current = True
        self.format = FORMAT
        self.outdated = False
        self.blobs: Final = blobs
        self.agents: dict[str, Agent] = {}
        self.at_work: dict[str, Agent] = {}
        """Those that owe their callers a reply, by path, who began first first."""
        self.bounds = Bounds()
        self.cost = 0.0
        """What its calls of models came to, as far as their prices are known."""
        self.roles: dict[str, Role] = {}
        self.functions: dict[str, ActionSpec] = {}
        self.modules: dict[str, Loaded] = {}
        self.catalogues: dict[int, Mapping[str, ActionSpec]] = {}
        """The functions as they were from each `module` record on."""
        self.calibrations: dict[str, Calibration] = {}
        self.grant = Grant.none()
        self.policy = Policy()
        self.lockdown = False
        self.tally = Tally()
        self.remembered = Remembered()
        self.spent: Spent = {}
        """What rules for questions that nobody was there to answer let through."""
        self.hosts = Hosts()
        self.forms: dict[int, FormAsk] = {}
        """What calls ask a person and nobody has answered, by record."""
        self.cached: dict[tuple[str, str], Artifact] = {}
        """By module and key, what its calls found out, the oldest first (`Result.cached`)."""
        self.said = UserWords()
        self.tools: tuple[str, ...] = ()
        """The tools of the front end that the user speaks through."""
        self.kept: tuple[str, ...] = ()
        """The names of the plans that people kept, as agents are told with the documentation of PLAN."""
        self.shared = SharedState()
        self.live = LiveFolder()
        self.session = ""
        self.workspace = "scratch"
        self.layout: Layout = "whole"
        self.stirred: set[str] = set()
        """Plans about which something was told since whoever runs the session looked last."""
        self.records = 0
        self.closed = False
        self.epochs = 1
        """How many the journal has had: each host that goes on with it begins one."""
        self.epoch = 0
        """How often something changed that the contexts of all agents are made of: modules, rights, prompts."""
        self.refused: dict[int, tuple[str, ...]] = {}
        """What a turn was told first, by its record: why actions of the one before could not be begun. For people."""
        self.foreseen: dict[str, Foreseen] = {}
        """What the next record of an agent is about to say, so that a context is built and a reply scanned once. A
        replay foresees nothing, so it builds and checks them all."""
        self._registries: dict[str, Registry] = {}

    @property
    def strict(self) -> bool:
        """Whether the record that is taken in is checked: what stands before a migration followed other rules."""
        return self._strict and self.current

    @property
    def root(self) -> Agent:
        """The agent that talks with the user."""
        return self.agents["/"]

    def wake(self, agent: Agent) -> None:
        """An agent has something to answer."""
        agent.active = True
        self.at_work[agent.path] = agent

    def rest(self, agent: Agent, how: Rest) -> None:
        """An agent owes nobody a reply any more."""
        agent.active, agent.rest = False, how
        self.at_work.pop(agent.path, None)

    def grant_of(self, path: str) -> Grant:
        """What an agent may do: never more than its caller."""
        agent = self.agents[path]
        return self.grant if agent.caller == "user" else agent.narrowed(self.grant_of(agent.caller))

    def at_stake(self, module: str | None) -> bool:
        """Whether calls of a module can do harm outside the session: a directory of the user's, egress, a secret.

        What a module asks for and was not granted is not in its reach. Hosts that are allowed for a module that somebody
        vouches for do not count: they were allowed for what it does, and each connection is looked at. An action of the core (None) has none. A
        directory that is seen through an overlay is in no call's reach: what a call changed is rated afterwards.
        """
        loaded = self.modules.get(module or "")
        reaches = loaded is not None and bool(loaded.egress or loaded.secrets)
        if loaded is not None and not loaded.whole:
            reaches = reaches or self.may_reach(loaded.manifest.name)
        direct = self.workspace != "scratch" and not self.live.overlay
        return reaches or (module is not None and direct)

    def may_reach(self, module: str) -> bool:
        """Whether a policy or a person allows a module any host for longer than once, or it has reached one."""
        rules = self.policy.egress | self.hosts.always | self.hosts.session
        return module in self.hosts.outside or any(name == module for name, _ in rules)

    @property
    def pending(self) -> Mapping[str, PendingChange]:
        """What waits for a person before it is real, by path."""
        return self.live.pending

    def believed(self, spec: ActionSpec) -> bool:
        """Whether what a function declares counts: it is the core's, ships with it, or a person approved it."""
        loaded = self.modules.get(spec.module or "")
        return spec.core or (loaded is not None and spec.name.split(".", 1)[1] in loaded.approved)

    def registry(self, path: str) -> Registry:
        """The actions that exist for an agent."""
        found = self._registries.get(path)
        if found is None:
            agent = self.agents[path]
            same = agent.caller != "user" and agent.narrowing.patterns is None
            found = self.registry(agent.caller) if same else self.registry_under(self.grant_of(path))
            self._registries[path] = found
        return found

    def registry_under(self, grant: Grant) -> Registry:
        """The actions that exist under a grant."""
        contains = grant.scope.contains
        functions = [spec for spec in self.functions.values() if contains(spec.name)]
        loaded = self.modules.get("a2a")
        elsewhere = loaded is not None and loaded.origin == "shipped" and contains("a2a.ask")
        own = [spec for spec in CORE_ACTIONS.values() if contains(spec.name)]
        return Registry(
            [*CORE_ACTIONS.values(), *([CALL_AT] if elsewhere else ()), *functions],
            documented=[spec for spec in own if spec.documentation],
        )

    def set_modules(self, modules: dict[str, Loaded]) -> None:
        """The modules changed; told by the record that is being applied."""
        self.modules = modules
        self.functions = {spec.name: spec for one in modules.values() for spec in specs_of(one)}
        self.catalogues[self.records] = self.functions
        self.forget_registries()

    def forget_registries(self) -> None:
        """The functions or the scopes changed."""
        self._registries.clear()

    @property
    def catalogue(self) -> int:
        """The record since which the functions are what they are; 0 if there were never any."""
        return next(reversed(self.catalogues), 0)

    def offered(self, path: str, catalogue: int | None) -> Sequence[ActionSpec]:
        """The functions that an agent had since record `catalogue` (None: has now), by name."""
        if catalogue is None or catalogue == self.catalogue:
            return self.registry(path).functions()
        scope, functions = self.grant_of(path).scope, self.catalogues.get(catalogue, {})
        return [functions[name] for name in sorted(functions) if scope.contains(name)]

    def subtree(self, path: str) -> Iterator[Agent]:
        """An agent and all below it, each before its children."""
        agent = self.agents[path]
        yield agent
        for child in agent.children.values():
            yield from self.subtree(child)

    def paused(self, path: str) -> bool:
        """Whether this agent or one above it is paused, or a step of a plan that called one."""
        while True:
            agent = self.agents[path]
            if agent.paused:
                return True
            if agent.caller == "user":
                return False
            path = agent.caller
            caller = self.agents[path]
            if (
                caller.plan is not None
                and caller.plan.holds
                and any(one.child == agent.path and caller.plan.held(one.node) for one in caller.actions)
            ):
                return True

    def halted(self, agent: Agent, pending: Pending) -> bool:
        """Whether a pause keeps an action from being carried out: its agent's, or that of the step that it is."""
        run = agent.plan
        return self.paused(agent.path) or (run is not None and run.held(pending.node))

    def tokens(self, agent: Agent, newest: ChatMessage) -> int:
        """About how many tokens an agent's context has with `newest` as its last message."""
        known = self.calibrations.get(agent.model, Calibration())
        return known.apply(agent.context.history.tokens + weight(newest))

    def stamp(self, agent: Agent) -> Stamp:
        """Changes whenever the context that the agent's next turn answers can have changed.

        That is a record of its own, or one about all agents. What others write only waits in its inbox.
        """
        return agent.step, self.epoch

    def next_step(self, path: str) -> Step | None:
        """What an agent has to do now; None if it rests, waits for a child or is paused."""
        agent = self.agents[path]
        if not agent.active or agent.called or self.paused(path):
            return None
        if agent.plan is not None:
            return Execute()
        if agent.guards.ended:
            return End("loop", agent.guards.ended)
        if agent.actions:
            return Act(agent.actions[0])
        if agent.errand is None:
            return Think()
        return ChooseWay(agent.errand) if agent.errand.mode == "auto" else Relay()

    def state(self, agent: Agent) -> AgentState:
        """An agent's state, for people."""
        if not agent.active:
            return agent.rest
        if self.paused(agent.path):
            return "paused"
        if agent.plan is not None:
            return "acting"
        if not agent.actions:
            return "thinking"
        waits = agent.called or agent.asks or agent.actions[0].spec.name == "WAIT"
        return "waiting" if waits else "acting"

    def usage(self) -> Usage:
        """Token counts over the whole tree."""
        counts = [agent.usage for agent in self.agents.values()]
        return Usage(
            sum(one.prompt_tokens for one in counts),
            sum(one.cached_tokens for one in counts),
            sum(one.completion_tokens for one in counts),
            any(one.estimated for one in counts),
        )
