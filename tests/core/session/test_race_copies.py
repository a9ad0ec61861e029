"""Steps of a race that write work in copies of the workspace: the winner's is taken over, the others leave nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from iact.core.gate.gate import Ticket
from iact.core.journal import read_journal
from iact.core.models.roles import Models
from iact.core.modules.client import Completed, OnArtifact, Outcome
from iact.core.modules.invoker import FunctionCall, Modules
from iact.core.ports import ModuleHost, Report, Taken, Versions
from iact.core.records.plans import TakeOver
from iact.core.records.record import Record
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from iact.core.stored.workspace import find_version, versions_of
from iact.sandbox.workspace.versions import GitVersions
from tests.core.session.fakes import FakeHost, FakeModules, World, replies
from tests.core.session.plan_scenes import Answers, Thinker, changes, plan, until
from tests.sealing import give_key

GIT = GitVersions()
RACE = """\
steps:
  - {id: slow, call: t.write, params: {text: note=slow}}
  - {id: fast, call: t.write, params: {text: note=fast}}
  - {id: then, call: t.write, params: {text: then=done}, after: [slow, fast], join: any_of}
"""


class Writing(FakeModules):
    """`t.write` writes "FILE=TEXT" where its call works, and then waits as `hold` says; `met`: what stood there before."""

    def __init__(self, world: World, workspace: Path, met: dict[str, list[str]]) -> None:
        super().__init__(world)
        self._workspace = workspace
        self._met = met

    async def call(
        self,
        ticket: Ticket,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        text = str(call.arguments.get("text", ""))
        place = call.copy or self._workspace
        self._met.setdefault(text, []).extend(sorted(one.name for one in place.iterdir()))
        if call.function == "t.write":
            name, _, content = text.partition("=")
            (place / name).write_text(content)
        came = await super().call(ticket, call, on_output=on_output, on_artifact=on_artifact, report=report)
        assert isinstance(came, Completed)
        return came


class Scene:
    """One session in `data` whose root plans `body`; its calls wait for the events in `hold`."""

    def __init__(
        self,
        data: Path,
        body: str,
        *,
        hold: tuple[str, ...] = (),
        answers: Answers | None = None,
        versions: Versions | None = GIT,
        head: str = "PLAN audit",
    ) -> None:
        give_key(data)
        self.data = data
        self.hold = {text: asyncio.Event() for text in hold}
        self.world = World(hold=self.hold)
        self.met: dict[str, list[str]] = {}
        self.script = replies({"/": [plan(body, head), "Done."]})
        self.answers = answers or {"A step": "{}", "Plan": "no"}
        self.versions = versions
        self.session: Session

    def runtime(self) -> Runtime:
        def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
            return Writing(self.world, workspace, self.met)

        models = Models({"smart": Thinker(self.script, self.answers)})
        return Runtime(self.data, models, FakeHost(), open_modules=open_modules, versions=self.versions)

    @property
    def folder(self) -> Path:
        return self.session.journal.parent

    def texts(self, folder: Path | None = None) -> dict[str, str]:
        """What stands in the workspace."""
        place = (folder or self.folder) / "workspace"
        return {one.name: one.read_text() for one in place.iterdir()}

    async def under_way(self, *texts: str) -> None:
        await until(lambda: set(texts) <= {text for _, _, text in self.world.done})


def records_of(session: Session) -> list[Record]:
    """All of them, verified."""
    replay(session.journal, verify=True)
    return list(read_journal(session.journal.parent).records)


def told(records: list[Record], op: str) -> list[Record]:
    return [one for one in records if one.kind == "copy" and one.text("op") == op]


def test_the_winner_stands_and_the_loser_is_nowhere(tmp_path: Path) -> None:
    async def main() -> Scene:
        scene = Scene(tmp_path, RACE, hold=("note=slow",))
        async with scene.runtime() as opened:
            scene.session = await opened.open()
            (scene.folder / "workspace" / "old").write_text("old")
            said = await scene.session.say("Go")
            await scene.under_way("note=slow", "note=fast")
            assert (await scene.session.answer(said.n)).body == "Done."
            assert not scene.world.running, "the loser was stopped"
            await until(lambda: not list((scene.folder / "copies").iterdir()))
        return scene

    scene = asyncio.run(main())
    assert scene.texts() == {"old": "old", "note": "fast", "then": "done"}
    assert scene.met == {"note=slow": ["old"], "note=fast": ["old"], "then=done": ["note", "old"]}
    assert not (scene.folder / "copies").exists()
    records = records_of(scene.session)
    assert {"fast": "executed", "slow": "skipped", "then": "executed"}.items() <= dict(
        changes(records)
    ).items()
    assert [one.text("node") for one in told(records, "make")] == ["fast", "slow"]
    (taken,) = told(records, "take")
    assert (taken.text("node"), bool(taken.text("version"))) == ("fast", True)
    results = [one for one in records if one.kind == "result" and one.agent == "/audit"]
    assert [one.n for one in versions_of(records)] == [taken.n, results[-1].n], "copies are no versions of it"
    assert find_version(records, str(taken.n)) == taken.text("version")


def test_what_a_fork_has_of_a_race_is_what_the_workspace_had(tmp_path: Path) -> None:
    """As after `kill -9` behind each record: the race goes on, its winner is taken over, and nobody else's is there."""

    async def main() -> int:
        scene = Scene(tmp_path, RACE, hold=("note=slow",))
        async with scene.runtime() as opened:
            scene.session = await opened.open()
            await scene.session.ask("Go")
            records, name = list(scene.session.records()), scene.session.id
        won = told(records, "take")[0].n
        began = next(one.n for one in records if one.kind == "spawn")
        *_, last = (one.n for one in records if one.kind == "call")
        for at in range(began, len(records)):
            again = Scene(tmp_path, RACE, hold=("note=slow",))
            async with again.runtime() as opened:
                again.session = await opened.open(await opened.fork(name, at, run=True))
                if at < won:
                    assert "note" not in again.texts(), f"behind record {at}"
                await again.session.answer(at)
            assert again.texts()["note"] == "fast", f"behind record {at}"
            assert ("then" in again.texts()) == (at != last), (
                "what is cut off in the workspace itself is not repeated"
            )
            copied = records_of(again.session)
            assert dict(changes(copied))["fast"] == "executed", f"behind record {at}"
            assert len(told(copied, "take")) == 1, f"behind record {at}"
        async with again.runtime() as opened:
            dropped = await opened.open(await opened.fork(name, won - 1))
            assert list((dropped.journal.parent / "workspace").iterdir()) == [], (
                "nothing is done that nobody asked for"
            )
        assert not told(records_of(dropped), "take")
        return len(records) - began

    assert asyncio.run(main()) > 20


