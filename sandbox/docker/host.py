"""Runs modules in Docker containers: viewers and workers, each confined by `limits`.

The code that starts a container owns it: whatever goes wrong during the start, and however the caller is cancelled, no
container, mount or descriptor is left behind. Even what remains after a SIGKILL of this process is removed by the next
host on the same data directory.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeGuard

import docker
from docker.models.containers import Container

from iact.core.errors import SandboxUnavailable
from iact.core.ports import CatalogueEntry, ModuleSource, Origin
from iact.sandbox import limits, owner, socket_folder
from iact.sandbox.catalogue import CatalogueModule
from iact.sandbox.docker import image, isolation, keeper, options, user_image
from iact.sandbox.docker.engine import EngineFailure, advice, connect, knock
from iact.sandbox.docker.layer import ImageLayers, LayerWatch
from iact.sandbox.docker.lease import Lease, held_by, take, take_input
from iact.sandbox.docker.reaper import reap
from iact.sandbox.docker.refused import RefusedRemovals
from iact.sandbox.docker.removal import (
    free_name,
    freeze,
    remove,
    remove_unanswered,
    remove_volume,
)
from iact.sandbox.docker.state import kernel_status, printed, why_ended
from iact.sandbox.docker.stdio import Stdio
from iact.sandbox.docker.stdio import possible as stdio_possible
from iact.sandbox.egress import EgressProxy, Outside
from iact.sandbox.host import CROWDED, UP_WITHIN, Given, Host, ModuleStart, cannot_prepare
from iact.sandbox.images.debian_root import AS_ROOT
from iact.sandbox.images.recipe import Recipe
from iact.sandbox.instance import Instance
from iact.sandbox.owner import Key
from iact.sandbox.temporary_files import Temporary
from iact.sandbox.threads import from_thread, in_thread, to_the_end

_INSTALLING = 120
"""Seconds for reinstalling packages that a session installed earlier."""
_ELSEWHERE = 50
"""Additional seconds for a module on another machine, whose load is not known here."""


@dataclass(slots=True, kw_only=True)
class DockerInstance(Instance):
    """One module in its container."""

    container: Container
    known_as: Callable[[Key], str]
    """The name of its container, by its key."""
    refused: RefusedRemovals
    """Takes over the container if the engine does not remove it."""
    lease: Lease | None = None
    """What the container runs on; None for a person's image where it can have no keeper."""
    keeper: Container | None = None
    """The container that watches the lease for a person's image; see `keeper`."""
    stdio: Stdio | None = None
    """The connection to its socket, where that can't be shared."""
    layer: LayerWatch | None = None
    """Ends it if real root wrote more to its system than allowed."""

    async def _why_ended(self) -> str | None:
        if self.layer is not None and self.layer.full:
            return (
                f"The module {self.name} was ended, because it wrote more outside the workspace than allowed."
            )
        return await in_thread(why_ended, self.container, self.name)

    async def _end(self) -> None:
        if self.layer is not None:
            self.layer.close()
        if self.stdio is not None and not self.frozen:
            await self.stdio.close()

        gone = await remove(self.container, self.folder, at_once=self.frozen, lease=self.lease)
        if not gone:
            self.refused.container(str(self.container.id))
        if self.keeper is not None and not await remove(self.keeper, self.folder, at_once=True):
            self.refused.container(str(self.keeper.id))

        # Before, the other end was stopped, and could not have answered.
        if self.stdio is not None and self.frozen:
            await self.stdio.close()

    async def _freeze(self) -> None:
        await freeze(self.container)

    async def settle(self) -> None:
        await in_thread(_rename, self.container, self.known_as(self.key))


@dataclass(frozen=True, slots=True)
class _Started:
    """A container that runs, with what was made for it."""

    container: Container
    folder: Path
    """Of its sockets."""
    place: limits.Place
    temporary: Temporary | None
    """The temporary files that it shares with another instance."""
    proxy: EgressProxy | None
    """Its way out; None: it has none."""
    stdio: Stdio | None
    """The connection to its socket, where that can't be shared."""
    lease: Lease | None
    """What it runs on; None for a person's image where it can have no keeper."""
    keeper: Container | None
    """The container that watches the lease for a person's image."""


