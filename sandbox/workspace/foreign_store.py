"""Reads the objects of a store of versions from elsewhere, and writes the valid ones to one of ours.

No program that trusts a repository reads the other store. None of its configuration, hooks, attributes, alternates,
remotes, indexes or references is ever opened, only files named like objects and packs, by descriptor and without
following links. Each object is inflated within bounds, and we compute its name from its content. Git's formats are few
and small: a loose object is one deflated stream (gitformat-loose), and a pack is a series of them, some of which are
stored as deltas against others (gitformat-pack). A pack's index is not needed, and not trusted.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iact.core.errors import WorkspaceError
from iact.sandbox.workspace.git import FOLDER, LOOSE, OBJECTS, PACK

LARGEST: Final = 64 << 20
"""The most bytes of one object: the same as for a file in a version."""
TOTAL: Final = 1 << 30
"""The most bytes of all objects of one store together, inflated; the rest is left out."""
MOST: Final = 200_000
"""The most objects of one store, and entries of one pack."""
_WORK: Final = 4 << 30
"""The most bytes processed in total: a small pack can use the same large object again and again."""
_ROUNDS: Final = 64
"""How often a pack's entries that wait for others are tried again; git makes no longer chains."""
_FILE: Final = 512 << 20
"""The most bytes of one pack."""
_KINDS: Final = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_NAMES: Final = frozenset(_KINDS.values())
_OFFSET, _REFERENCE = 6, 7
_PIECE: Final = 1 << 16


class _Unsound(Exception):
    """The data is not a valid object, or is too large."""


@dataclass(slots=True)
class _Making:
    """A store under construction. `left_out`: how many objects were invalid, or did not fit."""

    objects: Path
    room: int = TOTAL
    work: int = _WORK
    count: int = 0
    left_out: int = 0
    kinds: dict[str, bytes] = field(default_factory=dict)

    def keep(self, kind: bytes, content: bytes, name: str = "") -> str:
        """Write an object, if its name is right and it fits. Return its name."""
        self.spend(len(content))
        whole = b"%s %d\0" % (kind, len(content)) + content
        found = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        if name and found != name:
            raise _Unsound
        if found not in self.kinds:
            if self.count >= MOST or self.room < len(content):
                raise _Unsound
            self.count += 1
            self.room -= len(content)
            folder = self.objects / found[:2]
            folder.mkdir(exist_ok=True)
            with (folder / found[2:]).open("xb") as stream:
                stream.write(zlib.compress(whole, 1))
            self.kinds[found] = kind
        return found

    def spend(self, size: int) -> None:
        """Count processed bytes."""
        self.work -= size
        if self.work < 0:
            raise _Unsound

    def content(self, name: str) -> bytes:
        """The content of an object that was written."""
        with (self.objects / name[:2] / name[2:]).open("rb") as stream:
            whole = zlib.decompress(stream.read())
        self.spend(len(whole))
        return whole[whole.index(b"\0") + 1 :]


def bring(store: Path, target: Path) -> int:
    """Create the store `target` from the valid objects in `store`. Return how many were left out.

    Raises:
        WorkspaceError: there is no folder of objects, or `target` can't be written.
    """
    making = _Making(target / OBJECTS)
    try:
        opened = _open_folders(store)
    except OSError as error:
        raise WorkspaceError(f"The versions in {store} can't be read ({error.strerror}).") from error
    try:
        (making.objects / "pack").mkdir(parents=True)
        packs: list[str] = []
        for name in _names(opened):
            if FOLDER.fullmatch(name):
                _take_loose(opened, name, making)
            elif name == "pack":
                packs += _packs(opened)
        for name in packs:
            _take_pack(opened, name, making)
    except OSError as error:
        raise WorkspaceError(f"The versions can't be stored in {target} ({error.strerror}).") from error
    finally:
        os.close(opened)
    return making.left_out


def _open_folders(store: Path) -> int:
    above = os.open(store, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        return _open_folder(OBJECTS, above)
    finally:
        os.close(above)


def _open_folder(name: str, above: int) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)


def _read_file(name: str, folder: int, most: int) -> bytes:
    """Read a plain file.

    Raises:
        OSError: it is not one, is larger than `most`, or can't be read.
    """
    # NONBLOCK: opening a pipe does not wait for its writer.
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            raise OSError(0, "no plain file of a fit size")
        return stream.read(most)


# --- loose objects ------------------------------------------------------------------------------------------


def _take_loose(objects: int, name: str, making: _Making) -> None:
    try:
        folder = _open_folder(name, objects)
    except OSError:
        making.left_out += 1
        return
    try:
        for rest in _names(folder):
            if LOOSE.fullmatch(rest):
                making.left_out += not _take_one(folder, name, rest, making)
    finally:
        os.close(folder)


def _take_one(folder: int, first: str, rest: str, making: _Making) -> bool:
    try:
        data = _read_file(rest, folder, LARGEST)
    except OSError:
        return False
    try:
        whole, _ = _inflate(memoryview(data), LARGEST + 64)
        kind, content = _split(whole)
        making.keep(kind, content, first + rest)
    except _Unsound:
        return False
    return True


def _split(whole: bytes) -> tuple[bytes, bytes]:
    """The kind and content of a loose object."""
    end = whole.find(b"\0", 0, 40)
    kind, _, size = whole[: max(end, 0)].partition(b" ")
    if kind not in _NAMES or size != b"%d" % (len(whole) - end - 1):
        raise _Unsound
    return kind, whole[end + 1 :]


