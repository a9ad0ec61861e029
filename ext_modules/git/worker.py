"""Works on one repository, in a separate process that can be killed.

A repository may have been made by a stranger: nothing that it configures (hooks, filters, an editor) is run, and its
remote must be a web server. Clones go through the egress proxy, using CONNECT only.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from dulwich import porcelain
from dulwich.client import HttpGitClient
from dulwich.config import ConfigFile, StackedConfig
from dulwich.errors import NotGitRepository
from dulwich.objects import Commit
from dulwich.objectspec import parse_commit
from dulwich.repo import Repo
from urllib3 import HTTPConnectionPool, PoolManager, ProxyManager
from urllib3.connection import HTTPConnection
from urllib3.poolmanager import proxy_from_url

from ext_modules.sdk.apart import NotDone, inside, serve
from ext_modules.sdk.values import JSON

_LARGEST: Final = 400_000
"""The most bytes of a difference or a history."""
_WHO: Final = b"agent <agent@sandbox>"
_MOST_FILES: Final = 500
_KEPT: Final = frozenset(
    {b"repositoryformatversion", b"filemode", b"bare", b"symlinks", b"ignorecase", b"autocrlf", b"eol"}
)
"""Settings that name neither a program nor a file."""


def work(request: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], bytes]:
    """Carry out a request."""
    return _WORK[str(request["do"])](request)


class Quiet(Repo):  # type: ignore[misc]  # its types are not installed here
    """A repository that runs none of the programs it configures."""

    def get_config(self) -> ConfigFile:
        """Return the part of its configuration that describes how its own data are stored."""
        quiet = ConfigFile()
        try:
            whole = ConfigFile.from_path(os.path.join(self.commondir(), "config"), expand_includes=False)
        except FileNotFoundError:
            return quiet
        for section in whole.sections():
            for name, value in whole.items(section):
                if section[0].lower() == b"extensions" or (
                    section[0].lower() == b"core" and name.lower() in _KEPT
                ):
                    quiet.set(section, name, value)
        return quiet

    def get_config_stack(self) -> StackedConfig:
        """Use this configuration alone."""
        return StackedConfig([self.get_config()])


@contextmanager
def opened(request: Mapping[str, JSON]) -> Iterator[Quiet]:
    """Open the repository at the request's path."""
    folder = inside(str(request["path"]), there=False)
    try:
        repository = Quiet(str(folder))
    except NotGitRepository:
        raise NotDone(
            f"There is no repository at {request['path']}; git.clone or git.start makes one."
        ) from None
    with repository:
        if not Path(repository.controldir()).resolve().is_relative_to(inside(".", there=False)):
            raise NotDone(f"The repository of {request['path']} is outside of the workspace.")
        repository.hooks.clear()
        yield repository


def found(repository: Quiet, name: str) -> Commit:
    """Find the commit that a name stands for: an abbreviated id, a branch, a tag, HEAD~2.

    Raises:
        NotDone: there is no such commit.
    """
    base, _, back = name.partition("~")
    try:
        commit = parse_commit(repository, base)
        for _ in range(int(back or (1 if "~" in name else 0))):
            commit = parse_commit(repository, commit.parents[0])
    except (KeyError, IndexError, ValueError):
        raise NotDone(f"There is no commit, branch or tag {name!r}; git.log shows the commits.") from None
    return commit


def clone(request: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], bytes]:
    url, branch, depth = str(request["url"]), str(request["branch"]), int(str(request["depth"]))
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise NotDone("Repositories are cloned from addresses of the form https://host/path.")
    if parts.username is not None or parts.password is not None:
        raise NotDone("An address with a user name or a password in it is not used; give it without.")
    name = parts.path.rstrip("/").rpartition("/")[2].removesuffix(".git") or parts.hostname
    target = inside(str(request["path"]) or name, there=False)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise NotDone(f"There is something at {target.name} already; give another path.")
    client = HttpGitClient(
        f"{parts.scheme}://{parts.netloc}", pool_manager=way_out(parts.scheme), config=StackedConfig([])
    )
    made = not target.exists()
    try:
        repository = client.clone(
            parts.path, str(target), mkdir=made, branch=branch.encode() or None, depth=depth or None
        )
        repository.close()
    except BaseException as error:
        for each in [target] if made else list(target.iterdir()):
            shutil.rmtree(each, ignore_errors=True)
        if _UNREACHABLE in str(error):
            raise NotDone(f"{parts.hostname} {_UNREACHABLE}.") from None
        raise
    said = f"Cloned {url} into {target.relative_to(inside('.', there=False))}.\n"
    facts, text = history({"path": str(target), "most": 1, "of": ""})
    return facts, said.encode() + text


_UNREACHABLE: Final = "can't be reached from here"
"""What the egress proxy says of a host, whatever the reason."""


def way_out(scheme: str) -> PoolManager | ProxyManager:
    """Connections through the egress proxy, which supports CONNECT only, even for plain HTTP."""
    proxy = os.environ.get(f"{scheme}_proxy") or os.environ.get(f"{scheme.upper()}_PROXY")
    if not proxy:
        raise NotDone("The host can't be reached from here.")
    import certifi

    if scheme == "https":
        return proxy_from_url(proxy, ca_certs=certifi.where())
    place = urlsplit(proxy)
    far, near = str(place.hostname), int(place.port or 3128)

    class Tunnel(HTTPConnection):
        """A tunnelled connection. It may connect more than once."""

        leads_to: tuple[str, int] | None = None

        def connect(self) -> None:
            if self.leads_to is None:
                self.leads_to = self.host, self.port or 80
                self.host, self.port = far, near
            self.set_tunnel(*self.leads_to)
            super().connect()

    class Pool(HTTPConnectionPool):
        ConnectionCls = Tunnel

    manager = PoolManager()
    manager.pool_classes_by_scheme = {"http": Pool}
    return manager


