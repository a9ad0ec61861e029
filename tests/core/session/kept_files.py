"""Versions of a workspace in memory, of plain files in one folder: quick, and as good as git for sessions of tests."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from iact.core.errors import WorkspaceError
from iact.core.ports import KeptFile, PathStep, Taken

Held = dict[str, bytes]


class KeptFiles:
    """Implements `core.ports.Versions`, as far as a session that runs needs it. Outlives a kill."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}

    def keep(self, workspace: Path, store: Path, *, whole: bool = False) -> str:
        held = {file.name: file.read_bytes() for file in sorted(workspace.iterdir())}
        newest = f"{len(self._held):040x}"
        # As with git, files that are as they were are the same version.
        if held == self._held.get(newest):
            return newest

        version = f"{len(self._held) + 1:040x}"
        self._held[version] = held
        return version

    def restore(self, workspace: Path, store: Path, version: str, *, path: str = "") -> None:
        if version not in self._held:
            raise WorkspaceError("There is no such version.")
        for file in workspace.iterdir():
            if path in ("", file.name):
                file.unlink()
        for name, data in self._held[version].items():
            if path in ("", name):
                (workspace / name).write_bytes(data)

    def with_file(self, workspace: Path, store: Path, path: str, version: str) -> str:
        now = self._held[self.keep(workspace, store)]
        then = self._held[version]
        if now.get(path) == then.get(path):
            raise WorkspaceError("The file is as it was in that version.")

        others = {name: data for name, data in now.items() if name != path}
        restored = {path: then[path]} if path in then else {}
        result = f"{len(self._held) + 1:040x}"
        self._held[result] = others | restored
        return result

    def take_over(self, workspace: Path, store: Path, base: str, copy: str) -> Taken:
        old, new = self._held[base], self._held[copy]
        now = self._held[self.keep(workspace, store)]
        due = {one for one in old.keys() | new.keys() if old.get(one) != new.get(one) != now.get(one)}
        met = sorted(one for one in due if now.get(one) != old.get(one))
        if met:
            return Taken("", tuple(met))
        for one in due:
            if one in new:
                (workspace / one).write_bytes(new[one])
            else:
                (workspace / one).unlink()
        return Taken(self.keep(workspace, store))

    def forget(self, workspace: Path, store: Path) -> None:
        return None

    def changes(self, store: Path, old: str, new: str) -> str:
        raise AssertionError("nobody asks for that here")

    def steps(self, store: Path, versions: Sequence[str]) -> Sequence[Sequence[PathStep]]:
        return [
            [*_differences(self._held[old], self._held[new])] for old, new in itertools.pairwise(versions)
        ]

    def files(self, store: Path, version: str) -> Sequence[KeptFile]:
        return [
            KeptFile(name, "file", len(data), hashlib.sha256(data).hexdigest())
            for name, data in self._held[version].items()
        ]

    def contents(self, store: Path, files: Sequence[KeptFile]) -> Iterator[bytes]:
        raise AssertionError("nobody asks for that here")

    def patch(self, store: Path, old: KeptFile | None, new: KeptFile | None) -> str:
        raise AssertionError("nobody asks for that here")

    def share(self, store: Path, target: Path) -> None:
        return None

    def bring(self, store: Path, target: Path) -> int:
        raise AssertionError("nobody asks for that here")

    def missing(self, store: Path, versions: Sequence[str]) -> Sequence[str]:
        raise AssertionError("nobody asks for that here")

    def pack(self, store: Path, versions: Sequence[str], known: Sequence[str] = ()) -> bytes:
        raise AssertionError("nobody asks for that here")

    def unpack(self, store: Path, pack: bytes) -> None:
        raise AssertionError("nobody asks for that here")


def _differences(old: Held, new: Held) -> Iterator[PathStep]:
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield PathStep(name, "delete")
        elif name not in old:
            yield PathStep(name, "add")
        elif old[name] != new[name]:
            yield PathStep(name, "modify")
