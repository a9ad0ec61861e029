"""The host for a machine without a sandbox: modules are off, and whoever asks is told why and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from core.errors import SandboxUnavailable
from core.ports import CatalogueEntry, ModuleInstance, Report


class OffHost:
    """Implements `core.ports.ModuleHost` by refusing. `reason`: one sentence with the remedy."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    @property
    def backend(self) -> Literal["docker", "bubblewrap", "off"]:
        return "off"

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        raise SandboxUnavailable(self.reason)

    async def start(self, name: str, *, session: str, workspace: Path, report: Report) -> ModuleInstance:
        raise SandboxUnavailable(self.reason)

    async def remember_manifest(self, name: str, manifest: bytes) -> None:
        return None

    async def end_session(self, session: str) -> None:
        return None

    async def close(self) -> None:
        return None
