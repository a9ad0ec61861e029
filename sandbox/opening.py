"""Which of the hosts of modules a machine gets: the one that the settings name, or the best that works here."""

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
from iact.sandbox.egress import OnEgress, Outside, inside
from iact.sandbox.kubernetes.namespace import NamespaceSettings

if TYPE_CHECKING:
    from iact.sandbox.kubernetes.host import KubernetesHost

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
    """Open the module host for this machine. `data`: the product's data directory.

    `runtime`: the engine's name of the runtime for containers; "auto" takes gVisor if the engine is set up for it.
    `on_egress` is called for every connection that a module made, or tried to make, to the outside. `pool`: for how
    many sessions modules are started in advance. `inner`: targets that lead to the user's own machines, each with its
    address; `search`: the search server for the module web. `kubernetes`: where in a cluster modules run, for that
    backend; there `runtime` is the name of a runtime class. `shared`: a directory like `data` with the modules and
    secrets that an administrator set for all users.

    "auto" chooses Docker if an engine answers, otherwise bubblewrap if it works here, although its isolation is weaker,
    and otherwise a host that says what to install.

    Raises:
        SandboxUnavailable: the requested backend doesn't work here.
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
        if backend != "auto" or runtime != AUTO:  # whoever names a backend or runtime accepts nothing weaker
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
    """Create the host of pods. Cluster packages are imported only here.

    Raises:
        SandboxUnavailable: its packages are not installed, or a setting is missing.
    """
    try:
        from iact.sandbox.kubernetes.host import KubernetesHost
    except ImportError as error:
        raise SandboxUnavailable(
            f"Tools can't run on Kubernetes, because a package is missing ({error.name}). Install it: "
            "pip install 'iact[kubernetes]'."
        ) from error
    namespace = settings.namespace(runtime)
    return KubernetesHost(data, namespace, host=settings.host, outside=outside, pool=pool, shared=shared)
