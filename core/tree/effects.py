"""What calls really changed in a live directory, and what happens to it: one transaction per inspection.

After a call that could write, the session inspects the overlay. The changes that are new form one transaction. It is
applied at once as a whole if its highest impact is within the rights of every agent that could have caused it and
nothing else speaks against it; otherwise it waits as a whole for a person. What an inspection saw is an outcome.
Everything that follows from it is derived here, live and on replay, so a forged judgement is named.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from iact.core.errors import ReplayMismatch
from iact.core.gate.additions import ActingKind
from iact.core.gate.effects import Effect, highest, rate
from iact.core.gate.gate import ASK_FROM
from iact.core.gate.provenance import NOTHING, from_tool, join
from iact.core.ports import JSON, AppliedChange, ChangeKind, FileChange, FileState
from iact.core.records.calls import Call, Effects, Held, Result, Settle
from iact.core.records.codec import Misfit, decode_list, encode_part
from iact.core.records.control import ApplyChanges, DropChanges
from iact.core.records.parts import Blob, Listed, PathChange, PathOutcome, PathState
from iact.core.records.record import Record
from iact.core.tree import origin
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.expectations import expect, expect_content
from iact.core.tree.installing import only_installs
from iact.core.tree.live_folder import After, Intention, LiveFolder, PendingChange, UnseenCall
from iact.core.tree.tree import Tree

INLINE: Final = 16_384
"""The longest list of changes or paths, in bytes, that a record holds inline; a longer one is a blob."""

_LITERAL: Final = frozenset({"files.write", "files.edit"})
"""Functions of shipped modules that write nothing but what their arguments say."""

_NAMED: Final = 3
"""The most names in a sentence."""


@dataclass(frozen=True, slots=True)
class Look:
    """What an inspection of the overlay saw. `seen`: the last record before it. `changes`: what differs from the known
    state.

    `gone`: changes that waited and no longer differ from the directory.
    """

    after: After
    seen: int
    changes: tuple[FileChange, ...]
    gone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LookOutcome:
    """What follows from an inspection.

    `fresh`: the transaction. `restated`: changes that wait already, compared with a directory that has changed
    meanwhile.
    """

    works: tuple[UnseenCall, ...]
    fresh: Mapping[str, PendingChange]
    restated: tuple[FileChange, ...]
    effect: Effect
    held: Held
    reason: str

    @property
    def applies(self) -> bool:
        """Whether the transaction is applied at once."""
        return bool(self.fresh) and not self.held

    def content(self, looked: Effects) -> Effects:
        """Build the record of the outcome, from `looked`: the record of what was seen."""
        fresh = bool(self.fresh)
        return replace(
            looked,
            calls=tuple(work.n for work in self.works),
            impact=self.effect.impact if fresh else None,
            why=self.effect.why if fresh else None,
            apply=self.applies if fresh else None,
            held=self.held,
            reason=self.reason,
        )


# --- what follows from an inspection -----------------------------------------------------------------------------


def begin(tree: Tree, agent: Agent, pending: Pending, record: Record, call: Call) -> None:
    """Note a call that is about to be made and can write in a live directory, so its effects are attributed to it."""
    if not tree.live.overlay or (call.impact or 0) <= 0:
        return
    function = call.function
    loaded = tree.modules.get(function.split(".", 1)[0])
    if loaded is not None and loaded.manifest.needs.workspace == "write":
        labels = origin.written(tree, agent, pending)
        tree.live.working[record.n] = UnseenCall(
            record.n, agent.path, function, labels, installs=pending.installs is not None
        )


def unchanged(tree: Tree, result: Result) -> None:
    """Apply a result's statement that its call, and all calls before it, left nothing new in the overlay."""
    until = result.unchanged
    for n in [one for one in tree.live.working if one <= until]:
        del tree.live.working[n]


def difference(
    folder: LiveFolder, changes: Iterable[FileChange]
) -> tuple[tuple[FileChange, ...], tuple[str, ...]]:
    """Return what is new since the last inspection, and what waited and is gone."""
    known, found = folder.pending, {one.path: one for one in changes}
    fresh = tuple(one for path, one in found.items() if path not in known or known[path].change != one)
    return fresh, tuple(path for path in known if path not in found)


