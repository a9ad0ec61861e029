"""`files`: read and change the workspace's files without a shell.

Nothing is kept between calls. Reading, searching and comparing change nothing (impact 0), so an agent that may only
observe can do all of them. The core keeps versions of the workspace, so writing is impact 1.
"""

from __future__ import annotations

import codecs
import contextlib
import mimetypes
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Final

from ext_modules.sdk import Call, Module, Result
from ext_modules.sdk.process import Process
from ext_modules.sdk.values import Value

from . import edits, listing, place
from .edits import Change, EditProblem
from .place import FileProblem

module = Module(
    "files",
    "Lists, reads, writes, edits, searches and compares the files of the workspace.",
    keywords=[
        "file", "files", "folder", "directory", "path", "workspace", "list", "read", "open", "view", "show",
        "write", "save", "create", "edit", "change", "replace", "modify", "update", "fix", "patch", "refactor",
        "search", "find", "grep", "regex", "pattern", "diff", "compare", "difference",
        "text", "line", "lines", "code", "source", "script", "document", "config", "csv", "json", "markdown",
    ],
)  # fmt: skip

_WORKER: Final = str(Path(__file__).with_name("worker.py"))
_LONGEST_READ: Final = 2000
"""The most lines in one reading, unless a range is given."""
_NO_TEXT: Final = Value(b"")
_LARGEST_OUTPUT: Final = 256 * 1024


@module.function(name="list", impact=0, summary="Names and sizes in a folder.")
def list_(path: str = ".", depth: int = 1, hidden: bool = False) -> str:
    """Lists what is in the folder `path` (default: the workspace): size in bytes and path, folders with a /, links with
    what they point to. `depth`: levels. Names that begin with a dot are only counted; `hidden=true` lists them. At most
    1,000 entries.

    ```files.list path=src depth=2
    ```
    """
    left_out = listing.Hidden()
    lines: list[str] = []
    for entry in listing.entries(path, max(1, depth), hidden=None if hidden else left_out):
        if len(lines) == listing.MOST:
            lines.append(f"[There are more than {listing.MOST:,} entries; list a folder of it.]")
            break
        lines.append(str(entry))
    if left_out.count:
        more = ", …" if left_out.count > len(left_out.names) else ""
        lines.append(
            f"[{left_out.count:,} hidden (hidden=true shows them): {', '.join(left_out.names)}{more}]"
        )
    return "".join(f"{line}\n" for line in lines) or "[It is empty.]\n"


@module.function(impact=0, summary="The text of a file, or lines of it.")
def read(path: str, start: int = 1, end: int = 0) -> Result:
    """Gives a file's text, or its lines from `start` (1 is the first) to `end`; without `end` at most 2,000.
    A file that is not text comes as bytes.
    """
    if start < 1 or end < 0 or (end and end < start):
        raise ValueError(f"Lines {start} to {end} are not a range; lines are counted from 1.")
    with place.opened(path) as file:
        if b"\0" in os.pread(file, 8192, 0):
            kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
            return Result(Value(place.content(path), kind, os.path.basename(path)))
        return _lines(file, start, end)


def _lines(file: int, start: int, end: int) -> Result:
    """The lines from `start` to `end` of an opened text file, with a remark if something is left out."""
    last = end or start + _LONGEST_READ - 1
    taken: list[str] = []
    size = 0
    number = 0
    is_cut = False
    with open(file, encoding="utf-8", errors="replace", newline="\n", closefd=False) as stream:
        while line := stream.readline(_LARGEST_OUTPUT):
            number += 1
            if number < start:
                continue
            size += len(line)
            if number > last or size > _LARGEST_OUTPUT:
                is_cut = not end or number <= last
                number -= 1
                break
            taken.append(line)

    if not taken and number < start and start > 1:
        raise ValueError(f"The file has {number} lines, so there is no line {start}.")
    text = "".join(taken)
    if is_cut:
        end_of_line = "" if text.endswith("\n") else "\n"
        text = f"{text}{end_of_line}[There is more; go on with start={number + 1}.]\n"
    return Result(text, data={"first": start, "last": number, "complete": not is_cut})


@module.function(
    impact=1, summary="Make or replace a whole file.", body="content", exclusive=True, idempotent=True
)
def write(path: str, content: Value, newline: bool = True) -> str:
    """The body becomes the whole file, with a newline at its end (`newline=false`: without); folders are made.
    `content=$name` writes a variable instead, byte for byte.

    ```files.write path=src/hello.py
    print("hello")
    ```
    """
    data = content.data
    if newline and content.written:
        data = _ended(data)
    new = place.replace(path, data)
    return f"{'Created' if new else 'Replaced'} {path}, {len(data):,} bytes.\n"


def _ended(data: bytes) -> bytes:
    """The text with the end of its last line, in the kind of its first line."""
    if not data or data.endswith(b"\n"):
        return data
    first_line = data.partition(b"\n")[0]
    return data + b"\r\n" if first_line.endswith(b"\r") else data + b"\n"


@module.function(impact=1, summary="Replace exact text in a file.", body="changes",
                 exclusive=True, idempotent=False)  # fmt: skip
