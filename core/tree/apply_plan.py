"""How records change a plan: outcomes are passed to its machine, and what the machine derives is compared.

Outcomes are the results of its steps, the answers of models, what people did, and the time. The records `plan`, `node`,
`fire` and its notices follow from them. They change nothing, and must be the records that the machine wants written, in
its order. A plan is therefore verified like an agent, and a crash between any two records leaves nothing to guess.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

from iact.core.context.excerpt import excerpt, whole
from iact.core.gate.provenance import join
from iact.core.language.actions import CALL, PERSON, Registry
from iact.core.language.grammar import Bound
from iact.core.language.variables import Value, mentions, rename, text_value
from iact.core.modules.outcome_reader import exit_status
from iact.core.plan.commands import (
    AskAcceptance,
    AskModel,
    AskPerson,
    Assessed,
    PlanNotice,
    Risk,
    RuleFired,
    StopAsking,
    StopFiring,
    TakeOverCopy,
    TakeReply,
    TellAgent,
    Trust,
)
from iact.core.plan.forms import node_to_json, read_plan
from iact.core.plan.limits import PlanLimits
from iact.core.plan.machine import PlanMachine
from iact.core.plan.model import WORK, PlanError, PlanExtension, PlanNode, PlanVersion
from iact.core.plan.modes.registry import make_mode
from iact.core.plan.protocol import (
    Decision,
    FailureKind,
    Firing,
    FunctionInfo,
    Outcome,
    PlanQuestion,
    QuestionKind,
    StepFailure,
    StepSuccess,
)
from iact.core.plan.refs import MissingField, resolve
from iact.core.plan.state import NodeChange, NodeRecord
from iact.core.ports import JSON
from iact.core.rates import Rate
from iact.core.records import plans as said
from iact.core.records.calls import ClearanceAnswer, Result
from iact.core.records.control import Cancel, Inject, StartPlan
from iact.core.records.dialogue import Discard, Reply, Spawn
from iact.core.records.forms import FormAnswer
from iact.core.records.parts import Tokens, Wait
from iact.core.records.record import Record
from iact.core.records.session import Notice as SaidNotice
from iact.core.tree import budget, origin
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.expectations import expect, expect_said
from iact.core.tree.interpret import has_output, result_value
from iact.core.tree.mail import Incoming
from iact.core.tree.mismatch import mismatch
from iact.core.tree.plan_answer import answer_of
from iact.core.tree.plan_briefing import brief, window_of
from iact.core.tree.plan_checks import copied_in, judge_in
from iact.core.tree.plan_domain_rules import domain_rules
from iact.core.tree.plan_functions import Functions
from iact.core.tree.plan_report import diagnosis_of, ending_from, ending_of, reply_of, report
from iact.core.tree.plan_run import BUG, Asking, Copied, Owed, PlanRun, StepOutcome, seconds, variable_of
from iact.core.tree.plan_steps import acceptance, asks_acceptance, fire
from iact.core.tree.tree import Tree

ANSWERED: Final = "answer"
"""The field of the form in which a person answers the agent of a step."""
_NEVER: Final = float("inf")
"""The plan's machine ends no wait for a person: the session does, by a record."""
_BY_USER: Final = "The user cancelled this work."
_STEP_BY_USER: Final = "The user cancelled this step."
_UNKEPT: Final = "What it wrote in its copy of the workspace could not be kept, so nothing of it was put into the workspace."
_LARGEST_JSON: Final = 1 << 20
_PRINTED: Final = 2_000
"""The most characters of a step's output that are reported with its failure."""
_KNOWN: Final = frozenset(
    {
        "text/plain", "text/markdown", "text/csv", "text/html", "application/json", "application/pdf",
        "image/png", "image/jpeg", "image/gif", "image/webp", "audio/wav", "audio/mpeg",
    }
)  # fmt: skip
"""Media types that a value keeps even when an untrusted author may have chosen the type for its wording."""


# --- a plan begins ------------------------------------------------------------------------------------------


def made(spawn: Spawn) -> PlanRun | None:
    """Return the plan that a `spawn` record makes; None if it makes an agent."""
    terms = spawn.plan
    if terms is None:
        return None
    return PlanRun(
        terms.mode,
        terms.options,
        terms.thinks,
        terms,
        experience=spawn.history or {},
        files=spawn.files,
        template=spawn.template,
    )


def hand_over(tree: Tree, caller: Agent, path: str, text: str, tokens: int, record: Record) -> Agent:
    """Hand over a plan. It begins on its share of its caller's budget: `tokens`, as the record says.

    The plan gets the variables that `text` mentions, as a child gets those of its message.
    """
    plan = tree.agents.get(path)
    if plan is None or plan.plan is None or plan.active:
        raise mismatch(record, f"hands a plan to {path}, which waits for none")

    share = budget.share(tree, caller, plan, waits=True)
    expect(tree, record, share == tokens, f"reserves other than {share} tokens")
    budget.reserve(tree, caller, plan, tokens)

    run = plan.plan
    try:
        if run.template:
            goal = read_plan(text, id=plan.name).goal if text.strip() else ""
            run.source = read_plan(run.template, id=plan.name).about(goal)
        else:
            run.source = read_plan(text, id=plan.name)
    except PlanError as error:
        raise mismatch(record, f"holds a plan that can't be read: {error}") from error
    plan.turn = record.n
    run.heard = seconds(record.at)
    run.by_person = isinstance(record.content, StartPlan)

    if tree.derives_plans:
        mentioned = mentions(text, caller.table)
        run.given = mentioned
        if tree.follows_1_3:
            # Its steps may name any of them; what is named nowhere is read by nobody.
            run.given = {**mentioned, **dict(reversed(caller.table.listed()))}
        for name, value in run.given.items():
            plan.table.define(name, value)
        origin.read(plan, brief(tree, run, caller, mentioned))
    return plan


