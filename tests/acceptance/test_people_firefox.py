"""The dialogs for users and accounts in another browser and another language: each is used in Firefox, in German."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Final

from tests.acceptance.conftest import Stage
from tests.acceptance.members import PASSWORD, with_people
from tests.acceptance.product import NO_MODULES, Server
from tests.acceptance.test_scenes import served
from tests.web.firefox import Firefox, opened

ONCE: Final = "document.querySelector('[data-role=once]')?.value ?? ''"
VALUE: Final = "xyzzy of ada 3f0"


def text_of(role: str) -> str:
    return f"document.querySelector('[data-role={role}]')?.innerText ?? ''"


async def says(browser: Firefox, role: str, *words: str) -> None:
    """Wait until all of it stands in a part of the page."""
    for one in words:
        await browser.until(f"({text_of(role)}).includes({json.dumps(one)})")


async def closed(browser: Firefox) -> None:
    await browser.keys("Escape")
    await browser.until("!document.querySelector('dialog[open]')")


def test_a_german_uses_each_dialog_in_firefox(stage: Stage, tmp_path: Path) -> None:
    product = stage.product(stage.endpoint({"/": ["Guten Tag."]}), **NO_MODULES)
    with_people(product, "ada", "bob")
    with served(product) as server:
        asyncio.run(_each_dialog(server, tmp_path))


async def _each_dialog(server: Server, folder: Path) -> None:
    async with opened(folder, languages="de-DE, de") as browser:
        await browser.size(1280, 800)
        await browser.go(f"http://127.0.0.1:{server.port}/")
        await browser.until("document.body.innerText.includes('Anmelden')")
        await browser.click("input[autocomplete=username]")
        await browser.keys("ada", "Tab", PASSWORD, "Enter")
        await browser.until("document.querySelector('[data-role=connection]')?.dataset.state === 'open'")
        await browser.click("#composer-text")
        await browser.keys("Hallo", "Enter")
        await browser.until("document.querySelector('.entry.reply')?.textContent.includes('Guten Tag.')")

        await browser.click("[data-role=share-open]")
        await says(browser, "sharing-dialog", "Diese Sitzung teilen", "Link anlegen")
        await browser.click("[data-role=share-name]")
        await browser.keys("bob", "Enter")
        await browser.until(
            "document.querySelector('[data-role=sharing-dialog] li')?.innerText.includes('bob')"
        )
        await browser.click("[data-role=sharing-dialog] .people > form:last-of-type button")
        await browser.until(f"({ONCE}).includes('/link/')")
        await closed(browser)

        await browser.click("[data-role=account-open]")
        await says(browser, "account-dialog", "Du bist ada.", "API-Token", "Token anlegen")
        await browser.click("[data-role=token-name]")
        await browser.keys("skript", "Enter")
        await browser.until(f"({ONCE}).startsWith('iact_')")
        await says(browser, "account-dialog", "skript")
        await closed(browser)

        await browser.click("[data-role=modules-open]")
        await says(browser, "own-secrets", "Deine Geheimnisse", "Geheimnis speichern")
        await browser.click("[data-role=secret-name]")
        await browser.keys("MAIL_KEY", "Tab", VALUE, "Enter")
        await browser.until(
            "document.querySelector('[data-role=own-secrets] li')?.innerText.includes('MAIL_KEY')"
        )
        assert VALUE not in await browser.ask("document.documentElement.outerHTML")
        await closed(browser)

        await browser.click("[data-role=admin-open]")
        await says(
            browser,
            "administration-dialog",
            "Verwaltung",
            "bob",
            "secret.changed",
            "MAIL_KEY",
            "link.created",
        )
        await closed(browser)

        # On a phone's width nothing is wider than the window.
        await browser.size(390, 780)
        for role in ("share", "account", "admin"):
            await browser.ask(f"document.querySelector('[data-role={role}-open]').click()")
            await browser.until("document.querySelector('dialog[open] li')")
            await browser.until("document.documentElement.scrollWidth <= innerWidth")
            await closed(browser)
        assert browser.errors == []
