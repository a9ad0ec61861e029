"""Logging to standard error: lines for a person, or JSON for a log collector.

A line for a person may quote what went wrong. A JSON line may be stored anywhere, so it only has parts that can't include
content: the program's own words (the message template and its numbers, but no other arguments), fields that the caller
names, and for an exception its type and where it was raised, but not its message. Messages of third-party libraries below
a warning are left out, because they contain requests with headers and bodies.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from traceback import walk_tb
from typing import Final, Literal

Format = Literal["text", "json"]

_LOG: Final = logging.getLogger(__name__)
_ROOM: Final = __name__.partition(".")[0]
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_FRAMES: Final = 12
"""The maximum number of frames of an exception, starting where it was raised."""


def begin(level: str, form: Format) -> None:
    """Set up logging from `level` on. Called once, when a process starts."""
    if form == "text":
        logging.basicConfig(
            level=level.upper(), format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr
        )
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(lambda record: _ours(record.name) or record.levelno >= logging.WARNING)
    logging.basicConfig(level=level.upper(), handlers=[handler])
    logging.captureWarnings(True)


def tell(what: str) -> None:
    """Print on standard error what this process is doing now, at any log level."""
    if any(isinstance(one.formatter, JsonLines) for one in logging.getLogger().handlers):
        _LOG.info(what)
    else:
        print(f"iact: {what}", file=sys.stderr, flush=True)


class JsonLines(logging.Formatter):
    """One JSON object per line: `time`, `level`, `logger`, `event`, and fields such as `user` and `session`."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as a JSON line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": _event(record),
        }
        line |= _fields(record) if _ours(record.name) else {"at": f"{record.filename}:{record.lineno}"}
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line["error"] = list(_errors(error))
        return json.dumps(line, ensure_ascii=False, default=lambda one: type(one).__name__)


def _ours(logger: str) -> bool:
    return logger.partition(".")[0] == _ROOM


def _event(record: logging.LogRecord) -> str:
    """The message template. A library's message may contain anything, unless its arguments are separate."""
    return str(record.msg) if _ours(record.name) or record.args else "a library has something to say"


def _fields(record: logging.LogRecord) -> Mapping[str, object]:
    given = {name: one for name, one in vars(record).items() if name not in _STANDARD}
    put_in = record.args if isinstance(record.args, tuple) else ()
    numbers = [one for one in put_in if isinstance(one, int | float)]
    return {**given, **({"numbers": numbers} if numbers else {})}


def _errors(error: BaseException) -> Iterator[Mapping[str, object]]:
    """An exception, its nested exceptions and its cause: their types, and where each was raised."""
    frames = [
        f"{Path(frame.f_code.co_filename).name}:{line} {frame.f_code.co_name}"
        for frame, line in walk_tb(error.__traceback__)
    ]
    yield {"type": type(error).__name__, "at": frames[-_FRAMES:]}
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _errors(one)
    behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if behind is not None:
        yield from _errors(behind)
