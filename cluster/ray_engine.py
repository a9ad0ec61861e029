"""Hosts that Ray starts, restarts and scales: one actor on each node, and one that knows where everything is.

Ray must not be trusted with uniqueness: with a frozen node it runs two copies of one actor, both writing, for as long as
one looks. It need not be: two copies of a host are two incarnations, each with leases of its own, and whoever of them
loses the race for the next segment of a session's journal has lost that session (`iact.core.journal.fence`).

- `HostActor`, one per node, detached, restarted for ever, bound to its node. It runs what `iact cluster host` runs, so
  everything that is said to it goes over its own sockets, and no stream passes through Ray's object store.
- `HostDirectory`, one per cluster, detached. It starts a host on each node that has none, and answers for all gateways
  where a session is. What it knows it reads from the leases again when it is restarted.

Only this file imports Ray, and only a program that was given the address of a cluster imports this file.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from iact.cluster.leases import RENEWAL, HostLease
from iact.cluster.placement import HostUnavailable, Location, StaticPlacement
from iact.core.errors import IactError, UsageError

NAMESPACE: Final = "iact"
_DIRECTORY: Final = "iact-directory"
_ACTORS: Final = {"lifetime": "detached", "max_restarts": -1, "max_task_retries": 0, "num_cpus": 0}
_PATIENCE: Final = 60.0

_log = logging.getLogger("iact.cluster")

HostProgram = Callable[[str], Coroutine[None, None, None]]
"""Is a host on the node with this id until it is cancelled. It is found by its name on each node."""

OpenPlacement = Callable[[], Awaitable[StaticPlacement]]
"""What reads the leases, likewise."""


class HostActor:
    """One host. If it ends by an error, so does the process of the actor, and Ray starts it again."""

    def __init__(self, program: HostProgram, node: str) -> None:
        self._program = program
        self._node = node
        self._running: asyncio.Task[None] | None = None

    async def serve(self) -> bool:
        """See to it that the host runs; said again and again, since a process that was started anew does not know yet."""
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._program(self._node))
            self._running.add_done_callback(_end_process)
        return True


def _end_process(running: asyncio.Task[None]) -> None:
    if running.cancelled() or running.exception() is None:
        return
    _log.error("A host ended by an error.", exc_info=running.exception())
    os._exit(1)  # the only way to be restarted; what was acknowledged is in the store


class HostDirectory:
    """Where everything is, for all gateways."""

    def __init__(self, program: HostProgram, open_placement: OpenPlacement) -> None:
        self._program = program
        self._open_placement = open_placement
        self._opening = asyncio.Lock()
        self._placement: StaticPlacement | None = None
        self._watching: asyncio.Task[None] | None = None

    async def _known(self) -> StaticPlacement:
        async with self._opening:
            if self._placement is None:
                self._placement = await self._open_placement()
                self._watching = asyncio.get_running_loop().create_task(self._watch(self._placement))
            return self._placement

    async def _watch(self, placement: StaticPlacement) -> None:
        while True:
            try:
                await asyncio.to_thread(self._start_hosts)
                await placement.refresh()
            except (IactError, RayError, OSError) as error:
                _log.warning("The directory can't see all hosts: %s", error)
            except Exception:
                _log.exception("The directory met a bug.")
            await asyncio.sleep(RENEWAL)

    def _start_hosts(self) -> None:
        """A host on each node that lives. One that is there already stays."""
        for node in ray.nodes():  # type: ignore[no-untyped-call]
            if node["Alive"]:
                actor = ray.remote(HostActor).options(
                    name=f"iact-host-{node['NodeID']}", namespace=NAMESPACE, get_if_exists=True, max_concurrency=1000,
                    scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False), **_ACTORS,
                )  # fmt: skip
                host: Any = actor.remote(self._program, node["NodeID"])
                host.serve.remote()

    async def ask(self, what: str, *arguments: str | None) -> object:
        """`locate`, `place`, `drain` or `hosts`; the answer, or whether it was wrong usage with the error's sentence."""
        try:
            placement = await self._known()
            match what, arguments:
                case "locate", (str(session),):
                    return await placement.locate(session)
                case "place", (session, str(host)):
                    return await placement.place(session, host=host)
                case "drain", (str(host),):
                    return await placement.drain(host)
                case "hosts", ():
                    return list(await placement.hosts())
        except IactError as error:
            return (type(error) is UsageError, str(error))
        raise ValueError(f"the directory is not asked for {what}")


class RayPlacement:
    """Finds hosts by the directory of a Ray cluster, as `iact.cluster.placement.Placement` has it."""

    def __init__(self, address: str, program: HostProgram, open_placement: OpenPlacement) -> None:
        self._address = address
        self._program = program
        self._open_placement = open_placement
        self._directory: Any = None

    async def start(self) -> None:
        """Connect to the cluster, and see to it that it has a directory.

        Raises:
            UsageError: there is no cluster at the address.
        """
        await asyncio.to_thread(self._connect)
        await self.hosts()  # with what it is asked first the directory begins to look after hosts

    def _connect(self) -> None:
        if not ray.is_initialized():
            try:
                ray.init(
                    self._address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.WARNING
                )
            except (ConnectionError, RayError, ValueError, RuntimeError) as error:
                why = str(error).split("\n", 1)[0].rstrip(".")
                raise UsageError(f"There is no Ray cluster at {self._address}: {why}.") from error
        made = ray.remote(HostDirectory).options(
            name=_DIRECTORY, namespace=NAMESPACE, get_if_exists=True, max_concurrency=1000, **_ACTORS
        )
        self._directory = made.remote(self._program, self._open_placement)

    async def locate(self, session: str) -> Location | None:
        """As `Placement.locate`."""
        found = await self._ask("locate", session)
        return found if isinstance(found, Location) else None

    async def place(self, session: str | None, *, host: str = "") -> Location:
        """As `Placement.place`."""
        found = await self._ask("place", session, host)
        assert isinstance(found, Location)
        return found

    async def drain(self, host: str) -> int:
        """As `Placement.drain`."""
        found = await self._ask("drain", host)
        assert isinstance(found, int)
        return found

    async def hosts(self) -> Sequence[HostLease]:
        """As `Placement.hosts`."""
        found = await self._ask("hosts")
        return [one for one in found if isinstance(one, HostLease)] if isinstance(found, list) else []

    async def _ask(self, what: str, *arguments: str | None) -> object:
        end = asyncio.get_running_loop().time() + _PATIENCE
        while True:
            assert self._directory is not None, "the placement was not started"
            try:
                answer: object = await self._directory.ask.remote(what, *arguments)
            except RayError as error:  # it is being restarted, elsewhere if its node is gone
                if asyncio.get_running_loop().time() > end:
                    raise HostUnavailable(
                        f"The directory of the cluster does not answer: {error}."
                    ) from error
                await asyncio.sleep(0.25)
                continue
            if isinstance(answer, tuple):
                usage, sentence = answer
                raise (UsageError if usage else IactError)(str(sentence))
            return answer
