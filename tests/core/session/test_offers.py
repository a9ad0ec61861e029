"""A state-machine module: an agent is told of what the present state offers, at the end of its context."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from iact.core.gate.gate import Ticket
from iact.core.journal import read_journal
from iact.core.models.roles import Models
from iact.core.modules.client import Completed, OnArtifact, Outcome, Raised
from iact.core.modules.invoker import FunctionCall, Modules
from iact.core.modules.manifest import Manifest
from iact.core.modules.outcome import StateChange
from iact.core.ports import CatalogueEntry, ModuleHost, Report
from iact.core.records.session import Close
from iact.core.session.runtime import Runtime
from iact.core.stored.replay import replay
from tests.core.session.fakes import FakeHost, FakeModules, ScriptedModel, TickingClock, World, replies

_FUNCTION = {
    "summary": "Does it.",
    "documentation": "How to.",
    "schema_text": '{"type":"object","properties":{}}',
}
MACHINE = Manifest.model_validate(
    {
        "name": "house",
        "version": "1",
        "purpose": "A house.",
        "states": ({"name": "outside"}, {"name": "inside", "summary": "a hall"}),
        "functions": (
            {**_FUNCTION, "name": "enter", "states": ("outside",)},
            {**_FUNCTION, "name": "look", "states": ("inside",)},
            {**_FUNCTION, "name": "leave", "states": ("inside",)},
            {**_FUNCTION, "name": "wait"},
        ),
    }
)


class House(FakeModules):
    """Keeps the state as a module does, and refuses what it does not offer; it is started anew for each `wait`."""

    def __init__(self) -> None:
        super().__init__(World())
        self.inside = False

    async def call(
        self,
        ticket: Ticket,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        ticket.redeem(call.request)
        name = call.request.function.removeprefix("house.")
        if name != "wait" and (name == "enter") is self.inside:
            return Raised("NotOffered", f"house.{name} is not offered; offered now: enter, wait.", "", "")
        change = None
        if name in ("enter", "leave"):
            self.inside = name == "enter"
            change = StateChange("inside" if self.inside else "outside", (), "")
        if name == "wait":
            self.inside = False
        return Completed("Done.", "text/plain", {}, None, (), change)

    async def describe(self, module: str, report: Report, *, digest: str | None = None) -> Manifest:
        return MACHINE


class Host(FakeHost):
    """A catalogue with the house."""

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        return [CatalogueEntry("house", "0" * 64, "shipped", "A house.", MACHINE.to_proto())]


def heard(data: Path, *turns: str) -> list[str]:
    """What the root reads at each turn."""
    model = ScriptedModel(replies({"/": [*turns, "Done."]}))

    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return House()

    async def main() -> Path:
        async with Runtime(
            data, Models({"smart": model}), Host(), clock=TickingClock(), open_modules=open_modules
        ) as opened:
            session = await opened.open()
            await session.ask("Go")
            return session.journal

    replay(asyncio.run(main()), verify=True)
    return [asked.newest for asked in model.asked]


def act(name: str) -> str:
    return f"```house.{name}\n```\n"


def test_only_the_entry_points_of_the_present_state_are_told(tmp_path: Path) -> None:
    first, inside, after, outside = heard(tmp_path, act("enter"), act("look"), act("leave"))
    assert "- `house.enter` · Does it\n- `house.wait`" in first
    assert "house.look" not in first
    offered = "The module `house` is in the state `inside` now (a hall). New in it:\n- `house.look`"
    assert offered in inside
    assert "- `house.leave`" in inside
    assert "- `house.enter`" not in inside
    assert "Documentation of `house.look`" in inside, "a state opened it"
    assert "in the state" not in after
    assert outside == "Result of `house.leave`:\n```\nDone.\n```\n\n(state) `house` is in the state `outside`"


def test_the_functions_of_a_state_are_told_once(tmp_path: Path) -> None:
    _, inside, _, again = heard(tmp_path, act("enter"), act("leave"), act("enter"))
    assert "New in it:\n- `house.look`" in inside
    assert again == "Result of `house.enter`:\n```\nDone.\n```\n\n(state) `house` is in the state `inside`"


@pytest.mark.parametrize("killed", [False, True])
def test_an_agent_is_told_that_instances_ended_with_the_process(tmp_path: Path, killed: bool) -> None:
    """With its next turn, once, in the same words whatever ended the process."""
    model = ScriptedModel(replies({"/": [act("enter"), "I am in.", act("enter"), "In again.", "Still."]}))

    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return House()

    async def talk(name: str | None, *messages: str) -> Path:
        async with Runtime(
            tmp_path, Models({"smart": model}), Host(), clock=TickingClock(), open_modules=open_modules
        ) as opened:
            session = await opened.open(name)
            for message in messages:
                await session.ask(message)
            return session.journal

    journal = asyncio.run(talk(None, "Go in"))
    if killed:
        records = read_journal(journal).records
        assert records[-1].kind == "close"
        whole, mark, _ = journal.read_bytes().partition(f"<!-- /{records[-2].n} ".encode())
        end = journal.read_bytes()[len(whole) :].split(b"\n\n")[0]
        journal.write_bytes(whole + end + b"\n\n")
        assert mark
        assert read_journal(journal).records[-1].kind == "reply"

    asyncio.run(talk(journal.parent.name, "And now?", "Sure?"))
    asked = [one.newest for one in model.asked]
    lost = "`house` was started afresh: its processes and what it had in memory are gone"
    assert [lost in newest for newest in asked] == [False, False, True, False, False]
    assert asked[3] == "Result of `house.enter`:\n```\nDone.\n```\n\n(state) `house` is in the state `inside`"

    replay(journal, verify=True)
    contents = [record.content for record in read_journal(journal).records]
    assert [content.late for content in contents if isinstance(content, Close)] == [killed, False]


def test_an_agent_that_used_no_state_is_told_nothing_of_instances(tmp_path: Path) -> None:
    model = ScriptedModel(replies({"/": ["Hello.", "Hello again."]}))

    async def talk(name: str | None) -> str:
        async with Runtime(tmp_path, Models({"smart": model}), Host(), clock=TickingClock()) as opened:
            session = await opened.open(name)
            await session.ask("Hi")
            return session.id

    asyncio.run(talk(asyncio.run(talk(None))))
    assert not any("afresh" in one.newest for one in model.asked)


def test_a_call_that_the_state_does_not_offer_is_told_what_it_offers(tmp_path: Path) -> None:
    _, refused = heard(tmp_path, act("look"))
    assert "house.look is not offered; offered now: enter, wait." in refused


def test_calls_of_a_state_machine_keep_their_order(tmp_path: Path) -> None:
    heard_at = heard(tmp_path, act("enter") + act("look") + act("leave") + act("enter"))
    assert heard_at[1].count("Result of `house.") == 4
    assert "Error" not in heard_at[1]


def test_nothing_tells_that_a_module_was_started_anew_but_what_it_does(tmp_path: Path) -> None:
    """What an agent reads behind a denial and behind a loss must not differ."""
    _, inside, anew, again, refused = heard(
        tmp_path, act("enter"), act("wait"), act("enter"), act("wait") + act("look")
    )
    assert "in the state `inside` now" in inside
    assert anew == "Result of `house.wait`:\n```\nDone.\n```"
    assert "in the state" not in again, "it offers what the agent knows"
    assert "house.look is not offered; offered now: enter, wait." in refused
