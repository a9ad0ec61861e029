"""`make bench`: run every comparison, or those named on the command line, one after another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main(names: list[str]) -> int:
    """Run each benchmark as a process of its own; 0 if all of them ran to their end."""
    here = Path(__file__).parent
    known = sorted(path.parent.name for path in here.glob("*/__main__.py"))
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"benchmarks: there is no {unknown[0]!r}; there are {', '.join(known)}.", file=sys.stderr)
        return 2
    failed = []
    for name in names or known:
        print(f"\n== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode != 0:
            failed.append(name)
    if failed:
        print(f"benchmarks: {', '.join(failed)} did not run to the end.", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
