"""Sessions that between them have what few others have: whatever a person does to one, and what happens around it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from iact.core.gate.gate import Ticket
from iact.core.gate.policy_file import Policies
from iact.core.journal import read_journal
from iact.core.models.roles import Models
from iact.core.modules.client import OnArtifact, Outcome
from iact.core.modules.invoker import FunctionCall, Modules
from iact.core.modules.manifest import Manifest
from iact.core.modules.outcome import StateChange
from iact.core.ports import CatalogueEntry, Memory, ModuleHost, Report
from iact.core.records.calls import ClearanceAsk, Result
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.views.events import Delta
from iact.sandbox.workspace.versions import GitVersions
from tests.core.session.fakes import Asked, FakeHost, Script, ScriptedModel, TickingClock, replies, runtime
from tests.core.session.memories import POISON, WISH, FakeMemory
from tests.core.session.test_control import until
from tests.core.session.test_distilling import is_asked_to_distil
from tests.core.session.test_offers import MACHINE, House
from tests.core.stored import test_adopt
from tests.sealing import give_key, seal

POLICY = '[scope.default]\nfunctions = ["*"]\nclearance = ["house.leave"]'
STEPS = "steps:\n  - {id: in, call: house.enter}\n  - {id: out, call: house.leave, after: [in]}\n"


HOUSE = Manifest.model_validate(
    {
        **MACHINE.model_dump(),
        "needs": {"workspace": "write"},
        "functions": [
            {
                **one.model_dump(),
                "impact": 0 if one.name == "look" else 1,
                "schema_text": '{"type":"object","properties":{"text":{"type":"string"}}}',
            }
            for one in MACHINE.functions
        ],
    }
)
"""The house, in which one leaves traces."""


class Moving(House):
    """A house whose door falls shut some time after somebody waited: it comes to another state by itself."""

    async def call(
        self,
        ticket: Ticket,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        outcome = await super().call(
            ticket, call, on_output=on_output, on_artifact=on_artifact, report=report
        )
        if call.request.function == "house.wait" and call.on_state is not None:
            change = StateChange("outside", ("enter",), "The door fell shut.")
            self._door = asyncio.ensure_future(call.on_state(change))  # as by whoever listens to a module
        return outcome


class Street(FakeHost):
    """A catalogue with the house, of which a person takes it away and puts it back."""

    empty = False

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        there = CatalogueEntry("house", "0" * 64, "shipped", "A house.", HOUSE.to_proto())
        return [] if self.empty else [there]


def opened(
    data: Path,
    script: Script,
    *,
    policy: str = "",
    memory: Memory | None = None,
    host: FakeHost | None = None,
    played: str = "scripted",
) -> Runtime:
    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return Moving()

    give_key(data)
    model = ScriptedModel(script, chunk=10_000)
    model.profile = replace(model.profile, name=played)
    return Runtime(
        data,
        Models({"smart": model}),
        host or Street(),
        clock=TickingClock(),
        open_modules=open_modules,
        policies=lambda: Policies.from_toml(policy),
        memory=memory,
        versions=GitVersions(),
    )


TURNS = [
    "```house.enter\n```\n```RECALL\nspaces\n```\n```REMEMBER kind=fact\nThe hall is dark.\n```",
    "```VAR hall\n$enter_1\n```",
    "I am inside.",
    "```house.look\n```",
    "Locked.",
    "```house.wait\n```",
    "It fell shut.",
    "I see.",
    "And now?",
    "```house.leave text=$hall\n```",
    "Still here.",
    "```house.leave text=$hall\n```",
    "So it is.",
    "```house.leave text=$hall\n```",
    "It stays so.",
]


def everything(data: Path) -> list[Path]:
    """What a person does with a session, what memory and a module do by themselves; and a fork of it. Their directories."""
    turns, memory, host = replies({"/": TURNS}), FakeMemory((WISH, POISON)), Street()

    def script(asked: Asked) -> str:
        return "none" if is_asked_to_distil(asked) else turns(asked)

    async def main() -> list[Path]:
        async with opened(data, script, memory=memory, host=host) as it:
            session = await it.open(intent=2)
            (session.journal.parent / "workspace").mkdir(exist_ok=True)
            await session.ask("Go in.")
            await session.raise_budget(1000)
            await session.declassify("/", "hall")
            await session.declassify("/")
            await session.lockdown(True)
            await session.ask("Look around.")
            await session.lockdown(False)
            await session.switch_memory(False)
            await session.ask("Wait.")
            await session.switch_memory(True)
            await until(lambda: any(one.kind == "state" for one in session.records()))
            await session.ask("What happened?")
            await session.set_intent(1)
            await restored(session)
            await session.distil()
            await session.run_plan(STEPS, name="mine", thinks=False)
            await steered(session)
            host.empty = True
            await session.refresh_modules()
            host.empty = False
            await session.refresh_modules()
        async with opened(data, script, policy=POLICY, memory=memory, played="another") as it:
            again = await it.open(session.id)
            await again.ask("Are you there?")
            await leave(again, False)
            wanted = [one.n for one in again.records() if one.kind == "turn" and "house.leave" in one.body]
            name = await it.fork(session.id, wanted[-1])
        async with opened(data, script, policy=POLICY, memory=memory, played="another") as it:
            forked = await it.open(name)
            await forked.ask("Better not. Are you there?")
            await leave(forked, True)
            await leave(forked, False)
        return [again.journal.parent, forked.journal.parent]

    return asyncio.run(main())


def stopped(data: Path) -> Path:
    """A person talks while the root writes, thinks better of what waits, and stops it; its directory."""
    hold = asyncio.Event()
    model = ScriptedModel(lambda asked: "So be it, as you say.", holds={"/": hold})

    async def main() -> Path:
        async with runtime(data, lambda asked: "", model=model) as it:
            session = await it.open()
            await session.say("Go.")
            await writing(session, model, 1)
            await session.inject("/", "No, elsewhere.", "interrupt")
            await writing(session, model, 2)
            await session.say("And then home.")
            third, fourth = await session.say("Or nt."), await session.say("Sing.")
            await session.reword("/", third.n, "Or not.")
            await session.withdraw("/", fourth.n)
            await session.cancel("/")
            await writing(session, model, 3)
            sixth = await session.say("Stop.", once="stop")
            await session.send_now("/", sixth.n)
            hold.set()
            await session.answer(sixth.n)
            await session.stop_calls("/")
            return session.journal.parent

    return asyncio.run(main())


def with_plans(data: Path) -> Path:
    """A person has kept a plan, and the root reads how plans are written; the session's directory."""

    async def main() -> Path:
        async with runtime(data, replies({"/": ["```HELP PLAN\n```", "Read."]})) as it:
            it.templates.save("tidy", "steps:\n  - {id: a, call: t.read, params: {text: x}}\n")
            session = await it.open()
            await session.ask("How are plans written?")
            return session.journal.parent

    return asyncio.run(main())


