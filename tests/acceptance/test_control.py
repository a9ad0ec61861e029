"""Control at any depth: pause, inject, resume and cancel, while a model writes and while a tool runs.

The runtime is in the test's own process, so that a test can act between two records; model and engine are
as real as in other tests. Scripts are exact: an unexpected model call would use up a reply and fail the test.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import docker
import pytest

from iact.core import Runtime, Session
from iact.core.records.control import InjectMode
from iact.core.records.record import Record
from iact.core.views.events import RecordAppended
from iact.sandbox import owner
from iact.settings import load
from iact.wiring import open_runtime
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Product
from tests.endpoint import Gate, Reply, Request

_ADVICE = "Use metric units."
_HEARD = f"Intervention by the user, addressed to you alone:\n```\n{_ADVICE}\n```"
_WAIT_FOR_GO = "touch here; while [ ! -e go ]; do sleep 0.02; done; echo went"


def call(name: str, message: str = "Do your part.") -> str:
    return f"I ask {name}.\n\n```CALL {name}\n{message}\n```"


def shell(*commands: str) -> str:
    return "I act.\n\n" + "\n\n".join(f"```shell.run\n{command}\n```" for command in commands)


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario, but not for ever."""

    async def bounded() -> None:
        async with asyncio.timeout(300):
            await scenario()

    asyncio.run(bounded())


@asynccontextmanager
async def opened(product: Product) -> AsyncIterator[Runtime]:
    """The runtime of `iact serve`, in this process."""
    async with open_runtime(load(environment=product.environment)) as runtime:
        yield runtime


async def recorded(session: Session, kind: str, agent: str, since: int = 0, **fields: object) -> Record:
    """Wait for the first durable record after `since` that is of this kind, about this agent, with these fields."""

    def wanted(record: Record) -> bool:
        held = {**record.fields, "n": record.n}
        return record.kind == kind and record.agent == agent and fields.items() <= held.items()

    async with asyncio.timeout(300), session.watch() as events:
        for record in session.records(since):
            if wanted(record):
                return record
        async for event in events:
            if isinstance(event, RecordAppended) and event.record.n > since and wanted(event.record):
                return event.record
    raise AssertionError("the session ended before")


async def appears(session: Session, name: str) -> None:
    """Wait for a file in the workspace: a tool says that it runs."""
    async with asyncio.timeout(300):
        while not (session.workspace / name).exists():  # noqa: ASYNC110 - it is made in a container
            await asyncio.sleep(0.01)


def kinds(session: Session, agent: str) -> list[str]:
    return [record.kind for record in session.records() if record.agent == agent]


def states(session: Session) -> dict[str, str]:
    return {node.path: node.state for node in session.tree()}


def held(requests: Sequence[Request], text: str) -> bool:
    return any(text in content for request in requests for _, content in request.messages)


def took(record: Record) -> list[int]:
    """The receipt: which messages a turn was given."""
    found = record.fields["took"]
    assert isinstance(found, list)
    return [n for n in found if isinstance(n, int)]


@pytest.mark.parametrize("paused_at", ["/a", "/a/b"])
@pytest.mark.parametrize("mode", ["queue", "deliver", "interrupt"])
def test_pause_inject_and_resume_at_depth_two(stage: Stage, mode: InjectMode, paused_at: str) -> None:
    """What the child was writing is thrown away, and it goes on with the intervention, alone in hearing it."""
    gate = Gate()
    endpoint = stage.endpoint({
        "/": [call("a"), "Done."],
        "/a": [call("b"), "A is done."],
        "/a/b": [Reply("It is nine feet long, NEVERMIND", chunk=4, gates={12: gate}), "It is 2.7 m long."],
    })  # fmt: skip

    async def scenario() -> None:
        async with opened(stage.product(endpoint, **NO_MODULES)) as runtime:
            session = await runtime.open()
            said = await session.say("How long is it?")
            await gate.reached()
            await session.pause(paused_at)
            await endpoint.of("/a/b")[0].over()
            discard = await recorded(session, "discard", "/a/b")
            assert discard.text("reason") == "pause"
            assert "It is nine feet".startswith(discard.body)
            assert states(session) == {
                "/": "waiting",
                "/a": "paused" if paused_at == "/a" else "waiting",
                "/a/b": "paused",
            }
            assert endpoint.of("/a/b")[0].disconnected

            advice = await session.inject("/a/b", _ADVICE, mode)
            assert len(endpoint.requests) == 3, "nothing is asked of a model while it is paused"
            await session.resume(paused_at)
            reply = await session.answer(said.n)

            assert reply.body == "Done."
            answer = await recorded(session, "reply", "/a/b")
            assert answer.body == "It is 2.7 m long."
            assert advice.n in took(answer), "the receipt"
            assert states(session) == dict.fromkeys(("/", "/a", "/a/b"), "done")

    play(scenario)
    assert _HEARD in endpoint.of("/a/b")[1].last
    assert not held(endpoint.of("/") + endpoint.of("/a"), _ADVICE)
    assert not held(endpoint.requests, "nine feet")


