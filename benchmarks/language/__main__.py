"""Recorded calls of real models, written in iact's language and read back: `python -m benchmarks.language --data DIR`.

DIR contains `NAME.jsonl.gz`, with a line for each recorded run (AgentDyn, arXiv 2602.03117), of which `calls` and
`answer` are read. Each call becomes a turn, which is written in every way in `written.WAYS`, cut at random places, and
read as the product reads a reply. The same calls must come back, byte for byte, and no other call may be made. The last
text of a run is a turn without a call.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import kept
from benchmarks.language.written import (
    WAYS,
    Call,
    acts,
    block,
    fits,
    given,
    nested,
    pieces,
    registry,
    same,
    scanned,
    specs,
    twice,
)
from iact.core.language.grammar import Mistake

TWICE = "twice, with a sentence between"
NESTED = "its body in a nested fence"
WORDS = "last words, without a call"


@dataclass
class Recorded:
    """The contents of the files."""

    runs: int = 0
    calls: list[Call] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    def take(self, line: str) -> None:
        """Add one recorded run."""
        run = json.loads(line)
        self.runs += 1
        self.calls += [given(one["function"], one["args"]) for one in run["calls"]]
        if run.get("answer"):
            self.answers.append(run["answer"])


@dataclass
class Found:
    """The results, by way of writing. `other`: turns in which another call was made. `wrong`: examples of turns whose
    calls did not come back."""

    turns: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    other: Counter[str] = field(default_factory=Counter)
    unfit: int = 0
    wrong: list[str] = field(default_factory=list)

    def count(self, way: str, made: Sequence[Call | Mistake], wanted: Sequence[Call], text: str) -> None:
        """Count one turn."""
        right, called = same(made, wanted), [one for one in made if isinstance(one, Call)]
        self.turns[way] += 1
        self.right[way] += right
        self.other[way] += bool(called) and not same(called, wanted)
        if not right and len(self.wrong) < 3:
            self.wrong.append(f"{way}: {text[:400]!r}")


def read(folder: Path) -> Recorded:
    """Read all recorded runs in a folder.

    Raises:
        SystemExit: there are none, or a file has another form.
    """
    files = sorted(folder.glob("*.jsonl.gz"))
    if not files:
        raise SystemExit(
            f"benchmarks.language: {folder} has no recorded runs; --data DIR names NAME.jsonl.gz."
        )
    found = Recorded()
    for file in files:
        try:
            with gzip.open(file, "rt", encoding="utf-8") as stream:
                for line in stream:
                    found.take(line)
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise SystemExit(
                f"benchmarks.language: {file} is not a file of recorded runs ({error!r}); restore it."
            ) from None
    return found


def measure(recorded: Recorded, seed: int) -> Found:
    """Write every turn in every way, and read each one back."""
    draw, found = random.Random(seed), Found()
    functions = specs(recorded.calls)
    known = registry(functions.values())

    def turn(way: str, text: str, wanted: Sequence[Call]) -> None:
        found.count(way, acts(scanned(pieces(text, draw), known), known), wanted, text)

    for call in recorded.calls:
        spec = functions[call.function]
        if not fits(call, spec):
            found.unfit += 1
            continue
        raw = json.dumps({"name": call.function, "arguments": call.arguments}, ensure_ascii=False)
        for way, around in WAYS.items():
            turn(way, around(block(call, spec, draw.choice("`~")), raw), [call])
        turn(TWICE, twice(block(call, spec, draw.choice("`~"))), [call, call])
        if (inside := nested(call, spec)) is not None:
            turn(NESTED, inside[1], [inside[0]])
    for answer in recorded.answers:
        turn(WORDS, answer, [])
    return found


def show(recorded: Recorded, found: Found) -> None:
    """Print the table."""
    print(
        f"{recorded.runs:,} runs, {len(recorded.calls):,} calls; {found.unfit:,} of them have an argument of another "
        "type than that parameter mostly has, and are left out."
    )
    ways: Iterable[str] = (*WAYS, TWICE, NESTED, WORDS)
    kept.table(
        ("how it is written", "turns", "the same, byte for byte", "refused", "something else acted"),
        [
            (
                way,
                *(
                    f"{count:,}"
                    for count in (
                        found.turns[way],
                        found.right[way],
                        found.turns[way] - found.right[way] - found.other[way],
                        found.other[way],
                    )
                ),
            )
            for way in ways
        ],
    )
    for one in found.wrong:
        print(f"- {one}", file=sys.stderr)
    kept.numbers({way: [found.turns[way], found.right[way], found.other[way]] for way in ways})


def main(arguments: Sequence[str]) -> int:
    """Measure and print. Returns 1 if a call was made that was not meant."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="where the recorded runs are")
    parser.add_argument("--seed", type=int, default=1, help="of the places where turns are cut")
    chosen = parser.parse_args(arguments)
    recorded = read(chosen.data)
    found = measure(recorded, chosen.seed)
    show(recorded, found)
    return 1 if found.other.total() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
