"""The cost of a record's HTML: `python -m benchmarks.rendering.records [--rounds N]`.

Processor time of rendering all records of the examples in this process, by kind of record. To compare two commits, run
it in the tree of each. The best of several rounds counts, because only the program's own work is of interest.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from pathlib import Path
from typing import Final

from benchmarks.kept import table
from iact.core.records.record import Record
from iact.core.stored.replay import replay
from iact.web.records import record_html

EXAMPLES: Final = Path(__file__).parents[2] / "examples"


def _records() -> list[Record]:
    return [record for journal in sorted(EXAMPLES.glob("*/journal.md")) for record in replay(journal).records]


def _measure(records: list[Record]) -> dict[str, float]:
    """Seconds to render the records of each kind once."""
    spent: defaultdict[str, float] = defaultdict(float)
    for record in records:
        began = time.process_time_ns()
        record_html(record)
        spent[record.kind] += (time.process_time_ns() - began) / 1e9
    return spent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    records = _records()
    measured = [_measure(records) for _ in range(rounds)]
    counts: defaultdict[str, int] = defaultdict(int)
    for record in records:
        counts[record.kind] += 1
    best = {kind: min(one[kind] for one in measured) for kind in counts}
    rows = [
        [kind, f"{counts[kind]}", f"{best[kind] / counts[kind] * 1e6:,.1f}"]
        for kind in sorted(counts, key=lambda kind: -best[kind])
    ]
    rows.append(["all", f"{len(records)}", f"{sum(best.values()) / len(records) * 1e6:,.1f}"])
    table(["kind", "records", "µs each"], rows)


if __name__ == "__main__":
    main()
