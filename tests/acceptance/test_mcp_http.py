"""Sessions over MCP's streamable HTTP: the official SDK's client against `iact serve --faces` and a scripted model."""

from __future__ import annotations

import asyncio
import json
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from mcp import MCPError
from mcp_types import ElicitRequestFormParams, ElicitResult

from iact.core.journal import read_journal
from iact.core.ports import JSON
from tests.acceptance.mcp_client import Asked, Connected, Tasks, connected_by_http
from tests.acceptance.members import bearer, token_of, with_people
from tests.acceptance.product import NO_MODULES, ROOT, Product, until
from tests.acceptance.test_a2a import POLICY, key_of, serving
from tests.acceptance.test_mcp import ERAS, NO, YES, read, session_of, words
from tests.endpoint import Endpoint, Gate, Reply

WRITE = "I write.\n\n```files.write path=a.txt\nhello\n```"
MODERN = "2026-07-28"


def written(product: Product, session: str) -> bool:
    return (product.data / "sessions" / session / "workspace" / "a.txt").exists()


def answers(product: Product, session: str) -> list[str]:
    """How each answer of the root ended."""
    journal = product.data / "sessions" / session / "journal.md"
    return [one.text("status") for one in read_journal(journal).records if one.kind == "reply"]


def body_of(method: str, **params: JSON) -> tuple[dict[str, str], dict[str, JSON]]:
    """The headers and the body of a request of the newest revision, from a client that can ask its user."""
    meta: dict[str, JSON] = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    headers = {
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": method,
        "Accept": "application/json, text/event-stream",
        **({"Mcp-Name": str(params["name"])} if "name" in params else {}),
    }
    return headers, {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}


def post(url: str, token: str, method: str, **params: JSON) -> dict[str, JSON]:
    """What such a request is answered."""
    headers, body = body_of(method, **params)
    given = httpx.post(f"{url}/mcp", json=body, headers={**bearer(token), **headers}, timeout=300)
    lines = [one[6:] for one in given.text.splitlines() if one.startswith("data: ")]
    told = json.loads(lines[-1]) if lines else given.json()
    assert isinstance(told, dict)
    return told if given.status_code == 200 else {"status": given.status_code, **told}


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
async def test_clients_of_both_eras_speak_read_and_hang_up(tmp_path: Path) -> None:
    gates = [Gate(), Gate()]
    replies = ["I keep it.\n\n```VAR plan\nfirst this\n```", "Kept.", "As before."] * 2
    script: list[Reply | str] = [
        *replies,
        *(Reply("Takes its time.", gates={3: gate}) for gate in gates),
        "By a task.",
    ]
    with Endpoint({"/": script}, by_turn=False) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with serving(product) as url:
            key = key_of(product)
            for era in ERAS:
                async with connected_by_http(url, key, mode=era) as on:
                    await speaks_and_reads(on)
            for era, gate in zip(ERAS, gates, strict=True):
                async with connected_by_http(url, key, mode=era) as on, asyncio.TaskGroup() as group:
                    before = {one.name for one in (tmp_path / "sessions").iterdir()}
                    call = group.create_task(on.client.call_tool("iact_ask", {"task": "Do it."}))
                    assert await asyncio.to_thread(gate.wait)
                    call.cancel()
                    (session,) = {one.name for one in (tmp_path / "sessions").iterdir()} - before
                    ended = lambda one=session: answers(product, one) == ["cancelled"]  # noqa: E731
                    await asyncio.to_thread(until, ended, "the work to end")
                    gate.release()
            async with connected_by_http(url, key, extensions=[Tasks()]) as on:
                created = await on.begin(task="Do it.")
                done = await on.until(created.task_id, "completed")
                assert done.result is not None
                assert words(done.result) == "By a task."
        for one in product.journals():
            assert product.run("replay", "--verify", one.parent.name).status == 0


async def speaks_and_reads(on: Connected) -> None:
    """A first task, a second in the same session, and what it holds."""
    told: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    first = await on.client.call_tool("iact_ask", {"task": "Keep it."}, progress_callback=on_progress)
    assert (words(first), first.is_error) == ("Kept.", False)
    assert told[0] == "Modules are switched off by the setting IACT_SANDBOX=off."
    session = session_of(first)
    again = await on.client.call_tool("iact_ask", {"task": "And now?", "session": session})
    assert (words(again), session_of(again)) == ("As before.", session)
    uris = [one.uri for one in (await on.client.list_resources()).resources]
    assert f"iact://session/{session}/journal" in uris
    (variable,) = json.loads(await read(on, f"iact://session/{session}/variables"))
    assert (await read(on, variable["uri"])).strip() == "first this"


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
async def test_questions_are_asked_of_the_clients_user_and_nothing_but_a_yes_is_one(tmp_path: Path) -> None:
    with Endpoint({"/": [WRITE, "Over."] * 5}, by_turn=False) as endpoint:
        product = Product.at(tmp_path, endpoint)
        (tmp_path / "policy.toml").write_text(POLICY)
        with serving(product) as url:
            key = key_of(product)
            for era in ERAS:
                for answer in (YES, NO):
                    asked = Asked(answer)
                    async with connected_by_http(url, key, mode=era, answering=asked) as on:
                        result = await on.client.call_tool("iact_ask", {"task": "Write it."})
                    assert words(result) == "Over."
                    (question,) = asked.seen
                    assert isinstance(question, ElicitRequestFormParams)
                    assert question.message.startswith("/ asks to run files.write (impact 1).")
                    assert written(product, session_of(result)) == (answer is YES)
            async with connected_by_http(url, key, answering=Asked(NO), extensions=[Tasks()]) as on:
                created = await on.begin(task="Write it.")
                waiting = await on.until(created.task_id, "input_required")
                assert waiting.input_requests is not None
                (name,) = waiting.input_requests
                await on.update(created.task_id, {"question-1": YES})  # an answer to nothing
                assert (await on.task(created.task_id)).status == "input_required"
                await on.update(created.task_id, {name: YES})
                await on.until(created.task_id, "completed")
                assert written(product, created.task_id.rpartition(".")[0])


