"""How long it takes to open a long session: `python -m benchmarks.opening [--records N] [--rounds N]`.

A journal of so many records, the whole server, and a browser that has the page open on another session. Measured from
the moment in which a person chooses the session, in the page, to the frame in which its newest messages are there in
full, and to the one in which every record has come. Cold: the server reads the journal for the first time; warm: it was
read before, as when somebody goes back and forth between sessions.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, sync_playwright

from benchmarks import kept
from benchmarks.kept import Target
from core.session.store import SessionStore
from tests.acceptance.product import NO_MODULES, Product, Server
from tests.web.browser import ARGUMENTS, chromium
from tests.web.long import long_journal

_OPEN: Final = """async ([session, last]) => {
    const began = performance.now();
    const took = {};
    location.hash = `replay:${session}`;
    await new Promise((done) => {
        const look = () => {
            const newest = [...document.querySelectorAll(".dialogue .entry")].pop();
            const filled = newest && Number(newest.dataset.n) > last - 200 && !document.querySelector(".entry-body.awaited");
            took.begun ??= document.querySelector(".dialogue .entry") ? performance.now() - began : undefined;
            if (filled) took.shown ??= performance.now() - began;
            const all = location.hash.includes(session) ? document.querySelector("[data-role=replay-total]").textContent : "";
            if (took.begun && new RegExp(`^\\\\D*${last}$`).test(all.replace(/[.,\\s]/g, ""))) took.all ??= performance.now() - began;
            if ((took.shown && took.all) || performance.now() - began > 120000) done();
            else requestAnimationFrame(look);
        };
        look();
    });
    return took;
}"""


def opened(page: Page, server: Server, session: str, last: int) -> dict[str, float]:
    """Milliseconds to what `_OPEN` sees, and of the processor in server and page; leaves the session again."""
    metrics = page.context.new_cdp_session(page)
    metrics.send("Performance.enable")

    def worked() -> tuple[float, float]:
        fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
        tasks = next(
            one["value"]
            for one in metrics.send("Performance.getMetrics")["metrics"]
            if one["name"] == "TaskDuration"
        )
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK"), tasks * 1000

    before = worked()
    took = page.evaluate(_OPEN, [session, last])
    after = worked()
    took |= {"server": after[0] - before[0], "page": after[1] - before[1]}
    page.keyboard.press("Alt+Shift+N")
    page.wait_for_function("() => !document.querySelector('.dialogue .entry')")
    return {name: float(ms) for name, ms in took.items()}


def main(arguments: Sequence[str]) -> None:
    """Measure, and print a report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    cold: list[dict[str, float]] = []
    warm: list[dict[str, float]] = []
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
                page.goto(f"http://127.0.0.1:{server.port}/?token={server.token}")
                page.wait_for_selector('[data-role=connection][data-state="open"]')
                cold.append(opened(page, server, session, chosen.records))
                warm.append(opened(page, server, session, chosen.records))
                page.close()
        browser.close()

    def middle(some: Sequence[dict[str, float]], what: str) -> float:
        return statistics.median(one.get(what, float("nan")) for one in some)

    print(f"A session of {chosen.records:,} records; the middle of {chosen.rounds} rounds.")
    found = {
        "cold, newest messages": middle(cold, "shown"),
        "cold, all records": middle(cold, "all"),
        "warm, newest messages": middle(warm, "shown"),
        "warm, all records": middle(warm, "all"),
        "cold, processor of the server": middle(cold, "server"),
        "warm, processor of the server": middle(warm, "server"),
        "cold, the page's own work": middle(cold, "page"),
        "warm, the page's own work": middle(warm, "page"),
        "reading and folding the journal, processor": read,
    }
    kept.table(["", "ms"], [[name, f"{ms:,.0f}"] for name, ms in found.items()])
    kept.targets(
        [
            Target("opened for the first time, newest messages", found["cold, newest messages"], 1000, "ms"),
            Target("opened again, newest messages", found["warm, newest messages"], 1000, "ms"),
        ]
    )
    kept.numbers({"records": chosen.records, **found})


if __name__ == "__main__":
    main(sys.argv[1:])
