"""A viewer changes nothing: not the workspace, not its worker's temporary files, by whatever way it tries.

A viewer and a worker of one agent, and a worker of another's, run under each backend. The worker prepares what an
accomplice could prepare; then the viewer tries. Each attempt prints its name if it achieved something, and what
stands in the workspace and in /tmp is compared byte by byte and down to the times.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from iact.core.ports import Right
from tests.sandbox.backends import AnyHost, AnyInstance, Backend, each_backend
from tests.sandbox.calling import python, shell, until, write_module
from tests.sandbox.inside import called, hosting_on
from tests.sandbox.test_hostile import achieved

pytestmark = each_backend


@dataclass(frozen=True, slots=True)
class Party:
    """Two instances of one agent's shell, and one of another's."""

    viewer: AnyInstance
    worker: AnyInstance
    other: AnyInstance


@pytest.fixture(scope="module")
def party(loop: asyncio.Runner, host: AnyHost, workspace: Path, backend: Backend) -> Party:
    async def started() -> Party:
        seats: tuple[tuple[Right, str], ...] = (("look", "/a"), ("work", "/a"), ("work", "/b"))
        viewer, worker, other = [
            await backend.start(host, "shell", session="one", workspace=workspace, right=right, agent=agent)
            for right, agent in seats
        ]
        return Party(viewer, worker, other)

    return loop.run(started())


LISTED = "import os; print(os.listdir('/tmp'))"
"""Under the gVisor of Debian 12 `ls` fails."""

PREPARED = """
import os, socket, subprocess, sys, textwrap
os.chdir("/workspace")
for place in ("/workspace", "/tmp"):
    os.makedirs(f"{place}/folder/below", exist_ok=True)
    for name in ("file", "folder/file", "victim"):
        with open(f"{place}/{name}", "w") as out:
            out.write("as it was")
    for name, target in (("to-file", f"{place}/file"), ("to-tmp", "/tmp/file"), ("to-proc", "/proc/self/root/workspace/file")):
        if not os.path.lexists(f"{place}/{name}"):
            os.symlink(target, f"{place}/{name}")
    os.chmod(f"{place}/file", 0o666)
    os.chmod(f"{place}/folder", 0o777)
"""

SNAPSHOT = """
import hashlib, json, os
found = {}
for place in ("/workspace", "/tmp"):
    for here, folders, files in os.walk(place):
        for name in (".", *folders, *files):
            path = os.path.join(here, name)
            seen = os.lstat(path)
            content = hashlib.sha256(open(path, "rb").read()).hexdigest() if os.path.isfile(path) else ""
            link = os.readlink(path) if os.path.islink(path) else ""
            found[path] = [seen.st_mode, seen.st_uid, seen.st_gid, seen.st_size, seen.st_mtime_ns, seen.st_nlink, content, link]
print(json.dumps(found, sort_keys=True))
"""


@pytest.fixture
def unchanged(loop: asyncio.Runner, party: Party) -> Iterator[None]:
    """What is there before and after, as the worker sees it."""
    loop.run(python(party.worker, PREPARED))
    before = json.loads(loop.run(python(party.worker, SNAPSHOT)))
    yield
    assert json.loads(loop.run(python(party.worker, SNAPSHOT))) == before


def test_no_way_of_writing_by_name(loop: asyncio.Runner, party: Party, unchanged: None) -> None:
    script = """
