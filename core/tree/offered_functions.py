"""State-machine modules: what a module offers an agent depends on the module's state for that agent."""

from __future__ import annotations

from iact.core.language.actions import ActionSpec
from iact.core.modules.manifest import Manifest
from iact.core.tree.agent import Agent
from iact.core.tree.tree import Tree


def has_states(tree: Tree, spec: ActionSpec) -> bool:
    """Whether a function's module is a state machine, so that the order of its calls matters."""
    return machine_of(tree, spec.module) is not None


def is_offered(tree: Tree, agent: Agent, spec: ActionSpec) -> bool:
    """Whether a function is among those that its module offers this agent now, as far as the agent was told."""
    if spec.core:
        return True
    machine = machine_of(tree, spec.module)
    return machine is None or spec.name.split(".", 1)[1] in offer_told(agent, machine)


def machine_of(tree: Tree, module: str | None) -> Manifest | None:
    """A module's manifest, if it has states."""
    loaded = tree.modules.get(module or "")
    return loaded.manifest if loaded is not None and loaded.manifest.states else None


def offer_told(agent: Agent, machine: Manifest) -> tuple[str, ...]:
    """The functions (without the module's name) that an agent was last told of, or those of the initial state."""
    return agent.context.offers.get(machine.name) or offered_in(machine, machine.states[0].name)


def offered_in(manifest: Manifest, state: str) -> tuple[str, ...]:
    """The functions (without the module's name) that a module offers in a state."""
    return tuple(one.name for one in manifest.functions if not one.states or state in one.states)
