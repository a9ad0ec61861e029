"""Versions of a workspace: its state after each call that wrote, kept with git, but out of git's reach.

The files belong to modules and are treated as hostile. git never reads them from disk: we walk the folder by
descriptor, follow no link, leave out everything except files, links and folders, and pass the contents to `git
fast-import`; restoring works the same way. So no attribute, filter, hook or configuration that a module leaves behind
is read, a repository inside the workspace consists of ordinary files, and nothing is written outside. The store is a
folder of git's objects next to the workspace, which no container ever sees. It is not a repository
(`sandbox.workspace.git`).
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from iact.core import path_names
from iact.core.errors import WorkspaceError
from iact.core.ports import KeptFile, PathStep, Taken
from iact.sandbox.workspace import version_reader
from iact.sandbox.workspace.foreign_store import bring
from iact.sandbox.workspace.git import OBJECTS, OUTPUT, check_objects, run_git

LARGEST: Final = 64 << 20
"""The most bytes of one file; larger files are left out, and are not touched when a version is restored."""
MOST: Final = 20_000
"""The most files, links and empty folders of one version.

A larger workspace has no version: a partial one would lose the rest when it is restored.
"""
TOTAL: Final = 512 << 20
"""The most bytes of one version together; likewise."""

STORE: Final = 4 << 30
"""The most bytes of one session's versions together."""
_TIDY: Final = 200
"""Versions after which the store is packed."""

_BRANCH: Final = "refs/heads/workspace"
_LISTED: Final = 64 << 20
"""The most bytes of a version's list of files, and of a difference."""
_CONFLICTS: Final = 100
"""The most paths that are named where changes can't be taken over."""
_EMPTY: Final = version_reader.EMPTY
"""Marks an empty folder; a real name never contains a bare percent sign."""
_DEPTH: Final = 60
_RACY: Final = 1_000_000_000
"""Nanoseconds: a file that changed less than this before it was read may change again unnoticed."""
_VERSION: Final = re.compile(r"[0-9a-f]{40}")
_PLAIN: Final = "".join(map(chr, range(32, 127))).replace("%", "").replace('"', "").replace("\\", "")
Seal = tuple[int, int, int, int, int]
"""Changes whenever a file does: inode, mode, size, and the times of content and status."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of the workspace. `path`: its parts, joined by "/", in the store's form."""

    path: bytes
    mode: bytes
    """Git's mode; empty if no version can contain it, since it is too large, too deep or unreadable."""
    seal: Seal
    data: bytes | None
    """None: unchanged since the last walk, or not read."""


@dataclass(slots=True)
class _Known:
    """The content of the newest version of one store."""

    version: str = ""
    """Its id; empty if there is none yet."""
    seals: dict[bytes, Seal] = field(default_factory=dict)
    """What it contains, by path."""
    left_out: frozenset[bytes] = frozenset()
    """Paths of the workspace that it lacks."""
    marks: dict[bytes, Seal] = field(default_factory=dict)
    """What no version contains (folders themselves, pipes, what was left out), as it was then."""
    looked: int = 0
    """When the last walk began, in nanoseconds."""
    made: int = 0
    """How many versions were made."""