def begin(tree: Tree, plan: Agent) -> None:
    """Begin a plan that has been handed over, with its first steps."""
    run = plan.plan
    assert run is not None
    if tree.derives_plans:
        _begin(tree, plan, run)
    else:
        run.history.begin(plan.name, run.source.goal)


def take_over(tree: Tree, plan: Agent, record: Record) -> None:
    """Continue, by the rules of this program, a plan that an older program began."""
    run = run_of(plan, record)
    if run.machine is not None or not plan.active:
        return

    run.heard = seconds(record.at)
    _begin(tree, plan, run)
    if run.machine is None:
        return

    # Steps that the machine knows nothing of go on to no purpose.
    for pending in plan.actions:
        pending.stopped = pending.stopped or pending.node not in run.machine.run.attempts

    messages = plan.mail.inbox
    plan.mail.inbox = []
    with telling(tree, plan, run):
        for message in messages:
            run.machine.interject(message.text, run.machine.run.at)


def _begin(tree: Tree, plan: Agent, run: PlanRun) -> None:
    """Make the machine, and let it begin or continue from where an older program stopped."""
    past = run.history
    working = past.state.work_in("running", "waiting_human")
    try:
        machine = PlanMachine(
            run.source,
            mode=make_mode(
                run.mode, run.options, tree.bounds.plans, run.experience, domain_rules(tree.policy)
            ),
            # The gate decides how long a person has.
            limits=_limits(tree, run),
            catalogue=_Catalogue(tree, plan.path),
            asks=run.thinks,
            history=tuple(past.events),
            answers=tuple(past.answers),
            first=run.terms is not None and run.terms.first,
            taken_up=working,
            by_person=run.by_person,
            follows_1_3=tree.follows_1_3,
            briefing=run.briefing,
            window=partial(window_of, tree),
        )
    except PlanError as error:
        run.invalid = str(error)
        tree.stirred.add(plan.path)
        return

    run.epoch = run.heard - machine.began
    run.machine = machine
    with telling(tree, plan, run, going_on=bool(past.events)):
        machine.begin(machine.began)
        if tree.paused(plan.path):
            machine.pause(machine.began)


_ROLES: Final[Mapping[str, tuple[QuestionKind, ...]]] = {
    "planner": ("plan", "correct", "replan", "profile", "repair"),
    "judge": ("reflect", "interject", "observe", "analyze", "judge", "answer", "word"),
    "patcher": ("patch",),
    "reporter": ("reason", "synthesize"),
}
"""Which questions are answered by the model of each role in a plan."""


def _limits(tree: Tree, run: PlanRun) -> PlanLimits:
    """Return the bounds of a plan: the session's, adjusted by the options that the plan was started with."""
    bounds = tree.bounds.plans
    model_roles: dict[str, str] = {part: getattr(bounds, part) for part in _ROLES}
    option = run.options.get("model")
    if isinstance(option, str):
        model_roles = dict.fromkeys(_ROLES, option)
    roles: dict[QuestionKind, str] = {}
    for part, kinds in _ROLES.items():
        if model_roles[part]:
            roles |= dict.fromkeys(kinds, model_roles[part])

    concurrency = bounds.concurrency
    option = run.options.get("concurrency")
    if isinstance(option, int) and option > 0:
        concurrency = option

    return PlanLimits(
        concurrency=concurrency,
        nodes=bounds.nodes,
        model_calls=bounds.calls,
        wall_clock=min(tree.bounds.activation, bounds.seconds),
        node_timeout=bounds.agent_seconds,
        human_timeout=_NEVER,
        patches=bounds.patches,
        replans=bounds.replans,
        rates={name: Rate(rate.per_second, rate.burst) for name, rate in (bounds.rates or {}).items()},
        roles=roles,
        report=bool(run.options.get("report", bounds.report)),
    )


class _Catalogue:
    """The functions that a plan may call at the moment."""

    def __init__(self, tree: Tree, path: str) -> None:
        self._tree = tree
        self._path = path
        self._registry: Registry | None = None
        self._functions = Functions(Registry(()))

    def find(self, name: str) -> FunctionInfo | None:
        return self._now().find(name)

    def of_call(self, name: str, arguments: Mapping[str, JSON]) -> FunctionInfo | None:
        return self._now().of_call(name, arguments)

    def all(self) -> list[FunctionInfo]:
        return list(self._now().all())

    def _now(self) -> Functions:
        registry = self._tree.registry(self._path)
        if registry is not self._registry:
            self._registry = registry
            rates = self._tree.bounds.plans.rates or {}
            judge = partial(judge_in, self._tree)
            copied = partial(copied_in, self._tree)
            self._functions = Functions(registry, rates, judge, copied)
        return self._functions


