"""How a state-machine module comes to another state, and what its agent is told about that.

An agent is told the functions of the initial state with its first message. It is told those of another state once, when
a call led there, or when the module moved there on its own: at the end of its context, like all feedback. When it knows
them, its next state line names the state. A call that the state does not offer is refused by the module, which knows its
state best and reports what it offers.

Instances end with the process that runs the session, which every agent that used them is told with its next turn,
whatever ended that process. Nothing else tells an agent that a state was lost or a module stopped, because it must not be
able to distinguish a denied call from a call whose module was lost (law 7).
"""

from __future__ import annotations

from iact.core.context.signature import lines
from iact.core.language import labels
from iact.core.modules.outcome import StateChange
from iact.core.records.parts import ModuleState
from iact.core.tree import notes
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.offered_functions import has_states, machine_of, offer_told, offered_in
from iact.core.tree.tree import Tree


def module_state(change: StateChange) -> ModuleState:
    """A change of state in the form of a record."""
    return ModuleState(name=change.state, offers=change.entry_points, note=change.note)


def lose_instances(tree: Tree) -> None:
    """Note that no instance of a module is there any more: another process goes on with the session, or a copy of it."""
    for agent in tree.agents.values():
        agent.context.lose_instances()


def hold(tree: Tree, agent: Agent, pending: Pending) -> None:
    """Note that an instance of a module has served an agent."""
    module = pending.spec.module
    if module is not None and has_states(tree, pending.spec):
        agent.context.held[module] = None


def in_use(tree: Tree) -> bool:
    """Whether an instance of a module may hold something of an agent."""
    return any(agent.context.held for agent in tree.agents.values())


def clauses(agent: Agent) -> list[str]:
    """What an agent's next state line says about modules."""
    lost = [labels.started_afresh_clause(list(agent.context.lost))] if agent.context.lost else []
    return [*lost, *agent.context.moved.values()]


def shift(tree: Tree, agent: Agent, function: str, shown: ModuleState) -> str:
    """Apply a change of state. Returns what the agent is told about functions that are new to it; empty if there are none."""
    machine = machine_of(tree, function.split(".", 1)[0])
    if machine is None:
        return ""

    before = offer_told(agent, machine)
    given = tuple(name for name in shown.offers if machine.function(name))
    names = given or offered_in(machine, shown.name)
    agent.context.offers[machine.name] = names
    if names == before and not shown.note:
        return ""

    summary = next((state.summary for state in machine.states if state.name == shown.name), "")
    at_first = offered_in(machine, machine.states[0].name)
    new = [
        spec
        for spec in tree.registry(agent.path).functions()
        if spec.module == machine.name
        and spec.name.split(".", 1)[1] in names
        and spec.name.split(".", 1)[1] not in at_first
        and spec.name not in agent.context.opened
    ]
    if not new:
        agent.context.moved[machine.name] = labels.state_clause(machine.name, shown.name, (shown.note,))
        return ""

    agent.context.moved.pop(machine.name, None)
    agent.context.opened.update(spec.name for spec in new)
    told = labels.state(machine.name, shown.name, (summary, shown.note), lines(new))
    return "\n\n".join([told, *notes.opened(tree, agent, new)])
