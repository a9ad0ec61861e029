"""Sessions through the official MCP SDK's client, against `iact mcp` and a scripted model."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    ElicitRequestFormParams,
    ElicitResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from iact.core.journal import read_journal
from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.mcp_client import Asked, Connected, Tasks, connected
from tests.acceptance.product import NO_MODULES, Product
from tests.acceptance.test_clearance import MAKE, asking, made
from tests.endpoint import Gate, Reply

YES = ElicitResult(action="accept", content={"allow": True})
NO = ElicitResult(action="decline")
ERAS = ("2026-07-28", "legacy")


def words(result: CallToolResult) -> str:
    """The first text of a result."""
    first = result.content[0]
    assert isinstance(first, TextContent)
    return first.text


def session_of(result: CallToolResult) -> str:
    found = result.structured_content["session"]
    assert isinstance(found, str)
    return found


def records(product: Product, kind: str) -> list[Record]:
    """The records of one kind in the only session."""
    (journal,) = product.journals()
    return [one for one in read_journal(journal).records if one.kind == kind]


async def read(on: Connected, uri: str) -> str:
    (found,) = (await on.client.read_resource(uri)).contents
    assert isinstance(found, TextResourceContents)
    return found.text


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_asks_goes_on_in_the_session_and_reads_what_it_holds(stage: Stage, era: str) -> None:
    script = {"/": ["I keep it.\n\n```VAR plan\nfirst this\n```", "Kept.", "As before."]}
    product = stage.product(stage.endpoint(script), **NO_MODULES)
    told: list[tuple[float, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async with connected(product, mode=era) as on:
        (tool,) = (await on.client.list_tools()).tools
        assert tool.name == "iact_ask"
        first = await on.client.call_tool(tool.name, {"task": "Keep it."}, progress_callback=on_progress)
        assert (words(first), first.is_error) == ("Kept.", False)
        session = session_of(first)
        assert [one.uri for one in first.content if isinstance(one, ResourceLink)] == [
            f"iact://session/{session}/journal"
        ]
        again = await on.client.call_tool(tool.name, {"task": "And now?", "session": session})
        assert (words(again), session_of(again)) == ("As before.", session)
        uris = [one.uri for one in (await on.client.list_resources()).resources]
        assert uris == [f"iact://session/{session}/{kind}" for kind in ("journal", "variables", "files")]
        assert "first this" in await read(on, uris[0])
        assert next(iter(product.journals())).read_text(encoding="utf-8") == await read(on, uris[0])
        (variable,) = json.loads(await read(on, uris[1]))
        assert (variable["agent"], variable["name"]) == ("/", "plan")
        assert (await read(on, variable["uri"])).strip() == "first this"
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert told[0][1] == "Modules are switched off by the setting IACT_SANDBOX=off."


async def test_what_is_wrong_is_one_sentence(stage: Stage) -> None:
    product = stage.product(stage.endpoint({}), **NO_MODULES)
    wrong: list[tuple[dict[str, object], str]] = [
        ({"task": " "}, "iact_ask needs the argument task: a text that is not empty."),
        ({"task": "Go.", "mode": "dance"}, "There is no mode 'dance'; there are dialogue, auto, static,"),
        ({"task": "Go.", "session": "nobody"}, "There is no session 'nobody'"),
        ({"task": "Go.", "session": "../../etc"}, "There is no session '../../etc'"),
        ({"task": "Go.", "intent": "2"}, "iact_ask has no argument 'intent'; it has task, session and mode."),
    ]
    async with connected(product) as on:
        for arguments, sentence in wrong:
            result = await on.client.call_tool("iact_ask", arguments)
            assert result.is_error
            assert words(result).startswith(sentence)
            assert "\n" not in words(result)
        with pytest.raises(MCPError, match="There is no tool 'rm'; there is iact_ask") as refused:
            await on.client.call_tool("rm", {})
        assert refused.value.code == INVALID_PARAMS
        for uri in ("iact://session/../journal", "iact://session/none/journal", "file:///etc/passwd"):
            with pytest.raises(MCPError, match="There is no resource") as refused:
                await on.client.read_resource(uri)
            assert refused.value.code == INVALID_PARAMS
        with pytest.raises(MCPError, match="That is no cursor of this list; begin again without one"):
            await on.client.list_resources(cursor="7")
    assert product.journals() == set()


@pytest.mark.parametrize("answer", [YES, NO, ElicitResult(action="accept", content={"allow": False})])
@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_needs_approval_is_asked_of_the_clients_user(
    stage: Stage, era: str, answer: ElicitResult
) -> None:
    product = asking(stage.product(stage.endpoint({"/": [MAKE, "Over."]})))
    asked = Asked(answer)
    async with connected(product, mode=era, answering=asked) as on:
        assert words(await on.client.call_tool("iact_ask", {"task": "Make it."})) == "Over."
    (question,) = asked.seen
    assert isinstance(question, ElicitRequestFormParams)
    assert question.message.startswith("/ asks to run shell.run (impact 1).")
    assert "  command (from model): touch made" in question.message
    assert question.requested_schema["required"] == ["allow"]
    assert made(product) == (answer is YES)
    (said,) = [one for one in records(product, "clearance") if one.text("op") == "answer"]
    assert (said.text("by"), said.fields["allow"]) == ("user", answer is YES)


async def test_a_client_that_can_ask_nobody_gets_a_no_at_once_and_reads_why(stage: Stage) -> None:
    product = asking(stage.product(stage.endpoint({"/": [MAKE, "Over."]})))
    async with connected(product) as on:
        result = await on.client.call_tool("iact_ask", {"task": "Make it."})
    answer, why, *_ = [one.text for one in result.content if isinstance(one, TextContent)]
    assert answer == "Over."
    assert why.startswith(
        "This client can't ask its user, so this was denied: / asks to run shell.run (impact 1)."
    )
    assert f"iact run --session {session_of(result)} TEXT" in why
    assert not made(product)
    assert [one.text("by") for one in records(product, "clearance") if one.text("op") == "answer"] == ["user"]


async def test_a_client_that_can_ask_nobody_reads_what_the_policy_holds(stage: Stage) -> None:
    product = asking(stage.product(stage.endpoint({"/": [MAKE]})))
    policy = product.data / "policy.toml"
    holds = '\n[[scope.default.nobody]]\nfunction = "shell.*"\nthen = "hold"\n'
    policy.write_text(policy.read_text(encoding="utf-8") + holds, encoding="utf-8")
    async with connected(product) as on:
        result = await on.client.call_tool("iact_ask", {"task": "Make it."})
        assert result.structured_content is not None
        assert (result.structured_content["status"], result.is_error) == ("waiting", False)
        (asked,) = [one for one in records(product, "clearance") if one.text("op") == "ask"]
        assert f"iact clear {asked.n} --session {session_of(result)}" in words(result)
    assert not made(product)


async def test_a_task_of_a_client_that_can_ask_nobody_gets_a_no(stage: Stage) -> None:
    product = asking(stage.product(stage.endpoint({"/": [MAKE, "Over."]})))
    async with connected(product, extensions=[Tasks()]) as on:
        created = await on.begin(task="Make it.")
        done = await on.until(created.task_id, "completed")
    assert done.result is not None
    assert words(done.result) == "Over."
    assert not made(product)


@pytest.mark.parametrize("answer", [YES, NO])
async def test_a_task_asks_is_answered_and_ends(stage: Stage, answer: ElicitResult) -> None:
    product = asking(stage.product(stage.endpoint({"/": [MAKE, "Over."]})))
    async with connected(product, answering=Asked(NO), extensions=[Tasks()]) as on:
        created = await on.begin(task="Make it.")
        assert (created.status, created.ttl_ms) == ("working", None)
        waiting = await on.until(created.task_id, "input_required")
        assert waiting.input_requests is not None
        ((key, request),) = waiting.input_requests.items()
        assert isinstance(request, dict)
        assert request["method"] == "elicitation/create"
        assert "touch made" in json.dumps(request)
        assert not made(product)
        await on.update(created.task_id, {"question-1": YES, "other": YES})  # answers to nothing
        assert (await on.task(created.task_id)).input_requests == waiting.input_requests
        await on.update(created.task_id, {key: answer})
        ended = await on.until(created.task_id, "completed")
        assert ended.result is not None
        assert words(ended.result) == "Over."
    assert made(product) == (answer is YES)


async def test_a_task_outlives_its_killed_server(stage: Stage) -> None:
    """Killed while the model writes; whoever asks for the task at another server gets its answer."""
    gate = Gate()
    endpoint = stage.endpoint(
        {"/": [Reply("All of it is done.", gates={3: gate}), "All of it is done."]}, crashes=True
    )
    product = stage.product(endpoint, **NO_MODULES)
    async with connected(product, extensions=[Tasks()]) as on:
        created = await on.begin(task="Do it.")
        assert await asyncio.to_thread(gate.wait)
        assert (await on.task(created.task_id)).status == "working"
        on.kill()
        gate.release()
        with pytest.raises(MCPError):
            await on.task(created.task_id)
    async with connected(product, extensions=[Tasks()]) as on:
        ended = await on.until(created.task_id, "completed")
        assert ended.result is not None
        assert words(ended.result) == "All of it is done."
        assert (await on.task(created.task_id)).result == ended.result


async def test_a_task_is_cancelled_and_stays_so_when_the_session_goes_on(stage: Stage) -> None:
    gate = Gate()
    endpoint = stage.endpoint({"/": [Reply("Long work.", gates={3: gate}), "Other work."]})
    product = stage.product(endpoint, **NO_MODULES)
    async with connected(product, extensions=[Tasks()]) as on:
        created = await on.begin(task="Do it.")
        assert await asyncio.to_thread(gate.wait)
        await on.cancel(created.task_id)
        await on.until(created.task_id, "cancelled")
        gate.release()
        session = created.task_id.rpartition(".")[0]
        other = await on.begin(task="Then something else.", session=session)
        assert other.task_id != created.task_id
        await on.until(other.task_id, "completed")
        await on.cancel(other.task_id)  # too late, and acknowledged all the same
        assert (await on.task(other.task_id)).status == "completed"
        assert (await on.task(created.task_id)).status == "cancelled"
        for identity in ("none.1", session, f"{session}.999", f"{session}.1"):
            with pytest.raises(MCPError, match="There is no task") as refused:
                await on.task(identity)
            assert refused.value.code == INVALID_PARAMS
    assert [one.text("op") for one in records(product, "control")] == ["cancel"]


async def test_tasks_are_for_clients_that_declare_them(stage: Stage) -> None:
    product = stage.product(stage.endpoint({}), **NO_MODULES)
    async with connected(product) as on:
        assert on.client.server_capabilities.extensions == {"io.modelcontextprotocol/tasks": {}}
        with pytest.raises(MCPError, match="needs a client that declares") as refused:
            await on.task("none.1")
    assert refused.value.code == MISSING_REQUIRED_CLIENT_CAPABILITY


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_its_client_gives_up_ends_the_work(stage: Stage, era: str) -> None:
    gate = Gate()
    product = stage.product(stage.endpoint({"/": [Reply("Long work.", gates={3: gate})]}), **NO_MODULES)
    async with connected(product, mode=era) as on:
        async with asyncio.TaskGroup() as group:
            call = group.create_task(on.client.call_tool("iact_ask", {"task": "Do it."}))
            assert await asyncio.to_thread(gate.wait)
            call.cancel()
        while not (ended := records(product, "reply")):
            await on.client.list_tools()
        gate.release()
    assert ended[-1].text("status") == "cancelled"


@pytest.mark.parametrize("how", ["end", "SIGTERM"])
def test_it_ends_cleanly_and_prints_nothing_of_its_own(stage: Stage, how: str) -> None:
    product = stage.product(stage.endpoint({}), **NO_MODULES)
    with subprocess.Popen(
        [sys.executable, "-m", "iact", "mcp"],
        env=product.environment, cwd=product.data.parent,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        if how == "end":
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
        assert process.stdout.read() == b""


def test_what_is_no_pipe_is_refused_with_how_it_is_started(stage: Stage) -> None:
    product = stage.product(**NO_MODULES)
    with open(os.devnull, "rb") as nothing:
        ran = subprocess.run(
            [sys.executable, "-m", "iact", "mcp"],
            env=product.environment, cwd=product.data.parent,
            stdin=nothing, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
    assert ran.returncode == 2
    assert ran.stderr.startswith("iact: iact mcp is started by an MCP client"), ran.stderr


def test_without_its_package_it_says_what_to_install(stage: Stage, tmp_path: Path) -> None:
    product = stage.product(**NO_MODULES)
    code = "import sys; sys.modules['mcp'] = None; from iact.cli import main; sys.exit(main(['mcp']))"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=product.environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "iact: iact mcp needs a package that is not installed. Install it: pip install 'iact[mcp]'.\n"
    )
