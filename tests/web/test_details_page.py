"""What is said beside and above the dialogue of agents that wait, hold others' tokens, are held, or are many at once."""

from __future__ import annotations

import re
from dataclasses import replace

from playwright.async_api import expect

from tests.web.fake import FakeSession, node
from tests.web.test_page import run, stage


def lent_session() -> FakeSession:
    """The root waits for one of two below it, who is paused and holds most of the root's tokens."""
    session = FakeSession("s")
    session.append("say", body="Look into it.")
    session.append("module", name="shell", version="0.3.0", state="ready")
    session.append("spawn", "/one", caller="/")
    session.append("spawn", "/one/two", caller="/one")
    session.show(
        replace(node("/", "waiting", doing="waiting for /one", used=100_000), allowance=2_000_000, left=1_900_000, lent=1_696_000,
                awaited=("/one",), awaited_of=1),
        replace(node("/one", "waiting", doing="waiting for /one/two"), awaited=("/one/two",), awaited_of=1),
        node("/one/two", "paused", paused=True),
    )  # fmt: skip
    return session


def test_who_waits_says_for_whom_and_what_is_lent_is_not_gone() -> None:
    async def test() -> None:
        async with stage(lent_session()) as scene:
            page = await scene.page("s")
            await expect(page.locator(".live-line")).to_contain_text("Waiting for one · /one/two is paused")
            await expect(page.locator('[data-path="/"] > .node')).to_contain_text("/one/two is paused")
            facts = page.locator("#inspector-panel")
            await expect(facts).to_contain_text("Left1.9M of 2.0M (95 %)")
            await expect(facts).to_contain_text("Reserved for helpers1.7M")

    run(test)


def test_all_tabs_stand_in_one_row_and_the_chosen_one_is_seen_whole() -> None:
    async def test() -> None:
        session = lent_session()
        async with stage(session) as scene:
            page = await scene.page("s")
            tabs = page.get_by_role("tablist", name="Details")
            before = await tabs.evaluate("row => row.getBoundingClientRect().height")
            session.show(*session.tree()[:2], replace(session.tree()[2], kind="plan"))
            await page.locator('[data-path="/one/two"] > .node').click()
            await expect(tabs.get_by_role("tab", name="Plan")).to_be_visible()
            for tab in await tabs.get_by_role("tab").all():
                await tab.click()
                # What goes on beside it fades within 26 pixels of the row's ends.
                await page.wait_for_function(
                    """([row, tab]) => {
                        const [all, one] = [row.getBoundingClientRect(), tab.getBoundingClientRect()];
                        return (!row.classList.contains("more-left") || one.left >= all.left + 25)
                            && (!row.classList.contains("more-right") || one.right <= all.right - 25);
                    }""",
                    arg=[await tabs.element_handle(), await tab.element_handle()],
                )
            assert await tabs.evaluate("row => row.getBoundingClientRect().height") == before
            await page.locator('[data-path="/"] > .node').click()
            await tabs.get_by_role("tab", name="Journal").click()
            await expect(
                page.locator("#inspector-panel").get_by_text(re.compile("shell 0.3.0"))
            ).to_be_visible()

    run(test)


def test_steps_that_run_side_by_side_are_told_apart() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Look into it.")
        session.append("spawn", "/audit", caller="/", plan=True)
        for index, step in enumerate(("kernel", "ports")):
            session.append("fire", "/audit", node=step, version=1, attempt=1, turn=4, action=index)
            call = session.append("call", "/audit", turn=4, action=index, function="shell.run", impact=1)
            session.print("/audit", call.n, f"{step}\n")
        session.show(
            node("/", "waiting"), replace(node("/audit", "acting", doing="kernel, ports"), kind="plan")
        )
        async with stage(session) as scene:
            page = await scene.page("s/audit")
            await expect(page.locator(".entry.draft .from")).to_have_text(
                ["kernel: shell.run is running", "ports: shell.run is running"]
            )
            await expect(page.locator(".live-line")).to_contain_text("Running: kernel, ports")

    run(test)
