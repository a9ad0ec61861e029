"""How records about hosts change the tree, and who allows a module to reach one, as a function of the tree.

That a module wants to connect, and what a person says, are outcomes. Who allowed a connection follows from the policy,
the module's manifest and the answers of people, so a forged record is named.
"""

from __future__ import annotations

from iact.core.gate.hosts import ANY, HostQuestion, allows, covers, rules_of
from iact.core.records.control import AllowHosts
from iact.core.records.hosts import HostAnswer, HostAsk, HostOrigin, HostReach, rule_of
from iact.core.records.record import Record
from iact.core.tree import earlier_version, reached
from iact.core.tree.carried import NOTHING_CARRIED, CarryingConnection, connection_carries
from iact.core.tree.expectations import expect
from iact.core.tree.host_callers import callers_of
from iact.core.tree.tree import Tree


def origin_of(tree: Tree, module: str, host: str, port: int) -> HostOrigin | None:
    """Who allows `module` to reach `host` at `port` now; None if no one does. `host`: in lower case."""
    loaded = tree.modules.get(module)
    if loaded is None or tree.lockdown:
        return None
    hosts = tree.hosts
    if any(covers(target, host, port) for target in loaded.egress):
        return "manifest"
    if not may_ask(tree, module, host, port):
        return None
    if allows(tree.policy.egress, module, host, port):
        return "policy"
    if allows(hosts.always - hosts.outdated, module, host, port):
        return "always"
    if allows(hosts.session - hosts.outdated, module, host, port):
        return "session"
    once = hosts.once.get((module, host, port))
    if once is not None and (not once or not once.isdisjoint(under_way(tree, module))):
        return "once"
    return None


def may_ask(tree: Tree, module: str, host: str, port: int) -> bool:
    """Whether a module may reach this host if a person allows it: its manifest must declare the need."""
    loaded = tree.modules.get(module)
    needs = loaded.manifest.needs.egress if loaded is not None else ()
    return any(target == ANY or covers(target, host, port) for target in needs)


def under_way(tree: Tree, module: str) -> tuple[int, ...]:
    """The records of a module's calls in progress."""
    found = (one for agent in tree.agents.values() for one in agent.actions)
    return tuple(sorted(one.call for one in found if one.call and one.spec.module == module))


def ask(tree: Tree, record: Record, said: HostAsk) -> None:
    """Apply a question to a person about a host."""
    hosts = tree.hosts
    unknown = origin_of(tree, said.module, said.host, said.port) is None
    carrying = connection_carries(tree, said.module, said.owner, said.host, said.port)
    asked = hosts.asked(said.module, said.host, said.port) > 0
    may = may_ask(tree, said.module, said.host, said.port)
    needed = (unknown or carrying is not None) and may and not asked
    expect(tree, record, needed, "asks about a host that needs no answer")
    callers = callers_of(tree, said.module, said.host, said.owner)
    expect(tree, record, callers.calls == said.calls, f"names other calls than {callers.calls}")
    about = (said.agents, said.addresses, said.origins)
    derived = (callers.agents, callers.addresses, callers.origins)
    expect(tree, record, about == derived, f"says of these calls what is not so, but {derived}")
    carried = CarryingConnection(said.strange, said.private, said.programs)
    right = carrying or NOTHING_CARRIED
    expect(tree, record, carried == right, f"says of what leaves what is not so, but {right}")
    expect(tree, record, said.allowed is not unknown, "says otherwise whether its host was allowed")
    hosts.open[record.n] = HostQuestion(
        said.module, said.host, said.port, said.calls, said.seconds, bool(said.private), said.allowed
    )


def answer(tree: Tree, record: Record, said: HostAnswer) -> None:
    """Apply a person's answer: once, for this session, always, or no."""
    hosts = tree.hosts
    question = hosts.open.pop(said.ask, None)
    expect(tree, record, question is not None, "answers what was not asked")
    expect(tree, record, said.by == "user" or not said.allow, f"is a yes that {said.by} can't give")
    if question is None:
        return
    what = (question.module, question.host, question.port)
    if said.allow and question.carries:
        hosts.let_go.add(what)
    if question.allowed:
        # The host is allowed whatever the answer is. It was about what leaves.
        if not said.allow and said.by == "user":
            hosts.kept_back.add(what)
        return

    if said.allow and said.lasts == "once":
        hosts.once[what] = frozenset(question.calls)
    if said.allow and said.lasts != "once":
        earlier_version.answered(tree, (question.module, rule_of(question.host, question.port)))
    if said.allow:
        hosts.refused -= {what}
    elif said.by == "user":
        hosts.refused |= {what}


def reach(tree: Tree, record: Record, said: HostReach) -> None:
    """Apply a module's connection."""
    origin = origin_of(tree, said.module, said.host, said.port)
    expect(tree, record, origin == said.by, f"is allowed by {origin or 'nobody'}")
    what = (said.module, said.host, said.port)
    tree.hosts.reached.add((*what, said.by))
    reached.connect(tree, said.module, said.owner, said.host)
    if not tree.hosts.once.get(what, {0}):
        del tree.hosts.once[what]


def allow(tree: Tree, said: AllowHosts) -> None:
    """Set what people allow from now on. A host that is newly allowed is no longer refused."""
    hosts = tree.hosts
    always, session = hosts.always, hosts.session
    hosts.always, hosts.session = rules_of(said.always), rules_of(said.session)
    earlier_version.allowed(tree, hosts.always - always, hosts.session - session)
    new = (hosts.always | hosts.session) - (always | session)
    hosts.refused = frozenset(one for one in hosts.refused if not allows(new, *one))
