"""Which replies and errors are failures, and as what programs are told of them."""

from __future__ import annotations

from typing import get_args

import pytest

from iact.core import errors
from iact.core.errors import IactError, JournalLocked, ModelFault, QuotaExceeded, UsageError
from iact.core.models.failures import ContextTooLong
from iact.core.records.dialogue import BoundName, Reply
from iact.core.records.record import Record
from iact.faces.failure import FAILURES, failure_from, failure_of
from iact.faces.root_text import SaidOnce


def _record(reply: Reply, body: str = "It did not work.") -> Record:
    return Record(n=3, step=1, at="2026-01-01T00:00:00.000Z", agent="/", content=reply, body=body)


def test_every_fault_of_a_model_has_a_kind_of_its_own() -> None:
    kinds = []
    for fault in get_args(ModelFault):
        failure = failure_of(_record(Reply(to="user", status="failed", fault=fault)))
        assert failure is not None
        assert failure.sentence == "It did not work."
        kinds.append(failure.kind.code)
    assert len(set(kinds)) == len(kinds)


def test_the_sentence_of_a_failure_holds_nothing_that_the_model_wrote() -> None:
    reply = Reply(to="user", status="bound", bound="quota")
    failure = failure_of(_record(reply, "The budget is used up.\n\nLast answer before the limit:\n\nHello"))
    assert failure is not None
    assert failure.sentence == "The budget is used up."


def test_only_bounds_that_leave_no_answer_are_failures() -> None:
    failing = {
        bound
        for bound in get_args(BoundName)
        if failure_of(_record(Reply(to="user", status="bound", bound=bound))) is not None
    }
    assert failing == {"context", "quota", "money"}
    for status in ("ok", "cancelled"):
        assert failure_of(_record(Reply(to="user", status=status))) is None


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("?"), "invalid_request"),
        (ContextTooLong("?"), "context_length_exceeded"),
        (QuotaExceeded("?", bound="quota"), "insufficient_quota"),
        (JournalLocked("?"), "session_stopped"),
    ],
)
def test_errors_have_the_kind_of_their_class(error: IactError, code: str) -> None:
    assert failure_from(error).kind.code == code


def test_each_model_error_is_recorded_by_its_fault() -> None:
    known = set(get_args(ModelFault))
    classes = [
        one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.ModelError)
    ]
    assert {one.fault for one in classes} | {ContextTooLong.fault} == known


def test_codes_and_statuses_say_what_clients_expect() -> None:
    assert len({one.code for one in FAILURES}) == len(FAILURES)
    for one in FAILURES:
        assert (one.type == "server_error") == (one.status >= 500), one
        assert not one.again or one.status >= 500, "a client tries again at faults of servers only"


def test_a_failure_is_no_text_of_the_agent() -> None:
    once = SaidOnce()
    assert once.text(_record(Reply(to="user", status="failed"))) == ""
    assert once.text(_record(Reply(to="user", status="ok"), "An answer.")) == "An answer."
