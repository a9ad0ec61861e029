"""State-machine modules: what a module offers an agent depends on the module's state for that agent.

An agent is told the functions of the initial state with its first message. It is told those of another state when a
call led there, or when the module moved there on its own: at the end of its context, like all feedback. A call that the
state does not offer is refused by the module, which knows its state best and reports what it offers. Nothing else
tells the agent that this state was lost or the module stopped, because the agent must not be able to distinguish a
denied call from a call whose module was lost (law 7).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from iact.core.language import labels
from iact.core.language.actions import PLAN, ActionSpec
from iact.core.modules.manifest import Manifest
from iact.core.modules.outcome import StateChange
from iact.core.records.parts import ModuleState
from iact.core.tree.agent import Agent
from iact.core.tree.tree import Tree

_ABOUT_PLANS: Final = frozenset({"plan", "plans", "planning", "workflow", "steps", "parallel"})
_ITEM: Final = re.compile(r"^[ \t]*(?:[-*•‣]|\(?\d{1,2}[.)、:]|[①-⑨])[ \t]*\S", re.MULTILINE)
_NUMBERED: Final = re.compile(r"(?:^|\s)\(?\d{1,2}[.)][ \t]*\D")
_CODE: Final = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.MULTILINE | re.DOTALL)
_PARTS: Final = re.compile(r";[ \t]+\w|[；。؛।]")
_ACTION: Final = re.compile(r"\bPLAN\b")
_SEVERAL: Final = 3
"""This many items or parts make a task one of several steps."""


def touches(spec: ActionSpec, text: str, lower: str, words: AbstractSet[str]) -> bool:
    """Whether a text is about a function: it contains a keyword, its name or its alias.

    `lower`: the text in lower case; `words`: the words in it.
    """
    if spec.name == PLAN.name:
        return _ACTION.search(text) is not None
    return not words.isdisjoint(spec.keywords) or spec.name in lower or (spec.alias or "\0").lower() in words


def asks_for_plan(text: str, words: AbstractSet[str], kept: Iterable[str]) -> bool:
    """Whether a message is about plans, names a kept plan, or lists several foreseeable steps of a task."""
    if not words.isdisjoint(_ABOUT_PLANS) or any(_names(name, text) for name in kept):
        return True
    said = _CODE.sub("", text)
    return any(len(signs.findall(said)) >= _SEVERAL for signs in (_ITEM, _NUMBERED, _PARTS))


def _names(kept: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(kept)}(?![\w-])", text, re.IGNORECASE) is not None


def module_state(change: StateChange) -> ModuleState:
    """A change of state in the form of a record."""
    return ModuleState(name=change.state, offers=change.entry_points, note=change.note)


def has_states(tree: Tree, spec: ActionSpec) -> bool:
    """Whether a function's module is a state machine, so that the order of its calls matters."""
    return _machine(tree, spec.module) is not None


def is_offered(tree: Tree, agent: Agent, spec: ActionSpec) -> bool:
    """Whether a function is among those that its module offers this agent now, as far as the agent was told."""
    machine = _machine(tree, spec.module)
    return machine is None or spec.name.split(".", 1)[1] in _told(agent, machine)


def shift(tree: Tree, agent: Agent, function: str, shown: ModuleState) -> str:
    """Apply a change of state. Returns what the agent is told about it; empty if the offer is unchanged."""
    machine = _machine(tree, function.split(".", 1)[0])
    if machine is None:
        return ""
    state, note = shown.name, shown.note
    given = tuple(one for one in shown.offers if machine.function(one))
    names, before = given or _offered_in(machine, state), _told(agent, machine)
    agent.context.offers[machine.name] = names
    if names == before and not note:
        return ""
    functions = [
        (spec.name, spec.alias, spec.summary)
        for spec in tree.registry(agent.path).functions()
        if spec.module == machine.name and spec.name.split(".", 1)[1] in names
    ]
    summary = next((one.summary for one in machine.states if one.name == state), "")
    return labels.state(machine.name, state, (summary, note), functions)


def _machine(tree: Tree, module: str | None) -> Manifest | None:
    """A module's manifest, if it has states."""
    loaded = tree.modules.get(module or "")
    return loaded.manifest if loaded is not None and loaded.manifest.states else None


def _told(agent: Agent, machine: Manifest) -> tuple[str, ...]:
    return agent.context.offers.get(machine.name) or _offered_in(machine, machine.states[0].name)


def _offered_in(manifest: Manifest, state: str) -> tuple[str, ...]:
    return tuple(one.name for one in manifest.functions if not one.states or state in one.states)
