"""A person steers a plan that runs, over the websocket, in every mode: they stop it, change a step, add one,
take one out, cancel one, and wish for more.

The plan stands in its first step, a call that ends only when the test lets it. Everything a person does is a message of the
wire, and so is what they are told.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from websockets.asyncio.client import ClientConnection

from iact.core.plan.state import NodeRecord
from iact.core.records.dialogue import Reply
from iact.core.records.record import Record
from iact.core.records.ways import PLAN_WAYS
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from iact.web.server import WebServer
from tests.core.session.fakes import Asked, ScriptedModel, World
from tests.core.session.plan_scenes import heard, runtime
from tests.core.session.plan_scenes import until as comes
from tests.web.dialling import Message, dial, run, send, until

GOAL: Final = "Write down what there is."
STOP: Final = "Stop, I do not need it any more."
WISH: Final = "Write down the third as well."
CALLS: Final[list[Message]] = [
    {"id": "first", "call": "t.write", "params": {"text": "held"}},
    {"id": "second", "call": "t.write", "params": {"text": "two"}, "after": ["first"]},
]
WRITER: Final[Message] = {"id": "writer", "agent": "writer", "task": "Write about it."}
FURTHER: Final[list[Message]] = [
    {"id": "again", "call": "t.write", "params": {"text": "two"}, "replaces": "second"},
    {"id": "third", "call": "t.write", "params": {"text": "three"}},
]
DONE: Final = {"achieved": True, "confidence": 0.9}
REQUEST: Final = {"steps": 4, "foreseeable": True, "depends": False, "repeat": True, "branches": False}
"""What a request is like for which `auto` chooses a plan that is judged."""


@dataclass
class Planner:
    """Answers every question of a plan. `word`: what it takes the person's message for; `agent`: whether a step is one."""

    word: str = "nothing"
    agent: bool = False
    wish: str = WISH
    answer: str = "All is there."
    wished: bool = False
    asked: list[str] = field(default_factory=list)

    def __call__(self, asked: Asked) -> str:
        if asked.path:
            return self.answer if asked.path == "/" else "I write and write and write."

        question = asked.newest
        self.asked.append(question)
        match question.split(maxsplit=1)[0]:
            case "Say":
                return json.dumps(REQUEST)
            case "A":
                self.wished = self.word == "add"
                return json.dumps({"word": self.word, "reason": self.answer})
            case "Write":
                return json.dumps({"steps": CALLS, "confidence": 0.9})
            case "Plan":
                return self._plan(question)
            case "Judge":
                return self._verdict(question)
            case "Look":
                return '{"action": "continue"}'
            case "Decide":
                return json.dumps({**DONE, "reasoning": self.answer, "final_answer": self.answer})
            case "Answer":
                return f"reached: yes, {self.answer}\n\n{self.answer}"
        raise AssertionError(f"Nobody expects this question:\n{question}")

    def _plan(self, question: str) -> str:
        if "still missing" in question:
            assert self.wish in question, "what the person wishes is read by the model that plans on"
            return json.dumps({"steps": FURTHER})
        return json.dumps({"steps": [*CALLS, WRITER] if self.agent else CALLS})

    def _verdict(self, question: str) -> str:
        if self.wished and "wrote just now" in question:
            return json.dumps({"decision": "replan", "reason": self.answer})
        if "Nothing runs and nothing is planned any more" in question:
            return json.dumps(
                {"decision": "conclude", "reached": True, "reason": self.answer, "answer": self.answer}
            )
        return json.dumps({"decision": "continue", "reason": self.answer})


