"""What an agent is told about the workspace that it shares: one line in its first message. Fixed when it begins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from iact.core.gate.grant import Grant
from iact.core.language import labels
from iact.core.language.actions import CALL, CALL_ASYNC
from iact.core.language.grammar import Mistake
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.interpret import bind_pending, child_named_in
from iact.core.tree.spawns import child_spawn
from iact.core.tree.tree import Tree

_NAMED: Final = 8
"""The most siblings that are named."""

_NARROWS: Final = re.compile("intent|scope")
"""What the first line of a call holds that gives its agent less than its caller may do."""


def begin(tree: Tree, caller: Agent, child: Agent) -> None:
    """Note for a new child whether it may write, and which of its siblings may.

    Only siblings that are at work count: one that has ended changes nothing. What changes later (a right, a sibling of
    a later message) is not told: a first message that was sent must not change.
    """
    if not tree.follows_1_3:
        return

    access = {name: loaded.manifest.needs.workspace for name, loaded in tree.modules.items()}
    if "read" not in access.values() and "write" not in access.values():
        return

    child.writes = _may_write(tree, tree.grant_of(child.path), access)
    siblings = _at_work(tree, caller, child)
    for pending in _called_next(caller, child):
        name = child_named_in(pending)
        if name:
            grant = _grant_given(tree, caller, pending)
            siblings.setdefault(f"{caller.path.rstrip('/')}/{name}", _may_write(tree, grant, access))
    writing = [path for path, writes in siblings.items() if writes]
    child.context.shares = labels.shared_workspace(writing[:_NAMED], len(writing), alone=not siblings)


def _at_work(tree: Tree, caller: Agent, child: Agent) -> dict[str, bool]:
    """The siblings of a child that are at work, by path, and whether each may write."""
    others = [tree.agents[path] for path in caller.children.values() if path != child.path]
    return {sibling.path: sibling.writes for sibling in others if sibling.active}


def _called_next(caller: Agent, child: Agent) -> list[Pending]:
    """The next calls of agents in the message that calls `child`, if they are made while it is at work."""
    called = next(
        (index for index, pending in enumerate(caller.actions) if pending.child == child.path), None
    )
    if called is None or caller.actions[called].spec.name != CALL_ASYNC.name:
        return []
    behind = caller.actions[called + 1 : called + 1 + _NAMED]
    return [pending for pending in behind if pending.spec.name in (CALL.name, CALL_ASYNC.name)]


def _grant_given(tree: Tree, caller: Agent, pending: Pending) -> Grant:
    """What the agent that a CALL begins may do. Most calls say nothing about that, and need not be read for it."""
    grant = tree.grant_of(caller.path)
    if not _NARROWS.search(pending.info):
        return grant
    bound = bind_pending(tree, caller, pending)
    if isinstance(bound, Mistake):
        return grant
    spawn = child_spawn(caller, bound)
    return grant.narrow(patterns=spawn.allow, intent=spawn.intent)


def _may_write(tree: Tree, grant: Grant, access: Mapping[str, str]) -> bool:
    """Whether an agent with a grant may call a function that changes files. `access`: to the workspace, by module."""
    if grant.intent < 1:
        return False

    scope = grant.scope
    for spec in tree.functions.values():
        changes_files = spec.impact >= 1 and access.get(spec.module or "") == "write"
        if changes_files and scope.contains(spec.name) and scope.cap(spec.name) >= 1:
            return True
    return False
