"""The page's frame rate while many agents write: `python -m benchmarks.streams [--agents N] [--seconds S]`.

Uses a server, its websocket and a browser with the page. The session is a stand-in whose agents each write 20 pieces of
16 characters a second, so that only the page and the server are measured. The page shows the root, which writes too,
next to the tree of all agents. The page itself counts frames. The browser draws without a graphics card, and shares the
machine with the server.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections.abc import Sequence
from typing import Final

from benchmarks import kept
from benchmarks.kept import Target
from tests.web.browser import SHARED, Browsing, browsing
from tests.web.fake import FakeRuntime, FakeSession, node

_RATE: Final = 20
_PIECE: Final = "some more words "
_COUNT: Final = """(ms) => new Promise(done => {
    const began = performance.now(), took = [];
    let before = began;
    const frame = (now) => {
        took.push(now - before);
        before = now;
        if (now - began < ms) requestAnimationFrame(frame);
        else done(took.slice(1));
    };
    requestAnimationFrame(frame);
})"""


async def _write(session: FakeSession, agents: Sequence[str]) -> None:
    """Let every agent write, each at its own moment within a twentieth of a second."""
    loop = asyncio.get_running_loop()
    began, written = loop.time(), 0
    while True:
        due = int((loop.time() - began) * _RATE * len(agents))
        while written < due:
            session.write(agents[written % len(agents)], _PIECE)
            written += 1
        await asyncio.sleep(0.005)


async def _frames(
    scene: Browsing, session: FakeSession, agents: Sequence[str], seconds: float
) -> list[float]:
    """Milliseconds between the frames of a page while agents write."""
    page = await scene.page(session.id)
    session.show(*(node(path, "thinking") for path in agents))
    writing = asyncio.create_task(_write(session, agents))
    try:
        await page.wait_for_selector(".live-text")
        await page.wait_for_timeout(1000)
        found: list[float] = await page.evaluate(_COUNT, seconds * 1000)
    finally:
        writing.cancel()
        await page.close()
    return found


async def _measure(counts: Sequence[int], seconds: float, found: dict[int, list[float]]) -> None:
    for count in counts:
        session = FakeSession("s")
        async with browsing(FakeRuntime(session)) as scene:
            agents = ["/", *(f"/worker{number}" for number in range(1, count))]
            found[count] = await _frames(scene, session, agents, seconds)


def main(arguments: Sequence[str]) -> None:
    """Measure and print a report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5.0)
    chosen = parser.parse_args(arguments)
    found: dict[int, list[float]] = {}
    try:
        SHARED.run(lambda: _measure((1, chosen.agents), chosen.seconds, found))
    finally:
        SHARED.close()
    rows = []
    for count, took in found.items():
        late = statistics.quantiles(took, n=20)[-1]
        rate = 1000 * len(took) / sum(took)
        rows.append(
            [str(count), f"{rate:.1f}", f"{statistics.median(took):.1f}", f"{late:.1f}", f"{max(took):.0f}"]
        )
    kept.table(
        ("agents that write", "frames a second", "ms between frames", "95 of 100 below", "longest"), rows
    )
    rate = 1000 * len(found[chosen.agents]) / sum(found[chosen.agents])
    limit = 58 if chosen.agents == 64 else None
    kept.targets([Target(f"{chosen.agents} agents that write", rate, limit, "frames a second", most=False)])
    kept.numbers({str(count): 1000 * len(took) / sum(took) for count, took in found.items()})


if __name__ == "__main__":
    main(sys.argv[1:])
