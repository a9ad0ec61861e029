"""`iact memory …`: search and change memory on the command line.

The memory store has one owner. If a server runs on the data directory, the server owns it, and the commands use the
page's protocol. Otherwise they open the store themselves.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from iact.commands.remote import ask_server
from iact.core.errors import UsageError
from iact.core.ports import JSON, Memory
from iact.memory import USER, open_memory
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
    print(json.dumps(rows, ensure_ascii=False, indent=2)) if as_json else _print(rows)
    return 0


def list_all(settings: Settings, *, limit: int, as_json: bool) -> int:
    """`iact memory list [--limit N] [--json]`: print the newest statements."""
    return search(settings, "", limit=limit, as_json=as_json)


def show(settings: Settings, identity: str) -> int:
    """`iact memory show ID`: print one statement with everything known about it, as JSON."""

    async def here(memory: Memory) -> object:
        return await memory.show(identity)

    found = _ask(settings, {"type": "memory.show", "memory": identity}, "memory", here)
    if found is None:
        raise UsageError(_UNKNOWN.format(repr(identity)))
    print(json.dumps(found, ensure_ascii=False, indent=2))
    return 0


def forget(settings: Settings, ids: Sequence[str]) -> int:
    """`iact memory forget ID…`: permanently remove statements."""

    async def here(memory: Memory) -> object:
        return await memory.forget(ids)

    gone = _ask(settings, {"type": "memory.forget", "memories": list(ids)}, "count", here)
    if not gone:
        raise UsageError(_UNKNOWN.format(", ".join(ids)))
    print(f"{gone} forgotten. The session's journal still contains the original text.")
    return 0


def edit(settings: Settings, identity: str, text: str) -> int:
    """`iact memory edit ID TEXT`: replace the text of a statement. The old text is then only in the journal."""

    async def here(memory: Memory) -> object:
        await memory.edit(identity, text)
        return None

    _ask(settings, {"type": "memory.edit", "memory": identity, "text": text}, "memory", here)
    print("Edited. The session's journal still contains the old text.")
    return 0


def rebuild(settings: Settings) -> int:
    """`iact memory rebuild`: clear the memory and fill it from all journals."""

    async def here(memory: Memory) -> object:
        return await memory.rebuild()

    count = _ask(settings, {"type": "memory.rebuild"}, "count", here, patience=None)
    print(f"Restored {count} memories from the journals in {settings.data / 'sessions'}.")
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
    return answer.get(field) if answer is not None else asyncio.run(_with_memory(settings, here))


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
