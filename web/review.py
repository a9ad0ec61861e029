"""Messages about changes of a live directory that wait: what they are, what each does, and what a person makes of them."""

from __future__ import annotations

from typing import Annotated, Protocol

from pydantic import Field, StringConstraints

from iact.core.errors import UsageError
from iact.core.session.review import counts
from iact.web.messages import Message
from iact.web.ports import Session
from iact.web.records import Fields

Path = Annotated[str, StringConstraints(min_length=1, max_length=16_384)]

_COUNTED = 200
"""Paths whose lines are counted in one message."""


class Watching(Protocol):
    """The side of a connection that these messages act on."""

    def watched(self) -> Session: ...


class ListPending(Message):
    """The changes of the user's directory that wait, by path, from number `start` on and at most `count`.

    The `ok` has `total`, `at` (the last record), and `list`, each with `path`, `kind` (add, modify, delete), `was` and
    `now` (each `type`, `mode`, `size`, `content`, `target`; as far as there is one), `conflict` (true: somebody changed
    it in the directory meanwhile), `impact` and `why` of the change by itself, `held` and `reason` why it waits, `n`
    (the record that told of its present form), `calls`, `agents` and `labels` that it comes from, and for a file that
    looks renamed `from` or `to`.
    """

    start: int = Field(default=0, ge=0)
    count: int = Field(default=1000, ge=0, le=2000)


class ShowPatch(Message):
    """One change that waits: the `ok` has `text`, a unified diff, and `added` and `removed`, lines or null."""

    path: Path


class CountLines(Message):
    """The `ok` has `list`, each with `path`, `added` and `removed`: lines, or null where there are none to count."""

    paths: Annotated[list[Path], Field(max_length=_COUNTED)]


class Apply(Message):
    """Make changes real: `paths`, with what is in them and what they need, or all (null).

    `force`: also over what somebody changed in the directory meanwhile. `at`: the last record that the person had
    seen; a change that is newer is not applied. The `ok` has `n`, `done` (how many), `left` and `notes`, each with
    `path`, `outcome` (applied, conflict, failed) and `why`.
    """

    paths: list[Path] | None = None
    force: bool = False
    at: int | None = Field(default=None, ge=1)


class Drop(Message):
    """Forget changes: `paths`, with what is in them, or all (null). `at`, and the `ok`, as with `apply`."""

    paths: list[Path] | None = None
    at: int | None = Field(default=None, ge=1)


async def list_pending(client: Watching, message: ListPending) -> Fields:
    """Answer `pending`."""
    session = client.watched()
    # A look at everything is made for the first page alone.
    rows = await session.effects.rows(fresh=message.start == 0 and message.count > 0)
    shown = [dict(row) for row in rows[message.start : message.start + message.count]]
    return {"total": len(rows), "at": session.view.record, "list": [*shown]}


async def show_patch(client: Watching, message: ShowPatch) -> Fields:
    """Answer `patch`."""
    text = await client.watched().effects.patch(message.path)
    return {"text": text, **_counted(text)}


async def count_lines(client: Watching, message: CountLines) -> Fields:
    """Answer `counts`; what waits no longer is not in the list."""
    effects = client.watched().effects
    found: list[Fields] = []
    for path in message.paths:
        try:
            text = await effects.patch(path)
        except UsageError:
            continue
        found.append({"path": path, **_counted(text)})
    return {"list": [*found]}


async def apply(client: Watching, message: Apply) -> Fields:
    """Carry out `apply`."""
    session = client.watched()
    settled = await session.effects.apply(message.paths, force=message.force, since=message.at)
    return settled.to_json()


async def drop(client: Watching, message: Drop) -> Fields:
    """Carry out `drop`."""
    session = client.watched()
    return (await session.effects.drop(message.paths, since=message.at)).to_json()


def _counted(text: str) -> Fields:
    added, removed = counts(text) or (None, None)
    return {"added": added, "removed": removed}
