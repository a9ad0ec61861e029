"""Tools of the program through which a person speaks: agents may call them, and the program runs them.

Agents are told of them with the message. A call passes the gate like any other and becomes a question, whose answer is
the tool's result (`core.session.front_end`). What comes back is data from outside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iact.core.errors import UsageError
from iact.core.records.forms import FormAsk
from iact.core.records.record import Record

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MOST: Final = 64
_LONGEST: Final = 30_000
"""The most characters that tell of all tools."""
_WORDS: Final = "Tools of the program through which I speak; call one with a block FRONTEND tool=NAME whose body is a JSON object:"


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool. `parameters`: the JSON Schema of its arguments, as the client wrote it."""

    name: str
    description: str
    parameters: object


def told_tools(tools: Sequence[ClientTool]) -> str:
    """The description of tools for agents, as text from the user's program; empty without tools.

    Raises:
        UsageError: there are too many tools, a name is invalid, or the descriptions are too long.
    """
    if not tools:
        return ""
    lines = []
    for tool in tools:
        about = " ".join(tool.description.split())
        arguments = json.dumps(tool.parameters, ensure_ascii=False)
        lines.append(f"- {tool.name}: {about}\n  arguments: {arguments}")

    names_fit = all(_NAME.fullmatch(tool.name) for tool in tools)
    if len(tools) > _MOST or sum(map(len, lines)) > _LONGEST or not names_fit:
        raise UsageError(
            f"A front end may have {_MOST} tools, with names of letters, digits, _ and -, and "
            f"{_LONGEST:,} characters to tell of them."
        )
    return "\n".join([_WORDS, *lines])


def called_tool(question: Record) -> tuple[str, Mapping[str, object]] | None:
    """The name and the arguments if a question is a call of a client's tool; None for other questions."""
    asked = question.content
    if not isinstance(asked, FormAsk) or asked.tool is None:
        return None
    return asked.tool.name, asked.tool.arguments
