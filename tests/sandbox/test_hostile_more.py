"""More probes of the hostile-module suite: what is not done, and what there is no way to do."""

from __future__ import annotations

import ast
import asyncio
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from iact.core.modules.client import Attached, Completed
from iact.sandbox import DockerHost
from iact.sandbox.images.payload import package_folder
from tests.sandbox.backends import AnyInstance, Backend, each_backend
from tests.sandbox.calling import python, write_module
from tests.sandbox.inside import called, hosting_on

_TRY = """
import ctypes, json, os, struct, subprocess
libc = ctypes.CDLL(None, use_errno=True)
achieved = []
def attempt(name, act):
    try:
        if act() is not False:
            achieved.append(name)
    except OSError:
        pass
"""


def achieved(loop: asyncio.Runner, module: AnyInstance, script: str) -> list[str]:
    """Names of the attempts in `script` that succeeded."""
    said = loop.run(python(module, f"{_TRY}\n{script}\nprint(json.dumps(achieved))"))
    found = json.loads(said.splitlines()[-1])
    assert isinstance(found, list)
    return found


@each_backend
def test_a5_proc_and_its_masks_stay_mounted(loop: asyncio.Runner, shell_module: AnyInstance) -> None:
    script = """
for path in ("/proc", "/proc/kcore", "/proc/keys", "/proc/sys", "/sys/firmware", "/tmp", "/module"):
    for flags in (0, 2, 4):
        attempt(f"umount {path} {flags}", lambda: libc.umount2(path.encode(), flags) == 0)
"""
    assert achieved(loop, shell_module, script) == []


@each_backend
def test_a9_a10_newer_calls_are_refused_too(loop: asyncio.Runner, shell_module: AnyInstance) -> None:
    """clone3 with a new user name space, kcmp, pidfd_getfd, mount_setattr, landlock is harmless and not tried."""
    script = """
# struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls
arguments = ctypes.create_string_buffer(struct.pack("8Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0))
def clone3():
    pid = libc.syscall(435, arguments, 64)
    if pid == 0:
        os._exit(0)
    return pid > 0
attempt("clone3", clone3)
attempt("kcmp", lambda: libc.syscall(312, 1, os.getpid(), 0, 0, 0) >= 0)
attempt("pidfd_getfd", lambda: libc.syscall(438, os.pidfd_open(1), 0, 0) >= 0)
attempt("mount_setattr", lambda: libc.syscall(442, -100, b"/", 0, arguments, 32) == 0)
attempt("fsopen", lambda: libc.syscall(430, b"tmpfs", 0) >= 0)
"""
    assert achieved(loop, shell_module, script) == []


@each_backend
def test_a13_no_program_changes_who_it_is(loop: asyncio.Runner, shell_module: AnyInstance) -> None:
    script = """
marked = [path for folder, _, names in os.walk("/usr") for name in names
          if not os.path.islink(path := os.path.join(folder, name)) and os.lstat(path).st_mode & 0o6000]
for path in marked:
    attempt(path, lambda: "CapEff:\\t0000000000000000" not in subprocess.run(
        [path], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10).stdout and False)
def own():
    with open("/tmp/mine", "wb") as out, open("/usr/bin/id", "rb") as program:
        out.write(program.read())
    os.chmod("/tmp/mine", 0o4755)
    return "euid" in subprocess.run(["/tmp/mine"], capture_output=True, text=True, timeout=10).stdout
attempt("own", own)
attempt("privileges", lambda: "NoNewPrivs:\\t0" in open("/proc/self/status").read())
"""
    assert achieved(loop, shell_module, script) == []