def weigh(tree: Tree, look: Look, n: int) -> LookOutcome:
    """Judge what an inspection saw. `n`: the record that reports it."""
    folder = tree.live
    works = tuple(work for work in folder.working.values() if work.n <= look.seen)
    fresh = [one for one in look.changes if not _waits(folder, one)]
    effects = {
        one.path: rate(one, folder.own.get(one.path), tree.policy, additions=tree.follows_1_3)
        for one in fresh
    }
    worst = highest(effects.values())
    where = next((path for path, one in effects.items() if one is worst), "")
    effect = replace(worst, why=f"{where}: {worst.why}") if where else worst
    held: Held = ""
    reason = ""
    if fresh:
        acting = [(path, one.acts) for path, one in effects.items() if one.acts is not None]
        held, reason = _held(tree, look, works, fresh, effect, acting)
    agents = tuple(sorted({work.agent for work in works}))
    labels, calls = join(work.labels for work in works), tuple(work.n for work in works)
    changed = {}
    for one in fresh:
        before = folder.pending.get(one.path)
        changed[one.path] = PendingChange(
            one, effects[one.path], n, held, reason,
            _union(before.calls if before else (), calls),
            _union(before.agents if before else (), agents),
            labels | (before.labels if before else frozenset()),
        )  # fmt: skip
    return LookOutcome(
        works, changed, tuple(one for one in look.changes if _waits(folder, one)), effect, held, reason
    )


def _waits(folder: LiveFolder, change: FileChange) -> bool:
    """Whether exactly this change waits already, even if the directory under the overlay has changed since."""
    known = folder.pending.get(change.path)
    return known is not None and known.change.now == change.now


_Item = TypeVar("_Item", int, str)
_Row = TypeVar("_Row", str, PathChange, PathOutcome)


def _union(one: tuple[_Item, ...], other: tuple[_Item, ...]) -> tuple[_Item, ...]:
    return tuple(dict.fromkeys(one + other))


def _held(
    tree: Tree,
    look: Look,
    works: tuple[UnseenCall, ...],
    fresh: list[FileChange],
    effect: Effect,
    acting: Sequence[tuple[str, ActingKind]],
) -> tuple[Held, str]:
    """Return what keeps a transaction from being applied at once, and the sentence for people.

    `acting`: the paths that something runs or reads by itself.
    """
    if tree.lockdown or tree.policy.lockdown:
        return "lockdown", "Everything is locked down."
    # A job that an agent left running after its calls can have changed something, too.
    writers = tuple(sorted({agent for _, agent in tree.shared.busy if agent in tree.agents}))
    if look.after == "open" or not (works or writers):
        return "unasked", "It was found in the overlay, and no call that ended accounts for it."
    for agent, function, limit in _limits(tree, works, writers):
        if effect.impact > limit:
            what = (
                f"the intent of {agent} is {limit:g}"
                if not function
                else f"{agent} may do {limit:g} with {function}"
            )
            return "impact", f"The changes have impact {effect.impact:g}, and {what}."
    strange = origin.strange(tree, _labels(tree, works, writers))
    if not writers and only_installs(works, [one.path for one in fresh]):
        strange -= {from_tool(work.function) for work in works}
    if acting and strange:
        return "provenance", _acts(acting, strange)
    if effect.impact >= ASK_FROM and strange:
        return (
            "provenance",
            f"The changes have impact {effect.impact:g} and are touched by {_names(strange)}.",
        )
    met = [one.path for one in fresh if one.conflict]
    if met:
        return "conflict", f"Somebody changed {_names(met)} in the directory meanwhile."
    met = _touching(tree.live.pending, [one.path for one in fresh])
    if met:
        return "pending", f"It builds on changes that wait already: {_names(met)}."
    return "", ""


def _acts(acting: Sequence[tuple[str, ActingKind]], strange: Iterable[str]) -> str:
    """The sentence about files that something runs or reads by itself, from an agent that has read a stranger."""
    path, kind = acting[0]
    more = ""
    if len(acting) > 1:
        more = f" So it is with {_names(other for other, _ in acting[1:])}."
    return f"{path}: {kind.reason}{more} It is touched by {_names(strange)}."


