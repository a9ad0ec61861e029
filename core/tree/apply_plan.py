"""How records change a plan: what the world said is told to its machine, what the machine said is compared.

Outcomes are the results of its steps, the answers of models, what people did and the time. The records `plan`, `node`,
`fire` and its notices follow from them: they change nothing, and must be those that the machine wants written, in
its order. So a plan is verified like an agent, and a crash between any two records leaves nothing to guess.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

from iact.core.gate.provenance import join
from iact.core.language.actions import Registry
from iact.core.language.labels import shorten
from iact.core.language.variables import Value, mentions, rename, text_value
from iact.core.modules.outcome_reader import exit_status
from iact.core.plan.commands import (
    AskModel,
    Assessed,
    PlanNotice,
    Risk,
    RuleFired,
    StopAsking,
    StopFiring,
    TakeOverCopy,
    Trust,
)
from iact.core.plan.forms import node_to_json, read_plan
from iact.core.plan.limits import PlanLimits
from iact.core.plan.machine import PlanMachine
from iact.core.plan.model import WORK, PlanError, PlanExtension, PlanNode, PlanVersion
from iact.core.plan.modes.registry import make_mode
from iact.core.plan.protocol import (
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
from iact.core.records.control import Cancel, Inject
from iact.core.records.dialogue import Discard, Reply, Spawn
from iact.core.records.kinds import FORMAT
from iact.core.records.parts import Tokens, Wait
from iact.core.records.record import Record
from iact.core.records.session import Notice as SaidNotice
from iact.core.tree import budget, origin
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.expectations import expect, expect_said
from iact.core.tree.interpret import has_output, result_value
from iact.core.tree.mail import Incoming
from iact.core.tree.mismatch import mismatch
from iact.core.tree.plan_briefing import briefing_of, read_of_briefing
from iact.core.tree.plan_checks import Functions, copied_in, judge_in
from iact.core.tree.plan_report import answer_of, diagnosis_of, ending_from, ending_of, reply_of, report
from iact.core.tree.plan_run import BUG, Asking, Copied, Owed, PlanRun, StepOutcome, seconds, variable_of
from iact.core.tree.plan_steps import fire
from iact.core.tree.tree import Tree

_NEVER: Final = float("inf")
_BY_USER: Final = "The user cancelled this work."
_STEP_BY_USER: Final = "The user cancelled this step."
_UNKEPT: Final = "What it wrote in its copy of the workspace could not be kept, so nothing of it was put into the workspace."
_LARGEST_JSON: Final = 1 << 20
_PRINTED: Final = 2_000
"""Characters of what a step had printed that are told with its failure."""
_KNOWN: Final = frozenset(
    {
        "text/plain", "text/markdown", "text/csv", "text/html", "application/json", "application/pdf",
        "image/png", "image/jpeg", "image/gif", "image/webp", "audio/wav", "audio/mpeg",
    }
)  # fmt: skip
"""Types that a value keeps when its author may have chosen them for what they say."""


# --- a plan begins ------------------------------------------------------------------------------------------


def made(spawn: Spawn) -> PlanRun | None:
    """The plan that a `spawn` record makes; None if it makes an agent."""
    terms = spawn.plan
    if terms is None:
        return None
    return PlanRun(
        terms.mode,
        terms.options,
        terms.thinks,
        terms,
        experience=spawn.history or {},
        template=spawn.template,
    )


def hand_over(tree: Tree, caller: Agent, path: str, text: str, tokens: int, record: Record) -> Agent:
    """A plan begins, on its share of its caller's budget: `tokens`, as the record says.

    It gets the variables that `text` mentions, as a child gets those of its message.
    """
    plan = tree.agents.get(path)
    if plan is None or plan.plan is None or plan.active:
        raise mismatch(record, f"hands a plan to {path}, which waits for none")
    share = budget.share(tree, caller, plan, waits=True)
    expect(tree, record, share == tokens, f"reserves other than {share} tokens")
    budget.reserve(tree, caller, plan, tokens)
    run = plan.plan
    try:
        run.source = read_plan(text, id=plan.name)
        if run.template:
            run.source = read_plan(run.template, id=plan.name).about(run.source.goal)
    except PlanError as error:
        raise mismatch(record, f"holds a plan that can't be read: {error}") from error
    plan.turn = record.n
    run.heard = seconds(record.at)
    if tree.format == FORMAT:
        run.given = mentions(text, caller.table)
        for name, value in run.given.items():
            plan.table.define(name, value)
        origin.read(plan, read_of_briefing(tree, run.given))
    return plan


def begin(tree: Tree, plan: Agent) -> None:
    """It has been handed over, and does its first steps."""
    run = plan.plan
    assert run is not None
    if tree.format == FORMAT:
        _begin(tree, plan, run)
    else:
        run.history.begin(plan.name, run.source.goal)


def take_over(tree: Tree, plan: Agent, record: Record) -> None:
    """A plan that was begun by an older program goes on by the rules of this one."""
    run = run_of(plan, record)
    if run.machine is not None or not plan.active:
        return
    run.heard = seconds(record.at)
    _begin(tree, plan, run)
    if run.machine is not None:
        for pending in plan.actions:
            pending.stopped = pending.stopped or pending.node not in run.machine.run.attempts
        heard, plan.mail.inbox = plan.mail.inbox, []
        with telling(tree, plan, run):
            for message in heard:
                run.machine.interject(message.text, run.machine.run.at)


def _begin(tree: Tree, plan: Agent, run: PlanRun) -> None:
    """Make the machine, and let it begin, or go on after what an older program had done."""
    past = run.history
    working = past.state.work_in("running", "waiting_human")
    try:
        machine = PlanMachine(
            run.source,
            mode=make_mode(run.mode, run.options, tree.bounds.plans, run.experience),
            # How long a person has is the gate's to say.
            limits=_limits(tree, run),
            catalogue=_Catalogue(tree, plan.path),
            asks=run.thinks,
            history=tuple(past.events),
            answers=tuple(past.answers),
            first=run.terms is not None and run.terms.first,
            taken_up=working,
            briefing=briefing_of(tree, run),
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
    "judge": ("reflect", "interject", "observe", "analyze", "judge"),
    "patcher": ("patch",),
    "reporter": ("reason", "synthesize"),
}
"""Which questions the model of each part in a plan answers."""


def _limits(tree: Tree, run: PlanRun) -> PlanLimits:
    """The bounds of a plan: the session's, and what whoever started it asked for."""
    bounds = tree.bounds.plans
    parts = {part: getattr(bounds, part) for part in _ROLES}
    role = run.options.get("model")
    if isinstance(role, str):
        parts = dict.fromkeys(_ROLES, role)
    wanted = run.options.get("concurrency")
    return PlanLimits(
        concurrency=wanted if isinstance(wanted, int) and wanted > 0 else bounds.concurrency,
        nodes=bounds.nodes,
        model_calls=bounds.calls,
        wall_clock=min(tree.bounds.activation, bounds.seconds),
        node_timeout=None,
        human_timeout=_NEVER,
        patches=bounds.patches,
        replans=bounds.replans,
        rates={name: Rate(one.per_second, one.burst) for name, one in (bounds.rates or {}).items()},
        roles={kind: parts[part] for part, kinds in _ROLES.items() if parts[part] for kind in kinds},
        report=bool(run.options.get("report", bounds.report)),
    )


