"""A stored session is read once, as long as its journal stays as it is."""

from __future__ import annotations

import os
from pathlib import Path

from iact.core.stored.store import SessionStore
from iact.web.stored_session import StoredSessions
from tests.web.fake import FakeRuntime
from tests.web.long import long_journal


def test_a_session_is_read_again_only_when_its_journal_changed(tmp_path: Path) -> None:
    first, second = long_journal(tmp_path / "sessions", 60), long_journal(tmp_path / "other", 80)
    runtime = FakeRuntime()
    runtime.store = SessionStore(tmp_path)
    stored, name = StoredSessions(), first.parent.name
    read = stored.read(runtime, name)
    assert stored.read(runtime, name) is read
    os.replace(second, first)
    again = stored.read(runtime, name)
    assert (len(read.records()), len(again.records())) == (60, 80)
    assert stored.read(runtime, name) is again
