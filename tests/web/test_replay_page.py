"""Looking back, forking and inspecting in a real browser, on real sessions with a scripted model."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Page, expect

from iact.core.journal import read_journal
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from tests.core.session.fakes import replies, runtime
from tests.rounds import short
from tests.web.browser import Browsing, browsing
from tests.web.long import long_journal
from tests.web.test_page import run

SCRIPT = {
    "/": [
        "I'll look at the file first.\n\n```READ\nyear,revenue\n2024,43950\n2025,51200\n```\n",
        "Now somebody should check it.\n\n"
        '```CALL checker role="a careful statistician"\nIs 2025 in $read_1 an outlier?\n```\n',
        "The checker says: **an outlier**. See $read_1.",
        "Then it is *not* an outlier.",
    ],
    "/checker": ["```t.destroy\nall\n```\n```WRITE\nresiduals\n```\n", "It is an outlier by $write_1."],
}

NOTE_STEPS = """slider => {
    window.steps = [];
    new MutationObserver(() => window.steps.push(slider.value))
        .observe(slider, { attributes: true, attributeFilter: ["aria-valuetext"] });
}"""


@dataclass
class Stage:
    browsing: Browsing
    runtime: Runtime
    session: Session

    def number(self, kind: str, agent: str = "/", nth: int = 0) -> int:
        """The number of the nth record of this kind and agent."""
        found = [one.n for one in self.session.records() if (one.kind, one.agent) == (kind, agent)]
        return found[nth]

    @property
    def last(self) -> int:
        return self.session.records()[-1].n


def on_stage(data: Path, test: Callable[[Stage], Awaitable[None]]) -> None:
    async def main() -> None:
        async with runtime(data, replies(SCRIPT), chunk=4096) as opened:
            session = await opened.open()
            await session.ask("Is 2025 an outlier?")
            async with browsing(opened) as browser:
                await test(Stage(browser, opened, session))

    run(main)


async def seek(page: Page, n: int) -> None:
    """Go to a record by typing its number."""
    field = page.locator("[data-role=replay-number]")
    await field.fill(str(n))
    await field.press("Enter")


@pytest.mark.no_prefix_law("the fork, in which something else is said, asks the same scripted model")
def test_a_stored_session_is_looked_through_and_forked(tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        page = await stage.browsing.page()
        await page.locator("[data-role=sessions]").click()
        await page.get_by_role("button", name="What to do with Is 2025 an outlier?").click()
        await page.locator(".session-actions").get_by_role("button", name="Replay").click()
        await page.get_by_role("tab", name="Agents").click()
        await expect(page).to_have_url(re.compile(f"#replay:{stage.session.id}$"))
        slider = page.locator("[data-role=replay-slider]")
        await expect(slider).to_have_value(str(stage.last))
        await expect(page.locator(".entry.reply strong")).to_have_text("an outlier")
        await expect(page.locator("[data-role=controls]")).to_be_hidden()

        # By keyboard, record by record, back to before the child was there.
        await slider.focus()
        await page.keyboard.press("ArrowLeft")
        await expect(slider).to_have_value(str(stage.last - 1))
        await expect(page.locator(".entry.own.reply")).to_have_count(0)
        await page.keyboard.press("Home")
        await expect(page.get_by_role("treeitem")).to_have_count(1)
        await expect(page.locator(".entry.incoming")).to_have_count(0)
        await page.keyboard.press("End")
        await expect(page.get_by_role("treeitem")).to_have_count(2)
        await seek(page, stage.number("turn", "/checker"))
        await expect(page.locator('[data-path="/checker"] .mark')).to_have_attribute("data-state", "acting")
        await expect(page.locator('[data-path="/"] > .node .mark')).to_have_attribute("data-state", "waiting")
        # In the middle of something a fork has two names: what is under way is dropped, or let run.
        run = page.get_by_role("radio", name="Branch and let it run")
        await expect(run).to_have_count(1)
        await expect(run).not_to_be_checked()
        await seek(page, stage.last)
        await expect(run).to_have_count(0)

        # Reload: the same session, still only looked at.
        await page.reload()
        await expect(slider).to_have_value(str(stage.last))

        # Say it differently, in a fork.
        await seek(page, stage.last)
        await page.locator(".entry.incoming").first.hover()
        await page.get_by_role("button", name="Edit", exact=True).click()
        await expect(page.locator("[data-role=text]")).to_have_value("Is 2025 an outlier?")
        said = stage.number("say")
        await expect(slider).to_have_value(str(said - 1))
        await page.locator("[data-role=text]").fill("Is 2024 an outlier?")
        await page.get_by_role("button", name="Branch", exact=True).click()
        await expect(page.locator(".entry.incoming")).to_contain_text("Is 2024 an outlier?")
        await expect(page.locator(".entry.reply strong")).to_have_text("an outlier")
        await expect(page.locator("[data-role=replay]")).to_be_hidden()
        [forked] = [info for info in stage.runtime.sessions() if info.id != stage.session.id]
        await expect(page).to_have_url(re.compile(f"#{forked.id}$"))
        await expect(page.locator("[data-role=text]")).to_have_value("")
        await page.go_back()
        await expect(slider).to_have_value(str(stage.last))
        await expect(page.locator(".entry.incoming")).to_contain_text("Is 2025 an outlier?")
        # What was only looked at is as it was.
        assert [one.body for one in stage.session.records() if one.kind == "say"] == ["Is 2025 an outlier?"]

        # A second thought about the same message is a third branch of it, and each leads to the next.
        await page.go_forward()
        branches = page.get_by_role("group", name="Branches of this message")
        await expect(branches).to_contain_text("2 of 2")
        await page.locator(".entry.incoming").first.hover()
        await page.get_by_role("button", name="Edit", exact=True).click()
        await page.locator("[data-role=text]").fill("Is 2023 an outlier?")
        await page.get_by_role("button", name="Branch", exact=True).click()
        await expect(page.locator(".entry.incoming")).to_contain_text("Is 2023 an outlier?")
        await expect(branches).to_contain_text("of 3")
        # Both were made in the same second, so either may be the second.
        last = "3 of 3" in await branches.inner_text()
        await page.get_by_role("button", name="Previous branch" if last else "Next branch").click()
        await expect(page.locator(".entry.incoming")).to_contain_text("Is 2024 an outlier?")
        await expect(branches).to_contain_text("2 of 3" if last else "3 of 3")

    on_stage(tmp_path, test)


def test_looking_back_in_a_running_session_misses_nothing(tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        page = await stage.browsing.page(stage.session.id)
        await expect(page.locator(".entry.reply strong")).to_have_text("an outlier")
        await page.get_by_role("button", name="Replay", exact=True).click()
        await seek(page, stage.number("turn"))
        await expect(page.locator(".entry.reply")).to_have_count(0)
        await expect(page.get_by_role("treeitem")).to_have_count(1)
        # Something happens meanwhile; the past stays as it was.
        before = stage.last
        await stage.session.ask("Use three standard deviations.")
        slider = page.locator("[data-role=replay-slider]")
        await expect(slider).to_have_attribute("max", str(stage.last))
        assert stage.last > before
        await expect(page.locator(".entry.reply")).to_have_count(0)
        await page.locator("[data-role=replay-close]").click()
        await expect(page.locator(".entry.reply em")).to_have_text("not")
        await expect(page.get_by_role("treeitem")).to_have_count(2)
        await expect(page.get_by_role("button", name="Send")).to_be_visible()

    on_stage(tmp_path, test)


def test_a_session_that_another_process_holds_is_opened_to_look_at(tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        async with runtime(tmp_path, replies(SCRIPT)) as other, browsing(other) as browser:
            page = await browser.page()
            await page.goto(f"http://127.0.0.1:{browser.server.port}/#{stage.session.id}")
            await expect(page.locator("[data-role=news]")).to_contain_text("another process")
            await expect(page.locator("[data-role=replay-slider]")).to_have_value(str(stage.last))
            await expect(page.locator(".entry.reply strong")).to_have_text("an outlier")
            await expect(page).to_have_url(re.compile(f"#replay:{stage.session.id}$"))

    on_stage(tmp_path, test)


def test_playing_goes_to_the_end_and_stops(tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        page = await stage.browsing.page(f"replay:{stage.session.id}")
        await page.get_by_label("Speed").select_option("64")
        slider = page.locator("[data-role=replay-slider]")
        await expect(slider).to_have_value(str(stage.last))
        # Playing may be over sooner than one can look, so the page keeps every record that was shown.
        await slider.evaluate(NOTE_STEPS)
        await slider.focus()
        await page.keyboard.press("Space")
        await page.wait_for_function(
            "last => window.steps.length > 1 && window.steps.at(-1) === last", arg=str(stage.last)
        )
        assert await page.evaluate("window.steps[0]") == "1"
        await expect(page.get_by_role("button", name="Play")).to_be_visible()
        await expect(slider).to_have_value(str(stage.last))
        await expect(page.locator(".entry.reply strong")).to_have_text("an outlier")
        await expect(page.get_by_role("treeitem")).to_have_count(2)

    on_stage(tmp_path, test)


def test_the_exact_context_is_shown_with_what_was_reused(tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        page = await stage.browsing.page(stage.session.id)
        await page.get_by_role("tab", name="Context").click()
        pane = page.locator("#inspector-panel")
        await expect(pane).to_contain_text("Unchanged")
        fresh = pane.locator(".seen.fresh details")
        await expect(fresh).to_have_count(2)
        await expect(fresh.last.locator("pre")).to_contain_text("It is an outlier by $")
        await expect(pane.locator(".seen.reused details").first).to_contain_text("system")
        await pane.locator(".seen.reused summary").nth(0).click()
        await expect(pane.locator(".seen.reused pre").first).to_be_visible()
        await pane.get_by_role("button", name="Earlier").click()
        await expect(fresh.last.locator("pre")).to_contain_text("2025,51200")
        await expect(pane.get_by_role("button", name="Later")).to_be_enabled()
        # Where one looks back, the newest turn up to there.
        await page.get_by_role("button", name="Replay", exact=True).click()
        await seek(page, stage.number("turn"))
        await expect(fresh.last.locator("pre")).to_contain_text("Is 2025 an outlier?")
        await expect(pane.get_by_role("button", name="Earlier")).to_be_disabled()
        await seek(page, 1)
        await expect(pane).to_contain_text("has not asked its model")

    on_stage(tmp_path, test)


def test_a_variable_that_is_a_page_is_looked_at_without_its_scripts(tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        written = b"<h1>Report</h1><script>document.querySelector('h1').textContent = 'scripts run'</script>"
        record = await stage.session.upload("report.html", "text/html", written)
        page = await stage.browsing.page(stage.session.id)
        await page.locator(".dialogue").get_by_role("button", name=f"${record.text('var')}").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog.locator("iframe")).to_have_attribute("sandbox", "")
        await expect(page.frame_locator("dialog iframe").locator("h1")).to_have_text("Report")
        await expect(dialog.locator("details pre")).to_contain_text("scripts run")
        stage.browsing.wrongs.forgive("Blocked script execution", "Content Security Policy", "POLICY")

    on_stage(tmp_path, test)


def test_variables_open_from_the_list_and_from_chips(tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        page = await stage.browsing.page(stage.session.id)
        await page.get_by_role("tab", name="Variables").click()
        pane = page.locator("#inspector-panel")
        await expect(pane.locator(".variables li").filter(has_text="$read_1")).to_contain_text("text/plain")
        await pane.get_by_role("button", name="$read_1").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog.locator("pre")).to_have_text("year,revenue\n2024,43950\n2025,51200")
        await page.keyboard.press("Escape")
        await expect(dialog).to_be_hidden()
        await page.locator(".dialogue").get_by_role("button", name="$read_1").last.click()
        await expect(dialog.locator("pre")).to_contain_text("2025,51200")
        await page.keyboard.press("Escape")
        # A chip in a child's reply opens the child's variable, also from its caller's dialogue.
        await page.locator(".entry.child").get_by_role("button", name="$write_1").click()
        await expect(dialog.locator("pre")).to_have_text("residuals")
        # What a tool made is not the user's word until the user says so.
        labels = dialog.locator(".labels")
        await expect(labels).to_contain_text("inside:t.write")
        await dialog.get_by_role("button", name="Trust this content").click()
        await expect(labels).to_have_text("user")
        await expect(dialog.get_by_role("button", name="Trust this content")).to_be_hidden()
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Replay", exact=True).click()
        await seek(page, 2)
        await expect(pane).to_contain_text("no variables yet")

    on_stage(tmp_path, test)


def test_the_gate_tab_is_an_audit(tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        page = await stage.browsing.page(f"{stage.session.id}/checker")
        await page.get_by_role("tab", name="Permissions").click()
        pane = page.locator("#inspector-panel")
        decisions = pane.locator(".decision")
        await expect(decisions).to_have_count(2)
        denied = decisions.filter(has_text="t.destroy")
        await expect(denied).to_contain_text("denied")
        await expect(denied).to_contain_text("destroys or sends data out")
        gate = next(one for one in stage.session.records() if one.kind == "gate" and not one.fields["allow"])
        await expect(denied).to_contain_text(gate.text("reason"))
        await pane.get_by_label("Every agent").check()
        await expect(decisions).to_have_count(3)
        await pane.get_by_label("Denied only").check()
        await expect(decisions).to_have_count(1)
        await page.get_by_role("button", name="Replay", exact=True).click()
        await seek(page, 2)
        await expect(decisions).to_have_count(0)

    on_stage(tmp_path, test)


def test_the_tabs_by_keyboard(tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        page = await stage.browsing.page(stage.session.id)
        await page.get_by_role("tab", name="Overview").focus()
        await page.keyboard.press("ArrowLeft")
        records = page.get_by_role("tab", name="Journal")
        await expect(records).to_be_focused()
        await expect(records).to_have_attribute("aria-selected", "true")
        rows = page.locator("#inspector-panel").locator(".rows li")
        own = sum(one.agent == "/" for one in stage.session.records())
        await expect(rows.first).to_have_attribute("aria-setsize", str(own))
        await page.keyboard.press("ArrowRight")
        await expect(page.get_by_role("tab", name="Overview")).to_be_focused()
        await expect(page.locator("#inspector-panel")).to_contain_text("Budget")

    on_stage(tmp_path, test)


def test_a_record_of_another_time_is_found_from_the_list(tmp_path: Path) -> None:
    long_journal(tmp_path / "sessions", 3000, name="20260304-050607-0a0b0c0d")

    async def main() -> None:
        async with runtime(tmp_path, replies({})) as opened, browsing(opened) as browser:
            page = await browser.page("replay:20260304-050607-0a0b0c0d")
            await expect(page.locator("[data-role=replay-total]")).to_have_text("of 3000")
            await page.get_by_role("tab", name="Journal").click()
            pane = page.locator("#inspector-panel")
            # Rows of the list's beginning stand there until it has followed the scrolling.
            top = await pane.locator(".rows button").first.get_attribute("data-n")
            assert await pane.locator(".rows li").count() < 100
            await pane.evaluate("pane => { pane.scrollTop = pane.scrollHeight / 2 }")
            await expect(pane.locator(f'.rows button[data-n="{top}"]')).to_have_count(0)
            number = await pane.locator(".rows button").filter(has_text="say").first.get_attribute("data-n")
            row = pane.locator(f'.rows button[data-n="{number}"]')
            text = await row.locator("span").last.inner_text()
            await row.click()
            entry = page.locator(f'.dialogue [data-n="{number}"]')
            await expect(entry).to_be_in_viewport()
            await expect(entry).to_contain_text(text)
            assert await page.locator(".dialogue .entry").count() < 500
            # From there to the beginning: entries come as one scrolls, and those far behind go.
            # The page notes every entry that ever stood there: some come and go between two looks of ours.
            first = page.locator('.dialogue [data-n="3"]')
            await page.locator(".dialogue").evaluate(
                """dialogue => {
                    window.seen = new Set()
                    const note = () => dialogue.querySelectorAll(".entry, .outcome").forEach(e => seen.add(+e.dataset.n))
                    note()
                    new MutationObserver(note).observe(dialogue, {childList: true, subtree: true})
                }"""
            )
            while not await first.count():  # the test's own time limit ends it if it never comes
                numbers = await page.locator(".dialogue .entry").evaluate_all(
                    "all => all.map(e => +e.dataset.n)"
                )
                assert numbers == sorted(set(numbers))
                assert len(numbers) < 500
                await page.locator("[data-role=scroll]").evaluate("pane => { pane.scrollTop = 0 }")
                await page.evaluate(
                    "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
                )
            shown = {"say", "turn", "result", "reply"}
            records = read_journal(tmp_path / "sessions" / "20260304-050607-0a0b0c0d").records
            expected = {
                one.n
                for one in records
                if one.agent == "/" and one.kind in shown and one.n <= int(number or 0)
            }
            # What a call came to is put on its card when its text has been rendered, a moment after the card.
            await page.wait_for_function("expected => expected.every(n => seen.has(n))", arg=sorted(expected))

    run(main)


@pytest.mark.parametrize("scheme", short(["light"], of=["light", "dark"]))
@pytest.mark.parametrize("width", [360, 768, 1440])
def test_the_replay_bar_fits_everywhere(tmp_path: Path, width: int, scheme: Literal["light", "dark"]) -> None:
    async def test(stage: Stage) -> None:
        page = await stage.browsing.page(f"replay:{stage.session.id}", width=width, height=720, scheme=scheme)
        await expect(page.locator("[data-role=replay-slider]")).to_be_in_viewport()
        await expect(page.locator("[data-role=replay-fork]")).to_be_in_viewport()
        await expect(page.locator("[data-role=text]")).to_be_in_viewport()
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        wide = await page.locator("[data-role=replay]").evaluate("bar => bar.scrollWidth <= bar.clientWidth")
        assert wide

    on_stage(tmp_path, test)
