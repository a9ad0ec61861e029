"""Commands about the versions of a session's workspace: `workspace log`, `workspace diff`, `workspace restore`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict

from iact.address import NoServer
from iact.commands import remote
from iact.core.errors import UsageError
from iact.core.session.store import SessionStore
from iact.settings import Settings
from iact.terminal import print_exactly
from iact.wiring import open_store


def log(settings: Settings, session: str, *, as_json: bool) -> int:
    """Print the versions, in order: the record behind which each stood for the first time, and its id.

    Raises:
        UsageError: there is no such session.
    """
    found = SessionStore(settings.data).versions_in(session)
    if as_json:
        print(json.dumps([asdict(one) for one in found], ensure_ascii=False, indent=2))
    else:
        for one in found:
            several = f" (calls {', '.join(map(str, one.calls))})" if len(one.calls) > 1 else ""
            print(f"{one.n}  {one.version[:12]}  {one.at}  {one.agent}  {one.what}{several}")
    return 0


def diff(settings: Settings, session: str, wanted: Sequence[str]) -> int:
    """Print what changed between two versions; of one alone, up to the newest that was kept.

    Raises:
        UsageError: there is no such session or version, or not one or two are named.
        ForeignSession: this installation did not make it; git is not run on what others kept.
    """
    if not 1 <= len(wanted) <= 2:
        raise UsageError("Name one version or two; iact workspace log --session ID lists them.")
    print_exactly(_store(settings).compare(session, *wanted))
    return 0


def restore(settings: Settings, session: str, version: str, *, as_json: bool) -> int:
    """Put the files back to a version, and record it; the server does it if one runs.

    Raises:
        UsageError: there is no such session or version.
        JournalLocked: another process than the server has the session open.
    """
    try:
        return remote.control(settings, session, {"type": "restore", "version": version}, as_json=as_json)
    except NoServer:
        record = asyncio.run(_store(settings).restore(session, version))
        print(json.dumps({"session": session, "n": record.n}) if as_json else record.n)
        return 0


def _store(settings: Settings) -> SessionStore:
    return open_store(settings)
