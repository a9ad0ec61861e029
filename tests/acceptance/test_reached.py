"""A stranger's text that comes by a connection keeps its label, however the connection is made and its bytes are written.

In a directory of the user's, at intent 2: one step of a plan downloads a text into a file, the next reads the file, and
the last one overwrites a file of the user's with it. No agent reads anything meanwhile, so the label can arrive by the
file alone. It must: the change waits for a person, who has not said anything.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from iact.core.records.record import Record
from iact.settings import load
from iact.wiring import open_runtime
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product
from tests.acceptance.test_hosts import leads, web
from tests.rounds import short

POLICY: Final = """
[scope.default]
functions = ["*"]
[scope.default.egress]
shell = ["docs.test"]
git = ["docs.test"]
"""
MARK: Final = "Hello from docs.test"
TEXT: Final = f"<title>A page</title><h1>{MARK}</h1>"

GET: Final = (
    "python3 -c \"import urllib.request as r; print(r.urlopen('http://docs.test/page').read().decode())\""
)
WAIT: Final = "while [ ! -s note.txt ]; do sleep 0.1; done"

WAYS: Final[Mapping[str, Sequence[str]]] = {
    "the same call": [f"{GET} > note.txt"],
    "a call that writes first": [f"touch note.txt; {GET} > note.txt"],
    "a temporary file": [f"{GET} > /tmp/page", "cp /tmp/page note.txt"],
    "a job that began earlier": [
        f"job: while [ ! -e go ]; do sleep 0.1; done; {GET} > part; mv part note.txt; sleep 600",
        f"touch go; {WAIT}",
    ],
    "a grandchild that leaves its session": [
        f"setsid -f sh -c '{GET.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))} > part; mv part note.txt'; {WAIT}"
    ],
    "a program that git runs": [
        f"echo {shlex.quote(GET + ' > part')} > get.sh;"
        " git -c protocol.ext.allow=always clone 'ext::sh get.sh' there; mv part note.txt"
    ],
    "pip": [
        "pip download --no-input --retries 0 --index-url http://docs.test/simple --trusted-host docs.test nothing;"
        f" python3 -m pip --version; {GET} > note.txt"
    ],
}  # fmt: skip
"""Scripts, one call each; those with "job:" run in the background."""


def plan(scripts: Sequence[str]) -> str:
    steps = []
    for number, script in enumerate(scripts):
        params: dict[str, object] = {"command": script.removeprefix("job: ")}
        if script.startswith("job: "):
            params["background"] = True
        after = f", after: [w{number - 1}]" if number else ""
        steps.append(f"  - {{id: w{number}, call: shell.run, params: {json.dumps(params)}{after}}}")
    steps += [
        f"  - {{id: r, call: files.read, params: {{path: note.txt}}, after: [w{len(scripts) - 1}]}}",
        "  - {id: v, call: files.write, params: {path: victim.txt}, refs: {content: {step: r}}}",
    ]
    return "goal: g\nsteps:\n" + "\n".join(steps) + "\n"


async def played(product: Product, mine: Path, scripts: Sequence[str]) -> list[Record]:
    async with open_runtime(load(environment=product.environment)) as runtime, asyncio.timeout(600):
        session = await runtime.open(intent=2, workspace=mine)
        await session.run_plan(plan(scripts), name="one")
        return list(session.records())


@pytest.mark.parametrize("backend", short(["docker"], of=["docker", "bubblewrap"]))
@pytest.mark.parametrize("way", WAYS)
def test_a_text_from_outside_does_not_become_the_users_file(
    stage: Stage, tmp_path: Path, way: str, backend: str
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "victim.txt").write_text("as it was", encoding="utf-8")
    with web() as server:
        product = leads(stage.product(IACT_SANDBOX=backend), server, "docs.test:80")
        (product.data / "policy.toml").write_text(POLICY, encoding="utf-8")
        records = asyncio.run(played(product, mine, WAYS[way]))
        assert server.asked, "the connection was made"

    results = {one.text("node"): one for one in records if one.kind == "result"}
    read = next(one for one in records if one.kind == "result" and one.text("function") == "files.read")
    assert MARK in read.body, results
    assert (mine / "victim.txt").read_text(encoding="utf-8") == "as it was"
    held = [one.text("held") for one in records if one.kind == "effects"]
    assert held[-1] == "provenance", held
    reason = [one.text("reason") for one in records if one.kind == "effects"][-1]
    assert "tool:shell.run" in reason


def test_one_call_that_downloads_and_overwrites_waits(stage: Stage, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "victim.txt").write_text("as it was", encoding="utf-8")
    with web() as server:
        product = leads(stage.product(), server, "docs.test:80")
        (product.data / "policy.toml").write_text(POLICY, encoding="utf-8")
        script = {"command": f"{GET} > victim.txt"}
        text = f"goal: g\nsteps:\n  - {{id: w, call: shell.run, params: {json.dumps(script)}}}\n"

        async def scene() -> list[Record]:
            async with open_runtime(load(environment=product.environment)) as runtime, asyncio.timeout(600):
                session = await runtime.open(intent=2, workspace=mine)
                await session.run_plan(text, name="one")
                return list(session.records())

        records = asyncio.run(scene())
        assert server.asked == ["/page"]
    assert (mine / "victim.txt").read_text(encoding="utf-8") == "as it was"
    assert [one.text("held") for one in records if one.kind == "effects"] == ["provenance"]


def test_what_is_written_without_a_connection_is_the_users_to_have(stage: Stage, tmp_path: Path) -> None:
    """A session that has reached outside is asked nothing about what was made without it."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "victim.txt").write_text("as it was", encoding="utf-8")
    product = stage.product()
    (product.data / "policy.toml").write_text(POLICY, encoding="utf-8")
    records = asyncio.run(played(product, mine, ["echo own > note.txt"]))
    assert (mine / "victim.txt").read_text(encoding="utf-8") == "own\n"
    assert {one.text("held") for one in records if one.kind == "effects"} <= {""}
