"""Runs modules under bubblewrap, for machines without an engine: the same interface, weaker isolation.

A module is one process tree in its own name spaces. It dies with us, whatever kills us. Weaker means: for an ordinary
user, memory is bounded for each process but not for all together, and processor time and the number of temporary files
are not bounded at all.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from iact.core.errors import SandboxUnavailable, UsageError
from iact.core.ports import CatalogueEntry, ModuleSource, Origin
from iact.sandbox import limits, owner, reaper, socket_folder
from iact.sandbox.bubblewrap import arguments, cgroups, syscalls, system_folder
from iact.sandbox.bubblewrap.processes import stop_all
from iact.sandbox.catalogue import CatalogueModule
from iact.sandbox.egress import EgressProxy
from iact.sandbox.health import LOG_SIZE, last_words
from iact.sandbox.host import Given, Host, ModuleStart, cannot_prepare
from iact.sandbox.images import payload
from iact.sandbox.instance import Instance
from iact.sandbox.temporary_files import Temporary
from iact.sandbox.threads import from_thread, in_thread, to_the_end

WEAKER = "tools run under bubblewrap, whose isolation is weaker than a Docker engine's"
MISSING = "bubblewrap is not installed, so tools can't run in it; run `sudo apt-get install bubblewrap`."
_PATIENCE = 20
"""Seconds for the kernel to end what was killed."""


@dataclass(slots=True)
class Jail:
    """The process of one module."""

    process: asyncio.subprocess.Process
    group: cgroups.ControlGroup
    end_of_log: bytearray
    """The end of its output."""
    said: asyncio.Task[None]
    """The task that reads the output."""
    temporary: Path | None
    """Its temporary files, if they are in a file system of its own."""

    async def why_ended(self, name: str) -> str | None:
        """A sentence on how it ended; None while it runs."""
        status = self.process.returncode
        if status is None:
            return None
        await asyncio.wait([self.said], timeout=_PATIENCE)  # its last output may still be on its way
        if self.group.out_of_memory:
            return f"The kernel ended the module {name}, because it used more memory than allowed."
        return f"The module {name} ended with status {status}.{last_words(await self.printed())}"

    async def printed(self) -> str:
        """The end of the module's output: untrusted text."""
        return self.end_of_log.decode("utf-8", "replace").strip()

    async def end(self) -> None:
        """Kill it and everything it started, and wait for that. Does not raise."""
        with suppress(ProcessLookupError):
            self.process.kill()
        await in_thread(self.group.kill)  # also thaws what was frozen, so that it dies
        done = asyncio.ensure_future(self.process.wait())
        await asyncio.wait([done, self.said], timeout=_PATIENCE)
        self.said.cancel()
        if self.temporary is not None:
            await in_thread(socket_folder.remove, self.temporary)
        await in_thread(self.group.remove)

    async def freeze(self) -> None:
        """Suspend it and everything it started. Does not raise."""
        if not await in_thread(self.group.freeze):
            await in_thread(stop_all, self.process.pid)


@dataclass(slots=True, kw_only=True)
class BubblewrapInstance(Instance):
    """One module in its name spaces."""

    jail: Jail

    async def settle(self) -> None:
        """Nothing to do: nothing of it carries the name of a session."""

    async def _why_ended(self) -> str | None:
        return await self.jail.why_ended(self.name)

    async def _freeze(self) -> None:
        await self.jail.freeze()

    async def _end(self) -> None:
        await self.jail.end()
        await in_thread(socket_folder.remove, self.folder)


