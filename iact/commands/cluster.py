"""`iact cluster` and `iact serve --cluster`: hosts that share a store, their gateways, and commands for both."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from iact import address, logs, signals
from iact.accounts.rights import LOCAL
from iact.choices import Choices
from iact.core import whole_file
from iact.core.errors import IactError, UsageError
from iact.core.session.assembly import KEY, RuntimeOptions, read_key
from iact.member_tls import member_tls
from iact.settings import FILE as CONFIGURATION
from iact.settings import Settings, make_data_directory
from iact.shared_files import fetch, follow
from iact.shared_users import check_accounts, holds, settings_of_all, share_key, stores_of
from iact.surroundings import ServerSurroundings
from iact.user_folders import NODES
from iact.web.server import DoorOptions, PeopleOptions, WebServer
from iact.wiring import models_of, open_runtime, open_store, shared_of

if TYPE_CHECKING:
    from iact.cluster.control import ControlClient
    from iact.cluster.gateway import GatewayPeople
    from iact.cluster.leases import HostLease, OwnLease
    from iact.cluster.placement import Placement, StaticPlacement
    from iact.cluster.search import HostSearch
    from iact.cluster.user_sessions import UserRuntime, Users
    from iact.core.session.models import Models
    from iact.core.stored.index import TextHits

_AGAIN: Final = 1.0
"""Seconds until a host that ended is restarted."""
_LAST: Final = 60.0
"""Seconds after its grace period at which a stopping host ends, even if it still has sessions."""
_T = TypeVar("_T")


def host(settings: Settings, *, bind: str, advertise: str, port: int, control_port: int, grace: float) -> int:
    """Run one of the hosts of a store until SIGINT, SIGTERM or SIGHUP, then hand over all sessions.

    Raises:
        UsageError: there is no store, the hosts would not share accounts, another server runs on the data directory,
            or an address is not available.
    """
    _wanted(settings)
    check_accounts(settings)
    make_data_directory(settings)

    async def work() -> int:
        with _stopped() as stop:
            await _host(stop, settings, bind, advertise or bind, port, control_port, grace)
        return 0

    with address.claimed(settings.data):
        return signals.run(work())


async def _host(
    stop: asyncio.Event,
    settings: Settings,
    bind: str,
    advertise: str,
    port: int = 0,
    control_port: int = 0,
    grace: float = 30.0,
) -> None:
    from iact.cluster.control import ControlClient, ControlServer
    from iact.cluster.host import HostTiming, SessionHost
    from iact.cluster.leases import OwnLease, incarnation_of
    from iact.cluster.objects import open_objects
    from iact.cluster.placement import StaticPlacement
    from iact.cluster.search import HostSearch
    from iact.cluster.user_sessions import UserPage, UserSessions

    objects = open_objects(_wanted(settings))
    key_of = await asyncio.to_thread(_keys, settings)
    try:
        lease = OwnLease(objects, incarnation_of(settings.host))
    except ValueError as error:
        raise UsageError(f"{error} Set IACT_HOST.") from error
    tls = member_tls(settings)
    peers = ControlClient(key_of, tls.client if tls else None)
    placement = StaticPlacement(objects, peers)
    key = key_of(lease.incarnation)
    search = HostSearch(placement, peers, lease.incarnation)
    async with AsyncExitStack() as stack:
        models = models_of(settings)
        runtime = await stack.enter_async_context(
            open_runtime(
                settings,
                pool=settings.pool,
                claimed=lease.claimed,
                search_elsewhere=search.search,
                opened=models,
            )
        )
        choices = Choices(settings, runtime.use_models)
        several = await _people(stack, settings, models, choices, lease, search)
        page = WebServer(
            runtime, product=ServerSurroundings(choices), host=bind, port=port, names=(advertise,),
            tls=tls.server if tls else None,
            # With several users this key is not enough: a request must also name its user, and be signed.
            key=None if several else key,
            **(several.page if several else PeopleOptions(allow_remote=True)),
        )  # fmt: skip
        sessions = UserSessions(runtime, several.running, several.lease) if several else UserSessions(runtime)
        served = SessionHost(
            sessions, UserPage(page), objects, lease, placement, peers,
            timing=HostTiming(grace=grace, idle=settings.session_idle),
            buried=several.release if several else lambda incarnation: None,
        )  # fmt: skip
        control = ControlServer(
            served.act, key, host=bind, port=control_port, tls=tls.server if tls else None
        )
        await page.start()
        await control.start()
        try:
            lease.serves(page=f"{advertise}:{page.port}", control=f"{advertise}:{control.port}")
            await served.start(_incarnation_before(settings, lease.incarnation))
            started = datetime.now(UTC).isoformat(timespec="seconds")
            # The certificate is issued for the address at which others reach this host.
            url = f"https://{advertise}:{page.port}/" if tls else page.url
            published = address.Address(url=url, pid=os.getpid(), started=started, key=page.key)
            address.publish(settings.data, published)
            print(f"iact: host {settings.host} ready at {advertise}:{page.port}", flush=True)
            if runtime.memory is not None:
                runtime.memory.wake()
            async with asyncio.TaskGroup() as tasks:
                working = [runtime.tend(), served.run(), follow(settings)]
                if several is not None:
                    working.append(follow(settings_of_all(settings)))
                running = [tasks.create_task(one) for one in working]
                await stop.wait()
                logs.tell("handing over all sessions")
                with contextlib.suppress(IactError, TimeoutError):
                    async with asyncio.timeout(grace + _LAST):
                        await served.drain()
                for one in running:
                    one.cancel()
        finally:
            logs.tell("closing")
            await control.stop()
            await page.stop()
    with contextlib.suppress(IactError):
        await served.leave()


@dataclass(frozen=True, slots=True)
class _HostPeople:
    """The additional parts of a host with accounts. A host without accounts imports none of them.

    `page`: for its page. `running`, `lease`: the runtimes of users. `release`: releases the quotas that a dead host held.
    """

    page: PeopleOptions
    running: Mapping[str, UserRuntime]
    lease: Users
    release: Callable[[str], None]


async def _people(
    stack: AsyncExitStack,
    settings: Settings,
    models: Models,
    choices: Choices,
    lease: OwnLease,
    search: HostSearch,
) -> _HostPeople | None:
    if settings.accounts.authenticator == "token":
        return None
    from iact.accounts.quotas import UserQuota
    from iact.cluster.statements import StatementReader, statement_key
    from iact.cluster.user_sessions import name_of
    from iact.everybody import Everybody
    from iact.member_people import MemberPeople
    from iact.people import accounts_of, authentication_of, quota_holder
    from iact.register import AccountRegister
    from iact.user_runtimes import AmongHosts, open_tenants

    accounts = stack.enter_context(accounts_of(settings, incarnation=lease.incarnation))
    stack.callback(accounts.quotas.release)
    tending = asyncio.create_task(accounts.quotas.tend(), name="tell other hosts what goes on here")
    stack.callback(tending.cancel)
    everybody = settings_of_all(settings)
    await asyncio.to_thread(share_key, settings, everybody)
    await asyncio.to_thread(fetch, everybody)

    def claimed(user: str, session: str, epoch: int) -> None:
        lease.claimed(name_of(user, session), epoch)

    among = AmongHosts(claimed, search.search)
    scope = RuntimeOptions().scope
    tenants = await stack.enter_async_context(
        open_tenants(settings, models, choices, scope, partial(UserQuota, accounts.quotas), among)
    )
    reader = StatementReader(statement_key(read_key(settings.data)), lease.incarnation)
    return _HostPeople(
        page={
            "allow_remote": True,
            "people": MemberPeople(reader, authentication_of(settings, accounts)),
            "tenants": tenants,
            "setup": Everybody(settings, tenants.refresh_modules, scope),
            "register": AccountRegister(
                accounts,
                settings.data,
                public_links=settings.accounts.public_links,
                stores=partial(stores_of, settings),
            ),
        },
        running=among.running,
        lease=tenants.lease,
        release=lambda incarnation: accounts.quotas.release(quota_holder(incarnation)),
    )


def _incarnation_before(settings: Settings, incarnation: str) -> str:
    """Return the previous incarnation on the data directory, or "" if there was none, and record the new one."""
    path = settings.data / "incarnation"
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    whole_file.replace(path, incarnation.encode())
    return before


async def host_on_node(settings: Settings, bind: str, node: str) -> None:
    """Run a host on a node of a Ray cluster. Its data directory is inside the machine's, next to those of other nodes.

    `bind`: the address to listen on; if empty, the address of the node.

    Raises:
        UsageError: as `host`.
    """
    import ray.util

    at: str = bind or ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
    name = os.environ.get("IACT_HOST") or f"{settings.host}-{node[:8]}"
    own = _on_this_machine(settings, name)
    with address.claimed(own.data):
        await _host(asyncio.Event(), own, at, at)


def _on_this_machine(settings: Settings, name: str) -> Settings:
    """The settings of one of several hosts on this machine: its own name and data directory, with the shared key and
    settings."""
    folder = settings.data / NODES / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = folder / KEY
    if not key.exists():
        descriptor = os.open(key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write((settings.data / KEY).read_bytes())
    if (settings.data / CONFIGURATION).is_file():
        whole_file.replace(folder / CONFIGURATION, (settings.data / CONFIGURATION).read_bytes())
    return settings.model_copy(update={"data": folder, "host": name})


def up(settings: Settings, *, nodes: int, engine: str, port: int) -> int:
    """Run a whole cluster on this machine until SIGINT, SIGTERM or SIGHUP. Without a store it uses a directory.

    Raises:
        UsageError: a required package is not installed, or as `gateway`.
    """
    store = settings.store or f"file://{settings.data / 'store'}"
    settings = settings.model_copy(update={"store": store, "cluster": "static"})
    check_accounts(settings)
    make_data_directory(settings)
    _keys(settings)
    with address.claimed(settings.data):
        if engine == "static":
            return signals.run(_up(settings, nodes, port))
        from iact.cluster.ray_local import local_cluster

        with local_cluster(nodes) as at:
            found = settings.model_copy(update={"cluster": at})
            return signals.run(_gateway(found, "127.0.0.1", port, bind="127.0.0.1"))


async def _up(settings: Settings, nodes: int, port: int) -> int:
    names = [f"node-{number}" for number in range(1, nodes + 1)]
    async with asyncio.TaskGroup() as tasks:
        ready = [asyncio.Event() for _ in names]
        kept = [
            tasks.create_task(_keep(_on_this_machine(settings, name), event))
            for name, event in zip(names, ready, strict=True)
        ]
        try:
            for event in ready:
                await event.wait()
            return await _gateway(settings, "127.0.0.1", port)
        finally:
            for one in kept:
                one.cancel()


async def _keep(settings: Settings, ready: asyncio.Event) -> None:
    """Keep a host running in its own process, and restart it if it is killed."""
    environment = {
        **os.environ, "IACT_DATA": str(settings.data), "IACT_HOST": settings.host, "IACT_STORE": _wanted(settings),
    }  # fmt: skip
    while True:
        # In a group of its own: Ctrl-C in the terminal is for this process, which ends its hosts itself. A second signal
        # would end them in the middle of handing over.
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "iact", "cluster", "host",
            env=environment, stdout=asyncio.subprocess.PIPE, process_group=0,
        )  # fmt: skip
        assert process.stdout is not None
        try:
            print(
                (await process.stdout.readline()).decode().rstrip()
                or f"iact: host {settings.host} did not start",
                file=sys.stderr,
            )
            ready.set()
            await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
        print(f"iact: host {settings.host} ended; restarting it", file=sys.stderr)
        await asyncio.sleep(_AGAIN)


def gateway(settings: Settings, *, host: str, port: int) -> int:
    """Serve the page for the hosts of a store until SIGINT, SIGTERM or SIGHUP.

    Raises:
        UsageError: there is no store, the hosts would not share accounts, another server runs on the data directory,
            or the address is not available.
    """
    _wanted(settings)
    check_accounts(settings)
    make_data_directory(settings)
    with address.claimed(settings.data):
        return signals.run(_gateway(settings, host, port))


async def _gateway(settings: Settings, host: str, port: int, *, bind: str = "") -> int:
    from iact.cluster.gateway import Gateway

    key_of = await asyncio.to_thread(_keys, settings)
    async with _hosts_kept(settings, bind), _placement(settings) as placement, AsyncExitStack() as stack:
        # All gateways share one key, so that a browser that signed in at one of them is recognized by the others.
        signals.ENDING.begin()  # Ray has replaced the signal handlers
        stop = stack.enter_context(_stopped())
        tls = member_tls(settings)
        people, reached = _gateway_people(stack, settings, host)
        server = Gateway(
            placement,
            key_of,
            people=people,
            host=host,
            port=port,
            key=key_of("gateways"),
            hosts_tls=tls.client if tls else None,
            **reached,
        )
        async with server:
            started = datetime.now(UTC).isoformat(timespec="seconds")
            published = address.Address(url=server.url, pid=os.getpid(), started=started, key=server.key)
            address.publish(settings.data, published)
            print(f"iact: ready {server.url}", flush=True)
            await stop.wait()
            logs.tell("closing")
    return 0


def _gateway_people(
    stack: AsyncExitStack, settings: Settings, host: str
) -> tuple[GatewayPeople | None, DoorOptions]:
    """The people of a gateway with accounts, and how it is reached. Without accounts, none of this is imported.

    Raises:
        UsageError: the accounts can't be opened, or passwords would cross a network unencrypted.
    """
    if settings.accounts.authenticator == "token":
        return None, {"outside": None, "allow_remote": False, "admits": lambda peer: True}
    from iact.cluster.gateway import GatewayPeople
    from iact.cluster.statements import StatementWriter, statement_key
    from iact.people import doors, opened_people

    people = stack.enter_context(opened_people(settings, os.environ))
    statements = StatementWriter(statement_key(read_key(settings.data)))
    shared = shared_of(settings)
    assert shared is not None, "there is a store"
    holding = partial(holds, settings, shared)
    found = GatewayPeople(people.authentication, people.entrance, statements, holding)
    return found, doors(settings, people, host)


def search(settings: Settings, query: str, limit: int) -> Sequence[TextHits]:
    """Search the texts of sessions on all running hosts of the store."""

    async def run() -> Sequence[TextHits]:
        from iact.cluster.search import HostSearch

        placement = await _placed(settings)
        key_of = await asyncio.to_thread(_keys, settings)
        return await HostSearch(placement, _peers(settings, key_of)).search(query, limit)

    return signals.run(run())


def status(settings: Settings, *, as_json: bool) -> int:
    """Print the running hosts."""
    leases = _with_placement(settings, lambda placement: placement.hosts())
    if as_json:
        print(json.dumps([_row(one) for one in leases]))
        return 0
    for one in leases:
        state = "draining" if one.draining else "ready"
        print(f"{one.host}  {state}  {one.sessions} sessions  at {one.page}")
    if not leases:
        print("No hosts are running.")
    return 0


def drain(settings: Settings, host: str) -> int:
    """Make a host hand over all its sessions and accept no more."""
    passed = _with_placement(settings, lambda placement: placement.drain(host))
    print(f"The host {host} handed over {passed} sessions and accepts no more. It can be stopped now.")
    return 0


def move(settings: Settings, session: str, host: str) -> int:
    """Move a session to another host."""
    name = _name_of(settings, session)
    at = _with_placement(settings, lambda placement: placement.place(name, host=host))
    print(f"The session {session} is now on the host {at.lease.host} (epoch {at.epoch}).")
    return 0


def _name_of(settings: Settings, session: str) -> str:
    """The name that hosts use for a session, regardless of its owner."""
    from iact.cluster.user_sessions import name_of

    if settings.accounts.authenticator == "token":
        return name_of(LOCAL.user, session)
    from iact.people import accounts_of, owner_of

    with accounts_of(settings) as accounts:
        return name_of(owner_of(settings, accounts, session) or LOCAL.user, session)


def _row(lease: HostLease) -> dict[str, str | int | bool]:
    return {
        "host": lease.host,
        "page": lease.page,
        "control": lease.control,
        "sessions": lease.sessions,
        "draining": lease.draining,
    }


def _wanted(settings: Settings) -> str:
    """The address of the store.

    Raises:
        UsageError: no store is configured.
    """
    if settings.store is None:
        raise UsageError(
            "Several machines need a store that all of them can reach. Give it with --store or IACT_STORE. On one machine, "
            "it can be a directory: file:///DIRECTORY."
        )
    return settings.store


def _keys(settings: Settings) -> Callable[[str], str]:
    """Return a function that derives a host's key from its incarnation and the key that all hosts share."""
    seal = open_store(settings).sealer().seal

    def key_of(incarnation: str) -> str:
        return seal(b"the key of a host", incarnation.encode())

    return key_of