@each_backend
def test_g8_there_is_nothing_to_call_back(
    loop: asyncio.Runner, shell_module: AnyInstance, backend: Backend
) -> None:
    """The core listens nowhere that a module sees: the sockets inside are the module's own, and its way out if it has one."""
    script = """
import stat
found = [path for top in ("/run", "/tmp", "/module", "/workspace", "/var", "/opt", "/dev")
         for folder, _, names in os.walk(top) for name in names
         if stat.S_ISSOCK(os.lstat(path := os.path.join(folder, name)).st_mode)]
print(found)
achieved = [path for path in found if path != "/run/iact/module.sock"]
listening = [line for line in open("/proc/net/unix").read().splitlines()[1:] if line.split()[3] == "00010000"]
attempt("listening", lambda: len(listening) > 1)
"""
    way_out = {"/run/egress/egress.sock"} if backend.workshop else set[str]()
    assert set(achieved(loop, shell_module, script)) <= way_out


ARCHIVES = """
from ext_modules.sdk import Call, Module, Value

module = Module("packing", "Gives back what it gets.")

@module.function(impact=0)
def give(call: Call, content: bytes, media: str) -> Value:
    return Value(content, media, "../../../../tmp/escaped")
"""


def archives() -> Iterator[tuple[str, bytes]]:
    """Archives that do harm to whoever unpacks them."""
    zipped, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../../tmp/iact-escaped", "x")
        archive.writestr("/tmp/iact-escaped", "x")
        archive.writestr("bomb", b"\0" * (32 << 20))
    yield "application/zip", zipped.getvalue()
    with tarfile.open(fileobj=tarred, mode="w:gz") as tar:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/tmp"
        tar.addfile(link)
        tar.addfile(tarfile.TarInfo("link/iact-escaped"))
        tar.addfile(tarfile.TarInfo("../iact-escaped"))
    yield "application/gzip", tarred.getvalue()


@each_backend
def test_s3_an_archive_arrives_as_it_is_and_nobody_unpacks_it(
    loop: asyncio.Runner, tmp_path: Path, backend: Backend
) -> None:
    folder = write_module(tmp_path / "shipped", "packing", ARCHIVES)
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    async def scenario() -> None:
        async with hosting_on(backend, tmp_path / "data", shipped=folder) as host:
            instance = await host.start("packing", session="s", workspace=workspace, report=print)
            for media, content in archives():
                async with called(instance) as caller:
                    attached = (Attached("content", media, content, "archive"),)
                    outcome = await caller.outcome("give", {"media": media}, attached=attached)
                    assert isinstance(outcome, Completed), outcome
                    assert caller.artifacts == {outcome.artifact: content}

    loop.run(scenario())
    assert list(workspace.iterdir()) == []
    assert not Path("/tmp/iact-escaped").exists()
    assert not list(tmp_path.rglob("*escaped*"))


@pytest.mark.parametrize("room", ["core", "web", "hippocampus", "iact", "accounts", "cluster", "faces"])
def test_s3_no_room_that_is_trusted_can_unpack_anything(room: str) -> None:
    """But for what is named here, with the reason why it may."""
    unpackers = {"tarfile", "zipfile", "lzma", "bz2", "rarfile", "py7zr"}
    found = {
        path.relative_to(package_folder(room)).as_posix()
        for path in package_folder(room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _imported(node)
        if name.partition(".")[0] in unpackers
    }
    may = {
        "core": {
            "stored/archive.py",  # a session that a person imports: as foreign as any; tests/core/stored/test_kept_sessions.py
        },
        "web": {"zip_stream.py"},  # only packs
        "iact": {
            "backup.py",  # a backup that whoever runs the server restores; tests/acceptance/test_backup.py
            "models/download.py",  # wheels with parts of the model on board; nothing is used before its digest was checked
        },
    }
    assert found <= may.get(room, set())


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def test_two_of_the_users_modules_with_one_name_are_refused(loop: asyncio.Runner, tmp_path: Path) -> None:
    folders = [write_module(tmp_path / place, "same", ARCHIVES) / "same" for place in ("one", "two")]
    (tmp_path / "none").mkdir()
    host = DockerHost(tmp_path / "data", shipped=tmp_path / "none", folders=folders)
    with pytest.raises(Exception, match="There is already a module same"):
        loop.run(host.catalogue())
