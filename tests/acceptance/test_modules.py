"""Modules at run time: written by an agent, used in isolation, approved by a person, found by another agent.

Real containers, the product as separate processes, and a scripted model. The stage checks every context against the
prefix law: a new module changes no byte of any earlier context.
"""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product, Server, acknowledged, until
from tests.acceptance.test_scenes import Spoken, call, served, shell, speak
from tests.endpoint import Gate, Reply, Request

SCOUT = '''\
import os, socket
from ext_modules.sdk import Module

module = Module("scout", "Looks for ways to the outside.", keywords=["scout", "outside"])

@module.function(impact=0, summary="Tell how the proxy answers, if there is one")
def reach(target: str) -> str:
    """target: host:port to connect to."""
    if "HTTPS_PROXY" not in os.environ:
        return "There is no way out."
    with socket.create_connection(("127.0.0.1", 3128), 20) as proxy:
        proxy.sendall(f"CONNECT {target} HTTP/1.1\\r\\n\\r\\n".encode())
        return proxy.recv(4096).decode().split("\\r\\n")[0]
'''


FORKER = """\
import asyncio, os, subprocess, time
from ext_modules.sdk import Module

module = Module("forker", "Starts processes.", keywords=["fork"])

@module.function(impact=1, timeout=2, summary="Start programs without end, whatever becomes of the call")
def bomb() -> str:
    while True:
        try:
            subprocess.Popen(["sleep", "600"])
        except OSError:
            time.sleep(0.01)

@module.function(impact=1, timeout=2, summary="Start programs, and wait too long")
async def leave() -> str:
    for _ in range(5):
        await asyncio.create_subprocess_exec("sleep", "600", start_new_session=True)
    await asyncio.sleep(600)
    return ""

@module.function(impact=1, summary="Count the programs")
def count(again: int = 0) -> str:
    found = 0
    time.sleep(1)
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                found += file.read().startswith(b"sleep")
        except OSError:
            pass
    return f"{found} programs"
"""


def deploy(name: str, source: str, arguments: str = "") -> str:
    return f"I write it.\n\n```DEPLOY name={name} {arguments}\n{source}```"


def reach(target: str) -> str:
    return f"I look.\n\n```scout.reach target={target}\n```"


def of(records: list[Record], kind: str, function: str) -> list[Record]:
    return [one for one in records if one.kind == kind and one.text("function") == function]


def say(spoken: Spoken, server: Server, text: str) -> None:
    """Say something to the root, and wait for its answer."""
    ran = spoken.product.run("say", "--session", spoken.session, "--wait", text)
    assert ran.status == 0, ran


def answered(spoken: Spoken, count: int) -> None:
    """Wait until the root has answered so often; containers start meanwhile, so that may take a while."""

    def replies() -> int:
        return sum(one.kind == "reply" and one.agent == "/" for one in spoken.records())

    until(lambda: replies() == count, f"answer {count}", within=120)


def contexts(requests: list[Request], agent: str) -> list[str]:
    """All that an agent's last context holds, by message."""
    return [content for _, content in next(one for one in reversed(requests) if one.agent == agent).messages]


def test_an_agent_writes_a_module_and_another_uses_it_once_a_person_approved(stage: Stage) -> None:
    outside = "I look.\n\n" + "\n\n".join(
        f"```scout.reach target={one}\n```" for one in ("example.invalid:443", "other.invalid:443")
    )
    endpoint = stage.endpoint(
        {
            "/": [
                call("other", "Wait for a task."),
                deploy("scout", SCOUT, 'egress="example.invalid:443"'),
                reach("example.invalid:443"),
                "The scout is there.",
                call("other", "Take the scout to see what is outside."),
                "The other has seen it.",
            ],
            "/other": ["I wait.", outside, "I saw it."],
        }
    )
    product = stage.product(endpoint)
    with served(product) as server:
        spoken = speak(product, server, "Write a scout.")
        until(lambda: any(one.kind == "host" for one in spoken.records()), "the question", within=120)
        asked = next(one for one in spoken.records() if one.kind == "host")
        assert (asked.text("module"), asked.text("host")) == ("scout", "example.invalid")
        with server.connect() as socket:
            acknowledged(socket, {"type": "hello", "session": spoken.session, "since": asked.n})
            acknowledged(socket, {"type": "clear", "call": asked.n, "allow": False})
        answered(spoken, 1)

        records = spoken.records()
        assert [one.text("status") for one in of(records, "result", "DEPLOY")] == ["ok"]
        contained = of(records, "result", "scout.reach")[0]
        assert (contained.text("status"), contained.body) == (
            "ok",
            "HTTP/1.1 502 example.invalid can't be reached from here",
        )
        assert of(records, "gate", "scout.reach")[0].number("impact") == 1, "nobody approved it"

        listed = json.loads(product.run("module", "list", "--json").stdout)
        scout = next(one for one in listed if one["name"] == "scout")
        assert scout["functions"] == [{"name": "scout.reach", "impact": 0, "approved": False}]
        approved = product.run("module", "approve", "scout", "--digest", scout["digest"])
        assert (approved.status, approved.stdout) == (
            0,
            "  scout.reach  impact 0\n  reaches example.invalid:443\n",
        )

        say(spoken, server, "Let the other look.")
    records = spoken.records()
    granted = of(records, "result", "scout.reach")[1:]
    assert [one.agent for one in granted] == ["/other", "/other"]
    # Allowed and not there, or not allowed: an agent reads the same.
    unreachable = [
        f"HTTP/1.1 502 {host} can't be reached from here" for host in ("example.invalid", "other.invalid")
    ]
    assert [one.body for one in granted] == unreachable
    assert [one.number("impact") for one in of(records, "gate", "scout.reach")] == [1, 0, 0]
    told = contexts(endpoint.requests, "/other")
    assert "scout" not in told[1], "its first message stands as it was"
    assert "Documentation of `scout.reach`" in told[3]


