"""When the model on board stops trying."""

from __future__ import annotations

import pytest

from iact.core.language import labels
from iact.core.ports import ChatMessage
from iact.models.giving_up import MOST_FAILURES, MOST_REPLIES, postscript, refuses, surrender

SYSTEM = ChatMessage("system", "Be brief.")
TASK = ChatMessage("user", labels.message("the user", "Count", {}))


def said(text: str) -> ChatMessage:
    return ChatMessage("assistant", text)


def ran(status: int = 0) -> ChatMessage:
    return ChatMessage("user", labels.result("shell.run", "x", variable="run_1", exit_status=status))


def denied() -> ChatMessage:
    return ChatMessage("user", labels.incomplete("shell.run"))


def asked(*turns: ChatMessage) -> str:
    return surrender([SYSTEM, TASK, *turns], 1)


def test_it_tries_again_but_not_for_ever() -> None:
    fails = [message for number in range(MOST_FAILURES) for message in (said(f"try {number}"), ran(1))]
    assert asked() == ""
    assert asked(*fails[:-2]) == ""
    assert "attempts failed" in asked(*fails)
    assert "Connect a model" in asked(*fails)
    refused = [message for number in range(MOST_FAILURES) for message in (said(f"try {number}"), denied())]
    assert "attempts failed" in asked(*refused)


def test_a_circle_is_noticed() -> None:
    assert asked(said("a"), ran(), said("a"), ran()) == ""
    assert "repeat" in asked(said("a"), ran(), said("a"), ran(), said("a"), ran())
    many = [message for number in range(MOST_REPLIES) for message in (said(f"{number}"), ran())]
    assert "too many steps" in asked(*many)


def test_a_new_task_begins_anew() -> None:
    fails = [message for number in range(MOST_FAILURES) for message in (said(f"try {number}"), ran(1))]
    assert asked(*fails, said("I can't."), TASK) == ""


@pytest.mark.parametrize(
    "reply",
    [
        "I'm sorry, but I can't assist with that.",
        "I cannot draw pictures.",
        "Unfortunately, I am unable to help you here.",
        "Lo siento, pero no puedo.",
        "Tut mir leid, aber das geht nicht.",
        "Das kann ich: Ihnen nicht. Ich kann dir dabei leider nicht helfen.",
    ],
)
def test_a_refusal_leads_to_a_larger_model(reply: str) -> None:
    assert refuses(reply)
    assert "Connect a model" in postscript(reply, cut=False)


@pytest.mark.parametrize(
    "reply",
    [
        "Here is a joke that can't fail.",
        "Lieber Jonas,\n\nes tut mir leid, aber ich kann am Montag nicht kommen.\n\nViele Grüße",
        "The disk usage of /tmp is 4 kB.",
        "```shell.run\necho I cannot help\n```",
        "I cannot provide a guarantee, but this is how it is usually done. "
        + "First, open the window. " * 10,
    ],
)
def test_an_answer_and_an_action_get_nothing_behind_them(reply: str) -> None:
    assert postscript(reply, cut=False) == ""


def test_a_text_that_its_limit_ends_says_so() -> None:
    assert "longer than what I can write" in postscript("Once upon a time" * 100, cut=True)
    assert postscript("```files.write path=a.txt\nOnce", cut=True) == ""
