"""Which calls of a module a connection belongs to, and what they say about its host. Pure.

A module that every agent has for itself connects for that agent. One that serves several agents at a time connects for
a call that names the host, if one does; otherwise it may be any of them, as when a page redirects to another host.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from iact.core.gate.provenance import USER, join
from iact.core.gate.rules import texts_of
from iact.core.language.grammar import Bound
from iact.core.language.nested import put_in
from iact.core.ports import JSON
from iact.core.tree import origin
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.tree import Tree

_ADDRESS: Final = re.compile(r"https?://[^\s\"'<>`\\|]+")
_ADDRESSES: Final = 3
"""The most addresses that a question shows."""
_LONGEST: Final = 500
"""The most characters of one."""
_READ: Final = 65_536
"""The most bytes of a variable that are searched for the host."""


@dataclass(frozen=True, slots=True)
class HostCallers:
    """The calls that a connection may belong to, by record, and their agents.

    `addresses`: those at the host that the calls name. `origins`: where the naming comes from: the labels of the
    arguments that name the host, or "user" alone if the user wrote it; empty if no call names it.
    """

    calls: tuple[int, ...]
    agents: tuple[str, ...]
    addresses: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


def callers_of(tree: Tree, module: str, host: str, owner: str) -> HostCallers:
    """The calls for which `module` may connect to `host`. `owner`: the agent that its instance serves alone, or ""."""
    under_way = [
        (agent, one)
        for agent in tree.agents.values()
        for one in agent.actions
        if one.call and one.spec.module == module
    ]
    if not tree.follows_1_3:
        return HostCallers(tuple(sorted(one.call for _, one in under_way)), ())

    own = [(agent, one) for agent, one in under_way if not owner or agent.path == owner]
    naming = [(agent, one) for agent, one in own if _naming(one, host)]
    chosen = sorted(naming or own, key=lambda found: found[1].call)

    addresses = dict.fromkeys(address for _, one in naming for address in _addresses(one, host))
    return HostCallers(
        tuple(one.call for _, one in chosen),
        tuple(dict.fromkeys(agent.path for agent, _ in chosen)),
        tuple(addresses)[:_ADDRESSES],
        _origins(tree, naming, host),
    )


def _naming(pending: Pending, host: str) -> list[str]:
    """The parameters of a call that name a host."""
    if pending.bound is None:
        return []
    return [
        name
        for name, value in _arguments(pending.bound).items()
        if any(_names(text, host) for text in texts_of(value))
    ]


def _names(text: str, host: str) -> bool:
    """Whether a text names exactly this host, and not one whose name it is a part of."""
    return re.search(rf"(?<![\w.-]){re.escape(host)}(?![\w-]|\.\w)", text, re.IGNORECASE) is not None


def _arguments(bound: Bound) -> dict[str, JSON]:
    short = {
        name: value.text() for name, value in bound.attached.items() if value.is_text and value.size <= _READ
    }
    return put_in(bound.arguments, short)


def _addresses(pending: Pending, host: str) -> Sequence[str]:
    assert pending.bound is not None
    texts = [text for value in _arguments(pending.bound).values() for text in texts_of(value)]
    found = [address[:_LONGEST] for text in texts for address in _ADDRESS.findall(text)]
    return [address for address in found if _host_of(address) == host]


def _host_of(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").lower().removesuffix(".")
    except ValueError:
        return ""


def _origins(tree: Tree, naming: Sequence[tuple[Agent, Pending]], host: str) -> tuple[str, ...]:
    if not naming:
        return ()
    if any(_names(said, host) for said in tree.said):
        return (USER,)

    labels = []
    for agent, pending in naming:
        assert pending.bound is not None
        given = origin.given(tree, agent, pending.bound)
        labels += [given[name] for name in _naming(pending, host) if name in given]
    return tuple(sorted(join(labels)))
