"""`git`: repositories in the workspace. Reading changes nothing; cloning connects to hosts that a person allowed.

Nothing is pushed, since that would require the user's credentials. Where git takes a commit or a path in the same
place, so do these functions: what a name is, its repository decides.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ext_modules.sdk import Call, Module, Result, apart
from ext_modules.sdk.values import JSON

module = Module(
    "git",
    "Clones git repositories, shows their state, history and differences, and commits changes.",
    keywords=[
        "git", "repository", "repositories", "repo", "clone", "commit", "commits", "branch", "branches", "diff", "log",
        "history", "status", "version", "versions", "checkout", "switch", "changes", "changed", "source", "code", "bug", "fix",
    ],
)  # fmt: skip

_WORKER: Final = Path(__file__).with_name("worker.py")


@module.function(impact=0, summary="Branch, and files that are changed, new or staged.", timeout=60)
async def status(call: Call, path: str = ".") -> Result:
    """The branch of the repository at `path`, and a line for each file that is changed, new or staged; at most 500.

    ```git.status path=project
    ```
    """
    return await _ask(call, 50, do="status", path=path)


@module.function(impact=0, summary="Commits with id, time, author and message, the newest first.", timeout=60)
async def log(call: Call, of: str = "", path: str = ".", most: int = 20) -> Result:
    """Commits of the repository at `path`, the newest first. `of`: a file or folder that they touch, a branch, or a
    range A..B. `most`: how many (default 20, at most 1,000). What a commit changed: git.diff of=ID~..ID.

    ```git.log of=main..feature most=50
    ```
    """
    return await _ask(call, 50, do="log", path=path, most=max(1, min(most, 1000)), of=of)


@module.function(
    impact=0,
    summary="A unified diff: of the files against a commit, or of two commits.",
    media_type="text/x-diff",
    timeout=60,
)
async def diff(call: Call, old: str = "", new: str = "", of: str = "", path: str = ".") -> Result:
    """A unified diff of the repository at `path`: from the commit or branch `old` (default HEAD) to the files as they
    are, or to the commit `new`. `old=A..B` is a range. `of`: only this file or folder. Files that were never
    committed are named in the first line. At most 400 kB.

    ```git.diff old=HEAD~1 new=HEAD of=src/main.py
    ```
    """
    return await _ask(call, 50, do="diff", path=path, old=old, new=new, of=of)


@module.function(
    impact=1,
    summary="Commit all changes, or some files.",
    body="message",
    exclusive=True,
    idempotent=False,
    timeout=120,
)
async def commit(call: Call, message: str, path: str = ".", files: list[str] | None = None) -> Result:
    """Commits everything that is changed, new or deleted in the repository at `path`, but for what .gitignore names; or
    only `files` (files or folders, no patterns). The author is "agent". You get the id and the files. Nothing is pushed.

    ```git.commit path=project files=["src/main.py","README.md"]
    Round once, at the end
    ```
    """
    named: list[JSON] = [*(files or [])]
    return await _ask(call, 110, do="commit", path=path, message=message, files=named)


@module.function(
    impact=1,
    summary="Check out a branch or commit, or begin a branch.",
    body="branch",
    exclusive=True,
    timeout=120,
)
async def switch(call: Call, branch: str, path: str = ".", create: bool = False) -> Result:
    """Checks out a branch (or a commit) of the repository at `path`; `create=true` begins the branch here, with the
    files as they are. Refused where changes that are not committed would be lost.

    ```git.switch create=true
    round-once
    ```
    """
    return await _ask(call, 110, do="switch", path=path, branch=branch.strip(), create=create)


@module.function(impact=1, summary="Clone a repository into a new folder.", body="url", exclusive=True, idempotent=False,
                 timeout=300)  # fmt: skip
async def clone(call: Call, url: str, path: str = "", branch: str = "", depth: int = 0) -> Result:
    """Clones from an https address, without a password, into the folder `path` (default: the repository's name). A
    person allows the host. `depth=1`: only the newest commit; 0: all. At most 290 s.

    ```git.clone depth=1
    https://example.org/team/project.git
    ```
    """
    call.progress(f"cloning {url.strip()[:100]}")
    return await _ask(call, 290, do="clone", url=url.strip(), path=path, branch=branch, depth=max(0, depth))


@module.function(
    impact=1, summary="Make a folder a repository.", exclusive=True, idempotent=False, timeout=60
)
async def start(call: Call, path: str = ".") -> Result:
    """Makes the folder `path` (default: the workspace) a repository, without a commit: git.commit makes the first.

    ```git.start path=project
    ```
    """
    return await _ask(call, 50, do="start", path=path)


async def _ask(call: Call, limit: float, **request: JSON) -> Result:
    facts, text = await apart.ask(_WORKER, request, call, limit=limit)
    return Result(text.decode("utf-8", "replace"), data=facts)
