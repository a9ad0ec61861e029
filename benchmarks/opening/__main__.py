"""How long it takes to open a long session: `python -m benchmarks.opening [--records N] [--rounds N]`.

Uses a journal of many records, the whole server, and a browser that has had the page open for two seconds. Measured in
the page, from the moment in which a person chooses the session to the frame that shows its newest messages in full, and
to the frame in which every record has arrived. Cold: the server reads the journal for the first time. Warm: it was read
before, as when a person switches between sessions. A session is opened to view it, and to continue it. Processor time
and the number of messages that the page sent are reported as well, because they can be compared even if the machine has
other work.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, sync_playwright

from benchmarks import kept
from benchmarks.kept import Target
from iact.core.stored.store import SessionStore
from tests.acceptance.product import NO_MODULES, Product, Server
from tests.web.browser import ARGUMENTS, chromium
from tests.web.long import long_journal

_SETTLED: Final = 2000.0
"""Milliseconds for which the page is open first, because no person chooses a session while the server is starting."""

_OPEN: Final = """([session, last]) => {
    window.opened = { began: performance.now() };
    const took = window.opened;
    location.hash = session;
    const look = () => {
        const now = performance.now() - took.began;
        const newest = [...document.querySelectorAll(".dialogue .entry")].pop();
        if (newest && Number(newest.dataset.n) > last - 200 && !document.querySelector(".entry-body.awaited")) took.shown ??= now;
        const above = document.querySelector("button.earlier");
        if (took.shown && !above.hidden && /[(]\\d/.test(above.textContent)) took.all ??= now;
        if (!took.all && now < 120000) requestAnimationFrame(look);
    };
    look();
}"""


@dataclass(frozen=True, slots=True)
class _Spent:
    """Processor milliseconds and messages of the page so far."""

    server: float
    page: float
    asked: int

    def since(self, before: _Spent, when: str) -> dict[str, float]:
        return {
            f"server {when}": self.server - before.server,
            f"page {when}": self.page - before.page,
            f"asked {when}": self.asked - before.asked,
        }


class _Watched:
    """A page, the messages that it sends, and the server's process."""

    def __init__(self, page: Page, server: Server) -> None:
        self.page = page
        self._server = server
        self._asked = 0
        page.on("websocket", lambda socket: socket.on("framesent", lambda _: self._count()))
        self._metrics = page.context.new_cdp_session(page)
        self._metrics.send("Performance.enable")

    def _count(self) -> None:
        self._asked += 1

    def spent(self) -> _Spent:
        fields = Path(f"/proc/{self._server.process.pid}/stat").read_text().rpartition(")")[2].split()
        metrics = self._metrics.send("Performance.getMetrics")["metrics"]
        tasks = next(one["value"] for one in metrics if one["name"] == "TaskDuration")
        server = (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")
        return _Spent(server, tasks * 1000, self._asked)

    def opened(self, session: str, last: int) -> dict[str, float]:
        """Open a session, and leave it again. Returns the cost until its newest messages were shown (`shown`), and
        until all had arrived (`all`). Processor time up to `shown` includes the time to notice it."""
        before, took = self.spent(), dict[str, float]()
        self.page.evaluate(_OPEN, [session, last])
        for what in ("shown", "all"):
            self.page.wait_for_function(f"() => window.opened.{what}", timeout=120_000)
            took |= self.spent().since(before, what)
            took[what] = float(self.page.evaluate(f"window.opened.{what}"))
        self.page.keyboard.press("Alt+Shift+N")
        self.page.wait_for_function("() => !document.querySelector('.dialogue .entry')")
        return took


def _name(what: str, when: str) -> str:
    return f"{what} {when}".strip()


def main(arguments: Sequence[str]) -> None:
    """Measure and print a report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    cold: list[dict[str, float]] = []
    warm: list[dict[str, float]] = []
    live: list[dict[str, float]] = []
    open_: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        data = Path(made) / "data"
        journal = long_journal(data / "sessions", chosen.records)
        session = journal.parent.name
        began = time.process_time()
        SessionStore(data).read(journal.parent)
        read = (time.process_time() - began) * 1000
        product = Product.at(data, "http://127.0.0.1:9/v1", **NO_MODULES)
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        for _ in range(chosen.rounds):
            with product.serving() as server:
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                watched = _Watched(page, server)
                page.goto(f"http://127.0.0.1:{server.port}/?token={server.token}")
                page.wait_for_selector('[data-role=connection][data-state="open"]')
                page.wait_for_timeout(_SETTLED)
                cold.append(watched.opened(f"replay:{session}", chosen.records))
                warm.append(watched.opened(f"replay:{session}", chosen.records))
                # Once more to continue it, for which the server reads it again.
                live.append(watched.opened(session, chosen.records))
                open_.append(watched.opened(session, chosen.records))
                page.close()
        browser.close()

    def middle(some: Sequence[dict[str, float]], what: str) -> float:
        return statistics.median(one.get(what, float("nan")) for one in some)

    print(f"A session of {chosen.records:,} records; the median of {chosen.rounds} rounds, in ms.")
    ways = {
        "to look at, cold": cold,
        "to look at, warm": warm,
        "to go on with, cold": live,
        "to go on with, open": open_,
    }
    found = {
        f"{way}, {_name(what, when)}": middle(rounds, _name(what, when))
        for way, rounds in ways.items()
        for when in ("shown", "all")
        for what in ("", "server", "page", "asked")
    }
    columns = [_name(what, when) for when in ("shown", "all") for what in ("", "server", "page", "asked")]
    titles = ["newest messages", "… server's processor", "… page's work", "… messages sent"]
    titles += [f"all: {title.removeprefix('… ')}" for title in ["on the wall", *titles[1:]]]
    kept.table(["", *titles], [[way, *(f"{found[f'{way}, {one}']:,.0f}" for one in columns)] for way in ways])
    print(f"\nReading and folding the journal takes {read:,.0f} ms of processor time.")
    kept.targets([Target(f"newest messages, {way}", found[f"{way}, shown"], 1000, "ms") for way in ways])
    kept.numbers({"records": chosen.records, "read": read, **found})


if __name__ == "__main__":
    main(sys.argv[1:])
