"""What an agent is told of the files around it: the newest first, then what is new or changed since it was told last.

The folder is looked at when a turn begins, and what is to be said of it stands in the turn's record (`Seen`), so that a
replay needs no folder. What an agent was told is remembered here alone, and counts once its turn is recorded: a text
that came to nothing is written again with the same files. After a restart the whole list is told again.

Names are content: whoever could write there chose them. They are told to an agent that has read from the same sources
already, or where nothing from outside is in the files; nobody's word becomes less trusted by a list that it did not
ask for. The folder is walked by descriptor, and no link is followed: modules write into it meanwhile.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iact.core import path_names
from iact.core.gate.provenance import join, untrusted
from iact.core.records.parts import SeenFile, SeenFiles
from iact.core.tree.agent import Agent
from iact.core.tree.tree import Tree

_TOLD: Final = 12
_MOST: Final = 2_000
"""Entries that are looked at; of a larger folder only so many are known."""
_DEEPEST: Final = 12
_PASSED_OVER: Final = frozenset({"node_modules", "__pycache__"})
"""Folders of what was installed or made by a program; so is all whose name begins with a dot."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Stamp = tuple[int, int]
"""Of a file: its size, and when it was changed, in nanoseconds."""


@dataclass(slots=True)
class _Known:
    """What an agent was told: `files` counts, and `newest` will once there is a turn after `turn`."""

    files: Mapping[str, Stamp] = field(default_factory=dict)
    newest: Mapping[str, Stamp] = field(default_factory=dict)
    turn: int = 0


class Grounding:
    """The files of one session's `folder`, for its agents."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, _Known] = {}

    async def look(self, tree: Tree, agent: Agent) -> SeenFiles | None:
        """What is to be said of the files in the turn that begins; None if nothing is."""
        if tree.layout != "changes" or not _concerns(tree, agent) or _hidden(tree, agent):
            return None
        now = await asyncio.to_thread(_walked, self._folder)
        known = self._known.setdefault(agent.path, _Known())
        if agent.turn != known.turn:
            known.files = known.newest
        if agent.context.told is None:
            known.files = {}
        known.newest, known.turn = now, agent.turn
        return _difference(known.files, now)


def _concerns(tree: Tree, agent: Agent) -> bool:
    """Whether the agent has a function that can reach the files."""
    modules = tree.registry(agent.path).modules
    return any(
        loaded.manifest.needs.workspace != "none" for name, loaded in tree.modules.items() if name in modules
    )


def _hidden(tree: Tree, agent: Agent) -> bool:
    """Whether something that the agent has not read could have chosen the names."""
    shared = tree.shared
    return bool(untrusted(join([shared.files, *shared.writing.values()])) - agent.labels)


def _difference(before: Mapping[str, Stamp], now: Mapping[str, Stamp]) -> SeenFiles | None:
    fresh = {path: stamp for path, stamp in now.items() if before.get(path) != stamp}
    gone = sorted(before.keys() - now.keys()) if len(now) < _MOST else []
    if not fresh and not gone:
        return None
    newest = heapq.nsmallest(_TOLD, fresh, key=lambda path: (-fresh[path][1], path))
    return SeenFiles(
        new=tuple(SeenFile(path_names.encode(path), fresh[path][0]) for path in newest),
        more=len(fresh) - len(newest),
        gone=tuple(path_names.encode(path) for path in gone[:_TOLD]),
        more_gone=max(0, len(gone) - _TOLD),
    )


def _walked(folder: Path) -> Mapping[str, Stamp]:
    """The files below a folder, those that lie higher first; empty if it can't be read."""
    try:
        opened = os.open(folder, _FOLDER)
    except OSError:
        return {}
    return dict(itertools.islice(_below(opened, "", 0), _MOST))


def _below(folder: int, prefix: str, depth: int) -> Iterator[tuple[str, Stamp]]:
    """What is below an open folder; closes it."""
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