def test_a_module_that_does_not_start_comes_back_with_its_stack_trace(stage: Stage) -> None:
    endpoint = stage.endpoint(
        {
            "/": [
                deploy("scout", "import nothing_of_this_name\n"),
                deploy("scout", SCOUT, "requirements=requests"),
                deploy("shell", SCOUT),
                "```LOAD name=nowhere\n```",
                deploy("scout", SCOUT.replace("reach", "look")),
                deploy("scout", SCOUT),
                reach("a.invalid:1"),
                "It works now.",
            ]
        }
    )
    answer = stage.product(endpoint).ask("Write a scout.")
    assert answer.reply == "It works now."
    results = [one for one in answer.records if one.kind == "result"]
    assert [one.text("status") for one in results] == ["error"] * 4 + ["ok"] * 3
    assert "Traceback" in results[0].body
    assert "No module named 'nothing_of_this_name'" in results[0].body
    assert "'requests' is not of the form name==version" in results[1].body
    assert str(answer.journal.parents[2]) not in results[1].body
    assert "ships with the product" in results[2].body
    assert "no module 'nowhere' in the catalogue" in results[3].body
    assert results[-1].body == "There is no way out."


def test_what_an_agent_deployed_is_loaded_in_another_session_and_found_again_after_a_crash(
    stage: Stage,
) -> None:
    endpoint = stage.endpoint({"/": [deploy("scout", SCOUT), "It is there."]})
    product = stage.product(endpoint)
    product.ask("Write a scout.")

    again = stage.endpoint(
        {"/": ["```LOAD name=scout\n```", reach("a:1"), "Nothing.", reach("a:1"), "None."]}
    )
    other = Product(product.data, {**product.settings, "OPENAI_BASE_URL": again.url, "IACT_MODEL": "again"})
    first = other.ask("Load the scout.")
    second = other.ask("And again.", session=first.session)
    results = of(second.records, "result", "scout.reach")
    assert [one.body for one in results] == ["There is no way out."] * 2
    assert len([one for one in second.records if one.kind == "module" and one.text("name") == "scout"]) == 1


def test_a_person_adds_and_removes_a_module_while_agents_run(stage: Stage, tmp_path: Path) -> None:
    folder = tmp_path / "scout.py"
    folder.write_text(SCOUT)
    gate = Gate()
    waiting = "while [ ! -e go ]; do sleep 0.02; done; echo the scout may go"
    endpoint = stage.endpoint(
        {
            "/": [
                shell(f"touch here; {waiting}"),
                reach("a:1"),
                "I saw nothing.",
                Reply("Is the scout still there? I think so.", gates={4: gate}),
                "It is gone.",
            ]
        }
    )
    product = stage.product(endpoint)
    with served(product) as server:
        spoken = speak(product, server, "Look outside.")
        spoken.appears("here")
        added = product.run("module", "add", str(folder), "--json")
        assert added.status == 0, added
        assert json.loads(added.stdout)["functions"] == [
            {"name": "scout.reach", "impact": 0, "approved": False}
        ]
        (spoken.workspace / "go").touch()
        answered(spoken, 1)
        assert of(spoken.records(), "result", "scout.reach")[0].body == "There is no way out."

        with server.connect() as socket:
            acknowledged(socket, {"type": "hello", "session": spoken.session, "since": 0})
            acknowledged(socket, {"type": "say", "text": "Is it still there?"})
            assert gate.wait(300)
            acknowledged(socket, {"type": "module.remove", "name": "scout"})
            gate.release()
        answered(spoken, 2)
        say(spoken, server, "Are you sure?")
        ran = product.run("module", "remove", "scout")
        assert (ran.status, ran.stderr) == (2, "iact: No module 'scout' was added.\n")
    assert "The module `scout` is not available any more." in contexts(endpoint.requests, "/")[-1]


SLOW = """\
import asyncio
from contextlib import asynccontextmanager
from ext_modules.sdk import Module

module = Module("slow", "Never comes up.")

@module.lifespan
@asynccontextmanager
async def never():
    print("getting ready", flush=True)
    await asyncio.Event().wait()
    yield

@module.function(impact=0, summary="Say hello")
def hello() -> str:
    return "Hello."
"""


def test_a_module_that_never_comes_up_is_refused(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    product = stage.product()
    refused = product.run("module", "add", str(tmp_path / "slow.py"))
    assert refused.status == 1
    assert re.search(r"The module slow did not start within \d\d seconds; what takes long", refused.stderr)
    assert "getting ready" in refused.stderr


def test_what_a_call_started_ends_with_it_and_a_module_that_can_start_nothing_is_started_anew(
    stage: Stage,
) -> None:
    """The second bomb goes on after its call: what it fills no call can be made in any more."""
    # Each time with another argument: calls that fail and are repeated unchanged are refused.
    counts = (f"```forker.count again={number}\n```" for number in itertools.count())
    begun = iter(
        [deploy("forker", FORKER), "```forker.leave\n```", next(counts), "```forker.bomb\n```", next(counts)]
    )

    def script(request: Request) -> str:
        """Count until nothing is left."""
        return next(begun, "Done." if "\n0 programs" in request.last else next(counts))

    answer = stage.product(stage.endpoint(script)).ask("Fork.", "--intent", "2")
    left = of(answer.records, "result", "forker.leave")[0]
    assert "time limit" in left.body, left
    first, *others = of(answer.records, "result", "forker.count")
    assert (first.text("status"), first.body) == ("ok", "0 programs")
    assert (others[-1].text("status"), others[-1].body) == ("ok", "0 programs")