class _Catalogue:
    """The functions that a plan may call, as they are at the moment."""

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
            judge, copied = partial(judge_in, self._tree), partial(copied_in, self._tree)
            self._functions = Functions(registry, rates, judge, copied)
        return self._functions


def run_of(plan: Agent, record: Record) -> PlanRun:
    """The run of a plan that a record is about."""
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
    """The machine is told something within; behind it, what it wants is noted.

    A bug of ours in it ends the plan and nothing else (law 10): the record that it was told of is in the journal, and
    the session must be read again. `going_on`: it begins where an older program stopped.
    """
    tree.stirred.add(plan.path)
    try:
        yield
        _follow(tree, plan, run, going_on=going_on)
    except Exception as error:
        run.fault, run.invalid = error, f"An internal error ended this plan ({type(error).__name__})."
        run.asking.clear()
        for pending in plan.actions:
            pending.stopped = True


def _follow(tree: Tree, plan: Agent, run: PlanRun, *, going_on: bool) -> None:
    """Note what the machine wants: what is to be written, fired, stopped and asked.

    Where it is `going_on`, there may be results that no step has yet.
    """
    machine = run.machine
    assert machine is not None
    while commands := machine.take():
        for command in commands:
            kind = type(command)
            if kind is NodeChange:
                _changed(plan, run, command)  # type: ignore[arg-type]
            elif kind is Firing:
                _fired(tree, plan, run, machine, command, going_on)  # type: ignore[arg-type]
            else:
                _other(plan, run, command)  # type: ignore[arg-type]


