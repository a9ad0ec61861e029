"""Control at any depth: pause, resume, inject in three ways, cancel; each is journaled and replays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from iact.core.errors import UsageError
from iact.core.records.record import Record
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from iact.core.views.events import Delta
from tests.core.session.fakes import Asked, ScriptedModel, World, replies, runtime

DEEP = {
    "/": ["```CALL a\nTask.\n```", "Root done."],
    "/a": ["```CALL b\nTask.\n```", "A done."],
    "/a/b": ["```WRITE\nheld\n```\n```WRITE\nafter\n```", "B done.", "B done after the message."],
}


async def until(condition: Callable[[], object]) -> None:
    """Give way until `condition` holds; fails if it never does."""
    async with asyncio.timeout(300):
        while not condition():  # noqa: ASYNC110 - some conditions are outside of this loop
            await asyncio.sleep(0)


def kinds(records: list[Record], agent: str) -> list[str]:
    return [record.kind for record in records if record.agent == agent]


class Scene:
    """A session three deep whose leaf stands in a tool call until `hold` is set."""

    def __init__(self, data: Path, script: dict[str, list[str]] | None = None) -> None:
        self.hold = asyncio.Event()
        self.world = World(hold={"held": self.hold})
        self.model = ScriptedModel(replies(script or DEEP))
        self.runtime = runtime(data, replies(script or DEEP), model=self.model, world=self.world)
        self.session: Session

    async def __aenter__(self) -> Scene:
        await self.runtime.__aenter__()
        self.session = await self.runtime.open()
        self.said = await self.session.say("Go")
        await until(lambda: self.world.done)
        return self

    async def __aexit__(self, *exit: object) -> None:
        self.hold.set()
        await self.runtime.__aexit__(None, None, None)
        self.records = list(replay(self.session.journal, verify=True).records)

    async def finish(self) -> Record:
        self.hold.set()
        return await self.session.answer(self.said.n)

    def seen(self, path: str, turn: int) -> str:
        return next(asked.newest for asked in self.model.asked if (asked.path, asked.turn) == (path, turn))


def test_a_paused_part_starts_nothing_and_the_rest_runs_on(tmp_path: Path) -> None:
    async def main() -> Scene:
        async with Scene(tmp_path) as scene:
            await scene.session.pause("/a")
            scene.hold.set()
            await until(lambda: not scene.world.running)
            for _ in range(200):
                await asyncio.sleep(0)
            assert [text for _, _, text in scene.world.done] == ["held"]
            states = {view.path: view.state for view in scene.session.tree()}
            assert states == {"/": "waiting", "/a": "paused", "/a/b": "paused"}
            await scene.session.resume("/a")
            assert (await scene.finish()).body == "Root done."
        return scene

    scene = asyncio.run(main())
    assert [text for _, _, text in scene.world.done] == ["held", "after"]


class Writing:
    """A session in which an agent stands in the middle of a generation until `hold` is set."""

    def __init__(self, data: Path, path: str, script: Callable[[Asked], str]) -> None:
        self.hold = asyncio.Event()
        self.path = path
        self.model = ScriptedModel(script, holds={path: self.hold})
        self.runtime = runtime(data, script, model=self.model)
        self.session: Session

    async def __aenter__(self) -> Writing:
        await self.runtime.__aenter__()
        self.session = await self.runtime.open()
        self.said = await self.session.say("Go")
        await until(
            lambda: any(node.state == "thinking" and node.path == self.path for node in self.session.tree())
        )
        async with self.session.watch() as events:
            async for event in events:
                if isinstance(event, Delta) and event.agent == self.path and event.text:
                    break
        return self

    async def __aexit__(self, *exit: object) -> None:
        await self.runtime.__aexit__(None, None, None)
        self.records = list(replay(self.session.journal, verify=True).records)

    async def finish(self) -> Record:
        self.hold.set()
        return await self.session.answer(self.said.n)


def test_a_paused_generation_is_discarded_and_kept_in_the_journal(tmp_path: Path) -> None:
    async def main() -> Writing:
        async with Writing(tmp_path, "/", lambda asked: "x" * 100) as scene:
            await scene.session.pause("/")
            await scene.session.resume("/")
            await scene.finish()
        return scene

    records = asyncio.run(main()).records
    discarded = next(record for record in records if record.kind == "discard")
    assert discarded.text("reason") == "pause"
    assert discarded.body == "x" * 16
    assert [record.body for record in records if record.kind == "reply"] == ["x" * 100]


async def test_pauses_are_independent(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.session.pause("/a/b")
        await scene.session.pause("/")
        scene.hold.set()
        await scene.session.resume("/")
        await until(lambda: not scene.world.running)
        assert {view.path: view.state for view in scene.session.tree()}["/a/b"] == "paused"
        await scene.session.resume("/a/b")
        await scene.finish()


@pytest.mark.parametrize(
    ("mode", "ran"), [("queue", ["held", "after"]), ("deliver", ["held"]), ("interrupt", ["held"])]
)
def test_an_injected_message_takes_effect_as_its_mode_says(tmp_path: Path, mode: str, ran: list[str]) -> None:
    async def main() -> tuple[Scene, Record]:
        async with Scene(tmp_path) as scene:
            injected = await scene.session.inject("/a/b", "Stop writing.", mode)  # type: ignore[arg-type]
            await scene.finish()
        return scene, injected

    scene, injected = asyncio.run(main())
    assert [text for _, _, text in scene.world.done] == ran
    assert "Intervention by the user, addressed to you alone:\n```\nStop writing.\n```" in scene.seen(
        "/a/b", 1
    )
    receipt = next(record for record in scene.records if injected.n in (record.fields.get("took") or []))  # type: ignore[operator]
    assert receipt.agent == "/a/b"
    others = [
        message.content for asked in scene.model.asked if asked.path != "/a/b" for message in asked.messages
    ]
    assert "Stop writing." not in "".join(others)


def test_interrupt_stops_the_generation_and_goes_on_with_the_message(tmp_path: Path) -> None:
    def script(asked: Asked) -> str:
        return "Understood." if "Shorter!" in asked.newest else "long " * 100

    async def main() -> Writing:
        async with Writing(tmp_path, "/", script) as scene:
            await scene.session.inject("/", "Shorter!", "interrupt")
            assert (await scene.finish()).body == "Understood."
        return scene

    records = asyncio.run(main()).records
    assert [record.text("reason") for record in records if record.kind == "discard"] == ["interrupt"]


def test_a_message_that_comes_while_a_child_writes_its_last_reply_is_not_lost(tmp_path: Path) -> None:
    def script(asked: Asked) -> str:
        if asked.path == "/":
            return ["```CALL a\nTask.\n```", "Done."][asked.turn]
        return "With the correction." if "Correct this." in asked.newest else "first try"

    async def main() -> Writing:
        async with Writing(tmp_path, "/a", script) as scene:
            await scene.session.inject("/a", "Correct this.")
            await scene.finish()
        return scene

    records = asyncio.run(main()).records
    said = [record.body for record in records if record.kind == "reply" and record.agent == "/a"]
    assert said == ["With the correction."]


def test_cancel_ends_a_running_tool_and_tells_the_caller(tmp_path: Path) -> None:
    async def main() -> Scene:
        async with Scene(tmp_path) as scene:
            await scene.session.cancel("/a")
            await until(lambda: not scene.world.running)
            assert (await scene.session.answer(scene.said.n)).body == "Root done."
        return scene

    scene = asyncio.run(main())
    assert "Your child /a did not finish (cancelled)" in scene.seen("/", 1)
    outcomes = [
        record.text("status")
        for record in scene.records
        if record.kind == "result" and record.agent == "/a/b"
    ]
    assert outcomes == ["cancelled", "cancelled"]
    assert [record.text("status") for record in scene.records if record.kind == "reply"] == [
        "cancelled",
        "cancelled",
        "ok",
    ]


def test_a_cancelled_agent_can_be_called_again(tmp_path: Path) -> None:
    script = {
        "/": ["```CALL a\nTask.\n```", "```CALL a\nOnce more.\n```", "Root done."],
        "/a": ["```WRITE\nheld\n```", "Now it worked."],
    }

    async def main() -> Scene:
        async with Scene(tmp_path, script) as scene:
            await scene.session.cancel("/a")
            await scene.session.answer(scene.said.n)
        return scene

    scene = asyncio.run(main())
    context = scene.seen("/a", 1)
    assert "`WRITE` was cancelled before it ended." in context
    assert "Once more." in context


def test_the_intent_is_the_users_to_set(tmp_path: Path) -> None:
    script = {"/": ["```WRITE\na\n```", "Could not.", "```WRITE\nb\n```", "Did."]}
    world = World()

    async def main() -> Path:
        async with runtime(tmp_path, replies(script), world=world) as opened:
            session = await opened.open(intent=0)
            await session.ask("Write a")
            await session.set_intent(1)
            await session.ask("Write b")
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    assert [text for _, _, text in world.done] == ["b"]
    gates = [(record.fields["allow"], record.text("by")) for record in records if record.kind == "gate"]
    assert gates == [(False, "impact"), (True, "impact")]


@pytest.mark.parametrize(
    ("path", "mode", "said"),
    [("/nobody", "queue", "There is no agent '/nobody'"), ("/", "shout", "Unknown inject mode 'shout'")],
)
async def test_wrong_controls_are_refused_with_a_sentence(
    tmp_path: Path, path: str, mode: str, said: str
) -> None:
    async with runtime(tmp_path, replies({"/": ["Hi."]})) as opened:
        session = await opened.open()
        with pytest.raises(UsageError, match=said):
            await session.inject(path, "x", mode)  # type: ignore[arg-type]
