"""A day's work in one browser: several sessions at once, an unreliable endpoint, restarts, approvals on a phone, files,
a fork that undoes a mistake, a changed plan, a budget that ends and is raised, waiting messages, and a stopped one.
At the end nothing is lost, nothing is shown twice, and a new page shows the same as the old one.

Each message and each answer has a unique word, so that the contents of pages and journals can be counted. The small
form is part of every run. With IACT_TEST_SCALE=5 it is a day: 12 sessions, 400 messages, two restarts. The memory of
page and server is printed.
"""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from difflib import unified_diff
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest
from playwright.sync_api import Locator, Page, expect, sync_playwright

from iact.core.journal import read_journal
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product, Server, until
from tests.acceptance.test_browser import SLOW, connected
from tests.acceptance.test_clearance import ASKS
from tests.acceptance.test_ways import ALL
from tests.endpoint import Endpoint, Gate, HttpError, Reply, Request
from tests.rounds import SCALE
from tests.web.browser import ARGUMENTS, PATIENCE, REPORT_VIOLATIONS, Wrongs, chromium

SESSIONS, MESSAGES, RESTARTS = (12, 400, 2) if SCALE >= 5 else (4, 20, 1)
AT_ONCE: Final = 3
LIMITED_TWICE: Final = 2
DEAR: Final = 850_000
"""Tokens that a dear answer takes: two are most of a session's two millions, and with three they are used up."""

_SEEN: Final = ("[data-role=sessions-list]", "main", ".approvals", "[data-role=session-title]")
_CLOCK: Final = re.compile(r"\d+:\d\d\b|\b\d+(\.\d+)? (ms|s|min)\b|\d+ tokens/s")
_WORD: Final = re.compile(r"\bw(\d+)\b")
_PLAN: Final = (
    "goal: Say one.\nsteps:\n  - {id: one, call: shell.run, params: {command: 'echo changed by hand'}}\n"
)


class Moods:
    """The endpoint: answers each word once, after what the message wants of it."""

    def __init__(self) -> None:
        self.stalling = Gate()
        self.long = Gate()
        self.limited: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Reply | str:
        if not request.agent:
            start = next(one for one in ALL if one in request.last)
            return ALL[start]
        said = next(
            text for role, text in reversed(request.messages) if role == "user" and _WORD.search(text)
        )
        said = said.rpartition("cancelled here by the user")[2]  # what was said before has had its end
        words = _WORD.findall(said)
        answer = " ".join(f"Answer to w{word}: it is **done**." for word in words)
        if not _WORD.search(request.last):  # a tool has come back
            return answer
        if "(limited)" in said:
            with self._lock:
                self.limited[words[0]] += 1
                if self.limited[words[0]] <= LIMITED_TWICE:
                    return Reply(error=HttpError(429, "Slow down.", {"Retry-After": "1"}))
        if "(stalls)" in said and not self.stalling.released.done():
            return Reply(answer, gates={8: self.stalling})
        if "(long)" in said and not self.long.released.done():
            return Reply(answer + " And so on." * 20, gates={8: self.long})
        if "(dear)" in said:
            return Reply(answer, completion=DEAR)
        if "(slow)" in said:
            return Reply(answer + " And at length." * 20, delay=0.02)
        commands = {
            "(writes)": "printf '# Notes\\n' > notes.md; printf 'year,sum\\n2025,4\\n' > sums.csv",
            "(changes)": "printf '# Notes\\n\\nMore.\\n' > notes.md",
            "(mistake)": "rm notes.md",
        }
        for mood, command in commands.items():
            if mood in said:
                return f"I act.\n\n```shell.run\n{command}\n```\n"
        return answer


