"""Without any endpoint: the embedded model runs commands in the container and answers from what they print.

The requests were written before the first of them was tried, and nothing was tuned to them. One
runtime serves all but one of them, because loading the model takes longer than ten answers.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from iact.core import Session
from iact.core.language.scanner import scan
from iact.core.models.small_model import STATIC
from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.laws import journal_law
from tests.acceptance.test_control import opened
from tests.rounds import LONG

_REQUESTS = {
    "How much disk space does /usr/lib take up?": r"^du\b.*/usr/lib",
    "What is the date today?": r"^date",
    "Count the lines of /etc/passwd": r"wc -l /etc/passwd",
    "Which kernel version is running?": r"^uname|/proc/version",
    "Show me what is in the directory /etc": r"^ls\b.*/etc",
    "How much memory is free?": r"^free|meminfo",
    "Who am I logged in as?": r"^(whoami|id)",
    "What is the current working directory?": r"^pwd",
    "How many CPUs does this machine have?": r"^nproc|cpuinfo|^lscpu",
    "Print the first lines of /etc/group": r"^(head|cat)\b.*/etc/group",
}
_EVERY = 1 if LONG else 4
"""Each takes seconds of the whole machine, so every fourth one is asked in a short run."""
_ASKED = list(_REQUESTS)[::_EVERY]
_WANTED = len(_ASKED) * 6 // 10


@dataclass(frozen=True, slots=True)
class Served:
    """What became of one request."""

    commands: list[str]
    outputs: list[str]
    reply: str

    def fits(self, pattern: str) -> bool:
        """A fitting command ran, and the answer quotes what it printed."""
        ran = zip(self.commands, self.outputs, strict=True)
        printed = [output for command, output in ran if re.search(pattern, command)]
        return any(output.strip() and output.strip().splitlines()[0] in self.reply for output in printed)


def _served(records: list[Record]) -> Served:
    turns = [record for record in records if record.kind == "turn"]
    blocks = [
        block
        for turn in turns
        for block in scan(turn.body, lambda name: name in ("BASH", "shell.run")).blocks
    ]
    results = [record for record in records if record.kind == "result" and record.text("status") == "ok"]
    assert all(record.text("function") == "shell.run" for record in results)
    reply = next(record.body for record in records if record.kind == "reply")
    commands = [block.body for block in blocks if block.action]
    return Served(commands[: len(results)], [record.body for record in results], reply)


def test_the_requests_are_held_out() -> None:
    prompt = " ".join([STATIC.system, *(message.content for message in STATIC.examples)]).lower()
    assert not [request for request in _REQUESTS if request.lower() in prompt]


def test_simple_requests_are_answered_from_the_container(stage: Stage) -> None:
    product = stage.product()

    async def serve() -> dict[str, Served]:
        found: dict[str, Served] = {}
        async with opened(product) as runtime:
            assert "embedded" in runtime.model_label, "a person is told which model answers"
            for request in _ASKED:
                session: Session = await runtime.open()
                await session.ask(request)
                found[request] = _served(list(session.records()))
                await runtime.close(session.id)
        return found

    served = asyncio.run(serve())
    missed = {request: served[request] for request in _ASKED if not served[request].fits(_REQUESTS[request])}
    print(f"{len(_ASKED) - len(missed)} of {len(_ASKED)} requests were served; missed: {missed}")
    assert len(_ASKED) - len(missed) >= _WANTED, missed


def test_the_command_needs_no_endpoint(stage: Stage) -> None:
    """The same from outside."""
    product = stage.product()
    answer = product.ask("Count the lines of /etc/os-release")
    served = _served(journal_law(answer.journal))
    assert served.fits(r"wc -l /etc/os-release"), served
    assert answer.status == "done"
    assert answer.usage["model_calls"] >= 2
