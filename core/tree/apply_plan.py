"""How the records of a plan change it: the part of the fold that knows plans.

A plan's state is a fold over its versions and node changes, and `PlanState` checks each against the table of
states, the joins and the law of versions. What a step is fired with is not stored where it follows from its
refs, and what it gave stands in one place, the `result` or `reply` record that brought it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, cast, get_args

from core.errors import ReplayMismatch
from core.gate.provenance import PICKED, join
from core.language.actions import CALL, ActionSpec
from core.language.grammar import Bound
from core.language.variables import Value, rename, text_value
from core.modules.reading import exit_status
from core.plan.contracts import as_text
from core.plan.forms import read_plan, version_from_json
from core.plan.model import Node, PlanError
from core.plan.refs import MissingField, resolve
from core.plan.seams import Failure, FailureKind, Outcome, QuestionKind, Success
from core.plan.state import NodeChange, PlanState
from core.plan.states import IllegalTransition
from core.ports import JSON
from core.records.record import Record
from core.tree import budget, origin
from core.tree.agent import Agent, Pending
from core.tree.interpret import result_value
from core.tree.mail import Incoming
from core.tree.plan_report import ending_from, report
from core.tree.plan_run import PlanRun, Settled, variable_of
from core.tree.tree import Tree

_LARGEST_JSON: Final = 1 << 20
_KNOWN: Final = frozenset(
    {
        "text/plain", "text/markdown", "text/csv", "text/html", "application/json", "application/pdf",
        "image/png", "image/jpeg", "image/gif", "image/webp", "audio/wav", "audio/mpeg",
    }
)  # fmt: skip
"""Types that a value keeps when its author may have chosen them for what they say."""


def made(record: Record) -> PlanRun | None:
    """The plan that a `spawn` record makes; None if it makes an agent."""
    data = record.fields.get("plan")
    if not isinstance(data, dict):
        return None
    options = data.get("options")
    given = options.items() if isinstance(options, dict) else ()
    kept = {name: value for name, value in given if isinstance(value, str | int)}
    return PlanRun(str(data.get("mode", "static")), kept, data.get("thinks") is not False)


def hand_over(tree: Tree, caller: Agent, path: str, text: str, record: Record) -> Agent:
    """A plan begins, on its share of its caller's budget."""
    plan = tree.agents.get(path)
    if plan is None or plan.plan is None or plan.active:
        raise _mismatch(record, f"hands a plan to {path}, which waits for none")
    tokens = budget.share(tree, caller, plan, waits=True)
    if tree.strict and tokens != record.number("budget"):
        raise _mismatch(record, f"reserves other than {tokens} tokens")
    budget.reserve(tree, caller, plan, record.number("budget"))
    try:
        plan.plan.source = read_plan(text, id=plan.name)
    except PlanError as error:
        raise _mismatch(record, f"holds a plan that can't be read: {error}") from error
    plan.plan.state = PlanState(plan.name, plan.plan.source.goal)
    plan.turn = record.n
    return plan


def end(plan: Agent, record: Record) -> str | None:
    """A plan ends: what its message to the caller must be; None if it did not come to its own end."""
    run = run_of(plan, record)
    _read_all(plan, run)
    run.ending = ending_from(dict(record.fields))
    return report(run, run.ending) if run.ending is not None else None


def run_of(plan: Agent, record: Record) -> PlanRun:
    """The run of a plan that a record is about."""
    if plan.plan is None:
        raise _mismatch(record, f"is about the plan {plan.path}, which is none")
    return plan.plan


def _mismatch(record: Record, what: str) -> ReplayMismatch:
    return ReplayMismatch(f"Record {record.n} ({record.kind}) differs: it {what}.", n=record.n)


def adopt(plan: Agent, record: Record) -> None:
    """A version begins."""
    run = run_of(plan, record)
    try:
        version = version_from_json(record.fields)
        run.state.adopt(version)
    except (PlanError, KeyError) as error:
        raise _mismatch(record, f"can't follow here: {error}") from error
    run.events.append(version)
    for node in version.add:
        if node.kind == "interjection":
            heard = next((one for one in plan.mail.inbox if one.text == node.task), None)
            if heard is None:
                raise _mismatch(record, "holds a person's message that nobody sent")
            plan.mail.inbox.remove(heard)