class DockerHost(Host[DockerInstance]):
    """Implements `core.ports.ModuleHost` with containers."""

    _client: docker.DockerClient | None = None

    def __init__(
        self,
        data: Path,
        *,
        bounds: limits.Limits | None = None,
        patience: float = UP_WITHIN,
        shipped: Path | None = None,
        folders: Sequence[Path] = (),
        outside: Outside | None = None,
        pool: int = 0,
        shared: Path | None = None,
        runtime: str = isolation.AUTO,
    ) -> None:
        """As for every host. `runtime`: the engine's name of the runtime; by default gVisor, if the engine has it."""
        super().__init__(
            data,
            bounds=bounds,
            patience=patience,
            shipped=shipped,
            folders=folders,
            outside=outside,
            pool=pool,
            shared=shared,
        )
        self._runtime = runtime
        self._isolation = isolation.Isolation()
        self._layers = ImageLayers()
        self._connecting = asyncio.Lock()
        self._refused = RefusedRemovals(self._data, lambda: self._client)

    @property
    def backend(self) -> Literal["docker", "bubblewrap", "off"]:
        return "docker"

    async def open(self) -> None:
        """Connect to the engine and remove what dead processes left; `start` does it if it was not done.

        Raises:
            SandboxUnavailable: no engine answers, or it lacks the runtime.
        """
        await self._engine()

    async def answers(self) -> bool:
        try:
            await self._engine()
        except (SandboxUnavailable, *EngineFailure):
            return False
        return True

    async def _nothing_left(self) -> bool:
        return await self._refused.close()

    async def close(self) -> None:
        await super().close()
        client = self._client
        self._client = None
        if client is not None:
            await in_thread(client.close)

    async def add(self, source: ModuleSource, origin: Origin) -> CatalogueEntry:
        if source.image:
            source = await in_thread(user_image.pinned, await self._engine(), source)
        return await super().add(source, origin)

    async def _engine(self) -> docker.DockerClient:
        async with self._connecting:
            if self._closed:
                raise SandboxUnavailable("The sandbox is closed; start the program again.")
            if self._client is None:
                client = await in_thread(connect)
                try:
                    self._isolation = isolation.of(await in_thread(client.info), self._runtime)
                except BaseException as error:
                    await in_thread(client.close)
                    if isinstance(error, EngineFailure):
                        raise _engine_failed(
                            error,
                            f"The Docker engine could not say what it can do ({_said_by(error)}); run `iact doctor`.",
                        ) from error
                    raise

                await self._reap(client)
                self._catalogue.root = self._isolation.root(ours=os.geteuid() == 0)
                self._client = client
            else:
                await in_thread(knock)
            return self._client

    async def _reap(self, client: docker.DockerClient) -> None:
        """Remove what hosts left that are gone. What the engine refuses is tried again."""
        try:
            left = (await in_thread(reap, client, self._data)).refused
        except EngineFailure:
            left = ["what it does not list"]
        if left:
            self._refused.of_dead_hosts()

    async def _launch(self, start: ModuleStart) -> DockerInstance:
        module = start.module
        granted = start.granted
        client = await self._engine()
        recipe = await in_thread(self._catalogue.recipe_of, module)
        async with self._preparing.setdefault(recipe, asyncio.Lock()):
            try:
                reference, python, keeping = await self._image(client, start, recipe)
            except EngineFailure as error:
                raise _engine_failed(
                    error,
                    f"The Docker engine could not find the image ({_said_by(error)}); run `iact doctor`.",
                ) from error

        given = await self._given(start, python)
        async with self._building(client, start, given, reference, keeping) as started:
            container = started.container
            place = started.place

            longer = 0.0
            if place.root and await in_thread(_installed, place):
                start.report("installing again what apt-get installed in this session")
                longer += _INSTALLING
            if not place.shares_sockets:
                longer += _ELSEWHERE

            checked = await self._await_service(
                started.folder,
                module.name,
                lambda: in_thread(why_ended, container, module.name),
                lambda: in_thread(printed, container),
                longer=longer,
            )
            try:
                await self._check_walls(container, module.name, root=place.root)
            except BaseException:
                checked.close()
                raise

            watched = place.root and not self._layers.held
            most = self._bounds_of(module).system_size
            return DockerInstance(
                layer=LayerWatch(client, container, most) if watched else None,
                key=start.key,
                container=container,
                lease=started.lease,
                keeper=started.keeper,
                temporary=started.temporary,
                stdio=started.stdio,
                folder=started.folder,
                socket=checked,
                forget=self._forget,
                proxy=started.proxy,
                egress=granted.egress,
                digest=module.digest,
                secrets=granted.secrets,
                serves_apps=module.trusted.apps,
                known_as=self._name,
                refused=self._refused,
            )

    async def _image(
        self, client: docker.DockerClient, start: ModuleStart, recipe: Recipe
    ) -> tuple[str, str, str]:
        """The image for a module, the version of its Python, and the image of what keeps its lease.

        A system of a person's own has no Python that we know of, and all others keep their lease themselves: then "".
        """
        module = start.module
        if not module.system:
            base = await in_thread(image.ensure, client, from_thread(start.report), recipe=recipe)
            return base.reference, await in_thread(image.python_of, client, base.reference), ""

        lost = f"The engine has lost the image of the module {module.name}; add it again."
        await in_thread(user_image.image_of, client, module.system, lost)
        if not self._isolation.joins:
            return module.system, "", ""
        keeping = await in_thread(image.ensure, client, from_thread(start.report))
        return module.system, "", keeping.reference

    async def _check_walls(self, container: Container, name: str, *, root: bool) -> None:
        """Check from outside that the kernel dropped the rights that the engine was told to drop.

        Raises:
            SandboxUnavailable: it did not.
        """
        # In gVisor, the rights are those of its own kernel.
        if self._isolation.gvisor:
            return
        status = await in_thread(kernel_status, container)
        if status is None:
            return

        gaps = isolation.gaps(status, options.ROOT.values() if root else ())
        if gaps:
            raise SandboxUnavailable(
                f"The Docker engine started the module {name} without its full isolation "
                f"({', '.join(gaps)}), so the module was stopped; run `iact doctor`."
            )

    async def _at_hand(self, module: CatalogueModule) -> bool:
        recipe = await in_thread(self._catalogue.recipe_of, module)
        return await in_thread(image.find, await self._engine(), recipe) is not None

    @asynccontextmanager
    async def _building(
        self, client: docker.DockerClient, start: ModuleStart, given: Given, reference: str, keeping: str
    ) -> AsyncIterator[_Started]:
        """Start a container with its folders and its proxy. Everything is removed again if the block raises.

        `reference`: its image. `keeping`: the image of its keeper; empty if it has none.
        """
        module = start.module
        key = start.key
        folder = await self._new_folder()
        temporary = await self._temporary(module, key)

        container: Container | None = None
        kept_by: Container | None = None
        proxy: EgressProxy | None = None
        stdio: Stdio | None = None
        lease: Lease | None = None
        try:
            place, uid, gid = await in_thread(self._place, start, folder, given, temporary)
            await in_thread(socket_folder.make, folder, uid=uid, gid=gid)
            if not place.shares_sockets:
                _check_reach(start)

            if given.out and place.shares_sockets:
                proxy = self._proxy(folder, start)
                await proxy.open()
                place = replace(place, egress=proxy.folder)
            if module.trusted.apps:
                await self._apps.open()

            if keeping:
                kept_by = await in_thread(self._create_keeper, client, key, folder.name, place, keeping)
                lease = await self._start_leased(kept_by, folder, module.name, place)

            joined = f"container:{kept_by.id}" if kept_by is not None else None
            container = await in_thread(
                self._create, client, module, key, folder.name, place, reference, joined
            )
            if module.system:
                await in_thread(container.start)
            else:
                lease = await self._start_leased(container, folder, module.name, place)

            if not place.shares_sockets:
                stdio = Stdio(container, folder)
                await stdio.open()
            yield _Started(container, folder, place, temporary, proxy, stdio, lease, kept_by)
        except BaseException as error:
            await to_the_end(
                self._cleaned(client, container, kept_by, folder, lease, stdio, proxy, temporary)
            )
            if isinstance(error, EngineFailure):
                raise _engine_failed(
                    error,
                    f"The Docker engine could not start the container ({_said_by(error)}); run `iact doctor`.",
                ) from error
            if isinstance(error, OSError):
                raise cannot_prepare(error, folder) from error
            raise

    async def _cleaned(
        self,
        client: docker.DockerClient,
        container: Container | None,
        kept_by: Container | None,
        folder: Path,
        lease: Lease | None,
        stdio: Stdio | None,
        proxy: EgressProxy | None,
        temporary: Temporary | None,
    ) -> None:
        """Remove everything that a start which failed has made."""
        if stdio is not None:
            await stdio.close()
        if proxy is not None:
            await proxy.close()
        await self._undo(client, container, kept_by, folder, lease)
        if temporary is not None:
            await temporary.release()

    async def _undo(
        self,
        client: docker.DockerClient,
        container: Container | None,
        kept_by: Container | None,
        folder: Path,
        lease: Lease | None,
    ) -> None:
        """Remove the container of a start that failed, and its keeper, whether or not their creation was answered."""
        if container is None:
            if lease is not None:
                lease.close()
            # Not by its name: as soon as this start has failed, the next one may have that.
            if not await remove_unanswered(client, folder.name, folder):
                self._refused.start(folder.name)
            return

        if not await remove(container, folder, lease=lease):
            self._refused.container(str(container.id))
        if kept_by is not None and not await remove(kept_by, folder, at_once=True):
            self._refused.container(str(kept_by.id))

    async def _start_leased(
        self, container: Container, folder: Path, name: str, place: limits.Place
    ) -> Lease:
        """Start a container whose first process watches a lease, and take the lease."""
        if place.shares_sockets:
            await in_thread(container.start)
            return await self._leased(container, folder, name)

        lease = await take_input(container)
        try:
            await in_thread(container.start)
        except BaseException:
            lease.close()
            raise
        return lease

    async def _leased(self, container: Container, folder: Path, name: str) -> Lease:
        return await take(
            folder, within=self._patience * CROWDED, why_ended=lambda: in_thread(why_ended, container, name)
        )

    def _create(
        self,
        client: docker.DockerClient,
        module: CatalogueModule,
        key: Key,
        start: str,
        place: limits.Place,
        reference: str,
        joined: str | None,
    ) -> Container:
        """Create a module's container. `joined`: among whose processes its own are, as the engine says it. Blocks."""
        # From an earlier run of this session: the journal's lock proves that it is ours.
        name = self._name(key)
        free_name(client, name)

        served = module.served_at(f"{limits.SOCKET_FOLDER}/{socket_folder.SOCKET}")
        if place.root:
            served = ["/bin/sh", "-c", AS_ROOT, "sh", *served]
        if not module.system:
            served = held_by(served, shares_sockets=place.shares_sockets)
        program, *arguments = served

        bounds = self._isolation.bounds(self._bounds_of(module))
        confined = options.host_options(
            place,
            bounds,
            self._isolation.runtime,
            owner.belongs(self._claim.name, data=self._data),
            # Where our own first process watches the lease, the engine's would stand between it and the signals.
            init=bool(module.system) and joined is None,
        )
        confined["pid_mode"] = joined

        def create(confined: options.HostOptions) -> str:
            host_config = client.api.create_host_config(**confined)
            host_config["MaskedPaths"] = list(limits.MASKED)  # the client has no argument for these
            host_config["ReadonlyPaths"] = list(limits.READ_ONLY)
            made = client.api.create_container(
                reference,
                arguments,
                entrypoint=[program],  # an image supplied by a person may have its own
                name=name,
                stdin_open=not module.system and not place.shares_sockets,
                labels=owner.labels(self._claim.name, key, start, data=self._data),
                host_config=host_config,
                **options.options(place, self._environment(module, place)),
            )
            return str(made["Id"])

        made = self._layers.make(create, confined, bounds.system_size) if place.root else create(confined)
        return client.containers.get(made)

    def _create_keeper(
        self, client: docker.DockerClient, key: Key, start: str, place: limits.Place, reference: str
    ) -> Container:
        """Create the container that watches the lease of a person's image. Blocks."""
        place = keeper.place_of(place)
        program, *arguments = held_by(keeper.COMMAND, shares_sockets=place.shares_sockets)
        bounds = self._isolation.bounds(keeper.bounds_of(self._bounds))
        confined = options.host_options(place, bounds, self._isolation.runtime, init=False)
        made = client.api.create_container(
            reference,
            arguments,
            entrypoint=[program],
            # As no other one is called, and so no other one is ever removed for its name.
            name=f"iact-{owner.data_digest(self._data)}-lease-{start.replace('@', '_')}",
            stdin_open=not place.shares_sockets,
            labels=owner.labels(self._claim.name, key, start, data=self._data),
            host_config=client.api.create_host_config(**confined),
            **options.options(place, {}),
        )
        return client.containers.get(str(made["Id"]))

    async def _remove_temporary(self, place: Path) -> None:
        if self._client is not None and not await remove_volume(self._client, options.volume_name(place)):
            self._refused.volume(options.volume_name(place))

    def _place(
        self, start: ModuleStart, folder: Path, given: Given, temporary: Temporary | None
    ) -> tuple[limits.Place, int, int]:
        place, uid, gid = super()._place(start, folder, given, temporary)
        place = replace(place, shares_sockets=self._isolation.shares_sockets)

        mapped = self._isolation.mapped
        root = os.geteuid() == 0
        if mapped is not None and root and uid == 0 and self._ours(place.workspace):
            uid = mapped.first
            gid = mapped.group
            isolation.give(place.workspace, uid, gid)

        place, uid, gid = isolation.seat(place, mapped, uid, gid, root=root)
        return replace(place, root=self._real_root(start, place)), uid, gid

    def _real_root(self, start: ModuleStart, place: limits.Place) -> bool:
        """Whether it is real root: a worker on a session's own files, in a workshop that a person chose."""
        module = start.module
        return (
            module.trusted.root
            and start.key.right == "work"
            and place.user == "0:0"
            and self._ours(place.workspace)
            and self._isolation.root(ours=os.geteuid() == 0)
            and self._catalogue.recipe_of(module).workshop
        )

    def _ours(self, workspace: Path | None) -> TypeGuard[Path]:
        """Whether the workspace belongs to a session or a set of the pool: it is no user's directory or its overlay.

        Files in an overlay keep the owner that they have in the directory, and are never given away.
        """
        if workspace is None or not workspace.is_relative_to(self._data):
            return False
        match workspace.relative_to(self._data).parts:
            case ("sessions", _, "workspace") | ("sessions", _, "copies", _):
                return True
            case ("run", name):
                return name.endswith("-set")
        return False

    def _name(self, key: Key) -> str:
        """The name of an instance's container: the same for each start, so that a session has one of each at a time."""
        plain = re.sub(r"[^a-zA-Z0-9_.-]", "_", key.session)[:40]
        whose = f"-{hashlib.sha256(key.whose.encode()).hexdigest()[:12]}" if key.whose else ""
        right = "" if key.right == "work" else f"-{key.right}"
        return f"iact-{owner.data_digest(self._data)}-{plain}-{key.name}{whose}{right}"


