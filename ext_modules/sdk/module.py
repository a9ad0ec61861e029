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
    """The resources a module needs from its sandbox, as its `module.toml` declares them. 0: the sandbox decides.

    `own_instances`: each agent has its own instance. `forgets`: nothing of a call outlives it.
    """

    egress: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    workspace: Literal["none", "read", "write"] = "none"
    memory_bytes: int = 0
    cpu: float = 0.0
    pids: int = 0
    own_instances: bool = False
    forgets: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A function that callers can invoke, with its entry in the manifest. `timeout` in seconds."""

    name: str
    handler: Callable[..., object]
    parameters: Parameters | GivenParameters
    summary: str
    documentation: str
    alias: str
    body: str
    media_type: str
    impact: Impact
    idempotent: bool
    exclusive: bool
    states: tuple[str, ...]
    timeout: float
    held: bool = False
    cache_key: str = ""


@dataclass(slots=True)
class Module:
    """A module, as its file defines it. `states` maps each state to a one-line summary, the initial state first.

    `own_instances`: as in `Needs`, for a module without a `module.toml`.
    """

    name: str
    purpose: str
    keywords: Sequence[str] = ()
    version: str = "0"
    states: Mapping[str, str] = field(default_factory=dict)
    needs: Needs = field(default_factory=Needs)
    own_instances: bool = False
    functions: dict[str, Function] = field(default_factory=dict, init=False)
    _lifespan: Lifespan | None = field(default=None, init=False)
    _end_background: EndBackground | None = field(default=None, init=False)
    _agents: dict[tuple[str, str], AgentState] = field(default_factory=dict, init=False)

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

        def register(handler: Handler) -> Handler:
            documentation = inspect.cleandoc(handler.__doc__ or "")
            self.add(
                Function(
                    name=name or str(getattr(handler, "__name__", "")),
                    handler=handler,
                    parameters=parameters_of(handler),
                    summary=summary or documentation.partition("\n")[0],
                    documentation=textwrap.dedent(documentation),
                    alias=alias,
                    body=body,
                    media_type=media_type,
                    impact=impact,
                    idempotent=impact == 0 if idempotent is None else idempotent,
                    exclusive=exclusive,
                    states=tuple(states),
                    timeout=timeout,
                    held=held,
                    cache_key=cache_key,
                )
            )
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
        if function.body and function.body not in function.parameters.names:
            raise TypeError(
                f"The body parameter {function.body!r} of {self.name}.{name} is not one of its parameters."
            )
        if function.cache_key and function.cache_key not in function.parameters.names:
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
        offered = now.entry_points or [
            other.name for other in self.functions.values() if not other.states or now.state in other.states
        ]
        if function.name not in offered:
            raise NotOffered(
                f"{self.name}.{function.name} is not offered in the state {now.state!r}; "
                f"offered now: {', '.join(offered) or 'nothing'}."
            )
