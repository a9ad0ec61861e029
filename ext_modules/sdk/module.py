"""A module: its functions, its states, and the state it keeps for each agent."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from ext_modules.sdk.call import AgentState
from ext_modules.sdk.given import GivenParameters
from ext_modules.sdk.parameters import Parameters, parameters_of

Handler = TypeVar("Handler", bound=Callable[..., object])

Impact = Literal[0, 1, 2]

Lifespan = Callable[[], AbstractAsyncContextManager[None]]
"""Opens the resources that a module needs while it serves, and closes them again."""

EndBackground = Callable[[AgentState], Awaitable[None]]
"""Ends the background work of one agent: whatever still runs after the calls that started it."""


class UnknownFunction(Exception):
    """The module has no function of this name."""


class NotOffered(Exception):
    """The current state does not offer the function; the message lists the functions it offers."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The resources a module needs from its sandbox, as its `module.toml` declares them."""

    egress: tuple[str, ...] = ()
    """The hosts that it reaches."""
    secrets: tuple[str, ...] = ()
    """The names of the secrets that it is to be given."""
    workspace: Literal["none", "read", "write"] = "none"
    """What it does with the session's workspace."""
    memory_bytes: int = 0
    """0: the sandbox decides."""
    cpu: float = 0.0
    """Processors; 0: the sandbox decides."""
    pids: int = 0
    """Processes; 0: the sandbox decides."""
    own_instances: bool = False
    """Whether each agent has its own instance."""
    forgets: bool = False
    """Whether nothing of a call outlives it."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function that callers can invoke, with its entry in the manifest."""

    # What it is called, and what it says of itself.
    name: str
    handler: Callable[..., object]
    """The Python function."""
    parameters: Parameters | GivenParameters
    summary: str
    """One line, which every agent reads."""
    documentation: str
    """What an agent reads that wants to call it."""
    alias: str
    """A second name, for models that know it from elsewhere; empty: none."""
    body: str
    """The parameter that receives the body of an action block; empty: none."""
    media_type: str
    """The type of its results; empty: text."""

    # How it is called.
    impact: Impact
    """How much it can change: nothing, files, anything."""
    idempotent: bool
    """Whether a second call changes nothing more."""
    exclusive: bool
    """Whether its calls for one agent run one after the other."""
    states: tuple[str, ...]
    """The states in which it is offered; empty: in all."""
    timeout: float
    """In seconds; 0: the core decides."""
    held: bool = False
    """Whether its results depend on what earlier calls that write left in this process."""
    cache_key: str = ""
    """The text parameter by which a call finds what an earlier call stored with `Call.cache`; empty: none."""