class GitVersions:
    """Implements `core.ports.Versions`. All methods block; one store is used by one caller at a time."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, Path], _Known] = {}

    def keep(self, workspace: Path, store: Path, *, whole: bool = False) -> str:
        """Keep the current state of `workspace`. Return the version's id, or the last one's if nothing was touched.

        Nothing means nothing: if the id stayed the same, the caller can be sure that no name, content, mode, time or
        attribute was written, not even of something that a version can't contain. `whole`: all files and folders must
        be in it.

        Raises:
            WorkspaceError: it can't be kept, or is larger than a version can be.
        """
        known = self._known.setdefault((workspace, store), _Known())
        looked = time.time_ns()
        try:
            if not os.path.lexists(store):
                _make(store)
            all_entries, marks = _look(workspace, known)
        except OSError as error:
            raise WorkspaceError(
                f"The workspace can't be read ({error.strerror}), so no version of its files was kept."
            ) from error

        entries = [entry for entry in all_entries if entry.mode]
        seals = {entry.path: entry.seal for entry in entries}
        changed = [entry for entry in entries if entry.data is not None]
        gone = known.seals.keys() - seals.keys()
        touched = gone or marks != known.marks or any(_is_new(entry, known) for entry in changed)

        if changed or touched or not known.version:
            if known.made % _TIDY == 0:
                _tidy(store, known.version)
            made = _import(store, known.version, changed, gone)
            # Files written just before the last walk are read again, and may be unchanged.
            if touched or not known.version or _tree(store, made) != _tree(store, known.version):
                known.version = made
            known.made += 1

        known.seals = seals
        known.looked = looked
        known.marks = marks
        known.left_out = frozenset(entry.path for entry in all_entries if not entry.mode)
        if whole and known.left_out:
            name = os.fsdecode(min(known.left_out))
            raise WorkspaceError(
                f"No version contains {name!r}: it is too large, nested too deeply, or can't be read."
            )
        return known.version

    def restore(self, workspace: Path, store: Path, version: str, *, path: str = "") -> None:
        """Restore `workspace`, or only what is at `path`, to `version`.

        The current state is kept first; files that can't be kept stay.

        Raises:
            WorkspaceError: there is no such version, the current state would be lost, or it can't be written.
        """
        wanted = _tree(store, version)
        now = self._keep_first(workspace, store) if os.listdir(workspace) else {}
        is_empty = not now
        if path:
            name = _stored(path)
            wanted = {each: entry for each, entry in wanted.items() if _concerns(each, name)}
            now = {each: entry for each, entry in now.items() if _concerns(each, name)}

        if not is_empty:
            self._refuse_loss(workspace, store, wanted.keys())
        written = {each: entry for each, entry in wanted.items() if now.get(each) != entry}
        _change(workspace, store, written, now.keys() - wanted.keys())

    def with_file(self, workspace: Path, store: Path, path: str, version: str) -> str:
        """Keep the current state of `workspace`, but with the file at `path` as it is, or is missing, in `version`.

        Raises:
            WorkspaceError: there is no such version or file, it is as it was, or the current state can't be kept.
        """
        name = _stored(path)
        wanted = _tree(store, version)
        if any(each.startswith(name + b"/") for each in wanted):
            raise WorkspaceError(
                f"{_shown(name)!r} was a folder in that version. Restore the files in it one by one."
            )

        now = self._keep_first(workspace, store)
        if name not in wanted and name not in now:
            raise WorkspaceError(f"There is no file {_shown(name)!r}, neither in that version nor now.")
        if wanted.get(name) == now.get(name):
            raise WorkspaceError(f"The file {_shown(name)!r} is as it was in that version.")

        restored = list[_Entry]()
        gone = {each for each in now if each.endswith(_EMPTY) and _concerns(each, name)}
        if name in wanted:
            self._refuse_loss(workspace, store, {name})
            mode, identity = wanted[name]
            [(_, data)] = _contents(store, {name: identity})
            restored.append(_Entry(name, mode, (0, 0, 0, 0, 0), data))
        else:
            gone.add(name)
        return _import(store, self._known[workspace, store].version, restored, gone)

    def _refuse_loss(self, workspace: Path, store: Path, wanted: Set[bytes]) -> None:
        """Raise `WorkspaceError` if writing these paths would replace what no version contains."""
        known = self._known.get((workspace, store), _Known())
        lost = _in_the_way(known.left_out, wanted)
        if lost:
            raise WorkspaceError(
                f"No version contains the current {os.fsdecode(lost[0])!r} of the workspace, and "
                "restoring would replace it. Move it away first. Nothing was restored."
            )

    def take_over(self, workspace: Path, store: Path, base: str, copy: str) -> Taken:
        """Apply the differences between the versions `base` and `copy` to `workspace`, all or nothing.

        Nothing is applied if one of those paths was changed there differently since `base`. The current state is kept
        first. Repeating it after a crash is harmless.

        Raises:
            WorkspaceError: there is no such version, or the workspace can't be kept or written.
        """
        old = _tree(store, base)
        new = _tree(store, copy)
        now = _tree(store, self.keep(workspace, store))

        # What a take-over before a crash has written already is not due again.
        differs = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
        due = {path for path in differs if now.get(path) != new.get(path)}
        written = {path: new[path] for path in due if path in new}

        # In conflict is what was changed here as well, and what would be replaced though the copy never had it.
        added_here = {path for path in now.keys() - old.keys() if now[path] != new.get(path)}
        replaceable = self._known[workspace, store].left_out | added_here
        conflicts = {path for path in due if now.get(path) != old.get(path)}
        conflicts.update(_in_the_way(replaceable, written.keys()))
        conflicts = {path for path in conflicts if not path.endswith(_EMPTY)}
        if conflicts:
            return Taken("", tuple(_shown(path) for path in sorted(conflicts)[:_CONFLICTS]))

        _change(workspace, store, written, due - new.keys())
        return Taken(self.keep(workspace, store))

    def forget(self, workspace: Path, store: Path) -> None:
        """Forget a workspace whose folder is gone."""
        self._known.pop((workspace, store), None)

    def _keep_first(self, workspace: Path, store: Path) -> Mapping[bytes, tuple[bytes, bytes]]:
        try:
            return _tree(store, self.keep(workspace, store))
        except WorkspaceError as error:
            raise WorkspaceError(
                f"{error} Nothing was restored, because the current content of the workspace would be lost."
            ) from error

    def changes(self, store: Path, old: str, new: str) -> str:
        """The changes from one version to another, as a patch with a summary in front.

        Raises:
            WorkspaceError: there is no such version.
        """
        for version in (old, new):
            _tree(store, version)
        options = ("--no-ext-diff", "--no-textconv", "--no-renames", "--no-color", "--stat", "--patch")
        return _git(store, "diff", *options, old, new, most=_LISTED).decode("utf-8", "replace")

    def files(self, store: Path, version: str) -> Sequence[KeptFile]:
        """The files of a version, by path.

        Raises:
            WorkspaceError: there is no such version.
        """
        return version_reader.files(store, version)

    def contents(self, store: Path, files: Sequence[KeptFile]) -> Iterator[bytes]:
        """The contents of files of a version, in order; for a link, its target.

        Raises:
            WorkspaceError: part of it was lost.
        """
        return version_reader.contents(store, files)

    def steps(self, store: Path, versions: Sequence[str]) -> Sequence[Sequence[PathStep]]:
        """The changes from each version to the next: one row fewer than there are versions.

        Raises:
            WorkspaceError: there is no such version.
        """
        return version_reader.steps(store, versions)

    def patch(self, store: Path, old: KeptFile | None, new: KeptFile | None) -> str:
        """The differences between two contents as hunks of a unified diff, or a sentence where a diff shows nothing.

        Raises:
            WorkspaceError: part of it was lost.
        """
        return version_reader.patch(store, old, new)

    def share(self, store: Path, target: Path) -> None:
        """Create the store `target` with all objects of `store`, as hard links where possible.

        Raises:
            WorkspaceError: it contains something other than objects, or can't be copied.
        """
        objects = check_objects(store)
        try:
            _make(target)
            for folder in sorted(one for one in objects.iterdir() if one.is_dir()):
                (target / OBJECTS / folder.name).mkdir(exist_ok=True)
                for file in sorted(folder.iterdir()):
                    _second_name(file, target / OBJECTS / folder.name / file.name)
        except OSError as error:
            raise WorkspaceError(f"The versions in {store} can't be copied ({error.strerror}).") from error
        check_objects(target)

    def bring(self, store: Path, target: Path) -> int:
        """Create the store `target` from the valid objects of a foreign store. Return how many were left out.

        Raises:
            WorkspaceError: it has no objects, or they can't be stored.
        """
        return bring(store, target)

    def missing(self, store: Path, versions: Sequence[str]) -> Sequence[str]:
        """Implements `core.ports.Versions.missing`."""
        if not os.path.lexists(store):
            return list(versions)
        asked = "".join(f"{_checked(version)}\n" for version in versions).encode()
        answers = _git(store, "cat-file", "--batch-check=%(objectname) %(objecttype)", given=asked)

        lines = [line.split() for line in answers.decode().splitlines()]
        return [version for version, line in zip(versions, lines, strict=True) if line[1] != "commit"]

    def pack(self, store: Path, versions: Sequence[str], known: Sequence[str] = ()) -> bytes:
        """Implements `core.ports.Versions.pack`: a pack that can be read without any other."""
        asked = [*map(_checked, versions), *(f"^{_checked(version)}" for version in known)]
        given = "".join(f"{line}\n" for line in asked).encode()
        return _git(store, "pack-objects", "--revs", "--stdout", "-q", given=given)

    def unpack(self, store: Path, pack: bytes) -> None:
        """Implements `core.ports.Versions.unpack`: git itself names each object by its content."""
        try:
            if not os.path.lexists(store):
                _make(store)
        except OSError as error:
            raise WorkspaceError(f"The versions can't be stored in {store} ({error.strerror}).") from error
        _git(store, "index-pack", "--stdin", given=pack)


def available() -> bool:
    """Whether git is installed."""
    return shutil.which("git") is not None


# --- the store ------------------------------------------------------------------------------------------


def _make(store: Path) -> None:
    draft = store.with_name(f".{store.name}-{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    (draft / OBJECTS / "pack").mkdir(parents=True)
    os.rename(draft, store)


def _second_name(source: Path, target: Path) -> None:
    """Link or copy an object. Objects never change, so two stores can share them."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copyfile(source, target, follow_symlinks=False)