def change(plan: Agent, record: Record) -> None:
    """A step's state changes."""
    run = run_of(plan, record)
    try:
        moved = NodeChange.from_json({**record.fields, "at": record.fields.get("t")})
        if record.number("result"):
            moved = _with_result(run, moved, record)
        if moved.version != run.state.plan.version:
            raise _mismatch(record, f"names version {moved.version}, not {run.state.plan.version}")
        run.state.apply(moved)
    except (PlanError, IllegalTransition, KeyError) as error:
        raise _mismatch(record, f"can't follow here: {error}") from error
    run.events.append(moved)
    settled = run.latest.get(moved.node)
    if moved.cause == "succeeded" and settled is not None and settled.value is not None:
        plan.table.define(variable_of(moved.node), settled.value)


def _with_result(run: PlanRun, moved: NodeChange, record: Record) -> NodeChange:
    settled = run.latest.get(moved.node)
    if settled is None or settled.n != record.number("result") or not isinstance(settled.outcome, Success):
        raise _mismatch(record, f"takes record {record.number('result')} for a result of {moved.node}")
    return moved._replace(output=settled.outcome.output, labels=settled.outcome.labels)


def answered(plan: Agent, record: Record) -> None:
    """A model answered a question about the plan."""
    kind = record.text("question")
    if kind not in get_args(QuestionKind):
        raise _mismatch(record, f"answers a question of the unknown kind {kind!r}")
    run = run_of(plan, record)
    _read_all(plan, run)
    run.answers.append((cast(QuestionKind, kind), record.body))


def _read_all(plan: Agent, run: PlanRun) -> None:
    """Whoever judges a plan, or hears how it ended, reads what its steps gave; a step alone reads only its refs."""
    origin.read(plan, run.failures | join(frozenset(record.labels) for record in run.state.nodes.values()))


# --- firings ------------------------------------------------------------------------------------------------


def fire(tree: Tree, plan: Agent, record: Record) -> None:
    """A step is about to be carried out: it becomes an action of the plan, like one that an agent wrote."""
    run = run_of(plan, record)
    known = run.state.nodes.get(record.text("node"))
    if known is None or known.state not in ("running", "waiting_human") or known.node.id in run.firing:
        raise _mismatch(record, f"fires {record.text('node')!r}, which is not to be fired")
    node, index = known.node, run.fired + 1
    if record.number("action") != index or record.number("turn") != plan.turn:
        raise _mismatch(record, f"is not the firing {index} of this plan")
    try:
        arguments = arguments_of(run, node) if not record.body else _arguments(record)
    except MissingField as error:
        raise _mismatch(record, f"can't be fired: {error}") from error
    run.fired = index
    run.firing[node.id] = index
    if node.kind == "agent":
        bound = _task(run, plan, node, arguments)
        child = f"{plan.path}/{node.call}"
        plan.actions.append(Pending(index, node.call, "", "", CALL, bound, child=child, node=node.id))
        return
    spec = tree.registry(plan.path).find(node.call)
    if not isinstance(spec, ActionSpec):
        raise _mismatch(record, f"fires {node.call}, which the plan does not have")
    bound = _bound(spec, node, arguments, {name: _of_ref(run, plan, node, name) for name in node.refs})
    plan.actions.append(Pending(index, spec.name, "", "", spec, bound, node=node.id))


def arguments_of(run: PlanRun, node: Node) -> dict[str, JSON]:
    """What a step's refs resolve to now.

    Raises:
        MissingField: one leads nowhere.
    """
    return resolve(node, run.state.outputs, run.state.nodes[node.id].winner)


