"""A chat with LangChain's model. Usage: langchain_program.py URL KEY CHAT-OR-RESPONSES ASKED-BY-CALL

Steps: {"say": TEXT}, {"decide": true or false} about the calls that ask, {"leave": TEXT}, which hangs up at the first words.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

QUESTIONS = {
    "type": "function",
    "function": {"name": "iact_clearance", "parameters": {"type": "object", "properties": {}}},
}


def weather(city: str) -> str:
    """The weather in a city."""
    return f"Rain in {city}"


WEATHER = tool(weather)


def main(url: str, key: str, interface: str, by_call: str) -> None:
    tools = [WEATHER, QUESTIONS] if by_call == "yes" else [WEATHER]
    model = ChatOpenAI(
        model="iact",
        base_url=f"{url}/v1",
        api_key=key,
        timeout=600,
        use_responses_api=interface == "responses",
    ).bind_tools(tools)
    chat: list[Any] = []

    def told() -> dict[str, object]:
        answer = model.invoke(chat)
        chat.append(answer)
        own = [call for call in answer.tool_calls if call["name"] == "weather"]
        if not own:
            return {"text": answer.text, "asked": bool(answer.tool_calls)}
        chat.extend(ToolMessage(WEATHER.invoke(call["args"]), tool_call_id=call["id"]) for call in own)
        return told()

    def do(step: dict[str, Any]) -> dict[str, object]:
        if "decide" in step:
            word = "allow" if step["decide"] else "deny"
            chat.extend(ToolMessage(word, tool_call_id=call["id"]) for call in chat[-1].tool_calls)
            return told()
        if "say" in step:
            chat.append(HumanMessage(step["say"]))
            return told()

        pieces = model.stream([*chat, HumanMessage(step["leave"])])
        text = next(piece.text for piece in pieces if piece.text)
        pieces.close()
        return {"text": text}

    for line in sys.stdin:
        try:
            result = do(json.loads(line))
        except Exception as error:  # what the client raises is what is looked at
            code, status = getattr(error, "code", None), getattr(error, "status_code", None)
            result = {"failed": f"{status} {code} {error}"}
        print(json.dumps(result), flush=True)


main(*sys.argv[1:])
