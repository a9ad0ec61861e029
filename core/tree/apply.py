"""The pure fold: how each kind of record changes the tree.

The session appends a record and applies it; a replay only applies. So `replay --verify` runs the
code that ran, over recorded outcomes: in a strict tree every record is checked against what the
core itself would have done at that point, and the first that differs is named.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from core.errors import IactError, JournalError, ReplayMismatch
from core.gate.grant import Narrowing
from core.gate.level import from_json
from core.gate.policy_file import policy_from_json
from core.gate.provenance import join
from core.language import labels
from core.language.grammar import Bound
from core.language.scanner import Block
from core.language.variables import mentions
from core.modules.reading import exit_status
from core.records.content import Unknown
from core.records.control import Cancel
from core.records.dialogue import Discard, Reply
from core.records.kinds import FORMAT
from core.records.plans import Ask, Draft, Wake
from core.records.record import Record
from core.tree import apply_gate as fold_gate
from core.tree import apply_plan as plan_fold
from core.tree import apply_session as fold_session
from core.tree import apply_shared as fold_shared
from core.tree import apply_turn as turns
from core.tree import budget, effects, loops, offers, origin, uploads
from core.tree.adoption import adopt
from core.tree.agent import Agent, Pending
from core.tree.checking import NOT_RUN, agent_of, expect, is_gated, pending_of
from core.tree.inputs import choose_notes, documented, heard, labels_shown, receive, show
from core.tree.interpret import (
    advance,
    argument_text,
    begin,
    compress,
    digest_of,
    name_block,
    outcome,
    ready,
    running_children,
)
from core.tree.mail import Incoming
from core.tree.recall import ids_in, lines_in, meant_in, untrusted_in
from core.tree.shape import STUMBLES, damaged
from core.tree.tree import Tree

_LONGEST_PATH: Final = 4096
"""Characters of a folder's path that is shown."""

_ABOUT_ALL: Final = frozenset({"open", "module", "control", "fork", "adopt", "migrate"})
"""Kinds of records after which any agent's context can be another."""

_LOST: Final = b"(This value did not come along when the session was adopted.)"


def apply(tree: Tree, record: Record) -> None:
    """Take one record in.

    Raises:
        ReplayMismatch: the record can't follow here, or, in a strict tree, the core would have done something else.
    """
    tree.records, tree.closed = record.n, record.kind == "close"
    agent = tree.agents.get(record.agent)
    if agent is not None:
        agent.step += 1
        agent.record = record.n
        if agent.step != record.step:
            expect(tree, record, False, f"is step {record.step} of {record.agent}, not {agent.step}")
    if record.extra or isinstance(record.content, Unknown):
        what = ", ".join(sorted(record.extra)) or f"{record.kind} {record.fields.get('op', '')}".rstrip()
        expect(tree, record, False, f"says what format {FORMAT} does not know: {what}")
    if record.kind in _ABOUT_ALL:
        tree.epoch += 1
    rule = _RULES.get(record.kind)
    if rule is not None:
        rule(tree, record)


def take_in(tree: Tree, record: Record) -> None:
    """Take in a record of a stored journal, which may come from anywhere and say anything.

    Raises:
        JournalCorrupt: it says what can't be; names the field where that is known.
        ReplayMismatch: as `apply`.
    """
    try:
        apply(tree, record)
    except (JournalError, ReplayMismatch):
        raise
    except (IactError, *STUMBLES) as error:
        raise damaged(record, error) from error


def read_tree(records: Sequence[Record], blobs: Callable[[str], bytes], *, strict: bool) -> Tree:
    """Rebuild a tree from a journal's records.

    Raises:
        ReplayMismatch: as `apply`.
        JournalError: there are no records, or they are damaged.
    """
    if not records:
        raise JournalError("The journal holds no record.")
    tree = Tree(strict=strict, blobs=_tolerant(records, blobs))
    migrated = migrated_at(records)
    for record in records:
        tree.current = record.n >= migrated
        take_in(tree, record)
    return tree


def _tolerant(records: Sequence[Record], blobs: Callable[[str], bytes]) -> Callable[[str], bytes]:
    """What reads blobs: of an adopted session some may be missing, which is no reason not to open it."""
    if not any(record.kind == "adopt" for record in records):
        return blobs

    def read(digest: str) -> bytes:
        try:
            return blobs(digest)
        except JournalError:
            return _LOST

    return read


def migrated_at(records: Sequence[Record]) -> int:
    """The record from which on the rules of one version hold: of the last migration or adoption, or the first."""
    return next((record.n for record in reversed(records) if record.kind in ("migrate", "adopt")), 1)


