"""The module that asks other people's agents, in process: what it shows to whom, and what it reads as an address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from ext_modules.a2a.module import module
from ext_modules.sdk.testing import Bench, Done
from ext_modules.sdk.values import JSON
from tests.ext_modules.website import certificate
from tests.foreign_agents import AGENT, OLD, PLAIN, REST, Server, foreign_agents

TOKEN = "a-token-that-nobody-else-sees"


@asynccontextmanager
async def proxy(server: Server) -> AsyncIterator[str]:
    """A proxy by which every name leads to the server; gives its address."""

    async def one_way(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.write_eof()

    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", server.port)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(one_way(reader, far_writer))
                    group.create_task(one_way(far_reader, writer))
            finally:
                far_writer.close()
        finally:
            writer.close()

    made = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{made.sockets[0].getsockname()[1]}"
    finally:
        made.close()
        if serving:
            await asyncio.wait(serving)


async def called(
    server: Server, monkeypatch: pytest.MonkeyPatch, function: str, arguments: Mapping[str, JSON]
) -> Done:
    async with proxy(server) as address:
        monkeypatch.setenv("HTTPS_PROXY", address)
        return await Bench(module).call(function, arguments, timeout=60)


async def test_a_token_is_shown_to_its_host_and_comes_back_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate(tmp_path, AGENT)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    monkeypatch.setenv("A2A_TOKENS", f"other.test not-for-this-one\n{AGENT} {TOKEN}\n")
    with foreign_agents(tls=(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))) as server:
        asked = {"at": f"https://{AGENT}", "message": f"echo {TOKEN}"}
        done = await called(server, monkeypatch, "ask", asked)
        assert (done.error, done.output) == (None, "[secret A2A_TOKENS]")
        assert server.tokens == [f"Bearer {TOKEN}"]
        refused = await called(server, monkeypatch, "ask", {**asked, "at": "https://other.test"})
        assert refused.error is not None
        assert "The certificate of other.test is not valid" in refused.error.message
        assert len(server.tokens) == 1


@pytest.mark.parametrize(
    "at",
    ["agent.test", "ftp://agent.test", "https://", "https://agent.test/?q=1", "https://me:pass@agent.test"],
)
async def test_what_is_no_address_reaches_nobody(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with foreign_agents() as server:
        done = await called(server, monkeypatch, "card", {"at": at})
        assert done.error is not None
        assert server.tokens == []


async def test_the_address_of_a_card_is_that_of_its_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    with foreign_agents() as server:
        at = f"http://{AGENT}/.well-known/agent-card.json"
        done = await called(server, monkeypatch, "card", {"at": at})
        assert "Timetable" in done.output


@pytest.mark.parametrize("host", [AGENT, PLAIN, REST, OLD])
async def test_other_bindings_and_the_protocol_before_are_spoken_too(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with foreign_agents() as server:
        done = await called(server, monkeypatch, "ask", {"at": f"http://{host}", "message": "count"})
        assert done.error is None, done.error
        assert done.output.startswith("One, two, three.")
        assert [one.data for one in done.artifacts.values()] == [b"\x00\x01"]
        told = [one.text for one in done.progress]
        assert f"asking Timetable at {host}" in told
        assert ("counting" in told) == (host != PLAIN), "a stream tells how far it is"
        asks = await called(server, monkeypatch, "ask", {"at": f"http://{host}", "message": "book"})
        assert (asks.data["state"], "For which day?" in asks.output) == ("input_required", True)
        answer = {"at": f"http://{host}", "task": asks.data["task"], "message": "Monday"}
        booked = await called(server, monkeypatch, "answer", answer)
        assert booked.output.startswith("Booked for Monday."), booked.error
