"""How long one client waits while another client's texts are rendered: `python -m benchmarks.rendering [--seconds S]`.

Uses a real server in its own process, and two clients on its websocket. The first client watches a session full of
Markdown that is hard for parsers, and requests its HTML again and again, as fast as the answers arrive. The second
client, on another session, asks a question 20 times a second, and every fifth time for the HTML of an ordinary text.
"Before" is the server as it was: plain markdown-it-py in the event loop.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from markdown_it import helpers
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from benchmarks.kept import Target, numbers, table, targets
from benchmarks.rendering.pathological import PATTERNS, pathological
from iact.core.ports import JSON
from iact.web import render
from iact.web.records import content_fields
from iact.web.render_cache import RenderCache
from iact.web.render_pool import RenderPool
from iact.web.render_tasks import DraftQuestion, RenderQuestion
from iact.web.server import WebServer
from tests.web.fake import FakeRuntime, FakeSession

ROOT: Final = Path(__file__).parents[2]
LENGTH: Final = 90_000
FOUND: Final = ("images that open", "links that open")
ORDINARY: Final = (
    "A paragraph of **ordinary** text with `code`, [a link](https://example.org) and more of it.\n\n"
)
LIMIT: Final = 100.0
"""Milliseconds by which one client's text may delay another client's answer."""

_PAUSE: Final = 0.05


# --- the server ---------------------------------------------------------------------------------------


class _InTheLoop(RenderPool):
    """The renderer as it was: in the event loop, without a limit."""

    def warm(self) -> None:
        """Do nothing; there is nothing to start."""

    async def render(self, question: RenderQuestion | DraftQuestion) -> Mapping[str, JSON]:
        """Render the answer, while all other work waits."""
        assert isinstance(question, RenderQuestion)
        words = frozenset(question.words)
        return content_fields(question.record, None, lambda name: name in words, {})


async def _serve(before: bool) -> None:
    flooding, quiet = FakeSession("flooding"), FakeSession("quiet")
    for pattern in (*FOUND, *(one for one in PATTERNS if one not in FOUND)):
        flooding.append("reply", body=pathological(pattern, LENGTH), to="user", status="ok")
    for number in range(2000):
        quiet.append("say", body=f"{number}\n\n{ORDINARY * 25}")
    server = WebServer(FakeRuntime(flooding, quiet))
    if before:
        render._PARSER.helpers = helpers
        object.__setattr__(server._shared, "rendered", RenderCache(_InTheLoop()))
    async with server:
        print(json.dumps({"port": server.port, "key": server.key}), flush=True)
        await asyncio.to_thread(sys.stdin.read)


@contextmanager
def _server(*arguments: str) -> Iterator[tuple[int, str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.rendering", "--serve", *arguments],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        try:
            yield said["port"], said["key"]
        finally:
            process.kill()


# --- the clients --------------------------------------------------------------------------------------


async def _ask(client: ClientConnection, **message: object) -> float:
    """Milliseconds until a message is answered."""
    began = time.perf_counter()
    await client.send(json.dumps({**message, "id": "it"}))
    while True:
        answer = json.loads(await client.recv())
        if answer.get("id") == "it":
            assert answer["type"] == "ok", answer
            return 1000 * (time.perf_counter() - began)


def _dial(port: int, key: str) -> connect:
    return connect(
        f"ws://127.0.0.1:{port}/ws",
        additional_headers={"Authorization": f"Bearer {key}"},
        max_size=None, compression=None, proxy=None, ping_interval=None,
    )  # fmt: skip


async def _flood(port: int, key: str, going: asyncio.Event) -> None:
    while True:
        with suppress(ConnectionClosed):
            async with _dial(port, key) as client:
                await client.send(json.dumps({"type": "hello", "session": "flooding", "lazy": True}))
                going.set()
                while True:
                    await _ask(client, type="render", numbers=[*range(1, len(PATTERNS) + 1)])


async def _measure(port: int, key: str, seconds: float, *, flood: bool) -> tuple[list[float], list[float]]:
    """Milliseconds of the second client's answers, and of its texts. A connection that breaks because the server is
    too slow counts with the time until then."""
    answers: list[float] = []
    texts: list[float] = []
    going = asyncio.Event()
    async with _dial(port, key) as client:
        await _ask(client, type="hello", session="quiet", since=2000)
        await _ask(client, type="render", numbers=[2000])  # start everything that starts at the first text
    async with asyncio.TaskGroup() as tasks:
        flooding = tasks.create_task(_flood(port, key, going)) if flood else None
        if flooding is not None:
            await going.wait()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.perf_counter()
            with suppress(ConnectionClosed, OSError):
                async with _dial(port, key) as client:
                    await _ask(client, type="hello", session="quiet", since=2000)
                    while time.monotonic() < end:
                        began = time.perf_counter()
                        answers.append(await _ask(client, type="sessions"))
                        if len(answers) % 5 == 1:
                            texts.append(await _ask(client, type="render", numbers=[len(answers) % 1999 + 1]))
                        await asyncio.sleep(_PAUSE)
                    break
            answers.append(1000 * (time.perf_counter() - began))
        if flooding is not None:
            flooding.cancel()
    return answers, texts


def _quantile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values) or [0.0]
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def _row(name: str, what: str, values: Sequence[float]) -> list[str]:
    cells = (_quantile(values, 0.5), _quantile(values, 0.99), _quantile(values, 1.0))
    return [name, what, str(len(values)), *(f"{one:,.1f}" for one in cells)]


def main() -> None:
    """Run the benchmark, or the server of a run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rendering", description=__doc__)
    parser.add_argument("--seconds", type=float, default=25.0, help="for each of the three")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--before", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        asyncio.run(_serve(chosen.before))
        return
    rows, worst = [], {}
    for name, arguments, flood in (
        ("nobody floods", (), False), ("before", ("--before",), True), ("now", (), True),
    ):  # fmt: skip
        with _server(*arguments) as (port, key):
            answers, texts = asyncio.run(_measure(port, key, chosen.seconds, flood=flood))
        rows += [_row(name, "an answer", answers), _row(name, "a text of its own", texts)]
        worst[name] = max(answers)
        numbers({f"{name}: answer": max(answers), f"{name}: text": max(texts, default=0.0)})
    table(("", "the second client waits for", "times", "median, ms", "p99", "most"), rows)
    delay = worst["now"] - worst["nobody floods"]
    targets([Target("one client's text delays another's answer by", delay, LIMIT, "ms")])


if __name__ == "__main__":
    main()