@dataclass
class Person:
    """Somebody at the other end of the wire, whose plan stands in its first step."""

    client: ClientConnection
    session: Session
    world: World
    hold: asyncio.Event
    planner: Planner
    asks: int = 0

    async def ask(self, **message: object) -> Message:
        """Send a message, which must be granted. Returns what was answered."""
        self.asks += 1
        await send(self.client, id=self.asks, **message)
        answer = (await until(self.client, id=self.asks))[-1]
        assert answer["type"] == "ok", answer
        return answer

    async def refused(self, **message: object) -> str:
        """Send a message that must be refused. Returns the sentence."""
        self.asks += 1
        await send(self.client, id=self.asks, **message)
        answer = (await until(self.client, id=self.asks))[-1]
        assert answer["type"] == "error", answer
        return str(answer["message"])

    def step(self, name: str) -> NodeRecord:
        run = self.session.state.agents["/plan"].plan
        assert run is not None
        return run.state.nodes[name]

    async def edit(self, old: str, new: str) -> None:
        """Change the plan as the page's dialog does: pause, take its text, save another one, go on."""
        await self.ask(type="pause", path="/plan")
        text = str((await self.ask(type="plan.text", path="/plan"))["text"])
        assert old in text, text
        await self.ask(type="plan.edit", path="/plan", text=text.replace(old, new))
        await self.ask(type="resume", path="/plan")

    async def answer(self) -> str:
        """Let what runs end, and wait for the plan's answer, as the wire tells it."""
        self.hold.set()
        return str((await until(self.client, kind="reply", agent="/"))[-1]["body"])

    async def told_once(self, text: str) -> None:
        """Check that the root, which speaks next, has what the person said to the plan once."""
        await self.ask(type="say", text="Thank you.")
        await until(self.client, kind="reply", agent="/")
        assert heard(self.session).count(text) == 1

    @property
    def questions(self) -> set[str]:
        """What models were asked about the plan."""
        return {one.text("question") for one in self.session.records() if one.kind == "ask"}

    @property
    def written(self) -> list[str]:
        return [text for _, _, text in self.world.done]

    def ending(self) -> Reply:
        """How the plan ended."""
        reply = next(one for one in self.session.records() if one.kind == "reply" and one.agent == "/plan")
        assert isinstance(reply.content, Reply)
        return reply.content


@asynccontextmanager
async def steering(folder: Path, mode: str, planner: Planner) -> AsyncIterator[Person]:
    """A plan in a mode that stands in its first step, and its person. At the end its session verifies."""
    hold = asyncio.Event()
    world = World(hold={"held": hold})
    holds = {"/plan/writer": hold}
    model = ScriptedModel(planner, holds=holds)
    async with (
        runtime(folder, planner, world=world, model=model) as opened,
        WebServer(opened) as server,
        dial(server) as client,
    ):
        await send(client, type="hello", session=None, since=0)
        await until(client, type="session")
        await send(client, id="say", type="say", text=GOAL, mode=mode)
        said = (await until(client, id="say"))[-1]
        assert said["type"] == "ok", said
        session = await opened.open(str(said["session"]))
        person = Person(client, session, world, hold, planner)
        await comes(lambda: "held" in person.written)
        if planner.agent:
            await comes(lambda: any(one.path == "/plan/writer" for one in model.asked))
        yield person
    replay(session.journal, verify=True)


def reached(ending: Reply) -> None:
    """Check that a plan reached its goal, as far as its mode judges that."""
    assert ending.verdict is not None
    assert ending.plan == "concluded", ending
    assert ending.verdict.reached == "yes", ending.verdict
    assert not ending.verdict.missing


async def stop(person: Person) -> None:
    """What runs is ended, agents as well; it is told once, and nothing begins any more."""
    began = time.monotonic()
    before = len(person.session.records())
    await person.ask(type="say", text=STOP)
    answer = str((await until(person.client, kind="reply", agent="/"))[-1]["body"])
    await comes(lambda: not person.world.running)
    print(f"{time.monotonic() - began:.2f} s from the word to the end of all that ran")

    assert answer.startswith("Stopped.")
    ending = person.ending()
    assert ending.verdict is not None
    assert (ending.plan, ending.verdict.by) == ("stopped", "person")
    assert person.step("first").state == "cancelled"
    assert person.written == ["held"]
    assert not [one for one in person.session.records(before) if one.kind == "fire"]
    if person.planner.agent:
        assert _ended(person.session.records(before), "/plan/writer")
    assert sum("A person wrote something" in one for one in person.planner.asked) == 1
    await person.told_once(STOP)


