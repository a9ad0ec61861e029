"""Much at once in a real browser: fifty agents that write, and a long journal that is scrubbed.

Nothing here is timed by an assertion; the figures are printed (`pytest -rP`). The bounds that the product
promises are asserted where the whole product runs, in `tests/acceptance/test_browser.py`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from playwright.async_api import expect

from tests.core.session.fakes import replies, runtime
from tests.web.browser import browsing
from tests.web.fake import FakeSession, node
from tests.web.long import long_journal
from tests.web.scrub import scrubbed
from tests.web.test_page import run, stage

AGENTS = 50
ROUNDS = 40


def test_fifty_agents_write_at_once_and_nothing_is_lost() -> None:
    async def test() -> None:
        session = FakeSession("s", queue=100_000)
        paths = ["/", *(f"/worker{number}" for number in range(1, AGENTS))]
        for path in paths[1:]:
            session.append("spawn", path, "a worker", caller="/")
        session.show(*(node(path, "thinking") for path in paths))
        async with stage(session) as scene:
            page = await scene.page("s/worker7")
            await expect(page.get_by_role("treeitem")).to_have_count(AGENTS)
            line = await page.context.new_cdp_session(page)
            await line.send("Performance.enable")

            async def busy() -> tuple[float, float]:
                metrics = (await line.send("Performance.getMetrics"))["metrics"]
                values = {one["name"]: one["value"] for one in metrics}
                return values["TaskDuration"], values["Timestamp"]

            task, began = await busy()
            for number in range(ROUNDS):
                for path in paths:
                    session.write(path, f"word {number} of {path}, ")
                if number % 8 == 0:
                    session.append("turn", paths[number], f"Turn {number}.")
                # The pace of the load is a part of it: 50 agents, ten words a second each.
                await asyncio.sleep(0.1)
            tasks, ended = await busy()
            text = "".join(f"word {number} of /worker7, " for number in range(ROUNDS)).strip()
            await expect(page.locator(".entry.draft .entry-body")).to_have_text(text)
            for path in ("/worker49", "/worker16"):
                await page.locator(f'[data-path="{path}"] > .node').click()
                end = f"word {ROUNDS - 1} of {path},"
                await expect(page.locator(".entry.draft")).to_contain_text(end)
            await expect(page.locator(".entry.own")).to_have_count(1)
            share = (tasks - task) / (ended - began)
            print(
                f"500 deltas a second from {AGENTS} agents: the main thread is busy {share:.0%} of the time"
            )

    run(test)


def test_a_long_journal_is_scrubbed(tmp_path: Path) -> None:
    # Ten thousand are scrubbed where the whole product runs.
    journal = long_journal(tmp_path / "sessions", 2_000)

    async def main() -> None:
        async with runtime(tmp_path, replies({})) as opened, browsing(opened) as browser:
            page = await browser.page(f"replay:{journal.parent.name}")
            await expect(page.locator("[data-role=replay-total]")).to_have_text("of 2000")
            for at in (1000, 1999, 1, 500):
                took = await scrubbed(page, at, journal)
                print(f"2,000 records, to record {at}: {took:.0f} ms")
            assert await page.locator(".dialogue .entry").count() < 500

    run(main)