@pytest.mark.parametrize("mode", ["queue", "deliver", "interrupt"])
def test_a_message_comes_while_a_child_writes(stage: Stage, mode: InjectMode) -> None:
    """queue: after what it decided; deliver: before the tool call it is writing; interrupt: at once."""
    gate = Gate()
    again = [shell("echo metres"), "Done in metres."] if mode != "queue" else ["Done in metres."]
    endpoint = stage.endpoint({
        "/": [call("a"), "Done."],
        "/a": [call("b"), "A is done."],
        "/a/b": [Reply(shell("echo feet"), chunk=4, gates={8: gate}), *again],
    })  # fmt: skip

    async def scenario() -> None:
        async with opened(stage.product(endpoint)) as runtime:
            session = await runtime.open()
            said = await session.say("How long is it?")
            await gate.reached()
            advice = await session.inject("/a/b", _ADVICE, mode)
            gate.release()
            reply = await session.answer(said.n)
            assert reply.body == "Done."
            results = [record for record in session.records() if record.kind == "result"]
            ran = [record.body.strip() for record in results if record.text("status") == "ok"]
            skipped = [record for record in results if record.text("status") == "skipped"]
            assert ran == (["feet"] if mode == "queue" else ["metres"])
            assert len(skipped) == (1 if mode == "deliver" else 0)
            assert ("discard" in kinds(session, "/a/b")) == (mode == "interrupt")
            turns = [
                record for record in session.records() if "took" in record.fields and record.agent == "/a/b"
            ]
            assert [advice.n in took(turn) for turn in turns] == [
                turn is turns[len(turns) - len(again)] for turn in turns
            ]

    play(scenario)
    heard = endpoint.of("/a/b")[1].last
    assert heard.count(_HEARD) == 1
    assert ("was not run: a message to you came first" in heard) == (mode == "deliver")
    assert not held(endpoint.of("/") + endpoint.of("/a"), _ADVICE)


def test_a_message_at_depth_five_in_the_middle_of_a_tool_call(stage: Stage) -> None:
    """The running call ends as it would; the next one gives way to the message."""
    path = ["a", "b", "c", "d", "e"]
    script: dict[str, list[Reply | str]] = {
        "/" + "/".join(path[:depth]): [call(name), f"Depth {depth} is done."]
        for depth, name in enumerate(path)
    }
    deepest = "/a/b/c/d/e"
    endpoint = stage.endpoint(
        {**script, deepest: [shell(_WAIT_FOR_GO, "echo second >> /workspace/second"), "I obey."]}
    )

    async def scenario() -> None:
        async with opened(stage.product(endpoint)) as runtime:
            session = await runtime.open()
            said = await session.say("Go.")
            await appears(session, "here")
            advice = await session.inject(deepest, _ADVICE, "deliver")
            (session.workspace / "go").touch()
            assert (await session.answer(said.n)).body == "Depth 0 is done."
            assert not (session.workspace / "second").exists()
            outcomes = {
                record.number("action"): record.text("status")
                for record in session.records()
                if record.kind == "result"
            }
            assert outcomes == {0: "ok", 1: "skipped"}
            assert advice.n in took(await recorded(session, "reply", deepest))

    play(scenario)
    heard = endpoint.of(deepest)[1].last
    assert heard.index("went") < heard.index("was not run") < heard.index(_HEARD)