def _changed(plan: Agent, run: PlanRun, change: NodeChange) -> None:
    """A step's state changes. What it gave stands in the record that brought it."""
    output, labels, result = change.output, change.labels, 0
    if change.cause == "succeeded":
        settled = run.latest.get(change.node)
        worked = run.state.nodes[change.node].node.kind in WORK and change.validation != "left_out"
        if worked and settled is not None:
            output, labels, result = None, (), settled.n
            if settled.value is not None:
                plan.table.define(variable_of(change.node), settled.value)
    diagnosis = None
    if run.state.nodes[change.node].node.kind == "micro_planner" and isinstance(output, dict):
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
    """A step is to be carried out, unless that goes on already, or can't be."""
    node = firing.node.id
    if node in run.firing:
        return
    settled = run.latest.get(node)
    if going_on and settled is not None and settled.attempt == firing.attempt:
        machine.attempt_ended(node, settled.outcome, machine.run.at)
        return
    done = fire(tree, plan, run, firing)
    if isinstance(done, StepFailure):
        machine.attempt_ended(node, done, machine.run.at)
        return
    pending, owed = done
    run.fired = run.firing[node] = pending.index
    plan.actions.append(pending)
    run.owed.append(owed)


def _other(
    plan: Agent,
    run: PlanRun,
    command: PlanVersion
    | PlanExtension
    | StopFiring
    | TakeOverCopy
    | AskModel
    | StopAsking
    | PlanNotice
    | Assessed,
) -> None:
    """The commands that are seldom."""
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
        case AskModel(thought, question, pieces):
            run.asking[thought] = Asking(question, pieces)
        case StopAsking(thought):
            run.asking.pop(thought, None)
        case Risk() | RuleFired() | Trust():
            run.owed.append(Owed(_assessed(command)))


def _assessed(told: Assessed) -> said.ProfileRisk | said.ProfileRule | said.ProfileTrust:
    """What a record says of how a mode judges a plan."""
    match told:
        case Risk():
            return said.ProfileRisk(**told._asdict())
        case RuleFired():
            return said.ProfileRule(**told._asdict())
        case Trust():
            return said.ProfileTrust(**told._asdict())


def _in_words(node: PlanNode) -> str:
    """A step as one line, for people."""
    data = node_to_json(node)
    after = ", ".join(node.dependencies)
    what = (
        f"agent {node.call}: {node.task}"
        if node.kind == "agent"
        else node.call or f"{node.kind}: {node.task}"
    )
    given = f" {json.dumps(data['params'], ensure_ascii=False)}" if "params" in data else ""
    return " ".join(f"`{node.id}` {what}{given}{f' ← {after}' if after else ''}".split())