def raced(data: Path, how: Literal["turns", "meets"]) -> Path:
    """The directory of a session whose steps race: without copies, or into what somebody else changed meanwhile."""
    return (asyncio.run(_turns(data)) if how == "turns" else asyncio.run(_meets(data))).folder


async def _turns(data: Path) -> Scene:
    scene = Scene(data, RACE, versions=None)
    async with scene.runtime() as opened:
        scene.session = await opened.open()
        await scene.session.ask("Go")
    return scene


async def _meets(data: Path) -> Scene:
    scene = Scene(data, RACE, hold=("note=fast", "note=slow"))
    async with scene.runtime() as opened:
        scene.session = await opened.open()
        said = await scene.session.say("Go")
        await scene.under_way("note=slow", "note=fast")
        (scene.folder / "workspace" / "note").write_text("a person's")
        scene.hold["note=fast"].set()
        await until(lambda: told(list(scene.session.records()), "take"))
        assert scene.texts()["note"] == "a person's"
        await scene.session.answer(said.n)
    return scene


def test_who_meets_what_others_changed_says_so_and_tries_again_or_loses(tmp_path: Path) -> None:
    """What was changed in the workspace meanwhile is not overwritten; a new copy has it."""
    scene = asyncio.run(_meets(tmp_path))
    assert scene.texts()["note"] == "fast"
    records = records_of(scene.session)
    lost, won = told(records, "take")
    assert isinstance(lost.content, TakeOver)
    assert lost.content.conflicts == ("note",)
    assert (lost.text("version"), lost.text("node"), won.text("node")) == ("", "fast", "fast")
    failed = next(one for one in records if one.kind == "node" and one.text("cause") == "transient")
    assert failed.text("detail") == (
        "What it wrote was not put into the workspace, since somebody else changed note there meanwhile."
    )
    assert scene.met["note=fast"] == ["note"], "the second copy has what stood there"


def test_the_first_that_arrives_wins_though_it_is_being_taken_over(tmp_path: Path) -> None:
    """Who arrives meanwhile waits, and wins where the first could not be taken over."""
    versions = Slow()

    async def main(*, meets: bool) -> Scene:
        scene = Scene(tmp_path / str(meets), RACE, hold=("note=fast", "note=slow"), versions=versions)
        async with scene.runtime() as opened:
            scene.session = await opened.open()
            said = await scene.session.say("Go")
            await scene.under_way("note=slow", "note=fast")
            with versions.held() as begun:
                scene.hold["note=slow"].set()
                await until(begun)
                if meets:
                    (scene.folder / "workspace" / "note").write_text("a person's")
                scene.hold["note=fast"].set()
                await until(lambda: not scene.world.running)
            await scene.session.answer(said.n)
        return scene

    for meets in (False, True):
        scene = asyncio.run(main(meets=meets))
        records = records_of(scene.session)
        order = [(one.text("node"), bool(one.text("version"))) for one in told(records, "take")]
        assert order[0] == ("slow", not meets)
        assert scene.texts()["note"] == ("slow" if order[-1][0] == "slow" else "fast")
        assert [state for node, state in changes(records) if node == "then"][-1] == "executed"


def test_without_versions_the_writers_of_a_race_take_turns_and_say_why(tmp_path: Path) -> None:
    scene = asyncio.run(_turns(tmp_path))
    records = records_of(scene.session)
    assert [(one.text("node"), one.text("why")) for one in told(records, "make")] == [
        ("fast", "No versions of this workspace are kept."),
        ("slow", "No versions of this workspace are kept."),
    ]
    assert [text for _, _, text in scene.world.done] == ["note=fast", "then=done"]
    assert dict(changes(records))["slow"] == "skipped"


class Slow(GitVersions):
    """Taking over waits while it is held."""

    def __init__(self) -> None:
        super().__init__()
        self._free, self._begun = threading.Event(), threading.Event()
        self._free.set()

    @contextmanager
    def held(self) -> Iterator[Callable[[], bool]]:
        """Within, what was begun waits; gives whether something was."""
        self._free.clear()
        self._begun.clear()
        try:
            yield self._begun.is_set
        finally:
            self._free.set()

    def take_over(self, workspace: Path, store: Path, base: str, copy: str) -> Taken:
        self._begun.set()
        assert self._free.wait(300)
        return super().take_over(workspace, store, base, copy)
