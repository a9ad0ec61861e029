"""What a screen reader is given: the accessibility tree of Chromium itself, in which what lies behind a dialog is not.

That roles, contrasts and labels are right in every view is for `test_accessible_page.py`; here it is what somebody hears who
sees nothing: where they are, what happens, and that it can be acted on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from playwright.async_api import Page, expect

from tests.web.fake import FakeSession
from tests.web.scene import busy_session
from tests.web.test_accessible_page import everything
from tests.web.test_approvals_page import ask
from tests.web.test_forms_page import ask as form
from tests.web.test_page import run, stage
from tests.web.test_plan_page import steered

ACTED_ON: Final = frozenset(
    {
        "article", "button", "checkbox", "combobox", "dialog", "link", "listbox", "log", "menuitem", "navigation", "option", "radio",
        "region", "searchbox", "slider", "spinbutton", "tab", "tablist", "tabpanel", "textbox", "tree", "treeitem",
    }
)  # fmt: skip
"""Roles of what a person goes to or acts on, and so needs a name."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A node of the accessibility tree."""

    role: str
    name: str
    live: str


async def heard(page: Page) -> list[Heard]:
    """All that a screen reader is given now, in its order."""
    line = await page.context.new_cdp_session(page)
    tree = await line.send("Accessibility.getFullAXTree")
    await line.detach()
    return [
        Heard(
            str(node.get("role", {}).get("value", "")),
            str(node.get("name", {}).get("value", "")),
            next(
                (str(one["value"]["value"]) for one in node.get("properties", ()) if one["name"] == "live"),
                "",
            ),
        )
        for node in tree["nodes"]
        if not node["ignored"]
    ]


async def named(page: Page, view: str) -> list[Heard]:
    """The same; fails if something to go to has no name, or two articles have one."""
    found = await heard(page)
    assert [one.role for one in found if one.role in ACTED_ON and not one.name.strip()] == [], view
    return found


async def until(page: Page, holds: Callable[[list[Heard]], bool]) -> None:
    """Wait until something holds of what a screen reader is given; the test's own time limit ends it if it never does."""
    while not holds(await heard(page)):
        await page.evaluate("() => new Promise(requestAnimationFrame)")


async def says(page: Page, words: str) -> None:
    """Wait until `words` are announced, in a part of the page that is not out of reach."""

    def announced(found: list[Heard]) -> bool:
        places = (at for at, one in enumerate(found) if one.live == "polite" and one.role != "status")
        return any(words in one.name for at in places for one in found[at:])

    await expect(page.locator("[data-role=live]")).to_contain_text(words)
    await until(page, announced)


OUTLINE: Final = """
- banner:
  - heading "iact" [level=1]
  - status: connected
  - 'group "Permission: what agents may do"'
- navigation "Sessions and agents":
  - tablist "Sessions or agents":
    - tab "Sessions"
    - tab "Agents 3" [selected]
  - tabpanel "Agents 3":
    - tree "Call tree":
      - treeitem "Root agent, waiting for /analyst" [expanded] [selected]:
        - group:
          - treeitem "/analyst, waiting for /analyst/checker" [expanded]
- main:
  - heading "Root agent" [level=2]
  - button "Pause Root agent"
  - button "Stop Root agent"
  - region "Dialogue":
    - log "Messages":
      - article /^You, /
      - article /^Root agent, /
      - article /^Root agent, /
  - textbox "Message to the root agent"
  - button "Stop"
  - group "How the message is delivered"
- complementary "Details of the selected agent":
  - heading "Details" [level=2]
  - tablist "Details"
  - tabpanel "Overview"
"""


