"""Whether a module serves, and the last line of its log."""

from __future__ import annotations

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

LOG_LINES, LOG_SIZE = 60, 8_000
"""Lines and characters of a module's log that are read if it did not come up: enough for a stack trace."""


async def serves(target: str, *, within: float) -> bool:
    """Whether the standard health service at `target` answers SERVING within so many seconds."""
    async with grpc.aio.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            answer = await health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(service=""), timeout=within
            )
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def last_words(log: str) -> str:
    """The last line of a module's log, made harmless: it is untrusted text."""
    lines = log.splitlines()
    printable = "".join(char if char.isprintable() else " " for char in lines[-1][:300]) if lines else ""
    return f" Its last words: {printable}" if printable else ""
