"""`iact serve`: run the server with the browser page until a signal stops it."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from iact import address, logs, signals
from iact.browser import open_page
from iact.choices import Choices
from iact.core.session.models import Models
from iact.core.stored.policy import read_policies
from iact.face_server import ServerVisitors, serving
from iact.models.board import Board
from iact.settings import Settings, make_data_directory
from iact.shared_files import follow
from iact.shared_users import settings_of_all, share_key, stores_of
from iact.surroundings import ServerSurroundings
from iact.web.server import PeopleOptions, WebServer
from iact.wiring import models_of, open_runtime


def serve(
    settings: Settings,
    *,
    host: str,
    port: int,
    workspace: str | None,
    scope: str,
    open_browser: bool,
    faces: int | None = None,
) -> int:
    """Serve until SIGINT, SIGTERM or SIGHUP. Returns 0 after a clean shutdown.

    `faces`: the port for other programs, or None to serve none.

    Raises:
        UsageError: another server runs on the data directory, the address is not available, or the scope is unknown.
    """
    make_data_directory(settings)
    read_policies(settings.data).chosen(scope)  # report errors in the policy now, not to the first session
    with address.claimed(settings.data):
        folder = Path(workspace) if workspace else None
        return signals.run(_serve(settings, host, port, folder, scope, open_browser, faces))


async def _serve(
    settings: Settings,
    host: str,
    port: int,
    workspace: Path | None,
    scope: str,
    open_browser: bool,
    faces: int | None,
) -> int:
    stop = asyncio.Event()
    # A session in a directory of the user's can't use containers from the pool.
    pool = settings.pool if workspace is None else 0
    async with AsyncExitStack() as stack:
        stack.enter_context(signals.ENDING.calling(stop.set))
        board = Board()
        models = models_of(settings, board)
        runtime = await stack.enter_async_context(
            open_runtime(settings, workspace, scope=scope, pool=pool, opened=models)
        )
        choices = Choices(settings, runtime.use_models, board)
        people = await _people(stack, settings, models, choices, scope, host)
        server = WebServer(runtime, product=ServerSurroundings(choices), host=host, port=port, **people)
        await server.start()
        try:
            served = None
            if faces is not None:
                visitors = ServerVisitors(server.key, runtime, people.get("people"), people.get("tenants"))
                served = await stack.enter_async_context(
                    serving(visitors, host, faces, settings.accounts.url)
                )
            started = datetime.now(UTC).isoformat(timespec="seconds")
            # Before the ready line: a program that waits for that line may use the other commands immediately.
            published = address.Address(url=server.url, pid=os.getpid(), started=started, key=server.key)
            address.publish(settings.data, published)
            print(f"iact: ready {server.url}", flush=True)
            if served is not None:
                print(f"iact: faces at http://{host}:{served}", flush=True)
            if runtime.memory is not None:
                runtime.memory.wake()
            async with asyncio.TaskGroup() as tasks:
                opening = None
                if open_browser:
                    opening = tasks.create_task(open_page(settings.data, server.new_url(), server.signed_in))
                lasting = (runtime.tend(), runtime.close_unneeded(settings.session_idle), follow(settings))
                tending = [tasks.create_task(work) for work in lasting]
                await stop.wait()
                for task in tending:
                    task.cancel()
                if opening is not None:
                    opening.cancel()
        finally:
            logs.tell("closing")
            await server.stop()
    return 0


async def _people(
    stack: AsyncExitStack, settings: Settings, models: Models, choices: Choices, scope: str, host: str
) -> PeopleOptions:
    """The additional parts of a server with accounts. A server without accounts imports none of them."""
    if settings.accounts.authenticator == "token":
        return {}
    from iact.accounts.quotas import UserQuota
    from iact.everybody import Everybody
    from iact.people import doors, opened_people
    from iact.register import AccountRegister
    from iact.user_runtimes import open_tenants

    people = stack.enter_context(opened_people(settings, os.environ))
    reached = doors(settings, people, host)
    quotas = people.accounts.quotas
    quotas.release()
    everybody = settings_of_all(settings)
    await asyncio.to_thread(share_key, settings, everybody)
    for one in (quotas.tend(), follow(everybody)):
        stack.callback(asyncio.create_task(one, name="what other hosts know and say").cancel)
    tenants = await stack.enter_async_context(
        open_tenants(settings, models, choices, scope, partial(UserQuota, quotas))
    )
    return {
        "people": people.authentication,
        "entrance": people.entrance,
        "tenants": tenants,
        "setup": Everybody(settings, tenants.refresh_modules, scope),
        "register": AccountRegister(
            people.accounts,
            settings.data,
            public_links=settings.accounts.public_links,
            stores=partial(stores_of, settings),
        ),
        **reached,
    }
