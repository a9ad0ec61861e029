"""Settings in a browser: how the page looks and speaks, and where they are found."""

from __future__ import annotations

from collections.abc import Sequence

from playwright.async_api import Page, expect

from tests.web.browser import SHARED, browsing
from tests.web.fake import FakeAround, FakeRuntime
from web.ports import Finding

run = SHARED.run


async def ground(page: Page) -> str:
    """The colour behind everything."""
    found: str = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    return found


LIGHT, DARK = "rgb(246, 246, 244)", "rgb(19, 20, 23)"


def test_a_look_and_a_language_are_chosen_kept_and_there_before_the_first_paint() -> None:
    async def test() -> None:
        async with browsing(FakeRuntime(), FakeAround()) as scene:
            page = await scene.page(scheme="light")
            assert await ground(page) == LIGHT
            await page.get_by_role("button", name="Settings").click()
            await page.get_by_role("radio", name="Dark").check()
            assert await ground(page) == DARK
            await page.reload()
            # What the scripts of the page do comes later: the look is there with the document.
            assert await page.evaluate("document.documentElement.dataset.theme") == "dark"
            assert await ground(page) == DARK
            await page.get_by_role("button", name="Settings").click()
            await expect(page.get_by_role("radio", name="Dark")).to_be_checked()
            await page.get_by_label("Language").select_option("de")
            await expect(page.get_by_role("button", name="Einstellungen")).to_be_visible()
            assert await page.evaluate("document.documentElement.lang") == "de"
            await page.get_by_role("button", name="Einstellungen").click()
            await page.get_by_role("radio", name="Wie das System").check()
            assert await ground(page) == LIGHT
            await page.get_by_label("Sprache").select_option("en")
            await expect(page.get_by_role("button", name="Settings")).to_be_visible()

    run(test)


def test_memory_modules_and_settings_are_one_button_away_at_any_width() -> None:
    async def test() -> None:
        async with browsing(FakeRuntime(), FakeAround()) as scene:
            for width in (1280, 390):
                page = await scene.page(width=width)
                more = page.get_by_role("button", name="More", exact=True)
                for name in ("Memory", "Modules", "Settings"):
                    if width < 700:
                        await more.click()
                    await page.get_by_role("button", name=name, exact=True).click()
                    await expect(page.get_by_role("dialog", name=name)).to_be_visible()
                    await page.get_by_role("dialog", name=name).get_by_role("button", name="Close").click()
                    await expect(page.get_by_role("dialog", name=name)).to_be_hidden()

    run(test)


class OddMachine(FakeAround):
    """One on which something is missing that is needed, and something that is not."""

    def checks(self) -> Sequence[Finding]:
        return [
            Finding("engine", True, "Docker 29", ""),
            Finding("bubblewrap", True, "There is no bubblewrap.", "apt-get install bubblewrap"),
            Finding("image", False, "It is not built.", "iact image build"),
        ]


def test_nothing_is_said_to_work_above_what_would_mend_it() -> None:
    async def test() -> None:
        async with browsing(FakeRuntime(), OddMachine()) as scene:
            page = await scene.page()
            await page.get_by_role("button", name="Settings").click()
            checks = page.locator(".checks li")
            await expect(checks).to_have_count(3)
            for index, badge in enumerate(("works", "not needed here", "does not work")):
                await expect(checks.nth(index).locator(".badge")).to_have_text(badge)

    run(test)
