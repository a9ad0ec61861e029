"""Clients that others wrote, each through the cases of `clients.CASES`, against a real server and a scripted model.

The model does what the first word in capitals of the newest message says. How a client that is silent for a minute is
kept is played in `test_stall`.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pytest

from iact.core.journal import read_journal
from iact.core.records.calls import ClearanceAnswer, Result
from iact.core.records.dialogue import Reply as RootReply
from iact.core.records.dialogue import Say
from iact.core.records.record import Record
from tests import clients as environment
from tests.acceptance import clients
from tests.acceptance.callers import ALLOW, DENY, LEAVE, Caller, Heard, InEditor, Server, ToolClient, caller
from tests.acceptance.clients import CLIENTS, INSPECT, played
from tests.acceptance.members import token_of, with_people
from tests.acceptance.product import NO_MODULES, Product, kill, reap, until
from tests.acceptance.test_inspect import evaluate, records_of, scored
from tests.acceptance.test_responses import POLICY
from tests.endpoint import Endpoint, Gate, HttpError, Reply, Request

pytestmark = pytest.mark.no_prefix_law("several sessions speak to one endpoint")

WORDS: Final = re.compile(r"\b(SAY|RUN|WRITE|SIGN|WEATHER|KEY|LONG|SLOW|CODE|WHICH) (\w+)")
TOO_LONG: Final = HttpError(
    400, {"error": {"message": "The prompt is too long.", "code": "context_length_exceeded"}}
)
SIGN: Final = "```PLAN letter\nsteps:\n  - {id: sign, by: person, task: Sign the letter.}\n```"


@dataclass(slots=True)
class Model:
    """The script. `gates`: where an answer to SLOW waits, by its name. `requests`: what it was sent, by its name."""

    gates: dict[str, Gate] = field(default_factory=dict)
    requests: dict[str, list[Request]] = field(default_factory=dict)

    def __call__(self, request: Request) -> Reply | str:
        at = max(
            n for n, (role, text) in enumerate(request.messages) if role == "user" and WORDS.search(text)
        )
        turn = sum(role == "assistant" for role, _ in request.messages[at:])
        word, name = WORDS.findall(request.messages[at][1])[-1]
        self.requests.setdefault(name, []).append(request)
        return self._over(word, name, request) if turn else self._begun(word, name, request)

    def _begun(self, word: str, name: str, request: Request) -> Reply | str:
        match word:
            case "RUN":
                return "I look.\n\n```shell.run\necho $((40 + 2))\n```"
            case "WRITE":
                return f"I write.\n\n```files.write path={name}.txt\nhello\n```"
            case "SIGN":
                return SIGN
            case "WEATHER":
                return '```FRONTEND tool=weather\n{"city": "Bonn"}\n```'
            case "KEY":
                return Reply(error=HttpError(401, "No such key."))
            case "LONG":
                return Reply(error=TOO_LONG)
            case "SLOW":
                return Reply("Takes\nits time.", gates={8: self.gates[name]})
            case "WHICH":
                codes = re.findall(r"CODE (\w+)", "\n".join(text for _, text in request.messages))
                return f"Codes: {' '.join(sorted(set(codes)))}."
            case _:
                return f"Said {name}."

    def _over(self, word: str, name: str, request: Request) -> str:
        match word:
            case "RUN":
                return "It printed 42." if "42" in request.last else "It printed nothing."
            case "WEATHER":
                return "It rains." if "Rain in Bonn" in request.last else "Nobody knows."
            case "SIGN":
                return "Signed on 3 May." if "3 May" in request.last else "Not signed."
            case _:
                return f"Over with {name}."


@dataclass(slots=True)
class Bench:
    """A product that serves its faces, and its model."""

    product: Product
    model: Model
    server: Server

    def records(self, name: str) -> list[Record]:
        """The records of the session in which somebody said a name."""
        for journal in self.product.data.glob("**/sessions/*/journal.md"):
            records = read_journal(journal).records
            if any(isinstance(record.content, Say) and name in record.body for record in records):
                return records
        return []

    def results(self, name: str) -> list[str]:
        return [record.content.status for record in self.records(name) if isinstance(record.content, Result)]

    def written(self, name: str) -> bool:
        places = [self.server.folder, *self.product.data.glob("sessions/*/workspace")]
        return any((place / f"{name}.txt").exists() for place in places)


@contextmanager
def served(product: Product, port: str = "0", *, killed: bool = False) -> Iterator[str]:
    """`iact serve --faces`. Yields the address of the faces. `killed`: it is killed at the end."""
    with product.started("serve", "--faces", port) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("iact: ready ")
        yield process.stdout.readline().split()[-1]
        if killed:
            kill(process)
            return
        process.terminate()
        assert process.wait(300) == 0


@contextmanager
def prepared(folder: Path, **settings: str) -> Iterator[tuple[Product, Model]]:
    """A product whose calls of `files.write` need approval, and the model that it asks."""
    (folder / "project").mkdir()
    model = Model()
    with Endpoint(model, crashes=True) as endpoint:
        product = Product.at(folder / "data", endpoint, **settings)
        product.data.mkdir()
        (product.data / "policy.toml").write_text(POLICY, encoding="utf-8")
        try:
            yield product, model
        finally:
            reap(product.data)


def bench_of(product: Product, model: Model, url: str, programs: Path) -> Bench:
    key = json.loads((product.data / "server.json").read_text(encoding="utf-8"))["key"]
    server = Server(product, url, str(key), programs, product.data.parent / "project")
    return Bench(product, model, server)


@contextmanager
def bench(folder: Path, programs: Path, **settings: str) -> Iterator[Bench]:
    with prepared(folder, **settings) as (product, model), served(product) as url:
        yield bench_of(product, model, url, programs)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment.environment(tmp_path_factory)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Iterator[Bench]:
    with bench(tmp_path_factory.mktemp("usual"), programs) as made:
        yield made


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Iterator[Bench]:
    """One in which a person has two seconds for an answer."""
    with bench(tmp_path_factory.mktemp("hurried"), programs, IACT_CLEARANCE_SECONDS="2") as made:
        yield made


# --- the cases ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Play:
    """A client in a case. `name`: a word that only this play says."""

    client: str
    bench: Bench
    name: str

    @asynccontextmanager
    async def program(self, *, by_call: bool = False, key: str = "") -> AsyncIterator[Caller]:
        server = replace(self.bench.server, key=key or self.bench.server.key)
        async with caller(self.client, server, by_call=by_call) as made:
            yield made


async def success(play: Play) -> None:
    async with play.program() as program:
        assert (await program.say(f"SAY {play.name}")).text == f"Said {play.name}."
        assert (await program.say("SAY more")).text == "Said more."
    said = [record for record in play.bench.records(play.name) if isinstance(record.content, Say)]
    assert len(said) == 2, "it went on in its session"


async def tool(play: Play) -> None:
    async with play.program() as program:
        heard = await program.say(f"I am {play.name}. RUN it")
    assert heard.text.endswith("It printed 42.")
    assert play.bench.results(play.name) == ["ok"]


async def tool_of_the_client(play: Play) -> None:
    async with play.program() as program:
        heard = await program.say(f"I am {play.name}. WEATHER there")
    assert heard.text.endswith("It rains.")


async def question(play: Play) -> None:
    async with play.program() as program:
        heard = await program.say(f"I am {play.name}. SIGN it", will="on 3 May")
    assert "Sign the letter." in heard.questions[0]
    assert heard.text.endswith("Signed on 3 May.")


async def _asked(play: Play, will: str, *, by_call: bool) -> None:
    async with play.program(by_call=by_call) as program:
        heard = await program.say(f"WRITE {play.name}", will=will)
    allowed = will in (ALLOW, "allow")
    assert len(heard.questions) == 1
    assert heard.text.endswith(f"Over with {play.name}.")
    assert play.bench.results(play.name) == ["ok" if allowed else "incomplete"]
    assert play.bench.written(play.name) is allowed
    answers = [record.content for record in play.bench.records(play.name)]
    (answer,) = [content for content in answers if isinstance(content, ClearanceAnswer)]
    assert (answer.allow, answer.by) == (allowed, "user")


async def allow(play: Play) -> None:
    await _asked(play, ALLOW, by_call=True)


async def deny(play: Play) -> None:
    await _asked(play, DENY, by_call=True)


async def allow_by_a_word(play: Play) -> None:
    await _asked(play, "allow", by_call=False)


async def deny_by_a_word(play: Play) -> None:
    await _asked(play, "deny", by_call=False)


async def no_answer(play: Play) -> None:
    """Nobody answers: the call is denied, and the conversation goes on."""
    async with play.program() as program:
        if isinstance(program, ToolClient):
            program.asks = False
        heard = await program.say(f"WRITE {play.name}", will=LEAVE)
        assert not heard.failed
        await asyncio.to_thread(until, lambda: play.bench.results(play.name) == ["incomplete"], "the no")
        assert (await program.say("SAY on")).text.endswith("Said on.")
    assert not play.bench.written(play.name)


async def wrong_key(play: Play) -> None:
    async with play.program(key="wrong") as program:
        heard = await program.say(f"SAY {play.name}")
    # MCP's client tells of no status.
    assert re.search(r"401|Say who you are|Server returned an error response", heard.failed), heard
    assert not play.bench.records(play.name)


async def key_of_the_model(play: Play) -> None:
    async with play.program() as program:
        heard = await program.say(f"KEY {play.name}")
    assert "model_refused" in heard.failed, heard
    assert heard.text == ""
    said = [record for record in play.bench.records(play.name) if isinstance(record.content, Say)]
    assert len(said) == 1, "it was asked once"


async def context_too_long(play: Play) -> None:
    async with play.program() as program:
        heard = await program.say(f"LONG {play.name}")
    assert "context_length_exceeded" in heard.failed, heard
    assert heard.text == ""


async def cancel(play: Play) -> None:
    gate = play.bench.model.gates[play.name] = Gate()
    async with play.program() as program:
        try:
            await program.leave(f"SLOW {play.name}", lambda: asyncio.to_thread(gate.wait))
            await asyncio.to_thread(until, lambda: _ends(play) == ["cancelled"], "the work to end")
        finally:
            gate.release()


def _ends(play: Play) -> list[str]:
    return [
        record.content.status for record in play.bench.records(play.name) if isinstance(record.content, RootReply)
    ]  # fmt: skip


async def two_callers(play: Play) -> None:
    """Both speak at once through the same server, and neither hears of what the other says."""
    codes = [f"{play.name}{n}" for n in range(2)]
    async with play.program() as one, play.program() as other:
        first = await asyncio.gather(
            *(program.say(f"CODE {code}") for program, code in zip((one, other), codes, strict=True))
        )
        assert [heard.text for heard in first] == [f"Said {code}." for code in codes]
        second = await asyncio.gather(*(program.say("WHICH code?") for program in (one, other)))
    assert [heard.text for heard in second] == [f"Codes: {code}." for code in codes]


PLAYS: Final[Mapping[str, Callable[[Play], Awaitable[None]]]] = {
    "success": success, "tool": tool, "tool of the client": tool_of_the_client, "question": question, "allow": allow,
    "deny": deny, "allow by a word": allow_by_a_word, "deny by a word": deny_by_a_word, "no answer": no_answer,
    "wrong key": wrong_key, "key of the model": key_of_the_model, "context too long": context_too_long,
    "cancel": cancel, "two callers": two_callers,
}  # fmt: skip
ELSEWHERE: Final = ("restart", "stall of 60 s")
"""A restart needs a server of its own, and the minute is waited for once, by all at the same time."""


def test_every_case_is_played() -> None:
    assert {*PLAYS, *ELSEWHERE} == {*clients.CASES}


@pytest.mark.parametrize(
    ("client", "case"), [(client, case) for client in CLIENTS for case in played(client) if case in PLAYS]
)
async def test_a_client_goes_through_a_case(
    request: pytest.FixtureRequest, tmp_path: Path, programs: Path, client: str, case: str
) -> None:
    name = f"n{secrets.token_hex(4)}"
    if case == "context too long":
        # A product learns from its endpoint how large a window is, so it is one of its own.
        with bench(tmp_path, programs, **NO_MODULES) as own:
            await PLAYS[case](Play(client, own, name))
        return
    made = request.getfixturevalue("hurried" if case == "no answer" else "usual")
    await PLAYS[case](Play(client, made, name))


async def test_each_goes_on_after_the_server_was_killed(tmp_path: Path, programs: Path) -> None:
    """All begin, the server is killed and started again at the same address, and each goes on in its session.

    They have an account's token: the server's own key is another after each start. An editor's command is killed instead.
    """
    names = {client: f"n{secrets.token_hex(4)}" for client in CLIENTS if "restart" in played(client)}
    for folder in ("served", "edited"):
        (tmp_path / folder).mkdir()
    with (
        prepared(tmp_path / "served", **NO_MODULES) as (product, model),
        bench(tmp_path / "edited", programs, **NO_MODULES) as edited,
    ):
        with_people(product, "ada")
        token = token_of(product, "ada")
        async with AsyncExitStack() as stack:
            callers: dict[str, Caller] = {}
            with served(product, killed=True) as url:
                made = bench_of(product, model, url, programs)
                server = replace(made.server, key=token)
                for client, name in names.items():
                    own = edited.server if client == "agent-client-protocol" else server
                    program = await stack.enter_async_context(caller(client, own))
                    assert (await program.say(f"SAY {name}")).text == f"Said {name}."
                    if isinstance(program, InEditor):
                        await program.killed()
                    callers[client] = program
            with served(product, url.rsplit(":", 1)[1]):
                heard = {client: await program.say("SAY more") for client, program in callers.items()}

        assert heard == dict.fromkeys(names, Heard("Said more."))
        for client, name in names.items():
            records = made.records(name) or edited.records(name)
            said = [record for record in records if isinstance(record.content, Say)]
            # A chat that the new server has not answered begins a session with its earlier messages.
            chat = client in ("openai, chat", "langchain-openai", "openai-agents, chat")
            assert chat or len(said) == 2, client


SAMPLES: Final = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes

ASKED = {
    "success": ("SAY one", "Said one."), "tool": ("RUN it", "It printed 42."), "no answer": ("WRITE w", "Over with w."),
    "key of the model": ("KEY k", "x"), "first": ("CODE abc", "Said abc."), "second": ("CODE xyz", "Said xyz."),
    "cancel": ("SLOW s", "x"), "context too long": ("LONG l", "x"),
}


@task
def asked(names: str, seconds: int = 0):
    samples = [Sample(id=name, input=ASKED[name][0], target=ASKED[name][1]) for name in names.split("+")]
    return Task(dataset=samples, scorer=includes(), fail_on_error=False, time_limit=seconds or None)
"""


