"""Lines of JSON in the log: what is in them, and what never is."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from iact.core.records.calls import Gate, Result
from iact.core.records.content import Content
from iact.core.records.dialogue import Reply
from iact.core.records.record import Record
from iact.core.records.session import Notice
from iact.core.session.session_log import line_of
from iact.logs import JsonLines

SECRET = "plover"


class _Odd:
    def __str__(self) -> str:
        return SECRET


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    there = io.StringIO()
    handler = logging.StreamHandler(there)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.addHandler(handler)
    yield there
    root.removeHandler(handler)


def lines(written: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_a_line_has_its_fields_and_nothing_that_was_put_into_it(written: io.StringIO) -> None:
    ours = logging.getLogger("iact.somewhere")
    ours.warning(
        "%s was lost after %d s (%s): %r", SECRET, 7, _Odd(), ValueError(SECRET), extra={"session": "s-1"}
    )
    (line,) = lines(written)
    assert set(line) == {"time", "level", "logger", "event", "session", "numbers"}
    assert (line["level"], line["logger"], line["session"], line["numbers"]) == (
        "warning", "iact.somewhere", "s-1", [7],
    )  # fmt: skip
    assert line["time"].endswith("+00:00")
    assert SECRET not in written.getvalue()


def test_an_exception_is_its_types_and_places(written: io.StringIO) -> None:
    def fails() -> None:
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise ExceptionGroup(SECRET, [ValueError(SECRET)]) from error

    try:
        fails()
    except ExceptionGroup:
        logging.getLogger("iact.somewhere").exception("It met a bug.")
    (line,) = lines(written)
    assert [one["type"] for one in line["error"]] == ["ExceptionGroup", "ValueError", "KeyError"]
    assert line["error"][0]["at"][-1].endswith(" fails")
    assert SECRET not in written.getvalue()


def test_what_a_library_wrote_into_its_own_words_is_left_out(written: io.StringIO) -> None:
    logging.getLogger("httpx").error(f"POST {SECRET}")
    logging.getLogger("httpx").error("POST %s", SECRET, extra={"body": SECRET})
    first, second = lines(written)
    assert first["at"].startswith("test_logs.py:")
    assert second["event"] == "POST %s"
    assert SECRET not in written.getvalue()


LOGGED: dict[str, tuple[Content, str | None]] = {
    "module": (Notice(level="warning", code="module"), "people were told"),
    "denied": (
        Gate(turn=1, action=2, function="shell.run", allow=False, by="lockdown", impact=1.0, reason=SECRET),
        "call refused by the gate",
    ),
    "failed": (
        Result(turn=1, action=2, function="shell.run", call=3, ms=5, status="incomplete"),
        "call of a module failed",
    ),
    "quota": (Reply(to="user", status="bound", bound="quota"), "refused by a quota"),
    "bound": (Reply(to="user", status="bound", bound="turns"), "ended at a bound"),
    "well": (Result(turn=1, action=2, function="shell.run", call=3, ms=5, status="ok"), None),
    "not made": (Result(turn=1, action=2, function="shell.run", status="error"), None),
    "core": (Result(turn=1, action=2, function="CALL", call=3, status="error"), None),
    "allowed": (Gate(turn=1, action=2, function="shell.run", allow=True, impact=1.0), None),
    "answered": (Reply(to="user", status="ok"), None),
}


@pytest.mark.parametrize("which", LOGGED)
def test_of_a_session_is_logged_what_an_operator_may_have_to_do_with(which: str) -> None:
    content, event = LOGGED[which]
    made = line_of(Record(n=4, at="", agent=f"/{SECRET}", step=1, content=content, body=SECRET))
    assert (made[0] if made is not None else None) == event
    assert SECRET not in json.dumps(made)