def run_of(plan: Agent, record: Record) -> PlanRun:
    """Return the run of the plan that a record is about."""
    if plan.plan is None:
        raise mismatch(record, f"is about the plan {plan.path}, which is none")
    return plan.plan


def _machine_of(plan: Agent, record: Record) -> tuple[PlanRun, PlanMachine]:
    run = run_of(plan, record)
    if run.running is None or not plan.active:
        raise mismatch(record, f"is about the plan {plan.path}, which does not run")
    return run, run.running


# --- what the machine wants ---------------------------------------------------------------------------------


@contextmanager
def telling(tree: Tree, plan: Agent, run: PlanRun, *, going_on: bool = False) -> Iterator[None]:
    """Enter a context in which the machine gets input. On exit, note what the machine wants.

    A bug in the machine ends the plan and nothing else (law 10): the record with the input is in the journal already,
    and the session must stay readable. `going_on`: the plan begins where an older program stopped.
    """
    tree.stirred.add(plan.path)
    try:
        yield
        _follow(tree, plan, run, going_on=going_on)
    except Exception as error:
        run.fault = error
        run.invalid = f"An internal error ended this plan ({type(error).__name__})."
        run.asking.clear()
        for pending in plan.actions:
            pending.stopped = True


def _follow(tree: Tree, plan: Agent, run: PlanRun, *, going_on: bool) -> None:
    """Note what the machine wants to have written, fired, stopped and asked.

    If `going_on`, there may be results that no step has yet.
    """
    machine = run.machine
    assert machine is not None
    while commands := machine.take():
        for command in commands:
            kind = type(command)
            if kind is NodeChange:
                _changed(plan, run, command)  # type: ignore[arg-type]
            elif kind is TellAgent:
                _tell_agent(plan, run, command)  # type: ignore[arg-type]
            elif kind is TakeReply:
                _take_reply(tree, plan, run, command.node)  # type: ignore[union-attr, arg-type]
            elif kind is AskAcceptance:
                _ask_acceptance(plan, run, command)  # type: ignore[arg-type]
            elif kind is Firing:
                _fired(tree, plan, run, machine, command, going_on)  # type: ignore[arg-type]
            else:
                _other(plan, run, command)  # type: ignore[arg-type]


def _changed(plan: Agent, run: PlanRun, change: NodeChange) -> None:
    """Note a step's change of state. Its result is in the record that brought it."""
    kind = run.state.nodes[change.node].node.kind
    output = change.output
    labels = change.labels
    result = 0

    # What a step that works has brought is in the record of its result, which is named instead.
    settled = run.latest.get(change.node)
    worked = change.cause == "succeeded" and kind in WORK and change.validation != "left_out"
    if worked and settled is not None:
        output = None
        labels = ()
        result = settled.n
        if settled.value is not None:
            plan.table.define(variable_of(change.node), settled.value)

    diagnosis = None
    if kind == "micro_planner" and isinstance(output, dict):
        output = dict(output)
        diagnosis = diagnosis_of(output.pop("diagnosis", None))
    content = said.Node(
        node=change.node,
        version=change.version,
        cause=change.cause,
        from_=change.source,
        to=change.target,
        attempt=change.attempt,
        detail=change.detail,
        output=output,
        labels=labels,
        validation=change.validation or None,
        t=round(change.at, 6),
        result=result,
        diagnosis=diagnosis,
    )
    run.owed.append(Owed(content))


def _fired(
    tree: Tree, plan: Agent, run: PlanRun, machine: PlanMachine, firing: Firing, going_on: bool
) -> None:
    """Begin a step, unless it is already in progress or cannot be carried out."""
    node = firing.node.id
    if node in run.firing:
        return

    # An older program may have stopped between the result of an attempt and what follows from it.
    settled = run.latest.get(node)
    has_ended = going_on and settled is not None and settled.attempt == firing.attempt
    if has_ended and settled is not None:
        machine.attempt_ended(node, settled.outcome, machine.run.at)
        return

    fired = fire(tree, plan, run, firing)
    if isinstance(fired, StepFailure):
        machine.attempt_ended(node, fired, machine.run.at)
        return
    pending, owed = fired
    _add_action(plan, run, pending)
    run.owed.append(owed)


def _add_action(plan: Agent, run: PlanRun, pending: Pending) -> None:
    """Make an action the one that its step is about."""
    run.fired = pending.index
    run.firing[pending.node] = pending.index
    plan.actions.append(pending)


def _ask_acceptance(plan: Agent, run: PlanRun, asked: AskAcceptance) -> None:
    """Ask the person whether they accept a step's output: one more action of the step."""
    pending, owed = acceptance(run, plan, asked)
    _add_action(plan, run, pending)
    run.owed.append(owed)