import stat
for place in ("/workspace", "/tmp"):
    file, folder, new = f"{place}/file", f"{place}/folder", f"{place}/new"
    for name, flags in {"write": os.O_WRONLY, "both": os.O_RDWR, "append": os.O_WRONLY | os.O_APPEND, "empty": os.O_WRONLY | os.O_TRUNC,
                        "empty by reading": os.O_RDONLY | os.O_TRUNC, "direct": os.O_WRONLY | os.O_DIRECT}.items():
        attempt(f"{name} {place}", lambda: os.open(file, flags) >= 0)
    attempt(f"create {place}", lambda: os.open(new, os.O_WRONLY | os.O_CREAT) >= 0)
    attempt(f"create to read {place}", lambda: os.open(new, os.O_RDONLY | os.O_CREAT) >= 0)
    attempt(f"unnamed {place}", lambda: os.open(place, os.O_WRONLY | os.O_TMPFILE) >= 0)
    attempt(f"truncate {place}", lambda: os.truncate(file, 0))
    attempt(f"unlink {place}", lambda: os.unlink(file))
    attempt(f"rename {place}", lambda: os.rename(file, new))
    attempt(f"rename into {place}", lambda: (open("/run/look/mine", "w").close(), os.rename("/run/look/mine", new)))
    attempt(f"rename out of {place}", lambda: os.rename(file, "/run/look/theirs"))
    attempt(f"link {place}", lambda: os.link(file, new))
    attempt(f"link into {place}", lambda: (open("/run/look/mine", "w").close(), os.link("/run/look/mine", new)))
    attempt(f"link out of {place}", lambda: os.link(file, "/run/look/theirs"))
    attempt(f"symlink {place}", lambda: os.symlink("x", new))
    attempt(f"mkdir {place}", lambda: os.mkdir(new))
    attempt(f"rmdir {place}", lambda: os.rmdir(f"{folder}/below"))
    attempt(f"fifo {place}", lambda: os.mkfifo(new))
    attempt(f"node {place}", lambda: os.mknod(new, stat.S_IFREG | 0o600))
    attempt(f"socket {place}", lambda: socket.socket(socket.AF_UNIX).bind(new))
    attempt(f"chmod {place}", lambda: os.chmod(file, 0o777))
    attempt(f"chmod a folder {place}", lambda: os.chmod(place, 0o777))
    attempt(f"chown {place}", lambda: os.chown(file, os.getuid(), os.getgid()))
    attempt(f"times {place}", lambda: os.utime(file, (1, 1)))
    attempt(f"attribute {place}", lambda: os.setxattr(file, "user.mine", b"x"))
    attempt(f"through a link of theirs {place}", lambda: os.open(f"{place}/to-file", os.O_WRONLY) >= 0)
    attempt(f"through a link into /proc {place}", lambda: os.open(f"{place}/to-proc", os.O_WRONLY) >= 0)
    os.path.lexists("/run/look/out") and os.unlink("/run/look/out")
    os.symlink(file, "/run/look/out")
    attempt(f"through a link of ours {place}", lambda: os.open("/run/look/out", os.O_WRONLY) >= 0)
    attempt(f"with dots {place}", lambda: os.open(f"/run/look/../..{file}", os.O_WRONLY) >= 0)
"""
    assert achieved(loop, party.viewer, script) == []


def test_no_way_of_writing_by_descriptor(loop: asyncio.Runner, party: Party, unchanged: None) -> None:
    script = """
import fcntl, mmap, struct
libc = ctypes.CDLL(None, use_errno=True)
own = os.open("/run/look/source", os.O_RDWR | os.O_CREAT)
os.write(own, b"changed")
def done(status):
    if status < 0:
        raise OSError(ctypes.get_errno(), "no")
