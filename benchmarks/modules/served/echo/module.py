"""A trivial function, an artifact of any size, and a bare echo on a second socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ext_modules.sdk import Call, Module

from . import bare

module = Module("echo", "What the benchmark of modules calls.")
SOCKET = "/run/iact/bare.sock"
PIECE = bytes(range(256)) * 4096
"""One MiB."""


@module.lifespan
@asynccontextmanager
async def _beside() -> AsyncIterator[None]:
    server = await bare.start(SOCKET)
    try:
        yield
    finally:
        await server.stop(None)


@module.function(impact=0, summary="Give back what it got.")
async def echo(text: str) -> str:
    """text: anything."""
    return text


@module.function(impact=0, summary="Send an artifact.", timeout=120)
def send(call: Call, mebibytes: int) -> None:
    """mebibytes: its size."""
    call.artifact(PIECE * mebibytes, name="large", media_type="application/octet-stream")
