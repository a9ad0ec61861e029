"""The baseline: a plain loop over the OpenAI client, which all frameworks use.

It sends the whole history at every step, as the protocol requires, so even its cost grows with the history.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import openai
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from benchmarks.peers.framework import CALLS, KEY, READS, SYSTEM, Ask, Framework, main


def _tool(name: str, description: str) -> ChatCompletionToolParam:
    schema: dict[str, object] = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


class Floor(Framework):
    """The plain loop without a framework."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(url, folder)
        self._client = openai.AsyncOpenAI(base_url=url, api_key=KEY)

    def _dialogue(self, tools: list[ChatCompletionToolParam], depth: int) -> Ask:
        messages: list[ChatCompletionMessageParam] = [{"role": "system", "content": SYSTEM}]

        async def run(name: str, given: str) -> str:
            if name == "read":
                return self.lines()
            text: str = json.loads(given)["text"]
            return await self._dialogue(tools if depth > 1 else [], depth - 1)(text)

        async def ask(text: str) -> str:
            messages.append({"role": "user", "content": text})
            while True:
                answer = await self._client.chat.completions.create(
                    model=self.model, messages=messages, tools=tools or openai.omit
                )
                said = answer.choices[0].message
                calls = [one for one in said.tool_calls or () if one.type == "function"]
                if not calls:
                    messages.append({"role": "assistant", "content": said.content or ""})
                    return said.content or ""
                messages.append(
                    {
                        "role": "assistant", "content": said.content or "",
                        "tool_calls": [
                            {
                                "id": one.id, "type": "function",
                                "function": {"name": one.function.name, "arguments": one.function.arguments},
                            }
                            for one in calls
                        ],
                    }
                )  # fmt: skip
                async with asyncio.TaskGroup() as group:
                    tasks = [
                        group.create_task(run(one.function.name, one.function.arguments)) for one in calls
                    ]
                for one, task in zip(calls, tasks, strict=True):
                    messages.append({"role": "tool", "tool_call_id": one.id, "content": task.result()})

        return ask

    async def reader(self, limit: int, *, stored: bool = False) -> Ask:
        return self._dialogue([_tool("read", READS)], 0)

    async def caller(self, width: int, depth: int) -> Ask:
        return self._dialogue([_tool("call", CALLS)], depth)

    async def answerer(self) -> Ask:
        return self._dialogue([], 0)

    async def close(self) -> None:
        await self._client.close()


if __name__ == "__main__":
    main(Floor)