for place in ("/workspace", "/tmp"):
    file = os.open(f"{place}/file", os.O_RDONLY)
    folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    by_path = os.open(f"{place}/file", os.O_PATH)
    for name, descriptor in {"fd": file, "path": by_path}.items():
        for way in ("self", "thread-self", str(os.getpid())):
            attempt(f"reopen {name} {way} {place}", lambda: os.open(f"/proc/{way}/fd/{descriptor}", os.O_WRONLY) >= 0)
        attempt(f"chmod {name} {place}", lambda: os.chmod(f"/proc/self/fd/{descriptor}", 0o777))
        attempt(f"times {name} {place}", lambda: os.utime(f"/proc/self/fd/{descriptor}", (1, 1)))
        attempt(f"link {name} {place}", lambda: os.link(f"/proc/self/fd/{descriptor}", f"{place}/new", follow_symlinks=True))
    for root in ("/proc/self/root", "/proc/1/root", "/proc/self/cwd/..", f"/proc/{os.getppid()}/root", f"/proc/self/fd/{folder}/.."):
        attempt(f"{root} {place}", lambda: os.open(f"{root}{place}/file", os.O_WRONLY) >= 0)
    attempt(f"at the folder {place}", lambda: os.open("new", os.O_WRONLY | os.O_CREAT, dir_fd=folder) >= 0)
    attempt(f"write {place}", lambda: os.write(file, b"x") > 0)
    attempt(f"write at {place}", lambda: os.pwrite(file, b"x", 0) > 0)
    attempt(f"fchmod {place}", lambda: os.fchmod(file, 0o777))
    attempt(f"fchown {place}", lambda: os.fchown(file, os.getuid(), os.getgid()))
    attempt(f"ftruncate {place}", lambda: os.ftruncate(file, 0))
    attempt(f"allocate {place}", lambda: os.posix_fallocate(file, 0, 4096))
    attempt(f"map {place}", lambda: mmap.mmap(file, 9, mmap.MAP_SHARED, mmap.PROT_WRITE))
    def mapped_then_raised():
        libc.mmap.restype = ctypes.c_void_p
        at = libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_SHARED, file, 0)
        done(libc.mprotect(ctypes.c_void_p(at), 4096, mmap.PROT_READ | mmap.PROT_WRITE))
    attempt(f"map and raise {place}", mapped_then_raised)
    attempt(f"sendfile {place}", lambda: os.sendfile(file, own, 0, 7) > 0)
    attempt(f"copy {place}", lambda: os.copy_file_range(own, file, 7, 0, 0) > 0)
    def spliced():
        out, into = os.pipe()
        os.write(into, b"x")
        return os.splice(out, file, 1, offset_dst=0) > 0
    attempt(f"splice {place}", spliced) if hasattr(os, "splice") else None
    attempt(f"clone {place}", lambda: fcntl.ioctl(file, 0x40049409, own))
    attempt(f"flags {place}", lambda: fcntl.ioctl(file, 0x40086602, struct.pack("l", 0x80)))
    attempt(f"append flag {place}", lambda: (fcntl.fcntl(file, fcntl.F_SETFL, os.O_RDWR), os.write(file, b"x") > 0)[1])
    attempt(f"attribute {place}", lambda: os.setxattr(file, "user.mine", b"x"))
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mounted = ctypes.c_int()
    def by_handle():
        done(libc.name_to_handle_at(folder, b"file", handle, ctypes.byref(mounted), 0))
        done(libc.open_by_handle_at(folder, handle, os.O_WRONLY))
    attempt(f"handle {place}", by_handle)
