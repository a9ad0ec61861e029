"""Several users on several hosts: through a gateway, with one database of accounts and one store.

All users have the same as on one machine, and see nothing of other users, whichever hosts serve them. A gateway's
statement about a user is accepted only by the host for which it is made, and only once.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from iact.accounts.accounts import open_accounts
from iact.accounts.people import Actor
from iact.accounts.rights import SCOPES, Principal, Scope
from iact.cluster.statements import StatementWriter, statement_key
from tests.acceptance import test_rights_served as rights
from tests.acceptance.members import PASSWORD, bearer, dial, follow, sign_in, until_record
from tests.acceptance.product import Product, Server, acknowledged, kill, until
from tests.acceptance.test_cluster import Cluster, closed
from tests.acceptance.test_rights_served import Comer
from tests.endpoint import Endpoint, Gate, Reply, Request
from tests.postgres import new_database, postgres_server
from tests.web.test_rights import MISSING, SECRET

_CALL = Actor("the test")


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres_server(tmp_path_factory) as address:
        yield address


@dataclass
class Town(Cluster):
    """A cluster with accounts: Ada, who is an administrator, Bob and Cy."""

    database: str = ""
    lines: tuple[str, ...] = ()
    others: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    def product(self, name: str) -> Product:
        made = super().product(name)
        text = "\n".join(["[accounts]", 'authenticator = "password"', *self.lines, ""])
        (made.data / "iact.toml").write_text(text, encoding="utf-8")
        return replace(made, settings={**made.settings, "IACT_ACCOUNTS_URL": self.database, **self.others})

    def add_people(self) -> None:
        with open_accounts(self.folder, self.database, lambda: 0.0) as accounts:
            for name in ("ada", "bob", "cy"):
                made = accounts.users.add(
                    name, role="admin" if name == "ada" else "user", password=PASSWORD, by=_CALL
                )
                self.ids[name] = made.id

    def token(self, name: str, *scopes: Scope, called: str = "of-a-test") -> str:
        wanted = scopes or tuple(one for one in SCOPES if one != "admin")
        parts = [part for one in wanted for part in ("--scope", one)]
        made = self.product("desk").run("token", "create", called, "--user", name, *parts, "--json")
        assert made.status == 0, made
        return str(json.loads(made.stdout)["token"])

    def told(self) -> list[dict[str, Any]]:
        return list(json.loads(self.run("status", "--json")))

    def incarnation(self, host: str) -> str:
        (found,) = {
            one.name
            for one in (self.folder / "shared" / "hosts").iterdir()
            if one.name.startswith(f"{host}.")
        }
        return found

    def session_of(self, name: str, session: str) -> str:
        return f"{self.ids[name]}/{session}"


@contextmanager
def town(
    folder: Path,
    endpoint: Endpoint,
    server: str,
    *hosts: str,
    lines: tuple[str, ...] = (),
    others: Mapping[str, str] = {},
) -> Iterator[Town]:
    """`lines` of the table of accounts, and `others` of the settings, of every host and gateway."""
    with ExitStack() as processes:
        made = Town(
            folder, endpoint, processes, database=new_database(server), lines=lines, others=dict(others)
        )
        made.add_people()
        for host in hosts:
            made.start_host(host)
        yield made


def greeted(there: ExitStack, server: Server, token: str, session: str | None) -> ClientConnection:
    socket = there.enter_context(dial(server, **bearer(token)))
    acknowledged(socket, {"type": "hello", "session": session, "since": 0})
    return socket


def said(socket: ClientConnection, text: str) -> str:
    session = str(acknowledged(socket, {"type": "say", "text": text})["session"])
    until_record(socket, "reply")
    return session


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
def test_the_audit_has_the_sessions_of_all_users_on_all_hosts(tmp_path: Path, postgres: str) -> None:
    """By the command, on a machine that has none of them, and from the page of whichever host an administrator is led to."""
    with (
        Endpoint(rights.answers) as endpoint,
        town(tmp_path, endpoint, postgres, "a", "b") as hosts,
        hosts.gateway() as server,
    ):
        wanted = set[tuple[str, str, str]]()
        placed = set[str]()
        for name in ("ada", "bob"):
            token = hosts.token(name)
            sockets = [greeted(hosts.processes, server, token, None) for _ in range(2)]
            for socket in sockets:
                session = said(socket, "Hello")
                acknowledged(socket, {"type": "lockdown", "value": True})
                wanted.add((session, hosts.ids[name], name))
                placed.add(hosts.holder(hosts.session_of(name, session)))
        assert placed == {"a", "b"}, "they are spread over the hosts"

        def decided(lines: str) -> set[tuple[str, str, str]]:
            told = [json.loads(line) for line in lines.splitlines()]
            return {(one["session"], one["owner"], one["who"]) for one in told if one["n"]}

        ran = hosts.product("desk").run("audit", "--json", "--what", "lockdown")
        assert ran.status == 0, ran
        assert decided(ran.stdout) == wanted
        admin = bearer(hosts.token("ada", *SCOPES, called="of-an-administrator"))
        for _ in range(2):
            socket = hosts.processes.enter_context(dial(server, **admin))
            acknowledged(socket, {"type": "hello", "session": None, "since": 0})
            told = acknowledged(socket, {"type": "audit.download", "what": "lockdown"})
            got = httpx.get(f"http://127.0.0.1:{server.port}{told['href']}", headers=admin)
            assert got.status_code == 200
            assert decided(got.text) == wanted


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
def test_each_has_their_own_wherever_they_are_served_and_nobody_meets_anothers(
    tmp_path: Path, postgres: str
) -> None:
    with (
        Endpoint(rights.answers) as endpoint,
        town(tmp_path, endpoint, postgres, "a", "b") as hosts,
        hosts.gateway("left") as left,
        hosts.gateway("right") as right,
    ):
        there = hosts.processes
        ada, bob = hosts.token("ada"), hosts.token("bob")
        mine = [greeted(there, left, ada, None) for _ in range(4)]
        sessions = [said(one, f"Is it {SECRET}?") for one in mine]
        placed = {hosts.holder(hosts.session_of("ada", one)) for one in sessions}
        assert placed == {"a", "b"}, "hers are spread over the hosts"

        def lists(socket: ClientConnection, wanted: set[str]) -> bool:
            _, seen = rights.answer(socket, {"type": "sessions"})
            return all(one in seen for one in wanted)

        def finds(socket: ClientConnection) -> set[str]:
            got, _ = rights.answer(socket, {"type": "sessions.search", "query": "know"})
            return {one["id"] for one in got["list"]}

        # Hers are listed and found whichever host she speaks to. (Who asks every 10 ms is told to wait a second.)
        for socket in (mine[0], greeted(there, right, ada, None)):
            until(lambda: lists(socket, set(sessions)), "the list of hers", every=0.2)  # noqa: B023
            until(lambda: finds(socket) == set(sessions), "all of hers to be found", every=0.2)  # noqa: B023
        # Bob, at both hosts, meets none of them: not by its id, by a list, by words, by what is deleted, nor by a fork.
        for session in sessions:
            his = there.enter_context(dial(right, **bearer(bob)))
            for asked in (
                {"type": "hello", "session": session, "since": 0},
                {"type": "open", "journal": session},
                {"type": "session.rename", "session": session, "title": "mine"},
                {"type": "session.archive", "session": session},
                {"type": "session.delete", "sessions": [session]},
                {"type": "session.restore", "sessions": [session]},
                {"type": "session.purge", "sessions": [session]},
            ):
                got, seen = rights.answer(his, asked)
                assert SECRET not in seen
                other, _ = rights.answer(his, json.loads(json.dumps(asked).replace(session, MISSING)))
                # Which host is asked follows from the id that somebody guesses, and tells nothing.
                heard = [
                    json.dumps(one)
                    .replace(session, "S")
                    .replace(MISSING, "S")
                    .replace(f"{tmp_path}/b", f"{tmp_path}/a")
                    for one in (got, other)
                ]
                assert heard[0] == heard[1], asked
            for asked in (
                {"type": "sessions"},
                {"type": "sessions.search", "query": SECRET},
                {"type": "session.deleted"},
            ):
                _, seen = rights.answer(his, asked)
                assert session not in seen
                assert SECRET not in seen
        # Nothing of hers is in a part of the store or of a host's directory that is his.
        for place in (tmp_path / "shared", tmp_path / "a", tmp_path / "b"):
            for one in (place / "users" / hosts.ids["bob"]).rglob("*"):
                assert not one.is_file() or SECRET.encode() not in one.read_bytes()
        # What she exports waits for her, at the host that it is at, and not for him.
        link = str(acknowledged(mine[0], {"type": "export"})["href"])
        address = f"http://127.0.0.1:{right.port}{link}"
        assert httpx.get(address, headers=bearer(bob)).status_code == 404
        fetched = httpx.get(address, headers=bearer(ada))
        assert fetched.status_code == 200
        assert SECRET in fetched.text


def slowly_held(gate: Gate) -> Callable[[Request], Reply | str]:
    """Replies that stop half-way at `gate` where a person asks slowly."""

    def replies(request: Request) -> Reply | str:
        if "slowly" in request.last:
            return Reply("It is slow in coming.", gates={5: gate}, repeat=True)
        return "Yes."

    return replies


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
def test_a_host_is_killed_while_one_works_and_others_notice_nothing(tmp_path: Path, postgres: str) -> None:
    gate = Gate()
    with (
        Endpoint(slowly_held(gate), crashes=True) as endpoint,
        town(tmp_path, endpoint, postgres, "a", "b") as hosts,
        hosts.gateway() as server,
    ):
        there = hosts.processes
        ada, bob = hosts.token("ada"), hosts.token("bob")
        hers = greeted(there, server, ada, None)
        session = said(hers, "First")
        here = hosts.holder(hosts.session_of("ada", session))
        his = greeted(there, server, bob, None)
        other = said(his, "Mine")
        if hosts.holder(hosts.session_of("bob", other)) == here:
            elsewhere = "b" if here == "a" else "a"
            assert hosts.run("move", other, elsewhere).startswith(
                f"The session {other} is now on the host {elsewhere}"
            )
            assert closed(his) == 4009
            his = greeted(there, server, bob, other)
        acknowledged(hers, {"type": "say", "text": "Say it slowly"})
        assert gate.wait()
        kill(hosts.hosts[here])
        assert closed(hers) == 1013
        assert said(his, "Still there?") == other, "his host and his line are what they were"
        gate.release()
        hers = greeted(there, server, ada, session)
        there_now = hosts.holder(hosts.session_of("ada", session))
        assert there_now != here
        assert said(hers, "Second") == session
        journal = tmp_path / there_now / "users" / hosts.ids["ada"]
        ran = replace(hosts.product(there_now), data=journal)
        ran = replace(
            ran, settings={**ran.settings, "IACT_STORE": f"file://{tmp_path}/shared/users/{hosts.ids['ada']}"}
        )
        verified = ran.run("replay", "--verify", session)
        assert verified.status == 0, verified


def test_what_a_gateway_says_is_believed_once_by_the_host_that_it_is_for(
    tmp_path: Path, postgres: str
) -> None:
    with (
        Endpoint({"/": [Reply("Yes.", repeat=True)]}) as endpoint,
        town(tmp_path, endpoint, postgres, "a", "b") as hosts,
    ):
        at = {str(one["host"]): str(one["page"]) for one in hosts.told()}
        who = Principal(user=hosts.ids["ada"], name="ada", admin=True, key="header")
        key = statement_key((tmp_path / "seal.key").read_bytes())
        good = StatementWriter(key)

        def enters(host: str, headers: Mapping[str, str], path: str = "/ws") -> bool:
            address = f"ws://{at[host]}{path}"
            try:
                with connect(address, additional_headers=headers, proxy=None, close_timeout=0.2) as socket:
                    acknowledged(socket, {"type": "hello", "session": None})
            except InvalidStatus:
                return False
            return True

        a, b = hosts.incarnation("a"), hosts.incarnation("b")
        first = good.header(who, a, "/ws")
        assert enters("a", first)
        assert not enters("a", first), "it was used"
        assert not enters("b", good.header(who, a, "/ws")), "it is for another host"
        assert not enters("b", good.header(who, b, "/download/x")), "it is for another path"
        for seconds in (-3600.0, -90.0, 90.0, 3600.0):
            late = StatementWriter(key, lambda: time.time() + seconds)  # noqa: B023 - within the round
            assert not enters("b", late.header(who, b, "/ws")), seconds
        forged = StatementWriter(statement_key(b"x" * 32)).header(who, b, "/ws")
        assert not enters("b", forged)
        scheme, _, told = good.header(who, b, "/ws")["Authorization"].partition(" ")
        said, _, signature = told.partition(".")
        changed = json.loads(base64.urlsafe_b64decode(said)) | {"user": hosts.ids["bob"]}
        other = base64.urlsafe_b64encode(json.dumps(changed).encode()).decode()
        assert not enters("b", {"Authorization": f"{scheme} {other}.{signature}"})
        nobody = Principal(user=hosts.ids["ada"], name="ada", key="sign-in 0000")
        assert not enters("b", good.header(nobody, b, "/ws")), "there is no such sign-in"
        # What is good at a gateway is nothing at a host; and what a client says in place of a gateway is nothing there.
        token = hosts.token("bob")
        assert not enters("b", bearer(token))
        with hosts.gateway() as server:
            cookie = sign_in(server, "bob").headers["set-cookie"].partition(";")[0]
            assert not enters("b", {"Cookie": cookie, "Origin": f"http://{at['b']}"})
            with pytest.raises(InvalidStatus):
                dial(server, **good.header(who, b, "/ws"))
            with dial(server, **bearer(token)) as socket:
                answered, _ = rights.answer(socket, {"type": "users"})
                assert answered["code"] == "forbidden"
                answered, _ = rights.answer(socket, {"type": "address"})
                assert answered["code"] == "forbidden"


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
def test_sharing_links_and_what_is_taken_back(tmp_path: Path, postgres: str) -> None:
    with (
        Endpoint(rights.answers) as endpoint,
        town(tmp_path, endpoint, postgres, "a", "b", lines=("public_links = true",)) as hosts,
        hosts.gateway() as server,
    ):
        there = hosts.processes
        bob, cy = hosts.token("bob"), hosts.token("cy")
        his = greeted(there, server, bob, None)
        session = said(his, f"Is it {SECRET}?")
        acknowledged(his, {"type": "share", "name": "cy", "role": "reader"})
        reading = there.enter_context(dial(server, **bearer(cy)))
        reading.send(json.dumps({"type": "hello", "session": session, "since": 0, "id": 1}))
        assert SECRET in json.dumps(until_record(reading, "reply"))
        for message in ({"type": "say", "text": "No."}, {"type": "inject", "path": "/", "text": "No."}):
            assert rights.answer(reading, message)[0]["code"] == "forbidden"
        # Made a steerer, they are led in anew, and may speak; nobody else may.
        acknowledged(his, {"type": "share", "name": "cy", "role": "steerer"})
        assert closed(reading) == 4003
        steering = greeted(there, server, cy, session)
        assert said(steering, "And you?") == session
        assert until_record(his, "say")["body"]
        acknowledged(his, {"type": "unshare", "name": "cy"})
        assert closed(steering) == 4003
        gone, seen = rights.answer(
            there.enter_context(dial(server, **bearer(cy))), {"type": "hello", "session": session, "since": 0}
        )
        assert gone["type"] == "error"
        assert SECRET not in seen
        # A link is looked at without an account, and by nobody when it was taken back.
        made = acknowledged(his, {"type": "link.create", "public": True})
        secret = str(made["path"] if "path" in made else made["url"]).rpartition("/link/")[2]
        address = f"http://127.0.0.1:{server.port}"
        followed = httpx.post(f"{address}/link/{secret}", headers={"Origin": address}, trust_env=False)
        assert followed.status_code == 200, followed.text
        cookie = followed.headers["set-cookie"].partition(";")[0]
        looking = there.enter_context(dial(server, Cookie=cookie, Origin=address))
        looking.send(json.dumps({"type": "hello", "session": None, "since": 0, "id": 1}))
        assert SECRET in json.dumps(until_record(looking, "reply"))
        assert rights.answer(looking, {"type": "say", "text": "No."})[0]["code"] == "forbidden"
        assert rights.answer(looking, {"type": "sessions"})[0]["code"] == "forbidden"
        listed = acknowledged(his, {"type": "sharing"})["links"]
        assert isinstance(listed, list)
        acknowledged(his, {"type": "link.revoke", "link": listed[0]["id"]})
        assert closed(looking) == 4003
        with pytest.raises(InvalidStatus):
            dial(server, Cookie=cookie, Origin=address)
        # A token that is revoked is refused at once, and ends what is open within two looks.
        assert hosts.product("desk").run("token", "revoke", "of-a-test", "--user", "bob").status == 0
        with pytest.raises(InvalidStatus):
            dial(server, **bearer(bob))
        assert closed(his) == 4003


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
def test_quotas_hold_over_two_hosts(tmp_path: Path, postgres: str) -> None:
    """Of sessions at work, and of tokens: eight that ask at once, on two hosts, take no more than there is."""
    gate = Gate()
    with (
        Endpoint(slowly_held(gate)) as endpoint,
        town(tmp_path, endpoint, postgres, "a", "b") as hosts,
        hosts.gateway() as server,
    ):
        there, desk = hosts.processes, hosts.product("desk")
        bob = hosts.token("bob")
        sockets = [greeted(there, server, bob, None) for _ in range(8)]
        sessions = [said(one, "First") for one in sockets]
        at = {one: hosts.holder(hosts.session_of("bob", one)) for one in sessions}
        assert set(at.values()) == {"a", "b"}
        assert desk.run("quota", "set", "--user", "bob", "--sessions", "1").status == 0
        acknowledged(sockets[0], {"type": "say", "text": "Say it slowly"})
        assert gate.wait()
        other = next(n for n, one in enumerate(sessions) if at[one] != at[sessions[0]])
        acknowledged(sockets[other], {"type": "say", "text": "And now?"})
        refused = json.dumps(until_record(sockets[other], "reply"))
        assert "No more than 1 of your sessions may work at once" in refused
        gate.release()
        until_record(sockets[0], "reply")
        assert said(sockets[other], "And now?") == sessions[other]

        def used() -> tuple[int, int]:
            (row,) = [
                one for one in json.loads(desk.run("usage", "--json").stdout)["usage"] if one["name"] == "bob"
            ]
            return row["tokens"], row["calls"]

        before, calls = used()
        most = before + 20_000
        assert desk.run("quota", "set", "--user", "bob", "--tokens", str(most)).status == 0
        asked = len(endpoint.requests)
        for round_ in range(4):
            for one in sockets:
                one.send(json.dumps({"type": "say", "text": f"Round {round_} {'word ' * 300}", "id": "say"}))
            answers = [json.dumps(until_record(one, "reply")) for one in sockets]
            if all("Your quota is" in one for one in answers):
                break
        else:
            pytest.fail("the quota never ended it")
        after, made = used()
        assert after <= most
        assert made - calls == len(endpoint.requests) - asked > 0, (
            "each call that was made is counted, and no other"
        )


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
def test_a_group_shares_its_modules_and_its_money_over_two_hosts(tmp_path: Path, postgres: str) -> None:
    """One has the group's only module on one host; the other gets none on the other host until it is free. Money likewise."""

    def replies(request: Request) -> str:
        if "WAIT" in request.last:
            return "```BASH\nuntil [ -e go ]; do sleep 0.1; done; echo went\n```"
        if "LOOK" in request.last:
            return "```BASH\necho hello\n```"
        return "That is that."

    others = {
        "IACT_SANDBOX": "bubblewrap", "IACT_IDLE": "1", "IACT_PRICE_PROMPT": "10", "IACT_PRICE_COMPLETION": "10",
    }  # fmt: skip
    with (
        Endpoint(replies) as endpoint,
        town(tmp_path, endpoint, postgres, "a", "b", others=others) as hosts,
        hosts.gateway() as server,
    ):
        there, desk = hosts.processes, hosts.product("desk")
        for name in ("bob", "cy"):
            assert desk.run("user", "groups", name, "--group", "staff").status == 0
        # Sessions are shared out, so that each has one on either host.
        at = dict[tuple[str, str], ClientConnection]()
        sessions = dict[str, str]()
        for name in ("bob", "cy"):
            token = hosts.token(name)
            for _ in range(8):
                socket = greeted(there, server, token, None)
                session = said(socket, "First")
                host = hosts.holder(hosts.session_of(name, session))
                at.setdefault((name, host), socket)
                sessions.setdefault(name, session) if host == "a" else None
        bobs, cys = at["bob", "a"], at["cy", "b"]

        assert desk.run("quota", "set", "--group", "staff", "--containers", "1").status == 0
        acknowledged(bobs, {"type": "say", "text": "WAIT"})
        until_record(bobs, "call")

        def look(*, until: str) -> str:
            acknowledged(cys, {"type": "say", "text": "LOOK"})
            found = json.dumps(until_record(cys, until))
            until_record(cys, "reply")
            return found

        assert "No more than 1 modules of the group staff may run at once" in look(until="notice")
        (
            tmp_path / "a" / "users" / hosts.ids["bob"] / "sessions" / sessions["bob"] / "workspace" / "go"
        ).touch()
        assert "went" in json.dumps(until_record(bobs, "result"))
        until_record(bobs, "reply")
        until(lambda: "hello" in look(until="result"), "the group's module", every=0.5)

        def spent() -> float:
            rows = json.loads(desk.run("usage", "--json").stdout)["usage"]
            return float(sum(one["money"] for one in rows if one["name"] in ("bob", "cy")))

        most = spent() + 0.5
        assert desk.run("quota", "set", "--group", "staff", "--money", str(most)).status == 0
        asked = len(endpoint.requests)
        for _ in range(40):
            for socket in (bobs, cys):
                socket.send(json.dumps({"type": "say", "text": "More", "id": "say"}))
            answers = [json.dumps(until_record(one, "reply")) for one in (bobs, cys)]
            if all("The quota of the group staff is" in one for one in answers):
                break
        else:
            pytest.fail("the quota never ended it")
        assert len(endpoint.requests) > asked
        assert spent() <= most
        for process in hosts.hosts.values():  # with their modules, which a kill would leave
            process.terminate()
            assert process.wait(300) == 0


