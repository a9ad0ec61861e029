"""Archives of strangers are opened only in a sandbox, and leave nothing on the host but plain files in their folder."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from iact.core.errors import PackagesUnavailable
from iact.core.ports import ModuleSource
from iact.sandbox import packages, unpack_inside
from iact.sandbox.images import closure
from tests.sandbox.backends import AnyHost, Backend, either_backend
from tests.sandbox.inside import called

Entries = list[tuple[zipfile.ZipInfo | str, bytes]]

INFO: Final = "bad-1.0.dist-info"
HEAD: Final = b"Metadata-Version: 2.1\nName: bad\nVersion: 1.0\n"
WHEEL: Final = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def wheel(folder: Path, entries: Entries, *, head: bytes = HEAD) -> Path:
    """A wheel with these files beside those that every wheel has."""
    file = folder / "bad-1.0-py3-none-any.whl"
    usual: Entries = [
        ("bad.py", b"NAME = 'bad'\n"),
        (f"{INFO}/METADATA", head),
        (f"{INFO}/WHEEL", WHEEL),
        (f"{INFO}/RECORD", b""),
    ]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (*usual, *entries):
            archive.writestr(name, content)
    return file


def of_kind(name: str, kind: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.create_system = 3
    entry.external_attr = (kind | 0o777) << 16
    return entry


HOSTILE: Final[dict[str, Entries]] = {
    "a path upwards": [("../escaped", b"x")],
    "a path upwards later": [("bad/../../escaped", b"x")],
    "an absolute path": [("/tmp/escaped", b"x")],
    "an absolute path with two slashes": [("//tmp/escaped", b"x")],
    "a path of another system": [("..\\..\\escaped", b"x")],
    "a drive": [("C:/escaped", b"x")],
    "a link": [(of_kind("escaped", stat.S_IFLNK), b"/etc/passwd")],
    "a link as a folder, and a file in it": [(of_kind("there", stat.S_IFLNK), b"/tmp"), ("there/escaped", b"x")],
    "a link among programs": [(of_kind("bad-1.0.data/scripts/tool", stat.S_IFLNK), b"/bin/sh")],
    "a device": [(of_kind("escaped", stat.S_IFCHR), b"")],
    "a block device": [(of_kind("escaped", stat.S_IFBLK), b"")],
    "a pipe": [(of_kind("escaped", stat.S_IFIFO), b"")],
    "a socket": [(of_kind("escaped", stat.S_IFSOCK), b"")],
    "a data file upwards": [("bad-1.0.data/purelib/../../../escaped", b"x")],
    "a file where a folder is": [("bad.py/escaped", b"x")],
    "a program with a path as its name": [(f"{INFO}/entry_points.txt", b"[console_scripts]\n../escaped = bad:NAME\n")],
    "a program that is code": [(f"{INFO}/entry_points.txt", b"[console_scripts]\nx = os;import sys:y\n")],
    "a list of programs that is none": [(f"{INFO}/entry_points.txt", b"\0\xff[[[\n= =\n")],
    "too many files": [(f"many/{number}", b"") for number in range(unpack_inside.MOST_FILES)],
    "a bomb": [("zeros", b"\0" * (unpack_inside.MOST_BYTES + 1))],
    "a long name": [("a/" * 300 + "escaped", b"x")],
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_no_archive_puts_anything_but_plain_files_into_its_folder(tmp_path: Path, what: str) -> None:
    site = tmp_path / "deep" / "site"
    site.mkdir(parents=True)
    with pytest.raises(unpack_inside.UnfitPackage):
        unpack_inside.unpack(wheel(tmp_path, HOSTILE[what]), site, unpack_inside.Room())
    for path in site.rglob("*"):
        assert stat.S_IFMT(path.lstat().st_mode) in (stat.S_IFREG, stat.S_IFDIR)
    assert [path.name for path in tmp_path.rglob("escaped")] == []
    assert not Path("/tmp/escaped").exists()


def test_a_name_twice_is_refused(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        file = wheel(tmp_path, [("twice.py", b"a"), ("twice.py", b"b")])
    with pytest.raises(unpack_inside.UnfitPackage, match="a name twice"):
        unpack_inside.unpack(file, tmp_path / "site", unpack_inside.Room())


def test_a_file_that_is_larger_than_it_says_is_refused(tmp_path: Path) -> None:
    """Its size stands in the archive twice; both are made smaller."""
    file = wheel(tmp_path, [("big", b"\0" * 1_000_000)])
    content = file.read_bytes()
    assert content.count(struct.pack("<L", 1_000_000)) == 2
    file.write_bytes(content.replace(struct.pack("<L", 1_000_000), struct.pack("<L", 10)))
    with pytest.raises(unpack_inside.UnfitPackage):
        unpack_inside.unpack(file, tmp_path / "site", unpack_inside.Room())


def _link(site: Path) -> None:
    (site / "link").symlink_to("/etc/passwd")


def _link_to_a_folder(site: Path) -> None:
    (site / "link").symlink_to("/etc")


def _pipe(site: Path) -> None:
    os.mkfifo(site / "pipe")


def _socket(site: Path) -> None:
    here = os.open(site, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"/proc/self/fd/{here}/socket")
    os.close(here)


def _two_names(site: Path) -> None:
    (site / "one").write_text("x")
    os.link(site / "one", site / "two")


def _hole(site: Path) -> None:
    with (site / "hole").open("wb") as file:
        file.truncate(unpack_inside.MOST_BYTES + 1)


@pytest.mark.parametrize("put", [_link, _link_to_a_folder, _pipe, _socket, _two_names, _hole])
def test_what_a_sandbox_says_it_unpacked_is_looked_at_again(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    """As if the archive had taken over the sandbox."""
    (tmp_path / "site").mkdir()
    put(tmp_path / "site")
    with pytest.raises(PackagesUnavailable, match="refused"):
        packages.take_over(tmp_path / "site", tmp_path / "sites" / "one")
    assert list((tmp_path / "sites").iterdir()) == []


# --- through a real sandbox -----------------------------------------------------------------------------------------

USES: Final = """
from ext_modules.sdk import Module

