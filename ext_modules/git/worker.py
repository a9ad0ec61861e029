"""Works on one repository, in a separate process that can be killed.

A repository may have been made by a stranger: nothing that it configures (hooks, filters, an editor) is run, and its
remote must be a web server. Clones go through the egress proxy, using CONNECT only.
"""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from dulwich import porcelain
from dulwich.client import HttpGitClient
from dulwich.config import ConfigFile, StackedConfig
from dulwich.errors import NotGitRepository
from dulwich.graph import find_merge_base
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
_MOST_NAMED: Final = 10
"""The most files that a sentence names."""
_LONGEST_MESSAGE: Final = 20
"""The most lines of a commit's message in a history."""
_STEPS: Final = re.compile(r"(?P<base>[^~^]*)(?P<back>(?:~\d{0,5}|\^\d{0,2})*)")
_STEP: Final = re.compile(r"([~^])(\d*)")
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
            kind = section[0].lower()
            for name, value in whole.items(section):
                is_harmless = kind == b"core" and name.lower() in _KEPT
                if kind == b"extensions" or is_harmless:
                    quiet.set(section, name, value)
        return quiet

    def get_config_stack(self) -> StackedConfig:
        """Use this configuration alone."""
        return StackedConfig([self.get_config()])


@contextmanager
def opened(request: Mapping[str, JSON]) -> Iterator[Quiet]:
    """Open the repository that the request's path is in."""
    repository = _repository_of(str(request["path"]))
    with repository:
        if not Path(repository.controldir()).resolve().is_relative_to(inside(".", there=False)):
            raise NotDone(f"The repository of {request['path']} is outside of the workspace.")
        repository.hooks.clear()
        yield repository


def _repository_of(path: str) -> Quiet:
    """Open the repository at `path`, or the one that has this file or folder in it.

    Raises:
        NotDone: there is none.
    """
    workspace = inside(".", there=False)
    place = inside(path, there=False)
    if not os.path.lexists(place):
        raise NotDone(f"There is no folder {path} in the workspace.{_repositories_there(workspace)}")

    for folder in (place, *place.parents):
        if not folder.is_relative_to(workspace):
            break
        try:
            return Quiet(str(folder))
        except NotGitRepository:
            continue

    where = "in the workspace's own folder" if path == "." else f"at {path}"
    there = _repositories_there(workspace) or " git.clone or git.start makes one."
    raise NotDone(f"There is no repository {where}.{there}")


def _repositories_there(workspace: Path) -> str:
    """A sentence that names the repositories which are folders of the workspace, if there are any."""
    names = sorted(folder.parent.name for folder in workspace.glob("*/.git"))
    return f" There is one at: {_listed(names)} (give it as path=)." if names else ""


def is_empty(repository: Quiet) -> bool:
    """Whether there is no commit yet where the repository stands."""
    try:
        repository.head()
    except KeyError:
        return True
    return False


def commit_named(repository: Quiet, name: str) -> Commit | None:
    """Find the commit that a name stands for: an abbreviated id, a branch, a tag, HEAD, @, with ~2 or ^ behind it."""
    parts = _STEPS.fullmatch(name)
    if parts is None:
        return None

    base = "HEAD" if parts["base"] in ("", "@") else parts["base"]
    try:
        commit = parse_commit(repository, base)
        for mark, count in _STEP.findall(parts["back"]):
            commit = _back(repository, commit, mark, int(count or 1))
    except (KeyError, IndexError, ValueError):
        return None
    return commit


def _back(repository: Quiet, commit: Commit, mark: str, count: int) -> Commit:
    """The parent number `count` of a commit (^), or the one that is so many steps back (~)."""
    if mark == "^":
        return parse_commit(repository, commit.parents[count - 1]) if count else commit
    for _ in range(count):
        commit = parse_commit(repository, commit.parents[0])
    return commit


def found(repository: Quiet, name: str) -> Commit:
    """Find the commit that a name stands for.

    Raises:
        NotDone: there is no such commit.
    """
    commit = commit_named(repository, name)
    if commit is not None:
        return commit
    if is_empty(repository):
        raise NotDone("There is no commit yet; git.status shows what is new.")
    raise NotDone(f"There is no commit, branch or tag {name!r}; git.log shows the commits.")


