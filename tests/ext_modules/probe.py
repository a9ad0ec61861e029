"""A module that the tests serve: artifacts, states, progress, content by value, and work that waits."""

from __future__ import annotations

import asyncio

from ext_modules.sdk import Call, Module, Result, Value
from ext_modules.sdk.values import JSON

module = Module(
    "probe", "What the tests need.", keywords=["probe"], states={"off": "It is off.", "on": "It is on."}
)


@module.function(impact=0)
async def measure(call: Call, content: bytes, text: str = "", numbers: list[int] | None = None) -> Result:
    """Says how much it was given, and gives the content back."""
    call.progress("measuring", 0.5)
    await asyncio.sleep(0)
    return Result(
        Value(content, "application/x-copy", "copy.bin"), data={"text": len(text), "sum": sum(numbers or [])}
    )


@module.function(impact=1, states=["off"])
def turn_on(call: Call) -> str:
    """Turns it on."""
    call.move("on", note="the light is green")
    return "It is on now."


@module.function(impact=1, states=["on"])
async def turn_off_later(call: Call) -> None:
    """Turns it off by itself, after the call."""
    asyncio.get_running_loop().call_later(0.05, call.agent_state.move, "off")


@module.function(impact=0)
def raise_error() -> None:
    """Raises."""
    raise KeyError("no such key")


@module.function(impact=0)
async def ask(call: Call, message: str, form: bool = True) -> str:
    """Asks a person."""
    schema: dict[str, JSON] = {"type": "object", "properties": {"town": {"type": "string"}}}
    answer = await call.ask(message, schema if form else None)
    return f"{answer.action} {dict(answer.values)} {answer.reason}".rstrip()


@module.function(impact=0)
async def report_cancel(call: Call) -> str:
    """Waits for ever; `was_cancelled` tells whether it was cancelled."""
    call.output("waiting")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        module.agent(call.session, call.agent).data["cancelled"] = True
        raise
    return ""


@module.function(impact=0)
async def was_cancelled(call: Call) -> bool:
    """Whether this agent's `report_cancel` was cancelled."""
    return bool(call.state.get("cancelled"))
