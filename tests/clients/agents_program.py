"""A conversation with an agent of OpenAI's Agents SDK. Usage: agents_program.py URL KEY CHAT-OR-RESPONSES ASKED-BY-CALL

Steps: {"say": TEXT}, {"decide": true or false} about the calls that ask, {"leave": TEXT}, which hangs up at the first words.
A question that comes as a call is a tool that needs the approval of the SDK's own user.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI


def weather(city: str) -> str:
    """The weather in a city."""
    return f"Rain in {city}"


WEATHER = function_tool(weather)


async def allowed(context: Any, arguments: str) -> str:
    return "allow"


QUESTIONS = FunctionTool(
    name="iact_clearance", description="Asks the user.", params_json_schema={"type": "object", "properties": {}},
    on_invoke_tool=allowed, strict_json_schema=False, needs_approval=True,
)  # fmt: skip


class Conversation:
    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.items: list[Any] = []
        self.last: Any = None

    async def do(self, step: dict[str, Any]) -> dict[str, object]:
        if "leave" in step:
            return await self.leave(step["leave"])
        if "say" in step:
            self.items.append({"role": "user", "content": step["say"]})
            return self.told(await Runner.run(self.agent, self.items))

        state = self.last.to_state()
        for call in self.last.interruptions:
            if step["decide"]:
                state.approve(call)
            else:
                state.reject(call, rejection_message="deny")
        return self.told(await Runner.run(self.agent, state))

    def told(self, result: Any) -> dict[str, object]:
        self.last = result
        if result.interruptions:
            return {"text": "", "asked": True}
        self.items = result.to_input_list()
        return {"text": result.final_output, "asked": False}

    async def leave(self, text: str) -> dict[str, object]:
        streamed = Runner.run_streamed(self.agent, [*self.items, {"role": "user", "content": text}])
        async for event in streamed.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                streamed.cancel()
                return {"text": event.data.delta}
        return {"text": ""}


async def main(url: str, key: str, interface: str, by_call: str) -> None:
    set_tracing_disabled(True)  # the SDK sends its traces to OpenAI
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key=key, timeout=600)
    kind = OpenAIResponsesModel if interface == "responses" else OpenAIChatCompletionsModel
    tools = [WEATHER, QUESTIONS] if by_call == "yes" else [WEATHER]
    conversation = Conversation(Agent(name="Guide", model=kind("iact", client), tools=tools))
    while line := await asyncio.to_thread(sys.stdin.readline):
        try:
            result = await conversation.do(json.loads(line))
        except Exception as error:  # what the client raises is what is looked at
            code, status = getattr(error, "code", None), getattr(error, "status_code", None)
            result = {"failed": f"{status} {code} {error}"}
        print(json.dumps(result), flush=True)


asyncio.run(main(*sys.argv[1:]))
