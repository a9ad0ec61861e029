"""What real models did under attack, passed through the gate: `python -m benchmarks.agentdyn --data DIR`.

DIR contains `SUITE.jsonl.gz`, with a line for each recorded run (AgentDyn, arXiv 2602.03117). `replay.Run.of` reads its
fields. Suites that are missing, or that have no policy here, are named and left out.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks import kept
from benchmarks.agentdyn.fewer import Rule, compared
from benchmarks.agentdyn.replay import (
    HERE,
    IMPACTS,
    PERSONS,
    Decided,
    Run,
    decided,
    harm,
    lets,
    questions,
    through,
)
from benchmarks.agentdyn.replay import kept as kept_whole
from iact.core.gate.gate import Denial, Ticket

WRONG: Final = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
"""How often a person says yes by mistake."""


def check_frozen() -> None:
    """Check that the policies are unchanged since they were frozen, before any run was read."""
    for line in (HERE / "FROZEN").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            digest, name = line.split()
            if hashlib.sha256((HERE / name).read_bytes()).hexdigest() != digest:
                raise SystemExit(f"benchmarks.agentdyn: {name} was changed after it was frozen; restore it.")


@dataclass
class Found:
    """The results of a group of runs. `wrong`: attacks expected to get through, by how often a yes is a mistake."""

    attacked: int = 0
    reached: int = 0
    unnamed: int = 0
    passed: Counter[str] = field(default_factory=Counter)
    outright: int = 0
    by_person: int = 0
    one_yes: int = 0
    wrong: dict[float, float] = field(default_factory=lambda: dict.fromkeys(WRONG, 0.0))
    honest: int = 0
    solved: int = 0
    whole: Counter[str] = field(default_factory=Counter)
    untouched: int = 0
    calls: int = 0
    denied: int = 0
    unknown: int = 0
    asked: int = 0
    asked_of: Counter[str] = field(default_factory=Counter)
    why: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    through_by: Counter[tuple[str, str]] = field(default_factory=Counter)

    def take(self, run: Run, calls: Sequence[Decided]) -> None:
        """Add a run."""
        if run.injection_task and run.user_task:
            self.attacked += 1
            if run.reached:
                self._attack(run, calls)
        elif run.user_task:
            self._honest(run, calls)

    def _attack(self, run: Run, calls: Sequence[Decided]) -> None:
        self.reached += 1
        theirs = harm(calls)
        self.unnamed += not theirs
        for person in PERSONS:
            self.passed[person] += through(calls, person) > 0
        for chance in WRONG:
            self.wrong[chance] += through(calls, "knows the task", chance)
        if not theirs:
            self.through_by[run.user_task, "no call that can be named"] += 1
        elif made := sorted({one.call.function for one in theirs if isinstance(one.verdict, Ticket)}):
            self.through_by[run.user_task, ", ".join(made)] += 1
        if theirs and not any(isinstance(one.verdict, Ticket) for one in theirs):
            if all(isinstance(one.verdict, Denial) for one in theirs):
                self.outright += 1
            else:
                self.by_person += not any(lets("knows the task", one) for one in theirs)
                self.one_yes += len({str(one.call) for one in theirs}) == 1

    def _honest(self, run: Run, calls: Sequence[Decided]) -> None:
        self.honest += 1
        self.solved += run.solved
        asked = questions(calls)
        denied = [one for one in calls if isinstance(one.verdict, Denial)]
        self.calls += len(calls)
        self.asked += len(asked)
        self.asked_of.update(one.call.function for one in asked)
        self.why.update(
            (one.call.function, *(one.asked[0] if one.asked else ("", "every call of it"))) for one in asked
        )
        self.denied += len(denied)
        self.unknown += sum(one.call.function not in IMPACTS[run.suite] for one in denied)
        self.untouched += not asked and all(one.call.failed for one in denied)
        for person in PERSONS:
            self.whole[person] += run.solved and kept_whole(calls, person)

    def add(self, other: Found) -> None:
        """Add another group."""
        for name, value in vars(other).items():
            mine = getattr(self, name)
            if isinstance(mine, Counter):
                mine.update(value)
            elif isinstance(mine, dict):
                for key, part in value.items():
                    mine[key] += part
            else:
                setattr(self, name, mine + value)


def runs(folder: Path, suites: Iterable[str]) -> Iterator[Run]:
    """The recorded runs of these suites."""
    for suite in suites:
        with gzip.open(folder / f"{suite}.jsonl.gz", "rt", encoding="utf-8") as stream:
            yield from map(Run.of, stream)


def _share(part: float, whole: float) -> str:
    return f"{part:g} ({100 * part / whole:.0f} %)" if whole else "–"


def _print(found: dict[tuple[str, str], Found]) -> Found:
    total = Found()
    for one in found.values():
        total.add(one)
    rows = [
        *((f"{suite}, {model}", one) for (suite, model), one in sorted(found.items())),
        ("**all**", total),
    ]
    print("\n### Attacks that reached their goal when they were recorded")
    kept.table(
        ("suite, model", "attacked", "reached", "denied outright", "only by a person's no", "of these at one question",
         "through: nobody", "through: knows the task", "through: generous", "of these met by no call that can be named"),
        [
            (name, f"{one.attacked}", f"{one.reached}", f"{one.outright}", f"{one.by_person}", f"{one.one_yes}",
             *(f"{one.passed[person]}" for person in PERSONS), f"{one.unnamed}")
            for name, one in rows
        ],
    )  # fmt: skip
    print("\n### Honest runs, nothing injected")
    kept.table(
        ("suite, model", "runs", "solved", "kept: nobody", "kept: knows the task", "kept: generous", "untouched runs",
         "calls", "denied", "of these unknown functions", "asked"),
        [
            (name, f"{one.honest}", f"{one.solved}", *(f"{one.whole[person]}" for person in PERSONS), f"{one.untouched}",
             f"{one.calls}", f"{one.denied}", f"{one.unknown}", _share(one.asked, one.calls))
            for name, one in rows
        ],
    )  # fmt: skip
    print("\n### A person who says yes by mistake: attacks expected through")
    kept.table(
        ("how often", *(f"{chance:g}" for chance in WRONG)),
        [("attacks through", *(f"{total.wrong[chance]:.1f}" for chance in WRONG)),
         ("of all attacked runs", *(f"{100 * total.wrong[chance] / max(total.attacked, 1):.2f} %" for chance in WRONG))],
    )  # fmt: skip
    print("\n### What got through without a person to ask")
    kept.table(
        ("user's task", "calls that were made", "attacks"),
        [(task, made, str(n)) for (task, made), n in total.through_by.most_common()],
    )
    print("\n### What honest runs are asked about")
    kept.table(("function", "questions"), [(name, str(n)) for name, n in total.asked_of.most_common()])
    print("\n### Why: where the value comes from that neither the user nor the policy named")
    places = Counter[str]()
    for (_, _, where), n in total.why.items():
        places[where] += n
    kept.table(("where", "questions"), [(where, _share(n, total.asked)) for where, n in places.most_common()])
    kept.table(
        ("function", "argument", "where", "questions"),
        [(*key, str(n)) for key, n in total.why.most_common() if n > 1],
    )
    return total


def _print_fewer(folder: Path, suites: Iterable[str]) -> None:
    print("\n### Rules that would ask less, with a person who knows the task")
    names: dict[Rule | None, str] = {
        None: "the gate as it is",
        "a field of its own": "the only value of its kind in a result is not asked about",
    }
    kept.table(
        ("rule", "questions in honest runs", "attacks through"),
        [
            (names.get(rule, f"a yes is for the source, {rule}"), f"{sums.asked}", f"{sums.through}")
            for rule, sums in compared(runs(folder, suites)).items()
        ],
    )


def main() -> int:
    """Print the tables. Returns 2 if there is nothing to read."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.agentdyn", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--data", metavar="DIR", type=Path, required=True, help="the folder with SUITE.jsonl.gz"
    )
    chosen = parser.parse_args()
    check_frozen()
    there = {file.name.removesuffix(".jsonl.gz") for file in chosen.data.glob("*.jsonl.gz")}
    for suite in sorted(there ^ IMPACTS.keys()):
        why = "has no policy here" if suite in there else "is not in the folder"
        print(f"benchmarks.agentdyn: {suite} {why}, and is left out", file=sys.stderr)
    suites = sorted(there & IMPACTS.keys())
    if not suites:
        return 2
    found: dict[tuple[str, str], Found] = {}
    for run in runs(chosen.data, suites):
        found.setdefault((run.suite, run.model), Found()).take(run, decided(run))
    total = _print(found)
    _print_fewer(chosen.data, suites)
    kept.numbers(
        {
            "attacked": total.attacked, "reached": total.reached, "honest": total.honest, "solved": total.solved,
            "calls": total.calls, "asked": total.asked, "denied": total.denied,
            **{f"through_{person}": total.passed[person] for person in PERSONS},
            **{f"kept_{person}": total.whole[person] for person in PERSONS},
        }
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
