"""Where tools run: root inside, zero trust outside.

Implements `core.ports.ModuleHost` with containers. `core` is never imported by what runs inside, and
knows nothing of what is in here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from core.errors import SandboxUnavailable
from core.ports import ModuleHost
from sandbox.docker_host import DockerHost
from sandbox.egress import EgressLine, OnEgress, Outside
from sandbox.off import OffHost

__all__ = ["Backend", "DockerHost", "EgressLine", "OffHost", "OnEgress", "open_host"]

Backend = Literal["auto", "docker", "bubblewrap", "off"]


async def open_host(
    data: Path, *, backend: Backend = "auto", on_egress: OnEgress | None = None
) -> ModuleHost:
    """The module host for this machine. `data`: the product's data directory.

    `on_egress` hears of every connection that a module made, or tried to make, to the outside.

    "auto" gives Docker if an engine answers, and otherwise a host that says what to install.

    Raises:
        SandboxUnavailable: "docker" was demanded and no engine answers, or "bubblewrap" was.
    """
    if backend == "off":
        return OffHost("Modules are switched off by the setting IACT_SANDBOX=off.")
    if backend == "bubblewrap":
        raise SandboxUnavailable(
            "This version has no bubblewrap sandbox; set IACT_SANDBOX to docker, auto or off."
        )
    host = DockerHost(data, outside=Outside(on_egress) if on_egress else None)
    try:
        await host.open()
    except SandboxUnavailable as error:
        if backend == "docker":
            raise
        return OffHost(str(error))
    return host
