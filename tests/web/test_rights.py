"""Who may what, over every message of the websocket and every route: what is not in a table here is not a message.

Each message and each route is tried by the owner of a session, a steerer, a reader, the holder of a link, another user,
somebody whose token has ended, and nobody. What somebody may not is refused before anything looks at it, and changes
nothing; of what was not granted to them, they hear what they hear of what does not exist.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus

from iact.accounts import rights
from iact.accounts.rights import RULES, LinkView, Principal
from iact.web.commands import COMMANDS
from iact.web.safety import METRICS, ROUTES
from tests.web.dialling import Message, closed, dial, get, http, send, until
from tests.web.people import FakePeople, Town, bearer, town

SECRET: Final = "xyzzy-secret-plover"
SAYS: Final = {"u-owner": f"I know that it is {SECRET}."}
MISSING: Final = "20260101-000000-0badf00d"

OWNER = Principal(user="u-owner", name="ada", key="owner")
STEERER = Principal(user="u-steerer", name="bob", key="steerer")
READER = Principal(user="u-reader", name="cy", key="reader")
LINK = Principal(user="", link="l1", scopes=frozenset({"sessions:read"}), key="link")
OTHER = Principal(user="u-other", name="dee", key="other")
ADMIN = Principal(user="u-admin", name="root", admin=True, key="admin")
LOOKING = Principal(user="u-owner", name="ada", scopes=frozenset({"sessions:read"}), key="looking")
ENDED = Principal(user="u-owner", name="ada", key="ended")
TOKENS = {one.key: one for one in (OWNER, STEERER, READER, LINK, OTHER, ADMIN, LOOKING, ENDED)}

FIELDS: Final[Mapping[str, Mapping[str, object]]] = {
    "hello": {"session": "SESSION"}, "ping": {}, "say": {"text": "Hello."}, "foresee": {"text": "Hello."},
    "inject": {"path": "/", "text": "Listen."}, "queue.send": {"n": 1}, "queue.edit": {"n": 1, "text": "x"},
    "queue.remove": {"n": 1}, "calls.stop": {"path": "/"}, "pause": {"path": "/"}, "resume": {"path": "/"},
    "cancel": {"path": "/"}, "budget": {"tokens": 5}, "compress": {}, "summary": {}, "plan.start": {"path": "/p", "digest": "0" * 16},
    "plan.edit": {"path": "/p", "text": "{}"}, "plan.retry": {"path": "/p", "step": "a"}, "plan.text": {"path": "/p"},
    "plan.save": {"path": "/p", "name": "kept"}, "plan.run": {"name": "kept"}, "plans": {}, "plan.offers": {"path": "/p"},
    "clear": {"call": 1, "allow": True, "digest": "0" * 16}, "question": {"n": 1}, "form.answer": {"ask": 1, "accept": False}, "intent": {"value": 2.0}, "declassify": {"path": "/", "digest": "0" * 16}, "reading": {"path": "/"},
    "lockdown": {"value": False}, "restore": {"version": "abc"}, "timeline": {}, "files": {}, "files.changes": {},
    "files.find": {"texts": []}, "files.download": {}, "file": {"path": "a"}, "file.diff": {"path": "a"},
    "file.download": {"path": "a"}, "file.view": {"path": "a"}, "pending": {}, "patch": {"path": "a"}, "counts": {"paths": ["a"]}, "apply": {"digest": "0" * 16},
    "drop": {}, "sessions": {}, "sessions.search": {"query": SECRET}, "session.rename": {"session": "SESSION", "title": "x"},
    "session.pin": {"session": "SESSION", "pinned": True}, "session.delete": {"sessions": ["SESSION"]},
    "session.restore": {"sessions": ["SESSION"]}, "session.purge": {"sessions": ["SESSION"]}, "session.deleted": {},
    "session.archive": {"session": "SESSION"}, "session.import": {}, "find": {"text": SECRET},
    "open": {"journal": "SESSION"}, "seek": {"at": 1}, "render": {"numbers": [1, 2]}, "source": {"n": 2}, "format": {"agent": "/", "text": "# H"},
    "fork": {"at": 1, "text": "On."}, "adopt": {}, "upload": {"name": "a.txt", "size": 1}, "upload.end": {},
    "download": {"path": "/", "name": "notes"}, "export": {}, "about": {}, "address": {}, "models": {}, "model.presets": {}, "model.board": {"name": "off"}, "model.files": {}, "model.endpoints": {}, "model.endpoint": {"name": "work"},
    "model.try": {"role": "fast", "url": "http://127.0.0.1:9/v1"},
    "model.choose": {"role": "fast", "url": "http://127.0.0.1:9/v1"}, "model.forget": {"role": "fast"}, "first": {},
    "first.keep": {"name": "n", "text": "t"}, "first.forget": {"name": "n"}, "examples": {},
    "example.timeline": {"example": "e"}, "context": {"path": "/"}, "variables": {"path": "/"},
    "variable": {"path": "/", "name": "notes"}, "variable.view": {"path": "/", "name": "notes"}, "modules": {},
    "module.add": {"source": "/etc"}, "module.remove": {"name": "m"}, "module.hosts": {},
    "module.allow": {"name": "m", "hosts": ["a.example"]}, "module.approve": {"name": "m", "digest": "0" * 64, "functions": []},
    "secrets": {}, "secret.set": {"name": "API_KEY", "value": SECRET}, "secret.remove": {"name": "API_KEY"},
    "memory": {"query": SECRET}, "memory.show": {"memory": "m"}, "memory.forget": {"memories": ["m"]},
    "memory.edit": {"memory": "m", "text": "t"}, "memory.rebuild": {},
    "memory.clear": {}, "memory.switch": {"value": False}, "memory.session": {"value": False}, "memory.distil": {"sessions": ["SESSION"]},
    "sharing": {}, "share": {"name": "dee"}, "unshare": {"name": "dee"}, "link.create": {}, "link.revoke": {"link": "l"},
    "shared": {}, "account": {}, "token.create": {"name": "t", "scopes": ["sessions:read"]}, "token.revoke": {"token": "t"},
    "sign-out": {"sign_in": "s"}, "usage": {}, "users": {}, "user.add": {"name": "eve"}, "user.change": {"name": "dee"},
    "audit": {}, "audit.download": {}, "everybody": {}, "everybody.module.add": {"source": "/etc"}, "everybody.module.remove": {"name": "m"},
    "everybody.module.approve": {"name": "m", "digest": "0" * 64, "functions": []},
    "everybody.secret.set": {"name": "API_KEY", "value": SECRET}, "everybody.secret.remove": {"name": "API_KEY"},
    "policy": {}, "policy.change": {"text": "", "was": ""},
}  # fmt: skip
"""One of each message, with a field at least where it needs one. SESSION stands for the owner's session."""

