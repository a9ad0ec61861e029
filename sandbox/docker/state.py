"""The state of a container according to the engine and the kernel: whether it runs, why it ended, what it printed."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Final

from docker.errors import NotFound
from docker.models.containers import Container

from iact.core.errors import SandboxUnavailable
from iact.sandbox.docker.engine import EngineFailure, knock
from iact.sandbox.health import LOG_LINES, LOG_SIZE, last_words

_KILLED: Final = 128 + signal.SIGKILL
"""The exit status of a container whose first process was killed."""


def why_ended(container: Container, name: str) -> str | None:
    """A sentence on how the container ended, or None while it runs. Blocks."""
    try:
        knock()
        container.reload()
    except NotFound:
        return f"The container of module {name} was removed."
    except (*EngineFailure, SandboxUnavailable):
        return f"The Docker engine stopped answering, and so did the module {name}."
    state = container.attrs["State"]
    if state.get("Status") in ("running", "created"):
        return None
    if state.get("OOMKilled"):
        return f"The kernel ended the module {name}, because it used more memory than allowed."
    if state.get("Status") == "paused":
        return f"The container of module {name} was paused from outside."
    status = state.get("ExitCode", "unknown")
    if status == _KILLED:
        return f"The module {name} was killed (status {status}).{last_words(printed(container))}"
    return f"The module {name} ended with status {status}.{last_words(printed(container))}"


def kernel_status(container: Container) -> str | None:
    """The kernel's status of the container's first process, or None if that runs on another kernel. Blocks.

    The engine's process ids may differ from ours, so the process is checked to belong to the container.
    """
    container.reload()
    process = Path("/proc") / str(container.attrs["State"].get("Pid") or "none")
    try:
        ours = str(container.id) in (process / "cgroup").read_text("ascii", "replace")
        return (process / "status").read_text("utf-8", "replace") if ours else None
    except OSError:
        return None


def printed(container: Container) -> str:
    """The end of the module's output: untrusted text of limited length. Blocks."""
    try:
        return container.logs(tail=LOG_LINES).decode("utf-8", "replace").strip()[-LOG_SIZE:]
    except EngineFailure:
        return ""
