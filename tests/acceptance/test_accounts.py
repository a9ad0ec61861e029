"""Managing users by the command line, as an operator does: who may sign in, with which tokens, and their decisions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iact.accounts.accounts import open_accounts
from iact.accounts.people import Actor
from iact.core.ports import Spending
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Product

PASSWORD = "correct horse battery"


def with_accounts(data: Path, *lines: str) -> None:
    """A data directory in which people sign in with a password."""
    data.mkdir(parents=True, exist_ok=True)
    text = "\n".join(["[accounts]", 'authenticator = "password"', *lines, ""])
    (data / "iact.toml").write_text(text, encoding="utf-8")


def told(product: Product, *arguments: str, stdin: str = "") -> Any:
    """What a command prints as JSON."""
    ran = product.run(*arguments, "--json", stdin=stdin)
    assert ran.status == 0, ran
    return json.loads(ran.stdout)


@pytest.fixture
def alone(tmp_path: Path) -> Product:
    """A product that asks no model."""
    return Product.at(tmp_path / "data", **NO_MODULES)


def test_an_installation_of_one_user_knows_nothing_of_accounts(alone: Product) -> None:
    refused = alone.run("user", "add", "ada", stdin=PASSWORD)
    assert refused.status == 2
    assert "accounts.authenticator" in refused.sentence
    assert alone.run("audit").status == 0
    assert not (alone.data / "accounts.db").exists()


@pytest.mark.parametrize(
    "command",
    [("cluster", "host"), ("cluster", "up"), ("serve", "--cluster", "static"), ("serve",), ("user", "list")],
)
def test_hosts_that_share_a_store_need_accounts_in_one_database(
    alone: Product, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """Otherwise each host would let in its own users."""
    with_accounts(alone.data)
    shared = replace(alone, settings={**alone.settings, "IACT_STORE": f"file://{tmp_path}/store"})
    refused = shared.run(*command)
    assert refused.status == 2
    assert "IACT_ACCOUNTS_URL=postgresql://" in refused.sentence
    assert not (alone.data / "accounts.db").exists()


def test_users_are_added_listed_changed_and_removed(alone: Product) -> None:
    with_accounts(alone.data)
    assert alone.run("user", "add", "ada", "--admin", "--group", "ops", stdin=f"{PASSWORD}\n").status == 0
    short, twice, odd = (
        alone.run("user", "add", name, stdin=password)
        for name, password in (("bob", "short"), ("ADA", PASSWORD), ("a:b", PASSWORD))
    )
    assert [one.status for one in (short, twice, odd)] == [2, 2, 2]
    assert "must have 10 to 256 characters" in short.sentence
    assert "already" in twice.sentence
    assert alone.run("user", "add", "bob", "--no-password").status == 0
    assert alone.run("user", "role", "bob", "admin").status == 0
    assert alone.run("user", "groups", "bob", "--group", "a", "--group", "b").status == 0
    assert alone.run("user", "disable", "bob").status == 0
    ada, bob = told(alone, "user", "list")
    assert (ada["name"], ada["role"], ada["groups"], ada["disabled"]) == ("ada", "admin", ["ops"], None)
    assert (bob["role"], bob["groups"]) == ("admin", ["a", "b"])
    assert bob["disabled"] is not None
    assert PASSWORD.encode() not in b"".join(one.read_bytes() for one in alone.data.glob("accounts.db*"))
    assert alone.run("user", "remove", "bob").status == 0
    missing = alone.run("user", "enable", "bob")
    assert (missing.status, "bob" in missing.sentence) == (2, True)
    lines = [json.loads(line) for line in alone.run("audit", "--json").stdout.splitlines()]
    assert [line["what"] for line in lines] == [
        "user.added", "user.added", "user.role", "user.groups", "user.disabled", "user.removed",
    ]  # fmt: skip
    assert {line["address"] for line in lines} == {"command line"}


def test_tokens_are_shown_once_and_revoked_by_name(alone: Product) -> None:
    with_accounts(alone.data)
    alone.run("user", "add", "ada", stdin=PASSWORD)
    made = told(alone, "token", "create", "ci", "--user", "ada", "--scope", "sessions:write", "--days", "1")
    (listed,) = told(alone, "token", "list", "--user", "ada")
    assert (listed["name"], listed["scopes"], listed["used"]) == ("ci", ["sessions:write"], None)
    assert made["token"] not in json.dumps(listed)
    assert made["token"].encode() not in b"".join(one.read_bytes() for one in alone.data.glob("accounts.db*"))
    assert alone.run("token", "create", "root", "--user", "ada", "--scope", "admin").status == 2
    assert alone.run("token", "revoke", "ci", "--user", "ada").status == 0
    assert told(alone, "token", "list", "--user", "ada") == []


def test_a_link_is_made_to_a_session_of_a_user_and_to_no_other(alone: Product) -> None:
    with_accounts(alone.data, 'url = "https://iact.example.org"')
    with open_accounts(alone.data, None, lambda: 0.0) as accounts:
        ada = accounts.users.add("ada", by=Actor("test"))
    (alone.data / "users" / ada.id / "sessions" / "s-1").mkdir(parents=True)
    made = told(alone, "share", "create", "s-1", "--at", "7", "--hide", "files", "--hide-variable", "key")
    assert made["url"].startswith("https://iact.example.org/link/")
    (listed,) = told(alone, "share", "list", "s-1")
    assert (listed["at"], listed["hides"], listed["variables"], listed["opened"]) == (
        7,
        ["files"],
        ["key"],
        0,
    )
    public = alone.run("share", "create", "s-1", "--public")
    assert (public.status, "accounts.public_links" in public.sentence) == (2, True)
    for other in ("s-2", "../s-1", "*"):
        assert alone.run("share", "create", other).status == 2
    assert alone.run("share", "revoke", "s-1", made["id"]).status == 0
    assert told(alone, "share", "list", "s-1") == []


def test_the_audit_says_what_was_decided_in_sessions_and_nothing_of_what_was_said(stage: Stage) -> None:
    secret = "plover"
    product = stage.product(stage.endpoint({"/": [f"I know {secret}."]}), **NO_MODULES)
    answer = product.ask(f"Do you know {secret}?")
    with product.serving():
        session = ("--session", answer.session)
        for command in (("lockdown", *session), ("lockdown", *session, "--off")):
            ran = product.run(*command)
            assert ran.status == 0, ran
        vouched = product.agree("declassify", *session)
        assert vouched.status == 0, vouched
    printed = product.run("audit", "--json").stdout
    lines = [json.loads(line) for line in printed.splitlines()]
    assert [(line["what"], line["session"]) for line in lines] == [
        (what, answer.session) for what in ("lockdown.begun", "lockdown.ended", "declassified")
    ]
    assert all(answer.records[line["n"] - 1].at == line["at"] for line in lines)
    assert secret not in printed + product.run("audit").stdout
    assert product.run("audit", "--json", "--since", "2999-01-01").stdout == ""
    assert product.run("audit", "--since", "yesterday").status == 2


def test_the_audit_has_the_secrets_that_were_changed_and_not_what_they_are(alone: Product) -> None:
    with_accounts(alone.data)
    assert alone.run("secret", "set", "MAIL_KEY", stdin="plover and wren").status == 0
    assert alone.run("secret", "remove", "MAIL_KEY").status == 0
    assert alone.run("secret", "remove", "MAIL_KEY").status == 2
    printed = alone.run("audit", "--json").stdout
    assert [
        (line["what"], line["address"], line["about"]) for line in map(json.loads, printed.splitlines())
    ] == [
        ("secret.changed", "command line", {"secret": "MAIL_KEY"}),
        ("secret.changed", "command line", {"secret": "MAIL_KEY", "removed": "yes"}),
    ]
    assert "plover" not in printed


def test_quotas_are_set_and_what_was_used_is_told(alone: Product) -> None:
    with_accounts(alone.data)
    alone.run("user", "add", "ada", "--group", "ops", stdin=PASSWORD)
    assert alone.run("quota", "set", "--user", "ada", "--tokens", "5000", "--sessions", "2").status == 0
    assert alone.run("quota", "set", "--group", "ops", "--money", "10").status == 0
    assert alone.run("quota", "set", "--containers", "4").status == 0
    wrong = alone.run("quota", "set", "--user", "nobody", "--tokens", "1")
    assert (wrong.status, "nobody" in wrong.sentence) == (2, True)
    assert alone.run("quota", "set", "--user", "ada", "--group", "ops").status == 2
    quotas = {(one["kind"], one["name"]): one for one in told(alone, "quota", "list")}
    assert quotas["user", "ada"]["tokens"] == 5000
    assert quotas["group", "ops"]["money"] == 10
    assert quotas["each", ""]["containers"] == 4
    assert told(alone, "usage")["usage"] == []
    with open_accounts(alone.data, None, lambda: 1_798_000_000.0) as accounts:  # 22 December 2026
        user = accounts.users.named("ada").id
        held = accounts.quotas.reserve(user, Spending(900, 0.5))
        assert held is not None
        accounts.quotas.settle(held, user, Spending(700, 0.25))
    used = told(alone, "usage", "--month", "2026-12")
    assert used["month"] == "2026-12"
    assert {
        (one["kind"], one["name"]): (one["tokens"], one["money"], one["calls"]) for one in used["usage"]
    } == {
        ("group", "ops"): (700, 0.25, 1),
        ("user", "ada"): (700, 0.25, 1),
    }
    assert "700 tokens of 5,000" in alone.run("usage", "--month", "2026-12").stdout
    assert alone.run("usage", "--month", "december").status == 2
