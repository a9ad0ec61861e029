"""`iact acp`: an editor drives sessions through the Agent Client Protocol."""

from __future__ import annotations

import asyncio
import os
import sys
from importlib.metadata import version
from io import FileIO

from iact.commands.standard_streams import connected
from iact.core.errors import UsageError
from iact.settings import Settings
from iact.signals import ENDING, run
from iact.wiring import open_runtime


def acp(settings: Settings, *, intent: str | None, scope: str | None) -> int:
    """Speak the protocol until the editor closes the connection, or SIGINT or SIGTERM. Returns 0 after a clean end.

    Raises:
        UsageError: its package is not installed, or no program is connected.
    """
    try:
        import iact.faces.acp.stdio  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "iact acp needs a package that is not installed. Install it: pip install 'iact[acp]'."
        ) from error
    if not all(connected(one) for one in (0, 1)):
        raise UsageError(
            "iact acp is started by an editor, which talks to it through pipes. Enter the command in the editor's "
            "settings; see docs/how-to/editors.md."
        )
    # Output that other code in this process prints must not mix with the messages.
    with FileIO(os.dup(0), "r") as reading, FileIO(os.dup(1), "w") as writing:
        sys.stdout.flush()
        os.dup2(2, 1)
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        run(_serve(settings, reading, writing, intent, scope))
    return 0


async def _serve(
    settings: Settings, reading: FileIO, writing: FileIO, intent: str | None, scope: str | None
) -> None:
    from iact.faces.acp.stdio import serve

    async with open_runtime(settings, scope=scope) as runtime, asyncio.TaskGroup() as group:
        serving = group.create_task(
            serve(runtime, reading, writing, version=version("iact"), intent=intent or "1", scope=scope)
        )
        with ENDING.calling(serving.cancel):
            await asyncio.wait([serving])