def written(tree: Tree, plan: Agent, record: Record) -> None:
    """A record that follows from those before it: it must be the next that the plan owes."""
    run = run_of(plan, record)
    if run.machine is None:
        _written_then(tree, plan, run, record)
        return
    owed = run.owed.popleft() if run.owed else None
    if owed is None or record.kind != owed.content.KIND:
        says = repr(owed.content.KIND) if owed is not None else "nothing"
        raise mismatch(record, f"follows from nothing; the plan says {says} here")
    expect_said(tree, record, owed.content, owed.body)


def _written_then(tree: Tree, plan: Agent, run: PlanRun, record: Record) -> None:
    """The same in a journal of an older format, where such records changed the plan."""
    match record.content:
        case said.Plan():
            for node in run.history.version(record).add:
                heard = [
                    one for one in plan.mail.inbox if node.kind == "interjection" and one.text == node.task
                ]
                for message in heard[:1]:
                    plan.mail.inbox.remove(message)
        case said.Node() as moves:
            settled = run.latest.get(moves.node)
            outcome = settled.outcome if settled is not None else None
            found = (settled.n, outcome) if settled and isinstance(outcome, StepSuccess) else None
            moved = run.history.change(record, moves, found)
            if moved.cause == "succeeded" and settled is not None and settled.value is not None:
                plan.table.define(variable_of(moved.node), settled.value)
        case said.Fire() as fires:
            _fire_then(tree, plan, run, record, fires)


def _fire_then(tree: Tree, plan: Agent, run: PlanRun, record: Record, fires: said.Fire) -> None:
    known = run.state.nodes.get(fires.node)
    if known is None or known.state not in ("running", "waiting_human") or known.node.id in run.firing:
        raise mismatch(record, f"fires {fires.node!r}, which is not to be fired")
    node = known.node
    if fires.action != run.fired + 1 or fires.turn != plan.turn:
        raise mismatch(record, f"is not the firing {run.fired + 1} of this plan")
    try:
        given = _arguments(record) if record.body else resolve(node, run.state.outputs, known.winner)
    except MissingField as error:
        raise mismatch(record, f"can't be fired: {error}") from error
    done = fire(tree, plan, run, Firing(plan.name, known.version, node, known.attempts, given, (), {}))
    if isinstance(done, StepFailure):
        raise mismatch(record, f"can't be fired: {done.message}")
    run.fired = run.firing[node.id] = done[0].index
    plan.actions.append(done[0])


def _arguments(record: Record) -> dict[str, JSON]:
    try:
        found = json.loads(record.body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise mismatch(record, "holds arguments that can't be read")
    return found


# --- what happened to it ------------------------------------------------------------------------------------


def end(tree: Tree, plan: Agent, record: Record, reply: Reply) -> str | None:
    """A plan ends: what its message to the caller must be; None if it did not come to its own end."""
    run = run_of(plan, record)
    _read_all(plan, run)
    run.ending = ending_from(reply)
    if run.machine is None and not run.invalid:
        return report(run, run.ending) if run.ending is not None else None
    if record.body == BUG:
        expect_said(tree, record, Reply(to=plan.caller, status="failed"), BUG)
    elif run.cancelled or run.over:
        expect_said(tree, record, *conclusion(plan, run))
    else:
        raise mismatch(record, "ends a plan that is not at its end")
    run.rest()
    return None


def message_of(plan: Agent) -> str:
    """What a plan that came to its own end says to a person who wanted it; empty if it did not."""
    run = plan.plan
    return "" if run is None or run.ending is None else answer_of(run, run.ending)


def conclusion(plan: Agent, run: PlanRun) -> tuple[Reply, str]:
    """What the reply of a plan says that has come to its end, and its message to the caller."""
    if run.cancelled:
        return Reply(to=plan.caller, status="cancelled"), run.cancelled
    if run.running is None:
        return Reply(to=plan.caller, status="failed"), run.invalid
    ending = ending_of(run.running.result(), run.running.run.answer)
    return reply_of(plan, ending), report(run, ending)


def answered(tree: Tree, plan: Agent, record: Record, ask: said.Ask) -> None:
    """A model answered a question about the plan, or can't."""
    run = run_of(plan, record)
    _read_all(plan, run)
    run.asked += 1
    if run.machine is None:
        run.history.answered(record, ask)
        return
    run, machine = _machine_of(plan, record)
    thought, failed = ask.thought, ask.failed
    asking = _asking_of(run, record, thought)
    expected = answer_to(tree, thought, asking.question, ask.usage, failed, ask.waits)
    expect_said(tree, record, expected, "" if failed else record.body)
    at = run.at(record.at)
    rest = _rest_of(asking, record) if asking.pieces and not failed else ""
    run.asking.pop(thought)
    with telling(tree, plan, run):
        if rest:
            machine.piece(thought, rest, at)
        machine.answered(thought, None if failed else record.body, failed, at)


def answer_to(
    tree: Tree, thought: int, question: PlanQuestion, usage: Tokens, failed: str, waits: tuple[Wait, ...]
) -> said.Ask:
    """What the record of an answer to a question says."""
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
    )