"""
    assert achieved(loop, party.viewer, script) == []


def test_no_mount_is_changed(loop: asyncio.Runner, party: Party, unchanged: None, backend: Backend) -> None:
    """Name spaces of their own are gVisor's to give: inside itself, where they change nothing of what is mounted."""
    script = """
libc = ctypes.CDLL(None, use_errno=True)
def done(status):
    if status < 0:
        raise OSError(ctypes.get_errno(), "no")
def writable(place):
    return os.open(f"{place}/file", os.O_WRONLY) >= 0
REMOUNT, BIND = 32, 4096
def all_ways(who):
    for place in (b"/workspace", b"/tmp"):
        attempt(f"remount {place} {who}", lambda: (done(libc.mount(None, place, None, REMOUNT | BIND, None)), writable(place.decode()))[1])
        attempt(f"remount all of {place} {who}", lambda: (done(libc.mount(None, place, None, REMOUNT, None)), writable(place.decode()))[1])
        attempt(f"bind {place} {who}", lambda: (done(libc.mount(place, b"/run/look", None, BIND, None)), writable("/run/look"))[1])
        attempt(f"attribute {place} {who}", lambda: (done(libc.syscall(442, -100, place, 0, (ctypes.c_uint64 * 4)(0, 1, 0, 0), 32)), writable(place.decode()))[1])
        attempt(f"clone {place} {who}", lambda: done(libc.syscall(428, -100, place, 1)))
        attempt(f"unmount {place} {who}", lambda: (done(libc.umount2(place, 2)), os.path.exists(place + b"/file") is False)[1])
    attempt(f"device {who}", lambda: done(libc.mount(b"/dev/vda", b"/run/look", b"ext4", 0, None)))
    attempt(f"new {who}", lambda: done(libc.syscall(430, b"tmpfs", 0)) if who == "outside" else False)
all_ways("outside")
child = os.fork()
if child == 0:
    achieved.clear()
    libc.unshare(0x10000000 | 0x20000)
    all_ways("in own name spaces")
    print(json.dumps(achieved), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    assert achieved(loop, party.viewer, script) == []
    inside = loop.run(python(party.viewer, f"{_SETUP}\n{script}")).splitlines()
    assert json.loads(inside[0]) == []


_SETUP = """
import json, os, ctypes, socket, resource
achieved = []
def attempt(name, act):
    try:
        if act() is not False:
            achieved.append(name)
    except (OSError, ValueError):
        pass
"""


@asynccontextmanager
async def meanwhile(
    instance: AnyInstance, script: str, begun: Callable[[], Awaitable[bool]]
) -> AsyncIterator[None]:
    """A call of another agent's that goes on while the block runs, which begins when `begun` says so."""
    call = asyncio.ensure_future(shell(instance, script, seconds=600, agent="/meanwhile"))

    async def there() -> bool:
        assert not call.done(), call.result()
        return await begun()

    try:
        await until(there)
        yield
    finally:
        call.cancel()
        await asyncio.wait([call])


def made(file: Path) -> Callable[[], Awaitable[bool]]:
    """Whether `file`, which is removed first, is made."""
    file.unlink(missing_ok=True)

    async def there() -> bool:
        return await asyncio.to_thread(file.exists)

    return there


LISTENING = """
import os, socket, threading, sys
kinds = {"stream": socket.SOCK_STREAM, "packet": socket.SOCK_SEQPACKET, "datagram": socket.SOCK_DGRAM}
made = []
for place in ("/workspace", "/tmp"):
    for name, kind in kinds.items():
        path = f"{place}/{name}.sock"
        os.path.lexists(path) and os.unlink(path)
        one = socket.socket(socket.AF_UNIX, kind)
        one.bind(path)
        os.chmod(path, 0o777)
        if kind != socket.SOCK_DGRAM:
            one.listen()
        made.append(one)
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\\0accomplice")
abstract.listen()
tcp = socket.create_server(("127.0.0.1", 4242))
for place in ("/workspace", "/tmp"):
    path = f"{place}/pipe"
    os.path.lexists(path) and os.unlink(path)
    os.mkfifo(path)
    os.chmod(path, 0o666)
    made.append(os.open(path, os.O_RDWR))
open("/workspace/ready", "w").close()
import time
time.sleep(3600)
"""


