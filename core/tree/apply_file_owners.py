"""How it becomes known that a child changed what another child had written, and who is told.

The files are shared, and every child may change them: a file has an owner only in so far as somebody wrote it last.
An agent that changes what one neither above nor below it wrote is told so behind the result of its call. The
agent above both is told with the answer that comes up from there, and decides which version stays. Nothing is prevented
or put back: only that agent knows whether the change was meant. Of calls that wrote the file at the same time nobody
knows which was last: their agents are told that they met, and not that one changed what the other wrote.

Nobody is told what was asked for: a file that the writer's task names, or what a step of a plan does that builds on the
other's. That two write at the same time, nobody asks for.

What a call changed is an outcome: the `effects` of a live directory, or the paths in a `result` that differ from the
version before. Where neither says it (no versions are kept, or it was the first), what the call is known to write
counts. Of calls that ran at the same time, those did it that are known to write the file. If none is, and several may
have, it can't be told who did it, and nobody is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from iact.core import path_names
from iact.core.gate.writes import paths_written
from iact.core.records.calls import Call, Result
from iact.core.records.dialogue import Upload
from iact.core.records.record import Record
from iact.core.tree import origin
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.file_owners import Overwriting, WritingCall
from iact.core.tree.named_files import NamedFiles
from iact.core.tree.plan_run import PlanRun
from iact.core.tree.tree import Tree

_LITERAL: Final = frozenset({"files.write", "files.edit"})
"""Functions of shipped modules that write nothing but what their arguments say."""

_WORKSPACE: Final = "/workspace/"
"""Where files are of which a call says a path."""

_CACHES: Final = frozenset(
    {".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".cache"}
    | {".venv", ".tox", ".nox", ".ipynb_checkpoints", "node_modules"}
)
"""Folders whose files nobody wrote as work."""

_MOST_FILES: Final = 10_000
"""The most files whose owners are known; those that were written longest ago are forgotten."""

_MOST_UNTOLD: Final = 100
"""The most changes that wait to be told."""

_MOST_MEETINGS: Final = 1_000
"""The most pairs of agents of which it is known that they were told of a file that both wrote at the same time."""


def begin(tree: Tree, agent: Agent, pending: Pending, record: Record, call: Call) -> None:
    """Note a call that may write from now on: `record` is its `call`."""
    known = tree.file_owners
    # Of the calls before, those count that may still be accounted for.
    still_open = _unaccounted(tree)
    known.calls = {n: writing for n, writing in known.calls.items() if n in still_open}

    spec = pending.spec
    writes_shared = (call.impact or 0) > 0 and not spec.core and origin.may_write(tree, spec.module or "")
    is_shared = len(tree.agents) > 1 and tree.follows_1_3
    if not writes_shared or not is_shared or pending.base or pending.bound is None:
        return

    # What an agent writes in its own layer is nobody else's.
    if tree.has_layers and tree.grant_of(agent.path).intent < 1:
        return
    known.calls[record.n] = WritingCall(
        agent.path, _in_workspace(paths_written(spec.name, pending.bound.arguments)), spec.name in _LITERAL
    )


def _unaccounted(tree: Tree) -> AbstractSet[int]:
    """The calls of which it is not known yet what they changed."""
    if tree.live.overlay:
        return tree.live.working.keys()
    if tree.shared.version:
        return tree.shared.since
    return tree.shared.writing.keys()


def _in_workspace(paths: Iterable[str]) -> frozenset[str]:
    """The paths in the workspace, as records have them."""
    inside = (path.removeprefix(_WORKSPACE) for path in paths if path.startswith(_WORKSPACE))
    return frozenset(map(path_names.encode, inside))


def end(tree: Tree, pending: Pending, result: Result) -> None:
    """Apply what the outcome of a call says of the files, before the version that it names is the latest."""
    known = tree.file_owners
    writing = known.calls.get(pending.call)
    # What a call changed in a live directory is known by now from the look at the overlay (`looked`).
    if writing is None or tree.live.overlay:
        return

    is_known = bool(result.version) and result.version == tree.shared.version
    if is_known:
        return
    if result.changed:
        concurrent = (known.calls[n] for n in result.beside if n in known.calls)
        by_calls = [path for path in result.changed if path not in known.uploaded]
        known.uploaded -= set(result.changed)
        _change(tree, by_calls, [writing, *concurrent])
    elif result.status == "ok" and not (result.version and tree.shared.version):
        # Otherwise the versions differ in times alone: no content is another's than before.
        _change(tree, sorted(writing.names), [writing])


def looked(tree: Tree, paths: Iterable[str], calls: Iterable[int]) -> None:
    """Apply what a look at the overlay of a live directory found: `calls` may have changed `paths`."""
    known = tree.file_owners
    _change(tree, paths, [known.calls[n] for n in calls if n in known.calls])


def upload(tree: Tree, uploaded: Upload) -> None:
    """Note a file that a person put into the workspace: the next version has it, by no call."""
    if uploaded.path:
        tree.file_owners.uploaded.add(uploaded.path)
        tree.file_owners.owners.pop(uploaded.path, None)


def restore(tree: Tree, path: str) -> None:
    """Note that a person restored the files, or the one at `path`: what is there now is by nobody's choice but theirs."""
    if path:
        tree.file_owners.owners.pop(path, None)
    else:
        tree.file_owners.owners.clear()


