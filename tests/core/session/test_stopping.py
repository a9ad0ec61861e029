"""What a person stops ends at once, what it had given by then stays, and what they said meanwhile is not lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from iact.core.errors import ModelError, UsageError
from iact.core.ports import ChatMessage, ModelEvent, StreamEnd
from iact.core.records.record import Record
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from iact.core.views.events import Delta
from tests.core.session.fakes import Asked, ScriptedModel, World, replies, runtime
from tests.core.session.test_control import DEEP, Scene, Writing, until


def results(records: list[Record], agent: str) -> list[tuple[str, str]]:
    return [(one.text("status"), one.body) for one in records if one.kind == "result" and one.agent == agent]


def scene(tmp_path: Path, act: Callable[[Scene], Awaitable[None]], script: dict[str, list[str]]) -> Scene:
    """A session whose leaf stands in a call that has printed "held"; `act` does the rest."""

    async def main() -> Scene:
        async with Scene(tmp_path, script) as it:
            await act(it)
        return it

    return asyncio.run(main())


# --- calls --------------------------------------------------------------------------------------------


def test_an_interrupt_ends_what_the_agent_called_and_both_read_what_it_printed(tmp_path: Path) -> None:
    async def act(it: Scene) -> None:
        await it.session.inject("/a/b", "Stop now.", "interrupt")
        assert (await it.session.answer(it.said.n)).body == "Root done."

    it = scene(tmp_path, act, DEEP)
    assert results(it.records, "/a/b") == [("cancelled", "held"), ("skipped", "")]
    heard = it.seen("/a/b", 1)
    assert "`WRITE` was cancelled before it ended. It had printed this:\n```\nheld\n```" in heard
    assert heard.index("held") < heard.index("Stop now.")
    assert [text for _, _, text in it.world.done] == ["held"]


def test_an_interrupt_can_leave_a_call_to_its_end(tmp_path: Path) -> None:
    async def act(it: Scene) -> None:
        await it.session.inject("/a/b", "And then stop.", "interrupt", calls=False)
        assert it.world.running
        await it.finish()

    it = scene(tmp_path, act, DEEP)
    assert sorted(results(it.records, "/a/b")) == [("ok", "held"), ("skipped", "")]
    assert "And then stop." in it.seen("/a/b", 1)


@pytest.mark.parametrize("path", ["/", "/a"])
def test_an_agent_that_waits_for_a_child_is_interrupted_and_the_child_goes_on(
    tmp_path: Path, path: str
) -> None:
    script = {
        "/": ["```CALL a\nTask.\n```", "Heard.\n\n```WAIT\n```", "Root done."],
        "/a": ["```CALL b\nTask.\n```", "Heard.\n\n```WAIT\n```", "A done."],
        "/a/b": ["```WRITE\nheld\n```", "B done."],
    }
    other = "/a" if path == "/" else "/"
    script[other] = [one for one in script[other] if "Heard." not in one]

    async def act(it: Scene) -> None:
        await it.session.inject(path, "How far are you?", "interrupt")
        await until(lambda: any(asked.path == path and asked.turn == 1 for asked in it.model.asked))
        assert it.world.running, "what the child called runs on"
        assert (await it.finish()).body == "Root done."

    it = scene(tmp_path, act, script)
    child = f"{path.rstrip('/')}/{'a' if path == '/' else 'b'}"
    assert f"`CALL`: {child} goes on working; collect its reply with WAIT or QUERY." in it.seen(path, 1)
    assert [text for _, _, text in it.world.done] == ["held"]


def test_what_runs_can_be_ended_while_its_agent_stays_paused(tmp_path: Path) -> None:
    async def act(it: Scene) -> None:
        await it.session.pause("/")
        await it.session.stop_calls("/")
        await until(lambda: results(list(it.session.records()), "/a/b") == [("cancelled", "held")])
        assert {view.state for view in it.session.tree()} == {"paused"}
        await it.session.resume("/")
        assert (await it.session.answer(it.said.n)).body == "Root done."

    it = scene(tmp_path, act, DEEP)
    assert [text for _, _, text in it.world.done] == ["held"], "nothing behind it is called"
    heard = it.seen("/a/b", 1)
    assert "was cancelled before it ended. It had printed this" in heard
    assert "`WRITE` was not run; your work was stopped before it." in heard


def test_what_was_printed_before_a_cancel_stays(tmp_path: Path) -> None:
    script = {
        "/": ["```CALL a\nTask.\n```", "```CALL a\nOnce more.\n```", "Root done."],
        "/a": ["```WRITE\nheld\n```", "Now it worked."],
    }

    async def act(it: Scene) -> None:
        await it.session.cancel("/a")
        await it.session.answer(it.said.n)

    it = scene(tmp_path, act, script)
    assert results(it.records, "/a") == [("cancelled", "held")]
    assert "It had printed this:\n```\nheld\n```" in it.seen("/a", 1)


def test_what_a_module_printed_before_it_died_stays_for_the_person_alone(tmp_path: Path) -> None:
    """An agent must not tell a lost module from a denied call (law 7)."""
    model = ScriptedModel(replies({"/": ["```t.lose\nhalf of it\n```", "I see."]}))

    async def main() -> Path:
        async with runtime(tmp_path, lambda asked: "", model=model) as opened:
            session = await opened.open()
            await session.ask("Go")
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    assert results(list(records), "/") == [("incomplete", "half of it")]
    assert "t.lose did not complete." in model.asked[1].newest
    assert "half of it" not in model.asked[1].newest


def test_a_step_of_a_plan_that_is_ended_keeps_what_it_printed(tmp_path: Path) -> None:
    hold = asyncio.Event()
    world = World(hold={"held": hold})
    steps = "goal: g\nsteps:\n  - {id: one, call: t.write, params: {text: held}}\n"

    async def main() -> Session:
        async with runtime(tmp_path, replies({"/": ["Done."]}), world=world) as opened:
            session = await opened.open()
            begun = await session.begin_plan(steps, name="mine", mode="static")
            await until(lambda: world.done)
            await session.stop_calls("/")
            await until(lambda: not session.state.agents[begun.agent].active)
            return session

    records = replay(asyncio.run(main()).journal, verify=True).records
    assert results(list(records), "/mine") == [("cancelled", "held")]
    assert len(world.done) == 1, "it is not tried again"


# --- text ---------------------------------------------------------------------------------------------


def writes(asked: Asked) -> str:
    return "Understood." if "Shorter!" in asked.newest else "long " * 100


@pytest.mark.parametrize("how", ["interrupt", "cancel"])
def test_an_agent_reads_what_it_had_written_when_it_was_stopped(tmp_path: Path, how: str) -> None:
    async def main() -> Writing:
        async with Writing(tmp_path, "/", writes) as it:
            if how == "interrupt":
                await it.session.inject("/", "Shorter!", "interrupt")
            else:
                await it.session.cancel("/")
                await it.session.say("Shorter!")
            it.hold.set()
            await until(lambda: it.session.records()[-1].body == "Understood.")
        return it

    it = asyncio.run(main())
    discarded = next(one for one in it.records if one.kind == "discard")
    stopped = "The user stopped you while you wrote this. It was not sent, and nothing in it was carried out:"
    (heard,) = [one.newest for one in it.model.asked if "Shorter!" in one.newest]
    assert f"{stopped}\n```\n{discarded.body}\n```" in heard
    assert heard.index("Go") < heard.index(stopped) < heard.index("Shorter!")


def test_an_agent_whose_caller_answered_first_is_not_told_that_a_person_stopped_it(tmp_path: Path) -> None:
    held = asyncio.Event()
    busy = asyncio.Event()

    def script(asked: Asked) -> str:
        if asked.path == "/a":
            return "Understood." if "Once more" in asked.newest else "A chapter that takes its time."
        turns = {
            "Go": "```CALL_ASYNC a\nWrite.\n```\n```READ\nbusy\n```",
            "Result of": "Early.",
            "still work for you": "Early all the same.",
            "Again": "```CALL a\nOnce more.\n```",
        }
        return next((reply for words, reply in turns.items() if words in asked.newest), "Done.")

    model = ScriptedModel(script, holds={"/a": held})

    async def main() -> Path:
        async with runtime(tmp_path, script, model=model, world=World(hold={"busy": busy})) as opened:
            session = await opened.open()
            said = await session.say("Go")
            async with session.watch() as events:
                async for event in events:
                    if isinstance(event, Delta) and event.agent == "/a" and event.text:
                        break
            busy.set()
            assert (await session.answer(said.n)).body == "Early all the same."
            held.set()
            await session.ask("Again")
            return session.journal

    replay(asyncio.run(main()), verify=True)
    (heard,) = [one.newest for one in model.asked if one.path == "/a" and "Once more" in one.newest]
    stopped = "You were stopped while you wrote this. It was not sent, and nothing in it was carried out:"
    why = "Your work was cancelled here. Its caller answered before it was done."
    assert heard.index(stopped) < heard.index("A chapter") < heard.index(why)
    assert "user" not in heard.lower()


# --- the queue ----------------------------------------------------------------------------------------


class Talk:
    """A session whose root is writing the answer to "one" until `hold` is set."""

    def __init__(self, data: Path, script: Callable[[Asked], str], kind: type[ScriptedModel]) -> None:
        self.hold = asyncio.Event()
        self.model = kind(script, holds={"/": self.hold})
        self.runtime = runtime(data, script, model=self.model)

    async def __aenter__(self) -> Talk:
        await self.runtime.__aenter__()
        self.session = await self.runtime.open()
        await self.session.say("one")
        await until(lambda: self.model.asked)
        return self

    async def __aexit__(self, *exit: object) -> None:
        await self.runtime.__aexit__(None, None, None)
        self.records = list(replay(self.session.journal, verify=True).records)

    async def replied(self, count: int) -> None:
        self.hold.set()
        await until(lambda: len(self.replies()) == count and not self.session.state.root.active)

    def replies(self) -> list[str]:
        return [one.body for one in self.session.records() if one.kind == "reply"]


def answers(asked: Asked) -> str:
    said = [word for word in ("one", "two", "three") if f"```\n{word}\n```" in asked.newest]
    return f"Answer to {' and '.join(said)}."


def talk(
    tmp_path: Path,
    act: Callable[[Talk], Awaitable[None]],
    script: Callable[[Asked], str] = answers,
    kind: type[ScriptedModel] = ScriptedModel,
) -> Talk:
    async def main() -> Talk:
        async with Talk(tmp_path, script, kind) as it:
            await act(it)
        return it

    return asyncio.run(main())


def test_what_is_said_meanwhile_waits_for_the_answer_and_gets_its_own(tmp_path: Path) -> None:
    async def act(it: Talk) -> None:
        said = await it.session.say("two")
        assert said.fields["waits"] is True
        await it.replied(2)

    it = talk(tmp_path, act)
    assert it.replies() == ["Answer to one.", "Answer to two."]
    kinds = [one.kind for one in it.records if one.kind in ("say", "reply")]
    assert kinds == ["say", "say", "reply", "reply"]


def test_between_two_calls_of_one_answer_it_still_waits(tmp_path: Path) -> None:
    def script(asked: Asked) -> str:
        return (
            "```WRITE\nx\n```"
            if asked.turn == 0
            else answers(asked)
            if "```\ntwo\n" in asked.newest
            else "First."
        )

    async def act(it: Talk) -> None:
        await it.session.say("two")
        await it.replied(2)

    it = talk(tmp_path, act, script)
    assert it.replies() == ["First.", "Answer to two."]


def test_a_waiting_message_is_reworded_and_another_taken_back(tmp_path: Path) -> None:
    async def act(it: Talk) -> None:
        second, third = await it.session.say("twp"), await it.session.say("three")
        await it.session.reword("/", second.n, "two")
        await it.session.withdraw("/", third.n)
        with pytest.raises(UsageError, match="no longer waits for /"):
            await it.session.withdraw("/", third.n)
        assert list(it.session.state.said) == ["one", "two"], "what was taken back was not said"
        await it.replied(2)
        with pytest.raises(UsageError, match="it was read, or taken back"):
            await it.session.reword("/", second.n, "late")

    assert talk(tmp_path, act).replies() == ["Answer to one.", "Answer to two."]


def test_a_waiting_message_is_sent_now(tmp_path: Path) -> None:
    async def act(it: Talk) -> None:
        said = await it.session.say("two")
        await it.session.send_now("/", said.n)
        await it.replied(1)

    it = talk(tmp_path, act)
    assert it.replies() == ["Answer to one and two."]
    assert [one.text("reason") for one in it.records if one.kind == "discard"] == ["interrupt"]


def test_a_cancel_keeps_what_waits_and_it_is_read_next(tmp_path: Path) -> None:
    async def act(it: Talk) -> None:
        await it.session.say("two")
        await it.session.say("three")
        await it.session.cancel("/")
        await it.replied(2)

    it = talk(tmp_path, act)
    assert [(one.text("status"), one.body) for one in it.records if one.kind == "reply"] == [
        ("cancelled", "The user cancelled this work."),
        ("ok", "Answer to one and two and three."),
    ]
    newest = it.model.asked[-1].newest
    assert newest.index("cancelled here by the user") < newest.index("```\ntwo\n```"), (
        "one is over, two is asked"
    )


class Failing(ScriptedModel):
    """Breaks off its first reply."""

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        async for event in super().stream(messages, max_tokens=max_tokens):
            if len(self.asked) == 1 and isinstance(event, StreamEnd):
                raise ModelError("The endpoint is gone.")
            yield event


def test_what_waited_is_tried_also_where_the_answer_before_it_failed(tmp_path: Path) -> None:
    async def act(it: Talk) -> None:
        await it.session.say("two")
        await it.replied(2)

    it = talk(tmp_path, act, kind=Failing)
    assert it.replies() == ["The endpoint is gone.", "Answer to one and two."]
