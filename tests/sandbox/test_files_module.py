"""The files module in its container, beside a shell that works in the same workspace and wishes it ill."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from iact.sandbox import DockerHost
from iact.sandbox.docker.host import DockerInstance
from tests.sandbox.calling import shell
from tests.sandbox.inside import called


@pytest.fixture(scope="module")
def files(loop: asyncio.Runner, host: DockerHost, workspace: Path) -> DockerInstance:
    return loop.run(host.start("files", session="one", workspace=workspace, report=print))


def test_every_function_works(loop: asyncio.Runner, files: DockerInstance, workspace: Path) -> None:
    async def scenario() -> None:
        async with called(files) as caller:
            manifest = await caller.client.describe()
            assert {function.name: function.impact for function in manifest.functions} == {
                "list": 0, "read": 0, "search": 0, "diff": 0, "write": 1, "edit": 1
            }  # fmt: skip
            assert "Created src/a.py" in await caller.text("write", path="src/a.py", content="one\ntwo\n")
            assert (workspace / "src/a.py").read_text(encoding="utf-8") == "one\ntwo\n"
            assert "Changed" in await caller.text("edit", path="src/a.py", old="two", new="2")
            assert await caller.text("read", path="src/a.py", start=2) == "2\n"
            assert "src/" in await caller.text("list")
            assert await caller.text("search", pattern="^2$") == "src/a.py:2:2\n"
            assert "-2\n+two\n" in await caller.text("diff", path="src/a.py", content="one\ntwo\n")

    loop.run(scenario())


def test_what_the_shell_links_is_not_followed(
    loop: asyncio.Runner, files: DockerInstance, shell_module: DockerInstance
) -> None:
    async def scenario() -> None:
        await shell(shell_module, "ln -s /etc/passwd out; ln -s /proc/1 proc; mkfifo pipe; echo y > ordinary")
        async with called(files) as caller:
            for path in ("out", "proc/environ"):
                assert "links are not followed" in await caller.error("read", path=path)
                assert "links are not followed" in await caller.error("write", path=path, content="x")
            assert "neither a file" in await caller.error("read", path="pipe")
            assert await caller.text("search", pattern="y", glob="o*") == "ordinary:1:y\n"

    loop.run(scenario())


def test_a_folder_that_is_swapped_for_a_link_all_the_time_leads_nowhere(
    loop: asyncio.Runner, files: DockerInstance, shell_module: DockerInstance
) -> None:
    """The race that checks by name lose: between the check and the opening, a folder becomes a link."""
    swapping = """
mkdir -p real && echo inside > real/hostname
end=$((SECONDS + 2))
while [ $SECONDS -lt $end ]; do mv -T real turn 2>/dev/null; ln -sfn /etc turn; rm -rf turn; mkdir -p turn; echo inside > turn/hostname; done
"""

    async def scenario() -> None:
        async with called(files) as caller, asyncio.TaskGroup() as group:
            ill = group.create_task(shell(shell_module, swapping))
            seen = set()
            while not ill.done():
                outcome = await caller.outcome("read", {"path": "turn/hostname"})
                seen.add(str(getattr(outcome, "output", "refused")))
            assert seen <= {"inside\n", "", "refused"}, seen
            assert len(seen) > 1, "both sides of the race were seen"

    loop.run(scenario())


def test_a_pattern_that_never_ends_costs_its_caller_only(loop: asyncio.Runner, files: DockerInstance) -> None:
    async def scenario() -> None:
        async with called(files) as caller:
            await caller.text("write", path="trap", content="a" * 60 + "!")
            async with asyncio.TaskGroup() as group:
                endless = group.create_task(caller.outcome("search", {"pattern": "(a+)+$"}, seconds=2))
                assert await caller.text("read", path="trap") == "a" * 60 + "!\n"
            assert type(endless.result()).__name__ == "TimedOut"
            assert await files.why_lost() is None

    loop.run(scenario())