def _rename(container: Container, name: str) -> None:
    """Rename a container, for people. Ignores failures. Blocks."""
    with suppress(*EngineFailure):
        container.rename(name)


def _installed(place: limits.Place) -> bool:
    """Whether the session installed packages that its next shell must install again. Blocks."""
    return place.workspace is not None and any((place.workspace / ".apt").glob("*.deb"))


def _check_reach(start: ModuleStart) -> None:
    """Refuse modules that can't run where no socket is shared.

    Raises:
        SandboxUnavailable: the module needs more than its own socket, or the engine's connection can't carry it.
    """
    module = start.module
    if start.granted.egress or module.trusted.apps:
        raise SandboxUnavailable(
            f"The module {module.name} needs a socket that this engine can't share with it; use an engine on this "
            "machine, or set IACT_RUNTIME to a runtime that shares sockets."
        )
    if not stdio_possible():
        raise SandboxUnavailable(
            "The connection to the engine can't carry a module's data; use the engine's unix socket, "
            "or TCP through an SSH tunnel."
        )


def _engine_failed(error: Exception, refused: str) -> SandboxUnavailable:
    """What a person is told about an engine that could not do something: `refused`, if it answered at all."""
    if isinstance(error, docker.errors.APIError):
        return SandboxUnavailable(refused)
    return SandboxUnavailable(advice(error))


def _said_by(error: Exception) -> str:
    """The first line of what the engine said."""
    explanation = getattr(error, "explanation", None)
    lines = str(explanation or error).splitlines()
    return lines[0][:300] if lines else ""
