"""The column of sessions, the search in one, and what was typed and not sent, in a browser on real sessions."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from playwright.async_api import Locator, Page, expect

from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.views.status import SessionStatus
from tests.core.session.fakes import Asked, TickingClock, runtime
from tests.web.browser import SHARED, Browsing, browsing
from tests.web.fake import FakeAround, FakeRuntime, FakeSession, node

POLICY = '[scope.default]\nfunctions = ["*"]\nclearance = ["t.write"]'
"""Whoever writes waits for a person."""


def script(asked: Asked) -> str:
    """Agents write where they are told to, and answer otherwise."""
    return "```WRITE\na\n```" if "Write" in asked.newest else "Heard: the harbour is calm."


@asynccontextmanager
async def opened(data: Path) -> AsyncIterator[tuple[Runtime, Browsing]]:
    clock = TickingClock()
    clock.advance(
        (datetime.now(UTC) - clock.now()).total_seconds()
    )  # lists tell sessions of today from earlier ones
    async with (
        runtime(data, script, policy=POLICY, clock=clock) as made,
        browsing(made, FakeAround()) as pages,
    ):
        yield made, pages


async def told(made: Runtime, said: str) -> Session:
    session = await made.open(intent=2)
    await session.ask(said)
    return session


def row(page: Page, title: str) -> Locator:
    return page.locator(".session-row").filter(has=page.locator(".title").get_by_text(title, exact=True))


async def act(page: Page, title: str, what: str) -> None:
    """Do something with a session by its menu."""
    await row(page, title).hover()
    await page.get_by_role("button", name=f"What to do with {title}", exact=True).click()
    await row(page, title).get_by_role("button", name=what, exact=True).click()


@pytest.mark.no_prefix_law("one scripted model answers several sessions, and a fork")
def test_sessions_are_found_named_pinned_deleted_and_had_back(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as (made, pages):
            oslo = await told(made, "Compare the ports of Oslo")
            await told(made, "Which boats are in?")
            fork = await made.fork(oslo.id, 3)
            page = await pages.page(oslo.id)
            await page.get_by_role("tab", name="Sessions").click()
            await expect(page.get_by_role("heading", name="Today")).to_be_visible()
            await expect(page.locator(".session-row")).to_have_count(3)
            # A fork is below its source, under a name of its own, and leads to a session of its own.
            titles = await page.locator(".session-row .title").all_inner_texts()
            at = titles.index("Compare the ports of Oslo")
            assert titles[at + 1] == "Compare the ports of Oslo (fork 1)"
            assert await row(page, titles[at + 1]).evaluate("e => e.style.getPropertyValue('--depth')") == "1"
            await row(page, titles[at + 1]).locator(".session-open").click()
            await expect(page).to_have_url(re.compile(f"#{fork}$"))
            await expect(page.locator("[data-role=session-title]")).to_have_text(titles[at + 1])

            # Named where it stands, by mouse and by key; another page of the same server sees it.
            other = await pages.page()
            await other.locator("[data-role=sessions]").click()
            await act(page, "Which boats are in?", "Rename")
            field = page.get_by_role("textbox", name="Name of the session")
            await field.fill("Boats")
            await field.press("Enter")
            await expect(row(other, "Boats")).to_be_visible()
            await row(page, "Boats").locator(".session-open").focus()
            await page.keyboard.press("F2")
            await field.fill("never mind")
            await field.press("Escape")
            await expect(row(page, "Boats")).to_be_visible()
            await act(page, "Boats", "Pin")
            await expect(page.get_by_role("region", name="Pinned").locator(".title")).to_have_text("Boats")

            # Any text in any session is found, and its line leads to its place.
            await page.get_by_role("searchbox", name="Search in all sessions").fill("harb calm")
            await expect(page.locator(".session-row .hit mark").first).to_have_text("harbour")
            await expect(row(page, "Boats").locator(".hit")).to_have_text("Heard: the harbour is calm.")
            await row(page, "Boats").locator(".session-open").click()
            await expect(page.locator(".entry.flash")).to_contain_text("the harbour is calm")
            await page.get_by_role("searchbox", name="Search in all sessions").fill("nothing like it")
            await expect(page.get_by_text("No session matches.")).to_be_visible()
            await page.get_by_role("searchbox", name="Search in all sessions").fill("")

            # Deleted by key, the one that is shown; had back by one press, and it is shown again.
            await row(page, "Boats").locator(".session-open").focus()
            await page.keyboard.press("Delete")
            await expect(page.get_by_role("heading", name="want done")).to_be_visible()
            await expect(row(page, "Boats")).to_have_count(0)
            await expect(row(other, "Boats")).to_have_count(0)
            await page.get_by_role("button", name="Undo").click()
            await expect(page.locator(".entry.incoming")).to_contain_text("Which boats are in?")
            await expect(row(page, "Boats")).to_be_visible()

            # Deleted for good only after a second look.
            await act(page, "Boats", "Delete")
            await page.get_by_text("Deleted (1)").click()
            gone = page.get_by_role("button", name="Delete for good")
            await gone.click()
            await expect(page.locator(".session-actions .sure")).to_have_text(
                "This can't be undone. Delete it?"
            )
            # What comes in between the two presses leaves the button as it is.
            late = await told(made, "Who is on watch?")
            await expect(row(page, "Who is on watch?")).to_be_visible()
            await page.locator(".session-actions .sure").click()
            await expect(page.get_by_text("Deleted (1)")).to_be_hidden()
            assert made.store.deleted() == []
            assert {one.id for one in made.sessions()} == {oslo.id, fork, late.id}

    SHARED.run(test)


@pytest.mark.no_prefix_law("one scripted model answers several sessions")
def test_a_session_that_waits_is_told_of_wherever_one_is(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as (made, pages):
            oslo = await told(made, "Compare the ports of Oslo")
            page = await pages.page(oslo.id)
            bar = page.locator("[data-role=waiting-bar]")
            await expect(page).to_have_title("Compare the ports of Oslo · iact")
            await expect(bar).to_be_hidden()
            first = await made.open(intent=2)
            await first.say("Write the figures")
            await expect(bar).to_contain_text("1 session waits for you: Write the figures")
            await expect(page).to_have_title("(1 waiting) Compare the ports of Oslo · iact")
            second = await made.open(intent=2)
            await second.say("Write a summary")
            await expect(bar).to_contain_text("2 sessions wait for you")
            await expect(page.locator("[data-role=waiting-count]")).to_have_text("2")
            # A new session says so as well, and a page that is opened later.
            fresh = await pages.page(width=390)
            await expect(fresh).to_have_title("(2 waiting) iact")
            await fresh.get_by_role("button", name="Show", exact=True).click()
            await expect(row(fresh, "Write the figures").locator(".facts")).to_have_text(
                "waits for you: t.write"
            )
            assert await fresh.evaluate("document.documentElement.scrollWidth <= innerWidth")
            await row(fresh, "Write the figures").locator(".session-open").click()
            await expect(fresh.get_by_role("region", name="Approvals")).to_be_visible()
            await expect(fresh).to_have_title(re.compile(r"^\(1 to approve\) \(1 waiting\) "))
            await fresh.get_by_role("button", name="Deny").click()
            await expect(bar).to_contain_text("1 session waits for you: Write a summary")

    SHARED.run(test)


def test_who_wants_it_is_notified_of_what_waits_fails_or_answers_after_a_while() -> None:
    async def test() -> None:
        shown, other = FakeSession("shown"), FakeSession("other")
        shown.append("say", body="What is shown")
        other.append("say", body="Sail to Bergen")
        fake = FakeRuntime(shown, other)
        async with browsing(fake, FakeAround()) as pages:
            page = await pages.page("shown")
            await page.evaluate(
                """() => {
                document.documentElement.dataset.told = '';
                window.Notification = class extends EventTarget {
                  static permission = 'granted';
                  static requestPermission = async () => 'granted';
                  constructor(title, options) { super(); document.documentElement.dataset.told += `${options.body}: ${title}. `; }
                };
            }"""
            )
            await page.get_by_role("tab", name="Sessions").click()
            await expect(row(page, "Sail to Bergen")).to_be_visible()
            fake.tell("other", SessionStatus("waits", "2026-05-04T03:00:00Z", "t.write"))
            await expect(page.locator("[data-role=waiting-count]")).to_have_text("1")
            fake.tell("other", SessionStatus("working", "2026-05-04T03:00:00Z"))
            await expect(page.locator('.mark[data-state="working"]')).to_be_visible()
            told = page.locator("html")
            await expect(told).to_have_attribute("data-told", "")  # nobody asked for it
            await page.get_by_text("Notifications").click()
            await page.get_by_role("checkbox", name="Notify me").check()
            fake.tell("other", SessionStatus("waits", "2026-05-04T03:00:00Z", "t.write"))
            said = "Sail to Bergen: Waits for you: t.write. "
            await expect(told).to_have_attribute("data-told", said)
            fake.tell("other", SessionStatus("working", "2026-05-04T03:00:00Z"))
            await expect(page.locator('.mark[data-state="working"]')).to_be_visible()
            fake.tell("other", SessionStatus("idle", "2026-05-04T03:05:00Z"))  # it had worked for a long time
            said += "Sail to Bergen: Answered. "
            await expect(told).to_have_attribute("data-told", said)
            fake.tell("other", SessionStatus("failed", "2026-05-04T03:05:00Z"))
            await expect(told).to_have_attribute("data-told", f"{said}Sail to Bergen: Failed. ")

    SHARED.run(test)


def test_who_wants_it_hears_two_tones() -> None:
    """Once when it is chosen, so that one knows it, and then with whatever is told; nobody else hears anything."""

    async def test() -> None:
        shown, other = FakeSession("shown"), FakeSession("other")
        shown.append("say", body="What is shown")
        other.append("say", body="Sail to Bergen")
        fake = FakeRuntime(shown, other)
        async with browsing(fake, FakeAround()) as pages:
            page = await pages.page("shown")
            await page.evaluate(
                """() => {
                const { start } = AudioScheduledSourceNode.prototype;
                AudioScheduledSourceNode.prototype.start = function (at) {
                  document.documentElement.dataset.tones = `${document.documentElement.dataset.tones ?? ''}${this.frequency.value} `;
                  return start.call(this, at);
                };
            }"""
            )
            told = page.locator("html")
            await page.get_by_role("tab", name="Sessions").click()
            await expect(row(page, "Sail to Bergen")).to_be_visible()
            await page.get_by_text("Notifications").click()
            fake.tell("other", SessionStatus("waits", "2026-05-04T03:00:00Z", "t.write"))
            await expect(page.locator("[data-role=waiting-count]")).to_have_text("1")
            assert await told.get_attribute("data-tones") is None
            await page.get_by_role("checkbox", name="With a sound").check()
            await expect(told).to_have_attribute("data-tones", "660 880 ")
            fake.tell("other", SessionStatus("failed", "2026-05-04T03:05:00Z"))
            await expect(told).to_have_attribute("data-tones", "660 880 660 880 ")
            await page.get_by_role("checkbox", name="With a sound").uncheck()
            fake.tell("other", SessionStatus("waits", "2026-05-04T03:06:00Z", "t.write"))
            await expect(page.locator("[data-role=waiting-count]")).to_have_text("1")
            await expect(told).to_have_attribute("data-tones", "660 880 660 880 ")

    SHARED.run(test)


def test_what_was_typed_is_for_whom_it_was_typed() -> None:
    async def test() -> None:
        session, other = FakeSession("one"), FakeSession("two")
        for each in (session, other):
            each.append("say", body=f"Of {each.id}")
        session.show(node("/"), *(node(f"/team{n}") for n in range(9)))
        async with browsing(FakeRuntime(session, other), FakeAround()) as pages:
            page = await pages.page("one")
            field = page.locator("[data-role=text]")
            await field.fill("for the root alone")
            await page.locator('[data-path="/team1"] > .node').click()
            await expect(field).to_have_value("")
            await field.fill("for team1")
            await page.get_by_role("tab", name="Sessions").click()
            await row(page, "Of two").locator(".session-open").click()
            await expect(page.locator(".entry.incoming")).to_contain_text("Of two")
            await expect(field).to_have_value("")
            await page.locator("[data-role=new-session]").click()
            await expect(field).to_have_value("")
            await row(page, "Of one").locator(".session-open").click()
            await expect(field).to_have_value("for the root alone")
            await page.reload()
            await expect(field).to_have_value("for the root alone")
            await field.press("Enter")
            await expect(field).to_have_value("")
            assert session.calls == [("say", "for the root alone")]
            await page.reload()  # what was sent is not there again
            await expect(page.locator(".entry.incoming").first).to_be_visible()
            await expect(field).to_have_value("")
            # A filter that finds nothing says so, and the text of the other agent is still there.
            await page.get_by_role("tab", name="Agents").click()
            await page.get_by_role("searchbox", name="Filter agents").fill("nobody")
            await expect(page.get_by_text("No agent matches.")).to_be_visible()
            await page.get_by_role("searchbox", name="Filter agents").fill("team1")
            await expect(page.get_by_text("No agent matches.")).to_be_hidden()
            await page.locator('[data-path="/team1"] > .node').click()
            await expect(field).to_have_value("for team1")

    SHARED.run(test)


def test_text_is_found_in_all_of_a_session_and_reached() -> None:
    async def test() -> None:
        session = FakeSession("long")
        session.append("say", body="Begin with the needle.")
        for n in range(900):
            session.append("turn", "/" if n % 2 else "/child", body=f"Straw number {n}.")
        session.append("turn", "/child", body="Here is another NEEDLE in it.")
        session.show(node("/"), node("/child"))
        async with browsing(FakeRuntime(session), FakeAround()) as pages:
            page = await pages.page("long")
            await expect(page.locator(".entry").last).to_be_visible()
            await expect(page.locator(".entry").filter(has_text="needle")).to_have_count(0)  # not drawn
            await page.keyboard.press("Control+f")
            bar = page.get_by_role("search", name="Search in this session")
            await expect(bar).to_be_visible()
            await page.keyboard.type("needle")
            await expect(bar.locator(".find-count")).to_have_text("2 found")
            await page.keyboard.press("Enter")
            await expect(bar.locator(".find-count")).to_have_text("2 of 2")
            await expect(page.locator("[data-role=agent-name]")).to_have_text("/child")
            await expect(page.locator(".entry.flash")).to_contain_text("another NEEDLE")
            await page.keyboard.press("Enter")
            await expect(page.locator("[data-role=agent-name]")).to_have_text("Root agent")
            await expect(page.locator(".entry.flash")).to_contain_text("Begin with the needle.")
            await expect(bar.locator(".hit mark")).to_have_text("needle")
            await bar.get_by_role("combobox", name="Search in").select_option("agents")
            await expect(bar.locator(".find-count")).to_have_text("1 found")
            await bar.get_by_role("combobox", name="Agent to search").select_option("/")
            await expect(bar.locator(".find-count")).to_have_text("No matches")
            await page.keyboard.press("Escape")
            await expect(bar).to_be_hidden()

    SHARED.run(test)


def test_a_session_larger_than_any_upload_goes_out_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its archive is made and taken in on disk: what bounds a file in memory does not bound it."""
    monkeypatch.setattr("iact.web.uploads.LARGEST_UPLOAD", 10_000)
    told_here = "Heard: " + "".join(Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=400_000))

    async def test() -> None:
        async with opened(tmp_path) as (made, pages):
            session = await told(made, f"Keep this: {told_here}")
            (made.store.path_of(session.id) / "workspace" / "kept.bin").write_bytes(
                Random(2).randbytes(3 << 20)
            )
            page = await pages.page(session.id)
            await page.get_by_role("tab", name="Sessions").click()
            async with page.expect_download() as waiting:
                await page.locator(".session-more").first.click()
                await (
                    page.locator(".session-actions").get_by_role("button", name="Export", exact=True).click()
                )
            file = Path(await (await waiting.value).path())
            archive = await asyncio.to_thread(file.read_bytes)
            assert len(archive) > 3 << 20
            there = made.store.folder
            assert [one.name for one in there.iterdir()] == [session.id], "nothing of the archive is left"
            await session.close()
            made.store.path_of(session.id).rename(tmp_path / "away")
            async with page.expect_file_chooser() as chooser:
                await page.get_by_role("button", name="Import a session").click()
            await (await chooser.value).set_files({"name": "it.tar.gz", "mimeType": "", "buffer": archive})
            await expect(page.locator("[data-role=side-sessions], #side-sessions")).to_contain_text(
                "is imported"
            )
            await expect(page.locator(".entry.incoming")).to_contain_text("Keep this")
            assert (made.store.path_of(session.id) / "workspace" / "kept.bin").stat().st_size == 3 << 20

    SHARED.run(test)


def test_a_session_that_can_t_be_read_says_so_when_it_is_opened(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as (made, pages):
            session = await told(made, "Look at the harbour.")
            await made.close(session.id)
            session.journal.write_bytes(b"no record\n" + session.journal.read_bytes())

            page = await pages.page()
            await page.locator("[data-role=sessions]").click()
            listed = page.locator(f'[data-session="{session.id}"]')
            await expect(listed.locator(".facts")).to_contain_text(
                "can't be read: Record 1 at byte 0 is damaged"
            )
            await listed.locator(".session-open").click()
            missing = page.get_by_role("alert").filter(has_text="This session can't be read.")
            await expect(missing).to_contain_text("Record 1 at byte 0 is damaged")
            await expect(page.locator(".earlier").filter(visible=True)).to_have_count(0)

            await missing.get_by_role("button", name="New session").click()
            await expect(missing).to_be_hidden()
            await act(page, "Untitled", "Delete")
            await expect(listed).to_have_count(0)

    SHARED.run(test)