def role_of(tree: Tree, question: PlanQuestion) -> str:
    """The role of the model that answers a question."""
    return question.role if question.role in tree.roles else "smart"


def drafted(tree: Tree, plan: Agent, record: Record, draft: said.Draft) -> None:
    """A planner has written more of its plan."""
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
    """What an answer holds behind what was read of it while it was written."""
    if not record.body.startswith(asking.read):
        raise mismatch(record, "is another answer than what was read of it before")
    return record.body[len(asking.read) :]


def cut_off(tree: Tree, plan: Agent, record: Record, discard: Discard) -> None:
    """An answer was stopped: it is asked for again, unless nobody wants it any more."""
    run = run_of(plan, record)
    if run.running is None:
        return
    again = discard.reason == "pause"
    if again != (discard.thought in run.asking) or (discard.thought and not again):
        raise mismatch(record, "stops an answer that is asked for, or asks for one that is not")
    if again:
        with telling(tree, plan, run):
            _cut_off(run, run.running, discard.thought, run.at(record.at))


def _cut_off(run: PlanRun, machine: PlanMachine, thought: int, at: float) -> None:
    run.asking[thought].read = ""
    machine.cut_off(thought, at)


def woken(tree: Tree, plan: Agent, record: Record, wake: said.Wake) -> None:
    """Its time has come, or the session goes on after it had stopped."""
    run, machine = _machine_of(plan, record)
    since, at = run.heard - run.epoch, run.at(record.at)
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
    """A pause has begun, or ended, at the plan or above it."""
    run = plan.plan
    if run is None or run.running is None or not plan.active:
        return
    with telling(tree, plan, run):
        (run.running.pause if tree.paused(plan.path) else run.running.resume)(run.at(record.at))


def cancelled(tree: Tree, plan: Agent, record: Record, cancel: Cancel) -> None:
    """All of it is to end, or one step."""
    run = run_of(plan, record)
    machine = run.running
    if machine is None or not plan.active:
        return
    node, at = cancel.node, run.at(record.at)
    if node:
        _step_of(run, record, node, "cancels")
    with telling(tree, plan, run):
        if node:
            machine.cancel_node(node, at, reason=_STEP_BY_USER)
        else:
            run.cancelled = record.body or _BY_USER
            machine.cancel(at, abort=True, reason=run.cancelled)


def started(tree: Tree, plan: Agent, record: Record) -> None:
    """A person has looked at the plan, and it may begin."""
    run, machine = _machine_of(plan, record)
    with telling(tree, plan, run):
        machine.start(run.at(record.at))


def edited(tree: Tree, plan: Agent, record: Record) -> None:
    """A person writes other steps for what has not started."""
    run, machine = _machine_of(plan, record)
    try:
        wanted = read_plan(record.body, id=plan.name)
        machine.edited(wanted)
    except PlanError as error:
        raise mismatch(record, f"changes the plan as it can't be: {error}") from error
    with telling(tree, plan, run):
        machine.edit(wanted, run.at(record.at))


