"""Faces that a program of somebody else's starts, and speaks to on their standard input and output: `iact acp`."""

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
    """Let an editor drive sessions: the Agent Client Protocol on standard input and output.

    The editor starts this command. --intent and --scope are those of the sessions that it begins.
    """
    from iact.commands import acp

    return acp.acp(settings, intent=intent, scope=scope)
