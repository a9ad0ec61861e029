"""A page whose server restarted says so and shows how to continue. Typed text is not lost."""

from __future__ import annotations

import socket

from playwright.sync_api import Page, expect, sync_playwright

from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Product
from tests.acceptance.test_browser import connected
from tests.web.browser import ARGUMENTS, PATIENCE, chromium
from tests.web.test_accessible_page import flaws


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def token_of(line: str) -> str:
    return line.strip().rpartition("token=")[2]


def astray(product: Product, port: int, page: Page) -> None:
    """Everything from the restart on."""
    field = page.locator("#composer-text")
    with product.started("serve", "--port", str(port)) as process:
        assert process.stdout is not None
        token = token_of(process.stdout.readline())
        form = page.locator(".sign-in")
        expect(form).to_be_visible()
        expect(form).to_contain_text("The server restarted.")
        assert page.evaluate(
            "['composer', 'controls'].every(one => document.querySelector(`[data-role=${one}]`).inert)"
        )
        assert flaws(page) == []
        form.get_by_role("textbox").fill("wrong")
        form.get_by_role("button", name="Connect").click()
        expect(form.get_by_role("alert")).to_contain_text("does not accept")
        assert flaws(page) == []
        form.get_by_role("textbox").fill(f"http://127.0.0.1:{port}/?token={token}")
        form.get_by_role("button", name="Connect").click()
        connected(page)
        expect(form).to_be_hidden()
        expect(field).to_have_value("Not sent yet")
        expect(page.locator(".entry.reply")).to_contain_text("Hello.")


def test_a_restarted_server_leads_on(stage: Stage) -> None:
    product, port = stage.product(stage.endpoint({"/": ["Hello."]}), **NO_MODULES), free_port()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        with product.started("serve", "--port", str(port)) as process:
            assert process.stdout is not None
            page.goto(process.stdout.readline().strip().removeprefix("iact: ready "))
            connected(page)
            page.locator("#composer-text").fill("Hi.")
            page.keyboard.press("Enter")
            expect(page.locator(".entry.reply")).to_contain_text("Hello.")
            page.locator("#composer-text").fill("Not sent yet")
        astray(product, port, page)
        browser.close()