def _checked(version: str) -> str:
    if not _VERSION.fullmatch(version):
        raise WorkspaceError(f"{version[:40]!r} is not the id of a version.")
    return version


def _git(store: Path, *arguments: str, given: bytes = b"", tip: str = "", most: int = OUTPUT) -> bytes:
    return run_git(check_objects(store), *arguments, given=given, tip=tip, most=most)


def _tidy(store: Path, newest: str) -> None:
    """Pack the store, so that small changes take little space. Drops nothing: forks and records may name any object."""
    _git(store, "repack", "-a", "-d", "-k", "-q", "-n", tip=newest)
    size = sum(file.lstat().st_size for file in store.rglob("*"))
    if size > STORE:
        raise WorkspaceError(f"The versions in {store} take more than {STORE >> 30} GiB; no more are kept.")


def _import(store: Path, before: str, changed: list[_Entry], gone: set[bytes]) -> str:
    """Create a version from `before` (or from nothing if empty) and the changes. Return its id."""
    lines = [f"commit {_BRANCH}\nmark :1\ncommitter iact <> {int(time.time())} +0000\ndata 0\n".encode()]
    # Without a known newest version, this one starts from nothing: equal contents are stored only once anyway.
    lines.append(f"from {before}\n".encode() if before else b"")
    lines += [b"D " + _quoted(path) + b"\n" for path in sorted(gone)]
    for entry in changed:
        assert entry.data is not None
        head = b"M " + entry.mode + b" inline " + _quoted(entry.path)
        lines.append(head + f"\ndata {len(entry.data)}\n".encode() + entry.data + b"\n")
    lines.append(b"\nget-mark :1\ndone\n")
    answer = _git(store, "fast-import", "--quiet", "--force", "--done", given=b"".join(lines))
    version = answer.decode("ascii", "replace").strip()
    if not _VERSION.fullmatch(version):
        raise WorkspaceError(f"The versions in {store} can't be used: git returned no id.")
    return version


