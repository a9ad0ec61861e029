"""MCP servers in the sandbox: one as the package index has it, and ours for what that one does not do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from iact.core.modules.client import Completed, Invocation, ModuleClient, Progress
from iact.core.ports import ModuleInstance
from iact.sandbox.images.payload import locked, package_folder
from tests.sandbox.backends import DOCKER, AnyHost, Backend, either_backend
from tests.sandbox.calling import until
from tests.sandbox.inside import Caller, called
from tests.sandbox.mcp_servers import NEW, OLD

pytestmark = either_backend("bubblewrap")

LOCK = tuple(locked(package_folder("ext_modules") / "mcp" / "requirements.lock"))
CLOCK = (
    *LOCK,
    "mcp-server-time==2026.10.19 --hash=sha256:5c099a001c6ca78260bda419f2e9b2aabee1adc4fe6ca56d8959871ad8da58a1",
    "tzdata==2026.6 --hash=sha256:0a10eec6e13ef16b627fabed9a5f2ba61a62b1c67f327305f4e7e412a70b4aec",
    "tzlocal==5.4.5 --hash=sha256:ecab534f6d65d9deb4c4ea52c121ab6dd5958e9b878e71dcb102578269752454",
)


def card(folder: Path, name: str, table: str, requirements: tuple[str, ...] = (), source: str = "") -> Path:
    """The folder of a module that is an MCP server."""
    made = folder / name
    made.mkdir()
    listed = json.dumps(requirements)
    text = f'name = "{name}"\nsummary = "An MCP server."\nrequirements = {listed}\n\n[mcp]\n{table}\n'
    (made / "module.toml").write_text(text, encoding="utf-8")
    if source:
        (made / "server.py").write_text(source, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def host(
    loop: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory, backend: Backend
) -> Iterator[AnyHost]:
    root = tmp_path_factory.mktemp("mcp")
    (root / "shipped").mkdir()
    run = 'command = ["python3", "/module/server.py"'
    folders = [
        card(root, "clock", 'command = ["mcp-server-time", "--local-timezone", "Europe/Oslo"]', CLOCK),
        card(root, "everything", f"{run}]", LOCK, NEW),
        card(root, "http", f'{run}, "http"]\nurl = "http://127.0.0.1:8123/mcp"', LOCK, NEW),
        card(root, "old", f"{run}]", source=OLD),
        card(root, "dead", 'command = ["false"]'),
    ]
    made = backend.host(root / "data", shipped=root / "shipped", folders=folders)
    yield made
    loop.run(made.close())


def started(loop: asyncio.Runner, host: AnyHost, name: str, folder: Path) -> ModuleInstance:
    return loop.run(DOCKER.start(host, name, session="s", workspace=folder))


def test_a_server_as_the_package_index_has_it(loop: asyncio.Runner, host: AnyHost, tmp_path: Path) -> None:
    async def scenario(instance: ModuleInstance) -> None:
        async with called(instance) as caller:
            manifest = await caller.client.describe()
            assert {function.name: function.impact for function in manifest.functions} == {
                "get_current_time": 0, "convert_time": 0
            }  # fmt: skip
            told = json.loads(await caller.text("get_current_time", timezone="Asia/Tokyo"))
            assert told["timezone"] == "Asia/Tokyo"
            assert "Invalid timezone" in await caller.error("get_current_time", timezone="Nowhere")
            assert "'timezone' is missing" in await caller.error("get_current_time")

    loop.run(scenario(started(loop, host, "clock", tmp_path)))
    entry = next(each for each in loop.run(host.catalogue()) if each.name == "clock")
    assert entry.origin == "user"  # so nothing of it is believed until a person approves it


@pytest.mark.parametrize("name", ["everything", "http"])
def test_over_stdio_and_streamable_http(
    loop: asyncio.Runner, host: AnyHost, tmp_path: Path, name: str
) -> None:
    async def scenario(instance: ModuleInstance) -> None:
        async with called(instance) as caller:
            assert json.loads(await caller.text("add", a=2)) == {"sum": 3}
            await it_streams_progress(caller.client)
            await it_is_cancelled(caller)
            picture = await caller.outcome("picture", {})
            assert isinstance(picture, Completed)
            assert (picture.artifact, picture.artifacts[0].media) == ("1", "image/png")
            assert caller.artifacts == {"1": b"\x89PNG"}
            names = set((await caller.text("environment")).splitlines())
            assert names <= {
                "HOME",
                "LANG",
                "PATH",
                "PYTHONPATH",
                "PYTHONUNBUFFERED",
                "IACT_CALL",
                "LC_CTYPE",
            }

    loop.run(scenario(started(loop, host, name, tmp_path)))


async def it_streams_progress(client: ModuleClient) -> None:
    heard: list[Progress] = []
    invocation = Invocation("p", "s", "/", "slow", {"steps": 4, "pause": 0.01})
    outcome = await client.invoke(invocation, timeout=60, on_progress=heard.append)
    assert isinstance(outcome, Completed)
    assert outcome.output == "done"
    assert Progress("step 2", 0.5) in heard


async def it_is_cancelled(caller: Caller) -> None:
    begun = asyncio.Event()
    invocation = Invocation("c", "s", "/", "slow", {"steps": 10_000, "pause": 0.05})
    task = asyncio.create_task(
        caller.client.invoke(invocation, timeout=600, on_progress=lambda _: begun.set())
    )
    async with asyncio.timeout(300):
        await begun.wait()
        task.cancel()

        async def told() -> bool:
            return await caller.text("was_cancelled") == "true"

        await until(told, seconds=50)


def test_each_agent_has_a_server_of_its_own_and_it_comes_again(
    loop: asyncio.Runner, host: AnyHost, tmp_path: Path
) -> None:
    async def scenario(instance: ModuleInstance) -> None:
        async with ModuleClient(instance.target) as client:
            one, two = Caller(client, "/one"), Caller(client, "/two")
            assert [await each.text("count_up") for each in (one, one, two)] == ["1", "2", "1"]
            assert "ended during the call" in await one.error("die")
            assert [await each.text("count_up") for each in (one, two)] == ["1", "2"]

    loop.run(scenario(started(loop, host, "everything", tmp_path)))


@pytest.mark.parametrize("name", ["everything", "http"])
def test_resources_and_prompts_are_functions_that_only_read(
    loop: asyncio.Runner, host: AnyHost, tmp_path: Path, name: str
) -> None:
    async def scenario(instance: ModuleInstance) -> None:
        async with called(instance) as caller:
            manifest = await caller.client.describe()
            impacts = {one.name: one.impact for one in manifest.functions}
            reading = ("list_resources", "read_resource", "list_prompts", "get_prompt")
            assert [impacts[one] for one in reading] == [0] * 4
            listed = await caller.text("list_resources")
            assert "- note://today: today: What is to be done." in listed
            assert "- note://of/{name}" in listed
            assert await caller.text("read_resource", uri="note://today") == "Water the plants."
            assert await caller.text("read_resource", uri="note://of/Ada") == "A note of Ada."
            picture = await caller.client.invoke(
                Invocation("r", "s", "/", "read_resource", {"uri": "note://bytes"}), timeout=60
            )
            assert isinstance(picture, Completed)
            assert [one.media for one in picture.artifacts] == ["image/png"]
            assert "note://nothing" in await caller.error("read_resource", uri="note://nothing")
            assert await caller.text("list_prompts") == "- review(code, tone?): Asks for a review."
            got = await caller.text("get_prompt", name="review", arguments={"code": "x = 1"})
            assert got == "user:\nReview this in a kind tone: x = 1"
            assert "MCPError" in await caller.error("get_prompt", name="review")

    loop.run(scenario(started(loop, host, name, tmp_path)))


def test_a_server_of_an_old_revision(loop: asyncio.Runner, host: AnyHost, tmp_path: Path) -> None:
    async def scenario(instance: ModuleInstance) -> None:
        async with called(instance) as caller:
            manifest = await caller.client.describe()
            assert [function.name for function in manifest.functions] == ["shout_loud", "not_all_seen"]
            assert await caller.text("shout_loud", text="hello") == "HELLO"
            assert "A FAILURE" in await caller.error("shout_loud", text="a failure")

    loop.run(scenario(started(loop, host, "old", tmp_path)))


def test_a_server_that_does_not_start_is_told(loop: asyncio.Runner, host: AnyHost, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="MCP server did not come up"):
        started(loop, host, "dead", tmp_path)
