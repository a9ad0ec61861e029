"""Modules that are started in advance and belong to no session yet, so that a new session's first call need not wait.

The mounts of a container can't be changed from outside without rights over its name spaces. So the pool keeps *sets*: a
fresh, empty folder, and a viewer and a worker of each pooled module with that folder as their workspace, confined like
any other instance. A session takes a whole set, once: the set's folder is moved to the place of the session's own,
still empty workspace. A mount refers to the folder and not to its name, so it moves along. From then on the whole set
belongs to that session, whether used or not, and is never given to another. Within the set, instances that serve a
single agent go to the first agent that asks.

A session whose workspace already has content, or is mounted somewhere, gets nothing from the pool.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from iact.core.errors import IactError
from iact.core.ports import Right
from iact.sandbox.health import serves
from iact.sandbox.owner import Key

Member = tuple[str, Right]
"""A module's name, and which of its instances."""
CALM: Final = 1.0
"""Seconds between a hand-over and the next preparation, which would slow down the call that is waiting."""
_UNUSED: Final = 600.0
"""Seconds after which the instances of a set that its session has not used are stopped."""
_AT_ONCE: Final = 1.0
"""Seconds in which a module of the pool must answer that it serves; otherwise it is not handed over."""


class Pooled(Protocol):
    """The part of a running module that the pool uses."""

    digest: str

    @property
    def target(self) -> str: ...

    def given(self, session: str, agent: str = "") -> None:
        """Assign it to this session and this agent."""
        ...

    async def settle(self) -> None:
        """Do the work for that session that can wait until no call is waiting."""
        ...

    async def stop(self) -> None: ...


Running = TypeVar("Running", bound=Pooled)
Members = Callable[[], Awaitable[Sequence[Member]]]
"""The members of a set, in the order of preparation: modules of ours that nearly every session uses."""
Make = Callable[[Key, Path], Awaitable[Running | None]]
"""Starts an instance in a workspace; None if that would take longer."""


@dataclass(slots=True)
class Set(Generic[Running]):
    """A set's instances, and the folder that they share."""

    folder: Path
    modules: dict[Member, Running] = field(default_factory=dict)
    agents: dict[str, str] = field(default_factory=dict)
    """By module, the agent it went to."""

    def offers(self, key: Key, digest: str) -> Running | None:
        """The instance for `key`, from the source `digest`, if the set has it."""
        if self.agents.get(key.name, key.agent) != key.agent:
            return None

        instance = self.modules.get((key.name, key.right))
        if instance is None or instance.digest != digest:
            return None
        return instance

    async def stop(self) -> None:
        """Stop all remaining instances."""
        for instance in list(self.modules.values()):
            await instance.stop()
        self.modules.clear()


