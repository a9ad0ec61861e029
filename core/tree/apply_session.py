"""How records about the whole session change the tree: its beginning, its version, its modules, a fork."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iact.core.context import history
from iact.core.context.history import prompt_digest
from iact.core.context.prompt import STANDARD
from iact.core.gate.grant import Grant
from iact.core.gate.policy_file import policy_from_json
from iact.core.modules.manifest import Manifest
from iact.core.modules.registry import Loaded
from iact.core.records.kinds import FORMAT
from iact.core.records.parts import RoleTerms
from iact.core.records.record import Record
from iact.core.records.session import Fork, Migrate, Module, Open
from iact.core.tree import apply_plan, earlier_version, module_states
from iact.core.tree.agent import Agent
from iact.core.tree.agent_context import AgentContext
from iact.core.tree.expectations import expect, expect_content
from iact.core.tree.live_folder import LiveFolder
from iact.core.tree.mail import Incoming
from iact.core.tree.reached import distrust_earlier
from iact.core.tree.roles import Role
from iact.core.tree.tree import Tree

_LATER: Final = frozenset({"fork"})
"""The label of files that a fork copied as they were when it was made, rather than as its records describe them."""


def open_session(tree: Tree, record: Record, opened: Open) -> None:
    """Begin a session, with its root."""
    take_version(tree, record, opened.format)
    tree.session = opened.session
    tree.workspace = opened.workspace
    tree.layers = opened.layers
    tree.has_memory = opened.memory
    tree.layout = opened.tail
    tree.bounds = opened.bounds
    tree.grant = Grant.of(opened.grant)
    tree.policy = policy_from_json(dict(opened.policy) if opened.policy is not None else None)
    tree.roles = take_roles(tree, record, opened.models)
    create(tree, "/", "user", "", "smart")
    tree.root.step = tree.root.record = record.n
    tree.root.account.allowance = tree.bounds.tokens


def take_version(tree: Tree, record: Record, version: str) -> None:
    """Set the format whose rules hold from here on."""
    tree.follow(version)
    tree.forget_registries()
    if version != FORMAT:
        later = "once the session was opened again it is verified from there on"
        what = f"follows the rules of format {version}, and this program has those of {FORMAT}; {later}"
        expect(tree, record, False, what)


def take_roles(tree: Tree, record: Record, models: Mapping[str, RoleTerms]) -> dict[str, Role]:
    """Return the models that a record names, with their prompts."""
    return {name: _role(tree, record, name, terms) for name, terms in models.items()}


def _role(tree: Tree, record: Record, name: str, terms: RoleTerms) -> Role:
    role = Role.back(terms)
    same = prompt_digest(role.static) == terms.prompt
    tree.outdated = tree.outdated or not same
    expect(tree, record, same, f"was made with another static prompt for the role {name!r}")
    return role


def migrate(tree: Tree, record: Record, migrated: Migrate) -> None:
    """Switch to the rules and prompts of the program that wrote the record. Agents keep what they have."""
    known = {name: role.terms() for name, role in tree.roles.items()}
    expect(tree, record, migrated.from_ == tree.format, f"follows on other rules than those of {tree.format}")
    expect(tree, record, migrated.models == known, "names other models than the session has")
    tree.outdated = False
    tree.blobs.told = set(migrated.lost)
    if not tree.follows_1_3:
        distrust_earlier(tree)
    take_version(tree, record, migrated.to)
    take_roles(tree, record, migrated.models)
    for agent in list(tree.agents.values()):
        if agent.plan is not None:
            apply_plan.take_over(tree, agent, record)


def set_models(tree: Tree, record: Record, models: Mapping[str, RoleTerms]) -> None:
    """Assign other models to the roles. What an agent read and wrote stays, after the prompt of its new model."""
    expect(tree, record, tree.roles.keys() <= models.keys(), "leaves out a role that the session has")
    before, tree.roles = tree.roles, take_roles(tree, record, models)
    tree.foreseen.clear()
    for agent in tree.agents.values():
        known, now = before.get(agent.model), tree.roles.get(agent.model)
        if now is not None and known is not None and known.static != now.static:
            agent.context.history = agent.context.history.under(now.static)


def create(tree: Tree, path: str, caller: str, role: str, model: str) -> Agent:
    """Create an agent that has received nothing yet."""
    known = tree.roles.get(model) or tree.roles.get("smart")
    static = known.static if known is not None else STANDARD
    agent = tree.agents[path] = Agent(
        path, caller, role, model if model in tree.roles else "smart", AgentContext(history.begin(static))
    )
    return agent


def change_module(tree: Tree, record: Record, said: Module) -> None:
    """Note that a module is available in some version, or is no longer available."""
    name, before = said.name, tree.functions
    modules = {one: loaded for one, loaded in tree.modules.items() if one != name}
    if said.state:
        known = tree.modules.get(name)
        same = known is not None and (known.digest, known.origin) == (said.digest, said.origin)
        plain = not said.version and not said.stake and said.approved is None
        expect(tree, record, same and plain, "takes away a module that was not there so")
        earlier_version.replaced(tree, name, None)
        tree.set_modules(modules)
        _tell_gone(tree, record, name)
    else:
        manifest = Manifest.from_json(record.body.removeprefix("```json\n").removesuffix("\n```"))
        expect(tree, record, manifest.name == name, f"holds the manifest of {manifest.name}")
        loaded = Loaded.of(said, manifest)
        expect_content(tree, record, loaded.content(live=tree.workspace != "scratch"))
        earlier_version.replaced(tree, name, loaded)
        tree.set_modules({**modules, manifest.name: loaded})
    changed = {one for one, spec in before.items() if tree.functions.get(one) != spec}
    for agent in tree.agents.values():
        agent.context.change(changed)
    start_afresh(tree)


def _tell_gone(tree: Tree, record: Record, name: str) -> None:
    """Tell the agents that know functions of a module. They read it when they next have something to do."""
    text = f"The module `{name}` is not available any more."
    for agent in tree.agents.values():
        if any(function.startswith(f"{name}.") for function in agent.context.known):
            agent.mail.inbox.append(Incoming(record.n, "news", name, text))


def start_afresh(tree: Tree) -> None:
    """Allow incomplete calls to be tried again, because the grant changed or a module came back."""
    for agent in tree.agents.values():
        agent.guards.incomplete.clear()


def fork(tree: Tree, record: Record, forked: Fork) -> None:
    """Turn the records so far, which were copied from another session, into a session of its own."""
    here = forked.from_ == tree.session and forked.after == record.n - 1
    expect(tree, record, here, f"does not continue the session {tree.session}, forked at {record.n - 1}")
    if forked.workspace == "current":
        # The files are later than the copied records, so it is unknown here who has written them since.
        tree.shared.files |= _LATER
    if forked.drops:
        _come_to_rest(tree)
    module_states.lose_instances(tree)
    tree.session = forked.session
    tree.hosts.open.clear()
    tree.hosts.session = frozenset()  # what a person allowed in one session holds in that session only
    # The overlay and the changes waiting in it stay with the session that they belong to. What that session added to
    # the directory does not belong to this one either.
    tree.live = LiveFolder(overlay=tree.live.overlay)


def _come_to_rest(tree: Tree) -> None:
    """Drop all work in progress; it is not carried out here. The program that opens the session records what is
    dropped.

    The root only rests: what it had received and not answered is read with the next message to it.
    """
    for agent in tree.agents.values():
        agent.forked = agent.active and agent.caller != "user"
        if agent.plan is not None:
            agent.plan.taking.clear()
        for pending in agent.actions:
            pending.forked = True
    root = tree.root
    if root.errand is not None and root.errand.mode == "auto":
        root.mail.inbox.insert(0, root.errand.said)
    root.errand, root.guards.ended = None, ""
    root.mail.release()
    if root.active:
        tree.rest(root, "idle")
