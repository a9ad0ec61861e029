"""`git`: repositories in the workspace. Reading changes nothing; cloning connects to hosts that a person allowed.

Nothing is pushed, since that would require the user's credentials.
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


@module.function(
    impact=0, summary="Show a repository's branch and what was changed since the last commit.", timeout=60
)
async def status(call: Call, path: str = ".") -> Result:
    """What is changed, new, or about to be committed in the repository at `path` (default: the workspace)."""
    return await _ask(call, 50, do="status", path=path)


@module.function(impact=0, summary="Show a repository's commits, the newest first.", timeout=60)
async def log(call: Call, path: str = ".", most: int = 20, of: str = "") -> Result:
    """Commits with time, author and message. `most`: how many (default 20). `of`: only those that touch this file."""
    return await _ask(call, 50, do="log", path=path, most=max(1, min(most, 1000)), of=of)


@module.function(
    impact=0,
    summary="Show what was changed, or how two commits differ.",
    media_type="text/x-diff",
    timeout=60,
)
async def diff(call: Call, path: str = ".", old: str = "", new: str = "", of: str = "") -> Result:
    """A unified diff: of the files as they are against the last commit, or against the commit or branch `old`; with
    `new`, of two commits. `of`: only this file or folder.
    """
    return await _ask(call, 50, do="diff", path=path, old=old, new=new, of=of)


@module.function(
    impact=1, summary="Commit changes.", body="message", exclusive=True, idempotent=False, timeout=120
)
async def commit(call: Call, message: str, path: str = ".", files: list[str] | None = None) -> Result:
    """Commits all that is changed or new in the repository at `path`, but for what it ignores; or only `files`.

    ```git.commit path=project
    Round once, at the end
    ```
    """
    named: list[JSON] = [*(files or [])]
    return await _ask(call, 110, do="commit", path=path, message=message, files=named)


@module.function(
    impact=1, summary="Switch to a branch, or begin one.", body="branch", exclusive=True, timeout=120
)
async def switch(call: Call, branch: str, path: str = ".", create: bool = False) -> Result:
    """Checks the branch `branch` out; `create=true` begins it here."""
    return await _ask(call, 110, do="switch", path=path, branch=branch.strip(), create=create)


@module.function(impact=1, summary="Clone a repository into the workspace.", body="url", exclusive=True, idempotent=False,
                 timeout=300)  # fmt: skip
async def clone(call: Call, url: str, path: str = "", branch: str = "", depth: int = 0) -> Result:
    """Clones the repository at the https address `url` into the folder `path` (default: its name). `depth`: how many
    commits of its history (default: all).

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
    """Makes the folder `path` (default: the workspace) a repository."""
    return await _ask(call, 50, do="start", path=path)


async def _ask(call: Call, limit: float, **request: JSON) -> Result:
    said, text = await apart.ask(_WORKER, dict(request), call, limit=limit)
    return Result(text.decode("utf-8", "replace"), data=dict(said))
