"""The call tree as data: all agents of one session, and what each has to do next.

The tree changes in one way only, through `core.tree.apply.apply`, both live and on replay. Everything else here queries
its state.
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
from iact.core.language.actions import (
    CALL,
    CALL_ASYNC,
    CALL_AT,
    CORE_ACTIONS,
    ActionSpec,
    Registry,
    in_order_of_use,
)
from iact.core.modules.registry import Loaded, specs_of
from iact.core.ports import ChatMessage, Usage
from iact.core.records.control import MemorySwitch
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
from iact.core.tree.carried_out import CarriedOut
from iact.core.tree.file_owners import FileOwners
from iact.core.tree.live_folder import LiveFolder, PendingChange
from iact.core.tree.prepared_context import Foreseen, Stamp
from iact.core.tree.roles import Role
from iact.core.tree.shared_state import SharedState
from iact.core.tree.standing_statements import Standing
from iact.core.tree.stored_content import StoredContents
from iact.core.tree.user_words import UserWords

_SINCE_1_3: Final = frozenset({"HELP", "ANSWER"})
"""Actions of the core that a reply in an older journal can't have meant."""

_BEFORE_1_2: Final = frozenset({"1.0", "1.1"})
"""The formats in which what a plan did was recorded and not derived."""

_BEFORE_1_3: Final = _BEFORE_1_2 | {"1.2"}
"""The formats whose replies are read, and whose contexts are written, by older rules."""