def _say(tree: Tree, record: Record) -> None:
    tree.said.append(record.body)
    said = Incoming(record.n, "say", "the user", record.body, labels=origin.WRITTEN)
    _deliver(tree, tree.root, said, record.at)


def _upload(tree: Tree, record: Record) -> None:
    _deliver(tree, tree.root, uploads.incoming(tree, record), record.at)


def _deliver(tree: Tree, agent: Agent, message: Incoming, at: str) -> None:
    """Put a message into an agent's inbox, which wakes it if it has to answer."""
    agent.mail.inbox.append(message)
    if not message.wakes:
        return
    agent.mail.task = message.text
    agent.guards.incomplete.clear()
    if not agent.active:
        _activate(agent, at)
        if message.kind == "intervention":
            lender = budget.lender_for(tree, agent)
            budget.reserve(tree, lender, agent, budget.share(tree, lender, agent, waits=False))


def _activate(agent: Agent, at: str) -> None:
    agent.active = True
    agent.guards.begin(at)
    agent.mail.forget_recalled()


def _turn(tree: Tree, record: Record) -> None:
    agent = agent_of(tree, record)
    blocks = turns.take_turn(tree, agent, record)
    expect(tree, record, not record.text("last"), "follows a last turn and should be a reply")
    begin(tree, agent, blocks, cut_off=record.text("finish") == "length")
    if record.text("held") == "children":
        agent.guards.warned = True
        agent.mail.feedback.append(labels.still_running(running_children(tree, agent)))
    goes_on = bool(agent.actions or agent.mail.feedback or agent.mail.inbox)
    expect(tree, record, goes_on, "holds no action and should be a reply")


def _reply(tree: Tree, record: Record) -> None:
    agent = agent_of(tree, record)
    expect(tree, record, not agent.actions, "leaves actions without an outcome")
    status = record.text("status") or "ok"
    blocks: Sequence[Block] | None = None
    if "context" in record.fields:
        blocks = turns.take_turn(tree, agent, record)
        acts = any(block.action for block in blocks) and status == "ok"
        expect(tree, record, not acts, "holds an action and should be a turn")
        for block in blocks:
            name_block(agent, block)
    agent.actions = []
    agent.active, agent.guards.ended = False, ""
    agent.rest = "done" if status in ("ok", "bound") else "cancelled" if status == "cancelled" else "failed"
    if status == "cancelled":
        agent.mail.inbox, agent.mail.feedback = [], _left_behind(tree, agent)
    elif "context" in record.fields and agent.mail.wakes:
        _activate(agent, record.at)
    if agent.plan is not None:
        assert isinstance(record.content, Reply)
        said = plan_fold.end(tree, agent, record, record.content)
        expect(tree, record, record.body == (said or record.body), "reports other than what the plan did")
    if agent.caller != "user":
        if not agent.active:
            budget.refund(tree, agent)
        _return(tree, agent, tree.agents[agent.caller], record, status, blocks)


def _left_behind(tree: Tree, agent: Agent) -> list[str]:
    """What a cancelled agent reads first if it is ever called again: all that it had not answered yet."""
    # As it may have been sent already, with its notes (the first journals gave them to the turn alone).
    notes = choose_notes(tree, agent) if tree.layout == "changes" else {}
    agent.context.known.update(notes)
    origin.document(agent, documented(tree, notes, None))
    for message in agent.mail.inbox:
        origin.read(agent, message.labels)
    parts = heard(tree, agent, agent.mail.inbox, notes, agent.table)
    for message in agent.mail.inbox:
        origin.read(agent, labels_shown(tree, agent, message, agent.table))
        agent.mail.parts += show(tree, agent, message, agent.table)
    return [*parts, labels.note("Your work was cancelled here by the user.")]


def _hear(tree: Tree, agent: Agent, message: Incoming) -> str:
    """An agent reads a message before its next turn begins."""
    origin.read(agent, message.labels | labels_shown(tree, agent, message, agent.table))
    text = receive(tree, message, agent.table)
    agent.mail.parts += show(tree, agent, message, agent.table)
    return text