class Day:
    """The person at the page. `said`: the words of each session, in order."""

    def __init__(self, page: Page, moods: Moods) -> None:
        self.page = page
        self.moods = moods
        self.said: dict[str, list[int]] = {}
        self._word = 0

    @property
    def session(self) -> str:
        """The one that the page shows."""
        return self.page.url.rpartition("#")[2].partition("/")[0]

    @property
    def field(self) -> Locator:
        return self.page.locator("#composer-text")

    def say(self, text: str, *, new: bool = False) -> int:
        """Say something with a word of its own; gives the word once it is on disk."""
        self._word += 1
        word, before = self._word, self.session
        self.field.fill(f"Do w{word} {text}".strip())
        self.field.press("Enter")
        expect(self.field).to_have_value("")
        if new:
            self.page.wait_for_function(
                "(before) => location.hash && location.hash.slice(1) !== before", arg=before
            )
        self.said.setdefault(self.session, []).append(word)
        return word

    def answered(self, word: int) -> None:
        expect(self.page.locator(".entry.reply", has_text=re.compile(rf"Answer to w{word}:"))).to_have_count(
            1, timeout=SLOW
        )

    def ask(self, text: str = "", *, new: bool = False) -> int:
        word = self.say(text, new=new)
        self.answered(word)
        return word

    def begin(self, text: str = "") -> str:
        """A new session with its first message; gives its id."""
        self.page.keyboard.press("Alt+Shift+N")
        expect(self.page.locator(".entry")).to_have_count(0)
        self.say(text, new=True)
        return self.session

    def go(self, session: str) -> None:
        """To another session, as the list or the browser's history does."""
        self.page.evaluate("(session) => { location.hash = session; }", session)
        expect(self.page.locator('.entry[data-kind="say"]').last).to_contain_text(
            f"w{self.said[session][-1]}"
        )

    def approve(self) -> None:
        bar = self.page.get_by_role("region", name="Approvals")
        expect(bar).to_be_visible(timeout=SLOW)
        button = bar.get_by_role("button", name="Approve")
        expect(button).to_be_enabled()
        button.click()
        expect(bar).to_be_hidden(timeout=SLOW)

    def seen(self, page: Page) -> str:
        """All that a page shows of sessions, agents, questions and the dialogue; clocks aside."""
        parts = [page.locator(where) for where in _SEEN]
        return _CLOCK.sub("0:00", "\n".join(part.inner_text() for part in parts if part.is_visible()))

    def steady(self) -> None:
        """Whoever comes to this session now sees what the page shows: nothing of it needs a reload."""
        page = self.page
        page.get_by_role("tab", name=re.compile("^Sessions")).click()
        fresh = page.context.new_page()
        fresh.goto(page.url)
        connected(fresh)
        fresh.get_by_role("tab", name=re.compile("^Sessions")).click()
        ends = time.monotonic() + PATIENCE / 1000
        while (here := self.seen(page)) != (there := self.seen(fresh)):
            if time.monotonic() > ends:
                apart = unified_diff(here.splitlines(), there.splitlines(), "as shown", "as it is anew", n=2)
                raise AssertionError("\n".join(apart))
        fresh.close()
        page.bring_to_front()
        page.get_by_role("tab", name=re.compile("^Agents")).click()

    def shown(self) -> tuple[list[str], list[str]]:
        """The words in what was said and in the answers that the page shows, in order."""
        said, answers = self.page.evaluate(
            """() => ["say", "reply"].map((kind) => [...document.querySelectorAll(`.dialogue .entry[data-kind="${kind}"]`)]
                .map((entry) => entry.querySelector(".entry-body").textContent))"""
        )
        return _words(said), list(_words(answers))


def _words(texts: list[str]) -> list[str]:
    return [word for text in texts for word in _WORD.findall(text)]


@contextmanager
def serving(product: Product, port: int = 0) -> Iterator[Server]:
    """`iact serve`, on a port of its own choice or the one that it had before."""
    with product.started("serve", "--port", str(port)) as process:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", process.stdout.readline())
        assert found is not None
        key = json.loads((product.data / "server.json").read_text(encoding="utf-8"))["key"]
        yield Server(process, int(found[1]), found[2], key)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(300) == 0


def resident(process: subprocess.Popen[str]) -> float:
    """MB of memory that a process has."""
    [line] = [one for one in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "VmRSS" in one]
    return int(line.split()[1]) / 1024


def morning(day: Day) -> list[str]:
    """Sessions are begun, three of them at work at once; the endpoint limits, stalls and comes back."""
    page = day.page
    sessions = [day.begin("(slow)") for _ in range(AT_ONCE)]
    for session in reversed(sessions):
        day.go(session)
        day.answered(day.said[session][-1])
    day.say("(limited)")
    expect(page.locator("main")).to_contain_text(re.compile("rate limit", re.I), timeout=SLOW)
    day.answered(day.said[sessions[0]][-1])
    stalled = day.say("(stalls)")
    assert day.moods.stalling.wait(300)
    expect(page.locator(".entry.draft")).to_contain_text("Answer t")
    # Something else is done meanwhile; what stalled is there afterwards, once.
    day.go(sessions[1])
    day.ask()
    day.moods.stalling.release()
    day.go(sessions[0])
    day.answered(stalled)
    day.steady()
    return sessions + [day.begin() for _ in range(SESSIONS - AT_ONCE)]


