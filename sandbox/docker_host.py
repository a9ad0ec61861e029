"""Runs modules in Docker containers: one per session and module, each confined by `limits`.

Whoever starts a container owns it: whatever goes wrong on the way up, and however the caller is
cancelled, leaves no container, mount or descriptor behind. What even SIGKILL of this process leaves
is collected by the next host on the same data directory.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import docker
from docker.errors import NotFound
from docker.models.containers import Container

from core.errors import ModuleLost, ModuleWithdrawn, SandboxUnavailable
from core.ports import CatalogueEntry, ModuleSource, Origin, Report
from sandbox import image, limits, owner, reaper, requirements, socket_folder
from sandbox.apps import AppOrigin
from sandbox.catalogue import Catalogue, Module
from sandbox.egress import EgressProxy, Outside, targets
from sandbox.engine import NO_ENGINE, EngineFailure, connect, from_thread, in_thread, knock
from sandbox.health import printed, serves, why_ended
from sandbox.removal import remove
from sandbox.restarts import Restarts
from sandbox.secrets import Secrets

_HEALTH_PATIENCE = 4
"""Seconds that a module has to answer its health service."""
_FIRST_LOOK, _LOOKS_APART = 0.15, 0.02
"""Seconds before we first look for a new module's socket, and between looks."""


_APPS = "app"
"""The module of ours whose apps the user can open."""


@dataclass(slots=True)
class DockerInstance:
    """One running module; implements `core.ports.ModuleInstance`."""

    name: str
    session: str
    container: Container
    folder: Path
    socket: socket_folder.CheckedSocket
    forget: Callable[[DockerInstance], None]
    proxy: EgressProxy | None = None
    egress: tuple[str, ...] = ()
    digest: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    restarts: Restarts = field(default_factory=Restarts)
    since: float = field(default_factory=time.monotonic)
    _lost: bool = False
    _ending: asyncio.Lock = field(default_factory=asyncio.Lock)
    ended: bool = False

    @property
    def target(self) -> str:
        return self.socket.target

    def open_app(self, app: str) -> socket_folder.CheckedSocket | None:
        """The socket on which the app called `app` (sixteen hex digits) answers HTTP; None if there is none. Close it.

        Raises:
            ModuleLost: what is there is not a socket.
        """
        if self.ended or self.name != _APPS or not re.fullmatch("[0-9a-f]{16}", app):
            return None
        return socket_folder.open_socket(self.folder, f"app-{app}.sock")

    async def why_lost(self) -> str | None:
        """A sentence if it can no longer serve, else None.

        Its health service has the first word, and some patience, since what it runs may take all of its
        processor; the engine is only asked for the reason.
        """
        if self.ended:
            return f"The module {self.name} was stopped."
        if await serves(self.target, within=_HEALTH_PATIENCE):
            return None
        why = await in_thread(why_ended, self.container, self.name)
        why = why or f"The module {self.name} runs but no longer answers."
        if not self._lost and not self.ended:
            self._lost = True
            self.restarts.failed(why, time.monotonic(), since=self.since)
        return why

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
        await remove(self.container, self.folder)


@dataclass(frozen=True, slots=True)
class _Ways:
    """What a module is given besides its code: a workspace, packages, targets outside, secrets."""

    workspace: Path
    site: Path | None
    program: Path | None
    egress: tuple[str, ...]
    secrets: Mapping[str, str] = field(repr=False)


