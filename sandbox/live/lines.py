"""The difference between two texts by lines, in bounded time.

Myers' greedy algorithm (E. W. Myers, An O(ND) difference algorithm and its variations, 1986, figure 2), abandoned after
a number of steps: then everything between the first and the last differing line counts as replaced, which is as
correct, but longer. `difflib` has no bound, and there are texts for which it takes minutes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Final

STEPS: Final = 400_000
"""Comparisons before it is abandoned: some tenths of a second."""

Op = tuple[str, int, int, int, int]
"""As in `difflib`: the kind of change, and the range in each text."""


def unified(before: Sequence[str], after: Sequence[str], *, steps: int = STEPS) -> Iterator[str]:
    """The hunks of a unified diff, without its two header lines. Lines have no line ends here."""
    for group in _Grouped(_ops(before, after, steps)).get_grouped_opcodes(3):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[a:b])
                continue
            yield from (f"-{line}" for line in before[a:b])
            yield from (f"+{line}" for line in after[c:d])


class _Grouped(difflib.SequenceMatcher[str]):
    """Uses only `difflib`'s grouping of nearby changes into one hunk."""

    def __init__(self, ops: list[Op]) -> None:
        super().__init__()
        self._ops = ops

    def get_opcodes(self) -> list[Op]:  # type: ignore[override]
        return list(self._ops)


def _ops(before: Sequence[str], after: Sequence[str], steps: int) -> list[Op]:
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    a, b = before[head : len(before) - tail], after[head : len(after) - tail]
    pairs = _pairs(a, b, steps)
    ops: list[Op] = [("equal", 0, head, 0, head)] if head else []
    x = y = 0
    for i, j, size in (*pairs, (len(a), len(b), 0)):
        if (x, y) != (i, j):
            tag = "replace" if x < i and y < j else "delete" if x < i else "insert"
            ops.append((tag, head + x, head + i, head + y, head + j))
        if size:
            ops.append(("equal", head + i, head + i + size, head + j, head + j + size))
        x, y = i + size, j + size
    if tail:
        ops.append(("equal", len(before) - tail, len(before), len(after) - tail, len(after)))
    return ops


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of lines that both have in common at the beginning."""
    for at, (line, same) in enumerate(zip(one, other, strict=False)):
        if line != same:
            return at
    return min(len(one), len(other))


def _pairs(a: Sequence[str], b: Sequence[str], steps: int) -> list[tuple[int, int, int]]:
    """Stretches that are in both, in order; none if finding them takes too long."""
    reach, trace = {1: 0}, []
    for edits in range(len(a) + len(b) + 1):
        trace.append(dict(reach))
        for k in range(-edits, edits + 1, 2):
            x = _down(reach, k, edits)
            begin = x
            while x < len(a) and x - k < len(b) and a[x] == b[x - k]:
                x += 1
            reach[k] = x
            steps -= 1 + x - begin
            if x >= len(a) and x - k >= len(b):
                return _back(trace, x, k)
        steps -= len(reach)
        if steps < 0:
            break
    return []


def _down(reach: dict[int, int], k: int, edits: int) -> int:
    """Where diagonal `k` begins after so many edits: one line further in `b`, or in `a`."""
    if k == -edits or (k != edits and reach[k - 1] < reach[k + 1]):
        return reach[k + 1]
    return reach[k - 1] + 1


def _back(trace: list[dict[int, int]], x: int, k: int) -> list[tuple[int, int, int]]:
    pairs = []
    for edits in range(len(trace) - 1, -1, -1):
        reach = trace[edits]
        begin = _down(reach, k, edits) if edits else 0
        if x > begin:
            pairs.append((begin, begin - k, x - begin))
        if not edits:
            break
        went_down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
        k = k + 1 if went_down else k - 1
        x = reach[k]
    return pairs[::-1]


def _range(begin: int, end: int) -> str:
    length = end - begin
    if length == 1:
        return str(begin + 1)
    return f"{begin if not length else begin + 1},{length}"
