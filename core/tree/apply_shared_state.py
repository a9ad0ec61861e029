"""How calls change what agents share: labels follow what was touched, whatever a call was rated.

Files. A call that may write counts as writing from its dispatch to its outcome, and what is read meanwhile carries
its labels. Then what it really changed decides: the version of the workspace is another one than before the call, or
there is none to compare, so it touched something, and its labels stay with the files for good. A version is another
one as soon as any inode was touched (`sandbox.workspace.versions`). Of a directory of the user's the overlay tells, if there is
one. A job that goes on behind its call touches what it likes,
and when; so does a module that does not ship with the product: nobody knows what it left running.

Modules. What an agent gives to a module can come back to another. A module that ships either keeps nothing, or keeps
it for one agent, and then shows that by having states or instances of its own. Of any other all agents' calls go to
one process, so what it says to one carries what all have given it.

One set for all files, and not one for each: a script reads what it likes, and says nothing of it.
"""

from __future__ import annotations

from typing import Final

from iact.core.gate.provenance import NOTHING, Labels
from iact.core.language.actions import ActionSpec
from iact.core.records.calls import Call, Result
from iact.core.records.parts import ModuleState
from iact.core.records.record import Record
from iact.core.tree import origin
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.tree import Tree

_NAMES: Final = "DEPLOY"
"""The action by which an agent gives a module its name."""


def begin(tree: Tree, agent: Agent, pending: Pending, record: Record, call: Call) -> None:
    """A call is dispatched: `record` is its `call`."""
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
    if pending.base:
        pending.puts = put
    elif (call.impact or 0) > 0 and _may_write(tree, spec):
        shared.writing[record.n] = put
        shared.since.add(record.n)
        pending.files_before = shared.version


def end(tree: Tree, agent: Agent, pending: Pending, result: Result) -> None:
    """A call has its outcome. What it touched carries its labels from here on."""
    shared = tree.shared
    if pending.base:  # its copy is nobody else's, and goes away
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
    """The other calls of which something may be in the version that was kept behind this one."""
    return tuple(sorted(tree.shared.since - {pending.call})) if version and not pending.base else ()


def written_since(tree: Tree) -> tuple[int, ...]:
    """The calls of which something may be in a version that is kept now, and in none before."""
    return tuple(sorted(tree.shared.since))


def take_over(tree: Tree, version: str, put: Labels) -> None:
    """What a call wrote in a copy of the workspace stands in the workspace, of which a version was kept behind it."""
    tree.shared.version, tree.shared.since = version, set(tree.shared.writing)
    origin.touch_files(tree, put)


def move(tree: Tree, agent: Agent, function: str, state: ModuleState, step: str) -> None:
    """A module's part of an agent, or of a step of a plan, may have come to another state."""
    module = function.split(".", 1)[0]
    holder, loaded = origin.holder_of(tree, module, agent), tree.modules.get(module)
    if holder is None or loaded is None or not loaded.manifest.states:
        return
    busy = tree.shared.busy.setdefault(holder, set())
    if state.name == loaded.manifest.states[0].name:
        busy.discard(step)
    else:
        busy.add(step)
    if not busy:
        del tree.shared.busy[holder]


def restore(tree: Tree) -> None:
    """A person put the files back. What wrote them since may have left more than they hold; its labels stay."""
    tree.shared.version = ""
    tree.shared.since = set(tree.shared.writing)


def _may_write(tree: Tree, spec: ActionSpec) -> bool:
    """Whether a module could write into the workspace; what one that does not ship says of its needs is its word."""
    loaded = tree.modules.get(spec.module or "")
    return loaded is None or loaded.origin != "shipped" or loaded.manifest.needs.workspace == "write"


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
    """A call left nothing; but what ran beside it may have seen what it wrote and took away again."""
    for agent in tree.agents.values():
        for pending in agent.actions:
            if pending.call:
                pending.beside |= put
    for holder in tree.shared.held:
        loaded = tree.modules.get(holder[0])
        if holder in tree.shared.busy or loaded is None or loaded.origin != "shipped":
            tree.shared.held[holder] |= put
