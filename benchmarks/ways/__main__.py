"""The cost of each way of working for three kinds of task: `python -m benchmarks.ways`.

Everything except the model is real: `iact run --mode M`, containers, files. The answers of the model (`model.py`)
depend on what it is shown. They begin after 0.15 s and have 200 tokens a second, so that seconds can be compared.
Seconds are counted from the message to the answer, by the journal's clock.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from benchmarks import kept
from benchmarks.kept import Target
from benchmarks.ways.model import TASKS, Task, answer, kind_of
from iact.core.journal import read_journal
from iact.core.records.ways import PLAN_MODES
from tests.acceptance.product import Product
from tests.endpoint import Endpoint

WAYS: Final = ("dialogue", *PLAN_MODES)


@dataclass(frozen=True, slots=True)
class Run:
    """One task in one way. `reached`: the answer contains what it should. `kinds`: what the model was asked for."""

    calls: int
    tokens: int
    seconds: float
    reached: bool
    status: str
    kinds: tuple[str, ...]


def run(way: str, task: Task) -> Run:
    """Send one message to a new session."""
    with tempfile.TemporaryDirectory() as folder, Endpoint(answer) as endpoint:
        data, files = Path(folder) / "data", Path(folder) / "files"
        data.mkdir()
        for name, content in task.files.items():
            (files / name).parent.mkdir(parents=True, exist_ok=True)
            (files / name).write_text(content, encoding="utf-8")
        product = Product.at(data, endpoint, IACT_MEMORY="off")
        ran = product.run("run", "--json", "--mode", way, "--workspace", str(files), task.goal, seconds=300)
        if ran.status not in (0, 1) or not ran.stdout:
            raise SystemExit(f"benchmarks.ways: {way}, {task.name}: {ran.stderr.strip()}")
        found = json.loads(ran.stdout)
        endpoint.conversation.check()
        usage = found["usage"]
        return Run(
            usage["model_calls"],
            usage["prompt_tokens"] + usage["completion_tokens"],
            _seconds(Path(found["journal"])),
            task.expected in found["reply"],
            found["status"],
            tuple(kind_of(one) for one in endpoint.requests),
        )


def _seconds(journal: Path) -> float:
    records = read_journal(journal.parent if journal.is_file() else journal).records
    said = next(one for one in records if one.kind == "say")
    replied = next(one for one in reversed(records) if one.kind == "reply" and one.agent == "/")
    return (datetime.fromisoformat(replied.at) - datetime.fromisoformat(said.at)).total_seconds()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ways", description=__doc__)
    parser.add_argument("ways", nargs="*", choices=[*WAYS, []], metavar="WAY")
    ways = parser.parse_args().ways or WAYS
    found: dict[str, dict[str, Run]] = {}
    for task in TASKS:
        found[task.name] = {way: run(way, task) for way in ways}
        rows = [
            [way, str(one.calls), f"{one.tokens:,}", f"{one.seconds:.1f} s", "yes" if one.reached else "no", one.status, ", ".join(one.kinds)]
            for way, one in found[task.name].items()
        ]  # fmt: skip
        print(f"\n{task.name.capitalize()}: {task.goal}")
        kept.table(("way", "model calls", "tokens", "time", "reached", "status", "asked for"), rows)
    profiled = [one["profile"].calls for one in found.values() if "profile" in one]
    if profiled:
        kept.targets([Target("model calls of a profile, at most", max(profiled), 3)])
    kept.numbers({task: {way: {"calls": one.calls, "tokens": one.tokens, "seconds": one.seconds, "reached": one.reached} for way, one in ways.items()} for task, ways in found.items()})  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