def _ended(records: Sequence[Record], agent: str) -> bool:
    return any(one.kind == "reply" and one.agent == agent for one in records)


async def change(person: Person) -> None:
    """The step is carried out as the person wrote it. One that runs already can't be changed, which is said."""
    await person.ask(type="pause", path="/plan")
    text = str((await person.ask(type="plan.text", path="/plan"))["text"])
    wrong = await person.refused(type="plan.edit", path="/plan", text=text.replace("held", "other"))
    assert "'first' is running" in wrong
    await person.ask(type="resume", path="/plan")

    await person.edit("text: two", "text: changed")
    answer = await person.answer()
    assert person.written == ["held", "changed"]
    reached(person.ending())
    assert "Stopped" not in answer


async def add(person: Person) -> None:
    """The step that the person adds is carried out, and whoever judges or reports reads what came of it."""
    wrong = "- id: third\n  call: t.write\n  params:\n    text: three\n  after: [frist]\n"
    await person.ask(type="pause", path="/plan")
    text = str((await person.ask(type="plan.text", path="/plan"))["text"])
    said = await person.refused(type="plan.edit", path="/plan", text=text + wrong)
    assert "did you mean 'first'?" in said
    await person.ask(type="plan.edit", path="/plan", text=text + wrong.replace("frist", "first"))
    await person.ask(type="resume", path="/plan")

    await person.answer()
    assert sorted(person.written) == ["held", "three", "two"]
    assert person.step("third").state == "executed"
    reached(person.ending())


async def drop(person: Person) -> None:
    """A step that the person takes out of the plan is not done, nobody puts it back, and it is not missing."""
    await person.ask(type="pause", path="/plan")
    text = str((await person.ask(type="plan.text", path="/plan"))["text"])
    before, second, _ = text.partition("- id: second")
    assert second
    await person.ask(type="plan.edit", path="/plan", text=before)
    await person.ask(type="resume", path="/plan")

    await person.answer()
    assert person.written == ["held"]
    reached(person.ending())
    assert "repair" not in person.questions


async def cancel(person: Person) -> None:
    """A step that the person cancels is not done, and nobody puts it back; it is missing, since it was asked for."""
    await person.ask(type="cancel", path="/plan", step="second")
    await person.answer()
    assert person.written == ["held"]
    verdict = person.ending().verdict
    assert verdict is not None
    assert verdict.reached == "partly", verdict
    assert list(verdict.missing or {}) == ["second"]
    assert not {"repair", "replan", "patch"} & person.questions


async def wish(person: Person) -> None:
    """What the person says becomes a part of the goal: it is planned, done, and told to the root once."""
    await person.ask(type="say", text=WISH)
    await comes(lambda: person.planner.wished)
    await person.answer()
    assert sorted(person.written) == ["held", "three", "two"]
    assert person.step("third").state == "executed"
    reached(person.ending())
    await person.told_once(WISH)


ACTS: Final = {"stop": stop, "change": change, "add": add, "drop": drop, "cancel": cancel, "wish": wish}
WORDS: Final = {"stop": "stop", "wish": "add"}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("mode", PLAN_WAYS)
def test_a_person_steers_a_plan_that_runs(tmp_path: Path, mode: str, act: str) -> None:
    # The steps of a profile are calls.
    planner = Planner(WORDS.get(act, "nothing"), agent=act == "stop" and mode != "profile")

    async def test() -> None:
        async with steering(tmp_path, mode, planner) as person:
            await ACTS[act](person)

    run(test)
