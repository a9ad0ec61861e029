"""Files that the calls of a task produced, such as figures, as artifacts of the task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from a2a.types import Artifact, Part
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct

from iact.core.ports import JSON
from iact.core.records.calls import Result
from iact.core.records.record import Record
from iact.core.stored import blobs

MOST_BYTES: Final = 8 << 20
"""The most bytes of all files in one answer. Of others, an artifact has the name and the size."""


def file_artifacts(
    task: str, folder: Path, records: Iterable[Record], *, most: int = MOST_BYTES
) -> Iterator[Artifact]:
    """The files in these records of a session, in order. `folder`: of the session. Blocks."""
    left = most
    for record in records:
        if not isinstance(record.content, Result):
            continue
        for number, file in enumerate(record.content.artifacts):
            content = blobs.blob(folder, file.sha256, most=left)
            about: dict[str, JSON] = {"agent": record.agent, "record": record.n, "bytes": file.size}
            if content is not None:
                left -= len(content)
                part = Part(raw=content, media_type=file.media, filename=file.name)
            else:
                part = Part(
                    text=f"{file.name} has {file.size} bytes, and is in the session.", media_type="text/plain"
                )
            yield Artifact(
                artifact_id=f"{task}.{record.n}.{number}", name=file.name, parts=[part],
                metadata=ParseDict(about, Struct()),
            )  # fmt: skip
