"""The pure fold: how each kind of record changes the tree.

The session appends a record and applies it; a replay only applies. So `replay --verify` runs the same code as the
session did, over recorded outcomes. In a strict tree every record is checked against what the core itself would have
done at that point, and the first that differs is named.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from iact.core.context.excerpt import Feedback, as_read, excerpt
from iact.core.errors import IactError, JournalError, ReplayMismatch
from iact.core.gate.grant import Narrowing
from iact.core.gate.kind_of_call import waits
from iact.core.gate.policy_file import policy_from_json
from iact.core.gate.provenance import NOTHING, join
from iact.core.language import labels
from iact.core.language.actions import CALL_ASYNC, FRONTEND, SKILL
from iact.core.language.grammar import Bound
from iact.core.language.scanner import Block
from iact.core.language.unread import prose
from iact.core.language.variables import mentions, misnamed
from iact.core.modules.outcome_reader import exit_status
from iact.core.modules.state_names import of_step
from iact.core.records.calls import (
    Call,
    ClearanceAnswer,
    ClearanceAsk,
    Effects,
    Gate,
    Result,
    Select,
    Settle,
    State,
)
from iact.core.records.content import Content, Unknown
from iact.core.records.control import (
    AllowHosts,
    ApplyChanges,
    BeginPlan,
    Cancel,
    Declassify,
    DropChanges,
    EditPlan,
    Inject,
    Lockdown,
    Pause,
    RaiseBudget,
    Restore,
    Resume,
    RetryStep,
    Reword,
    SendNow,
    SetIntent,
    SetModels,
    SetPolicy,
    StartPlan,
    StopCalls,
    SwitchMemory,
    UseOverlay,
    Withdraw,
)
from iact.core.records.dialogue import (
    Choose,
    Compress,
    Discard,
    Distill,
    Draw,
    Recall,
    Reply,
    Say,
    Spawn,
    Turn,
    Upload,
)
from iact.core.records.forms import FormAnswer, FormAsk
from iact.core.records.hosts import HostAnswer, HostAsk, HostReach
from iact.core.records.kinds import FORMAT
from iact.core.records.plans import (
    Ask,
    Draft,
    Extend,
    Fire,
    MakeCopy,
    Node,
    Plan,
    ProfileRisk,
    ProfileRule,
    ProfileTrust,
    TakeOver,
    Wake,
)
from iact.core.records.record import Record
from iact.core.records.session import Adopt, Close, Epoch, Fork, Migrate, Module, Notice, Open
from iact.core.tree import apply_copies as copies
from iact.core.tree import (
    apply_file_owners,
    apply_shared_state,
    budget,
    call_cache,
    carried,
    child_waits,
    chronicle,
    distilling,
    effects,
    installing,
    loops,
    module_states,
    opening,
    origin,
    remote,
    siblings,
    uploads,
)
from iact.core.tree import apply_forms as fold_forms
from iact.core.tree import apply_gate as fold_gate
from iact.core.tree import apply_hosts as fold_hosts
from iact.core.tree import apply_plan as plan_fold
from iact.core.tree import apply_session as fold_session
from iact.core.tree import apply_turn as turns
from iact.core.tree import plan_request as errands
from iact.core.tree.adoption import adopt
from iact.core.tree.agent import Agent, Deliver, Errand, Pending, Report, Rest
from iact.core.tree.budget_draws import draw
from iact.core.tree.child_questions import asks_caller
from iact.core.tree.compression import compress, fault, summarizer
from iact.core.tree.contexts import heard, labels_shown, receive, show, sources_of
from iact.core.tree.damage import STUMBLES, damaged
from iact.core.tree.expectations import (
    NOT_RUN,
    agent_of,
    expect,
    expect_content,
    expect_said,
    is_gated,
    pending_of,
)
from iact.core.tree.expected_functions import with_expected
from iact.core.tree.interpret import (
    advance,
    argument_text,
    begin,
    call_of,
    digest_of,
    has_output,
    kind_digest,
    name_block,
    outcome,
)
from iact.core.tree.kept_memory import KeptMemory, kept_by
from iact.core.tree.mail import Incoming
from iact.core.tree.notes import choose_notes, documented
from iact.core.tree.plan_run import BUG
from iact.core.tree.recall import labels_in, lines_in
from iact.core.tree.replies import first_actions, read_reply
from iact.core.tree.spawns import expect_spawn
from iact.core.tree.standing_statements import Standing
from iact.core.tree.stored_content import IsThere, Read
from iact.core.tree.tree import Tree
from iact.core.tree.window import room_for

_LONGEST_PATH: Final = 4096
"""The most characters of a directory's path that are shown."""

_ABOUT_ALL: Final = frozenset({"open", "module", "control", "fork", "adopt", "migrate"})
"""Kinds of records after which any agent's context may have changed."""


def apply(tree: Tree, record: Record) -> None:
    """Apply one record to the tree.

    Raises:
        ReplayMismatch: the record can't follow here, or, in a strict tree, the core would have done something else.
    """
    tree.records = record.n
    tree.closed = isinstance(record.content, Close) and not record.content.late

    agent = tree.agents.get(record.agent)
    if agent is not None:
        agent.step += 1
        agent.record = record.n
        if agent.step != record.step:
            expect(tree, record, False, f"is step {record.step} of {record.agent}, not {agent.step}")

    # Looked at before it is named: these are asked of every record, and are nearly never so.
    if record.body and record.content.BODY is None and not isinstance(record.content, Unknown):
        expect(tree, record, False, "has a body, and its kind has none")
    if record.extra:
        what = ", ".join(sorted(record.extra))
        expect(tree, record, False, f"says what format {FORMAT} does not know: {what}")

    if record.kind in _ABOUT_ALL:
        tree.epoch += 1
    _take(tree, record)


def take_in(tree: Tree, record: Record) -> None:
    """Apply a record of a stored journal, whose origin and content cannot be trusted.

    Raises:
        JournalCorrupt: the record says something impossible; names the field where it is known.
        ReplayMismatch: as `apply`.
    """
    try:
        apply(tree, record)
    except (JournalError, ReplayMismatch):
        raise
    except (IactError, *STUMBLES) as error:
        raise damaged(record, error) from error