def retried(tree: Tree, plan: Agent, record: Record, node: str) -> None:
    """A person lets a step run once more, also of a plan that had ended."""
    run, machine = _machine_of(plan, record)
    _step_of(run, record, node, "retries")
    try:
        machine.again(node)
    except PlanError as error:
        raise mismatch(record, f"tries a step again that can't be: {error}") from error
    run.ending = None
    with telling(tree, plan, run):
        machine.retry(node, run.at(record.at))


def paused_step(tree: Tree, plan: Agent, record: Record, node: str, *, closes: bool) -> None:
    """A person pauses one step, or lets it go on."""
    run, machine = _machine_of(plan, record)
    _step_of(run, record, node, "pauses" if closes else "resumes")
    if closes == run.held(node):
        return
    spans = run.holds.setdefault(node, [])
    if closes:
        spans.append((record.at, ""))
    else:
        spans[-1] = (spans[-1][0], record.at)
    with telling(tree, plan, run):
        (machine.pause_node if closes else machine.resume_node)(node, run.at(record.at))
    for pending in plan.actions:
        if pending.node == node and pending.child in tree.agents:
            for one in tree.subtree(pending.child):
                paused(tree, one, record)


def _step_of(run: PlanRun, record: Record, node: str, does: str) -> NodeRecord:
    if node not in run.state.nodes:
        raise mismatch(record, f"{does} the step {node!r}, which there is not")
    return run.state.nodes[node]


def interjected(tree: Tree, plan: Agent, record: Record, *, at_once: bool) -> None:
    """A person says something to the running plan."""
    run, machine = _machine_of(plan, record)
    with telling(tree, plan, run):
        machine.interject(record.body, run.at(record.at), at_once=at_once)


def told_step(tree: Tree, plan: Agent, record: Record, said: Inject) -> Agent | None:
    """A person says something about one step: the child that hears it now, if it has one.

    One that is still to be called hears it with its task. Nobody else can hear it at a tool: so whoever judges the
    plan does.
    """
    run, machine = _machine_of(plan, record)
    step = _step_of(run, record, said.node, "is about")
    if step.node.kind != "agent":
        with telling(tree, plan, run):
            text = f"About the step {said.node}: {record.body}"
            machine.interject(text, run.at(record.at), at_once=said.mode == "interrupt")
        return None
    child = called_by(tree, plan, said.node)
    if child is None:
        run.notes.setdefault(said.node, []).append(intervention(record, said))
    return child


def intervention(record: Record, said: Inject) -> Incoming:
    """What a person injects, as an agent below the root hears it."""
    return Incoming(record.n, "intervention", "the user", record.body, mode=said.mode, labels=origin.WRITTEN)


def called_by(tree: Tree, plan: Agent, node: str) -> Agent | None:
    """The agent that works for a step of a plan now."""
    calling = (one for one in plan.actions if one.node == node and one.call and one.child)
    found = next(calling, None)
    return tree.agents.get(found.child) if found is not None else None


def below(tree: Tree, agent: Agent) -> Iterator[Agent]:
    """The plans that run below an agent, but not those below another of them."""
    for path in agent.children.values():
        child = tree.agents[path]
        if child.plan is None or not child.active:
            yield from below(tree, child)
        elif child.plan.running is not None and not child.plan.cancelled:
            yield child


def waits(tree: Tree, plan: Agent, pending: Pending, record: Record) -> None:
    """A call begins to wait for a person, or has its answer."""
    run = run_of(plan, record)
    machine = run.running
    if machine is None:
        return
    at, answer = run.at(record.at), pending.answer
    with telling(tree, plan, run):
        if answer is None:
            machine.waits_for_person(pending.node, at, held=pending.seconds == 0)
        elif isinstance(record.content, ClearanceAnswer) and record.content.by == "time":
            machine.person_decided(pending.node, "expired", at)
        else:
            machine.person_decided(pending.node, "approved" if answer.allow else "denied", at)


