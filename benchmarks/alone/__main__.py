"""What accounts cost an installation with a single user: this checkout compared with a commit before accounts.

    python -m benchmarks.alone [--before REVISION] [--rounds N] [--messages N]

For one user on loopback, `make run` is `iact serve`. Each round starts it, waits until it is ready, and sends messages
through a websocket that a scripted endpoint answers at once. Both commits take turns in separate processes, in
alternating order, and the medians are compared. Times are processor time of the whole process. Memory is PSS: its own
pages and its share of the shared ones. Other changes since that commit affect the ratios too, so the benchmark also
checks that no module of accounts, or of a package that only accounts need, is loaded. Exits with status 1 if one is
loaded, or if a ratio is above its limit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Final

from websockets.sync.client import connect

from benchmarks import kept
from benchmarks.beside.__main__ import checkout
from benchmarks.kept import Target
from tests.acceptance.product import NO_MODULES, Product
from tests.endpoint import Endpoint, Reply

ROOT: Final = Path(__file__).parents[2]
BEFORE: Final = "4aae47b"
"""The last commit without accounts at which the server starts. The four commits between it and the one that added
accounts lack a part of memory."""

PACKAGES: Final = (
    "sqlalchemy",
    "alembic",
    "argon2",
    "authlib",
    "joserfc",
    "psycopg",
    "iact.accounts.database",
)
"""Packages that are imported only for accounts."""

ROWS: Final = (
    ("until it is ready", "ms", 1.25),
    ("a message", "ms", 1.25),
    ("memory", "MB", 1.15),
    ("modules", "", None),
)
"""Each figure with its unit and its limit as a multiple of the earlier commit, which lacks more than accounts."""

_WATCHED: Final = Path(__file__).parents[1] / "faces" / "watched"
_TICK: Final = os.sysconf("SC_CLK_TCK")

Found = dict[str, dict[str, list[float]]]


def serve(
    place: Path, data: Path, endpoint: Endpoint, messages: int
) -> tuple[dict[str, float], frozenset[str]]:
    """Run one server of the checkout at `place`. Returns what it used, and the modules that it loaded."""
    data.mkdir()
    loaded = data.with_suffix(".modules")
    own = Product.at(data, endpoint, **NO_MODULES).environment
    own["PYTHONPATH"] = os.pathsep.join((str(_WATCHED), str(place)))
    own["IACT_BENCH_MODULES"] = str(loaded)
    command = [sys.executable, "-W", "ignore", "-m", "iact", "serve"]
    with subprocess.Popen(command, env=own, cwd=place, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("iact: ready "), line
        ready = _spent(process.pid)
        _talk(int(line.split(":")[3].partition("/")[0]), data, messages)
        talked = _spent(process.pid)
        smaps = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        (memory,) = (int(one.split()[1]) / 1000 for one in smaps if one.startswith("Pss:"))
        process.terminate()
        assert process.wait(300) == 0
    names = frozenset(loaded.read_text(encoding="utf-8").split())
    took = {
        "until it is ready": ready * 1000,
        "a message": (talked - ready) * 1000 / messages,
        "memory": memory,
    }
    return {**took, "modules": float(len(names))}, names


def _spent(process: int) -> float:
    times = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(times[11]) + int(times[12])) / _TICK


def _talk(port: int, data: Path, messages: int) -> None:
    """Send messages one after another, and wait for the reply to each."""
    key = json.loads((data / "server.json").read_text(encoding="utf-8"))["key"]
    headers = {"Authorization": f"Bearer {key}"}
    with connect(
        f"ws://127.0.0.1:{port}/ws", additional_headers=headers, max_size=None, proxy=None
    ) as socket:
        socket.send(json.dumps({"type": "hello", "session": None}))
        for number in range(messages):
            socket.send(json.dumps({"type": "say", "text": f"Message {number}."}))
            while (frame := json.loads(socket.recv(timeout=300))).get("kind") != "reply":
                assert frame["type"] != "error", frame


def measure(before: Path, rounds: int, messages: int) -> tuple[Found, set[str]]:
    """The figures by side and name, one number for each round, and the modules of accounts that were loaded."""
    sides = {"before": before, "now": ROOT}
    found: Found = {side: defaultdict(list) for side in sides}
    wrong: set[str] = set()
    with tempfile.TemporaryDirectory() as folder, Endpoint({"/": [Reply("Yes.", repeat=True)]}) as endpoint:
        for number in range(rounds + 1):  # the first round fills caches
            for side in sides if number % 2 else reversed(sides):
                took, names = serve(sides[side], Path(folder) / f"{side}-{number}", endpoint, messages)
                if side == "now":
                    wrong |= {
                        one for one in names for top in PACKAGES if one == top or one.startswith(f"{top}.")
                    }
                for name, value in took.items() if number else ():
                    found[side][name].append(value)
    return found, wrong


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.alone", description=__doc__)
    parser.add_argument("--before", default=BEFORE)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=40)
    options = parser.parse_args()
    with checkout(options.before) as before:
        found, wrong = measure(before, options.rounds, options.messages)
    rows, numbers = [], dict[str, dict[str, float]]()
    targets = [Target("modules of accounts that are loaded", len(wrong), 0)]
    for name, unit, most in ROWS:
        then, now = (statistics.median(found[side][name]) for side in ("before", "now"))
        numbers[name] = {"before": round(then, 2), "now": round(now, 2), "ratio": round(now / then, 3)}
        rows.append((name, *(f"{one:,.1f} {unit}".rstrip() for one in (then, now)), f"{now / then:.2f}"))
        targets.append(Target(f"{name}: now, as a multiple of before", now / then, most))
    kept.table(("", f"at {options.before}", "now", "now / before"), rows)
    kept.targets(targets)
    kept.numbers(numbers)
    print(*sorted(wrong), sep="\n")
    return 0 if all(target.met for target in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