def _quoted(path: bytes) -> bytes:
    """A path in fast-import's form: in quotes, with every unusual byte as three octal digits."""
    return (
        b'"' + b"".join(bytes([b]) if chr(b) in _PLAIN or b == 0x25 else b"\\%03o" % b for b in path) + b'"'
    )


def _tree(store: Path, version: str) -> Mapping[bytes, tuple[bytes, bytes]]:
    """Mode and object of everything in a version, by path."""
    if not _VERSION.fullmatch(version) or not os.path.lexists(store):
        raise WorkspaceError(f"There is no version {version[:40]!r} of this workspace.")

    entries = {}
    listed = _git(store, "ls-tree", "-r", "-z", "--full-tree", version, most=_LISTED)
    for line in listed.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        mode, _, identity = about.split(b" ")
        entries[path] = (mode, identity)
    return entries


def _contents(store: Path, objects: Mapping[bytes, bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The contents of objects, by path, in the given order."""
    if not objects:
        return

    given = b"".join(identity + b"\n" for identity in objects.values())
    answer = _git(store, "cat-file", "--batch", given=given)
    place = 0
    for path in objects:
        end = answer.index(b"\n", place)
        about = answer[place:end].split(b" ")
        if about[1:2] != [b"blob"]:
            raise WorkspaceError(
                "That version can't be restored, because part of it was lost or was never copied here."
            )

        size = int(about[2])
        start = end + 1
        yield path, answer[start : start + size]
        place = start + size + 1


# --- the workspace --------------------------------------------------------------------------------------


def _change(
    workspace: Path, store: Path, written: Mapping[bytes, tuple[bytes, bytes]], gone: Set[bytes]
) -> None:
    """Write these objects to the workspace, and delete the paths in `gone`.

    Raises:
        WorkspaceError: it can't be written, or an object is lost.
    """
    contents = list(_contents(store, {path: written[path][1] for path in sorted(written)}))
    try:
        root = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for path in sorted(gone, reverse=True):
                _delete(root, path)
            for path, data in contents:
                _write(root, path, written[path][0], data)
        finally:
            os.close(root)
    except OSError as error:
        raise WorkspaceError(f"The workspace can't be written ({error.strerror}).") from error


def _shown(path: bytes) -> str:
    """A stored path for people, whatever bytes it has."""
    name = b"/".join(_parts(path)).decode("utf-8", "replace")
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in name)


def _stored(path: str) -> bytes:
    """The store's form of a path that people and pages were shown.

    Raises:
        WorkspaceError: it names nothing.
    """
    parts = path_names.decode(path)
    if parts is None:
        raise WorkspaceError(f"{path[:200]!r} is not the path of a file in the workspace.")
    return b"/".join(map(_encoded, parts))


def _concerns(path: bytes, name: bytes) -> bool:
    """Whether an entry at `path` and a file `name` can't both exist, or are the same."""
    is_same = path == name
    is_below = path.startswith(name + b"/")
    folder = path.removesuffix(_EMPTY).removesuffix(b"/") if path.endswith(_EMPTY) else path
    return is_same or is_below or name.startswith(folder + b"/")


def _encoded(name: str) -> bytes:
    """A name in the store's form: git rejects names that it uses itself."""
    raw = os.fsencode(name).replace(b"%", b"%25")
    return b"%2e" + raw[1:] if raw.lower().startswith(b".git") else raw


def _is_new(entry: _Entry, known: _Known) -> bool:
    return entry.seal != known.seals.get(entry.path)


def _look(workspace: Path, known: _Known) -> tuple[list[_Entry], dict[bytes, Seal]]:
    """Walk the workspace. Returns entries, with contents where changed, and seals of what no version contains.

    Raises:
        WorkspaceError: it is larger than a version can be.
    """
    # Sizes first, so that too large a workspace is not read at every call.
    for reading in (False, True):
        entries: list[_Entry] = []
        marks: dict[bytes, Seal] = {}
        size = 0

        root = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        for entry, length in _walk(root, b"", 0, known, marks, reading=reading):
            entries.append(entry)
            size += length
            if size > TOTAL or len(entries) > MOST:
                raise WorkspaceError(
                    f"The workspace holds more than {TOTAL >> 20} MiB or {MOST} files; "
                    "no version of it is kept while it does."
                )
    return entries, marks


def _in_the_way(left_out: Set[bytes], wanted: Set[bytes]) -> list[bytes]:
    """The paths that no version contains, and that writing the paths `wanted` would replace."""

    def folders(path: bytes) -> Iterator[bytes]:
        for place, byte in enumerate(path):
            if byte == 0x2F:
                yield path[:place]

    replaced = {path for path in left_out if path in wanted or not wanted.isdisjoint(folders(path))}
    replaced.update(*(left_out & {*folders(path)} for path in wanted))
    return sorted(replaced)


def _walk(
    folder: int, prefix: bytes, depth: int, known: _Known, marks: dict[bytes, Seal], *, reading: bool
) -> Iterator[tuple[_Entry, int]]:
    """Yield the entries below an open folder, each with its size, and close the folder. `reading`: with contents.

    `marks` receives the seals of what no version contains.
    """
    try:
        marks[prefix] = _seal(os.fstat(folder))
        with os.scandir(folder) as entries:
            names = sorted(entries, key=lambda entry: os.fsencode(entry.name))

        # Git knows no empty folders: a file that only the store has says that there is one.
        if prefix and not names:
            path = prefix + _EMPTY
            data = None if path in known.seals else b""
            yield _Entry(path, b"100644", (0, 0, 0, 0, 0), data), 0

        for entry in names:
            path = prefix + _encoded(entry.name)
            try:
                status = entry.stat(follow_symlinks=False)
                seal = _seal(status)
                if stat.S_ISDIR(status.st_mode) and depth < _DEPTH:
                    below = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                    yield from _walk(below, path + b"/", depth + 1, known, marks, reading=reading)

                elif stat.S_ISLNK(status.st_mode):
                    target = os.fsencode(os.readlink(entry.name, dir_fd=folder))
                    unchanged = known.seals.get(path) == seal
                    yield _Entry(path, b"120000", seal, None if unchanged else target), len(target)

                elif stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST:
                    file = _Entry(path, b"100644", seal, None)
                    if reading:
                        file = _file(entry.name, path, folder, known)
                    yield file, status.st_size

                # Too large, or too deep: no version contains it.
                elif stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
                    marks[path] = seal
                    yield _Entry(path, b"", seal, None), 0
                else:
                    marks[path] = seal
            except FileNotFoundError:
                continue
            except OSError:
                # It changed meanwhile, or can't be read: the next version may have it.
                yield _Entry(path, b"", (0, 0, 0, 0, 0), None), 0
    finally:
        os.close(folder)


def _file(name: str, path: bytes, folder: int, known: _Known) -> _Entry:
    # What was a file a moment ago may be a pipe now: NONBLOCK prevents waiting for it.
    opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("no file")

        # A file that was written just before the last walk may have changed after it with the same times.
        seal = _seal(status)
        mode = b"100755" if status.st_mode & 0o100 else b"100644"
        settled = max(status.st_mtime_ns, status.st_ctime_ns) < known.looked - _RACY
        if settled and known.seals.get(path) == seal:
            return _Entry(path, mode, seal, None)

        with os.fdopen(os.dup(opened), "rb") as stream:
            return _Entry(path, mode, seal, stream.read(LARGEST))
    finally:
        os.close(opened)


def _seal(status: os.stat_result) -> Seal:
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _parts(path: bytes) -> list[bytes]:
    """The path's names in the file system's form.

    Raises:
        OSError: one of them would lead elsewhere, which is never true of a path that we stored.
    """
    parts = [unquote_to_bytes(quote_from_bytes(part, safe=b"%")) for part in path.split(b"/")]
    if any(part in (b"", b".", b"..") or b"/" in part or b"\0" in part for part in parts):
        raise OSError(0, "a stored path is wrong")
    return parts


def _delete(root: int, path: bytes) -> None:
    """Remove a file and the folders that become empty, as long as they still are files and folders."""
    *folders, name = _parts(path)
    opened = [os.dup(root)]
    try:
        for folder in folders:
            opened.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened[-1]))
        if not path.endswith(_EMPTY):
            os.unlink(name, dir_fd=opened[-1])
        for folder, above in zip(reversed(folders), reversed(opened[:-1]), strict=True):
            os.rmdir(folder, dir_fd=above)
    except OSError:
        return  # it has become something else, or a folder is not empty
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _write(root: int, path: bytes, mode: bytes, data: bytes) -> None:
    """Put a file or a link in its place, replacing whatever is there."""
    *folders, name = _parts(path)
    owner = os.fstat(root)
    here = os.dup(root)
    try:
        for folder in folders:
            above = here
            here = _enter(above, folder, owner)
            os.close(above)
        if path.endswith(_EMPTY):
            return

        draft = b".iact-restoring"
        _clear(here, draft)
        if mode == b"120000":
            os.symlink(data, draft, dir_fd=here)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            permissions = 0o755 if mode == b"100755" else 0o644
            with os.fdopen(os.open(draft, flags, 0o600, dir_fd=here), "wb") as stream:
                stream.write(data)
                os.fchmod(stream.fileno(), permissions)

        if os.geteuid() == 0:
            os.chown(draft, owner.st_uid, owner.st_gid, dir_fd=here, follow_symlinks=False)
        if stat.S_ISDIR(_mode(here, name)):
            _clear(here, name)
        os.rename(draft, name, src_dir_fd=here, dst_dir_fd=here)
    finally:
        os.close(here)


def _enter(above: int, name: bytes, owner: os.stat_result) -> int:
    """Open the folder `name`; create it if it does not exist or is not a folder."""
    mode = _mode(above, name)
    if not stat.S_ISDIR(mode):
        if mode:
            os.unlink(name, dir_fd=above)
        os.mkdir(name, 0o755, dir_fd=above)
        if os.geteuid() == 0:
            os.chown(name, owner.st_uid, owner.st_gid, dir_fd=above, follow_symlinks=False)
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)


def _mode(folder: int, name: bytes) -> int:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return 0


def _clear(folder: int, name: bytes) -> None:
    """Remove whatever is there; `rmtree` follows no link."""
    mode = _mode(folder, name)
    if stat.S_ISDIR(mode):
        shutil.rmtree(os.fsdecode(name), dir_fd=folder)
    elif mode:
        os.unlink(name, dir_fd=folder)
