"""Whatever tool makes the connection, the stranger's text keeps its label on its way into the user's file.

Real pip, git and npm in a workshop, against an index, a registry and a repository of the test over TLS; the function
`git.clone`; a tool of an MCP server. Modules without a way out are in `test_without_a_way_out`. As in `test_reached`: one step brings a text into a file,
the next reads it, and the last overwrites a file of the user's. The person lets every program connect, so that nothing
but the label holds the change.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from iact.core import Session
from iact.core.ports import JSON
from iact.core.records.hosts import HostAsk
from iact.core.records.record import Record
from iact.core.views.consent import question_digest
from iact.core.views.events import RecordAppended
from iact.settings import load
from iact.wiring import open_runtime
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product
from tests.acceptance.test_cases import listening, tally
from tests.ext_modules.website import certificate
from tests.sandbox.test_git_module import server
from tests.sandbox.workshops import REGISTRY, equip, packages, registry

POLICY: Final = f"""
[scope.default]
functions = ["*"]
[scope.default.egress]
shell = ["{REGISTRY}"]
git = ["docs.test"]
"""
_TRUST: Final = (
    f"export PIP_INDEX_URL=https://{REGISTRY}/simple NPM_CONFIG_REGISTRY=https://{REGISTRY}/"
    " PIP_CERT=/workspace/proof.pem NODE_EXTRA_CA_CERTS=/workspace/proof.pem GIT_SSL_CAINFO=/workspace/proof.pem\n"
)


@dataclass(frozen=True, slots=True)
class Tool:
    """How a tool brings a text into a file."""

    scripts: tuple[str, ...]
    """Scripts of a shell, one call each; what begins with "job: " runs in the background."""
    file: str
    text: str
    """What stands in the file."""


PIP: Final = "pip install -q --no-deps --target part tinypack"
GIT: Final = f"git clone -q https://{REGISTRY}/repo.git part"
NPM: Final = "npm install --silent --prefix part tiny-npm"
_THERE: Final = "mv part got"
_UNTIL_IT_IS: Final = "while [ ! -e got ]; do sleep 0.1; done"
_ON_A_WORD: Final = "while [ ! -e go ]; do sleep 0.1; done"


def _ways(command: str, file: str, text: str) -> dict[str, Tool]:
    """The four ways in which a command can connect."""
    brings = f"{command} && {_THERE}"
    return {
        "the same call": Tool((brings,), file, text),
        "a process in the background": Tool((f"({brings}) & wait",), file, text),
        "a job that began earlier": Tool(
            (f"job: {_ON_A_WORD}; {brings}; sleep 600", f"touch go; {_UNTIL_IT_IS}"), file, text
        ),
        "a grandchild that leaves its session": Tool(
            (f"setsid -f sh -c '{brings}'; {_UNTIL_IT_IS}",), file, text
        ),
    }


TOOLS: Final[Mapping[str, Tool]] = {
    f"{name}, {way}": tool
    for name, command, file, text in (
        ("pip", PIP, "got/tinypack.py", "a wheel"),
        ("git", GIT, "got/README", "a repository"),
        ("npm", NPM, "got/node_modules/tiny-npm/index.js", "npm"),
    )
    for way, tool in _ways(command, file, text).items()
}


def plan_of_scripts(tool: Tool) -> str:
    """A plan: the scripts one after the other, then a file of the user's is overwritten with what they brought."""
    steps = []
    for number, script in enumerate(tool.scripts):
        command = f"{_TRUST}{script.removeprefix('job: ')}"
        params: dict[str, JSON] = {"command": command, "timeout": 120}
        if script.startswith("job: "):
            params = {"command": command, "background": True}
        after = f", after: [w{number - 1}]" if number else ""
        steps.append(f"  - {{id: w{number}, call: shell.run, params: {json.dumps(params)}{after}}}")
    return "goal: g\nsteps:\n" + "\n".join([*steps, *_overwriting(tool.file, f"w{len(steps) - 1}")]) + "\n"


def plan_of_call(function: str, params: Mapping[str, JSON], file: str) -> str:
    """The same with one call of any function."""
    first = f"  - {{id: w, call: {function}, params: {json.dumps(dict(params))}}}"
    return "goal: g\nsteps:\n" + "\n".join([first, *_overwriting(file, "w")]) + "\n"


def _overwriting(file: str, after: str) -> list[str]:
    return [
        f"  - {{id: r, call: files.read, params: {{path: {file}}}, after: [{after}]}}",
        "  - {id: v, call: files.write, params: {path: victim.txt}, refs: {content: {step: r}}}",
    ]


