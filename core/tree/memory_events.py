"""What of a session is worth remembering: one pure function of the tree and the record that it has just taken in.

A running session and a rebuild of memory share it, so both leave the same fragments. The sources of a text are what the
tree knows about its agent (`core.tree.origin`), so memory marks as untrusted what the gate would call untrusted, and
outside content recalled from memory taints its reader again: storing cleans nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Final, get_args

from iact.core.ports import FragmentKind, MemoryEvent, Occasion, WantedScope
from iact.core.records.calls import Result
from iact.core.records.control import Inject
from iact.core.records.dialogue import Compress, Reply, Say
from iact.core.records.record import Record
from iact.core.records.session import Adopt
from iact.core.tree import origin
from iact.core.tree.adoption import FOREIGN
from iact.core.tree.apply import take_in
from iact.core.tree.tree import Tree

_FAILURE: Final = 300
"""The most characters of an error that are remembered."""


def project_of(tree: Tree) -> str:
    """The live directory that groups this session with others; empty for a scratch workspace."""
    return "" if tree.workspace == "scratch" else tree.workspace


def memory_event(tree: Tree, record: Record) -> MemoryEvent | None:
    """Return the memory event of the record that `tree` has just taken in; None for most records."""
    match record.content:
        case Say(client=client):
            return _made(tree, record, "say", record.body[client:], first=len(tree.said) == 1, own=True)
        case Inject():
            return _made(tree, record, "correction", record.body, own=True)
        case Result(function="REMEMBER", status="ok") as result:
            return _kept(tree, record, result)
        case Result(function=function, status="error") if "." in function:
            shown = " ".join(record.body.split())[:_FAILURE]
            return _made(tree, record, "failure", f"{function} failed: {shown}")
        case Reply(plan=plan) if plan and record.agent == "/":
            return None  # the plan itself reported it
        case Reply(asks=True):
            return None  # a question is no result; what its caller answers may be one
        case Reply(status=status):
            ok = status == "ok"
            return _made(tree, record, "reply" if ok else "failure", record.body)
        case Compress():
            return _made(tree, record, "cut", record.body)
    return None


def memory_events(
    records: Sequence[Record], blobs: Callable[[str], bytes], *, foreign: bool = False
) -> Iterator[MemoryEvent]:
    """Yield everything worth remembering in one journal. `blobs` reads a blob by its SHA-256.

    Content of a `foreign` session, or from before an adoption, is untrusted, regardless of its recorded author.

    Raises:
        ReplayMismatch: the records don't form a session.
        JournalCorrupt: one of them says something impossible.
    """
    tree = Tree(strict=False, blobs=blobs)
    theirs = next((record.n for record in reversed(records) if isinstance(record.content, Adopt)), 0)
    for record in records:
        take_in(tree, record)
        found = memory_event(tree, record)
        if found is not None:
            strange = foreign or record.n < theirs
            yield dataclasses.replace(found, untrusted=_marked(found.untrusted)) if strange else found


def _marked(labels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*labels, FOREIGN}))


def _kept(tree: Tree, record: Record, result: Result) -> MemoryEvent | None:
    """What an agent stored with REMEMBER."""
    wanted, replaced = result.kind_of, result.supersedes
    kind: FragmentKind | None = next((one for one in get_args(FragmentKind) if one == wanted), None)
    replaces = (replaced,) if replaced else ()
    return _made(tree, record, "remember", record.body, kind=kind, supersedes=replaces, scope=result.scope)


def _made(
    tree: Tree,
    record: Record,
    occasion: Occasion,
    text: str,
    *,
    first: bool = False,
    kind: FragmentKind | None = None,
    own: bool = False,
    supersedes: tuple[str, ...] = (),
    scope: WantedScope = "",
) -> MemoryEvent | None:
    """Build the event; None if the text is empty. `own`: a person wrote it, so the agent's labels do not apply."""
    if not text.strip():
        return None
    agent = tree.agents[record.agent]
    said = agent.labels if agent.plan is None else agent.labels | agent.plan.failures
    labels = frozenset[str]() if own else origin.strange(tree, said)
    return MemoryEvent(
        tree.session,
        record.n,
        record.agent,
        record.at,
        occasion,
        text,
        first=first,
        kind=kind,
        untrusted=tuple(sorted(labels)),
        project=project_of(tree),
        supersedes=supersedes,
        scope=scope,
    )
