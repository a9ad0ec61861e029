"""A model that is silent for a minute: every client waits for the answer, and none gives up or asks again.

All of them wait at the same time. Clients that read a stream give up after half a minute of silence here, as many proxies
do, so only what the server sends in between keeps them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Final

import httpx
import httpx2
import pytest
from a2a.client import ClientConfig, ClientFactory
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from openai import OpenAI

from tests import clients
from tests.acceptance import test_ag_ui
from tests.acceptance.callers import CHAT_PROGRAMS, Server, caller
from tests.acceptance.editor import editing
from tests.acceptance.product import NO_MODULES, Product
from tests.acceptance.test_a2a import request
from tests.acceptance.test_mcp import ERAS, words
from tests.acceptance.test_responses import client, serving
from tests.endpoint import Endpoint, Reply

SILENT: Final = 60.0
"""Seconds for which the model says nothing."""
IMPATIENT: Final = 30.0
"""Seconds of silence on a connection after which a client gives up."""
DONE: Final = "Done at last."


def responses(model: OpenAI) -> str:
    with model.responses.create(model="iact", input="Go", stream=True) as events:
        return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def response_told_again(model: OpenAI) -> str:
    begun = model.responses.create(model="iact", input="Go", background=True)
    with model.responses.retrieve(begun.id, stream=True) as events:
        return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def chat(model: OpenAI) -> str:
    said = model.chat.completions.create(
        model="iact", messages=[{"role": "user", "content": "Go"}], stream=True
    )
    with said as chunks:
        return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def whole(model: OpenAI) -> str:
    """Without a stream, nothing can be sent before the answer: a client waits as long as its own limit says."""
    return model.with_options(timeout=600).responses.create(model="iact", input="Go").output_text


def front_end(url: str, key: str) -> str:
    (run,) = test_ag_ui.client(url, key, {"say": "Go"})
    return "".join(str(event["delta"]) for event in run.events if event["type"] == "TEXT_MESSAGE_CONTENT")


async def task(url: str, key: str) -> str:
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(headers=headers, timeout=IMPATIENT) as http:
        agent = await ClientFactory(ClientConfig(httpx_client=http)).create_from_url(url)
        events = [event async for event in agent.send_message(request("Go"))]
    artifacts = [event.artifact_update.artifact for event in events if event.HasField("artifact_update")]
    return "".join(part.text for artifact in artifacts for part in artifact.parts)


async def tool(url: str, key: str, era: str) -> str:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=IMPATIENT) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=era) as on,
    ):
        return words(await on.call_tool("iact_ask", {"task": "Go"}))


async def editor(product: Product, folder: Path) -> str:
    async with editing(product) as opened:
        session = await opened.new(folder)
        ended = await opened.prompt(session.session_id, "Go")
        assert ended.stop_reason == "end_turn"
        return opened.person.said


async def program(name: str, server: Server) -> str:
    async with caller(name, server) as told:
        return (await told.say("Go")).text


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
async def test_everybody_waits_for_a_model_that_is_silent_for_a_minute(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    environment = await asyncio.to_thread(clients.environment, tmp_path_factory)
    with Endpoint({"/": [Reply(DONE, first_delay=SILENT)]}, by_turn=True) as endpoint:
        product = Product.at(tmp_path / "served", endpoint, **NO_MODULES)
        own = Product.at(tmp_path / "editor", endpoint, **NO_MODULES)
        folder = tmp_path / "project"
        folder.mkdir()
        with serving(product) as url:
            key = test_ag_ui.key_of(product)
            model = client(product, url).with_options(timeout=IMPATIENT)
            server = Server(product, url, key, environment, folder)
            waiting: dict[str, Awaitable[str]] = {
                "Responses": asyncio.to_thread(responses, model),
                "Responses, told again": asyncio.to_thread(response_told_again, model),
                "Responses, whole": asyncio.to_thread(whole, model),
                "chat completions": asyncio.to_thread(chat, model),
                "AG-UI": asyncio.to_thread(front_end, url, key),
                "A2A": task(url, key),
                **{f"MCP, {era}": tool(url, key, era) for era in ERAS},
                "ACP": editor(own, folder),
                **{name: program(name, server) for name in CHAT_PROGRAMS},
            }
            answers = await asyncio.gather(*waiting.values())
        assert dict(zip(waiting, answers, strict=True)) == dict.fromkeys(waiting, DONE)
        assert len(endpoint.requests) == len(waiting), "nobody asked again"