async def test_a_killed_server_knows_what_it_asked_and_what_it_was_given_to_do(tmp_path: Path) -> None:
    """Killed with a question open to a client of the newest revision; the state that the client holds is all there is."""
    with Endpoint({"/": [WRITE, "Over."]}, crashes=True) as endpoint:
        product = Product.at(tmp_path, endpoint)
        (tmp_path / "policy.toml").write_text(POLICY)
        call: dict[str, JSON] = {"name": "iact_ask", "arguments": {"task": "Write it."}}
        with serving(product, killed=True) as url:
            asked = post(url, key_of(product), "tools/call", **call)["result"]
            assert isinstance(asked, dict)
            assert asked["resultType"] == "input_required"
            requests = asked["inputRequests"]
            assert isinstance(requests, dict)
            ((name, _),) = requests.items()
        with serving(product) as url:
            key = key_of(product)
            state = str(asked["requestState"])
            yes: JSON = {name: {"action": "accept", "content": {"allow": True}}}
            for forged in ("", "none.1 0", f"../{state}", state.replace(".", ".9")):
                wrong = post(url, key, "tools/call", **call, requestState=forged, inputResponses=yes)
                result = wrong["result"]
                assert isinstance(result, dict)
                assert result["isError"] is True, "a state that we did not give names nothing"
            done = post(url, key, "tools/call", **call, requestState=state, inputResponses=yes)
            result = done["result"]
            assert isinstance(result, dict)
            told = result["structuredContent"]
            assert isinstance(told, dict)
            verdict = told.pop("verdict")
            assert isinstance(verdict, dict)
            assert verdict["reached"] == "yes"
            assert told == {"session": state.partition(".")[0], "status": "ok", "reply": "Over."}
        (journal,) = product.journals()
        assert written(product, journal.parent.name)
        assert product.run("replay", "--verify", journal.parent.name).status == 0


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
async def test_each_reaches_what_is_theirs_as_far_as_their_token_goes(tmp_path: Path) -> None:
    with Endpoint({"/": [Reply("Yes.", repeat=True)]}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with_people(product, "ada", "bob")
        ada, bob = token_of(product, "ada"), token_of(product, "bob")
        reader = token_of(product, "bob", "sessions:read", called="reader")
        writer = token_of(product, "bob", "sessions:read", "sessions:write", called="writer")
        with serving(product) as url:
            strangers_and_pages(url, ada)
            async with connected_by_http(url, ada, extensions=[Tasks()]) as on:
                created = await on.begin(task="Mine.")
                await on.until(created.task_id, "completed")
            hers = created.task_id.rpartition(".")[0]
            async with connected_by_http(url, bob, extensions=[Tasks()]) as on:
                own = await on.begin(task="Mine.")
                await on.until(own.task_id, "completed")
                with pytest.raises(MCPError, match="There is no task"):
                    await on.task(created.task_id)
                with pytest.raises(MCPError, match="There is no task"):
                    await on.cancel(created.task_id)
                with pytest.raises(MCPError, match="There is no resource"):
                    await on.client.read_resource(f"iact://session/{hers}/journal")
                listed = [one.uri.split("/")[3] for one in (await on.client.list_resources()).resources]
                assert set(listed) == {own.task_id.rpartition(".")[0]}
            async with connected_by_http(url, bob) as on:
                taken = await on.client.call_tool("iact_ask", {"task": "Yours.", "session": hers})
                assert words(taken).startswith(f"There is no session '{hers}'")
            async with connected_by_http(url, reader, extensions=[Tasks()]) as on:
                assert (await on.task(own.task_id)).status == "completed"
                with pytest.raises(MCPError, match="a token with the scope sessions:write"):
                    await on.begin(task="Go.")
                with pytest.raises(MCPError, match="a token with the scope sessions:write"):
                    await on.cancel(own.task_id)
            async with connected_by_http(url, writer, extensions=[Tasks()]) as on:
                with pytest.raises(MCPError, match="a token with the scope clear"):
                    await on.update(own.task_id, {"question-1": ElicitResult(action="accept")})
            # A quota refuses the next call, and the answer says so.
            assert product.run("quota", "set", "--user", "bob", "--tokens", "1").status == 0
            async with connected_by_http(url, bob) as on:
                refused = await on.client.call_tool("iact_ask", {"task": "More."})
                assert refused.is_error
                assert refused.structured_content["status"] == "bound"


def strangers_and_pages(url: str, token: str) -> None:
    """What is no request of somebody who is known, and what another's session of the old era is to a thief."""
    headers, listing = body_of("tools/list")
    address = f"{url}/mcp"
    for wrong in ({}, bearer("wrong"), {"Authorization": f"Basic {token}"}):
        answer = httpx.post(address, content=b"{", headers={**headers, **wrong})
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer"), (
            "before it is read"
        )
    known = {**headers, **bearer(token)}
    assert httpx.post(address, json=listing, headers=known).status_code == 200
    for origin, status in (("http://evil.test", 403), ("null", 403), (url, 200)):
        answer = httpx.post(address, json=listing, headers={**known, "Origin": origin})
        assert answer.status_code == status, origin
    assert httpx.post(address, json=listing, headers={**known, "Host": "evil.test"}).status_code == 421
    large = httpx.post(
        address, content=b" " * ((32 << 20) + 1), headers={**known, "Content-Type": "application/json"}
    )
    assert large.status_code == 413


