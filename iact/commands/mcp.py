"""`iact mcp`: sessions for a client of the Model Context Protocol, on standard input and output."""

from __future__ import annotations

import asyncio
import signal
from importlib.util import find_spec
from pathlib import Path

from iact.core.errors import UsageError
from iact.core.session.policy import read_policies
from iact.settings import Settings
from iact.wiring import make_data_directory, open_runtime


def mcp(settings: Settings, *, workspace: str | None, intent: str, scope: str) -> int:
    """Serve until the client closes our standard input, or SIGTERM; 0 after a clean end.

    Raises:
        UsageError: what it takes is not installed, or there is no such directory or scope.
    """
    if find_spec("mcp") is None:
        raise UsageError(
            "iact mcp needs a package that is not installed. Install it: pip install 'iact[mcp]'."
        )
    make_data_directory(settings)
    read_policies(settings.data).chosen(scope)
    return asyncio.run(_mcp(settings, Path(workspace) if workspace else None, intent, scope))


async def _mcp(settings: Settings, workspace: Path | None, intent: str, scope: str) -> int:
    from iact.faces.mcp.ask import NewSessions
    from iact.faces.mcp.stdio import serve

    async with open_runtime(settings, workspace, scope=scope) as runtime, asyncio.TaskGroup() as group:
        serving = group.create_task(serve(runtime, NewSessions(intent, scope)))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
    return 0
