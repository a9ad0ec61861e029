"""The sources of values, followed through the tree: the labels that agents, messages and calls carry.

Labels are set here and where the fold makes values, from records alone; nothing that a model or a module says sets one.
An agent carries the labels of everything that it has read, including its caller's and its children's messages, which
carry what their authors had read. Whatever the agent writes carries these labels on. What agents share without a
message (the files of the workspace, and what modules keep) carries the labels of all that was put there
(`core.tree.apply_shared_state`), and so does whatever is read from it.

Whether a call brought something from outside is not guessed when it begins. The proxy reports each connection before it
is made, and so before any of its bytes can be in a file or a result (`core.tree.reached`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from iact.core.gate.provenance import (
    MODEL,
    NOTHING,
    OWN,
    REMEMBERED,
    USER,
    Labels,
    Provenance,
    declassify,
    from_inside,
    from_tool,
    function_of,
    is_inside,
    join,
    returned,
    untrusted,
)
from iact.core.gate.rules import texts_of
from iact.core.language.actions import PERSON, ActionSpec
from iact.core.language.grammar import Bound
from iact.core.language.nested import parameter_of
from iact.core.ports import JSON
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.shared_state import Holder
from iact.core.tree.tree import Tree

OUTSIDE: Final = frozenset({"a2a", "browser", "web"})
"""Shipped modules whose results come from outside, whatever they declare."""

_CORE: Final = frozenset({"DEPLOY", "SKILL"})
"""Actions of the core that report about what their agent passed to them."""

WRITTEN: Final[Labels] = frozenset({USER})
"""The labels of what a person wrote."""

TOLD: Final[Labels] = frozenset({"client"})
"""The labels of what a client tells: an earlier chat, which quotes what models and pages wrote, or what others write."""

UPLOADED: Final[Labels] = frozenset({"upload"})
"""The labels of an uploaded file: most files that a person hands over were written by another author."""


_SHORT: Final = 1_000
"""The longest argument, in characters, that can count as the user's words; a longer one counts as the agent's."""
_FEW: Final = 16
"""The most values in one argument that are searched for in the user's words."""


def given(tree: Tree, agent: Agent, bound: Bound) -> dict[str, Labels]:
    """The labels of each argument of a call: those of its variable, of the user's words, or of the agent's own."""
    named, within = _passed_by_name(bound)
    written = {
        name: _written(tree, agent, value) | within.get(name, NOTHING)
        for name, value in bound.arguments.items()
        if name not in named
    }
    return named | written


def _passed_by_name(bound: Bound) -> tuple[dict[str, Labels], dict[str, Labels]]:
    """The labels of each argument that is a variable as a whole, and of the variables inside of others."""
    named, within = dict(bound.labels), dict[str, Labels]()
    for name, value in bound.attached.items():
        parameter = parameter_of(name)
        if parameter == name:
            named[name] = value.labels
        else:
            within[parameter] = within.get(parameter, NOTHING) | value.labels
    return named, within


def _written(tree: Tree, agent: Agent, value: JSON) -> Labels:
    texts = texts_of(value)
    short = len(texts) <= _FEW and sum(map(len, texts)) <= _SHORT
    users = short and texts and all(map(tree.said.holds, texts))
    return WRITTEN if users else by(agent)


def said_labels(text: str, by_client: int) -> Labels:
    """The labels of a message to the root. `by_client`: how many characters at its beginning are not the user's."""
    if not by_client:
        return WRITTEN
    if by_client >= len(text):
        return TOLD
    return WRITTEN | TOLD


def passed(bound: Bound | None) -> Labels:
    """The labels of what an action was passed by name. An action of the core passes it on, or shows it."""
    if bound is None:
        return NOTHING
    return join([*bound.labels.values(), *(value.labels for value in bound.attached.values())])


def of_call(tree: Tree, agent: Agent, pending: Pending) -> Labels:
    """The labels of a call's result: of its arguments, of the files, and of what its module keeps."""
    bound, function = pending.bound, pending.spec.name
    if function == PERSON.name:
        return WRITTEN
    own = from_tool(function) if pending.reached else label_of(tree, function)
    made = returned(own, given(tree, agent, bound).values() if bound is not None else ())
    return made | pending.beside | around(tree, agent, function)


def of_tool(tree: Tree, agent: Agent, function: str) -> Labels:
    """The labels of what a module reports to an agent on its own."""
    return returned(label_of(tree, function), ()) | around(tree, agent, function)


def label_of(tree: Tree, function: str) -> str:
    """The label of what a function makes, as long as no connection of it is known.

    A shipped module that reaches nothing works on its arguments and the files alone. Of any other, nobody knows.
    """
    module = function.split(".", 1)[0]
    if module in _CORE:
        return from_inside(function)

    loaded = tree.modules.get(module)
    if loaded is None or loaded.origin != "shipped" or loaded.egress or module in OUTSIDE:
        return from_tool(function)
    return from_inside(function)


def around(tree: Tree, agent: Agent, function: str) -> Labels:
    """The labels of what a call can meet: the files, what is being written there now, and what its module keeps."""
    shared, module = tree.shared, function.split(".", 1)[0]
    kept = held_by(tree, module, agent)
    tried = shared.held.get(layer_of(agent), NOTHING)
    return join([shared.files, kept, tried, *shared.writing.values()])


