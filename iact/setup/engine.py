"""The Docker engine: found, or installed and started if this process has the rights.

With systemd, the engine is started through it. Without systemd, as in a container or a small virtual
machine, this process starts `dockerd` detached, so that it keeps running. The sandbox's containers
never have a network, so that engine gets none either: no bridge, no firewall rule, no IP forwarding;
the machine's own network stays as it was.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from iact.setup import packages
from iact.setup.report import Missing, run, say

_WITHOUT = "tools can't run in containers and modules stay off"
_SOCKET = "/var/run/docker.sock"
_LOG = Path("/var/log/iact-dockerd.log")
_NO_NETWORK = ("--bridge=none", "--iptables=false", "--ip-forward=false")
_WAYS: tuple[tuple[str, ...], ...] = (_NO_NETWORK, (), (*_NO_NETWORK, "--storage-driver=vfs"))
"""Flags to try, in order. The last ones are for file systems that overlayfs doesn't support."""


def ensure() -> Missing | None:
    """Make sure that an engine answers. Otherwise return what the user must do."""
    answer = ping()
    if answer in ("ok", "foreign"):
        return None
    if answer == "denied":
        return Missing(
            "The Docker engine refuses this user",
            _WITHOUT,
            'sudo usermod -aG docker "$USER", then log in again',
        )
    if os.geteuid() != 0:
        if shutil.which("dockerd"):
            return Missing("No Docker engine answers", _WITHOUT, "sudo service docker start")
        return Missing("No Docker engine is installed", _WITHOUT, packages.remedy(["docker.io"]))
    if not shutil.which("dockerd") and not packages.install(["docker.io"], why="tools run in containers"):
        return Missing("The Docker engine could not be installed", _WITHOUT, packages.remedy(["docker.io"]))
    return None if _start() else Missing("The Docker engine does not start", _WITHOUT, f"tail {_LOG}")


def ping() -> str:
    """How the engine answers: `ok`, `denied` (no right to use its socket), `absent`, or `foreign`.

    `foreign`: DOCKER_HOST does not point to a unix socket; the user takes care of that engine.
    """
    if _is_foreign():
        return "foreign"
    try:
        return "ok" if _get("/_ping") == 200 else "absent"
    except PermissionError:
        return "denied"
    except OSError:
        return "absent"


def has_image(reference: str) -> bool:
    """Whether the engine has the image `reference`."""
    try:
        return not _is_foreign() and _get(f"/images/{reference}/json") == 200
    except OSError:
        return False


def _is_foreign() -> bool:
    host = os.environ.get("DOCKER_HOST", "")
    return bool(host) and not host.startswith("unix://")


def _get(path: str) -> int:
    """The HTTP status of the engine's answer. Doesn't use the client library, which may not be installed yet."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(os.environ.get("DOCKER_HOST", "").removeprefix("unix://") or _SOCKET)
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: docker\r\n\r\n".encode())
        words = connection.recv(64).split()
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def _start() -> bool:
    if Path("/run/systemd/system").is_dir() and run(["systemctl", "start", "docker"], quiet=True):
        return _wait(None, 60)
    for flags in _WAYS:
        _forget_the_dead(Path("/var/run/docker.pid"), "dockerd")
        _forget_the_dead(Path("/var/run/docker/containerd/containerd.pid"), "containerd")
        say(f"starting the Docker engine (its log: {_LOG})")
        if _wait(_spawn(["dockerd", *flags]), 60):
            return True
    return False


def _spawn(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start `command` in its own process session, so that it keeps running when this process and its terminal end."""
    _LOG.parent.mkdir(parents=True, exist_ok=True)
    with _LOG.open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
        )


def _wait(process: subprocess.Popen[bytes] | None, seconds: float) -> bool:
    """Wait until the engine answers. Gives up when `process` ends or the time is up, and then kills it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if ping() == "ok":
            return True
        if process is not None and process.poll() is not None:
            return False
        time.sleep(0.1)
    if process is not None:
        process.kill()
        process.wait()
    return False


def _forget_the_dead(pid_file: Path, program: str) -> None:
    """Remove a pid file whose process no longer exists, or is another program.

    After a reboot, or on a restored machine, the number often belongs to another process, and dockerd would not start.
    """
    try:
        pid = int(pid_file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return
    try:
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        name = ""
    if name != program:
        pid_file.unlink(missing_ok=True)
