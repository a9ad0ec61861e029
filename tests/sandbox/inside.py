"""Modules in their real containers, called through the core's own client, which checks what they say."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from iact.core.modules.client import (
    ArtifactChunk,
    Attached,
    Completed,
    Invocation,
    ModuleClient,
    Outcome,
    Raised,
)
from iact.core.ports import JSON, ModuleInstance
from iact.sandbox import DockerHost
from iact.sandbox.egress import Outside
from tests.sandbox.backends import AnyHost, Backend

_NUMBERS = itertools.count(1)


class Caller:
    """Calls the functions of one running module as one agent."""

    def __init__(self, client: ModuleClient, agent: str = "/") -> None:
        self.client = client
        self.agent = agent
        self.artifacts: dict[str, bytes] = {}

    async def outcome(
        self,
        function: str,
        arguments: Mapping[str, JSON],
        *,
        seconds: float = 60,
        attached: tuple[Attached, ...] = (),
    ) -> Outcome:
        """How a call ended."""
        invocation = Invocation(
            f"test/{next(_NUMBERS)}", "s", self.agent, function, arguments, values=attached
        )
        return await self.client.invoke(invocation, timeout=seconds, on_artifact=self._keep)

    async def text(self, function: str, **arguments: JSON) -> str:
        """What a call gave back, which must have succeeded."""
        outcome = await self.outcome(function, arguments)
        assert isinstance(outcome, Completed), outcome
        return outcome.output

    async def error(self, function: str, **arguments: JSON) -> str:
        """What a call raised, which must have failed."""
        outcome = await self.outcome(function, arguments)
        assert isinstance(outcome, Raised), outcome
        return f"{outcome.type}: {outcome.message}"

    async def _keep(self, chunk: ArtifactChunk) -> None:
        self.artifacts[chunk.id] = self.artifacts.get(chunk.id, b"") + chunk.data


@asynccontextmanager
async def called(instance: ModuleInstance) -> AsyncIterator[Caller]:
    """A caller of `instance`."""
    async with ModuleClient(instance.target) as client:
        yield Caller(client)


@asynccontextmanager
async def hosting(
    data: Path, *, shipped: Path | None = None, outside: Outside | None = None
) -> AsyncIterator[DockerHost]:
    """A host that is closed however the test ends."""
    host = DockerHost(data, shipped=shipped, outside=outside)
    try:
        yield host
    finally:
        await host.close()


@asynccontextmanager
async def hosting_on(
    backend: Backend, data: Path, *, shipped: Path | None = None, outside: Outside | None = None
) -> AsyncIterator[AnyHost]:
    """Likewise, on a backend."""
    host = backend.host(data, shipped=shipped, outside=outside)
    try:
        yield host
    finally:
        await host.close()