module = Module("uses", "Uses a package.")

@module.function(impact=0)
def where() -> str:
    import bad
    return f"{bad.NAME} {bad.__file__}"
"""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that pip takes for the index, and a cache of this test's own."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("IACT_CACHE", str(tmp_path / "cache"))
    return folder


async def _where(backend: Backend, host: AnyHost, workspace: Path) -> str:
    source = ModuleSource("uses", {"module.py": USES.encode()}, requirements=("bad==1.0",))
    entry = await host.add(source, "agent")
    await host.adopt("uses", entry.digest, "agent")
    instance = await backend.start(host, "uses", session="packages", workspace=workspace)
    try:
        async with called(instance) as caller:
            return await caller.text("where")
    finally:
        await instance.stop()


@either_backend("docker")
def test_a_module_of_an_agent_gets_packages_that_only_a_sandbox_opened(
    loop: asyncio.Runner, host: AnyHost, backend: Backend, workspace: Path, index: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def opened(*_: object) -> None:
        raise AssertionError("a package was opened on the host")

    for module, name in ((unpack_inside, "needs"), (unpack_inside, "unpack"), (closure, "on_host")):
        monkeypatch.setattr(module, name, opened)
    wheel(index, [("bad-1.0.data/scripts/tool", b"#!python\n"), ("bad-1.0.data/data/share/x", b"x")])
    assert loop.run(_where(backend, host, workspace)) == "bad /run/site/bad.py"


@either_backend("docker")
@pytest.mark.parametrize("what", ["a path upwards", "a link", "a device", "a bomb"])
def test_a_hostile_package_ends_its_module_and_nothing_else(
    loop: asyncio.Runner, host: AnyHost, backend: Backend, workspace: Path, tmp_path: Path, index: Path, what: str
) -> None:  # fmt: skip
    wheel(index, HOSTILE[what])
    with pytest.raises(PackagesUnavailable, match="refused"):
        loop.run(_where(backend, host, workspace))
    assert list((tmp_path / "cache" / "packages").glob("*")) == []
    assert [path.name for path in tmp_path.rglob("escaped")] == []


@either_backend("docker")
def test_metadata_that_grows_without_end_takes_nobodys_memory(
    loop: asyncio.Runner, host: AnyHost, backend: Backend, workspace: Path, index: Path
) -> None:
    wheel(index, [], head=HEAD + b"X: " + b"x" * (3 << 20) + b"\n")
    with pytest.raises(PackagesUnavailable):
        loop.run(_where(backend, host, workspace))
