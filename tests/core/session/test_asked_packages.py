"""The index is asked only for packages that a person or the policy named: the others wait, by name, in a question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from iact.core.ports import CatalogueEntry, ModuleSource, Origin
from iact.core.records.calls import ClearanceAsk
from iact.core.records.record import Record
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from tests.core.session.fakes import replies, runtime
from tests.core.session.test_clearance import clearances, question
from tests.core.session.test_module_loader import GrowingHost


class Listening(GrowingHost):
    """Notes which packages each version asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, ...]] = []

    async def add(self, source: ModuleSource, origin: Origin) -> CatalogueEntry:
        self.asked.append(source.requirements)
        return await super().add(source, origin)


def deploy(requirements: str, name: str = "weather") -> str:
    return f'```DEPLOY {name} requirements="{requirements}"\nfine {requirements}\n```'


def play(
    data: Path, says: Sequence[str], answers: Sequence[bool], *, policy: str = ""
) -> tuple[Listening, list[Record]]:
    """Let the root say this; its questions are answered one after the other, and there must be as many."""
    host = Listening()

    async def main() -> Path:
        async with runtime(data, replies({"/": [*says, "Done."]}), host=host, policy=policy) as opened:
            session: Session = await opened.open()
            said = await session.say("Go")
            known = said.n
            for allow in answers:
                known = await question(session, known)
                await session.clear(known, allow)
            await session.answer(said.n)
            return session.journal

    found = replay(asyncio.run(main()), verify=True)
    records = list(found.records)
    assert len(clearances(records, "ask")) == len(answers)
    return host, records


def test_packages_of_an_agents_module_wait_for_a_person_by_name(tmp_path: Path) -> None:
    host, records = play(tmp_path, [deploy("numpy==2.1.3, other==1")], [True])
    (asked,) = clearances(records, "ask")
    content = asked.content
    assert isinstance(content, ClearanceAsk)
    assert (content.function, content.rule) == ("DEPLOY", "clearance")
    assert content.reason == (
        "The module needs packages from the index, and whatever these need in turn: numpy==2.1.3, other==1. "
        "Nobody named them."
    )
    assert content.params["requirements"] == "numpy==2.1.3, other==1"
    assert host.asked == [("numpy==2.1.3", "other==1")]


def test_after_a_no_nothing_is_stored_and_nothing_is_asked_of_an_index(tmp_path: Path) -> None:
    host, records = play(tmp_path, [deploy("evil==1")], [False])
    assert host.asked == []
    (result,) = [one for one in records if one.kind == "result"]
    assert result.text("status") == "incomplete"


def test_a_yes_is_for_these_packages_and_no_others(tmp_path: Path) -> None:
    says = [deploy("numpy==2.1.3"), deploy("numpy==2.1.3", "stocks"), deploy("numpy==2.1.3 numpy-evil==1")]
    host, records = play(tmp_path, says, [True, True])
    assert len(host.asked) == 3
    reasons = [one.text("reason") for one in clearances(records, "ask")]
    assert "numpy-evil==1" in reasons[1]
    assert "numpy==2.1.3" not in reasons[1]


@pytest.mark.parametrize("named", ["numpy", "numpy==2.1.3"])
def test_what_the_policy_names_is_asked_of_nobody(tmp_path: Path, named: str) -> None:
    policy = f'[sets]\npackages = ["{named}"]\n[scope.default]\nfunctions = ["*"]\n'
    host, _ = play(tmp_path, [deploy("numpy==2.1.3")], [], policy=policy)
    assert host.asked == [("numpy==2.1.3",)]


def test_what_is_no_exact_version_is_refused_and_not_asked_about(tmp_path: Path) -> None:
    host, _ = play(tmp_path, [deploy("numpy other>=1")], [])
    assert host.asked == [("numpy", "other>=1")], "the catalogue refuses it"


def test_a_module_without_packages_is_asked_of_nobody(tmp_path: Path) -> None:
    host, _ = play(tmp_path, ["```DEPLOY weather\nfine\n```"], [])
    assert host.asked == [()]
