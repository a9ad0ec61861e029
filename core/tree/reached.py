"""What follows when a module reaches the outside: from then on, everything that it writes carries its label. Pure.

The proxy makes a connection only after its record is in the tree (`core.session.hosts`). So whatever a connection brings
is written, printed or kept after its labels are: nobody can be delivered a byte of it whose label is not known. A record
stands for all connections that can add no further label, so a call that makes a hundred has one.

A connection belongs to everything that runs in the instance that makes it, since nobody can tell these apart from
outside: its calls under way, and the jobs that earlier calls left running. If there is neither, something runs there
that no one knows of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from iact.core.gate.provenance import NOTHING, Labels, from_tool, function_of, is_inside
from iact.core.tree import origin
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.shared_state import Holder
from iact.core.tree.tree import Tree


def connect(tree: Tree, module: str, owner: str, host: str) -> None:
    """Label what a module writes from now on. `owner`: the agent that the connecting instance serves alone, or ""."""
    background = list(_background(tree, module, owner))
    for agent, pending in _under_way(tree, module, owner):
        pending.hosts |= {host}
        _label_call(tree, agent, pending)
    for holder, labels in background:
        _label_background(tree, holder, labels)


def adds_labels(tree: Tree, module: str, owner: str) -> bool:
    """Whether a connection that is made now would label anything that has no label of the module yet."""
    for _, pending in _under_way(tree, module, owner):
        # A module that is known to reach the outside has its label without this.
        if not pending.reached and is_inside(origin.label_of(tree, pending.spec.name)):
            return True

    shared = tree.shared
    writes = origin.may_write(tree, module)
    return any(
        not labels <= shared.held.get(holder, NOTHING) or (writes and not labels <= shared.files)
        for holder, labels in _background(tree, module, owner)
    )


def distrust_earlier(tree: Tree) -> None:
    """Take everything that a module made in an older format for what it may have brought, if it ever reached a host.

    Journals before format 1.3 name a connection only if it was the first one to its host.
    """
    modules = {module for module, *_ in tree.hosts.reached}
    if not modules:
        return

    for agent in tree.agents.values():
        agent.labels |= _brought(modules, agent.labels)
        for name, value in list(agent.table.items()):
            brought = _brought(modules, value.labels)
            if brought:
                agent.table.define(name, replace(value, labels=value.labels | brought))
    for holder in tree.shared.held:
        if holder[0] in modules:
            tree.shared.held[holder] |= {from_tool(f"{holder[0]}.*")}
    for module in modules:
        if origin.may_write(tree, module):
            origin.touch_files(tree, frozenset({from_tool(f"{module}.*")}))


def _brought(modules: Collection[str], labels: Labels) -> Labels:
    """The labels of what these modules brought, for those of what they made."""
    functions = [function_of(label) for label in labels if is_inside(label)]
    return frozenset(from_tool(function) for function in functions if function.split(".", 1)[0] in modules)


def _under_way(tree: Tree, module: str, owner: str) -> Iterator[tuple[Agent, Pending]]:
    """The calls that may be making a connection."""
    for agent in tree.agents.values():
        if owner and agent.path != owner:
            continue
        for pending in agent.actions:
            if pending.call and pending.spec.module == module:
                yield agent, pending


def _background(tree: Tree, module: str, owner: str) -> Iterator[tuple[Holder, Labels]]:
    """What may be making a connection apart from calls, with the labels that this brings."""
    busy = [
        holder
        for holder in tree.shared.busy
        if holder[0] == module and (not owner or holder[1] in ("", owner))
    ]
    for holder in busy:
        yield holder, frozenset({from_tool(tree.shared.left_by.get(holder, f"{module}.*"))})

    if not busy and not any(_under_way(tree, module, owner)):
        yield (module, owner), frozenset({from_tool(f"{module}.*")})


def _label_call(tree: Tree, agent: Agent, pending: Pending) -> None:
    shared = tree.shared
    labels = frozenset({from_tool(pending.spec.name)})
    pending.reached = True

    if pending.call in shared.writing:
        shared.writing[pending.call] |= labels
    if pending.base:
        pending.puts |= labels
    work = tree.live.working.get(pending.call)
    if work is not None:
        tree.live.working[pending.call] = replace(work, labels=work.labels | labels)

    holder = origin.holder_of(tree, pending.spec.module or "", agent)
    if holder is not None:
        shared.held[holder] = shared.held.get(holder, NOTHING) | labels


def _label_background(tree: Tree, holder: Holder, labels: Labels) -> None:
    """Label what runs on after its call. It may write at any time, so the files carry its labels from now on."""
    module, path = holder
    shared = tree.shared
    shared.held[holder] = shared.held.get(holder, NOTHING) | labels
    if not origin.may_write(tree, module):
        return

    origin.touch_files(tree, labels)
    for n, work in tree.live.working.items():
        if work.function.split(".", 1)[0] == module and path in ("", work.agent):
            tree.live.working[n] = replace(work, labels=work.labels | labels)
