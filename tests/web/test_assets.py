"""What the page is served: its files, each kept by the browser for as long as it likes, and of scripts all but the comments."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import expect
from pygments.lexers import JavascriptLexer
from pygments.token import Comment

from iact.web.assets import Assets, load, uncommented
from tests.web.scene import busy_session
from tests.web.test_page import run, stage

STATIC: Final = Path(__file__).parents[2] / "web" / "static"
IMPORT: Final = re.compile(r"""(?:\bfrom|\bimport|\bimport\()\s*["'`]\.""")
SCRIPTS: Final = [file.relative_to(STATIC).as_posix() for file in sorted(STATIC.rglob("*.js"))]


def tokens(script: str) -> list[tuple[str, str]]:
    """All of a script that does something."""
    found = JavascriptLexer().get_tokens(script)
    return [(str(kind), text) for kind, text in found if kind not in Comment and text.strip()]


def test_scripts_are_served_without_comments_and_are_the_same_scripts() -> None:
    assets = load(STATIC)
    assert len(SCRIPTS) > 50
    for name in SCRIPTS:
        source = (STATIC / name).read_text(encoding="utf-8")
        served = assets.files[f"/static/{name}"].content.decode()
        # Each script that it imports is named with the version, and that is all that differs.
        assert served.count(f'.js?{assets.version}"') == len(IMPORT.findall(uncommented(source))), name
        served = served.replace(f"?{assets.version}", "")
        assert tokens(served) == tokens(source), name
        assert served.count("\n") == source.count("\n"), name
        assert "@param" not in served, name


@pytest.mark.parametrize(
    ("script", "served"),
    [
        ("// Why.\nlet a = 1;\n", "\nlet a = 1;\n"),
        ("/** @type {string} */ #a;\n", " #a;\n"),
        ("/**\n * One.\n * @param {string} b\n */\nf(b);\n", "\n\n\n\nf(b);\n"),
        ("f();  // now\n", "f();\n"),
        ('g("https://x.test"); h(`a // b`);\n', 'g("https://x.test"); h(`a // b`);\n'),
    ],
)
def test_only_comments_go(script: str, served: str) -> None:
    assert uncommented(script) == served


def test_who_asks_with_another_version_is_given_that_in_all_it_refers_to() -> None:
    assets = load(STATIC)
    for path in ("/", "/static/js/page.js"):
        plain, mine = assets.get(path, ""), assets.get(path, assets.version)
        old = assets.get(path, "v=0123456789abcdef")
        assert plain is not None
        assert mine is not None
        assert old is not None
        assert (plain.kept, mine.kept, old.kept) == (False, True, False)
        assert mine.content == plain.content
        assert (
            old.content
            == plain.content.replace(assets.version.encode(), b"v=0123456789abcdef")
            != plain.content
        )
        # Nothing that somebody asks with comes back but a version.
        for query in ('v="><script>', "v=0123456789ABCDEF", "v=0123456789abcdef&a=1", "a=1"):
            assert assets.get(path, query) == plain
    assert assets.get("/nothing", assets.version) is None


LOADED: Final = "performance.getEntriesByType('resource').filter((one) => one.name.includes('/static/'))"


def test_a_page_that_is_opened_again_asks_for_nothing_and_an_old_one_goes_on() -> None:
    async def test() -> None:
        async with stage(busy_session()) as scene:
            page = await scene.page("demo")
            await expect(page.locator(".card.result")).to_be_visible()
            assert await page.evaluate(f"{LOADED}.every((one) => one.transferSize)")
            asked: list[str] = []
            await page.reload()
            page.on("request", lambda request: asked.append(request.url))
            await expect(page.locator(".card.result")).to_be_visible()
            assert (
                await page.evaluate(f"{LOADED}.filter((one) => one.transferSize).map((one) => one.name)")
                == []
            )
            # An upgrade, to the same files under another version: what the page has not fetched yet, it still can.
            current: Assets = scene.server._assets
            later = "v=" + "f" * 16
            files = {
                path: replace(
                    one, content=one.content.replace(current.version.encode(), later.encode()), packed=b""
                )
                for path, one in current.files.items()
            }
            scene.server._assets = Assets(later, files)
            await page.keyboard.press("Alt+Shift+G")
            await expect(page.get_by_role("dialog", name="Settings")).to_contain_text("This machine")
            await page.keyboard.press("Escape")
            await page.get_by_role("tab", name="Timeline").click()
            await expect(page.get_by_role("button", name="Enlarge")).to_be_visible()
            fetched = [url for url in asked if "/static/" in url]
            assert fetched
            assert all(url.endswith(f"?{current.version}") for url in fetched), fetched

    run(test)