SEEING = frozenset(
    [
        "hello",
        "ping",
        "open",
        "timeline",
        "files",
        "files.changes",
        "files.find",
        "files.download",
        "file",
        "file.diff",
        "file.download",
        "file.view",
        "find",
        "seek",
        "format",
        "render",
        "source",
        "download",
        "variables",
        "variable",
        "variable.view",
    ]
)
"""What the holder of a link may ask."""
OWN = frozenset(
    [
        "plans",
        "sessions",
        "sessions.search",
        "session.deleted",
        "session.archive",
        "model.presets",
        "model.files",
        "model.endpoints",
        "models",
        "first",
        "examples",
        "example.timeline",
        "modules",
        "memory",
        "memory.show",
        "session.rename",
        "session.pin",
        "session.delete",
        "session.restore",
        "session.purge",
        "session.import",
        "first.keep",
        "first.forget",
        "module.remove",
        "memory.forget",
        "memory.edit",
        "memory.rebuild",
        "memory.clear",
        "memory.switch",
        "memory.distil",
        "module.approve",
        "secrets",
        "secret.set",
        "secret.remove",
        "shared",
        "usage",
        "account",
        "token.create",
        "token.revoke",
        "sign-out",
    ]
)
"""What every user may ask of their own things, whatever they watch."""
READING = (
    SEEING
    | OWN
    | frozenset(
        [
            "plan.text",
            "plan.offers",
            "pending",
            "patch",
            "counts",
            "export",
            "context",
            "module.hosts",
            "fork",
            "adopt",
        ]
    )
)
STEERING = READING | frozenset(
    [
        "say",
        "foresee",
        "inject",
        "queue.send",
        "queue.edit",
        "queue.remove",
        "calls.stop",
        "pause",
        "resume",
        "cancel",
        "compress",
        "summary",
        "plan.start",
        "plan.edit",
        "plan.retry",
        "plan.run",
        "lockdown",
        "restore",
        "upload",
        "upload.end",
        "clear",
        "question",
        "form.answer",
        "apply",
        "drop",
    ]
)
OWNING = STEERING | frozenset(
    [
        "budget",
        "intent",
        "declassify",
        "reading",
        "plan.save",
        "module.allow",
        "memory.session",
        "sharing",
        "share",
        "unshare",
        "link.create",
        "link.revoke",
    ]
)
ADMINISTERING = frozenset(
    [
        "about",
        "address",
        "model.try",
        "model.board",
        "model.endpoint",
        "model.choose",
        "model.forget",
        "module.add",
        "users",
        "user.add",
        "user.change",
        "audit",
        "audit.download",
        "everybody",
        "everybody.module.add",
        "everybody.module.remove",
        "everybody.module.approve",
        "everybody.secret.set",
        "everybody.secret.remove",
        "policy",
        "policy.change",
    ]
)
LOOKS = frozenset(  # with a token that may only read
    [
        "hello",
        "ping",
        "open",
        "timeline",
        "files",
        "files.changes",
        "files.find",
        "files.download",
        "file",
        "file.diff",
        "file.download",
        "file.view",
        "find",
        "seek",
        "render",
        "source",
        "download",
        "variables",
        "variable",
        "variable.view",
        "plan.text",
        "plan.offers",
        "format",
        "pending",
        "patch",
        "counts",
        "export",
        "context",
        "module.hosts",
        "plans",
        "sessions",
        "sessions.search",
        "session.deleted",
        "session.archive",
        "model.presets",
        "model.files",
        "model.endpoints",
        "models",
        "first",
        "examples",
        "example.timeline",
        "modules",
        "secrets",
        "memory",
        "memory.show",
        "shared",
        "usage",
    ]
)

