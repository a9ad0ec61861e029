"""What a module that reached the outside writes has its label: settled when it happens, and not when the call begins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from iact.core.errors import ModuleLost
from iact.core.gate.gate import Ticket
from iact.core.gate.policy_file import Policies
from iact.core.models.roles import Models
from iact.core.modules.approval import Approvals
from iact.core.modules.client import OnArtifact
from iact.core.modules.invoker import FunctionCall, Modules
from iact.core.modules.manifest import Manifest
from iact.core.modules.outcome import Completed, Outcome, Raised, StateChange
from iact.core.ports import CatalogueEntry, ModuleHost, Report
from iact.core.records.record import Record
from iact.core.session.monitor import Authorities
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.stored.replay import Replay, replay
from iact.core.tree.tree import Tree
from tests.core.session.fakes import FakeHost, FakeModules, ScriptedModel, TickingClock, World, replies
from tests.core.session.test_clearance import clearances
from tests.core.session.test_control import until
from tests.core.session.test_shared import Files

_FUNCTION = {
    "name": "run",
    "summary": "Works.",
    "documentation": "",
    "schema_text": '{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}',
    "body": "text",
    "impact": 1,
}
_STATES = ({"name": "ready", "summary": "Nothing runs."}, {"name": "jobs", "summary": "Something runs."})


def manifest(name: str, *, own: bool = False, states: bool = False) -> Manifest:
    return Manifest.model_validate(
        {
            "name": name,
            "version": "1",
            "purpose": "Works.",
            "needs": {"workspace": "write", "egress": ("*",), "own_instances": own, "forgets": not own},
            "functions": (_FUNCTION, {**_FUNCTION, "name": "look", "impact": 0}),
            "states": _STATES if states else (),
        }
    )


LAB = manifest("lab")
"""A shipped module that serves all agents, and keeps nothing."""
HUT = manifest("hut", own=True, states=True)
"""A shipped module of which each agent has its own instance, with jobs."""

RUN, HUT_RUN = "tool:lab.run", "tool:hut.run"

POLICY = """
[scope.default]
functions = ["*"]
[scope.default.egress]
lab = ["*"]
hut = ["*"]
web = ["*"]
"""


class Labs(FakeHost):
    """A catalogue with `lab` and `hut` besides."""

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        more = [
            CatalogueEntry(one.name, digit * 64, "shipped", "Works.", one.to_proto())
            for one, digit in ((LAB, "3"), (HUT, "4"))
        ]
        return [*await super().catalogue(), *more]


class Bench(FakeModules):
    """What `lab` and `hut` do, line by line: `reach HOST`, `write TEXT`, `read`, `job`, `rest`, `wait EVENT`, `fail TEXT`,
    `lose`."""

    def __init__(self, world: World, files: Files) -> None:
        super().__init__(world)
        self._files = files
        self.begun: list[str] = []
        """The lines that calls have come to."""

    async def call(
        self,
        ticket: Ticket,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        module, _, _ = call.function.partition(".")
        if module not in ("lab", "hut"):
            return await super().call(
                ticket, call, on_output=on_output, on_artifact=on_artifact, report=report
            )

        ticket.redeem(call.request)
        owner = call.request.agent if module == "hut" else ""
        state = None
        printed = []
        for line in str(call.arguments["text"]).splitlines():
            self.begun.append(line)
            match line.split(" ", 1):
                case ["reach", host]:
                    printed.append(str(await self.reach(module, owner, host)))
                case ["write", text]:
                    self._files.texts.append(text)
                case ["read"]:
                    printed += self._files.texts
                case ["job"]:
                    state = StateChange("jobs", (), "")
                case ["rest"]:
                    state = StateChange("ready", (), "")
                case ["fail", text]:
                    return Raised("Odd", text, "", "")
                case ["lose"]:
                    raise ModuleLost("It ended.")
                case ["wait", name]:
                    await self._world.hold[name].wait()
                case _:
                    raise AssertionError(line)
            await asyncio.sleep(0)
        return Completed("\n".join(printed) or "done", "text/plain", {}, None, (), state)

    async def reach(self, module: str, owner: str, host: str) -> bool:
        """What the proxy does."""
        return await self.permit(module, owner)(host, 443)


Steer = Callable[[Bench, Callable[[], Tree]], Awaitable[None]]


@dataclass
class Scene:
    """A session that is played. `steer` runs beside it; `world.hold` holds what calls wait for."""

    script: Mapping[str, Sequence[str]]
    steer: Steer | None = None
    world: World = field(default_factory=World)
    policy: str = POLICY
    allow: bool | None = None
    """How every question is answered; None: there must be none."""
    opened: Callable[[Session], object] = lambda session: None
    """Is told the session when it is open."""

    def play(self, data: Path) -> Replay:
        benches: list[Bench] = []
        approvals = Approvals.load(data.parent / f"{data.name}.json")
        approvals.approve("mail", "1" * 64, ["send"])
        files = Files()

        def open_modules(host: ModuleHost, session: str, folder: Path) -> Modules:
            benches.append(Bench(self.world, files))
            return benches[-1]

        async def main() -> Path:
            async with Runtime(
                data,
                Models({"smart": ScriptedModel(replies(self.script))}),
                Labs(more=True),
                clock=TickingClock(),
                policies=lambda: Policies.from_toml(self.policy),
                authorities=Authorities(approvals=approvals),
                open_modules=open_modules,
                versions=files,
            ) as opened:
                session = await opened.open(intent=2)
                self.opened(session)
                said = await session.say("Go")
                if self.steer is not None:
                    await self.steer(benches[0], lambda: session.state)
                answer = asyncio.create_task(session.answer(said.n))
                # One of them comes, so that a test fails and does not wait for what never does.
                await until(lambda: answer.done() or bool(clearances(session.records(), "ask")))
                asked = clearances(session.records(), "ask")
                assert bool(asked) is (self.allow is not None)
                if self.allow is not None:
                    await session.clear(asked[0].n, self.allow)
                await answer
                return session.journal

        return replay(asyncio.run(main()), verify=True)


def run(*lines: str, module: str = "lab", function: str = "run") -> str:
    return f"```{module}.{function}\n" + "\n".join(lines) + "\n```"


hut = partial(run, module="hut")
SEND = "```mail.send to=bob\nHello\n```"


def reaches(records: Sequence[Record]) -> list[Record]:
    return [one for one in records if one.kind == "host" and one.text("op") == "reach"]


def labels(tree: Tree, name: str, path: str = "/") -> frozenset[str]:
    return tree.agents[path].table[name].labels


# --- the connection is made in the call itself --------------------------------------------------------------


@pytest.mark.parametrize("module", ["lab", "hut"])
@pytest.mark.parametrize("lines", [("reach a.example", "write x"), ("write x", "reach a.example")])
def test_the_first_call_that_reaches_outside_labels_its_files_and_its_output(
    tmp_path: Path, module: str, lines: Sequence[str]
) -> None:
    tree = Scene({"/": [run(*lines, module=module), "Done."]}).play(tmp_path / "data").tree
    label = f"tool:{module}.run"
    assert tree.shared.files == {label}
    assert tree.root.labels == {label}
    assert label in labels(tree, "run_1")


def test_a_call_that_reaches_nothing_adds_nothing(tmp_path: Path) -> None:
    tree = Scene({"/": [run("write x"), SEND, "Done."]}).play(tmp_path / "data").tree
    assert RUN not in tree.shared.files
    assert tree.root.labels == {"inside:lab.run", "tool:mail.send"}


def test_what_was_written_before_stays_as_it_was(tmp_path: Path) -> None:
    """One call that reaches outside does not make strangers of the calls of its module before it."""
    script = {
        "/": [run("write x"), "```CALL other\nGo.\n```", "Done."],
        "/other": [run("reach a.example"), "Done."],
    }
    tree = Scene(script).play(tmp_path / "data").tree
    assert RUN not in labels(tree, "run_1")
    assert tree.shared.files == frozenset(), "the call that reached outside wrote nothing"


def test_another_agent_that_reads_the_files_is_asked(tmp_path: Path) -> None:
    plan = 'goal: g\nsteps:\n  - {id: w, call: lab.run, params: {text: "reach a.example\\nwrite x"}}\n'
    plan += "  - {id: r, call: t.read, params: {text: x}, after: [w]}\n"
    plan += "  - {id: s, call: mail.send, params: {to: bob}, refs: {text: {step: r}}}\n"
    played = Scene({"/": [f"```PLAN\n{plan}```", "Done."]}, allow=False).play(tmp_path / "data")
    (asked,) = clearances(played.records, "ask")
    assert asked.text("rule") == "provenance"
    assert RUN in str(asked.fields["provenance"])
    assert RUN in asked.text("reason")


def test_a_second_call_to_a_host_that_is_known_is_labelled_as_well(tmp_path: Path) -> None:
    script = {
        "/": ["```CALL a\nGo.\n```", "```CALL b\nGo.\n```", "Done."],
        "/a": [run("reach a.example"), "Done."],
        "/b": [run("write x", "reach a.example"), "Done."],
    }
    played = Scene(script).play(tmp_path / "data")
    assert len(reaches(played.records)) == 2
    assert played.tree.shared.files == {RUN}


def test_a_call_has_one_record_for_all_its_connections(tmp_path: Path) -> None:
    lines = ["reach a.example"] * 50
    played = Scene({"/": [run(*lines), "Done."]}).play(tmp_path / "data")
    assert len(reaches(played.records)) == 1


def test_a_module_that_is_known_to_reach_outside_has_a_record_for_each_host_alone(tmp_path: Path) -> None:
    fetch = "```web.fetch\nreach a.example:443\n```"
    played = Scene({"/": [fetch, fetch, "Done."]}).play(tmp_path / "data")
    assert len(reaches(played.records)) == 1
    assert played.tree.root.labels == {"tool:web.fetch"}


def test_a_policy_can_trust_what_a_function_brings(tmp_path: Path) -> None:
    policy = POLICY.replace('["*"]\n[', '["*"]\ntrusted = ["tool:lab.*"]\n[', 1)
    script = {"/": [run("reach a.example", "write x"), SEND, "Done."]}
    assert Scene(script, policy=policy).play(tmp_path / "trusted").tree.shared.files >= {RUN}
    Scene(script, allow=False).play(tmp_path / "asked")


# --- it is made while others read ---------------------------------------------------------------------------


def test_a_read_that_began_before_and_ends_after_has_the_label(tmp_path: Path) -> None:
    """What was delivered may have been written after the connection: it is labelled by what is known at its delivery."""
    world = World(hold={"reader": asyncio.Event(), "writer": asyncio.Event()})
    script = {
        "/": ["```CALL_ASYNC writer\nGo.\n```\n```CALL_ASYNC reader\nGo.\n```\n```WAIT\n```", "Done."],
        "/writer": [run("wait writer", "reach a.example", "write x"), "Done."],
        "/reader": [hut("wait reader", "read"), "Done."],
    }

    async def steer(bench: Bench, tree: Callable[[], Tree]) -> None:
        await until(lambda: {"wait writer", "wait reader"} <= set(bench.begun))
        world.hold["writer"].set()
        await until(lambda: "write x" in bench.begun)
        world.hold["reader"].set()

    tree = Scene(script, steer, world).play(tmp_path / "data").tree
    assert RUN in tree.agents["/reader"].labels


def test_a_read_while_a_call_writes_that_has_connected_has_the_label(tmp_path: Path) -> None:
    world = World(hold={"end": asyncio.Event(), "reader": asyncio.Event()})
    script = {
        "/": [
            "```CALL_ASYNC writer\nGo.\n```\n```CALL_ASYNC reader\nGo.\n```\n```WAIT reader\n```",
            "```WAIT\n```",
            "Done.",
        ],
        "/writer": [run("reach a.example", "write x", "wait end"), "Done."],
        "/reader": [hut("wait reader", "read"), "Done."],
    }

    async def steer(bench: Bench, tree: Callable[[], Tree]) -> None:
        await until(lambda: {"wait end", "wait reader"} <= set(bench.begun))
        world.hold["reader"].set()
        await until(lambda: not tree().agents["/reader"].active)
        world.hold["end"].set()

    tree = Scene(script, steer, world).play(tmp_path / "data").tree
    assert RUN in tree.agents["/reader"].labels


def test_a_read_that_ended_before_the_connection_has_not(tmp_path: Path) -> None:
    world = World(hold={"go": asyncio.Event()})
    script = {
        "/": [
            "```CALL_ASYNC writer\nGo.\n```\n```CALL_ASYNC reader\nGo.\n```\n```WAIT reader\n```",
            "```WAIT\n```",
            "Done.",
        ],
        "/writer": [run("wait go", "reach a.example", "write x"), "Done."],
        "/reader": [hut("read"), "Done."],
    }

    async def steer(bench: Bench, tree: Callable[[], Tree]) -> None:
        await until(lambda: "/reader" in tree().agents and not tree().agents["/reader"].context.fresh)
        await until(lambda: not tree().agents["/reader"].active)
        world.hold["go"].set()

    tree = Scene(script, steer, world).play(tmp_path / "data").tree
    assert RUN not in tree.agents["/reader"].labels
    assert tree.shared.files == {RUN}


def test_each_call_of_an_instance_that_all_share_may_have_made_the_connection(tmp_path: Path) -> None:
    """Of an instance that serves one agent, only the calls of that agent."""
    for module, expected in (("lab", True), ("hut", False)):
        world = World(hold={"go": asyncio.Event(), "end": asyncio.Event()})
        script = {
            "/": ["```CALL_ASYNC a\nGo.\n```\n```CALL_ASYNC b\nGo.\n```\n```WAIT\n```", "Done."],
            "/a": [run("wait go", "reach a.example", module=module, function="look"), "Done."],
            "/b": [run("wait end", module=module, function="look"), "Done."],
        }

        async def steer(bench: Bench, tree: Callable[[], Tree], world: World = world) -> None:
            await until(lambda: {"wait go", "wait end"} <= set(bench.begun))
            world.hold["go"].set()
            await until(lambda: not tree().agents["/a"].active)
            world.hold["end"].set()

        tree = Scene(script, steer, world).play(tmp_path / module).tree
        label = f"tool:{module}.look"
        assert label in tree.agents["/a"].labels
        assert (label in tree.agents["/b"].labels) is expected


# --- it is made apart from calls ----------------------------------------------------------------------------


def test_a_job_that_began_earlier_labels_the_files_when_it_connects(tmp_path: Path) -> None:
    world = World(hold={"go": asyncio.Event()})
    script = {
        "/": ["```CALL worker\nGo.\n```", run("wait go"), hut("read"), SEND, "Done."],
        "/worker": [hut("job"), "Done."],
    }

    async def steer(bench: Bench, tree: Callable[[], Tree]) -> None:
        await until(lambda: "wait go" in bench.begun)
        assert tree().shared.files == frozenset()
        await bench.reach("hut", "/worker", "a.example")
        assert tree().shared.files == {HUT_RUN}
        world.hold["go"].set()

    played = Scene(script, steer, world, allow=False).play(tmp_path / "data")
    assert HUT_RUN in played.tree.root.labels
    assert HUT_RUN in played.tree.shared.held["hut", "/worker"]


def test_a_job_has_one_record_for_all_its_connections(tmp_path: Path) -> None:
    world = World(hold={"go": asyncio.Event()})
    script = {"/": ["```CALL worker\nGo.\n```", run("wait go"), "Done."], "/worker": [hut("job"), "Done."]}

    async def steer(bench: Bench, tree: Callable[[], Tree]) -> None:
        await until(lambda: "wait go" in bench.begun)
        for _ in range(20):
            await bench.reach("hut", "/worker", "a.example")
        world.hold["go"].set()

    assert len(reaches(Scene(script, steer, world).play(tmp_path / "data").records)) == 1


def test_what_runs_without_a_call_or_a_job_is_labelled_by_its_module(tmp_path: Path) -> None:
    """A process that got away from its call connects: nobody knows whose it is."""
    world = World(hold={"go": asyncio.Event()})
    script = {
        "/": ["```CALL worker\nGo.\n```", run("wait go"), "Done."],
        "/worker": [hut("write x"), "Done."],
    }

    async def steer(bench: Bench, tree: Callable[[], Tree]) -> None:
        await until(lambda: "wait go" in bench.begun)
        await bench.reach("hut", "/worker", "a.example")
        world.hold["go"].set()

    tree = Scene(script, steer, world).play(tmp_path / "data").tree
    assert tree.shared.files == {"tool:hut.*"}
    assert "tool:hut.*" in tree.root.labels


def test_what_an_instance_keeps_for_its_agent_has_the_label_in_later_calls(tmp_path: Path) -> None:
    """A variable, a temporary file, an open connection: the next call of the agent may bring it."""
    tree = (
        Scene(
            {
                "/": ["```CALL a\nGo.\n```", "```CALL b\nGo.\n```", "Done."],
                "/a": [hut("reach a.example"), hut("write x"), "Done."],
                "/b": [hut("reach b.example"), "Done."],
            }
        )
        .play(tmp_path / "data")
        .tree
    )
    assert tree.shared.files == {HUT_RUN}
    assert labels(tree, "run_2", "/a") >= {HUT_RUN}


def test_a_job_of_another_agent_is_not_touched_by_a_connection(tmp_path: Path) -> None:
    script = {
        "/": ["```CALL worker\nGo.\n```", hut("reach a.example", function="look"), "Done."],
        "/worker": [hut("job"), "Done."],
    }
    tree = Scene(script).play(tmp_path / "data").tree
    assert not tree.shared.held.get(("hut", "/worker"), frozenset())
    assert tree.shared.files == frozenset()


def test_a_job_that_ended_is_labelled_no_more(tmp_path: Path) -> None:
    tree = Scene({"/": [hut("job"), hut("rest"), hut("write x"), "Done."]}).play(tmp_path / "data").tree
    assert not tree.shared.busy
    assert not tree.shared.left_by
    assert tree.shared.files == frozenset()


@pytest.mark.parametrize("keeps", ["job", "rest"])
def test_who_vouches_for_what_was_read_does_not_vouch_for_what_still_arrives(
    tmp_path: Path, keeps: str
) -> None:
    """A connection that stays open, in a job or in what the instance keeps, is not reported a second time."""
    world = World(hold={"go": asyncio.Event()})
    script = {
        "/": ["```CALL worker\nGo.\n```", "Done."],
        "/worker": [hut("reach a.example", keeps), hut("wait go"), hut("write x"), "Done."],
    }
    runtimes: list[Session] = []

    async def steer(bench: Bench, tree: Callable[[], Tree]) -> None:
        await until(lambda: "wait go" in bench.begun)
        await runtimes[0].declassify("/worker")
        assert HUT_RUN not in tree().agents["/worker"].labels
        world.hold["go"].set()

    scene = Scene(script, steer, world)
    scene.opened = runtimes.append
    tree = scene.play(tmp_path / "data").tree
    assert labels(tree, "run_3", "/worker") >= {HUT_RUN}
    assert tree.shared.files == {HUT_RUN}
