"""The statements that a session brings: one pure function of the tree and the record that it has just taken in.

A running session and a rebuild of memory share it, so both leave the same statements. They come from what people write,
once an agent has read it (what was withdrawn, reworded or never delivered leaves nothing), and from REMEMBER. The sources
of a text are what the tree knows about its agent (`core.tree.origin`), so memory marks as untrusted what the gate would
call untrusted, and outside content recalled from memory taints its reader again: storing cleans nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Final, get_args

from iact.core.ports import NewStatement, StatementKind, StatementOrigin, StatementScope
from iact.core.records.calls import Result
from iact.core.records.control import Inject
from iact.core.records.dialogue import Distill
from iact.core.records.record import Record
from iact.core.records.session import Adopt
from iact.core.tree import origin
from iact.core.tree.adoption import FOREIGN
from iact.core.tree.apply import take_in
from iact.core.tree.distilling import read
from iact.core.tree.statements import Clause, statements_in, statements_kept
from iact.core.tree.tree import Tree

_DISTILLED: Final = 100
"""The number after which those of distilled statements begin: rules number theirs from 0."""


def project_of(tree: Tree) -> str:
    """The live directory that groups this session with others; empty for a scratch workspace."""
    return "" if tree.workspace == "scratch" else tree.workspace


def statements_of(tree: Tree, record: Record) -> list[NewStatement]:
    """Return the statements that the record brings which `tree` has just taken in; none for most records, and none at
    all while memory is off."""
    if not tree.remembers:
        return []
    match record.content:
        case Result(function="REMEMBER", status="ok") as result:
            return _remembered(tree, record, result)
        case Distill() as distilled:
            return _distilled(tree, distilled, record.body)
        case Inject() if record.agent in tree.agents and tree.agents[record.agent].plan is not None:
            # A plan considers it as soon as it is there.
            return _said(tree, record, record.n, record.body)

    agent = tree.agents.get(record.agent)
    if agent is None:
        return []
    found: list[NewStatement] = []
    for heard in reversed(agent.context.chronicle.heard):
        if heard.read != record.n:
            break
        if heard.own:
            found = [*_said(tree, record, heard.record, heard.own), *found]
    return found


def statements_in_journal(
    records: Sequence[Record], blobs: Callable[[str], bytes], *, foreign: bool = False
) -> Iterator[NewStatement]:
    """Yield all statements of one journal. `blobs` reads a blob by its SHA-256.

    Content of a `foreign` session, or from before an adoption, is untrusted, regardless of its recorded author.

    Raises:
        ReplayMismatch: the records don't form a session.
        JournalCorrupt: one of them says something impossible.
    """
    tree = Tree(strict=False, blobs=blobs)
    theirs = next((record.n for record in reversed(records) if isinstance(record.content, Adopt)), 0)
    for record in records:
        take_in(tree, record)
        strange = foreign or record.n < theirs
        for statement in statements_of(tree, record):
            yield _distrusted(statement) if strange else statement


def _distrusted(statement: NewStatement) -> NewStatement:
    """The statement of somebody else's session: it can't hold for this person."""
    marked = tuple(sorted({*statement.untrusted, FOREIGN}))
    scope: StatementScope = "project" if statement.project else "session"
    return dataclasses.replace(statement, untrusted=marked, scope=scope)


def _said(tree: Tree, record: Record, message: int, text: str) -> list[NewStatement]:
    """The statements of a person's message, which an agent has read now."""
    clauses = statements_in(text)
    return [
        _made(tree, record, message, ordinal, clause, "said", _scope_of_said(tree, clause))
        for ordinal, clause in enumerate(clauses)
    ]


def _distilled(tree: Tree, distilled: Distill, answer: str) -> list[NewStatement]:
    """What a model found in a person's messages. Each holds since its message, so a later one replaces it."""
    heard = tree.root.context.chronicle.heard
    return [
        NewStatement(
            session=tree.session,
            record=one.heard.record,
            agent="/",
            at=one.heard.at,
            text=one.clause.text,
            kind=one.clause.kind,
            scope=_scope_of_said(tree, one.clause),
            origin="distilled",
            ordinal=_DISTILLED + one.ordinal,
            withdraws=one.clause.withdraws,
            project=project_of(tree),
        )
        for one in read(heard, distilled.since, distilled.until, answer)
    ]


def _scope_of_said(tree: Tree, clause: Clause) -> StatementScope:
    """Wishes, and what somebody says of themselves, hold for them everywhere; the rest in the directory, if there is
    one."""
    own = clause.kind == "preference" or clause.text.lower().startswith(
        ("i ", "i'", "i’", "my ", "ich ", "mein")
    )
    return "project" if project_of(tree) and not own else "person"


def _remembered(tree: Tree, record: Record, result: Result) -> list[NewStatement]:
    """What an agent stored with REMEMBER."""
    agent = tree.agents[record.agent]
    strange = tuple(sorted(origin.strange(tree, agent.labels)))
    wanted = result.kind_of
    kind: StatementKind = next((one for one in get_args(StatementKind) if one == wanted), "fact")
    if kind == "preference" and strange:
        kind = "fact"  # what came from outside is no wish of the person

    scope = _scope_of_kept(tree, result, kind, strange=bool(strange))
    made = [
        _made(tree, record, record.n, ordinal, clause, "remembered", scope)
        for ordinal, clause in enumerate(statements_kept(record.body, kind))
    ]
    if made and result.supersedes:
        made[0] = dataclasses.replace(made[0], replaces=result.supersedes)
    return [dataclasses.replace(statement, untrusted=strange) for statement in made]


def _scope_of_kept(tree: Tree, result: Result, kind: StatementKind, *, strange: bool) -> StatementScope:
    """Where a statement of an agent holds. What came from outside never holds for its person."""
    project: StatementScope | None = "project" if project_of(tree) else None
    match result.scope:
        case "session":
            return "session"
        case "project":
            return project or "session"
        case "person" if not strange:
            return "person"
    if strange:
        return project or "session"
    if kind == "preference":
        return "person"
    return project or "person"


def _made(
    tree: Tree,
    record: Record,
    source: int,
    ordinal: int,
    clause: Clause,
    how: StatementOrigin,
    scope: StatementScope,
) -> NewStatement:
    return NewStatement(
        session=tree.session,
        record=source,
        agent=record.agent,
        at=record.at,
        text=clause.text,
        kind=clause.kind,
        scope=scope,
        origin=how,
        ordinal=ordinal,
        withdraws=clause.withdraws,
        project=project_of(tree),
    )
