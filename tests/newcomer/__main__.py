"""The first half hour of somebody new, on a fresh Debian with nothing but Python and make: `python -m tests.newcomer`.

Three trials, each in a root and name spaces of its own (this is for root): root without an engine, root with an engine that
runs already, and an ordinary user without one. Each must end with a session in which a tool ran, or with one
sentence that says what is missing. They install from the network and take minutes, so no test run contains them.

`--share PATH` shows a path of this machine to the newcomer, read-only: what its package clients are set up with, where
packages come from a mirror. `--keep` leaves the roots for a look.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
HOME: Final = "/home/newcomer/iact"
PACKAGES: Final = ("python3", "make", "ca-certificates", "apt")
SHARED: Final = ("/etc/ssl/certs", "/etc/apt/sources.list.d", "/etc/apt/apt.conf.d", "/etc/pip.conf")  # fmt: skip
"""How this machine's package clients find packages."""
TOLD: Final = ("PIP_", "SSL_CERT", "REQUESTS_CA", "http_proxy", "https_proxy", "no_proxy")
"""Beginnings of the variables that say the same."""

QUESTION: Final = "Show me the disk usage of /tmp in your sandbox"
FINE: Final = "a tool ran"


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A fresh machine, and who sits at it."""

    first: int
    """The machine's first process."""

    def enters(self, command: Sequence[str], given: bytes = b"") -> tuple[int, str]:
        """Run a command there as root, with little in its environment; gives the status and what it printed."""
        told = [f"{key}={value}" for key, value in os.environ.items() if key.startswith(TOLD)]
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        inside = [
            "nsenter",
            f"--target={self.first}",
            "--mount",
            "--pid",
            "--uts",
            "--ipc",
            "env",
            "-i",
            path,
            *told,
        ]
        done = subprocess.run(
            [*inside, *command], input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def does(self, command: str, *, user: str = "newcomer") -> tuple[int, str]:
        """Type a command in the repository; gives the status and all that it said."""
        home = "/root" if user == "root" else f"/home/{user}"
        asked = [
            "setpriv",
            "--reuid",
            user,
            "--regid",
            user,
            "--init-groups",
            "env",
            f"HOME={home}",
            f"USER={user}",
        ]
        status, text = self.enters([*asked, "sh", "-c", f"cd {HOME} && {command}"])
        shown = "\n".join(f"    {line[:220]}" for line in text.splitlines()[-8:])
        print(f"  {user}$ {command}  → {status}\n{shown}", flush=True)
        return status, text

    def session(self, user: str) -> str:
        """Ask one question; tells whether a tool ran, or what the sentence about it is."""
        status, said = self.does(f'.venv/bin/iact run "{QUESTION}"', user=user)
        if status:
            return said.strip().splitlines()[-1]
        _, found = self.does(
            'grep -h \'"kind":"result"\' ~/.local/share/iact/sessions/*/journal.md | tail -n 1', user=user
        )
        if '"status":"ok"' in found and "shell.run" in found:
            return FINE
        return next((line for line in said.splitlines() if "tools can't run" in line), said[-300:])


def _root_without_engine(newcomer: Newcomer) -> str:
    status, said = newcomer.does("make setup", user="root")
    return newcomer.session("root") if status == 0 else said.strip().splitlines()[-1]


def _root_with_engine(newcomer: Newcomer) -> str:
    """The engine was there before us, and somebody else started it."""
    newcomer.does(
        "apt-get update -qq && apt-get install -y -qq --no-install-recommends docker.io", user="root"
    )
    newcomer.does(
        "(setsid dockerd --bridge=none --iptables=false --ip-forward=false >/var/log/dockerd.log 2>&1 &);"
        " for n in $(seq 120); do [ -S /var/run/docker.sock ] && break; sleep 0.5; done; ls /var/run/docker.sock",
        user="root",
    )
    return _root_without_engine(newcomer)


def _user_without_engine(newcomer: Newcomer) -> str:
    """What each sentence asks for is done, but for the engine; then there is a session without tools, and a sentence."""
    status, said = newcomer.does("make setup")
    sentence = said.strip().splitlines()[-2] if status else ""
    if "apt-get install" in sentence:
        newcomer.does("apt-get update -qq && apt-get install -y -qq python3-venv", user="root")
        status, said = newcomer.does("make setup")
    if status:
        return said.strip().splitlines()[-1]
    outcome = newcomer.session("newcomer")
    if "libgomp1" in outcome:
        newcomer.does("apt-get install -y -qq libgomp1", user="root")
        outcome = newcomer.session("newcomer")
    return outcome


TRIALS: Final[Mapping[str, Callable[[Newcomer], str]]] = {
    "root-without-engine": _root_without_engine,
    "root-with-engine": _root_with_engine,
    "user-without-engine": _user_without_engine,
}


def build(folder: Path) -> Path:
    """A Debian with little in it, as a tar; gives its path."""
    codename = next(
        line.partition("=")[2].strip().strip('"')
        for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
        if line.startswith("VERSION_CODENAME=")
    )
    tar = folder / "root.tar"
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}", codename, str(tar)]  # fmt: skip
    subprocess.run(command, check=True)
    return tar


