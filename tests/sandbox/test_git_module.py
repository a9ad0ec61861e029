"""The git module in its sandbox: cloned over the proxy from a real git server, looked into, changed and committed to."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from iact.core.modules.client import Completed
from tests.sandbox.backends import AnyHost, AnyInstance, Backend, either_backend
from tests.sandbox.inside import called, hosting_on
from tests.sandbox.outside import PUBLIC, Serve, internet

pytestmark = either_backend("docker")

NAMES: Final = {"code.example": [PUBLIC], "inner.example": ["10.0.0.1"], "other.example": [PUBLIC]}


def git(folder: Path, *words: str) -> str:
    """Run the machine's git."""
    who = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org"}
    names = {"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org"}
    command = ["git", "-c", "init.defaultBranch=main", "-c", "safe.directory=*", *words]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **who, **names}, capture_output=True, text=True, check=True
    ).stdout


def published(folder: Path) -> Path:
    """A repository of two commits, as a server has it; gives the folder above it."""
    work = folder / "work"
    work.mkdir(parents=True)
    git(work, "init")
    for number, text in enumerate(("one\n", "two\n")):
        (work / "a.txt").write_text(text, encoding="utf-8")
        git(work, "add", "."), git(work, "commit", "-m", f"Number {number}")
    git(folder, "clone", "--bare", "work", "served/team/tool.git")
    return folder / "served"