# --- who it was -------------------------------------------------------------------------------------------------


def _change(tree: Tree, paths: Iterable[str], calls: Collection[WritingCall]) -> None:
    """Note that one of these calls changed each of these files."""
    owners = tree.file_owners.owners
    asked = _Asked(tree)
    for path in paths:
        if not _CACHES.isdisjoint(path.split("/")):
            continue

        before = owners.pop(path, frozenset())
        surely = frozenset(writing.agent for writing in calls if path in writing.names)
        authors = surely or frozenset(writing.agent for writing in calls if not writing.only_these)
        if len(authors) == 1:
            surely = authors
        for author in sorted(surely):
            _meet(tree, path, author, surely - {author})
            # What may have been its own before is not taken for another's.
            if author not in before:
                _overwrite(tree, path, author, before - surely, asked)
        # The newest is last.
        if authors:
            owners[path] = authors

    while len(owners) > _MOST_FILES:
        del owners[next(iter(owners))]


def _meet(tree: Tree, path: str, author: str, others: Iterable[str]) -> None:
    """Note that an agent wrote a file while these did. They are told of a file once, however often they write it so."""
    known = tree.file_owners
    strangers = tuple(
        other for other in _strangers(author, others) if (author, other, path) not in known.meetings
    )
    if not strangers:
        return

    if len(known.meetings) >= _MOST_MEETINGS:
        known.meetings.clear()
    known.meetings |= {(author, other, path) for other in strangers}
    decides = _above_all(tree, [author, *strangers])
    _note(tree, Overwriting(path, author, strangers, decides, at_once=True))


def _overwrite(tree: Tree, path: str, author: str, owners: Iterable[str], asked: _Asked) -> None:
    """Note that an agent changed a file that these may have written, if nobody asked the agent to."""
    strangers = _strangers(author, owners)
    if not strangers or _is_full(tree, author) or asked.builds_on(author, strangers):
        return

    decides = _above_all(tree, [author, *strangers])
    if not asked.names(path, author, decides):
        _note(tree, Overwriting(path, author, strangers, decides))


def _strangers(author: str, others: Iterable[str]) -> tuple[str, ...]:
    """Those of these agents that are neither above nor below one, nor the same."""
    return tuple(other for other in sorted(others) if not _is_family(other, author))


def _readers(tree: Tree, author: str) -> list[list[Overwriting]]:
    """What waits to be told to those who hear of what this agent changed. A plan reads nothing."""
    known = tree.file_owners
    if tree.agents[author].plan is None:
        return [known.for_callers, known.for_writers]
    return [known.for_callers]


def _is_full(tree: Tree, author: str) -> bool:
    """Whether nothing more can wait to be told, so that nothing has to be found out."""
    return all(len(untold) >= _MOST_UNTOLD for untold in _readers(tree, author))


def _note(tree: Tree, overwriting: Overwriting) -> None:
    for untold in _readers(tree, overwriting.by):
        if overwriting not in untold and len(untold) < _MOST_UNTOLD:
            untold.append(overwriting)


def _is_family(one: str, other: str) -> bool:
    """Whether two agents are the same, or one is above the other."""
    return one == other or _is_below(one, other) or _is_below(other, one)


def _is_below(path: str, above: str) -> bool:
    return path.startswith(f"{above.rstrip('/')}/") and path != above


def _above_all(tree: Tree, paths: Collection[str]) -> str:
    """The lowest agent that is above all of these and is no plan: a plan reads nothing."""
    for path in _callers(tree, next(iter(paths))):
        if tree.agents[path].plan is None and all(_is_below(other, path) for other in paths):
            return path
    return "/"


