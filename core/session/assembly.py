"""From what a user chose to a runtime: the choices, with their defaults, and what is made of them.

`core.session.runtime.Runtime` takes every part by itself, which is what tests want. Whoever runs the product has
choices and four things that the core can't make: a host of modules, memory, versions of files, overlays.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from iact.core import whole_file
from iact.core.errors import JournalError
from iact.core.gate.clearance import HttpClearance
from iact.core.gate.hosts import host_rule, rules_of
from iact.core.gate.policy_file import DEFAULT, Policies
from iact.core.journal.documents import Cipher, SharedDocuments
from iact.core.journal.seal import KEY as KEY
from iact.core.journal.seal import open_sealer
from iact.core.journal.seal import read_key as read_key
from iact.core.journal.segments import folder_of
from iact.core.journal.stores import SESSIONS, SharedJournals, parts_of, read_stored
from iact.core.models.roles import Models
from iact.core.modules.approval import FILE as APPROVALS
from iact.core.modules.approval import Approvals
from iact.core.modules.instance_limit import InstanceLimit
from iact.core.modules.invoker import Invoker
from iact.core.ports import ConcurrencyLimits, Memory, ModuleHost, ObjectStore, OpenLive, Versions
from iact.core.records.parts import Bounds
from iact.core.records.record import Record
from iact.core.session.clearance import Clearance
from iact.core.session.clock import SystemClock
from iact.core.session.deletion import OpenMemory, Retention
from iact.core.session.monitor import Authorities
from iact.core.session.runtime import Observe, Runtime, SearchElsewhere
from iact.core.session.shared_list import SharedList

_KEYS: Final = "installation/keys/"
_SIZE: Final = 32
"""Bytes of a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeOptions:
    """How sessions are run.

    `scope`: of new sessions. `workspace`: a directory of the user's in which new sessions work, in place of one of
    their own; `workspace_bytes`: what one of their own may take on disk, 0: as much as there is. `idle`: seconds
    without a call after which modules are stopped, until the next, 0: never. `warm`: modules that are started with a
    session; `warm_live`: also those, with one that works in a directory of the user's.
    """

    bounds: Bounds = field(default_factory=Bounds)
    clearance: Clearance = field(default_factory=Clearance)
    scope: str = DEFAULT
    workspace: Path | None = None
    workspace_bytes: int = 2 << 30
    idle: float = 900.0
    warm: tuple[str, ...] = ()
    warm_live: tuple[str, ...] = ()
    egress: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Hosts that modules may reach by the user's settings, beside what the policy lists."""


