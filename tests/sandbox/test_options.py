"""The pure parts of confinement: a container's options, whose it is, and the socket's folder."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.errors import ModuleLost
from iact.sandbox import limits, owner, socket_folder
from iact.sandbox.bubblewrap import arguments
from iact.sandbox.docker import options
from iact.sandbox.limits import Limits, Place
from iact.sandbox.owner import Process
from iact.sandbox.workspace import mounts

PLACE = Place(code=Path("/code"), sockets=Path("/sockets"), workspace=Path("/files"), user="1000:1000")


def test_every_option_confines() -> None:
    inside, got = options.options(PLACE, {"A": "b"}), options.host_options(PLACE, Limits())
    assert got["network_mode"] == "none"
    assert got["read_only"] is True
    assert got["cap_drop"] == ["ALL"]
    assert got["ipc_mode"] == "none"
    assert got["init"] is True
    assert options.host_options(PLACE, Limits(), init=False)["init"] is False, (
        "ours is the first process there"
    )
    assert inside["user"] == "1000:1000"
    assert got["memswap_limit"] == got["mem_limit"] == 512 << 20
    assert "no-new-privileges" in got["security_opt"]
    assert inside["environment"] == {"A": "b"}
    assert {(mount["Target"], mount["ReadOnly"]) for mount in got["mounts"]} == {
        ("/module", True),
        ("/run/iact", False),
        ("/workspace", False),
    }


def test_no_workspace_and_a_read_only_one() -> None:
    without = Place(Path("/c"), Path("/s"), None, "0:0")
    assert {mount["Target"] for mount in options.host_options(without, Limits())["mounts"]} == {
        "/module",
        "/run/iact",
    }
    assert options.options(without, {})["working_dir"] == "/tmp"
    reading = Place(Path("/c"), Path("/s"), Path("/w"), "0:0", read_only=True)
    assert options.host_options(reading, Limits())["mounts"][-1]["ReadOnly"] is True


@given(st.integers(0, 1 << 40), st.floats(0, 64), st.integers(0, 10_000))
def test_a_module_never_gets_more_than_the_host_gives(memory: int, cpus: float, processes: int) -> None:
    most = Limits()
    got = limits.within(most, memory=memory, cpus=cpus, processes=processes)
    assert 0 < got.memory <= most.memory
    assert 0 < got.cpus <= most.cpus
    assert 0 < got.processes <= most.processes


def test_system_calls_are_an_allow_list_without_the_dangerous_ones() -> None:
    profile = json.loads(options.seccomp_profile())
    allowed = {
        name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]
    }
    dangerous = {
        "io_uring_setup",
        "ptrace",
        "bpf",
        "mount",
        "unshare",
        "setns",
        "keyctl",
        "userfaultfd",
        "kexec_load",
    }
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert not allowed & dangerous
    assert {"read", "write", "execve", "clone"} <= allowed


def test_a_process_is_known_by_its_start_and_not_only_its_number() -> None:
    this = Process.current()
    assert this.alive
    assert Process.parse(str(this)) == this
    assert not Process(this.pid, this.started + "0").alive
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    other = Process(child.pid, owner.start_time(child.pid))
    assert other.alive
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not other.alive, "a zombie is not alive"
    child.communicate()
    assert not other.alive


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    parsed = Process.parse(text)
    assert parsed is None or parsed.pid >= 0


def test_labels_tell_the_process() -> None:
    made = owner.labels("0" * 32, owner.Key("s", "m", "look", "/a"), "start@1", data=Path("/d"))
    assert owner.process_of(made) == Process.current()
    assert made[owner.CLAIM] == "0" * 32
    assert made[owner.START] == "start@1"
    assert owner.process_of({}) is None
    assert owner.data_digest(Path("/d")) != owner.data_digest(Path("/e"))


def bound(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path))
    return made


def test_a_real_socket_is_opened_and_held_by_its_descriptor(tmp_path: Path) -> None:
    assert socket_folder.open_socket(tmp_path) is None
    with bound(tmp_path / "module.sock") as server:
        server.listen()
        checked = socket_folder.open_socket(tmp_path)
        assert checked is not None
        (tmp_path / "module.sock").rename(tmp_path / "elsewhere")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(checked.target.removeprefix("unix://"))
        checked.close()
        checked.close()
        assert checked.descriptor == -1


def test_anything_else_is_refused(tmp_path: Path) -> None:
    name = tmp_path / "module.sock"
    with bound(tmp_path / "sibling"):
        name.symlink_to(tmp_path / "sibling")
        with pytest.raises(ModuleLost):
            socket_folder.open_socket(tmp_path)
    name.unlink()
    os.mkfifo(name)
    with pytest.raises(ModuleLost):
        socket_folder.open_socket(tmp_path)
    name.unlink()
    name.mkdir()
    with pytest.raises(ModuleLost):
        socket_folder.open_socket(tmp_path)


def test_folder_is_private_and_removed_with_its_mount(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "x"
    socket_folder.make(folder, uid=os.geteuid(), gid=os.getegid())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    if os.geteuid() == 0:
        assert folder.is_mount()
        with pytest.raises(OSError, match="No space left"):
            (folder / "big").write_bytes(b"x" * 100_000)
    socket_folder.remove(folder)
    socket_folder.remove(folder)
    assert not folder.exists()


@pytest.mark.parametrize("together", [True, False])
def test_a_process_is_bounded_by_itself_only_where_all_can_not_be(together: bool) -> None:
    made = arguments.command(PLACE, Limits(), ["module"], together=together)
    named = {part.partition("=")[0] for part in made if part.startswith("--")}
    assert {"--core", "--nofile", "--fsize", "--nproc"} <= named
    assert ({"--as", "--data"} <= named) is not together


def test_what_is_mounted_below_a_folder_is_found_by_its_real_name() -> None:
    listed = "\n".join(
        f"{number} 1 0:1 / {point} rw,relatime - tmpfs none rw"
        for number, point in enumerate(
            ("/", "/w", "/w/a", "/w/a/b", "/w/with\\040blank", "/w/\\303\\244", "/wider", "/w/back\\134slash")
        )
    )
    listed += "\n30 1 0:1 / /w/mine rw - fuse.sshfs me@there: rw,user_id=1000"
    listed += "\n31 1 0:1 / /w/ours rw - fuse.sshfs me@there: rw,user_id=1000,allow_other"
    listed += "\n32 1 0:1 / /w/net rw - autofs systemd-1 rw"
    found = [str(point) for point in mounts.below(Path("/w"), listed)]
    assert found == sorted(["/w/a", "/w/a/b", "/w/with blank", "/w/ä", "/w/back\\slash", "/w/ours"])
