"""One running module, whatever the backend: its owner, what it was given, and how it is lost and ended."""

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
from iact.sandbox.threads import to_the_end

_HEALTH_PATIENCE = 4
"""Seconds that a module has to answer its health service."""
_LOOKS = 4
_BETWEEN = 0.25
"""How often, and at what interval in seconds, a backend is asked why a module does not answer."""


@dataclass(slots=True, kw_only=True)
class Instance(ABC):
    """One running module; implements `core.ports.ModuleInstance`."""

    key: Key
    folder: Path
    socket: socket_folder.CheckedSocket
    forget: Callable[[Self], None]
    temporary: Temporary | None = None
    """Temporary files shared with the same agent's other instance; None if this instance has its own."""
    proxy: EgressProxy | None = None
    egress: tuple[str, ...] = ()
    digest: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    serves_apps: bool = False
    """Whether it serves apps that the user can open."""
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
        """Open the socket on which the app `app` (sixteen hex digits) answers HTTP; None if there is none.

        The caller must close it.

        Raises:
            ModuleLost: it is not a socket.
        """
        if self.ended or not self.serves_apps or not re.fullmatch("[0-9a-f]{16}", app):
            return None
        return socket_folder.open_socket(self.folder, f"app-{app}.sock")

    def given(self, session: str, agent: str = "") -> None:
        """Assign an instance that was started in advance to a session and an agent."""
        self.key = replace(self.key, session=session, agent=agent)
        self.since = time.monotonic()

    @abstractmethod
    async def settle(self) -> None:
        """Do the work for that session that can wait until no call is waiting."""

    async def why_lost(self) -> str | None:
        """A sentence if it can no longer serve, else None.

        Its health service decides, and is given some time to answer, since the module's programs may use all of its
        processor. The backend is asked only for the reason.
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
        """Stop all its processes at once. Afterwards it can only be stopped. May be called twice."""
        if not (self.ended or self.frozen):
            self.frozen = True
            await asyncio.shield(self._freeze())

    async def stop(self) -> None:
        """End it and remove everything that belongs to it. May be called twice."""
        async with self._ending:
            if self.ended:
                return
            self.ended = True
            self.forget(self)
            self.socket.close()
            await to_the_end(self._remove())

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
        """Suspend all its processes. Must not raise."""

    @abstractmethod
    async def _end(self) -> None:
        """End its process and remove its socket folder. Must not raise."""