def test_inspect_goes_through_its_cases(tmp_path: Path) -> None:
    """The samples are solved at the same time, each in a session."""
    together = ("success", "tool", "no answer", "key of the model", "first", "second")
    assert {*together[:4], "context too long", "two callers", "cancel"} == {*played(INSPECT)}
    (tmp_path / "tasks.py").write_text(SAMPLES, encoding="utf-8")
    with prepared(tmp_path) as (product, model):
        model.gates["s"] = Gate()
        found = evaluate(product, "tasks.py", "-T", f"names={'+'.join(together)}", folder=tmp_path)
        found |= evaluate(product, "tasks.py", "-T", "names=cancel", "-T", "seconds=3", folder=tmp_path)
        found |= evaluate(product, "tasks.py", "-T", "names=context too long", folder=tmp_path)
        model.gates["s"].release()

    right = ("success", "tool", "no answer", "first", "second")
    assert {name: scored(found[name]) for name in right} == dict.fromkeys(right, "C")
    for name, code in (("key of the model", "API key"), ("context too long", "too long|is full")):
        error = found[name].error
        assert error is not None, name
        assert re.search(code, error.message), error.message
    cut = found["cancel"].limit
    assert cut is not None
    assert cut.type == "time"
    assert records_of(found["cancel"])[-1].kind in ("reply", "close"), "the journal is whole"
    (denied,) = [
        record.content
        for record in records_of(found["no answer"])
        if isinstance(record.content, ClearanceAnswer)
    ]
    assert not denied.allow
    for name, other in (("abc", "xyz"), ("xyz", "abc")):
        sent = "\n".join(text for request in model.requests[name] for _, text in request.messages)
        assert other not in sent