def _return(
    tree: Tree, child: Agent, caller: Agent, record: Record, status: str, blocks: Sequence[Block] | None
) -> None:
    """A child's message reaches its caller: as the outcome of the CALL that waits for it, or to be kept."""
    waiting = next((one for one in caller.actions if one.call and one.child == child.path), None)
    values = mentions(record.body, child.table)
    status = record.text("bound") or status
    reply = Incoming(
        record.n, "child", child.path, record.body, values,
        child=child.path, status=status, labels=origin.by(child), blocks=blocks,
    )  # fmt: skip
    if caller.plan is not None:
        if waiting is not None:
            caller.actions.remove(waiting)
            plan_fold.returned(tree, caller, waiting, record, reply)
        return
    if waiting is None:
        _deliver(tree, caller, reply, record.at)
        return
    caller.actions.remove(waiting)
    caller.mail.feedback.append(_hear(tree, caller, reply))
    if waiting.bound is not None:
        loops.watch(caller, waiting.spec.name, digest_of(waiting.bound), record.body)
    advance(tree, caller)


def _select(tree: Tree, record: Record) -> None:
    """WAIT or QUERY ends: the replies that it took, in the order in which they came."""
    agent = agent_of(tree, record)
    pending = pending_of(tree, agent, record)
    if pending is None:
        return
    took = record.fields.get("took")
    wanted = [one for one in took if isinstance(one, int)] if isinstance(took, list) else []
    expect(tree, record, wanted == ready(agent, pending), "takes other replies than those that had come")
    agent.actions.remove(pending)
    for message in [one for one in agent.mail.inbox if one.n in wanted]:
        agent.mail.inbox.remove(message)
        agent.mail.feedback.append(_hear(tree, agent, message))
    left = running_children(tree, agent)
    if left or not wanted:
        agent.mail.feedback.append(
            labels.waited(pending.written, left, timed_out=record.fields.get("timed_out") is True)
        )
    advance(tree, agent)


def _spawn(tree: Tree, record: Record) -> None:
    caller = tree.agents.get(record.text("caller"))
    expect(
        tree, record, caller is not None and record.agent not in tree.agents, "creates an agent that can't be"
    )
    if caller is None:
        return
    if record.agent != f"{caller.path.rstrip('/')}/{record.agent.rpartition('/')[2]}" or record.agent == "/":
        raise ReplayMismatch(
            f"Record {record.n} (spawn) differs: {record.agent[:200]!r} is no name for a child of {caller.path}.",
            n=record.n,
        )
    child = fold_session.create(
        tree, record.agent, caller.path, record.body, record.text("model") or caller.model
    )
    patterns, intent = record.fields.get("allow"), record.fields.get("intent")
    child.narrowing = Narrowing(
        tuple(str(one) for one in patterns) if isinstance(patterns, list) else None, from_json(intent)
    )
    child.step, child.record = 1, record.n
    origin.read(child, origin.by(caller))
    if record.fields.get("fork") is True:
        child.context, child.table = caller.context.fork(), caller.table.copy()
    child.plan = plan_fold.made(record)
    caller.children[child.name] = child.path


def _call(tree: Tree, record: Record) -> None:
    agent = agent_of(tree, record)
    pending = pending_of(tree, agent, record)
    if pending is None or pending.bound is None:
        return
    same = pending.spec.name == record.text("function") and digest_of(pending.bound) == record.text("args")
    expect(tree, record, same, f"calls {record.text('function')} other than its turn says")
    if is_gated(pending.spec):
        fold_gate.use(tree, pending, record)
        effects.begin(tree, agent, pending, record)
        fold_shared.begin(tree, agent, pending, record)
    pending.call = record.n
    if pending.spec.name == "PLAN":
        text = argument_text(pending.bound, "plan")
        plan = tree.agents.get(pending.child)
        if plan is not None:
            origin.read(plan, origin.passed(pending.bound))
        _begin_plan(tree, agent, pending.child, text, record.number("budget"), record)
    elif pending.spec.name in ("CALL", "CALL_ASYNC"):
        _address(tree, agent, pending.child, pending.bound, record)


def _begin_plan(tree: Tree, caller: Agent, path: str, text: str, tokens: int, record: Record) -> None:
    """A plan is handed over, and begins."""
    plan = plan_fold.hand_over(tree, caller, path, text, tokens, record)
    _activate(plan, record.at)
    plan_fold.begin(tree, plan)