@dataclass(frozen=True, slots=True)
class SharedStore:
    """Journals are in a store that several hosts reach, of which this one is called `host`.

    `claimed`: told of a session's id and epoch when this host begins to write its journal. `search`: asks the other
    hosts what the texts of their sessions hold.
    """

    objects: ObjectStore
    host: str
    cipher: Callable[[bytes], Cipher]
    """Encrypts what only hosts may read, with what it makes of the key of their seals."""
    claimed: Callable[[str, int], None] = lambda session, epoch: None
    search: SearchElsewhere | None = None

    def journals(self, data: Path, versions: Versions | None = None) -> SharedJournals:
        """Those journals, for the host with this data directory. Blocks. `versions`: what keeps those of workspaces.

        Raises:
            JournalError: the store does not answer, or what it holds was sealed with another key.
        """
        made = SharedJournals(self.objects, self.host, SystemClock(), versions=versions, claimed=self.claimed)
        made.check_key(open_sealer(data), data)
        return made

    def documents(self, data: Path) -> SharedDocuments:
        """The files that all hosts have, for the host with this data directory.

        Raises:
            JournalError: its key can't be read.
        """
        return SharedDocuments(self.objects, data, self.cipher(read_key(data)))

    def others(self, data: Path) -> SharedList:
        """What all hosts say of their sessions, for the host with this data directory.

        Raises:
            JournalError: its key can't be read.
        """
        return SharedList(self.objects, self.cipher(read_key(data)), SystemClock())

    def share_key(self, data: Path, part: str) -> None:
        """See to it that all hosts have one key in a directory below their data directory. Blocks.

        `data`: this host's data directory; `part`: the directory, as it is called in all of them. The key is made where it
        is asked for first, and is in the store encrypted with what only hosts have.

        Raises:
            JournalError: the store does not answer, or there is another key in the directory.
        """
        cipher, own = self.cipher(read_key(data)), data / part
        name = f"{_KEYS}{part}"
        there = self.objects.get(name)
        if there is None:
            # Nothing is put into the directory before it is known whether another host was first.
            mine = read_key(own) if (own / KEY).exists() else secrets.token_bytes(_SIZE)
            self.objects.create(name, cipher.encrypt(name, mine))
            there = self.objects.get(name)
        if there is None:
            raise JournalError(f"{name} is missing in the store, where it was a moment ago.")
        key = cipher.decrypt(name, there)
        if not (own / KEY).exists():
            own.mkdir(parents=True, exist_ok=True, mode=0o700)
            whole_file.replace(own / KEY, key)
        elif read_key(own) != key:
            raise JournalError(
                f"{own / KEY} is not the key that other hosts of this store have there. Move it away: theirs is fetched, and "
                "sessions that only this host made with it must be adopted."
            )

    def users(self, folder: str) -> list[str]:
        """The ids of the users who have a part of the store, each in `folder`. Blocks.

        Raises:
            StoreUnavailable: it does not answer.
        """
        return parts_of(self.objects, folder)

    def sessions(self) -> list[str]:
        """The ids of all sessions that were ever here, in order. Blocks.

        Raises:
            StoreUnavailable: it does not answer.
        """
        return parts_of(self.objects, SESSIONS)

    def read(self, session: str) -> list[Record]:
        """The records of a session, whichever host has it. Blocks; raises as `core.journal.stores.read_stored`."""
        return read_stored(self.objects, session)

    def holds(self, part: str, session: str) -> bool:
        """Whether a part of the store has the journal of a session. Blocks.

        Raises:
            StoreUnavailable: it does not answer.
        """
        if not session or "/" in session or session.startswith("."):
            return False
        return next(self.objects.names(f"{part}/{folder_of(session)}journal/"), None) is not None


@asynccontextmanager
async def open_runtime(
    data: Path,
    models: Models,
    host: ModuleHost,
    options: RuntimeOptions,
    *,
    memory: Memory | None = None,
    versions: Versions | None = None,
    open_live: OpenLive | None = None,
    retention: Retention | None = None,
    memory_at_rest: OpenMemory | None = None,
    shared: SharedStore | None = None,
    policies: Callable[[], Policies] | None = None,
    limits: ConcurrencyLimits | None = None,
    user: str = "",
    observe: Observe | None = None,
    everybody: Path | None = None,
) -> AsyncIterator[Runtime]:
    """A runtime on the data directory `data`; closes it, its models and its host at the end.

    `policies`: read before each new session, in place of the data directory's own. `limits`: of all sessions together.
    `user`: whose they are, for the log.
    `observe`: as of `Runtime`.
    `everybody`: the directory with what an administrator approved for everybody.
    """
    asked, clock = options.clearance, SystemClock()
    async with AsyncExitStack() as stack:
        endpoint = HttpClearance(asked.url, seconds=asked.endpoint_seconds) if asked.url else None
        if endpoint is not None:
            stack.push_async_callback(endpoint.close)
        journals = others = None
        if shared is not None:
            journals = await asyncio.to_thread(shared.journals, data, versions)
            others = await asyncio.to_thread(shared.others, data)
        runtime = Runtime(
            data, models, host,
            clock=clock, bounds=options.bounds, scope=options.scope,
            authorities=Authorities(
                endpoint=endpoint, both=asked.both, attended=asked.attended, seconds=asked.person_seconds,
                approvals=Approvals(data / APPROVALS, shared=Approvals(everybody / APPROVALS)) if everybody else None,
            ),
            workspace=options.workspace, memory=memory, versions=versions, open_live=open_live,
            warm=options.warm, warm_live=options.warm_live,
            egress=rules_of({module: map(host_rule, hosts) for module, hosts in options.egress.items()}),
            retention=retention, memory_at_rest=memory_at_rest, policies=policies,
            journals=journals, others=others, search_elsewhere=shared.search if shared is not None else None,
            open_modules=partial(
                Invoker, workspace_bytes=options.workspace_bytes, clock=clock, idle=options.idle,
                limit=InstanceLimit(limits) if limits is not None else None,
            ),
            user=user, observe=observe,
            limits=limits,
        )  # fmt: skip
        yield await stack.enter_async_context(runtime)