@pytest.mark.no_prefix_law("several sessions speak to one endpoint")
def test_every_message_and_route_by_whom_it_is_through_a_gateway(tmp_path: Path, postgres: str) -> None:
    """As on one machine (`test_rights_served.py`), by the product's own tables; and again after the host was killed."""
    with (
        Endpoint(rights.answers, crashes=True) as endpoint,
        town(tmp_path, endpoint, postgres, "a", lines=("public_links = true",)) as hosts,
        hosts.gateway() as server,
    ):
        cookies = {name: rights.cookie_of(server, name) for name in hosts.ids}
        token, looking = hosts.token("bob"), hosts.token("bob", "sessions:read", called="looks")
        with Comer("the owner", cookies["bob"]).dial(server) as socket:
            acknowledged(socket, {"type": "hello", "session": None})
            session = said(socket, f"Is it {SECRET}?")
            acknowledged(socket, {"type": "share", "name": "cy", "role": "reader"})
            made = acknowledged(socket, {"type": "link.create", "public": True})
            guest = follow(server, str(made["path"]))
        person = {
            name: Principal(user=one, name=name, admin=name == "ada") for name, one in hosts.ids.items()
        }
        reads: frozenset[Scope] = frozenset({"sessions:read"})
        acts: frozenset[Scope] = frozenset({"sessions:read", "sessions:write", "clear"})
        of_link, by_token = Principal(user="", link="l", scopes=reads), replace(person["bob"], scopes=acts)
        by_looks = replace(person["bob"], scopes=reads)
        others = [
            Comer("nobody", {}),
            Comer("a guess", bearer("iact_guessed")),
            Comer("an administrator", cookies["ada"], person["ada"]),
            Comer("a link", {"Cookie": guest}, of_link, "reader", "link"),
            Comer("a reader", cookies["cy"], person["cy"], "reader", "reader"),
        ]
        owners = [
            Comer("the owner with a token that reads", bearer(looking), by_looks, "owner", "looking"),
            Comer("the owner with a token", bearer(token), by_token, "owner", "owner"),
            Comer("the owner", cookies["bob"], person["bob"], "owner", "owner"),
        ]
        place = tmp_path / "shared" / "users" / hosts.ids["bob"] / "sessions"
        for _ in range(2):
            with owners[-1].dial(server) as socket:
                acknowledged(socket, {"type": "hello", "session": session})
                offered = str(acknowledged(socket, {"type": "export"})["href"])
            before = rights.settled(place)
            for one in others:
                if one.who is None:
                    rights.is_let_in_nowhere(server, one)
                elif one.role is None:
                    rights.hears_nothing(server, one, session)
                else:
                    rights.is_refused_what_they_may_not(server, one, session)
                rights.routes_are_for_whom_they_are(server, one, offered)
            assert rights.held(place) == before, "of all these, nobody changed anything"
            for one in owners:
                rights.is_refused_what_they_may_not(server, one, session)
            kill(hosts.hosts["a"])
            hosts.start_host("a")


