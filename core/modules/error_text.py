"""What an agent reads about an error of a module: what happened, and where in code that it or its user wrote.

How a module of ours came to raise is of no use to the agent, and it would stay in its context and in memory: that part of
the trace is for people and for the log.
"""

from __future__ import annotations

import re
from typing import Final

from iact.core.modules.outcome import Raised

_FRAME: Final = re.compile(r'  File "(?P<path>[^"\n]*)", line [0-9]+[^\n]*\n(?:    [^\n]*\n)*')
_OURS: Final = "/ext_modules/"
"""What the path of every file has that comes with the product, in a module's container."""

_AUTHORS: Final = "/module/"
"""Where the files of a module are that does not come with the product."""

_WHOLE: Final = (".", "!", "?", "…", ":", '"', "'", ")", "`")
"""How a message ends that says by itself what happened."""


def error_text(raised: Raised, *, shipped: bool) -> str:
    """What an agent reads of the error: what was printed, one sentence, and the trace of code that is not ours.

    `shipped`: the module comes with the product.
    """
    trace = "" if shipped else _of_others(raised.trace)
    parts = [raised.output, _sentence(raised), trace]
    return "\n".join(part for part in parts if part)


def _sentence(raised: Raised) -> str:
    """The error's own message. One that is no sentence ("'x'", of a KeyError) is told with the type of the error."""
    message = raised.message.strip()
    if message and " " in message and message.endswith(_WHOLE):
        return message
    return f"{raised.type}: {message}" if message else f"It ended with {raised.type}."


def _of_others(trace: str) -> str:
    """The trace without the frames of our code; empty if it begins in our code and never reaches its author's."""
    paths = [frame["path"] for frame in _FRAME.finditer(trace)]
    begins_in_ours = bool(paths) and _OURS in paths[0]
    if begins_in_ours and not any(path.startswith(_AUTHORS) for path in paths):
        return ""
    return _FRAME.sub(_unless_ours, trace)


def _unless_ours(frame: re.Match[str]) -> str:
    return "" if _OURS in frame["path"] else frame.group()
