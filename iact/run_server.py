"""Makes a running `iact run` reachable for the commands that control a session: `clear`, `say`, `pause`, ….

The process then serves what a server serves, on a port of this machine, to clients with the key that
`address.announced` leaves in the data directory. The command line finds it by the session's name.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from typing import Final

from iact import address
from iact.core.errors import UsageError
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.session.watch import Lagging
from iact.core.views.events import RecordAppended
from iact.core.views.questions import is_question
from iact.settings import Settings

_SOON: Final = 2.0
"""Seconds after which a run can be reached if it has not asked anything yet. Most are over by then."""

_LOG: Final = logging.getLogger("iact.run")


async def serve_run(settings: Settings, runtime: Runtime, session: Session) -> None:
    """Let other commands control the session, until this is cancelled."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_SOON):
            await _first_question(session)

    # In a thread: it takes a while, and the session goes on.
    await asyncio.to_thread(import_module, "iact.web.server")
    from iact.web.server import WebServer

    server = WebServer(runtime)
    try:
        await server.start()
        started = datetime.now(UTC).isoformat(timespec="seconds")
        here = address.Address(url=server.url, pid=os.getpid(), started=started, key=server.key)
        with address.announced(settings.data, session.id, here):
            await asyncio.Event().wait()
    except (UsageError, OSError) as error:
        # No reason to end the work: it goes on without other commands.
        _LOG.warning("the run can't be controlled", extra={"error": str(error)})
    finally:
        await server.stop()


async def _first_question(session: Session) -> None:
    """Return when the session asks a person something."""
    with suppress(Lagging):
        async with session.watch() as events:
            async for event in events:
                if isinstance(event, RecordAppended) and is_question(event.record):
                    return
