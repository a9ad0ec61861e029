"""The program of a render process: it reads questions from a socket and writes answers, until the socket is closed.

It is run as a file, with the number of the socket's descriptor. It has no privileges that an attacker could gain: no
environment, no other descriptors, no files to write, bounded memory; and it can be killed harmlessly at any moment.

The packages named below import the whole product in their `__init__`. Here empty ones replace them, so that only
rendering code is loaded: 25 MB and a tenth of a second instead of 67 MB and more than half of one.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import types
from pathlib import Path

_GATHERING = ("iact", "iact.core", "iact.core.journal", "iact.web")
_MEMORY = 1 << 30


def _prepare(root: Path) -> None:
    sys.path.insert(0, str(root))
    for name in _GATHERING:
        package = types.ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")))]
        sys.modules[name] = package
    for kind, most in (
        (resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0),
    ):  # fmt: skip
        resource.setrlimit(kind, (most, most))
    # The server's own loop has priority.
    os.nice(5)


def _read(descriptor: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(descriptor, min(size, 1 << 20))
        if not part:
            sys.exit()  # the server is gone
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def main(descriptor: int) -> None:
    """Answer until the socket is closed."""
    _prepare(Path(__file__).parents[2])
    from iact.web.render_tasks import answer, question_in

    gc.freeze()
    _write(descriptor, b".")  # ready
    while True:
        message = json.loads(_read(descriptor, int.from_bytes(_read(descriptor, 4))))
        try:
            answered = answer(question_in(message))
        except MemoryError:
            answered = {}
        data = json.dumps(answered).encode()
        _write(descriptor, len(data).to_bytes(4) + data)
        gc.collect()


if __name__ == "__main__":
    main(int(sys.argv[1]))
