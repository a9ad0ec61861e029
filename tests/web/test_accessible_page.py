"""axe-core finds nothing wrong in any view, and the main way through the page needs no mouse."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Final, Literal

import pytest
from playwright.async_api import Page, expect
from playwright.sync_api import Page as SyncPage

from iact.core.ports import CatalogueEntry
from iact.core.views.known_modules import KnownModule
from tests.core.session.fakes import replies, runtime
from tests.rounds import short
from tests.web.browser import browsing
from tests.web.fake import FakeSession, node
from tests.web.scene import busy_session
from tests.web.test_approvals_page import ask
from tests.web.test_forms_page import ask as form
from tests.web.test_memories_page import CHEESE, ROCK, Shelf
from tests.web.test_page import run, stage
from tests.web.test_plan_page import planned, steered

AXE: Final = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
RUN: Final = """async () => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations.flatMap(one => one.nodes.map(node => `${one.id}: ${node.target.join(" ")}: ${node.failureSummary}`));
}"""


DRAG: Final = """() => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(["a,b"], "a.csv", { type: "text/csv" }));
    document.body.dispatchEvent(new DragEvent("dragenter", { dataTransfer, bubbles: true, cancelable: true }));
}"""
"""A file is dragged over the page."""
EVERY_LOOK: Final = pytest.mark.parametrize(
    ("width", "scheme"),
    short([(360, "dark"), (1280, "light")], of=[*product((360, 1280), ("light", "dark"))]),
)
"""Wide and narrow, light and dark: all four together in a long run."""


def flaws(page: SyncPage) -> list[str]:
    """What axe finds in what is shown now, in a browser that a test steers step by step."""
    page.evaluate(f"{AXE}\n; undefined")
    return [str(one) for one in page.evaluate(RUN)]


async def check(page: Page, view: str) -> None:
    """Fail on anything that axe finds in what is shown now."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(f"{AXE}\n; undefined")
    assert await page.evaluate(RUN) == [], view


def everything() -> FakeSession:
    """A session with something in every view."""
    session = busy_session()
    for record in planned().records():
        session.append(record.kind, record.agent, record.body, **record.fields)
    session.append("recall", "/", "- The user likes short answers.", rows=[{"id": "a", "kind": "fact"}], ms=3)
    session.append("upload", "/", file="a.csv", var="a_csv", media="text/csv", blob={"size": 3, "sha256": ""})
    session.append("control", "/", "Stop.", op="inject", by="user", mode="queue")
    session.append("notice", "/", "The disk is nearly full.", level="warning")
    session.append("gate", "/", function="mail.send", allow=False, by="impact", impact=2, reason="No.")
    return session