def read_tree(
    records: Sequence[Record], blobs: Read, *, strict: bool, is_there: IsThere | None = None
) -> Tree:
    """Rebuild a tree from a journal's records.

    What is lost follows from the records. `is_there`: what is lost is found out once more, because the session goes on
    from here; `tree.blobs.recorded` says what it is, and a record has to say so, too (`core.tree.stored_content`).

    Raises:
        ReplayMismatch: as `apply`.
        JournalError: there are no records, or they are damaged; or what they need is lost, in a strict tree without any
            record that says so.
    """
    if not records:
        raise JournalError("The journal holds no record.")

    migrated = migrated_at(records)
    found: set[str] = set()
    while True:
        tree = Tree(strict=strict, blobs=blobs)
        recorded = lost_at(records) if is_there is None else frozenset[str]()
        tree.blobs.expect(recorded=recorded, found=found, is_there=is_there)
        mismatch: ReplayMismatch | None = None
        try:
            for record in records:
                tree.current = record.n >= migrated
                take_in(tree, record)
        except ReplayMismatch as error:
            mismatch = error

        # What turned out to be lost while it was read must be so from the first record on. Each round finds another one.
        if not tree.blobs.unread:
            break
        found |= tree.blobs.unread

    if mismatch is not None:
        raise mismatch
    if is_there is not None:
        tree.blobs.settle()
    return tree


def lost_at(records: Sequence[Record]) -> frozenset[str]:
    """The contents of which the records say that they are lost, by their SHA-256."""
    for record in reversed(records):
        match record.content:
            case Migrate(lost=lost) | Adopt(lost=lost):
                return frozenset(lost)
    return frozenset()


def migrated_at(records: Sequence[Record]) -> int:
    """The record from which the rules of one version hold: the last migration or adoption, or else the first record."""
    for record in reversed(records):
        if isinstance(record.content, (Migrate, Adopt)):
            return record.n
    return 1


def _take(tree: Tree, record: Record) -> None:
    """Dispatch on the kind of the record, the most frequent kinds first."""
    match record.content:
        case Turn() as turn:
            _turn(tree, record, turn)
        case Call() as call:
            _call(tree, record, call)
        case Gate() as gate:
            fold_gate.decide(tree, record, gate)
        case Result() as result:
            _result(tree, record, result)
        case Reply() as reply:
            _reply(tree, record, reply)
        case Node() | Plan() | Extend() | Fire() | ProfileRisk() | ProfileRule() | ProfileTrust():
            plan_fold.written(tree, agent_of(tree, record), record)
        case Spawn() as spawn:
            _spawn(tree, record, spawn)
        case Select() as select:
            _select(tree, record, select)
        case Draw() as drawn:
            draw(tree, agent_of(tree, record), record, drawn)
        case Say() as say:
            _say(tree, record, say)
        case Choose() as choice:
            _choose(tree, record, choice)
        case Recall() as recall:
            _recall(tree, record, recall)
        case Discard() as discard:
            _discard(tree, record, discard)
        case Distill() as distilled:
            _distill(tree, record, distilled)
        case Ask() as ask:
            plan = agent_of(tree, record)
            turns.count(tree, plan, ask.usage, ask.role)
            plan_fold.answered(tree, plan, record, ask)
        case Draft() as draft:
            plan_fold.drafted(tree, agent_of(tree, record), record, draft)
        case MakeCopy() as copy:
            copies.make(tree, agent_of(tree, record), record, copy)
        case TakeOver() as taken:
            copies.take_over(tree, agent_of(tree, record), record, taken)
        case Wake() as wake:
            plan_fold.woken(tree, agent_of(tree, record), record, wake)
        case ClearanceAsk() as question:
            fold_gate.ask(tree, record, question)
        case ClearanceAnswer() as answer:
            fold_gate.answer(tree, record, answer)
        case HostAsk() as host_ask:
            fold_hosts.ask(tree, record, host_ask)
        case HostAnswer() as host_answer:
            fold_hosts.answer(tree, record, host_answer)
        case HostReach() as reached:
            fold_hosts.reach(tree, record, reached)
        case FormAsk() as form:
            fold_forms.ask(tree, record, form)
        case FormAnswer() as form_answer:
            # Which call asked is known only until the answer is taken.
            form_ask = tree.forms.get(form_answer.ask)
            fold_forms.answer(tree, record, form_answer)
            if form_ask is not None:
                plan_fold.person_told(tree, form_ask.call, record, form_answer)
        case State() as state:
            _state(tree, record, state)
        case Effects() as looked:
            effects.changed(tree, record, looked)
        case Settle() as settled:
            effects.settle(tree, record, settled)
        case Compress() as cut:
            _compress(tree, record, cut)
        case Upload() as upload:
            apply_file_owners.upload(tree, upload)
            _deliver(tree, tree.root, uploads.incoming(tree, record, upload), record)
        case Module() as module:
            fold_session.change_module(tree, record, module)
        case Open() as opened:
            fold_session.open_session(tree, record, opened)
        case Fork() as forked:
            fold_session.fork(tree, record, forked)
        case Adopt() as adopted:
            adopt(tree, record, adopted)
        case Migrate() as migrated:
            fold_session.migrate(tree, record, migrated)
        case Notice() as notice:
            _notice(tree, record, notice)
        case Epoch() as begun:
            tree.epochs += 1
            expect(tree, record, begun.epoch == tree.epochs, f"is epoch {tree.epochs}")
            module_states.lose_instances(tree)
        case Close(late=late):
            module_states.lose_instances(tree)
            # What a killed process left running may go on for a moment.
            if not late:
                tree.shared.busy.clear()
                tree.shared.left_by.clear()
        case Unknown():
            expect(tree, record, False, f"is of a kind that format {FORMAT} does not have")
        case command:
            _control(tree, record, command)


def forget_refusals(tree: Tree) -> None:
    """A person's no holds until their next message."""
    tree.denied.clear()
    tree.hosts.kept_back.clear()


def _say(tree: Tree, record: Record, say: Say) -> None:
    """Take in what the user wrote: as a message to the root, or as the goal of a plan."""
    expect(tree, record, 0 <= say.client <= len(record.body), "tells of more than there is")
    tree.said.append(record.body[say.client :])
    forget_refusals(tree)
    if say.kept is not None:
        tree.kept = say.kept
    if say.tools is not None:
        tree.tools = say.tools
    tree.traceparent = say.traceparent

    root = tree.root
    waits = has_to_wait(tree)
    expect(tree, record, say.waits == waits, f"has `waits` {say.waits}, which should be {waits}")

    is_goal = say.mode != "dialogue"
    expect(tree, record, not is_goal or not root.active, "begins a plan while the root is at work")
    asks_to_review = not is_goal and say.plan_first
    expect(tree, record, not asks_to_review, "asks to review a plan in dialogue mode, which has none")

    # What a client tells, the user need not have written.
    labels = origin.said_labels(record.body, say.client)
    mode = "wait" if waits else ""
    message = Incoming(record.n, "say", "the user", record.body, mode=mode, labels=labels, client=say.client)
    if is_goal and not root.active:
        _activate(tree, root, record)
        root.errand = Errand(message, say.mode, first=say.plan_first)
        if say.mode != "auto":
            _begin_errand(tree, root, root.errand, record)
        return

    is_for_plan = root.errand is not None and any(plan_fold.below(tree, root))
    if root.errand is not None and is_for_plan:
        # The plan answers it; the root only knows of it.
        root.errand.told = True
        root.mail.feedback.append(_hear(tree, root, message, record))
    else:
        _deliver(tree, root, message, record)
    _tell_plans(tree, root, record, at_once=False)


