"""Two users on one server at the same time, each with their own browser; and again after the server was killed.

`tests/web/test_rights.py` tests the rights for each message and route with the product's own tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from iact.accounts.accounts import open_accounts
from iact.accounts.people import Actor
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Product, Server, kill
from tests.acceptance.test_browser import connected
from tests.acceptance.test_scenes import served
from tests.endpoint import Endpoint, Request
from tests.web.browser import ARGUMENTS, PATIENCE, REPORT_VIOLATIONS, Wrongs, chromium

PASSWORD = "correct horse battery"
SECRET = "plover"
CALL = Actor("the test")


def with_people(product: Product, *names: str) -> None:
    """Accounts with a password; the first is an administrator. Links without an account are allowed."""
    settings = '[accounts]\nauthenticator = "password"\npublic_links = true\n'
    (product.data / "iact.toml").write_text(settings, encoding="utf-8")
    with open_accounts(product.data, None, lambda: 0.0) as accounts:
        for name in names:
            role = "admin" if name == names[0] else "user"
            accounts.users.add(name, role=role, password=PASSWORD, by=CALL)  # type: ignore[arg-type]


@contextmanager
def browsing() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield browser
        browser.close()


def person(browser: Browser, wrongs: Wrongs) -> BrowserContext:
    context = browser.new_context(viewport={"width": 1360, "height": 860}, reduced_motion="reduce")
    context.add_init_script(REPORT_VIOLATIONS)
    context.set_default_timeout(PATIENCE)
    context.on("weberror", lambda error: wrongs.script_error(error.error))
    context.on("console", lambda message: wrongs.console(message.type, message.text))
    context.on("request", lambda request: wrongs.request(request.url))
    return context


def signed_in(context: BrowserContext, server: Server, name: str) -> Page:
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    connected(page)
    return page


def say(page: Page, text: str) -> None:
    page.get_by_label("Message to the root agent").fill(text)
    page.keyboard.press("Enter")


def more(page: Page, button: str) -> None:
    """Press one of the buttons beside the settings."""
    page.locator(f"[data-role={button}]").click()


def open_session(page: Page, server: Server, session: str) -> None:
    page.goto("about:blank")
    page.goto(f"http://127.0.0.1:{server.port}/#{session}")
    connected(page)


def answers(request: Request) -> str:
    """Ada's session knows what Bob's does not."""
    said = "".join(content for role, content in request.messages if role == "user")
    if "May I see it?" in said:
        return "Bob asked, and here it is."
    return f"It is {SECRET}." if "What is it?" in said else "Not mine."


@pytest.mark.no_prefix_law("two people talk to one model, and nothing orders what they say")
def test_two_people_share_a_server_and_nothing_else(stage: Stage) -> None:
    endpoint = Endpoint(answers).start()
    try:
        _two_people(stage.product(endpoint, **NO_MODULES), endpoint)
    finally:
        endpoint.stop()


def _two_people(product: Product, endpoint: Endpoint) -> None:
    with_people(product, "ada", "bob")
    wrongs = Wrongs("")
    with browsing() as browser:
        with served(product) as server:
            wrongs.origin = f"http://127.0.0.1:{server.port}"
            hers, his = person(browser, wrongs), person(browser, wrongs)
            ada, bob = signed_in(hers, server, "ada"), signed_in(his, server, "bob")

            say(ada, "What is it?")
            expect(ada.locator(".entry.reply")).to_contain_text(SECRET)
            session = ada.evaluate("location.hash.slice(1).split(/[?&/]/)[0]")
            (folder,) = (product.data / "users").glob(f"*/sessions/{session}")
            say(bob, "And for me?")
            expect(bob.locator(".entry.reply")).to_contain_text("Not mine.")

            # What is hers doesn't exist for him: not in the list, not by its address.
            assert SECRET not in bob.content()
            open_session(bob, server, session)
            expect(bob.get_by_text("There is no session").first).to_be_visible()
            assert SECRET not in bob.content()

            # She lets him steer it; what he writes there bears his name, on both pages.
            more(ada, "share-open")
            ada.locator("[data-role=share-name]").fill("bob")
            ada.locator("[data-role=share-role]").select_option("steerer")
            ada.get_by_role("dialog").get_by_role("button", name="Share", exact=True).click()
            expect(ada.locator("[data-role=sharing-dialog] li")).to_contain_text("bob")
            ada.get_by_role("button", name="Close").click()
            bob.goto(f"http://127.0.0.1:{server.port}/")
            connected(bob)
            more(bob, "account-open")
            expect(bob.locator("[data-role=account-dialog]")).to_contain_text("You are bob")
            bob.get_by_role("dialog").get_by_role("button", name="Open").click()
            expect(bob.locator("[data-role=whose]")).to_contain_text("ada")
            expect(bob.locator(".entry.reply")).to_contain_text(SECRET)
            say(bob, "May I see it?")
            for page in (ada, bob):
                expect(page.locator(".entry").filter(has_text="May I see it?")).to_contain_text("bob")
                expect(page.locator(".entry.reply").last).to_contain_text("Bob asked")

            # A link, for a browser without an account: to look at, and without what she leaves out.
            more(ada, "share-open")
            ada.get_by_label("Works without an account").check()
            ada.get_by_role("button", name="Create a link").click()
            link = ada.locator("[data-role=once]").input_value()
            ada.get_by_role("button", name="Close").click()
            guest = person(browser, wrongs).new_page()
            guest.goto(link)
            connected(guest)
            expect(guest.locator(".entry.reply").first).to_contain_text(SECRET)
            expect(guest.get_by_label("Message to the root agent")).to_be_hidden()

            # She takes both back, while they look.
            more(ada, "share-open")
            ada.get_by_role("button", name="Remove: bob").click()
            expect(ada.get_by_text("No other user has access to this session.")).to_be_visible()
            ada.get_by_role("button", name="Revoke").click()
            expect(ada.get_by_text("There are no links to this session.")).to_be_visible()
            expect(bob.get_by_text("There is no session").first).to_be_visible()
            guest.goto(link)
            expect(guest.get_by_text("no longer works")).to_be_visible()
            for context in browser.contexts:
                context.close()
            kill(server.process)

        with served(product) as server:
            wrongs.origin = f"http://127.0.0.1:{server.port}"
            bob = signed_in(person(browser, wrongs), server, "bob")
            open_session(bob, server, session)
            expect(bob.get_by_text("There is no session").first).to_be_visible()
            assert SECRET not in bob.content()
            ada = signed_in(person(browser, wrongs), server, "ada")
            open_session(ada, server, session)
            expect(ada.locator(".entry.reply").first).to_contain_text(SECRET)
            more(ada, "admin-open")
            expect(ada.locator("[data-role=administration-dialog]")).to_contain_text("grant.given")
            expect(ada.locator("[data-role=administration-dialog]")).to_contain_text("tokens")
            ada.get_by_role("button", name="Close").click()

            # What both used is counted, also what they did before it was killed; and a quota ends it, for her alone.
            used = {one["name"]: one for one in json.loads(product.run("usage", "--json").stdout)["usage"]}
            assert used["ada"]["calls"] == 2
            assert used["bob"]["calls"] == 1
            assert product.run("quota", "set", "--user", "ada", "--tokens", "1000").status == 0
            calls = len(endpoint.requests)
            say(ada, "And now?")
            expect(ada.locator(".entry.reply").last).to_contain_text(
                "Your quota is 1,000 tokens a month, of which"
            )
            expect(ada.locator("[data-role=agent-state]")).to_have_text("quota reached")
            assert len(endpoint.requests) == calls
            bob.goto(f"http://127.0.0.1:{server.port}/")
            connected(bob)
            say(bob, "And for me?")
            expect(bob.locator(".entry.reply").last).to_contain_text("Not mine.")
    wrongs.forgive("401", "404")
    wrongs.forgive_lost_line()
    assert wrongs.found == []
    said = [line for line in folder.joinpath("journal.md").read_text().splitlines() if '"kind":"say"' in line]
    whos = [json.loads(line[len("<!-- iact ") : -len(" -->")]).get("who") for line in said]
    assert whos == ["ada", "bob", "ada"]
