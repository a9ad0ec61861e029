"""What a module opens around its serving: functions may come to it until then, and it is closed at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ext_modules.sdk import Function, Module
from ext_modules.sdk.given import GivenParameters
from ext_modules.sdk.testing import Bench


def test_functions_with_given_schemas_come_with_the_lifespan() -> None:
    module, seen = Module("given", "Functions that come later."), list[str]()

    async def handler(call: object, arguments: dict[str, object]) -> str:
        return f"{sorted(arguments.items())}"

    @module.lifespan
    @asynccontextmanager
    async def open_and_close() -> AsyncIterator[None]:
        schema = GivenParameters(
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        )
        module.add(Function("later", handler, schema, "s", "", "", "", "", 0, True, False, (), 0))
        yield
        seen.append("closed")

    async def scenario() -> None:
        assert not module.functions
        async with module.running():
            bench = Bench(module)
            assert (await bench.call("later", {"a": 1, "call": 2})).output == "[('a', 1), ('call', 2)]"
            refused = await bench.call("later", {})
            assert refused.error is not None
            assert refused.error.type == "BadArguments"
            assert seen == []
        assert seen == ["closed"]

    asyncio.run(scenario())