def range_named(repository: Quiet, name: str) -> tuple[Commit, Commit] | None:
    """Find the two commits that A..B or A...B stands for; an end that is left out is HEAD.

    Raises:
        NotDone: one of them does not exist, or they have no common ancestor.
    """
    first, dots, second = name.partition("..")
    # ../a and a/../b are paths.
    is_path = first.endswith("/") or second.startswith("/")
    names_an_end = bool(first or second.strip("."))
    if not dots or is_path or not names_an_end:
        return None

    old = found(repository, first or "HEAD")
    new = found(repository, second.removeprefix(".") or "HEAD")
    has_three_dots = second.startswith(".")
    if not has_three_dots:
        return old, new

    bases = find_merge_base(repository, [old.id, new.id])
    if not bases:
        raise NotDone(f"{name}: these two have no common ancestor.")
    return parse_commit(repository, bases[0]), new


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request is about: up to two commits, the older first, and perhaps one file or folder."""

    commits: Sequence[Commit]
    path: str
    """Relative to the repository's folder; empty for all of it."""

    def paths(self) -> list[bytes] | None:
        """The path, as the library takes it."""
        return [os.fsencode(self.path)] if self.path else None


def asked_about(
    repository: Quiet, request: Mapping[str, JSON], *, of: str, old: str = "", new: str = ""
) -> Asked:
    """Sort out what the names are: each may be a commit, a range of commits, or a path.

    `of` is rather a path, `old` and `new` are rather commits.

    Raises:
        NotDone: one is none of these, or there are too many.
    """
    commits: list[Commit] = []
    paths: list[str] = []
    for name in filter(None, (old, new, of)):
        is_path = name == of and os.path.lexists(Path(repository.path) / _relative(repository, request, name))
        ends = () if is_path else range_named(repository, name) or _one(commit_named(repository, name))
        commits += ends
        if not ends:
            paths.append(name)

    if len(commits) > 2 or len(paths) > 1:
        raise NotDone(
            f"Two commits and one file or folder are the most that can be named, not {old} {new} {of}."
        )
    if not paths:
        return Asked(commits, _below(repository, request))
    path = _relative(repository, request, paths[0])
    if path and not _is_known(repository, commits, path):
        raise NotDone(_unknown(repository, paths[0], is_file=paths[0] == of))
    return Asked(commits, path)


def _one(commit: Commit | None) -> tuple[Commit, ...]:
    return () if commit is None else (commit,)


def _unknown(repository: Quiet, name: str, *, is_file: bool) -> str:
    if is_file:
        return f"There is no file, folder, branch or commit {name!r} (patterns are not read); files.list shows the files."
    if is_empty(repository):
        return "There is no commit yet; git.status shows what is new."
    return f"There is no commit, branch or tag {name!r}, and no file; git.log shows the commits."


def _below(repository: Quiet, request: Mapping[str, JSON]) -> str:
    """The file or folder in the repository that the request's path names; empty if it is the repository's own."""
    root = Path(repository.path).resolve()
    place = inside(str(request["path"]), there=False)
    return "" if place == root else str(place.relative_to(root))


def _relative(repository: Quiet, request: Mapping[str, JSON], name: str) -> str:
    """A path as it is in the repository, whatever it was given relative to."""
    root = Path(repository.path).resolve()
    workspace = inside(".", there=False)
    place = inside(str(request["path"]), there=False)
    if place.is_file():
        place = place.parent

    ways = [Path(os.path.normpath(base / name)) for base in (place, root, workspace)]
    inner = [str(way.relative_to(root)) for way in ways if way.is_relative_to(root)]
    if not inner:
        raise NotDone(f"{name} is outside of the repository at {request['path']}.")

    there = [way for way in inner if os.path.lexists(root / way)]
    if not there and len(inner) > 1:
        index = repository.open_index()
        there = [way for way in inner if way.encode() in index]  # it was deleted
    best = [*there, *inner][0]
    return "" if best == "." else best


