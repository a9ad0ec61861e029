"""Hosts that Ray starts, restarts and scales: one actor on each node.

Ray must not be trusted with uniqueness: with a frozen node it runs two copies of one actor, both writing, for as long as
one looks. It need not be: two copies of a host are two incarnations, each with leases of its own, and whoever of them
loses the race for the next segment of a session's journal has lost that session (`iact.core.journal.fence`).

Nor is Ray asked where a session is: it takes up to a minute to find out that a node is gone, and an actor that knew would
be gone with it. Gateways read the leases (`iact.cluster.placement`), as they do without Ray.

`HostActor`, one per node, is detached, restarted for ever, and bound to its node. It runs what `iact cluster host` runs, so
everything that is said to it goes over its own sockets, and no stream passes through Ray's object store. Each gateway
sees to it that every node has one; whoever is first makes it.

Only this file imports Ray, and only a program that was given the address of a cluster imports this file.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from typing import Any, Final

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from iact.cluster.leases import RENEWAL
from iact.core.errors import UsageError

NAMESPACE: Final = "iact"

_log = logging.getLogger("iact.cluster")

HostProgram = Callable[[str], Coroutine[None, None, None]]
"""Is a host on the node with this id until it is cancelled. It is found by its name on each node."""


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


class RayHosts:
    """Sees to it that each node of the cluster at `address` has a host."""

    def __init__(self, address: str, program: HostProgram) -> None:
        self._address = address
        self._program = program

    async def start(self) -> None:
        """Connect to the cluster, and begin with the nodes that it has.

        Raises:
            UsageError: there is no cluster at the address.
        """
        await asyncio.to_thread(self._connect)
        await asyncio.to_thread(self._start_hosts)

    async def run(self) -> None:
        """Look after the nodes that come and go, until it is cancelled."""
        while True:
            await asyncio.sleep(RENEWAL)
            try:
                await asyncio.to_thread(self._start_hosts)
            except (RayError, OSError) as error:
                _log.warning("The nodes of the cluster %s can't be seen: %s", self._address, error)
            except Exception:
                _log.exception("Looking after the nodes of the cluster met a bug.")

    def _connect(self) -> None:
        if ray.is_initialized():
            return
        try:
            ray.init(self._address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.WARNING)
        except (ConnectionError, RayError, ValueError, RuntimeError) as error:
            why = str(error).split("\n", 1)[0].rstrip(".")
            raise UsageError(f"There is no Ray cluster at {self._address}: {why}.") from error

    def _start_hosts(self) -> None:
        """A host on each node that lives. One that is there already stays."""
        for node in ray.nodes():  # type: ignore[no-untyped-call]
            if node["Alive"]:
                actor = ray.remote(HostActor).options(
                    name=f"iact-host-{node['NodeID']}", namespace=NAMESPACE, get_if_exists=True, max_concurrency=1000,
                    scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
                    lifetime="detached", max_restarts=-1, max_task_retries=0, num_cpus=0,
                )  # fmt: skip
                host: Any = actor.remote(self._program, node["NodeID"])
                host.serve.remote()
