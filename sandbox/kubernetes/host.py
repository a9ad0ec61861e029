"""Runs modules as pods of a Kubernetes cluster, each in a Sandbox of agent-sandbox.

The sessions' files must be on a volume that both this host and the pods mount. Everything else is as for other
backends: the host serves a unix socket for each module (`tunnel`), its own proxy is the only way out, and its ticket
the only authority.

How modules end: a module ends with its session. What a killed process left is removed by the next process of the same
host. What a host left that never returns ends on its own within minutes. The host that starts a session's first module
removes whatever another host still runs for that session, and waits until it is gone, so two hosts never work in one
workspace at the same time.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import re
import secrets
import socket
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

from iact.core.errors import ModuleLost, SandboxUnavailable, UsageError
from iact.core.ports import CatalogueEntry, ModuleSource, Origin, Permit, Report
from iact.sandbox import limits, owner, reaper, socket_folder
from iact.sandbox.catalogue import CatalogueModule
from iact.sandbox.docker import image
from iact.sandbox.docker.isolation import give
from iact.sandbox.egress import EgressProxy, Outside
from iact.sandbox.health import LOG_LINES, LOG_SIZE, last_words
from iact.sandbox.host import Given, Host, ModuleStart, cannot_prepare
from iact.sandbox.images.recipe import BASE
from iact.sandbox.instance import Instance
from iact.sandbox.kubernetes import status
from iact.sandbox.kubernetes.api import ClusterApi, NameTaken
from iact.sandbox.kubernetes.key_pair import KeyPair
from iact.sandbox.kubernetes.manifest import (
    CLAIM,
    DATA,
    HOST,
    MODULE,
    PROCESS,
    SESSION,
    USER,
    Owner,
    Pod,
    label,
    sandbox,
    secret,
)
from iact.sandbox.kubernetes.namespace import Namespace
from iact.sandbox.kubernetes.status import SandboxReply
from iact.sandbox.kubernetes.tunnel import Tunnel
from iact.sandbox.owner import Key
from iact.sandbox.temporary_files import Temporary
from iact.sandbox.threads import in_thread

WEAKER: Final = (
    "tools run in plain containers of the cluster, whose isolation is weaker than gVisor's or Kata's"
)
_UP_WITHIN: Final = 60.0
"""Seconds in which a module must come up. It runs on another machine, whose load is not known here."""
_LOOKS_APART: Final = (0.1, 0.2, 0.5, 1.0)
"""Seconds between two checks of a Sandbox that is starting; the last value repeats."""
_NAMES: Final = 5
"""How many names are tried if they are taken."""


@dataclass(slots=True, kw_only=True)
class PodInstance(Instance):
    """One module in its pod."""

    pod: str
    api: ClusterApi
    tunnel: Tunnel
    delete: Callable[[str], Awaitable[None]]
    """Removes its Sandbox, now or as soon as the cluster answers."""

    async def settle(self) -> None:
        """Nothing to do: it has had the session's label since it was assigned."""

    async def _why_ended(self) -> str | None:
        with suppress(SandboxUnavailable):
            pod = await self.api.pod(self.pod)
            if pod is None:
                return f"The pod of the module {self.name} is gone: it was deleted, or its node was."

            why = status.why_ended(pod, self.name)
            if why is not None:
                return why + last_words(await self._printed())
        return None

    async def _printed(self) -> str:
        return (await self.api.log(self.pod, MODULE, LOG_LINES))[-LOG_SIZE:].strip()

    async def _freeze(self) -> None:
        """End the pod: pods can't be suspended. Its grace period is one second."""
        await self.tunnel.close()
        await self.delete(self.pod)

    async def _end(self) -> None:
        await self.tunnel.close()
        await self.delete(self.pod)
        await in_thread(socket_folder.remove, self.folder)


