"""A long session of which the server has read nothing yet: its end is shown at once, and nothing is lost or done twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.async_api import expect

import iact.core.session.runtime as runtime_module
import iact.core.stored.store as store_module
from iact.core.journal.ends import sealed_end
from iact.core.journal.file import read_journal
from iact.core.journal.seal import open_sealer
from iact.core.stored.store import SessionStore
from iact.web.server import WebServer
from tests.core.session.fakes import Asked, runtime
from tests.web.browser import browsing
from tests.web.dialling import dial, run, send, take, until
from tests.web.long import long_journal
from tests.web.test_page import run as in_browser
from tests.web.test_server import earlier, until_all

LENGTH = 6_000
SAID = "Go on, please."


def answers(asked: Asked) -> str:
    return "Gone on."


@contextmanager
def unread(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """No journal is read whole before this is set."""
    gate = threading.Event()
    with monkeypatch.context() as patch:
        for module, name in ((runtime_module, "_read"), (store_module, "replay")):
            read = getattr(module, name)

            def later(*given: object, read: object = read, **named: object) -> object:
                assert gate.wait(300)
                assert callable(read)
                return read(*given, **named)

            patch.setattr(module, name, later)
        try:
            yield gate
        finally:
            gate.set()


@pytest.mark.no_prefix_law("what models saw before is made up")
def test_the_end_is_there_before_the_session_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = long_journal(tmp_path / "sessions", LENGTH).parent.name

    async def test() -> None:
        with unread(monkeypatch) as gate:
            async with (
                runtime(tmp_path, answers) as opened,
                WebServer(opened) as server,
                dial(server) as client,
            ):
                await send(client, type="hello", session=name, lazy=True, id="h")
                first = await until(client, type="ok", id="h")
                facts, newest = first[0], first[1]
                assert (facts["type"], facts["last"], facts["opening"]) == ("session", LENGTH, True)
                assert "intent" not in facts
                assert newest["list"][-1]["n"] == LENGTH
                assert "html" in newest["list"][-1]
                # What is said waits for the session that it is said to; what concerns no session does not.
                await send(client, type="say", text=SAID, id="s")
                await send(client, type="render", numbers=[LENGTH - 200], id="r")
                seen = await until(client, type="ok", id="r")
                assert [one["n"] for one in seen[-1]["list"]] == [LENGTH - 200]
                assert all(one.get("id") != "s" for one in seen)
                gate.set()
                seen = await until_all(client)
                kinds = [one["type"] for one in seen]
                assert kinds.index("session") < kinds.index("tree")
                told = next(one for one in seen if one["type"] == "session")
                assert ("opening" in told, told["since"], told["intent"]) == (False, LENGTH, 1)
                # Which variables there are is known only now.
                [again] = [one["list"] for one in seen if one["type"] == "rendered"]
                assert all('class="chip"' in one["html"] for one in again)
                assert not any("chip" in one.get("html", "") for one in newest["list"])
                numbers = [*earlier(seen), *(one["n"] for one in newest["list"])]
                assert numbers == list(range(1, LENGTH + 1))
                while not any(one["type"] == "record" and one["kind"] == "reply" for one in seen):
                    seen.append(await take(client))
                assert next(one["n"] for one in seen if one["type"] == "record") == LENGTH + 1
                [said] = [one for one in seen if one.get("id") == "s"]
                assert (said["type"], said["session"]) == ("ok", name)

    run(test)


@pytest.mark.no_prefix_law("what models saw before is made up")
def test_who_leaves_meanwhile_leaves_no_lock_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = long_journal(tmp_path / "sessions", LENGTH).parent.name

    async def test() -> None:
        with unread(monkeypatch) as gate:
            async with runtime(tmp_path, answers) as opened, WebServer(opened) as server:
                async with dial(server) as client:
                    await send(client, type="hello", session=name, lazy=True)
                    await send(client, type="say", text=SAID, id="s")
                    await send(client, type="hello", session=None, id="away")
                    refused = (await until(client, id="s"))[-1]
                    assert (refused["type"], refused["code"]) == ("error", "usage")
                    assert refused["message"] == "The session was closed before it had opened."
                    await until(client, type="ok", id="away")
                    await send(client, type="hello", session=name, lazy=True)
                    await until(client, type="records")
                # The line is cut, too, while it is read.
                async with dial(server) as client:
                    await send(client, type="hello", session=name, lazy=True)
                    await until(client, type="records")
                    gate.set()
                    await until(client, type="tree")
        assert len(read_journal(tmp_path / "sessions" / name).records) > LENGTH

    run(test)


@pytest.mark.parametrize("way", ["hello", "open"])
def test_a_session_that_turns_out_damaged_is_refused_in_words(tmp_path: Path, way: str) -> None:
    journal = long_journal(tmp_path / "sessions", LENGTH)
    data = journal.read_bytes()
    journal.write_bytes(data.replace(b"line 3.0", b"line 3.1", 1))
    asked = {"session": journal.parent.name} if way == "hello" else {"journal": journal.parent.name}

    async def test() -> None:
        async with runtime(tmp_path, answers) as opened, WebServer(opened) as server, dial(server) as client:
            await send(client, type=way, lazy=True, **asked)
            seen = await until(client, type="refused")
            assert [one["n"] for one in seen if one["type"] == "records" for one in one["list"]][-1] == LENGTH
            assert seen[-1]["code"] == "journal"
            assert "is damaged: its trailer does not match its content" in seen[-1]["message"]

    run(test)


def test_only_what_this_installation_sealed_is_shown_unread(tmp_path: Path) -> None:
    journal = long_journal(tmp_path / "sessions", LENGTH)
    store = SessionStore(tmp_path)
    assert [one.n for one in store.end(journal.parent.name)][-1] == LENGTH
    assert store.end("nowhere") == []
    (tmp_path / "elsewhere").mkdir()
    stranger, own = open_sealer(tmp_path / "elsewhere"), open_sealer(tmp_path)
    assert sealed_end(journal, stranger, 0, 1 << 19) == []
    # A short one is read whole as quickly; one whose end is torn is whole up to there; one with a gap is not shown.
    assert sealed_end(journal, own, 1 << 30, 1 << 19) == []
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-40])
    assert sealed_end(journal, own, 0, 1 << 19)[-1].n == LENGTH - 1
    journal.write_bytes(whole + b"anything else\n")
    assert sealed_end(journal, own, 0, 1 << 19) == []


def test_records_in_the_text_of_a_record_are_none(tmp_path: Path) -> None:
    """Whoever writes long texts into a session can't have his own story shown as its end."""
    forged = long_journal(tmp_path / "theirs" / "sessions", 40).read_bytes()
    journal = long_journal(tmp_path / "ours" / "sessions", 40)
    own = open_sealer(tmp_path / "ours")
    data = journal.read_bytes()
    journal.write_bytes(data + forged)
    assert sealed_end(journal, own, 0, len(forged) - 200) == []


