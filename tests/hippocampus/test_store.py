"""What Chroma itself gets wrong while two threads use it, and the store on it does not."""

from __future__ import annotations

import random
import threading
from pathlib import Path

from iact.hippocampus.store import ChromaStore
from tests.hippocampus.test_cached_store import SETS, fragment, vector
from tests.rounds import rounds


def test_whoever_reads_while_others_write_is_told_no_error(tmp_path: Path) -> None:
    """Chroma changes texts and vectors one after the other: whoever read in between was told that an id is not found, or got
    texts without their vectors, and the memory was taken for broken and closed for half a minute."""
    rng = random.Random(1)
    store, fragment_set, ended = ChromaStore(tmp_path / "chroma"), SETS[0], threading.Event()
    wrong: list[Exception] = []

    def read() -> None:
        while not ended.wait(0.002):
            try:
                store.get(fragment_set, [f"s1/{number}" for number in range(40)])
                list(store.all(fragment_set))
                list(store.fragments(fragment_set))
                store.nearest(fragment_set, [vector(rng)], 10)
                store.count(fragment_set)
            except Exception as error:
                wrong.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(rounds(60)):
        store.put(fragment_set, [fragment(number % 40)], [vector(rng)])
        if number % 3 == 0:
            store.delete(fragment_set, [f"s1/{number * 7 % 40}"])
        if number % 30 == 0:
            store.drop(fragment_set)
    ended.set()
    for reader in readers:
        reader.join()
    store.close()
    assert not wrong