def test_no_accomplice_among_the_workers_processes_is_reached(
    loop: asyncio.Runner, party: Party, workspace: Path, backend: Backend
) -> None:
    """Sockets and pipes work on a read-only file system: what listens there would write for whoever asks."""

    async def scenario() -> tuple[list[str], list[str]]:
        async with meanwhile(party.worker, f"python3 - <<'END'\n{LISTENING}\nEND", made(workspace / "ready")):
            probe = """
import errno
def reach(kind, path):
    one = socket.socket(socket.AF_UNIX, kind)
    one.settimeout(2)
    one.connect(path)
def send(make, path):
    one = make()
    one.sendto(b"rm -rf /workspace", path)
def message(make, path):
    one = make()
    one.sendmsg([b"rm -rf /workspace"], [], 0, path)
unnamed = lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]
raw = lambda: socket.socket(socket.AF_UNIX, socket.SOCK_RAW)
for place in ("/workspace", "/tmp"):
    attempt(f"stream {place}", lambda: reach(socket.SOCK_STREAM, f"{place}/stream.sock"))
    attempt(f"packet {place}", lambda: reach(socket.SOCK_SEQPACKET, f"{place}/packet.sock"))
    attempt(f"datagram {place}", lambda: reach(socket.SOCK_DGRAM, f"{place}/datagram.sock"))
    for name, make in {"datagram": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), "pair": unnamed, "raw": raw,
                       "stream": lambda: socket.socketpair()[0]}.items():
        attempt(f"send {name} {place}", lambda: send(make, f"{place}/datagram.sock"))
        attempt(f"message {name} {place}", lambda: message(make, f"{place}/datagram.sock"))
    attempt(f"pipe {place}", lambda: os.write(os.open(f"{place}/pipe", os.O_WRONLY | os.O_NONBLOCK), b"rm") > 0)
    attempt(f"pipe both ways {place}", lambda: os.write(os.open(f"{place}/pipe", os.O_RDWR | os.O_NONBLOCK), b"rm") > 0)
    attempt(f"pipe again {place}", lambda: os.open(f"/proc/self/fd/{os.open(f'{place}/pipe', os.O_RDONLY | os.O_NONBLOCK)}", os.O_WRONLY | os.O_NONBLOCK) >= 0)
attempt("abstract", lambda: reach(socket.SOCK_STREAM, "\\0accomplice"))
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", 4242), 2))
"""
            text = f"{_SETUP}\n{probe}\nprint(json.dumps(achieved))"
            by_viewer = json.loads(await python(party.viewer, text))
            by_worker = json.loads(await python(party.worker, text))
            return by_viewer, by_worker

    by_viewer, by_worker = loop.run(scenario())
    assert {"stream /workspace", "send datagram /tmp", "pipe /workspace", "tcp"} <= set(by_worker)
    assert by_viewer == []


def test_all_that_a_viewer_can_write_to(loop: asyncio.Runner, party: Party, backend: Backend) -> None:
    """Every folder is tried, by making a file in it; and of what is no folder, what can be opened for writing.

    Of /proc, what a process may set of itself. Under gVisor, whose own kernel keeps them, the rest of
    /proc and the devices' folder too.
    """
    script = """
import json, os, stat
folders, files = set(), set()
for here, inside, names in os.walk("/"):
    if here == "/proc":
        inside[:] = [name for name in inside if not name.isdigit() or name == str(os.getpid())]
    if here.startswith(f"/proc/{os.getpid()}/task/"):
        inside[:] = []
    if here.endswith(("/fd", "/map_files", "/cwd", "/root")) and here.startswith("/proc"):
        continue
    try:
        os.close(os.open(f"{here}/.tried", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(f"{here}/.tried")
        folders.add(here)
    except OSError:
        pass
    for name in names:
        path = f"{here}/{name}"
        try:
            found = os.lstat(path)
            masked = here.startswith("/proc") and found.st_rdev == os.lstat("/dev/null").st_rdev
            if not stat.S_ISLNK(found.st_mode) and not masked and not path.startswith(("/dev/tty", "/dev/ptmx")):
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY))
                files.add(path.replace(f"/proc/{os.getpid()}/", "/proc/self/"))
        except OSError:
            pass
print(json.dumps([sorted(folders), sorted(files)]))
"""
    folders, files = json.loads(loop.run(python(party.viewer, script)))
    kept = ("/proc/", "/dev") if backend.kind == "gvisor" else ("/proc/",)
    assert {each for each in folders if not each.startswith(kept)} == {"/run/look", "/run/iact"}
    own = ("/proc/self/", "/run/look/", "/run/iact/", *(kept if backend.kind == "gvisor" else ()))
    assert {each for each in files if not each.startswith(own)} <= {
        f"/dev/{name}" for name in ("full", "null", "random", "urandom", "zero", "pts/ptmx")
    }