def has_to_wait(tree: Tree) -> bool:
    """Whether a message to the root now is read only after the root has finished its current answer.

    If a plan runs below the root, the plan and the root are told of the message at once.
    """
    return tree.root.active and not any(plan_fold.below(tree, tree.root))


def _begin_errand(tree: Tree, root: Agent, errand: Errand, record: Record) -> None:
    """Make the message the goal of a plan."""
    root.mail.task = errand.said.text
    root.mail.feedback.append(_hear(tree, root, errand.said, record))
    errands.begin(root, errand)
    advance(tree, root)
    if not root.actions:
        root.errand = None


def _tell_plans(tree: Tree, agent: Agent, record: Record, *, at_once: bool) -> None:
    """Pass a person's message on to the plans that run below its agent, because the agent waits for them."""
    for plan in tuple(plan_fold.below(tree, agent)):
        plan_fold.interjected(tree, plan, record, at_once=at_once)


def _choose(tree: Tree, record: Record, choice: Choose) -> None:
    """Set how a message is worked on, according to a model's assessment of it."""
    root = agent_of(tree, record)
    errand = root.errand
    is_open = errand is not None and errand.mode == "auto"
    expect(tree, record, is_open, "chooses a mode for a message whose mode was given")
    if errand is None or not is_open:
        return

    turns.count(tree, root, choice.usage, choice.role)
    derived = errands.chosen(tree, errand, record.body, choice.usage, choice.failed, choice.failures)
    expect_content(tree, record, derived)
    expect(tree, record, not choice.failed or not record.body, "holds an answer that nobody gave")

    if choice.mode == "dialogue":
        root.errand = None
        root.mail.inbox.insert(0, errand.said)
        root.mail.task = errand.said.text
        return
    errand.mode = choice.mode
    errand.why = choice.why
    _begin_errand(tree, root, errand, record)


def _deliver(tree: Tree, agent: Agent, message: Incoming, record: Record) -> None:
    """Put a message into an agent's inbox. Wakes the agent if the message needs an answer."""
    agent.mail.inbox.append(message)
    if not message.wakes or message.mode == "wait":
        return

    agent.mail.task = message.text
    agent.guards.hear()
    if agent.active:
        return

    _activate(tree, agent, record)
    if message.kind == "intervention":
        # Its caller, which would lend it tokens, has not called it.
        lender = budget.lender_for(tree, agent)
        budget.reserve(tree, lender, agent, budget.share(tree, lender, agent, waits=False))


def _activate(tree: Tree, agent: Agent, record: Record) -> None:
    tree.wake(agent)
    opening.set_rights(tree, agent)
    agent.woken = record.n
    agent.guards.begin(record.at)
    agent.mail.forget_recalled()


def _turn(tree: Tree, record: Record, turn: Turn) -> None:
    """Take in a reply with actions, or with something that its agent is asked about first."""
    agent = agent_of(tree, record)
    taken = turns.take_turn(tree, agent, record, turn.generation)
    blocks = taken.blocks
    read = taken.read or read_reply(
        tree, agent, record.body, blocks, turn.generation, table=agent.table, interrupted=agent.interrupted
    )
    expect(tree, record, turn.held == read.held, "is held, or not, for another reason")

    # What the agent is told about its reply.
    agent.mail.feedback += read.remarks
    if read.remarks and tree.follows_1_3:
        agent.mail.refused += read.remarks
    if read.questions:
        agent.guards.asked |= frozenset(read.questions)
        _hear_of_functions(tree, agent, read.questions)
    if turn.held == "children":
        agent.guards.warned = True
    agent.guards.only_thought = read.held == "thoughts"

    # What it does. The sentence about its children stands behind those about its actions.
    begin(tree, agent, read.run, cut_off=turn.generation.finish == "length")
    if turn.held == "children":
        agent.mail.feedback.append(labels.still_running(child_waits.running_children(tree, agent)))

    # What it wrote beside that.
    text_beside = prose(record.body, with_expected(blocks, tree.registry(agent.path)))
    if read.answer:
        agent.answer = Deliver(read.answer, record.n)
    elif text_beside:
        agent.guards.wrote = text_beside, record.n

    goes_on = bool(agent.actions or agent.mail.feedback or agent.mail.ready or agent.answer)
    expect(tree, record, goes_on, "holds no action and should be a reply")


def _hear_of_functions(tree: Tree, agent: Agent, sentences: Iterable[str]) -> None:
    """Note that an agent reads the names of functions in these sentences. An agent may have chosen a name."""
    if tree.all_vouched:
        return

    text = "\n".join(sentences)
    functions = tree.registry(agent.path).functions()
    named = [spec for spec in functions if f"`{spec.name}`" in text]
    origin.hear_names(tree, agent, named)


def _reply(tree: Tree, record: Record, reply: Reply) -> None:
    """End an agent's work with its answer, or with the reason why it has none, and hand that to its caller."""
    agent = agent_of(tree, record)
    relayed = errands.relay(agent)
    answer = agent.answer if reply.of else None
    _expect_own_reply(tree, agent, record, reply)

    # A message whose way of working was never chosen is one to the root, like any other.
    if agent.errand is not None and agent.errand.mode == "auto":
        agent.mail.inbox.insert(0, agent.errand.said)
    agent.errand = None

    blocks = _read_answer(tree, agent, record, reply)
    chronicle.note_answer(agent, record, reply)

    # The agent rests.
    agent.actions = []
    agent.answer = None
    tree.rest(agent, _REST[reply.status])
    agent.guards.ended = ""
    agent.ended = _short_of(reply)

    # What reached it during its work is read next, unless that work was cancelled.
    if reply.status == "cancelled":
        _leave_mail(tree, agent, record)
    else:
        agent.forked = False
        agent.stopped = False
        had_waiting = agent.mail.release()
        spoke = reply.generation is not None or relayed is not None or answer is not None
        if had_waiting or (spoke and agent.mail.wakes):
            _activate(tree, agent, record)

    # A plan's reply follows from what it did.
    if agent.plan is not None:
        report = plan_fold.end(tree, agent, record, reply)
        expect(tree, record, record.body == (report or record.body), "reports other than what the plan did")

    if agent.caller != "user":
        if not agent.active:
            budget.refund(tree, agent)
        caller = tree.agents[agent.caller]
        _return(tree, agent, caller, record, reply.bound or reply.status, blocks)

    # Its throw-away layer ends with its work.
    agent.aside = []