def server(root: Path) -> Serve:
    """Serve what is below `root` as a git server does, by git's own program."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, target, _ = head[0].split(" ")
            fields = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
            }
            path, _, query = target.partition("?")
            if path.startswith("/away"):
                writer.write(
                    b"HTTP/1.1 302 Found\r\nLocation: http://other.example/team/tool.git/info/refs\r\n\r\n"
                )
                writer.close()
                return
            body = await reader.readexactly(int(fields.get("content-length", "0")))
            asked = {
                "GIT_PROJECT_ROOT": str(root), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
                "REQUEST_METHOD": method, "CONTENT_TYPE": fields.get("content-type", ""),
                "CONTENT_LENGTH": str(len(body)), "HTTP_CONTENT_ENCODING": fields.get("content-encoding", ""),
                "PATH": os.environ["PATH"], "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
            }  # fmt: skip
            program = await asyncio.create_subprocess_exec(
                "git", "http-backend", env=asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            answer, _ = await program.communicate(body)
            head_of, _, content = answer.partition(b"\r\n\r\n")
            status = b"200 OK"
            for line in head_of.split(b"\r\n"):
                if line.lower().startswith(b"status:"):
                    status = line.partition(b":")[2].strip()
            size = f"\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode()
            writer.write(b"HTTP/1.1 " + status + b"\r\n" + head_of + size + content)
            await writer.drain()
        writer.close()

    return serve


def test_a_repository_is_cloned_from_a_host_that_was_allowed_and_no_other(
    loop: asyncio.Runner, backend: Backend, tmp_path: Path
) -> None:
    workspace = tmp_path / "sessions" / "s" / "workspace"
    workspace.mkdir(parents=True)
    # A module runs as the owner of the workspace, and most people have no name in its system.
    if os.geteuid() == 0:
        os.chown(workspace, 4711, 4711)
    served = published(tmp_path)

    async def scenario() -> None:
        async with (
            internet(server(served), NAMES) as world,
            hosting_on(backend, tmp_path / "data", outside=world.outside) as host,
        ):
            granted = ("code.example:80", "inner.example:80")
            instance = await host.start("git", session="s", workspace=workspace, report=print, egress=granted)
            async with called(instance) as caller:
                told = await caller.text("clone", url="http://code.example/team/tool.git")
                assert told.startswith("Cloned http://code.example/team/tool.git into tool.\n")
                assert (workspace / "tool" / "a.txt").read_text(encoding="utf-8") == "two\n"
                log = await caller.text("log", path="tool")
                assert [line.rpartition(": ")[2] for line in log.splitlines()] == ["Number 1", "Number 0"]
                await caller.text("clone", url="http://code.example/team/tool.git", path="b", depth=1)
                assert len((await caller.text("log", path="b")).splitlines()) == 1
                assert "something at tool already" in await caller.error(
                    "clone", url="http://code.example/team/tool.git"
                )
                for url in (
                    "http://other.example/team/tool.git", "http://code.example/away/tool.git", "http://code.example/none.git",
                    "http://inner.example/team/tool.git", "file:///workspace/tool", "ssh://code.example/x", "/workspace/tool",
                    "http://ada:secret@code.example/team/tool.git",
                ):  # fmt: skip
                    assert "NotDone" in await caller.error("clone", url=url, path="c"), url
                assert not (workspace / "c").exists()
            await instance.stop()
            assert {address for address, _ in world.dialled} == {PUBLIC}
            assert {line.target for line in world.lines if line.status == 403} >= {
                "other.example:80",
                "inner.example:80",
            }

    loop.run(scenario())


@pytest.fixture(scope="module")
def repository(
    loop: asyncio.Runner, host: AnyHost, workspace: Path, backend: Backend
) -> Iterator[AnyInstance]:
    (workspace / "tool").mkdir()
    (workspace / "tool" / "a.txt").write_text("one\n", encoding="utf-8")
    if os.geteuid() == 0:
        for path in (workspace, workspace / "tool", workspace / "tool" / "a.txt"):
            path.chmod(0o777)
    instance = loop.run(backend.start(host, "git", session="one", workspace=workspace))
    yield instance
    loop.run(instance.stop())


def test_work_is_looked_at_and_committed(
    loop: asyncio.Runner, repository: AnyInstance, workspace: Path
) -> None:
    async def scenario() -> None:
        async with called(repository) as caller:
            assert "There is no repository at tool" in await caller.error("status", path="tool")
            await caller.text("start", path="tool")
            await caller.text("commit", path="tool", message="Begin")
            (workspace / "tool" / "a.txt").write_text("two\n", encoding="utf-8")
            (workspace / "tool" / "new.txt").write_text("new\n", encoding="utf-8")
            status = await caller.outcome("status", {"path": "tool"})
            assert isinstance(status, Completed)
            assert status.data["changes"] == 2
            assert "changed: tool/a.txt\nnew: tool/new.txt\n" in status.output
            await caller.text("switch", path="tool", branch="mend", create=True)
            diff = await caller.outcome("diff", {"path": "tool", "of": "a.txt"})
            assert isinstance(diff, Completed)
            assert (diff.media, "-one\n+two\n" in diff.output) == ("text/x-diff", True)
            await caller.text("commit", path="tool", message="Two\n\nBecause.", files=["a.txt"])
            assert "new: tool/new.txt" in await caller.text("status", path="tool")
            await caller.text("commit", path="tool", message="Three")
            assert "There is nothing to commit" in await caller.error("commit", path="tool", message="Four")
            assert "-one\n+two\n" in await caller.text(
                "diff", path="tool", old="HEAD~2", new="mend", of="a.txt"
            )
            (workspace / "tool" / "new.txt").unlink()
            assert "changed: tool/new.txt" in await caller.text("status", path="tool")
            await caller.text("commit", path="tool", message="Gone")
            assert "There is no commit, branch or tag 'x'" in await caller.error("diff", path="tool", old="x")
            # A real git reads it the same way.
            assert git(workspace / "tool", "log", "--format=%s").split() == ["Gone", "Three", "Two", "Begin"]
            assert git(workspace / "tool", "status", "--short") == ""
            assert git(workspace / "tool", "fsck", "--strict") == ""

    loop.run(scenario())


def test_names_are_read_as_git_reads_them_and_what_is_none_is_refused(
    loop: asyncio.Runner, repository: AnyInstance, workspace: Path
) -> None:
    named = workspace / "named"
    named.mkdir()
    (named / "src").mkdir()
    if os.geteuid() == 0:
        for path in (named, named / "src"):
            path.chmod(0o777)
    (named / "a.txt").write_text("one\n", encoding="utf-8")
    (named / "src" / "b.txt").write_text("b\n", encoding="utf-8")

    async def scenario() -> None:
        async with called(repository) as caller:
            assert "There is one at: " in await caller.error("status")
            await caller.text("start", path="named")
            assert "There is no commit yet" in await caller.error("diff", path="named")
            assert "There is no commit yet" in await caller.error(
                "switch", path="named", branch="x", create=True
            )
            begun = await caller.text("commit", path="named", message="Begin")
            assert begun.endswith(" on master: named/a.txt, named/src/b.txt.\n")
            (named / "a.txt").write_text("two\n", encoding="utf-8")
            (named / "new.txt").write_text("new\n", encoding="utf-8")
            assert (await caller.text("diff", path="named")).startswith(
                "[Not in this: 1 new, never committed: named/new.txt]\n"
            )
            two = await caller.text("commit", path="named", message="Two", files=["a.txt"])
            assert two.endswith(": named/a.txt. 1 more changed or new, not committed.\n")

            same = {
                await caller.text("diff", path=path, **names)
                for path, names in (
                    ("named", {"of": "HEAD~1..HEAD"}), ("named", {"old": "HEAD~1..HEAD"}), ("named", {"old": "HEAD^", "new": "@"}),
                    ("named", {"old": "HEAD~...HEAD", "of": "./a.txt"}), ("named", {"old": "HEAD~1", "new": "HEAD", "of": "named/a.txt"}),
                    ("named/a.txt", {"old": "HEAD~1", "new": "HEAD"}), ("named", {"old": "@~.."}),
                )
            }  # fmt: skip
            assert len(same) == 1
            assert "-one\n+two\n" in same.pop()
            none = await caller.text("diff", path="named", old="HEAD~1..HEAD", of="src")
            assert none.startswith("[There is no difference between ")
            for of in ("nothing.txt", "*.txt"):
                refused = await caller.error("diff", path="named", of=of)
                assert f"There is no file, folder, branch or commit {of!r}" in refused
            assert "There is no commit, branch or tag 'HEAD~7'" in await caller.error(
                "diff", path="named", of="HEAD~7.."
            )
            assert "outside of the repository" in await caller.error("diff", path="named", of="../tool/a.txt")

            log = await caller.text("log", path="named", of="HEAD~1..HEAD")
            assert [line.rpartition(": ")[2] for line in log.splitlines()] == ["Two"]
            assert [
                line.rpartition(": ")[2] for line in (await caller.text("log", path="named/src")).splitlines()
            ] == ["Begin"]
            assert (await caller.text("log", path="named", most=1)).endswith(
                "[There are more; most=5 gives more of them.]\n"
            )
            assert "no file or folder nothing.txt" in await caller.error(
                "commit", path="named", message="x", files=["nothing.txt"]
            )
            (named / ".gitignore").write_text("*.pyc\n", encoding="utf-8")
            (named / "a.pyc").write_text("", encoding="utf-8")
            assert "ignored by .gitignore" in await caller.error(
                "commit", path="named", message="x", files=["a.pyc"]
            )
            (named / "src" / "b.txt").unlink()
            gone = await caller.text("commit", path="named", message="Gone", files=["named/src/b.txt"])
            assert ": named/src/b.txt. 2 more" in gone, "a path that was given back can be given"
            assert "create=true begins a branch. Branches: master." in await caller.error(
                "switch", path="named", branch="x"
            )
            assert (await caller.text("switch", path="named", branch="HEAD~1")).startswith("On HEAD~1 now.")
            (named / "a.txt").write_text("lost?\n", encoding="utf-8")
            assert "git.commit keeps them" in await caller.error("switch", path="named", branch="HEAD~1")

    loop.run(scenario())


CONFIG = """
[core]
	repositoryformatversion = 0
	fsmonitor = touch /workspace/tool/ran
	hooksPath = /workspace/tool/hooks
	attributesFile = /workspace/tool/.gitattributes
	editor = touch /workspace/tool/ran
	pager = touch /workspace/tool/ran
