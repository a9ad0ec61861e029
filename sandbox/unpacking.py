"""Asks a sandbox that has nothing but wheels in it what they need, and to unpack them (`sandbox.unpack_inside`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import grpc

from iact.core.errors import ModuleLost, PackagesUnavailable
from iact.sandbox import unpack_inside
from iact.sandbox.catalogue import CatalogueModule
from iact.sandbox.images import payload
from iact.sandbox.images.closure import Read

NAME: Final = "packages"

_PROGRAM: Final = "unpack_inside.py"
_READ_WITHIN: Final = 60.0
_UNPACK_WITHIN: Final = 300.0
"""Seconds for all wheels of a module."""
_LONGEST: Final = 4 << 20
"""The longest answer, in bytes."""


def unpacker(module: CatalogueModule) -> CatalogueModule:
    """What is started to unpack the packages of `module`: in the same system, with a folder and no way out."""
    program = Path(unpack_inside.__file__)
    return CatalogueModule(
        name=NAME,
        summary="Unpacks packages.",
        folder=program.parent,
        digest=payload.digest_of([(_PROGRAM, program.read_bytes())]),
        origin="shipped",
        workspace="write",
        memory=0,
        cpus=1.0,
        processes=64,
        packages=module.packages,
        workshop=module.workshop,
        sources=((_PROGRAM, program),),
        command=("python3", "-P", f"./{_PROGRAM}"),
    )


class Unpacker:
    """A running sandbox for packages. `wheels`: its folder of wheels, as the host sees it."""

    def __init__(self, target: str, wheels: Path) -> None:
        self._target = target
        self._wheels = wheels

    def reading(self) -> Read:
        """A function for threads that reads the metadata of a wheel inside."""
        loop = asyncio.get_running_loop()

        def read(wheel: Path) -> Mapping[str, object]:
            return asyncio.run_coroutine_threadsafe(self._read(wheel), loop).result()

        return read

    async def unpack(self, wheels: Sequence[Path]) -> None:
        """Unpack these wheels.

        Raises:
            PackagesUnavailable: one is refused.
            ModuleLost: the sandbox did not answer.
        """
        said = await self._ask("unpack", wheels, _UNPACK_WITHIN)
        if "refused" in said:
            raise PackagesUnavailable(f"A package is refused: {str(said['refused'])[:500]}.")

    async def _read(self, wheel: Path) -> Mapping[str, object]:
        return await self._ask("needs", [wheel], _READ_WITHIN)

    async def _ask(self, do: str, wheels: Sequence[Path], within: float) -> Mapping[str, object]:
        names = [wheel.relative_to(self._wheels).as_posix() for wheel in wheels]
        asked = json.dumps({"do": do, "wheels": names}).encode()
        options = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", _LONGEST)]
        async with grpc.aio.insecure_channel(self._target, options=options) as channel:
            call = channel.unary_unary(unpack_inside.METHOD, None, None)
            try:
                said = json.loads(await call(asked, timeout=within))
            except (grpc.RpcError, ValueError) as error:
                raise ModuleLost("The sandbox that unpacks packages did not answer.") from error
        if not isinstance(said, dict):
            raise ModuleLost("The sandbox that unpacks packages did not answer.")
        return said