_REST: Final[Mapping[str, Rest]] = {
    "ok": "done",
    "bound": "done",
    "cancelled": "cancelled",
    "failed": "failed",
}
"""How an agent rests after a reply, by the reply's status."""


def _expect_own_reply(tree: Tree, agent: Agent, record: Record, reply: Reply) -> None:
    """Check that a reply is one that its agent can give now. A plan's own reply is checked by its rules."""
    expect(tree, record, not agent.actions, "leaves actions without an outcome")
    expect(
        tree, record, reply.to == agent.caller, f"is for {reply.to[:_LONGEST_PATH]}, and not for its caller"
    )

    relayed = errands.relay(agent)
    if relayed is not None and reply.status != "cancelled" and record.body != BUG:
        expect_said(tree, record, *relayed)
        return
    if agent.plan is not None:
        return

    last = reply.last if reply.generation is not None else ""
    asks = reply.status == "ok" and asks_caller(tree, agent, record.body)
    plain = Reply(
        to=reply.to, status=reply.status, bound=reply.bound, fault=reply.fault, last=last,
        generation=reply.generation, of=reply.of, asks=asks,
    )  # fmt: skip
    expect(tree, record, reply == plain, "tells of a plan, and its agent is none")
    as_written = not reply.of or agent.answer == Deliver(record.body, reply.of)
    expect(tree, record, as_written, "is another text than its agent wrote")


def _read_answer(tree: Tree, agent: Agent, record: Record, reply: Reply) -> Sequence[Block] | None:
    """Take in the text of a reply that a model wrote, and name its blocks. Returns the blocks; None: no model wrote it."""
    if reply.generation is None:
        return None

    taken = turns.take_turn(tree, agent, record, reply.generation, last=reply.last)
    blocks = taken.blocks
    if reply.status == "ok" and not reply.last:
        read = taken.read or read_reply(
            tree, agent, record.body, blocks, reply.generation, table=agent.table, interrupted=False
        )
        expect(tree, record, not read.acts, "holds an action and should be a turn")
        is_asked_about = read.held in ("unread", "thoughts")
        expect(tree, record, not is_asked_about, "holds what its agent is asked about first")

    named = first_actions(blocks) if tree.follows_1_3 else blocks
    for block in named:
        name_block(agent, block)
    return blocks


def _leave_mail(tree: Tree, agent: Agent, record: Record) -> None:
    """Keep what a cancelled agent had not answered for when it is called again. What a person sent to it during the work
    that they ended is a new task."""
    why = _why_cancelled(tree, agent, record.body)
    queued = unread(agent) if agent.stopped else []
    agent.forked = False
    agent.stopped = False

    agent.mail.inbox = [message for message in agent.mail.inbox if message not in queued]
    agent.mail.feedback = _left_behind(tree, agent, why, record)
    agent.mail.inbox = queued
    agent.mail.answering = frozenset()
    agent.mail.release()
    if queued:
        _activate(tree, agent, record)


def unread(agent: Agent) -> list[Incoming]:
    """The messages that a person sent to an agent during its work and that it has not begun to answer."""
    mail = agent.mail
    by_person = [message for message in mail.inbox if message.by_person and message.n > agent.woken]
    return [message for message in by_person if message.n not in mail.answering]


def _short_of(reply: Reply) -> str:
    """How a reply fell short, for people."""
    if reply.asks:
        return "asks"

    if reply.plan and reply.plan != "concluded":
        if reply.verdict is None:
            return reply.plan
        return reply.verdict.outcome

    if reply.bound:
        return reply.bound
    is_cut = reply.generation is not None and reply.generation.finish == "length"
    return "length" if is_cut else ""


def _left_behind(tree: Tree, agent: Agent, why: str, record: Record) -> list[Feedback]:
    """What a cancelled agent reads first if it is ever called again: everything that it had not answered yet.

    `why`: the note about what ended its work.
    """
    # As it may have been sent already, with its notes (the first journals added notes to the turn only).
    notes = choose_notes(tree, agent) if tree.layout == "changes" else {}
    agent.context.known.update(notes)
    origin.document(agent, documented(tree, notes, None))

    # Its labels first: how much it is shown depends on what it has read.
    for message in agent.mail.inbox:
        origin.read(agent, message.labels)
    parts = heard(tree, agent, agent.mail.inbox, notes, agent.table)
    origin.read(agent, sources_of(parts))

    for message in agent.mail.inbox:
        origin.read(agent, labels_shown(tree, agent, message, agent.table))
        chronicle.hear(agent, message, record)
        agent.mail.parts += show(tree, agent, message, agent.table)
    return [*map(as_read, parts), why]


def _why_cancelled(tree: Tree, agent: Agent, reason: str) -> str:
    """What ended an agent's work, for the agent. `reason`: a sentence for people."""
    if agent.forked:
        return labels.note("The session was forked here.")
    return labels.cancelled(reason, by_user=_is_stopped_by_user(tree, agent))


def _is_stopped_by_user(tree: Tree, agent: Agent) -> bool:
    """Whether a person ended the work of an agent, or of one above it."""
    while not agent.stopped:
        if agent.caller == "user":
            return False
        agent = tree.agents[agent.caller]
    return True


def _hear(tree: Tree, agent: Agent, message: Incoming, record: Record) -> Feedback:
    """Let an agent read a message before its next turn begins. Returns the text for it."""
    origin.read(agent, message.labels | labels_shown(tree, agent, message, agent.table))
    text = receive(tree, agent, message, agent.table)
    origin.read(agent, sources_of([text]))
    chronicle.hear(agent, message, record)
    agent.mail.parts += show(tree, agent, message, agent.table)
    return as_read(text)


