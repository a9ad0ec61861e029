"""When an agent is told all that PLAN can do."""

from __future__ import annotations

import re

import pytest

from iact.core.tree.offered_functions import asks_for_plan


def asks(text: str) -> bool:
    return asks_for_plan(text, set(re.findall(r"[\w.]+", text.lower())), ())


@pytest.mark.parametrize(
    "text",
    [
        "Make a plan for the release.",
        "1. Read a\n2. Read b\n3. Compare them",
        "Bitte: 1) lies a 2) lies b 3) vergleiche",
        "- lire a\n- lire b\n- comparer",
        "读取甲；读取乙；比较；总结",
        "Lee a; lee b; compara; resume",
        "• اقرأ أ\n• اقرأ ب\n• قارن",
    ],
)
def test_a_list_of_things_to_do_is_a_task_of_several_steps(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "Hello!",
        "What is 2 + 2?",
        "Read a.txt and b.txt.",
        "- one\n- two",
        "Explain this:\n```c\nfor (i = 0; i < 3; i++) a; b; c; d;\n```",
        "Version 1.2.3 of 4.5.6, on 10.11.12.13.",
    ],
)
def test_other_messages_are_not(text: str) -> None:
    assert not asks(text)
