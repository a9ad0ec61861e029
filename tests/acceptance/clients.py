"""The matrix of clients that others wrote and what each goes through: which cells are played, and why some can't be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

CLIENTS: Final[Sequence[str]] = (
    "openai, Responses", "openai, chat", "langchain-openai", "langchain-openai, Responses", "openai-agents",
    "openai-agents, chat", "mcp", "a2a-sdk", "@ag-ui/client", "agent-client-protocol",
)  # fmt: skip
INSPECT: Final = "inspect"
CASES: Final[Sequence[str]] = (
    "success", "tool", "tool of the client", "question", "allow", "deny", "allow by a word", "deny by a word", "no answer",
    "wrong key", "key of the model", "context too long", "stall of 60 s", "cancel", "restart", "two callers",
)  # fmt: skip

_NO_KEY: Final = "the process belongs to its user, and has no key"
_NO_WORDS: Final = "the protocol has a question of its own, with its own answer; a message is not one"
_NOBODY: Final = (
    "nobody is there: each question is answered with no at once, which the case `no answer` plays"
)

NOT_PLAYED: Final[Mapping[tuple[str, str], str]] = {
    ("mcp", "tool of the client"): "in this protocol a client has no tools for its server",
    ("a2a-sdk", "tool of the client"): "in this protocol a client has no tools for another agent",
    ("agent-client-protocol", "tool of the client"): "tools of an editor are MCP servers, which are not used",
    **{
        (client, case): _NO_WORDS
        for client in ("mcp", "agent-client-protocol")
        for case in ("allow by a word", "deny by a word")
    },
    ("@ag-ui/client", "no answer"): "it begins no further run before its user has answered an interrupt",
    ("agent-client-protocol", "wrong key"): _NO_KEY,
    (INSPECT, "wrong key"): _NO_KEY,
    (INSPECT, "tool of the client"): "tools of a task are not used; the sample's log lists them",
    **{
        (INSPECT, case): _NOBODY
        for case in ("question", "allow", "deny", "allow by a word", "deny by a word")
    },
    (
        INSPECT,
        "stall of 60 s",
    ): "its solver is in one process with the session, and there is no connection to keep",
    (INSPECT, "restart"): "a sample is one session; Inspect begins one that was cut off once more",
}
"""Cells that can't be played, with the reason."""


def played(client: str) -> list[str]:
    """The cases that a client goes through."""
    return [case for case in CASES if (client, case) not in NOT_PLAYED]


def table() -> str:
    """The matrix as Markdown, with a number where a case can't be played, and the reasons below."""
    reasons = [*dict.fromkeys(NOT_PLAYED.values())]
    clients = [*CLIENTS, INSPECT]
    head = "| | " + " | ".join(clients) + " |"
    line = "|---" * (len(clients) + 1) + "|"
    rows = []
    for case in CASES:
        cells = [
            f"– ({reasons.index(NOT_PLAYED[client, case]) + 1})" if (client, case) in NOT_PLAYED else "played"
            for client in clients
        ]
        rows.append(f"| {case} | " + " | ".join(cells) + " |")
    below = [f"{number}. {reason[0].upper()}{reason[1:]}." for number, reason in enumerate(reasons, 1)]
    return "\n".join([head, line, *rows, "", *below])