def _return(
    tree: Tree, child: Agent, caller: Agent, record: Record, status: str, blocks: Sequence[Block] | None
) -> None:
    """Deliver a child's message to its caller: as the outcome of the CALL that waits for it, or into the inbox."""
    overwrote = tuple(apply_file_owners.for_caller(tree, caller, child))
    # The names of files are the words of who chose them.
    sources = join([origin.by(child), *(tree.agents[each.by].labels for each in overwrote)])
    unnamed: tuple[str, ...] = ()
    if tree.follows_1_3 and child.plan is None and status == "ok":
        unnamed = tuple(misnamed(record.body, child.table, in_code=False))
    reply = Incoming(
        record.n, "child", child.path, record.body, mentions(record.body, child.table),
        child=child.path, status=status, labels=sources, blocks=blocks,
        asks=isinstance(record.content, Reply) and record.content.asks, unnamed=unnamed, aside=tuple(child.aside),
        overwrote=overwrote,
    )  # fmt: skip

    calls = (pending for pending in caller.actions if pending.call and pending.child == child.path)
    waiting = next(calls, None)
    if caller.plan is not None:
        # A plan takes nothing that none of its steps waits for.
        if waiting is None:
            return
        if reply.asks and plan_fold.asked(tree, caller, waiting, record, reply):
            return
        caller.actions.remove(waiting)
        caller.change_aside(reply.aside)
        plan_fold.returned(tree, caller, waiting, record, reply)
        return
    if waiting is None:
        _deliver(tree, caller, reply, record)
        return

    caller.actions.remove(waiting)
    caller.mail.feedback.append(_hear(tree, caller, reply, record))
    if caller.errand is not None and isinstance(record.content, Reply):
        content = record.content
        text = plan_fold.message_of(child) or record.body
        errands.came_back(caller, Report(content.status, content.plan, text, content.verdict))
    if waiting.bound is not None:
        loops.watch(caller, *call_of(tree, waiting.spec.name, waiting.bound), record.body)
    advance(tree, caller)


def _select(tree: Tree, record: Record, select: Select) -> None:
    """End a WAIT or QUERY with the replies that it took, in the order in which they came."""
    agent = agent_of(tree, record)
    pending = pending_of(tree, agent, record, select)
    if pending is None:
        return
    assert pending.bound is not None

    ready = tuple(child_waits.ready(tree, agent, pending))
    expect(tree, record, select.took == ready, "takes other replies than those that had come")

    agent.actions.remove(pending)
    taken = [message for message in agent.mail.inbox if message.n in select.took]
    for message in taken:
        agent.mail.inbox.remove(message)
        agent.mail.feedback.append(_hear(tree, agent, message, record))
        _watch_exchange(tree, agent, message)

    unknown = child_waits.wanted(tree, agent, pending.bound).unknown
    if unknown:
        agent.mail.feedback.append(labels.no_such_child(unknown, agent.children.values()))

    running = child_waits.running_children(tree, agent)
    if running or not select.took:
        sentence = labels.waited(pending.written, running, timed_out=select.timed_out)
        agent.mail.feedback.append(sentence)
        # To wait for nobody again and again is a loop; to wait for who is at work is not.
        if tree.follows_1_3 and not running:
            loops.watch(agent, *call_of(tree, pending.spec.name, pending.bound), sentence)
    advance(tree, agent)


def _watch_exchange(tree: Tree, agent: Agent, reply: Incoming) -> None:
    """Note a reply that a WAIT or QUERY took, as `_return` does for a CALL: the same exchange again is a loop."""
    arguments = agent.guards.sent.pop(reply.child, None)
    if tree.follows_1_3 and arguments is not None:
        loops.watch(agent, CALL_ASYNC.name, arguments, reply.text)


def _spawn(tree: Tree, record: Record, spawn: Spawn) -> None:
    """Create a child or a plan below its caller."""
    caller = tree.agents.get(spawn.caller)
    is_new = record.agent not in tree.agents
    expect(tree, record, caller is not None and is_new, "creates an agent that can't be")
    if caller is None:
        return

    # Also in a tree that is not strict: everything finds an agent's caller by its path.
    name = record.agent.rpartition("/")[2]
    is_below = record.agent == f"{caller.path.rstrip('/')}/{name}" and record.agent != "/"
    if not is_below:
        raise ReplayMismatch(
            f"Record {record.n} (spawn) differs: {record.agent[:200]!r} is not a valid name for a "
            f"child of {caller.path}.",
            n=record.n,
        )
    if tree.strict:
        expect_spawn(tree, record, caller, spawn)

    child = fold_session.create(tree, record.agent, caller.path, record.body, spawn.model or caller.model)
    child.narrowing = Narrowing(spawn.allow, spawn.intent)
    child.step = 1
    child.record = record.n
    origin.read(child, origin.by(caller))
    if spawn.fork:
        child.context = caller.context.fork()
        child.table = caller.table.copy()

    child.plan = plan_fold.made(spawn)
    caller.children[child.name] = child.path
    if child.plan is None:
        siblings.begin(tree, caller, child)


def _call(tree: Tree, record: Record, call: Call) -> None:
    """Carry out an action of the core, or note that a module carries one out now."""
    agent = agent_of(tree, record)
    pending = pending_of(tree, agent, record, call)
    if pending is None or pending.bound is None:
        return

    expect(tree, record, not pending.forked, "makes a call that was dropped when the session was forked")
    is_same = digest_of(pending.bound) == call.args and pending.child == call.to
    expect(tree, record, is_same, f"calls {call.function} other than its turn says")

    gated = is_gated(pending.spec)
    if gated:
        expect(tree, record, bool(pending.copied) == bool(pending.race), "races without a copy of its own")
        fold_gate.use(tree, pending, record, call)
        installing.begins(tree, agent, pending)
        effects.begin(tree, agent, pending, record, call)
        apply_shared_state.begin(tree, agent, pending, record, call)
        apply_file_owners.begin(tree, agent, pending, record, call)
        carried.begins(tree, agent, pending)
    has_impact = call.impact is not None
    why = (
        "has an impact, but its action does not pass the gate"
        if has_impact
        else "has no impact, but its action passes the gate"
    )
    expect(tree, record, gated == has_impact, why)
    reserves = call.budget is not None
    why = "reserves tokens, but calls no child" if reserves else "reserves no tokens for its child"
    expect(tree, record, bool(pending.child) == reserves, why)

    pending.call = record.n
    if pending.spec.name == "PLAN":
        text = argument_text(pending.bound, "plan")
        plan = tree.agents.get(pending.child)
        if plan is not None:
            origin.read(plan, origin.passed(pending.bound))
        _begin_plan(tree, agent, pending.child, text, call.budget or 0, record)
    elif pending.spec.name in ("CALL", "CALL_ASYNC"):
        _address(tree, agent, pending.child, pending.bound, record, call, pending.node)


def _begin_plan(tree: Tree, caller: Agent, path: str, text: str, tokens: int, record: Record) -> None:
    """Hand over a plan and begin it."""
    plan = plan_fold.hand_over(tree, caller, path, text, tokens, record)
    _activate(tree, plan, record)
    plan_fold.begin(tree, plan)


