"""Orders of completion, explored: whatever ends first, whoever is paused or killed, the journal verifies."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.core.session.simulation import Scenario, explore
from tests.core.session.test_plan_control import JUDGING
from tests.rounds import rounds

_SCHEDULES: Final = 3
"""Of each scenario; IACT_TEST_SCALE multiplies them."""
_SESSIONS: Final = 20
"""With random plans; likewise."""

CHAIN = """\
steps:
  - {id: a, call: t.read, params: {text: one}}
  - {id: b, call: t.write, refs: {text: {step: a}}}
  - {id: c, call: t.write, params: {text: three}, after: [b]}
"""
DIAMOND = """\
steps:
  - {id: a, call: t.write, params: {text: one}}
  - {id: b, call: t.read, params: {text: two}, after: [a]}
  - {id: c, call: t.write, params: {text: three}, after: [a]}
  - {id: d, call: t.write, params: {text: four}, after: [b, c]}
"""
WIDE = "steps:\n" + "".join(f"  - {{id: s{n}, call: t.write, params: {{text: w{n}}}}}\n" for n in range(7))
RACE = """\
steps:
  - {id: a, call: t.read, params: {text: one}}
  - {id: b, call: t.read, params: {text: two}}
  - {id: c, call: t.write, after: [a, b], join: any_of, refs: {text: {step: "*"}}}
"""
COPIES = """\
steps:
  - {id: a, call: t.write, params: {text: by-a}}
  - {id: b, call: t.write, params: {text: by-b}}
  - {id: c, call: t.fail, params: {text: by-c}}
  - {id: d, call: t.write, params: {text: last}, after: [a, b, c], join: any_of}
"""
FAILING = """\
steps:
  - {id: a, call: t.fail, params: {text: one}}
  - {id: b, call: t.write, params: {text: two}, after: [a]}
  - {id: c, call: t.write, params: {text: three}}
"""
TIMED = """\
steps:
  - {id: a, call: t.read, params: {text: one}, timeout: 3, retries: 2}
  - {id: b, call: t.write, params: {text: two}, timeout: 3, after: [a]}
"""
LOSING = """\
steps:
  - {id: a, call: t.lose, params: {text: one}}
  - {id: b, call: t.write, params: {text: two}}
"""
AGENT = """\
steps:
  - {id: a, agent: reader, task: Read.}
  - {id: b, agent: writer, task: Write., after: [a]}
  - {id: c, agent: reader, task: Once more., after: [a]}
"""
NESTED = "steps:\n  - {id: a, agent: planner, task: Plan.}\n  - {id: b, call: t.write, params: {text: last}, after: [a]}\n"
JUDGED = """\
steps:
  - {id: a, call: t.read, params: {text: one}, contract: {judgement: "It says one."}}
  - {id: b, call: t.write, params: {text: two}, after: [a]}
