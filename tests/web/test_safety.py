"""The judgement over requests, as a table."""

from __future__ import annotations

import pytest

from iact.accounts.rights import LOCAL
from iact.web.safety import (
    AccessPolicy,
    Asked,
    Refused,
    SignedIn,
    Verdict,
    WantsPath,
    WantsSocket,
    is_loopback,
    own_hosts,
)

KEY, TOKEN = "k" * 43, "t" * 43
POLICY = AccessPolicy(KEY, 8000, own_hosts("127.0.0.1", 8000), lambda given: given == TOKEN)
HOST = ("127.0.0.1:8000",)
OURS = ("http://127.0.0.1:8000",)
COOKIE = (f"other=1; iact_8000={POLICY.cookie_value}",)
BEARER = (f"Bearer {KEY}",)


def judge(
    target: str = "/",
    *,
    method: str = "GET",
    hosts: tuple[str, ...] = HOST,
    origins: tuple[str, ...] = (),
    cookies: tuple[str, ...] = COOKIE,
    authorizations: tuple[str, ...] = (),
) -> Verdict:
    return POLICY.judge(Asked(method, target, hosts, origins, cookies, authorizations))


def status(verdict: Verdict) -> int | None:
    return verdict.status if isinstance(verdict, Refused) else None


@pytest.mark.parametrize(
    "hosts",
    [
        (),
        ("evil.test",),
        ("127.0.0.1",),
        ("127.0.0.1:8001",),
        ("localhost:8000.evil.test",),
        ("evil-localhost:8000",),
        ("127.0.0.1:8000", "127.0.0.1:8000"),
        ("0.0.0.0:8000",),
        ("127.0.0.1:8000@evil.test",),
        ("",),
    ],
)
@pytest.mark.parametrize("target", ["/", "/ws", "/static/js/main.js", f"/?token={TOKEN}"])
def test_a_foreign_host_is_misdirected(hosts: tuple[str, ...], target: str) -> None:
    assert status(judge(target, hosts=hosts, origins=OURS, authorizations=BEARER)) == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000", "LocalHost:8000"])
def test_our_own_names_are_answered(host: str) -> None:
    assert judge("/", hosts=(host,)) == WantsPath("/", LOCAL)


@pytest.mark.parametrize(
    "origins",
    [
        ("null",),
        ("http://evil.test",),
        ("https://127.0.0.1:8000",),
        ("http://127.0.0.1:8001",),
        ("http://localhost:8000.evil.test",),
        ("http://evil-localhost:8000",),
        ("http://127.0.0.1:8000/",),
        ("http://127.0.0.1:8000", "http://evil.test"),
        ("",),
    ],
)
@pytest.mark.parametrize(("method", "target"), [("GET", "/ws"), ("POST", "/"), ("GET", "/")])
def test_a_foreign_origin_is_refused_even_with_the_secrets(
    origins: tuple[str, ...], method: str, target: str
) -> None:
    assert status(judge(target, method=method, origins=origins, authorizations=BEARER)) == 403


def test_a_missing_origin_is_for_reading_and_for_bearers_only() -> None:
    assert judge("/static/js/main.js") == WantsPath("/static/js/main.js", LOCAL)
    assert status(judge("/ws")) == 403
    assert status(judge("/", method="POST")) == 403
    assert judge("/ws", cookies=(), authorizations=BEARER) == WantsSocket(LOCAL)
    assert judge("/ws", origins=OURS) == WantsSocket(LOCAL)
    assert judge("/ws", cookies=(), authorizations=(f"Bearer {TOKEN}",)) == WantsSocket(LOCAL)


@pytest.mark.parametrize(
    ("cookies", "authorizations"),
    [
        ((), ()),
        ((f"iact_8001={POLICY.cookie_value}",), ()),
        ((f"iact_8000={TOKEN}",), ()),
        ((f"iact_8000={KEY}",), ()),
        (("iact_8000=",), ()),
        ((f"iact_8000={POLICY.cookie_value}x",), ()),
        ((), (f"Basic {KEY}",)),
        ((), ("Bearer ",)),
        ((), (f"Bearer {KEY[:-1]}",)),
        ((), BEARER + BEARER),
        ((), ("Bearer \udcff\u00e9",)),
    ],
)
@pytest.mark.parametrize(
    "target", ["/", "/ws", "/static/js/main.js", "/nothing", "/?token=wrong", "/?token=", f"/?token={KEY}"]
)
def test_without_the_secret_nothing_is_answered(
    cookies: tuple[str, ...], authorizations: tuple[str, ...], target: str
) -> None:
    assert status(judge(target, origins=OURS, cookies=cookies, authorizations=authorizations)) == 401


def test_the_token_is_exchanged_for_a_cookie_at_the_page_only() -> None:
    verdict = judge(f"/?token={TOKEN}", cookies=())
    assert isinstance(verdict, SignedIn)
    assert verdict.token == TOKEN
    assert TOKEN not in verdict.cookie
    assert KEY not in verdict.cookie
    assert verdict.cookie.startswith("iact_8000=")
    assert verdict.cookie.endswith("; HttpOnly; SameSite=Strict; Path=/")
    assert status(judge(f"/ws?token={TOKEN}", cookies=(), origins=OURS)) == 401
    assert status(judge(f"/static/js/main.js?token={TOKEN}", cookies=())) == 401
    assert status(judge(f"/?token={TOKEN}&token={TOKEN}", cookies=())) == 401
    assert status(judge("/?" + "&".join("a=1" for _ in range(50)), cookies=())) == 401


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "get"])
def test_only_get_is_understood(method: str) -> None:
    assert status(judge("/", method=method, origins=OURS)) == 405


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("192.168.1.5", False),
        ("example.org", False),
        ("localhost.example.org", False),
    ],
)
def test_what_loopback_is(host: str, answer: bool) -> None:
    assert is_loopback(host) is answer