@EVERY_LOOK
def test_axe_finds_nothing_in_any_view(width: int, scheme: Literal["light", "dark"]) -> None:
    async def test() -> None:
        session = everything()
        async with stage(session) as scene:
            entry = CatalogueEntry("weather", "ab" * 32, "user", "For tests.", None)
            scene.runtime.catalogue["weather"] = KnownModule(entry, None, frozenset())
            page = await scene.page("demo", width=width, height=800, scheme=scheme)
            await expect(page.locator(".notice.warning")).to_be_visible()
            await check(page, "dialogue")
            if width < 700:
                await page.get_by_role("button", name="Agents").click()
                await check(page, "the tree's drawer")
                await page.keyboard.press("Escape")
                await page.get_by_role("button", name="Details", exact=True).click()
            for tab in ("Overview", "Context", "Variables", "Memory", "Permissions", "Journal"):
                await page.get_by_role("tab", name=tab).click()
                await expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
                await check(page, tab)
            await page.keyboard.press("Escape")
            asked = ask(session, "/analyst")
            await expect(page.get_by_role("button", name="Approve")).to_be_enabled()
            await check(page, "approvals")
            await page.keyboard.press("Alt+Shift+G")
            await expect(page.get_by_role("dialog", name="Settings")).to_contain_text("This machine")
            await check(page, "approvals over a dialog")
            await page.keyboard.press("Escape")
            session.append("clearance", "/analyst", op="answer", ask=asked.n, allow=False, by="user")
            await expect(page.get_by_role("region", name="Approvals")).to_be_hidden()
            host = session.append("host", op="ask", module="web", host="a.example", port=443, seconds=600)
            await expect(page.get_by_role("button", name="Approve")).to_be_enabled()
            await check(page, "a question about a host")
            session.append("host", op="answer", ask=host.n, allow=False, by="user", lasts="once")
            await expect(page.get_by_role("region", name="Approvals")).to_be_hidden()
            await page.get_by_role("button", name="Replay", exact=True).click()
            await expect(page.locator("[data-role=replay-slider]")).to_be_visible()
            await check(page, "replay")
            await page.locator("[data-role=replay-close]").click()
            await page.get_by_role("button", name="Commands").click()
            await check(page, "palette")
            await page.keyboard.press("Escape")
            await page.locator("[data-role=sessions]").click()
            await expect(page.locator("[data-role=sessions-list] li")).to_have_count(1)
            await page.locator(".session-more").click()
            await check(page, "sessions")
            await page.get_by_role("tab", name="Agents").click()
            await page.keyboard.press("Control+f")
            await expect(page.locator("[data-role=find]")).to_be_visible()
            await page.keyboard.type("outlier")
            await expect(page.get_by_role("search", name="Search in this session")).to_contain_text("found")
            await check(page, "find")
            await page.keyboard.press("Escape")
            await page.keyboard.press("Alt+Shift+O")
            await expect(page.get_by_role("dialog", name="Modules")).to_contain_text("has not run here yet")
            await page.locator("[data-role=modules-list] summary").click()
            await check(page, "modules")
            await page.keyboard.press("Escape")
            await page.keyboard.press("Alt+Shift+G")
            await expect(page.get_by_role("dialog", name="Settings")).to_contain_text("This machine")
            await check(page, "settings")
            await page.keyboard.press("Escape")
            await page.keyboard.press("Alt+Shift+N")
            await expect(page.get_by_role("heading", name="want done")).to_be_visible()
            await check(page, "new session")

    run(test)


@EVERY_LOOK
def test_axe_finds_nothing_in_a_variable_in_memory_and_while_a_file_is_dragged(
    width: int, scheme: Literal["light", "dark"], tmp_path: Path
) -> None:
    async def test() -> None:
        script = replies({"/": ["Read $sales."]})
        async with runtime(tmp_path, script, chunk=4096, memory=Shelf((CHEESE, ROCK))) as opened:
            session = await opened.open()
            await session.upload("sales.csv", "text/csv", b"year,revenue\n2023,41200\n")
            await session.ask("What is in it?")
            async with browsing(opened) as browser:
                page = await browser.page(session.id, width=width, height=800, scheme=scheme)
                chips = page.locator(".dialogue button.chip", has_text="sales")
                # By key: what is below the pointer may move while the dialogue is drawn.
                await expect(chips).to_have_count(2)
                await chips.last.press("Enter")
                variable = page.get_by_role("dialog", name="$sales")
                await expect(variable).to_contain_text("2023,41200")
                await check(page, "variable")
                await page.keyboard.press("Escape")
                await page.keyboard.press("Alt+Shift+F")
                await expect(page.get_by_role("dialog", name="Memory")).to_be_visible()
                await page.keyboard.type("cheese")
                await page.keyboard.press("Enter")
                found = page.get_by_role("dialog", name="Memory").locator("[data-role=memories-list] > li")
                await expect(found).to_have_count(2)
                await check(page, "memory")
                await page.keyboard.press("Escape")
                await page.evaluate(DRAG)
                await expect(page.locator("[data-role=drop]")).to_be_visible()
                await check(page, "drop zone")

    run(test)


