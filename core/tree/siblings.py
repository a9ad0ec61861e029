"""What an agent is told about the workspace that it shares: one line in its first message. Fixed when it begins."""

from __future__ import annotations

from typing import Final

from iact.core.language import labels
from iact.core.tree.agent import Agent
from iact.core.tree.tree import Tree

_NAMED: Final = 8
"""The most siblings that are named."""


def begin(tree: Tree, caller: Agent, child: Agent) -> None:
    """Note for a new child whether it may write, and which of its siblings may.

    What changes later (a right, another sibling) is not told: a first message that was sent must not change.
    """
    if not tree.follows_1_3:
        return

    child.writes = _may_write(tree, child)
    if not _has_workspace(tree):
        return

    siblings = [tree.agents[path] for path in caller.children.values() if path != child.path]
    writing = [sibling.name for sibling in siblings if sibling.writes]
    child.context.shares = labels.shared_workspace(writing[:_NAMED], len(writing), alone=not siblings)


def _has_workspace(tree: Tree) -> bool:
    return any(loaded.manifest.needs.workspace != "none" for loaded in tree.modules.values())


def _may_write(tree: Tree, agent: Agent) -> bool:
    grant = tree.grant_of(agent.path)
    if grant.intent < 1:
        return False

    writers = {name for name, loaded in tree.modules.items() if loaded.manifest.needs.workspace == "write"}
    for spec in tree.functions.values():
        within = grant.scope.contains(spec.name) and grant.scope.cap(spec.name) >= 1
        if spec.module in writers and spec.impact >= 1 and within:
            return True
    return False
