"""The targets of the second round of measurements: the cost of a child agent, and the bytes stored per step.

    python -m benchmarks.aims [--before REVISION] [--rounds N] [--children N] [--steps N]

This checkout, an earlier commit and other frameworks do the same work in turns, each time in a new process. Times are
processor time of all threads, and the lowest of the rounds counts, because other work on the machine can only make a
round slower. All processes run Python's cycle collector as rarely as the command `iact` does. The report shows ratios
and targets, and then where the time and the bytes go: samples of the running process by package of the source, and the
stored bytes by kind of record and by purpose. Exits with status 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks import kept
from benchmarks.aims.stored import Stored, measured
from benchmarks.beside.__main__ import checkout
from benchmarks.environments import installed, interpreter
from benchmarks.kept import Target
from benchmarks.peers.__main__ import endpoint
from benchmarks.peers.framework import control

ROOT: Final = Path(__file__).parents[2]
BEFORE: Final = "3774dc7"
"""The last commit before work on the second round of measurements."""

_CHILD: Final = 0.3
_BYTES: Final = 1000
_WORK: Final = ROOT / "benchmarks" / "earlier" / "work.py"
_WHERE: Final = Path(__file__).with_name("where.py")
_LIKE_IACT: Final = (
    "import gc, runpy; gc.set_threshold(50_000); "
    "runpy.run_module('benchmarks.tree.peer_autogen', run_name='__main__', alter_sys=True)"
)
_NOW: Final = "iact"
_AUTOGEN: Final = "AutoGen"
_OPENAI: Final = "OpenAI Agents SDK"
_PEERS: Final[Mapping[str, str]] = {_AUTOGEN: "autogen", _OPENAI: "openai_agents"}
_KEEPS: Final[Mapping[str, str]] = {
    _NOW: "journal, at each record",
    _AUTOGEN: "`save_state`, when the run has ended",
    _OPENAI: "`SQLiteSession`, at each turn of the run",
}


def _run(command: Sequence[str], place: Path) -> dict[str, float]:
    """The numbers that a process prints, run in the checkout at `place`."""
    done = subprocess.run(
        command,
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {name: float(value) for name, value in json.loads(done.stdout.splitlines()[-1]).items()}


def child(
    places: Mapping[str, Path], peers: Sequence[str], rounds: int, count: int
) -> dict[str, list[float]]:
    """Milliseconds of processor time per child agent, by product; one number for each round."""
    commands = {
        name: ([sys.executable, "-W", "ignore", str(_WORK), "children", str(count)], place)
        for name, place in places.items()
    }
    if _AUTOGEN in peers:
        python = str(interpreter(_PEERS[_AUTOGEN]))
        commands[_AUTOGEN] = ([python, "-W", "ignore", "-c", _LIKE_IACT, "children", str(count)], ROOT)
    found: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds):
        for name in commands if number % 2 else reversed(commands):
            found[name].append(_run(*commands[name])["cpu_ms"])
    return found


def calls(places: Mapping[str, Path], count: int) -> dict[str, float]:
    """How many functions are called per child agent. The number is the same however busy the machine is."""
    command = [sys.executable, "-W", "ignore", str(_WORK), "children", str(count), "calls"]
    return {name: _run(command, place)["calls 0"] / count for name, place in places.items()}


def stored(places: Mapping[str, Path], peers: Sequence[str], count: int) -> tuple[dict[str, float], Stored]:
    """Bytes on disk per step, by product, and what the bytes of this checkout consist of."""
    jobs = {name: ("ours", sys.executable, place) for name, place in places.items()}
    jobs |= {name: (_PEERS[name], str(interpreter(_PEERS[name])), ROOT) for name in peers}
    found: dict[str, float] = {}
    ours: Stored | None = None
    with endpoint() as url:
        for name, (module, python, place) in jobs.items():
            control(url, "/ignore")
            with tempfile.TemporaryDirectory() as folder:
                arguments = ["stored", str(count), f"{url}/v1", folder]
                _run([python, "-W", "ignore", "-m", f"benchmarks.peers.{module}", *arguments], place)
                files = [one for one in Path(folder).rglob("*") if one.is_file()]
                found[name] = sum(one.stat().st_size for one in files) / count
                if place == ROOT and module == "ours":
                    ours = measured(Path(folder), count)
    assert ours is not None
    return found, ours


def _tables(
    before: str, times: Mapping[str, list[float]], called: Mapping[str, float], sizes: Mapping[str, float]
) -> list[Target]:
    """Print both tables. Returns the ratios with their targets."""
    best = {name: min(all_) for name, all_ in times.items()}
    kept.table(
        ("", "ms per child", "iact as a multiple", "… in rounds", "functions called"),
        [
            [
                name, f"{one:.2f}", f"{best[_NOW] / one:.2f}", _spread(times[_NOW], times[name]),
                f"{called[name]:,.0f}" if name in called else "–",
            ]
            for name, one in best.items()
        ],
    )  # fmt: skip
    kept.table(
        ("", "bytes per step", "iact as a multiple", "what it is"),
        [
            [name, f"{one:,.0f}", f"{sizes[_NOW] / one:.2f}", _KEEPS.get(name, _KEEPS[_NOW])]
            for name, one in sizes.items()
        ],
    )
    aims = [
        Target("a child agent", best[_NOW], _CHILD, "ms"),
        Target("stored per step", sizes[_NOW], _BYTES, "B"),
    ]
    ratios = [
        Target(f"{what}, as a multiple of {name}", numbers[_NOW] / numbers[name], 1)
        for what, numbers in (("a child agent", best), ("stored per step", sizes))
        for name in (before, *_PEERS)
        if name in numbers
    ]
    return [*aims, *ratios]


def _spread(now: Sequence[float], other: Sequence[float]) -> str:
    pairs = [one / beside for one, beside in zip(now, other, strict=True)]
    return f"{min(pairs):.2f} to {max(pairs):.2f}"


def _where_time_is(count: int) -> dict[str, float]:
    """Print the share of processor time by package of the source."""
    shares = _run([sys.executable, "-W", "ignore", str(_WHERE), str(count)], ROOT)
    rows = sorted(shares.items(), key=lambda one: -one[1])
    print(
        "\nWhere the time of a child agent goes: samples of the running process, each counted for its innermost frame in a "
        "file of iact."
    )
    kept.table(("room", "share"), [[name, f"{share:.0%}"] for name, share in rows if share >= 0.01])
    return shares


def _where_bytes_are(found: Stored) -> None:
    """Print the bytes of a step by kind of record and by purpose."""
    print(
        "\nWhat the bytes of a step are for. *Content* is what was said, and the results of calls. *Frame* is what every "
        "record needs so that it can be found, identified and checked: number, time, kind, agent, length, chain, seal, "
        "heading, trailer. *Outcomes* are what only the world could determine. *Derived* fields are for people, and let a "
        "verification find the first record that differs."
    )
    kept.table(
        ("record", "per step", *found.parts, "all"),
        [
            *(
                [
                    kind,
                    f"{row.count:.2f}",
                    *(f"{row.parts[part]:,.0f}" for part in found.parts),
                    f"{row.bytes:,.0f}",
                ]
                for kind, row in found.kinds.items()
            ),
            ["all", "", *(f"{found.total(part):,.0f}" for part in found.parts), f"{found.bytes:,.0f}"],
        ],
    )
    least = found.total("content") + found.total("frame")
    print(
        f"\nContent and frame alone are {least:,.0f} bytes; the target is {_BYTES:,}. The format requires the frame for each "
        "record, and a step has four records: the gate's decision is a separate record "
        f"({found.kinds['gate'].bytes:,.0f} bytes), which can be looked up by its number."
    )
    print("\nThe largest fields of headers, in bytes per step:")
    kept.table(
        ("field", "bytes", "what it is"), [[name, f"{size:,.0f}", part] for name, part, size in found.fields]
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.aims", description=__doc__)
    parser.add_argument("--before", default=BEFORE)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--children", type=int, default=200)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    found_peers = installed(*_PEERS.values())
    peers = [name for name, module in _PEERS.items() if module in found_peers]
    before = f"iact at {options.before}"
    with checkout(options.before) as earlier:
        places = {_NOW: ROOT, before: earlier}
        times = child(places, peers, options.rounds, options.children)
        called = calls(places, options.children)
        sizes, ours = stored(places, peers, options.steps)
    targets = _tables(before, times, called, sizes)
    kept.targets(targets)
    shares = _where_time_is(options.children * 10)
    _where_bytes_are(ours)
    kept.numbers(
        {"child": times, "calls": called, "stored": sizes, "time": shares, "bytes": ours.as_numbers()}
    )
    return 0 if all(target.met for target in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
