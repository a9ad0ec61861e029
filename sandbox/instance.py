"""One running module, as every backend has it: whose it is, what it was given, how it is lost and ended."""

from __future__ import annotations

import asyncio
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from iact.sandbox import socket_folder
from iact.sandbox.egress import EgressProxy
from iact.sandbox.health import serves
from iact.sandbox.owner import Key
from iact.sandbox.restarts import Restarts
from iact.sandbox.temporary_files import Temporary

_HEALTH_PATIENCE = 4
_LOOKS = 4
_BETWEEN = 0.25
"""How often, and at which distance in seconds, a backend is asked how a module ended that does not answer."""
"""Seconds that a module has to answer its health service."""


@dataclass(slots=True, kw_only=True)
class Instance(ABC):
    """One running module; implements `core.ports.ModuleInstance`."""

    key: Key
    folder: Path
    socket: socket_folder.CheckedSocket
    forget: Callable[[Self], None]
    temporary: Temporary | None = None
    """Its temporary files, where the same agent's other instance sees them; None if they are in it alone."""
    proxy: EgressProxy | None = None
    egress: tuple[str, ...] = ()
    digest: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    serves_apps: bool = False
    """Whether the user can open what it serves."""
    restarts: Restarts = field(default_factory=Restarts)
    since: float = field(default_factory=time.monotonic)
    _lost: bool = False
    _ending: asyncio.Lock = field(default_factory=asyncio.Lock)
    ended: bool = False
    frozen: bool = False

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def session(self) -> str:
        return self.key.session

    @property
    def target(self) -> str:
        return self.socket.target

    def open_app(self, app: str) -> socket_folder.CheckedSocket | None:
        """The socket on which the app called `app` (sixteen hex digits) answers HTTP; None if there is none. Close it.

        Raises:
            ModuleLost: what is there is not a socket.
        """
        if self.ended or not self.serves_apps or not re.fullmatch("[0-9a-f]{16}", app):
            return None
        return socket_folder.open_socket(self.folder, f"app-{app}.sock")

    def given(self, session: str, agent: str = "") -> None:
        """It was started for nobody yet, and is that session's and agent's from now on."""
        self.key = replace(self.key, session=session, agent=agent)
        self.since = time.monotonic()

    @abstractmethod
    async def settle(self) -> None:
        """What can be done for that session later, when no call waits."""

    async def why_lost(self) -> str | None:
        """A sentence if it can no longer serve, else None.

        Its health service has the first word, and some patience, since what it runs may take all of its
        processor; the backend is only asked for the reason.
        """
        if self.ended or self.frozen:
            return f"The module {self.name} was stopped."
        if await serves(self.target, within=_HEALTH_PATIENCE):
            return None
        why = await self._why_ended()
        for _ in range(_LOOKS):  # its backend may learn of its end a moment later than its socket
            if why is None:
                await asyncio.sleep(_BETWEEN)
                why = await self._why_ended()
        why = why or f"The module {self.name} runs but no longer answers."
        if not (self._lost or self.ended or self.frozen):
            self._lost = True
            self.restarts.failed(why, time.monotonic(), since=self.since)
        return why

    async def freeze(self) -> None:
        """Let nothing of it run any more, at once; it can only be stopped then. Harmless when done twice."""
        if not (self.ended or self.frozen):
            self.frozen = True
            await asyncio.shield(self._freeze())

    async def stop(self) -> None:
        """End it and remove everything of it; harmless when done twice."""
        async with self._ending:
            if self.ended:
                return
            self.ended = True
            self.forget(self)
            self.socket.close()
            await asyncio.shield(self._remove())

    async def _remove(self) -> None:
        if self.proxy is not None:
            await self.proxy.close()
        await self._end()
        if self.temporary is not None:
            await self.temporary.release()

    @abstractmethod
    async def _why_ended(self) -> str | None:
        """A sentence on how its process ended; None while it runs."""

    @abstractmethod
    async def _freeze(self) -> None:
        """Take the processor from all that it runs; nothing here raises."""

    @abstractmethod
    async def _end(self) -> None:
        """End its process and remove its socket folder; nothing here raises."""
