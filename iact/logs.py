"""What a process writes to standard error: lines for a person, or JSON for whoever collects them.

A line for a person may quote what went wrong. A line of JSON goes to places that its writer does not know, so it is made of
what can't hold content: the words of the program itself (the template of the message, never what is put into it, save
numbers), fields that the caller names, and of an exception its type and where it came from, without what it says. What
other people's libraries log below a warning is left out, for they log requests with their headers and bodies.
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
"""Of an exception, from where it was raised upwards."""


def begin(level: str, form: Format) -> None:
    """Have what is logged from `level` on written. Called once, when a process begins."""
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
    """Say on standard error what this process does now, whatever is logged."""
    if any(isinstance(one.formatter, JsonLines) for one in logging.getLogger().handlers):
        _LOG.info(what)
    else:
        print(f"iact: {what}", file=sys.stderr, flush=True)


class JsonLines(logging.Formatter):
    """One JSON object per line: `time`, `level`, `logger`, `event`, and fields such as `user` and `session`."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as such a line."""
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
    """The words of the program. A library of others may have put anything into its own, unless it left that to the log."""
    return str(record.msg) if _ours(record.name) or record.args else "a library has something to say"


def _fields(record: logging.LogRecord) -> Mapping[str, object]:
    given = {name: one for name, one in vars(record).items() if name not in _STANDARD}
    put_in = record.args if isinstance(record.args, tuple) else ()
    numbers = [one for one in put_in if isinstance(one, int | float)]
    return {**given, **({"numbers": numbers} if numbers else {})}


def _errors(error: BaseException) -> Iterator[Mapping[str, object]]:
    """An exception, those in it and the one behind it: their types, and where each was raised."""
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