def _shown(repository: Quiet, names: Iterable[str | bytes]) -> list[str]:
    """Paths in the repository as an agent reads all paths: relative to the workspace."""
    root = Path(repository.path).resolve().relative_to(inside(".", there=False))
    return [str(root / _text(name)) for name in names]


def _is_known(repository: Quiet, commits: Iterable[Commit], path: str) -> bool:
    """Whether a file or folder is there, about to be committed, or in one of the commits."""
    if os.path.lexists(Path(repository.path) / path):
        return True

    name = os.fsencode(path)
    below = name + b"/"
    if any(entry == name or entry.startswith(below) for entry in repository.open_index()):
        return True
    return any(_is_in(repository, commit, name) for commit in commits)


def _is_in(repository: Quiet, commit: Commit, name: bytes) -> bool:
    try:
        repository[commit.tree].lookup_path(repository.object_store.__getitem__, name)
    except (KeyError, ValueError):
        return False
    return True


def _listed(names: Sequence[str]) -> str:
    listed = list(names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    if more > 0:
        listed.append(f"and {more:,} more")
    return ", ".join(listed)


def clone(request: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], bytes]:
    url = str(request["url"])
    branch = str(request["branch"])
    depth = int(str(request["depth"]))
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise NotDone("Repositories are cloned from addresses of the form https://host/path.")
    if parts.username is not None or parts.password is not None:
        raise NotDone("An address with a user name or a password in it is not used; give it without.")

    name = parts.path.rstrip("/").rpartition("/")[2].removesuffix(".git") or parts.hostname
    target = inside(str(request["path"]) or name, there=False)
    is_new = not target.exists()
    is_empty_folder = target.is_dir() and not any(target.iterdir())
    if not is_new and not is_empty_folder:
        raise NotDone(f"There is something at {target.name} already; give another path.")

    client = HttpGitClient(
        f"{parts.scheme}://{parts.netloc}", pool_manager=way_out(parts.scheme), config=StackedConfig([])
    )
    try:
        repository = client.clone(
            parts.path, str(target), mkdir=is_new, branch=branch.encode() or None, depth=depth or None
        )
        repository.close()
    except BaseException as error:
        # A folder that was there stays.
        for leftover in [target] if is_new else list(target.iterdir()):
            shutil.rmtree(leftover, ignore_errors=True)
        if _UNREACHABLE in str(error):
            raise NotDone(f"{parts.hostname} {_UNREACHABLE}.") from None
        raise

    sentence = f"Cloned {url} into {target.relative_to(inside('.', there=False))}.\n"
    facts, text = history({"path": str(target), "most": 1, "of": ""})
    return facts, sentence.encode() + text


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

    # For plain HTTP, the library would ask the proxy for the page instead of for a tunnel.
    place = urlsplit(proxy)
    proxy_host = str(place.hostname)
    proxy_port = int(place.port or 3128)

    class Tunnel(HTTPConnection):
        """A tunnelled connection. It may connect more than once."""

        leads_to: tuple[str, int] | None = None

        def connect(self) -> None:
            if self.leads_to is None:
                self.leads_to = self.host, self.port or 80
                self.host = proxy_host
                self.port = proxy_port
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
        staged = {kind: _shown(repository, sorted(names)) for kind, names in sorted(seen.staged.items())}
        lines = [f"{kind}, to be committed: {name}" for kind, names in staged.items() for name in names]
        lines += [f"changed: {name}" for name in _shown(repository, sorted(seen.unstaged))]
        lines += [f"new: {name}" for name in _shown(repository, sorted(seen.untracked))]
        branch = _branch(repository)

    head = f"On branch {branch}.\n" if branch else "On no branch.\n"
    body = "".join(f"{line}\n" for line in lines[:_MOST_FILES]) or "Nothing is changed or new.\n"
    left_out = len(lines) - _MOST_FILES
    more = f"[{left_out:,} more.]\n" if left_out > 0 else ""
    return {"branch": branch, "changes": len(lines)}, f"{head}{body}{more}".encode("utf-8", "replace")


