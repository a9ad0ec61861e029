"""What the page measures: how fast models write, what it costs, and what runs now."""

from __future__ import annotations

from dataclasses import replace

from playwright.async_api import Page, expect

from tests.web.fake import FakeSession, node
from tests.web.test_page import run, stage


async def shows(page: Page, name: str, value: str) -> None:
    """Wait until a fact about the session has this value."""
    term = page.locator("#inspector-panel").locator("dl").last.locator("dt", has_text=name)
    await expect(term.locator("xpath=following-sibling::dd[1]")).to_have_text(value)


def test_speed_cost_and_what_runs() -> None:
    async def test() -> None:
        session = FakeSession("s", modules_running=2)
        session.append("say", body="one")
        for _ in range(20):  # of which the newest ten count
            session.append("turn", body="Slow.", ms=1000, usage={"prompt": 100, "cached": 0, "completion": 1})
        for _ in range(10):
            session.append("turn", body="Fast.", ms=500, usage={"prompt": 100, "cached": 0, "completion": 20})
        session.show(
            node("/", "waiting", used=800_000),
            node("/a", "thinking"),
            node("/b", "thinking"),
            replace(node("/c", "acting"), calls=(7, 8, 9)),
        )
        async with stage(session) as scene:
            page = await scene.page("s")
            await shows(page, "Speed", "40 tokens/s")
            # 200,000 tokens read anew at 2, 600,000 reused at 0.5, 100,000 written at 10 the million.
            await shows(page, "Cost", "1.70")
            await shows(page, "Models writing now", "2")
            await shows(page, "Tools running now", "3")
            # A module that waits for calls is none that runs.
            await shows(page, "Modules started", "2")
            session.show(node("/", "idle", used=1000))
            await shows(page, "Models writing now", "0")
            await shows(page, "Tools running now", "0")
            await shows(page, "Cost", "below 0.01")
            # Back in time nothing runs, and the speed is that of then.
            await page.get_by_role("button", name="Replay", exact=True).click()
            field = page.locator("[data-role=replay-number]")
            await field.fill("21")
            await field.press("Enter")
            await shows(page, "Speed", "1 tokens/s")
            await expect(page.locator("#inspector-panel")).not_to_contain_text("running")

    run(test)