def _other(
    plan: Agent,
    run: PlanRun,
    command: PlanVersion
    | PlanExtension
    | StopFiring
    | TakeOverCopy
    | TellAgent
    | TakeReply
    | AskPerson
    | AskAcceptance
    | AskModel
    | StopAsking
    | PlanNotice
    | Assessed,
) -> None:
    """Note the less frequent commands."""
    match command:
        case PlanVersion():
            lines = "\n".join(f"- {_in_words(node)}" for node in (*command.add, *command.rewire))
            content = said.Plan(
                version=command.version,
                parent=command.parent,
                reason=command.reason,
                add=tuple(map(node_to_json, command.add)),
                drop=command.drop,
                rewire=tuple(map(node_to_json, command.rewire)),
            )
            run.owed.append(Owed(content, lines))
        case PlanExtension(version, reason, add):
            lines = "\n".join(f"- {_in_words(node)}" for node in add)
            more = said.Extend(version=version, reason=reason, add=tuple(map(node_to_json, add)))
            run.owed.append(Owed(more, lines))
        case PlanNotice(text):
            run.owed.append(Owed(SaidNotice(level="warning", code="plan"), text))
        case StopFiring(node):
            for pending in plan.actions:
                pending.stopped = pending.stopped or pending.node == node
        case TakeOverCopy(node):
            copied = run.latest[node].copied
            assert copied is not None, f"{node} worked in no copy"
            run.taking[node] = copied
        case AskPerson(node, question):
            run.inquiries[node] = question
        case AskModel(thought, question, pieces):
            run.asking[thought] = Asking(question, pieces)
        case StopAsking(thought):
            run.asking.pop(thought, None)
        case Risk() | RuleFired() | Trust():
            run.owed.append(Owed(_assessed(command)))


def _assessed(told: Assessed) -> said.ProfileRisk | said.ProfileRule | said.ProfileTrust:
    """Build the record of a mode's assessment of a plan."""
    match told:
        case Risk():
            return said.ProfileRisk(**told._asdict())
        case RuleFired():
            return said.ProfileRule(**told._asdict())
        case Trust():
            return said.ProfileTrust(**told._asdict())


def _in_words(node: PlanNode) -> str:
    """Describe a step in one line, for people."""
    data = node_to_json(node)
    after = ", ".join(node.dependencies)
    what = node.call or f"{node.kind}: {node.task}"
    if node.kind == "agent":
        what = f"agent {node.call}: {node.task}"

    line = f"`{node.id}` {what}"
    if "params" in data:
        line = f"{line} {json.dumps(data['params'], ensure_ascii=False)}"
    if after:
        line = f"{line} ← {after}"
    return " ".join(line.split())


def written(tree: Tree, plan: Agent, record: Record) -> None:
    """Check a record that follows from earlier ones: it must be the next that the plan owes."""
    run = run_of(plan, record)
    if run.machine is None:
        _written_then(tree, plan, run, record)
        return

    owed = run.owed.popleft() if run.owed else None
    if owed is None:
        raise mismatch(record, "follows from nothing; the plan says nothing here")
    if record.kind != owed.content.KIND:
        raise mismatch(record, f"follows from nothing; the plan says {owed.content.KIND!r} here")
    expect_said(tree, record, owed.content, owed.body)
    if isinstance(owed.content, (said.Plan, said.Extend)):
        run.shaped = record


def _written_then(tree: Tree, plan: Agent, run: PlanRun, record: Record) -> None:
    """Do the same in a journal of an older format, in which these records changed the plan."""
    match record.content:
        case said.Plan():
            for node in run.history.version(record).add:
                if node.kind != "interjection":
                    continue
                same_text = (message for message in plan.mail.inbox if message.text == node.task)
                message = next(same_text, None)
                if message is not None:
                    plan.mail.inbox.remove(message)
        case said.Node() as change:
            settled = run.latest.get(change.node)
            success = None
            if settled is not None and isinstance(settled.outcome, StepSuccess):
                success = (settled.n, settled.outcome)
            changed = run.history.change(record, change, success)
            if changed.cause == "succeeded" and settled is not None and settled.value is not None:
                plan.table.define(variable_of(changed.node), settled.value)
        case said.Fire() as fires:
            _fire_then(tree, plan, run, record, fires)


def _fire_then(tree: Tree, plan: Agent, run: PlanRun, record: Record, fires: said.Fire) -> None:
    """Begin a step as such a record says."""
    step = run.state.nodes.get(fires.node)
    if step is None or step.state not in ("running", "waiting_human") or step.node.id in run.firing:
        raise mismatch(record, f"fires {fires.node!r}, which is not to be fired")
    if fires.action != run.fired + 1 or fires.turn != plan.turn:
        raise mismatch(record, f"is not the firing {run.fired + 1} of this plan")

    try:
        if record.body:
            arguments = _arguments(record)
        else:
            arguments = resolve(step.node, run.state.outputs, step.winner)
    except MissingField as error:
        raise mismatch(record, f"can't be fired: {error}") from error

    firing = Firing(plan.name, step.version, step.node, step.attempts, arguments, (), {})
    fired = fire(tree, plan, run, firing)
    if isinstance(fired, StepFailure):
        raise mismatch(record, f"can't be fired: {fired.message}")
    pending, _ = fired
    _add_action(plan, run, pending)


def _arguments(record: Record) -> dict[str, JSON]:
    """The arguments in a record's body."""
    try:
        arguments = json.loads(record.body)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise mismatch(record, "holds arguments that can't be read")
    return arguments


# --- what happened to it ------------------------------------------------------------------------------------


