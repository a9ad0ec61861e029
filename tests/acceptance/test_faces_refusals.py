"""Everything that the page refuses, every other face refuses as well, and it is not done.

Each cell of the table in `refusals.py` is a test on the same product. The tests check the file that the call would
have created, the journal of the session, and the requests to the model's endpoint; they do not trust replies. A test
for each face also checks that the same calls do create the file when nothing refuses them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from iact.core.journal import read_journal
from iact.core.records.record import Record
from tests.acceptance.members import token_of, with_people
from tests.acceptance.product import Product, Server, containers_of, reap
from tests.acceptance.refusals import NOT_HELD, REFUSALS, Refusal
from tests.acceptance.talks import (
    HTTP,
    STDIO,
    Chat,
    HttpFace,
    InEditor,
    OverMcp,
    Refused,
    Served,
    StdioFace,
    Talk,
    Wire,
    in_editor,
    over_mcp,
    served,
)
from tests.acceptance.test_clearance import MAKE
from tests.endpoint import Endpoint, Request

pytestmark = pytest.mark.no_prefix_law("many sessions speak to one endpoint")

WRITE = "I write it.\n\n```files.write path=written\nhello\n```"
FETCH = "I look.\n\n```web.fetch url=http://127.0.0.1:1/\n```"
POLICY = (
    '[scope.default]\nfunctions = ["shell.*", "files.*"]\ncaps = { "files.*" = 0 }\nclearance = ["shell.*"]\n'
)

LACKING = "403|forbidden|sessions:write"
UNKNOWN = "401|HTTP 403"
"""The websocket has one status for whoever is not known."""


def answers(request: Request) -> str:
    """What the model says to what it was told last."""
    if "Make it." in request.last:
        return MAKE
    if "Fetch it." in request.last:
        return FETCH
    return WRITE if "Write it." in request.last else "Over."


@dataclass(frozen=True)
class Place:
    """The one product, its server, who there is, and the way in of each."""

    product: Product
    endpoint: Endpoint
    server: Server
    faces: str
    ids: dict[str, str]
    ada: str
    bob: str
    eve: str
    folder: Path

    def served(self, face: HttpFace, token: str) -> Served:
        return served(face, self.server, self.faces, token)

    @asynccontextmanager
    async def piped(self, face: StdioFace, intent: str = "1") -> AsyncIterator[InEditor | OverMcp]:
        """A client with a process of its own, which begins sessions with this intent."""
        if face == "ACP":
            self.folder.mkdir(exist_ok=True)
            async with in_editor(self.product, self.folder, "--intent", intent) as edited:
                yield edited
        else:
            async with over_mcp(self.product, "--intent", intent) as asked:
                yield asked

    def folder_of(self, talk: Talk) -> Path:
        """Where on disk the session of a conversation is."""
        data = self.product.data
        (found,) = [*data.glob(f"sessions/{talk.session}"), *data.glob(f"users/*/sessions/{talk.session}")]
        return found

    def records(self, talk: Talk) -> list[Record]:
        return read_journal(self.folder_of(talk) / "journal.md").records

    def made(self, talk: Talk) -> list[str]:
        """The files that calls of the session have made."""
        places = (self.folder_of(talk), self.folder)
        return sorted(
            {one.name for place in places for one in place.rglob("*") if one.name in ("made", "written")}
        )

    @property
    def files(self) -> set[Path]:
        """Whatever calls have made, of all sessions."""
        return {one for name in ("made", "written") for one in self.folder.parent.rglob(name)}

    @property
    def sessions(self) -> dict[str, bytes]:
        """Every journal there is."""
        return {str(one): one.read_bytes() for one in self.product.data.rglob("journal.md")}

    @property
    def asked(self) -> int:
        """How often a model was asked."""
        return len(self.endpoint.requests)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("refusals")
    data = folder / "data"
    data.mkdir()
    with Endpoint(answers) as endpoint:
        product = Product.at(data, endpoint)
        (data / "policy.toml").write_text(POLICY, encoding="utf-8")
        ids = with_people(product, "root", "ada", "bob", "eve")
        ada, bob, eve = (token_of(product, one) for one in ("ada", "bob", "eve"))
        try:
            with product.serving("serve", "--faces", "0") as server:
                assert server.process.stdout is not None
                faces = server.process.stdout.readline().split()[-1]
                yield Place(product, endpoint, server, faces, ids, ada, bob, eve, folder / "project")
                server.process.terminate()
                assert server.process.wait(300) == 0
            assert endpoint.problems == []
            assert not containers_of(data)
        finally:
            reap(data)


def denied(records: list[Record]) -> list[str]:
    """By whom calls were denied; nothing was called."""
    assert [one for one in records if one.kind == "call"] == []
    return [one.text("by") for one in records if one.kind == "gate" and one.fields["allow"] is False]


async def _allowed(place: Place, talk: Talk) -> None:
    """Where nothing refuses it, the call makes the file: without this no other test here says anything."""
    before = place.files
    await talk.say("Make it.")
    assert talk.asked
    assert place.files == before
    assert (await talk.answer(allow=True)).endswith("Over.")
    assert place.made(talk) == ["made"]


async def _above_the_intent(place: Place, talk: Talk) -> None:
    """Scripts would run in a layer that is thrown away; what writes files has none."""
    assert (await talk.say("Write it.")).endswith("Over.")
    assert not talk.asked
    assert denied(place.records(talk)) == ["impact"]
    (gate,) = [one for one in place.records(talk) if one.kind == "gate"]
    assert "the intent is 0" in gate.text("reason")
    assert place.made(talk) == []


async def _outside_the_scope(place: Place, talk: Talk) -> None:
    """What is beyond a cap of the scope is denied; what the scope does not name is no function, and its agent is told."""
    assert (await talk.say("Write it.")).endswith("Over.")
    assert (await talk.say("Fetch it.")).endswith("Over.")
    assert not talk.asked
    assert denied(place.records(talk)) == ["impact"]
    (gate,) = [one for one in place.records(talk) if one.kind == "gate"]
    assert "its cap is 0" in gate.text("reason")
    assert place.made(talk) == []


async def _denied_by_the_person(place: Place, talk: Talk) -> None:
    await talk.say("Make it.")
    assert talk.asked
    assert (await talk.answer(allow=False)).endswith("Over.")
    assert denied(place.records(talk)) == ["clearance"]
    assert place.made(talk) == []


@pytest.mark.parametrize("face", HTTP)
async def test_what_a_person_allows_is_done(place: Place, face: HttpFace) -> None:
    await _allowed(place, place.served(face, place.ada))


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("face", HTTP)
async def test_what_is_refused_is_not_done(place: Place, face: HttpFace, refusal: Refusal) -> None:
    assert (face, refusal) not in NOT_HELD
    talk = place.served(face, place.ada)
    match refusal:
        case "above the intent":
            await talk.say("Hello.")
            wire = Wire(talk.session, server=place.server, faces=place.faces, token=place.ada)
            await wire.set_intent(0)
            await _above_the_intent(place, talk)
        case "outside the scope":
            await _outside_the_scope(place, talk)
        case "denied by the person":
            await _denied_by_the_person(place, talk)
        case "another user's session":
            await _nothing_of_anothers(place, talk)
        case "a token without the scope":
            await _only_what_a_token_may(place, face)
        case "a revoked token":
            await _nothing_by_a_revoked_token(place, face)
        case "a quota used up":
            await _nothing_beyond_a_quota(place, face)


@pytest.mark.parametrize("face", STDIO)
async def test_what_is_refused_is_not_done_by_a_process_of_the_clients(place: Place, face: StdioFace) -> None:
    """All cells of a face, in two processes."""
    held: list[str] = [one for one in REFUSALS if (face, one) not in NOT_HELD]
    async with place.piped(face, intent="0") as observing:
        await _above_the_intent(place, observing)
        held.remove("above the intent")
    async with place.piped(face) as talk:
        for refusal, check in (
            ("outside the scope", _outside_the_scope),
            ("denied by the person", _denied_by_the_person),
            ("another user's session", _nothing_of_an_account),
        ):
            talk.session = ""
            await check(place, talk)
            held.remove(refusal)
        talk.session = ""
        await _allowed(place, talk)
        (place.folder / "made").unlink(missing_ok=True)
    assert held == []


async def _nothing_of_anothers(place: Place, hers: Served) -> None:
    """Bob has every id that Ada's client was given."""
    await hers.say("Make it.")
    assert hers.asked
    journal = (place.folder_of(hers) / "journal.md").read_bytes()
    his = hers.by(place.bob)
    with pytest.raises(Refused):
        await his.answer(allow=True)
    his = hers.by(place.bob)
    try:
        await his.say("And now?")
    except Refused:
        assert his.session == hers.session
    else:
        assert isinstance(his, Chat), (
            "which has no ids: who sends a chat begins a session of their own with it"
        )
        assert place.folder_of(his) != place.folder_of(hers)
    assert (place.folder_of(hers) / "journal.md").read_bytes() == journal
    assert place.made(hers) == []
    assert (await hers.answer(allow=False)).endswith("Over.")


