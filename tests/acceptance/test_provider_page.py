"""Signing in with a provider on another site, in a real browser, to test what browsers do with cookies on the way.

The provider is at `localhost` and the server at `127.0.0.1`, which are two sites for a browser. The server is killed in
between. Commands go to it with a token of the user.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Product, kill
from tests.acceptance.test_browser import connected
from tests.accounts.provider import Provider, provider
from tests.web.browser import ARGUMENTS, PATIENCE, chromium

pytestmark = pytest.mark.filterwarnings(
    "ignore:get_jwt_config:DeprecationWarning"
)  # of the provider's own parts

KNOWN: dict[str, dict[str, object]] = {
    "s-ada": {"preferred_username": "ada", "groups": ["ops"]},
    "s-bob": {"preferred_username": "bob"},
}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def with_provider(product: Product, there: Provider, port: int) -> str:
    """Settings by which people sign in with the provider; the address of the server."""
    url = f"http://127.0.0.1:{port}"
    lines = {
        "authenticator": "oidc",
        "url": url,
        "issuer": there.url,
        "client": "iact",
        "secret": "OIDC_SECRET",
    }
    text = "\n".join(
        ["[accounts]", *(f'{name} = "{value}"' for name, value in lines.items()), 'admins = ["group:ops"]']
    )
    (product.data / "iact.toml").write_text(f"{text}\n", encoding="utf-8")
    return url


def sign_in(page: Page, there: Provider, subject: str) -> None:
    """From the page's own sign-in to the provider, and back."""
    page.get_by_role("link", name="Sign in with localhost").click()
    page.wait_for_url(f"{there.url}/**")
    page.get_by_role("button", name=subject).click()


def from_another_site(page: Page, there: Provider, address: str) -> None:
    """Follow a link that stands on a page of another site."""
    page.goto(f"{there.url}/")
    with page.expect_navigation():
        page.evaluate("address => { location.href = address; }", address)


def test_a_person_signs_in_with_a_provider_and_stays_through_a_kill(stage: Stage, tmp_path: Path) -> None:
    product = stage.product(
        stage.endpoint({"/": ["It is plover.", "Still plover."]}), **NO_MODULES, OIDC_SECRET="s"
    )
    product.data.mkdir(parents=True, exist_ok=True)
    port = free_port()
    with provider(KNOWN, host="localhost") as there, sync_playwright() as playwright:
        url = with_provider(product, there, port)
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        ada, bob = (browser.new_context() for _ in range(2))
        for one in (ada, bob):
            one.set_default_timeout(PATIENCE)
        with product.serving("serve", "--port", str(port)) as server:
            page = ada.new_page()
            page.goto(url)
            page.wait_for_url(f"{url}/sign-in")
            page.get_by_role("link", name="Sign in with localhost").click()
            page.get_by_role("button", name="Deny").click()
            expect(page.get_by_role("alert")).to_contain_text("did not sign you in (access_denied)")
            sign_in(page, there, "s-ada")
            connected(page)
            page.get_by_label("Message to the root agent").fill("What is it?")
            page.keyboard.press("Enter")
            expect(page.get_by_text("It is plover.", exact=True)).to_be_visible()
            # What is only being written is lost with the server.
            expect(page.get_by_role("treeitem", name="Root agent, done")).to_be_visible()
            session = page.url.partition("#")[2]
            (cookie,) = [one for one in ada.cookies(url) if one["name"].startswith("iact_")]
            assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
            assert list(product.data.glob(f"users/*/sessions/{session}"))
            assert not list(product.data.glob(f"sessions/{session}"))
            kill(server.process)
        with product.serving("serve", "--port", str(port)):
            connected(page)
            # Another site's link leads to the page, though no strict cookie comes with the first request.
            from_another_site(page, there, url)
            connected(page)
            page.goto(f"{url}/#{session}")
            expect(page.get_by_text("It is plover.", exact=True)).to_be_visible()
            shared = product.run("share", "create", session, "--json")
            link = json.loads(shared.stdout)["url"]
            other = bob.new_page()
            from_another_site(other, there, link)
            expect(other.get_by_role("heading", name="Sign in to iact")).to_be_visible()
            sign_in(other, there, "s-bob")
            expect(other.get_by_text("It is plover.", exact=True)).to_be_visible()
            _commands_go_there_as(product, url, session)
            assert product.run("user", "disable", "bob").status == 0
            other.goto("about:blank")
            other.goto(url)
            other.wait_for_url(f"{url}/sign-in")
        browser.close()
    lines = [json.loads(line) for line in product.run("audit", "--json").stdout.splitlines()]
    told = {(line["what"], line["who"]) for line in lines}
    assert told >= {("sign-in", "ada"), ("sign-in", "bob"), ("link.opened", "bob"), ("sign-in.failed", "")}
    assert ("lockdown.begun", "ada") in told
    assert "plover" not in json.dumps(lines)


def _commands_go_there_as(product: Product, url: str, session: str) -> None:
    """Ada logs in from a machine of hers, which knows nothing of the server."""
    made = json.loads(
        product.run("token", "create", "cli", "--user", "ada", "--scope", "sessions:write", "--scope",
                    "sessions:read", "--scope", "clear", "--json").stdout
    )  # fmt: skip
    elsewhere = Product.at(product.data.parent / "elsewhere", **NO_MODULES)
    wrong = elsewhere.run("login", url, stdin="iact_wrong")
    assert (wrong.status, "does not accept this token" in wrong.sentence) == (1, True)
    assert elsewhere.run("login", url, stdin=made["token"]).status == 0
    said = elsewhere.run("say", "--session", session, "--wait", "And now?")
    assert (said.status, said.stdout.strip()) == (0, "Still plover."), said
    assert elsewhere.run("lockdown", "--session", session).status == 0
    assert elsewhere.run("secret", "set", "MAIL_KEY", stdin="of ada, 81cc2").status == 0
    assert elsewhere.run("secret", "list").stdout == "MAIL_KEY\n"
    (kept,) = product.data.glob("users/*/secrets.json")
    assert "of ada, 81cc2" in kept.read_text()
    assert not (elsewhere.data / "secrets.json").exists()
    assert elsewhere.run("secret", "remove", "MAIL_KEY").status == 0
    assert elsewhere.run("secret", "list").stdout == ""
    assert product.run("token", "revoke", "cli", "--user", "ada").status == 0
    assert elsewhere.run("lockdown", "--session", session, "--off").status == 1
    assert elsewhere.run("logout").status == 0
    assert not (elsewhere.data / "login.json").exists()
