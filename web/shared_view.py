"""A session as a link shows it: up to a record, and without what its owner leaves out.

It is a copy that does not change, and each record is in it completely or not at all. A record is left out if it holds a
decision of the gate or a question to a person, or if it contains the name of a hidden variable or a line of its value:
wherever agents repeated the value word for word, it is hidden as well. Their paraphrases are not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from iact.accounts.rights import LinkView
from iact.core.errors import UsageError
from iact.core.records.record import Record
from iact.core.records.session import Notice
from iact.core.stored.replay import Replay
from iact.core.views.view import Variable
from iact.web.history import RecordHistory
from iact.web.render_tasks import blob_text
from iact.web.stored_session import StoredSession

_GATE: Final = frozenset({"gate", "clearance", "host", "form"})
_SHORTEST: Final = 5
"""Characters below which a line is not taken for a trace of a variable."""
_LEFT_OUT: Final = "Left out by the person who shared this session."


class SharedView(StoredSession):
    """A session without what a link hides. `read`: the session up to the record that the link is frozen at, if it is.
    It reads blobs, and so blocks."""

    def __init__(self, read: Replay, view: LinkView) -> None:
        super().__init__(read)
        self.shows: Final = view

        hidden = [variable for variable in self._every_variable() if variable.name in view.variables]
        self.digests: Final = frozenset(variable.sha256 for variable in hidden)

        lines = (line for variable in hidden for line in _lines(variable))
        traces = (*view.variables, *lines)
        folder = read.path.parent
        self._records = [
            _blank(record) if _hidden(record, view, traces, folder) else record for record in read.records
        ]

    def records(self, since: int = 0) -> Sequence[Record]:
        """See `StoredSession`."""
        return self._records[since:]

    def whole(self) -> StoredSession:
        """The session with everything that it has, for computing derived values."""
        return StoredSession(self._read)

    def _every_variable(self) -> Iterator[Variable]:
        if not self.shows.variables:
            return

        for node in self.view.nodes():
            if node.kind == "agent":
                yield from self.view.variables(node.path)


class SharedHistory(RecordHistory):
    """`RecordHistory` of a `SharedView`."""

    def __init__(self, session: SharedView) -> None:
        super().__init__(session.whole())
        self._hidden = session.shows.variables
        self._digests = session.digests

    async def variables(self, path: str, at: int | None) -> Sequence[Variable]:
        """See `RecordHistory`."""
        return [variable for variable in await super().variables(path, at) if self._is_seen(variable)]

    async def variable(self, path: str, name: str, at: int | None) -> tuple[Variable, bytes]:
        """As in `RecordHistory`; a hidden variable does not exist."""
        if name in self._hidden:
            raise UsageError(f"There is no variable {name!r} here.")

        variable, content = await super().variable(path, name, at)
        if not self._is_seen(variable):
            raise UsageError(f"There is no variable {name!r} here.")

        return variable, content

    def _is_seen(self, value: Variable) -> bool:
        """Whether a variable is visible. A second name for hidden content is hidden, too."""
        return value.name not in self._hidden and value.sha256 not in self._digests


def _lines(value: Variable) -> Iterator[str]:
    lines = value.load().decode("utf-8", "replace").splitlines()
    return (line.strip() for line in lines if len(line.strip()) >= _SHORTEST)


def _hidden(record: Record, view: LinkView, traces: Sequence[str], folder: Path) -> bool:
    if "gate" in view.hides and record.kind in _GATE:
        return True
    if not traces:
        return False

    fields = json.dumps(record.fields, ensure_ascii=False)
    text = "\n".join((record.body, fields, blob_text(record, folder) or ""))
    return any(trace in text for trace in traces)


def _blank(record: Record) -> Record:
    notice = Notice(level="warning", code="left-out")
    return replace(record, content=notice, body=_LEFT_OUT, digest="", prev="", extra={})