class Pool(Generic[Running]):
    """Keeps `size` sets ready; with 0, does nothing.

    `members` returns the modules of a set, and `make` starts one. `folders` names a fresh folder for the next set.
    `sessions`: the folder below which workspaces may be replaced, because they are ours.
    """

    def __init__(
        self,
        size: int,
        members: Members,
        make: Make[Running],
        folders: Callable[[], Awaitable[Path]],
        *,
        sessions: Path,
    ) -> None:
        self._size = size
        self._members = members
        self._make = make
        self._folders = folders
        self._sessions = sessions
        self._ready: list[Set[Running]] = []
        """Sets that wait for a session."""
        self._taken: dict[str, Set[Running]] = {}
        """Sets that sessions have, by session."""
        self._mounted: set[str] = set()
        """Sessions that can no longer get a set."""
        self._handing = asyncio.Lock()
        """Held while a set goes to a session, or is taken back from one."""
        self._filling: asyncio.Task[Running | None] | None = None
        """What prepares missing sets."""
        self._tasks: set[asyncio.Task[Running | None]] = set()
        """All that goes on in the background."""
        self._closed = False

    @property
    def ready(self) -> int:
        """How many sets wait for a session."""
        return len(self._ready)

    @property
    def waiting(self) -> list[Running]:
        """The modules that wait for a session."""
        return [instance for ready in self._ready for instance in ready.modules.values()]

    def fill(self, *, after: float = 0.0) -> None:
        """Start to prepare missing sets in the background."""
        if self._size and not self._closed and (self._filling is None or self._filling.done()):
            self._filling = self._begin(self._fill(after))

    def has(self, key: Key, digest: str) -> bool:
        """Whether there is an instance from the source `digest` for `key`."""
        sets: list[Set[Running]] = []
        if key.session in self._taken:
            sets = [self._taken[key.session]]
        elif key.session not in self._mounted:
            sets = self._ready
        return any(each.offers(key, digest) is not None for each in sets)

    async def take(self, key: Key, digest: str, workspace: Path) -> Running | None:
        """Return the instance for `key`, if the pool has one that can be handed over now."""
        # Runs to its end even if the caller is cancelled: a folder that was moved belongs to the session.
        instance = await asyncio.shield(self._begin(self._pick(key, digest, workspace)))
        if instance is not None and not await serves(instance.target, within=_AT_ONCE):
            await instance.stop()
            return None
        return instance

    def mounted(self, session: str) -> None:
        """Note that the workspace of `session` is mounted somewhere, so it can no longer be replaced."""
        self._mounted.add(session)

    async def end_session(self, session: str) -> None:
        """Stop what a session has not used of its set."""
        self._mounted.discard(session)
        taken = self._taken.pop(session, None)
        if taken is not None:
            await taken.stop()

    async def close(self) -> None:
        """Stop everything that no session uses, and prepare nothing more."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

        async with asyncio.TaskGroup() as group:
            for each in [*self._ready, *self._taken.values()]:
                group.create_task(each.stop())

        # The folder of one that was taken is the session's workspace.
        for each in self._ready:
            await asyncio.to_thread(shutil.rmtree, each.folder, ignore_errors=True)
        self._ready.clear()
        self._taken.clear()

    async def _pick(self, key: Key, digest: str, workspace: Path) -> Running | None:
        async with self._handing:
            if key.session not in self._mounted:
                await self._hand_over(key, digest, workspace)

            taken = self._taken.get(key.session)
            if taken is None:
                return None
            instance = taken.offers(key, digest)
            if instance is None:
                return None

            taken.agents[key.name] = key.agent
            del taken.modules[key.name, key.right]
            instance.given(key.session, key.agent)
            self._begin(self._settle(instance))
            return instance

    async def _hand_over(self, key: Key, digest: str, workspace: Path) -> None:
        """Give the session the next set that fits, with its folder in the place of the session's workspace."""
        while self._ready:
            given = self._ready.pop(0)

            # Made from other source than the current.
            if given.offers(key, digest) is None:
                self._begin(self._discard(given))
                continue

            if not await asyncio.to_thread(_move, given.folder, workspace, self._sessions):
                self._ready.insert(0, given)
                return

            for instance in given.modules.values():
                instance.given(key.session)
            self._mounted.add(key.session)
            self._taken[key.session] = given
            self._begin(self._expire(key.session, given))
            break
        self.fill(after=CALM)

    async def _fill(self, after: float) -> None:
        await asyncio.sleep(after)
        while len(self._ready) < self._size:
            prepared = await self._prepare()
            if prepared is None:
                return
            self._ready.append(prepared)

    async def _prepare(self) -> Set[Running] | None:
        """Prepare a set. None if that is impossible now; the next start of the module will report the reason."""
        try:
            made = Set[Running](await self._folders())
        except IactError:
            return None

        complete = False
        try:
            await asyncio.to_thread(made.folder.mkdir, parents=True)
            for name, right in await self._members():
                started = await self._make(Key(made.folder.name, name, right), made.folder)
                if started is None:
                    return None
                made.modules[name, right] = started
            complete = True
        except (IactError, OSError):
            return None
        finally:
            if not complete:
                await asyncio.shield(self._discard(made))
        return made

    async def _settle(self, instance: Running) -> None:
        """Do the work that follows the first use."""
        await asyncio.sleep(CALM)
        await instance.settle()

    async def _expire(self, session: str, given: Set[Running]) -> None:
        """Stop what a session has not used after a while."""
        await asyncio.sleep(_UNUSED)
        async with self._handing:
            if self._taken.get(session) is given:
                del self._taken[session]
        await given.stop()

    async def _discard(self, unused: Set[Running]) -> None:
        """End a set that was not given to a session."""
        await unused.stop()
        await asyncio.to_thread(shutil.rmtree, unused.folder, ignore_errors=True)

    def _begin(self, work: Coroutine[None, None, Running | None]) -> asyncio.Task[Running | None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _move(folder: Path, workspace: Path, sessions: Path) -> bool:
    """Put `folder` in the place of a `workspace` of ours, atomically. Return whether that worked. Blocks.

    The kernel refuses to replace a folder that is not empty, or is on another file system.
    """
    try:
        fresh, own = folder.lstat(), workspace.lstat()
        # On an engine that maps users, the fresh folder was given to a mapped user, as the session's would be.
        owners = {(fresh.st_uid, fresh.st_gid), (os.geteuid(), os.getegid())}
        alike = fresh.st_mode == own.st_mode and (own.st_uid, own.st_gid) in owners
        ours = workspace.resolve().is_relative_to(sessions)
        if not (alike and ours and stat.S_ISDIR(own.st_mode)) or any(folder.iterdir()):
            return False
        os.rename(folder, workspace)
    except OSError:
        return False
    return True
