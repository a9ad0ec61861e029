"""What only announces an action is told from an answer."""

from __future__ import annotations

import pytest

from iact.core.language.announcing import announces


@pytest.mark.parametrize(
    "text",
    [
        "Let me note it.",
        "I'll remember that.",
        "The table has three columns. Now I keep it.",
        "First, I store the table",
        "Okay, saving this for later.",
        "I keep this:",
        "Ich merke mir das Ergebnis.",
        "Je vais garder cela.",
        "Primero guardo la tabla.",
        "我先记下来。",
        "**Next** I look at the file.",
    ],
)
def test_announcements(text: str) -> None:
    assert announces(text)


@pytest.mark.parametrize(
    "text",
    [
        "It is 42.",
        "The capital is Paris.",
        "I've noted it.",
        "Noted.",
        "Done: all three files are written.",
        "Let me note it. It is 42.",
        "The sum is 42, and I keep a note of it.",
        "Das Ergebnis ist 42.",
        "",
    ],
)
def test_answers(text: str) -> None:
    assert not announces(text)
