"""Records the golden journals of this version: `python -m tests.journals.record`.

They are small sessions in which most kinds of records occur. A journal of the present version must verify;
after a change of a prompt, a label or a rule it does not, and is recorded anew by this. If sessions of the
version before are about, `FORMAT` rises first, and the goldens of the old one stay: they must be read forever.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from unittest import mock

from iact.core.journal.file import FILE
from iact.core.language.labels import SUMMARIZE
from iact.core.records.kinds import FORMAT
from iact.core.records.parts import Bounds
from iact.core.session.session import Session
from tests.core.session.fakes import Asked, Script, ScriptedModel, World, replies, runtime
from tests.core.session.plan_scenes import Answers, Thinker
from tests.core.session.simulation import play
from tests.core.session.test_schedules import SCENARIOS

PLACE = Path(__file__).parent

Play = Callable[[Session], Awaitable[object]]


async def _tree(session: Session) -> None:
    """A dialogue three deep, narrowed, corrected, paused, and gone on with; a denial, a failure, a large result."""
    await session.ask("Write about\n\n```python\nprint(1)\n```")
    await session.pause("/writer")
    said = await session.say("Once more.")
    await session.inject("/writer/checker", "Look at the second line.", "queue")
    await session.resume("/writer")
    await session.answer(said.n)


TREE: Mapping[str, list[str]] = {
    "/": [
        "```CALL writer role='a careful writer' scope=t.read,t.fail\nWrite: $code_1\n```\n```t.destroy\nall\n```",
        "```CALL writer\nShorter, please.\n```",
        "Here it is.",
        "```CALL writer\nAnd again.\n```",
        "That is all.",
    ],
    "/writer": [
        "```READ\nbig:20000\n```\n```VAR plan\nOne, two.\n```\n```SHOW plan\n```",
        "```CALL checker\nIs $plan right?\n```\n```t.fail\nx\n```",
        "A text.",
        "Short.",
        "Again.",
        "Again, as I said.",
    ],
    "/writer/checker": ["Yes.", "I looked."],
}


async def _ask(session: Session) -> None:
    await session.ask("Go.")


def _parallel(asked: Asked) -> str:
    """Children side by side that need more than there is: draws, last turns, and reports."""
    if asked.path == "/":
        calls = "\n".join(f"```CALL_ASYNC c{number}\nCount.\n```" for number in range(3))
        return f"{calls}\n```QUERY\n```\n```WAIT\n```" if asked.turn == 0 else "All reported."
    last = "answer now, with what you have" in asked.newest
    return f"Counted to {asked.turn}." if last else "```READ\n" + "number " * 60 + f"{asked.turn}\n```"


async def _twice(session: Session) -> None:
    await session.ask("Read.")
    await session.ask("Read more.")


def _long(asked: Asked) -> str:
    """A history that the agent cuts once itself, and once leaves to the core."""
    told = " ".join(message.content for message in asked.messages)
    if asked.newest.startswith(SUMMARIZE[:40]):
        return "SUMMARY:\nTask: read numbers\nDecided: nothing\nDone: `READ`, many times\nOpen: nothing\nWhere: variables"
    if "SUMMARY:" in told:
        return "Done."
    if "Read more." not in told and "Your context is" in asked.newest:
        return "```COMPRESS\nMany numbers were read.\n```"
    if "Your history was cut." in asked.newest:
        return "The first part is done."
    return "```READ\n" + "number " * 90 + f"{asked.turn}\n```"


PLANS: Mapping[str, tuple[str, int]] = {
    "plan-static": ("all of it", 11),
    "plan-planned": ("planned", 1),
    "plan-race": ("race", 7),
    "plan-corrected": ("orchestrator", 29),
    "plan-timed": ("timed", 10),
    "plan-approvals": ("approvals", 12),
    "plan-reflect": ("reflect", 37),
    "plan-nreflect": ("nreflect", 7),
    "plan-orchestrator": ("orchestrator", 7),
    "plan-analyze": ("analyze", 34),
    "plan-profile": ("profile", 9),
}
"""Plans in every mode, each with a scenario and the seed of its trouble: `tests.core.session.test_schedules`."""


async def _ways(session: Session) -> None:
    """A request that is judged and tried again, one whose steps hang on each other, one that was to be a plan."""
    await session.ask("Tune it until it is good.", mode="auto")
    await session.ask("Who was it?", mode="auto")
    said = await session.say("Look at both.", mode="static", plan_first=False)
    await session.answer(said.n)


_LIKE = '{{"steps": 4, "foreseeable": false, "depends": {}, "repeat": {}, "branches": false}}'
WAYS: Answers = {
    "Say what a request is like": [_LIKE.format("false", "true"), _LIKE.format("true", "false")],
    "Plan the steps": "steps: [{id: a, call: t.read, params: {text: one}}]",
    "Decide whether": '{"achieved": true, "confidence": 0.9, "final_answer": "All is well."}',
    "Answer from the results": "All is well.",
    "Report": "All is well.",
}

SCENES: Mapping[str, tuple[Script, Play, Bounds, int]] = {
    "tree": (replies(TREE), _tree, Bounds(), 1_000_000),
    "parallel": (_parallel, _ask, Bounds(tokens=30_000), 1_000_000),
    "compress": (_long, _twice, Bounds(), 4_000),
    "ways": (replies({"/": ["It was Ada."]}), _ways, Bounds(), 1_000_000),
}


def record(name: str, data: Path) -> Path:
    """Play a scene; gives its session's directory."""
    if name in PLANS:
        scenario, seed = PLANS[name]
        return play(data, SCENARIOS[scenario], seed, World()).parent
    script, session_of, bounds, context = SCENES[name]
    model = ScriptedModel(script, chunk=10_000, context=context) if name != "ways" else Thinker(script, WAYS)

    async def main() -> Path:
        async with runtime(data, script, world=World(), bounds=bounds, model=model) as opened:
            session = await opened.open()
            await session_of(session)
            return session.journal.parent

    return asyncio.run(main())


def _names(scene: str) -> Callable[[int], str]:
    """Random names of sessions that are the same each time."""
    dice = random.Random(scene)
    return lambda size: f"{dice.getrandbits(8 * size):0{2 * size}x}"


def main() -> None:
    """Record all scenes anew, with names that don't change."""
    shutil.rmtree(PLACE / FORMAT, ignore_errors=True)
    for name in (*SCENES, *PLANS):
        with (
            tempfile.TemporaryDirectory() as data,
            mock.patch("secrets.token_hex", _names(name)),
        ):
            found, target = record(name, Path(data)), PLACE / FORMAT / name
            target.mkdir(parents=True)
            shutil.copy(found / FILE, target)
            if any((found / "blobs").iterdir()):
                shutil.copytree(found / "blobs", target / "blobs")


if __name__ == "__main__":
    main()