MAY: Final[Mapping[str, frozenset[str]]] = {
    "owner": OWNING,
    "steerer": STEERING,
    "reader": READING,
    "link": SEEING,
    "looking": LOOKS,
}
"""What each may ask with the owner's session before them; nobody here is an administrator."""


def test_every_message_and_every_route_says_who_may_and_every_right_has_a_rule() -> None:
    assert set(FIELDS) == set(COMMANDS)
    assert set(COMMANDS) == OWNING | ADMINISTERING
    assert {one.right for one in COMMANDS.values()} <= set(RULES)
    assert set(ROUTES.values()) <= set(RULES)
    assert all(rights.refusal(one.right) for one in COMMANDS.values())


def fields(name: str, session: str) -> Message:
    text = json.dumps({"type": name, **FIELDS[name]})
    found: Message = json.loads(text.replace("SESSION", session))
    return found


async def owned(place: Town) -> str:
    """The owner's session, in which there is something to be found."""
    async with dial(place.server, **bearer("owner")) as client:
        await send(client, type="hello", session=None, id=0)
        await until(client, type="ok", id=0)
        await send(client, type="upload", name="notes.txt", media="text/plain", size=len(SECRET), id=1)
        await until(client, type="ok", id=1)
        await client.send(SECRET.encode())
        await send(client, type="upload.end", id=2)
        await until(client, type="ok", id=2)
        await send(client, type="say", text=f"Is it {SECRET}?", id=3)
        said = (await until(client, type="ok", id=3))[-1]
        await until(client, type="record", kind="reply")
        return str(said["session"])


async def answer(client: ClientConnection, message: Message, identity: int) -> tuple[Message, list[Message]]:
    """What is said to a message, and all that came before."""
    await send(client, **message, id=identity)
    seen = []
    while True:
        seen += await until(client, id=identity)
        if seen[-1]["type"] in ("ok", "error"):
            return seen[-1], seen


def numbered(seen: Sequence[Message]) -> list[Message]:
    return [one for one in seen if one["type"] == "record"]


def parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """As many as one connection may ask at once, each after a greeting."""
    return (names[at : at + 20] for at in range(0, len(names), 20))


LAST = ("fork", "adopt", "session.delete", "session.restore", "session.purge")
ORDER: Final = [*(one for one in FIELDS if one not in LAST), *LAST]