def at_the_phone(day: Day) -> None:
    """Calls are approved at a phone's width; then the files that they made are looked at and fetched."""
    page = day.page
    page.set_viewport_size({"width": 390, "height": 780})
    for mood in ("(writes)", "(changes)"):
        word = day.say(mood)
        day.approve()
        day.answered(word)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.set_viewport_size({"width": 1360, "height": 860})
    page.get_by_role("tab", name="Files").click()
    panel = page.locator("#inspector-panel")
    panel.get_by_label("By time of change").check()
    expect(panel.locator(".workspace-change")).to_have_count(2)
    panel.locator(".workspace-change").first.get_by_role("button", name="notes.md").click()
    dialog = page.get_by_role("dialog", name="notes.md")
    expect(dialog.locator("tr.added")).to_have_count(2)
    page.keyboard.press("Escape")
    with page.expect_download() as waiting:
        panel.get_by_role("button", name="Download all").click()
    with ZipFile(io.BytesIO(Path(waiting.value.path()).read_bytes())) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            "notes.md": b"# Notes\n\nMore.\n",
            "sums.csv": b"year,sum\n2025,4\n",
        }


def undone(day: Day, data: Path) -> None:
    """A mistake is made, and a fork goes on from before it: there the file is, here it stays deleted."""
    page, before = day.page, day.session
    word = day.say("(mistake)")
    day.approve()
    day.answered(word)
    assert not (data / "sessions" / before / "workspace" / "notes.md").exists()
    page.get_by_role("button", name="Replay", exact=True).click()
    records = read_journal(data / "sessions" / before).records
    said = next(one.n for one in reversed(records) if one.kind == "say")
    page.locator("[data-role=replay-number]").fill(str(said - 1))
    page.keyboard.press("Enter")
    panel = page.locator("#inspector-panel")
    panel.get_by_label("All files").check()
    expect(panel.locator('[data-path="notes.md"]')).to_be_visible()
    shared = day.said[before][:-1]
    fork = day.say("", new=True)
    day.answered(fork)
    day.said[day.session] = [*shared, fork]
    assert (data / "sessions" / day.session / "workspace" / "notes.md").read_text() == "# Notes\n\nMore.\n"


def planned(day: Day) -> None:
    """A plan is looked at, changed by hand, and started."""
    page = day.page
    page.locator("[data-role=way]").select_option("static")
    page.locator("[data-role=plan-first]").check()
    day.say("")
    page.locator('[data-path="/plan"] > .node').click(timeout=SLOW)
    page.get_by_role("tab", name="Plan").click()
    pane = page.locator("#inspector-panel")
    pane.get_by_role("button", name="Edit steps").click()
    dialog = page.get_by_role("dialog", name="Edit the plan")
    dialog.get_by_role("textbox").fill(_PLAN)
    dialog.get_by_role("button", name="Save as a new version").click()
    expect(dialog).to_be_hidden()
    pane.get_by_role("button", name="Start").click()
    day.approve()
    expect(pane.locator(".plan-outcome")).to_have_text("It finished: its goal is reached.", timeout=SLOW)
    page.locator('[data-path="/"] > .node').click()
    page.locator("[data-role=way]").select_option("dialogue")
    day.ask()


def dear(day: Day) -> None:
    """A budget ends: it is said beforehand, the message waits, and is answered once there are more tokens."""
    page = day.page
    bar = page.locator(".budget-bar")
    day.begin("(dear)")
    day.answered(day.said[day.session][-1])
    expect(bar).to_have_count(0)
    day.ask("(dear)")
    expect(bar).to_contain_text("of 2.0M tokens used")
    expect(day.field).to_be_visible()
    day.ask("(dear)")
    expect(bar).to_contain_text("Token limit reached")
    expect(day.field).to_be_hidden()
    day.steady()
    bar.get_by_role("button", name="Add 1.0M").click()
    expect(day.field).to_be_visible()
    expect(page.locator(".dialogue")).to_contain_text("You added 1,000,000 tokens to this session's budget")
    day.ask()
    day.steady()


def at_length(day: Day) -> None:
    """While one answer is being written, two messages wait, and a third is taken back; the answer is stopped, they are read."""
    page = day.page
    stopped = day.say("(long)")
    assert day.moods.long.wait(300)
    first, away, second = day.say("too"), day.say("not this"), day.say("and this")
    bubbles = page.locator(".queued")
    expect(bubbles).to_have_count(3)
    bubbles.filter(has_text=f"w{away} ").get_by_role("button", name="Remove").click()
    expect(bubbles).to_have_count(2)
    day.said[day.session].remove(away)
    day.steady()
    page.get_by_role("button", name="Stop", exact=True).click()
    day.moods.long.release()
    for word in (first, second):
        day.answered(word)
    expect(page.locator(".dialogue")).to_contain_text("Stopped.")
    expect(page.locator(".entry.reply", has_text=f"Answer to w{stopped}:")).to_have_count(0)
    day.steady()