def _address(tree: Tree, agent: Agent, path: str, bound: Bound, record: Record) -> None:
    """A CALL is under way: the child gets the message with the variables that it mentions, and its budget."""
    child = tree.agents.get(path)
    expect(tree, record, child is not None, f"calls {path}, which was not created")
    if child is not None:
        waits = record.text("function") == "CALL" and agent.plan is None
        tokens = budget.share(tree, agent, child, waits=waits)
        expect(tree, record, tokens == record.number("budget"), f"reserves other than {tokens} tokens")
        budget.reserve(tree, agent, child, record.number("budget"))
        text = argument_text(bound, "message")
        values = mentions(text, agent.table)
        message = Incoming(
            record.n, "caller", f"your caller {agent.path}", text, values,
            labels=origin.by(agent) | origin.passed(bound),
        )  # fmt: skip
        _deliver(tree, child, message, record.at)
    started = next((one for one in agent.actions if one.call == record.n), None)
    if started is not None and started.spec.name == "CALL_ASYNC":
        agent.actions.remove(started)
        agent.mail.feedback.append(f"Started {path}; collect its reply with WAIT or QUERY.")
        advance(tree, agent)


def _answer(tree: Tree, record: Record) -> None:
    """A model answered a question about a plan."""
    plan = agent_of(tree, record)
    turns.count(plan, record.fields.get("usage"))
    if isinstance(record.content, Ask):
        plan_fold.answered(tree, plan, record, record.content)


def _state(tree: Tree, record: Record) -> None:
    agent = agent_of(tree, record)
    function = record.text("function")
    fold_shared.move(tree, agent, function, record)
    shifted = offers.shift(tree, agent, record)
    if shifted and agent.plan is None:
        agent.mail.inbox.append(Incoming(record.n, "news", function.split(".", 1)[0], shifted))
        origin.read(agent, origin.of_tool(tree, agent, function))


def _result(tree: Tree, record: Record) -> None:
    agent = agent_of(tree, record)
    effects.unchanged(tree, record)
    pending = pending_of(tree, agent, record)
    if pending is None:
        return
    if is_gated(pending.spec):
        fold_gate.explain(tree, pending, record)
        fold_shared.end(tree, agent, pending, record)
    if agent.plan is not None:
        agent.actions.remove(pending)
        plan_fold.resulted(tree, agent, pending, record)
        return
    in_turn = agent.actions[0] is pending or record.text("status") in NOT_RUN
    expect(tree, record, in_turn, "comes before the outcome of an action that was written before")
    agent.actions.remove(pending)
    agent.mail.feedback.append(outcome(tree, agent, pending, record))
    if pending.spec.core:
        origin.read(agent, untrusted_in(record) | origin.passed(pending.bound))
        if pending.spec.name == "LOAD":  # a mistake is told what modules there are
            origin.read(agent, join(tree.shared.named.values()))
    elif record.text("status") in ("ok", "error"):
        origin.read(agent, origin.of_call(tree, agent, pending))
    _judge(agent, pending, record)
    if shifted := offers.shift(tree, agent, record):
        agent.mail.feedback.append(shifted)
    agent.directory = _directory(tree, pending, record) or agent.directory
    if record.text("status") not in NOT_RUN:
        advance(tree, agent)


def _directory(tree: Tree, pending: Pending, record: Record) -> str:
    """The folder in which a call left its agent, if its module is one that has such a thing; empty if not."""
    data, loaded = record.fields.get("data"), tree.modules.get(pending.spec.module or "")
    cwd = data.get("cwd") if isinstance(data, dict) else None
    if loaded is None or not (loaded.origin == "shipped" or loaded.manifest.needs.own_instances):
        return ""
    return cwd if isinstance(cwd, str) and len(cwd) <= _LONGEST_PATH else ""


def _judge(agent: Agent, pending: Pending, record: Record) -> None:
    """Note a call that did not complete, or that failed as it did before."""
    if pending.bound is None:
        return
    function, arguments, code = (
        pending.spec.name,
        digest_of(pending.bound),
        exit_status(record.fields.get("data")),
    )
    match record.text("status"):
        case "incomplete":
            agent.guards.incomplete[function, arguments] = 0
        case "error":
            loops.watch(agent, function, arguments, record.body)
        case "ok" if code:
            loops.watch(agent, function, arguments, record.body)


def _draw(tree: Tree, record: Record) -> None:
    """An agent takes more tokens from those above it before it asks its model."""
    agent, tokens = agent_of(tree, record), record.number("tokens")
    expect(tree, record, 0 < tokens <= budget.above(tree, agent), f"draws {tokens} tokens that are not there")
    budget.draw(tree, agent, tokens)


def _compress(tree: Tree, record: Record) -> None:
    agent = agent_of(tree, record)
    turns.count(agent, record.fields.get("usage"))
    expect(tree, record, compress(agent, record.body), "cuts a history that is too short")


def _recall(tree: Tree, record: Record) -> None:
    """What memory brought for an agent's next turn."""
    agent = agent_of(tree, record)
    whole = len(lines_in(record)) == len(ids_in(record))
    expect(tree, record, agent.active and whole, "brings memories to an agent that has no turn")
    agent.mail.recalled, agent.mail.meant = lines_in(record), meant_in(record)
    origin.read(agent, untrusted_in(record))


