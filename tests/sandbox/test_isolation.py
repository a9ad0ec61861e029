"""What code in a module's container can reach: nothing but itself and its workspace."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path

import pytest

from iact.sandbox.docker.options import ROOT
from tests.sandbox.backends import PROXIES, AnyInstance, Backend, every_wall
from tests.sandbox.calling import python, shell

pytestmark = every_wall


def test_rights_are_gone(loop: asyncio.Runner, shell_module: AnyInstance, backend: Backend) -> None:
    status = loop.run(python(shell_module, "print(open('/proc/self/status').read())"))
    found = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    held = {name: int(value, 16) for name, value in found.items() if name.startswith("Cap")}
    assert held.keys() >= {"CapInh", "CapPrm", "CapEff", "CapBnd"}
    of_root = sum(1 << number for number in ROOT.values())
    assert set(held.values()) == {0, of_root if backend.root else 0}
    if (
        backend.kind == "gvisor"
    ):  # a kernel of its own: ours filters that one, and it shows nothing of it inside
        assert loop.run(shell(shell_module, "uname -r")).output.strip() != os.uname().release
        return
    assert found["NoNewPrivs"].strip() == "1"
    assert found["Seccomp"].strip() == "2"


def test_user_is_the_workspaces_owner(
    loop: asyncio.Runner, shell_module: AnyInstance, workspace: Path, backend: Backend
) -> None:
    """Whoever it is inside, what it writes belongs to the workspace's owner; mapped, that is nobody of the host's."""
    outcome = loop.run(shell(shell_module, "id -u; id -g; : > /workspace/mine"))
    owner, file = workspace.stat(), (workspace / "mine").stat()
    assert (file.st_uid, file.st_gid) == (owner.st_uid, owner.st_gid)
    who = {"mapped": (0, 0), "bubblewrap": (65534, 65534)}.get(backend.kind, (owner.st_uid, owner.st_gid))
    assert tuple(map(int, outcome.output.split())) == who
    if backend.kind == "mapped":
        assert owner.st_uid >= 65_536


def test_there_is_no_network_but_loopback(loop: asyncio.Runner, shell_module: AnyInstance) -> None:
    script = """
names = [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]]
print(names, len(open("/proc/net/route").readlines()))
"""
    assert loop.run(python(shell_module, script)) == "['lo'] 1"


def test_no_address_answers(loop: asyncio.Runner, shell_module: AnyInstance) -> None:
    """A server of ours listens on every address of this machine; from inside none of them leads to it."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        addresses = {"127.0.0.1", "172.17.0.1", "169.254.169.254", "10.0.0.1", own_address()}
        script = f"""
import socket
for address in {sorted(addresses)!r}:
    try:
        socket.create_connection((address, {port}), 2)
        print(address, "REACHED")
    except OSError as error:
        print(address, error.errno)
"""
        said = loop.run(python(shell_module, script))
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert "REACHED" not in said
    assert len(said.splitlines()) == len(addresses)


def own_address() -> str:
    """An address of this machine besides loopback, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: it only chooses a route
        except OSError:
            return "127.0.0.2"
        return str(probe.getsockname()[0])


def test_names_are_not_resolved(loop: asyncio.Runner, shell_module: AnyInstance) -> None:
    script = """
import socket
try:
    print(socket.getaddrinfo("example.com", 80))
except socket.gaierror as error:
    print("no")
"""
    assert loop.run(python(shell_module, script)) == "no"


def test_no_host_file_and_no_engine_socket(
    loop: asyncio.Runner, shell_module: AnyInstance, tmp_path: Path, data: Path
) -> None:
    canary = tmp_path / "canary"
    canary.write_text("host", encoding="utf-8")
    paths = [str(canary), str(data), str(Path(__file__)), "/var/run/docker.sock", "/run/docker.sock", "/host"]
    paths += ["/run/containerd/containerd.sock", "/proc/1/root/etc/shadow", "/etc/shadow"]
    script = f"import os, json; print(json.dumps([path for path in {paths!r} if os.path.lexists(path)]))"
    assert json.loads(loop.run(python(shell_module, script))) == []


def test_only_our_mounts_come_from_the_host(
    loop: asyncio.Runner, shell_module: AnyInstance, backend: Backend
) -> None:
    """gVisor reaches everything of the host's through one file server; under bubblewrap the system is a folder."""
    script = """
import json
lines = [line.split() for line in open("/proc/self/mountinfo")]
kinds = ("/dev/", "iact", "none")
print(json.dumps(sorted({line[4] for line in lines if line[line.index("-") + 2].startswith(kinds)
                         and line[line.index("-") + 1] not in ("proc", "sysfs", "devpts")
                         and not line[4].startswith(("/proc", "/dev")) and line[4] != "/tmp"})))
"""
    files_of_the_engine = {
        "/etc/hostname",
        "/etc/hosts",
        "/etc/resolv.conf",
        "/usr/sbin/docker-init",
        "/sbin/docker-init",
    }
    system = {"/"} if backend.kind in ("gvisor", "bubblewrap") else set()
    mounted = set(json.loads(loop.run(python(shell_module, script)))) - files_of_the_engine
    way_out = {"/run/egress"} if backend.workshop else set()
    assert mounted == {"/module", "/run/iact", "/workspace"} | system | way_out


