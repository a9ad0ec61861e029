"""Moving the slider of a replay, and how long it takes until everything shows the other time."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from playwright.async_api import Page

from iact.core.stored.replay import replay

SHOWS: Final = """async ([at, agents, newest]) => {
    const slider = document.querySelector("[data-role=replay-slider]");
    const frame = () => new Promise(requestAnimationFrame);
    const there = () => {
        const entries = document.querySelectorAll(".dialogue .entry, .dialogue .outcome");
        return document.querySelectorAll("[role=treeitem]").length === agents
            && Math.max(0, ...[...entries].map((one) => Number(one.dataset.n))) === newest;
    };
    const began = performance.now();
    slider.value = String(at);
    slider.dispatchEvent(new Event("input"));
    while (!there()) {
        if (performance.now() - began > 20000) return -1;
        await frame();
    }
    await frame();
    return performance.now() - began;
}"""
"""Moves, and gives the milliseconds until the tree and the root's dialogue are those of then, painted; -1: never."""


def expected(journal: Path, at: int) -> tuple[int, int]:
    """How many agents there are behind record `at`, and the number of the root's newest entry."""
    then = replay(journal, at=at)
    shown = [
        one.n
        for one in then.records
        if (one.agent == "/" and one.kind in ("say", "turn", "result", "reply"))
        or (one.kind == "reply" and one.text("to") == "/")
    ]
    return len(then.tree.agents), shown[-1] if shown else 0


async def scrubbed(page: Page, at: int, journal: Path) -> float:
    """Go to record `at` by the slider; the milliseconds until it is shown."""
    took = await page.evaluate(SHOWS, [at, *expected(journal, at)])
    assert isinstance(took, int | float)
    assert took >= 0, f"record {at} was never shown"
    return took
