"""What a clean agent finds of a tainted agent's data: every way to write, combined with every way to read.

One agent has read an untrusted page, and writes a mark in one way. Then nine clean agents look for it, each in one
way, and each makes a call of impact 2. If an agent was shown the mark, a person must be asked about its call, because
the label arrived. If no person is asked, the agent was not shown the mark. All agents are steps of a plan, which
passes names on and reads nothing itself, so an agent's data only comes from the place where it looked.

The table in `docs/topics/gate.md` is what this test expects; `tests/docs` checks the table.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import pytest

from iact.core import Session
from iact.core.records.record import Record
from iact.settings import load
from iact.wiring import open_runtime
from tests.acceptance.conftest import Stage
from tests.acceptance.matrix import MATRIX, READERS, WRITERS
from tests.acceptance.product import Product
from tests.acceptance.test_memory import settled

MARK: Final = "MARK-4711-OF-A-STRANGER"

PAGE: Final = '''
from ext_modules.sdk import Module

module = Module("page", "Brings pages of strangers.", keywords=["page"])


@module.function(impact=0, summary="Brings a page.")
def fetch(text: str) -> str:
    """text: which."""
    return "MARK-4711-OF-A-STRANGER"
'''

BOARD: Final = '''
from ext_modules.sdk import Module

module = Module("board", "Keeps notes for everybody.", keywords=["board"])
notes: list[str] = []


@module.function(impact=1, summary="Keeps a note.")
def put(text: str) -> str:
    """text: the note."""
    notes.append(text)
    return "Kept."


@module.function(impact=0, summary="Gives all notes.")
def get() -> str:
    """Gives what everybody has kept."""
    return "\\\\n".join(notes) or "Nothing."


@module.function(impact=2, summary="Acts.")
def act(text: str) -> str:
    """text: what for."""
    return "Done."
'''

POLICY: Final = """
[scope.default]
functions = ["*"]
trusted = ["tool:board.*"]

[[scope.default.impact]]
function = "board.act"
parameter = "text"
kind = "equals"
values = ["*"]
impact = 2
"""

SETTINGS: Final = {"IACT_CLEARANCE_SECONDS": "0.05"}
MEMORY: Final = {**SETTINGS, "IACT_MEMORY": "on", "IACT_MEMORY_BUDGET": "30"}
"""Memory reminds everybody of what it finds worth it, so the other ways are told apart where it is off."""


def shell(command: str, options: str = "") -> str:
    return f"I work.\n\n```shell.run {options}\n{command}\n```"


WRITING: Mapping[str, Sequence[str]] = {
    "files": [shell(f"echo {MARK} > note.txt")],
    "temporary files": [shell(f"echo {MARK} > /tmp/note.txt; mkdir -p /tmp/{MARK}")],
    "variables": [f"```VAR note\n{MARK}\n```"],
    "jobs": [shell(f"echo {MARK}; sleep 600", "background=true")],
    "process lists": [shell(f"exec -a {MARK} sleep 600", "background=true")],
    "environment": [shell(f"export NOTE={MARK}")],
    "module state": [f"```board.put text={MARK}\n```"],
    "versions": [shell(f"echo {MARK} > old.txt"), shell("rm old.txt")],
    "memory": [f"```REMEMBER kind=fact\nThe note of the harbour says {MARK}.\n```"],
}

READING: Mapping[str, str] = {
    "files": shell("ls -laR . ; cat note.txt *"),
    "temporary files": shell("ls -laR /tmp ; cat /tmp/*"),
    "variables": "```SHOW w_part_1\n```",
    "jobs": "```shell.jobs\n```",
    "process lists": shell("for one in /proc/[0-9]*; do tr '\\0' ' ' < $one/cmdline; echo; done; ps -ef"),
    "environment": shell("env; export -p"),
    "module state": "```board.get\n```",
    "versions": shell("cat old.txt; ls -la"),
    "memory": "```RECALL\nWhat does the note of the harbour say?\n```",
}

BASE = "  - {id: base, call: shell.run, params: {command: 'echo base > base.txt'}}\n"
WRITER = "  - {id: w, agent: writer, task: 'Write it down.', after: [base]}\n"


def name_of(way: str) -> str:
    return way.replace(" ", "_")


def reader(way: str, after: str) -> str:
    return f"  - {{id: r_{name_of(way)}, agent: {name_of(way)}, task: 'Look.', after: [{after}]}}\n"


def script(way: str, plans: tuple[str, str]) -> dict[str, list[str]]:
    """What every agent says. `plans`: names of the writer's plan and of the readers'."""
    wrote = "I noted it in $note." if way == "variables" else "I wrote it down."
    found = {f"/{plans[0]}/writer": ["```page.fetch text=which\n```", *WRITING[way], wrote]}
    for one in READERS:
        found[f"/{plans[1]}/{name_of(one)}"] = [READING[one], "```board.act text=go\n```", "I looked."]
    return found


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with the two modules, added and approved by a person, and a policy that trusts one of them."""
    folder = tmp_path_factory.mktemp("template")
    product = Product.at(folder / "data", **SETTINGS)
    product.data.mkdir()
    (product.data / "policy.toml").write_text(POLICY, encoding="utf-8")
    for name, source in (("page", PAGE), ("board", BOARD)):
        place = folder / name
        place.mkdir()
        (place / "module.py").write_text(source.replace("\\\\n", "\\n"), encoding="utf-8")
        card = f'name = "{name}"\nsummary = "For the matrix."\nversion = "1"\n'
        (place / "module.toml").write_text(card, encoding="utf-8")
        for ran in (product.run("module", "add", str(place)), product.agree("module", "approve", name)):
            assert ran.status == 0, ran
    return product.data