def test_a_viewer_sees_its_workers_files_and_they_are_new_ones_too(
    loop: asyncio.Runner, party: Party, workspace: Path
) -> None:
    async def scenario() -> None:
        for text in ("one", "other"):
            await shell(party.worker, f"echo {text} > /tmp/seen; echo {text} > /workspace/seen")
            outcome = await shell(party.viewer, "cat /tmp/seen /workspace/seen")
            assert outcome.output == f"{text}\n{text}\n"
        assert await python(party.other, LISTED) == "[]"
        assert (await shell(party.other, "cat /workspace/seen")).output == "other\n"

    loop.run(scenario())


def test_a_viewer_has_temporary_files_of_its_own(loop: asyncio.Runner, party: Party) -> None:
    script = "echo $IACT_RIGHT $TMPDIR; python3 -c 'import tempfile; print(tempfile.gettempdir())'; sort <<< b; cat <<< c"
    assert loop.run(shell(party.viewer, script)).output == "look /run/look\n/run/look\nb\nc\n"
    assert loop.run(shell(party.worker, "echo $IACT_RIGHT $TMPDIR; ls /run")).output.split()[0] == "work"
    filled = (
        "head -c 80M /dev/zero 2>&1 > /run/look/much | tail -1; wc -c < /run/look/much; rm /run/look/much"
    )
    size = int(loop.run(shell(party.viewer, filled)).output.split()[-1])
    assert 0 < size <= 64 << 20


def test_no_instance_sees_the_processes_of_another(
    loop: asyncio.Runner, party: Party, workspace: Path
) -> None:
    seen = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"
    mark = f"4711.{os.getpid()}"

    async def scenario() -> None:
        everyone = [party.viewer, party.worker, party.other]
        for one in everyone:

            async def runs(one: AnyInstance = one) -> bool:
                return mark in (await shell(one, seen)).output

            async with meanwhile(one, f"exec sleep {mark}", runs):
                for another in everyone:
                    assert (mark in (await shell(another, seen)).output) is (another is one)

    loop.run(scenario())


def test_what_is_written_in_files_is_refused_there_too(
    loop: asyncio.Runner, host: AnyHost, workspace: Path, backend: Backend
) -> None:
    """A module that is shared by all agents has a viewer as well, and its workers' files are the workspace's."""

    async def scenario() -> None:
        viewer = await backend.start(host, "files", session="one", workspace=workspace, right="look")
        worker = await backend.start(host, "files", session="one", workspace=workspace)
        async with called(viewer) as looking, called(worker) as working:
            await working.text("write", path="note", content="one")
            assert "one" in await looking.text("read", path="note")
            error = await looking.error("write", path="note", content="other")
            assert "Read-only file system" in error or "Permission denied" in error, error
        assert (workspace / "note").read_text() == "one\n"

    loop.run(scenario())


def test_what_never_writes_is_one_instance_for_both(
    loop: asyncio.Runner, tmp_path: Path, workspace: Path, backend: Backend
) -> None:
    source = "from ext_modules.sdk import Module\nmodule = Module('x', 'A module.')\n@module.function(impact=0)\ndef f() -> str:\n    return 'x'\n"
    shipped = write_module(tmp_path / "shipped", "bare", source.replace("'x', 'A", "'bare', 'A"))
    write_module(shipped, "reader", source.replace("'x', 'A", "'reader', 'A"), needs='workspace = "read"')

    async def scenario() -> None:
        async with hosting_on(backend, tmp_path / "data", shipped=shipped) as host:
            for name in ("bare", "reader"):
                looking, working = await asyncio.gather(
                    backend.start(host, name, session="s", workspace=workspace, right="look"),
                    backend.start(host, name, session="s", workspace=workspace),
                )
                assert looking is working

    loop.run(scenario())


