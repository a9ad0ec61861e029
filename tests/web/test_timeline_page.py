"""A person sees what each agent did when and what the answer waited for, goes to a record from a bar, and looks back."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.async_api import expect

from iact.core.journal import read_journal
from iact.examples import EXAMPLES
from tests.web.browser import SHARED, browsing
from tests.web.fake import FakeAround, FakeRuntime, FakeSession
from tests.web.test_accessible_page import check
from tests.web.test_page import stage

run = SHARED.run


def test_a_recorded_session_is_told_as_a_timeline(tmp_path: Path) -> None:
    (example,) = [one for one in EXAMPLES if one.name == "research"]
    total = str(len(read_journal(example.folder).records))

    async def test() -> None:
        async with browsing(FakeRuntime(), FakeAround()) as browser:
            page = await browser.page("replay:research", height=900)
            # An example begins at its beginning; what its agents took is that of the record that is shown.
            slider = page.locator("[data-role=replay-slider]")
            await expect(slider).to_have_value("2")
            await expect(page.locator("[data-role=replay-total]")).to_have_text(f"of {total}")
            await page.locator("[data-role=replay-last]").click()
            await expect(slider).to_have_value(total)
            await page.get_by_role("tab", name="Timeline").click()
            panel = page.locator("#inspector-panel")
            tracks = panel.locator(".timeline-track")
            await expect(tracks).to_have_count(5)
            await expect(panel).to_contain_text(
                re.compile(r"\d+ s in total; the answers waited for .*\d+ s of this work\.")
            )
            await expect(panel.locator(".timeline-counted").first).to_contain_text("k")
            # What ran beside the slowest child did not hold up the answer.
            critical = panel.locator(".timeline-track .critical")
            assert await critical.count() >= 5
            quick = [panel.get_by_role("group", name=f"/{name}: ") for name in ("bz2", "zlib", "lzma")]
            held_up = [await one.locator(".critical").count() for one in quick]
            assert all([await one.locator(".timeline-bar").count() >= 3 for one in quick])
            assert held_up.count(0) >= 1
            assert sum(held_up) > 0
            await check(page, "timeline")
            await page.screenshot(path=tmp_path / "timeline.png")

            # By keyboard from bar to bar; Enter shows it in the dialogue.
            await panel.locator('.timeline-bar[tabindex="0"]').focus()
            for key in ("ArrowDown", "ArrowRight"):
                await page.keyboard.press(key)
            bar = page.locator(".timeline-bar:focus")
            await expect(bar).to_have_attribute("aria-label", re.compile(r"^tool: shell\.run, [\d.]+ m?s, "))
            n = await bar.get_attribute("data-n")
            await page.keyboard.press("Enter")
            await expect(page.locator("[data-role=agent-name]")).to_have_text("/zlib")
            await expect(page.locator(f'[data-role=dialogue] [data-n="{n}"]').first).to_be_in_viewport()

            # Dragging looks back to that moment, in the tree, too; and says so in the chart.
            box = await tracks.first.bounding_box()
            assert box is not None
            middle = box["y"] + box["height"] / 2
            await page.mouse.move(box["x"] + box["width"] - 5, middle)
            await page.mouse.down()
            await page.mouse.move(box["x"] + 0.3 * box["width"], middle, steps=4)
            await page.mouse.up()
            await expect(slider).not_to_have_value(total)
            assert 1 < int(await slider.input_value()) < int(total)
            await expect(panel.locator(".timeline-cursor")).to_be_visible()

            # As large as the window; a bar closes it and leads to the record.
            await panel.get_by_role("button", name="Enlarge").click()
            dialog = page.get_by_role("dialog", name="Timeline")
            await expect(dialog.locator(".timeline-track")).to_have_count(5)
            await check(page, "timeline, large")
            await page.screenshot(path=tmp_path / "timeline-large.png")
            await dialog.locator(".timeline-bar.critical").last.click()
            await expect(dialog).to_be_hidden()
            await expect(tracks).to_have_count(5)

    run(test)


def test_a_timeline_goes_on_with_the_session_on_a_phone(tmp_path: Path) -> None:
    session = FakeSession("s")
    session.append("open")
    session.append("say", body="Do it.")

    async def test() -> None:
        async with stage(session) as scene:
            page = await scene.page("s", width=390, height=780, scheme="dark")
            await page.get_by_role("button", name="Details", exact=True).click()
            await page.get_by_role("tab", name="Timeline").click()
            panel = page.locator("#inspector-panel")
            await expect(panel).to_contain_text("Nothing has been done yet.")
            turn = session.append("turn", body="```shell.run\nsleep 3\n```\n")
            call = session.append("call", turn=turn.n, action=0, function="shell.run", impact=1)
            open_calls = panel.locator(".timeline-bar[data-kind=tool].open")
            await expect(open_calls).to_have_count(1)
            # No style of another part of the page hides what the model did.
            await expect(
                panel.locator(".timeline-track .timeline-bar[data-kind=model]").first
            ).to_be_visible()
            session.append("result", turn=turn.n, action=0, function="shell.run", call=call.n, status="ok")
            session.append("reply", body="Done.", to="user", status="ok")
            await expect(
                panel.locator(".timeline-track .timeline-bar[data-kind=tool].critical")
            ).to_have_count(1)
            await expect(panel.locator(".timeline-bar.open")).to_have_count(0)
            await check(page, "timeline on a phone")
            await page.screenshot(path=tmp_path / "timeline-narrow.png")
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    run(test)