def test_a_running_tool_ends_while_its_agent_is_paused(stage: Stage) -> None:
    endpoint = stage.endpoint(
        {"/": [call("a"), "Done."], "/a": [shell(_WAIT_FOR_GO, "echo then"), "A is done."]}
    )

    async def scenario() -> None:
        async with opened(stage.product(endpoint)) as runtime:
            session = await runtime.open()
            said = await session.say("Go.")
            await appears(session, "here")
            await session.pause("/a")
            (session.workspace / "go").touch()
            first = await recorded(session, "result", "/a")
            assert (first.text("status"), first.body) == ("ok", "went\n")
            await session.set_intent(
                1
            )  # whatever would follow that result at once stands in the journal before this
            assert kinds(session, "/a").count("call") == 1, "the next call waits"
            assert states(session)["/a"] == "paused"
            resumed = await session.resume("/a")
            assert (await session.answer(said.n)).body == "Done."
            second = await recorded(session, "call", "/a", since=first.n)
            assert second.n > resumed.n

    play(scenario)


def test_the_rest_runs_on_while_a_subtree_is_paused(stage: Stage) -> None:
    """A sibling with a child of its own, and another session, work as ever."""
    gate = Gate()
    both = "\n\n".join(f"```CALL_ASYNC {name}\nDo your part.\n```" for name in ("a", "b"))
    endpoint = stage.endpoint(
        {
            "/": [f"{both}\n\n```WAIT\n```", "Done."],
            "/a": [Reply("A thinks, NEVERMIND", chunk=4, gates={8: gate}), "A is here."],
            "/b": [call("c"), "B is done."],
            "/b/c": ["C is done."],
        }
    )
    other = stage.endpoint({"/": [call("a"), "Done, too."], "/a": ["The other A."]})

    async def scenario() -> None:
        product = stage.product(endpoint, **NO_MODULES)
        async with opened(product) as runtime, opened(stage.product(other, **NO_MODULES)) as elsewhere:
            session = await runtime.open()
            said = await session.say("Go.")
            await gate.reached()
            await session.pause("/a")
            await recorded(session, "reply", "/b")
            assert (await (await elsewhere.open()).ask("Go.")).body == "Done, too."
            assert states(session) == {"/": "waiting", "/a": "paused", "/b": "done", "/b/c": "done"}
            resumed = await session.resume("/a")
            assert (await session.answer(said.n)).body == "Done."
            assert (await recorded(session, "reply", "/a")).n > resumed.n

    play(scenario)


def test_whoever_calls_a_paused_agent_waits(stage: Stage) -> None:
    """An agent that rests can be paused as well: its next task begins when it is resumed."""
    endpoint = stage.endpoint(
        {
            "/": [call("a"), "A is ready.", call("b"), call("a", "Once more."), "Done."],
            "/a": ["A is here.", "A is here again."],
            "/b": ["B is done."],
        }
    )

    async def scenario() -> None:
        async with opened(stage.product(endpoint, **NO_MODULES)) as runtime:
            session = await runtime.open()
            await session.ask("Get ready.")
            await session.pause("/a")
            said = await session.say("Go.")
            await recorded(session, "call", "/", since=said.n, to="/a")
            assert (await recorded(session, "reply", "/b")).body == "B is done."
            assert states(session) == {"/": "waiting", "/a": "paused", "/b": "done"}
            resumed = await session.resume("/a")
            assert (await session.answer(said.n)).body == "Done."
            assert (await recorded(session, "reply", "/a", since=said.n)).n > resumed.n

    play(scenario)


def test_a_paused_agent_stays_paused_over_a_restart(stage: Stage) -> None:
    gate = Gate()
    endpoint = stage.endpoint({
        "/": [call("a"), "Done."],
        "/a": [Reply("Hm, let me think.", chunk=4, gates={4: gate}), "I thought."],
    })  # fmt: skip

    async def scenario() -> None:
        product = stage.product(endpoint, **NO_MODULES)
        async with opened(product) as runtime:
            session = await runtime.open()
            said = await session.say("Go.")
            await gate.reached()
            await session.pause("/a")
            advice = await session.inject("/a", _ADVICE, "deliver")
        async with opened(product) as runtime:
            session = await runtime.open(session.id)
            assert states(session) == {"/": "waiting", "/a": "paused"}
            await session.resume("/a")
            assert (await session.answer(said.n)).body == "Done."
            assert advice.n in took(await recorded(session, "reply", "/a"))

    play(scenario)
    assert endpoint.of("/a")[1].last.count(_HEARD) == 1


