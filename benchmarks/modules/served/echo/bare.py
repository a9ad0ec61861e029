"""The least that grpc.aio can do, for comparison: one unary method that returns the bytes that it received.

It runs on the host (`bare.py SOCKET`), and next to the module in the module's container.
"""

from __future__ import annotations

import asyncio
import sys

import grpc
import grpc.aio

SERVICE = "bench.Bare"


async def _echo(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
    return request


async def start(socket: str) -> grpc.aio.Server:
    """Start a server on `socket`. The caller must stop it."""
    server = grpc.aio.server()
    methods = {"Echo": grpc.unary_unary_rpc_method_handler(_echo)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    return server


async def main() -> None:
    server = await start(sys.argv[1])
    print("ready", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main())