@pytest.mark.parametrize("who", MAY)
def test_each_message_is_refused_to_whoever_lacks_its_right(tmp_path: Path, who: str) -> None:
    async def main() -> None:
        people = FakePeople(TOKENS)
        async with town(tmp_path, people, SAYS) as place:
            session = await owned(place)
            for one, role in ((STEERER, "steerer"), (READER, "reader"), (LINK, "reader")):
                people.give(one, session, OWNER, role)  # type: ignore[arg-type]
            journal = place.folder(OWNER.user) / "sessions" / session / "journal.md"
            before = journal.read_bytes()
            for names in parts(ORDER):
                async with dial(place.server, **bearer(who)) as client:
                    for at, name in enumerate(names):
                        greeted, _ = await answer(client, {"type": "hello", "session": session}, 2 * at)
                        deleted = name in ("session.restore", "session.purge")
                        assert greeted["type"] == "ok" or deleted, (name, greeted)
                        told, _ = await answer(client, fields(name, session), 2 * at + 1)
                        assert (told.get("code") != "forbidden") == (name in MAY[who]), (name, told)
            if who in ("reader", "link", "looking"):
                assert journal.read_bytes() == before

    asyncio.run(asyncio.wait_for(main(), 300))


def test_another_user_hears_and_does_nothing_of_a_session(tmp_path: Path) -> None:
    async def main() -> None:
        people = FakePeople(TOKENS)
        async with town(tmp_path, people, SAYS) as place:
            session = await owned(place)
            folder = place.folder(OWNER.user)
            before = _held(folder)
            for who in ("other", "admin"):
                for names in parts(ORDER):
                    async with dial(place.server, **bearer(who)) as client:
                        await answer(client, {"type": "hello", "session": None}, 1000)
                        for at, name in enumerate(names):
                            if name in ("find", "sessions.search", "memory"):
                                message: Message = fields(name, session) | {
                                    "query" if name != "find" else "text": "xyzzy"
                                }
                            else:
                                message = fields(name, session)
                            told, seen = await answer(client, message, 2 * at)
                            assert SECRET not in json.dumps(seen), (name, told)
                            named = "SESSION" in json.dumps(FIELDS[name])
                            if named:
                                missing, _ = await answer(client, fields(name, MISSING), 2 * at + 1)
                                assert _plain(told, session) == _plain(missing, MISSING), name
            assert _held(folder) == before

    asyncio.run(asyncio.wait_for(main(), 300))


def _plain(told: Message, session: str) -> str:
    return json.dumps({name: one for name, one in told.items() if name != "id"}).replace(session, "S")


def _held(folder: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in sorted((folder / "sessions").rglob("*")) if one.is_file()}


def test_every_route_is_for_whoever_is_somebody(tmp_path: Path) -> None:
    async def main() -> None:
        people = FakePeople(TOKENS, ended={"ended"})
        async with town(tmp_path, people, SAYS) as place:
            session = await owned(place)
            people.give(LINK, session, OWNER, "reader")
            async with dial(place.server, **bearer("owner")) as client:
                await answer(client, {"type": "hello", "session": session}, 1)
                offered, _ = await answer(client, fields("download", session), 2)
            paths = {
                "/": "/",
                "/static/": "/static/js/main.js",
                "/download/": offered["href"],
                "/view/": "/view/html/guessed",
                "/ws": "/ws",
            }
            public = {row for row, right in ROUTES.items() if right == "public"}
            assert set(paths) == set(ROUTES) - public - {METRICS}  # which is nobody's here
            for path in sorted(public):  # nobody's data is there
                for who in ("", "nobody", "owner"):
                    headers: dict[str, Any] = dict(bearer(who)) if who else {}
                    status, _, body = await http(place.server, get(place.server, path, **headers))
                    assert status in (200, 404), (path, who)
                    assert SECRET.encode() not in body
            for row, path in paths.items():
                for who in ("link", "other", "ended", "nobody", ""):
                    headers = dict(bearer(who)) if who else {}
                    if row == "/ws":
                        continue
                    status, _, body = await http(place.server, get(place.server, path, **headers))
                    somebody = who in ("link", "other")
                    denied = 303 if row == "/" else 401  # to where one signs in
                    waits = row in ("/download/", "/view/")  # for whom it was offered to
                    wanted = denied if not somebody else 404 if waits else 200
                    assert status == wanted, (path, who)
                    assert SECRET.encode() not in body
                    status, _, _ = await http(place.server, get(place.server, METRICS, **headers))
                    assert status in (401, 404)
            for who in ("ended", "nobody"):
                with pytest.raises(InvalidStatus):
                    await dial(place.server, **bearer(who))
            status, _, body = await http(place.server, get(place.server, offered["href"], **bearer("owner")))
            assert (status, body) == (200, SECRET.encode())

    asyncio.run(asyncio.wait_for(main(), 120))


