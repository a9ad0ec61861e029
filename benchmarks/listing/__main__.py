"""How long it takes to list and search many sessions: `python -m benchmarks.listing [--sessions N] [--rounds N]`.

Uses journals of thirty records each, the whole server, and a client at its websocket. Measured from a request to its
complete answer. The first list of a server that has just started is reported separately, and so is the time to read
journals that the index has never seen; both happen once. The searches are for a word that one session has, a word that
all have, a part of a title, and words that no session has.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from websockets.sync.client import ClientConnection

from benchmarks import kept
from benchmarks.kept import Target
from iact.core.ports import JSON
from tests.acceptance.product import NO_MODULES, Product
from tests.web.long import long_journal

_RARE: Final = "quizzaltine"
_SEARCHES: Final = {
    "a word of one session": _RARE,
    "a word of all": "sentence",
    "the beginning of a word of all, twice": "ordin leng",
    "words of none": "xylophone zeppelin",
}


def _asked(client: ClientConnection, **message: JSON) -> tuple[float, dict[str, JSON]]:
    """Milliseconds until the answer is complete, and the answer. A list arrives in a message before it."""
    began, listed = time.perf_counter(), dict[str, JSON]()
    client.send(json.dumps({"id": "q", **message}))
    while True:
        answer = json.loads(client.recv(timeout=120))
        if answer["type"] == "sessions":
            listed = answer
        if answer.get("id") == "q":
            assert answer["type"] == "ok", answer
            return (time.perf_counter() - began) * 1000, {**listed, **answer}


def _write(sessions: Path, count: int, records: int) -> None:
    for number in range(count):
        day, second = divmod(number, 86_400)
        hour, rest = divmod(second, 3600)
        name = f"202601{day + 1:02}-{hour:02}{rest // 60:02}{rest % 60:02}-{number:08x}"
        long_journal(
            sessions, records, name=name, word=_RARE if number == count // 2 else f"Number {number}."
        )


def main(arguments: Sequence[str]) -> None:
    """Measure and print a report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--records", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args(arguments)
    took: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as made:
        data = Path(made) / "data"
        _write(data / "sessions", chosen.sessions, chosen.records)
        product = Product.at(data, "http://127.0.0.1:9/v1", **NO_MODULES)
        with product.serving() as server, server.connect() as client:
            took["the first list ever"], _ = _asked(client, type="sessions", limit=300)
            began = time.perf_counter()
            while _asked(client, type="sessions.search", query=_RARE)[1]["behind"]:
                time.sleep(0.2)
            took["until all journals were read for the index"] = (time.perf_counter() - began) * 1000
        with product.serving() as server, server.connect() as client:
            took["the first list of a new server"], _ = _asked(client, type="sessions", limit=300)
            lists = [_asked(client, type="sessions", limit=300)[0] for _ in range(chosen.rounds)]
            took["listed, the newest 300"] = statistics.median(lists)
            whole = [_asked(client, type="sessions", limit=None) for _ in range(chosen.rounds)]
            assert len(whole[0][1]["list"]) == chosen.sessions  # type: ignore[arg-type]
            took["listed, all of them"] = statistics.median(ms for ms, _ in whole)
            for what, query in {**_SEARCHES, "a part of a title": f"umber {chosen.sessions // 3}."}.items():
                found = [_asked(client, type="sessions.search", query=query) for _ in range(chosen.rounds)]
                rows = found[0][1]["list"]
                assert isinstance(rows, list)
                assert bool(rows) == (what != "words of none"), what
                took[f"searched, {what} ({len(rows)} shown)"] = statistics.median(ms for ms, _ in found)
        command = [sys.executable, "-m", "iact", "session", "list", "--json"]
        began = time.perf_counter()
        done = subprocess.run(command, env=product.environment, capture_output=True, text=True, check=True)
        took["iact session list --json, a process of its own"] = (time.perf_counter() - began) * 1000
        assert len(json.loads(done.stdout)) == chosen.sessions
    print(f"{chosen.sessions:,} sessions of {chosen.records} records; the median of {chosen.rounds} rounds.")
    kept.table(("", "ms"), [(what, f"{ms:,.0f}") for what, ms in took.items()])
    listed = max(ms for what, ms in took.items() if what.startswith(("listed", "the first list of")))
    searched = max(ms for what, ms in took.items() if what.startswith("searched"))
    limits = (300, 500) if chosen.sessions == 10_000 else (None, None)
    kept.targets(
        [
            Target("listed, the slowest way", listed, limits[0], "ms"),
            Target("searched, the slowest words", searched, limits[1], "ms"),
        ]
    )
    kept.numbers({"sessions": chosen.sessions, **took})


if __name__ == "__main__":
    main(sys.argv[1:])