@contextmanager
def watched(server: Server) -> Iterator[tuple[Page, Wrongs]]:
    """A signed-in page, and what goes wrong in it."""
    origin = f"http://127.0.0.1:{server.port}"
    wrongs = Wrongs(origin)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        context = browser.new_context(viewport={"width": 1360, "height": 860}, reduced_motion="reduce")
        context.set_default_timeout(PATIENCE)
        context.add_init_script(REPORT_VIOLATIONS)
        page = context.new_page()
        page.on("pageerror", wrongs.script_error)
        page.on("console", lambda message: wrongs.console(message.type, message.text))
        page.on("request", lambda request: wrongs.request(request.url))
        page.goto(f"{origin}/?token={server.token}")
        connected(page)
        yield page, wrongs
        browser.close()


def stopped(day: Day, server: Server, wrongs: Wrongs) -> str:
    """The server goes while something is being written; the page says so and keeps it."""
    text = "What is written when the server goes"
    day.field.fill(text)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(300) == 0
    expect(day.page.locator("[data-role=connection]")).to_have_attribute("data-state", "offline")
    day.field.press("Enter")
    expect(day.page.locator("[data-role=news]")).not_to_be_empty()
    wrongs.forgive_lost_line()
    return text


def back(day: Day, server: Server, wrongs: Wrongs, text: str) -> None:
    """Its new address is opened in another tab; the page goes on by itself, with what was written."""
    page = day.page
    other = page.context.new_page()
    other.goto(f"http://127.0.0.1:{server.port}/?token={server.token}")
    connected(other)
    other.close()
    page.bring_to_front()
    connected(page)
    expect(day.field).to_have_value(text)
    wrongs.forgive_lost_line()
    wrongs.forgive("401")
    day.ask()


def kept(folder: Path, last: int) -> tuple[list[str], list[str]]:
    """The words of what was said, and not taken back, and answered, as the journal has them once the last is on disk."""

    def told() -> list[str]:
        replies = [one for one in read_journal(folder).records if one.kind == "reply" and one.agent == "/"]
        return _words([one.body for one in replies])

    until(lambda: str(last) in told() or not told(), "the last answer on disk")
    records = read_journal(folder).records
    back = {one.number("of") for one in records if one.text("op") == "withdraw"}
    return _words([one.body for one in records if one.kind == "say" and one.n not in back]), told()


def counted(day: Day, data: Path) -> None:
    """Every message and every answer is there once, in order, on the page and on disk; a reload changes nothing."""
    page = day.page
    for session, words in day.said.items():
        day.go(session)
        day.answered(words[-1])
        said, told = kept(data / "sessions" / session, words[-1])
        assert said == [str(word) for word in words]
        assert sorted(told) == sorted(set(told))
        assert day.shown() == (said, told)
    state = page.locator("[data-role=agent-state]").inner_text()
    before = page.locator(".dialogue").inner_text()
    page.reload()
    connected(page)
    until(lambda: page.locator(".dialogue").inner_text() == before, "the same after a reload")
    assert page.locator("[data-role=agent-state]").inner_text() == state


@pytest.mark.no_prefix_law  # it is about one session of an endpoint, and here are many
def test_a_days_work_loses_nothing_and_shows_nothing_twice(stage: Stage) -> None:
    moods = Moods()
    with ExitStack() as servers:
        endpoint = servers.enter_context(Endpoint(moods))
        product = stage.product(endpoint)
        (product.data / "policy.toml").write_text(ASKS, encoding="utf-8")
        server = servers.enter_context(serving(product))
        with watched(server) as (page, wrongs):
            day = Day(page, moods)
            sessions = morning(day)
            day.go(sessions[0])
            at_the_phone(day)
            undone(day, product.data)
            day.go(sessions[1])
            planned(day)
            day.steady()
            dear(day)
            day.go(sessions[2])
            at_length(day)
            rest = MESSAGES - sum(map(len, day.said.values()))
            for restart in range(RESTARTS):
                for turn in range(rest // RESTARTS):
                    day.go(sessions[(turn + restart) % len(sessions)])
                    day.ask()
                text = stopped(day, server, wrongs)
                server = servers.enter_context(serving(product, server.port))
                back(day, server, wrongs, text)
                day.steady()
            heap = page.evaluate("performance.memory.usedJSHeapSize") / 2**20
            counted(day, product.data)
            said = sum(map(len, day.said.values()))
            print(
                f"\na day: {len(day.said)} sessions, {said} messages, {RESTARTS} restarts; "
                f"memory: page {heap:.0f} MB, server {resident(server.process):.0f} MB"
            )
            assert wrongs.found == []
        assert endpoint.problems == []
