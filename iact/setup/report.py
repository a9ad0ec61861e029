"""The results of set-up steps, and their output to the terminal."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that a step couldn't provide. `without`: what will not work. `remedy`: a command to run."""

    what: str
    without: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}, so {self.without}; run: {self.remedy}"


def digest(paths: Iterable[Path]) -> str:
    """The SHA-256, in hex, over files of the repository and all files below its folders."""
    total = hashlib.sha256()
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                total.update(f"{file.relative_to(ROOT)}\0".encode())
                total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


class SetupFailed(Exception):
    """The set-up can't continue. The message includes the remedy."""


def say(line: str) -> None:
    """Print one line of progress."""
    print(f"setup: {line}", file=sys.stderr, flush=True)


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    quiet: bool = False,
) -> bool:
    """Run `command` without standard input, with its output on standard error. Returns whether it succeeded.

    `quiet`: show the output only if the command fails.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if quiet else sys.stderr.fileno(),
            stderr=subprocess.STDOUT if quiet else None,
            env=env,
            cwd=folder,
            check=False,
        )
    except OSError as error:
        say(f"{command[0]} could not be started: {error.strerror}")
        return False
    if quiet and done.returncode:
        sys.stderr.write(done.stdout.decode("utf-8", "replace")[-4000:])
    return done.returncode == 0