@EVERY_LOOK
def test_axe_finds_nothing_where_something_waits_or_is_missing(
    width: int, scheme: Literal["light", "dark"]
) -> None:
    """Messages that wait, one that is changed, a pause, files, the timeline, notifications, an address of no session."""

    async def test() -> None:
        session = everything()
        said = session.append("say", body="And this, when you can.")
        async with stage(session) as scene:
            page = await scene.page("demo", width=width, height=800, scheme=scheme)
            queued = replace(node("/", "thinking", doing="", used=8400), queued=(said.n,))
            session.show(queued, replace(node("/analyst", "paused", used=5200), paused=True))
            await expect(page.locator(".queued")).to_have_count(1)
            await expect(page.locator(".pause-line")).to_contain_text("/analyst is paused.")
            await check(page, "a message that waits, and a pause")
            await page.locator(".queued").get_by_role("button", name="Edit").click()
            await expect(page.locator(".queued textarea")).to_be_focused()
            await check(page, "a message that is changed")
            await page.locator(".queued").get_by_role("button", name="Cancel").click()
            await page.keyboard.press("Escape")
            if width < 700:
                await page.get_by_role("button", name="Details", exact=True).click()
            for tab, there in (("Files", ".inspector > *"), ("Timeline", ".timeline-track")):
                await page.get_by_role("tab", name=tab).click()
                await expect(page.locator(there).first).to_be_visible()
                await expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
                await check(page, tab)
            await page.keyboard.press("Escape")
            await page.locator("[data-role=sessions]").click()
            await page.get_by_text("Notifications").click()
            await expect(page.get_by_role("checkbox", name="Notify me")).to_be_visible()
            await check(page, "notifications")
            page = await scene.page("gone", width=width, height=800, scheme=scheme)
            await expect(page.get_by_role("button", name="All sessions")).to_be_visible()
            await check(page, "an address of no session")

    run(test)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_nothing_in_what_a_module_asks(width: int, scheme: Literal["light", "dark"]) -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo", width=width, height=900, scheme=scheme)
            form(session)
            bar = page.get_by_role("region", name="Approvals")
            await expect(bar.get_by_label("nights")).to_be_visible()
            await check(page, "a form")
            await page.keyboard.press("Alt+Shift+A")
            await expect(bar.get_by_role("button", name="Don't answer")).to_be_focused()

    run(test)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_a_plan(scheme: Literal["light", "dark"]) -> None:
    async def test() -> None:
        async with stage(planned()) as scene:
            page = await scene.page("s/audit", scheme=scheme)
            await expect(page.locator("svg .step")).to_have_count(4)
            await check(page, "plan")
            await page.get_by_role("button", name="Enlarge").click()
            await check(page, "plan, large")
        async with stage(steered()) as scene:
            page = await scene.page("s/audit", scheme=scheme)
            await expect(page.locator(".plan-outcome")).to_be_visible()
            await check(page, "plan that waits")
            await page.get_by_role("button", name="Edit steps").click()
            await expect(page.get_by_role("dialog", name="Edit the plan")).to_be_visible()
            await check(page, "plan that is edited")

    run(test)


def test_the_main_way_by_keyboard_alone() -> None:
    async def test() -> None:
        async with stage() as scene:
            page = await scene.page()
            # The first stop of the Tab key leads to the message field.
            await page.keyboard.press("Tab")
            await expect(page.get_by_role("link", name="Skip to the message field")).to_be_focused()
            await page.keyboard.press("Enter")
            await expect(page.locator("[data-role=text]")).to_be_focused()
            await expect(page).not_to_have_url(re.compile("composer-text"))
            await page.keyboard.type("Write to ann.")
            await page.keyboard.press("Enter")
            await expect(page.locator(".entry.incoming")).to_contain_text("Write to ann.")
            session = scene.runtime.known["new-1"]
            asked = ask(session, "/")
            await expect(page.get_by_role("button", name="Deny")).to_be_enabled()
            await page.keyboard.press("Alt+Shift+A")
            await expect(page.get_by_role("button", name="Deny")).to_be_focused()
            await page.keyboard.press("Tab")
            await expect(page.get_by_role("button", name="Approve")).to_be_focused()
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("region", name="Approvals")).to_be_hidden()
            assert session.calls[-1] == ("clear", str(asked.n), "True", "None")
            session.append("reply", body="It was *sent*.", to="user", status="ok")
            await expect(page.locator("[data-role=live]")).to_contain_text("It was sent.")
            await page.keyboard.press("Alt+Shift+T")
            await expect(page.get_by_role("treeitem")).to_be_focused()
            await page.keyboard.press("Alt+Shift+R")
            slider = page.locator("[data-role=replay-slider]")
            await expect(slider).to_be_focused()
            await page.keyboard.press("Home")
            await expect(page.locator(".entry.reply")).to_have_count(0)
            await page.keyboard.press("Escape")
            await expect(page.locator(".entry.reply")).to_have_count(1)
            await page.keyboard.press("Control+k")
            await page.keyboard.type("permission anything")
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("radio", name="Anything")).to_be_checked()
            await page.keyboard.press("Alt+Shift+N")
            await expect(page.get_by_role("heading", name="want done")).to_be_visible()
            await expect(page.locator("[data-role=text]")).to_be_focused()

    run(test)