def end(tree: Tree, plan: Agent, record: Record, reply: Reply) -> str | None:
    """End a plan. Returns what its message to the caller must be; None if the plan did not end on its own."""
    run = run_of(plan, record)
    _read_all(plan, run)
    run.ending = ending_from(reply)
    if run.machine is None and not run.invalid:
        # In a journal of an older format.
        return None if run.ending is None else report(run, run.ending)

    if record.body == BUG:
        expect_said(tree, record, Reply(to=plan.caller, status="failed"), BUG)
    elif run.cancelled or run.over:
        expect_said(tree, record, *conclusion(plan, run))
    else:
        raise mismatch(record, "ends a plan that is not at its end")
    run.rest()
    return None


def message_of(plan: Agent) -> str:
    """What a plan that ended on its own reports to a person who asked for it; empty if it did not."""
    run = plan.plan
    return "" if run is None or run.ending is None else answer_of(run, run.ending, plan.aside)


def conclusion(plan: Agent, run: PlanRun) -> tuple[Reply, str]:
    """Return the reply of a plan that has ended, and its message to the caller."""
    if run.cancelled:
        verdict = None if run.running is None else run.running.result().verdict
        return Reply(to=plan.caller, status="cancelled", verdict=verdict), run.cancelled
    if run.running is None:
        return Reply(to=plan.caller, status="failed"), run.invalid

    ending = ending_of(run.running.result(), run.running.run.answer)
    return reply_of(plan, ending), report(run, ending)


def answered(tree: Tree, plan: Agent, record: Record, ask: said.Ask) -> None:
    """Apply a model's answer to a question about the plan, or its failure to answer."""
    run = run_of(plan, record)
    _read_all(plan, run)
    run.asked += 1
    if run.machine is None:
        run.history.answered(record, ask)
        return

    run, machine = _machine_of(plan, record)
    thought = ask.thought
    failed = ask.failed
    asking = _asking_of(run, record, thought)
    expected = answer_to(tree, thought, asking.question, ask.usage, failed, ask.waits, too_long=ask.too_long)
    expect_said(tree, record, expected, "" if failed else record.body)

    # An answer that was read while it was written has only its end left.
    rest = ""
    if asking.pieces and not failed:
        rest = _rest_of(asking, record)

    at = run.at(record.at)
    run.asking.pop(thought)
    with telling(tree, plan, run):
        if rest:
            machine.piece(thought, rest, at)
        answer = None if failed else record.body
        machine.answered(thought, answer, failed, at, too_long=ask.too_long)


def answer_to(
    tree: Tree,
    thought: int,
    question: PlanQuestion,
    usage: Tokens,
    failed: str,
    waits: tuple[Wait, ...],
    *,
    too_long: bool = False,
) -> said.Ask:
    """Build the record of an answer to a question."""
    role = role_of(tree, question)
    return said.Ask(
        thought=thought,
        question=question.kind,
        role=role,
        model=tree.roles[role].model,
        digest=hashlib.sha256(question.text.encode("utf-8", "replace")).hexdigest()[:16],
        usage=usage,
        node=question.node,
        failed=failed,
        waits=waits,
        too_long=too_long,
    )


def role_of(tree: Tree, question: PlanQuestion) -> str:
    """The role of the model that answers a question."""
    return question.role if question.role in tree.roles else "smart"


def drafted(tree: Tree, plan: Agent, record: Record, draft: said.Draft) -> None:
    """Apply a further part of the plan that a planner is writing."""
    run, machine = _machine_of(plan, record)
    asking = _asking_of(run, record, draft.thought)
    if not asking.pieces:
        raise mismatch(record, "is a part of an answer that is read as a whole")
    asking.read += record.body
    with telling(tree, plan, run):
        machine.piece(draft.thought, record.body, run.at(record.at))


def _asking_of(run: PlanRun, record: Record, thought: int) -> Asking:
    if thought not in run.asking:
        raise mismatch(record, f"answers question {thought}, which nobody asked")
    return run.asking[thought]


def _rest_of(asking: Asking, record: Record) -> str:
    """The rest of an answer, after the part that was read while it was written."""
    if not record.body.startswith(asking.read):
        raise mismatch(record, "is another answer than what was read of it before")
    return record.body[len(asking.read) :]


def cut_off(tree: Tree, plan: Agent, record: Record, discard: Discard) -> None:
    """Note that an answer was stopped. It is asked for again unless it is no longer needed."""
    run = run_of(plan, record)
    if run.running is None:
        return

    asks_again = discard.reason == "pause"
    is_open = discard.thought in run.asking
    if asks_again != is_open or (discard.thought and not asks_again):
        raise mismatch(record, "stops an answer that is asked for, or asks for one that is not")
    if asks_again:
        with telling(tree, plan, run):
            _cut_off(run, run.running, discard.thought, run.at(record.at))


def _cut_off(run: PlanRun, machine: PlanMachine, thought: int, at: float) -> None:
    run.asking[thought].read = ""
    machine.cut_off(thought, at)


def woken(tree: Tree, plan: Agent, record: Record, wake: said.Wake) -> None:
    """Wake a plan: something is due, or the session continues after it had stopped."""
    run, machine = _machine_of(plan, record)
    # To hear of a time moves the plan's own on, so what it was is read first.
    since = run.heard - run.epoch
    at = run.at(record.at)
    on_time = wake.reopened or (machine.due is not None and machine.due <= at)
    expect(tree, record, on_time, "comes before anything is due")
    with telling(tree, plan, run):
        if not wake.reopened:
            machine.wake(at)
            return
        machine.stood_still(since, at)
        for thought in list(run.asking):
            _cut_off(run, machine, thought, at)