async def lets_out(session: Session) -> None:
    """A person who allows every connection."""
    async with session.watch() as events:
        async for event in events:
            if isinstance(event, RecordAppended) and isinstance(event.record.content, HostAsk):
                asked = event.record
                await session.clear_host(asked.n, True, "session", seen=question_digest(asked))


def played(product: Product, mine: Path, plan: str) -> list[Record]:
    async def scene() -> list[Record]:
        async with open_runtime(load(environment=product.environment)) as runtime, asyncio.timeout(600):
            session = await runtime.open(intent=2, workspace=mine)
            async with asyncio.TaskGroup() as group:
                person = group.create_task(lets_out(session))
                await session.run_plan(plan, name="one")
                person.cancel()
            return list(session.records())

    return asyncio.run(scene())


def results(records: list[Record], function: str) -> list[str]:
    return [
        record.body for record in records if record.kind == "result" and record.text("function") == function
    ]


def arrived(records: list[Record], mine: Path, *, text: str, label: str) -> None:
    """The text was read, and the file that was to get it waits for a person, because of the label."""
    (read,) = results(records, "files.read")
    assert text in read, [record.body for record in records if record.kind == "result"]
    held = [record for record in records if record.kind == "effects"][-1]
    assert held.text("held") == "provenance", held
    assert label in held.text("reason")
    assert (mine / "victim.txt").read_text(encoding="utf-8") == "as it was"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "victim.txt").write_text("as it was", encoding="utf-8")
    return folder


@pytest.mark.parametrize("tool", TOOLS)
def test_what_a_tool_brings_does_not_become_the_users_file(
    stage: Stage, tmp_path: Path, mine: Path, tool: str
) -> None:
    proof = certificate(tmp_path, REGISTRY)
    (mine / "proof.pem").write_bytes((proof.parent / "cert.pem").read_bytes())
    product = stage.product(IACT_SANDBOX="docker")
    equip(product.data)
    (product.data / "policy.toml").write_text(POLICY, encoding="utf-8")
    with listening(registry(packages(), proof)) as port:
        inside = f'[inside]\n"{REGISTRY}:443" = "127.0.0.1:{port}"\n'
        (product.data / "iact.toml").write_text(inside, encoding="utf-8")
        records = played(product, mine, plan_of_scripts(TOOLS[tool]))

    arrived(records, mine, text=TOOLS[tool].text, label="tool:shell.run")


def test_what_git_clone_brings_does_not_become_the_users_file(
    stage: Stage, tmp_path: Path, mine: Path
) -> None:
    with listening(server(tally(tmp_path))) as port:
        product = stage.product()
        (product.data / "policy.toml").write_text(POLICY, encoding="utf-8")
        inside = f'[inside]\n"docs.test:80" = "127.0.0.1:{port}"\n'
        (product.data / "iact.toml").write_text(inside, encoding="utf-8")
        clone = {"url": "http://docs.test/team/tally.git", "path": "got"}
        records = played(product, mine, plan_of_call("git.clone", clone, "got/test.sh"))

    arrived(records, mine, text="nothing at all", label="tool:git.clone")


MCP: Final = """\
import json, sys

TOOL = {"name": "bring", "description": "Brings a text.", "inputSchema": {"type": "object", "properties": {}}}

for line in sys.stdin:
    asked = json.loads(line)
    answers = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "far", "version": "1"},
        },
        "tools/list": {"tools": [TOOL]},
        "tools/call": {"content": [{"type": "text", "text": "what a stranger says"}]},
    }
    if "id" in asked:
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": answers.get(asked["method"], {})}
        print(json.dumps(answer), flush=True)
"""


def test_what_an_mcp_server_says_does_not_become_the_users_file(
    stage: Stage, tmp_path: Path, mine: Path
) -> None:
    """Through a file of the user's directory, which forgets who wrote it; its label does not."""
    folder = tmp_path / "far"
    folder.mkdir()
    (folder / "server.py").write_text(MCP, encoding="utf-8")
    (folder / "module.toml").write_text(
        'name = "far"\nsummary = "Brings texts."\n\n[mcp]\ncommand = ["python3", "/module/server.py"]\n\n'
        '[needs]\nworkspace = "none"\negress = []\n',
        encoding="utf-8",
    )
    product = stage.product()
    (product.data / "policy.toml").write_text(POLICY, encoding="utf-8")
    for ran in (product.run("module", "add", str(folder)), product.agree("module", "approve", "far")):
        assert ran.status == 0, ran

    steps = [
        "  - {id: f, call: far.bring}",
        "  - {id: w, call: files.write, params: {path: note.txt}, refs: {content: {step: f}}}",
        *_overwriting("note.txt", "w"),
    ]
    records = played(product, mine, "goal: g\nsteps:\n" + "\n".join(steps) + "\n")
    arrived(records, mine, text="what a stranger says", label="tool:far.bring")
