"""How a state-machine module comes to another state, and what its agent is told about that.

An agent is told the functions of the initial state with its first message. It is told those of another state when a
call led there, or when the module moved there on its own: at the end of its context, like all feedback. A call that the
state does not offer is refused by the module, which knows its state best and reports what it offers. Nothing else
tells the agent that this state was lost or the module stopped, because the agent must not be able to distinguish a
denied call from a call whose module was lost (law 7).
"""

from __future__ import annotations

from iact.core.context.signature import lines
from iact.core.language import labels
from iact.core.modules.outcome import StateChange
from iact.core.records.parts import ModuleState
from iact.core.tree import notes
from iact.core.tree.agent import Agent
from iact.core.tree.offered_functions import machine_of, offer_told, offered_in
from iact.core.tree.tree import Tree


def module_state(change: StateChange) -> ModuleState:
    """A change of state in the form of a record."""
    return ModuleState(name=change.state, offers=change.entry_points, note=change.note)


def shift(tree: Tree, agent: Agent, function: str, shown: ModuleState) -> str:
    """Apply a change of state. Returns what the agent is told about it; empty if the offer is unchanged."""
    machine = machine_of(tree, function.split(".", 1)[0])
    if machine is None:
        return ""

    before = offer_told(agent, machine)
    given = tuple(name for name in shown.offers if machine.function(name))
    names = given or offered_in(machine, shown.name)
    agent.context.offers[machine.name] = names
    if names == before and not shown.note:
        return ""

    specs = [
        spec
        for spec in tree.registry(agent.path).functions()
        if spec.module == machine.name and spec.name.split(".", 1)[1] in names
    ]
    summary = next((state.summary for state in machine.states if state.name == shown.name), "")
    told = labels.state(machine.name, shown.name, (summary, shown.note), lines(specs))
    new = [spec for spec in specs if spec.name.split(".", 1)[1] not in before]
    return "\n\n".join([told, *notes.opened(tree, agent, new)])
