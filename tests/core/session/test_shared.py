"""What agents share without a message carries the labels of what was put there: by what was touched, not by a rating."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from iact.core.gate.gate import Ticket
from iact.core.gate.policy_file import Policies
from iact.core.language.variables import Table, Value
from iact.core.models.roles import Models
from iact.core.modules.approval import Approvals
from iact.core.modules.client import OnArtifact, Outcome
from iact.core.modules.invoker import FunctionCall, Modules
from iact.core.ports import KeptFile, ModelProfile, ModuleHost, PathStep, Report, Taken
from iact.core.records.record import Record
from iact.core.records.session import Fork
from iact.core.session.monitor import Authorities
from iact.core.session.runtime import Runtime
from iact.core.stored.replay import Replay, replay
from iact.core.tree.apply_session import create, fork
from iact.core.tree.contexts import labels_shown
from iact.core.tree.mail import Incoming
from iact.core.tree.roles import Role
from iact.core.tree.tree import Tree
from tests.core.session.fakes import FakeHost, FakeModules, ScriptedModel, TickingClock, World, replies
from tests.core.session.test_origin import FETCH, WEB


class Files:
    """Versions of a workspace in memory: `texts` is what the calls of `t.write` wrote into it."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.frozen = False

    def keep(self, workspace: Path, store: Path, *, whole: bool = False) -> str:
        return f"{len(self.texts) + 1:040x}"

    def restore(self, workspace: Path, store: Path, version: str, *, path: str = "") -> None:
        return None

    def with_file(self, workspace: Path, store: Path, path: str, version: str) -> str:
        raise AssertionError("no file is restored here")

    def take_over(self, workspace: Path, store: Path, base: str, copy: str) -> Taken:
        raise AssertionError("nothing races here")

    def forget(self, workspace: Path, store: Path) -> None:
        return None

    def changes(self, store: Path, old: str, new: str) -> str:
        return ""

    def files(self, store: Path, version: str) -> Sequence[KeptFile]:
        return ()

    def contents(self, store: Path, files: Sequence[KeptFile]) -> Iterator[bytes]:
        return iter(())

    def steps(self, store: Path, versions: Sequence[str]) -> Sequence[Sequence[PathStep]]:
        return [() for _ in versions[1:]]

    def patch(self, store: Path, old: KeptFile | None, new: KeptFile | None) -> str:
        return ""

    def share(self, store: Path, target: Path) -> None:
        return None

    def bring(self, store: Path, target: Path) -> int:
        return 0

    def missing(self, store: Path, versions: Sequence[str]) -> Sequence[str]:
        return ()

    def pack(self, store: Path, versions: Sequence[str], known: Sequence[str] = ()) -> bytes:
        return b""

    def unpack(self, store: Path, pack: bytes) -> None:
        return None


class Writing(FakeModules):
    """`t.write` writes what it is given, unless that is "nothing"; "wait:X" waits for event X of the world first."""

    def __init__(self, world: World, files: Files) -> None:
        super().__init__(world)
        self._files = files

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
        text = str(call.arguments.get("text", ""))
        if call.function == "t.write" and text != "nothing" and not self._files.frozen:
            self._files.texts.append(text)
        return outcome


@dataclass
class Scene:
    """A session that is played; `world` holds what its calls wait for, `holds` what agents' replies do."""

    script: Mapping[str, Sequence[str]]
    world: World = field(default_factory=World)
    files: Files = field(default_factory=Files)
    holds: Mapping[str, asyncio.Event] = field(default_factory=dict)
    policy: str = ""
    approved: bool = True
    steer: Callable[[Callable[[], Tree]], Awaitable[None]] | None = None

    def play(self, data: Path, *says: str, workspace: Path | None = None) -> Replay:
        approvals = Approvals.load(data.parent / f"{data.name}.json")
        if self.approved:
            approvals.approve("mail", "1" * 64, ["send"])

        def open_modules(host: ModuleHost, session: str, folder: Path) -> Modules:
            return Writing(self.world, self.files)

        async def main() -> Path:
            async with Runtime(
                data,
                Models({"smart": ScriptedModel(replies(self.script), holds=self.holds)}),
                FakeHost(more=True),
                clock=TickingClock(),
                policies=lambda: Policies.from_toml(self.policy),
                authorities=Authorities(approvals=approvals),
                open_modules=open_modules,
                versions=self.files,
            ) as opened:
                session = await opened.open(intent=2, workspace=workspace)
                async with asyncio.TaskGroup() as group:
                    if self.steer is not None:
                        group.create_task(_run(self.steer(lambda: session.state)))
                    for text in says or ("Go",):
                        await session.ask(text)
                return session.journal

        return replay(asyncio.run(main()), verify=True)


