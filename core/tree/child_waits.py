"""Which children a WAIT or QUERY is about, which of their replies it takes, and when a WAIT has nothing to wait for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from iact.core.language.grammar import Bound
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.tree import Tree

_ANY: Final = "any"
"""The first word of a WAIT that ends with the first reply. A child of that name is reached with `WAIT any any`."""

_ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class WantedReplies:
    """The children that a WAIT or QUERY names."""

    paths: tuple[str, ...]
    """Their paths. Without names, all children of the agent."""
    unknown: tuple[str, ...] = ()
    """Names that no child of the agent has."""
    first: bool = False
    """Whether a WAIT ends with the first reply."""


def wanted(tree: Tree, agent: Agent, bound: Bound) -> WantedReplies:
    """Return the children that the arguments of a WAIT or QUERY name."""
    everyone = tuple(agent.children.values())
    words = _words(bound)

    if not tree.follows_1_3:
        known = tuple(agent.children[word] for word in words if word in agent.children)
        return WantedReplies(known or everyone)

    first = words[:1] == [_ANY]
    if first:
        words = words[1:]
    if words == [_ALL] and _ALL not in agent.children:
        words = []
    if not words:
        return WantedReplies(everyone, first=first)

    paths = {word: agent.children.get(word, word) for word in words}
    known = tuple(path for path in paths.values() if path in everyone)
    unknown = tuple(word for word, path in paths.items() if path not in everyone)
    return WantedReplies(known, unknown, first)


def _words(bound: Bound) -> list[str]:
    given = bound.attached.get("names")
    text = given.text() if given is not None else str(bound.arguments.get("names", ""))
    return text.replace(",", " ").split()


def is_for_nobody(tree: Tree, agent: Agent, bound: Bound) -> bool:
    """Whether a WAIT or QUERY names children, and the agent has none of them."""
    who = wanted(tree, agent, bound)
    return bool(who.unknown) and not who.paths


def running_children(tree: Tree, agent: Agent) -> list[str]:
    """Paths of the children that are at work, in order of creation."""
    return [path for path in agent.children.values() if tree.agents[path].active]


def ready(tree: Tree, agent: Agent, pending: Pending) -> list[int]:
    """Records of the replies that a WAIT or QUERY would take now, in the order in which they came."""
    assert pending.bound is not None
    paths = wanted(tree, agent, pending.bound).paths
    return [message.n for message in agent.mail.inbox if message.kind == "child" and message.child in paths]


def awaited(tree: Tree, agent: Agent) -> tuple[list[str], int]:
    """The working children that an agent waits for, and the number of all it waits for, with those that replied."""
    if not agent.active or agent.plan is not None or not agent.actions:
        return [], 0
    head = agent.actions[0]
    if agent.called:
        return [head.child], 1
    if head.spec.name != "WAIT" or head.bound is None:
        return [], 0

    paths = wanted(tree, agent, head.bound).paths
    running = [path for path in paths if tree.agents[path].active]
    replies = ready(tree, agent, head)
    came = {message.child for message in agent.mail.inbox if message.n in replies}
    return running, len(running) + len(came - {*running})


def satisfied(tree: Tree, agent: Agent, pending: Pending) -> bool:
    """Whether a WAIT has nothing left to wait for."""
    assert pending.bound is not None
    who = wanted(tree, agent, pending.bound)
    if who.first and ready(tree, agent, pending):
        return True
    return not any(tree.agents[path].active for path in who.paths)
