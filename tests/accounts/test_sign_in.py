"""Signing in, as a user, a program and an attacker: a real server, a real provider, real requests."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import pytest
from joserfc.jwk import RSAKey
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from iact.accounts.accounts import Accounts, open_accounts
from iact.accounts.authentication import Authentication, AuthenticationRules
from iact.accounts.oidc import OidcClient, OidcProvider
from iact.accounts.people import Actor, AuthenticatorName, SessionGrant
from iact.accounts.rights import WORDS, LinkView, Scope
from iact.accounts.sign_in_routes import SignInRoutes
from iact.core.errors import UsageError
from iact.web.server import WebServer
from tests.accounts.provider import Provider, provider, query_of
from tests.web.people import town

pytestmark = pytest.mark.filterwarnings(
    "ignore:get_jwt_config:DeprecationWarning"
)  # of the provider's own parts

BY = Actor("root")
PASSWORD = "correct horse battery"
DAY = 86400.0


@dataclass
class Clock:
    """Time that passes when a test says so."""

    at: float = field(default_factory=time.time)

    def __call__(self) -> float:
        return self.at


@dataclass
class Place:
    """A server with accounts, and what a test needs of it."""

    server: WebServer
    accounts: Accounts
    clock: Clock
    rules: AuthenticationRules

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def person(self, **cookies: str) -> Person:
        """Somebody with a browser of their own."""
        kept = httpx.Cookies()
        for name, value in cookies.items():
            kept.set(name, value, domain="127.0.0.1", path="/")
        agent = {"User-Agent": "a test"}
        return Person(self, httpx.AsyncClient(base_url=self.url, cookies=kept, headers=agent))

    def events(self) -> list[tuple[str, str]]:
        return [(one.kind, one.who) for one in self.accounts.audit.events()]


@dataclass
class Person:
    """A browser, without its cleverness."""

    place: Place
    http: httpx.AsyncClient

    @property
    def secret(self) -> str:
        return self.http.cookies.get(self.place.rules.cookie_name) or ""

    async def post(self, path: str, **options: Any) -> httpx.Response:
        return await self.http.post(path, **{"headers": {"Origin": self.place.url}, **options})

    async def sign_in(self, name: str, password: str = PASSWORD) -> httpx.Response:
        return await self.post("/sign-in", auth=(name, password))

    async def name(self) -> str | None:
        """Who the server says they are; the page itself is let through or not, likewise."""
        told = await self.http.get("/account")
        page = await self.http.get("/")
        assert page.status_code == (200 if told.status_code == 200 else 303), (told.text, page)
        if told.status_code != 200:
            with pytest.raises(InvalidStatus):
                await self._greeted()
            return None
        await self._greeted()
        return str(told.json()["name"])

    async def _greeted(self) -> None:
        headers = {"Cookie": f"{self.place.rules.cookie_name}={self.secret}"} if self.secret else {}
        origin = self.place.url
        async with connect(f"ws{origin[4:]}/ws", additional_headers=headers, origin=origin):  # type: ignore[arg-type]
            pass


@asynccontextmanager
async def served(
    data: Path,
    authenticator: AuthenticatorName,
    *,
    clock: Clock | None = None,
    at: Provider | None = None,
    **rules: Any,
) -> AsyncIterator[Place]:
    """A server; `at`: the provider at which people sign in."""
    clock = clock or Clock()
    given = AuthenticationRules(authenticator=authenticator, cookie="iact_test", **rules)
    with open_accounts(data, None, clock, public_links=True) as accounts:
        authentication = Authentication(accounts, given)
        there = None
        if at is not None:
            client = OidcClient(
                issuer=at.url, client="iact", redirect="http://iact.test/sign-in/return", secret="a secret/+"
            )
            there = OidcProvider(client, accounts.database, clock)
        entrance = SignInRoutes(accounts, authentication, there)
        async with town(data, authentication, {}, entrance=entrance) as place:
            yield Place(place.server, accounts, clock, given)


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 120))


def stored(data: Path) -> bytes:
    """All that is on disk of accounts."""
    return b"".join(one.read_bytes() for one in data.glob("accounts.db*"))


# --- passwords ------------------------------------------------------------------------------------


def test_whoever_knows_the_password_is_in_until_they_sign_out_and_a_restart_changes_nothing(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with served(tmp_path, "password") as place:
            place.accounts.users.add("Ada", password=PASSWORD, by=BY)
            ada = place.person()
            assert await ada.name() is None
            assert (await ada.http.get("/", headers={"Accept": "text/html"})).headers[
                "location"
            ] == "/sign-in"
            for name, password in (("ada", "wrong"), ("nobody", PASSWORD), ("local", PASSWORD), ("ada", "")):
                refused = await ada.sign_in(name, password)
                assert (refused.status_code, refused.json()) == (
                    401,
                    {"problem": "The name or the password is wrong."},
                )
            assert (await ada.sign_in("ADA")).status_code == 200
            header = (await ada.sign_in("ada")).headers["set-cookie"]
            assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {*header.split("; ")}
            assert await ada.name() == "Ada"
            kept = ada.secret
            assert kept.encode() not in stored(tmp_path)
        async with served(tmp_path, "password") as place:
            again = place.person(iact_test=kept)
            assert await again.name() == "Ada"
            await again.post("/sign-out")
            assert await place.person(iact_test=kept).name() is None
            assert ("user.added", "root") in place.events()
            kinds = [kind for kind, _ in place.events()]
            assert (kinds.count("sign-in.failed"), kinds.count("sign-in"), kinds.count("sign-out")) == (
                4,
                2,
                1,
            )

    run(main)


def test_a_sign_in_that_somebody_else_prepared_is_worth_nothing(tmp_path: Path) -> None:
    """Session fixation: a cookie that was there before is never let in, not even one that was good for somebody."""

    async def main() -> None:
        async with served(tmp_path, "password") as place:
            for name in ("ada", "eve"):
                place.accounts.users.add(name, password=PASSWORD, by=BY)
            eve = place.person()
            await eve.sign_in("eve")
            for planted in ("a" * 43, eve.secret):
                ada = place.person(iact_test=planted)
                assert (await ada.sign_in("ada")).status_code == 200
                assert ada.secret != planted
                assert await place.person(iact_test=planted).name() is None
            doubled = place.person()
            doubled.http.headers["Cookie"] = f"iact_test={ada.secret}; iact_test={'a' * 43}"
            assert (await doubled.http.get("/account")).status_code == 401

    run(main)


def test_a_sign_in_ends_when_it_is_not_used_revoked_disabled_or_the_password_changes(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, "password") as place:
            users, sign_ins = place.accounts.users, place.accounts.sign_ins
            ada = users.add("ada", password=PASSWORD, by=BY)
            ends: list[Callable[[], None]] = [
                lambda: setattr(place.clock, "at", place.clock.at + 14.01 * DAY),
                lambda: sign_ins.end(ada.id, sign_ins.of(ada.id)[0].id),
                lambda: sign_ins.end(ada.id),
                lambda: users.set_password("ada", PASSWORD, by=BY),
                lambda: users.disable("ada", by=BY),
            ]
            for end in ends:
                person = place.person()
                assert (await person.sign_in("ada")).status_code == 200
                for _ in range(2):  # what is used lasts
                    place.clock.at += 10 * DAY
                    assert await person.name() == "ada"
                end()
                assert await person.name() is None
            assert (await place.person().sign_in("ada")).status_code == 401
            users.enable("ada", by=BY)
            assert (await place.person().sign_in("ada")).status_code == 200

    run(main)


def test_guessing_is_slowed_down_also_after_a_restart_and_locks_nobody_else_out(tmp_path: Path) -> None:
    async def main() -> None:
        clock = Clock()
        async with served(tmp_path, "password", clock=clock, proxies=(ip_network("127.0.0.1"),)) as place:
            place.accounts.users.add("ada", password=PASSWORD, by=BY)
            eve, at = place.person(), {"X-Forwarded-For": "198.51.100.7"}
            told = [
                (
                    await eve.post(
                        "/sign-in", auth=("ada", f"guess {n}"), headers={"Origin": place.url, **at}
                    )
                ).status_code
                for n in range(7)
            ]
            assert told == [401] * 5 + [429] * 2
        async with served(tmp_path, "password", clock=clock, proxies=(ip_network("127.0.0.1"),)) as place:
            eve, origin = place.person(), {"Origin": place.url}
            late = await eve.post("/sign-in", auth=("ada", PASSWORD), headers={**origin, **at})
            assert (late.status_code, int(late.headers["retry-after"])) == (429, 30)
            elsewhere = {**origin, "X-Forwarded-For": "198.51.100.7, 203.0.113.9"}
            assert (
                await place.person().post("/sign-in", auth=("ada", PASSWORD), headers=elsewhere)
            ).status_code == 200
            clock.at += 30
            assert (
                await eve.post("/sign-in", auth=("ada", PASSWORD), headers={**origin, **at})
            ).status_code == 200

    run(main)


def test_another_site_signs_nobody_in_or_out(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, "password") as place:
            place.accounts.users.add("ada", password=PASSWORD, by=BY)
            ada = place.person()
            await ada.sign_in("ada")
            for path, method in itertools.product(("/sign-in", "/sign-out", "/link/x"), ("POST", "GET")):
                for origin in ("https://evil.example", "null"):
                    answer = await ada.http.request(
                        method, path, headers={"Origin": origin}, auth=("ada", PASSWORD)
                    )
                    assert answer.status_code == 403
                assert (await ada.http.request("POST", path)).status_code == 403
            assert await ada.name() == "ada"

    run(main)


# --- tokens ---------------------------------------------------------------------------------------


def test_a_token_is_good_for_its_scopes_until_its_end_and_a_cookie_makes_up_for_none(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, "password") as place:
            ada = place.accounts.users.add("ada", password=PASSWORD, role="admin", by=BY)
            scopes: tuple[Scope, ...] = ("sessions:read",)
            shown = [place.accounts.tokens.create(ada, f"t{n}", scopes, days=1 + n, by=BY) for n in range(3)]
            signed_in = place.person()
            await signed_in.sign_in("ada")

            async def told(secret: str) -> Any:
                answer = await signed_in.http.get("/account", headers={"Authorization": f"Bearer {secret}"})
                return answer.json() if answer.status_code == 200 else answer.status_code

            assert await told(shown[0].secret) == {"name": "ada", "admin": False, "scopes": ["sessions:read"]}
            files = stored(tmp_path)
            assert shown[0].secret.encode() not in files
            for guess in (
                "iact_" + "a" * 43,
                shown[0].secret[:-1],
                shown[0].secret.upper(),
                shown[0].id,
                "local",
            ):
                assert await told(guess) == 401, guess
            place.accounts.tokens.revoke(ada, "t1", by=BY)
            place.clock.at += 1.5 * DAY
            assert [await told(one.secret) for one in shown[:2]] == [401, 401]
            assert (await told(shown[2].secret))["name"] == "ada"
            assert {one.name for one in place.accounts.tokens.of(ada.id)} == {"t0", "t2"}
            place.accounts.users.disable("ada", by=BY)
            assert await told(shown[2].secret) == 401

    run(main)


def test_only_an_administrator_makes_a_token_for_administrators(tmp_path: Path) -> None:
    with open_accounts(tmp_path, None, Clock()) as accounts:
        ada = accounts.users.add("ada", by=BY)
        with pytest.raises(UsageError, match="administrator"):
            accounts.tokens.create(ada, "t", ("admin",), days=1, by=BY)


@pytest.mark.parametrize("scope", ["clear", "admin"])
def test_a_program_that_passes_on_what_others_write_agrees_to_nothing(tmp_path: Path, scope: Scope) -> None:
    with open_accounts(tmp_path, None, Clock()) as accounts:
        ada = accounts.users.add("ada", role="admin", by=BY)
        with pytest.raises(UsageError, match="passes on what others write"):
            accounts.tokens.create(ada, "bot", ("sessions:write", scope), days=1, by=BY, words="none")


def test_a_token_says_what_counts_as_its_users_words(tmp_path: Path) -> None:
    with open_accounts(tmp_path, None, Clock()) as accounts:
        ada = accounts.users.add("ada", by=BY)
        for words in WORDS:
            shown = accounts.tokens.create(ada, words, ("sessions:write",), days=1, by=BY, words=words)
            found = accounts.tokens.find(shown.secret)
            assert found is not None
            assert found.words == words
        plain = accounts.tokens.create(ada, "plain", ("sessions:write",), days=1, by=BY)
        assert {token.words for token in accounts.tokens.of(ada.id) if token.id == plain.id} == {"newest"}


# --- a proxy that says who it is ---------------------------------------------------------------------


def test_a_header_counts_from_the_named_address_alone(tmp_path: Path) -> None:
    async def main() -> None:
        told = {"X-Forwarded-User": "Ada", "X-Groups": "staff, ops"}
        ours = (ip_network("127.0.0.1"),)
        async with served(tmp_path, "header", proxies=(ip_network("10.0.0.0/8"),)) as place:
            stranger = place.person()
            stranger.http.headers.update({**told, "X-Forwarded-For": "10.0.0.1"})
            assert await stranger.name() is None
            assert place.events() == [("sign-in.failed", "")]
            assert place.accounts.users.all() == []
        async with served(
            tmp_path, "header", proxies=ours, groups_header="X-Groups", admins=frozenset(("group:ops",))
        ) as place:
            ada = place.person()
            assert await ada.name() is None
            ada.http.headers.update(told)
            found = (await ada.http.get("/account")).json()
            assert (found["name"], found["admin"]) == ("Ada", True)
            both = await ada.http.get("/account", headers=[("X-Forwarded-User", "Eve")])
            assert both.json()["name"] != "Ada"
            (known,) = [one for one in place.accounts.users.all() if one.name == "Ada"]
            assert known.groups == {"staff", "ops"}
            found = (await ada.http.get("/account", headers={"X-Groups": "staff"})).json()
            assert not found["admin"]
            place.accounts.users.disable("Ada", by=BY)
            assert (await ada.http.get("/account")).status_code == 401
        async with served(tmp_path, "header", proxies=ours, create=False) as place:
            bob = place.person()
            bob.http.headers["X-Forwarded-User"] = "bob"
            assert (await bob.http.get("/account")).status_code == 401
            assert "no account" in (await bob.http.get("/sign-in/ways")).json()["problem"]
            place.accounts.users.add("bob", by=BY)
            assert (await bob.http.get("/account")).json()["name"] == "bob"

    run(main)


@pytest.mark.parametrize(
    ("admins", "name", "groups", "is_admin"),
    [
        (["platform-admins"], "platform-admins", "", True),
        (["group:platform-admins"], "platform-admins", "", False),
        (["group:platform-admins"], "group:platform-admins", "", False),
        (["platform-admins"], "eve", "platform-admins", False),
        (["group:platform-admins"], "ada", "staff, platform-admins", True),
        (["group:Platform-Admins"], "ada", "platform-ADMINS", True),
        (["group:platform-admins"], "eve", "group:platform-admins", False),
        (["group:"], "eve", "", False),
        (["ada", "group:ops"], "ada", "", True),
        (["ada", "group:ops"], "eve", "ada", False),
    ],
)
def test_a_person_is_not_the_group_of_their_name(
    tmp_path: Path, admins: list[str], name: str, groups: str, is_admin: bool
) -> None:
    async def main() -> None:
        ours = (ip_network("127.0.0.1"),)
        async with served(
            tmp_path, "header", proxies=ours, groups_header="X-Groups", admins=frozenset(admins)
        ) as place:
            person = place.person()
            person.http.headers.update({"X-Forwarded-User": name, "X-Groups": groups})
            answer = await person.http.get("/account")
            assert answer.status_code == 401 or answer.json()["admin"] is is_admin
            assert answer.status_code == 200 or not is_admin

    run(main)


# --- a provider ---------------------------------------------------------------------------------------

KNOWN: dict[str, dict[str, object]] = {
    "s-ada": {"preferred_username": "ada", "groups": ["staff", "ops"]},
    "s-eve": {"preferred_username": "eve"},
    "s-thief": {"preferred_username": "ada"},
}


@pytest.fixture(scope="module")
def shared_provider() -> Iterator[Provider]:
    with provider(KNOWN) as made:
        yield made


@pytest.fixture
def there(shared_provider: Provider) -> Provider:
    """The provider, behaving as it should."""
    fresh = Provider()
    for name in ("key", "header", "change", "replayed"):
        setattr(shared_provider, name, getattr(fresh, name))
    return shared_provider


async def sent(person: Person) -> str:
    """The address to which the server sends somebody."""
    answer = await person.http.get("/sign-in/provider")
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


async def back(person: Person, address: str) -> str:
    """They come back; where they are led, or why not."""
    answer = await person.http.get(f"/sign-in/return?{address.partition('?')[2]}")
    assert answer.status_code == 303
    return str(answer.headers["location"])


def test_whom_the_provider_vouches_for_is_in_with_the_groups_that_it_tells(
    tmp_path: Path, there: Provider
) -> None:
    async def main() -> None:
        async with served(tmp_path, "oidc", at=there, admins=frozenset(("group:Ops",))) as place:
            ada = place.person()
            address = await sent(ada)
            asked = query_of(address)
            assert asked["code_challenge_method"] == "S256"
            assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3
            there_cookie = place.rules.cookie + "_return"
            assert ada.http.cookies.get(there_cookie)
            agreed = await asyncio.to_thread(there.agree, address, "s-ada")
            assert await back(ada, agreed) == "/sign-in?done"
            assert await ada.name() == "ada"
            assert (await ada.http.get("/account")).json()["admin"] is True
            (user,) = place.accounts.users.all()
            assert user.groups == {"staff", "ops"}
            # No password of theirs can be guessed, for they have none.
            assert (await place.person().sign_in("ada", "")).status_code == 404

            thief = place.person()
            agreed = await asyncio.to_thread(there.agree, await sent(thief), "s-thief")
            assert await back(thief, agreed) == "/sign-in?failed"
            assert await thief.name() is None
            place.accounts.users.disable("ada", by=BY)
            assert await ada.name() is None
            agreed = await asyncio.to_thread(there.agree, await sent(ada), "s-ada")
            assert await back(ada, agreed) == "/sign-in?failed"

    run(main)


def test_a_return_is_good_once_in_the_browser_that_was_sent_and_not_for_long(
    tmp_path: Path, there: Provider
) -> None:
    async def main() -> None:
        async with served(tmp_path, "oidc", at=there) as place:
            ada, eve = place.person(), place.person()
            # Eve has Ada come back with Eve's code, so that Ada works in Eve's account; or steals Ada's.
            for sender, comer in ((eve, ada), (ada, eve)):
                agreed = await asyncio.to_thread(there.agree, await sent(sender), "s-eve")
                await sent(comer)
                assert await back(comer, agreed) == "/sign-in?failed"
                assert await back(sender, agreed) == "/sign-in?failed", "it was used up"
            agreed = await asyncio.to_thread(there.agree, await sent(ada), "s-ada")
            assert await back(ada, agreed) == "/sign-in?done"
            await ada.post("/sign-out")
            assert await back(ada, agreed) == "/sign-in?failed"
            agreed = await asyncio.to_thread(there.agree, await sent(ada), "s-ada")
            place.clock.at += 601
            assert await back(ada, agreed) == "/sign-in?failed"
            for query in ("", "?state=x&code=y", "?error=access_denied", f"{agreed}&state=again"):
                assert await back(ada, query) == "/sign-in?failed"
            assert await ada.name() is None

    run(main)


def test_what_is_expired_forged_replayed_or_for_others_lets_nobody_in(
    tmp_path: Path, there: Provider
) -> None:
    async def main() -> None:
        now = int(time.time())
        forged = RSAKey.generate_key(2048)
        cases: dict[str, dict[str, Any]] = {
            "expired": {"change": lambda claims: claims | {"exp": now - 120}},
            "without an end": {"change": lambda claims: {k: v for k, v in claims.items() if k != "exp"}},
            "of the future": {"change": lambda claims: claims | {"iat": now + 3600, "nbf": now + 3600}},
            "for another server": {"change": lambda claims: claims | {"aud": ["somebody"]}},
            "for several, given to another": {
                "change": lambda claims: claims | {"aud": ["iact", "x"], "azp": "x"}
            },
            "of another issuer": {"change": lambda claims: claims | {"iss": "https://evil.example"}},
            "of another sign-in": {"change": lambda claims: claims | {"nonce": "another"}},
            "without a nonce": {"change": lambda claims: {k: v for k, v in claims.items() if k != "nonce"}},
            "of nobody": {"change": lambda claims: claims | {"sub": ""}},
            "forged": {"key": forged},
            "replayed": {"replayed": there.given[-1] if there.given else "x.y.z"},
            "not signed": {"replayed": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJzLWFkYSJ9."},
            "nonsense": {"replayed": "nonsense"},
        }
        async with served(tmp_path, "oidc", at=there) as place:
            for what, case in cases.items():
                for name in ("key", "change", "replayed"):
                    setattr(there, name, case.get(name, getattr(Provider(), name)))
                eve = place.person()
                agreed = await asyncio.to_thread(there.agree, await sent(eve), "s-eve")
                assert await back(eve, agreed) == "/sign-in?failed", what
                assert await eve.name() is None, what
            assert place.accounts.users.all() == []
            assert {kind for kind, _ in place.events()} == {"sign-in.failed"}
            for name in ("key", "change", "replayed"):
                setattr(there, name, getattr(Provider(), name))
            agreed = await asyncio.to_thread(there.agree, await sent(eve), "s-eve")
            assert await back(eve, agreed) == "/sign-in?done", "as it should be"

    run(main)


def test_the_provider_may_change_its_keys_at_any_time(tmp_path: Path, there: Provider) -> None:
    async def main() -> None:
        async with served(tmp_path, "oidc", at=there) as place:
            for _ in range(3):
                ada = place.person()
                agreed = await asyncio.to_thread(there.agree, await sent(ada), "s-ada")
                assert await back(ada, agreed) == "/sign-in?done"
                there.rotate()

    run(main)


def test_a_provider_that_is_gone_or_is_somebody_else_signs_nobody_in(tmp_path: Path) -> None:
    async def main() -> None:
        with provider(KNOWN) as gone:
            pass
        async with served(tmp_path, "oidc", at=gone) as place:
            ada = place.person()
            answer = await ada.http.get("/sign-in/provider")
            assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?failed")
            assert "iact_sign_in_problem" in answer.headers["set-cookie"]

    run(main)


def test_a_provider_elsewhere_is_asked_over_tls(tmp_path: Path) -> None:
    with open_accounts(tmp_path, None, Clock()) as accounts, pytest.raises(UsageError, match="https"):
        OidcProvider(OidcClient("http://id.example", "iact", "x"), accounts.database, Clock())


# --- links and grants ---------------------------------------------------------------------------------


def test_a_link_is_good_until_it_ends_or_is_revoked_and_asks_for_an_account_unless_it_is_public(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with served(tmp_path, "password") as place:
            users, sharing = place.accounts.users, place.accounts.sharing
            ada, bob = (users.add(name, password=PASSWORD, by=BY) for name in ("ada", "bob"))
            view = LinkView(at=7, hides=frozenset(("files",)), variables=frozenset(("key",)))
            private = sharing.create(ada, "s-1", view, days=2, public=False, by=BY)
            public = sharing.create(ada, "s-2", LinkView(), days=2, public=True, by=BY)
            nobody, signed_in = place.person(), place.person()
            await signed_in.sign_in("bob")

            assert (await nobody.post(f"/link/{private.secret}")).status_code == 401
            for guess in ("a" * 43, private.id, private.secret[:-1], ""):
                assert (await signed_in.post(f"/link/{guess}")).status_code == 404
            told = await signed_in.post(f"/link/{private.secret}")
            assert (told.status_code, told.json()) == (200, {"session": "s-1"})
            who = Authentication(place.accounts, place.rules).principal(bob, "")
            reach = sharing.reach(who, bob.groups, "s-1")
            assert reach is not None
            assert (reach.owner, reach.role, reach.view) == (ada.id, "reader", view)
            assert sharing.reach(who, bob.groups, "s-2") is None

            told = await nobody.post(f"/link/{public.secret}")
            assert told.json() == {"session": "s-2"}
            assert "HttpOnly" in told.headers["set-cookie"]
            assert (await nobody.http.get("/account")).status_code == 401
            assert (await nobody.http.get("/")).status_code == 200
            assert {one.session: one.opened for one in sharing.links_of(ada.id)} == {"s-1": 1, "s-2": 1}

            for link in (private, public):
                sharing.revoke(ada, link.id, by=BY)
            assert sharing.reach(who, bob.groups, "s-1") is None
            assert (await nobody.http.get("/")).status_code == 303
            assert (await signed_in.post(f"/link/{private.secret}")).status_code == 404
            late = sharing.create(ada, "s-3", LinkView(), days=1, public=True, by=BY)
            assert (await nobody.post(f"/link/{late.secret}")).status_code == 200
            place.clock.at += 1.01 * DAY
            assert (await nobody.http.get("/")).status_code == 303
            assert (await signed_in.post(f"/link/{late.secret}")).status_code in (401, 404)
            kinds = [kind for kind, _ in place.events()]
            assert (kinds.count("link.opened"), kinds.count("link.revoked")) == (3, 2)

    run(main)


def test_a_role_is_given_to_a_user_or_a_group_and_taken_back(tmp_path: Path) -> None:
    with open_accounts(tmp_path, None, Clock()) as accounts:
        ada, bob, cy = (accounts.users.add(name, by=BY) for name in ("ada", "bob", "cy"))
        accounts.users.set_groups("cy", ["ops"], by=BY)
        rules = AuthenticationRules(authenticator="password", cookie="c")
        people = Authentication(accounts, rules)
        who = {one.name: people.principal(one, "") for one in (ada, bob, cy)}
        steering = SessionGrant(ada.id, "s", bob.id, "steerer")
        reading = SessionGrant(ada.id, "s", "ops", "reader", of_group=True)
        for one in (steering, reading):
            accounts.sharing.give(one, by=BY)

        def role(name: str, session: str = "s") -> str | None:
            found = people.grant(who[name], session)
            return None if found is None else found.role

        assert [role(name) for name in ("ada", "bob", "cy")] == [None, "steerer", "reader"]
        assert role("bob", "another") is None
        with pytest.raises(UsageError, match="owner"):
            accounts.sharing.give(SessionGrant(ada.id, "s", bob.id, "owner"), by=BY)
        accounts.sharing.take(steering, by=BY)
        accounts.users.set_groups("cy", [], by=BY)
        assert [role(name) for name in ("bob", "cy")] == [None, None]
        accounts.sharing.give(steering, by=BY)
        accounts.users.disable("ada", by=BY)
        assert role("bob") is None


def test_an_administrator_reads_what_is_others_if_the_settings_say_so_and_it_is_told(tmp_path: Path) -> None:
    with open_accounts(tmp_path, None, Clock()) as accounts:
        ada = accounts.users.add("ada", by=BY)
        root = accounts.users.add("root", role="admin", by=BY)
        for see in (False, True):
            rules = AuthenticationRules(authenticator="password", cookie="c", admins_see=see)
            people = Authentication(accounts, rules, {"s": ada.id}.get)
            found = people.grant(people.principal(root, ""), "s")
            assert (found is not None and found.role == "reader") is see
            assert people.grant(people.principal(ada, ""), "s") is None
        assert [one.kind for one in accounts.audit.events()].count("session.seen") == 1