@pytest.mark.no_prefix_law("what models saw before is made up")
def test_a_page_shows_the_end_and_then_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = long_journal(tmp_path / "sessions", LENGTH).parent.name

    async def test() -> None:
        with unread(monkeypatch) as gate:
            async with runtime(tmp_path, answers) as opened, browsing(opened) as browser:
                page = await browser.page(name)
                await expect(page.locator(".dialogue .entry").last).to_be_visible()
                await expect(page.locator(".entry-body.awaited")).to_have_count(0)
                await expect(page.locator("[data-role=agent-state]")).to_have_text("opening…")
                await expect(page.locator("[data-role=intent]")).to_be_hidden()
                await expect(page.locator("[data-role=controls]")).to_be_hidden()
                await expect(page.locator(".inspector")).to_contain_text("This session is loading.")
                await page.locator("[data-role=text]").fill(SAID)
                await page.keyboard.press("Enter")
                gate.set()
                await expect(page.locator(".entry.reply").last).to_contain_text("Gone on.")
                await expect(page.locator(".entry.incoming").filter(has_text=SAID)).to_have_count(1)
                await expect(page.locator("[data-role=intent]")).to_be_visible()
                await expect(page.locator("[data-role=agent-state]")).not_to_have_text("opening…")
                await expect(page.get_by_role("treeitem").nth(5)).to_be_visible()
                await expect(page.locator(".card.action .outcome").first).to_be_attached()

    in_browser(test)
