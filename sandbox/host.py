"""The part of a module host that all backends share: the catalogue, who runs where, and when a start is tried again.

A backend implements how an instance is started (`_launch`), whether its process still lives, and how it is ended.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets as randomness
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, TypeVar

from iact.core.errors import ModuleLost, ModuleWithdrawn, SandboxUnavailable, UsageError
from iact.core.ports import CatalogueEntry, ModuleSource, Origin, Permit, Report, Right
from iact.sandbox import limits, owner, packages, reaper, socket_folder, unpack_inside, unpacking
from iact.sandbox.apps import AppOrigin
from iact.sandbox.catalogue import Catalogue, CatalogueModule
from iact.sandbox.egress import EgressProxy, Outside, targets
from iact.sandbox.health import last_words, serves
from iact.sandbox.images import cache, payload
from iact.sandbox.images.recipe import Recipe
from iact.sandbox.instance import Instance
from iact.sandbox.owner import Key
from iact.sandbox.pool import CALM, Member, Pool
from iact.sandbox.restarts import Restarts
from iact.sandbox.secrets import LENT, Secrets
from iact.sandbox.temporary_files import Temporaries, Temporary
from iact.sandbox.threads import from_thread, in_thread, to_the_end
from iact.sandbox.workspace.mounts import below

UP_WITHIN: Final = 10.0
"""Seconds in which a module must come up, on a machine that has time for it."""
CROWDED: Final = 6.0
"""How many times as long it may take at most while others use the machine: twenty that start at once need most of it."""

_FIRST_LOOK, _LOOKS_APART = 0.15, 0.02
"""Seconds before the first check for a new module's socket, and between checks."""
_NUMBERS: Final = itertools.count(1)
"""Numbers of the folders in `run/`, for all hosts of this process, as several can share one data directory."""


@dataclass(frozen=True, slots=True)
class Granted:
    """What a person granted a module: targets outside, secrets, and whom to ask about other targets."""

    egress: tuple[str, ...]
    secrets: Mapping[str, str] = field(repr=False)
    permit: Permit | None = None


def cannot_prepare(error: OSError, place: Path) -> SandboxUnavailable:
    """What is told if something in the data directory can't be made. `place`: what, if the error doesn't name it."""
    return SandboxUnavailable(
        f"The sandbox can't prepare {error.filename or place} ({error.strerror}); "
        "free some space or make the data directory writable."
    )


OnShared = Callable[[str, str], Awaitable[None]]
"""Is called with a session and what its user shares at an app of it. Raises IactError if the session can't have it."""


async def nobody(host: str, port: int) -> bool:
    """Permit nothing: for modules that do not belong to a session yet."""
    return False


@dataclass(frozen=True, slots=True)
class ModuleStart:
    """A requested start: of which module, for whom, where, and with which grants."""

    module: CatalogueModule
    key: Key
    workspace: Path
    granted: Granted
    report: Report = field(repr=False)


@dataclass(frozen=True, slots=True)
class Given:
    """What a module gets in addition to its code."""

    site: Path | None
    """Its packages."""
    program: Path | None
    """Packages of the program that it runs."""
    out: bool
    """Whether it has a way out, to targets that are granted or permitted."""


Running = TypeVar("Running", bound=Instance)


