"""`iact eval`: measure how well your own model does in several ways of working."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from iact.cli import options
from iact.cli.options import Count, command

if TYPE_CHECKING:
    from iact.settings import Settings

SETS: Final = (
    "seven_groups", "trivia_qa", "nq_open", "strategy_qa", "gsm8k", "aqua_rat", "hotpot_qa", "gaia", "questions",
)  # fmt: skip


@command("eval")
@click.argument("name", metavar="SET", type=click.Choice(SETS))
@click.option(
    "--questions",
    metavar="PATH",
    help="the file with the questions as published, or the folder that contains it",
)
@click.option(
    "--ways",
    metavar="NAMES",
    help="ways of working to compare, separated by commas (default: those of the paper)",
)
@click.option("--limit", type=Count(1), metavar="N", help="use only N questions, drawn with --seed")
@click.option(
    "--seed", type=Count(), metavar="N", default=42, show_default=True, help="the seed for drawing questions"
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    metavar="MONEY",
    help="the most that the whole evaluation may cost; needs prices",
)
@click.option(
    "--tokens", type=Count(1), metavar="N", help="the most tokens that the whole evaluation may use"
)
@click.option(
    "--repeat",
    type=Count(1),
    metavar="N",
    default=1,
    show_default=True,
    help="ask each question N times in each way, the ways in a random order",
)
@click.option(
    "--beside",
    metavar="DIR",
    multiple=True,
    help="the folder of another evaluation: also count in how many of them each way is ahead",
)
@click.option("--out", metavar="DIR", help="where runs and journals are kept (default: eval-SET)")
@options.as_json
def evaluate(
    settings: Settings, *, name: str, questions: str | None, ways: str | None, limit: int | None, seed: int,
    budget: float | None, tokens: int | None, repeat: int, beside: tuple[str, ...], out: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Ask your model questions with known answers in several ways of working, and compare the results.

    If it was interrupted, run the same command again to continue. The tables are printed when all runs are done.
    """
    from iact.commands import evaluation
    from iact.evaluation.evaluation import Budget

    asked = evaluation.EvaluationRequest(
        name, questions, ways, limit, seed, out, Budget(budget, tokens), repeat, beside
    )
    return evaluation.evaluate(settings, asked, as_json=as_json)
