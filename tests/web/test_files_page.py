"""Files in and out, the palette, and the settings, in a real browser on real sessions."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from iact.choices import Choices
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.settings import Settings
from iact.surroundings import ServerSurroundings
from tests.core.session.fakes import replies, runtime
from tests.web.browser import Browsing, browsing
from tests.web.test_accessible_page import check
from tests.web.test_page import run

SCRIPT = {"/": ["Hello, **you**.", "```READ text=$sales\n```\n", "Read: $read_1."]}
DROP = """([name, text]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], name, { type: "text/csv" }));
    for (const type of ["dragenter", "dragover", "drop"])
        document.body.dispatchEvent(new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


def on_stage(data: Path, test: Callable[[Browsing, Runtime, Session], Awaitable[None]]) -> None:
    async def main() -> None:
        settings = Settings(data=data, model="scripted", base_url="http://127.0.0.1:1/v1")
        async with runtime(data, replies(SCRIPT), chunk=4096) as opened:
            session = await opened.open()
            await session.ask("Hello?")
            around = ServerSurroundings(Choices(settings, opened.use_models))
            async with browsing(opened, around) as browser:
                await test(browser, opened, session)

    run(main)


async def saved(page: Page, act: Callable[[], Awaitable[None]]) -> tuple[str, bytes]:
    """Do something that downloads a file; its name and content."""
    async with page.expect_download() as waiting:
        await act()
    download = await waiting.value
    content = await asyncio.to_thread(Path(await download.path()).read_bytes)
    return download.suggested_filename, content


def test_a_file_becomes_a_variable_and_comes_back(tmp_path: Path) -> None:
    content = ("year,revenue\n" + "2024,43950\n" * 60_000).encode()
    file = tmp_path / "sales.csv"
    file.write_bytes(content)

    async def test(browser: Browsing, opened: Runtime, session: Session) -> None:
        page = await browser.page(session.id)
        await expect(page.locator(".entry.reply strong")).to_have_text("you")
        await page.locator("[data-role=file]").set_input_files(file)
        await expect(page.locator(".attachments li")).to_contain_text("sales.csv")
        await page.locator("[data-role=text]").fill("Read it.")
        await page.keyboard.press("Enter")
        await expect(page.locator(".dialogue")).to_contain_text("Uploaded sales.csv as $sales")
        await expect(page.locator(".attachments li")).to_have_count(0)
        await expect(page.locator(".entry.reply").last).to_contain_text("Read: $read_1.")
        await page.locator(".dialogue").get_by_role("button", name="$sales").first.click()
        dialog = page.get_by_role("dialog")
        await expect(dialog.locator("pre")).to_contain_text("year,revenue")
        await expect(dialog).to_contain_text("upload")
        name, got = await saved(page, dialog.get_by_role("button", name="Download").click)
        assert (name, got) == ("sales.csv", content)
        assert session.state.root.table["sales"].load() == content

    on_stage(tmp_path / "data", test)


PICTURE = """([name, size]) => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = size;
    return new Promise((done) => canvas.toBlob((blob) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([blob], name, { type: "image/png" }));
        document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
        done();
    }));
}"""


@pytest.mark.no_prefix_law("two sessions ask the same scripted model")
@pytest.mark.parametrize(("width", "locale"), [(1280, "en-US"), (390, "de-DE")])
def test_files_wait_beside_the_message_and_can_be_taken_away(tmp_path: Path, width: int, locale: str) -> None:
    async def test(browser: Browsing, opened: Runtime, session: Session) -> None:
        page = await browser.page(width=width, locale=locale, scheme="dark")
        await page.evaluate(DROP, ["sales.csv", "a,b"])
        await page.evaluate(PICTURE, ["plan.png", 64])
        chips = page.locator(".attachments li")
        await expect(chips).to_have_count(2)
        await expect(chips.first).to_contain_text("csv")
        thumbnail = chips.last.locator("img")
        await expect(thumbnail).to_be_visible()
        assert await thumbnail.evaluate("image => image.complete && image.naturalWidth") == 64
        await check(page, f"attached files, {width} wide")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")

        # Nothing of them has left the page: there is no session yet.
        assert len(opened.sessions()) == 1
        remove = "Remove sales.csv" if locale == "en-US" else "sales.csv entfernen"
        await chips.first.get_by_role("button", name=remove).focus()
        await page.keyboard.press("Enter")
        await expect(chips).to_have_count(1)
        await expect(page.locator("[data-role=text]")).to_be_focused()

        # They are of this message: another session has none of them.
        await page.evaluate("id => { location.hash = id; }", session.id)
        await expect(page.locator(".entry.reply strong")).to_have_text("you")
        await expect(chips).to_have_count(0)
        await page.go_back()
        await expect(chips).to_have_count(1)

        await page.locator("[data-role=text]").fill("Look at it.")
        await page.locator("[data-role=send]").click()
        await expect(page.locator(".dialogue")).to_contain_text("plan.png")
        await expect(page.locator(".entry.incoming")).to_contain_text("Look at it.")
        await expect(chips).to_have_count(0)
        assert len(opened.sessions()) == 2

    on_stage(tmp_path, test)


@pytest.mark.no_prefix_law("two sessions ask the same scripted model")
def test_what_is_dropped_opens_a_session_with_its_message_if_there_is_none(tmp_path: Path) -> None:
    async def test(browser: Browsing, opened: Runtime, session: Session) -> None:
        page = await browser.page()
        await page.evaluate(DROP, ["../<b>x</b>.csv", "a,b"])
        await expect(page.locator("[data-role=drop]")).to_be_hidden()
        await expect(page.locator(".attachments li")).to_have_count(1)
        assert len(opened.sessions()) == 1
        await page.locator("[data-role=text]").fill("Hello?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".dialogue")).to_contain_text("Uploaded b>.csv as $b")
        await expect(page).to_have_url(re.compile("#[0-9a-f-]+$"))
        assert len(opened.sessions()) == 2
        # What is only looked at takes nothing.
        await page.goto(f"http://127.0.0.1:{browser.server.port}/#replay:{session.id}")
        await expect(page.locator("[data-role=replay]")).to_be_visible()
        await page.evaluate(DROP, ["no.csv", "a,b"])
        await expect(page.locator("[data-role=news]")).to_contain_text("during a replay")

    on_stage(tmp_path, test)


def test_a_session_is_exported_as_one_page(tmp_path: Path) -> None:
    async def test(browser: Browsing, opened: Runtime, session: Session) -> None:
        page = await browser.page(session.id)
        await expect(page.locator(".entry.reply strong")).to_have_text("you")

        async def export() -> None:
            await page.keyboard.press("Control+k")
            await page.get_by_role("combobox", name="Search commands").fill("export")
            await page.keyboard.press("Enter")

        name, content = await saved(page, export)
        assert name == f"{session.id}.html"
        assert b"Hello, <strong>you</strong>." in content
        assert b"<script" not in content

    on_stage(tmp_path, test)


def test_everything_is_reached_from_the_palette(tmp_path: Path) -> None:
    async def test(browser: Browsing, opened: Runtime, session: Session) -> None:
        page = await browser.page(session.id)
        await expect(page.locator(".entry.reply strong")).to_have_text("you")
        field = page.get_by_role("combobox", name="Search commands")
        options = page.get_by_role("listbox", name="Commands").get_by_role("option")

        async def command(words: str) -> None:
            await page.keyboard.press("Control+k")
            await field.fill(words)
            await expect(options.first).to_have_attribute("aria-selected", "true")
            await page.keyboard.press("Enter")
            await expect(field).to_be_hidden()

        await command("details journal")
        await expect(page.get_by_role("tab", name="Journal")).to_be_focused()
        await command("permission read only")
        await expect(page.get_by_role("radio", name="Read only")).to_be_checked()
        await command("pause")
        await expect(page.locator(".dialogue")).to_contain_text("You paused")
        assert session.state.root.paused
        await command("resume")
        await expect(page.locator(".dialogue")).to_contain_text("You resumed it")
        await command("write message")
        await expect(page.locator("[data-role=text]")).to_be_focused()
        await command("replay this")
        await expect(page.locator("[data-role=replay-slider]")).to_be_focused()
        await page.keyboard.press("Escape")
        await page.keyboard.press("Alt+Shift+S")
        await expect(page.get_by_role("tabpanel", name="Sessions")).to_be_visible()
        await page.get_by_role("button", name="Commands").click()
        await field.fill("no such thing")
        await expect(options).to_have_text(["No matches."])
        await field.fill("")
        await page.keyboard.press("ArrowDown")
        await expect(options.nth(1)).to_have_attribute("aria-selected", "true")
        await expect(field).to_have_attribute("aria-activedescendant", "command-1")
        await page.keyboard.press("Escape")
        await page.keyboard.press("Alt+Shift+N")
        await expect(page.get_by_role("heading", name="want done")).to_be_visible()

    on_stage(tmp_path, test)


def test_settings_say_what_answers_and_what_works(tmp_path: Path) -> None:
    async def test(browser: Browsing, opened: Runtime, session: Session) -> None:
        page = await browser.page()
        await page.get_by_role("button", name="Check this machine").click()
        dialog = page.get_by_role("dialog", name="Settings")
        await expect(dialog.locator(".checks li").filter(has_text="data")).to_contain_text("works")
        await expect(dialog.locator("dl")).to_contain_text(str(tmp_path))
        await expect(dialog.locator("dl")).to_contain_text("http://127.0.0.1:1/v1")
        await expect(dialog.locator("dl")).to_contain_text("not set")
        await page.keyboard.press("Escape")
        await expect(dialog).to_be_hidden()

    on_stage(tmp_path, test)
