"""What an agent must not do without leave is asked in sight of whoever looks, wherever they look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
from playwright.async_api import expect

from iact.core.errors import UsageError
from iact.core.records.record import Record
from tests.web.fake import FakeSession, node
from tests.web.scene import busy_session
from tests.web.test_page import run, stage

BELOW: Final = """() => {
    const edge = document.querySelector("[data-role=approvals]").getBoundingClientRect().bottom;
    return [...document.querySelectorAll("dialog[open]")].every(one => {
        const { top, bottom } = one.getBoundingClientRect();
        return top >= edge && bottom <= innerHeight;
    });
}"""
"""Whether every dialog that is open stands below the bar, whole."""


def ask(
    session: FakeSession,
    agent: str,
    function: str = "mail.send",
    *,
    turn: int = 900,
    action: int = 0,
    to: str = "ann@example.com",
    read: Sequence[str] = ("tool:web.fetch",),
) -> Record:
    """A call that waits for clearance, as the gate records it."""
    return session.append(
        "clearance",
        agent,
        op="ask",
        turn=turn,
        action=action,
        function=function,
        rule="provenance",
        impact=2,
        why="It sends something out.",
        reason="The call has impact 2 and is touched by tool:web.fetch.",
        user="you",
        params={"to": to, "text": "<b>All</b> the figures.\n" + "line\n" * 40},
        provenance={"to": ["user"], "text": ["model", "tool:web.fetch"]},
        read=list(read),
        attached={"text": {"media": "text/plain", "size": 223}},
    )


def test_a_question_is_in_sight_everywhere_and_shows_the_call_in_full() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo")
            bar = page.get_by_role("region", name="Approvals")
            await expect(bar).to_be_hidden()
            asked = ask(session, "/analyst/checker")
            await expect(bar).to_be_in_viewport()
            await expect(bar).to_contain_text("Root agent › analyst › checker")
            await expect(bar).to_contain_text("mail.send")
            await expect(bar).to_contain_text("destroys or sends data out")
            await expect(bar).to_contain_text("ann@example.com")
            await expect(bar).to_contain_text("<b>All</b> the figures.")
            await expect(bar).to_contain_text(
                "It destroys or sends data out, and text from tool:web.fetch may be behind it."
            )
            await expect(bar.locator(".badge.strange")).to_have_count(2)
            await expect(page.locator("[data-role=live]")).to_contain_text("asks to run mail.send")
            # Whichever tab, agent or time is looked at.
            await page.get_by_role("tab", name="Journal").click()
            await page.locator('[data-path="/analyst"] > .node').click()
            await expect(bar).to_be_in_viewport()
            await page.get_by_role("button", name="Replay", exact=True).click()
            await page.keyboard.press("Home")
            await expect(bar.get_by_role("button", name="Approve")).to_be_in_viewport()
            await page.locator("[data-role=replay-close]").click()
            await page.reload()
            await expect(bar).to_contain_text("ann@example.com")
            await bar.get_by_role("button", name="Show this agent").click()
            await expect(page.locator("[data-role=agent-name]")).to_have_text("/analyst/checker")
            await bar.get_by_role("button", name="Approve").click()
            await expect(bar).to_be_hidden()
            assert session.calls == [("clear", str(asked.n), "True", "None")]

    run(test)


@pytest.mark.parametrize("width", [360, 1280])
def test_a_dialog_and_a_drawer_leave_the_question_in_sight_and_in_reach(width: int) -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo", width=width, height=720)
            bar = page.get_by_role("region", name="Approvals")
            deny = bar.get_by_role("button", name="Deny")
            for dialog, keys in (
                ("Settings", "Alt+Shift+G"),
                ("Modules", "Alt+Shift+O"),
                ("Commands", "Control+k"),
            ):
                await page.keyboard.press(keys)
                opened = page.get_by_role("dialog", name=dialog)
                await expect(opened).to_be_visible()
                ask(session, "/analyst")
                await expect(bar).to_be_in_viewport(ratio=1)
                await expect(bar).to_contain_text("ann@example.com")
                # Neither lies on the other, and all of the dialog can be seen.
                await page.wait_for_function(BELOW)
                await expect(deny).to_be_enabled()
                await page.keyboard.press("Alt+Shift+A")
                await expect(deny).to_be_focused()
                # A real click: it fails where something else lies on the button.
                await deny.click()
                await expect(bar).to_be_hidden()
                await expect(opened).to_be_visible()
                await page.keyboard.press("Escape")
                await expect(opened).to_be_hidden()
            # A dialog over a dialog that is opened while something is asked.
            ask(session, "/analyst/checker")
            await expect(deny).to_be_enabled()
            await page.keyboard.press("Alt+Shift+G")
            await page.keyboard.press("Control+k")
            await expect(page.get_by_role("combobox", name="Search commands")).to_be_focused()
            await page.wait_for_function(BELOW)
            await deny.click(trial=True)
            await page.keyboard.press("Escape")
            await expect(page.get_by_role("dialog", name="Commands")).to_be_hidden()
            await deny.click(trial=True)
            # Who wants to see the agent sees it.
            await bar.get_by_role("button", name="Show this agent").click()
            await expect(page.get_by_role("dialog")).to_have_count(0)
            await expect(page.locator("[data-role=agent-name]")).to_have_text("/analyst/checker")
            await expect(bar).to_be_in_viewport(ratio=1)
            if width < 700:
                for drawer in ("Sessions and agents", "Details"):
                    await page.get_by_role("button", name=drawer, exact=True).click()
                    await deny.click(trial=True)
                    await page.keyboard.press("Escape")
            await deny.click()
            await expect(bar).to_be_hidden()
            assert len(session.calls) == 4

    run(test)


def test_two_people_see_one_question_and_one_answer() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            one, other = await scene.page("demo"), await scene.page("demo", width=360, height=720)
            first = ask(session, "/analyst")
            second = ask(session, "/", "files.delete", turn=901)
            bars = [page.get_by_role("region", name="Approvals") for page in (one, other)]
            for bar in bars:
                await expect(bar).to_contain_text("1 of 2")
                await expect(bar.get_by_role("button", name="Deny")).to_be_in_viewport()
            assert await other.evaluate("document.documentElement.scrollWidth <= innerWidth")
            await bars[1].get_by_role("button", name="Next").click()
            await expect(bars[1]).to_contain_text("files.delete")
            await bars[1].get_by_role("button", name="Deny").click()
            await expect(bars[0]).not_to_contain_text("of 2")
            await expect(bars[0]).to_contain_text("mail.send")
            await bars[0].get_by_label("Remember:").select_option("function")
            await bars[0].get_by_role("button", name="Approve").click()
            for bar in bars:
                await expect(bar).to_be_hidden()
            rule = "{'function': 'mail.send', 'arguments': {}}"
            assert session.calls == [
                ("clear", str(second.n), "False", "None"),
                ("clear", str(first.n), "True", rule),
            ]

    run(test)


def test_an_answer_that_is_refused_says_so_and_the_question_stays() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo")
            ask(session, "/analyst")
            session.fail = UsageError("Nothing waits there any more.")
            bar = page.get_by_role("region", name="Approvals")
            await bar.get_by_label("Remember:").select_option("call")
            await bar.get_by_role("button", name="Approve").click()
            await expect(bar.get_by_role("alert")).to_have_text("Nothing waits there any more.")
            await expect(bar.get_by_role("button", name="Approve")).to_be_enabled()
            # A script's click is nobody's answer.
            session.fail = None
            await bar.get_by_role("button", name="Approve").evaluate("button => button.click()")
            await bar.get_by_role("button", name="Deny").focus()
            await page.keyboard.press("Enter")
            await expect(bar).to_be_hidden()
            assert [call[2] for call in session.calls] == ["False"]

    run(test)


def test_a_call_that_ends_otherwise_asks_no_more() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo")
            bar = page.get_by_role("region", name="Approvals")
            ask(session, "/analyst", turn=900)
            await expect(bar).to_be_visible()
            session.append("result", "/analyst", turn=900, action=0, function="mail.send", status="cancelled")
            await expect(bar).to_be_hidden()
            ask(session, "/analyst", turn=901)
            await expect(bar).to_be_visible()
            session.append("reply", "/analyst", "Enough.", to="/", status="cancelled")
            await expect(bar).to_be_hidden()

    run(test)


def test_a_stored_session_asks_nobody() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="one")
        ask(session, "/")
        async with stage(session) as scene:
            page = await scene.page("s")
            session.show(node("/", "waiting"))
            await expect(page.get_by_role("region", name="Approvals")).to_be_visible()
            await expect(page).to_have_title("(1 to approve) one · iact")

    run(test)


def test_calls_that_wait_for_the_same_reason_are_one_question_answered_once() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo")
            bar = page.get_by_role("region", name="Approvals")
            asked = [
                ask(session, "/analyst", turn=900, action=at, to=f"p{at}@example.com") for at in range(3)
            ]
            other = ask(session, "/", "files.delete", turn=901)
            await expect(bar).to_contain_text("analyst asks 3 times to run mail.send")
            await expect(bar).to_contain_text("1 of 2")
            for at in range(3):
                await expect(bar).to_contain_text(f"p{at}@example.com")
            # One that comes while the others are shown is shown too; nothing can be answered that was not in sight.
            asked.append(ask(session, "/analyst", turn=900, action=3, to="late@example.com"))
            await expect(bar).to_contain_text("late@example.com")
            await bar.get_by_role("button", name="Approve all 4").click()
            await expect(bar).to_contain_text("files.delete")
            await expect(bar).not_to_contain_text("mail.send")
            await bar.get_by_role("button", name="Deny", exact=True).click()
            await expect(bar).to_be_hidden()
            first, *also = (str(one.n) for one in asked)
            assert session.calls == [
                ("clear", first, "True", "None", *also),
                ("clear", str(other.n), "False", "None"),
            ]

    run(test)


def test_one_question_about_many_calls_can_be_answered_one_by_one() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo", width=360, height=720)
            bar = page.get_by_role("region", name="Approvals")
            asked = [
                ask(session, "/analyst", turn=900, action=at, to=f"p{at}@example.com") for at in range(3)
            ]
            await bar.get_by_role("button", name="One by one").click()
            await expect(bar).to_contain_text("1 of 3")
            await expect(bar).not_to_contain_text("p1@example.com")
            await bar.get_by_role("button", name="Deny", exact=True).click()
            await expect(bar).to_contain_text("p1@example.com")
            await expect(bar).to_contain_text("1 of 2")
            await bar.get_by_role("button", name="Together").click()
            await expect(bar).to_contain_text("p2@example.com")
            await bar.get_by_role("button", name="Approve all 2").click()
            await expect(bar).to_be_hidden()
            first, second, third = (str(one.n) for one in asked)
            assert session.calls == [
                ("clear", first, "False", "None"),
                ("clear", second, "True", "None", third),
            ]

    run(test)


def test_what_comes_from_elsewhere_is_another_question() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo")
            bar = page.get_by_role("region", name="Approvals")
            ask(session, "/analyst", turn=900)
            ask(session, "/analyst", turn=900, action=1, read=["tool:web.fetch", "tool:mail.read"])
            await expect(bar).to_contain_text("1 of 2")
            await expect(bar.get_by_role("button", name="One by one")).to_be_hidden()

    run(test)