def history(request: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], bytes]:
    most = int(str(request["most"]))
    with opened(request) as repository:
        if is_empty(repository):
            return {"commits": 0}, b"There is no commit yet.\n"
        asked = asked_about(repository, request, of=str(request["of"]))
        walker = repository.get_walker(
            include=[commit.id for commit in asked.commits[-1:]] or None,
            exclude=[commit.id for commit in asked.commits[:-1]] or None,
            max_entries=most + 1,
            paths=asked.paths(),
        )
        entries = [_entry(entry.commit) for entry in walker]
    if not entries:
        return {"commits": 0}, f"No commit is in or touches {request['of']}.\n".encode("utf-8", "replace")

    lines = entries[:most]
    if len(entries) > most:
        lines.append(f"[There are more; most={most * 5} gives more of them.]\n")
    return {"commits": min(most, len(entries))}, _bounded("".join(lines).encode("utf-8", "replace"), "most=")


def _entry(commit: Commit) -> str:
    """A commit in a history: its id, time, author and message."""
    title, _, body = _text(commit.message).strip().partition("\n")
    lines = body.strip().splitlines()
    if len(lines) > _LONGEST_MESSAGE:
        lines = [*lines[:_LONGEST_MESSAGE], f"[{len(lines) - _LONGEST_MESSAGE} more lines]"]
    rest = "".join(f"    {line}".rstrip() + "\n" for line in lines)
    return f"{_text(commit.id)[:12]} {_day(commit.commit_time)} {_text(commit.author)}: {title}\n{rest}"


def diff(request: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], bytes]:
    old = str(request["old"])
    new = str(request["new"])
    of = str(request["of"])
    if new and not old:
        old = "HEAD"

    out = io.BytesIO()
    with opened(request) as repository:
        asked = asked_about(repository, request, old=old, new=new, of=of)
        first = asked.commits[0] if asked.commits else found(repository, "HEAD")
        second = asked.commits[1] if len(asked.commits) > 1 else None
        porcelain.diff(repository, commit=first, commit2=second, paths=asked.paths(), outstream=out)
        unseen = _shown(repository, _new_files(repository, asked.path)) if second is None else []

    data = out.getvalue()
    before = b""
    if unseen:
        note = f"[Not in this: {len(unseen):,} new, never committed: {_listed(unseen)}]\n"
        before = note.encode("utf-8", "replace")
    if not data:
        against = _text(second.id)[:12] if second is not None else "the files as they are"
        note = f"[There is no difference between {_text(first.id)[:12]} and {against}.]\n"
        return {"bytes": 0, "new": len(unseen)}, before + note.encode()
    return {"bytes": len(data), "new": len(unseen)}, before + _bounded(data, "of=")


def _new_files(repository: Quiet, path: str) -> list[str]:
    """The files that no commit has and that are not about to be committed, at or below `path`."""
    seen = porcelain.status(repository, untracked_files="all", optional_locks=False)
    names = sorted(_text(name) for name in seen.untracked)
    return [name for name in names if not path or name == path or name.startswith(f"{path}/")]


def _bounded(data: bytes, narrower: str) -> bytes:
    """Cut a long text at a line, and say how much was left out."""
    if len(data) <= _LARGEST:
        return data

    beginning = data[: data.rfind(b"\n", 0, _LARGEST) + 1] or data[:_LARGEST]
    left_out = len(data) - len(beginning)
    note = f"[{left_out:,} of {len(data):,} bytes were left out; narrow it with {narrower}]\n"
    return beginning + note.encode()


