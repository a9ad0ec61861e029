"""Builds a runtime from the choices of a user, with their defaults.

`core.session.runtime.Runtime` takes every part separately, which suits tests. The product starts from choices and from
four parts that the core can't make: a host of modules, memory, versions of files, overlays.
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
from iact.core.clock import SystemClock
from iact.core.errors import JournalError
from iact.core.gate.hosts import host_rule, rules_of
from iact.core.gate.http_clearance import HttpClearance
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
from iact.core.ports import ConcurrencyLimits, Memory, ModuleHost, ObjectStore, OpenLayer, OpenLive, Versions
from iact.core.records.parts import Bounds
from iact.core.records.record import Record
from iact.core.session.clearance import Clearance
from iact.core.session.monitor import Authorities
from iact.core.session.runtime import Observe, Runtime, SearchElsewhere
from iact.core.stored.deletion import OpenMemory, Retention
from iact.core.stored.shared_list import SharedList

_KEYS: Final = "installation/keys/"
_SIZE: Final = 32
"""The size of a key, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeOptions:
    """How sessions are run.

    `scope`: of new sessions. `workspace`: a directory of the user's in which new sessions work, instead of one per
    session; `workspace_bytes`: how much disk space a session's own workspace may take, 0 for no limit. `idle`: seconds
    without a call after which modules are stopped until the next call, 0 for never. `warm`: modules that are started
    with a session; `warm_live`: modules that are also started with a session that works in a directory of the user's.
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
    """Hosts that the user's settings let modules reach, in addition to those in the policy."""


@dataclass(frozen=True, slots=True)
class SharedStore:
    """Journals are in a store that several hosts share; this host is called `host`.

    `claimed`: called with a session's id and epoch when this host begins to write its journal. `search`: searches the
    texts of the sessions on the other hosts.
    """

    objects: ObjectStore
    host: str
    cipher: Callable[[bytes], Cipher]
    """Makes the cipher for data that only hosts may read, from the key of their seals."""
    claimed: Callable[[str, int], None] = lambda session, epoch: None
    search: SearchElsewhere | None = None

    def journals(self, data: Path, versions: Versions | None = None) -> SharedJournals:
        """The shared journals, for the host with this data directory. Blocks. `versions`: keeps the versions of
        workspaces.

        Raises:
            JournalError: the store does not answer, or its content was sealed with another key.
        """
        made = SharedJournals(self.objects, self.host, SystemClock(), versions=versions, claimed=self.claimed)
        made.check_key(open_sealer(data), data)
        return made

    def documents(self, data: Path) -> SharedDocuments:
        """The files that all hosts share, for the host with this data directory.

        Raises:
            JournalError: its key can't be read.
        """
        return SharedDocuments(self.objects, data, self.cipher(read_key(data)))

    def others(self, data: Path) -> SharedList:
        """The session lists that all hosts publish, for the host with this data directory.

        Raises:
            JournalError: its key can't be read.
        """
        return SharedList(self.objects, self.cipher(read_key(data)), SystemClock())

    def share_key(self, data: Path, part: str) -> None:
        """Give all hosts the same key in a directory below their data directory. Blocks.

        `data`: this host's data directory; `part`: the directory's name, the same on all hosts. The first host that
        needs the key makes it. The store holds it encrypted with material that only hosts have.

        Raises:
            JournalError: the store does not answer, or the directory already holds another key.
        """
        cipher, own = self.cipher(read_key(data)), data / part
        name = f"{_KEYS}{part}"
        there = self.objects.get(name)
        if there is None:
            # Nothing is written to the directory until it is known whether another host was first.
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
                f"{own / KEY} is not the key that the other hosts of this store use. Move the file "
                "away: their key is then fetched, and sessions that this host sealed with its own "
                "key must be adopted."
            )

    def users(self, folder: str) -> list[str]:
        """The ids of the users who have a part of the store, each below `folder`. Blocks.

        Raises:
            StoreUnavailable: it does not answer.
        """
        return parts_of(self.objects, folder)

    def sessions(self) -> list[str]:
        """The ids of all sessions that were ever stored, in order. Blocks.

        Raises:
            StoreUnavailable: it does not answer.
        """
        return parts_of(self.objects, SESSIONS)

    def read(self, session: str) -> list[Record]:
        """The records of a session, no matter which host runs it. Blocks; raises as
        `core.journal.stores.read_stored`."""
        return read_stored(self.objects, session)

    def holds(self, part: str, session: str) -> bool:
        """Whether a part of the store holds the journal of a session. Blocks.

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
    open_layer: OpenLayer | None = None,
    retention: Retention | None = None,
    memory_at_rest: OpenMemory | None = None,
    shared: SharedStore | None = None,
    policies: Callable[[], Policies] | None = None,
    limits: ConcurrencyLimits | None = None,
    user: str = "",
    observe: Observe | None = None,
    everybody: Path | None = None,
) -> AsyncIterator[Runtime]:
    """Open a runtime on the data directory `data`. Closes it, its models and its host at the end.

    `policies`: read before each new session, instead of the data directory's own. `limits`: shared by all sessions.
    `user`: the owner of the sessions, for the log. `observe`: as for `Runtime`. `everybody`: the directory with what an
    administrator approved for all users.
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
            workspace=options.workspace, memory=memory, versions=versions, open_live=open_live, open_layer=open_layer,
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