class DockerHost:
    """Implements `core.ports.ModuleHost`. `data`: the product's data directory; made if missing."""

    def __init__(
        self,
        data: Path,
        *,
        bounds: limits.Limits | None = None,
        patience: float = 30,
        shipped: Path | None = None,
        folders: Sequence[Path] = (),
        outside: Outside | None = None,
    ) -> None:
        """`patience`: seconds that a module has to come up. `shipped`: a folder of modules instead of our own.
        `folders`: modules of the user's, beside those.
        `outside`: how modules that are started with egress get out, and who is told of it.
        """
        self._data = data.resolve()
        self._bounds = bounds or limits.Limits()
        self._patience = patience
        self._outside = outside or Outside()
        self._secrets = Secrets(self._data)
        self._catalogue = Catalogue(self._data, shipped=shipped, folders=folders)
        self._process = owner.Process.current()
        self._numbers = itertools.count(1)
        self._client: docker.DockerClient | None = None
        self._connecting = asyncio.Lock()
        self._preparing: dict[tuple[str, ...], asyncio.Lock] = {}
        self._starting: dict[tuple[str, str], asyncio.Lock] = {}
        self._running: dict[tuple[str, str], DockerInstance] = {}
        self._restarts: dict[tuple[str, str], Restarts] = {}
        self._apps = AppOrigin(self._app)
        self._closed = False

    @property
    def backend(self) -> Literal["docker", "bubblewrap", "off"]:
        return "docker"

    async def open(self) -> None:
        """Connect to the engine and collect what dead processes left; `start` does it if nobody else did.

        Raises:
            SandboxUnavailable: no engine answers.
        """
        await self._engine()

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        return await asyncio.to_thread(self._catalogue.entries)

    async def add(self, source: ModuleSource, origin: Origin) -> CatalogueEntry:
        return await in_thread(self._catalogue.add, source, origin)

    async def adopt(self, name: str, digest: str, origin: Origin) -> None:
        await in_thread(self._catalogue.adopt, name, digest, origin)

    async def remove(self, name: str) -> None:
        await in_thread(self._catalogue.remove, name)

    async def remember_manifest(self, digest: str, manifest: bytes) -> None:
        await in_thread(self._catalogue.remember, digest, manifest)

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
    ) -> DockerInstance:
        """Start module `name`, or give the instance of it that runs in `session` already.

        `digest`: which version of it; None: the one in the catalogue. `egress`: exactly these "host:port" that
        a person granted. An instance of another version, or with another grant, is stopped first.

        Raises:
            SandboxUnavailable: there is no engine, no image or no such module; the sentence says what to do.
            ModuleLost: it did not come up, or failed so often that it was withdrawn.
        """
        async with self._starting.setdefault((session, name), asyncio.Lock()):
            module = await asyncio.to_thread(self._catalogue.find, name, digest)
            given = await asyncio.to_thread(self._secrets.of, secrets)
            for missing in sorted(set(secrets) - set(given)):
                report(
                    f"the module {name} asks for a secret that is not stored; run: iact secret set {missing}"
                )
            running = self._running.get((session, name))
            if running is not None:
                same = running.egress == tuple(egress) and running.digest == module.digest
                same = same and running.secrets == given
                if same and await running.why_lost() is None:
                    return running
                await running.stop()
            return await self._start(module, session, workspace, report, tuple(egress), given)

    async def end_session(self, session: str) -> None:
        for key in [key for key in self._starting if key[0] == session]:
            async with self._starting[key]:  # a start that is under way ends first, one way or the other
                if key in self._running:
                    await self._running[key].stop()
            self._starting.pop(key, None)
            self._restarts.pop(key, None)

    async def close(self) -> None:
        """Stop everything that this host started; afterwards it starts nothing any more."""
        self._closed = True
        await self._apps.close()
        await _stop_all(list(self._running.values()))
        client, self._client = self._client, None
        if client is not None:
            await in_thread(client.close)

    async def _engine(self) -> docker.DockerClient:
        async with self._connecting:
            if self._closed:
                raise SandboxUnavailable("The sandbox is closed; start the program again.")
            if self._client is None:
                client = await in_thread(connect)
                with suppress(*EngineFailure):
                    await in_thread(reaper.reap, client, self._data)
                self._client = client
            else:
                await in_thread(knock)
            return self._client

    async def _start(
        self,
        module: Module,
        session: str,
        workspace: Path,
        report: Report,
        egress: tuple[str, ...],
        secrets: Mapping[str, str],
    ) -> DockerInstance:
        name = module.name
        restarts = await self._restart(module, session, report)
        client = await self._engine()
        async with self._preparing.setdefault(module.packages, asyncio.Lock()):
            base = await in_thread(image.ensure, client, from_thread(report), packages=module.packages)
            python = await in_thread(image.python_of, client, base.reference)
            site, program = [
                await in_thread(self._site, lines, python, from_thread(report))
                for lines in (module.requirements, module.program)
            ]
        ways = _Ways(workspace, site, program, egress, secrets)
        async with self._building(client, module, session, ways, base.reference) as built:
            container, folder, proxy = built
            try:
                checked = await self._await_service(container, folder, name)
            except ModuleLost as error:
                told = _without(error, secrets)
                restarts.failed(str(told), time.monotonic())
                raise told from None
            instance = DockerInstance(
                name,
                session,
                container,
                folder,
                checked,
                self._forget,
                proxy,
                egress,
                module.digest,
                secrets,
                restarts,
            )
        self._running[(session, name)] = instance
        if self._closed:
            await instance.stop()
            raise SandboxUnavailable(
                "The sandbox was closed while the module started; start the program again."
            )
        return instance

    def withdrawn(self, session: str) -> dict[str, str]:
        """The modules that are not started any more in `session`, each with the reason of its last failure."""
        return {
            key[1]: row.reason for key, row in self._restarts.items() if key[0] == session and row.withdrawn
        }

    async def _restart(self, module: Module, session: str, report: Report) -> Restarts:
        """Wait as long as a module that failed has to.

        Raises:
            ModuleLost: it failed too often.
        """
        row = self._restarts.setdefault((session, module.name), Restarts(module.digest))
        pause = row.pause(module.digest, time.monotonic())
        if row.withdrawn:
            raise ModuleWithdrawn(
                f"The module {module.name} was withdrawn after {row.failures} failures in a row; "
                f"change it, or use it in a new session. {row.reason}"
            )
        if pause:
            report(f"the module {module.name} failed; starting it again in {pause:.1f} s")
            await asyncio.sleep(pause)
        return row

    def _site(self, lines: Sequence[str], python: str, report: Report) -> Path | None:
        """The folder of the packages `lines`, for Python `python`; None without any. Blocks."""
        if not lines:
            return None
        return requirements.site(self._data / "modules" / "sites", lines, python, report)

    def _app(self, name: str) -> socket_folder.CheckedSocket | None:
        """The socket of the app called `name`, whichever session's it is."""
        opened = (each.open_app(name) for each in self._running.values() if each.name == _APPS)
        return next((found for found in opened if found is not None), None)

    def _forget(self, instance: DockerInstance) -> None:
        key = (instance.session, instance.name)
        if self._running.get(key) is instance:
            del self._running[key]

    @asynccontextmanager
    async def _building(
        self, client: docker.DockerClient, module: Module, session: str, ways: _Ways, reference: str
    ) -> AsyncIterator[tuple[Container, Path, EgressProxy | None]]:
        """A started container with its socket folder and its proxy; all are removed again if the block raises."""
        folder = reaper.sockets(self._data) / f"{self._process}@{next(self._numbers)}"
        container: Container | None = None
        proxy: EgressProxy | None = None
        try:
            place, uid, gid = await in_thread(self._place, module, folder, ways)
            await in_thread(socket_folder.make, folder, uid=uid, gid=gid)
            if ways.egress:
                proxy = self._proxy(folder, ways, session=session, module=module.name)
                await proxy.open()
                place = replace(place, egress=proxy.folder)
            if module.name == _APPS:
                await self._apps.open()
            container = await in_thread(self._create, client, module, session, place, reference)
            await in_thread(container.start)
            yield container, folder, proxy
        except BaseException as error:
            if proxy is not None:
                await asyncio.shield(proxy.close())
            await asyncio.shield(remove(container or self._name(session, module.name), folder, client=client))
            if isinstance(error, EngineFailure):
                raise _engine_failed(error) from error
            if isinstance(error, OSError):
                raise SandboxUnavailable(
                    f"The sandbox can't prepare {error.filename or folder} ({error.strerror}); "
                    "free some space or make the data directory writable."
                ) from error
            raise

    def _proxy(self, folder: Path, ways: _Ways, *, session: str, module: str) -> EgressProxy:
        beside = folder.with_name(f"{folder.name}-egress")
        return EgressProxy(beside, targets(ways.egress), self._outside, session=session, module=module)

    def _place(self, module: Module, folder: Path, ways: _Ways) -> tuple[limits.Place, int, int]:
        """Where the container meets the host, and as whom it runs.

        Without capabilities even root can't write what belongs to another, so as root we run the module
        as the owner of its workspace; anybody else runs modules as nobody but themselves.
        """
        uid, gid = os.geteuid(), os.getegid()
        mounted = ways.workspace.resolve(strict=True) if module.workspace != "none" else None
        if uid == 0 and mounted is not None:
            status = mounted.stat()
            uid, gid = status.st_uid, status.st_gid
        place = limits.Place(
            code=self._catalogue.copy_of(module),
            sockets=folder,
            workspace=mounted,
            user=f"{uid}:{gid}",
            read_only=module.workspace == "read",
            site=ways.site,
            program=ways.program,
            secrets=ways.secrets,
        )
        return place, uid, gid

    def _create(
        self, client: docker.DockerClient, module: Module, session: str, place: limits.Place, reference: str
    ) -> Container:
        name = self._name(session, module.name)
        with suppress(NotFound):  # of an earlier run of this session: the journal's lock says that it is ours
            client.api.remove_container(name, force=True, v=True)
        command = ["python3", "-m", "ext_modules.sdk", "serve", "/module/module.py"]
        command += ["--socket", f"{limits.SOCKET_FOLDER}/{socket_folder.SOCKET}"]
        host_config = client.api.create_host_config(**limits.host_options(place, self._bounds_of(module)))
        host_config["MaskedPaths"] = list(limits.MASKED)  # the client has no argument for it
        made = client.api.create_container(
            reference,
            command,
            name=name,
            labels=owner.labels(self._process, data=self._data, session=session, module=module.name),
            host_config=host_config,
            **limits.options(place, self._environment(module, place)),
        )
        return client.containers.get(made["Id"])

    def _environment(self, module: Module, place: limits.Place) -> dict[str, str]:
        port = {"IACT_APPS_PORT": str(self._apps.port)} if module.name == _APPS else {}
        return {**limits.environment(place, image.ENVIRONMENT), **port}

    def _bounds_of(self, module: Module) -> limits.Limits:
        """What the module asks for, within what this host gives at most."""
        return limits.within(
            self._bounds,
            memory=module.memory,
            cpus=module.cpus,
            processes=module.processes,
            shipped=module.origin == "shipped",
        )

    def _name(self, session: str, module: str) -> str:
        """The name of a session's container: known, so that one whose start failed half-way is found too."""
        plain = re.sub(r"[^a-zA-Z0-9_.-]", "_", session)[:40]
        return f"iact-{owner.data_digest(self._data)}-{plain}-{module}"

    async def _await_service(
        self, container: Container, folder: Path, name: str
    ) -> socket_folder.CheckedSocket:
        """Wait until the module's health service serves on its own socket."""
        checked: socket_folder.CheckedSocket | None = None
        try:
            async with asyncio.timeout(self._patience):
                await asyncio.sleep(_FIRST_LOOK)
                for look in itertools.count():
                    checked = checked or socket_folder.open_socket(folder)
                    if checked is not None and await serves(checked.target, within=1):
                        return checked
                    if look % 10 == 9 and (why := await in_thread(why_ended, container, name)):
                        raise ModuleLost(why, log=await in_thread(printed, container))
                    await asyncio.sleep(_LOOKS_APART)
            raise AssertionError("unreachable: the loop above has no end of its own")
        except BaseException as error:
            if checked is not None:
                checked.close()
            if isinstance(error, TimeoutError):
                raise ModuleLost(
                    f"The module {name} did not come up within {self._patience:.0f} seconds."
                ) from error
            raise


def _without(error: ModuleLost, secrets: Mapping[str, str]) -> ModuleLost:
    """The same, without the secrets that the module may have printed."""
    said, log = str(error), error.log
    for name, value in secrets.items():
        said, log = (text.replace(value, f"[secret {name}]") for text in (said, log))
    return ModuleLost(said, log=log)


async def _stop_all(instances: Sequence[DockerInstance]) -> None:
    async with asyncio.TaskGroup() as group:
        for instance in instances:
            group.create_task(instance.stop())


def _engine_failed(error: Exception) -> SandboxUnavailable:
    if isinstance(error, docker.errors.APIError):
        text = str(error.explanation or error).splitlines()[0][:300]
        return SandboxUnavailable(
            f"The Docker engine could not start the container ({text}); run `iact doctor`."
        )
    return SandboxUnavailable(NO_ENGINE)
