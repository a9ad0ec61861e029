"""What a person does to a session and to the catalogue: versions put back, a plan of their own, modules approved."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from iact.core.errors import UsageError, WorkspaceError
from iact.core.models.roles import Models
from iact.core.modules.invoker import Modules
from iact.core.ports import ModuleHost
from iact.core.session.runtime import Runtime
from iact.core.stored.replay import replay
from iact.sandbox.workspace.versions import GitVersions
from tests.core.session.fakes import Asked, FakeHost, ScriptedModel, TickingClock, World, replies, runtime
from tests.core.session.test_unkept import Host, Writer

WITHIN = 120


def test_a_version_is_put_back_in_a_session_that_is_open(tmp_path: Path) -> None:
    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return Writer(workspace)

    async def main() -> Path:
        async with Runtime(
            tmp_path,
            Models({"smart": ScriptedModel(replies({"/": ["```WRITE\na\n```", "Done."]}))}),
            Host(),
            clock=TickingClock(),
            open_modules=open_modules,
            versions=GitVersions(),
        ) as opened:
            session = await opened.open()
            await session.ask("Go")
            file = session.journal.parent / "workspace" / "a"
            (version,) = [one.text("version") for one in session.records() if one.kind == "result"]
            file.write_text("spoiled")
            with pytest.raises(UsageError, match="no version begins with"):
                await session.restore("none")
            assert file.read_text() == "spoiled"
            record = await session.restore(version[:8])
            assert file.read_text() == "a"
            assert record.fields == {"op": "restore", "by": "user", "version": version}
        return session.journal

    replay(asyncio.run(asyncio.wait_for(main(), WITHIN)), verify=True)


def test_one_file_is_put_back_and_the_others_stay(tmp_path: Path) -> None:
    """The record names the version that results, so that forks, looks back and takeovers find all files in it."""
    shown = list[str]()
    say = replies({"/": ["```WRITE\na b\n```", "Written.", "Read."]})

    def answer(asked: Asked) -> str:
        shown.append(asked.newest)
        return say(asked)

    async def main() -> Path:
        async with Runtime(
            tmp_path,
            Models({"smart": ScriptedModel(answer)}),
            Host(),
            clock=TickingClock(),
            open_modules=lambda host, session, workspace: Writer(workspace),
            versions=GitVersions(),
        ) as opened:
            session = await opened.open()
            await session.ask("Go")
            folder = session.journal.parent / "workspace"
            (first,) = [record for record in session.records() if record.kind == "result"]
            (folder / "a").write_text("spoiled")
            (folder / "b").write_text("changed on purpose")
            for path, message in (
                ("c", "There is no file 'c'"),
                ("b/", "not the path"),
                ("../b", "not the path"),
            ):
                with pytest.raises(WorkspaceError, match=message):
                    await session.restore(str(first.n), path)

            restored = await session.restore(str(first.n), "a")
            assert (folder / "a").read_text() == "a"
            assert (folder / "b").read_text() == "changed on purpose"
            assert restored.fields == {
                "op": "restore", "by": "user", "version": restored.text("version"), "path": "a",
            }  # fmt: skip
            with pytest.raises(WorkspaceError, match="'a' is as it was"):
                await session.restore(str(first.n), "a")
            assert session.records()[-1].n == restored.n, "what changes nothing is not recorded"

            # It is undone like everything else, and the result holds all files.
            (folder / "a").unlink()
            (folder / "b").unlink()
            await session.restore(str(restored.n))
            assert (folder / "b").read_text() == "changed on purpose"
            await session.ask("Look")
            assert "The user put the file a in the workspace back to what it was earlier." in shown[-1]
        return session.journal

    replay(asyncio.run(asyncio.wait_for(main(), WITHIN)), verify=True)


def test_without_versions_there_is_nothing_to_put_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with runtime(tmp_path, lambda asked: "Done.") as opened:
            session = await opened.open()
            with pytest.raises(UsageError, match="No version of the workspace was kept up to record 1"):
                await session.restore("1")
            with pytest.raises(WorkspaceError, match="No versions of this workspace are kept"):
                await session._files.restore("0" * 40)

    asyncio.run(asyncio.wait_for(main(), WITHIN))


def test_a_module_of_the_users_joins_an_open_session_once_it_is_approved(tmp_path: Path) -> None:
    async def main() -> Path:
        async with runtime(tmp_path, lambda asked: "Done.", host=FakeHost(more=True)) as opened:
            session = await opened.open()
            await session.ask("Go")
            before = {one.entry.name: one.approved for one in await opened.modules()}
            assert before == {
                "t": {"read", "write", "destroy", "fail", "lose"},
                "web": {"fetch"},
                "mail": set(),
            }
            with pytest.raises(UsageError, match="There is no module 'nail'; there are mail, t, web"):
                await opened.approve_module("nail")
            with pytest.raises(UsageError, match="It has changed since you looked; look again"):
                await opened.approve_module("mail", digest="2")
            (mail,) = [one for one in await opened.modules() if one.entry.name == "mail"]
            assert (await opened.approve_module("mail", digest=mail.entry.digest)).approved == {"send"}
            await session.ask("And now?")  # records are shown once they are on disk
            told = [record for record in session.records() if record.kind == "module"]
            assert [record.text("name") for record in told][-1] == "mail"
            assert "approved" not in told[-1].fields, "all of it is"
        return session.journal

    replay(asyncio.run(asyncio.wait_for(main(), WITHIN)), verify=True)


def test_sessions_are_found_by_their_name_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with runtime(tmp_path, lambda asked: "Done.") as opened:
            session = await opened.open()
            await session.ask("Look  at\nthis " + "long " * 40)
            (listed,) = opened.sessions()
            assert (listed.id, listed.open) == (session.id, True)
            assert listed.title.startswith("Look at this long long")
            assert len(listed.title) == 80
            assert opened.store.path_of(session.id) == session.journal.parent
            assert await opened.open(session.id) is session
            await opened.close(session.id)
            await opened.close(session.id)
            assert [one.open for one in opened.sessions()] == [False]
            for name in ("none", "../sessions", f"{session.id}/../{session.id}", ""):
                with pytest.raises(UsageError, match="There is no session"):
                    opened.store.path_of(name)
            with pytest.raises(UsageError, match="There is no directory"):
                await opened.open(workspace=tmp_path / "missing")
            (tmp_path / "link").symlink_to("/")
            for place in (opened.store.path_of(session.id).parents[1], tmp_path, tmp_path / "link"):
                with pytest.raises(UsageError, match="holds keys and journals"):
                    await opened.open(workspace=place)
            again = await opened.open(session.id)
            assert again is not session
            assert (await again.ask("And?")).body == "Done."

    asyncio.run(asyncio.wait_for(main(), WITHIN))


def test_a_stored_session_is_forked_by_its_name(tmp_path: Path) -> None:
    async def main() -> list[str]:
        async with runtime(tmp_path, lambda asked: "Done.") as opened:
            session = await opened.open()
            answer = await session.ask("Go")
            made = await opened.fork(session.id, answer.n)
            with pytest.raises(UsageError, match="There is no record 999"):
                await opened.fork(session.id, 999)
            other = await opened.open(made)
            assert (await other.ask("And?")).body == "Done."
            return [session.id, made]

    one, other = asyncio.run(asyncio.wait_for(main(), WITHIN))
    assert one != other
    for name in (one, other):
        replay(tmp_path / "sessions" / name, verify=True)


def test_a_person_runs_a_plan_of_their_own(tmp_path: Path) -> None:
    world = World()
    steps = "steps:\n  - {id: a, call: t.read, params: {text: hello}}\n"

    async def main() -> Path:
        async with runtime(tmp_path, lambda asked: "Done.", world=world) as opened:
            session = await opened.open()
            with pytest.raises(UsageError):
                await session.run_plan("steps: [{id: a, call: t.none}]", thinks=False)
            record = await session.run_plan(steps, name="mine", thinks=False)
            assert record is not None
            assert (record.kind, record.agent) == ("reply", "/mine")
        return session.journal

    replay(asyncio.run(asyncio.wait_for(main(), WITHIN)), verify=True)
    assert [(function, text) for _, function, text in world.done] == [("t.read", "hello")]
