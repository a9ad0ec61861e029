"""`iact cluster` and `iact serve --cluster`: hosts that share a store, gateways to them, and what is done with both."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

from iact import address
from iact.around import Around
from iact.choices import Choices
from iact.core.errors import IactError, UsageError
from iact.settings import Settings
from iact.web.server import WebServer
from iact.wiring import make_data_directory, open_runtime, open_store

if TYPE_CHECKING:
    from iact.cluster.leases import HostLease
    from iact.cluster.placement import Placement, StaticPlacement

_LAST: Final = 60.0
"""Seconds beyond its grace after which a host that is told to end ends, whatever it still has."""
_T = TypeVar("_T")


def host(settings: Settings, *, bind: str, advertise: str, port: int, control_port: int, grace: float) -> int:
    """Be one of the hosts of a store until SIGINT or SIGTERM, and pass all sessions on then.

    Raises:
        UsageError: there is no store, another server runs on the data directory, or an address can't be had.
    """
    _wanted(settings)
    make_data_directory(settings)
    with address.claimed(settings.data):
        return asyncio.run(_host(settings, bind, advertise or bind, port, control_port, grace))


async def _host(
    settings: Settings, bind: str, advertise: str, port: int, control_port: int, grace: float
) -> int:
    from iact.cluster.control import ControlClient, ControlServer
    from iact.cluster.host import SessionHost
    from iact.cluster.leases import OwnLease, incarnation_of
    from iact.cluster.objects import open_objects
    from iact.cluster.placement import StaticPlacement

    stop = _stopped()
    objects = open_objects(_wanted(settings))
    key_of = await asyncio.to_thread(_keys, settings)
    try:
        lease = OwnLease(objects, incarnation_of(settings.host))
    except ValueError as error:
        raise UsageError(f"{error} Set IACT_HOST.") from error
    peers = ControlClient(key_of)
    placement = StaticPlacement(objects, peers)
    key = key_of(lease.incarnation)
    async with open_runtime(settings, pool=settings.pool, claimed=lease.claimed) as runtime:
        product = Around(Choices(settings, runtime.use_models))
        page = WebServer(
            runtime, product=product, host=bind, port=port, key=key, allow_remote=True, names=(advertise,)
        )
        served = SessionHost(runtime, page, objects, lease, placement, peers, grace=grace)
        control = ControlServer(served.act, key, host=bind, port=control_port)
        await page.start()
        await control.start()
        try:
            lease.serves(page=f"{advertise}:{page.port}", control=f"{advertise}:{control.port}")
            await served.start()
            started = datetime.now(UTC).isoformat(timespec="seconds")
            published = address.Address(url=page.url, pid=os.getpid(), started=started, key=page.key)
            address.publish(settings.data, published)
            print(f"iact: host {settings.host} ready at {advertise}:{page.port}", flush=True)
            if runtime.memory is not None:
                runtime.memory.wake()
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(runtime.tend()), tasks.create_task(served.run())]
                await stop.wait()
                print("iact: passing on all sessions", file=sys.stderr, flush=True)
                with contextlib.suppress(IactError, TimeoutError):
                    async with asyncio.timeout(grace + _LAST):
                        await served.drain()
                for one in running:
                    one.cancel()
        finally:
            print("iact: closing", file=sys.stderr, flush=True)
            await control.stop()
            await page.stop()
    with contextlib.suppress(IactError):
        await served.leave()
    return 0


def gateway(settings: Settings, *, host: str, port: int) -> int:
    """Serve the page for the hosts of a store until SIGINT or SIGTERM.

    Raises:
        UsageError: there is no store, another server runs on the data directory, or the address can't be had.
    """
    _wanted(settings)
    make_data_directory(settings)
    with address.claimed(settings.data):
        return asyncio.run(_gateway(settings, host, port))


async def _gateway(settings: Settings, host: str, port: int) -> int:
    from iact.cluster.gateway import Gateway

    stop = _stopped()
    key_of = await asyncio.to_thread(_keys, settings)
    async with _placement(settings) as placement:
        # All gateways have one key, so that a browser that signed in at one of them is known at the others.
        server = Gateway(placement, key_of, host=host, port=port, key=key_of("gateways"))
        async with server:
            started = datetime.now(UTC).isoformat(timespec="seconds")
            published = address.Address(url=server.url, pid=os.getpid(), started=started, key=server.key)
            address.publish(settings.data, published)
            print(f"iact: ready {server.url}", flush=True)
            await stop.wait()
            print("iact: closing", file=sys.stderr, flush=True)
    return 0


def status(settings: Settings, *, as_json: bool) -> int:
    """Print which hosts there are."""
    leases = _with_placement(settings, lambda placement: placement.hosts())
    if as_json:
        print(json.dumps([_row(one) for one in leases]))
        return 0
    for one in leases:
        state = "draining" if one.draining else "ready"
        print(f"{one.host}  {state}  {one.sessions} sessions  at {one.page}")
    if not leases:
        print("No host is running.")
    return 0


def drain(settings: Settings, host: str) -> int:
    """Have a host pass on all of its sessions and take no more."""
    passed = _with_placement(settings, lambda placement: placement.drain(host))
    print(f"The host {host} passed on {passed} sessions and takes no more; it can be stopped.")
    return 0


def move(settings: Settings, session: str, host: str) -> int:
    """Have a session go on at another host."""
    at = _with_placement(settings, lambda placement: placement.place(session, host=host))
    print(f"The session {session} is at the host {at.lease.host} now (epoch {at.epoch}).")
    return 0


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
        UsageError: there is none.
    """
    if settings.store is None:
        raise UsageError(
            "Several machines need a store that all of them reach. Name it with --store, or set IACT_STORE; a directory will "
            "do on one machine: file:///DIRECTORY."
        )
    return settings.store


def _keys(settings: Settings) -> Callable[[str], str]:
    """What a host wants to be shown, by its incarnation. It follows from the key that all hosts have."""
    seal = open_store(settings).sealer().seal

    def key_of(incarnation: str) -> str:
        return seal(b"the key of a host", incarnation.encode())

    return key_of


def _stopped() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stop.set)
    return stop


@asynccontextmanager
async def _placement(settings: Settings) -> AsyncIterator[Placement]:
    """Finds hosts, in the way that the settings name."""
    from iact.cluster.control import ControlClient
    from iact.cluster.objects import open_objects
    from iact.cluster.placement import StaticPlacement

    key_of = await asyncio.to_thread(_keys, settings)
    placement = StaticPlacement(open_objects(_wanted(settings)), ControlClient(key_of))
    await placement.refresh()
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(_watch(placement))
        try:
            yield placement
        finally:
            watching.cancel()


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
    return asyncio.run(run())