class BubblewrapHost(Host[BubblewrapInstance]):
    """Implements `core.ports.ModuleHost` with bubblewrap."""

    _opened = _said = False

    @property
    def backend(self) -> Literal["docker", "bubblewrap", "off"]:
        return "bubblewrap"

    async def open(self) -> None:
        """Check that it works here, and remove what dead processes left; `start` does it if it was not done.

        Raises:
            SandboxUnavailable: bubblewrap or one of its dependencies is missing.
        """
        if self._closed:
            raise SandboxUnavailable("The sandbox is closed; start the program again.")
        if not self._opened:
            await in_thread(check)
            await in_thread(_reap, self._data)
            self._opened = True

    async def _launch(self, start: ModuleStart) -> BubblewrapInstance:
        module = start.module
        granted = start.granted
        await self.open()
        if not self._said:
            self._said = True
            start.report(WEAKER)

        recipe = await in_thread(self._catalogue.recipe_of, module)
        async with self._preparing.setdefault(recipe, asyncio.Lock()):
            base = await in_thread(system_folder.ensure, from_thread(start.report), recipe)
        given = await self._given(start, system_folder.python_of(base))
        async with self._building(start, given, base) as (jail, folder, temporary, proxy):
            checked = await self._await_service(
                folder, module.name, lambda: jail.why_ended(module.name), jail.printed
            )
            return BubblewrapInstance(
                key=start.key,
                jail=jail,
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

    async def add(self, source: ModuleSource, origin: Origin) -> CatalogueEntry:
        if source.image:
            raise UsageError("A module that is an image needs the Docker engine; add its folder instead.")
        return await super().add(source, origin)

    async def _at_hand(self, module: CatalogueModule) -> bool:
        return await in_thread(system_folder.present, self._catalogue.recipe_of(module)) is not None

    @asynccontextmanager
    async def _building(
        self, start: ModuleStart, given: Given, base: Path
    ) -> AsyncIterator[tuple[Jail, Path, Temporary | None, EgressProxy | None]]:
        """Start a process with its folders and its proxy. Everything is ended again if the block raises."""
        module = start.module
        folder = await self._new_folder()
        temporary = await self._temporary(module, start.key)

        jail: Jail | None = None
        proxy: EgressProxy | None = None
        try:
            place, uid, gid = await in_thread(self._place, start, folder, given, temporary)
            await in_thread(socket_folder.make, folder, uid=uid, gid=gid)
            if given.out:
                proxy = self._proxy(folder, start)
                await proxy.open()
                place = replace(place, egress=proxy.folder)
            if module.trusted.apps:
                await self._apps.open()
            if temporary is not None:
                await self._make_temporary(temporary, self._bounds_of(module))

            jail = await self._spawn(module, place, base)
            yield jail, folder, temporary, proxy
        except BaseException as error:
            await to_the_end(_cleaned(folder, jail, proxy, temporary))
            if isinstance(error, OSError):
                raise cannot_prepare(error, folder) from error
            raise

    async def _make_temporary(self, shared: Temporary, bounds: limits.Limits) -> None:
        """Create the temporary folder that two instances share: a bounded one where we may mount."""
        async with shared.making:
            if not shared.made:
                await in_thread(
                    socket_folder.make_shared, shared.place, size=bounds.tmp_size, files=bounds.tmp_files
                )
                shared.made = True

    async def _remove_temporary(self, place: Path) -> None:
        await in_thread(socket_folder.remove, place)

    async def _spawn(self, module: CatalogueModule, place: limits.Place, base: Path) -> Jail:
        bounds = self._bounds_of(module)
        environment = {**payload.ENVIRONMENT, **self._environment(module, place)}
        inner = module.served_at(f"{limits.SOCKET_FOLDER}/{socket_folder.SOCKET}")
        group = await in_thread(_group, bounds, cgroups.name_of(self._data, self._claim))

        own: Path | None = None
        try:
            if place.temporary is None:
                own = place.sockets.with_name(f"{place.sockets.name}-tmp")
                if not await in_thread(
                    socket_folder.make_temporary, own, size=bounds.tmp_size, files=bounds.tmp_files
                ):
                    own = None

            options = arguments.arguments(place, base, bounds, environment, place.temporary or own)
            with (
                _told("\0".join(options).encode()) as said,
                _told(syscalls.program(meets_nobody=place.meets_nobody)) as calls,
            ):
                started = await asyncio.create_subprocess_exec(
                    *("/bin/sh", "-c", cgroups.ENTER, "sh", *map(str, group.folders), "--"),
                    *(_program(), "--args", str(said), "--seccomp", str(calls), "--"),
                    *arguments.command(place, bounds, inner, together=bool(group.folders)),
                    env={},
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                    pass_fds=(said, calls),
                )
        except BaseException:
            if own is not None:
                await asyncio.shield(in_thread(socket_folder.remove, own))
            await asyncio.shield(in_thread(group.remove))
            raise

        log = bytearray()
        return Jail(started, group, log, asyncio.create_task(_keep_end(started.stdout, log)), own)


async def _cleaned(
    folder: Path, jail: Jail | None, proxy: EgressProxy | None, temporary: Temporary | None
) -> None:
    """Remove everything that a start which failed has made."""
    if proxy is not None:
        await proxy.close()
    if jail is not None:
        await jail.end()
    await in_thread(socket_folder.remove, folder)
    if temporary is not None:
        await temporary.release()


_OF_A_PROGRAM: Final = ("/usr", "/bin", "/lib", "/lib64")
"""The folders that even the smallest program needs."""


def check() -> None:
    """Check that a process can be confined here. Blocks, but takes almost no time.

    Raises:
        SandboxUnavailable: it can't; the message says what to install or set.
    """
    syscalls.program()
    _group(limits.Limits(), str(owner.Process.current())).remove()
    # Not the whole system: a mount in it, such as an engine's containers have, may disappear while it is being bound.
    bound = [part for folder in _OF_A_PROGRAM for part in ("--ro-bind-try", folder, folder)]
    tried = subprocess.run(
        [_program(), "--unshare-all", "--cap-drop", "ALL", *bound, "--", "/bin/true"],
        env={},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode:
        why = (tried.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        raise SandboxUnavailable(
            f"bubblewrap can't confine anything here ({why}); run `sudo sysctl -w kernel.unprivileged_userns_clone=1 "
            "kernel.apparmor_restrict_unprivileged_userns=0`, as far as your kernel knows these."
        )


def _reap(data: Path) -> None:
    """Remove what hosts of the data directory `data` left that are gone. Blocks."""
    reaper.reap_folders(data)
    cgroups.reap(data)

    # While something is left that they claimed, the claims tell that they are gone.
    if not reaper.abandoned(reaper.sockets(data), data) and not cgroups.abandoned(data):
        owner.forget_all(data)


def _group(bounds: limits.Limits, whose: str) -> cgroups.ControlGroup:
    """The bounds on everything a module runs; none for an ordinary user, who is bound by process limits. Blocks."""
    group = cgroups.make(bounds, whose)
    if group is None and os.geteuid() == 0:  # the kernel lets root start any number of processes
        raise SandboxUnavailable(
            "As root, the bubblewrap sandbox needs control groups to limit the resources of modules, "
            "and can't create any here; run the program as an ordinary user."
        )
    return group or cgroups.ControlGroup()


def _program() -> str:
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxUnavailable(MISSING)
    return found


@contextmanager
def _told(content: bytes) -> Iterator[int]:
    """A descriptor from which a program reads `content`, which therefore does not show in the process list."""
    descriptor = os.memfd_create("iact-told")
    try:
        with open(descriptor, "wb", closefd=False) as out:
            out.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


async def _keep_end(source: asyncio.StreamReader | None, kept: bytearray) -> None:
    """Read until all processes have closed the other end, and keep the end of it in `kept`."""
    while source is not None and (chunk := await source.read(1 << 16)):
        kept += chunk
        del kept[:-LOG_SIZE]
