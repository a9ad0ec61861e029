"""Questions to a person as permission requests, and the meaning of the chosen option for the session.

A call is shown in full, as on a terminal. Anything that is not a clear yes is a no.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, ToolCallStart, ToolCallUpdate

from iact.core.characters import escaped
from iact.core.ports import JSON
from iact.core.records.calls import ClearanceAsk
from iact.core.records.forms import FormAsk
from iact.core.records.hosts import HostAsk
from iact.core.records.record import Record
from iact.core.session.hosts import Lasts
from iact.core.views.question_text import asks_title, form_words, host_words, words
from iact.core.views.review import PendingRow
from iact.faces.acp.files import edit, locations
from iact.faces.acp.updates import Content, form_id, host_id, kind_of, shown, tool_call_id

Settled: TypeAlias = Literal["completed", "failed"]

_CALL: Final = [
    PermissionOption(option_id="once", name="Allow this call", kind="allow_once"),
    PermissionOption(option_id="call", name="Always allow exactly this call", kind="allow_always"),
    PermissionOption(option_id="no", name="Don't allow it", kind="reject_once"),
]
_HOST: Final = [
    PermissionOption(option_id="once", name="Allow it once", kind="allow_once"),
    PermissionOption(option_id="session", name="Allow it in this session", kind="allow_always"),
    PermissionOption(option_id="always", name="Allow it in every session", kind="allow_always"),
    PermissionOption(option_id="no", name="Don't allow it", kind="reject_once"),
]
_FORM: Final = [
    PermissionOption(option_id="once", name="Answer with what is shown", kind="allow_once"),
    PermissionOption(option_id="no", name="Don't answer", kind="reject_once"),
]
REVIEW: Final = [
    PermissionOption(option_id="apply", name="Apply all to the directory", kind="allow_once"),
    PermissionOption(option_id="leave", name="Leave them for later", kind="reject_once"),
    PermissionOption(option_id="drop", name="Drop them", kind="reject_always"),
]
_LASTS: Final[dict[str, Lasts]] = {"once": "once", "session": "session", "always": "always"}
_EXECUTABLE: Final = 0o111


def request(record: Record) -> tuple[ToolCallUpdate, Sequence[PermissionOption]]:
    """The tool call that a question is about, with the full question, and the possible answers."""
    asked = record.content
    if isinstance(asked, HostAsk):
        call = ToolCallUpdate(
            tool_call_id=host_id(record.n), kind="fetch", status="pending",
            title=f"{asked.module} wants to reach {asked.host}", content=[shown(host_words(record.agent, asked))],
            field_meta={"iact": {"path": record.agent, "record": record.n}},
        )  # fmt: skip
        return call, _HOST
    if isinstance(asked, FormAsk):
        text = form_words(record.agent, asked)
        call = ToolCallUpdate(
            tool_call_id=form_id(record.n), kind="other", status="pending", title=asks_title(asked),
            content=[shown(text, len(text))], field_meta={"iact": {"path": record.agent, "record": record.n}},
        )  # fmt: skip
        return call, _FORM
    assert isinstance(asked, ClearanceAsk)
    call = ToolCallUpdate(
        tool_call_id=tool_call_id(record.agent, asked.turn, asked.action), kind=kind_of(asked.function),
        status="pending", title=f"{record.agent} asks to run {asked.function}", raw_input=dict(asked.params),
        content=[shown(words(record.agent, asked), len(words(record.agent, asked)))],
        field_meta={"iact": {"path": record.agent, "record": record.n}},
    )  # fmt: skip
    return call, _CALL


def form(option: str) -> Literal["accept", "decline"]:
    """The meaning of an option for a form."""
    return "accept" if option == "once" else "decline"


def chosen(outcome: AllowedOutcome | DeniedOutcome) -> str:
    """The chosen option, or an empty string if none was chosen."""
    return outcome.option_id if isinstance(outcome, AllowedOutcome) else ""


def clearance(option: str) -> tuple[bool, JSON]:
    """The meaning of an option for a call: whether it may be made, and what to remember."""
    return option in ("once", "call"), "call" if option == "call" else None


def host(option: str) -> Lasts | None:
    """How long a host is allowed, or None if it is not."""
    return _LASTS.get(option)


def review(name: str, folder: Path, rows: Sequence[PendingRow], changes: Sequence[Content]) -> ToolCallUpdate:
    """The waiting changes, as one question. `changes`: the first of them, as they are shown."""
    count = "1 change" if len(rows) == 1 else f"{len(rows)} changes"
    listed = "\n".join(map(_listed, rows))
    text = escaped(f"Not in {folder} yet. {rows[0]['reason']}\n\n{listed}", every=False)
    return ToolCallUpdate(
        tool_call_id=name, kind="edit", status="pending", title=f"Apply {count} to {folder}",
        content=[shown(text), *changes], locations=locations(folder, [row["path"] for row in rows]),
    )  # fmt: skip


def _listed(row: PendingRow) -> str:
    """A change in a line. The difference of its texts does not show whether a file can be run."""
    now = row.get("now")
    runs = now is not None and now["type"] == "file" and now["mode"] & _EXECUTABLE
    return f"{row['kind']} {row['path']}{', which can be run' if runs else ''}"


def change(folder: Path, row: PendingRow, texts: tuple[str, str] | None, patch: str) -> Content:
    """A waiting change, for a client that shows differences; as a patch where texts don't show it."""
    shown_texts = None
    if texts is not None:
        before, after = texts
        shown_texts = edit(folder, row["path"], None if row["kind"] == "add" else before, after)
    return shown_texts or shown(f"```diff\n{escaped(patch, every=False)}\n```")


def begun(call: ToolCallUpdate) -> ToolCallStart:
    """A question that does not concern a call by an agent, as a tool call that begins."""
    return ToolCallStart(
        session_update="tool_call", tool_call_id=call.tool_call_id, title=call.title or "", kind=call.kind,
        status=call.status, content=call.content, locations=call.locations,
    )  # fmt: skip