def test_cancel_in_the_middle_of_a_tool(stage: Stage) -> None:
    """The whole process group is dead within two seconds, the caller hears of it, and the child can be called again."""
    stubborn = "trap '' TERM; touch here; setsid sleep 4321 & sleep 4322 & (trap '' TERM; sleep 4323) & wait"
    endpoint = stage.endpoint({
        "/": [call("a"), "Done."],
        "/a": [call("b"), call("b", "Try again."), "A is done."],
        "/a/b": [shell(stubborn, "echo never"), "I can go on."],
    })  # fmt: skip

    async def scenario() -> None:
        product = stage.product(endpoint)
        async with opened(product) as runtime:
            session = await runtime.open()
            said = await session.say("Go.")
            await appears(session, "here")
            async with asyncio.timeout(300):
                while len(await asyncio.to_thread(sleepers, product)) < 3:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.01)
            began = time.monotonic()
            cancelled = await session.cancel("/a/b")
            while sleepers(product):
                assert time.monotonic() - began < 2, "processes of a cancelled call live on"
            assert (await session.answer(said.n)).body == "Done."
            after = [record for record in session.records(cancelled.n) if record.agent == "/a/b"]
            assert [(record.kind, record.text("status")) for record in after[:3]] == [
                ("result", "cancelled"), ("result", "cancelled"), ("reply", "cancelled"),
            ]  # fmt: skip

    play(scenario)
    assert "Your child /a/b did not finish (cancelled):" in endpoint.of("/a")[1].last
    again = endpoint.of("/a/b")[1]
    assert [role for role, _ in again.messages] == ["system", "user", "assistant", "user"]
    assert again.last.count("`shell.run` was cancelled before it ended.") == 2
    assert again.last.count("Your work was cancelled here by the user.") == 1
    assert again.last.index("was cancelled before") < again.last.index("Try again.")


def sleepers(product: Product) -> list[str]:
    """The sleeping processes in the container of a data directory, as the engine sees them."""
    client = docker.from_env()
    try:
        running = client.containers.list(
            filters={"label": f"{owner.OWNER}={owner.data_digest(product.data)}"}
        )
        rows = [row for container in running for row in container.top(ps_args="-eo pid,args")["Processes"]]
        return [row[1] for row in rows if row[1].startswith("sleep 432")]
    finally:
        client.close()


def test_cancel_takes_everything_below_with_it(stage: Stage) -> None:
    gate = Gate()
    endpoint = stage.endpoint({
        "/": [call("a"), "I heard that it was cancelled."],
        "/a": [call("b")],
        "/a/b": [Reply("I write and write and", chunk=4, gates={8: gate})],
    })  # fmt: skip

    async def scenario() -> None:
        async with opened(stage.product(endpoint, **NO_MODULES)) as runtime:
            session = await runtime.open()
            said = await session.say("Go.")
            await gate.reached()
            await session.cancel("/a")
            assert (await session.answer(said.n)).body == "I heard that it was cancelled."
            assert states(session) == {"/": "done", "/a": "cancelled", "/a/b": "cancelled"}
            assert (await recorded(session, "discard", "/a/b")).text("reason") == "cancel"
            await endpoint.of("/a/b")[0].over()

    play(scenario)
    assert endpoint.of("/a/b")[0].disconnected
    assert "did not finish (cancelled)" in endpoint.of("/")[1].last


def test_a_cancelled_root_answers_the_next_message(stage: Stage) -> None:
    gate = Gate()
    endpoint = stage.endpoint({"/": [Reply("Wrong, all wrong", chunk=4, gates={4: gate}), "Here I am."]})

    async def scenario() -> None:
        async with opened(stage.product(endpoint, **NO_MODULES)) as runtime:
            session = await runtime.open()
            said = await session.say("Go.")
            await gate.reached()
            await session.cancel("/")
            assert (await session.answer(said.n)).text("status") == "cancelled"
            assert (await session.ask("Are you there?")).body == "Here I am."

    play(scenario)
    heard = endpoint.requests[1].last
    assert heard.index("Go.") < heard.index("Your work was cancelled here") < heard.index("Are you there?")
