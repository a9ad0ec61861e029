"""What Chroma itself gets wrong while two threads use it, and the store on it does not."""

from __future__ import annotations

import random
import threading
from pathlib import Path

from iact.hippocampus.statement import MemoryScope
from iact.hippocampus.store import ChromaStore, StatementSet
from tests.hippocampus.fakes import statement
from tests.rounds import rounds

SET = StatementSet(MemoryScope("anna", "person"), "test")


def vector(rng: random.Random) -> list[float]:
    values = [rng.gauss(0, 1) for _ in range(8)]
    length = sum(value * value for value in values) ** 0.5
    return [value / length for value in values]


def test_whoever_reads_while_others_write_is_told_no_error(tmp_path: Path) -> None:
    """Chroma changes texts and vectors one after the other: whoever read in between was told that an id is not found, or got
    texts without their vectors, and the memory was taken for broken and closed for half a minute."""
    rng = random.Random(1)
    store, statement_set, ended = ChromaStore(tmp_path / "chroma"), SET, threading.Event()
    wrong: list[Exception] = []

    def read() -> None:
        while not ended.wait(0.002):
            try:
                store.get(statement_set, [f"s1/{number}" for number in range(40)])
                list(store.all(statement_set))
                list(store.statements(statement_set))
                store.nearest(statement_set, [vector(rng)], 10)
                store.count(statement_set)
            except Exception as error:
                wrong.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(rounds(60)):
        store.put(
            statement_set, [statement(f"The port is {number}.", identity=f"s1/{number % 40}")], [vector(rng)]
        )
        if number % 3 == 0:
            store.delete(statement_set, [f"s1/{number * 7 % 40}"])
        if number % 30 == 0:
            store.drop(statement_set)
    ended.set()
    for reader in readers:
        reader.join()
    store.close()
    assert not wrong
