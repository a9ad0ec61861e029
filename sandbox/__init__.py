"""Where tools run: root inside, zero trust outside.

Implements `core.ports.ModuleHost` with containers, or with name spaces of bubblewrap's. `core` is never imported by
what runs inside, and knows nothing of what is in here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from iact.core.errors import SandboxUnavailable
from iact.core.ports import ModuleHost
from iact.sandbox.bubblewrap.host import BubblewrapHost
from iact.sandbox.disabled import DisabledHost
from iact.sandbox.docker.host import DockerHost
from iact.sandbox.docker.isolation import AUTO
from iact.sandbox.egress import EgressLine, OnEgress, Outside, inside
from iact.sandbox.kubernetes.namespace import NamespaceSettings

if TYPE_CHECKING:
    from iact.sandbox.kubernetes.host import KubernetesHost

__all__ = [
    "Backend",
    "BubblewrapHost",
    "DisabledHost",
    "DockerHost",
    "EgressLine",
    "NamespaceSettings",
    "OnEgress",
    "open_host",
]

Backend = Literal["auto", "docker", "bubblewrap", "kubernetes", "off"]


async def open_host(
    data: Path,
    *,
    backend: Backend = "auto",
    runtime: str = AUTO,
    on_egress: OnEgress | None = None,
    pool: int = 0,
    inner: Mapping[str, str] | None = None,
    search: str | None = None,
    kubernetes: NamespaceSettings | None = None,
    shared: Path | None = None,
) -> ModuleHost:
    """The module host for this machine. `data`: the product's data directory.

    `runtime`: the engine's name of the one that containers run in; "auto" takes gVisor if the engine is set up for
    it. `on_egress` hears of every connection that a module made, or tried to make, to the outside. `pool`: for how
    many sessions modules run before they are called. `inner`: targets that lead to machines of the user's, each with its
    address; `search`: the server that the module web searches with. `kubernetes`: where in a cluster modules run, for that
    backend, where `runtime` is the name of a runtime class. `shared`: a directory like `data` with the modules and secrets
    that an administrator set for everybody.

    "auto" gives Docker if an engine answers, otherwise bubblewrap if that works here, whose isolation is weaker,
    and otherwise a host that says what to install.

    Raises:
        SandboxUnavailable: what was demanded doesn't work here.
    """
    if backend == "off":
        return DisabledHost("Modules are switched off by the setting IACT_SANDBOX=off.")
    ways = Outside(inside=inside(inner or {}), settings={"search": search} if search else {})
    outside = replace(ways, on_line=on_egress) if on_egress else ways
    if backend == "kubernetes":
        pods = _kubernetes(data, kubernetes or NamespaceSettings(), runtime, outside, pool, shared)
        try:
            await pods.open()
        except BaseException:
            await pods.close()
            raise
        pods.pool.fill()
        return pods
    docker = DockerHost(data, outside=outside, pool=pool, shared=shared, runtime=runtime)
    bubblewrap = BubblewrapHost(data, outside=outside, pool=pool, shared=shared)
    host: DockerHost | BubblewrapHost = bubblewrap if backend == "bubblewrap" else docker
    try:
        await host.open()
    except SandboxUnavailable as no_engine:
        if backend != "auto" or runtime != AUTO:  # who names one wants nothing weaker
            raise
        host = bubblewrap
        try:
            await host.open()
        except SandboxUnavailable:
            return DisabledHost(str(no_engine))
    host.pool.fill()
    return host


def _kubernetes(
    data: Path, settings: NamespaceSettings, runtime: str, outside: Outside, pool: int, shared: Path | None
) -> KubernetesHost:
    """The host of pods; only here is anything of a cluster imported.

    Raises:
        SandboxUnavailable: its packages are not installed, or a setting is missing.
    """
    try:
        from iact.sandbox.kubernetes.host import KubernetesHost
    except ImportError as error:
        raise SandboxUnavailable(
            f"Tools can't run on Kubernetes, since a package is missing ({error.name}). Install it: pip install "
            "'iact[kubernetes]'."
        ) from error
    namespace = settings.namespace(runtime)
    return KubernetesHost(data, namespace, host=settings.host, outside=outside, pool=pool, shared=shared)
