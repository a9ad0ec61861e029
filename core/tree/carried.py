"""Whether a call or a connection carries out what isn't public, as a function of the tree.

An agent that has read a stranger may do what the stranger wants. If it has also read something that isn't public (the user's
files, what they uploaded, memory, what a module with a secret brings), then what it composes and sends may hold it. So
it waits for a person, whatever the host is allowed for: once for each destination and kind. What an agent has read
comes from labels; the texts of pages, in which an address may have stood, from their results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from iact.core.gate.carried import (
    SPEAKING,
    Sending,
    after_host,
    bare_host,
    sending_of,
    stands_in,
    why_asked,
    without_fragment,
)
from iact.core.gate.hosts import covers
from iact.core.gate.impact import SCRIPTS
from iact.core.gate.provenance import REMEMBERED, Labels, function_of, join
from iact.core.gate.rules import host_of, texts_of
from iact.core.language.grammar import Bound
from iact.core.ports import JSON
from iact.core.records.calls import Result
from iact.core.records.record import Record
from iact.core.tree import origin
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.installing import sends_names_only
from iact.core.tree.interpret import result_value
from iact.core.tree.tree import Tree

FILES: Final = "files"
"""How a question names the directory of the user's, which a program can read without saying so."""

_PAGES: Final = 1_000
"""The most pages that addresses are looked for in, the newest ones."""
_READS_PAGES: Final = ("web", "browser")
_OPEN: Final = "browser.open"

_PROGRAMS: Final = 3
"""The most programs that a question shows."""
_LONGEST_PROGRAM: Final = 2_000
"""The most characters of one."""


# --- calls ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Carrying:
    """A call that carries something out, and the sentence for people."""

    sending: Sending
    why: str


def carries(
    tree: Tree, agent: Agent, function: str, bound: Bound, arguments: Mapping[str, JSON]
) -> Carrying | None:
    """What a call carries out that a person has not let go there; None if nothing.

    `arguments`: all of them, with the values that were passed by name.
    """
    sending = _sending(tree, agent, function, arguments)
    if sending is None or not tree.follows_1_3 or sending.place in tree.carried.allowed:
        return None

    labels = join([agent.labels, *origin.given(tree, agent, bound).values()])
    strange = origin.strange(tree, labels)
    if not strange:
        return None

    private = not_public(tree, labels)
    if sending.kind == "call":
        # What came from a module and goes back to it tells it nothing new.
        private = frozenset(label for label in private if _module_of(label) != sending.destination)
    if not private or all(_is_given(tree, sending, text) for text in sending.texts):
        return None
    return Carrying(sending, why_asked(sending, strange, private - strange))


def _sending(tree: Tree, agent: Agent, function: str, arguments: Mapping[str, JSON]) -> Sending | None:
    module = function.split(".", 1)[0]
    loaded = tree.modules.get(module)
    if loaded is None:
        return None
    if loaded.origin == "shipped":
        return sending_of(function, arguments, page=tree.carried.shown.get(agent.path, ""))

    reaches = loaded.egress or loaded.secrets or tree.may_reach(module)
    texts = tuple(text for value in arguments.values() for text in texts_of(value))
    return Sending(module, "call", texts) if reaches and texts else None


def not_public(tree: Tree, labels: Labels) -> Labels:
    """Those of these labels that are of something that isn't public."""
    return frozenset(label for label in labels if _is_private(tree, label))


def _is_private(tree: Tree, label: str) -> bool:
    if label in ("memory", REMEMBERED) or label in origin.UPLOADED:
        return True

    module = _module_of(label)
    loaded = tree.modules.get(module)
    if loaded is None or module in origin.OUTSIDE:
        return False
    reads_the_users_files = tree.workspace != "scratch" and bool(loaded.manifest.needs.workspace)
    return reads_the_users_files or bool(loaded.secrets)


def _module_of(label: str) -> str:
    return function_of(label).split(".", 1)[0]


def _is_given(tree: Tree, sending: Sending, text: str) -> bool:
    """Whether the user wrote what leaves; an address may also have stood in a page, or be a host that is allowed by
    its name."""
    if sending.kind != "address":
        return _user_wrote(tree, text)

    address = without_fragment(text)
    host = bare_host(address)
    is_named = bool(host) and _is_named(tree, host)
    return is_named or _user_wrote(tree, address) or _stood_in_a_page(tree, address)


def _user_wrote(tree: Tree, text: str) -> bool:
    """Whether the user wrote a text, in the same letters."""
    exact = after_host(text).strip()
    return tree.said.holds(text) and any(exact in said for said in tree.said)


def _is_named(tree: Tree, host: str) -> bool:
    """Whether somebody allowed exactly this host. A name below `*.example.org` is itself something that is sent."""
    rules = tree.policy.egress | tree.hosts.always | tree.hosts.session
    return any(rule == host or rule.startswith(f"{host}:") for _, rule in rules)


def _stood_in_a_page(tree: Tree, address: str) -> bool:
    return any(stands_in(page.text(), address) for page in reversed(tree.carried.pages))


# --- pages ------------------------------------------------------------------------------------------------------


