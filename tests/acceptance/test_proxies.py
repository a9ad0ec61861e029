"""TLS by a proxy on another machine: nginx and Caddy as documented, a browser, and who is let in."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect, sync_playwright

from tests.acceptance.conftest import Stage
from tests.acceptance.members import PASSWORD, bearer, token_of, with_people
from tests.acceptance.product import NO_MODULES, Product, Server
from tests.acceptance.proxies import NAME, PROXIES, certificate, free_port, own_address, proxy, trusting
from tests.acceptance.test_browser import connected
from tests.web.browser import ARGUMENTS, PATIENCE, chromium

SERVE = ("serve", "--host", "0.0.0.0")


@contextmanager
def behind(product: Product, which: str, folder: Path, *settings: str) -> Iterator[tuple[Server, int]]:
    """The product behind a proxy that comes from another address than loopback; gives its port, too."""
    certificate(folder)
    port, there = free_port(), own_address()
    lines = [f'url = "https://{NAME}:{port}"', f'proxies = ["{there}"]', *settings]
    with_people(product, "ada", "bob", settings=lines)
    with product.serving(*SERVE) as server, proxy(which, folder, port, f"{there}:{server.port}"):
        yield server, port


def ask(folder: Path, port: int, method: str, path: str, **headers: str) -> httpx.Response:
    """A request to the proxy, by its name."""
    given = {"Host": f"{NAME}:{port}", **headers}
    with httpx.Client(verify=trusting(folder), trust_env=False) as client:
        address = f"https://127.0.0.1:{port}{path}"
        return client.request(method, address, headers=given, extensions={"sni_hostname": NAME})


def basic(name: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{PASSWORD}".encode()).decode()


UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
}


def opens(folder: Path, port: int, headers: Mapping[str, str]) -> bool:
    """Whether a websocket is opened through the proxy; what is said over one, the browser shows."""
    status = ask(folder, port, "GET", "/ws", **UPGRADE, **headers).status_code
    assert status in (101, 401, 403)
    return status == 101


@pytest.mark.parametrize("which", PROXIES)
def test_people_sign_in_and_work_through_a_proxy_with_tls(stage: Stage, tmp_path: Path, which: str) -> None:
    product = stage.product(stage.endpoint({"/": ["It is plover."]}), **NO_MODULES)
    with behind(product, which, tmp_path) as (_, port), sync_playwright() as playwright:
        url = f"https://{NAME}:{port}"
        rules = f"--host-resolver-rules=MAP {NAME} 127.0.0.1"
        browser = playwright.chromium.launch(executable_path=chromium(), args=[*ARGUMENTS, rules])
        context = browser.new_context(ignore_https_errors=True)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(url)
        page.get_by_label("Name").fill("ada")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        connected(page)
        page.get_by_label("Message to the root agent").fill("What is it?")
        page.keyboard.press("Enter")
        expect(page.get_by_text("It is plover.", exact=True)).to_be_visible()
        (cookie,) = context.cookies(url)
        assert cookie["name"].startswith("__Host-iact_")
        assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Strict")
        context.close()
        browser.close()
        mine = {"Cookie": f"{cookie['name']}={cookie['value']}"}
        assert opens(tmp_path, port, {**mine, "Origin": url})
        for origin in (f"http://{NAME}:{port}", f"https://{NAME}", "https://evil.example", "null"):
            assert not opens(tmp_path, port, {**mine, "Origin": origin})
        assert not opens(tmp_path, port, mine)
        program = bearer(token_of(product, "bob", "sessions:read"))
        assert opens(tmp_path, port, program)
        assert ask(tmp_path, port, "POST", "/sign-in", Authorization=basic("ada")).status_code == 403
        given = ask(tmp_path, port, "POST", "/sign-in", Authorization=basic("ada"), Origin=url)
        assert (given.status_code, given.headers["set-cookie"].count("; Secure")) == (200, 1)
        # Where somebody is, is what the proxy says, and not what they say to it.
        ask(
            tmp_path,
            port,
            "POST",
            "/sign-in",
            Authorization="Basic YTpi",
            Origin=url,
            **{"X-Forwarded-For": "8.8.8.8"},
        )
        audit = product.run("audit", "--json").stdout
        assert '"127.0.0.1"' in audit
        assert "8.8.8.8" not in audit
        assert own_address() not in audit


@pytest.mark.parametrize("which", PROXIES)
def test_a_proxy_that_is_named_says_who_somebody_is_and_nobody_else_does(
    stage: Stage, tmp_path: Path, which: str
) -> None:
    product = stage.product(stage.endpoint({}), **NO_MODULES)
    with behind(product, which, tmp_path, 'header = "X-Test-User"') as (server, port):
        settings = product.data / "iact.toml"
        settings.write_text(settings.read_text().replace('"password"', '"header"'))
        server.process.terminate()
        server.process.wait(300)
        there, url = own_address(), f"https://{NAME}:{port}"
        with product.serving("serve", "--host", "0.0.0.0", "--port", str(server.port)):
            # The page's configuration passes this header on, as a proxy would set one of its own.
            named = {"X-Test-User": "cy", "Origin": url}
            assert opens(tmp_path, port, named)
            assert not opens(tmp_path, port, {"Origin": url})
            past = f"http://127.0.0.1:{server.port}/static/js/main.js"
            assert httpx.get(past, headers={"X-Test-User": "cy"}, trust_env=False).status_code == 401
            settings.write_text(settings.read_text().replace(there, "192.0.2.99"))
        with product.serving("serve", "--host", "0.0.0.0", "--port", str(server.port)):
            assert not opens(tmp_path, port, named)


def test_a_server_that_others_reach_answers_its_proxies_alone(stage: Stage) -> None:
    product = stage.product(stage.endpoint({}), **NO_MODULES)
    with_people(
        product, "ada", settings=['url = "https://iact.example.org"', 'proxies = ["192.0.2.99", "fd00::/8"]']
    )
    program = token_of(product, "ada")
    with product.serving(*SERVE) as server:
        address, host = f"http://{own_address()}:{server.port}", {"Host": "iact.example.org"}

        def status(path: str, **headers: str) -> int:
            return httpx.get(f"{address}{path}", headers={**host, **headers}, trust_env=False).status_code

        assert [status("/"), status("/sign-in"), status("/ws")] == [403, 403, 403]
        assert [status("/healthz"), status("/readyz")] == [200, 200]
        assert status("/account", **bearer(program)) == 200
        assert status("/account", **bearer(server.key)) != 403


UNSAFE = {
    "one user": ("", "without encryption"),
    "in clear": ('[accounts]\nauthenticator = "password"\nurl = "http://iact.example.org"\nproxies = ["10.0.0.5"]\n', "accounts.url"),
    "no address": ('[accounts]\nauthenticator = "password"\nproxies = ["10.0.0.5"]\n', "accounts.url"),
    "no proxy": ('[accounts]\nauthenticator = "password"\nurl = "https://iact.example.org"\n', "accounts.proxies"),
    "everybody": (
        '[accounts]\nauthenticator = "header"\nurl = "https://iact.example.org"\nproxies = ["0.0.0.0/0"]\n', "every possible address",
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", UNSAFE)
def test_what_is_unsafe_is_refused_with_one_sentence(tmp_path: Path, which: str) -> None:
    text, why = UNSAFE[which]
    product = Product.at(tmp_path / "data", **NO_MODULES)
    product.data.mkdir()
    (product.data / "iact.toml").write_text(text, encoding="utf-8")
    ran = product.run(*SERVE)
    assert (ran.status, why in ran.sentence) == (2, True), ran