def _limits(
    tree: Tree, works: tuple[UnseenCall, ...], writers: tuple[str, ...]
) -> Iterable[tuple[str, str, float]]:
    """Yield who could have caused a change, and how much each may do. Names a function if its cap is what limits."""
    for work in works:
        grant = tree.grant_of(work.agent)
        cap = grant.scope.cap(work.function)
        yield work.agent, work.function if cap < grant.intent else "", min(grant.intent, cap)
    for agent in writers:
        yield agent, "", tree.grant_of(agent).intent


def _labels(tree: Tree, works: tuple[UnseenCall, ...], writers: tuple[str, ...]) -> frozenset[str]:
    agents = {work.agent for work in works} | set(writers)
    read = [tree.agents[path].labels for path in agents if path in tree.agents]
    kept = [tree.shared.held.get(holder, NOTHING) for holder in tree.shared.busy]
    return join([*(work.labels for work in works), *read, *kept, _met(tree, works, writers)])


def _met(tree: Tree, works: tuple[UnseenCall, ...], writers: tuple[str, ...]) -> frozenset[str]:
    """The labels of the files, if what was written can be made of them: a script reads what it likes."""
    says_it_all = all(work.function in _LITERAL for work in works) and not writers
    if says_it_all or not tree.follows_1_3:
        return NOTHING
    return tree.shared.files


def _touching(pending: Mapping[str, PendingChange], paths: Iterable[str]) -> list[str]:
    """Return the paths that are equal to, below or above a path that waits."""
    around = {above for one in pending for above in parents(one)}
    return [
        path
        for path in paths
        if path in pending or path in around or any(above in pending for above in parents(path))
    ]


def parents(path: str) -> Iterable[str]:
    """The folders that contain a path, the innermost first."""
    while "/" in path:
        path = path.rsplit("/", 1)[0]
        yield path


def _names(many: Iterable[str]) -> str:
    names = sorted(many)
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


# --- the rules of the fold --------------------------------------------------------------------------------


def changed(tree: Tree, record: Record, said: Effects) -> None:
    """Apply an `effects` record: the overlay was inspected, and something was new."""
    folder, look = tree.live, look_of(tree, record, said)
    expect(
        tree, record, folder.overlay and folder.intended is None, "looks at an overlay that is not at rest"
    )
    expect(tree, record, 0 < look.seen < record.n, f"looks back from record {look.seen}")
    news = all(path in folder.pending for path in look.gone) and all(
        one.path not in folder.pending or folder.pending[one.path].change != one for one in look.changes
    )
    expect(tree, record, news, "tells what was known")
    verdict = weigh(tree, look, record.n)
    expect_content(tree, record, verdict.content(said))
    for work in verdict.works:
        origin.touch_files(tree, work.labels)
        del folder.working[work.n]
    for path in look.gone:
        folder.pending.pop(path, None)
    for one in verdict.restated:
        folder.pending[one.path] = replace(folder.pending[one.path], change=one, n=record.n)
    if verdict.applies:
        folder.intended = Intention(record.n, "apply", verdict.fresh)
    else:
        folder.pending.update(verdict.fresh)


def intend(tree: Tree, record: Record, said: ApplyChanges | DropChanges) -> None:
    """Note that a person applies or drops waiting changes. The next `settle` reports the result."""
    folder, op = tree.live, said.OP
    paths = unlisted(tree, record, "paths", said.paths, str)
    known = all(path in folder.pending for path in paths)
    expect(tree, record, known and folder.intended is None, f"means to {op} what does not wait")
    changes = {path: folder.pending[path] for path in paths if path in folder.pending}
    dropping = isinstance(said, DropChanges)
    force = frozenset(paths) if isinstance(said, ApplyChanges) and said.force else frozenset()
    folder.intended = Intention(record.n, "drop" if dropping else "apply", changes, force)


def settle(tree: Tree, record: Record, said: Settle) -> None:
    """Apply the result of an intention that was recorded in advance."""
    folder, intended = tree.live, tree.live.intended
    expect(
        tree,
        record,
        intended is not None and intended.n == said.of,
        "settles what nobody meant to do",
    )
    if intended is None:
        return
    left = {one.path: one for one in unlisted(tree, record, "left", said.left, PathOutcome)}
    expect(tree, record, left.keys() <= intended.changes.keys(), "leaves what nobody meant to do")
    for path, item in intended.changes.items():
        if path in left:
            conflict = left[path].outcome == "conflict"
            folder.pending[path] = replace(
                item, change=replace(item.change, conflict=conflict or item.change.conflict), n=record.n,
                held="conflict" if conflict else "failed", reason=left[path].why,
            )  # fmt: skip
            continue
        folder.pending.pop(path, None)
        if intended.op == "apply":
            _own(folder, item.change)
    folder.intended = None


