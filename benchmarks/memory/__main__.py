"""`python -m benchmarks.memory [FILE] [--cost N] [--asks N] [--turns N]`: quality on a file in LoCoMo's format, then cost.

Without a file, it uses four conversations that were written for this benchmark, all in one memory because they
are short. The conversations of a file are searched one by one, as is usual with LoCoMo. The weights of the
ranking were chosen on the first half of the conversations; the second half counts.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import kept
from benchmarks.memory import cost, quality, quiet, turns
from benchmarks.memory.locomo import SHIPPED, Conversation, read
from benchmarks.memory.quality import Score
from iact.hippocampus.ranking import Weights


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.memory")
    parser.add_argument("file", nargs="?", type=Path, help="conversations in LoCoMo's format")
    parser.add_argument("--cost", type=int, default=20_000, metavar="N", help="statements; 0 leaves it out")
    parser.add_argument("--asks", type=int, default=500, metavar="N")
    parser.add_argument(
        "--turns", type=int, default=200, metavar="N", help="turns of a session; 0 leaves it out"
    )
    chosen = parser.parse_args()
    conversations = read(chosen.file or SHIPPED)
    half = len(conversations) // 2
    halves = {"chosen on": conversations[:half], "held out": conversations[half:]}
    for name, part in halves.items():
        pools = [conversations] if chosen.file is None else [[one] for one in part]
        print(f"\n{name}: {', '.join(one.name for one in part)}")
        _print(*asyncio.run(compare(pools, part)))
        if chosen.file is None:
            one = asyncio.run(quiet.measure(conversations, part))
            print(
                f"in a turn: evidence shown for {one.found:.0%} of the questions in {one.tokens:.0f} tokens; "
                f"something shown for {one.needless:.0%} of tasks that need nothing"
            )
    if chosen.cost:
        found = cost.apart(chosen.cost, chosen.asks)
        print(
            f"\n{found.statements} statements: recall p50 {found.p50:.1f} ms, p99 {found.p99:.1f} ms, slowest "
            f"{found.slowest:.1f} ms, processor {found.processor:.1f} ms; storing one {found.store:.2f} ms; {found.resident:.0f} MB resident at most, "
            f"of which {found.before:.0f} MB before memory is opened"
        )
        kept.numbers({"cost": asdict(found)})
    if chosen.turns:
        added = turns.run(read(SHIPPED), min(chosen.cost or 5_000, 5_000), chosen.turns)
        print(turns.printed(added))
        kept.numbers({"turns": asdict(added)})


async def compare(
    pools: Sequence[Sequence[Conversation]], asked: Sequence[Conversation], weights: Weights | None = None
) -> tuple[dict[str, Score], dict[str, Score]]:
    """Compare both ways on the questions of `asked`. Each searches the pool of turns with its conversation."""
    plain, ours = [], []
    for pool in pools:
        mine = [one for one in asked if one in pool]
        async with quality.plain(pool) as way:
            plain.append(await quality.measure(way, mine))
        async with quality.ours(pool, weights or Weights()) as other:
            ours.append(await quality.measure(other, mine))
    return quality.joined(plain), quality.joined(ours)


def _print(plain: dict[str, Score], ours: dict[str, Score]) -> None:
    print(f"{'':14}{'n':>5}   {'recall@5':^15} {'recall@10':^24} {'MRR':^15}")
    for kind, old in plain.items():
        new = ours[kind]
        gain = (new.recall10 / old.recall10 - 1) * 100 if old.recall10 else 0.0
        print(
            f"{kind:14}{old.count:5}   {old.recall5:.3f} → {new.recall5:.3f} "
            f"  {old.recall10:.3f} → {new.recall10:.3f} ({gain:+.0f} %)   {old.mrr:.3f} → {new.mrr:.3f}"
        )


if __name__ == "__main__":
    main()
