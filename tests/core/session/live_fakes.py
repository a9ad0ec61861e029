"""A live directory without an overlay: a copy of it, compared and copied back. And a module that works in it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iact.core.errors import WorkspaceError
from iact.core.gate.gate import Ticket
from iact.core.gate.policy_file import Policies
from iact.core.models.roles import Models
from iact.core.modules.client import Completed, OnArtifact, Outcome
from iact.core.modules.invoker import FunctionCall, Modules
from iact.core.modules.manifest import Manifest
from iact.core.ports import (
    AppliedChange,
    CatalogueEntry,
    ChangeKind,
    FileChange,
    FileState,
    LiveFiles,
    ModuleHost,
    OpenLive,
    Report,
    Versions,
)
from iact.core.session.runtime import Runtime
from tests.core.session.fakes import (
    MAIL,
    WEB,
    FakeHost,
    FakeModules,
    Script,
    ScriptedModel,
    TickingClock,
    World,
)

_FUNCTION = {
    "name": "do",
    "alias": "DO",
    "summary": "Does.",
    "documentation": "",
    "schema_text": '{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}',
    "body": "text",
    "impact": 1,
}
HANDS = Manifest.model_validate(
    {
        "name": "hands",
        "version": "1",
        "purpose": "Works.",
        "needs": {"workspace": "write", "forgets": True},
        "functions": (
            _FUNCTION,
            {**_FUNCTION, "name": "look", "alias": "LOOK", "impact": 0},
            {**_FUNCTION, "name": "gently", "alias": "GENTLY"},
        ),
    }
)
"""A shipped module that writes: `write NAME TEXT`, `rm NAME`, `mkdir`, `rmdir`, `chmod MODE NAME`, `ln TARGET NAME`."""


class Killed(BaseException):
    """The process dies here."""


def state(path: Path) -> FileState:
    """What is at a path."""
    status = path.lstat()
    mode = status.st_mode & 0o7777
    if path.is_symlink():
        return FileState("link", mode, target=os.readlink(path))
    if path.is_dir():
        return FileState("folder", mode)
    if not path.is_file():
        return FileState("other", mode)
    return FileState("file", mode, status.st_size, hashlib.sha256(path.read_bytes()).hexdigest())


def states(folder: Path) -> dict[str, FileState]:
    """What is in a folder, parents before what is in them."""
    found = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): state(path) for path in found}


def put(source: Path, target: Path) -> None:
    """Make `target` what `source` is, or take it away."""
    there = source.is_symlink() or source.exists()
    if target.is_symlink() or (target.exists() and not (target.is_dir() and there and source.is_dir())):
        shutil.rmtree(target) if target.is_dir() and not target.is_symlink() else target.unlink()
    if source.is_symlink():
        target.symlink_to(os.readlink(source))
    elif source.is_dir():
        target.mkdir(exist_ok=True)
        target.chmod(source.stat().st_mode & 0o777)
    elif there:
        shutil.copy(source, target)


class CopiedFiles:
    """`core.ports.LiveFiles` by copying. `dies_after`: how many paths are applied before the process is killed."""

    def __init__(self, directory: Path, store: Path) -> None:
        self._directory = directory
        self._base = store / "base"
        self._folder = store / "folder"
        self.dies_after: int | None = None
        self.broken = ""
        self.closed = False
        if not self._folder.exists():
            shutil.copytree(directory, self._base, symlinks=True)
            shutil.copytree(directory, self._folder, symlinks=True)

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def written(self) -> Path:
        return self._folder

    def refresh(self, *, works: bool = True) -> list[str]:
        over, base, under = states(self._folder), states(self._base), states(self._directory)
        for path in sorted({*over, *base, *under}):
            if over.get(path) == base.get(path) != under.get(path):
                for copy in (self._folder, self._base):
                    put(self._directory / path, copy / path)
        return []

    def changes(self) -> Sequence[FileChange]:
        if self.broken:
            raise WorkspaceError(self.broken)
        over, base, under = states(self._folder), states(self._base), states(self._directory)
        found = []
        for path in sorted({*over, *base, *under}):
            was, now = under.get(path), over.get(path)
            if now == base.get(path) or now == was:
                continue
            kind: ChangeKind = "add" if was is None else "delete" if now is None else "modify"
            found.append(FileChange(path, kind, was, now, conflict=was != base.get(path)))
        return found

    def patch(self, path: str, *, most: int = 200_000) -> str:
        return f"--- {path}\n+++ {path}\n"[:most]

    def texts(self, path: str) -> tuple[str, str] | None:
        files = [folder / path for folder in (self._directory, self._folder)]
        before, after = (file.read_text(encoding="utf-8") if file.is_file() else "" for file in files)
        return before, after

    def apply(self, paths: Sequence[str], *, force: Sequence[str] = ()) -> Sequence[AppliedChange]:
        conflicts = {one.path for one in self.changes() if one.conflict}
        there = [
            path for path in paths if (self._folder / path).exists() or (self._folder / path).is_symlink()
        ]
        found = []
        for done, path in enumerate([*there, *reversed([path for path in paths if path not in there])]):
            if done == self.dies_after:
                raise Killed
            if path in conflicts and path not in force:
                found.append(AppliedChange(path, "conflict", "Somebody changed it meanwhile."))
                continue
            put(self._folder / path, self._directory / path)
            put(self._folder / path, self._base / path)
            found.append(AppliedChange(path, "applied"))
        return found

    def drop(self, paths: Sequence[str]) -> None:
        for path in [*paths, *reversed(paths)]:
            if not (self._directory / path).parent.exists():
                continue
            put(self._directory / path, self._folder / path)
            put(self._directory / path, self._base / path)

    def close(self) -> None:
        self.closed = True


class Hands(FakeModules):
    """The module `hands`, working in the folder that the session gives it."""

    def __init__(self, world: World, folder: Path) -> None:
        super().__init__(world)
        self._folder = folder

    async def call(
        self,
        ticket: Ticket,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        if not call.function.startswith("hands."):
            return await super().call(
                ticket, call, on_output=on_output, on_artifact=on_artifact, report=report
            )
        ticket.redeem(call.request)
        text = str(call.arguments["text"])
        for line in text.splitlines():
            match line.split(" ", 2):
                case ["write", name, *content]:
                    (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
                    (self._folder / name).write_text(" ".join(content))
                case ["rm", name]:
                    (self._folder / name).unlink()
                case ["mkdir", name]:
                    (self._folder / name).mkdir()
                case ["rmtree", name]:
                    shutil.rmtree(self._folder / name)
                case ["chmod", mode, name]:
                    (self._folder / name).chmod(int(mode, 8))
                case ["ln", target, name]:
                    (self._folder / name).symlink_to(target)
                case ["pass"]:
                    continue
                case ["wait", name]:
                    await self._world.hold[name].wait()
                case _:
                    raise AssertionError(line)
        await asyncio.sleep(0)
        return Completed("done", "text/plain", {}, None, (), None)


class HandsHost(FakeHost):
    """A catalogue with `t`, `web`, `mail` and `hands`."""

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        entries = [
            *await super().catalogue(),
            CatalogueEntry("hands", "2" * 64, "shipped", "Works.", HANDS.to_proto()),
        ]
        known = {one.name for one in entries}
        more = [("web", "shipped", WEB), ("mail", "user", MAIL)]
        return entries + [
            CatalogueEntry(
                name, "0" * 64, "shipped" if origin == "shipped" else "user", "", manifest.to_proto()
            )
            for name, origin, manifest in more
            if name not in known
        ]


@dataclass
class Overlays:
    """Opens directories, and keeps what it opened. `refuses`: says why there can be none."""

    refuses: str = ""
    opened: list[CopiedFiles] = field(default_factory=list)

    def __call__(self, directory: Path, store: Path) -> LiveFiles:
        if self.refuses:
            raise WorkspaceError(self.refuses)
        self.opened.append(CopiedFiles(directory, store))
        return self.opened[-1]


def live_runtime(
    data: Path,
    script: Script,
    *,
    open_live: OpenLive | None = None,
    policy: str = "",
    world: World | None = None,
    model: ScriptedModel | None = None,
    scope: str = "default",
    warm_live: Sequence[str] = (),
    versions: Versions | None = None,
) -> Runtime:
    """A runtime whose sessions work with `hands`, in a directory that is copied."""
    it = world or World()

    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return Hands(it, workspace)

    return Runtime(
        data,
        Models({"smart": model or ScriptedModel(script)}),
        HandsHost(),
        clock=TickingClock(),
        policies=lambda: Policies.from_toml(policy),
        scope=scope,
        open_modules=open_modules,
        open_live=open_live,
        warm_live=warm_live,
        versions=versions,
    )


def does(*scripts: str, then: str = "Done.", after: int = 0) -> Script:
    """An agent that has `hands` do one script after the other, and then answers. `after`: turns that it had before."""
    turns: Mapping[int, str] = {after + at: f"```DO\n{text}\n```" for at, text in enumerate(scripts)}
    return lambda asked: turns.get(asked.turn, then)