def layer_of(agent: Agent) -> Holder:
    """What keeps the data that an agent of intent 0 writes in its layer over the files: nobody else reads it."""
    return ("(layer)", agent.path)


def holder_of(tree: Tree, module: str, agent: Agent) -> Holder | None:
    """What keeps the data that an agent passes to a module; None if nothing keeps it.

    Of a shipped module's calls nothing is left if it says so, because its SDK sees to it (`ext_modules.sdk.traces`); one
    with states keeps data per agent. If each agent has its own instances, the sandbox keeps them apart. Any other module
    may bring to one agent what another one passed to it.
    """
    loaded = tree.modules.get(module)
    if loaded is None:
        return (module, "")

    needs = loaded.manifest.needs
    if needs.own_instances:
        return (module, agent.path)
    if loaded.origin != "shipped":
        return (module, "")
    if loaded.manifest.states:
        return (module, agent.path)
    return None if needs.forgets else (module, "")


def may_write(tree: Tree, module: str) -> bool:
    """Whether a module could write into the workspace. A module that does not ship is not trusted about its needs."""
    loaded = tree.modules.get(module)
    return loaded is None or loaded.origin != "shipped" or loaded.manifest.needs.workspace == "write"


def held_by(tree: Tree, module: str, agent: Agent) -> Labels:
    """The labels of what a module may keep for an agent."""
    holder = holder_of(tree, module, agent)
    return tree.shared.held.get(holder, NOTHING) if holder is not None else NOTHING


def by(agent: Agent) -> Labels:
    """The labels of what an agent writes: its own label, and those of all that it has read."""
    return agent.labels | {MODEL}


def read(agent: Agent, labels: Labels) -> None:
    """Add the labels of what an agent reads. Its own words and the user's leave no trace."""
    agent.labels |= labels - OWN


def document(agent: Agent, specs: Iterable[ActionSpec]) -> None:
    """Let an agent read documentation. Unvouched documentation carries its module's label."""
    read(agent, frozenset(f"tool:{spec.name}" for spec in specs if not spec.vouched))


def hear_names(tree: Tree, agent: Agent, specs: Iterable[ActionSpec]) -> None:
    """Let an agent read names of functions. The name of an unvouched module carries the labels of the text that named it."""
    for spec in specs:
        if not spec.vouched and spec.module is not None:
            read(agent, tree.shared.named.get(spec.module, NOTHING))


def written(tree: Tree, agent: Agent, pending: Pending) -> Labels:
    """The labels of all that a call can leave behind: what its agent has read, what it passes, what was kept for it."""
    function = pending.spec.name
    kept = held_by(tree, pending.spec.module or "", agent)
    return lasting(agent.labels | passed(pending.bound) | kept | {label_of(tree, function)})


def lasting(labels: Labels) -> Labels:
    """The labels that matter to anyone who comes across what was left behind."""
    return frozenset(one for one in labels - OWN if not is_inside(one) or one == REMEMBERED)


def touch_files(tree: Tree, labels: Labels) -> None:
    """Add these labels to the files, because something with them was written there."""
    tree.shared.files |= lasting(labels)


def vouch(tree: Tree, agent: Agent, variable: str, *, by: str) -> None:
    """Note that a person vouches for a variable or, if none is named, for all that the agent has read so far."""
    if not variable:
        agent.labels = declassify(agent.labels, agent.labels, by=by) - {USER}
        for holder in [one for one in tree.shared.held if one[1] == agent.path]:
            _vouch_for_kept(tree, holder)
    elif variable in agent.table:
        value = agent.table[variable]
        agent.table.define(variable, replace(value, labels=declassify(value.labels, value.labels, by=by)))


def _vouch_for_kept(tree: Tree, holder: Holder) -> None:
    """Drop the labels of what a module keeps for an agent, but not those of what it may still be bringing.

    A connection that is open is not reported again. What arrives over it tomorrow has been seen by nobody.
    """
    labels = tree.shared.held[holder]
    brought = frozenset(label for label in labels if function_of(label).split(".", 1)[0] == holder[0])
    if brought and tree.follows_1_3:
        tree.shared.held[holder] = brought
    else:
        del tree.shared.held[holder]


def strange(tree: Tree, labels: Labels) -> Labels:
    """The labels that come from outside and that the policy does not trust."""
    unvouched = frozenset(one for one in labels if not _vouched(tree, one))
    return untrusted(labels, tree.policy.trusted) | unvouched


def provenance_of(tree: Tree, agent: Agent, bound: Bound) -> Provenance:
    """The sources of a call and of its arguments."""
    named, within = _passed_by_name(bound)
    # The model wrote what stands around the variables inside of an argument.
    named |= {name: labels | {MODEL} for name, labels in within.items()}
    labels = join([agent.labels, *named.values()])
    unvouched = frozenset(one for one in labels if not _vouched(tree, one))
    return Provenance(named, lasting(agent.labels), tuple(tree.said), unvouched)


def _vouched(tree: Tree, label: str) -> bool:
    """Whether a policy can mean this label when it trusts it by name: not if an agent provided the function."""
    spec = tree.functions.get(function_of(label))
    return spec is None or spec.vouched or is_inside(label)