def _read_all(plan: Agent, run: PlanRun) -> None:
    """Whoever judges a plan, or hears how it ended, reads what its steps gave; a step alone reads only its refs."""
    origin.read(plan, run.failures | join(frozenset(record.labels) for record in run.state.nodes.values()))


# --- what came of firings --------------------------------------------------------------------------------------


def resulted(tree: Tree, plan: Agent, pending: Pending, record: Record, result: Result) -> None:
    """A firing has its `result`."""
    value = None
    if result.status == "ok":
        value = result_value(tree, plan, pending, record, result)
    elif result.status == "error" or has_output(record, result):
        run_of(plan, record).failures |= origin.of_call(tree, plan, pending)
    outcome = _outcome(plan, pending, record, result, value)
    copied = (
        Copied(pending.call, record.n, pending.base, result.version, pending.puts) if pending.base else None
    )
    if copied is not None and not copied.version and isinstance(outcome, StepSuccess):
        outcome, value = StepFailure("raised", _UNKEPT), None
    _settle(tree, plan, pending, record, outcome, value, copied=copied)


def returned(tree: Tree, plan: Agent, pending: Pending, record: Record, reply: Incoming) -> None:
    """A child has replied to the step that called it.

    Steps after it are told what it brings by name, and nothing else of it. So where it has read strange content, its
    variables get names and types of ours: theirs are words that it chose.
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


def _plain(value: Value) -> Value:
    """The same content under a type that is known, or the plainest that fits."""
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
    run = run_of(plan, record)
    run.firing.pop(pending.node, None)
    attempt = run.state.nodes[pending.node].attempts
    settled = StepOutcome(pending.node, attempt, record.n, outcome, value, brought, copied)
    run.settled[pending.index] = run.latest[pending.node] = settled
    tree.stirred.add(plan.path)  # also where a bug ended it: this may have been the last that it waited for
    machine = run.running
    if machine is not None and plan.active and pending.node in machine.run.attempts:
        # What was stopped has no outcome, unless one came before it could be.
        stopped = machine.run.attempts[pending.node].ending and _is_cancelled(record)
        with telling(tree, plan, run):
            machine.attempt_ended(pending.node, None if stopped else outcome, run.at(record.at))


def _is_cancelled(record: Record) -> bool:
    """Whether a result or a reply says that there is none."""
    content = record.content
    return isinstance(content, Result | Reply) and content.status in ("cancelled", "forked")


_FAILED: Final[Mapping[str, tuple[FailureKind, str]]] = {
    "incomplete": ("incomplete", "{} did not complete."),
    "cancelled": ("raised", "{} was cancelled before it ended."),
    "interrupted": ("interrupted", "{} was interrupted; its outcome is unknown."),
    "forked": ("interrupted", "{} was not carried out: the session was forked here."),
}


def _outcome(plan: Agent, pending: Pending, record: Record, result: Result, value: Value | None) -> Outcome:
    facts = dict(result.data or {})
    if value is None:
        kind, sentence = _FAILED.get(result.status, ("raised", ""))
        if not sentence:
            kind = "timeout" if facts.get("type") == "TimeoutError" else "raised"
        said = sentence.format(pending.spec.name)
        if said and has_output(record, result) and record.body:
            said = f"{said} It had printed: {shorten(record.body, _PRINTED, None)}"
        return StepFailure(kind, said or record.body or "It failed.")
    labels = value.labels | set(run_of(plan, record).state.labels_of(pending.node))
    return StepSuccess(_output(value), tuple(sorted(labels)), exit_status(facts))


def _output(value: Value) -> JSON:
    """A result as refs look into it: JSON as data, other text as it is, anything else by what it is."""
    if not value.is_text:
        return {"media": value.media, "size": value.size, "sha256": value.sha256}
    text = value.text()
    if "json" in value.media and value.size <= _LARGEST_JSON:
        try:
            data: JSON = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return data
    return text