def _own(folder: LiveFolder, change: FileChange) -> None:
    """Count an applied change as the session's own if the file is new or was its own before."""
    if change.now is None:
        folder.own.pop(change.path, None)
    elif change.kind == "add" or change.path in folder.own:
        folder.own[change.path] = change.now


# --- the form in records -----------------------------------------------------------------------------------


def look_content(look: Look) -> tuple[Effects, dict[str, bytes]]:
    """Build the `effects` record of an inspection before it is judged, and the blobs that it names."""
    blobs: dict[str, bytes] = {}
    changes = listed(tuple(change_row(one) for one in look.changes), blobs)
    gone = listed(look.gone, blobs)
    return Effects(after=look.after, seen=look.seen, changes=changes, gone=gone, calls=()), blobs


def listed(items: tuple[_Row, ...], blobs: dict[str, bytes]) -> Listed[_Row]:
    """A list as a record holds it: the list itself, or the name of a blob if it is long."""
    rows = [one if isinstance(one, str) else encode_part(one) for one in items]
    data = json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()
    if len(data) <= INLINE:
        return items
    digest = hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return Blob(sha256=digest, size=len(data))


def unlisted(
    tree: Tree, record: Record, name: str, value: Listed[_Row], kind: type[_Row]
) -> tuple[_Row, ...]:
    """The inverse of `listed`.

    Raises:
        ReplayMismatch: the blob does not hold such a list.
    """
    if not isinstance(value, Blob):
        return value
    try:
        data = json.loads(tree.blobs(value.sha256))
        return decode_list(kind, data)
    except (ValueError, RecursionError, Misfit):
        raise _malformed(record, name) from None


def look_of(tree: Tree, record: Record, said: Effects) -> Look:
    """Read the inspection that an `effects` record holds.

    Raises:
        ReplayMismatch: it holds an invalid change.
    """
    rows = unlisted(tree, record, "changes", said.changes, PathChange)
    changes = [_change(one) for one in rows]
    if any(one is None for one in changes):
        raise _malformed(record, "changes")
    return Look(
        said.after,
        said.seen,
        tuple(one for one in changes if one is not None),
        unlisted(tree, record, "gone", said.gone, str),
    )


def outcome_rows(some: Iterable[AppliedChange]) -> tuple[PathOutcome, ...]:
    """Outcomes as a `settle` record holds them."""
    return tuple(PathOutcome(path=one.path, outcome=one.outcome, why=one.why) for one in some)


def left_json(some: Iterable[AppliedChange]) -> list[JSON]:
    """Outcomes as clients receive them."""
    return [encode_part(one) for one in outcome_rows(some)]


def change_row(change: FileChange) -> PathChange:
    """A change as records and clients have it."""
    return PathChange(
        path=change.path,
        kind=change.kind,
        was=_row(change.was),
        now=_row(change.now),
        conflict=change.conflict,
    )


def _row(state: FileState | None) -> PathState | None:
    if state is None:
        return None
    return PathState(
        type=state.type, mode=state.mode, size=state.size, content=state.sha256, target=state.target
    )


_SIDES: Final[Mapping[ChangeKind, tuple[bool, bool]]] = {
    "add": (False, True), "modify": (True, True), "delete": (True, False),
}  # fmt: skip
"""Whether a file existed before, and exists now."""


def _change(row: PathChange) -> FileChange | None:
    """Read a change from a record; None if the row is not a valid change."""
    if (row.was is not None, row.now is not None) != _SIDES[row.kind]:
        return None
    return FileChange(row.path, row.kind, _state(row.was), _state(row.now), row.conflict)


def _state(row: PathState | None) -> FileState | None:
    return FileState(row.type, row.mode, row.size, row.content, row.target) if row is not None else None


def _malformed(record: Record, name: str) -> ReplayMismatch:
    return ReplayMismatch(
        f"Record {record.n} ({record.kind}) differs: its field {name!r} is malformed.", n=record.n
    )