async def _nothing_of_an_account(place: Place, talk: InEditor | OverMcp) -> None:
    """Whoever starts a process on the server's data directory is no user, and finds no user's session."""
    hers = place.served("wire", place.ada)
    await hers.say("Hello.")
    before, asked = place.sessions, place.asked
    going_on = talk.load(hers.session) if isinstance(talk, InEditor) else talk.say("Make it.")
    talk.session = hers.session
    with pytest.raises(Refused, match="There is no session"):
        await going_on
    assert (place.sessions, place.asked) == (before, asked)


async def _only_what_a_token_may(place: Place, face: HttpFace) -> None:
    """One that may read says nothing; one that may also write answers no question."""
    reads = token_of(place.product, "ada", "sessions:read", called=f"reads by {face}")
    writes = token_of(place.product, "ada", "sessions:read", "sessions:write", called=f"writes by {face}")
    before, asked = place.sessions, place.asked
    with pytest.raises(Refused, match=LACKING):
        await place.served(face, reads).say("Make it.")
    assert (place.sessions, place.asked) == (before, asked)
    # A client of MCP whose token may not answer is not asked; so somebody is asked whose token may.
    talk = place.served(face, place.ada if face == "MCP by HTTP" else writes)
    await talk.say("Make it.")
    assert talk.asked
    for token in (reads, writes):
        with pytest.raises(Refused):
            await talk.by(token).answer(allow=True)
    assert place.made(talk) == []
    assert (await talk.by(place.ada).answer(allow=False)).endswith("Over.")
    assert denied(place.records(talk)) == ["clearance"]


