"""A shell in a mount name space of its own, which sees an overlay as modules do: by a bind mount."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


class Shell:
    """`run` gives what a script prints."""

    def __init__(self, writes: IO[str], reads: IO[str]) -> None:
        self._writes, self._reads = writes, reads

    def run(self, script: str) -> str:
        self._writes.write(f"{script}\necho; echo .end.\n")
        self._writes.flush()
        lines = iter(self._reads.readline, ".end.\n")
        return "".join(lines).strip()


@contextmanager
def shell(folder: Path, place: Path) -> Iterator[Shell]:
    """A shell that has `folder` mounted at `place`, and stands there."""
    place.mkdir(exist_ok=True)
    script = 'mount --bind "$0" "$1" && cd "$1" && exec sh'
    running = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, str(folder), str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert running.stdin is not None
    assert running.stdout is not None
    try:
        yield Shell(running.stdin, running.stdout)
    finally:
        running.stdin.close()
        running.stdout.close()
        running.wait()