class Host(ABC, Generic[Running]):
    """Most of a `core.ports.ModuleHost`. `data`: the product's data directory; created if missing."""

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
    ) -> None:
        """`patience`: seconds in which a module must come up; up to six times as many while the machine is busy.

        `shipped`: a folder of modules instead of our own.

        `folders`: additional modules of the user. `outside`: how modules that are started with egress get out, and what
        is called for each connection. `pool`: for how many sessions modules are started in advance; see `sandbox.pool`.
        `shared`: a directory like `data` with the modules and secrets that an administrator set for all users.
        """
        self._data = data.resolve()
        self._bounds = bounds or limits.Limits()
        self._patience = patience
        self._outside = outside or Outside()
        self._secrets = Secrets(self._data)
        self._shared_secrets = Secrets(shared) if shared is not None else None
        self._lent_secrets = Secrets(self._data, LENT)
        self._catalogue = Catalogue(self._data, shipped=shipped, folders=folders, shared=shared)
        self._claim = owner.Claim(self._data)
        self._preparing: dict[Recipe, asyncio.Lock] = {}
        self._unpacking: dict[Path, asyncio.Lock] = {}
        self._starting: dict[Key, asyncio.Lock] = {}
        self._running: dict[Key, Running] = {}
        self._restarts: dict[tuple[str, str], Restarts] = {}
        self._temporaries = Temporaries(self._remove_temporary)
        self._apps = AppOrigin(self._app, self._take_shared)
        self.on_shared: OnShared | None = None
        """Is called with what a user shares at an app; None: nothing can be shared."""
        self._awaited = 0
        self.pool: Pool[Running] = Pool(
            pool, self._members, self._make, self._new_set, sessions=self._data / "sessions"
        )
        self._closed = False

    @property
    def running(self) -> int:
        return len(self._running)

    async def answers(self) -> bool:
        return not self._closed

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        return await asyncio.to_thread(self._catalogue.entries)

    async def add(self, source: ModuleSource, origin: Origin) -> CatalogueEntry:
        return await in_thread(self._catalogue.add, source, origin)

    async def adopt(self, name: str, digest: str, origin: Origin) -> None:
        await in_thread(self._catalogue.adopt, name, digest, origin)

    async def files(self, name: str, digest: str) -> Mapping[str, bytes]:
        return await in_thread(self._catalogue.files, name, digest)

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
        right: Right = "work",
        agent: str = "",
        copy: str = "",
        permit: Permit | None = None,
    ) -> Running:
        """Start module `name`, or return the instance already running in `session` for this right, agent and copy.

        `digest`: which version of it; None: the one in the catalogue. `egress`: exactly the "host:port" that a person
        granted. `permit`: asked about every target that the module wants to reach. An instance of another version, or
        with another grant, is stopped first.

        Raises:
            SandboxUnavailable: the engine, the image or the module is missing; the message says what to do.
            ModuleLost: it did not come up, or failed so often that it was withdrawn.
        """
        key = Key(session, name, right, agent, copy)
        async with self._starting.setdefault(key, asyncio.Lock()):
            plain = not egress and not secrets
            pooled = await self._pooled(key, digest, workspace, report, permit, plain=plain)
            if pooled is not None:
                return pooled

            module = await asyncio.to_thread(self._catalogue.find, name, digest)
            if right == "work" or module.workspace == "write":
                granted = await self._granted(module, tuple(egress), secrets, permit, report)
                return await self._found(ModuleStart(module, key, workspace, granted, report))

        # A module that can't write to the workspace anyway has one instance for both rights.
        return await self.start(
            name,
            session=session,
            workspace=workspace,
            report=report,
            digest=digest,
            egress=egress,
            secrets=secrets,
            agent=agent,
            copy=copy,
            permit=permit,
        )

    async def _granted(
        self,
        module: CatalogueModule,
        egress: tuple[str, ...],
        secrets: Sequence[str],
        permit: Permit | None,
        report: Report,
    ) -> Granted:
        """Resolve what a person granted. Reports secrets that the module requires and that are not stored.

        A module shared by all users gets the shared secrets, and a user's module gets the user's, so neither can be
        used to learn the other's secrets, whatever names it asks for. Secrets that this user lends to shared modules
        take precedence over the shared ones.
        """
        sources = [self._secrets]
        if module.shared:
            assert self._shared_secrets is not None
            sources = [self._shared_secrets, self._lent_secrets]

        given: dict[str, str] = {}
        if secrets:
            for source in sources:
                given |= await asyncio.to_thread(source.of, secrets)

        for missing in sorted(set(secrets) - set(given) - set(module.optional_secrets)):
            remedy = "ask an administrator" if module.shared else f"run: iact secret set {missing}"
            report(f"the module {module.name} asks for a secret that is not stored; {remedy}")
        return Granted(egress, given, permit)

    async def _found(self, start: ModuleStart) -> Running:
        """The running instance if it is the right one, or a new one."""
        running = self._running.get(start.key)
        if running is None:
            return await self._start(start)

        same_version = running.digest == start.module.digest
        same_grant = running.egress == start.granted.egress and running.secrets == start.granted.secrets
        if same_version and same_grant and await running.why_lost() is None:
            return running

        await running.stop()
        return await self._start(start)

    async def end_session(self, session: str) -> None:
        async with asyncio.TaskGroup() as group:  # an agent has up to two instances of each module
            for key in [key for key in self._starting if key.session == session]:
                group.create_task(self._end(key))
            group.create_task(self.pool.end_session(session))

    async def _end(self, key: Key) -> None:
        async with self._starting[key]:  # a start in progress ends first, one way or the other
            if key in self._running:
                await self._running[key].stop()
        self._starting.pop(key, None)
        self._restarts.pop((key.session, key.name), None)

    async def close(self) -> None:
        """Stop everything that this host started. Afterwards it starts nothing."""
        self._closed = True
        await self.pool.close()
        await self._apps.close()
        async with asyncio.TaskGroup() as group:
            for instance in list(self._running.values()):
                group.create_task(instance.stop())
        await in_thread(self._claim.release if await self._nothing_left() else self._claim.abandon)

    async def _nothing_left(self) -> bool:
        """Whether everything that was started is gone, when nothing more is tried."""
        return True

    async def _start(self, start: ModuleStart) -> Running:
        restarts = await self._restart(start.key, start.module.digest, start.report)
        if start.module.workspace != "none":
            self.pool.mounted(start.key.session)
        start.report(f"starting the module {start.module.name}")
        try:
            instance = await self._launch(start)
        except ModuleLost as error:
            told = _without(error, start.granted.secrets)
            restarts.failed(str(told), time.monotonic())
            raise told from None
        self.pool.fill(after=CALM)
        return await self._begun(instance, restarts)

    async def _begun(self, instance: Running, restarts: Restarts) -> Running:
        instance.restarts = restarts
        self._running[instance.key] = instance
        if self._closed:
            await instance.stop()
            raise SandboxUnavailable(
                "The sandbox was closed while the module started; start the program again."
            )
        return instance

    async def _pooled(
        self,
        key: Key,
        digest: str | None,
        workspace: Path,
        report: Report,
        permit: Permit | None,
        *,
        plain: bool,
    ) -> Running | None:
        """Take an instance from the pool, without consulting the catalogue: a digest identifies the source.

        `plain`: it needs neither a way out nor secrets.
        """
        if key.copy or not plain or digest is None:
            return None
        if key in self._running or not self.pool.has(key, digest):
            return None

        restarts = await self._restart(key, digest, report)
        instance = await self.pool.take(key, digest, workspace)
        if instance is None:
            return None

        # If its agent's other instance was not from the pool, that has other files.
        temporary = instance.temporary
        whose = (key.session, key.name, key.whose)
        if temporary is not None and not self._temporaries.give(temporary, whose):
            await instance.stop()
            return None

        if instance.proxy is not None:
            instance.proxy.given(key.session, permit or nobody)
        return await self._begun(instance, restarts)

    async def _members(self) -> Sequence[Member]:
        modules = await asyncio.to_thread(self._catalogue.modules)
        prepared = [name for name, module in modules.items() if module.trusted.prepared]
        rights: Sequence[Right] = ("look", "work")
        return [(name, right) for name in prepared for right in rights]

    async def _make(self, key: Key, workspace: Path) -> Running | None:
        """Start an instance for the pool. None if its image would have to be built first, which takes a minute."""
        module = await asyncio.to_thread(self._catalogue.find, key.name, None)
        if module.origin != "shipped" or not await self._at_hand(module):
            return None
        return await self._launch(ModuleStart(module, key, workspace, Granted((), {}, nobody), _unheard))

    async def _claimed(self) -> str:
        """The name of this host's claim, which holds from now on.

        Raises:
            SandboxUnavailable: the data directory can't be written to.
        """
        try:
            return await in_thread(lambda: self._claim.name)
        except OSError as error:
            raise cannot_prepare(error, self._data) from error

    async def _place_of(self, suffix: str = "") -> Path:
        """A path that nothing else has, where the reaper looks: CLAIM@NUMBER. Nothing is there yet.

        Raises:
            SandboxUnavailable: the data directory can't be written to.
        """
        return reaper.sockets(self._data) / f"{await self._claimed()}@{next(_NUMBERS)}{suffix}"

    async def _temporary(self, module: CatalogueModule, key: Key) -> Temporary | None:
        """The temporary files that viewer and worker share; None for a module that has no viewer, and in a layer that is
        thrown away: what is written there is seen by nobody else."""
        if module.workspace != "write" or key.right == "try":
            return None
        return self._temporaries.hold((key.session, key.name, key.whose), await self._place_of("-tmp"))

    @abstractmethod
    async def _remove_temporary(self, place: Path) -> None:
        """Remove shared temporary files, whether or not they were created. Must not raise."""

    async def _new_set(self) -> Path:
        """The folder for the pool's next set."""
        return await self._place_of("-set")

    @abstractmethod
    async def _at_hand(self, module: CatalogueModule) -> bool:
        """Whether the module's system is available, so that a start does not have to build it."""

    @abstractmethod
    async def _launch(self, start: ModuleStart) -> Running:
        """Start one instance and wait until its health service serves. A failed start leaves nothing behind.

        Raises:
            SandboxUnavailable: there is no sandbox.
            ModuleLost: it did not come up.
        """

    async def _given(self, start: ModuleStart, python: str) -> Given:
        """Fetch what the module gets in addition to its code, for Python version `python`.

        This may start a further instance, so no lock may be held that a start needs.
        """
        module, key, granted = start.module, start.key, start.granted
        site = await self._site(start, module.requirements, python)
        program = await self._site(start, module.program, python)
        asks = granted.permit is not None and bool(module.egress) and key.right == "work" and not key.copy
        return Given(site, program, out=bool(granted.egress) or asks)

    async def _new_folder(self) -> Path:
        """The folder for the next instance's socket."""
        return await self._place_of()

    def withdrawn(self, session: str) -> dict[str, str]:
        """The modules that are no longer started in `session`, each with the reason of its last failure."""
        return {
            key[1]: row.reason for key, row in self._restarts.items() if key[0] == session and row.withdrawn
        }

    async def _restart(self, key: Key, digest: str, report: Report) -> Restarts:
        """Wait before a module that failed is started again. Failures of viewer and worker, and of all agents, add up.

        Raises:
            ModuleLost: it failed too often.
        """
        name = key.name
        row = self._restarts.setdefault((key.session, name), Restarts(digest))
        pause = row.pause(digest, time.monotonic())
        if row.withdrawn:
            raise ModuleWithdrawn(
                f"The module {name} was withdrawn after {row.failures} failures in a row; "
                f"change it, or use it in a new session. {row.reason}"
            )
        if pause:
            report(f"the module {name} failed; starting it again in {pause:.1f} s")
            await asyncio.sleep(pause)
        return row

    def _packages(self) -> Path:
        """Where the packages of modules are kept."""
        return cache.folder() / "packages"

    async def _site(self, start: ModuleStart, lines: Sequence[str], python: str) -> Path | None:
        """The folder of the packages `lines`, for Python `python`; None if there are none."""
        if not lines:
            return None
        if start.module.origin == "shipped":
            return await in_thread(packages.site, self._packages(), lines, python, from_thread(start.report))

        target = packages.place_of(self._packages(), lines, python)
        async with self._unpacking.setdefault(target, asyncio.Lock()):
            if not await in_thread(target.is_dir):
                start.report(packages.announcement(lines))
                await self._unpack(start, lines, python, target)
        return target

    async def _unpack(self, start: ModuleStart, lines: Sequence[str], python: str, target: Path) -> None:
        """Make `target` of these packages, which are opened in a sandbox of their own only.

        Raises:
            PackagesUnavailable: they are not available, or one is refused.
            SandboxUnavailable, ModuleLost: there is no sandbox for them.
        """
        place = await self._new_set()
        wheels = place / unpack_inside.WHEELS
        try:
            await in_thread(_make_folders, [wheels, place / unpack_inside.SITE])
            key = Key(f"{unpacking.NAME}-{randomness.token_hex(8)}", unpacking.NAME, "work", "", "")
            nothing = Granted((), {}, nobody)
            module = unpacking.unpacker(start.module)
            instance = await self._launch(ModuleStart(module, key, place, nothing, start.report))
            try:
                unpacker = unpacking.Unpacker(instance.target, wheels)
                found = await in_thread(packages.fetch, lines, python, wheels, unpacker.reading())
                await unpacker.unpack(found)
            finally:
                await to_the_end(instance.stop())
            await in_thread(packages.take_over, place / unpack_inside.SITE, target)
        finally:
            await in_thread(shutil.rmtree, place, ignore_errors=True)

    def _app(self, name: str) -> socket_folder.CheckedSocket | None:
        """The socket of the app named `name`, in any session."""
        opened = (each.open_app(name) for each in self._running.values() if each.serves_apps)
        return next((found for found in opened if found is not None), None)

    async def _take_shared(self, name: str, text: str) -> None:
        """Pass on what a user shared at the app named `name`.

        Raises:
            UsageError: there is no session that could have it.
        """
        for each in self._running.values():
            found = each.open_app(name) if each.serves_apps else None
            if found is None:
                continue
            found.close()
            if self.on_shared is not None:
                await self.on_shared(each.key.session, text)
                return
        raise UsageError("There is no session any more that could have it.")

    def _forget(self, instance: Instance) -> None:
        if self._running.get(instance.key) is instance:
            del self._running[instance.key]

    def _proxy(self, folder: Path, start: ModuleStart) -> EgressProxy:
        beside = folder.with_name(f"{folder.name}-egress")
        return EgressProxy(
            beside, targets(start.granted.egress), self._outside,
            session=start.key.session, module=start.module.name, permit=start.granted.permit,
        )  # fmt: skip

    def _place(
        self, start: ModuleStart, folder: Path, given: Given, temporary: Temporary | None
    ) -> tuple[limits.Place, int, int]:
        """Where the module's sandbox and the host meet, and the user it runs as.

        Without capabilities, even root can't write to another user's files. So if we are root, the module runs as the
        owner of its workspace; other users run modules under their own user id.
        """
        module = start.module
        right = start.key.right
        mounted = start.workspace.resolve(strict=True) if module.workspace != "none" else None

        uid = os.geteuid()
        gid = os.getegid()
        if uid == 0 and mounted is not None:
            status = mounted.stat()
            uid = status.st_uid
            gid = status.st_gid

        reads = module.workspace == "read" or right == "look"
        layer = right == "try"
        place = limits.Place(
            code=self._catalogue.copy_of(module),
            sockets=folder,
            workspace=mounted,
            user=f"{uid}:{gid}",
            right="work" if right == "work" else "look",
            layer=layer,
            read_only=reads,
            nested=below(mounted) if reads and mounted is not None else (),
            temporary=temporary.place if temporary is not None else None,
            site=given.site,
            program=given.program,
            secrets=start.granted.secrets,
        )
        return place, uid, gid

    def _environment(self, module: CatalogueModule, place: limits.Place) -> dict[str, str]:
        variables = limits.environment(place, payload.ENVIRONMENT)
        if module.trusted.apps:
            variables = {**variables, "IACT_APPS_PORT": str(self._apps.port)}

        settings = self._outside.settings
        named = [name for name in module.trusted.settings if name in settings]
        return {**variables, **{f"IACT_{name.upper()}": settings[name] for name in named}}

    def _bounds_of(self, module: CatalogueModule) -> limits.Limits:
        """The bounds that the module asks for, within this host's maximum."""
        return limits.within(
            self._bounds,
            memory=module.memory,
            cpus=module.cpus,
            processes=module.processes,
            shipped=module.origin == "shipped",
        )

    async def _await_service(
        self,
        folder: Path,
        name: str,
        why_ended: Callable[[], Awaitable[str | None]],
        printed: Callable[[], Awaitable[str]],
        *,
        longer: float = 0,
    ) -> socket_folder.CheckedSocket:
        """Wait until the module's health service serves on its own socket; `longer`: additional seconds to wait.

        Raises:
            ModuleLost: it ended, or did not serve in time. With what it printed.
        """
        patience = self._patience + longer
        begun = time.monotonic()
        checked: socket_folder.CheckedSocket | None = None
        self._awaited += 1
        try:
            await asyncio.sleep(_FIRST_LOOK)

            for look in itertools.count():
                checked = checked or socket_folder.open_socket(folder)
                if checked is not None and await serves(checked.target, within=1):
                    return checked

                if look % 10 == 9 and (why := await why_ended()):
                    raise ModuleLost(why, log=await printed())

                # Judged at the end of the time, because the load of a machine shows late.
                waited = time.monotonic() - begun
                if waited > patience and waited > patience * crowding(self._awaited):
                    log = await printed()
                    raise ModuleLost(
                        f"The module {name} did not start within {waited:.0f} seconds; "
                        f"what takes long belongs in its first call.{last_words(log)}",
                        log=log,
                    )

                await asyncio.sleep(_LOOKS_APART)
            raise AssertionError("unreachable: the loop above has no end of its own")
        except BaseException:
            if checked is not None:
                checked.close()
            raise
        finally:
            self._awaited -= 1


def crowding(coming_up: int) -> float:
    """How many times as long as alone a start may take: by the machine's load, and by how many modules start at once.

    From 1 to 6.
    """
    processors = os.cpu_count() or 1
    load, _, _ = os.getloadavg()
    share = max(load, coming_up) / processors
    return min(max(1.0, share), CROWDED)


def _make_folders(folders: Sequence[Path]) -> None:
    for folder in folders:
        folder.mkdir(parents=True)


def _unheard(line: str) -> None:
    """Ignore progress reports: nothing waits for the pool."""


def _without(error: ModuleLost, secrets: Mapping[str, str]) -> ModuleLost:
    """Remove secrets that the module may have printed."""
    message = str(error)
    log = error.log
    for name, value in secrets.items():
        message = message.replace(value, f"[secret {name}]")
        log = log.replace(value, f"[secret {name}]")
    return ModuleLost(message, log=log)
