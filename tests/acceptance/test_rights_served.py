"""Every message of the websocket, by its owner, by another user and with tokens that are good no more, to a real server
with accounts; and again after it was killed. Who may what in which role is in `tests/web/test_rights.py`, against a fake
of who people are; here they are who they are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection

from iact.web.commands import COMMANDS
from tests.acceptance.conftest import Stage
from tests.acceptance.members import bearer, dial, sign_in, token_of, until_record, with_people
from tests.acceptance.product import NO_MODULES, Product, Server, acknowledged, kill
from tests.endpoint import Endpoint, Request
from tests.web.test_rights import ADMINISTERING, FIELDS, LAST, MAY, MISSING, ORDER, SECRET, fields, parts

ACCOUNT: Final = frozenset(name for name, one in COMMANDS.items() if one.right == "account")
"""For whoever signed in, and no token: it has not every scope."""


def answers(request: Request) -> str:
    """The model knows it where it was asked for, and not from what another user says."""
    return f"I know {SECRET}." if SECRET in request.last else "Hello."


def answer(socket: ClientConnection, message: dict[str, object]) -> tuple[dict[str, object], str]:
    """What is said to a message, and all that came until then."""
    socket.send(json.dumps({**message, "id": "asked"}))
    seen = ""
    while True:
        frame = json.loads(socket.recv(timeout=300))
        seen += json.dumps(frame)
        if frame.get("id") == "asked" and frame["type"] in ("ok", "error"):
            return dict(frame), seen


def held(folder: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


def another_hears_nothing(server: Server, token: str, session: str) -> None:
    """Of a session that is not theirs, they hear what they hear of one that does not exist."""
    for names in parts(ORDER):
        with dial(server, **bearer(token)) as socket:
            acknowledged(socket, {"type": "hello", "session": None})
            for name in names:
                asked = fields(name, session)
                if name in ("find", "sessions.search", "memory"):
                    asked = {**asked, "text" if name == "find" else "query": "xyzzy"}
                told, seen = answer(socket, asked)
                assert SECRET not in seen, (name, told)
                if "SESSION" in json.dumps(FIELDS[name]):
                    missing, _ = answer(socket, fields(name, MISSING))
                    assert json.dumps(told).replace(session, "S") == json.dumps(missing).replace(
                        MISSING, "S"
                    ), name


def owner_may(server: Server, token: str, session: str) -> None:
    """All that the table has, but what would end the session for the rest of the test; of their account, signed in alone."""
    mine = [one for one in ORDER if one not in LAST]
    for names in parts(mine):
        with dial(server, **bearer(token)) as socket:
            for name in names:
                acknowledged(socket, {"type": "hello", "session": session})
                told, _ = answer(socket, fields(name, session))
                forbidden = name in ADMINISTERING or name in ACCOUNT
                assert (told.get("code") == "forbidden") == forbidden, (name, told)
                assert name in ADMINISTERING or name in MAY["owner"]
    cookie = sign_in(server, "ada").headers["set-cookie"].partition(";")[0]
    with dial(server, Cookie=cookie, Origin=f"http://127.0.0.1:{server.port}") as socket:
        for name in sorted(ACCOUNT):
            told, _ = answer(socket, fields(name, session))
            assert told.get("code") != "forbidden", (name, told)


def nobody_may(server: Server, *tokens: str) -> None:
    for one in tokens:
        with pytest.raises(InvalidStatus):
            dial(server, **bearer(one))


@pytest.mark.no_prefix_law("two users talk to one model")
def test_all_messages_by_whom_they_are_before_and_after_a_kill(stage: Stage) -> None:
    with Endpoint(answers) as endpoint:
        _all_messages(stage.product(endpoint, **NO_MODULES))


def _all_messages(product: Product) -> None:
    ids = with_people(product, "root", "ada", "bob")
    owner, other = token_of(product, "ada"), token_of(product, "bob")
    ended = token_of(product, "ada", called="old")
    admin = token_of(product, "root", "sessions:read", "sessions:write", "clear", "admin")
    with product.serving() as server, dial(server, **bearer(owner)) as socket:
        acknowledged(socket, {"type": "hello", "session": None})
        session = str(acknowledged(socket, {"type": "say", "text": f"Is it {SECRET}?"})["session"])
        until_record(socket, "reply")
    folder = product.data / "users" / ids["ada"] / "sessions" / session
    assert product.run("token", "revoke", "old", "--user", "ada").status == 0
    for _ in range(2):
        with product.serving() as server:
            before = (folder / "journal.md").read_bytes()
            for one in (other, admin):
                another_hears_nothing(server, one, session)
            nobody_may(server, ended, "iact_guessed", "")
            assert (folder / "journal.md").read_bytes() == before
            owner_may(server, owner, session)
            kill(server.process)
