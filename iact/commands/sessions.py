"""Commands about stored sessions: `session list`, `session adopt`."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime

from core.journal.file import FILE
from core.journal.seal import open_sealer
from core.session import adopt as adopting
from core.session.fork import new_session
from core.session.listing import SessionInfo, listed
from iact.commands.journals import find
from iact.settings import Settings
from web.visible import visible, without_escapes


def list_sessions(settings: Settings, *, as_json: bool) -> int:
    """Print the stored sessions, the one that changed last first."""
    found = listed(settings.data / "sessions", open_sealer(settings.data))
    if as_json:
        print(json.dumps([_fields(one) for one in found], ensure_ascii=False, indent=2))
        return 0
    for one in found:
        title = visible(without_escapes(one.title))
        mark = "foreign  " if one.foreign else ""
        print(
            f"{one.id}  {one.changed[:16].replace('T', ' ')}  {one.records:>6} records  {mark}{title}".rstrip()
        )
    if any(one.foreign for one in found):
        print(
            "note: foreign sessions were not made by this installation, or before it sealed what it writes. They can "
            "be shown, verified, replayed and exported; to go on with one: iact session adopt ID",
            file=sys.stderr,
        )
    return 0


def _fields(one: SessionInfo) -> dict[str, object]:
    return {
        "id": one.id,
        "title": one.title,
        "created": one.created,
        "changed": one.changed,
        "records": one.records,
        "foreign": one.foreign,
    }


def adopt(settings: Settings, source: str, *, at: int | None, intent: str, scope: str, as_json: bool) -> int:
    """Make a session of one's own from a foreign one; print its id.

    Raises:
        UsageError: there is no such session, record, scope or level of intent.
        JournalError: it can't be read, or the new one not be stored.
    """
    from iact.wiring import make_data_directory, open_models, open_versions, read_policies

    path = find(settings, source)
    make_data_directory(settings)
    policy = read_policies(settings.data).chosen(scope)
    models = open_models(settings)
    try:
        terms = adopting.Terms.of(policy, intent, settings.bounds.bounds(), models)
    finally:
        asyncio.run(models.close())
    now = datetime.now(UTC)
    made = adopting.adopt(
        settings.data / "sessions",
        path,
        at,
        session=new_session(now),
        now=now,
        terms=terms,
        sealer=open_sealer(settings.data),
        versions=open_versions(),
    )
    missing = ", ".join(f"{count} {name}" for name, count in made.left_out.items() if count)
    if missing:
        print(f"note: what could not come along: {missing}.", file=sys.stderr)
    if as_json:
        report = {
            "session": made.session,
            "journal": str(made.directory / FILE),
            "from": made.source,
            "at": made.at,
            "left_out": dict(made.left_out),
        }
        print(json.dumps(report, ensure_ascii=False))
    else:
        print(made.session)
    return 0
