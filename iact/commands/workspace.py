"""Commands about the versions of a session's workspace: `workspace log`, `workspace diff`, `workspace restore`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from core.errors import ForeignSession, IactError, UsageError
from core.journal import read_journal
from core.journal.seal import open_sealer
from core.ports import JSON, Versions
from core.session.fork import STORE
from core.session.workspace import find_version, restore_at_rest, versions_of
from iact.address import NoServer
from iact.commands import remote
from iact.settings import Settings
from iact.terminal import print_exactly
from iact.wiring import open_versions


def log(settings: Settings, session: str, *, as_json: bool) -> int:
    """Print the versions, in order: the record behind which each stood for the first time, and its id.

    Raises:
        UsageError: there is no such session.
    """
    rows: list[dict[str, JSON]] = []
    for record in versions_of(read_journal(directory_of(settings, session)).records):
        version = record.text("version")
        if not rows or rows[-1]["version"] != version:
            what = record.text("function") or record.text("op")
            rows.append(
                {"n": record.n, "at": record.at, "agent": record.agent, "what": what, "version": version}
            )
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        for row in rows:
            print(f"{row['n']}  {str(row['version'])[:12]}  {row['at']}  {row['agent']}  {row['what']}")
    return 0


def diff(settings: Settings, session: str, wanted: Sequence[str]) -> int:
    """Print what changed between two versions; of one alone, up to the newest that was kept.

    Raises:
        UsageError: there is no such session or version, or not one or two are named.
        ForeignSession: this installation did not make it; git is not run on what others kept.
    """
    directory = directory_of(settings, session)
    if not 1 <= len(wanted) <= 2:
        raise UsageError("Name one version or two; iact workspace log --session ID lists them.")
    old, new = wanted[0], (*wanted[1:], None)[0]
    read = read_journal(directory, open_sealer(settings.data))
    if read.foreign:
        raise ForeignSession(session, read.foreign)
    records = read.records
    named = versions_of(records)
    last = new or (named[-1].text("version") if named else old)
    found = [find_version(records, one) for one in (old, last)]
    print_exactly(_versions().changes(directory / STORE, *found))
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
        directory = directory_of(settings, session)
        found = find_version(read_journal(directory).records, version)
        sealer = open_sealer(settings.data)
        record = asyncio.run(restore_at_rest(directory, _versions(), found, datetime.now(UTC), sealer))
        print(json.dumps({"session": session, "n": record.n}) if as_json else record.n)
        return 0


def _versions() -> Versions:
    versions = open_versions()
    if versions is None:
        raise IactError("git is not installed, and with it no versions of workspaces are kept.")
    return versions


def directory_of(settings: Settings, session: str) -> Path:
    """A session's directory.

    Raises:
        UsageError: there is no such session.
    """
    sessions = settings.data / "sessions"
    directory = sessions / session
    if directory.parent != sessions or not (directory / "journal.md").is_file():
        raise UsageError(f"There is no session {session!r} in {settings.data}.")
    return directory
