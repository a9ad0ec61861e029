"""Every message of the websocket and every route, from every kind of user, to a real server with accounts; and again
after it was killed.

The rights are read from the product's own tables (`COMMANDS`, `ROUTES`, `RULES`), and compared with the sets in
`tests/web/test_rights.py`. That test uses fake users; here, users really sign in.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection

from iact.accounts.accounts import open_accounts
from iact.accounts.people import Actor
from iact.accounts.rights import RULES, LinkView, Principal, Right, Role, Scope, may
from iact.web.commands import COMMANDS
from iact.web.safety import ALIVE, METRICS, READY, ROUTES
from tests.acceptance.conftest import Stage
from tests.acceptance.members import bearer, dial, follow, sign_in, token_of, until_record, with_people
from tests.acceptance.product import NO_MODULES, Product, Server, acknowledged, kill
from tests.endpoint import Endpoint, Request
from tests.web.test_rights import FIELDS, MAY, MISSING, ORDER, SECRET, fields, parts

ACCOUNT: Final = frozenset(name for name, one in COMMANDS.items() if one.right == "account")
"""For whoever signed in, and no token: it has not every scope."""

MORE: Final[Mapping[str, Right]] = {"module.add": "admin", "upload": "steer"}
"""What messages ask for beyond their row for what their fields say: here, a folder of the server's, and no archive."""

PATHS: Final[Mapping[str, str]] = {
    "/": "/", "/static/": "/static/js/main.js", "/download/": "", "/view/": "/view/html/guessed", "/ws": "/ws",
    "/healthz": "/healthz",
    "/readyz": "/readyz", METRICS: METRICS, "/sign-in": "/sign-in", "/sign-in/": "/sign-in/ways",
    "/sign-out": "/sign-out", "/account": "/account", "/link/": "/link/guessed",
    "/static/sign-in/": "/static/sign-in/sign-in.js", "/static/languages/": "/static/languages/de.json",
    "/static/css/tokens.css": "/static/css/tokens.css", "/static/js/early.js": "/static/js/early.js",
    "/static/js/base/language.js": "/static/js/base/language.js",
}  # fmt: skip
"""A path of each route; that of a download is the one that the owner was offered."""


@dataclass(frozen=True)
class Comer:
    """Somebody who comes to the server. `who`: what the product should take them for; None: for nobody.

    `role`: on the owner's session; None: it does not exist for them. `table`: their row of `MAY`.
    """

    name: str
    headers: Mapping[str, str]
    who: Principal | None = None
    role: Role | None = None
    table: str = ""

    def dial(self, server: Server) -> ClientConnection:
        """A websocket of theirs."""
        return dial(server, **self._sent(server))

    def ask(self, server: Server, method: str, path: str) -> httpx.Response:
        """A request of theirs."""
        address = f"http://127.0.0.1:{server.port}"
        sent = self._sent(server)
        return httpx.request(method, f"{address}{path}", headers=sent, trust_env=False, timeout=300)

    def _sent(self, server: Server) -> dict[str, str]:
        """A page's script says whose page it is; a program sends its token, and needs not."""
        page = {} if "Authorization" in self.headers else {"Origin": f"http://127.0.0.1:{server.port}"}
        return {**self.headers, **page}

    def may(self, name: str) -> bool:
        """Whether they may send a message while they watch the session, by the product's own tables."""
        assert self.who is not None
        assert self.role is not None
        wanted = [COMMANDS[name].right, *([MORE[name]] if name in MORE else [])]
        return all(may(self.who, right, self.role) for right in wanted)


def answers(request: Request) -> str:
    """The model knows it where it was asked for, and not from what another user says."""
    return f"I know {SECRET}." if SECRET in request.last else "Hello."


def answer(socket: ClientConnection, message: Mapping[str, object]) -> tuple[dict[str, Any], str]:
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


def settled(folder: Path) -> dict[str, bytes]:
    """What is there once a session that was just opened has said what it says by itself, such as a notice."""
    found, changed = held(folder), time.monotonic()
    while time.monotonic() - changed < 2:
        time.sleep(0.1)
        if (now := held(folder)) != found:
            found, changed = now, time.monotonic()
    return found