def test_whoever_is_signed_out_or_loses_a_grant_is_cut_off(tmp_path: Path) -> None:
    async def main() -> None:
        people = FakePeople(TOKENS)
        async with town(tmp_path, people, SAYS) as place:
            session = await owned(place)
            people.give(READER, session, OWNER, "reader")
            async with (
                dial(place.server, **bearer("reader")) as reader,
                dial(place.server, **bearer("other")) as other,
            ):
                told, seen = await answer(reader, {"type": "hello", "session": session}, 1)
                assert told["type"] == "ok"
                facts = next(
                    one for one in (seen + await until(reader, type="session")) if one["type"] == "session"
                )
                assert (facts["role"], facts["owner"], facts["journal"]) == ("reader", "ada", "")
                await answer(other, {"type": "hello", "session": None}, 1)
                people.grants.clear()
                people.ended.add("other")
                assert await closed(reader) == 4003
                assert await closed(other) == 4003

    asyncio.run(asyncio.wait_for(main(), 120))


def test_what_a_steerer_does_bears_their_name_and_a_fork_is_their_own(tmp_path: Path) -> None:
    async def main() -> None:
        people = FakePeople(TOKENS)
        async with town(tmp_path, people, SAYS, idle=0.2) as place:
            session = await owned(place)
            people.give(STEERER, session, OWNER, "steerer")
            async with dial(place.server, **bearer("steerer")) as client:
                await answer(client, {"type": "hello", "session": session}, 1)
                said, seen = await answer(client, {"type": "say", "text": "And now?"}, 2)
                shown = {one["n"]: one for one in numbered(seen)}
                while said["n"] not in shown:
                    shown |= {one["n"]: one for one in numbered(await until(client, type="record"))}
                assert shown[said["n"]]["who"] == "bob"
                forked, _ = await answer(client, {"type": "fork", "at": said["n"], "text": "Mine."}, 3)
                mine = place.folder(STEERER.user) / "sessions" / forked["session"] / "journal.md"
                assert SECRET in mine.read_text()
            await _until_closed(place)
            assert (place.folder(OWNER.user) / "sessions" / session).is_dir()

    asyncio.run(asyncio.wait_for(main(), 120))


async def _until_closed(place: Town) -> None:
    """What nobody needs is closed by itself."""
    while place.tenants.opened:  # noqa: ASYNC110 - a condition outside of this loop
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("who", ["link", "other"])
def test_a_link_shows_nothing_of_what_its_owner_leaves_out(tmp_path: Path, who: str) -> None:
    """Neither to whoever has no account nor to whoever opened it with one."""

    async def main() -> None:
        people = FakePeople(TOKENS)
        async with town(tmp_path, people, SAYS) as place:
            session = await owned(place)
            view = LinkView(hides=frozenset(("files", "gate")), variables=frozenset(("notes",)))
            people.give(TOKENS[who], session, OWNER, "reader", view)
            seen: list[Message] = []
            refused = set()
            names = [one for one in FIELDS if one not in OWN and one not in ADMINISTERING]
            for some in parts(names):
                async with dial(place.server, **bearer(who)) as client:
                    for at, name in enumerate(some):
                        _, heard = await answer(client, {"type": "hello", "session": session}, 2 * at)
                        asked = {**fields(name, session), **({"text": "xyzzy"} if name == "find" else {})}
                        told, more = await answer(client, asked, 2 * at + 1)
                        seen += [*heard, *more]
                        if told.get("code") == "forbidden":
                            refused.add(name)
            assert SECRET not in json.dumps(seen)
            assert refused >= {
                "files",
                "file",
                "file.download",
                "file.view",
                "export",
                "context",
                "fork",
                "say",
                "clear",
                "share",
            }
            assert any(one["type"] == "record" for one in seen), "what is not left out is there"
            # The next one has less to it: it is frozen.
            people.give(TOKENS[who], session, OWNER, "reader", LinkView(at=2))
            async with dial(place.server, **bearer(who)) as client:
                _, heard = await answer(client, {"type": "hello", "session": session}, 1)
                heard += (await answer(client, {"type": "source", "n": 2}, 2))[1]
                told, _ = await answer(client, {"type": "source", "n": 3}, 3)
            assert told["code"] == "usage"
            assert max(one["last"] for one in heard if one["type"] == "session") == 2

    asyncio.run(asyncio.wait_for(main(), 120))
