"""The page in a real browser, on the real server, with an in-memory session.

Every test fails on a script error, a console error, or a violation of the content policy, and on any
request to another place than the server.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

import pytest
from playwright.async_api import expect

from iact.core.errors import JournalUnwritable, UsageError
from iact.core.ports import JSON
from iact.core.views.events import NoticeEvent
from iact.web.server import WebServer
from tests.rounds import short
from tests.web.browser import SHARED, Browsing, browsing
from tests.web.fake import LABEL, FakeAround, FakeRuntime, FakeSession, node
from tests.web.scene import busy_session
from tests.web.test_render import HOSTILE


@dataclass
class Scene(Browsing):
    """A server over an in-memory runtime, and a browser."""

    runtime: FakeRuntime


@asynccontextmanager
async def stage(*sessions: FakeSession) -> AsyncIterator[Scene]:
    runtime = FakeRuntime(*sessions)
    async with browsing(runtime, FakeAround()) as opened:
        yield Scene(opened.server, opened.browser, opened.wrongs, runtime)


run = SHARED.run


def test_the_first_message_opens_a_session_and_streams() -> None:
    async def test() -> None:
        async with stage() as scene:
            page = await scene.page()
            # Which model answers is said once: in the empty dialogue, then in the bar.
            await expect(page.locator("[data-role=model]")).to_be_hidden()
            await expect(page.locator(".empty")).to_contain_text(LABEL)
            await expect(page.locator("[data-role=modes]")).to_be_hidden()
            await page.get_by_role("button", name="Show me the disk usage").click()
            await page.keyboard.press("Enter")
            await expect(page.locator(".entry.incoming")).to_contain_text("Show me the disk usage of /tmp")
            await expect(page.locator("[data-role=text]")).to_have_value("")
            await expect(page).to_have_url(re.compile("#new-1$"))
            await expect(page.locator("[data-role=model]")).to_be_visible()
            await expect(page.locator("[data-role=model]")).to_have_text(re.compile(r"^[^,;]+$"))
            session = scene.runtime.known["new-1"]
            assert session.calls == [("say", "Show me the disk usage of /tmp in your sandbox")]
            session.show(node("/", "thinking"))
            await expect(page.locator(".live-text")).to_have_text("Preparing the next turn")
            session.write("/", "Let me look.\n\n```shell.run\ndf -h")
            await expect(page.locator(".draft-code pre")).to_have_text("df -h")
            await expect(page.locator(".draft-code header")).to_have_text("shell.run")
            session.show(node("/", "acting"))
            turn = session.append("turn", body="Let me look.\n\n```shell.run\ndf -h /tmp\n```\n")
            await expect(page.locator(".card.action")).to_contain_text("df -h /tmp")
            await expect(page.locator(".entry.draft")).to_have_count(0)
            call = session.append("call", turn=turn.n, action=0, function="shell.run")
            session.print("/", call.n, "Filesystem\n")
            await expect(page.locator(".entry.draft .output")).to_have_text("Filesystem\n")
            session.append(
                "result", body="Filesystem\n16M", call=call.n, turn=turn.n, action=0, function="shell.run",
                status="ok", ms=20, data={"exit": 0},
            )  # fmt: skip
            await expect(page.locator(".card.result")).to_contain_text("exit 0")
            await expect(page.locator(".entry.draft")).to_have_count(0)
            session.append("reply", body="It is **16 MB**.", to="user", status="ok")
            await expect(page.locator(".entry.reply strong")).to_have_text("16 MB")
            await expect(page.locator("[data-role=live]")).to_contain_text("Reply from Root agent")

    run(test)


def test_the_tree_shows_every_agent_and_its_dialogue() -> None:
    async def test() -> None:
        async with stage(busy_session()) as scene:
            page = await scene.page("demo")
            await expect(page.get_by_role("treeitem")).to_have_count(3)
            await page.locator('[data-path="/analyst/checker"] > .node').click()
            await expect(page.locator("[data-role=agent-name]")).to_have_text("/analyst/checker")
            entries = page.locator(".dialogue .entry:not(.minor)")
            await expect(entries).to_have_count(4)
            await expect(entries.nth(0)).to_contain_text("Recompute the residuals")
            await expect(entries.nth(1)).to_contain_text("Which threshold")
            await expect(entries.nth(2)).to_contain_text("three standard deviations")
            await expect(entries.nth(3)).to_contain_text("residuals.py")
            await page.locator('[data-path="/analyst"] > .node').click()
            await expect(page.locator(".entry.child")).to_contain_text("Which threshold")
            await expect(page.locator("[data-role=inspector]")).to_contain_text("a careful statistician")
            await expect(page.locator("[data-role=inspector]")).to_contain_text("3.9k (75 %)")
            await expect(page).to_have_url(re.compile("#demo/analyst$"))
            await page.reload()
            await expect(page.locator("[data-role=agent-name]")).to_have_text("/analyst")

    run(test)


def test_every_control_on_a_node_by_mouse() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo")
            row = page.locator('[data-path="/analyst/checker"] > .node')
            await expect(row.locator(".node-controls")).to_be_hidden()
            await row.hover()
            await row.get_by_role("button", name="Pause").click()
            await expect(page.locator(".dialogue")).not_to_contain_text("offline")
            session.show(
                node("/", "waiting"),
                node("/analyst", "waiting"),
                node("/analyst/checker", "paused", paused=True),
            )
            await row.hover()
            await row.get_by_role("button", name="Message this agent").click()
            await expect(page.locator("[data-role=text]")).to_be_focused()
            await page.get_by_role("radio", name="Interrupt").check()
            await page.locator("[data-role=text]").fill("Use two.")
            await page.get_by_role("button", name="Send").click()
            await expect(page.locator(".entry.intervention")).to_contain_text("Use two.")
            await row.hover()
            await row.get_by_role("button", name="Resume").click()
            await expect(page.locator("[data-role=agent-name]")).to_have_text("/analyst/checker")
            await session.called("resume")
            head = page.locator("[data-role=controls]")
            await head.get_by_role("button", name="Stop").click()
            await expect(head.get_by_role("button", name="Press again")).to_be_visible()
            assert session.calls[-1] == ("resume", "/analyst/checker")
            await head.get_by_role("button", name="Press again").click()
            await session.called("cancel")
            assert session.calls == [
                ("pause", "/analyst/checker"),
                ("inject", "/analyst/checker", "Use two.", "interrupt"),
                ("resume", "/analyst/checker"),
                ("cancel", "/analyst/checker"),
            ]

    run(test)


def test_every_control_by_keyboard_alone() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo")
            await expect(page.get_by_role("treeitem")).to_have_count(3)
            for _ in range(20):
                await page.keyboard.press("Tab")
                if await page.evaluate("document.activeElement.getAttribute('role') === 'treeitem'"):
                    break
            await page.keyboard.press("ArrowDown")
            await page.keyboard.press("ArrowDown")
            await expect(page.locator('[data-path="/analyst/checker"]')).to_be_focused()
            await page.keyboard.press("p")
            await page.keyboard.press("x")
            await page.keyboard.press("x")
            await page.keyboard.press("ArrowLeft")
            await expect(page.locator('[data-path="/analyst"]')).to_be_focused()
            await page.keyboard.press("ArrowLeft")
            await expect(page.locator('[data-path="/analyst/checker"]')).to_be_hidden()
            await page.keyboard.press("Enter")
            await expect(page.locator("[data-role=agent-name]")).to_have_text("/analyst")
            await page.keyboard.press("i")
            await page.keyboard.type("Look again.")
            await page.keyboard.press("Enter")
            await expect(page.locator(".entry.intervention")).to_contain_text("Look again.")
            assert session.calls == [
                ("pause", "/analyst/checker"),
                ("cancel", "/analyst/checker"),
                ("inject", "/analyst", "Look again.", "deliver"),
            ]

    run(test)


def test_many_agents_are_filtered_by_name_and_state() -> None:
    async def test() -> None:
        session = FakeSession("s")
        paths = ["/", *(f"/a{number}" for number in range(10)), "/a3/deep"]
        session.show(*(node(path, "acting" if path == "/a3/deep" else "done") for path in paths))
        async with stage(session) as scene:
            page = await scene.page("s")
            items = page.get_by_role("treeitem")
            await expect(items).to_have_count(12)
            field = page.get_by_role("searchbox", name="Filter agents")
            await field.fill("acting")
            # What is found, and what it stands below.
            await expect(items).to_have_count(3)
            await expect(page.locator('[data-path="/a3/deep"]')).to_be_visible()
            await page.locator('[data-path="/"]').focus()
            await page.keyboard.press("ArrowDown")
            await expect(page.locator('[data-path="/a3"]')).to_be_focused()
            await field.fill("a7")
            await expect(items).to_have_count(2)
            await field.fill("")
            await expect(items).to_have_count(12)
            # How many are in which state is said, and is a way to them and back.
            working = page.get_by_role("button", name="1 acting")
            await working.click()
            await expect(working).to_have_attribute("aria-pressed", "true")
            await expect(items).to_have_count(3)
            await working.click()
            await expect(items).to_have_count(12)
            await expect(page.get_by_role("treeitem", name="Root agent, done")).to_be_visible()

    run(test)


def test_intent_is_switched_and_shown_to_everyone() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            one, other = await scene.page("demo"), await scene.page("demo")
            await one.get_by_role("radio", name="Anything").check()
            await expect(other.get_by_role("radio", name="Anything")).to_be_checked()
            assert session.intent == 2
            session.fail = UsageError("The intent can't be changed now.")
            await other.get_by_role("radio", name="Read only").click()
            await expect(other.locator("[data-role=news]")).to_have_text("The intent can't be changed now.")
            await expect(other.get_by_role("radio", name="Anything")).to_be_checked()

    run(test)


def test_levels_of_the_policy_stand_between_the_three() -> None:
    async def test() -> None:
        session = busy_session()
        session.levels, session.intent = {"draft": 0.5, "publish": 1.5}, 1.75
        async with stage(session) as scene:
            page = await scene.page("demo")
            levels = page.locator("[data-role=intent] label")
            await expect(levels).to_have_text(
                ["Read only", "draft", "Change files", "publish", "1.75", "Anything"]
            )
            await expect(page.get_by_role("radio", name="1.75")).to_be_checked()
            await page.get_by_role("radio", name="publish").check()
            await expect(levels).to_have_text(["Read only", "draft", "Change files", "publish", "Anything"])
            assert session.intent == 1.5

    run(test)


def test_a_refused_message_stays_in_the_field() -> None:
    async def test() -> None:
        session = busy_session()
        async with stage(session) as scene:
            page = await scene.page("demo")
            session.fail = UsageError("The disk is full.")
            await page.locator("[data-role=text]").fill("Do it.")
            await page.keyboard.press("Enter")
            await expect(page.locator("[data-role=news]")).to_have_text("The disk is full.")
            await expect(page.locator("[data-role=text]")).to_have_value("Do it.")
            session.fail = None
            await page.keyboard.press("Enter")
            await expect(page.locator(".entry.incoming").last).to_contain_text("Do it.")
            await expect(page.locator("[data-role=text]")).to_have_value("")

    run(test)


def test_what_ended_a_session_is_an_alert() -> None:
    async def test() -> None:
        session = busy_session()
        other = FakeSession("other")
        async with stage(session, other) as scene:
            page, late = await scene.page("demo"), await scene.page("other")
            await expect(page.get_by_role("alert")).to_be_hidden()
            await session.watched()
            session.emit(NoticeEvent("Building the base image: 3 of 5."))
            await expect(page.locator("[data-role=news]")).to_have_text("Building the base image: 3 of 5.")
            await expect(page.get_by_role("alert")).to_be_hidden()
            session.failure = JournalUnwritable("The disk is full.")
            session.emit(NoticeEvent("The disk is full."))
            await expect(page.get_by_role("alert")).to_have_text("The disk is full.")
            # Whoever comes later is told, too, and whoever leaves it is not told any more.
            await late.goto(f"http://127.0.0.1:{scene.server.port}/#demo")
            await expect(late.get_by_role("alert")).to_have_text("The disk is full.")
            await late.goto(f"http://127.0.0.1:{scene.server.port}/#other")
            await expect(late.get_by_role("alert")).to_be_hidden()

    run(test)


def test_a_lost_line_comes_back_without_loss_or_doubling() -> None:
    async def test() -> None:
        session = FakeSession("s")
        session.append("say", body="number 1")
        async with stage(session) as scene:
            page = await scene.page("s")
            await expect(page.locator(".entry")).to_have_count(1)
            port, key = scene.server.port, scene.server.key
            await scene.server.stop()
            await expect(page.locator("[data-role=connection]")).to_have_attribute("data-state", "offline")
            for number in range(2, 40):
                session.append("say", body=f"number {number}")
            session.write("/", "half a thought")
            async with WebServer(scene.runtime, port=port, key=key):
                await expect(page.locator(".entry:not(.draft)")).to_have_count(39)
                await expect(page.locator(".entry.draft")).to_contain_text("half a thought")
                texts = await page.locator(".entry:not(.draft) .typed").all_text_contents()
                assert texts == [f"number {number}" for number in range(1, 40)]
            # The browser itself reports each refused connection; nothing else may have gone wrong.
            scene.wrongs.forgive_lost_line()

    run(test)


def test_a_restarted_server_says_what_to_do() -> None:
    async def test() -> None:
        session = FakeSession("s")
        async with stage(session) as scene:
            page = await scene.page("s")
            port = scene.server.port
            await scene.server.stop()
            async with WebServer(scene.runtime, port=port):
                await expect(page.locator(".sign-in")).to_contain_text("Paste the new address")
            scene.wrongs.forgive_lost_line()
            scene.wrongs.forgive("401", "HTTP Authentication failed")

    run(test)


def test_an_address_of_no_session_is_said_and_harmless() -> None:
    async def test() -> None:
        async with stage() as scene:
            page = await scene.page("gone/coder")
            missing = page.get_by_role("alert").filter(has_text="This session does not exist")
            await expect(missing).to_contain_text("There is no session gone.")
            # Of what does not exist there is nothing to say, and nothing comes of it.
            for part in ("#inspector-panel .facts, #inspector-panel dl", ".earlier", "[role=treeitem]"):
                await expect(page.locator(part).filter(visible=True)).to_have_count(0)
            await missing.get_by_role("button", name="New session").click()
            await expect(missing).to_be_hidden()

    run(test)


@pytest.mark.parametrize("width", [390, 1280])
def test_from_an_address_of_no_session_the_sessions_are_reached(width: int) -> None:
    async def test() -> None:
        session = FakeSession("there")
        session.append("say", body="Sail to Bergen")
        async with stage(session) as scene:
            page = await scene.page("gone/coder", width=width)
            missing = page.get_by_role("alert").filter(has_text="This session does not exist")
            await missing.get_by_role("button", name="All sessions").click()
            await expect(page.get_by_role("searchbox", name="Search in all sessions")).to_be_focused()
            await page.locator(".session-row", has_text="Sail to Bergen").get_by_role("button").first.click()
            await expect(page.locator(".entry.incoming")).to_contain_text("Sail to Bergen")
            await expect(missing).to_be_hidden()

    run(test)


def test_a_page_that_is_led_to_no_session_says_so() -> None:
    """As a link to a session does that was deleted meanwhile, in a page that shows another."""

    async def test() -> None:
        async with stage(busy_session()) as scene:
            page = await scene.page("demo")
            await expect(page.locator(".card.result")).to_be_visible()
            await page.get_by_role("tab", name="Timeline").click()
            await expect(page.locator(".timeline-track").first).to_be_visible()
            known = set(scene.runtime.known)
            await page.evaluate("location.hash = 'gone'")
            missing = page.get_by_role("alert").filter(has_text="This session does not exist")
            await expect(missing).to_be_visible(timeout=5000)
            await expect(page.locator(".entry")).to_have_count(0)
            await page.get_by_role("tab", name="Context").click()
            await page.get_by_role("tab", name="Timeline").click()
            await expect(page.locator("#inspector-panel")).to_contain_text("Nothing has been done yet.")
            await expect(missing).to_be_visible()
            assert set(scene.runtime.known) == known, "a look begins no session"

    run(test)


def test_an_intervention_says_where_it_was_read() -> None:
    async def test() -> None:
        session = FakeSession("s")
        injected = session.append("control", "/", "Stop.", op="inject", by="user", mode="queue")
        async with stage(session) as scene:
            page = await scene.page("s")
            receipt = page.locator(".intervention .receipt")
            await expect(receipt).to_have_text("Not read yet")
            session.append("turn", "/", "As you say.", took=[injected.n])
            await expect(receipt).to_have_text(re.compile("^Read at .*03:0"))
            await page.reload()
            await expect(receipt).to_have_text(re.compile("^Read at .*03:0"))

    run(test)


def test_sessions_are_listed_searched_and_opened() -> None:
    async def test() -> None:
        other = FakeSession("other")
        other.append("say", body="Plan the garden")
        async with stage(busy_session(), other) as scene:
            page = await scene.page("demo")
            await page.locator("[data-role=sessions]").click()
            await page.get_by_role("searchbox").fill("garden")
            await expect(page.locator("[data-role=sessions-list] li")).to_have_count(1)
            await page.get_by_role("button", name=re.compile("^Plan the garden")).click()
            await expect(page.locator(".entry.incoming .typed")).to_have_text("Plan the garden")
            await page.get_by_role("tab", name="Agents").click()
            await expect(page.get_by_role("treeitem")).to_have_count(1)
            await expect(page).to_have_url(re.compile("#other$"))
            await page.go_back()
            await expect(page.get_by_role("treeitem")).to_have_count(3)
            await page.locator("[data-role=sessions]").click()
            await page.get_by_role("button", name="New session").click()
            await expect(page.get_by_role("heading", name="want done")).to_be_visible()

    run(test)


def hostile_beside(session: FakeSession, text: str) -> None:
    """Content in every record that is shown beside a dialogue."""
    session.append(
        "clearance", "/", op="ask", turn=1, action=0, function=text, reason=text, why=text, impact=1,
        params={text: text}, provenance={text: [text]}, read=[text],
        attached={f"{text}2": {"media": text, "size": 1, "sha256": text}},
    )  # fmt: skip
    session.append(
        "recall", "/", text, rows=[
            {
                "id": text, "kind": "fact", "score": 1, "at": text, "session": text, "why": text, "agent": text,
                "untrusted": [text],
            }
        ],
    )  # fmt: skip
    step: JSON = {"id": text, "kind": text, "call": text, "after": [text]}
    session.append("plan", "/", version=1, reason=text, add=[step], drop=[], rewire=[])
    session.append("node", "/", node=text, version=1, to=text, detail=text)
    session.append("ask", "/", text, question=text, node=text)
    session.append("upload", "/", text, file=text, var=text, media=text, blob={"size": 1, "sha256": text})
    session.append("clearance", "/", op="answer", ask=1, allow=True, by="user", reason=text)


def test_hostile_content_does_nothing_anywhere() -> None:
    async def test() -> None:
        session = FakeSession("s")
        async with stage(session) as scene:
            page = await scene.page("s")
            for number, text in enumerate(HOSTILE.values()):
                clean = text.replace("\ud800", "")
                session.append("say", body=clean)
                session.append("turn", body=clean, model=clean)
                session.append("result", body=clean, function=clean, status="ok", media=clean)
                session.append("reply", body=clean, to="user", status="ok")
                session.append("notice", body=clean, level="warning", code=clean)
                session.append("discard", body=clean, reason="pause")
                session.append("gate", function=clean, reason=clean)
                path = f"/{'<b>x</b>' if number % 2 else 'javascript:'}{number}"
                session.append("spawn", path, clean, caller=clean)
                session.show(node("/"), node(path, "acting", doing=clean))
                session.write("/", clean)
            for text in HOSTILE.values():
                hostile_beside(session, text.replace("\ud800", ""))
            session.append("say", body="the end")
            await expect(page.locator(".entry:not(.draft)").last).to_contain_text("the end")
            bar = page.get_by_role("region", name="Approvals")
            await expect(bar).to_contain_text(f"1 of {len(HOSTILE)}")
            for number in range(1, len(HOSTILE) + 1):
                await expect(bar).to_contain_text(f"{number} of {len(HOSTILE)}")
                await expect(bar.locator(".card.asked")).to_be_visible()
                await bar.get_by_role("button", name="Next").click()
            for tab in ("Overview", "Plan", "Context", "Variables", "Memory", "Permissions", "Journal"):
                await page.get_by_role("tab", name=tab).click()
                await expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
                for place in (".scroll", ".tree", ".inspector", ".approvals"):
                    found = page.locator(
                        f"{place} :is(script, img, iframe, object, style, [onload], [onerror])"
                    )
                    assert await found.count() == 0
            assert await page.locator(":is(.scroll, .tree) [style]").count() == 0
            assert await page.locator(".dialogue [id], .dialogue [name]").count() == 0
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    run(test)


def test_ten_thousand_records_stay_quick() -> None:
    async def test() -> None:
        session = FakeSession("s")
        for number in range(1, 10_001):
            session.append("say", body=f"number {number}")
        async with stage(session) as scene:
            page = await scene.page("s")
            await expect(page.locator(".entry").last).to_contain_text("number 10000")
            assert await page.locator(".entry").count() < 500
            await page.get_by_role("button", name="Show earlier messages").click()
            await expect(page.locator(".entry").filter(has_text="number 9800")).to_have_count(1)
            assert await page.locator(".entry").count() < 500

    run(test)


@pytest.mark.parametrize("scheme", short(["light"], of=["light", "dark"]))
@pytest.mark.parametrize(("width", "height"), [(360, 720), (640, 400), (768, 720), (1024, 720), (1440, 720)])
def test_nothing_sticks_out_at_any_width(width: int, height: int, scheme: Literal["light", "dark"]) -> None:
    """640 × 400 is what a window of 1280 × 800 has at 200 %."""

    async def test() -> None:
        async with stage(busy_session()) as scene:
            page = await scene.page("demo", width=width, height=height, scheme=scheme)
            await expect(page.locator(".card.result")).to_be_visible()
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            await expect(page.locator("[data-role=text]")).to_be_in_viewport()
            await expect(page.get_by_role("radio", name="Change files")).to_be_in_viewport()
            for drawer, pane in (("tree", "#tree-pane"), ("inspector", "#inspector-pane")):
                button = page.locator(f"[data-drawer={drawer}]")
                if await button.is_visible():
                    await expect(page.locator(pane)).not_to_be_visible()
                    await button.click()
                await expect(page.locator(pane)).to_be_in_viewport()
                await page.keyboard.press("Escape")
            for key, name in (("G", "Settings"), ("O", "Modules")):
                await page.keyboard.press(f"Alt+Shift+{key}")
                dialog = page.get_by_role("dialog", name=name)
                await expect(dialog.get_by_role("button", name="Close")).to_be_in_viewport(ratio=1)
                assert await dialog.evaluate(
                    "dialog => dialog.scrollWidth <= dialog.clientWidth && dialog.getBoundingClientRect().bottom <= innerHeight"
                )
                await page.keyboard.press("Escape")

    run(test)


def test_the_page_is_small() -> None:
    async def test() -> None:
        async with stage() as scene:
            page = await scene.page()
            sizes = await page.evaluate(
                "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
                ".map(e => [e.decodedBodySize, e.encodedBodySize]).reduce(([a, b], [c, d]) => [a + c, b + d])"
            )
            painted = await page.evaluate(
                "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
            )
            print(
                f"{sizes[1]:,} bytes on the line, {sizes[0]:,} unpacked; first paint after {painted:.0f} ms"
            )
            assert 20_000 < sizes[1] < 75_000
            assert sizes[0] < 240_000

    run(test)


PUT: str = """([unit, times]) => {
    const field = document.querySelector("[data-role=text]");
    field.value = unit.repeat(times);
    field.dispatchEvent(new Event("input"));
    field.focus();
}"""
"""Puts a long text into the message field. Typing it would take minutes."""


def test_a_long_message_is_sent_whole_and_one_over_the_bound_is_told_before() -> None:
    async def test() -> None:
        session = FakeSession("s")
        async with stage(session) as scene:
            page = await scene.page("s")
            field = page.locator("[data-role=text]")
            unit, times = "漢字 and words.\n", 40_000
            await page.evaluate(PUT, [unit, times])
            await page.keyboard.press("Enter")
            await session.called("say")
            assert [call[1] == unit * times for call in session.calls if call[0] == "say"] == [True]
            await expect(field).to_have_value("")

            await page.evaluate(PUT, ["x" * 1023 + "\n", 33 * 1024])
            await page.keyboard.press("Enter")
            await expect(page.locator("[data-role=news]")).to_contain_text(
                "This message is too long: 33.0 MB"
            )
            await expect(page.locator("[data-role=connection]")).to_have_attribute("data-state", "open")
            assert len([call for call in session.calls if call[0] == "say"]) == 1

    run(test)