def _discard(tree: Tree, record: Record) -> None:
    agent = agent_of(tree, record)
    turns.count(agent, record.fields.get("usage"))
    if agent.plan is not None and isinstance(record.content, Discard):
        plan_fold.cut_off(tree, agent, record, record.content)


def _draft(tree: Tree, record: Record) -> None:
    """A planner has written more of its plan."""
    if isinstance(record.content, Draft):
        plan_fold.drafted(tree, agent_of(tree, record), record, record.content)


def _wake(tree: Tree, record: Record) -> None:
    """Something of a plan was due by itself."""
    if isinstance(record.content, Wake):
        plan_fold.woken(tree, agent_of(tree, record), record, record.content)


def _notice(tree: Tree, record: Record) -> None:
    """For people; a running plan's own follow from its state."""
    agent = tree.agents.get(record.agent)
    if agent is not None and agent.plan is not None and record.text("code") == "plan":
        plan_fold.written(tree, agent, record)


def _control(tree: Tree, record: Record) -> None:
    agent = agent_of(tree, record)
    match record.text("op"):
        case "pause" if not agent.paused:
            agent.paused = True
            agent.guards.pause(record.at)
            for one in tree.subtree(agent.path):
                plan_fold.paused(tree, one, record)
        case "resume" if agent.paused:
            agent.paused = False
            agent.guards.resume(record.at)
            for one in tree.subtree(agent.path):
                plan_fold.paused(tree, one, record)
        case "cancel" if agent.plan is not None and isinstance(record.content, Cancel):
            plan_fold.cancelled(tree, agent, record, record.content)
        case "inject" if agent.plan is not None and agent.plan.machine is not None:
            tree.said.append(record.body)
            plan_fold.interjected(tree, agent, record)
        case "inject":
            kind: Final = "say" if agent.caller == "user" else "intervention"
            tree.said.append(record.body)
            message = Incoming(
                record.n, kind, "the user", record.body, mode=record.text("mode"), labels=origin.WRITTEN
            )
            _deliver(tree, agent, message, record.at)
        case "plan":
            tokens = record.number("budget")
            _begin_plan(tree, tree.agents[agent.caller], agent.path, record.body, tokens, record)
        case "intent":
            value = from_json(record.fields.get("value"))
            tree.grant = dataclasses.replace(tree.grant, intent=value or 0)
            fold_session.start_afresh(tree)
        case "policy":
            tree.policy = policy_from_json(record.fields.get("policy"))
            tree.grant = dataclasses.replace(tree.grant, scope=tree.policy.scope())
            tree.forget_registries()
            fold_session.start_afresh(tree)
        case "declassify":
            origin.vouch(tree, agent, record.text("variable"), by=f"person:{tree.grant.user}")
        case "restore":
            fold_shared.restore(tree)
            text = "The user put the files in the workspace back to what they were earlier."
            for one in tree.agents.values():
                if not one.context.fresh:
                    one.mail.inbox.append(Incoming(record.n, "news", "the user", text))
        case "apply" | "drop":
            effects.intend(tree, record)
        case "overlay":
            tree.live.overlay = record.fields.get("value") is True
        case "lockdown":
            tree.lockdown = record.fields.get("value") is True
            fold_session.start_afresh(tree)


_RULES: Final[Mapping[str, Callable[[Tree, Record], None]]] = {
    "open": fold_session.open_session,
    "say": _say,
    "upload": _upload,
    "turn": _turn,
    "reply": _reply,
    "discard": _discard,
    "call": _call,
    "gate": fold_gate.decide,
    "clearance": fold_gate.clear,
    "result": _result,
    "select": _select,
    "spawn": _spawn,
    "control": _control,
    "draw": _draw,
    "compress": _compress,
    "recall": _recall,
    "plan": lambda tree, record: plan_fold.written(tree, agent_of(tree, record), record),
    "node": lambda tree, record: plan_fold.written(tree, agent_of(tree, record), record),
    "fire": lambda tree, record: plan_fold.written(tree, agent_of(tree, record), record),
    "notice": _notice,
    "ask": _answer,
    "draft": _draft,
    "wake": _wake,
    "state": _state,
    "effects": effects.changed,
    "settle": effects.settle,
    "module": fold_session.change_module,
    "fork": fold_session.fork,
    "adopt": adopt,
    "migrate": fold_session.migrate,
}
