"""A module's own Python packages: wheels, fetched on the host, unpacked, and mounted read-only.

No code of a package runs here: only wheels are accepted, never sources that would have to be built, each requirement is
one exact version, and dependencies are read from the wheels' metadata (`sandbox.images.closure`). With digests (`--hash=sha256:…`, which the shipped modules always have), a package
that was replaced on the index is refused. A list is unpacked once, into a folder named by its digest.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from iact.core.errors import SandboxUnavailable
from iact.core.ports import Report
from iact.sandbox.images import payload

_FORM: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(\[[A-Za-z0-9,_-]{1,60}\])?==[A-Za-z0-9][A-Za-z0-9.!+_-]{0,60}"
    r"( --hash=sha256:[0-9a-f]{64})*"
)


def checked(line: str) -> str:
    """Return `line` if it is `name==version`, with or without digests; anything else could be an option of pip.

    Raises:
        ValueError: it is not.
    """
    if not _FORM.fullmatch(line):
        raise ValueError(f"{line[:100]!r} is not of the form name==version, with --hash=sha256:… behind it")
    return line


def hashed(lines: Sequence[str]) -> bool:
    """Whether every requirement has a digest, so that every package must be listed and none can be replaced."""
    return all(" --hash=" in line for line in lines)


def site(folder: Path, lines: Sequence[str], python: str, report: Report) -> Path:
    """The folder below `folder` that has the packages `lines`, for Python `python` ("3.11"); made once. Blocks.

    Raises:
        PackagesUnavailable: they are not available.
        SandboxUnavailable: they can't be written.
    """
    parts = [(line, b"") for line in sorted(lines)]
    made_for = [("python", python.encode()), ("machine", os.uname().machine.encode())]
    target = folder / payload.digest_of([*parts, *made_for])
    if target.is_dir():
        return target
    report(f"fetching the module's Python packages: {', '.join(line.split('==')[0] for line in lines)}")
    folder.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=folder, prefix=".site-"))
    try:
        payload.unpack_wheels(lines, draft, python, dependencies=not hashed(lines))
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.rename(draft, target)
    except (OSError, SandboxUnavailable) as error:
        shutil.rmtree(draft, ignore_errors=True)
        if not target.is_dir():  # otherwise another process was faster
            if isinstance(error, OSError):
                raise SandboxUnavailable(
                    f"The module's Python packages can't be written ({error.strerror}); free some disk space."
                ) from error
            raise
    return target