def edit(path: str, changes: str = "", old: str = "", new: str | None = None) -> str:
    """Replaces text that occurs exactly once, in one or more changes: all are made or none. Give the old lines
    exactly, with their spaces, and enough of them to be unique.

    ~~~files.edit path=src/hello.py
    <<<<<<<
    print("hello")
    =======
    print("good evening")
    >>>>>>>
    ~~~

    Within one line, without a body: old="colour" new="color"
    """
    if bool(changes.strip()) == bool(old):
        raise EditProblem("Give either changes in the body or old=... and new=..., and not both.")
    if old and new is None:
        raise EditProblem('Give new=... as well; new="" takes the old text out.')
    wanted = [Change(old, new or "")] if old else edits.parse(changes)
    before = place.text(path)
    after = edits.apply(before, wanted)
    place.replace(path, after.encode())
    return f"Changed {path} in {len(wanted)} place{'s' if len(wanted) > 1 else ''}.\n"


@module.function(
    impact=0, summary="Lines that match a regular expression, as PATH:LINE:TEXT.", body="pattern", timeout=60
)
async def search(
    call: Call,
    pattern: str,
    path: str = ".",
    glob: str = "",
    context: int = 0,
    most: int = 200,
    hidden: bool = False,
    content: str | None = None,
) -> Result:
    """Searches text files line by line for a Python regular expression ((?i) ignores case) and gives PATH:LINE:TEXT.
    `path`: a folder, with all below it, or a file; what it gives is relative to the workspace. `glob`: only files
    whose name fits (with a slash: whose path).
    `context`: lines around each hit. `hidden=true`: also names that begin with a dot. Links, files that are not text
    and files over 8 MB are left out. `content=$name` searches a variable instead, and gives LINE:TEXT.

    ```files.search glob=*.py
    def (read|write)\\(
    ```
    """
    pattern = pattern.removesuffix("\n")
    if "\n" in pattern:
        raise ValueError(
            "The pattern has several lines, but each line is searched by itself; write a|b for either."
        )
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"The pattern is not a regular expression: {error}.") from error
    limits = [str(max(0, context)), str(max(1, most))]
    with contextlib.ExitStack() as stack:
        if content is not None:
            opened = stack.enter_context(_memory(content))
            arguments = ["search-text", str(opened), "", pattern, *limits]
        elif place.is_file(path):
            opened = stack.enter_context(_memory(place.text(path)))
            arguments = ["search-text", str(opened), "/".join(place.parts_of(path)), pattern, *limits]
        else:
            steps = place.parts_of(path)
            opened = stack.enter_context(place.folder(steps))
            arguments = [
                "search", str(opened), "/".join(steps), pattern, glob, "hidden" if hidden else "", *limits
            ]  # fmt: skip
        async for text in _work(call, arguments, [opened]):
            call.output(text)
    return Result()


@module.function(
    impact=0, summary="A unified diff of two files, or of a file and a text.", body="content", timeout=60
)
async def diff(call: Call, path: str, other: str = "", content: Value = _NO_TEXT) -> Result:
    """A unified diff from `path` to the file `other`, or to the text in the body or in a variable (`content=$name`).

    ```files.diff path=old.py other=new.py
    ```
    """
    if not other and content is _NO_TEXT:
        raise ValueError("Give the other side: other=..., or a text in the body or as content=$name.")
    before = place.text(path)
    if other:
        after = place.text(other)
    else:
        after = (_ended(content.data) if content.written else content.data).decode("utf-8", "replace")
    with _memory(before) as first, _memory(after) as second:
        arguments = ["diff", str(first), str(second), path, other or path]
        async for text in _work(call, arguments, [first, second]):
            call.output(text)
    return Result() if call.streamed else Result("[They are the same.]\n")


@contextlib.contextmanager
def _memory(text: str) -> Iterator[int]:
    """A descriptor of a file in memory that contains `text`."""
    file = os.memfd_create("text")
    try:
        with open(file, "wb", closefd=False) as stream:
            stream.write(text.encode())
        yield file
    finally:
        os.close(file)


async def _work(call: Call, arguments: Sequence[str], descriptors: Sequence[int]) -> AsyncIterator[str]:
    """Run the worker and yield its output as it comes, up to a cap. The worker ends with this generator.

    Raises:
        FileProblem: the worker failed.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    process = await Process.start(
        [sys.executable, "-I", "-S", _WORKER, *arguments],
        cwd="/",
        environment={"PATH": os.environ.get("PATH", "")},
        descriptors=descriptors,
    )

    room = _LARGEST_OUTPUT
    is_cut = False
    last_words = ""
    try:
        async for chunk in process.output():
            text = decoder.decode(chunk)
            last_words = (last_words + text)[-500:]
            if room > 0:
                yield text[:room]
            room -= len(text)
            is_cut = room < 0
            if is_cut:
                break
            await call.drain()
    finally:
        status = await process.end()

    if is_cut or status.code == 3:
        yield "[There is more than this; most=... gives more hits, another pattern, path or glob fewer.]\n"
    elif status.code:
        reason = last_words.strip().splitlines()[-1] if last_words.strip() else status
        raise FileProblem(f"It could not be done: {reason}.")
