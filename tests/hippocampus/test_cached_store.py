"""A store that answers small sets from memory says what the store below it says, whatever is written meanwhile."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from iact.hippocampus import cached_store
from iact.hippocampus.cached_store import CachedStore
from iact.hippocampus.extraction import fragments_of
from iact.hippocampus.fragment import Fragment, MemoryScope
from iact.hippocampus.store import ChromaStore, FragmentSet, StoredHit
from tests.hippocampus.fakes import DictStore, say

SETS = [FragmentSet(MemoryScope("anna", "project", name), "test") for name in ("a", "b", "c")]
DIMENSIONS = 12


def fragment(number: int, text: str = "", fragment_set: FragmentSet = SETS[0]) -> Fragment:
    (one,) = fragments_of(
        say("s1", 2, f"The office number {number} closes at six {text}".rstrip() + "."), "anna"
    )
    return replace(one, id=f"s1/{number}", scope=fragment_set.scope)


def vector(rng: random.Random) -> list[float]:
    values = [rng.gauss(0, 1) for _ in range(DIMENSIONS)]
    length = math.hypot(*values)
    return [value / length for value in values]


def same(hits: Sequence[StoredHit], others: Sequence[StoredHit]) -> bool:
    """The same fragments in the same order, as near up to rounding."""
    return [hit.fragment for hit in hits] == [hit.fragment for hit in others] and [
        hit.similarity for hit in hits
    ] == pytest.approx([hit.similarity for hit in others], abs=1e-5)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("most", [0, 12, 1000])
def test_it_answers_as_the_store_below(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_store, "MOST", most)
    monkeypatch.setattr(cached_store, "_ALL", 30)
    rng = random.Random(seed)
    below = DictStore()
    store = CachedStore(below)
    for turn in range(120):
        fragment_set = rng.choice(SETS)
        ids = [f"s1/{rng.randrange(40)}" for _ in range(rng.randrange(1, 4))]
        match rng.randrange(10):
            case 0:
                store.delete(fragment_set, ids)
            case 1 if rng.random() < 0.2:
                store.drop(fragment_set)
            case 1 | 2 | 3 | 4:
                fresh = [
                    fragment(int(one.split("/")[1]), str(turn), fragment_set) for one in dict.fromkeys(ids)
                ]
                store.put(fragment_set, fresh, [vector(rng) for _ in fresh])
            case _:
                wanted = [vector(rng) for _ in range(2)]
                for mine, other in zip(
                    store.nearest(fragment_set, wanted, 5),
                    below.nearest(fragment_set, wanted, 5),
                    strict=True,
                ):
                    assert same(mine, other)
                got, expected = store.get(fragment_set, ids), below.get(fragment_set, ids)
                assert [hit.fragment for hit in got] == [hit.fragment for hit in expected]
                for hit, other_hit in zip(got, expected, strict=True):
                    assert list(hit.vector) == pytest.approx(list(other_hit.vector), abs=1e-6)


def test_it_answers_as_chroma_and_asks_it_once(tmp_path: Path) -> None:
    rng = random.Random(4)
    below = ChromaStore(tmp_path / "chroma")
    store = CachedStore(below)
    fragment_set = SETS[0]
    written = [fragment(number) for number in range(30)]
    store.put(fragment_set, written, [vector(rng) for _ in written])
    wanted = [vector(rng)]
    assert same(store.nearest(fragment_set, wanted, 10)[0], below.nearest(fragment_set, wanted, 10)[0])
    below.drop(fragment_set)  # behind its back: whoever asked Chroma again would see it
    assert len(store.nearest(fragment_set, wanted, 10)[0]) == 10
    assert [hit.fragment for hit in store.get(fragment_set, ["s1/3"])] == [written[3]]
    store.drop(fragment_set)
    assert store.nearest(fragment_set, wanted, 10) == [[]]
    store.close()


def test_what_could_only_half_be_written_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    below = DictStore()
    store = CachedStore(below)
    fragment_set, wanted = SETS[0], [vector(random.Random(1))]
    store.put(fragment_set, [fragment(1)], wanted)
    store.nearest(fragment_set, wanted, 5)

    def half(
        fragment_set: FragmentSet, fragments: Sequence[Fragment], vectors: Sequence[Sequence[float]]
    ) -> None:
        DictStore.put(below, fragment_set, fragments[:1], vectors[:1])
        raise OSError("no room left")

    monkeypatch.setattr(below, "put", half)
    with pytest.raises(OSError, match="no room"):
        store.put(fragment_set, [fragment(2), fragment(3)], wanted * 2)
    assert {hit.fragment.id for hit in store.nearest(fragment_set, wanted, 5)[0]} == {"s1/1", "s1/2"}


def test_what_is_written_while_a_set_is_read_is_not_lost() -> None:
    rng = random.Random(2)
    wanted = [vector(rng)]
    fragment_set = SETS[0]
    reading, written = threading.Event(), threading.Event()

    class Slow(DictStore):
        def all(self, fragment_set: FragmentSet) -> Iterator[StoredHit]:
            hits = list(super().all(fragment_set))
            reading.set()
            assert written.wait(30)
            return iter(hits)

    below = Slow()
    store = CachedStore(below)
    below.put(fragment_set, [fragment(1)], wanted)
    found: list[list[list[StoredHit]]] = []
    reader = threading.Thread(target=lambda: found.append(store.nearest(fragment_set, wanted, 5)))
    reader.start()
    assert reading.wait(30)
    store.put(fragment_set, [fragment(2)], wanted)
    written.set()
    reader.join(30)
    assert [hit.fragment.id for hit in found[0][0]] == ["s1/1"]  # as it was when the question came
    assert {hit.fragment.id for hit in store.nearest(fragment_set, wanted, 5)[0]} == {"s1/1", "s1/2"}
