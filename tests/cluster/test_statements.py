"""A gateway's statement about a user: accepted once, by the host that it is for, within a minute, and unchanged."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from iact.accounts.rights import LOCAL, Principal
from iact.cluster.statements import LIFE, StatementReader, StatementWriter, statement_key
from iact.web.safety import Asked

KEY = statement_key(b"k" * 32)
EVE = Principal(user="eve", name="Eve", admin=True, scopes=frozenset({"sessions:read"}), key="token 1")
BOT = Principal(user="bot", scopes=frozenset({"sessions:write"}), key="token 2", words="none")
LINK = Principal(user="", link="l1", scopes=frozenset({"sessions:read"}), key="link l1")
NOW = 1_000_000.0


def asked(header: dict[str, str], target: str = "/ws") -> Asked:
    return Asked("GET", target, authorizations=tuple(header.values()))


def writer(at: float = NOW, key: bytes = KEY) -> StatementWriter:
    return StatementWriter(key, lambda: at)


def reader(host: str = "a.1") -> StatementReader:
    return StatementReader(KEY, host, lambda: NOW)


@pytest.mark.parametrize("who", [EVE, BOT, LINK, LOCAL])
def test_it_says_who_somebody_is(who: Principal) -> None:
    assert reader().read(asked(writer().header(who, "a.1", "/ws"), "/ws?x=1")) == who


@pytest.mark.parametrize(
    ("host", "path", "at", "key"),
    [
        ("b.1", "/ws", NOW, KEY),
        ("a.2", "/ws", NOW, KEY),
        ("a.1", "/download/1", NOW, KEY),
        ("a.1", "/ws", NOW - LIFE - 1, KEY),
        ("a.1", "/ws", NOW + LIFE + 1, KEY),
        ("a.1", "/ws", float("nan"), KEY),
        ("a.1", "/ws", NOW, statement_key(b"x" * 32)),
    ],
)
def test_it_is_for_one_host_and_path_and_for_now(host: str, path: str, at: float, key: bytes) -> None:
    assert reader().read(asked(writer(at, key).header(EVE, host, path))) is None


@pytest.mark.parametrize("at", [NOW - LIFE + 1, NOW + LIFE - 1])
def test_clocks_may_differ_by_less_than_a_minute(at: float) -> None:
    assert reader().read(asked(writer(at).header(EVE, "a.1", "/ws"))) == EVE


def test_it_is_believed_once_however_many_say_it_at_once() -> None:
    read = reader()
    told = asked(writer().header(EVE, "a.1", "/ws"))
    with ThreadPoolExecutor(16) as pool:
        believed = [one for one in pool.map(lambda _: read.read(told), range(200)) if one is not None]
    assert believed == [EVE]


def test_what_was_used_is_forgotten_when_it_could_be_good_no_more() -> None:
    now = [NOW]
    read = StatementReader(KEY, "a.1", lambda: now[0])
    told = asked(StatementWriter(KEY, lambda: NOW + LIFE).header(EVE, "a.1", "/ws"))
    assert read.read(told) == EVE
    for later in (0.0, LIFE, 2 * LIFE, 2 * LIFE + 1, 3 * LIFE):
        now[0] = NOW + later
        assert read.read(told) is None, later
    assert not read._seen


def test_not_a_letter_of_it_can_be_changed() -> None:
    (told,) = writer().header(EVE, "a.1", "/ws").values()
    scheme, _, statement = told.partition(" ")
    said, _, signature = statement.partition(".")
    fields = json.loads(base64.urlsafe_b64decode(said))
    for name, value in (
        ("user", "bob"),
        ("admin", False),
        ("scopes", ["admin"]),
        ("once", "f" * 32),
        ("more", 1),
    ):
        other = base64.urlsafe_b64encode(json.dumps(fields | {name: value}).encode()).decode()
        assert reader().read(asked({"": f"{scheme} {other}.{signature}"})) is None, name
    for other in (
        "", f"{scheme}", f"{scheme} ", f"{scheme} .", f"Bearer {statement}", f"{scheme} {said}.", f"{scheme} {said}",
        f"{scheme} é.{signature}", f"{scheme} {'A' * 10_000}.{signature}", f"{scheme} {statement[:-1]}",
    ):  # fmt: skip
        assert reader().read(asked({"": other})) is None, other
    two = Asked("GET", "/ws", authorizations=(told, told))
    assert reader().read(two) is None
    assert reader().read(asked({"": told})) == EVE
