"""Which messages to a caller are questions, in any language, and which only end with a polite sentence."""

from __future__ import annotations

import pytest

from iact.core.language.questions import asks

_REPORT = "The audit is finished. " * 60


@pytest.mark.parametrize(
    "text",
    [
        "Which colour?",
        "I found two configurations, dev and prod.\n\nWhich one should I change?",
        "どちらの色にしますか？",
        "أي لون تريد؟",
        "Ποιο χρώμα\u037e",
        "¿Qué color prefieres?",
        'Did you mean "all of them?"',
        "**Which one?**",
        "Which of these?\n- red\n- green",
        "Before I begin:\n1. Which database?\n2. Which version?",
        "Is this the line?\n\n```python\nx = 1\n```\n",
        "Question: the name of the table. I can't go on without it.",
        "Questions:\n- the name of the table\n- the year",
    ],
)
def test_a_message_that_ends_by_asking_is_a_question(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It is green.",
        "Is it there? Yes, in line 4.",
        "The regular expression is:\n\n```\n^a?\n```",
        "```\nWhich colour?\n```",
        f"{_REPORT}\n\nShall I look at the other folder, too?",
        "The file:\n\n```python\n" + "x = 1\n" * 20 + "```\n\nIs that all right?",
        "- red\n- green",
        "Is it there? Yes.\n\n***",
    ],
)
def test_a_message_with_a_result_is_none(text: str) -> None:
    assert not asks(text)