@pytest.mark.no_prefix_law("nobody speaks to the endpoint")
def test_a_session_of_the_old_era_is_the_tokens_that_began_it(tmp_path: Path) -> None:
    with Endpoint({"/": []}) as endpoint:
        product = Product.at(tmp_path, endpoint, **NO_MODULES)
        with_people(product, "ada", "bob")
        tokens = [
            token_of(product, "ada"),
            token_of(product, "bob"),
            token_of(product, "ada", called="other"),
        ]
        with serving(product) as url:
            accept = {"Accept": "application/json, text/event-stream"}
            begin = {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
            }  # fmt: skip
            hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin}
            begun = httpx.post(f"{url}/mcp", json=hello, headers={**accept, **bearer(tokens[0])}, timeout=300)
            known = {**accept, "Mcp-Session-Id": begun.headers["Mcp-Session-Id"]}
            ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
            found = [
                httpx.post(f"{url}/mcp", json=ping, headers={**known, **bearer(one)}, timeout=300).status_code
                for one in tokens
            ]
            assert found == [200, 404, 404]
            assert httpx.delete(f"{url}/mcp", headers={**known, **bearer(tokens[1])}).status_code == 404
            assert httpx.delete(f"{url}/mcp", headers={**known, **bearer(tokens[0])}).status_code == 200


@contextmanager
def alone(product: Product, *options: str) -> Iterator[tuple[str, Path]]:
    """`iact mcp --http`; gives the address, and the file with the key."""
    with product.started("mcp", "--http", "0", *options) as process:
        assert process.stdout is not None
        found = re.fullmatch(
            r"iact: mcp at (http://127\.0\.0\.1:\d+)/mcp, with the key in (.+)\n", process.stdout.readline()
        )
        assert found is not None
        yield found[1], Path(found[2])
        process.terminate()
        assert process.wait(300) == 0


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
async def test_a_server_of_its_own_has_a_key_that_stays_and_no_other_face(tmp_path: Path) -> None:
    with Endpoint({"/": [WRITE, "Over."] * 2}, by_turn=False) as endpoint:
        product = Product.at(tmp_path, endpoint)
        with alone(product, "--intent", "0") as (url, file):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            key = file.read_text(encoding="ascii").strip()
            strangers_and_pages(url, key)
            async with connected_by_http(url, key, mode=ERAS[0]) as on:
                result = await on.client.call_tool("iact_ask", {"task": "Write it."})
            assert not written(product, session_of(result)), "its intent is that of the command"
            other = await asyncio.to_thread(httpx.get, f"{url}/v1/models", headers=bearer(key))
            assert other.status_code == 404
        with alone(product) as (url, again):
            assert (again, again.read_text(encoding="ascii").strip()) == (file, key)
            async with connected_by_http(url, key, mode=ERAS[1]) as on:
                result = await on.client.call_tool("iact_ask", {"task": "Write it."})
            assert written(product, session_of(result))
            taken = product.run("mcp", "--http", url.rpartition(":")[2])
            assert taken.status == 2
            assert "choose another with --http" in taken.stderr
        file.write_text("short\n", encoding="ascii")
        broken = product.run("mcp", "--http", "0")
        assert (broken.status, "mcp.key contains no valid key. Remove" in broken.stderr) == (2, True)
        for one in product.journals():
            assert product.run("replay", "--verify", one.parent.name).status == 0


def test_nothing_of_it_is_loaded_without_being_asked_for() -> None:
    program = (
        "import sys, iact.commands.serve, iact.faces.mcp.routes\n"
        "print(sorted({'mcp', 'mcp_types', 'iact.faces.mcp.streamable_http', 'iact.faces.mcp.server'} & {*sys.modules}))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "[]\n"
