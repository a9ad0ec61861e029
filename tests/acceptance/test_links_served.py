"""Links to sessions of a real server: opened before and after it was killed, ended, expired, revoked, and to sessions
that are deleted and restored. A link never shows a secret or another session, and its visitors can't answer
questions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import httpx
import pytest
from playwright.sync_api import expect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from iact.accounts.accounts import open_accounts
from iact.accounts.people import Actor
from iact.accounts.rights import LinkView
from iact.web.connection import ENDED
from tests.acceptance.conftest import Stage
from tests.acceptance.members import bearer, dial, follow, token_of, until_record, with_people
from tests.acceptance.product import Product, Server, acknowledged, kill
from tests.acceptance.test_clearance import asking, question
from tests.acceptance.test_people_page import browsing, person
from tests.endpoint import Endpoint, Request
from tests.web.browser import Wrongs
from tests.web.test_rights import FIELDS, MAY, MISSING

ELSEWHERE: Final = "plover-of-another-session"
VALUE: Final = "the value of a secret 5f1e"
HIDDEN: Final = "wren-in-a-hidden-variable"
BY: Final = Actor("the test")


def answers(request: Request) -> str:
    return "I make it.\n\n```shell.run\ntouch made\n```" if "make it" in request.last else "Noted."


def guest(server: Server, cookie: str) -> ClientConnection:
    """A browser without an account."""
    return dial(server, Cookie=cookie, Origin=f"http://127.0.0.1:{server.port}")


def heard(socket: ClientConnection, message: Mapping[str, object]) -> tuple[dict[str, Any], str]:
    """What is said to a message, and all that came until then."""
    socket.send(json.dumps({**message, "id": "asked"}))
    seen = ""
    while True:
        frame = json.loads(socket.recv(timeout=300))
        seen += json.dumps(frame)
        if frame.get("id") == "asked":
            return dict(frame), seen


def opened(server: Server, path: str) -> int:
    """What is said to somebody who opens a link without an account."""
    address = f"http://127.0.0.1:{server.port}"
    return httpx.post(f"{address}{path}", headers={"Origin": address}, trust_env=False).status_code


def shows(server: Server, cookie: str, session: str) -> str:
    """All that a link shows: the session, and all that its holder may ask of it, or is refused."""
    seen = ""
    with guest(server, cookie) as socket:
        told, more = heard(socket, {"type": "hello", "session": session})
        assert told["type"] == "ok", told
        seen += more
        for name in sorted(MAY["link"] - {"hello", "open", "find"}):
            seen += heard(socket, {"type": name, **FIELDS[name]})[1]
        for n in range(1, 30):
            seen += heard(socket, {"type": "source", "n": n})[1]
        for name in (
            "clear",
            "say",
            "secrets",
            "sessions",
            "sessions.search",
            "shared",
            "usage",
            "audit",
            "account",
        ):
            told, more = heard(socket, {"type": name, **FIELDS[name], "query": "plover"})
            assert told["code"] == "forbidden", (name, told)
            seen += more
    for wrong in (ELSEWHERE, VALUE):
        assert wrong not in seen
    return seen


def is_gone(server: Server, cookie: str, session: str) -> None:
    """The link is good, but there is nothing behind it, and nothing is said of where it was."""
    with guest(server, cookie) as socket:
        for kind, field in (("hello", "session"), ("open", "journal")):
            told, seen = heard(socket, {"type": kind, field: session})
            assert told["type"] == "error", told
            missing, _ = heard(socket, {"type": kind, field: MISSING})
            assert json.dumps(told).replace(session, "S") == json.dumps(missing).replace(MISSING, "S")
            assert "Noted." not in seen


@pytest.mark.no_prefix_law("two sessions talk to one model")
def test_links_before_and_after_a_kill_and_to_what_is_gone(stage: Stage) -> None:
    with Endpoint(answers) as endpoint:
        _links(asking(stage.product(endpoint)))


def _links(product: Product) -> None:
    ids = with_people(product, "root", "ada", "bob", settings=["public_links = true"])
    token = token_of(product, "ada")
    with product.serving() as server:
        with dial(server, **bearer(token)) as socket:
            acknowledged(socket, {"type": "secret.set", "name": "API_KEY", "value": VALUE})
            acknowledged(socket, {"type": "hello", "session": None})
            acknowledged(socket, {"type": "say", "text": f"Keep in mind: {ELSEWHERE}."})
            until_record(socket, "reply")
        with dial(server, **bearer(token)) as socket:
            acknowledged(socket, {"type": "hello", "session": None})
            acknowledged(
                socket, {"type": "upload", "name": "kept.txt", "media": "text/plain", "size": len(HIDDEN)}
            )
            socket.send(HIDDEN.encode())
            acknowledged(socket, {"type": "upload.end"})
            said = acknowledged(socket, {"type": "say", "text": "Now make it."})
            session, first = str(said["session"]), int(str(said["n"]))
            call = int(str(question(socket)["n"]))

            def link(**view: object) -> Mapping[str, object]:
                return acknowledged(socket, {"type": "link.create", "public": True, **view})

            whole, frozen = link(), link(at=first)
            apart = link(hides=["files", "gate"], variables=["kept"])
            private, ended = link(public=False), link()
            assert opened(server, str(private["path"])) == 401
            paths = [str(one["path"]) for one in (whole, frozen, apart, ended)]
            cookies = [follow(server, path) for path in paths]
            assert opened(server, "/link/guessed") == 401
        name = cookies[0].partition("=")[0]
        with open_accounts(product.data, None, lambda: 0.0, public_links=True) as accounts:  # as in 1970
            past = accounts.sharing.create(
                accounts.users.named("ada"), session, LinkView(), days=7, public=True, by=BY
            )
        _shown(server, cookies, session, first)
        kill(server.process)

    journal = product.data / "users" / ids["ada"] / "sessions" / session / "journal.md"
    before = journal.read_bytes()
    with product.serving() as server:
        _shown(server, cookies, session, first)
        assert [follow(server, path) for path in paths] == cookies, "the same link, opened again"
        for dead in (f"{name}={past.secret}", f"{name}=guessed"):
            with pytest.raises(InvalidStatus):
                guest(server, dead)
        assert opened(server, f"/link/{past.secret}") == 401
        _waits_for_nobody_here(server, paths[0], call)
        _ends_while_somebody_looks(product, server, session)
        assert journal.read_bytes() == before, "to look begins nothing, and nobody answered"

        with dial(server, **bearer(token)) as socket, guest(server, cookies[3]) as looking:
            assert heard(looking, {"type": "hello", "session": session})[0]["type"] == "ok"
            acknowledged(socket, {"type": "hello", "session": session})
            listed = {one["id"]: one["opened"] for one in acknowledged(socket, {"type": "sharing"})["links"]}  # type: ignore[attr-defined]
            assert listed[whole["link"]] == 3, "twice by a program, and once by a page"
            assert listed[private["link"]] == 0
            acknowledged(socket, {"type": "link.revoke", "link": ended["link"]})
            _is_cut_off(looking)
            with pytest.raises(InvalidStatus):
                guest(server, cookies[3])
            assert opened(server, paths[3]) == 401
        kill(server.process)

    with product.serving() as server:
        with pytest.raises(InvalidStatus):
            guest(server, cookies[3])
        with dial(server, **bearer(token)) as socket:
            acknowledged(socket, {"type": "hello", "session": None})
            acknowledged(socket, {"type": "session.delete", "sessions": [session]})
            for cookie in cookies[:3]:
                is_gone(server, cookie, session)
            acknowledged(socket, {"type": "session.restore", "sessions": [session]})
            _shown(server, cookies, session, first)
            acknowledged(socket, {"type": "session.delete", "sessions": [session]})
            acknowledged(socket, {"type": "session.purge", "sessions": [session]})
        for cookie in cookies[:3]:
            is_gone(server, cookie, session)
        kill(server.process)


def _shown(server: Server, cookies: list[str], session: str, first: int) -> None:
    """Each link shows what it shows: all, a part, or what there was at a record."""
    whole, frozen, apart = (shows(server, one, session) for one in cookies[:3])
    assert "Now make it." in whole
    assert "touch made" in whole
    assert "touch made" not in frozen
    assert f'"n": {first + 1}' not in frozen
    assert HIDDEN not in apart


def _waits_for_nobody_here(server: Server, path: str, call: int) -> None:
    """The page of whoever holds a link has nothing to answer and nothing to write in."""
    wrongs = Wrongs(f"http://127.0.0.1:{server.port}")
    with browsing() as browser:
        page = person(browser, wrongs).new_page()
        page.goto(f"http://127.0.0.1:{server.port}{path}")
        expect(page.locator(".dialogue")).to_contain_text("Now make it.")
        for hidden in ("[data-role=approvals]", "[data-role=waiting-bar]", "[data-role=waiting-count]"):
            expect(page.locator(hidden)).to_be_hidden()
        expect(page.get_by_label("Message to the root agent")).to_be_hidden()
        assert ELSEWHERE not in page.content()
        told = page.evaluate(
            """([call]) => new Promise((done) => {
                const socket = new WebSocket(`ws://${location.host}/ws`);
                socket.onopen = () => socket.send(JSON.stringify({ type: "clear", call, allow: true, digest: "0".repeat(16), id: 1 }));
                socket.onmessage = ({ data }) => { const told = JSON.parse(data); if (told.id === 1) done(told.code); };
            })""",
            [call],
        )
        assert told in ("forbidden", "usage")
    wrongs.forgive("401")
    assert wrongs.found == []


def _ends_while_somebody_looks(product: Product, server: Server, session: str) -> None:
    """Whoever looks when a link ends sees no more."""
    with open_accounts(product.data, None, time.time, public_links=True) as accounts:
        short = accounts.sharing.create(
            accounts.users.named("ada"), session, LinkView(), days=8 / 86400, public=True, by=BY
        )
    cookie = follow(server, f"/link/{short.secret}")
    with guest(server, cookie) as looking:
        assert heard(looking, {"type": "hello", "session": session})[0]["type"] == "ok"
        _is_cut_off(looking)
    with pytest.raises(InvalidStatus):
        guest(server, cookie)


def _is_cut_off(socket: ClientConnection) -> None:
    with suppress(ConnectionClosed):
        while True:
            socket.recv(timeout=60)
    assert socket.close_code == ENDED