class KubernetesHost(Host[PodInstance]):
    """Implements `core.ports.ModuleHost` with pods."""

    def __init__(
        self,
        data: Path,
        namespace: Namespace,
        *,
        bounds: limits.Limits | None = None,
        patience: float = _UP_WITHIN,
        coming_up: float = 180,
        asking: float = 15,
        lease: float = 600,
        host: str = "",
        shipped: Path | None = None,
        folders: Sequence[Path] = (),
        outside: Outside | None = None,
        pool: int = 0,
        shared: Path | None = None,
    ) -> None:
        """As for every host, plus the following.

        `coming_up`: seconds that a pod may wait for a node and its image; `asking`: seconds that one request to the API
        may take; `lease`: seconds after which a pod ends unless this host extends it; `host`: its name, which must be
        the same when it comes back and must not be used by another host; by default the machine's.
        """
        super().__init__(
            data, bounds=bounds, patience=patience, shipped=shipped, folders=folders, outside=outside, pool=pool,
            shared=shared,
        )  # fmt: skip
        self._namespace = namespace
        self._coming_up = coming_up
        self._lease = timedelta(seconds=lease)
        self._api = ClusterApi(namespace.name, asking)
        self._host = host or socket.gethostname()
        self._pair = KeyPair.make(f"iact host {self._host}")
        self._opening = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None
        self._made: set[str] = set()
        """Names of the objects that this process created in the cluster, until they are known to be gone."""
        self._wanted: set[str] = set()
        """Those of them that should stay."""
        self._fenced: set[str] = set()
        """Sessions for which no other host runs anything."""
        self._nodes: set[str] = set()
        """Nodes whose network policy was tried."""
        self._pythons: dict[str, str] = {}
        """The version of the Python in each image, as its pods reported it."""
        self._said = False
        """Whether a person was told that pods run without a runtime that isolates them further."""

    @property
    def backend(self) -> Literal["kubernetes"]:
        return "kubernetes"

    async def open(self) -> None:
        """Find the cluster, and remove what dead processes of this host left; `start` does it if it was not done.

        Raises:
            SandboxUnavailable: it does not answer, refuses, or does not keep modules from the network.
        """
        async with self._opening:
            if self._closed:
                raise SandboxUnavailable("The sandbox is closed; start the program again.")
            if self._keeper is not None:
                return

            try:
                await self._api.open()
                await self._sweep()
            except BaseException:
                await asyncio.shield(self._api.close())
                raise

            await in_thread(_reap_folders, self._data)
            self._keeper = asyncio.create_task(self._keep())

    async def close(self) -> None:
        await super().close()
        async with self._opening:
            if self._keeper is not None:
                self._keeper.cancel()
                await asyncio.wait([self._keeper])
                self._keeper = None
                with suppress(OSError):  # another process has sockets there
                    await in_thread(_sockets(self._data).rmdir)
            for name in list(self._made):
                await self._delete(name)
            await self._api.close()

    async def end_session(self, session: str) -> None:
        await super().end_session(session)
        self._fenced.discard(session)

    async def add(self, source: ModuleSource, origin: Origin) -> CatalogueEntry:
        if source.image:
            raise UsageError("A module that is an image needs the Docker engine; add its folder instead.")
        return await super().add(source, origin)

    @property
    def _owner(self) -> Owner:
        return Owner(
            owner.data_digest(self._data), self._host, self._claim.name, str(owner.Process.current())
        )

    async def _sweep(self) -> None:
        """Remove what dead processes of this host left for this data directory."""
        mine = {DATA: owner.data_digest(self._data), HOST: label(self._host)}
        for found in await self._api.sandboxes(mine):
            labels = found.metadata.labels
            process = owner.Process.parse(labels.get(PROCESS, ""))
            if await in_thread(owner.gone, self._data, labels.get(CLAIM, ""), process):
                await self._api.delete_sandbox(found.metadata.name)
                await self._api.delete_secret(found.metadata.name)

    async def _keep(self) -> None:
        """Extend the leases regularly, and retry failed removals."""
        while True:
            await asyncio.sleep(self._lease.total_seconds() / 5)
            for name in list(self._made):
                if name not in self._wanted:
                    await self._delete(name)
                else:
                    with suppress(SandboxUnavailable):
                        await self._api.extend(name, datetime.now(UTC) + self._lease)

    async def _delete(self, name: str) -> None:
        """Remove a Sandbox, or leave it to the next round. Does not raise."""
        self._wanted.discard(name)
        with suppress(SandboxUnavailable):
            await self._api.delete_sandbox(name)
            self._made.discard(name)

    async def _fence(self, session: str) -> None:
        """Make sure that no other host runs anything for `session`, before this host does.

        Raises:
            SandboxUnavailable: it is not gone yet.
        """
        if session in self._fenced:
            return
        claim = await self._claimed()
        labels = {SESSION: label(session), DATA: owner.data_digest(self._data)}
        try:
            async with asyncio.timeout(self._coming_up):
                while others := [
                    found for found in await self._api.sandboxes(labels)
                    if found.metadata.labels.get(CLAIM) != claim
                    or found.metadata.labels.get(HOST) != label(self._host)
                ]:  # fmt: skip
                    for found in others:
                        await self._api.delete_sandbox(found.metadata.name)
                    await self._gone([found.metadata.name for found in others])
        except TimeoutError as error:
            raise SandboxUnavailable(
                "Pods that another host started for this session still exist, so no further pod is "
                "started. Try again; if the problem persists, check their node."
            ) from error
        self._fenced.add(session)

    async def _gone(self, names: Sequence[str]) -> None:
        """Wait until these pods are gone: a Sandbox may be gone before its pod is."""
        for name in names:
            while await self._api.pod(name) is not None:  # noqa: ASYNC110  (a cluster does not notify of an end)
                await asyncio.sleep(_LOOKS_APART[2])

    async def _launch(self, start: ModuleStart) -> PodInstance:
        module = start.module
        granted = start.granted
        await self.open()
        if not self._said and not self._namespace.runtime:
            self._said = True
            start.report(WEAKER)
        await self._fence(start.key.session)

        recipe = await in_thread(self._catalogue.recipe_of, module)
        reference = f"{self._namespace.images}/{await in_thread(image.reference, recipe)}"
        given = await self._given(start, self._python(reference))
        async with self._building(start, given, reference) as (pod, tunnel, folder, temporary, proxy):
            self._check_python(module, given, reference, tunnel.python)
            checked = await self._await_service(
                folder,
                module.name,
                lambda: self._why_ended(pod.name, module.name),
                lambda: self._api.log(pod.name, MODULE, LOG_LINES),
            )
            return PodInstance(
                key=start.key,
                pod=pod.name,
                api=self._api,
                tunnel=tunnel,
                delete=self._delete,
                temporary=temporary,
                folder=folder,
                socket=checked,
                forget=self._forget,
                proxy=proxy,
                egress=granted.egress,
                digest=module.digest,
                secrets=granted.secrets,
                serves_apps=module.trusted.apps,
            )

    def _python(self, reference: str) -> str:
        """The version of the Python in an image, as its pods reported; at first our own, of the same system."""
        return self._pythons.get(reference) or f"{sys.version_info.major}.{sys.version_info.minor}"

    def _check_python(self, module: CatalogueModule, given: Given, reference: str, found: str) -> None:
        wanted = self._python(reference)
        self._pythons[reference] = found

        has_packages = given.site is not None or given.program is not None
        if found != wanted and has_packages:
            raise ModuleLost(
                f"The packages of the module {module.name} were fetched for Python {wanted}, but its "
                f"image has Python {found}. The module is started again with the right packages."
            )

    async def _why_ended(self, name: str, module: str) -> str | None:
        found = await self._api.pod(name)
        if found is None:
            return f"The pod of the module {module} is gone: it was deleted, or its node was."
        return status.why_ended(found, module)

    async def _at_hand(self, module: CatalogueModule) -> bool:
        return True  # images are in the registry; this host does not know which nodes have one

    @asynccontextmanager
    async def _building(
        self, start: ModuleStart, given: Given, reference: str
    ) -> AsyncIterator[tuple[Pod, Tunnel, Path, Temporary | None, EgressProxy | None]]:
        """Start a pod and reach it, with its folders and its proxy. Everything is removed again if the block raises."""
        module = start.module
        folder = await self._new_folder()
        temporary = await self._temporary(module, start.key)

        pod: Pod | None = None
        tunnel: Tunnel | None = None
        proxy: EgressProxy | None = None
        try:
            place, _, _ = await in_thread(self._place, start, folder, given, temporary)
            await in_thread(_make_private, folder.parent)
            await in_thread(socket_folder.make, folder, uid=os.geteuid(), gid=os.getegid())
            if given.out:
                proxy = self._proxy(folder, start)
                await proxy.open()
                place = replace(place, egress=proxy.folder)
            if module.trusted.apps:
                await self._apps.open()
            if temporary is not None:
                await self._make_temporary(temporary, place)

            own = await in_thread(KeyPair.make, f"iact module {module.name}")
            for pod in self._named(start, place, reference):
                if await self._create(pod, own):
                    break
            assert pod is not None

            reply = await self._await_pod(pod.name, module.name)
            tunnel = Tunnel(
                folder,
                reply.address,
                await in_thread(self._pair.meets, own.certificate),
                proxy=proxy.folder if proxy is not None else None,
                apps=module.trusted.apps,
            )
            await tunnel.open(within=self._patience)
            await self._check_walls(tunnel, reply.status.node)
            yield pod, tunnel, folder, temporary, proxy
        except BaseException as error:
            await asyncio.shield(self._undo(pod, tunnel, folder, temporary, proxy))
            if isinstance(error, OSError):
                raise cannot_prepare(error, folder) from error
            raise

    async def _undo(
        self,
        pod: Pod | None,
        tunnel: Tunnel | None,
        folder: Path,
        temporary: Temporary | None,
        proxy: EgressProxy | None,
    ) -> None:
        if tunnel is not None:
            await tunnel.close()
        if proxy is not None:
            await proxy.close()
        if pod is not None:
            await self._delete(pod.name)
        await in_thread(socket_folder.remove, folder)
        if temporary is not None:
            await temporary.release()

    def _named(self, start: ModuleStart, place: limits.Place, reference: str) -> Iterator[Pod]:
        """The pod to create, under one name after another."""
        module = start.module
        kind = re.sub("[^a-z0-9]+", "-", module.name.lower()).strip("-")[:24]
        bounds = self._bounds_of(module)
        if self._namespace.runtime:  # it has its own kernel, which counts no other processes
            bounds = replace(bounds, own_processes=bounds.processes)
        for _ in range(_NAMES):
            number = secrets.token_hex(8)
            yield Pod(
                name=f"iact-{kind}-{number[:10]}",
                number=number,
                key=start.key,
                image=reference,
                bridge_image=f"{self._namespace.images}/{image.reference(BASE)}",
                command=module.served_at(f"{limits.SOCKET_FOLDER}/{socket_folder.SOCKET}"),
                place=place,
                bounds=bounds,
                environment=self._environment(module, place),
                apps=module.trusted.apps,
            )
        raise SandboxUnavailable(
            f"The names of {_NAMES} new pods are already taken in the namespace "
            f"{self._namespace.name}; make sure that nothing else there uses names that begin with "
            "iact-."
        )

    async def _create(self, pod: Pod, own: KeyPair) -> bool:
        """Create its secret and its Sandbox. Return whether its name was free."""
        until = datetime.now(UTC) + self._lease
        body = sandbox(pod, self._owner, self._namespace, self._data, until)
        try:
            await self._api.create_secret(secret(pod, self._owner, own, self._pair.certificate))
        except NameTaken:
            return False

        try:
            self._made.add(pod.name)
            self._wanted.add(pod.name)
            await self._api.own_secret(pod.name, await self._api.create_sandbox(body))
        except BaseException as error:
            with suppress(SandboxUnavailable):
                await asyncio.shield(self._api.delete_secret(pod.name))

            # The Sandbox of that name is not ours to remove.
            if isinstance(error, NameTaken):
                self._made.discard(pod.name)
                self._wanted.discard(pod.name)
                return False
            raise
        return True

    async def _await_pod(self, name: str, module: str) -> SandboxReply:
        """Wait until the pod runs and has an address.

        Raises:
            SandboxUnavailable: the cluster does not get it to run.
            ModuleLost: it ended before that.
        """
        why = "the cluster says nothing more"
        try:
            async with asyncio.timeout(self._coming_up):
                for look in itertools.count():
                    reply = await self._api.sandbox(name)
                    if reply is None or reply.ended:
                        ended = reply.ended if reply is not None else "its Sandbox was deleted"
                        raise ModuleLost(
                            f"The pod of the module {module} ended before it was ready ({ended}).",
                            log=await self._api.log(name, MODULE, LOG_LINES),
                        )
                    if reply.address:
                        return reply

                    # Every fourth time, see whether waiting makes sense.
                    pod = await self._api.pod(name) if look % 4 == 3 else None
                    failure = status.not_starting(pod) if pod is not None else None
                    if failure is not None:
                        why = failure.reason
                        if not failure.mends:
                            break

                    await asyncio.sleep(_LOOKS_APART[min(look, len(_LOOKS_APART) - 1)])
        except TimeoutError:
            why = f"it was not there after {self._coming_up:.0f} seconds: {why}"
        raise SandboxUnavailable(f"The pod of the module {module} does not start: {why}.")

    async def _check_walls(self, tunnel: Tunnel, node: str) -> None:
        """Let the first pod on each node try to reach the cluster's network, which its policy should prevent.

        Raises:
            SandboxUnavailable: it reaches the network.
        """
        if node in self._nodes:
            return

        try:
            reached = await tunnel.probe()
        except (OSError, TimeoutError) as error:
            raise ModuleLost("The pod closed the connection while its network access was checked.") from error

        if reached:
            raise SandboxUnavailable(
                f"Pods on the node {node} reach the cluster's network ({reached}) despite the network "
                "policy, so no module is started there. Use a network plugin that enforces policies."
            )
        self._nodes.add(node)

    async def _pooled(
        self,
        key: Key,
        digest: str | None,
        workspace: Path,
        report: Report,
        permit: Permit | None,
        *,
        plain: bool,
    ) -> PodInstance | None:
        """As for every host, but no other host may run anything for that session, and its pods get its label."""
        if digest is None or not self.pool.has(key, digest):
            return None
        await self._fence(key.session)
        found = await super()._pooled(key, digest, workspace, report, permit, plain=plain)
        if found is not None:
            await self._api.relabel(found.pod, {SESSION: label(key.session)})
        return found

    async def _new_folder(self) -> Path:
        """Not in the data directory: some volumes that several nodes mount can't hold sockets."""
        return _sockets(self._data) / (await super()._new_folder()).name

    async def _make_temporary(self, shared: Temporary, place: limits.Place) -> None:
        """Create the folder on the volume for temporary files that two pods share."""
        async with shared.making:
            if not shared.made:
                await in_thread(shared.place.mkdir, parents=True)
                await in_thread(shared.place.chmod, 0o1777)
                shared.made = True

    async def _remove_temporary(self, place: Path) -> None:
        await in_thread(socket_folder.remove, place)

    def _packages(self) -> Path:
        """Not in a cache of this machine: on the volume, where pods find them."""
        return self._data / "packages"

    def _place(
        self, start: ModuleStart, folder: Path, given: Given, temporary: Temporary | None
    ) -> tuple[limits.Place, int, int]:
        """As for every host, but pods never run as root: root's sessions are given to another user."""
        place, uid, gid = super()._place(start, folder, given, temporary)
        if place.nested:
            raise SandboxUnavailable("Pods can't mount a workspace that has other file systems in it.")
        if uid == 0:
            uid, gid = USER, USER
            if place.workspace is not None and place.workspace.is_relative_to(self._data):
                give(place.workspace, uid, gid)
        return replace(place, user=f"{uid}:{gid}"), uid, gid


def _sockets(data: Path) -> Path:
    """The folder of the sockets of this data directory's modules on this machine."""
    return Path(tempfile.gettempdir()) / f"iact-{owner.data_digest(data)}"


def _reap_folders(data: Path) -> None:
    """Remove the folders that hosts of the data directory `data` left that are gone. Blocks."""
    places = (reaper.sockets(data), _sockets(data))
    for place in places:
        reaper.reap_below(place, data)

    # While something is left that they claimed, the claims tell that they are gone.
    if not any(reaper.abandoned(place, data) for place in places):
        owner.forget_all(data)


def _make_private(place: Path) -> None:
    """Create our sockets' folder in a place shared by all users; fail if another user created it."""
    place.mkdir(mode=0o700, exist_ok=True)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise PermissionError(errno.EPERM, "it is not ours alone", str(place))
