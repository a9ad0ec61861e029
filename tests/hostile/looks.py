"""Everything that can be done with a session folder without running it, in this process."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from iact import export
from iact.commands import gate, journals
from iact.core.errors import IactError
from iact.core.gate.policy import OPEN
from iact.core.journal.file import read_blob, read_journal
from iact.core.models.roles import Models
from iact.core.records.parts import Bounds
from iact.core.stored import adopt as adopting
from iact.core.stored.fork import new_session
from iact.core.stored.replay import replay
from iact.core.tree.memory_events import statements_in_journal
from iact.core.views.timeline import Timeline
from iact.sandbox.workspace.versions import GitVersions
from iact.settings import Settings
from iact.web.records import record_message
from tests.core.session.fakes import ScriptedModel
from tests.sealing import SEALER

TERMS: Final = adopting.Terms.of(
    OPEN, 1, Bounds(), Models({"smart": ScriptedModel(lambda asked: "Ready.", context=1_000_000)})
)


def looks(settings: Settings, folder: Path) -> Mapping[str, Callable[[], object]]:
    """What people do with a session that they got from somebody, by name."""

    def remember() -> None:
        list(
            statements_in_journal(
                read_journal(folder).records, lambda digest: read_blob(folder, digest), foreign=True
            )
        )

    def timeline() -> None:
        line = Timeline(lambda digest: read_blob(folder, digest))
        line.extend(read_journal(folder).records)
        line.at(line.last)

    def page() -> None:
        for record in read_journal(folder).records:
            record_message(record)

    def contexts() -> None:
        for agent in list(replay(folder).tree.agents)[:4]:
            journals.context(folder, agent, at=None, as_json=False)

    def decisions() -> None:
        for record in read_journal(folder).records:
            if record.kind == "gate":
                gate.explain(folder, record.n, as_json=False)

    def adopt() -> None:
        now = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
        made = adopting.adopt(
            settings.data / "sessions", folder, None,
            session=new_session(now), now=now, terms=TERMS, sealer=SEALER, versions=GitVersions(),
        )  # fmt: skip
        try:
            found = replay(made.directory, verify=True, sealer=SEALER)
            assert not found.contents.foreign
            assert not any(found.tree.next_step(path) for path in found.tree.agents)
        finally:
            shutil.rmtree(made.directory)

    def show(*, verify: bool = False, as_json: bool = False) -> int:
        return journals.replay(settings, folder, at=None, verify=verify, tree=True, as_json=as_json)

    return {
        "check": lambda: journals.check(folder, as_json=False),
        "tail": lambda: journals.tail(folder, follow=False, last=None),
        "show": show,
        "json": lambda: show(as_json=True),
        "verify": lambda: show(verify=True),
        "contexts": contexts,
        "html": lambda: export.page(folder),
        "gate": decisions,
        "memory": remember,
        "timeline": timeline,
        "page": page,
        "adopt": adopt,
    }


def look(action: Callable[[], object]) -> tuple[str, str]:
    """What it said to standard output and error, and as an error. Any other error than one of ours is raised."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            action()
        except IactError as error:
            return out.getvalue(), str(error)
    return out.getvalue(), ""
