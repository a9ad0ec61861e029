"""Commands about stored sessions: `session list`, `session adopt`."""

from __future__ import annotations

import asyncio
import json
import sys

from core.session.adopt import Terms
from core.session.listing import SessionInfo
from core.session.models import open_models
from core.session.policy import read_policies
from core.session.store import SessionStore
from iact.commands.journals import find
from iact.settings import Settings
from web.visible import visible, without_escapes


def list_sessions(settings: Settings, *, as_json: bool) -> int:
    """Print the stored sessions, the one that changed last first."""
    found = SessionStore(settings.data).sessions()
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
    from iact.wiring import endpoint_of, make_data_directory, open_versions, options_of

    path = find(settings, source)
    make_data_directory(settings)
    policy = read_policies(settings.data).chosen(scope)
    models = open_models(endpoint_of(settings))
    try:
        terms = Terms.of(policy, intent, options_of(settings).bounds, models)
    finally:
        asyncio.run(models.close())
    made = SessionStore(settings.data, versions=open_versions()).adopt(path, at, terms)
    missing = ", ".join(f"{count} {name}" for name, count in made.left_out.items() if count)
    if missing:
        print(f"note: what could not come along: {missing}.", file=sys.stderr)
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
