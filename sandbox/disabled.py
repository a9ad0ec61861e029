"""The host for a machine without a sandbox: modules are disabled, and requests are answered with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from iact.core.errors import SandboxUnavailable
from iact.core.ports import CatalogueEntry, ModuleInstance, ModuleSource, Origin, Permit, Report, Right


class DisabledHost:
    """Implements `core.ports.ModuleHost` by refusing. `reason`: one sentence that says what to do."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    @property
    def backend(self) -> Literal["docker", "bubblewrap", "off"]:
        return "off"

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        raise SandboxUnavailable(self.reason)

    async def add(self, source: ModuleSource, origin: Origin) -> CatalogueEntry:
        raise SandboxUnavailable(self.reason)

    async def adopt(self, name: str, digest: str, origin: Origin) -> None:
        raise SandboxUnavailable(self.reason)

    async def files(self, name: str, digest: str) -> Mapping[str, bytes]:
        raise SandboxUnavailable(self.reason)

    async def remove(self, name: str) -> None:
        raise SandboxUnavailable(self.reason)

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
    ) -> ModuleInstance:
        raise SandboxUnavailable(self.reason)

    async def remember_manifest(self, digest: str, manifest: bytes) -> None:
        return None

    running = 0

    async def answers(self) -> bool:
        return True

    async def end_session(self, session: str) -> None:
        return None

    async def close(self) -> None:
        return None
