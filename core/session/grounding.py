"""What an agent is told about the files around it: first the newest, then what is new or changed since its last turn.

The folder is inspected when a turn begins, and the text about it is in the turn's record (`Seen`), so a replay needs no
folder. What an agent was told is remembered only here, and counts once its turn is recorded: a discarded reply is
written again with the same files. After a restart, what was not changed since the agent's last turn counts as told.

File names are content: anyone who could write to the folder chose them. They are shown only to an agent that has
already read from the same sources, or if nothing from outside is in the files. So no agent becomes less trusted because
of a list that it did not ask for. The folder is walked by descriptor, and no link is followed, because modules write to
it at the same time.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from iact.core import path_names
from iact.core.gate.provenance import join, untrusted
from iact.core.records.parts import MINUTE, SeenFile, SeenFiles
from iact.core.tree.agent import Agent
from iact.core.tree.tree import Tree

_TOLD: Final = 12
_LISTED: Final = 40
"""How many files are named to a planner."""
_MOST: Final = 2_000
"""How many entries are inspected at most; the rest of a larger folder stays unknown."""
_DEEPEST: Final = 12
_PASSED_OVER: Final = frozenset({"node_modules", "__pycache__"})
"""Folders with installed or generated files; names that begin with a dot are skipped as well."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Stamp = tuple[int, int]
"""Of a file: its size, and the time of its last change, in nanoseconds."""


@dataclass(slots=True)
class _Known:
    """What an agent was told: `files` counts now; `newest` counts once there is a turn after `turn`."""

    files: Mapping[str, Stamp] = field(default_factory=dict)
    newest: Mapping[str, Stamp] = field(default_factory=dict)
    turn: int = 0


class Grounding:
    """The files of one session's `folder`, as its agents are told about them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, _Known] = {}

    async def look(self, tree: Tree, agent: Agent) -> SeenFiles | None:
        """What to say about the files in the turn that begins; None if there is nothing to say."""
        if tree.layout != "changes" or not _concerns(tree, agent):
            return None
        if _hidden(tree, agent):
            self._known.setdefault(agent.path, _Known())  # they are told once the agent may know them
            return None

        now = await asyncio.to_thread(_walked, self._folder)
        known = self._known.setdefault(agent.path, _Known(newest=_told_before(agent, now)))
        if agent.turn != known.turn:
            known.files = known.newest
        if agent.context.told is None:
            known.files = {}
        known.newest, known.turn = now, agent.turn
        return _difference(known.files, now)

    async def listing(self, tree: Tree, agent: Agent) -> SeenFiles | None:
        """The files that there are, newest first, for a planner of what an agent wants; None if it may not know them."""
        if not _concerns(tree, agent) or _hidden(tree, agent):
            return None
        return _difference({}, await asyncio.to_thread(_walked, self._folder), most=_LISTED)


def _told_before(agent: Agent, now: Mapping[str, Stamp]) -> Mapping[str, Stamp]:
    """Of the files that there are now, those that an agent of a reopened session was told of in its last turn."""
    told = agent.context.told
    if told is None:
        return {}
    # It is the minute in which that turn began: what was changed in it may be told once more.
    last = datetime.strptime(told.seen.now, MINUTE).replace(tzinfo=UTC)
    return {path: stamp for path, stamp in now.items() if stamp[1] < last.timestamp() * 1e9}


def _concerns(tree: Tree, agent: Agent) -> bool:
    """Whether the agent has a function that can reach the files."""
    modules = tree.registry(agent.path).modules
    return any(
        loaded.manifest.needs.workspace != "none" for name, loaded in tree.modules.items() if name in modules
    )


def _hidden(tree: Tree, agent: Agent) -> bool:
    """Whether the names may come from a source that the agent has not read."""
    shared = tree.shared
    return bool(untrusted(join([shared.files, *shared.writing.values()])) - agent.labels)


def _difference(before: Mapping[str, Stamp], now: Mapping[str, Stamp], most: int = _TOLD) -> SeenFiles | None:
    fresh = {path: stamp for path, stamp in now.items() if before.get(path) != stamp}
    gone = sorted(before.keys() - now.keys()) if len(now) < _MOST else []
    if not fresh and not gone:
        return None
    newest = heapq.nsmallest(most, fresh, key=lambda path: (-fresh[path][1], path))
    return SeenFiles(
        new=tuple(SeenFile(path_names.encode(path), fresh[path][0]) for path in newest),
        more=len(fresh) - len(newest),
        gone=tuple(path_names.encode(path) for path in gone[:_TOLD]),
        more_gone=max(0, len(gone) - _TOLD),
    )


def _walked(folder: Path) -> Mapping[str, Stamp]:
    """The files below a folder, upper levels first; empty if it can't be read."""
    try:
        opened = os.open(folder, _FOLDER)
    except OSError:
        return {}
    return dict(itertools.islice(_below(opened, "", 0), _MOST))


def _below(folder: int, prefix: str, depth: int) -> Iterator[tuple[str, Stamp]]:
    """The files below an open folder, which is closed at the end."""
    try:
        inner = []
        with os.scandir(folder) as entries:
            for entry in itertools.islice(entries, _MOST):
                if entry.name.startswith(".") or entry.name in _PASSED_OVER:
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # gone by now
                if stat.S_ISDIR(status.st_mode):
                    inner.append(entry.name)
                else:
                    yield f"{prefix}{entry.name}", (status.st_size, status.st_mtime_ns)
        for name in sorted(inner) if depth < _DEEPEST else ():
            try:
                opened = os.open(name, _FOLDER, dir_fd=folder)
            except OSError:
                continue  # gone, or something else by now
            yield from _below(opened, f"{prefix}{name}/", depth + 1)
    except OSError:
        return
    finally:
        os.close(folder)
