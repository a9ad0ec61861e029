"""What models met in sessions, counted over their journals: a table, and JSON with `--json FILE`.

    python -m benchmarks.contexts JOURNAL [JOURNAL …] [--json FILE] [--each] [--first]

The sessions of a round are those in which somebody, or a model, answered the contexts and knew nothing else
(docs/measurements/model.md). `--each` prints a table for each session as well; `--first` prints what the first context of
each session consists of, in tokens as the product estimates them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.contexts.count import SOON, Counts, count
from benchmarks.contexts.segments import KINDS, segments
from iact.core.context.tokens import estimate
from iact.core.journal.file import read_blob, read_journal
from iact.core.ports import JSON
from iact.core.stored.replay import contexts_of

_AIMS: Final = {"notes": "≥ 80 %", "pairs": "100 %", "needless": "≤ 5 %", "unsaid": "0", "idle": "≤ 5 %"}


def main(arguments: Sequence[str]) -> int:
    """Print the tables. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.contexts", description="What models met in sessions."
    )
    parser.add_argument(
        "journals", nargs="+", type=Path, metavar="JOURNAL", help="a session's folder or journal.md"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the counts")
    parser.add_argument("--each", action="store_true", help="print a table for each session as well")
    parser.add_argument(
        "--first", action="store_true", help="print the first contexts alone, in tokens by kind"
    )
    options = parser.parse_args(arguments)

    if options.first:
        print("\n".join(first_contexts(options.journals)))
        return 0

    total = Counts()
    for journal in options.journals:
        folder = journal if journal.is_dir() else journal.parent
        counted = count(read_journal(journal).records, partial(read_blob, folder))
        total.add(counted)
        if options.each:
            print(f"## {folder.name}\n\n" + "\n".join(table(counted)) + "\n")

    print("\n".join(table(total)))
    if options.json is not None:
        options.json.write_text(json.dumps(as_json(total), indent=1) + "\n", encoding="utf-8")
    return 0


def first_contexts(journals: Sequence[Path]) -> Iterator[str]:
    """The lines of a table of the first context of each session, in tokens by kind."""
    yield "| session | " + " | ".join(KINDS) + " | all |"
    yield "|---" * (len(KINDS) + 2) + "|"
    for journal in journals:
        folder = journal if journal.is_dir() else journal.parent
        contexts = contexts_of(read_journal(journal).records, partial(read_blob, folder))
        first = next(context for _, context in contexts if context)
        tokens = dict.fromkeys(KINDS, 0)
        for segment in segments(first):
            tokens[segment.kind] += estimate(segment.text)
        row = " | ".join(f"{tokens[kind]:,}" for kind in KINDS)
        yield f"| {folder.name} | {row} | {sum(tokens.values()):,} |"


def as_json(counts: Counts) -> dict[str, JSON]:
    """The counts by name; characters by kind."""
    plain: dict[str, JSON] = {name: getattr(counts, name) for name in counts.__dataclass_fields__}
    plain["characters"] = {kind: counts.characters[kind] for kind in KINDS}
    return plain


def table(counts: Counts) -> Iterator[str]:
    """The lines of a table in Markdown."""
    yield f"| {counts.sessions} sessions, {counts.requests} requests | | aim |"
    yield "|---|---|---|"
    yield f"| notes of functions used within {SOON} turns | {_share(counts.notes_used, counts.notes)} | {_AIMS['notes']} |"
    documented = _share(counts.pairs_documented, counts.pairs)
    yield f"| functions documented (a signature counts) before their first use, by agent | {documented} | {_AIMS['pairs']} |"
    needless = _share(counts.child_needless, counts.child_characters)
    yield f"| characters of children's contexts that are needless notes | {needless} | {_AIMS['needless']} |"
    yield f"| answers that end in a command or call that was never run, unasked | {counts.unsaid} | {_AIMS['unsaid']} |"
    yield f"| turns that did nothing | {_share(counts.idle, counts.turns)} | {_AIMS['idle']} |"
    yield f"| turns that only read a variable or documentation | {_share(counts.reading, counts.turns)} | |"
    yield f"| turns that only confirmed an answer | {_share(counts.confirming, counts.turns)} | |"
    told = f"{counts.shortened}, of which the agent was told {counts.shortened_told}"
    yield f"| replies of which something was left out | {told} | all told |"
    whole = sum(counts.characters.values())
    for kind in KINDS:
        yield f"| characters of the last contexts: {kind} | {_share(counts.characters[kind], whole)} | |"


def _share(part: int, whole: int) -> str:
    """A share as text: "3 of 12 (25 %)"."""
    return f"{part:,} of {whole:,} ({part / whole:.0%})".replace("%)", " %)") if whole else "none"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