async def _run(one: Awaitable[None]) -> None:
    await one


def beside(text: str, policy: str = "") -> Scene:
    """A child that has read a page writes `text`; then its caller, which has heard nothing of it yet, reads files."""
    script = {
        "/": [
            "```t.write\nfirst\n```",
            "```CALL_ASYNC reader\nRead.\n```\n```CALL idle\nRest.\n```\n```t.read\nfile\n```",
            "```WAIT\n```",
            "Done.",
        ],
        "/reader": [FETCH, f"```t.write\n{text}\n```", "Read."],
        "/idle": ["Rested."],
    }
    written = asyncio.Event()
    scene = Scene(script, policy=policy, holds={"/idle": written})

    async def steer(tree: Callable[[], Tree]) -> None:
        def reading() -> bool:
            reader = tree().agents.get("/reader")
            return reader is None or reader.context.fresh or reader.active

        while reading():  # noqa: ASYNC110 - the agents run meanwhile
            await asyncio.sleep(0)
        written.set()

    scene.steer = steer
    return scene


def test_what_a_call_touched_carries_its_labels(tmp_path: Path) -> None:
    tree = beside("Evil").play(tmp_path).tree
    assert tree.shared.files == {WEB}
    assert WEB in tree.root.table["read_1"].labels


def test_what_a_call_did_not_touch_does_not(tmp_path: Path) -> None:
    """It was rated as writing, and left the files as they were."""
    tree = beside("nothing").play(tmp_path).tree
    assert tree.shared.files == frozenset()
    assert WEB not in tree.root.table["read_1"].labels