def hears_nothing(server: Server, comer: Comer, session: str) -> None:
    """Of a session that is not theirs, they hear what they hear of one that does not exist."""
    for names in parts(ORDER):
        with comer.dial(server) as socket:
            acknowledged(socket, {"type": "hello", "session": None})
            for name in names:
                asked = fields(name, session)
                if name in ("find", "sessions.search", "memory"):
                    asked = {**asked, "text" if name == "find" else "query": "xyzzy"}
                told, seen = answer(socket, asked)
                assert SECRET not in seen, (comer.name, name, told)
                if "SESSION" in json.dumps(FIELDS[name]):
                    missing, _ = answer(socket, fields(name, MISSING))
                    assert json.dumps(told).replace(session, "S") == json.dumps(missing).replace(
                        MISSING, "S"
                    ), (comer.name, name)


def is_refused_what_they_may_not(server: Server, comer: Comer, session: str) -> None:
    """Each message with the session before them, and what the table says of it."""
    for names in parts(ORDER):
        with comer.dial(server) as socket:
            for name in names:
                greeted, _ = answer(socket, {"type": "hello", "session": session})
                deleted = name in ("session.restore", "session.purge")
                assert greeted["type"] == "ok" or deleted, (comer.name, name, greeted)
                told, _ = answer(socket, fields(name, session))
                allowed = told.get("code") != "forbidden"
                assert allowed == comer.may(name), (comer.name, name, told)
                listed = name in MAY[comer.table] - (ACCOUNT if "Authorization" in comer.headers else set())
                assert allowed == listed, (comer.name, name, told)


def is_let_in_nowhere(server: Server, comer: Comer) -> None:
    """Neither by a websocket nor by a route that is not everybody's."""
    with pytest.raises(InvalidStatus) as refused:
        comer.dial(server)
    assert refused.value.response.status_code == _status(comer, "/ws"), comer.name


def routes_are_for_whom_they_are(server: Server, comer: Comer, offered: str) -> None:
    """Each route, by what the table says of it; nothing but to read is done anywhere, but where people sign in."""
    for row, path in PATHS.items():
        told = comer.ask(server, "GET", path or offered)
        assert SECRET not in told.text, (comer.name, path)
        assert told.status_code == _status(comer, row), (comer.name, row)
        if row != "/sign-out":  # which would end what they come by
            posted = comer.ask(server, "POST", path or offered)
            assert SECRET not in posted.text, (comer.name, path)
            assert 300 <= posted.status_code < 500, (comer.name, row)
            assert posted.headers.get("location", "/sign-in") == "/sign-in"
    assert comer.ask(server, "GET", "/elsewhere").status_code == (401 if comer.who is None else 404)


def _status(comer: Comer, row: str) -> int:
    right = ROUTES[row]
    if right == "public":
        somebody = comer.who is not None and comer.who.user
        probed = 200 if "Authorization" in comer.headers else 404  # nobody else's page may look
        given = {"/account": 200 if somebody else 401, "/sign-out": 404, ALIVE: probed, READY: probed}
        return given.get(row, 200)
    if comer.who is None:
        if row == "/ws" and "Authorization" in comer.headers:
            return 403  # it is no page of ours, and knows no secret by which it needs not be
        return 303 if row == "/" else 401
    waits = row in ("/download/", "/view/")  # for whom it was offered to
    if not may(comer.who, right, "reader") or waits:
        return 404
    return 426 if row == "/ws" else 200


def cookie_of(server: Server, name: str) -> Mapping[str, str]:
    told = sign_in(server, name)
    assert told.status_code == 200, told
    return {"Cookie": told.headers["set-cookie"].partition(";")[0]}


@pytest.mark.no_prefix_law("several users talk to one model")
def test_all_messages_and_routes_by_all_whom_there_are_before_and_after_a_kill(stage: Stage) -> None:
    with Endpoint(answers) as endpoint:
        _everybody(stage.product(endpoint, **NO_MODULES))


def test_the_tables_are_whole() -> None:
    assert set(PATHS) == set(ROUTES)
    assert set(FIELDS) == set(COMMANDS) == set(ORDER)
    assert {one.right for one in COMMANDS.values()} | set(ROUTES.values()) == set(RULES)


