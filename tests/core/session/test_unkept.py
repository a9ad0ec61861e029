"""A workspace that holds more than a version can: people are told once, and nobody takes an older version for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iact.core.errors import ModuleLost, UsageError
from iact.core.gate.gate import Ticket
from iact.core.journal import read_journal
from iact.core.journal.seal import open_sealer
from iact.core.models.roles import Models
from iact.core.modules.client import Completed, OnArtifact, Outcome
from iact.core.modules.invoker import FunctionCall, Modules
from iact.core.modules.manifest import Manifest
from iact.core.ports import CatalogueEntry, ModuleHost, Report
from iact.core.session.runtime import Runtime
from iact.core.stored.fork import fork, new_session
from iact.core.stored.replay import replay
from iact.core.stored.workspace import find_version
from iact.sandbox.workspace import versions
from iact.sandbox.workspace.versions import GitVersions
from tests.core.session.fakes import (
    MANIFEST,
    FakeHost,
    FakeModules,
    ScriptedModel,
    TickingClock,
    World,
    replies,
)

WRITES = Manifest.model_validate({**MANIFEST.model_dump(), "needs": {"workspace": "write"}})


class Writer(FakeModules):
    """`t.write` makes the files that its text names."""

    def __init__(self, folder: Path) -> None:
        super().__init__(World())
        self._folder = folder

    async def call(
        self,
        ticket: Ticket,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        ticket.redeem(call.request)
        assert call.fills, "it writes in a workspace of the session's own"
        for name in str(call.arguments["text"]).split():
            (self._folder / name).write_text(name)
        if call.request.function == "t.lose":
            raise ModuleLost("The module is gone.")
        return Completed("Done.", "text/plain", {}, None, (), None)


class Host(FakeHost):
    """A catalogue with `t`, which writes in the workspace."""

    async def catalogue(self) -> list[CatalogueEntry]:
        return [CatalogueEntry("t", "0" * 64, "shipped", "For tests.", WRITES.to_proto())]


def played(data: Path, *turns: str) -> Path:
    """The journal of a session whose root writes `turns`."""

    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return Writer(workspace)

    async def main() -> Path:
        async with Runtime(
            data,
            Models({"smart": ScriptedModel(replies({"/": [*turns, "Done."]}))}),
            Host(),
            clock=TickingClock(),
            open_modules=open_modules,
            versions=GitVersions(),
        ) as opened:
            session = await opened.open()
            await session.ask("Go")
            return session.journal

    journal = asyncio.run(main())
    replay(journal, verify=True)
    return journal


def test_people_are_told_once_and_no_older_version_is_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "MOST", 2)
    journal = played(tmp_path, *(f"```WRITE\n{names}\n```" for names in ("a b", "c", "d")))
    records = read_journal(journal).records
    told = [record.body for record in records if record.kind == "notice"]
    assert [text.split(";")[0] for text in told] == ["The workspace holds more than 512 MiB or 2 files"]
    first, second, third = [record for record in records if record.kind == "result"]
    assert first.text("version")
    assert find_version(records, str(second.n - 1)) == first.text("version")
    for record in (second, third):
        assert record.fields["unkept"] is True
        with pytest.raises(UsageError, match=f"not kept at record {record.n}.*that of record {first.n}"):
            find_version(records, str(record.n))

    for at, files, names in ((first.n, "version", ["a", "b"]), (third.n, "current", ["a", "b", "c", "d"])):
        now = datetime(2026, 2, 3, 4, 5, at, tzinfo=UTC)
        made = fork(
            tmp_path / "sessions",
            journal,
            at,
            session=new_session(now),
            now=now,
            versions=GitVersions(),
            sealer=open_sealer(tmp_path),
        )
        assert made.workspace == files
        assert sorted(path.name for path in (made.directory / "workspace").iterdir()) == names


def test_what_a_call_wrote_before_its_module_was_lost_is_kept(tmp_path: Path) -> None:
    journal = played(tmp_path, "```WRITE\na\n```", "```t.lose\nb\n```")
    first, lost = [record for record in read_journal(journal).records if record.kind == "result"]
    assert lost.text("status") == "incomplete"
    patch = GitVersions().changes(journal.parent / "versions", first.text("version"), lost.text("version"))
    assert "+b" in patch
