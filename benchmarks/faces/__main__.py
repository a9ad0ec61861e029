"""What faces cost users who do not use them: `python -m benchmarks.faces [--rounds N]`.

The same commands run in four variants: with the packages of all faces' extras hidden as if they were not installed,
with the packages installed but no face used, with `--faces`, and after one request to each face on that port. They
take turns in each round, and the median of each figure is reported. Start and `--version` are processor time, because
the machine may have other work to do. Memory is PSS: the process's own pages and its share of the shared ones.

Modules are counted by name: those in each face's own folder and those of the packages that its extra installs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from benchmarks import kept
from benchmarks.kept import Target
from tests.acceptance.product import NO_MODULES, Product
from tests.acceptance.test_mcp_http import post
from tests.endpoint import Endpoint, Reply

PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "acp": ("acp",),
    "mcp": ("mcp", "mcp_types"),
    "responses": (),
    "ag_ui": ("ag_ui",),
    "a2a": ("a2a", "sse_starlette"),
    "otel": ("opentelemetry",),
    "inspect": ("inspect_ai",),
    "skills": (),
    "http": ("starlette", "uvicorn"),
}
"""The packages that each folder of `faces/` imports, besides those that the product always has."""

HIDDEN: Final = " ".join(one for names in PACKAGES.values() for one in names)
VARIANTS: Final = ("not installed", "installed, unused", "--faces", "--faces, each asked once")
_ABSENT, _UNUSED, _OPEN, _ASKED = VARIANTS
_TICK: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Run:
    """What a process used. `seconds`: processor time. `memory`: MB, for a server. `modules`: all that it loaded."""

    seconds: float
    memory: float
    modules: frozenset[str]

    def of(self, face: str) -> int:
        """The number of modules that it loaded for a face."""
        tops = (f"iact.faces.{face}", *PACKAGES[face])
        return sum(1 for one in self.modules for top in tops if one == top or one.startswith(f"{top}."))


def environment(product: Product, variant: str, modules: Path) -> dict[str, str]:
    """The environment of a process that reports the modules that it loaded."""
    own = product.environment
    own["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent / "watched"), own["PYTHONPATH"]])
    own["IACT_BENCH_MODULES"] = str(modules)
    if variant == _ABSENT:
        own["IACT_BENCH_HIDDEN"] = HIDDEN
    return own


def version(product: Product, variant: str, modules: Path) -> Run:
    """Run `iact --version`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "iact", "--version"]
    subprocess.run(command, env=environment(product, variant, modules), check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(spent, 0, _names(modules))


def serve(product: Product, variant: str, modules: Path) -> Run:
    """Run `iact serve` until it is ready; with faces, until they are ready, or until each of them has answered."""
    faces = ("--faces", "0") if variant in (_OPEN, _ASKED) else ()
    command = [sys.executable, "-m", "iact", "serve", *faces]
    with subprocess.Popen(
        command, env=environment(product, variant, modules), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("iact: ready ")
        if faces:
            address = process.stdout.readline().split()[-1]
            if variant == _ASKED:
                ask(address, product)
        times = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        spent = (int(times[11]) + int(times[12])) / _TICK
        smaps = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        (resident,) = [int(one.split()[1]) / 1000 for one in smaps if one.startswith("Pss:")]
        process.terminate()
        assert process.wait(300) == 0
    return Run(spent, resident, _names(modules))


def ask(address: str, product: Product) -> None:
    """Send one request to each face on the port."""
    key = json.loads((product.data / "server.json").read_text(encoding="utf-8"))["key"]
    user = {"id": "1", "role": "user", "content": "Go."}
    said = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Go."}]}
    a2a = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": said}}
    headers = {"Authorization": f"Bearer {key}", "A2A-Version": "1.0"}
    with httpx.Client(base_url=address, headers=headers, timeout=300, trust_env=False) as client:
        client.post("/v1/responses", json={"input": "Go."}).raise_for_status()
        run = {"threadId": "t", "runId": "r", "messages": [user]}
        client.post("/ag-ui", json=run).raise_for_status()
        answer = client.post("/a2a", json=a2a).raise_for_status().json()
        assert "result" in answer, answer
    mcp = post(address, key, "tools/call", name="iact_ask", arguments={"task": "Go."})
    assert "result" in mcp, mcp


def _names(modules: Path) -> frozenset[str]:
    return frozenset(modules.read_text(encoding="utf-8").split())


Measured = dict[str, list[Run]]


def measure(rounds: int) -> tuple[Measured, Measured]:
    """What `iact --version` and `iact serve` used, by variant."""
    versions: Measured = defaultdict(list)
    servers: Measured = defaultdict(list)
    with tempfile.TemporaryDirectory() as place, Endpoint({"/": [Reply("Yes.", repeat=True)]}) as endpoint:
        modules = Path(place) / "modules"
        for number in range(rounds + 1):  # the first round fills caches
            for variant in VARIANTS:
                data = Path(place) / f"data-{number}-{VARIANTS.index(variant)}"
                data.mkdir()
                product = Product.at(data, endpoint, **NO_MODULES)
                if variant in (_ABSENT, _UNUSED):
                    versions[variant].append(version(product, variant, modules))
                servers[variant].append(serve(product, variant, modules))
    return {name: runs[1:] for name, runs in versions.items()}, {
        name: runs[1:] for name, runs in servers.items()
    }


def show(versions: Measured, servers: Measured) -> Sequence[Target]:
    """Print the tables. Returns the targets."""

    def median(runs: Sequence[Run], pick: Callable[[Run], float]) -> float:
        return statistics.median(pick(one) for one in runs)

    def cell(measured: Measured, variant: str, pick: Callable[[Run], float], form: str) -> str:
        own, base = median(measured[variant], pick), median(measured[_ABSENT], pick)
        return f"{own:{form}} ({own / base:.2f} ×)"

    rows = []
    for variant in VARIANTS:
        row = [variant]
        for pick, form in ((lambda one: one.seconds * 1000, ",.0f"), (lambda one: len(one.modules), ",.0f")):
            row.append(cell(versions, variant, pick, form) if variant in versions else "–")
        for pick, form in (
            (lambda one: one.seconds * 1000, ",.0f"), (lambda one: one.memory, ",.1f"), (lambda one: len(one.modules), ",.0f"),
        ):  # fmt: skip
            row.append(cell(servers, variant, pick, form))
        rows.append(row)
    kept.table(
        ["faces", "`--version`, ms", "modules", "`serve` until ready, ms", "memory, MB", "modules"], rows
    )
    print("\nModules that are loaded for each face:", flush=True)
    shown = [
        ("`--version`", versions[_UNUSED][-1]),
        *(
            (f"`serve`, {one}" if one == _UNUSED else f"`serve {one}`", servers[one][-1])
            for one in VARIANTS[1:]
        ),
    ]
    kept.table(
        ["face", *(name for name, _ in shown)],
        [[f"`{face}`", *(str(run.of(face)) for _, run in shown)] for face in PACKAGES],
    )
    loaded = sum(run.of(face) for run in (versions[_UNUSED][-1], servers[_UNUSED][-1]) for face in PACKAGES)

    def ratio(measured: Measured, pick: Callable[[Run], float]) -> float:
        return median(measured[_UNUSED], pick) / median(measured[_ABSENT], pick)

    return [
        Target("modules of faces, loaded by who uses none", loaded, 0),
        Target(
            "`iact --version`, installed against not", ratio(versions, lambda one: one.seconds), None, "×"
        ),
        Target(
            "start of `iact serve`, installed against not", ratio(servers, lambda one: one.seconds), 1.1, "×"
        ),
        Target("its memory", ratio(servers, lambda one: one.memory), 1.02, "×"),
        Target("its modules", ratio(servers, lambda one: len(one.modules)), 1, "×"),
    ]


def main() -> int:
    """Measure, print and store the numbers. Returns 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds: int = parser.parse_args().rounds
    wanted = show(*measure(rounds))
    print()
    kept.targets(wanted)
    kept.numbers({one.name: round(one.value, 3) for one in wanted})
    return 0 if all(one.met for one in wanted) else 1


if __name__ == "__main__":
    sys.exit(main())