async def writing(session: Session, model: ScriptedModel, count: int) -> None:
    """Wait until the model writes for the root for this number of times."""
    await until(lambda: len(model.asked) == count)
    async with session.watch() as events:
        async for event in events:
            if isinstance(event, Delta) and event.text:
                return


async def steered(session: Session) -> None:
    """A plan waits, is changed and begun; a step of it that is taken back is tried again after the plan has ended."""
    first = await session.begin_plan(STEPS, name="steered", mode="static", plan_first=True)
    await session.edit_plan(first.agent, STEPS + "  - {id: twice, call: house.look, after: [out]}\n")
    await session.cancel(first.agent, "twice")
    await session.start_plan(first.agent)
    await until(lambda: not session.state.agents[first.agent].active)
    await session.retry_step(first.agent, "twice")
    await until(lambda: not session.state.agents[first.agent].active)


async def leave(session: Session, allow: bool) -> None:
    """The root wants to go out, which a person allows or not."""
    said = await session.say("Leave.")
    await until(lambda: asked(session, said.n))
    await session.clear(asked(session, said.n)[0], allow)
    await session.answer(said.n)


def asked(session: Session, since: int) -> list[int]:
    return [one.n for one in session.records(since) if isinstance(one.content, ClearanceAsk)]


async def restored(session: Session) -> None:
    """The files are put back to the version after a call that may have written, and one file by itself."""
    versions = [one.content.version for one in session.records() if isinstance(one.content, Result)]
    version = next(version for version in versions if version)
    await session.restore(version)
    (session.journal.parent / "workspace" / "later.txt").write_text("later")
    await session.restore(version, "later.txt")


def adopted(data: Path) -> Path:
    """A session from elsewhere that goes on here."""
    script = {"/": ["```CALL a\nTask.\n```", "Done."], "/a": ["```READ\nx\n```", "A done."]}
    made = test_adopt.adopt(data / "here", test_adopt.elsewhere(data / "there", script))
    turns = [*script["/"], "```t.destroy\nall\n```\n```CALL b\nTask.\n```", "Over."]
    say = replies({"/": turns, "/b": ["```READ\ny\n```", "B done."]})

    async def main() -> Path:
        async with runtime(data / "here", say, policy=test_adopt.POLICY) as it:
            session = await it.open(made.name)
            await session.ask("And now?")
            return session.journal.parent

    return asyncio.run(main())


def migrated(data: Path, golden: Path) -> Path:
    """A session of an older version that goes on."""
    target = data / "sessions" / read_journal(golden).records[0].text("session")
    shutil.copytree(golden, target)
    seal(target)
    test_adopt.go_on(data, target.name)
    return target
