"""`iact serve --open`: a real browser gets in, and no process's arguments hold what lets it in."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import expect, sync_playwright

from tests.acceptance.product import NO_MODULES, Product
from tests.web.browser import ARGUMENTS, PATIENCE, chromium

BROWSER = """#!/bin/sh
printf '%s' "$1" > "$0.part" && mv "$0.part" "$0.given"
"""


def arguments_of_all() -> bytes:
    """The arguments of every process of the machine."""
    found = b""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += process.read_bytes()
    return found


def waited_for(path: Path, *, there: bool) -> None:
    end = time.monotonic() + 60
    while path.exists() != there:
        assert time.monotonic() < end, path
        os.sched_yield()


def test_the_browser_signs_in_by_a_file_that_is_then_gone(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(BROWSER)
    browser.chmod(0o755)
    product = Product.at(tmp_path / "data", **NO_MODULES, BROWSER=str(browser))
    with product.started("serve", "--open") as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        given = tmp_path / "browser.given"
        waited_for(given, there=True)
        url = given.read_text()
        file = Path(unquote(urlsplit(url).path))
        (token,) = re.findall(r"token=([\w-]+)", file.read_text())
        printed = ready.rpartition("=")[2].strip()
        everybody_sees = arguments_of_all()
        for secret in (token, printed):
            assert secret.encode() not in everybody_sees
            assert secret not in url
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        with sync_playwright() as playwright:
            chrome = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
            page = chrome.new_page()
            page.set_default_timeout(PATIENCE)
            page.goto(url)
            expect(page.locator("[data-role=connection]")).to_have_attribute("data-state", "open")
            assert "token" not in page.url
            chrome.close()
        waited_for(file, there=False)


def test_an_address_for_one_more_browser(tmp_path: Path) -> None:
    product = Product.at(tmp_path / "data", **NO_MODULES)
    ran = product.run("address")
    assert ran.status == 1
    assert ran.sentence.startswith("No server runs on")
    with product.serving() as server:
        first, second = (
            product.run("address").stdout.strip(),
            json.loads(product.run("address", "--json").stdout)["url"],
        )
        assert first != second
        with sync_playwright() as playwright:
            chrome = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
            for url in (first, second):
                assert url.startswith(f"http://127.0.0.1:{server.port}/?token=")
                page = chrome.new_context().new_page()
                page.set_default_timeout(PATIENCE)
                page.goto(url)
                expect(page.locator("[data-role=connection]")).to_have_attribute("data-state", "open")
            chrome.close()