def test_a_frozen_one_does_nothing_more_and_can_be_ended(
    loop: asyncio.Runner, host: AnyHost, workspace: Path, backend: Backend
) -> None:
    """It counts as nobody's failure; the next start makes another, with the same temporary files if a viewer lives."""
    script = "while true; do date +%s%N > /workspace/ticking; done"

    async def scenario() -> None:
        viewer = await backend.start(
            host, "shell", session="f", workspace=workspace, right="look", agent="/a"
        )
        worker = await backend.start(host, "shell", session="f", workspace=workspace, agent="/a")
        await shell(worker, "echo kept > /tmp/kept")
        async with meanwhile(worker, script, made(workspace / "ticking")):
            await worker.freeze()
            await worker.freeze()
            before = (workspace / "ticking").read_bytes()
            await shell(viewer, "for i in $(seq 200); do cat /workspace/ticking; done > /dev/null")
            assert (workspace / "ticking").read_bytes() == before
            assert await worker.why_lost() == "The module shell was stopped."
            again = await backend.start(host, "shell", session="f", workspace=workspace, agent="/a")
            assert again is not worker
            assert worker.ended
        assert (await shell(again, "cat /tmp/kept")).output == "kept\n"
        assert host.withdrawn("f") == {}
        assert again.restarts.failures == 0
        await again.freeze()
        await host.end_session("f")
        assert again.ended
        assert viewer.ended

    loop.run(scenario())


def test_temporary_files_end_with_the_last_of_the_two(
    loop: asyncio.Runner, host: AnyHost, workspace: Path, backend: Backend
) -> None:
    async def scenario() -> None:
        orders: tuple[tuple[Right, Right], ...] = (("look", "work"), ("work", "look"))
        for first, second in orders:
            instances = {
                right: await backend.start(
                    host, "shell", session="t", workspace=workspace, right=right, agent="/a"
                )
                for right in (first, second)
            }
            await shell(
                instances["work"],
                "mkdir /tmp/closed; touch /tmp/closed/in; chmod 0 /tmp/closed; echo x > /tmp/left",
            )
            await instances[first].stop()
            if second == "look":
                assert (await shell(instances["look"], "cat /tmp/left")).output == "x\n"
            await instances[second].stop()
        fresh = await backend.start(host, "shell", session="t", workspace=workspace, agent="/a")
        assert await python(fresh, LISTED) == "[]"
        await host.end_session("t")

    loop.run(scenario())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts something in a workspace")
def test_what_is_mounted_in_the_workspace_is_read_only_too(
    loop: asyncio.Runner, host: AnyHost, tmp_path_factory: pytest.TempPathFactory, backend: Backend
) -> None:
    """An engine that mounts a folder read-only may leave writable what is mounted below it."""
    workspace = tmp_path_factory.mktemp("live")
    nested = workspace / "a folder" / "below"
    nested.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", str(nested.parent)], check=True)
    try:
        nested.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "none", str(nested)], check=True)
        nested.chmod(0o777)
        (nested / "file").write_text("as it was")

        async def scenario() -> None:
            viewer = await backend.start(host, "shell", session="n", workspace=workspace, right="look")
            script = (
                "cd '/workspace/a folder'; cat below/file; echo x > below/file; touch below/x x; umount below"
            )
            assert (await shell(viewer, script)).output.startswith("as it was")
            mounted = (await shell(viewer, "cut -d ' ' -f 5,6 /proc/self/mountinfo")).output.splitlines()
            shared = [line.split(" ") for line in mounted if line.startswith(("/workspace", "/tmp"))]
            assert {options.split(",")[0] for _, options in shared} == {"ro"}, shared
            await host.end_session("n")

        loop.run(scenario())
        assert os.listdir(nested) == ["file"]
        assert os.listdir(nested.parent) == ["below"]
        assert (nested / "file").read_text() == "as it was"
    finally:
        for each in (nested, nested.parent):
            subprocess.run(["umount", str(each)], check=True)
