"""The mounts below a folder: a read-only mount of the folder does not make them read-only."""

from __future__ import annotations

import re
from pathlib import Path

_LIST = Path("/proc/self/mountinfo")


def below(folder: Path, listed: str | None = None) -> list[Path]:
    """The mount points below `folder`, which must be resolved; outer ones first.

    Leaves out those that an engine could not mount: those that only their user may enter, and automounts. `listed`: the
    kernel's mount table, if not this process's own (proc_pid_mountinfo(5)).
    """
    text = _LIST.read_text("utf-8", "surrogateescape") if listed is None else listed
    points = {Path(_plain(line.split(" ")[4])) for line in text.splitlines() if _open_to_others(line)}
    return sorted(point for point in points if folder in point.parents)


def _open_to_others(line: str) -> bool:
    kind, _, options = line.partition(" - ")[2].partition(" ")
    return kind != "autofs" and (not kind.startswith("fuse") or "allow_other" in options)


def _plain(escaped: str) -> str:
    """Decode a path: the table has blanks and backslashes as octal numbers, byte by byte."""
    raw = re.sub(
        rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), escaped.encode("utf-8", "surrogateescape")
    )
    return raw.decode("utf-8", "surrogateescape")
