"""Commands about stored sessions: `session list | search | rename | pin | export | import | adopt`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from iact import signals
from iact.commands.audit import tell
from iact.commands.journals import find
from iact.commands.remote import ask_server
from iact.core.errors import UsageError
from iact.core.stored.archive import archive_name
from iact.core.stored.index import TextHits
from iact.core.stored.listing import SessionInfo
from iact.core.stored.policy import read_policies
from iact.core.stored.store import SessionStore
from iact.settings import Settings
from iact.web.safe_text import visible, without_escapes


def list_sessions(settings: Settings, *, as_json: bool) -> int:
    """Print the stored sessions, the most recently changed first."""
    found = _store(settings).sessions()
    if as_json:
        print(json.dumps([_fields(one) for one in found], ensure_ascii=False, indent=2))
        return 0
    for one in found:
        title = _shown(one.title)
        mark = _marks(one)
        print(
            f"{one.id}  {one.changed[:16].replace('T', ' ')}  {one.records:>6} records  {mark}{title}".rstrip()
        )
    if any(one.foreign for one in found):
        print(
            "note: foreign sessions were made by another installation, or before this one sealed what it writes. They "
            "can be shown, verified, replayed and exported. To continue one: iact session adopt ID",
            file=sys.stderr,
        )
    return 0


def list_deleted(settings: Settings, *, as_json: bool) -> int:
    """Print the sessions in the trash, newest first."""
    found = SessionStore(settings.data).deleted()
    if as_json:
        rows = [
            {"id": one.id, "title": info.title, "deleted": one.at, "records": info.records}
            for one, info in found
        ]
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0
    for one, info in found:
        when = one.at[:16].replace("T", " ")
        print(f"{one.id}  deleted {when}  {info.records:>6} records  {_shown(info.title)}".rstrip())
    return 0


def search(settings: Settings, query: str, *, limit: int, as_json: bool) -> int:
    """Print the sessions that match, each with its newest matching line."""
    store = _store(settings)
    if store.index is not None:
        store.index.update(store.folder)
    found = store.search(query, max(1, limit), elsewhere=_elsewhere(settings, query, max(1, limit)))
    if as_json:
        rows = [{**_fields(one), "hit": asdict(hit) if hit is not None else None} for one, hit in found.rows]
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0
    for one, hit in found.rows:
        print(f"{one.id}  {one.changed[:16].replace('T', ' ')}  {_marks(one)}{_shown(one.title)}".rstrip())
        if hit is not None:
            print(f"    {hit.agent} {hit.n}: {_shown(hit.before + hit.match + hit.after)}")
    return 0


def _elsewhere(settings: Settings, query: str, limit: int) -> Sequence[TextHits]:
    """The results of other hosts, if sessions are in a store that several hosts share."""
    if settings.store is None:
        return ()
    from iact.commands import cluster

    return cluster.search(settings, query, limit)


def rename(settings: Settings, session: str, title: str) -> int:
    """Give a session a name.

    Raises:
        UsageError: there is no such session, or the name is too long.
    """
    from iact.wiring import open_store

    if ask_server(settings, {"type": "session.rename", "session": session, "title": title}) is None:
        open_store(settings).rename(session, title)
        tell(settings, "session.renamed", session=session)
    return 0


def pin(settings: Settings, session: str, *, pinned: bool) -> int:
    """Pin or unpin a session.

    Raises:
        UsageError: there is no such session.
    """
    from iact.wiring import open_store

    if ask_server(settings, {"type": "session.pin", "session": session, "pinned": pinned}) is None:
        open_store(settings).pin(session, pinned)
    return 0


def export(settings: Settings, session: str, out: str | None) -> int:
    """Write a session to an archive and print the path of the archive.

    Raises:
        UsageError: there is no such session, or `out` exists already.
        JournalError: the session can't be read, or the archive can't be written.
    """
    from iact.wiring import open_versions

    store = SessionStore(settings.data, versions=open_versions())
    store.path_of(session)
    file = Path(out or archive_name(session))
    try:
        with file.open("xb") as stream:
            try:
                left_out = store.export(session, stream)
            except BaseException:
                file.unlink(missing_ok=True)
                raise
    except FileExistsError as error:
        raise UsageError(f"The file {file} exists already. Choose another one with -o.") from error
    except OSError as error:
        raise UsageError(f"The archive can't be written to {file}: {error.strerror}.") from error
    if left_out:
        print(f"note: {left_out} files of the workspace could not be copied.", file=sys.stderr)
    print(file)
    return 0


def take_in(settings: Settings, source: str, *, as_json: bool) -> int:
    """Import a session from an archive and print its id.

    Raises:
        UsageError: it contains no session, or one that exists here already.
        JournalError: its journal can't be read, or it can't be stored.
    """
    from iact.settings import make_data_directory

    make_data_directory(settings)
    from iact.wiring import open_store

    made = open_store(settings).import_session(Path(source))
    missing = ", ".join(f"{count} {name}" for name, count in made.left_out.items() if count)
    if missing:
        print(f"note: could not be copied: {missing}.", file=sys.stderr)
    if as_json:
        report = {"session": made.session, "foreign": bool(made.foreign), "left_out": dict(made.left_out)}
        print(json.dumps(report, ensure_ascii=False))
        return 0
    if made.foreign:
        print(
            f"note: this session is foreign: {made.foreign}. To continue it: iact session adopt {made.session}",
            file=sys.stderr,
        )
    print(made.session)
    return 0


def _store(settings: Settings) -> SessionStore:
    """Open the store with an index, if the data directory is writable, and with what other hosts report."""
    indexed = os.access(settings.data, os.W_OK)
    if settings.store is None:
        return SessionStore(settings.data, indexed=indexed)
    from iact.wiring import open_store

    return open_store(settings, indexed=indexed)


def _marks(one: SessionInfo) -> str:
    said = [
        "foreign" if one.foreign else "",
        "pinned" if one.pinned else "",
        _standing(one),
    ]
    return "".join(f"{mark}  " for mark in said if mark)


def _standing(one: SessionInfo) -> str:
    match one.state:
        case "idle":
            return ""
        case "waits" if one.what:
            return f"waits for {one.what}"
        case "unreadable":
            return f"can't be read: {_shown(one.what)}"
        case _:
            return one.state


def _shown(text: str) -> str:
    return visible(without_escapes(text))


def _fields(one: SessionInfo) -> dict[str, object]:
    return {
        "id": one.id,
        "title": one.title,
        "created": one.created,
        "changed": one.changed,
        "records": one.records,
        "foreign": one.foreign,
        "state": one.state,
        "what": one.what,
        "pinned": one.pinned,
        "source": one.source,
        "at": one.at,
    }


def adopt(settings: Settings, source: str, *, at: int | None, intent: str, scope: str, as_json: bool) -> int:
    """Make a session of this installation from a foreign one, and print its id.

    Raises:
        UsageError: there is no such session, record, scope or level of intent.
        JournalError: the session can't be read, or the new one can't be stored.
    """
    from iact.core.stored.adopt import Terms
    from iact.settings import make_data_directory
    from iact.wiring import models_of, open_store, options_of

    path = find(settings, source)
    make_data_directory(settings)
    policy = read_policies(settings.data).chosen(scope)
    models = models_of(settings)
    try:
        terms = Terms.of(policy, intent, options_of(settings).bounds, models)
    finally:
        signals.run(models.close())
    made = open_store(settings).adopt(path, at, terms)
    missing = ", ".join(f"{count} {name}" for name, count in made.left_out.items() if count)
    if missing:
        print(f"note: could not be copied: {missing}.", file=sys.stderr)
    if as_json:
        report = {
            "session": made.session,
            "journal": str(made.journal),
            "from": made.source,
            "at": made.at,
            "left_out": dict(made.left_out),
        }
        print(json.dumps(report, ensure_ascii=False))
    else:
        print(made.session)
    return 0