def start(request: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], bytes]:
    folder = inside(str(request["path"]), there=False)
    folder.mkdir(parents=True, exist_ok=True)
    porcelain.init(str(folder)).close()
    return {}, b"There is a repository now; git.commit keeps what is in it.\n"


def status(request: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], bytes]:
    with opened(request) as repository:
        seen = porcelain.status(repository, untracked_files="all", optional_locks=False)
        staged = [(kind, name) for kind, names in seen.staged.items() for name in names]
        lines = [f"{kind}, to be committed: {_text(name)}" for kind, name in sorted(staged)]
        lines += [f"changed: {_text(name)}" for name in sorted(seen.unstaged)]
        lines += [f"new: {_text(name)}" for name in sorted(seen.untracked)]
        try:
            branch = _text(porcelain.active_branch(repository))
        except (KeyError, IndexError, ValueError):
            branch = ""
    count, shown = len(lines), lines[:_MOST_FILES]
    more = f"[{count - len(shown):,} more.]\n" if count > len(shown) else ""
    head = f"On branch {branch}.\n" if branch else "On no branch.\n"
    body = "".join(f"{line}\n" for line in shown) or "Nothing is changed.\n"
    return {"branch": branch, "changes": count}, f"{head}{body}{more}".encode("utf-8", "replace")


def history(request: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], bytes]:
    lines: list[str] = []
    of = str(request["of"])
    with opened(request) as repository:
        try:
            walker = repository.get_walker(
                max_entries=int(str(request["most"])), paths=[of.encode()] if of else None
            )
            for entry in walker:
                made = entry.commit
                title, _, body = _text(made.message).strip().partition("\n")
                rest = "".join(f"    {line}\n" for line in body.strip().splitlines()[:20])
                lines.append(
                    f"{_text(made.id)[:12]} {_day(made.commit_time)} {_text(made.author)}: {title}\n{rest}"
                )
        except KeyError:
            return {"commits": 0}, b"There is no commit yet.\n"
    return {"commits": len(lines)}, "".join(lines).encode("utf-8", "replace")[:_LARGEST]


def diff(request: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], bytes]:
    old, new, of = str(request["old"]), str(request["new"]), str(request["of"])
    out = io.BytesIO()
    with opened(request) as repository:
        paths = [of.encode()] if of else None
        first, second = found(repository, old or "HEAD"), found(repository, new) if new else None
        porcelain.diff(repository, commit=first, commit2=second, paths=paths, outstream=out)
    data = out.getvalue()
    more = b"\n[The rest was left out; name a file with of=...]\n" if len(data) > _LARGEST else b""
    return {"bytes": len(data)}, (data[:_LARGEST] + more) or b"[There is no difference.]\n"


def commit(request: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], bytes]:
    named = request["files"]
    with opened(request) as repository:
        root = Path(repository.path)
        if isinstance(named, list) and named:
            paths = [str(root / str(one)) for one in named]
            gone = [path for path in paths if not os.path.lexists(path)]
            porcelain.add(repository, [path for path in paths if path not in gone])
        else:
            seen = porcelain.status(repository, untracked_files="all")
            changed = [_text(name) for name in (*seen.unstaged, *seen.untracked)]
            gone = [str(root / name) for name in changed if not os.path.lexists(root / name)]
            present = [str(root / name) for name in changed if os.path.lexists(root / name)]
            if present:
                porcelain.add(repository, present)
        if gone:
            repository.get_worktree().stage([os.path.relpath(path, root) for path in gone])
        if not any(porcelain.status(repository, untracked_files="no").staged.values()):
            raise NotDone("There is nothing to commit.")
        made = porcelain.commit(
            repository,
            message=str(request["message"]).encode(),
            author=_WHO,
            committer=_WHO,
            no_verify=True,
            sign=False,
        )
    return {"commit": _text(made)}, f"Committed as {_text(made)[:12]}.\n".encode()


def switch(request: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], bytes]:
    branch = str(request["branch"])
    with opened(request) as repository:
        if request["create"]:
            # Files stay as they are, whether changed or not.
            porcelain.branch_create(repository, branch)
            repository.refs.set_symbolic_ref(b"HEAD", b"refs/heads/" + branch.encode())
        else:
            found(repository, branch)
            porcelain.checkout(repository, branch)
        names = sorted(_text(name) for name in porcelain.branch_list(repository))
    return {"branch": branch}, f"On {branch} now. Branches: {', '.join(names)}.\n".encode()


def _text(data: object) -> str:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data)


def _day(seconds: float) -> str:
    import time

    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(max(0, min(seconds, 4e10))))


_WORK: Final[Mapping[str, Callable[[Mapping[str, JSON]], tuple[Mapping[str, JSON], bytes]]]] = {
    "clone": clone, "start": start, "status": status, "log": history, "diff": diff, "commit": commit, "switch": switch
}  # fmt: skip


if __name__ == "__main__":
    # The sandbox's user may have no name: unless the person is root, containers run under the person's user id.
    os.environ |= {"LOGNAME": "agent", "EMAIL": "agent@sandbox"}
    serve(work)
