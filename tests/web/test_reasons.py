"""Why something waits is told to a person without the numbers that the gate compared."""

from __future__ import annotations

import pytest

from iact.web.reasons import in_words


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (
            "The call has impact 2 and is touched by tool:web.fetch, user:ann.",
            "It destroys or sends data out, and text from tool:web.fetch, user:ann may be behind it.",
        ),
        (
            "The call has impact 1.5 and is touched by tool:web.fetch.",
            "It changes something, and text from tool:web.fetch may be behind it.",
        ),
        (
            "The changes have impact 2 and are touched by tool:web.fetch.",
            "The agents that made these changes have read tool:web.fetch, so they need your OK.",
        ),
        (
            "The changes have impact 2, and the intent of / is 1.",
            "Overwriting and deleting needs your OK.",
        ),
        ("The changes have impact 1, and the intent of /a is 0.", "Changing files needs your OK."),
        ("The changes have impact 2, and /a may do 1 with git.*.", "Overwriting and deleting needs your OK."),
        (
            "Somebody changed a.txt in the directory meanwhile.",
            "Somebody changed a.txt in the directory meanwhile.",
        ),
    ],
)
def test_a_reason_is_told_in_words(reason: str, words: str) -> None:
    assert in_words(reason) == words
