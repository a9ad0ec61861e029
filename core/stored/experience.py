"""How often something failed in this user's sessions: calls, by function and shape of arguments, for the risk of a profile;
and ways of working, by the row of the table of `auto` that chose them, for that table.

Both are counted as their records arrive. The counts are kept in one file next to the sessions, which can be deleted:
it is made again from the journals. The rates that a plan was given are in its `spawn` record, and those that `auto` was given in its
`choose` record, so a replay needs no file.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from iact.core.errors import IactError
from iact.core.journal.file import read_blob, read_journal
from iact.core.plan.modes import auto
from iact.core.plan.modes.profile import shape_of
from iact.core.records.calls import Call, Result
from iact.core.records.dialogue import Choose, Reply
from iact.core.records.parts import Verdict
from iact.core.records.record import Record
from iact.core.tree.apply import take_in
from iact.core.tree.tree import Tree

FILE: Final = "experience.json"
_ENOUGH: Final = 3
"""How many calls of a shape are needed before its rate is used."""
_MOST: Final = 400
"""How many shapes a plan is given at most, those that fail most often first."""
_WAY: Final = "auto:"
"""What a row of the table of `auto` is counted under begins with. No function has such a name."""
NEWEST: Final = 50
"""How many journals, the newest, are read to make a lost file again."""


class Experience:
    """The counts. `file`: where they are kept, or None for nowhere."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._kept: dict[str, tuple[int, int]] = _read(file) if file is not None else {}
        self._new: dict[str, tuple[int, int]] = {}
        self._open: dict[tuple[str, int], str] = {}
        self._chosen: dict[str, str] = {}
        """The rows that chose the ways of what is worked on now, by session."""

    @property
    def lost(self) -> bool:
        """Whether the file is missing, so that the journals must be read."""
        return self._file is not None and not self._file.exists()

    def learn(self, tree: Tree, record: Record) -> None:
        """Count a record that the tree of its session has just taken in."""
        match record.content:
            case Call(function=function) if "." in function:
                agent = tree.agents.get(record.agent)
                found = next((one for one in agent.actions if one.call == record.n), None) if agent else None
                if found is not None and found.bound is not None:
                    names = [*found.bound.arguments, *found.bound.attached]
                    self._open[tree.session, record.n] = shape_of(function, names)
            case Result(call=call, status=status) if call:
                shape = self._open.pop((tree.session, call), None)
                if shape is not None and status in ("ok", "error"):
                    self._count(shape, failed=status == "error")
            case Choose() as chosen:
                self._learn_choice(tree.session, chosen, record.body)
            case Reply(verdict=verdict) if record.agent == "/":
                self._learn_verdict(self._chosen.pop(tree.session, None), verdict)

    def _learn_choice(self, session: str, chosen: Choose, assessment: str) -> None:
        features = auto.read(assessment) if assessment else None
        row = auto.row_of(features) if features is not None else None
        if row is None or row.way == "dialogue":
            return
        if chosen.mode == row.way:
            self._chosen[session] = row.name
        else:
            # It went to a dialogue because its way had failed too often. After some of these, the way is tried again.
            self._count(_WAY + row.name, failed=False)

    def _learn_verdict(self, row: str | None, verdict: Verdict | None) -> None:
        if row is None or verdict is None:
            return
        if verdict.by != "person" and verdict.reached != "unknown":
            self._count(_WAY + row, failed=verdict.reached != "yes")

    def _count(self, shape: str, *, failed: bool) -> None:
        calls, failures = self._new.get(shape, (0, 0))
        self._new[shape] = calls + 1, failures + failed

    def learn_from(self, folders: Iterable[Path]) -> None:
        """Count from journals, as far as they can be read. Blocks."""
        for folder in folders:
            tree = Tree(strict=False, blobs=lambda digest, folder=folder: read_blob(folder, digest))  # type: ignore[misc]
            with contextlib.suppress(IactError, OSError):
                for record in read_journal(folder).records:
                    take_in(tree, record)
                    self.learn(tree, record)

    def rates(self) -> Mapping[str, float]:
        """How often calls failed, from 0 to 1, by function and shape. Leaves out shapes that never failed or were
        called too rarely."""
        found = [(shape, rate) for shape, rate in self._failed() if not shape.startswith(_WAY)]
        return dict(sorted(sorted(found, key=lambda one: -one[1])[:_MOST]))

    def ways_that_failed(self) -> Mapping[str, float]:
        """In what share of the sessions a way of working did not reach the goal, from 0 to 1, by the row of the table of
        `auto` that had chosen it. Leaves out rows that never failed or chose too rarely."""
        found = {shape.removeprefix(_WAY): rate for shape, rate in self._failed() if shape.startswith(_WAY)}
        return dict(sorted(found.items()))

    def _failed(self) -> Iterator[tuple[str, float]]:
        """Yield what failed, with its share, if it was tried often enough."""
        for shape, (tries, failed) in _sum(self._kept, self._new).items():
            if failed and tries >= _ENOUGH:
                yield shape, round(failed / tries, 3)

    def keep(self) -> None:
        """Add the new counts to the file, which another process may also have written. Blocks."""
        if self._file is None or not (self._new or self.lost):
            return
        self._kept, self._new = _sum(_read(self._file), self._new), {}
        written = self._file.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            written.write_text(json.dumps(self._kept, sort_keys=True), encoding="utf-8")
            written.replace(self._file)


def _sum(
    one: Mapping[str, tuple[int, int]], other: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    total = dict(one)
    for shape, (calls, failed) in other.items():
        before = total.get(shape, (0, 0))
        total[shape] = before[0] + calls, before[1] + failed
    return total


def _read(file: Path) -> dict[str, tuple[int, int]]:
    """The kept counts; empty if they can't be read."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return {str(shape): (int(calls), int(failed)) for shape, (calls, failed) in data.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
