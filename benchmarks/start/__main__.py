"""How long a newcomer waits for the model on board: `python -m benchmarks.start [--cold]`.

Starts the server without an endpoint and in an empty data directory, watches over the page's websocket what a page is
told, and sends one message as soon as the model is ready. `--cold`: with an empty cache folder, so that the model's file is
downloaded first (1.1 GB). Then the memory of a process with the model: before it is loaded, loaded, and released after idle
time. The load of the machine is printed with the figures, because they depend on it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from iact.core.clock import SystemClock
from iact.core.ports import ChatMessage, TextDelta
from iact.models.embedded import EmbeddedModel
from iact.models.weights import cache_folder
from tests.acceptance.product import Product, Server

_TEXT: Final = "Good morning!"
_IDLE: Final = 1.0


def main(arguments: Sequence[str]) -> int:
    """Measure, and print a line for each figure."""
    parser = argparse.ArgumentParser(prog="benchmarks.start", description=__doc__)
    parser.add_argument("--cold", action="store_true", help="download the model's file, too")
    cold = parser.parse_args(arguments).cold
    loads = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    print(f"load {loads} on {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache" if cold else cache_folder()
        _start(Path(folder), cache)
    asyncio.run(_memory())
    return 0


def _start(folder: Path, cache: Path) -> None:
    data = folder / "data"
    data.mkdir()
    product = Product.at(data, IACT_EMBEDDED="1.5b", IACT_CACHE=str(cache))
    began = time.monotonic()

    def say(what: str, more: str = "") -> None:
        print(f"{what}: {time.monotonic() - began:.1f} s{more}", flush=True)

    # A process of its own from the start, as a person starts it.
    with subprocess.Popen(
        [sys.executable, "-m", "iact", "serve"],
        stdout=subprocess.PIPE,
        text=True,
        env=product.environment,
        cwd=folder,
    ) as process:
        server = _server(process, data)
        say("the page can be used", f", {_resident(server.process.pid)}")
        with server.connect() as socket:
            socket.send(json.dumps({"type": "hello", "session": None, "since": 0, "id": 1}))
            phase = ""
            board: Mapping[str, object] = {}
            while phase != "ready":
                frame = json.loads(socket.recv())
                if frame["type"] != "board":
                    continue
                if frame["phase"] != phase:
                    phase = frame["phase"]
                    say(
                        f"phase {phase}",
                        f", {frame['done']:,} of {frame['total']:,} bytes" if frame["total"] else "",
                    )
                board = frame
                if phase == "failed":
                    raise SystemExit(str(board["why"]))
            say("the model is ready", f", {_resident(server.process.pid)}")

            asked = time.monotonic()
            socket.send(json.dumps({"type": "say", "text": _TEXT, "id": 2}))
            first = 0.0
            while True:
                frame = json.loads(socket.recv())
                if frame["type"] == "delta":
                    first = first or time.monotonic()
                if frame["type"] == "record" and frame["kind"] == "reply":
                    break
            print(f"first token: {first - asked:.1f} s after the message")
            print(f"answer: {time.monotonic() - asked:.1f} s after the message: {frame['body']!r}")
            say("end", f", {_resident(server.process.pid)}")
        process.terminate()


def _server(process: subprocess.Popen[str], data: Path) -> Server:
    assert process.stdout is not None
    address = urlsplit(process.stdout.readline().split()[-1])
    assert address.port is not None
    key = json.loads((data / "server.json").read_text(encoding="utf-8"))["key"]
    return Server(process, address.port, "", key)


async def _memory() -> None:
    """The memory of this process with the model and without."""
    print(f"this process before: {_resident(os.getpid())}")
    model = EmbeddedModel(clock=SystemClock(), rng=random.Random(0), idle=_IDLE)
    await model.warm()
    async for event in model.stream([ChatMessage("user", _TEXT)], max_tokens=8):
        if isinstance(event, TextDelta):
            break
    print(f"with the model: {_resident(os.getpid())}")
    while model.loaded:  # noqa: ASYNC110 - a timer releases it
        await asyncio.sleep(_IDLE / 10)
    await asyncio.sleep(_IDLE)  # its threads end
    print(f"released after idle time: {_resident(os.getpid())}")
    await model.close()


def _resident(process: int) -> str:
    """The memory and the processor time of a process, and of llama.cpp below it. Pages of files are memory that the system
    can take back."""
    told = [f"{_sizes(process)} in the process"]
    told += [f"{_sizes(child)} in llama.cpp" for child in _llama_below(process)]
    return "; ".join(told)


def _llama_below(process: int) -> list[int]:
    children: set[int] = set()
    for thread in Path(f"/proc/{process}/task").iterdir():
        children.update(int(child) for child in (thread / "children").read_text(encoding="ascii").split())
    return [child for child in children if b"llama_program" in Path(f"/proc/{child}/cmdline").read_bytes()]


def _sizes(process: int) -> str:
    sizes: dict[str, int] = {}
    for line in Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name in ("RssAnon", "RssFile"):
            sizes[name] = int(value.split()[0]) * 1024 // 10**6
    ticks = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    worked = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
    return f"{sizes['RssAnon']:,} MB own, {sizes['RssFile']:,} MB of files, {worked:.1f} s of processor time"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
