"""Whether a module serves, and why its container ended."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Final

import grpc
from docker.errors import NotFound
from docker.models.containers import Container
from grpc_health.v1 import health_pb2, health_pb2_grpc

from core.errors import SandboxUnavailable
from sandbox.engine import EngineFailure, knock

_LOG_LINES, LOG_SIZE = 60, 8_000
"""Lines and characters of a module's log that are read when it did not come up: enough for a stack trace."""


async def serves(target: str, *, within: float) -> bool:
    """Whether the standard health service at `target` says SERVING within so many seconds."""
    async with grpc.aio.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            answer = await health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(service=""), timeout=within
            )
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


_KILLED: Final = 128 + signal.SIGKILL
"""The exit status of a container whose first process somebody killed."""


def why_ended(container: Container, name: str) -> str | None:
    """A sentence on how the container ended, or None while it runs. Blocks."""
    try:
        knock()
        container.reload()
    except NotFound:
        return f"The container of module {name} was removed."
    except (*EngineFailure, SandboxUnavailable):
        return f"The Docker engine stopped answering, and with it the module {name}."
    state = container.attrs["State"]
    if state.get("Status") in ("running", "created"):
        return None
    if state.get("OOMKilled"):
        return f"The kernel ended the module {name} because it used more memory than it may."
    if state.get("Status") == "paused":
        return f"The container of module {name} was paused from outside."
    status = state.get("ExitCode", "unknown")
    if status == _KILLED:
        return f"The module {name} was killed (status {status}).{last_words(printed(container))}"
    return f"The module {name} ended with status {status}.{last_words(printed(container))}"


def standing(container: Container) -> str | None:
    """The kernel's account of the container's first process; None where that is another kernel's. Blocks.

    The engine may count processes otherwise than we do, so whether it is the container's is looked at, too.
    """
    container.reload()
    process = Path("/proc") / str(container.attrs["State"].get("Pid") or "none")
    try:
        ours = str(container.id) in (process / "cgroup").read_text("ascii", "replace")
        return (process / "status").read_text("utf-8", "replace") if ours else None
    except OSError:
        return None


def printed(container: Container) -> str:
    """The end of what the module printed: untrusted text, at most so much of it. Blocks."""
    try:
        return container.logs(tail=_LOG_LINES).decode("utf-8", "replace").strip()[-LOG_SIZE:]
    except EngineFailure:
        return ""


def last_words(log: str) -> str:
    """The last line of a module's own log, made harmless: it is untrusted text."""
    lines = log.splitlines()
    printable = "".join(char if char.isprintable() else " " for char in lines[-1][:300]) if lines else ""
    return f" Its last words: {printable}" if printable else ""
