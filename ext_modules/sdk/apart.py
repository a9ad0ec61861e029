"""Runs a script of the module's own in a separate process, for one call: JSON in, JSON and bytes out.

It is meant for libraries that may run forever, crash, or exhaust the memory on a malicious file. The process is killed
at its time limit or when its call is cancelled, and the module goes on. It sees no temporary files but its own, and
writes there and in the workspace alone. Modules do not import such a library
themselves, so they can be described where it is not installed.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ext_modules.sdk import memory, traces
from ext_modules.sdk.call import Call
from ext_modules.sdk.process import Process
from ext_modules.sdk.values import JSON

LARGEST: Final = 64 << 20
"""The most bytes that a script may return."""
_LAST_WORDS: Final = 1.0
"""Seconds before the call's deadline at which a script is ended, so that there is time to report it."""
_PRINTED: Final = 2000


class NotDone(Exception):
    """The script could not do the work; the message says why."""


Work = Callable[[Mapping[str, JSON]], tuple[Mapping[str, JSON], bytes]]
"""The work of a script: takes a request, returns an answer and content."""


async def ask(
    script: Path, request: Mapping[str, JSON], call: Call, *, limit: float, content: bytes = b""
) -> tuple[Mapping[str, JSON], bytes]:
    """Run `script`, which calls `serve`. Return its answer and the content.

    `limit`: seconds. `content`: bytes for the script, which reads them from the descriptor `content` of its request.

    Raises:
        NotDone: the script did not end in time, crashed, or could not do the work.
    """
    seconds = max(0.1, min(limit, call.remaining() - _LAST_WORDS))
    killed_before = memory.kills()
    with (
        tempfile.TemporaryDirectory(prefix="apart-", ignore_cleanup_errors=True) as temporary,
        _file("request") as request_file,
        _file("answer") as answer_file,
        _file("content") as content_file,
    ):
        os.pwrite(request_file, json.dumps({**request, "content": content_file}).encode(), 0)
        _fill(content_file, content)
        process = await Process.start(
            [sys.executable, "-u", str(script), str(request_file), str(answer_file)],
            cwd=_workspace(),
            environment=_environment(temporary),
            descriptors=[request_file, answer_file, content_file],
        )

        printed = b""
        try:
            async with call.limit(seconds):
                async for chunk in process.output():
                    printed = (printed + chunk)[-_PRINTED:]
        except TimeoutError:
            raise NotDone(f"It did not end within {seconds:g} s and was stopped.") from None
        finally:
            await process.end()

        return _read(answer_file, printed, out_of_memory=memory.kills() != killed_before)


def _fill(file: int, content: bytes) -> None:
    with open(file, "wb", closefd=False) as stream:
        stream.write(content)


def _read(answer_file: int, printed: bytes, *, out_of_memory: bool) -> tuple[Mapping[str, JSON], bytes]:
    """The answer and the content that a script wrote. `printed`: what it printed last."""
    raw = os.pread(answer_file, LARGEST, 0)
    line, _, content = raw.partition(b"\n")
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        answer = None

    if isinstance(answer, dict):
        if "failed" in answer:
            raise NotDone(str(answer["failed"])[:4000])
        return answer, content

    if out_of_memory:
        raise NotDone("It needed more memory than there is, and was stopped.")
    last = printed.decode("utf-8", "replace").strip().rpartition("\n")[2]
    raise NotDone(f"It broke off without an answer ({last[:300] or 'it said nothing'}).")


def serve(work: Work) -> None:
    """In the script: do the requested work and answer."""
    request = json.loads(Path(f"/proc/self/fd/{sys.argv[1]}").read_bytes())
    traces.keep_apart(_workspace(), os.environ["TMPDIR"])

    answer: Mapping[str, JSON]
    content = b""
    try:
        answer, content = work(request)
    except MemoryError:
        answer = {"failed": "It needed more memory than there is."}
    except Exception as error:
        text = f"{error}".strip() or type(error).__name__
        answer = {"failed": text if isinstance(error, NotDone) else f"{type(error).__name__}: {text}"}

    with open(int(sys.argv[2]), "wb", closefd=False) as file:
        file.write(json.dumps(answer).encode("utf-8", "replace") + b"\n" + content)


def inside(path: str, *, there: bool = True) -> Path:
    """In the script: resolve `path` in the workspace. `there`: it must exist.

    Raises:
        NotDone: it is outside the workspace, or does not exist.
    """
    root = Path(_workspace()).resolve()
    try:
        resolved = (root / path).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise NotDone(f"{path} can't be opened: {error}.") from None

    if not resolved.is_relative_to(root):
        raise NotDone(f"{path} is outside of the workspace; give a path relative to {root}.")
    if there and not resolved.is_file():
        raise NotDone(f"There is no file {path} in the workspace; files.list shows what is there.")
    return resolved


def _workspace() -> str:
    folder = os.environ.get("IACT_WORKSPACE", "/workspace")
    return folder if os.path.isdir(folder) else tempfile.gettempdir()


def _environment(temporary: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    return {**inherited, "HOME": temporary, "TMPDIR": temporary, "OMP_NUM_THREADS": "1"}


@contextlib.contextmanager
def _file(name: str) -> Iterator[int]:
    """An anonymous file in memory."""
    descriptor = os.memfd_create(name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
