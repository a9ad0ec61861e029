"""The benchmark of third-party plans: it finds what a graph saves, and finds no savings in a chain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.worfbench.__main__ import drawn, ideal, levels, read, timed

PLANS = [
    {
        "id": "one", "source": "tools", "nodes": {"1": "a", "2": "b", "3": "c", "4": "d"},
        "edges": [["START", "1"], ["1", "2"], ["1", "3"], ["2", "4"], ["3", "4"], ["4", "END"]],
    },
    {
        "id": "two", "source": "rooms", "nodes": {"1": "a", "2": "b"},
        "edges": [["START", "1"], ["1", "2"], ["2", "END"]],
    },
    {
        "id": "three", "source": "tools", "nodes": {"1": "a", "2": "b", "3": "c", "4": "d"},
        "edges": [["START", "1"], ["START", "2"], ["1", "3"], ["2", "4"], ["3", "END"], ["4", "END"]],
    },
]  # fmt: skip


def test_plans_are_read_and_run(tmp_path: Path) -> None:
    (tmp_path / "plans.jsonl").write_text("\n".join(map(json.dumps, PLANS)), encoding="utf-8")
    diamond, chain, two_chains = read(tmp_path)
    assert [one.width for one in (diamond, chain, two_chains)] == [2, 1, 2]
    assert levels(diamond.waits) == {1: ["1"], 2: ["2", "3"], 3: ["4"]}
    assert ideal(diamond.waits, {"1": 1, "2": 5, "3": 2, "4": 1}) == 7
    for seed in range(20):
        found = timed(diamond, seed)
        assert found.ours == pytest.approx(found.ideal)
        assert found.ideal <= found.barriers < found.one_by_one
        alone = timed(chain, seed)
        assert alone.ours == pytest.approx(alone.one_by_one)
        assert drawn(chain, seed) == drawn(chain, seed) != drawn(chain, seed + 1)
    # Two chains beside each other: only barriers keep a quick one waiting for a slow one.
    assert any(timed(two_chains, seed).ours < 0.9 * timed(two_chains, seed).barriers for seed in range(20))


def test_what_is_missing_or_no_plan_is_said(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="is not there"):
        read(tmp_path)
    circle = {"id": "x", "source": "s", "nodes": {"1": "a", "2": "b"}, "edges": [["1", "2"], ["2", "1"]]}
    (tmp_path / "plans.jsonl").write_text(json.dumps(circle), encoding="utf-8")
    with pytest.raises(SystemExit, match="wait for each other"):
        read(tmp_path)
