"""Opens wheels inside a sandbox, which gets nothing but them: what they need, and their files.

The archives come from strangers. Nothing of them runs, and whatever a flaw in reading them allows stays in here. What is
unpacked is bounded, and consists of files and folders below the folder that was named. The host looks again before it
takes them over (`sandbox.packages`).

    unpack_inside.py --socket PATH      answers `needs` and `unpack` on a socket, once the health service serves
"""

from __future__ import annotations

import configparser
import json
import re
import stat
import sys
import zipfile
from collections.abc import Iterator, Mapping
from email.parser import HeaderParser
from pathlib import Path
from typing import Final

METHOD: Final = "/iact.unpack/Answer"
"""The only method: a JSON object with `do` and its arguments, and a JSON object in return."""
SERVICE: Final = "iact.ext_module.v1.ExtModule"
"""What the health service calls it: hosts ask every module for this name."""

WHEELS: Final = "wheels"
SITE: Final = "site"
"""The folders of the workspace with the wheels, and for what is in them."""

MOST_FILES: Final = 20_000
MOST_BYTES: Final = 512 << 20
"""The most files and bytes that the wheels of one module may have in them."""
_LONGEST_PATH: Final = 400
_METADATA: Final = 2_000_000
"""The largest metadata of a wheel that is read, in bytes."""
_AT_ONCE: Final = 1 << 20

_SCRIPT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TARGET: Final = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)")


class UnfitPackage(Exception):
    """A wheel has something in it that no wheel needs; the message says what."""


class Room:
    """What may still be unpacked."""

    def __init__(self) -> None:
        self.files = MOST_FILES
        self.bytes = MOST_BYTES

    def take(self, count: int) -> None:
        """Use up bytes.

        Raises:
            UnfitPackage: there are not as many left.
        """
        self.bytes -= count
        if self.bytes < 0:
            raise UnfitPackage(f"the packages have more than {MOST_BYTES >> 20} MiB in them")

    def take_file(self) -> None:
        """Use up one file.

        Raises:
            UnfitPackage: none is left.
        """
        self.files -= 1
        if self.files < 0:
            raise UnfitPackage(f"the packages have more than {MOST_FILES} files in them")


def needs(wheel: Path) -> dict[str, object]:
    """The name, the version and the dependencies of a wheel, as its metadata says.

    Raises:
        UnfitPackage: it has no metadata that can be read.
    """
    with _opened(wheel) as archive:
        found = [one for one in archive.infolist() if one.filename.endswith(".dist-info/METADATA")]
        if len(found) != 1 or found[0].file_size > _METADATA:
            raise UnfitPackage("it has no metadata that can be read")
        with archive.open(found[0]) as source:
            text = source.read(_METADATA).decode("utf-8", "replace")
    head = HeaderParser().parsestr(text)
    listed = [str(one) for one in head.get_all("Requires-Dist") or ()]
    return {"name": str(head["Name"]), "version": str(head["Version"]), "needs": listed}


def unpack(wheel: Path, site: Path, room: Room) -> None:
    """Unpack a wheel into `site`, as far as Python needs it.

    Raises:
        UnfitPackage: it has more in it than files, or more than there is room for.
    """
    with _opened(wheel) as archive:
        entries = archive.infolist()
        names = [one.filename for one in entries]
        if len(set(names)) != len(names):
            raise UnfitPackage("it has a name twice")
        for entry in entries:
            place = _place_of(entry)
            if place is not None:
                _write(archive, entry, site.joinpath(*place), room)
    _add_scripts(site, wheel, room)


