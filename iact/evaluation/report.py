"""The tables of an evaluation, with 95 % intervals: Wilson's for shares, bootstrap for means and differences."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from iact.core.ports import JSON
from iact.evaluation.kept import EvalRun
from iact.evaluation.ways import BASELINE

_Z: Final = 1.959964
_ROUNDS: Final = 2000

Figure = tuple[float, float, float]
"""A mean, and the two ends of its interval."""


def share(right: int, of: int) -> Figure:
    """A share with Wilson's interval."""
    if not of:
        return math.nan, math.nan, math.nan
    middle, z = right / of, _Z * _Z / of
    centre = (middle + z / 2) / (1 + z)
    half = _Z * math.sqrt(middle * (1 - middle) / of + z / (4 * of)) / (1 + z)
    return middle, max(0.0, centre - half), min(1.0, centre + half)


def mean(values: Sequence[float]) -> Figure:
    """A mean with its bootstrap interval, drawn with a fixed seed."""
    if not values:
        return math.nan, math.nan, math.nan
    draw = random.Random(1)
    means = sorted(statistics.fmean(draw.choices(values, k=len(values))) for _ in range(_ROUNDS))
    return statistics.fmean(values), means[_ROUNDS // 40 - 1], means[-_ROUNDS // 40]


def rows(runs: Sequence[EvalRun]) -> dict[str, JSON]:
    """The rows of the tables, by way and then by group, with "all" first."""
    groups = ["all", *sorted({one.group for one in runs if one.group})]
    arms = list(dict.fromkeys(one.arm for one in runs))
    return {
        arm: {
            group: _row([one for one in runs if one.arm == arm and group in ("all", one.group)])
            for group in groups
        }
        for arm in arms
    }


def _row(runs: Sequence[EvalRun]) -> JSON:
    judged = [one for one in runs if one.exact is not None]
    timed = [one.seconds for one in runs if not one.resumed]
    return {
        "runs": len(runs),
        "exact": list(share(sum(bool(one.exact) for one in judged), len(judged))) if judged else None,
        "f1": list(mean([one.f1 or 0.0 for one in judged])) if judged else None,
        "complete": list(share(sum(_complete(one) for one in runs), len(runs))),
        "seconds": list(mean(timed)) if timed else None,
        "model_calls": list(mean([float(one.model_calls) for one in runs])),
        "nodes": list(mean([float(one.nodes) for one in runs])),
        "bytes": list(mean([float(one.bytes) for one in runs])),
        "tokens": list(mean([float(one.tokens) for one in runs])),
        "money": sum(one.money for one in runs),
    }


def _complete(run: EvalRun) -> bool:
    """Whether there was an answer at all (KAIJU's completion)."""
    return run.status == "ok" and bool(run.answer.strip())


def differences(runs: Sequence[EvalRun]) -> dict[str, JSON]:
    """The difference of each way from the baseline, over the questions that both answered."""
    by_arm: dict[str, dict[str, EvalRun]] = {}
    for one in runs:
        by_arm.setdefault(one.arm, {})[one.question] = one
    first = BASELINE if BASELINE in by_arm else "G1"
    base = by_arm.get(first, {})
    measures: Mapping[str, Callable[[EvalRun], float | None]] = {
        "exact": lambda one: None if one.exact is None else float(one.exact),
        "seconds": lambda one: None if one.resumed else one.seconds,
        "tokens": lambda one: float(one.tokens),
        "money": lambda one: one.money,
    }
    gained: dict[str, JSON] = {}
    for arm, mine in by_arm.items():
        if arm == first or not base:
            continue
        row: dict[str, JSON] = {
            name: list(mean(list(_paired(base, mine, measure)))) for name, measure in measures.items()
        }
        row["cost_ratio"] = _cost_ratio(base, mine)
        gained[f"{arm} − {first}"] = row
    return gained


def _cost_ratio(base: Mapping[str, EvalRun], mine: Mapping[str, EvalRun]) -> float | None:
    """How many times as much the baseline cost, in money, or in tokens where nothing has a price (PTR, section 3.2)."""
    both = base.keys() & mine.keys()
    before, after = (sum(runs[one].money for one in both) for runs in (base, mine))
    if not before or not after:
        before, after = (float(sum(runs[one].tokens for one in both)) for runs in (base, mine))
    return before / after if after else None


def _paired(
    base: Mapping[str, EvalRun], mine: Mapping[str, EvalRun], measure: Callable[[EvalRun], float | None]
) -> Iterable[float]:
    for question in base.keys() & mine.keys():
        before, after = measure(base[question]), measure(mine[question])
        if before is not None and after is not None:
            yield after - before


def tables(found: Mapping[str, JSON], gained: Mapping[str, JSON], *, priced: bool) -> str:
    """The tables as Markdown."""
    heads = ["way", "group", "runs", "exact match", "F1", "complete", "seconds", "model calls", "tool calls",
             "bytes", "tokens", *(["money"] if priced else [])]  # fmt: skip
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for arm, by_group in found.items():
        assert isinstance(by_group, dict)
        for group, row in by_group.items():
            assert isinstance(row, dict)
            if row["runs"]:
                lines.append(_line(arm, group, row, priced=priced))
    if gained:
        lines += [
            "",
            "| difference | exact match | seconds | tokens | cost ratio |" + (" money |" if priced else ""),
        ]
        lines.append("|" + "---|" * (6 if priced else 5))
        for name, row in gained.items():
            assert isinstance(row, dict)
            ratio = row["cost_ratio"]
            shown = f"{ratio:.2f}" if isinstance(ratio, float) else "–"
            cells = [_cell(row["exact"], 3), _cell(row["seconds"], 1), _cell(row["tokens"], 0), shown]
            lines.append(
                "| " + " | ".join([name, *cells, *([_cell(row["money"], 4)] if priced else [])]) + " |"
            )
    return "\n".join(lines)


def _line(arm: str, group: str, row: Mapping[str, JSON], *, priced: bool) -> str:
    digits = {
        "exact": 3,
        "f1": 3,
        "complete": 3,
        "seconds": 1,
        "model_calls": 1,
        "nodes": 1,
        "bytes": 0,
        "tokens": 0,
    }
    cells = [arm, group, str(row["runs"]), *(_cell(row[name], number) for name, number in digits.items())]
    money = row["money"]
    assert isinstance(money, float | int)
    return "| " + " | ".join([*cells, *([f"{money:.4f}"] if priced else [])]) + " |"


def _cell(figure: JSON, digits: int) -> str:
    if not isinstance(figure, list) or any(isinstance(one, float) and math.isnan(one) for one in figure):
        return "–"
    middle, low, high = figure
    return f"{middle:,.{digits}f} [{low:,.{digits}f}, {high:,.{digits}f}]"