def _address(
    tree: Tree, agent: Agent, path: str, bound: Bound, record: Record, call: Call, node: str
) -> None:
    """Begin a CALL: deliver the message, with the variables that it mentions, to the child, and reserve its budget.

    `node`: the plan step that the call is, if any; what a person said to that step is delivered too.
    """
    child = tree.agents.get(path)
    expect(tree, record, child is not None, f"calls {path}, which was not created")
    if child is not None:
        waits = call.function == "CALL" and agent.plan is None
        tokens = budget.share(tree, agent, child, waits=waits)
        expect(tree, record, tokens == call.budget, f"reserves other than {tokens} tokens")
        budget.reserve(tree, agent, child, call.budget or 0)

        text = argument_text(bound, "message")
        _tell_misnamed(tree, agent, bound, text)
        message = Incoming(
            record.n, "caller", f"your caller {agent.path}", text, mentions(text, agent.table),
            labels=origin.by(agent) | origin.passed(bound),
        )  # fmt: skip
        _deliver(tree, child, message, record)

        if agent.plan is not None and node:
            for note in agent.plan.notes.pop(node, ()):
                _deliver(tree, child, note, record)

    # A CALL ends with the child's reply; a CALL_ASYNC is done now.
    started = next((pending for pending in agent.actions if pending.call == record.n), None)
    if started is not None and started.spec.name == "CALL_ASYNC":
        agent.actions.remove(started)
        agent.guards.sent[path] = kind_digest(CALL_ASYNC.name, bound)
        agent.mail.feedback.append(f"Started {path}; collect its reply with WAIT or QUERY.")
        advance(tree, agent)


def _tell_misnamed(tree: Tree, agent: Agent, bound: Bound, text: str) -> None:
    """Tell an agent once which names in its own message name no variable."""
    wrote_it = agent.plan is None and "message" not in bound.attached
    if not tree.follows_1_3 or not wrote_it:
        return

    for name, nearest in misnamed(text, agent.table).items():
        if name not in agent.guards.misnamed:
            agent.guards.misnamed.add(name)
            agent.mail.feedback.append(labels.no_variable(name, nearest))


def _state(tree: Tree, record: Record, entered: State) -> None:
    """Note the state that a module has entered, and tell its agent of functions that are new in it."""
    agent = agent_of(tree, record)
    function = entered.function
    module = function.split(".", 1)[0]
    step = of_step(agent.path, entered.node) if entered.node else ""
    apply_shared_state.move(tree, agent, function, entered.state, step)
    news = module_states.shift(tree, agent, function, entered.state)
    if agent.plan is not None:
        return

    if news:
        agent.mail.inbox.append(Incoming(record.n, "news", module, news))
    if news or module in agent.context.moved:
        origin.read(agent, origin.of_tool(tree, agent, function))


def _result(tree: Tree, record: Record, result: Result) -> None:
    """Take in the outcome of an action."""
    agent = agent_of(tree, record)
    effects.unchanged(tree, result)
    pending = pending_of(tree, agent, record, result)
    if pending is None:
        return

    agent.change_aside(result.aside)
    _expect_outcome_of(tree, pending, record, result)
    call_cache.cache(tree, pending, record, result)
    if is_gated(pending.spec):
        fold_gate.explain(tree, pending, record, result)
        installing.ends(tree, agent, pending)
        apply_file_owners.end(tree, pending, result)
        apply_shared_state.end(tree, agent, pending, result)
        carried.ends(tree, agent, pending, record, result)

    if agent.plan is not None:
        agent.actions.remove(pending)
        plan_fold.resulted(tree, agent, pending, record, result)
        return

    was_run = result.status not in NOT_RUN
    in_turn = agent.actions[0] is pending or not was_run
    expect(tree, record, in_turn, "comes before the outcome of an action that was written before")
    agent.actions.remove(pending)

    # What the agent reads of it, and what that taints it with.
    agent.mail.feedback.append(outcome(tree, agent, pending, record, result))
    chronicle.note_result(agent, pending, record, result)
    remote.hear(agent, pending, result)
    _read_sources(tree, agent, pending, record, result)

    # If the root was to have its message worked on as a plan, that could not begin: it answers itself.
    agent.errand = None
    _judge(tree, agent, pending, record, result)
    if result.state is not None:
        news = module_states.shift(tree, agent, result.function, result.state)
        if news:
            agent.mail.feedback.append(news)
    agent.directory = _directory(tree, pending, result) or agent.directory
    if was_run:
        advance(tree, agent)


def _expect_outcome_of(tree: Tree, pending: Pending, record: Record, result: Result) -> None:
    """Check that a result can be the outcome of an action."""
    expect(tree, record, result.call == pending.call, "names another call than its own")

    is_dropped = result.status == "forked"
    to_drop = "" if pending.forked else " not"
    why = f"does not match the fork: the action was{to_drop} to be dropped"
    expect(tree, record, is_dropped == pending.forked, why)

    expect(tree, record, result.copied == bool(pending.base), "was made elsewhere than its step says")
    expect(tree, record, _kept(result) == _to_keep(pending, result), "remembers other than its action says")
    if tree.derives_plans:
        concurrent = apply_shared_state.beside(tree, pending, result.version)
        why = "lists concurrent calls that did not run at that time"
        expect(tree, record, result.beside == concurrent, why)


def _read_sources(tree: Tree, agent: Agent, pending: Pending, record: Record, result: Result) -> None:
    """Note the sources of what an agent reads of a result."""
    spec = pending.spec
    if spec.name in (SKILL.name, FRONTEND.name):
        # Content of files, or of outside origin.
        origin.read(agent, origin.of_call(tree, agent, pending))
        return

    if spec.core:
        origin.read(agent, labels_in(result.rows) | origin.passed(pending.bound))
        # An error of LOAD lists the modules that there are.
        if spec.name == "LOAD":
            origin.read(agent, join(tree.shared.named.values()))
        return

    # Nothing is read of a call that was denied or did not reach its module: all such look the same.
    if result.status in ("ok", "error") or has_output(record, result):
        module_states.hold(tree, agent, pending)
        origin.read(agent, origin.of_call(tree, agent, pending))


def _kept(result: Result) -> KeptMemory:
    return KeptMemory(result.kind_of, result.supersedes, result.scope)


def _to_keep(pending: Pending, result: Result) -> KeptMemory:
    """What an action keeps in memory."""
    if pending.spec.name != "REMEMBER" or result.status != "ok" or pending.bound is None:
        return KeptMemory()
    return kept_by(pending.bound)


