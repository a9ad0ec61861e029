"""How long one input holds up everybody else: the longest single step of the event loop, in processor time.

    python -m benchmarks.loop [--only NAME…] [--where]

Each scene sends one large input through a session with a scripted model and a module in memory. The figure is the
processor time of the longest callback that the loop ran meanwhile; nothing else of the server goes on during it. The
aim is 50 ms. `--where` also says which functions the longest step spent its time in. Exits with status 1 if a scene is
above the aim.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import json
import pstats
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import kept
from benchmarks.kept import Target
from iact.core.errors import UsageError
from iact.core.session.session import Session
from tests.core.session.fakes import Asked, Script, World, runtime

_AIM: Final = 50
"""Milliseconds that nothing may hold the loop for."""

_MEGABYTE: Final = 1_000_000
_RARELY: Final = 50_000
"""New objects between two runs of the cycle collector, as in the command `iact`."""


class LongestStep:
    """Watches an event loop: the processor time of its longest callback."""

    def __init__(self, *, where: bool = False) -> None:
        self.seconds = 0.0
        self.profile: cProfile.Profile | None = None
        """Of the longest callback."""
        self._where = where
        self._run = asyncio.events.Handle._run

    def __enter__(self) -> LongestStep:
        run, watch = self._run, self

        def timed(handle: asyncio.Handle) -> None:
            profile = cProfile.Profile(time.thread_time) if watch._where else None
            began = time.thread_time()
            if profile is not None:
                profile.enable()
            try:
                run(handle)
            finally:
                if profile is not None:
                    profile.disable()
                watch._note(time.thread_time() - began, profile)

        setattr(asyncio.events.Handle, "_run", timed)  # noqa: B010 - there is no other place to watch from
        return self

    def __exit__(self, *why: object) -> None:
        setattr(asyncio.events.Handle, "_run", self._run)  # noqa: B010

    def _note(self, seconds: float, profile: cProfile.Profile | None) -> None:
        if seconds > self.seconds:
            self.seconds = seconds
            self.profile = profile


Act = Callable[[Session], Awaitable[object]]
"""What is done with an open session, while the loop is watched."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One large input."""

    name: str
    script: Script
    """What the models say."""
    act: Act
    world: Callable[[], World] = World
    """What the module finds."""


def _says(*replies: str) -> Script:
    """The root's replies in order; the last one again and again."""

    def script(asked: Asked) -> str:
        return replies[min(asked.turn, len(replies) - 1)]

    return script


async def _ask(session: Session) -> object:
    return await session.ask("Go")


def _asks(text: str) -> Act:
    async def act(session: Session) -> object:
        return await session.ask(text)

    return act


def _runs(plan: str, mode: str = "static", *, thinks: bool = False) -> Act:
    async def act(session: Session) -> object:
        try:
            return await session.run_plan(plan, mode=mode, thinks=thinks)
        except UsageError as error:
            return error

    return act


def _plan(steps: int, text: str) -> str:
    lines = [f"  - {{id: s{number}, call: t.read, params: {{text: {text}}}}}" for number in range(steps)]
    return "goal: g\nsteps:\n" + "\n".join(lines) + "\n"


def _reads(text: str) -> Script:
    return _says(f"```t.read\n{text}\n```", "Done.")


def _big(text: str) -> Script:
    """The module gives `text`: it is what its world holds under a name."""
    return _reads(text)


def _judged(answer: str) -> Script:
    def script(asked: Asked) -> str:
        return answer if not asked.path else "Done."

    return script


_SHORT_PLAN: Final = "goal: g\nsteps:\n  - {id: a, call: t.read, params: {text: hello}}\n"
_FED: Final = (
    "goal: g\nsteps:\n  - {{id: a, call: t.read, params: {{text: '{}'}}}}\n"
    "  - {{id: b, call: t.write, refs: {{text: {{step: a}}}}}}\n"
)

SCENES: Final = (
    Scene("a result of 16 MB, ASCII", _reads("big:16000000"), _ask),
    Scene("a result of 16 MB of German", _reads("big:16000000 of Größe "), _ask),
    Scene("a reply of 1.9 MB of prose", _says("word " * 380_000), _ask),
    Scene("a reply with a plan of 1 MB, 200 steps", _says("```PLAN p\n" + _plan(200, "x" * 4_900) + "```", "Done."), _ask),
    Scene("the answer of a model that judges a plan, 1.9 MB of brackets", _judged("[" * 1_900_000), _runs(_SHORT_PLAN, "reflect", thinks=True)),
    Scene("the same, 1.9 MB of JSON", _judged(json.dumps({"a": ["word"] * 237_000})), _runs(_SHORT_PLAN, "reflect", thinks=True)),
    Scene("the same, 1.9 MB of prose", _judged("word " * 380_000), _runs(_SHORT_PLAN, "reflect", thinks=True)),
    Scene("a plan file of 1 MB, 18,000 steps, which is refused", _judged(""), _runs(_plan(18_000, "x"))),
    Scene("a plan file of 1 MB of brackets, which is refused", _judged(""), _runs("[" * _MEGABYTE)),
    Scene("a plan file of 1 MB, 200 steps", _judged(""), _runs(_plan(200, "x" * 4_900))),
    Scene("a plan file of 200 steps", _judged(""), _runs(_plan(200, "x"))),
    Scene("a goal of 900 kB for a planner", _judged("[" * 1_900_000), _runs("goal: " + "word " * 180_000, "auto", thinks=True)),
    Scene("a step of a plan with a result of 16 MB of German, which the next step is given", _judged(""), _runs(_FED.format("big:16000000 of Größe "))),
    Scene("the same in a mode that judges", _judged('{"decision": "continue"}'), _runs(_FED.format("big:16000000 of Größe "), "reflect", thinks=True)),
    Scene("SHOW of a result of 16 MB of German", _says("```t.read\nbig:16000000 of Größe \n```", "```SHOW read_1 lines=1-3\n```", "Done."), _ask),
    Scene("a message of 256 kB", _says("Done."), _asks("word " * 51_000)),
    Scene("a message of 2 MB", _says("Done."), _asks("word " * 400_000)),
)  # fmt: skip


async def _play(scene: Scene, data: Path, watch: LongestStep) -> None:
    async with runtime(data, scene.script, world=scene.world(), chunk=2_000) as opened:
        session = await opened.open()
        with watch:
            await scene.act(session)


def measure(scene: Scene, *, where: bool = False) -> LongestStep:
    """Play a scene in a folder of its own."""
    watch = LongestStep(where=where)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_play(scene, Path(folder), watch))
    return watch


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loop", description=__doc__)
    parser.add_argument("--only", nargs="*", metavar="NAME", help="scenes whose name contains one of these")
    parser.add_argument("--where", action="store_true")
    options = parser.parse_args()
    gc.set_threshold(_RARELY)
    rows = []
    targets = []
    for scene in SCENES:
        if options.only and not any(part in scene.name for part in options.only):
            continue
        longest = measure(scene).seconds * 1000
        rows.append((scene.name, f"{longest:.0f} ms"))
        print(rows[-1], flush=True)
        targets.append(Target(scene.name, longest, _AIM))
        if options.where:
            profile = measure(scene, where=True).profile
            assert profile is not None
            pstats.Stats(profile, stream=sys.stdout).sort_stats("cumulative").print_stats(30)
    kept.table(("", "longest step of the loop"), rows)
    kept.targets(targets)
    return 0 if all(target.met for target in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