def paused(tree: Tree, plan: Agent, record: Record) -> None:
    """Apply the beginning or end of a pause of the plan or of an agent above it."""
    run = plan.plan
    if run is None or run.running is None or not plan.active:
        return

    with telling(tree, plan, run):
        if tree.paused(plan.path):
            run.running.pause(run.at(record.at))
        else:
            run.running.resume(run.at(record.at))


def cancelled(tree: Tree, plan: Agent, record: Record, cancel: Cancel) -> None:
    """Cancel the whole plan, or one step."""
    run = run_of(plan, record)
    machine = run.running
    if machine is None or not plan.active:
        return

    node = cancel.node
    at = run.at(record.at)
    if node:
        _step_of(run, record, node, "cancels")
    with telling(tree, plan, run):
        if node:
            machine.cancel_node(node, at, reason=_STEP_BY_USER)
        else:
            run.cancelled = record.body or _BY_USER
            machine.cancel(at, abort=True, reason=run.cancelled)


def started(tree: Tree, plan: Agent, record: Record) -> None:
    """Begin a plan that a person has reviewed."""
    run, machine = _machine_of(plan, record)
    with telling(tree, plan, run):
        machine.start(run.at(record.at))


def edited(tree: Tree, plan: Agent, record: Record) -> None:
    """Replace the steps that have not started by those that a person wrote."""
    run, machine = _machine_of(plan, record)
    try:
        wanted = read_plan(record.body, id=plan.name)
        machine.edited(wanted)
    except PlanError as error:
        raise mismatch(record, f"changes the plan as it can't be: {error}") from error
    run.shaped = record
    with telling(tree, plan, run):
        machine.edit(wanted, run.at(record.at))


def retried(tree: Tree, plan: Agent, record: Record, node: str) -> None:
    """Run a step again because a person asked for it, even if the plan had ended."""
    run, machine = _machine_of(plan, record)
    _step_of(run, record, node, "retries")
    try:
        machine.again(node)
    except PlanError as error:
        raise mismatch(record, f"retries a step that can't be retried: {error}") from error

    run.ending = None
    with telling(tree, plan, run):
        machine.retry(node, run.at(record.at))


def paused_step(tree: Tree, plan: Agent, record: Record, node: str, *, closes: bool) -> None:
    """Pause one step, or resume it, for a person."""
    run, machine = _machine_of(plan, record)
    _step_of(run, record, node, "pauses" if closes else "resumes")
    if closes == run.held(node):
        return

    pauses = run.holds.setdefault(node, [])
    if closes:
        pauses.append((record.at, ""))
    else:
        begun, _ = pauses[-1]
        pauses[-1] = (begun, record.at)

    with telling(tree, plan, run):
        if closes:
            machine.pause_node(node, run.at(record.at))
        else:
            machine.resume_node(node, run.at(record.at))

    # Plans below the step's agent stand still with it.
    for pending in plan.actions:
        if pending.node == node and pending.child in tree.agents:
            for agent in tree.subtree(pending.child):
                paused(tree, agent, record)


def _step_of(run: PlanRun, record: Record, node: str, does: str) -> NodeRecord:
    if node not in run.state.nodes:
        raise mismatch(record, f"{does} step {node!r}, which does not exist")
    return run.state.nodes[node]


def interjected(tree: Tree, plan: Agent, record: Record, *, at_once: bool) -> None:
    """Pass a person's message to the running plan."""
    run, machine = _machine_of(plan, record)
    with telling(tree, plan, run):
        machine.interject(record.body, run.at(record.at), at_once=at_once)


def told_step(tree: Tree, plan: Agent, record: Record, inject: Inject) -> Agent | None:
    """Pass on a person's message about one step. Returns the child that receives it now, if there is one.

    A child that is still to be called receives it with its task. A function cannot receive a message, so for such a
    step the model that judges the plan does.
    """
    run, machine = _machine_of(plan, record)
    step = _step_of(run, record, inject.node, "is about")
    if step.node.kind != "agent":
        text = f"About the step {inject.node}: {record.body}"
        with telling(tree, plan, run):
            machine.interject(text, run.at(record.at), at_once=inject.mode == "interrupt")
        return None

    child = called_by(tree, plan, inject.node)
    if child is None:
        run.notes.setdefault(inject.node, []).append(intervention(record, inject))
    return child


def intervention(record: Record, inject: Inject) -> Incoming:
    """Build the message that a person injects, as an agent below the root receives it."""
    return Incoming(
        record.n, "intervention", "the user", record.body, mode=inject.mode, labels=origin.WRITTEN
    )


def called_by(tree: Tree, plan: Agent, node: str) -> Agent | None:
    """The agent that is working for a step of a plan."""
    calls = (pending for pending in plan.actions if pending.node == node and pending.call and pending.child)
    call = next(calls, None)
    return None if call is None else tree.agents.get(call.child)


def below(tree: Tree, agent: Agent) -> Iterator[Agent]:
    """Yield the plans that run below an agent, without those below another of these plans."""
    for path in agent.children.values():
        child = tree.agents[path]
        if child.plan is None or not child.active:
            yield from below(tree, child)
        elif child.plan.running is not None and not child.plan.cancelled:
            yield child


