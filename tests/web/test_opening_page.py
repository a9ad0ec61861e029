"""A long session in a real browser: its newest messages are there first, and until all is there nothing untrue is said."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.async_api import Locator, Page, expect

from iact.web.follower import Follower
from tests.web.fake import FakeSession, node
from tests.web.test_page import run, stage

LENGTH = 3_000
EARLIER = """(before) => {
    const first = () => Number(document.querySelector(".dialogue > .entry").dataset.n);
    if (first() >= before && !document.querySelector(".scroll").scrollTop) document.querySelector(".earlier").click();
    return first() < before;
}"""
"""Whether what is before has come into the page; who is at the top already asks for it."""
TOP = """() => {
    const button = document.querySelector(".earlier");
    if (!document.querySelector(".scroll").scrollTop) button.click();
    return button.disabled;
}"""
"""Whether the oldest entry that is here stands in the page."""
LOADING = "Earlier messages are loading…"


@contextmanager
def held_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[asyncio.Event]:
    """What is before the newest records is not sent before this is set."""
    gate, send = asyncio.Event(), Follower._send_earlier

    async def later(follower: Follower) -> None:
        await gate.wait()
        await send(follower)

    with monkeypatch.context() as patch:
        patch.setattr(Follower, "_send_earlier", later)
        yield gate


def long_session() -> FakeSession:
    """Many messages; the first has a call that waits for its person, and one that runs."""
    session = FakeSession("s")
    session.append("open", models={"smart": {"model": "scripted"}})
    session.append("say", body="The very first words")
    turn = session.append("turn", "/", "```shell.run\nsleep 9\n```\n")
    session.append(
        "clearance", "/", "```sh\nrm -r old\n```", turn=turn.n, action=0, function="shell.run", impact=1,
        question="May it?", to="person", params={}, seconds=0,
    )  # fmt: skip
    session.append("spawn", "/helper", "a helper", caller="/")
    turn = session.append("turn", "/helper", "```shell.run\nls\n```\n")
    session.append("call", "/helper", turn=turn.n, action=0, function="shell.run", impact=0)
    session.ends = (4, 7)
    while len(session.records()) < LENGTH:
        session.append("say", body=f"Message {len(session.records()) + 1}")
    session.show(node("/", "waiting"), node("/helper", "acting", doing="shell.run"))
    return session


def counted(page: Page) -> Locator:
    """How many messages are above is said when all are there."""
    return page.get_by_role("button", name=re.compile(r"^Show earlier messages \(\d"))


async def everything(page: Page) -> list[int]:
    """The numbers of all entries, as they stand below each other while somebody goes up to the first."""
    seen: set[int] = set()
    while True:
        shown = await page.evaluate(
            "[...document.querySelectorAll('.dialogue > .entry')].map((one) => Number(one.dataset.n))"
        )
        assert shown == sorted(set(shown))
        seen.update(shown)
        if await page.locator(".scroll > .earlier").first.is_hidden():
            return sorted(seen)
        await page.locator(".scroll").press("Home")
        await page.wait_for_function(EARLIER, arg=shown[0])


def test_a_long_session_shows_its_end_first_and_says_nothing_untrue_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        session = long_session()
        with held_up(monkeypatch) as gate:
            async with stage(session) as scene:
                page = await scene.page("s")
                await expect(page.locator(".entry").last).to_contain_text(f"Message {LENGTH}")
                # What hangs on old records is there at once: a question, and since when a call runs.
                await expect(page.locator("[data-role=approvals-who]")).to_have_text(
                    "Root agent asks to run shell.run"
                )
                await expect(page.locator("[data-role=approvals-call]")).to_contain_text("rm -r old")
                await expect(page.locator('[data-path="/helper"] .node-doing')).to_contain_text(
                    "shell.run is running ·"
                )
                # Its name is the one in the list; what the gate said is not known yet, nor how far back it goes.
                await expect(page.locator("[data-role=session-title]")).to_have_text("The very first words")
                await page.get_by_role("tab", name="Permissions").click()
                await expect(page.locator(".inspector .rows")).to_have_attribute(
                    "data-empty", "Earlier entries are still loading."
                )
                await page.locator(".scroll").press("Home")
                await page.wait_for_function(TOP)
                await expect(page.get_by_role("button", name=LOADING)).to_be_disabled()
                # An agent whose records are not here yet is not shown as one that did nothing.
                await page.locator('[data-path="/helper"] > .node').click()
                await expect(page.get_by_role("button", name=LOADING)).to_be_visible()
                await page.locator('[data-path="/"] > .node').click()
                # News comes in between, and so does a change of what tools may do.
                session.append("control", op="lockdown", by="user", value=True)
                session.append("say", body="While it loads")
                await expect(page.locator(".entry").last).to_contain_text("While it loads")
                await expect(page.locator("[data-role=lockdown]")).to_be_visible()
                gate.set()
                await expect(page.locator(".inspector .rows")).to_have_attribute(
                    "data-empty", "No tool has been called yet."
                )
                await expect(page.locator("[data-role=lockdown]")).to_be_visible()
                await expect(page.locator("[data-role=approvals-who]")).to_have_text(
                    "Root agent asks to run shell.run"
                )
                await expect(page.locator(".entry").last).to_contain_text("While it loads")
                shown = await everything(page)
                assert shown == [2, 3, *range(8, LENGTH + 3)]
                await expect(page.locator(".entry").first).to_contain_text("The very first words")
                await page.locator('[data-path="/helper"] > .node').click()
                await expect(page.locator(".card.action")).to_contain_text("ls")
                await expect(page.get_by_role("button", name=LOADING)).to_be_hidden()

    run(test)


def test_who_reads_stays_there_when_what_is_before_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        session = long_session()
        with held_up(monkeypatch) as gate:
            async with stage(session) as scene:
                page = await scene.page("s")
                entry = page.locator(f'.entry[data-n="{LENGTH - 110}"]')
                await entry.scroll_into_view_if_needed()
                await page.mouse.move(600, 400)
                await page.mouse.wheel(0, -10)
                before = await entry.bounding_box()
                gate.set()
                await expect(counted(page)).to_be_attached()
                after = await entry.bounding_box()
                assert before is not None
                assert after is not None
                assert abs(after["y"] - before["y"]) <= 40

    run(test)


def test_a_line_that_breaks_meanwhile_costs_nothing_and_doubles_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        session = long_session()
        with held_up(monkeypatch) as gate:
            async with stage(session) as scene:
                page = await scene.page("s")
                await expect(page.locator(".entry").last).to_contain_text(f"Message {LENGTH}")
                await scene.server.stop()
                await expect(page.locator("[data-role=connection]")).not_to_have_attribute(
                    "data-state", "open"
                )
                session.append("say", body="While nobody saw")
                gate.set()
                await scene.server.start()
                await expect(counted(page)).to_be_attached()
                await expect(page.locator(".entry").last).to_contain_text("While nobody saw")
                assert await everything(page) == [2, 3, *range(8, LENGTH + 2)]
                scene.wrongs.forgive_lost_line()

    run(test)