def _directory(tree: Tree, pending: Pending, result: Result) -> str:
    """The directory in which a call left its agent, if its module has one; empty if not."""
    loaded = tree.modules.get(pending.spec.module or "")
    if loaded is None:
        return ""

    # Another module's word for where an agent is would be repeated to it at every turn.
    is_believed = loaded.origin == "shipped" or loaded.manifest.needs.own_instances
    directory = (result.data or {}).get("cwd")
    if not is_believed or not isinstance(directory, str):
        return ""
    return directory if len(directory) <= _LONGEST_PATH else ""


def _judge(tree: Tree, agent: Agent, pending: Pending, record: Record, result: Result) -> None:
    """Note a call that did not complete, or that brought the same as before."""
    if pending.bound is None:
        return

    function = pending.spec.name
    incomplete = agent.guards.incomplete
    call = call_of(tree, function, pending.bound)
    if result.status == "incomplete":
        # Before format 1.3, such a call was not made once more.
        incomplete[call] = incomplete.get(call, 0) + 1 if tree.follows_1_3 else loops.ATTEMPTS
        return
    if result.status not in ("ok", "error"):
        return

    failed = result.status == "error" or bool(exit_status(dict(result.data or {})))
    if not tree.follows_1_3:
        if failed:
            loops.watch(agent, *call, record.body)
        return

    incomplete.pop(call, None)
    brought = result.blob.sha256 if result.blob is not None else record.body
    if failed:
        loops.watch(agent, *call, brought)
    elif not waits(function, pending.bound.arguments):
        loops.watch_success(agent, *call, brought)


def _compress(tree: Tree, record: Record, cut: Compress) -> None:
    """Cut an agent's history to a summary that a model wrote because the agent did not."""
    agent = agent_of(tree, record)
    right = summarizer(tree, agent)
    known = tree.roles.get(cut.role)
    # A role that was configured later is in no record.
    is_added = cut.role == "fast" and known is None
    expect(tree, record, is_added or cut.role == right, f"is by the model of another role than {right!r}")
    expect(tree, record, known is None or cut.model == known.model, "names another model than its role's")
    turns.count(tree, agent, cut.usage, cut.role)

    is_unfit = tree.follows_1_3 and bool(fault(tree, agent, record.body))
    has_cut = compress(tree, agent, "" if is_unfit else record.body)
    expect(tree, record, has_cut, "cuts a history that is too short")


def _recall(tree: Tree, record: Record, recall: Recall) -> None:
    """Take in what memory recalled for an agent's next turn, or for every agent's first one."""
    agent = agent_of(tree, record)
    lines = lines_in(record.body)
    whole = len(lines) == len(recall.rows)

    if recall.standing:
        begins = agent is tree.root and agent.context.fresh and not tree.standing.lines
        expect(tree, record, begins and whole, "chooses standing statements for a session that has begun")
        tree.standing = Standing(lines, labels_in(recall.rows))
        return

    expect(tree, record, agent.active and whole, "brings memories to an agent that has no turn")
    agent.mail.recalled = lines
    origin.read(agent, labels_in(recall.rows))


def _distill(tree: Tree, record: Record, distilled: Distill) -> None:
    """Note which messages have been distilled. What came of it is memory's (`core.tree.memory_events`)."""
    agent = agent_of(tree, record)
    expect(tree, record, agent is tree.root, "is about messages of another agent than the root")

    chronicle = agent.context.chronicle
    expect(tree, record, distilled.since == chronicle.distilled, f"begins after message {distilled.since}")
    ends = chronicle.distilled < distilled.until <= len(chronicle.heard)
    expect(tree, record, ends, f"ends with message {distilled.until}, which the root has not read")

    role = distilling.distiller(tree)
    expect(tree, record, distilled.role == role, f"is by the model of another role than {role!r}")
    expect(tree, record, distilled.model == tree.roles[role].model, "names another model than its role's")
    turns.count(tree, agent, distilled.usage, distilled.role)
    chronicle.distilled = distilled.until


def _switch_memory(tree: Tree, record: Record, said: SwitchMemory) -> None:
    """Switch memory off or on. What agents were told stays where they read it, and nobody is told it again."""
    expect(tree, record, said.value == (said.of in tree.memory_off), "changes nothing")
    tree.memory_off ^= {said.of}
    fold_session.start_afresh(tree)
    if tree.remembers:
        # What was said while it was off is not to be distilled now.
        tree.root.context.chronicle.skip_distilling()
        return

    for agent in tree.agents.values():
        agent.mail.recalled = ()
        agent.context.remembered = ()


def _discard(tree: Tree, record: Record, discard: Discard) -> None:
    """Count a model's text that was not taken. What a person stopped, its agent is shown."""
    agent = agent_of(tree, record)
    expect(tree, record, agent.plan is not None or not discard.thought, "names a question, and is about none")
    role = summarizer(tree, agent) if discard.reason == "summary" else ""
    turns.count(tree, agent, discard.usage, role)
    if agent.plan is not None:
        plan_fold.cut_off(tree, agent, record, discard)
        return

    agent.mail.answering |= frozenset(discard.read)
    was_stopped = discard.reason in ("interrupt", "cancel")
    if was_stopped and record.body.strip():
        by_user = discard.reason == "interrupt" or _is_stopped_by_user(tree, agent)
        text = excerpt(record.body, room_for(tree, agent, record.body))
        news = labels.stopped_text(text, by_user=by_user)
        agent.mail.inbox.append(Incoming(record.n, "news", agent.path, news, labels=origin.by(agent)))


def _notice(tree: Tree, record: Record, notice: Notice) -> None:
    """Apply a notice for people. Notices of a running plan are checked, because they follow from its state."""
    agent = tree.agents.get(record.agent)
    if agent is not None and agent.plan is not None and notice.code == "plan":
        plan_fold.written(tree, agent, record)


def _intervene(tree: Tree, agent: Agent, record: Record, inject: Inject) -> None:
    """Deliver a message that a person writes into an agent's dialogue."""
    message = plan_fold.intervention(record, inject)
    if agent.caller == "user":
        message = dataclasses.replace(message, kind="say")
    _deliver(tree, agent, message, record)
    _tell_plans(tree, agent, record, at_once=inject.mode == "interrupt")


def _queued(tree: Tree, agent: Agent, record: Record, of: int) -> Incoming | None:
    """Return a person's message that has not been read; None if it is missing and the tree is not strict."""
    queued = next((message for message in unread(agent) if message.n == of), None)
    expect(tree, record, queued is not None, f"is about the message {of}, which does not wait")
    return queued


