"""Journals of every version are read forever, those of this one verify, and sessions in any of them go on."""

from __future__ import annotations

import asyncio
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iact.core.errors import ReplayMismatch
from iact.core.journal.file import FILE, read_journal
from iact.core.records.dialogue import Spawn
from iact.core.records.kinds import FORMAT
from iact.core.records.plans import Extend, Node, Plan, Wake
from iact.core.stored.replay import Replay, replay
from tests.core.session.fakes import ScriptedModel, replies, runtime
from tests.core.session.plan_scenes import runtime as planning
from tests.core.session.test_plan_control import JUDGING
from tests.journals.record import PLACE, PLANS, SCENES
from tests.sealing import give_key, seal

ALL = sorted(path.parent for path in PLACE.glob(f"*/*/{FILE}"))
OF_THIS_VERSION = [path for path in ALL if path.parent.name == FORMAT]
OLDER = [path for path in ALL if path.parent.name != FORMAT]
ENDED = {"ways": "It was Ada.", "tree": "That is all.", "parallel": "All reported."}
"""What they end with; the others with "Done."."""

MODES = ("static", "reflect", "nreflect", "orchestrator", "analyze", "profile")

every = pytest.mark.parametrize("golden", ALL, ids=lambda path: f"{path.parent.name}-{path.name}")
older = pytest.mark.parametrize("golden", OLDER, ids=lambda path: f"{path.parent.name}-{path.name}")
present = pytest.mark.parametrize("golden", OF_THIS_VERSION, ids=lambda path: path.name)


def test_every_version_has_every_scene() -> None:
    versions = {path.parent.name for path in ALL}
    assert {"1.0", "1.1", "1.2", FORMAT} == versions
    held = {(path.parent.name, path.name) for path in ALL}
    assert held >= {(version, name) for version in versions for name in SCENES if name != "ways"}
    assert {name for version, name in held if version == FORMAT} == {*SCENES, *PLANS}
    assert {name for version, name in held if version == "1.1"} >= {f"plan-{mode}" for mode in MODES}


def test_plans_of_this_version_met_all_kinds_of_trouble() -> None:
    """A retry, a patch, a new plan, a person's message, a race, an approval, a kill in the middle; and every mode."""
    records = [record for path in OF_THIS_VERSION for record in replay(path).records]
    kinds = {record.kind for record in records}
    assert {"plan", "node", "fire", "ask", "draft", "wake", "discard"} <= kinds
    modes = {
        record.content.plan.mode
        for record in records
        if isinstance(record.content, Spawn) and record.content.plan
    }
    assert modes >= set(MODES)
    causes = {record.content.cause for record in records if isinstance(record.content, Node)}
    assert causes >= {"retried", "transient", "lost_race", "needs_human", "approved", "cancelled", "dropped"}
    reasons = {
        record.content.reason.partition(":")[0] for record in records if isinstance(record.content, Plan)
    }
    assert reasons >= {"patch", "replan", "planned"}
    assert not any(reason.startswith(("observer", "reflection")) for reason in reasons), (
        "no decision, no version"
    )
    joined = {
        step["kind"]
        for record in records
        if isinstance(record.content, Extend)
        for step in record.content.add
    }
    assert joined >= {"interjection", "reflection", "observer", "micro_planner", "tool"}
    assert any(isinstance(record.content, Wake) and record.content.reopened for record in records)


@every
def test_a_golden_journal_is_read(golden: Path) -> None:
    tree = replay(golden).tree
    assert tree.format == golden.parent.name
    assert tree.root.context.history.messages()[-1].content == ENDED.get(golden.name, "Done.")
    assert not any(agent.actions or agent.active or agent.account.reserved for agent in tree.agents.values())
    used = sum(agent.usage.prompt_tokens + agent.usage.completion_tokens for agent in tree.agents.values())
    assert tree.root.account.spent == used


@present
def test_a_golden_journal_of_this_version_verifies(golden: Path) -> None:
    try:
        assert replay(golden, verify=True).verified_from == 1
    except ReplayMismatch as error:
        pytest.fail(
            f"{error} If a prompt, a label or a rule was changed on purpose: python -m tests.journals.record",
            pytrace=False,
        )


@older
def test_verifying_an_older_journal_says_which_version_it_is_of(golden: Path) -> None:
    with pytest.raises(ReplayMismatch, match=f"the rules of format {golden.parent.name}") as caught:
        replay(golden, verify=True)
    assert caught.value.n == 1


def go_on(golden: Path, data: Path, text: str) -> Replay:
    """Open the session of a golden journal, say something, and verify what came of it."""
    target = data / "sessions" / read_journal(golden).records[0].text("session")
    if not target.exists():
        shutil.copytree(golden, target)
        seal(target)
    model = ScriptedModel(lambda asked: f"I heard {text}", context=1_000_000)

    async def main() -> None:
        async with runtime(data, replies({}), model=model) as opened:
            session = await opened.open(target.name)
            await session.ask(text)

    asyncio.run(main())
    return replay(target, verify=True)


@older
def test_a_session_of_an_older_version_goes_on_and_is_verified_from_there(
    golden: Path, tmp_path: Path
) -> None:
    count = len(read_journal(golden).records)
    first = go_on(golden, tmp_path, "Are you there?")
    assert first.verified_from == count + 1
    assert first.records[count].fields["from"] == golden.parent.name
    second = go_on(golden, tmp_path, "Still?")
    assert second.verified_from == count + 1
    assert [one.body for one in second.records if one.kind == "reply"][-2:] == [
        "I heard Are you there?",
        "I heard Still?",
    ]


@present
def test_a_session_of_this_version_goes_on_without_a_migration(golden: Path, tmp_path: Path) -> None:
    assert go_on(golden, tmp_path, "Are you there?").verified_from == 1


class Then:
    """A clock that goes like ours, but began when a journal ended: else the time of its tasks would be over."""

    def __init__(self, at: str) -> None:
        self._behind = datetime.now(UTC) - datetime.fromisoformat(at)

    def now(self) -> datetime:
        return datetime.now(UTC) - self._behind

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@pytest.mark.parametrize("mode", MODES)
def test_a_plan_of_an_older_version_goes_on_from_any_of_its_records(mode: str, tmp_path: Path) -> None:
    """Its steps were state in that format; from the migration on they follow from outcomes, and are verified."""
    golden = PLACE / "1.1" / f"plan-{mode}"
    records = read_journal(golden).records
    name, began = records[0].text("session"), next(one.n for one in records if one.kind == "spawn")
    shutil.copytree(golden, tmp_path / "sessions" / name)
    give_key(tmp_path)
    seal(tmp_path / "sessions" / name)

    async def main() -> None:
        for at in range(began + 1, len(records) - 2, 3):
            script = replies({"/": ["Done."] * 9, "/audit/reader": ["Read it."] * 9})
            clock = Then(records[at - 1].at)
            async with planning(tmp_path, script, answers=JUDGING, clock=clock) as opened:
                copy = await opened.open(await opened.fork(name, at, run=True))
                answer = await copy.answer(at)
                assert answer.body == "Done.", f"after record {at}"
            assert replay(copy.journal, verify=True).verified_from == at + 2
            ran = copy.state.agents["/audit"].plan
            assert ran is not None
            assert ran.ending is not None, f"after record {at}"

    asyncio.run(main())
