"""What an agent is told about the workspace that it shares: one line in its first message. Fixed when it begins."""

from __future__ import annotations

from collections.abc import Mapping
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

    access = {name: loaded.manifest.needs.workspace for name, loaded in tree.modules.items()}
    if "read" not in access.values() and "write" not in access.values():
        return

    child.writes = _may_write(tree, child, access)
    siblings = [tree.agents[path] for path in caller.children.values() if path != child.path]
    writing = [sibling.path for sibling in siblings if sibling.writes]
    child.context.shares = labels.shared_workspace(writing[:_NAMED], len(writing), alone=not siblings)


def _may_write(tree: Tree, agent: Agent, access: Mapping[str, str]) -> bool:
    """Whether an agent may call a function that changes files. `access`: to the workspace, by module."""
    grant = tree.grant_of(agent.path)
    if grant.intent < 1:
        return False

    scope = grant.scope
    for spec in tree.functions.values():
        changes_files = spec.impact >= 1 and access.get(spec.module or "") == "write"
        if changes_files and scope.contains(spec.name) and scope.cap(spec.name) >= 1:
            return True
    return False
