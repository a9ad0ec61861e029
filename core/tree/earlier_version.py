"""What a person said about a module holds for the version that was there. Pure.

Who allows a host to a module, remembers a yes to its calls, or lets a value go to it, has seen what it is: some code under
a name. An agent can put other code under the same name. That other code is asked about as if nobody had said anything.
Modules that ship are what they are, whatever their version.
"""

from __future__ import annotations

from iact.core.gate.hosts import Rule
from iact.core.modules.registry import Loaded
from iact.core.tree.tree import Tree


def replaced(tree: Tree, name: str, loaded: Loaded | None) -> None:
    """Note that a module is there in another version, or is gone (None). Called before `tree` knows it."""
    if not tree.follows_1_3:
        return

    known = tree.modules.get(name)
    if loaded is None:
        if known is not None and known.origin != "shipped":
            _forget(tree, name)
    elif known is not None and loaded.origin != "shipped" and known.digest != loaded.digest:
        _forget(tree, name)
    elif known is None and _is_unapproved(loaded):
        # A host that is allowed in every session was allowed to another session's module of this name.
        _outdate_hosts(tree, name)


def answered(tree: Tree, rule: Rule) -> None:
    """Note that a person was asked about a host, and allows it to the version that is there now."""
    tree.hosts.answered |= {rule}
    tree.hosts.outdated -= {rule}


def allowed(tree: Tree, always: frozenset[Rule], session: frozenset[Rule]) -> None:
    """Note rules that are new: of every session, and of this one alone."""
    hosts = tree.hosts
    hosts.outdated -= always | session
    if tree.follows_1_3:
        elsewhere = always - hosts.answered
        hosts.outdated |= {rule for rule in elsewhere if _is_unapproved(tree.modules.get(rule[0]))}


def _is_unapproved(loaded: Loaded | None) -> bool:
    """Whether an agent wrote this version, and nobody has looked at it."""
    return loaded is not None and loaded.origin == "agent" and not loaded.whole


def _forget(tree: Tree, name: str) -> None:
    tree.remembered = tree.remembered.without(name)
    tree.carried.allowed = {place for place in tree.carried.allowed if place != (name, "call")}
    _outdate_hosts(tree, name)


def _outdate_hosts(tree: Tree, name: str) -> None:
    hosts = tree.hosts
    hosts.outdated |= hosts.of(name)
    hosts.answered = frozenset(rule for rule in hosts.answered if rule[0] != name)
    hosts.let_go = {target for target in hosts.let_go if target[0] != name}
    hosts.once = {target: calls for target, calls in hosts.once.items() if target[0] != name}