[filter "x"]
	clean = touch /workspace/tool/ran
	smudge = touch /workspace/tool/ran
	process = touch /workspace/tool/ran
	required = true
[diff "x"]
	textconv = touch /workspace/tool/ran
	command = touch /workspace/tool/ran
[gpg]
	program = /workspace/tool/hooks/pre-commit
[commit]
	gpgSign = true
[include]
	path = /etc/passwd
"""


def test_what_a_repository_is_configured_to_run_is_not_run(
    loop: asyncio.Runner, repository: AnyInstance, workspace: Path
) -> None:
    tool = workspace / "tool"
    hooks = [tool / ".git" / "hooks", tool / "hooks"]

    async def scenario() -> None:
        async with called(repository) as caller:
            await caller.text("commit", path="tool", message="Traps")
            (tool / "a.txt").write_text("three\n", encoding="utf-8")
            await caller.text("status", path="tool")
            await caller.text("diff", path="tool")
            await caller.text("commit", path="tool", message="Trapped")
            await caller.text("switch", path="tool", branch="other", create=True)
            await caller.text("switch", path="tool", branch="mend")
            assert not (tool / "ran").exists()
            assert "outside of the workspace" in await caller.error("status", path="elsewhere")

    with (tool / ".git" / "config").open("w", encoding="utf-8") as file:
        file.write(CONFIG)
    (tool / ".gitattributes").write_text("*.txt filter=x diff=x\n", encoding="utf-8")
    for folder in hooks:
        folder.mkdir(exist_ok=True)
        for name in ("pre-commit", "post-commit", "post-checkout", "commit-msg", "prepare-commit-msg"):
            (folder / name).write_text("#!/bin/sh\ntouch /workspace/tool/ran\n", encoding="utf-8")
            (folder / name).chmod(0o755)
    (workspace / "elsewhere").mkdir()
    (workspace / "elsewhere" / ".git").write_text("gitdir: /tmp\n", encoding="utf-8")
    loop.run(scenario())


def test_a_broken_repository_costs_its_caller_only(
    loop: asyncio.Runner, repository: AnyInstance, workspace: Path
) -> None:
    async def scenario() -> None:
        async with called(repository) as caller:
            for function in ("status", "log", "diff"):
                assert "NotDone" in await caller.error(function, path="broken")
            assert "On branch" in await caller.text("status", path="tool")

    folder = workspace / "broken" / ".git"
    for name in ("objects", "refs/heads"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (folder / "refs/heads/main").write_text("0" * 39 + "1\n", encoding="utf-8")
    (folder / "index").write_bytes(b"DIRC" + b"\xff" * 4000)
    loop.run(scenario())
