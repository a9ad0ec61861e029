"""`iact eval`: how well a model of one's own does, in several ways of working."""

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
@click.option("--questions", metavar="PATH", help="the file with the questions as published, or its folder")
@click.option(
    "--ways", metavar="NAMES", help="ways of working to compare, with commas (default: those of the paper)"
)
@click.option("--limit", type=Count(1), metavar="N", help="only so many questions, drawn by --seed")
@click.option(
    "--seed", type=Count(), metavar="N", default=42, show_default=True, help="of the questions that are drawn"
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    metavar="MONEY",
    help="what all of it may cost; needs prices",
)
@click.option("--tokens", type=Count(1), metavar="N", help="tokens that all of it may take")
@click.option("--out", metavar="DIR", help="where runs and journals are kept (default: eval-SET)")
@options.as_json
def evaluate(
    settings: Settings, *, name: str, questions: str | None, ways: str | None, limit: int | None, seed: int,
    budget: float | None, tokens: int | None, out: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Give questions with known answers to your model, in several ways of working, and compare them.

    The same command goes on where it was ended, and prints the tables when all is done.
    """
    from iact.commands import evaluation
    from iact.evaluation.evaluation import Budget

    asked = evaluation.EvaluationRequest(name, questions, ways, limit, seed, out, Budget(budget, tokens))
    return evaluation.evaluate(settings, asked, as_json=as_json)
