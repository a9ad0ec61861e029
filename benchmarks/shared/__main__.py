"""The cost of journals that several machines share: `python -m benchmarks.shared [--steps N] [--rounds N]`.

Uses the real runtime with a model that answers at once and a module in memory, as in `benchmarks.tree`. Each step
changes something, so it waits until its intent is stored. The journal is only in the data directory, in a directory as
a store, or in S3, which is moto's server in its own process. Every measurement runs in its own process, and they take
turns. Then another host takes over the session, measured from its request until it holds the session and has read the
whole journal.

The objects and bytes that the steps left in the store are counted, and compared with what they added to the file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx

from benchmarks import kept
from benchmarks.kept import Target
from benchmarks.tree.fakes import InstantModel, runtime
from benchmarks.tree.measure import DONE, TASK, TEXT, Numbers, Stopwatch, report
from iact.cluster.objects import open_objects
from iact.core.clock import SystemClock
from iact.core.journal.stores import JournalStore, LocalJournals, SharedJournals
from iact.core.session.session import Session

_PLACES: Final = ("data directory", "directory as a store", "S3 (moto)")
_BUCKET: Final = "bench"


def _script(steps: int) -> InstantModel:
    def script(path: str, turn: int) -> str:
        # The first turn answers a greeting, because the modules of a session become known with it.
        return (
            DONE if turn in (0, steps + 1) else f"{TEXT.format(number=turn)}\n\n```t.write\nfile {turn}\n```"
        )

    return InstantModel(script)


async def _measure(folder: Path, address: str, steps: int) -> Numbers:
    def journals(host: str) -> JournalStore:
        return SharedJournals(open_objects(address), host, SystemClock()) if address else LocalJournals()

    async with runtime(folder / "a", _script(steps), journals=journals("a")) as a:
        session = await a.open()
        await session.ask("Are you there?")
        before = _stored(address, session)
        with Stopwatch() as watch:
            await session.ask(TASK)
        found = watch.per(steps)
        objects, stored, kept_here = (
            after - earlier for after, earlier in zip(_stored(address, session), before, strict=True)
        )
        found |= {"objects": objects / steps, "bytes": stored / kept_here}
    if address:
        (folder / "b").mkdir()
        (folder / "b" / "seal.key").write_bytes((folder / "a" / "seal.key").read_bytes())
    async with runtime(folder / ("b" if address else "a"), _script(steps), journals=journals("b")) as b:
        began = time.perf_counter()
        again = await b.open(session.id)
        found["take_over_ms"] = (time.perf_counter() - began) * 1000
        assert len(again.records()) > 3 * steps
    return found


def _stored(address: str, session: Session) -> tuple[int, int, int]:
    """The number of a session's objects in the store, their bytes, and the bytes of its file and adjacent files."""
    here = session.journal.parent
    files = [session.journal, *(here / "blobs").iterdir()]
    kept_here = sum(one.stat().st_size for one in files)
    if not address:
        return len(files), kept_here, kept_here
    store = open_objects(address)
    objects = [store.get(name) or b"" for name in store.names(f"sessions/{session.id}/")]
    return len(objects), sum(map(len, objects)), kept_here


@contextmanager
def _s3() -> Iterator[str]:
    """Run an S3 server with an empty bucket. Yields its address."""
    program = (
        "import sys; from moto.server import ThreadedMotoServer as S\n"
        "s = S('127.0.0.1', 0, verbose=False); s.start(); print(*s.get_host_and_port(), flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet, text=True
    ) as server:
        assert server.stdout is not None
        host, port = server.stdout.readline().split()
        try:
            yield f"http://{host}:{port}"
        finally:
            server.kill()


def _in_a_process(address: str, steps: int, environment: Mapping[str, str]) -> Numbers:
    command = [sys.executable, "-m", "benchmarks.shared", "--one", address, "--steps", str(steps)]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return {name: float(value) for name, value in json.loads(done.stdout).items()}


def main(arguments: Sequence[str]) -> None:
    """Measure and print a report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.one is not None:
        with tempfile.TemporaryDirectory() as folder:
            report(asyncio.run(_measure(Path(folder), chosen.one, chosen.steps)))
        return
    found: dict[str, list[Numbers]] = {place: [] for place in _PLACES}
    with _s3() as endpoint, tempfile.TemporaryDirectory() as made:
        httpx.put(f"{endpoint}/{_BUCKET}").raise_for_status()
        keys = {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "k"}
        for number in range(chosen.rounds):
            addresses = ("", f"file://{made}/{number}", f"s3://{_BUCKET}/{number}")
            for place, address in zip(_PLACES, addresses, strict=True):
                found[place].append(_in_a_process(address, chosen.steps, keys))

    def middle(place: str, what: str) -> float:
        return statistics.median(one[what] for one in found[place])

    print(f"Steps that change something, {chosen.steps} in a row; the median of {chosen.rounds} rounds.")
    columns = ("cpu_ms", "wall_ms", "take_over_ms")
    kept.table(
        ("journal in", "processor ms per step", "ms per step", "opened again / taken over, ms"),
        [[place, *(f"{middle(place, what):,.2f}" for what in columns)] for place in _PLACES],
    )
    kept.table(
        ("journal in", "objects per step", "bytes, against the file's"),
        [
            [place, f"{middle(place, 'objects'):.2f}", f"{middle(place, 'bytes'):.3f}"]
            for place in _PLACES[1:]
        ],
    )
    local = middle(_PLACES[0], "cpu_ms")
    kept.targets(
        [
            Target(
                f"processor time of a step, {place}, against the data directory",
                middle(place, "cpu_ms") / local,
                1.3,
            )
            for place in _PLACES[1:]
        ]
        + [
            Target("objects of a step, S3 (moto)", middle(_PLACES[2], "objects"), 1.3),
            Target("bytes of a step, S3 (moto), against the file", middle(_PLACES[2], "bytes"), 1.3),
        ]
    )
    kept.numbers(
        {place: {what: middle(place, what) for what in (*columns, "objects", "bytes")} for place in _PLACES}
    )


if __name__ == "__main__":
    main(sys.argv[1:])
