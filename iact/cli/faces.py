"""Faces that another program starts and talks to on standard input and output: `iact acp`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iact.cli import options
from iact.cli.options import command

if TYPE_CHECKING:
    from iact.settings import Settings


@command()
@options.intent(None)
@options.scope
def acp(settings: Settings, *, intent: str | None, scope: str) -> int:
    """Let an editor drive sessions, through the Agent Client Protocol on standard input and output.

    The editor starts this command. --intent and --scope apply to the sessions that it starts.
    """
    from iact.commands import acp

    return acp.acp(settings, intent=intent, scope=scope)
