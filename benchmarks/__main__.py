"""`make bench`: run all benchmarks, or the named ones, and write the report `docs/benchmarks.md` from their results.

    python -m benchmarks [NAME …] [--write-only | --short]

Each benchmark runs in its own process and prints Markdown. Its output, numbers and charts, the time and the
machine are stored in `docs/benchmarks/NAME.json`. Running one benchmark again replaces only its own file, and
the page is always made from all stored files. If a benchmark fails or takes too long, the report says so, and
the others still run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks import page, ratios
from benchmarks.kept import VARIABLE
from benchmarks.page import PARTS, Kept

ROOT: Final = Path(__file__).parents[1]


def run(name: str) -> Kept:
    """Run one benchmark, and show its output."""
    part = PARTS[name]
    before, began = os.getloadavg()[0], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        handed = Path(folder) / "handed"
        command = [sys.executable, "-W", "ignore", "-m", f"benchmarks.{name}", *part.arguments]
        text, status, wrong = _process(command, {**os.environ, VARIABLE: str(handed)}, part.seconds)
        lines = handed.read_text(encoding="utf-8").splitlines() if handed.exists() else []
    given = [json.loads(line) for line in lines]
    return Kept(
        name=name,
        at=datetime.now(UTC).isoformat(timespec="minutes"),
        seconds=round(time.monotonic() - began),
        machine=_machine(),
        load=[round(before, 1), round(os.getloadavg()[0], 1)],
        status=status,
        wrong=wrong,
        text=text,
        charts=[one["chart"] for one in given if "chart" in one],
        numbers={key: value for one in given for key, value in one.get("numbers", {}).items()},
    )


def _process(command: Sequence[str], around: dict[str, str], seconds: float) -> tuple[str, int, str]:
    """Run a process. Returns its output, its status, and why it failed, if it did."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        running = subprocess.Popen(
            command, cwd=ROOT, env=around, stdout=subprocess.PIPE, stderr=errors, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            text, _ = running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            text, _ = running.communicate()
            print(text, flush=True)
            return text, running.returncode, f"It did not end within {seconds:g} seconds."
        errors.seek(0)
        said = [line for line in errors.read().splitlines() if line.strip()]
    print(text, flush=True)
    if running.returncode and said and "Traceback" in "\n".join(said):
        return text, running.returncode, said[-1]
    return text, running.returncode, ""


def _machine() -> str:
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return (
        f"{os.cpu_count()} processors ({_processor()}), {gigabytes:.0f} GB of memory, "
        f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}, Python {platform.python_version()}"
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            names = [line.partition(":")[2].strip() for line in stream if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def main(arguments: Sequence[str]) -> int:
    """Run, store the results and write the page. Returns 1 if a benchmark broke; a missed target does not count."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(PARTS)} (default: all)")
    parser.add_argument(
        "--write-only", action="store_true", help="only write the page, from the stored results"
    )
    parser.add_argument(
        "--short", action="store_true", help="only check the ratios that have limits; takes a minute"
    )
    chosen = parser.parse_args(arguments)
    if chosen.short:
        return ratios.main()
    unknown = [name for name in chosen.names if name not in PARTS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; the benchmarks are {', '.join(PARTS)}")
    broken = []
    for name in () if chosen.write_only else chosen.names or PARTS:
        print(f"\n== {name}", flush=True)
        made = run(name)
        page.keep(made)
        page.write()
        if made.wrong:
            broken.append(name)
            print(f"benchmarks: {name}: {made.wrong}", file=sys.stderr)
    page.write()
    print(f"\n{page.PAGE.relative_to(ROOT)} is written.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