def _inflate(data: memoryview, most: int) -> tuple[bytes, int]:
    """Inflate the stream at the start of `data`, to at most `most` bytes. Return the content and the stream's size."""
    inflater, found, place = zlib.decompressobj(), bytearray(), 0
    try:
        while not inflater.eof:
            piece = inflater.unconsumed_tail or data[place : place + _PIECE]
            if not inflater.unconsumed_tail:
                place += len(piece)
            got = inflater.decompress(piece, _PIECE)
            found += got
            if len(found) > most or (not piece and not got):
                raise _Unsound
    except zlib.error as error:
        raise _Unsound from error
    return bytes(found), place - len(inflater.unused_data)


# --- packs --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Delta:
    """An object stored as a delta. `base`: the offset of another object in the pack, or an object's name."""

    place: int
    base: int | str
    data: bytes


def _packs(objects: int) -> list[str]:
    try:
        folder = _open_folder("pack", objects)
    except OSError:
        return []
    try:
        return [name for name in _names(folder) if PACK.fullmatch(name) and name.endswith(".pack")]
    finally:
        os.close(folder)


def _take_pack(objects: int, name: str, making: _Making) -> None:
    folder = _open_folder("pack", objects)
    try:
        data = _read_file(name, folder, _FILE)
    except OSError:
        making.left_out += 1
        return
    finally:
        os.close(folder)
    places: dict[int, str] = {}
    waiting: list[_Delta] = []
    try:
        for place, kind, base, content in _entries(memoryview(data)):
            if kind in _KINDS:
                _note(making, places, place, _KINDS[kind], content)
            else:
                delta = _Delta(place, base, content)
                if not _resolve(making, places, delta):
                    waiting.append(delta)
    except _Unsound:
        making.left_out += 1  # entries after it can no longer be found
    for _ in range(_ROUNDS):  # a base may come after its delta
        left = [one for one in waiting if not _resolve(making, places, one)]
        if len(left) == len(waiting):
            break
        waiting = left
    making.left_out += len(waiting)


def _note(making: _Making, places: dict[int, str], place: int, kind: bytes, content: bytes) -> None:
    try:
        places[place] = making.keep(kind, content)
    except _Unsound:
        making.left_out += 1


def _resolve(making: _Making, places: dict[int, str], delta: _Delta) -> bool:
    """Build the object of a delta if its base exists. Return whether it did."""
    base = places.get(delta.base, "") if isinstance(delta.base, int) else delta.base
    if base not in making.kinds:
        return False
    try:
        content = _apply(making.content(base), delta.data)
    except _Unsound:
        making.left_out += 1
    else:
        _note(making, places, delta.place, making.kinds[base], content)
    return True


def _entries(data: memoryview) -> Iterator[tuple[int, int, int | str, bytes]]:
    """Every entry of a pack: its offset, its kind, the base of a delta, and its content."""
    if bytes(data[:8]) not in (b"PACK\0\0\0\2", b"PACK\0\0\0\3"):
        raise _Unsound
    count, place, room = int.from_bytes(data[8:12], "big"), 12, TOTAL
    if count > MOST:
        raise _Unsound
    for _ in range(count):
        begin = place
        byte, place = _byte(data, place)
        kind, size, shift = byte >> 4 & 7, byte & 15, 4
        while byte & 0x80:
            byte, place = _byte(data, place)
            size |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise _Unsound
        base: int | str = ""
        if kind == _OFFSET:
            back, place = _back(data, place)
            base = begin - back
        elif kind == _REFERENCE:
            base, place = bytes(data[place : place + 20]).hex(), place + 20
        elif kind not in _KINDS:
            raise _Unsound
        room -= size
        if size > LARGEST or room < 0:
            raise _Unsound
        content, length = _inflate(data[place:], size)
        if len(content) != size:
            raise _Unsound
        place += length
        yield begin, kind, base, content


def _byte(data: memoryview, place: int) -> tuple[int, int]:
    if place >= len(data):
        raise _Unsound
    return data[place], place + 1


def _back(data: memoryview, place: int) -> tuple[int, int]:
    """How far before an entry its base is."""
    byte, place = _byte(data, place)
    back = byte & 0x7F
    while byte & 0x80:
        byte, place = _byte(data, place)
        back = (back + 1 << 7) | byte & 0x7F
        if back >= 1 << 62:
            raise _Unsound
    return back, place


def _apply(base: bytes, delta: bytes) -> bytes:
    """Apply a delta to its base."""
    view = memoryview(delta)
    size, place = _size(view, 0)
    wanted, place = _size(view, place)
    if size != len(base) or wanted > LARGEST:
        raise _Unsound
    made = bytearray()
    while place < len(view):
        code, place = _byte(view, place)
        if code & 0x80:
            numbers = [0] * 7
            for bit in range(7):
                if code >> bit & 1:
                    numbers[bit], place = _byte(view, place)
            start = int.from_bytes(bytes(numbers[:4]), "little")
            length = int.from_bytes(bytes(numbers[4:]), "little") or 0x10000
            if start + length > len(base):
                raise _Unsound
            made += base[start : start + length]
        elif code:
            made += view[place : place + code]
            place += code
        else:
            raise _Unsound
        if len(made) > wanted:
            raise _Unsound
    if len(made) != wanted:
        raise _Unsound
    return bytes(made)


def _size(data: memoryview, place: int) -> tuple[int, int]:
    size = shift = 0
    while True:
        byte, place = _byte(data, place)
        size |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return size, place
        if shift > 63:
            raise _Unsound
