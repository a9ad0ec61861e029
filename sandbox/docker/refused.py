"""What the engine did not remove, for whatever reason: it is tried again, with growing waits.

Until then it does nothing: a container whose lease ended has no processes any more. What is left when the program ends
is removed by the next host on the data directory, or by `iact doctor --fix`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

import docker
from docker.errors import NotFound

from iact.core.errors import SandboxUnavailable
from iact.sandbox.docker.engine import EngineFailure, knock
from iact.sandbox.docker.reaper import reap
from iact.sandbox.docker.removal import made_by
from iact.sandbox.threads import in_thread

_LOG: Final = logging.getLogger(__name__)
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 300.0
"""Seconds before the first attempt, and the most between two; each wait is twice as long as the one before."""


class RefusedRemovals:
    """The objects of one host that the engine still has to remove. `client`: the connection; None if there is none."""

    def __init__(self, data: Path, client: Callable[[], docker.DockerClient | None]) -> None:
        self._data = data
        self._client = client
        self._containers: set[str] = set()
        """Ids, never names: what has a name may be another one by now, which runs."""
        self._starts: set[str] = set()
        """Labels of starts whose creation was not answered."""
        self._volumes: set[str] = set()
        self._of_dead_hosts = False
        self._trying: asyncio.Task[None] | None = None

    @property
    def empty(self) -> bool:
        """Whether the engine has removed everything."""
        return not (self._containers or self._starts or self._volumes or self._of_dead_hosts)

    def container(self, identity: str) -> None:
        """Note a container, by its id."""
        self._containers.add(identity)
        self._begin()

    def start(self, start: str) -> None:
        """Note what the engine made of a start whose creation it did not answer, by the label of that start only."""
        self._starts.add(start)
        self._begin()

    def volume(self, name: str) -> None:
        """Note a volume."""
        self._volumes.add(name)
        self._begin()

    def of_dead_hosts(self) -> None:
        """Note that the reaper could not remove everything that it found."""
        self._of_dead_hosts = True
        self._begin()

    async def close(self) -> bool:
        """Stop trying. Return whether everything is gone."""
        trying, self._trying = self._trying, None
        if trying is not None:
            trying.cancel()
            await asyncio.wait([trying])
        return self.empty

    def _begin(self) -> None:
        if self._trying is None or self._trying.done():
            self._trying = asyncio.create_task(self._try_again(), name="remove what the engine refused")

    async def _try_again(self) -> None:
        wait = _FIRST_WAIT
        while not self.empty:
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
            await in_thread(self._attempt)
            if not self.empty:
                _LOG.warning(
                    "the engine still refuses to remove %s; tried again in %.0f s", self._told(), wait
                )

    def _attempt(self) -> None:
        """Try everything once. Blocks."""
        client = self._client()
        if client is None:
            return
        try:
            knock()
        except SandboxUnavailable:
            return

        try:
            self._find_started(client)
        except EngineFailure:
            return

        # Containers first: a volume goes only when no container uses it.
        self._containers -= {
            identity
            for identity in list(self._containers)
            if _gone(client.api.remove_container, identity, v=True)
        }
        self._volumes -= {name for name in list(self._volumes) if _gone(client.api.remove_volume, name)}
        if self._of_dead_hosts:
            try:
                self._of_dead_hosts = bool(reap(client, self._data).refused)
            except EngineFailure:
                return

    def _find_started(self, client: docker.DockerClient) -> None:
        """Note the containers of the starts that were not answered, by their ids from now on. Blocks."""
        for start in list(self._starts):
            self._containers.update(made_by(client, start))
            self._starts.discard(start)

    def _told(self) -> str:
        known = [*sorted(self._containers), *sorted(self._starts), *sorted(self._volumes)]
        return ", ".join(known) or "what an earlier process left"


def _gone(remove: Callable[..., object], name: str, **options: bool) -> bool:
    try:
        remove(name, force=True, **options)
    except NotFound:
        return True
    except EngineFailure:
        return False
    return True
