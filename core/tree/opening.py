"""What stands at the head of an agent's first message, as its grant, its modules and its model decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from iact.core.context import first_message
from iact.core.context.first_message import ESSENTIAL, NATURAL, RARE, AgentOffer
from iact.core.gate.impact import SCRIPTS
from iact.core.gate.layer import COMPUTES
from iact.core.language.actions import ActionSpec
from iact.core.tree.agent import Agent
from iact.core.tree.offered_functions import is_offered
from iact.core.tree.standing import block, told_standing
from iact.core.tree.tree import Tree

_PEERS: Final = "a2a"
"""The module that asks agents elsewhere."""


def set_rights(tree: Tree, agent: Agent) -> None:
    """Note whether an agent may only look at things, for its first message and what follows from that.

    This is fixed when it begins to work for the first time: what was sent must not change.
    """
    if agent.context.fresh and not agent.woken:
        agent.context.reads_only = tree.grant_of(agent.path).intent < 1


def is_usable(tree: Tree, agent: Agent, spec: ActionSpec) -> bool:
    """Whether an agent's grant lets it use a function at all, as far as the function's declaration says.

    This is the caller's own grant, which the agent may know. What the gate says about a call is another matter.
    """
    if spec.core or not agent.context.reads_only:
        return True
    if spec.name in SCRIPTS or (spec.name in COMPUTES and tree.has_layers):
        return True
    return spec.impact < 1 and tree.believed(spec)


def is_open_to(tree: Tree, agent: Agent, spec: ActionSpec) -> bool:
    """Whether an agent may use a function, as far as its grant and the state of the function's module say."""
    if spec.core:
        return True
    if agent.context.reads_only and not is_usable(tree, agent, spec):
        return False
    return is_offered(tree, agent, spec)


def opening(tree: Tree, agent: Agent, catalogue: int | None) -> Iterator[str]:
    """Yield the paragraphs at the head of an agent's first message; none if it has had one.

    `catalogue`: the record since which the functions are as they are listed.
    """
    if not agent.context.fresh:
        return

    looks_only = agent.context.reads_only
    if agent.context.forked:
        yield first_message.forked(
            agent.path, agent.caller, agent.role, reads_only=looks_only, layer=tree.has_layers
        )
    elif tree.roles[agent.model].small:
        specs = opening_specs(tree, agent, catalogue)
        yield first_message.for_a_small_model(agent.path, agent.caller, specs, role=agent.role)
    else:
        yield from first_message.offer(_offer(tree, agent, catalogue))
        yield first_message.identity(
            agent.path, agent.caller, agent.role, reads_only=looks_only, layer=tree.has_layers
        )

    if agent.context.shares:
        yield agent.context.shares

    known = told_standing(tree, agent)
    if known:
        yield block(known)


def opening_specs(tree: Tree, agent: Agent, catalogue: int | None) -> list[ActionSpec]:
    """The functions that an agent's first message names, or whose modules it names."""
    functions = tree.offered(agent.path, catalogue)
    role = tree.roles[agent.model]
    if role.small:
        # Such a model can use what its examples show, and is only confused by more.
        shown = "".join(message.content for message in role.static.examples)
        functions = [spec for spec in functions if spec.name in shown or (spec.alias or spec.name) in shown]
    return [spec for spec in functions if is_open_to(tree, agent, spec)]


def documented_at_first(tree: Tree, agent: Agent, catalogue: int | None) -> list[ActionSpec]:
    """The functions whose documentation is in an agent's first message, whatever its task is."""
    if agent.context.forked or tree.roles[agent.model].small:
        return []
    essential = _essential(tree.offered(agent.path, catalogue))
    return [spec for spec in essential if is_open_to(tree, agent, spec)]


def is_listed(tree: Tree, spec: ActionSpec) -> bool:
    """Whether a function's signature is in the first message of an agent that may use it."""
    return not _is_rare(tree, spec.module or "")


def _offer(tree: Tree, agent: Agent, catalogue: int | None) -> AgentOffer:
    specs = opening_specs(tree, agent, catalogue)
    modules = dict.fromkeys([spec.module or "" for spec in specs])
    rare = [module for module in modules if _is_rare(tree, module) and not _has_peers(tree, module)]
    return AgentOffer(
        documented=_essential(specs),
        listed=[spec for spec in specs if spec.module not in rare],
        rare=rare,
        natural=[spec for spec in specs if spec.name in NATURAL and spec.module in rare],
        models=list(tree.roles),
    )


def _has_peers(tree: Tree, module: str) -> bool:
    """Whether a module asks agents elsewhere, and may reach some: then it is set up, and is listed."""
    return module == _PEERS and tree.may_reach(module)


def _essential(specs: Sequence[ActionSpec]) -> list[ActionSpec]:
    documented = [spec for spec in specs if spec.name in ESSENTIAL and spec.documentation]
    documented.sort(key=lambda spec: ESSENTIAL.index(spec.name))
    return documented


def _is_rare(tree: Tree, module: str) -> bool:
    """Whether a module is only named. What somebody added to the session is wanted there, so it is listed."""
    loaded = tree.modules.get(module)
    return module in RARE and loaded is not None and loaded.origin == "shipped"