def _opened(wheel: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(wheel)
    except (OSError, zipfile.BadZipFile, ValueError) as error:
        raise UnfitPackage("it is damaged") from error


def _place_of(entry: zipfile.ZipInfo) -> tuple[str, ...] | None:
    """Where a file belongs below the site; None for what is not needed.

    Raises:
        UnfitPackage: it is not a plain file, or belongs nowhere.
    """
    name = entry.filename
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR) or entry.flag_bits & 0x1:
        raise UnfitPackage(f"{name[:100]!r} is neither a file nor a folder")

    parts = name.removesuffix("/").split("/")
    outside = any(part in ("", ".", "..") for part in parts) or "\\" in name or "\0" in name or ":" in name
    if outside or len(name) > _LONGEST_PATH:
        raise UnfitPackage(f"{name[:100]!r} is not a place in the package")

    if name.endswith("/") or kind == stat.S_IFDIR:
        return None
    if not parts[0].endswith(".data") or len(parts) < 3:
        return tuple(parts)
    match parts[1]:
        case "purelib" | "platlib":
            return tuple(parts[2:])
        case "scripts":
            return ("bin", *parts[2:])
        case _:
            return None


def _write(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, place: Path, room: Room) -> None:
    room.take_file()
    runs = bool((entry.external_attr >> 16) & 0o100)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(entry) as source, place.open("wb") as target:
            while chunk := source.read(_AT_ONCE):
                room.take(len(chunk))
                target.write(chunk)
        place.chmod(0o755 if runs else 0o644)
    except (OSError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise UnfitPackage(f"{entry.filename[:100]!r} can't be unpacked") from error


def _add_scripts(site: Path, wheel: Path, room: Room) -> None:
    """Write the programs that a wheel names, as an installer does."""
    for name, target in _scripts_of(wheel):
        script = site / "bin" / name
        match = _TARGET.fullmatch(target.partition("[")[0].strip())
        if match is None or not _SCRIPT.fullmatch(name):
            raise UnfitPackage(f"its program {name[:100]!r} can't be read")
        module, function = match.groups()
        text = (
            "#!/usr/bin/python3\nimport sys\n"
            f"from {module} import {function.split('.')[0]}\n"
            f"if __name__ == '__main__':\n    sys.exit({function}())\n"
        )
        room.take_file()
        room.take(len(text))
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(text)
        script.chmod(0o755)


def _scripts_of(wheel: Path) -> Iterator[tuple[str, str]]:
    with _opened(wheel) as archive:
        found = [one for one in archive.infolist() if one.filename.endswith(".dist-info/entry_points.txt")]
        if not found:
            return
        if found[0].file_size > _METADATA:
            raise UnfitPackage("the list of its programs is too long")
        with archive.open(found[0]) as source:
            text = source.read(_METADATA).decode("utf-8", "replace")

    listed = configparser.RawConfigParser(delimiters=("=",), strict=False)
    listed.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their capitals
    try:
        listed.read_string(text)
    except configparser.Error as error:
        raise UnfitPackage("the list of its programs can't be read") from error
    if listed.has_section("console_scripts"):
        yield from listed.items("console_scripts")


def answer(asked: Mapping[str, object], workspace: Path) -> dict[str, object]:
    """Do what is asked: `needs` of one wheel, or `unpack` several. `{"refused": why}` if one of them is not in order."""
    listed = asked.get("wheels")
    names = [str(name) for name in listed] if isinstance(listed, list) else []
    name = ""
    try:
        if asked.get("do") == "needs":
            (name,) = names
            return needs(workspace / WHEELS / name)
        room = Room()
        for name in names:
            unpack(workspace / WHEELS / name, workspace / SITE, room)
    except UnfitPackage as error:
        return {"refused": f"{Path(name).name[:200]}: {error}"}
    return {}


def _serve(socket: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    import grpc
    from grpc_health.v1 import health, health_pb2, health_pb2_grpc

    def answered(request: bytes, context: grpc.ServicerContext) -> bytes:
        return json.dumps(answer(json.loads(request), Path("/workspace"))).encode()

    service, _, method = METHOD[1:].partition("/")
    server = grpc.server(ThreadPoolExecutor(2))
    handler = grpc.unary_unary_rpc_method_handler(answered)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {method: handler})])
    healthy = health.HealthServicer()
    healthy.set(SERVICE, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    _serve(sys.argv[sys.argv.index("--socket") + 1])
