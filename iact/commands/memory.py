"""`iact memory …`: search and change memory on the command line.

The memory store has one owner. If a server runs on the data directory, the server owns it, and the commands use the
page's protocol. Otherwise they open the store themselves.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar, cast

from iact import signals
from iact.commands.remote import ask_server, ask_session
from iact.core.errors import UsageError
from iact.core.ports import JSON, Memory
from iact.core.session.distilling import DistilOutcome
from iact.core.stored.store import SessionStore
from iact.memory import USER, open_memory, switches_of
from iact.settings import Settings

Result = TypeVar("Result")
_UNKNOWN = "There is no memory {}. To find memories: iact memory search QUERY"


def search(settings: Settings, query: str, *, limit: int, as_json: bool) -> int:
    """`iact memory search QUERY [--limit N] [--json]`

    Raises:
        IactError: memory can't answer, or the server refuses. This applies to all commands here.
    """

    async def here(memory: Memory) -> object:
        return [row.to_json() for row in await memory.search(query, limit=limit)]

    found = _ask(settings, {"type": "memory", "query": query, "limit": limit}, "results", here)
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0

    _print(rows)
    if not switches_of(settings).is_on(USER):
        print(
            "Memory is off: nothing is remembered, and agents are told nothing. To switch it on: iact memory on"
        )
    return 0


def list_all(settings: Settings, *, limit: int, as_json: bool) -> int:
    """`iact memory list [--limit N] [--json]`: print the newest statements."""
    return search(settings, "", limit=limit, as_json=as_json)


def show(settings: Settings, identity: str, *, as_json: bool) -> int:
    """`iact memory show ID [--json]`: print one statement with everything known about it."""

    async def here(memory: Memory) -> object:
        return await memory.show(identity)

    found = _ask(settings, {"type": "memory.show", "memory": identity}, "memory", here)
    if not isinstance(found, dict):
        raise UsageError(_UNKNOWN.format(repr(identity)))
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        _print_details(found)
    return 0


def forget(settings: Settings, ids: Sequence[str], *, as_json: bool) -> int:
    """`iact memory forget ID… [--json]`: permanently remove statements."""

    async def here(memory: Memory) -> object:
        return await memory.forget(ids)

    gone = _ask(settings, {"type": "memory.forget", "memories": list(ids)}, "count", here)
    if not gone:
        raise UsageError(_UNKNOWN.format(", ".join(ids)))
    told = f"{gone} forgotten. The session's journal still contains the original text."
    print(json.dumps({"forgotten": gone}) if as_json else told)
    return 0


def forget_all(settings: Settings, *, sure: bool, as_json: bool) -> int:
    """`iact memory forget-all [--yes] [--json]`: permanently remove all statements."""
    if not sure and not _is_meant():
        raise UsageError("Nothing was forgotten. To forget everything without a question: --yes")

    async def here(memory: Memory) -> object:
        return await memory.forget_all()

    gone = _ask(settings, {"type": "memory.clear"}, "count", here, patience=None)
    told = f"{gone} forgotten, and journals bring none of them back. They still contain the original texts."
    print(json.dumps({"forgotten": gone}) if as_json else told)
    return 0


def _is_meant() -> bool:
    """Ask at the terminal; without one, nobody can say so."""
    if not sys.stdin.isatty():
        return False
    answer = input("Forget everything that is remembered about you? [y/N] ")
    return answer.strip().lower() in ("y", "yes")


def edit(settings: Settings, identity: str, text: str, *, as_json: bool) -> int:
    """`iact memory edit ID TEXT [--json]`: replace the text of a statement. The old one is then only in the journal."""

    async def here(memory: Memory) -> object:
        await memory.edit(identity, text)
        return await memory.show(identity)

    edited = _ask(settings, {"type": "memory.edit", "memory": identity, "text": text}, "memory", here)
    if as_json:
        print(json.dumps(edited, ensure_ascii=False, indent=2))
    else:
        print("Edited. The session's journal still contains the old text.")
    return 0


def switch(settings: Settings, value: bool, *, session: str, as_json: bool) -> int:
    """`iact memory off|on [--session ID] [--json]`: for the user everywhere, or in one running session."""
    if session:
        ask_session(settings, session, {"type": "memory.session", "value": value})
    elif ask_server(settings, {"type": "memory.switch", "value": value}) is None:
        # The store need not be open for that, so it works beside a session of `iact run`.
        switches_of(settings).switch(USER, value)

    if as_json:
        print(json.dumps({"on": value, "session": session or None}))
        return 0
    where = f" in session {session}" if session else ""
    if value:
        print(f"Memory is on{where}.")
    else:
        print(f"Memory is off{where}: nothing is remembered, and agents are told nothing of it.")
    return 0


def distil(settings: Settings, sessions: Sequence[str], *, everything: bool, as_json: bool) -> int:
    """`iact memory distil SESSION…|--all [--json]`: ask a model what of sessions is worth remembering. Returns 1 if one
    was left out.

    Raises:
        UsageError: no session is named.
    """
    wanted: list[JSON] = list(sessions)
    if everything:
        known = SessionStore(settings.data).sessions()
        wanted = [one.id for one in known if one.readable and not one.foreign]
    if not wanted:
        raise UsageError("Name sessions, or say --all. To list sessions: iact session list")

    answer = ask_server(settings, {"type": "memory.distil", "sessions": wanted}, patience=None)
    if answer is None:
        outcome = signals.run(_distil_here(settings, [str(session) for session in wanted]))
        answer = {"count": outcome.messages, "left_out": dict(outcome.left_out)}

    left_out = cast(Mapping[str, str], answer["left_out"])
    if as_json:
        print(json.dumps({"messages": answer["count"], "left_out": left_out}))
        return 1 if left_out else 0

    for session, why in left_out.items():
        print(f"{session} was left out. {why}", file=sys.stderr)
    print(f"A model was asked about {answer['count']} messages. To see what is remembered: iact memory list")
    return 1 if left_out else 0


async def _distil_here(settings: Settings, sessions: Sequence[str]) -> DistilOutcome:
    from iact.wiring import open_runtime  # imported late: the other commands need no runtime

    async with open_runtime(settings, attended=False) as runtime:
        return await runtime.distil_each(sessions)


def rebuild(settings: Settings, *, as_json: bool) -> int:
    """`iact memory rebuild [--json]`: clear the memory and fill it from all journals."""

    async def here(memory: Memory) -> object:
        return await memory.rebuild()

    count = _ask(settings, {"type": "memory.rebuild"}, "count", here, patience=None)
    told = f"Restored {count} memories from the journals in {settings.data / 'sessions'}."
    print(json.dumps({"restored": count}) if as_json else told)
    return 0


def _ask(
    settings: Settings,
    message: Mapping[str, JSON],
    field: str,
    here: Callable[[Memory], Awaitable[object]],
    *,
    patience: float | None = 60.0,
) -> object:
    """Return the field `field` of the server's answer, or the result of `here` if no server runs."""
    answer = ask_server(settings, message, patience=patience)
    return answer.get(field) if answer is not None else signals.run(_with_memory(settings, here))


async def _with_memory(settings: Settings, act: Callable[[Memory], Awaitable[Result]]) -> Result:
    async with open_memory(settings) as opened:
        await opened.settled()
        return await act(opened.of(USER))


def _print(rows: Sequence[Mapping[str, JSON]]) -> None:
    for row in rows:
        score, marks = row["score"], row["untrusted"]
        signs = [
            str(row["kind"]),
            str(row["scope"]),
            f"since {str(row['since'])[:10]}",
            f"from {row['agent']}",
        ]
        if isinstance(marks, list) and marks:
            signs.append("UNTRUSTED, from " + ", ".join(map(str, marks)))
        if not row["current"]:
            signs.append("replaced or withdrawn")
        print(f"{score:.2f}  {row['id']}  [{', '.join(signs)}] {row['text']}")


def _print_details(found: Mapping[str, JSON]) -> None:
    """Print everything known about a statement, a line each, without what it has not."""
    print(found["text"])
    for name, value in found.items():
        if name in ("text", "session") or value in ("", [], False):
            continue
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        print(f"  {name.replace('_', ' ')}: {shown}")
