"""`iact eval`: ask questions with known answers through the user's endpoint, in several ways of working."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iact import signals
from iact.core.errors import IactError, UsageError
from iact.core.ports import JSON
from iact.core.session.models import Models
from iact.evaluation import report, seven_groups
from iact.evaluation.evaluation import Budget, Evaluation
from iact.evaluation.kept import EvalRun, Kept, open_kept, runs_in
from iact.evaluation.questions import EvalQuestion, chosen, load
from iact.evaluation.ways import ARMS, PROFILED, USUAL, Arm
from iact.settings import Settings
from iact.wiring import models_of

SEVEN = "seven_groups"


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """The command's options. `place`: where the questions are. `ways`: names separated by commas."""

    name: str
    place: str | None
    ways: str | None
    limit: int | None
    seed: int
    out: str | None
    budget: Budget
    repeat: int = 1
    """How often each question is asked in each way."""
    beside: Sequence[str] = ()
    """Folders of other evaluations, to be counted with this one."""


def evaluate(settings: Settings, asked: EvaluationRequest, *, as_json: bool) -> int:
    """Work until all runs are done, and print the tables. Returns 0 if all are done.

    Raises:
        UsageError: questions or prices are missing, or the folder contains something else.
        IactError: the budget is used up, or the models can't be reached. Finished runs are kept and printed.
    """
    priced = _priced(settings)
    if asked.budget.money is not None and not priced:
        raise UsageError("A budget of money needs prices. Set price_prompt and price_completion.")
    questions, arms = chosen(_questions(asked), asked.limit, asked.seed), _arms(asked)
    folder = Path(asked.out or f"eval-{asked.name}").absolute()
    return signals.run(_evaluate(settings, asked, questions, arms, folder, priced=priced, as_json=as_json))


async def _evaluate(
    settings: Settings, asked: EvaluationRequest, questions: Sequence[EvalQuestion], arms: Sequence[Arm], folder: Path,
    *, priced: bool, as_json: bool,
) -> int:  # fmt: skip
    others = [runs_in(Path(folder)) for folder in asked.beside]
    models = models_of(settings)
    try:
        kept = open_kept(folder, _terms(asked, questions, arms, models))
        work = Evaluation(
            settings, models, kept, questions, arms, asked.budget, _tell, asked.repeat, asked.seed
        )
        try:
            finished = await work.work()
        finally:
            _show(kept, len(work.planned), others, priced=priced, as_json=as_json)
    finally:
        await models.close()
    if not finished:
        raise IactError(
            f"The budget is used up; {len(kept.done)} of {len(work.planned)} runs are done. To continue, run the same command "
            "with a larger budget."
        )
    return 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _priced(settings: Settings) -> bool:
    return (
        settings.without_endpoint
        or settings.price is not None
        or any(one.price is not None for one in settings.models.values())
    )


def _questions(asked: EvaluationRequest) -> list[EvalQuestion]:
    if asked.name == SEVEN:
        if asked.place is not None:
            raise UsageError("The tasks of seven_groups are generated. Leave out --questions.")
        return seven_groups.questions()
    return load(asked.name, Path(asked.place or ".").expanduser())


def _arms(asked: EvaluationRequest) -> list[Arm]:
    names = asked.ways.split(",") if asked.ways else USUAL.get(asked.name, PROFILED)
    named = list(dict.fromkeys(name.strip() for name in names if name.strip()))
    unknown = [name for name in named if name not in ARMS]
    if unknown or not named:
        raise UsageError(
            f"Unknown way of working: {', '.join(unknown) or '(none given)'}. The ways are: {', '.join(ARMS)}."
        )
    return [ARMS[name] for name in named]


def _terms(
    asked: EvaluationRequest, questions: Sequence[EvalQuestion], arms: Sequence[Arm], models: Models
) -> dict[str, JSON]:
    """The terms that must be the same for all runs in a folder."""
    text = json.dumps([(one.id, one.text, one.answers) for one in questions])
    return {
        "set": asked.name,
        "ways": [one.name for one in arms],
        "questions": len(questions),
        "digest": hashlib.sha256(text.encode()).hexdigest()[:16],
        "models": {role: models.profile(role).name for role in sorted(models.roles())},
    }


def _show(kept: Kept, of: int, others: Sequence[Sequence[EvalRun]], *, priced: bool, as_json: bool) -> None:
    runs = list(kept.done.values())
    rows, gained = report.rows(runs), report.differences(runs)
    plans = report.plan_rows(runs)
    ahead = report.advantages([runs, *others]) if others else {}
    if as_json:
        told = {
            "runs": len(runs), "of": of, "ways": rows, "differences": gained, "plans": plans, "advantages": ahead,
            "money": kept.money if priced else None, "tokens": kept.tokens, "folder": str(kept.folder),
        }  # fmt: skip
        print(json.dumps(told, ensure_ascii=False))
        return
    print(report.tables(rows, gained, priced=priced))
    for table in (report.plan_table(plans), report.advantage_table(ahead, 1 + len(others))):
        if table:
            print(f"\n{table}")
    money = f", {kept.money:.4f} in money" if priced else ""
    print(
        f"\n{len(runs)} of {of} runs, {kept.tokens:,} tokens{money}. Journals: {kept.folder / 'data' / 'sessions'}"
    )
