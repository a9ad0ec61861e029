"""What people are shown of a session while it works: one line per record, for records worth showing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iact.core.records.calls import Call, ClearanceAsk, Result
from iact.core.records.dialogue import Choose, Reply
from iact.core.records.forms import FormAsk
from iact.core.records.hosts import HostAsk, HostReach, rule_of
from iact.core.records.plans import Node
from iact.core.records.record import Record
from iact.core.records.session import Notice
from iact.core.views.question_text import asks_title

_TOLD: Final = frozenset({"running", "executed", "failed", "skipped", "cancelled", "waiting_human"})
"""States of a plan's steps that are reported."""


def progress_line(record: Record) -> str:
    """What a record reports to people; empty if nothing."""
    match record.content:
        case Call(function=function, to=to):
            return f"{record.agent}: {function} {to}".rstrip()
        case Result(function=function, status=status) if status != "ok":
            return f"{record.agent}: {function}: {status}"
        case ClearanceAsk(function=function, to="person"):
            return f"{record.agent}: {function} waits for your approval (record {record.n})"
        case HostAsk(module=module, host=host, port=port):
            where = rule_of(host, port)
            return f"{record.agent}: {module} waits for your approval to reach {where} (record {record.n})"
        case FormAsk() as form:
            return f"{record.agent}: {asks_title(form)} (record {record.n})"
        case HostReach(module=module, host=host, port=port, by=by):
            return f"{record.agent}: {module} reaches {rule_of(host, port)} (allowed by {by})"
        case Node(node=node, to=to, detail=detail) if to in _TOLD:
            return f"{record.agent}: {node} is {to}{f': {detail}' if detail else ''}"
        case Choose(mode=mode, why=why):
            return f"{record.agent}: {mode}: {why}"
        case Reply(asks=True):
            return f"{record.agent}: asks its caller"
        case Reply(status=status) if record.agent != "/":
            return f"{record.agent}: replied ({status})"
        case Notice():
            return record.body
    return ""


def newest_line(records: Sequence[Record]) -> str:
    """The most recent line that was reported."""
    return next((told for record in reversed(records) if (told := progress_line(record))), "")