def test_who_signs_in_at_one_gateway_is_known_at_the_others_until_they_sign_out(
    tmp_path: Path, postgres: str
) -> None:
    with (
        Endpoint({"/": [Reply("Yes.", repeat=True)]}) as endpoint,
        town(tmp_path, endpoint, postgres, "a") as hosts,
        hosts.gateway("left") as left,
        hosts.gateway("right") as right,
    ):
        at = {one.port: f"http://127.0.0.1:{one.port}" for one in (left, right)}
        assert sign_in(left, "bob", "wrong").status_code == 401
        cookie = sign_in(left, "bob").headers["set-cookie"].partition(";")[0]

        def whose(server: Server, **headers: str) -> int:
            address = f"{at[server.port]}/account"
            return httpx.get(address, headers={"Cookie": cookie, **headers}, trust_env=False).status_code

        assert (whose(left), whose(right)) == (200, 200)
        for origin in ("http://elsewhere.example", "null"):
            with pytest.raises(InvalidStatus):
                dial(right, Cookie=cookie, Origin=origin)
            away = {"Cookie": cookie, "Origin": origin}
            assert httpx.post(f"{at[right.port]}/sign-out", headers=away, trust_env=False).status_code == 403
        socket = hosts.processes.enter_context(dial(right, Cookie=cookie, Origin=at[right.port]))
        acknowledged(socket, {"type": "hello", "session": None})
        assert said(socket, "Hello")
        mine = {"Cookie": cookie, "Origin": at[left.port]}
        assert httpx.post(f"{at[left.port]}/sign-out", headers=mine, trust_env=False).status_code == 200
        assert whose(right) == 401
        assert closed(socket) == 4003
        # Five attempts for a name, at whichever gateways.
        tried = [sign_in((left, right)[n % 2], "cy", "wrong").status_code for n in range(7)]
        assert tried[:5] == [401] * 5
        assert 429 in tried[5:]