@contextmanager
def _stopped() -> Iterator[asyncio.Event]:
    """An event that SIGINT, SIGTERM and SIGHUP set."""
    stop = asyncio.Event()
    with signals.ENDING.calling(stop.set):
        yield stop


@asynccontextmanager
async def _hosts_kept(settings: Settings, bind: str) -> AsyncIterator[None]:
    """Keep a host running on each node of the configured Ray cluster inside this context.

    `bind`: the address that the hosts listen on.

    Raises:
        UsageError: there is no cluster at the address, or Ray is not installed.
    """
    if settings.cluster in (None, "static"):
        yield
        return
    try:
        from iact.cluster.ray_engine import RayHosts
    except ImportError as error:
        raise UsageError(
            f"The cluster {settings.cluster} can't be used because a package is missing ({error.name}). Install it: "
            "pip install 'iact[cluster]'."
        ) from error
    hosts = RayHosts(settings.cluster, partial(host_on_node, settings, bind))
    await hosts.start()
    async with asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(hosts.run())
        try:
            yield
        finally:
            keeping.cancel()


@asynccontextmanager
async def _placement(settings: Settings) -> AsyncIterator[StaticPlacement]:
    """Find hosts, no matter who started them, and keep the list up to date."""
    placement = await _placed(settings)
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(_watch(placement))
        try:
            yield placement
        finally:
            watching.cancel()


async def _placed(settings: Settings) -> StaticPlacement:
    """Find hosts through the store only.

    Raises:
        UsageError: no store is configured.
    """
    from iact.cluster.objects import open_objects
    from iact.cluster.placement import StaticPlacement

    key_of = await asyncio.to_thread(_keys, settings)
    placement = StaticPlacement(open_objects(_wanted(settings)), _peers(settings, key_of))
    await placement.refresh()
    return placement


def _peers(settings: Settings, key_of: Callable[[str], str]) -> ControlClient:
    from iact.cluster.control import ControlClient

    tls = member_tls(settings)
    return ControlClient(key_of, tls.client if tls else None)


async def _watch(placement: StaticPlacement) -> None:
    from iact.cluster.leases import RENEWAL

    while True:
        await asyncio.sleep(RENEWAL)
        with contextlib.suppress(IactError):
            await placement.refresh()


def _with_placement(settings: Settings, act: Callable[[Placement], Awaitable[_T]]) -> _T:
    async def run() -> _T:
        async with _placement(settings) as placement:
            return await act(placement)

    make_data_directory(settings)
    return signals.run(run())