def waits(tree: Tree, plan: Agent, pending: Pending, record: Record) -> None:
    """Note that a call begins to wait for a person, or has the answer."""
    run = run_of(plan, record)
    machine = run.running
    if machine is None:
        return

    at = run.at(record.at)
    answer = pending.answer
    with telling(tree, plan, run):
        if answer is None:
            machine.waits_for_person(pending.node, at, held=pending.seconds == 0)
        elif isinstance(record.content, ClearanceAnswer) and record.content.by == "time":
            machine.person_decided(pending.node, "expired", at)
        else:
            machine.person_decided(pending.node, "approved" if answer.allow else "denied", at)


def waits_below(tree: Tree, agent: Agent, record: Record) -> None:
    """Let the time of the steps stand still whose agents, or agents below these, wait for a person; or let it go on."""
    while agent.caller != "user":
        caller = tree.agents[agent.caller]
        run = caller.plan
        step = next((pending.node for pending in caller.actions if pending.child == agent.path), "")
        if run is not None and run.running is not None and caller.active and step:
            waiting = any(below_step.asks for below_step in tree.subtree(agent.path))
            with telling(tree, caller, run):
                run.running.stand_still(step, run.at(record.at), waiting=waiting)
        agent = caller


def _read_all(plan: Agent, run: PlanRun) -> None:
    """Let the plan read all results.

    Judging a plan or reporting its end reads every result; a step only reads its refs.
    """
    origin.read(plan, run.failures | join(frozenset(record.labels) for record in run.state.nodes.values()))


# --- results of firings --------------------------------------------------------------------------------------


def resulted(tree: Tree, plan: Agent, pending: Pending, record: Record, result: Result) -> None:
    """Apply the `result` of a firing."""
    if asks_acceptance(pending):
        _accepted(tree, plan, pending, record, result)
        return
    value = None
    if result.status == "ok":
        value = result_value(tree, plan, pending, record, result)
    elif result.status == "error" or has_output(record, result):
        run_of(plan, record).failures |= origin.of_call(tree, plan, pending)
    outcome = _outcome(plan, pending, record, result, value)

    copied = None
    if pending.base:
        copied = Copied(pending.call, record.n, pending.base, result.version, pending.puts)
        is_kept = bool(copied.version)
        if not is_kept and isinstance(outcome, StepSuccess):
            outcome = StepFailure("raised", _UNKEPT)
            value = None
    _settle(tree, plan, pending, record, outcome, value, copied=copied)


def _accepted(tree: Tree, plan: Agent, pending: Pending, record: Record, result: Result) -> None:
    """Apply the person's word about a step's output: an error says what they want instead, or that nobody was there."""
    run = run_of(plan, record)
    run.firing.pop(pending.node, None)
    tree.stirred.add(plan.path)
    machine = run.running
    if machine is None or not plan.active or pending.node not in machine.run.attempts:
        return

    decision: Decision = "expired"
    if result.status == "ok":
        decision = "approved"
    elif result.status == "error":
        decision = "denied"
    words = record.body if decision == "denied" else ""
    with telling(tree, plan, run):
        machine.acceptance(pending.node, decision, words, run.at(record.at))


def returned(tree: Tree, plan: Agent, pending: Pending, record: Record, reply: Incoming) -> None:
    """Apply a child's reply to the step that called it.

    Later steps are given only the names of what the child brings, and nothing else of it. If the child has read strange
    content, its variables therefore get names and types from us, because it chose the original ones.
    """
    if reply.status != "ok":
        run_of(plan, record).failures |= reply.labels
        failure = StepFailure("raised", f"The agent did not finish ({reply.status}): {record.body}")
        _settle(tree, plan, pending, record, failure, None)
        return

    if origin.strange(tree, reply.labels):
        stem = f"{variable_of(pending.node)}_part"
        names = {name: plan.table.keep(stem, _plain(value)) for name, value in reply.values.items()}
    else:
        names = {name: plan.table.receive(name, value) for name, value in reply.values.items()}

    text = rename(record.body, names)
    value = text_value(text, media="text/markdown", labels=reply.labels, origin=pending.child)
    outcome = StepSuccess(text, tuple(sorted(reply.labels)))
    _settle(tree, plan, pending, record, outcome, value, tuple(names.values()))


def asked(tree: Tree, plan: Agent, pending: Pending, record: Record, reply: Incoming) -> bool:
    """Apply a question of a step's agent. Returns whether it is heard; if not, it is the step's result."""
    run = run_of(plan, record)
    machine = run.running
    if machine is None or not tree.follows_1_3 or not plan.active or not machine.may_ask(pending.node):
        return False

    # Who answers it reads it.
    run.failures |= reply.labels
    pending.question = record.body
    run.asked_by[pending.node] = record, reply
    tree.stirred.add(plan.path)
    with telling(tree, plan, run):
        machine.step_asks(pending.node, record.body, run.at(record.at))
    return True


def person_told(tree: Tree, call: int, record: Record, answer: FormAnswer) -> None:
    """Apply a person's answer to the question of a step's agent, if the answered form was one."""
    for plan in list(tree.at_work.values()):
        run = plan.plan
        asking = (pending for pending in plan.actions if pending.call == call and pending.question)
        pending = next(asking, None)
        if run is None or run.running is None or pending is None:
            continue

        # The session was left meanwhile: it is asked again.
        if answer.by == "core":
            return

        text = ""
        if answer.decision == "accept":
            text = str((answer.values or {}).get(ANSWERED) or "")
        run.inquiries.pop(pending.node, None)
        if not text:
            # Its agent is not called again, so this was its outcome.
            plan.actions.remove(pending)
            run.firing.pop(pending.node, None)
        with telling(tree, plan, run):
            run.running.step_answered(pending.node, text or None, run.at(record.at))
        return