class Tree:
    """All agents of one session.

    With `strict`, folding checks every record against what the core itself would have done.
    """

    def __init__(self, *, strict: bool, blobs: Callable[[str], bytes]) -> None:
        # By what rules records are read.
        self._strict: Final = strict
        self.current = True
        """Whether the record that is being applied follows the rules of this program, and not those before a migration."""
        self.format = FORMAT
        """The format whose rules the records follow now."""
        self.derives_plans = True
        """Whether plans follow from outcomes alone, as they do since format 1.2."""
        self.follows_1_3 = True
        """Whether replies are read, and contexts are written, by the rules of format 1.3."""
        self.outdated = False
        """Whether a static prompt differs from the recorded one."""
        self.blobs: Final = StoredContents(blobs, forgiving=not strict)
        """Reads a blob by its SHA-256, and knows which are lost."""

        # Who there is, and what they may use.
        self.agents: dict[str, Agent] = {}
        """All agents and plans, by path."""
        self.at_work: dict[str, Agent] = {}
        """The agents that owe their callers a reply, by path, in the order in which they began."""
        self.bounds = Bounds()
        self.cost = 0.0
        """The cost of its model calls, as far as prices are known."""
        self.roles: dict[str, Role] = {}
        """The models, by role."""
        self.functions: dict[str, ActionSpec] = {}
        """The functions of all modules, by name."""
        self.all_vouched = True
        """Whether every description of a function that there was comes from a trusted author, or was approved."""
        self.modules: dict[str, Loaded] = {}
        self.catalogues: dict[int, Mapping[str, ActionSpec]] = {}
        """The functions as of each `module` record."""
        self.calibrations: dict[str, Calibration] = {}
        """How the tokens of a role's model are estimated."""

        # What is allowed, and what was.
        self.grant = Grant.none()
        """What the session may do."""
        self.policy = Policy()
        self.lockdown = False
        """Whether a person locked everything down."""
        self.tally = Tally()
        """How much was done of what a policy counts."""
        self.remembered = Remembered()
        """Which calls a person allowed from now on."""
        self.denied: set[str] = set()
        """The kinds of calls that a person said no to since their last message, by digest."""
        self.spent: Spent = {}
        """How much was let through by rules for questions that no person was available to answer."""
        self.hosts = Hosts()
        """The hosts that were allowed, asked about and reached."""
        self.carried = CarriedOut()
        """What calls carried out of the session."""
        self.packages: set[str] = set()
        """Packages that a person let modules of agents have, each as it was asked for."""
        self.forms: dict[int, FormAsk] = {}
        """Open questions of calls to a person, by record."""
        self.cached: dict[tuple[str, str], Artifact] = {}
        """What calls found out, by module and key, oldest first (`Result.cached`)."""

        # What agents are told and share.
        self.said = UserWords()
        """What the user wrote."""
        self.standing = Standing()
        """The standing statements, which every agent is told in its first message."""
        self.memory_off: frozenset[MemorySwitch] = frozenset()
        """Whose switches of memory are off."""
        self.tools: tuple[str, ...] = ()
        """The tools of the front end that the user is using."""
        self.traceparent = ""
        """The trace of the program that sent the newest message; empty if it named none."""
        self.kept: tuple[str, ...] = ()
        """The plans that people kept, each by its name and with its parameters. Agents are told of them with the
        documentation of PLAN."""
        self.shared = SharedState()
        """The labels of what agents share."""
        self.file_owners = FileOwners()
        """Who wrote which file last."""
        self.live = LiveFolder()
        """A live directory that is seen through an overlay, and the changes that wait there."""

        # The session.
        self.session = ""
        """Its id."""
        self.workspace = "scratch"
        """What the workspace is: "scratch" for one of the session's own."""
        self.has_memory = True
        """Whether the session was begun with the user's memory."""
        self.layers = False
        """Whether agents of intent 0 may run code in a layer over the files, where one can be (`has_layers`)."""
        self.layout: Layout = "whole"
        """How what changes from turn to turn is told (`core.context.tail`)."""
        self.stirred: set[str] = set()
        """Plans that received input since the process that runs the session last checked."""
        self.records = 0
        """The number of the last record."""
        self.closed = False
        """Whether the last record closed the session."""
        self.epochs = 1
        """The number of epochs in the journal: each host that continues it begins one."""
        self.epoch = 0
        """How often anything changed that all agents' contexts depend on: modules, rights, prompts."""
        self.refused: dict[int, tuple[str, ...]] = {}
        """What a turn was told first, by its record: why actions of the previous turn could not begin. For people."""
        self.foreseen: dict[str, Foreseen] = {}
        """What an agent's next record is about to hold, so that a context is built and a reply scanned only once.

        A replay foresees nothing, so it builds and checks them all.
        """
        self._registries: dict[str, Registry] = {}

    def follow(self, format: str) -> None:
        """Set the format whose rules hold from here on."""
        self.format = format
        self.derives_plans = format not in _BEFORE_1_2
        self.follows_1_3 = format not in _BEFORE_1_3

    @property
    def strict(self) -> bool:
        """Whether the current record is checked. Records from before a migration followed other rules and are not."""
        return self._strict and self.current

    @property
    def root(self) -> Agent:
        """The agent that talks with the user."""
        return self.agents["/"]

    @property
    def remembers(self) -> bool:
        """Whether the session brings statements to memory, and may be told some."""
        return self.has_memory and not self.memory_off

    def wake(self, agent: Agent) -> None:
        """Mark an agent as active: it has a message to answer."""
        agent.active = True
        self.at_work[agent.path] = agent

    def rest(self, agent: Agent, how: Rest) -> None:
        """Mark an agent as at rest: it owes no reply any more."""
        agent.active = False
        agent.rest = how
        self.at_work.pop(agent.path, None)

    def grant_of(self, path: str) -> Grant:
        """Return what an agent may do: never more than its caller."""
        agent = self.agents[path]
        if agent.caller == "user":
            return self.grant
        return agent.narrowed(self.grant_of(agent.caller))

    def at_stake(self, module: str | None) -> bool:
        """Whether calls of a module can do harm outside the session: to a live directory, through egress or a secret.

        Needs that the module declares but was not granted are out of its reach. Hosts allowed for a vouched module do
        not count: they were allowed for what it does, and each connection is checked. An action of the core (None)
        reaches nothing. A directory that is seen through an overlay is out of every call's reach: changes are rated
        afterwards.
        """
        if module is None:
            return False
        writes_directly = self.workspace != "scratch" and not self.live.overlay
        loaded = self.modules.get(module)
        if loaded is None or writes_directly:
            return writes_directly

        if loaded.egress or loaded.secrets:
            return True
        return not loaded.whole and self.may_reach(loaded.manifest.name)

    @property
    def has_layers(self) -> bool:
        """Whether agents of intent 0 can work in a layer that is thrown away: not over a directory that is mounted as
        it is."""
        return self.layers and (self.workspace == "scratch" or self.live.overlay)

    def may_reach(self, module: str) -> bool:
        """Whether a policy or a person allows a module any host for longer than once, or it has reached one."""
        rules = self.policy.egress | self.hosts.always | self.hosts.session
        has_reached = any(reached[0] == module for reached in self.hosts.reached)
        return has_reached or any(name == module for name, _ in rules)

    @property
    def pending(self) -> Mapping[str, PendingChange]:
        """The changes that wait for a person before they are applied, by path."""
        return self.live.pending

    def believed(self, spec: ActionSpec) -> bool:
        """Whether a function's declaration is trusted: it is the core's, its module ships, or a person approved it."""
        loaded = self.modules.get(spec.module or "")
        return spec.core or (loaded is not None and spec.name.split(".", 1)[1] in loaded.approved)

    def registry(self, path: str) -> Registry:
        """The actions that exist for an agent."""
        registry = self._registries.get(path)
        if registry is not None:
            return registry

        agent = self.agents[path]
        has_its_callers = agent.caller != "user" and agent.narrowing.patterns is None
        if has_its_callers:
            registry = self.registry(agent.caller)
        else:
            registry = self.registry_under(self.grant_of(path))
        self._registries[path] = registry
        return registry

    def registry_under(self, grant: Grant) -> Registry:
        """The actions that exist under a grant."""
        contains = grant.scope.contains
        specs = self._core_actions()
        calls = (CALL.name, CALL_ASYNC.name)
        own = [spec for spec in specs if spec.name in calls or contains(spec.name)]
        documented = [spec for spec in own if spec.documentation]

        # A CALL can be for an agent elsewhere if the module is there that reaches one.
        loaded = self.modules.get("a2a")
        if loaded is not None and loaded.origin == "shipped" and contains("a2a.ask"):
            specs.append(CALL_AT)
        specs += [spec for spec in self.functions.values() if contains(spec.name)]
        return Registry(specs, documented=documented)

    def _core_actions(self) -> list[ActionSpec]:
        """The actions of the core that exist by the rules of the journal's format."""
        return [spec for name, spec in CORE_ACTIONS.items() if self.follows_1_3 or name not in _SINCE_1_3]

    def set_modules(self, modules: dict[str, Loaded]) -> None:
        """Set the modules, as the record that is being applied says."""
        self.modules = modules
        self.functions = {spec.name: spec for module in modules.values() for spec in specs_of(module)}
        self.catalogues[self.records] = self.functions
        self.all_vouched = self.all_vouched and all(spec.vouched for spec in self.functions.values())
        self.forget_registries()

    def forget_registries(self) -> None:
        """Forget cached registries, because the functions or the scopes changed."""
        self._registries.clear()

    @property
    def catalogue(self) -> int:
        """The record of the last change to the functions; 0 if there were never any."""
        return next(reversed(self.catalogues), 0)

    def offered(self, path: str, catalogue: int | None) -> Sequence[ActionSpec]:
        """The functions that an agent has had since record `catalogue` (None: has now), in their order of use."""
        if catalogue is None or catalogue == self.catalogue:
            return self.registry(path).functions()

        scope = self.grant_of(path).scope
        functions = self.catalogues.get(catalogue, {})
        return in_order_of_use(spec for name, spec in functions.items() if scope.contains(name))

    def subtree(self, path: str) -> Iterator[Agent]:
        """Yield an agent and all agents below it, each before its children."""
        agent = self.agents[path]
        yield agent
        for child in agent.children.values():
            yield from self.subtree(child)

    def paused(self, path: str) -> bool:
        """Whether this agent or one above it is paused, or a plan step that called one of them."""
        while True:
            agent = self.agents[path]
            if agent.paused:
                return True
            if agent.caller == "user":
                return False

            caller = self.agents[agent.caller]
            if caller.plan is not None and caller.plan.holds:
                steps = [pending.node for pending in caller.actions if pending.child == agent.path]
                if any(map(caller.plan.held, steps)):
                    return True
            path = caller.path

    def halted(self, agent: Agent, pending: Pending) -> bool:
        """Whether a pause of its agent or of its plan step keeps an action from being carried out."""
        run = agent.plan
        return self.paused(agent.path) or (run is not None and run.held(pending.node))

    def tokens(self, agent: Agent, newest: ChatMessage) -> int:
        """Estimate the tokens of an agent's context with `newest` as its last message."""
        known = self.calibrations.get(agent.model, Calibration())
        return known.apply(agent.context.history.tokens + weight(newest))

    def stamp(self, agent: Agent) -> Stamp:
        """A value that changes whenever the context of the agent's next turn may have changed.

        That is with a record of its own, or one about all agents. What other agents write only waits in its inbox.
        """
        return agent.step, self.epoch

    def next_step(self, path: str) -> Step | None:
        """Return what an agent has to do now; None if it rests, waits for a child or is paused."""
        agent = self.agents[path]
        if not agent.active or agent.called or self.paused(path):
            return None
        if agent.plan is not None:
            return Execute()
        if agent.guards.ended:
            return End("loop", agent.guards.ended)
        if agent.actions:
            return Act(agent.actions[0])
        if agent.answer is not None and not agent.interrupted:
            return agent.answer
        if agent.errand is None:
            return Think()
        if agent.errand.mode == "auto":
            return ChooseWay(agent.errand)
        return Relay()

    def state(self, agent: Agent) -> AgentState:
        """Return an agent's state, for people."""
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
        """Return token counts over the whole tree."""
        counts = [agent.usage for agent in self.agents.values()]
        return Usage(
            sum(usage.prompt_tokens for usage in counts),
            sum(usage.cached_tokens for usage in counts),
            sum(usage.completion_tokens for usage in counts),
            any(usage.estimated for usage in counts),
        )
