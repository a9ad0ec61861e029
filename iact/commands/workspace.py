"""Commands about the versions of a session's workspace: `workspace log`, `workspace diff`, `workspace restore`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from iact import signals
from iact.address import NoServer
from iact.commands import remote
from iact.core.errors import UsageError
from iact.core.stored.store import SessionStore
from iact.settings import Settings
from iact.terminal import print_exactly
from iact.wiring import open_store


def log(settings: Settings, session: str, *, as_json: bool) -> int:
    """Print the versions in order, each with its id and the record after which it first existed.

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
    """Print what changed between two versions. If only one is given, the other is the newest version kept.

    Raises:
        UsageError: the session or a version does not exist, or the number of versions is not one or two.
        ForeignSession: another installation made the session; git is not run on foreign data.
    """
    if not 1 <= len(wanted) <= 2:
        raise UsageError("Give one or two versions. To list them: iact workspace log --session ID")
    print_exactly(_store(settings).compare(session, *wanted))
    return 0


def restore(settings: Settings, session: str, version: str, path: str = "", *, as_json: bool) -> int:
    """Restore the files, or the one at `path`, to a version, and record it. A running server does the work.

    Raises:
        UsageError: there is no such session or version.
        JournalLocked: a process other than the server has the session open.
        WorkspaceError: the file is as it was, or can't be restored.
    """
    message = {"type": "restore", "version": version, "path": path}
    try:
        return remote.control(settings, session, message, as_json=as_json)
    except NoServer:
        record = signals.run(_store(settings).restore(session, version, path))
        print(json.dumps({"session": session, "n": record.n}) if as_json else record.n)
        return 0


def _store(settings: Settings) -> SessionStore:
    return open_store(settings)