def _tell_agent(plan: Agent, run: PlanRun, told: TellAgent) -> None:
    """Go on with the dialogue that a step has with its agent: the answer to its question is one more call of it."""
    before = _asking_action(plan, told.node)
    if before is None:
        return
    plan.actions.remove(before)

    bound = Bound({"name": before.written, "message": told.answer}, {})
    pending = Pending(
        run.fired + 1, before.written, "", "", CALL, bound, child=before.child, node=told.node
    )  # fmt: skip
    _add_action(plan, run, pending)

    attempt = run.state.nodes[told.node].attempts
    content = said.Fire(
        node=told.node, attempt=attempt, turn=plan.turn, action=pending.index, function=CALL.name, to=before.child
    )  # fmt: skip
    run.owed.append(Owed(content, json.dumps({"message": told.answer}, ensure_ascii=False)))


def _take_reply(tree: Tree, plan: Agent, run: PlanRun, node: str) -> None:
    """Take what a step's agent asked as the result of its step."""
    pending = _asking_action(plan, node)
    asked_with = run.asked_by.pop(node, None)
    if pending is not None and asked_with is not None:
        record, reply = asked_with
        plan.actions.remove(pending)
        returned(tree, plan, pending, record, reply)


def _asking_action(plan: Agent, node: str) -> Pending | None:
    """The action of a step whose agent has asked something; None if there is none."""
    asking = (pending for pending in plan.actions if pending.node == node and pending.question)
    return next(asking, None)


def _plain(value: Value) -> Value:
    """The same content under a known type, or under the plainest type that fits."""
    if value.media in _KNOWN:
        return value
    return replace(value, media="text/plain" if value.is_text else "application/octet-stream")


def _settle(
    tree: Tree,
    plan: Agent,
    pending: Pending,
    record: Record,
    outcome: Outcome,
    value: Value | None,
    brought: tuple[str, ...] = (),
    copied: Copied | None = None,
) -> None:
    """Note what came of a firing, and tell the machine if it still waits for that."""
    run = run_of(plan, record)
    run.firing.pop(pending.node, None)
    run.inquiries.pop(pending.node, None)
    attempt = run.state.nodes[pending.node].attempts
    settled = StepOutcome(pending.node, attempt, record.n, outcome, value, brought, copied)
    run.settled[pending.index] = settled
    run.latest[pending.node] = settled

    # Even after a bug: this may have been the last that it waited for.
    tree.stirred.add(plan.path)
    machine = run.running
    if machine is None or not plan.active or pending.node not in machine.run.attempts:
        return

    # A stopped attempt has no outcome, unless one arrived before it could be stopped.
    was_stopped = machine.run.attempts[pending.node].ending and _is_cancelled(record)
    with telling(tree, plan, run):
        machine.attempt_ended(pending.node, None if was_stopped else outcome, run.at(record.at))


def _is_cancelled(record: Record) -> bool:
    """Whether a result or a reply says that the work was cancelled or dropped."""
    content = record.content
    return isinstance(content, Result | Reply) and content.status in ("cancelled", "forked")


_NOT_DONE: Final = "The user was not asked any more."
_FAILED: Final[Mapping[str, tuple[FailureKind, str]]] = {
    "incomplete": ("incomplete", "{} did not complete."),
    "cancelled": ("raised", "{} was cancelled before it ended."),
    "interrupted": ("interrupted", "{} was interrupted; its outcome is unknown."),
    "forked": ("interrupted", "{} was not carried out: the session was forked here."),
}


def _outcome(plan: Agent, pending: Pending, record: Record, result: Result, value: Value | None) -> Outcome:
    """What came of a firing, as the plan's machine takes it. `value`: the result of one that succeeded."""
    facts = dict(result.data or {})
    if value is not None:
        labels = value.labels | set(run_of(plan, record).state.labels_of(pending.node))
        return StepSuccess(_output(value), tuple(sorted(labels)), exit_status(facts))

    if pending.spec is PERSON:
        return StepFailure("incomplete", record.body or _NOT_DONE)
    if result.status not in _FAILED:
        # The module's own words, which say what is wrong.
        kind: FailureKind = "timeout" if facts.get("type") == "TimeoutError" else "raised"
        return StepFailure(kind, record.body or "It failed.")

    kind, sentence = _FAILED[result.status]
    sentence = sentence.format(pending.spec.name)
    if record.body and has_output(record, result):
        sentence = f"{sentence} It had printed: {excerpt(record.body, _PRINTED)}"
    return StepFailure(kind, sentence)


def _output(value: Value) -> JSON:
    """A result as refs see it: JSON as data, other text unchanged, anything else as a description."""
    if not value.is_text:
        return {"media": value.media, "size": value.size, "sha256": value.sha256}
    text = whole(value)
    if "json" in value.media and value.size <= _LARGEST_JSON:
        try:
            data: JSON = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return data
    return text
