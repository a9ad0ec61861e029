"""Records the examples again: `python -m iact.examples.recording [NAME…]`, or `make examples`.

Every scene runs on the real product (`iact serve`, real containers), with the scripted endpoint of the tests
instead of a model. A journal contains the digest of every context. After a change of a prompt, a label or a rule,
the examples no longer verify and must be recorded again with this program.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from iact.core.stored.journals import JOURNAL
from iact.examples import EXAMPLES, HERE
from iact.examples.recording import (
    analysis,
    bugfix,
    cleaned,
    correction,
    harness,
    meeting,
    module,
    plan,
    profiled,
    research,
    rounds,
    service,
)
from tests.acceptance.laws import journal_law

Play = Callable[[Path], Path]
"""Runs a scene in a data directory. Returns the directory of its session."""

SCENES: Final[Mapping[str, Play]] = {
    "research": research.play,
    "analysis": analysis.play,
    "bugfix": bugfix.play,
    "cleaned": cleaned.play,
    "service": service.play,
    "plan": plan.play,
    "meeting": meeting.play,
    "harness": harness.play,
    "rounds": rounds.play,
    "profiled": profiled.play,
    "module": module.play,
    "correction": correction.play,
}


def record(name: str) -> None:
    """Run a scene, and store its journal as the example with this name."""
    with tempfile.TemporaryDirectory(prefix="iact-example-") as folder:
        data = Path(folder) / "data"
        data.mkdir()
        session = SCENES[name](data)
        journal_law(session / JOURNAL)
        target = HERE / name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        shutil.copyfile(session / JOURNAL, target / JOURNAL)
        blobs = session / "blobs"
        if blobs.is_dir() and any(blobs.iterdir()):
            shutil.copytree(blobs, target / "blobs", copy_function=shutil.copyfile)


def main() -> int:
    """Record the named examples, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m iact.examples.recording", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SCENES))
    for name in parser.parse_args().names or [one.name for one in EXAMPLES]:
        record(name)
        print(f"{name}: recorded in {HERE / name}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