def commit(request: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], bytes]:
    named = request["files"]
    with opened(request) as repository:
        if isinstance(named, list) and named:
            _stage(repository, request, [str(name) for name in named])
        else:
            seen = porcelain.status(repository, untracked_files="all")
            _stage_all(repository, [_text(name) for name in (*seen.unstaged, *seen.untracked)])

        seen = porcelain.status(repository, untracked_files="all")
        staged = sorted({_text(name) for names in seen.staged.values() for name in names})
        if not staged:
            raise NotDone("There is nothing to commit; git.status shows what is changed.")

        identity = _text(
            porcelain.commit(
                repository,
                message=str(request["message"]).encode(),
                author=_WHO,
                committer=_WHO,
                no_verify=True,
                sign=False,
            )
        )
        branch = _branch(repository)
        committed = _listed(_shown(repository, staged))

    left = len(seen.unstaged) + len(seen.untracked)
    where = f" on {branch}" if branch else ""
    rest = f" {left:,} more changed or new, not committed." if left else ""
    sentence = f"Committed as {identity[:12]}{where}: {committed}.{rest}\n"
    return {"commit": identity, "files": len(staged)}, sentence.encode("utf-8", "replace")


def _stage_all(repository: Quiet, changed: Sequence[str]) -> None:
    root = Path(repository.path)
    gone = [name for name in changed if not os.path.lexists(root / name)]
    present = [str(root / name) for name in changed if os.path.lexists(root / name)]
    if present:
        porcelain.add(repository, present)
    if gone:
        repository.get_worktree().stage(gone)


def _stage(repository: Quiet, request: Mapping[str, JSON], named: Sequence[str]) -> None:
    """Note files and folders, there or deleted, for the next commit.

    Raises:
        NotDone: there is no such file, or the repository ignores it.
    """
    root = Path(repository.path)
    names = [_relative(repository, request, name) for name in named]
    tracked = [_text(name) for name in repository.open_index()]
    for written, name in zip(named, names, strict=True):
        is_tracked = any(_is_at(entry, name) for entry in tracked)
        if not is_tracked and not os.path.lexists(root / name):
            raise NotDone(f"There is no file or folder {written} (no patterns); nothing was committed.")

    present = [str(root / name) for name in names if os.path.lexists(root / name)]
    if present:
        _, ignored = porcelain.add(repository, present)
        if ignored:
            raise NotDone(
                f"{_listed(sorted(map(str, ignored)))}: ignored by .gitignore; nothing was committed."
            )

    meant = [entry for entry in tracked if any(_is_at(entry, name) for name in names)]
    gone = [entry for entry in meant if not os.path.lexists(root / entry)]
    if gone:
        repository.get_worktree().stage(gone)


def _is_at(entry: str, name: str) -> bool:
    """Whether a tracked file is the file `name`, or in the folder of this name; empty: the repository's own."""
    return not name or entry == name or entry.startswith(f"{name}/")


def switch(request: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], bytes]:
    branch = str(request["branch"])
    with opened(request) as repository:
        if request["create"]:
            _begin_branch(repository, branch)
        else:
            _check_out(repository, branch)
        sentence = f"On {_branch(repository) or branch} now. {_branches(repository)}\n"
    return {"branch": branch}, sentence.encode("utf-8", "replace")


def _begin_branch(repository: Quiet, branch: str) -> None:
    """Begin a branch here. Files stay as they are, whether changed or not."""
    if is_empty(repository):
        raise NotDone("There is no commit yet, from which a branch could begin; git.commit makes one.")
    porcelain.branch_create(repository, branch)
    repository.refs.set_symbolic_ref(b"HEAD", b"refs/heads/" + branch.encode())


def _check_out(repository: Quiet, branch: str) -> None:
    """Check out a branch, or else a commit."""
    commit = commit_named(repository, branch)
    if commit is None:
        raise NotDone(
            f"There is no branch or commit {branch!r}; create=true begins a branch. {_branches(repository)}"
        )

    is_branch = branch.encode() in porcelain.branch_list(repository)
    target = branch if is_branch else commit.id
    try:
        porcelain.checkout(repository, target)
    except porcelain.CheckoutError as error:
        raise NotDone(f"{error} (git.commit keeps them.)") from None


def _branches(repository: Quiet) -> str:
    names = sorted(_text(name) for name in porcelain.branch_list(repository))
    return f"Branches: {_listed(names) or 'none'}."


def _branch(repository: Quiet) -> str:
    try:
        return _text(porcelain.active_branch(repository))
    except (KeyError, IndexError, ValueError):
        return ""


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
