"""The cost of modules, measured in one run: a call, a start, a large artifact, the image.

    python -m benchmarks.modules [--rounds N] [--json]

Everything runs in real, hardened containers of the Docker engine. `calls.py` describes what each kind of call includes.
Exits with status 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks import kept
from benchmarks.modules import artifact, calls, starts
from iact.sandbox import DockerHost, build
from iact.sandbox.docker import image
from iact.sandbox.docker.engine import connect
from iact.sandbox.images import workshop

_FLIGHT = 64
_AT_ONCE = 8
Found = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `most`: the goal; None for numbers that are only reported."""

    what: str
    value: float
    unit: str
    most: float | None = None

    @property
    def missed(self) -> bool:
        return self.most is not None and self.value > self.most


async def measure(rounds: int) -> Found:
    """Measure everything. Returns the numbers by part and name."""
    found: Found = {}
    with tempfile.TemporaryDirectory(prefix="iact-modules-") as folder:
        place = Path(folder)
        for name in ("calls", "starts", "artifact"):
            (place / name).mkdir()
        host = DockerHost(place / "data", shipped=calls.SERVED)
        try:
            async with calls.kinds(host, place / "calls") as kinds:
                for name, taken in (await calls.latencies(kinds, rounds=rounds, calls=200)).items():
                    found[f"call_{name}"] = taken
                crowd = await calls.crowded(kinds, rounds=rounds, calls=1280, flight=_FLIGHT)
                for name, taken in crowd.items():
                    found[f"flight_{name}"] = taken
            found["artifact"] = await artifact.stream(
                host, place / "artifact", mebibytes=100, rounds=min(rounds, 3)
            )
        finally:
            await host.close()
        host = DockerHost(place / "data")
        try:
            found["start"] = await starts.starts(host, place / "starts", rounds=rounds, at_once=_AT_ONCE)
            for kind in ("cold", "warmed"):
                found[kind] = await starts.first_calls(
                    host, place / "data" / "sessions", kind=kind, rounds=rounds
                )
        finally:
            await host.close()
        host = DockerHost(place / "data", pool=1)
        try:
            found["pool"] = await starts.first_calls(
                host, place / "data" / "sessions", kind="pool", rounds=rounds
            )
        finally:
            await host.close()
        place_of_more = place / "equipped"
        size = await asyncio.to_thread(_equip, place_of_more)
        host = DockerHost(place_of_more)
        try:
            found["workshop"] = await starts.first_calls(
                host, place_of_more / "sessions", kind="cold", rounds=rounds
            )
        finally:
            await host.close()
    found["image"] = await asyncio.to_thread(_image)
    found["workshop"]["mb"] = size
    return found


def _equip(data: Path) -> float:
    """Give the shells of data directory `data` the tools of the profile `dev`. Returns the megabytes of its image."""

    def tell(line: str) -> None:
        print(line, file=sys.stderr)

    made = build.make_workshop(data, workshop.chosen(["dev"], "", ""), tell, "docker")
    client = connect()
    try:
        return round(int(client.images.get(made.name).attrs["Size"]) / 1e6, 1)
    finally:
        client.close()


def _image() -> dict[str, float]:
    """Megabytes of the base image: of the system (Python, bash, coreutils), and of the image with the SDK."""
    client = connect()
    try:
        base = image.find(client)
        assert base is not None
        layers = client.images.get(base.reference).history()
        return {"mb": round(base.size / 1e6, 1), "sdk_mb": round(int(layers[0]["Size"]) / 1e6, 1)}
    finally:
        client.close()


def rows(found: Found) -> list[Row]:
    """The rows of the table, with the goals."""
    bare = found["call_bare"]["p50"]
    return [
        Row("bare unary echo, unix socket", bare, "ms"),
        Row("the same into a container", found["call_contained"]["p50"], "ms"),
        Row("whole call: gate, ticket, invoker, gRPC, container", found["call_whole"]["p50"], "ms", bare),
        Row("a durable journal record beside it", found["call_journal"]["p50"], "ms"),
        *(
            Row(f"{_FLIGHT} in flight, {name}", found[f"flight_{name}"]["per_s"], "calls/s")
            for name in ("bare", "contained", "whole")
        ),
        Row(f"{_FLIGHT} in flight, whole call", found["flight_whole"]["p50"], "ms"),
        Row("docker run until the module answers", found["start"]["one"], "ms"),
        Row(f"{_AT_ONCE} of them at once", found["start"][f"{_AT_ONCE}_at_once"], "ms"),
        Row("first call of a session, container to be started", found["cold"]["first"], "ms"),
        Row("first call of a session, from the pool", found["pool"]["first"], "ms", 50),
        Row("first call of a session, container started with it", found["warmed"]["first"], "ms", 50),
        Row("second call of a session", found["pool"]["second"], "ms"),
        Row("artifact of 100 MiB into a blob", found["artifact"]["seconds"], "s"),
        Row("… memory of the core grew by", found["artifact"]["grown_mib"], "MiB", 32),
        Row("… the event loop was blocked for at most", found["artifact"]["blocked_ms"], "ms", 20),
        Row("first call of a session, cold, in the workshop (profile dev)", found["workshop"]["first"], "ms"),
        Row("second call of a session in the workshop", found["workshop"]["second"], "ms"),
        Row("workshop image (profile dev)", found["workshop"]["mb"], "MB"),
        Row("base image", found["image"]["mb"], "MB", 130),
        Row("… of it SDK, gRPC and protobuf", found["image"]["sdk_mb"], "MB"),
    ]


def main() -> int:
    """Measure and print. Returns 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print only JSON")
    options = parser.parse_args()
    found = asyncio.run(measure(options.rounds))
    table = rows(found)
    if not options.json:
        print("| | measured | goal |\n|---|---|---|")
        for row in table:
            goal = "" if row.most is None else f"≤ {row.most:g}{' — MISSED' if row.missed else ''}"
            print(f"| {row.what} | {row.value:g} {row.unit} | {goal} |")
    else:
        print(json.dumps(found))
    kept.numbers(found)
    return 1 if any(row.missed for row in table) else 0


if __name__ == "__main__":
    sys.exit(main())