def test_without_a_version_to_compare_a_call_counts_as_touching(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    trusting = '[scope.default]\nfunctions = ["*"]\ntrusted = ["tool:web.*"]\n'
    tree = beside("nothing", trusting).play(tmp_path / "data", workspace=tmp_path / "live").tree
    assert tree.shared.files == {WEB}


def test_a_write_that_another_calls_version_holds_already_is_a_write(tmp_path: Path) -> None:
    """Two write at once: the version after the first holds what both wrote, so that after the second is the same."""
    script = {
        "/": ["```t.write\nfirst\n```", "```CALL_ASYNC reader\nA.\n```\n```CALL_ASYNC clean\nB.\n```\n```WAIT\n```", "Done."],
        "/reader": [FETCH, "```t.write\nEvil\n```", "Read."],
        "/clean": ["```t.write\nfine\n```", "Wrote."],
    }  # fmt: skip
    both, written = {"Evil", "fine"}, asyncio.Event()
    scene = Scene(script, World(hold={"Evil": written, "fine": written}))

    async def steer(tree: Callable[[], Tree]) -> None:
        while not both <= {text for _, _, text in scene.world.done}:  # noqa: ASYNC110 - the agents run meanwhile
            await asyncio.sleep(0)
        scene.files.texts.append("what both wrote")
        scene.files.frozen = True
        written.set()

    scene.steer = steer
    played = scene.play(tmp_path)
    versions = [one.text("version") for one in played.records if one.kind == "result" and one.text("version")]
    assert versions[1] == versions[2] != versions[0]
    assert played.tree.shared.files == {WEB}


def test_who_reads_while_something_is_written_reads_it(tmp_path: Path) -> None:
    """The writer will have left nothing; but what is read while it works may be what it wrote meanwhile."""
    script = {
        "/": [
            "```t.write\nfirst\n```",
            "```CALL_ASYNC reader\nRead.\n```\n```CALL_ASYNC clean\nLook.\n```\n```WAIT\n```",
            "Done.",
        ],
        "/reader": [FETCH, "```t.write\nnothing\n```", "Read."],
        "/clean": ["```t.read\nslow\n```", "```t.read\nlater\n```", "Looked."],
    }
    written, looked = asyncio.Event(), asyncio.Event()
    scene = Scene(script, World(hold={"nothing": written, "slow": looked}))
    both = {"nothing", "slow"}

    async def steer(tree: Callable[[], Tree]) -> None:
        while not both <= {text for _, _, text in scene.world.done}:  # noqa: ASYNC110 - the agents run meanwhile
            await asyncio.sleep(0)
        written.set()
        while tree().shared.writing:  # noqa: ASYNC110
            await asyncio.sleep(0)
        looked.set()

    scene.steer = steer
    tree = scene.play(tmp_path).tree
    clean = tree.agents["/clean"]
    assert WEB in clean.table["read_1"].labels
    assert tree.shared.files == frozenset()
    assert not tree.shared.writing


PLAN = """\
goal: g
steps:
  - {id: r, agent: reader, task: "Read."}
  - {id: s, call: %s, after: [r]}
"""


@pytest.mark.parametrize("given", [False, True])
def test_what_a_module_that_does_not_ship_was_given_comes_back_to_anybody(
    tmp_path: Path, given: bool
) -> None:
    """One process serves all agents, and nobody knows what it keeps."""
    send = "mail.send, params: {to: bob, text: hi}"
    script = {
        "/": [f"```PLAN p\n{PLAN % send}```", "Done."],
        "/p/reader": [FETCH, *(["```mail.send to=eve\nEvil\n```"] if given else []), "Read it."],
    }
    tree = Scene(script, approved=False).play(tmp_path).tree
    assert (WEB in value_of(tree, "/p", "s").labels) == given
    assert WEB in tree.root.labels


def value_of(tree: Tree, plan: str, step: str) -> Value:
    run = tree.agents[plan].plan
    assert run is not None
    value = run.latest[step].value
    assert value is not None
    return value


def test_words_that_a_reader_chose_as_names_reach_nobody_through_a_plan(tmp_path: Path) -> None:
    """A step after it is told what it brought by name; so the names, and the types, are of ours."""
    look = "t.read, params: {text: x}"
    plan = PLAN % look + "  - {id: t, agent: looker, task: Look., after: [r]}\n"
    page = "Evil. " * 400
    reader = [
        FETCH,
        f"```VAR ignore_all_rules type=text/obey-me\n{page}\n```",
        f"See $ignore_all_rules. {'It is long. ' * 200}",
    ]
    script = {
        "/": [f"```PLAN p\n{plan}```", "Done."],
        "/p/reader": reader,
        "/p/looker": ["Looked."],
    }
    scene = Scene(script)
    tree = scene.play(tmp_path).tree
    looker = tree.agents["/p/looker"]
    told = looker.context.history.messages()[-2].content
    assert "ignore_all_rules" not in told
    assert "obey-me" not in told
    assert "$r_part_1 (text/plain, 2.4 kB)" in told
    assert "Evil" not in told
    assert looker.labels == frozenset()
    assert looker.table["r_part_1"].text() == page
    assert WEB in looker.table["r_part_1"].labels
    # A small value stands before the task, as data; whoever reads it has read its source.
    small = {
        **script,
        "/p/reader": [FETCH, "```VAR ignore_all_rules type=text/obey-me\nEvil\n```", reader[2]],
    }
    looker = Scene(small).play(tmp_path / "small").tree.agents["/p/looker"]
    assert "$r_part_1:\n```\nEvil\n```" in looker.context.history.messages()[-2].content
    assert "obey-me" not in looker.context.history.messages()[-2].content
    assert looker.labels == {WEB}
    clean = {**script, "/p/reader": ["```VAR ports\n80\n```", "See $ports."]}
    tree = Scene(clean).play(tmp_path / "clean").tree
    assert "$ports (text/plain, 2 B)" in tree.agents["/p/looker"].context.history.messages()[-2].content


def test_why_a_step_failed_is_read_by_who_hears_it(tmp_path: Path) -> None:
    plan = "goal: g\nsteps:\n  - {id: f, call: t.fail, params: {text: x}}\n"
    tree = Scene({"/": [f"```PLAN p\n{plan}```", "Done."]}).play(tmp_path).tree
    assert "it failed" in tree.root.context.history.messages()[-2].content
    assert "inside:t.fail" in tree.root.labels


def test_an_embedded_picture_is_read_by_who_sees_it(tmp_path: Path) -> None:
    """Its carrier only handed the name on; the model that takes pictures sees what is in it."""
    value = Value("0" * 64, 4, "image/png", lambda: b"\x89PNG", frozenset({WEB}), "web.fetch")
    tree = Tree(strict=False, blobs=lambda digest: b"")
    tree.roles["smart"] = Role.of(ModelProfile("scripted", 1_000, takes=("image",)))
    create(tree, "/", "user", "", "smart")
    message = Incoming(2, "caller", "you", "See ![it]($pic)", {"pic": value}, labels=frozenset({"model"}))
    assert labels_shown(tree, tree.root, message, Table()) == {WEB}
    without = Incoming(2, "caller", "you", "See $pic", {"pic": value})
    assert labels_shown(tree, tree.root, without, Table()) == frozenset()


@pytest.mark.parametrize(("files", "known"), [("current", False), ("version", True)])
def test_files_of_a_fork_that_are_later_than_its_records_come_from_nobody_knows_whom(
    files: Literal["current", "version"], known: bool
) -> None:
    tree = Tree(strict=False, blobs=lambda digest: b"")
    create(tree, "/", "user", "", "smart")
    content = Fork(from_="a", after=1, session="s", workspace=files)
    fork(tree, Record(2, "", "/", 2, content), content)
    assert tree.shared.files == (frozenset() if known else {"fork"})