async def _nothing_by_a_revoked_token(place: Place, face: HttpFace) -> None:
    token = token_of(place.product, "ada", called=f"ends by {face}")
    talk = place.served(face, token)
    await talk.say("Make it.")
    assert talk.asked
    assert place.product.run("token", "revoke", f"ends by {face}", "--user", "ada").status == 0
    before, asked = place.sessions, place.asked
    with pytest.raises(Refused, match=UNKNOWN):
        await talk.by(token).answer(allow=True)
    with pytest.raises(Refused, match=UNKNOWN):
        await place.served(face, token).say("Make it.")
    assert (place.sessions, place.asked) == (before, asked)
    assert (await talk.by(place.ada).answer(allow=False)).endswith("Over.")
    assert place.made(talk) == []


async def _nothing_beyond_a_quota(place: Place, face: HttpFace) -> None:
    assert place.product.run("quota", "set", "--user", "eve", "--tokens", "100000").status == 0
    talk = place.served(face, place.eve)
    assert (await talk.say("Hello.")).endswith("Over.")
    assert place.product.run("quota", "set", "--user", "eve", "--tokens", "1").status == 0
    asked = place.asked
    for one in (talk, place.served(face, place.eve)):
        try:
            said = await one.say("Make it.")
        except Refused as error:  # OpenAI's APIs have a status for it
            said = str(error)
        assert not said.endswith("Over.")
        assert not one.asked
        if one.session:
            assert denied(place.records(one)) == []
            assert place.made(one) == []
    assert place.asked == asked