MACHINE: Final = """
set -e
mount --bind "$ROOT" "$ROOT"
cd "$ROOT"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs run
for path in $SHARED; do
    mkdir -p ".$(dirname "$path")"
    if [ -d "$path" ]; then mkdir -p ".$path"; else touch ".$path"; fi
    mount --bind -o ro "$path" ".$path"
done
mkdir -p .before
pivot_root . .before
umount -l /.before
exec sleep infinity
"""
"""What the first process of a machine does before it waits."""


@contextmanager
def fresh(tar: Path, folder: Path, shared: Sequence[str], keep: bool) -> Iterator[Newcomer]:
    """A machine on which nobody has done anything yet, with a clone of the repository."""
    folder.mkdir()
    subprocess.run(["tar", "--extract", "--file", str(tar), "--directory", str(folder)], check=True)
    there = " ".join(path for path in shared if Path(path).exists())
    if Path("/etc/apt/sources.list.d").is_dir():
        (folder / "etc" / "apt" / "sources.list").unlink(missing_ok=True)  # or each archive is named twice
    shutil.copy("/etc/resolv.conf", folder / "etc" / "resolv.conf")
    shutil.copy("/etc/hosts", folder / "etc" / "hosts")
    command = ["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--propagation=private", "sh", "-c", MACHINE]  # fmt: skip
    environment = {**os.environ, "ROOT": str(folder), "SHARED": there}
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL) as outer:
        try:
            newcomer = Newcomer(_first_process(outer))
            newcomer.enters(["useradd", "--create-home", "--shell", "/bin/bash", "newcomer"])
            newcomer.enters(["tar", "--extract", "--directory", "/home/newcomer"], _clone())
            newcomer.enters(["chown", "-R", "newcomer:newcomer", "/home/newcomer"])
            yield newcomer
        finally:
            for inner in _children(outer.pid):
                os.kill(inner, signal.SIGKILL)  # with the first process of a name space all others end
    if not keep:
        shutil.rmtree(folder)


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def _first_process(outer: subprocess.Popen[bytes]) -> int:
    """Wait until the machine is up; gives the number of its first process."""
    end = time.monotonic() + 60
    while time.monotonic() < end and outer.poll() is None:
        for child in _children(outer.pid):
            if Path(f"/proc/{child}/comm").read_text(encoding="ascii").strip() == "sleep":
                return child
        time.sleep(0.05)
    raise RuntimeError("The fresh machine did not come up.")


def _clone() -> bytes:
    """The repository as it is committed, as a tar with the folder `iact`."""
    command = ["git", "archive", "--prefix=iact/", "HEAD"]
    packed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    tarfile.open(fileobj=io.BytesIO(packed)).close()
    return packed


def main() -> int:
    """Run the trials that are named, or all; 0 if each ended as it should."""
    parser = argparse.ArgumentParser(prog="python -m tests.newcomer", description=__doc__)
    parser.add_argument("trials", nargs="*", metavar="TRIAL", help=", ".join(TRIALS))
    parser.add_argument("--share", action="append", default=[], metavar="PATH")
    parser.add_argument("--keep", action="store_true")
    chosen = parser.parse_args()
    if not shutil.which("mmdebstrap"):
        print(
            "newcomer: mmdebstrap is needed to make a fresh Debian; run: apt-get install mmdebstrap",
            file=sys.stderr,
        )
        return 1
    outcomes: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="iact-newcomer-") as folder:
        tar = build(Path(folder))
        for name in chosen.trials or TRIALS:
            print(f"{name}:", flush=True)
            begun = time.monotonic()
            with fresh(tar, Path(folder) / name, [*SHARED, *chosen.share], chosen.keep) as newcomer:
                outcomes[name] = TRIALS[name](newcomer)
            print(f"{name}: {outcomes[name]} ({time.monotonic() - begun:.0f} s)", flush=True)
        if chosen.keep:
            shutil.move(folder, f"{folder}-kept")
            Path(folder).mkdir()
    return 0 if all(one == FINE or "run `" in one or "run: " in one for one in outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
