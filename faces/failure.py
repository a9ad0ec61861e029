"""Work that ended without an answer, in the terms of every face.

A failure is never an answer: clients try again, or ask another model, only if they are told of it in their protocol's own
form. The table `FAILURES` has all kinds; the guides of the faces show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from iact.core.errors import IactError, ModelError, ModelFault, QuotaExceeded, UsageError
from iact.core.records.dialogue import BoundName, Reply
from iact.core.records.record import Record

_LONGEST: Final = 2000
"""The most characters of a failure's sentence."""

FailureType: TypeAlias = Literal["invalid_request_error", "rate_limit_error", "server_error"]
"""The class of an error in OpenAI's API."""


@dataclass(frozen=True, slots=True)
class FailureKind:
    """A kind of failure, as programs are told of it."""

    code: str
    """Its name, which is the same on every face."""
    status: int
    """Its status in HTTP."""
    type: FailureType
    """Its class in OpenAI's API."""
    again: bool
    """Whether the same request can succeed if it is sent again."""
    when: str
    """What has happened, for people."""


@dataclass(frozen=True, slots=True)
class WorkFailure:
    """One failure."""

    kind: FailureKind
    sentence: str
    """What happened, why, and what to do."""


UNREACHABLE: Final = FailureKind(
    "model_unreachable", 502, "server_error", True, "nothing answers at the model's endpoint, or too slowly"
)
OVERLOADED: Final = FailureKind(
    "model_overloaded", 503, "server_error", True, "the endpoint was busy or broken until the retries ran out"
)
GARBLED: Final = FailureKind(
    "model_garbled",
    502,
    "server_error",
    True,
    "the endpoint's answer is empty, or does not follow its protocol",
)
REFUSED: Final = FailureKind(
    "model_refused", 502, "server_error", False, "the endpoint refuses iact's key, model or request"
)
TOO_LONG: Final = FailureKind(
    "context_length_exceeded",
    400,
    "invalid_request_error",
    False,
    "the context does not fit into the model's window",
)
NO_QUOTA: Final = FailureKind(
    "insufficient_quota",
    429,
    "rate_limit_error",
    False,
    "the user's quota or the session's budget is used up",
)
CANCELLED: Final = FailureKind("cancelled", 409, "invalid_request_error", False, "a person stopped the work")
FAILED: Final = FailureKind(
    "work_failed", 500, "server_error", False, "the work ended with an error of another kind"
)
NOT_IN_FORM: Final = FailureKind(
    "answer_not_in_form",
    502,
    "server_error",
    False,
    "the answer does not follow the client's schema, also the second time",
)
STOPPED: Final = FailureKind(
    "session_stopped",
    503,
    "server_error",
    False,
    "the session stopped, or its journal or sandbox can't be used",
)
INVALID: Final = FailureKind(
    "invalid_request", 400, "invalid_request_error", False, "the request is wrong; the sentence says where"
)

FAILURES: Final = (
    UNREACHABLE, OVERLOADED, GARBLED, REFUSED, TOO_LONG, NO_QUOTA, CANCELLED, FAILED, NOT_IN_FORM, STOPPED, INVALID,
)  # fmt: skip
"""Every kind."""

_FAULTS: Final[Mapping[ModelFault, FailureKind]] = {
    "": FAILED,
    "unreachable": UNREACHABLE,
    "refused": REFUSED,
    "too_long": TOO_LONG,
    "overloaded": OVERLOADED,
    "garbled": GARBLED,
}
_BOUNDS: Final[Mapping[BoundName, FailureKind]] = {"context": TOO_LONG, "quota": NO_QUOTA, "money": NO_QUOTA}
"""The bounds that a client can do nothing about by reading on. Others end the work with what there is."""


def failure_of(reply: Record) -> WorkFailure | None:
    """The failure that a reply tells of, or None if it is an answer, or work that was stopped."""
    content = reply.content
    if not isinstance(content, Reply):
        return None

    kind: FailureKind | None = None
    if content.status == "failed":
        kind = _FAULTS[content.fault]
    elif content.status == "bound":
        kind = _BOUNDS.get(content.bound)
    if kind is None:
        return None
    # What the model wrote before the failure follows in paragraphs of its own, and is no part of the sentence.
    sentence = reply.body.strip().partition("\n\n")[0]
    return WorkFailure(kind, sentence[:_LONGEST] or "The model gave no answer.")


def failure_from(error: IactError) -> WorkFailure:
    """The failure that an error is, which ended or prevented the work."""
    sentence = str(error)[:_LONGEST]
    match error:
        case UsageError():
            return WorkFailure(INVALID, sentence)
        case QuotaExceeded():
            return WorkFailure(NO_QUOTA, sentence)
        case ModelError():
            return WorkFailure(_FAULTS[error.fault], sentence)
        case _:
            return WorkFailure(STOPPED, sentence)
