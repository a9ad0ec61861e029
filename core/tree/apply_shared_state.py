"""How calls change what agents share: labels follow what was touched, whatever impact a call was rated at.

Files. A call that may write counts as writing from its dispatch to its outcome, and everything read meanwhile carries
its labels. The outcome then decides by what really changed. If the version of the workspace differs from the version
before the call, or there is no version to compare, the call touched something, and its labels stay with the files for
good. What a call carries grows while it is under way if its module reaches the outside (`core.tree.reached`).
Touching any inode makes a new version (`sandbox.workspace.versions`). For a live directory, the overlay reports
changes if there is one. A job that continues after its call may touch anything at any time. So may a module that does
not ship with the product, because nobody knows what it left running.

Modules. What an agent passes to a module can come back to another agent. A module that ships either keeps nothing, or
keeps it for one agent, which it shows by having states or its own instances. All agents' calls of any other module go
to one process, so what it returns to one agent carries the labels of what all agents have passed to it.

Layers. What an agent of intent 0 writes in its layer over the files, only it reads again, until its task ends.

There is one set of labels for all files, not one for each file: a script reads what it likes and does not report it.
"""

from __future__ import annotations

from typing import Final

from iact.core.gate.provenance import NOTHING, Labels
from iact.core.records.calls import Call, Result
from iact.core.records.parts import ModuleState
from iact.core.records.record import Record
from iact.core.tree import origin
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.tree import Tree

_NAMES: Final = "DEPLOY"
"""The action by which an agent names a module."""


def begin(tree: Tree, agent: Agent, pending: Pending, record: Record, call: Call) -> None:
    """Apply the dispatch of a call: `record` is its `call`."""
    shared, spec = tree.shared, pending.spec
    put = origin.written(tree, agent, pending)
    if spec.core:
        if spec.name == _NAMES and pending.bound is not None:
            name = str(pending.bound.arguments.get("name", ""))
            shared.named[name] = shared.named.get(name, NOTHING) | put
        return
    holder = origin.holder_of(tree, spec.module or "", agent)
    if holder is not None:
        shared.held[holder] = shared.held.get(holder, NOTHING) | put
    if tree.has_layers and spec.impact > 0 and tree.grant_of(agent.path).intent < 1:
        # It may have been made in the agent's layer (`core.gate.layer`), where what it wrote stays until its task ends.
        layer = origin.layer_of(agent)
        shared.held[layer] = shared.held.get(layer, NOTHING) | put
    if pending.base:
        pending.puts = put
    elif (call.impact or 0) > 0 and origin.may_write(tree, spec.module or ""):
        shared.writing[record.n] = put
        shared.since.add(record.n)
        pending.files_before = shared.version


def end(tree: Tree, agent: Agent, pending: Pending, result: Result) -> None:
    """Apply the outcome of a call. From here on, what it touched carries its labels."""
    shared = tree.shared
    if pending.base:  # its copy is used by no other call, and is discarded
        return
    if result.state is not None:
        move(tree, agent, pending.spec.name, result.state, pending.step)
    before, after = pending.files_before, result.version
    put = shared.writing.pop(pending.call, None)
    if after or result.unkept:
        shared.version = after
    if after:
        shared.since = set(shared.writing)
    if put is None:
        return
    if _touched(tree, agent, pending, result, before):
        origin.touch_files(tree, put)
    else:
        _seen_meanwhile(tree, put)


def beside(tree: Tree, pending: Pending, version: str) -> tuple[int, ...]:
    """The other calls that may have contributed to the version kept after this call."""
    return tuple(sorted(tree.shared.since - {pending.call})) if version and not pending.base else ()


def written_since(tree: Tree) -> tuple[int, ...]:
    """The calls that may have contributed to a version kept now, and to none before."""
    return tuple(sorted(tree.shared.since))


def take_over(tree: Tree, version: str, put: Labels) -> None:
    """Take over what a call wrote in a copy. It is in the workspace now, and a version was kept afterwards."""
    tree.shared.version, tree.shared.since = version, set(tree.shared.writing)
    origin.touch_files(tree, put)


def move(tree: Tree, agent: Agent, function: str, state: ModuleState, step: str) -> None:
    """Note the state that a module is in now for an agent or for a step of a plan."""
    module = function.split(".", 1)[0]
    holder, loaded = origin.holder_of(tree, module, agent), tree.modules.get(module)
    if holder is None or loaded is None or not loaded.manifest.states:
        return
    busy = tree.shared.busy.setdefault(holder, set())
    if state.name == loaded.manifest.states[0].name:
        busy.discard(step)
    else:
        busy.add(step)
        tree.shared.left_by.setdefault(holder, function)
    if not busy:
        del tree.shared.busy[holder]
        tree.shared.left_by.pop(holder, None)


def restore(tree: Tree) -> None:
    """Note that a person restored the files. Labels stay: earlier writers may have left more than the files hold."""
    tree.shared.version = ""
    tree.shared.since = set(tree.shared.writing)


def _touched(tree: Tree, agent: Agent, pending: Pending, result: Result, before: str) -> bool:
    loaded = tree.modules.get(pending.spec.module or "")
    if loaded is None or loaded.origin != "shipped":
        return True
    if origin.holder_of(tree, pending.spec.module or "", agent) in tree.shared.busy:
        return True
    if tree.live.overlay:
        return not result.unchanged
    return not before or result.version != before


def _seen_meanwhile(tree: Tree, put: Labels) -> None:
    """Label what ran at the same time: the call left nothing, but others may have seen what it wrote and removed."""
    for agent in tree.agents.values():
        for pending in agent.actions:
            if pending.call:
                pending.beside |= put
    for holder in tree.shared.held:
        loaded = tree.modules.get(holder[0])
        if holder in tree.shared.busy or loaded is None or loaded.origin != "shipped":
            tree.shared.held[holder] |= put