def test_module_sees_no_foreign_environment(
    loop: asyncio.Runner, shell_module: AnyInstance, backend: Backend
) -> None:
    script = "import os, json; print(json.dumps(sorted(os.environ)))"
    allowed = {"PATH", "LANG", "LC_ALL", "HOME", "HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_", "TERM", "TMPDIR"}
    names = json.loads(loop.run(python(shell_module, script)))
    ours = ("PYTHON", "IACT_", "LC_", "PIP_", "NPM_CONFIG_")
    if backend.workshop:
        allowed |= {"DEBIAN_FRONTEND", *PROXIES}
    assert {name for name in names if not name.startswith(ours)} <= allowed
    assert not set(names) & {"OPENAI_API_KEY", "DOCKER_HOST"}


@pytest.mark.parametrize(
    "path", ["/x", "/etc/passwd", "/usr/bin/x", "/module/module.py", "/opt/iact/sdk/x", "/var/tmp/x"]
)
def test_system_and_code_are_read_only(
    loop: asyncio.Runner, shell_module: AnyInstance, backend: Backend, path: str
) -> None:
    """Real root has a system of its own, which nobody else sees and which ends with it; its code is everybody's."""
    if backend.root and not path.startswith("/module"):
        assert loop.run(shell(shell_module, f"echo x >> {path}")).exit_status == 0
        return
    outcome = loop.run(shell(shell_module, f"echo x >> {path}"))
    assert outcome.exit_status != 0
    assert "Read-only file system" in outcome.output or "Permission denied" in outcome.output


def test_workspace_and_tmp_are_writable(
    loop: asyncio.Runner, shell_module: AnyInstance, workspace: Path
) -> None:
    outcome = loop.run(
        shell(shell_module, "echo here > /workspace/from-inside && echo x > /tmp/x && cat /tmp/x")
    )
    assert outcome.exit_status == 0, outcome
    assert (workspace / "from-inside").read_text(encoding="utf-8") == "here\n"


CALLS = """
import ctypes, errno, json
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"io_uring_setup": 425, "ptrace": 101, "bpf": 321, "keyctl": 250, "userfaultfd": 323, "perf_event_open": 298,
           "unshare": 272, "mount": 165, "pivot_root": 155, "chroot": 161, "open_by_handle_at": 304, "setns": 308,
           "process_vm_readv": 310, "init_module": 175, "kexec_load": 246, "pidfd_getfd": 438, "fsopen": 430}
got = {}
for name, number in numbers.items():
    ctypes.set_errno(0)
    value = libc.syscall(number, 0, 0, 0, 0, 0)
    got[name] = "ok" if value >= 0 else errno.errorcode[ctypes.get_errno()]
print(json.dumps(got))
"""


@pytest.mark.skipif(
    os.uname().machine != "x86_64", reason="the numbers of the system calls are those of x86-64"
)
def test_dangerous_system_calls_are_refused(
    loop: asyncio.Runner, shell_module: AnyInstance, backend: Backend
) -> None:
    """Under gVisor none of them reaches our kernel; its own plays along with two of them, inside itself."""
    got = json.loads(loop.run(python(shell_module, CALLS)))
    let = {name for name, result in got.items() if result not in ("EPERM", "ENOSYS")}
    if backend.kind == "gvisor":
        let = {name for name in let if got[name] == "ok"} - {"ptrace", "unshare"}
    assert let == set()


@pytest.mark.parametrize(
    "arguments",
    [
        "socket.AF_PACKET, socket.SOCK_RAW",
        "socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP",
        "socket.AF_VSOCK, socket.SOCK_STREAM",
        "socket.AF_ALG, socket.SOCK_SEQPACKET",
    ],
)
def test_dangerous_sockets_are_refused(
    loop: asyncio.Runner, shell_module: AnyInstance, arguments: str
) -> None:
    script = f"""
import socket
try:
    socket.socket({arguments})
    print("made")
except OSError as error:
    print("refused")
"""
    assert loop.run(python(shell_module, script)) == "refused"


@pytest.mark.parametrize(
    "path",
    [
        "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches",
        "/proc/sys/net/ipv4/ip_forward", "/sys/kernel/uevent_helper", "/sys/fs/cgroup/pids/pids.max",
    ],
)  # fmt: skip
def test_kernel_settings_cannot_be_written(
    loop: asyncio.Runner, shell_module: AnyInstance, backend: Backend, path: str
) -> None:
    """Real root under gVisor may set what that kernel has of its own; the host's is as it was."""
    before = Path(path).read_bytes() if path.startswith("/proc/sys/net") else b""
    script = f"""
try:
    with open({path!r}, "r+") as file:
        file.write("1")
    print("opened")
except OSError:
    print("refused")
"""
    own_kernel = backend.name == "gvisor-root" and path == "/proc/sys/net/ipv4/ip_forward"
    assert loop.run(python(shell_module, script)) in ("refused", *(["opened"] if own_kernel else []))
    assert (Path(path).read_bytes() if before else b"") == before


def test_only_its_own_processes_are_visible(loop: asyncio.Runner, shell_module: AnyInstance) -> None:
    script = "import os; print(*(name for name in os.listdir('/proc') if name.isdigit()))"
    pids = [int(pid) for pid in loop.run(python(shell_module, script)).split()]
    assert 1 in pids
    assert len(pids) < 20