def test_the_page_has_an_outline_and_nothing_without_a_name() -> None:
    async def test() -> None:
        session = everything()
        async with stage(busy_session("plain"), session, steered()) as scene:
            page = await scene.page("plain")
            await expect(page.locator(".card.result")).to_be_visible()
            await expect(page.locator("body")).to_match_aria_snapshot(OUTLINE)
            await named(page, "a session")
            page = await scene.page("demo")
            await expect(page.locator(".notice.warning")).to_be_visible()
            for tab in await page.get_by_role("tablist", name="Details").get_by_role("tab").all():
                await tab.click()
                await expect(tab).to_have_attribute("aria-selected", "true")
                await named(page, await tab.inner_text())
            for key, name in (("O", "Modules"), ("G", "Settings"), ("F", "Memory")):
                await page.keyboard.press(f"Alt+Shift+{key}")
                await expect(page.get_by_role("dialog", name=name)).to_be_visible()
                await named(page, name)
                await page.keyboard.press("Escape")
            await page.keyboard.press("Control+k")
            await expect(
                page.get_by_role("dialog", name="Commands").get_by_role("option").first
            ).to_be_visible()
            await named(page, "the palette")
            await page.keyboard.press("Escape")
            form(session)
            bar = page.get_by_role("region", name="Approvals")
            await expect(bar.get_by_label("nights")).to_be_visible()
            await named(page, "a module's question")
            await page.keyboard.press("Alt+Shift+S")
            await expect(page.get_by_role("button", name="New session")).to_be_visible()
            await named(page, "the list of sessions")
            page = await scene.page("s/audit")
            await page.get_by_role("button", name="Edit steps").click()
            await expect(page.get_by_role("dialog", name="Edit the plan")).to_be_visible()
            await named(page, "steps that are edited")

    run(test)


def test_replies_and_questions_are_announced_wherever_one_is() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo")
            await expect(page.locator(".card.result")).to_be_visible()
            session.append("reply", body="Yes: **2025** is an outlier.", to="user", status="ok")
            await says(page, "Reply from Root agent: Yes: 2025 is an outlier.")
            # What is open lies over all else, and a screen reader hears nothing of that.
            await page.get_by_role("tab", name="Timeline").click()
            await page.get_by_role("button", name="Enlarge").click()
            large = page.get_by_role("dialog", name="Timeline")
            await expect(large).to_be_visible()
            asked = ask(session, "/analyst")
            await says(page, "/analyst asks to run mail.send.")
            # It is answered from there, by keyboard alone.
            deny = large.get_by_role("region", name="Approvals").get_by_role("button", name="Deny")
            await expect(deny).to_be_enabled()
            await page.keyboard.press("Alt+Shift+A")
            await expect(deny).to_be_focused()
            await page.keyboard.press("Tab")
            await expect(page.get_by_role("button", name="Approve")).to_be_focused()
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("region", name="Approvals")).to_be_hidden()
            assert session.calls == [("clear", str(asked.n), "True", "None")]
            session.append("reply", body="It was sent.", to="user", status="ok")
            await says(page, "Reply from Root agent: It was sent.")
            await page.keyboard.press("Escape")
            await expect(large).to_be_hidden()
            await expect(page.get_by_role("button", name="Enlarge")).to_be_focused()
            form(session)
            await says(page, "/analyst/checker: inn.book asks you something.")

    run(test)


def test_who_leaves_a_dialog_is_where_they_were() -> None:
    async def test() -> None:
        async with stage(busy_session()) as scene:
            page = await scene.page("demo")
            text = page.get_by_role("textbox", name="Message to the root agent")
            for keys, name in (
                ("Alt+Shift+G", "Settings"),
                ("Alt+Shift+O", "Modules"),
                ("Alt+Shift+F", "Memory"),
                ("Control+k", "Commands"),
            ):
                await text.focus()
                await page.keyboard.press(keys)
                dialog = page.get_by_role("dialog", name=name)
                await expect(dialog).to_be_visible()
                assert await page.evaluate("Boolean(document.activeElement.closest('dialog[open]'))"), name
                # Nothing behind it is there for a screen reader.
                await until(page, lambda found: "main" not in {one.role for one in found})
                await page.keyboard.press("Escape")
                await expect(dialog).to_be_hidden()
                await expect(text).to_be_focused()
            await page.keyboard.press("Control+f")
            await expect(page.get_by_role("searchbox", name="Text to find")).to_be_focused()
            await page.keyboard.press("Escape")
            await expect(text).to_be_focused()
            button = page.get_by_role("button", name="Settings")
            await button.focus()
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("dialog", name="Settings")).to_be_visible()
            await page.keyboard.press("Escape")
            await expect(button).to_be_focused()

    run(test)


def test_a_connection_that_is_lost_is_said() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="Hello.")
        async with stage(session) as scene:
            page = await scene.page("s")
            state = page.get_by_role("status").filter(has_text=re.compile("connected"))
            await expect(state).to_be_visible()
            await scene.server.stop()
            await expect(page.get_by_role("status").filter(has_text="Server not reachable")).to_be_visible()
            scene.wrongs.forgive_lost_line()

    run(test)