def _everybody(product: Product) -> None:
    ids = with_people(product, "root", "ada", "bob", "cy", "dee", settings=["public_links = true"])
    with product.serving() as server:
        cookies = {name: cookie_of(server, name) for name in ids}
        with Comer("owner", cookies["ada"]).dial(server) as socket:
            acknowledged(socket, {"type": "hello", "session": None})
            session = str(acknowledged(socket, {"type": "say", "text": f"Is it {SECRET}?"})["session"])
            until_record(socket, "reply")
            for name, role in (("bob", "steerer"), ("cy", "reader")):
                acknowledged(socket, {"type": "share", "name": name, "role": role})
            live, dead = (acknowledged(socket, {"type": "link.create", "public": True}) for _ in range(2))
            guest, gone = (follow(server, str(one["path"])) for one in (live, dead))
            acknowledged(socket, {"type": "link.revoke", "link": dead["link"]})
    folder = product.data / "users" / ids["ada"] / "sessions"
    comers = [*_comers(product, ids, cookies, session, guest, gone)]
    for _ in range(2):
        with product.serving() as server:
            offered = _offered(server, cookies["ada"], session)
            before = settled(folder)
            for one in comers:
                if one.who is None:
                    is_let_in_nowhere(server, one)
                elif one.role is None:
                    hears_nothing(server, one, session)
                elif one.role == "reader":
                    is_refused_what_they_may_not(server, one, session)
                if one.who is None or one.who.user != ids["ada"]:
                    routes_are_for_whom_they_are(server, one, offered)
            assert held(folder) == before, "of all these, nobody changed anything"
            for one in comers:
                if one.role in ("steerer", "owner"):
                    is_refused_what_they_may_not(server, one, session)
            taken = comers[-1].ask(server, "GET", offered)
            assert (taken.status_code, SECRET in taken.text) == (200, True), "it waited for its owner"
            kill(server.process)


def _comers(
    product: Product,
    ids: Mapping[str, str],
    cookies: Mapping[str, Mapping[str, str]],
    session: str,
    guest: str,
    gone: str,
) -> Iterator[Comer]:
    """Everybody: first who is nobody, then by what they are to the session."""
    revoked = token_of(product, "ada", called="old")
    assert product.run("token", "revoke", "old", "--user", "ada").status == 0
    with open_accounts(product.data, None, lambda: 0.0, public_links=True) as accounts:  # as in 1970
        ada = accounts.users.named("ada")
        ends = accounts.tokens.create(ada, "past", ["sessions:read"], days=30, by=Actor("the test"))
        past = accounts.sharing.create(ada, session, LinkView(), days=7, public=True, by=Actor("the test"))
    cookie = guest.partition("=")[0]
    yield Comer("nobody", {})
    yield Comer("a guess", bearer("iact_guessed"))
    yield Comer("a guessed cookie", {"Cookie": cookies["ada"]["Cookie"].partition("=")[0] + "=guessed"})
    yield Comer("a revoked token", bearer(revoked))
    yield Comer("an expired token", bearer(ends.secret))
    yield Comer("a revoked link", {"Cookie": gone})
    yield Comer("an expired link", {"Cookie": f"{cookie}={past.secret}"})

    person = {name: Principal(user=user, name=name, admin=name == "root") for name, user in ids.items()}
    link = Principal(user="", link="l", scopes=frozenset({"sessions:read"}))
    whole, looking = token_of(product, "ada"), token_of(product, "ada", "sessions:read", called="looks")
    tokens: frozenset[Scope] = frozenset({"sessions:read", "sessions:write", "clear"})
    yield Comer("another user", cookies["dee"], person["dee"])
    yield Comer("an administrator", cookies["root"], person["root"])
    yield Comer("a link", {"Cookie": guest}, link, "reader", "link")
    yield Comer("a reader", cookies["cy"], person["cy"], "reader", "reader")
    yield Comer("a steerer", cookies["bob"], person["bob"], "steerer", "steerer")
    by_token = Principal(user=ids["ada"], name="ada", scopes=tokens)
    by_looks = Principal(user=ids["ada"], name="ada", scopes=frozenset({"sessions:read"}))
    yield Comer("the owner with a token that reads", bearer(looking), by_looks, "owner", "looking")
    yield Comer("the owner with a token", bearer(whole), by_token, "owner", "owner")
    yield Comer("the owner", cookies["ada"], person["ada"], "owner", "owner")


def _offered(server: Server, cookie: Mapping[str, str], session: str) -> str:
    """The path of a download that waits for the owner."""
    with Comer("the owner", cookie).dial(server) as socket:
        acknowledged(socket, {"type": "hello", "session": session})
        return str(acknowledged(socket, {"type": "export"})["href"])