async def between(way: str, session: Session, memory: object) -> None:
    """What a person does, or what has to be waited for, before others look."""
    if way == "versions":
        wrote = [one for one in session.records() if one.kind == "result" and one.text("version")]
        await session.restore(str(wrote[-2].n))
    if way == "memory":
        await settled(memory)  # type: ignore[arg-type]


async def played(product: Product, way: str) -> list[Record]:
    async with open_runtime(load(environment=product.environment)) as runtime, asyncio.timeout(600):
        session = await runtime.open(intent=2)
        readers = "".join(reader(one, "w" if way == "variables" else "base") for one in READERS)
        head, base = "goal: g\nsteps:\n", BASE.replace("base.txt", "second.txt")
        if way == "variables":
            await session.run_plan(f"{head}{BASE}{WRITER}{readers}", name="one")
        else:
            await session.run_plan(f"{head}{BASE}{WRITER}", name="one")
            await between(way, session, runtime.memory)
            await session.run_plan(f"{head}{base}{readers}", name="two")
        return list(session.records())


Found = Literal["label", "hidden"]


@pytest.mark.parametrize("way", WRITERS)
def test_what_a_tainted_agent_wrote_reaches_nobody_without_its_label(
    stage: Stage, template: Path, way: str
) -> None:
    plans = ("one", "one" if way == "variables" else "two")
    settings = MEMORY if way == "memory" else SETTINGS
    product = stage.product(stage.endpoint(script(way, plans)), **settings)
    shutil.copytree(template, product.data, dirs_exist_ok=True, symlinks=True)
    records = asyncio.run(played(product, way))
    found = {one: looked(stage, records, f"/{plans[1]}/{name_of(one)}", one) for one in READERS}
    expected = dict(zip(READERS, MATRIX[way], strict=True))
    assert {one: found[one] for one in READERS if expected[one] != "either"} == {
        one: cell for one, cell in expected.items() if cell != "either"
    }


def looked(stage: Stage, records: Sequence[Record], path: str, way: str) -> Found:
    """Whether the agent at `path`, which looked by `way`, was asked about its call; if not, it saw nothing."""
    own = [record for record in records if record.agent == path]
    shown = any(MARK in json.dumps(request.messages) for request in stage.endpoints[0].of(path))
    asked = [record for record in own if record.kind == "clearance" and record.text("op") == "ask"]
    assert {record.text("rule") for record in asked} <= {"provenance"}
    assert [record for record in own if record.kind == "gate" and record.text("function") == "board.act"], way
    assert asked or not shown, f"who looked by {way} saw the mark, and nobody was asked"
    return "label" if asked else "hidden"


def test_what_memory_has_of_any_way_to_write_keeps_its_label(stage: Stage, template: Path) -> None:
    """One tainted agent writes in all ways but the one by memory; another recalls what there is."""
    ways = [one for one in WRITERS if one not in ("memory", "variables")]
    plans = ("one", "two")
    wrote = [text for one in ways for text in WRITING[one]]
    told = script("variables", plans)
    told["/one/writer"] = ["```page.fetch text=which\n```", *wrote, f"I wrote {MARK} down everywhere."]
    told = {path: told[path] for path in ("/one/writer", "/two/memory")}
    product = stage.product(stage.endpoint(told), **MEMORY)
    shutil.copytree(template, product.data, dirs_exist_ok=True, symlinks=True)

    async def scene() -> list[Record]:
        async with open_runtime(load(environment=product.environment)) as runtime, asyncio.timeout(600):
            session = await runtime.open(intent=2)
            await session.run_plan(f"goal: g\nsteps:\n{BASE}{WRITER}", name="one")
            await between("memory", session, runtime.memory)
            await session.run_plan(f"goal: g\nsteps:\n{reader('memory', '')}", name="two")
            return list(session.records())

    looked(stage, asyncio.run(scene()), "/two/memory", "memory")