def _change_queued(tree: Tree, agent: Agent, record: Record, change: SendNow | Reword | Withdraw) -> None:
    """Change a person's message before it is read. A withdrawn message counts as never said."""
    message = _queued(tree, agent, record, change.of)
    if message is None:
        return

    place = agent.mail.inbox.index(message)
    match change:
        case SendNow():
            agent.mail.inbox[place] = dataclasses.replace(message, mode="deliver")
            agent.mail.task = message.text
        case Reword():
            agent.mail.inbox[place] = dataclasses.replace(message, text=record.body, client=0)
            tree.said.change(message.own, record.body)
        case Withdraw():
            del agent.mail.inbox[place]
            if message.own in tree.said:
                tree.said.remove(message.own)


def _stop_behind(agent: Agent) -> None:
    """Stop the actions after the calls that a person ends; the outcomes of those calls tell the rest."""
    if agent.plan is None and agent.calls:
        for pending in agent.actions:
            pending.stopped = not pending.call


def _raise_budget(tree: Tree, root: Agent, record: Record, tokens: int, money: float) -> None:
    """Raise the session's budget, and resume work that it could not afford before."""
    raises = tokens >= 0 and money >= 0 and tokens + money > 0
    why = "raises the budget of an agent other than the root, or by nothing"
    expect(tree, record, root is tree.root and raises, why)
    bound = tree.bounds.money
    expect(tree, record, not money or bound is not None, "gives money where none is bounded")

    raised = None if bound is None else bound + money
    tree.bounds = dataclasses.replace(tree.bounds, tokens=tree.bounds.tokens + tokens, money=raised)
    root.account.allowance += tokens

    has_unanswered = root.mail.wakes or bool(root.mail.feedback and root.ended)
    if has_unanswered and not root.active and root.rest != "cancelled":
        _activate(tree, root, record)


def _control(tree: Tree, record: Record, command: Content) -> None:
    """Apply a person's command."""
    agent = agent_of(tree, record)
    match command:
        case Pause(node=node) | Resume(node=node) if node:
            plan_fold.paused_step(tree, agent, record, node, closes=isinstance(command, Pause))
        case Pause() if not agent.paused:
            agent.paused = True
            agent.guards.pause(record.at)
            for below in tree.subtree(agent.path):
                plan_fold.paused(tree, below, record)
        case Resume() if agent.paused:
            agent.paused = False
            agent.guards.resume(record.at)
            for below in tree.subtree(agent.path):
                plan_fold.paused(tree, below, record)
        case Cancel():
            _cancel(tree, agent, record, command)
        case Inject():
            _inject(tree, agent, record, command)
        case SendNow() | Reword() | Withdraw():
            _change_queued(tree, agent, record, command)
        case StopCalls():
            for below in tree.subtree(agent.path):
                _stop_behind(below)
        case StartPlan():
            as_made = agent.plan is not None and command.plan == agent.plan.terms
            expect(tree, record, as_made, "wants a plan other than the one that was made")
            _begin_plan(tree, tree.agents[agent.caller], agent.path, record.body, command.budget, record)
        case BeginPlan():
            plan_fold.started(tree, agent, record)
        case EditPlan():
            tree.said.append(record.body)
            forget_refusals(tree)
            plan_fold.edited(tree, agent, record)
        case RetryStep():
            _retry_step(tree, agent, record, command)
        case RaiseBudget(tokens=tokens, money=money):
            _raise_budget(tree, agent, record, tokens, money)
        case SetIntent():
            tree.grant = dataclasses.replace(tree.grant, intent=command.value)
            fold_session.start_afresh(tree)
        case SetPolicy():
            tree.policy = policy_from_json(dict(command.policy))
            tree.grant = dataclasses.replace(tree.grant, scope=tree.policy.scope())
            tree.forget_registries()
            fold_session.start_afresh(tree)
        case SetModels():
            fold_session.set_models(tree, record, command.models)
        case Declassify():
            origin.vouch(tree, agent, command.variable, by=f"person:{tree.grant.user}")
        case Restore():
            _restore(tree, record, command)
        case ApplyChanges() | DropChanges():
            effects.intend(tree, record, command)
        case UseOverlay():
            tree.live.overlay = command.value
        case AllowHosts():
            fold_hosts.allow(tree, command)
        case SwitchMemory():
            _switch_memory(tree, record, command)
        case Lockdown():
            tree.lockdown = command.value
            fold_session.start_afresh(tree)


def _cancel(tree: Tree, agent: Agent, record: Record, cancel: Cancel) -> None:
    """End an agent's work: by a person, or by the core, which only ends plans and says why."""
    by_core = cancel.by == "core"
    may_end = cancel.by == "user" or agent.plan is not None
    says_why = bool(record.body)
    expect(tree, record, may_end and by_core == says_why, "says who did it other than why")

    if agent.plan is None:
        agent.stopped = agent.active
        return
    plan_fold.cancelled(tree, agent, record, cancel)


def _inject(tree: Tree, agent: Agent, record: Record, inject: Inject) -> None:
    """Take in what a person writes to an agent, to a plan at work, or to a step of one."""
    tree.said.append(record.body)
    forget_refusals(tree)

    if inject.node:
        child = plan_fold.told_step(tree, agent, record, inject)
        if child is not None:
            _intervene(tree, child, record, inject)
        return
    if agent.plan is not None and agent.plan.running is not None:
        plan_fold.interjected(tree, agent, record, at_once=inject.mode == "interrupt")
        return
    _intervene(tree, agent, record, inject)


def _retry_step(tree: Tree, agent: Agent, record: Record, retry: RetryStep) -> None:
    """Have a plan try a step again. A plan that has ended begins once more, with tokens of its own."""
    if not agent.active and agent.plan is not None:
        _activate(tree, agent, record)
        lender = budget.lender_for(tree, agent)
        share = budget.share(tree, lender, agent, waits=False)
        expect(tree, record, share == retry.budget, f"reserves other than {share} tokens")
        budget.reserve(tree, lender, agent, retry.budget)
    else:
        expect(tree, record, not retry.budget, "reserves tokens for a plan that has some")
    plan_fold.retried(tree, agent, record, retry.node)


def _restore(tree: Tree, record: Record, restored: Restore) -> None:
    """Note that a person put the workspace, or one file of it, back, and tell all agents that have begun."""
    apply_shared_state.restore(tree)
    apply_file_owners.restore(tree, restored.path)

    news = "The user put the files in the workspace back to what they were earlier."
    sources = NOTHING
    if restored.path:
        news = f"The user put the file {restored.path} in the workspace back to what it was earlier."
        # Whoever wrote the files chose their names.
        sources = tree.shared.files

    for agent in tree.agents.values():
        if not agent.context.fresh:
            agent.mail.inbox.append(Incoming(record.n, "news", "the user", news, labels=sources))
