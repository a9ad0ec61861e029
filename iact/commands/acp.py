"""`iact acp`: an editor drives sessions through the Agent Client Protocol."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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

    if not (connected(0) and connected(1)):
        raise UsageError(
            "iact acp is started by an editor, which talks to it through pipes. Enter the command in the editor's "
            "settings; see docs/how-to/editors.md."
        )

    with _own_streams() as (requests, answers):
        run(_serve(settings, requests, answers, intent, scope))
    return 0


@contextmanager
def _own_streams() -> Iterator[tuple[FileIO, FileIO]]:
    """Take the standard input and output for messages alone, and return them.

    What other code in this process prints must not mix with the messages: it goes to the standard error output, and the
    standard input is empty.
    """
    with FileIO(os.dup(0), "r") as requests, FileIO(os.dup(1), "w") as answers:
        sys.stdout.flush()
        os.dup2(2, 1)
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)

        yield requests, answers


async def _serve(
    settings: Settings, requests: FileIO, answers: FileIO, intent: str | None, scope: str | None
) -> None:
    from iact.faces.acp.stdio import serve

    async with open_runtime(settings, scope=scope) as runtime, asyncio.TaskGroup() as group:
        serving = group.create_task(
            serve(runtime, requests, answers, version=version("iact"), intent=intent or "1", scope=scope)
        )
        with ENDING.calling(serving.cancel):
            await asyncio.wait([serving])
