"""Hosts that Ray starts, restarts and scales: one actor on each node.

Ray can't be trusted with uniqueness: with a frozen node it runs two copies of one actor, both writing, indefinitely. It
need not be: two copies of a host are two incarnations, each with its own leases, and the one that loses the race for
the next segment of a session's journal has lost that session (`iact.core.journal.fence`).

Nor is Ray asked where a session is: it takes up to a minute to notice that a node is gone, and an actor that knew would
be gone with it. Gateways read the leases (`iact.cluster.placement`), as they do without Ray.

`HostActor`, one per node, is detached, restarted without limit, and bound to its node. It runs what `iact cluster host`
runs, so all communication with it goes over its own sockets, and no stream passes through Ray's object store. Each
gateway checks that every node has an actor; the first to notice a missing one creates it.

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
"""Runs a host on the node with this id until cancelled. Each node imports it by its name."""


class HostActor:
    """One host. If it ends with an error, so does the actor's process, and Ray starts it again."""

    def __init__(self, program: HostProgram, node: str) -> None:
        self._program = program
        self._node = node
        self._running: asyncio.Task[None] | None = None

    async def serve(self) -> bool:
        """Start the host if it is not running. Called repeatedly, since a restarted process does not run it yet."""
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
    """Keeps a host running on each node of the cluster at `address`."""

    def __init__(self, address: str, program: HostProgram) -> None:
        self._address = address
        self._program = program

    async def start(self) -> None:
        """Connect to the cluster, and start hosts on its present nodes.

        Raises:
            UsageError: there is no cluster at the address.
        """
        await asyncio.to_thread(self._connect)
        await asyncio.to_thread(self._start_hosts)

    async def run(self) -> None:
        """Start hosts on new nodes, until cancelled."""
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
        """Start a host on each living node that has none."""
        for node in ray.nodes():  # type: ignore[no-untyped-call]
            if not node["Alive"]:
                continue

            actor = ray.remote(HostActor).options(
                name=f"iact-host-{node['NodeID']}", namespace=NAMESPACE, get_if_exists=True, max_concurrency=1000,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
                lifetime="detached", max_restarts=-1, max_task_retries=0, num_cpus=0,
            )  # fmt: skip
            host: Any = actor.remote(self._program, node["NodeID"])
            host.serve.remote()
