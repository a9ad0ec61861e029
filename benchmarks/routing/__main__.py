"""`python -m benchmarks.routing [--model]`: what `auto` chooses for 120 requests in six languages, and what is wrong.

Three times: with a person's assessment of each request (which tests only the table); with the form of the text alone,
which is used where no model can assess it; and, with `--model`, with the assessment of the model on board. The product
does not ask the model on board, because it is too small; it is asked here to show why.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections import Counter

from benchmarks import kept
from iact.core.clock import SystemClock
from iact.core.errors import ModelError, StructuredFailed
from iact.core.models.structured import structured
from iact.core.plan.briefing import Briefing
from iact.core.plan.modes import auto
from iact.core.plan.questions import PlanSituation
from iact.core.ports import ChatMessage
from tests.routing.requests import Request, is_right, requests, table

_HEADS = ("what is asked", "requests", "right", "wrong, and what it costs")


def report(title: str, chosen: list[tuple[Request, auto.Choice]]) -> None:
    """Print one table. Names every wrong choice if there are few."""
    right = sum(is_right(request, choice) for request, choice in chosen)
    print(f"\n### {title}: {right} of {len(chosen)}\n")
    kept.table(_HEADS, table(chosen))
    ways = Counter(choice.way for _, choice in chosen)
    print("\nChosen: " + ", ".join(f"{way} {count}" for way, count in ways.most_common()) + ".")


async def by_model() -> tuple[list[tuple[Request, auto.Choice]], int, int]:
    """The choices from the model on board's answers, how many were unreadable, and how many had all features right."""
    from iact.models.embedded import EmbeddedModel

    model = EmbeddedModel(clock=SystemClock(), rng=random.Random(0))
    chosen: list[tuple[Request, auto.Choice]] = []
    silent = exact = 0
    try:
        for request in requests():
            asked = PlanSituation(request.text, Briefing(words=[request.text]))
            question = ChatMessage("user", auto.question(asked, model.profile.context))
            try:
                found = await structured(model, [question], auto.Features, max_tokens=120)
            except (StructuredFailed, ModelError):
                silent += 1
                chosen.append((request, auto.choose_by_form(request.text)))
                continue
            like, told = found.value.model_dump(), request.like.model_dump()
            exact += all(like[name] == told[name] for name in told if name != "steps")
            chosen.append((request, auto.choose(found.value)))
    finally:
        await model.close()
    return chosen, silent, exact


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="store_true", help="also ask the model on board")
    asked = parser.parse_args()
    report("With what a person says of each", [(one, auto.choose(one.like)) for one in requests()])
    report("By the form of the text alone", [(one, auto.choose_by_form(one.text)) for one in requests()])
    if asked.model:
        chosen, silent, exact = asyncio.run(by_model())
        report("With what the model on board says", chosen)
        print(
            f"\nOf 120 answers {silent} could not be read, and {exact} agreed with a person's assessment. "
            "The product therefore does not ask this model, and uses the form of the text."
        )
    print(
        "\nHow well a large model assesses these features was not measured: no large model is available here."
    )


if __name__ == "__main__":
    main()
