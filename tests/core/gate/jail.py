"""Scripts run for real where they may write, each in a directory of its own that is thrown away.

The machine's system is seen read-only through bubblewrap; there is no network, and no process is left.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import pytest

from tests.snapshot import Snapshot, snapshot

Seen = TypeVar("Seen")
SECONDS: Final = 5
"""For one script."""
_EACH: Final = """\
ulimit -f 2048
for place in /tmp/jail/[0-9]*/; do
    cd "$place/there" || exit 9
    script=$(cat ../script; echo x)
    HOME=$place/there/home timeout -k 1 "$1" bash -c "${script%x}" bash </dev/null >/dev/null 2>&1
done
exit 0
"""
_ENVIRONMENT: Final = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "TMPDIR": "/tmp",
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    # a program that is not there leaves a mark
    "BASH_FUNC_command_not_found_handle%%": '() { : > "${HOME%/home}/ran-${1##*/}"; }',
}  # fmt: skip


_WITHOUT: Final = ("dev", "proc", "run", "sys", "tmp", "var")
_SYSTEM: Final = [
    part
    for folder in (
        *(f"/{one.name}" for one in sorted(Path("/").iterdir()) if one.is_dir() and one.name not in _WITHOUT),
        *(f"/var/{one}" for one in ("cache", "lib/apt", "lib/dpkg", "log")),
    )
    for part in ("--ro-bind-try", folder, folder)
]
"""The system to read, without folders in which an engine's containers and other tests mount things: one that goes away
while it is bound would fail the whole."""


def need_bubblewrap() -> None:
    """Skip where there is none, or where the kernel gives no name spaces to us."""
    probe = ["bwrap", *_SYSTEM, "--unshare-all", "true"]
    if shutil.which("bwrap") is None or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("scripts are run for real in bubblewrap: apt-get install bubblewrap")


class Jail:
    """Runs scripts in copies of one directory, which `setup` fills."""

    def __init__(self, folder: Path, setup: str) -> None:
        self._folder = folder
        self.filled = folder / "filled"
        fill(self.filled, setup)
        self.before = snapshot(self.filled)

    def run(self, scripts: Sequence[str], *, seconds: float = SECONDS) -> list[Snapshot]:
        """What the directory holds after each script, which has that long. Each has a fresh one."""
        return self.look(scripts, snapshot, seconds=seconds)

    def look(
        self, scripts: Sequence[str], look: Callable[[Path], Seen], *, seconds: float = SECONDS
    ) -> list[Seen]:
        """What `look` finds in the directory after each script."""
        jail = Path(tempfile.mkdtemp(prefix="jail-", dir=self._folder))
        for number, script in enumerate(scripts):
            place = jail / f"{number:06}"
            place.mkdir()
            (place / "script").write_text(script, encoding="utf-8")
        made = "for place in [0-9]*/; do cp -a ../filled $place/there; done"
        subprocess.run(["bash", "-c", made], cwd=jail, check=True)
        confine(jail, seconds)
        found = [look(jail / f"{number:06}" / "there") for number in range(len(scripts))]
        shutil.rmtree(jail)
        return found


def fill(folder: Path, setup: str) -> None:
    """Make `folder` and run `setup` in it."""
    folder.mkdir()
    subprocess.run(
        ["bash", "-euc", setup], cwd=folder, check=True, env=_ENVIRONMENT | {"HOME": str(folder / "home")}
    )


def confine(jail: Path, seconds: float) -> None:
    """Run the scripts that lie below `jail`."""
    subprocess.run(
        ["bwrap", *_SYSTEM, "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run",
         "--bind", str(jail), "/tmp/jail", "--remount-ro", "/", "--unshare-all", "--die-with-parent", "--new-session", "--chdir", "/tmp/jail",
         "bash", "-c", _EACH, "bash", str(seconds)],
        env=_ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip


@contextmanager
def folder_for_jail() -> Iterator[Path]:
    """A folder that is in memory where there is memory to write in: scripts are many and small."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        prefix="iact-jail-", dir=memory if os.access(memory, os.W_OK) else None
    ) as made:
        yield Path(made)
