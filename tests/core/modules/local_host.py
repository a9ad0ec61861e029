"""A module host without isolation: modules of the SDK served in this process, over real sockets and the real protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import grpc.aio

from ext_modules.sdk import Module
from ext_modules.sdk.server import start
from iact.core.errors import SandboxError
from iact.core.modules.registry import Start
from iact.core.ports import CatalogueEntry, ModuleSource, Origin, Permit, Report, Right


class LocalInstance:
    """One served module. `lost`: why it is gone, once it is. `stubborn`: it can't be stopped."""

    def __init__(self, name: str, target: str, secrets: Mapping[str, str], server: grpc.aio.Server) -> None:
        self.name = name
        self.target = target
        self.secrets = secrets
        self.lost: str | None = None
        self.stopped = self.frozen = False
        self.stubborn = False
        self.serves_apps = False
        self._server = server

    async def die(self, why: str) -> None:
        """End without being asked to."""
        self.lost = why
        await self._server.stop(None)

    async def why_lost(self) -> str | None:
        return self.lost

    async def freeze(self) -> None:
        self.frozen = True

    async def stop(self) -> None:
        self.stopped = True
        await self._server.stop(None)
        if self.stubborn:
            raise SandboxError("It could not be stopped.")


class LocalHost:
    """Implements `core.ports.ModuleHost` for modules that are made on the spot.

    `make`: makes each module, by name. `secrets`: what modules are told. `started`, `starts`: every start so far; `seats`: its right and agent.
    """

    backend: Literal["docker", "bubblewrap", "off"] = "off"

    def __init__(
        self,
        sockets: Path,
        make: Mapping[str, Callable[[], Module]],
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self._sockets = sockets
        self._make = make
        self._secrets = secrets or {}
        self.modules: list[Module] = []
        self.started: list[LocalInstance] = []
        self.starts: list[Start] = []
        self.seats: list[tuple[Right, str]] = []
        self.remembered: dict[str, bytes] = {}
        self.ended: list[str] = []

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        return [CatalogueEntry(name, name * 8, "user", "", None) for name in self._make]

    async def add(self, source: ModuleSource, origin: Origin) -> CatalogueEntry:
        raise AssertionError("nothing is added here")

    async def adopt(self, name: str, digest: str, origin: Origin) -> None:
        raise AssertionError("nothing is added here")

    async def files(self, name: str, digest: str) -> Mapping[str, bytes]:
        raise AssertionError("nothing is looked into here")

    async def remove(self, name: str) -> None:
        raise AssertionError("nothing is removed here")

    async def start(
        self,
        name: str,
        *,
        session: str,
        workspace: Path,
        report: Report,
        digest: str | None = None,
        egress: Sequence[str] = (),
        secrets: Sequence[str] = (),
        right: Right = "work",
        agent: str = "",
        copy: str = "",
        permit: Permit | None = None,
    ) -> LocalInstance:
        if name not in self._make:
            raise SandboxError(f"There is no module {name!r}.")
        module = self._make[name]()
        socket = self._sockets / str(len(self.seats))
        self.seats.append((right, agent))
        server, _ = await start(module, socket)
        told = {one: self._secrets[one] for one in secrets}
        instance = LocalInstance(name, f"unix:{socket}", told, server)
        self.modules.append(module)
        self.started.append(instance)
        self.starts.append(Start(digest, tuple(egress), tuple(secrets)))
        return instance

    async def remember_manifest(self, digest: str, manifest: bytes) -> None:
        self.remembered[digest] = manifest

    running = 0

    async def answers(self) -> bool:
        return True

    async def end_session(self, session: str) -> None:
        self.ended.append(session)

    async def close(self) -> None:
        for instance in self.started:
            with suppress(SandboxError):
                await instance.stop()
