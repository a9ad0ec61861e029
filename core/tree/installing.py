"""Calls that only install packages, for agents that have read no stranger. Pure.

What such a call brings has its label as everything from outside has. But neither its own further connections nor what it
puts where packages are is asked about because of that label: its agent follows the user alone, and an installer does
what it always does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from iact.core.gate.impact import SCRIPTS
from iact.core.gate.installs import PUBLIC_INDEX, Installer, installer_of, is_made_by
from iact.core.gate.provenance import NOTHING, Labels, from_tool, join
from iact.core.tree import origin
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.live_folder import UnseenCall
from iact.core.tree.tree import Tree

_MODULE: Final = "shell"
_RUN: Final = f"{_MODULE}.run"


def begins(tree: Tree, agent: Agent, pending: Pending) -> None:
    """Note what a call installs, when it is made."""
    pending.installs = _installer(tree, agent, pending)


def _installer(tree: Tree, agent: Agent, pending: Pending) -> Installer | None:
    bound, loaded = pending.bound, tree.modules.get(pending.spec.module or "")
    if not tree.follows_1_3 or pending.spec.name != _RUN or bound is None or bound.attached:
        return None
    if loaded is None or loaded.origin != "shipped":
        return None

    script, language = SCRIPTS[_RUN]
    if bound.arguments.get(language, "bash") != "bash" or set(bound.arguments) - {
        script,
        language,
        "timeout",
    }:
        return None
    met = agent.labels | origin.around(tree, agent, _RUN)
    if origin.strange(tree, met) or _something_runs(tree):
        return None
    return installer_of(str(bound.arguments.get(script, "")))


def _something_runs(tree: Tree) -> bool:
    """Whether an earlier call left something running in the shell."""
    return any(module == _MODULE for module, _ in tree.shared.busy)


def sends_names_only(tree: Tree, agent: Agent, pending: Pending, host: str) -> bool:
    """Whether a call may go on asking an index, although it has read what the index sent."""
    if pending.installs is None:
        return False

    # Nobody can tell a job's connections from those of the call.
    if _something_runs(tree):
        return False

    if _met_beside(tree, agent, pending):
        return False
    hosts = {host, *pending.hosts}
    return len(hosts) == 1 or hosts <= PUBLIC_INDEX


def _met_beside(tree: Tree, agent: Agent, pending: Pending) -> Labels:
    """The strangers whose text a call can have met since it began, without what it brought itself.

    Another agent may bring one meanwhile, and write the names of what is to be installed. Its label says as little as
    that of the call itself, so what counts is where a label lies.
    """
    shared = tree.shared
    others = [labels for n, labels in shared.writing.items() if n != pending.call]
    tried = shared.held.get(origin.layer_of(agent), NOTHING)
    kept = origin.held_by(tree, _MODULE, agent) - {from_tool(_RUN)}
    return origin.strange(tree, join([agent.labels, pending.beside, shared.files, tried, kept, *others]))


def is_first_to_a_host(tree: Tree, module: str, host: str) -> bool:
    """Whether an installer that is under way has not asked this host yet, so that its asking must be known."""
    under_way = (pending for agent in tree.agents.values() for pending in agent.actions if pending.call)
    return any(
        pending.installs is not None and pending.spec.module == module and host not in pending.hosts
        for pending in under_way
    )


def ends(tree: Tree, agent: Agent, pending: Pending) -> None:
    """Note that a call ends. What it changed is an install's if nobody else can have told it what to install."""
    work = tree.live.working.get(pending.call)
    if work is not None and work.installs is not None and _met_beside(tree, agent, pending):
        tree.live.working[pending.call] = replace(work, installs=None)


def only_installs(tree: Tree, works: Collection[UnseenCall], paths: Iterable[str]) -> bool:
    """Whether changes are what installers make, and nothing but installers can have made them."""
    installers = [work.installs for work in works if work.installs is not None]
    if not works or len(installers) < len(works):
        return False

    under_way = [
        (agent, pending) for agent in tree.agents.values() for pending in agent.actions if pending.call
    ]
    seen = {work.n for work in works}
    if any(pending.call in seen and _met_beside(tree, agent, pending) for agent, pending in under_way):
        return False
    return all(is_made_by(installers, path) for path in paths)