def begins(tree: Tree, agent: Agent, pending: Pending) -> None:
    """Note which page a browser is told to show, when the call is made."""
    if pending.spec.name != _OPEN or pending.bound is None or not _ships(tree, "browser"):
        return
    address = text_of(pending.bound, "url")
    is_of_the_web = address.startswith(("http://", "https://"))
    tree.carried.shown[agent.path] = (host_of(address) or "") if is_of_the_web else ""


def text_of(bound: Bound, name: str) -> str:
    """An argument that is a text, written or passed by name; empty if there is none."""
    if name in bound.attached:
        value = bound.attached[name]
        return value.text() if value.is_text else ""
    written = bound.arguments.get(name)
    return written if isinstance(written, str) else ""


def ends(tree: Tree, agent: Agent, pending: Pending, record: Record, result: Result) -> None:
    """Note the page that a call brought: an address in it is the page's word.

    A page that an agent made itself, and showed in its browser, is no page from outside.
    """
    module = pending.spec.module or ""
    if result.status != "ok" or module not in _READS_PAGES or not _ships(tree, module):
        return
    value = result_value(tree, agent, pending, record, result)
    if not value.is_text:
        return

    carried = tree.carried
    if module == "browser":
        # What else a browser says (that a field was filled, and with what) is no page.
        address = (result.data or {}).get("url")
        if not isinstance(address, str) or not carried.shown.get(agent.path):
            return
        carried.shown[agent.path] = host_of(address) or ""
    carried.pages.append(value)
    del carried.pages[:-_PAGES]


def _ships(tree: Tree, module: str) -> bool:
    loaded = tree.modules.get(module)
    return loaded is not None and loaded.origin == "shipped"


# --- connections ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CarryingConnection:
    """A connection that can carry something out."""

    strange: tuple[str, ...]
    """The labels of what strangers wrote and the program may follow."""
    private: tuple[str, ...]
    """The labels of what isn't public and the program may send."""
    programs: tuple[str, ...]
    """What is under way, as its calls say, as far as it can be shown."""


NOTHING_CARRIED: Final = CarryingConnection((), (), ())


def connection_carries(
    tree: Tree, module: str, owner: str, host: str, port: int
) -> CarryingConnection | None:
    """What a module's connection can carry out that a person has not let go there; None if nothing.

    `owner`: the agent that the connecting instance serves alone, or "". Only of programs: what the arguments of other
    functions send was asked about before the call.
    """
    loaded = tree.modules.get(module)
    if loaded is None or not tree.follows_1_3 or (module, host, port) in tree.hosts.let_go:
        return None
    approved_with_it = any(covers(target, host, port) for target in loaded.egress)
    if approved_with_it or _says_what_it_sends(tree, module, owner):
        return None

    under_way = [
        (agent, pending)
        for agent in _connecting(tree, owner)
        for pending in agent.actions
        if pending.call and pending.spec.module == module
    ]
    if under_way and all(_only_clones(tree, pending, host) for _, pending in under_way):
        return None

    if under_way and all(sends_names_only(tree, agent, pending, host) for agent, pending in under_way):
        return None

    agents = [agent for agent, _ in under_way] or _connecting(tree, owner)
    read = [agent.labels | origin.around(tree, agent, module) for agent in agents]
    labels = join([*read, *(origin.passed(pending.bound) for _, pending in under_way)])
    strange = origin.strange(tree, labels)

    private = not_public(tree, labels)
    if tree.workspace != "scratch" and loaded.manifest.needs.workspace:
        private |= {FILES}
    if not strange or not private:
        return None
    programs = [_program(pending) for _, pending in under_way]
    return CarryingConnection(
        tuple(sorted(strange)), tuple(sorted(private)), tuple(filter(None, programs))[:_PROGRAMS]
    )


def _connecting(tree: Tree, owner: str) -> list[Agent]:
    """The agents for which an instance may connect."""
    if owner:
        return [tree.agents[owner]] if owner in tree.agents else []
    return list(tree.agents.values())


def _says_what_it_sends(tree: Tree, module: str, owner: str) -> bool:
    """Whether a module's arguments say what it sends. A page of the agent's own is a program, too."""
    if module not in SPEAKING or not _ships(tree, module):
        return False
    if module != "browser":
        return True
    pages = tree.carried.shown
    return pages.get(owner, "-") != "" if owner else "" not in pages.values()


def _only_clones(tree: Tree, pending: Pending, host: str) -> bool:
    """Whether a call does nothing but fetch a repository from this host. Its address was judged before the call."""
    if pending.spec.name != "git.clone" or pending.bound is None or not _ships(tree, "git"):
        return False
    return host_of(text_of(pending.bound, "url")) == host


def _program(pending: Pending) -> str:
    """The text of a call that a person is shown, from its beginning."""
    if pending.bound is None:
        return ""
    script = SCRIPTS.get(pending.spec.name)
    if script is not None:
        text = text_of(pending.bound, script[0])
    else:
        text = " ".join(texts_of(dict(pending.bound.arguments)))
    return text[:_LONGEST_PROGRAM]