"""
GOAL = "goal: Find out"
PEOPLE: Mapping[str, list[str]] = {
    "/p/reader": ["```t.read\nx\n```", "Read it.", "Read it again.", "And again."],
    "/p/writer": ["```t.write\nnote\n```", "Wrote it.", "Wrote it again."],
    "/p/planner": [
        "```PLAN inner\nsteps:\n  - {id: x, call: t.write, params: {text: inner}}\n```",
        *["Planned."] * 9,
    ],
}
PATCHED = {
    **JUDGING,
    "A step failed.": '{"failure": "no", "cause": "bad luck", "action": "replace", "confidence": 0.5, '
    '"steps": [{"id": "instead", "call": "t.read", "params": {"text": "i"}}]}',
}
GAVE_UP = {**JUDGING, "A step failed.": '{"steps": [], "skip": false}'}

SCENARIOS: Mapping[str, Scenario] = {
    "chain": Scenario(CHAIN, agents=PEOPLE, answers=JUDGING),
    "diamond": Scenario(DIAMOND, agents=PEOPLE, answers=JUDGING),
    "wide": Scenario(WIDE, agents=PEOPLE, answers=JUDGING),
    "race": Scenario(RACE, agents=PEOPLE, answers=JUDGING),
    "copies": Scenario(COPIES, agents=PEOPLE, answers=GAVE_UP, writes=True),
    "copies, approved": Scenario(COPIES, agents=PEOPLE, answers=GAVE_UP, writes=True, asks=True),
    "patched": Scenario(FAILING, agents=PEOPLE, answers=PATCHED),
    "given up": Scenario(FAILING, agents=PEOPLE, answers=GAVE_UP),
    "timed": Scenario(TIMED, agents=PEOPLE, answers=GAVE_UP),
    "losing": Scenario(LOSING, agents=PEOPLE, answers=PATCHED),
    "agents": Scenario(AGENT, agents=PEOPLE, answers=JUDGING),
    "nested": Scenario(NESTED, agents=PEOPLE, answers=JUDGING),
    "judged": Scenario(JUDGED, agents=PEOPLE, answers={**JUDGING, "Judge whether": '{"holds": true}'}),
    "approvals": Scenario(WIDE, agents=PEOPLE, answers=GAVE_UP, asks=True),
    "approved agents": Scenario(AGENT, agents=PEOPLE, answers=GAVE_UP, asks=True),
    "planned": Scenario(GOAL, agents=PEOPLE, answers=JUDGING, fails=0.2),
    "reflect": Scenario(GOAL, "reflect", agents=PEOPLE, answers=JUDGING, fails=0.1),
    "nreflect": Scenario(CHAIN, "nreflect", agents=PEOPLE, answers=JUDGING, fails=0.1),
    "orchestrator": Scenario(DIAMOND, "orchestrator", agents=PEOPLE, answers=JUDGING, fails=0.1),
    "analyze": Scenario(GOAL, "analyze", agents=PEOPLE, answers=JUDGING, fails=0.1),
    "profile": Scenario(GOAL, "profile", agents=PEOPLE, answers=JUDGING, fails=0.1),
    "all of it": Scenario(
        "steps:\n  - {id: n, agent: planner, task: Plan.}\n" + FAILING.removeprefix("steps:\n") + AGENT.removeprefix("steps:\n")
        .replace("id: a", "id: d").replace("id: b", "id: e").replace("id: c", "id: f").replace("[a]", "[d]"),
        "orchestrator", agents=PEOPLE, answers=PATCHED, asks=True, fails=0.2,
    ),
}  # fmt: skip


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory, where there is such a thing: the journals are real, and their disk is not what is tested."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=shared if shared.is_dir() else None))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_order_of_completion_verifies(name: str, memory: Path) -> None:
    for seed in range(rounds(_SCHEDULES)):
        try:
            explore(memory / str(seed), SCENARIOS[name], seed)
        except BaseException as error:
            error.add_note(f"the scenario {name!r} with seed {seed}")
            raise
        shutil.rmtree(memory / str(seed))


def random_scenario(seed: int) -> Scenario:
    """A plan of random shape, in a random mode, with random trouble."""
    dice = random.Random(seed)
    count = dice.randint(1, 8)
    lines: list[str] = []
    for n in range(count):
        after = sorted(dice.sample(range(n), min(n, dice.choice((0, 0, 1, 1, 2, 3)))))
        who = dice.choices(
            (
                "call: t.write",
                "call: t.read",
                "call: t.fail",
                "call: t.lose",
                "agent: reader",
                "agent: writer",
            ),
            (6, 6, 2, 1, 1, 1),
        )[0]
        parts = [f"id: s{n}", who]
        raced = len(after) > 1 and dice.random() < 0.4
        if who.startswith("agent"):
            parts.append("task: Do it.")
        elif after and not raced and dice.random() < 0.5:
            parts.append(f"refs: {{text: {{step: s{dice.choice(after)}}}}}")
        else:
            parts.append(f"params: {{text: w{n}}}")
        if after:
            parts.append(f"after: [{', '.join(f's{one}' for one in after)}]")
        if raced:
            parts.append("join: any_of")
        if dice.random() < 0.2:
            parts.append(f"timeout: {dice.randint(2, 9)}")
        if dice.random() < 0.2:
            parts.append(f"retries: {dice.randint(0, 3)}")
        lines.append(f"  - {{{', '.join(parts)}}}\n")
    mode = dice.choice(("static", "reflect", "nreflect", "orchestrator", "analyze", "profile"))
    answers = dice.choice((PATCHED, GAVE_UP, JUDGING))
    plan = "steps:\n" + "".join(lines) if mode != "profile" else GOAL
    fails = dice.choice((0.0, 0.0, 0.3))
    return Scenario(plan, mode, agents=PEOPLE, answers=answers, asks=dice.random() < 0.3, fails=fails)


def test_random_sessions_verify(memory: Path) -> None:
    for seed in range(rounds(_SESSIONS)):
        try:
            explore(memory / str(seed), random_scenario(seed), seed)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        shutil.rmtree(memory / str(seed))
