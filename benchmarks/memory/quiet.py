"""How often memory shows something to an agent that needs nothing, and nothing to an agent that needs something.

The needless tasks are everyday work of a leaf agent that no stored conversation is about. The other tasks are
the questions of the conversations. Both are processed as in a turn, with its threshold and its budget of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from benchmarks.memory import quality
from benchmarks.memory.locomo import Conversation
from iact.core.ports import MemoryQuestion
from iact.hippocampus.ranking import Weights, tokens

NEEDLESS = (
    "Return the sum of 17 and 25.",
    "Rename the variable x to count in the function below.",
    "Convert this CSV file to JSON.",
    "List the ten largest files below the working directory.",
    "What is the kernel version of this machine?",
    "Fix the syntax error in line 12 of main.rs.",
    "Translate 'good evening' into Japanese.",
    "Sort these words alphabetically: pear, apple, fig.",
    "Run the unit tests and report which of them fail.",
    "Explain what a mutex is in two sentences.",
    "Compress the images in the folder assets to WebP.",
    "Write a regular expression for IPv4 addresses.",
    "Check whether port 443 of example.com is open.",
    "Draw a bar chart of the columns revenue and region.",
    "Remove trailing white space from all Python files.",
    "Who wrote the opera Fidelio?",
)


@dataclass(frozen=True, slots=True)
class Quiet:
    """`needless`: share of needless tasks for which something was shown. `found`: share of questions for which one
    of the evidence turns was shown within the budget. `tokens`: mean for a question."""

    needless: float
    found: float
    tokens: float


async def measure(conversations: Sequence[Conversation], asked: Sequence[Conversation]) -> Quiet:
    """Measure with all conversations in one memory."""
    shown = found = spent = 0
    now = datetime(2026, 3, 3, tzinfo=UTC)
    questions = [(one, question) for one in asked for question in one.questions]
    async with quality.ours(conversations, Weights()) as way:
        for task in NEEDLESS:
            shown += bool((await way.memory.recall(MemoryQuestion("now", "/a", task, now))).rows)
        for one, question in questions:
            rows = (await way.memory.recall(MemoryQuestion("now", "/a", question.text, now))).rows
            names = {way.names[row.id.split(".")[0]] for row in rows}
            found += bool(names & {f"{one.name}/{identity}" for identity in question.evidence})
            spent += sum(tokens(row.line) for row in rows)
    return Quiet(shown / len(NEEDLESS), found / len(questions), spent / len(questions))
