"""The tables of an evaluation, with 95 % intervals: Wilson's for shares, bootstrap for means and differences."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from iact.core.ports import JSON
from iact.evaluation.kept import EvalRun
from iact.evaluation.ways import BASELINE, GROUPS

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
    """The difference of each way from the baseline, and of each of the seven groups from the one before it, over the
    questions that both answered."""
    by_arm = _by_arm(runs)
    measures: Mapping[str, Callable[[EvalRun], float | None]] = {
        "exact": lambda one: None if one.exact is None else float(one.exact),
        "seconds": lambda one: None if one.resumed else one.seconds,
        "tokens": lambda one: float(one.tokens),
        "money": lambda one: one.money,
    }
    gained: dict[str, JSON] = {}
    for first, arm in _compared(by_arm):
        base, mine = by_arm[first], by_arm[arm]
        row: dict[str, JSON] = {
            name: list(mean(list(_paired(base, mine, measure)))) for name, measure in measures.items()
        }
        row["cost_ratio"] = _cost_ratio(base, mine)
        gained[f"{arm} − {first}"] = row
    return gained


_Runs = Mapping[tuple[str, int], EvalRun]
"""The runs of one way, by question and repetition."""


def _by_arm(runs: Iterable[EvalRun]) -> dict[str, dict[tuple[str, int], EvalRun]]:
    by_arm: dict[str, dict[tuple[str, int], EvalRun]] = {}
    for one in runs:
        by_arm.setdefault(one.arm, {})[one.question, one.repetition] = one
    return by_arm


def _compared(by_arm: Mapping[str, _Runs]) -> list[tuple[str, str]]:
    """The pairs of ways that are compared, the one before it first."""
    first = BASELINE if BASELINE in by_arm else "G1"
    pairs = [(first, arm) for arm in by_arm if arm != first] if first in by_arm else []
    groups = [group.name for group in GROUPS if group.name in by_arm]
    adjacent = [pair for pair in itertools.pairwise(groups) if pair not in pairs]
    reverse = {(after, before) for before, after in pairs}
    return pairs + [pair for pair in adjacent if pair not in reverse]


def plan_rows(runs: Sequence[EvalRun]) -> dict[str, JSON]:
    """What Graph Harness counts besides (sections 8.1 and 8.4), by way; only ways that have plans, or were repeated.

    `recoveries`: steps tried again, and versions after the first. `bound`: the share of runs that a bound ended, that is,
    that went in circles. `deviation`: how much success varies between repetitions of a question; None without any.
    """
    found: dict[str, JSON] = {}
    for arm, by_key in _by_arm(runs).items():
        each = list(by_key.values())
        planned = [one for one in each if one.versions]
        deviation = _deviation(each)
        if not planned and deviation is None:
            continue
        contracts, held = sum(one.contracts for one in each), sum(one.held for one in each)
        found[arm] = {
            "runs": len(each),
            "recoveries": list(mean([float(one.retries + one.versions - 1) for one in planned])),
            "versions": list(mean([float(one.versions) for one in planned])),
            "contracts": contracts,
            "contracts_held": list(share(held, contracts)),
            "width": list(mean([float(one.width) for one in planned])),
            "bound": list(share(sum(bool(one.bound) for one in each), len(each))),
            "deviation": deviation,
        }
    return found


def _deviation(runs: Iterable[EvalRun]) -> float | None:
    """The mean over all questions of the standard deviation of success between repetitions."""
    by_question: dict[str, list[float]] = {}
    for one in runs:
        if one.exact is not None:
            by_question.setdefault(one.question, []).append(float(one.exact))
    repeated = [statistics.stdev(each) for each in by_question.values() if len(each) > 1]
    return statistics.fmean(repeated) if repeated else None


def advantages(evaluations: Sequence[Sequence[EvalRun]]) -> dict[str, JSON]:
    """In how many evaluations a way is ahead of another, by measure (PTR, section 3.2: pairwise advantage counts)."""
    found: dict[str, dict[str, list[int]]] = {}
    for runs in evaluations:
        for pair, row in differences(runs).items():
            assert isinstance(row, dict)
            for name, better in (("exact", 1), ("seconds", -1), ("tokens", -1), ("money", -1)):
                figure = row[name]
                assert isinstance(figure, list)
                middle = figure[0]
                if not isinstance(middle, float) or math.isnan(middle):
                    continue
                ahead, behind, even = found.setdefault(pair, {}).setdefault(name, [0, 0, 0])
                gain = better * middle
                counts = [ahead + (gain > 0), behind + (gain < 0), even + (gain == 0)]
                found[pair][name] = counts
    return {pair: {name: [*counts] for name, counts in row.items()} for pair, row in found.items()}


def _cost_ratio(base: _Runs, mine: _Runs) -> float | None:
    """How many times as much the baseline cost, in money, or in tokens where nothing has a price (PTR, section 3.2)."""
    both = base.keys() & mine.keys()
    before, after = (sum(runs[one].money for one in both) for runs in (base, mine))
    if not before or not after:
        before, after = (float(sum(runs[one].tokens for one in both)) for runs in (base, mine))
    return before / after if after else None


def _paired(base: _Runs, mine: _Runs, measure: Callable[[EvalRun], float | None]) -> Iterable[float]:
    for key in sorted(base.keys() & mine.keys()):
        before, after = measure(base[key]), measure(mine[key])
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


def plan_table(found: Mapping[str, JSON]) -> str:
    """The table of `plan_rows` as Markdown; empty if there is nothing in it."""
    if not found:
        return ""
    heads = [
        "way",
        "runs",
        "recoveries",
        "versions",
        "contracts held",
        "width",
        "ended by a bound",
        "success varies by",
    ]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for arm, row in found.items():
        assert isinstance(row, dict)
        deviation = row["deviation"]
        varies = f"{deviation:.3f}" if isinstance(deviation, float) else "–"
        cells = [
            arm, str(row["runs"]), _cell(row["recoveries"], 1), _cell(row["versions"], 1), _cell(row["contracts_held"], 3),
            _cell(row["width"], 1), _cell(row["bound"], 3), varies,
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def advantage_table(found: Mapping[str, JSON], of: int) -> str:
    """The table of `advantages` over `of` evaluations as Markdown; empty if there is nothing in it."""
    if not found:
        return ""
    names = ["exact", "seconds", "tokens", "money"]
    heads = [f"ahead, behind, even in {of}", "exact match", "seconds", "tokens", "money"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for pair, row in found.items():
        assert isinstance(row, dict)
        cells = [_counts(row.get(name)) for name in names]
        lines.append("| " + " | ".join([pair, *cells]) + " |")
    return "\n".join(lines)


def _counts(counts: JSON) -> str:
    return ", ".join(map(str, counts)) if isinstance(counts, list) else "–"


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
