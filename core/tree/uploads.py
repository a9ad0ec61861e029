"""Files that a user hands to a session: each becomes an immutable variable of the root's, originating from the user.

In a workspace of the session's own it becomes a file, too, which the record names before it is there: from then on, whatever
is read from the files carries its label. A directory of the user's is theirs: nothing is put there that they did not
approve, so an upload is a variable only, and an agent that needs it as a file writes one, like any other change.

An upload is a message that does not wake an agent. The root reads about it, and gets the variable, with its next turn:
a variable that appeared while a model writes would not be in the context of its turn.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from iact.core.errors import UsageError
from iact.core.language import labels
from iact.core.language.variables import Table, Value
from iact.core.records.dialogue import Upload
from iact.core.records.parts import Blob
from iact.core.records.record import Record
from iact.core.tree import origin
from iact.core.tree.agent import Agent
from iact.core.tree.expectations import expect
from iact.core.tree.mail import Incoming
from iact.core.tree.tree import Tree

LARGEST: Final = 32 << 20
"""The largest size of one file, in bytes."""

_LONGEST_NAME: Final = 200
_LONGEST_SUFFIX: Final = 20
_MEDIA: Final = re.compile(r"[\w.+-]{1,80}/[\w.+-]{1,80}", re.ASCII)


WORKSPACE: Final = "/workspace"
"""Where agents see the files of their session."""


def variable_name(file: str) -> str:
    """A name for a file's content: `sales 2025.csv` becomes `sales_2025`."""
    stem = file.rpartition(".")[0] or file
    name = re.sub(r"[^A-Za-z0-9_]+", "_", stem).strip("_")[:48] or "file"
    return name if not name[0].isdigit() else f"file_{name}"


def waiting(agent: Agent) -> Table:
    """An agent's variables as they will be after it has read its waiting messages."""
    table = agent.table.copy()
    for message in agent.mail.inbox:
        for name, value in message.values.items():
            table.receive(name, value)
    return table


def file_name(name: str) -> str:
    """The name of an uploaded file, without the folders that a client may have put before it."""
    file = name.replace("\\", "/").rpartition("/")[2].strip()
    if len(file) <= _LONGEST_NAME:
        return file
    stem, dot, suffix = file.rpartition(".")
    kept = f"{dot}{suffix}" if stem and len(suffix) <= _LONGEST_SUFFIX else ""
    return file[: _LONGEST_NAME - len(kept)] + kept


def upload_content(
    tree: Tree, name: str, media: str, content: bytes, path: str
) -> tuple[Upload, str, dict[str, bytes]]:
    """Build an `upload` record, its body and its blobs. `path`: the file that it becomes; empty if none.

    Raises:
        UsageError: the file is too large, or has no name.
    """
    file = file_name(name)
    if not file:
        raise UsageError("An upload needs the name of its file.")
    if len(content) > LARGEST:
        raise UsageError(f"{file!r} has {len(content):,} bytes; a file may have {LARGEST:,}.")
    digest = hashlib.sha256(content).hexdigest()
    media = media if _MEDIA.fullmatch(media) else "application/octet-stream"
    value = Value(digest, len(content), media, lambda: content)
    variable = waiting(tree.root).receive(variable_name(file), value)
    blob = Blob(sha256=digest, size=len(content))
    upload = Upload(file=file, var=variable, media=media, blob=blob, by="user", path=path)
    return upload, _told(tree, upload), {digest: content}


def incoming(tree: Tree, record: Record, upload: Upload) -> Incoming:
    """The message that an `upload` record brings."""
    value = tree.blobs.value(upload.blob, upload.media, origin.UPLOADED, "the user", again=tree.current)
    right = waiting(tree.root).receive(variable_name(upload.file), value)
    expect(tree, record, upload.var == right, f"is kept as ${upload.var}, and not as ${right}")
    expect(tree, record, record.body == _told(tree, upload), "is told of in other words")
    expect(
        tree,
        record,
        not upload.path or tree.workspace == "scratch",
        "becomes a file of the user's own folder",
    )
    if upload.path:
        origin.touch_files(tree, origin.UPLOADED)
    return Incoming(
        record.n,
        "upload",
        "the user",
        record.body,
        {upload.var: value},
        labels=origin.WRITTEN,
        file=upload.file,
    )


def _told(tree: Tree, upload: Upload) -> str:
    """What the root reads about the upload."""
    file = labels.path(upload.file)
    if upload.path:
        return f"{file}: file {labels.path(f'{WORKSPACE}/{upload.path}')} and variable ${upload.var}"
    if tree.workspace != "scratch":
        return f"{file}: variable ${upload.var}. It is no file: the workspace is a folder of mine."
    return f"{file}: variable ${upload.var}. It is no file."