def _callers(tree: Tree, path: str) -> Iterator[str]:
    """The agents above one, the nearest first."""
    while tree.agents[path].caller != "user":
        path = tree.agents[path].caller
        yield path


class _Asked:
    """What agents were asked to do, as far as one change of files needs it. Each task is read once, for all files."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._named = dict[str, NamedFiles]()
        self._ordered = dict[tuple[str, str], bool]()

    def names(self, path: str, author: str, decides: str) -> bool:
        """Whether the task of an agent, or of one between it and who decides, names the file."""
        for agent in (author, *_callers(self._tree, author)):
            if agent == decides:
                return False
            if agent not in self._named:
                self._named[agent] = NamedFiles(_tasks(self._tree.agents[agent]))
            if self._named[agent].names(path):
                return True
        return False

    def builds_on(self, author: str, owners: Iterable[str]) -> bool:
        """Whether plans have ordered that an agent goes on with what each of these has done."""
        return all(self._goes_on(author, owner) for owner in owners)

    def _goes_on(self, author: str, owner: str) -> bool:
        pair = (author, owner)
        if pair not in self._ordered:
            self._ordered[pair] = _precedes(self._tree, owner, author)
        return self._ordered[pair]


def _tasks(agent: Agent) -> Iterator[str]:
    """What an agent, or a plan, was asked to do."""
    if agent.plan is not None:
        # Its caller wrote these steps, unless a planner did.
        yield agent.plan.source.goal
        for step in agent.plan.source.nodes.values():
            yield "\n".join([step.task, *map(str, step.params.values())])
    yield agent.mail.task
    for heard in agent.context.chronicle.heard:
        yield heard.text


def _precedes(tree: Tree, owner: str, author: str) -> bool:
    """Whether a plan has ordered that the one's step builds on the other's."""
    for path in _callers(tree, author):
        plan = tree.agents[path]
        if plan.plan is not None and _is_below(owner, path):
            return _is_ordered(plan, plan.plan, _child_of(plan, owner), _child_of(plan, author))
    return False


def _child_of(plan: Agent, path: str) -> str:
    """The child of a plan that an agent is, or is below."""
    name = path.removeprefix(f"{plan.path.rstrip('/')}/").partition("/")[0]
    return f"{plan.path.rstrip('/')}/{name}"


def _is_ordered(plan: Agent, run: PlanRun, owner: str, author: str) -> bool:
    """Whether the step that a child works on comes after one that another child has ended."""
    ended = {
        step.node for step in run.settled.values() if step.value is not None and step.value.origin == owner
    }
    at_work = [pending.node for pending in plan.actions if pending.child == author]
    nodes = run.state.nodes
    seen: set[str] = set()
    while at_work:
        step = at_work.pop()
        if step in ended:
            return True
        if step in nodes and step not in seen:
            seen.add(step)
            at_work += nodes[step].node.dependencies
    return False


# --- who is told ------------------------------------------------------------------------------------------------


def for_writer(tree: Tree, agent: Agent) -> list[Overwriting]:
    """Return what an agent is told behind the result of its call, once."""
    known = tree.file_owners
    told = [overwriting for overwriting in known.for_writers if overwriting.by == agent.path]
    if told:
        known.for_writers = [overwriting for overwriting in known.for_writers if overwriting not in told]
    return told


def for_caller(tree: Tree, caller: Agent, child: Agent) -> list[Overwriting]:
    """Return what an agent is told with the answer of its child, once: what was done below that child.

    The child's work is over, so what it was not told behind a result it is not told any more.
    """
    known = tree.file_owners
    known.for_writers = [overwriting for overwriting in known.for_writers if overwriting.by != child.path]
    told = [
        overwriting
        for overwriting in known.for_callers
        if overwriting.decides == caller.path
        and (overwriting.by == child.path or _is_below(overwriting.by, child.path))
    ]
    if told:
        known.for_callers = [
            overwriting
            for overwriting in known.for_callers
            if overwriting not in told and not any(_is_same_meeting(overwriting, other) for other in told)
        ]
    return told


def _is_same_meeting(one: Overwriting, other: Overwriting) -> bool:
    """Whether two notes say of each of two agents that it wrote a file while the other did. Who decides hears of it once."""
    is_of_both = one.path == other.path and one.of == (other.by,) and other.of == (one.by,)
    return is_of_both and one.at_once and other.at_once
