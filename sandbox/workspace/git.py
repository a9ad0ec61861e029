"""Runs git on the objects of one store, and on nothing else that may have been left there.

A repository is more than its objects: its configuration names programs that git runs, its hooks are programs, and its
alternates, promisor remotes and replacements lead elsewhere. A store is in a session's folder, which anyone may have
made or changed. So git never gets a store as its repository. For each run we create an empty repository of our own in a
new temporary directory, and let it use the store's folder of objects, after checking that this contains objects and
packs and nothing else. Output and time are bounded, since a few small trees can describe more files than there are
atoms.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from iact.core.errors import WorkspaceError

OBJECTS: Final = "objects"
"""The only folder of a store."""
LOOSE: Final = re.compile(r"[0-9a-f]{38}")
FOLDER: Final = re.compile(r"[0-9a-f]{2}")
PACK: Final = re.compile(r"pack-[0-9a-f]{40}\.(?:pack|idx)")
_LEFT: Final = re.compile(r"(?:\.?tmp_|tmp-)[\w.-]{1,80}")
"""Files that git leaves behind when it is killed, and never reads."""

SECONDS: Final = 300.0
"""How long one run may take."""
OUTPUT: Final = 640 << 20
"""The most bytes that one run may print."""

_CONFIG: Final = """[core]
\trepositoryformatversion = 0
\tbare = true
\thooksPath = /dev/null
\tprotectHFS = false
\tprotectNTFS = false
\tcommitGraph = false
\tmultiPackIndex = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[pack]
\twriteReverseIndex = false
\twriteBitmaps = false
[repack]
\twriteBitmaps = false
\tupdateServerInfo = false
[protocol]
\tallow = never
"""


def check_objects(store: Path) -> Path:
    """Return the folder of a store's objects after checking that it contains nothing else.

    Raises:
        WorkspaceError: it contains something else; the message names it.
    """
    objects = store / OBJECTS
    try:
        for folder in (store, objects):
            if not stat.S_ISDIR(folder.lstat().st_mode):
                raise _strange(folder, "is no folder")
        for path in _wrong(objects):
            raise _strange(path, "is nothing that we keep there")
    except OSError as error:
        raise WorkspaceError(f"The versions in {store} can't be read ({error.strerror}).") from error
    return objects


def _strange(path: Path, what: str) -> WorkspaceError:
    return WorkspaceError(
        f"The versions can't be used: {str(path)!r} {what}, and git would follow it. Somebody changed "
        "that folder. Remove it to continue, or adopt the session."
    )


def _wrong(objects: Path) -> Iterator[Path]:
    with os.scandir(objects) as entries:
        for entry in entries:
            path, plain = Path(entry.path), entry.is_dir(follow_symlinks=False)
            if _LEFT.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                continue
            if not plain:
                yield path
            elif entry.name == "info":
                yield from path.iterdir()
            elif entry.name == "pack":
                yield from _others(path, PACK)
            elif FOLDER.fullmatch(entry.name):
                yield from _others(path, LOOSE)
            else:
                yield path


def _others(folder: Path, wanted: re.Pattern[str]) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        for entry in entries:
            known = wanted.fullmatch(entry.name) or _LEFT.fullmatch(entry.name)
            if not known or not entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


def run_git(
    objects: Path,
    *arguments: str,
    given: bytes = b"",
    tip: str = "",
    most: int = OUTPUT,
    seconds: float = SECONDS,
) -> bytes:
    """Run git in an empty repository of our own over these objects, and return its output.

    `tip`: a commit to set as its branch. `most`: the most bytes that it may print.

    Raises:
        WorkspaceError: git is missing, fails, prints more or takes longer.
    """
    with tempfile.TemporaryDirectory(prefix="iact-git-") as made:
        own = Path(made)
        for folder in ("objects", "refs", "refs/heads"):
            (own / folder).mkdir()
        (own / "HEAD").write_text("ref: refs/heads/workspace\n")
        (own / "config").write_text(_CONFIG)
        if tip:
            (own / "refs" / "heads" / "workspace").write_text(f"{tip}\n")
        code, answer, why = _run(["git", *arguments], _environment(own, objects), own, given, most, seconds)
    if code:
        raise WorkspaceError(f"The versions in {objects.parent} can't be used ({why}).")
    return answer


def _environment(own: Path, objects: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(own),
        "GIT_DIR": str(own),
        "GIT_OBJECT_DIRECTORY": str(objects),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }


def _run(
    command: list[str], environment: dict[str, str], cwd: Path, given: bytes, most: int, seconds: float
) -> tuple[int, bytes, str]:
    """Run a program within its limits. Return exit status, output, and the last line of stderr."""
    with tempfile.TemporaryFile(dir=cwd) as said:
        try:
            running = subprocess.Popen(
                command, env=environment, cwd=cwd,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said,
            )  # fmt: skip
        except OSError as error:
            raise WorkspaceError("git can't be run; install it to keep versions of workspaces.") from error
        assert running.stdin is not None
        assert running.stdout is not None
        late = threading.Timer(seconds, running.kill)
        feeding = threading.Thread(target=_feed, args=(running, given))
        late.start()
        feeding.start()
        try:
            answer = running.stdout.read(most + 1)
            if len(answer) > most:
                running.kill()
        finally:
            running.stdout.close()
            code = running.wait()
            late.cancel()
            late.join()
            feeding.join()
        if len(answer) > most:
            return 1, b"", f"git had more than {most >> 20} MiB to say"
        said.seek(0)
        lines = said.read(65_536).decode("utf-8", "replace").strip().splitlines()
    why = lines[-1][:200] if lines else "it took too long" if code < 0 else "git gave no reason"
    return code, answer, why


def _feed(running: subprocess.Popen[bytes], given: bytes) -> None:
    assert running.stdin is not None
    # It may end before it has read everything; its exit status then says why.
    with contextlib.suppress(OSError), running.stdin:
        running.stdin.write(given)
