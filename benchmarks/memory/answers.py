"""`python -m benchmarks.memory.answers [--questions N]`: whether the model on board answers from what an agent's search finds.

Each question of the held-out conversations is asked three times: with nothing, with Chroma's nearest ten turns, and with what
`RECALL` finds. An answer is right if it has the expected words in their order, once case, punctuation and articles are left
out. So a right answer in other words counts as wrong, for every way alike.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from benchmarks.memory import quality
from benchmarks.memory.locomo import SHIPPED, Question, read
from benchmarks.memory.quality import Way
from iact.core.models.roles import Models
from iact.core.ports import ChatMessage, TextDelta
from iact.hippocampus.ranking import Weights
from iact.settings import load
from iact.wiring import models_of

_TOKENS: Final = 24
"""The most tokens of an answer."""

_ASKED: Final = "What is known:\n{known}\n\nAnswer in at most six words, with words from above: {question}"
_LEFT_OUT: Final = re.compile(r"\b(?:a|an|the)\b|[^\w\s]")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.memory.answers")
    parser.add_argument(
        "--questions", type=int, default=40, metavar="N", help="of the held-out ones, evenly chosen"
    )
    print(asyncio.run(measure(parser.parse_args().questions)))


async def measure(count: int) -> str:
    """Ask `count` questions in each way. Returns the figures as Markdown."""
    conversations = read(SHIPPED)
    asked = [(one, question) for one in conversations[2:] for question in one.questions]
    chosen = asked[:: max(1, len(asked) // count)][:count]
    texts = {f"{one.name}/{turn.id}": turn.text for one in conversations for turn in one.turns}
    right = {"nothing": 0, "plain": 0, "ours": 0}
    with tempfile.TemporaryDirectory() as place:
        models = models_of(load(data=place, environment={"PATH": "/usr/bin:/bin", "HOME": str(Path.home())}))
        try:
            async with quality.plain(conversations) as plain, quality.ours(conversations, Weights()) as ours:
                for _, question in chosen:
                    for name, way in (("nothing", None), ("plain", plain), ("ours", ours)):
                        right[name] += await _is_right(models, way, texts, question)
        finally:
            await models.close()
    return _table(right, len(chosen))


async def _is_right(models: Models, way: Way | None, texts: Mapping[str, str], question: Question) -> bool:
    found = [] if way is None else await way.find(question.text)
    known = "\n".join(f"- {texts[name]}" for name in found)
    answer = ""
    messages = [ChatMessage("user", _ASKED.format(known=known or "- nothing", question=question.text))]
    async for event in models.model("smart").stream(messages, max_tokens=_TOKENS):
        if isinstance(event, TextDelta):
            answer += event.text
    return f" {_plain(question.answer)} " in f" {_plain(answer)} "


def _plain(text: str) -> str:
    return " ".join(_LEFT_OUT.sub(" ", text.casefold()).split())


def _table(right: Mapping[str, int], count: int) -> str:
    rows = [f"| {name} | {number} of {count} |" for name, number in right.items()]
    return "\n".join(["| told | right answers |", "|---|---|", *rows])


if __name__ == "__main__":
    main()