def _arguments(record: Record) -> dict[str, JSON]:
    try:
        found = json.loads(record.body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise _mismatch(record, "holds arguments that can't be read")
    return found


def _of_ref(run: PlanRun, plan: Agent, node: Node, name: str) -> frozenset[str]:
    """The labels of what a ref hands on; the text of a template is its author's."""
    labels = frozenset(run.state.labels_of_ref(node.id, name))
    if node.refs[name].template:
        labels |= origin.by(plan)
    return labels | {PICKED} if run.state.picks(node.id, name) else labels


def _bound(
    spec: ActionSpec, node: Node, arguments: Mapping[str, JSON], provenance: Mapping[str, frozenset[str]]
) -> Bound:
    """Arguments as a dialogue's call has them: text that comes from another step is passed by value."""
    given: dict[str, JSON] = {}
    attached: dict[str, Value] = {}
    for name, value in arguments.items():
        if name in node.refs and isinstance(value, str) and _any_text(spec, name):
            attached[name] = text_value(value, labels=provenance[name], origin=node.refs[name].step)
        else:
            given[name] = value
    return Bound(given, attached, {name: provenance[name] for name in given if name in node.refs})


def _any_text(spec: ActionSpec, name: str) -> bool:
    schema = spec.properties.get(name, {})
    return schema.get("type") == "string" and "enum" not in schema and "pattern" not in schema


def _task(run: PlanRun, plan: Agent, node: Node, arguments: Mapping[str, JSON]) -> Bound:
    """The message to a child: its task, and by name what the steps before it gave; their content acts on nobody."""
    names: list[str] = []
    lines: list[str] = []
    for name, value in arguments.items():
        if name not in node.refs:
            lines.append(f"{name}: {as_text(value)}")
            continue
        media = "text/plain" if isinstance(value, str) else "application/json"
        labels = _of_ref(run, plan, node, name)
        kept = text_value(as_text(value), media=media, labels=labels, origin=node.refs[name].step)
        names.append(plan.table.receive(variable_of(name), kept))
    for one in node.dependencies:
        settled = run.latest.get(one)
        if one in run.state.outputs and settled is not None and settled.value is not None:
            names += [variable_of(one), *settled.brought]
    if names:
        lines.append("What you can use: " + ", ".join(f"${name}" for name in dict.fromkeys(names)) + ".")
    message = "\n".join([node.task, *(["", *lines] if lines else [])])
    given: dict[str, JSON] = {"name": node.call, "message": message}
    if node.role:
        given["role"] = node.role
    if node.model:
        given["model"] = node.model
    return Bound(given, {})


# --- what came of firings --------------------------------------------------------------------------------------


def resulted(tree: Tree, plan: Agent, pending: Pending, record: Record) -> None:
    """A firing has its `result`."""
    value = None
    if record.text("status") == "ok":
        value = result_value(tree, plan, pending, record)
    elif record.text("status") == "error":
        run_of(plan, record).failures |= origin.of_call(tree, plan, pending)
    _settle(plan, pending, record, _outcome(plan, pending, record, value), value)


def returned(tree: Tree, plan: Agent, pending: Pending, record: Record, reply: Incoming) -> None:
    """A child has replied to the step that called it.

    Steps after it are told what it brings by name, and nothing else of it. So where it has read strange content, its
    variables get names and types of ours: theirs are words that it chose.
    """
    if reply.status != "ok":
        run_of(plan, record).failures |= reply.labels
        failure = Failure("raised", f"The agent did not finish ({reply.status}): {record.body}")
        _settle(plan, pending, record, failure, None)
        return
    if origin.strange(tree, reply.labels):
        stem = f"{variable_of(pending.node)}_part"
        names = {name: plan.table.keep(stem, _plain(value)) for name, value in reply.values.items()}
    else:
        names = {name: plan.table.receive(name, value) for name, value in reply.values.items()}
    text = rename(record.body, names)
    value = text_value(text, media="text/markdown", labels=reply.labels, origin=pending.child)
    outcome = Success(text, tuple(sorted(reply.labels)))
    _settle(plan, pending, record, outcome, value, tuple(names.values()))


def _plain(value: Value) -> Value:
    """The same content under a type that is known, or the plainest that fits."""
    if value.media in _KNOWN:
        return value
    return replace(value, media="text/plain" if value.is_text else "application/octet-stream")


def _settle(
    plan: Agent,
    pending: Pending,
    record: Record,
    outcome: Outcome,
    value: Value | None,
    brought: tuple[str, ...] = (),
) -> None:
    run = run_of(plan, record)
    run.firing.pop(pending.node, None)
    attempt = run.state.nodes[pending.node].attempts
    settled = Settled(pending.node, attempt, record.n, outcome, value, brought)
    run.settled[pending.index] = run.latest[pending.node] = settled


_FAILED: Final[Mapping[str, tuple[FailureKind, str]]] = {
    "incomplete": ("incomplete", "{} did not complete."),
    "cancelled": ("raised", "{} was cancelled before it ended."),
    "interrupted": ("interrupted", "{} was interrupted; its outcome is unknown."),
}


def _outcome(plan: Agent, pending: Pending, record: Record, value: Value | None) -> Outcome:
    data = record.fields.get("data")
    facts = data if isinstance(data, dict) else {}
    if value is None:
        kind, sentence = _FAILED.get(record.text("status"), ("raised", ""))
        if not sentence:
            kind = "timeout" if facts.get("type") == "TimeoutError" else "raised"
        return Failure(kind, sentence.format(pending.spec.name) or record.body or "It failed.")
    labels = value.labels | set(run_of(plan, record).state.labels_of(pending.node))
    return Success(_output(value), tuple(sorted(labels)), exit_status(facts))


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
