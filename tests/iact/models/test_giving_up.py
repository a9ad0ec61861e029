"""When the model on board stops trying."""

from __future__ import annotations

from iact.core.language import labels
from iact.core.ports import ChatMessage
from iact.models.giving_up import MOST_FAILURES, MOST_REPLIES, surrender

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