@dataclass(slots=True)
class Module:
    """A module, as its file defines it."""

    name: str
    purpose: str
    """What it is for, in a sentence or two."""
    keywords: Sequence[str] = ()
    """Words by which it is found."""
    version: str = "0"
    states: Mapping[str, str] = field(default_factory=dict)
    """A one-line summary of each state, the initial state first."""
    needs: Needs = field(default_factory=Needs)
    own_instances: bool = False
    """As in `Needs`, for a module without a `module.toml`."""
    functions: dict[str, Function] = field(default_factory=dict, init=False)
    _lifespan: Lifespan | None = field(default=None, init=False)
    _end_background: EndBackground | None = field(default=None, init=False)
    _agents: dict[tuple[str, str], AgentState] = field(default_factory=dict, init=False)
    """What is kept, by session and agent."""

    def function(
        self,
        *,
        impact: Impact,
        name: str = "",
        summary: str = "",
        alias: str = "",
        body: str = "",
        media_type: str = "",
        idempotent: bool | None = None,
        exclusive: bool = False,
        states: Sequence[str] = (),
        timeout: float = 0,
        held: bool = False,
        cache_key: str = "",
    ) -> Callable[[Handler], Handler]:
        """Offer the decorated function: sync, async, or a generator of either kind.

        The docstring is the function's documentation. Without a `summary`, its first line is the summary as well.
        `name`: the name that callers use, where a Python name won't do ("list"). `body`: the parameter that receives
        the body of an action block. A function that only reads (`impact=0`) counts as idempotent unless declared
        otherwise. `held`: its results depend on what earlier calls that write left in this process. `cache_key`: the
        text parameter by which a call finds what an earlier call stored with `Call.cache`.

        Raises:
            TypeError: a parameter has no schema; `body` or one of `states` does not exist.
        """
        if idempotent is None:
            idempotent = impact == 0

        def register(handler: Handler) -> Handler:
            documentation = inspect.cleandoc(handler.__doc__ or "")
            function = Function(
                name=name or str(getattr(handler, "__name__", "")),
                handler=handler,
                parameters=parameters_of(handler),
                summary=summary or documentation.partition("\n")[0],
                documentation=textwrap.dedent(documentation),
                alias=alias,
                body=body,
                media_type=media_type,
                impact=impact,
                idempotent=idempotent,
                exclusive=exclusive,
                states=tuple(states),
                timeout=timeout,
                held=held,
                cache_key=cache_key,
            )
            self.add(function)
            return handler

        return register

    def add(self, function: Function) -> None:
        """Offer `function`, for functions that are made without the decorator.

        Raises:
            TypeError: the name is taken; its `body`, its `cache_key` or one of its `states` does not exist.
        """
        name = function.name
        if name in self.functions:
            raise TypeError(f"The module {self.name} has two functions named {name}; rename one.")

        parameters = function.parameters.names
        if function.body and function.body not in parameters:
            raise TypeError(
                f"The body parameter {function.body!r} of {self.name}.{name} is not one of its parameters."
            )
        if function.cache_key and function.cache_key not in parameters:
            raise TypeError(
                f"The cache key {function.cache_key!r} of {self.name}.{name} is not one of its parameters."
            )

        for state in function.states:
            if state not in self.states:
                raise TypeError(
                    f"{self.name}.{name} is offered in {state!r}, which is not a state of the module."
                )
        self.functions[name] = function

    def lifespan(self, opened: Lifespan) -> Lifespan:
        """Run the decorated context manager for as long as the module serves. It may add functions before it yields."""
        self._lifespan = opened
        return opened

    def ends_background(self, end: EndBackground) -> EndBackground:
        """Use the decorated function to end the background work of an agent whose permissions were reduced."""
        self._end_background = end
        return end

    async def end_background(self, session: str, agent: str) -> bool:
        """End the background work of one agent. Return whether the module supports that."""
        if self._end_background is None:
            return False
        if (session, agent) in self._agents:
            await self._end_background(self._agents[session, agent])
        return True

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the module's resources open; serve inside this context."""
        if self._lifespan is None:
            yield
            return
        async with self._lifespan():
            yield

    def agent(self, session: str, agent: str) -> AgentState:
        """The state kept for one agent; created at its first call."""
        key = (session, agent)
        if key not in self._agents:
            self._agents[key] = AgentState(
                session, agent, initial=next(iter(self.states), ""), known=self.states
            )
        return self._agents[key]

    def find(self, name: str) -> Function:
        """Return the function `name`, given with or without the module's name in front.

        Raises:
            UnknownFunction: the module has no such function.
        """
        function = self.functions.get(name.removeprefix(f"{self.name}."))
        if function is None:
            raise UnknownFunction(
                f"The module {self.name} has no function {name!r}; it has: {', '.join(self.functions)}."
            )
        return function

    def check_offered(self, function: Function, state: AgentState) -> None:
        """Check that `state` offers `function`.

        Raises:
            NotOffered: it does not.
        """
        now = state.now
        offered = now.entry_points or self._offered_in(now.state)
        if function.name not in offered:
            raise NotOffered(
                f"{self.name}.{function.name} is not offered in the state {now.state!r}; "
                f"offered now: {', '.join(offered) or 'nothing'}."
            )

    def _offered_in(self, state: str) -> Sequence[str]:
        """The functions that are declared for a state."""
        functions = self.functions.values()
        return [function.name for function in functions if not function.states or state in function.states]
