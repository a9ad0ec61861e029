"""Files that a user hands to a session: each becomes an immutable variable of the root's, originating from the user.

An upload is a message that does not wake an agent. The root reads about it, and gets the variable, with its next turn:
a variable that appeared while a model writes would not be in the context of its turn.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from iact.core.errors import UsageError
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
_MEDIA: Final = re.compile(r"[\w.+-]{1,80}/[\w.+-]{1,80}", re.ASCII)


def variable_name(file: str) -> str:
    """A name for a file's content: `sales 2025.csv` becomes `sales_2025_csv`."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", file).strip("_")[:48] or "file"
    return name if not name[0].isdigit() else f"file_{name}"


def waiting(agent: Agent) -> Table:
    """An agent's variables as they will be after it has read its waiting messages."""
    table = agent.table.copy()
    for message in agent.mail.inbox:
        for name, value in message.values.items():
            table.receive(name, value)
    return table


def upload_content(
    agent: Agent, name: str, media: str, content: bytes
) -> tuple[Upload, str, dict[str, bytes]]:
    """Build an `upload` record, its body and its blobs.

    Raises:
        UsageError: the file is too large, or has no name.
    """
    file = name.replace("\\", "/").rpartition("/")[2].strip()[:_LONGEST_NAME]
    if not file:
        raise UsageError("An upload needs the name of its file.")
    if len(content) > LARGEST:
        raise UsageError(f"{file!r} has {len(content):,} bytes; a file may have {LARGEST:,}.")
    digest = hashlib.sha256(content).hexdigest()
    media = media if _MEDIA.fullmatch(media) else "application/octet-stream"
    value = Value(digest, len(content), media, lambda: content)
    variable = waiting(agent).receive(variable_name(file), value)
    blob = Blob(sha256=digest, size=len(content))
    upload = Upload(file=file, var=variable, media=media, blob=blob, by="user")
    return upload, _told(file, variable), {digest: content}


def incoming(tree: Tree, record: Record, upload: Upload) -> Incoming:
    """The message that an `upload` record brings."""
    blobs, digest = tree.blobs, upload.blob.sha256
    value = Value(digest, upload.blob.size, upload.media, lambda: blobs(digest), origin.UPLOADED, "the user")
    right = waiting(tree.root).receive(variable_name(upload.file), value)
    expect(tree, record, upload.var == right, f"is kept as ${upload.var}, and not as ${right}")
    expect(tree, record, record.body == _told(upload.file, upload.var), "is told of in other words")
    return Incoming(record.n, "upload", "the user", record.body, {upload.var: value}, labels=origin.WRITTEN)


def _told(file: str, variable: str) -> str:
    """What the root reads about the upload."""
    return f"I uploaded the file {' '.join(file.split())!r} as ${variable}."
