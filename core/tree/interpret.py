"""The interpreter's pure half: from a reply's blocks to pending actions, and from outcomes to feedback.

Actions are settled strictly in the order in which they were written. Actions that need nothing from outside (VAR, SHOW,
a mistake) are settled here when their turn comes. A CALL or a module function stays at the head of the queue until a
record brings its outcome.

Consecutive calls that only read may overlap in time. Calls after the head are bound before their turn, as long as none
of them needs what an earlier one returns. Their outcomes are still recorded in the order written, so neither feedback
nor the names of results depend on which call ended first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from typing import Final

from iact.core.context.embeds import LARGEST, MOST, medium_of, part
from iact.core.context.excerpt import READ_AT_ONCE, Feedback, Passage, readable, select
from iact.core.context.signature import lines
from iact.core.gate.gate import arguments_digest
from iact.core.gate.kind_of_call import kind_of
from iact.core.gate.provenance import Labels, join
from iact.core.language import labels
from iact.core.language.actions import (
    ANSWER,
    CALL,
    PLAN,
    REMEMBER_BEFORE_1_3,
    ActionSpec,
    Registry,
    UnknownFunction,
)
from iact.core.language.grammar import Bound, Mistake, bind, split
from iact.core.language.lenient import read_action
from iact.core.language.scanner import Block
from iact.core.language.variables import NAME, Value, media_of, text_value
from iact.core.modules.outcome_reader import exit_status
from iact.core.records.calls import Result
from iact.core.records.record import Record
from iact.core.tree import (
    apply_file_owners,
    child_waits,
    compression,
    help_pages,
    loops,
    notes,
    origin,
    plan_checks,
    remote,
)
from iact.core.tree.agent import Agent, Deliver, Pending
from iact.core.tree.contexts import capture, code_value
from iact.core.tree.guards import Call
from iact.core.tree.mail import Incoming
from iact.core.tree.offered_functions import has_states
from iact.core.tree.recall import lines_in
from iact.core.tree.tree import Tree
from iact.core.tree.window import room_for

_NAMED: Final = 12
"""The most variables that are named to an agent that asks for one that it does not have."""

_LINE: Final = 200
"""The most characters of a result that is a mere line."""

_CHILD: Final = re.compile(r"\S+\s+(?:name\s*[=:]\s*)?[\"']?([A-Za-z][A-Za-z0-9_-]{0,39})(?![\w=:])")
"""How the first line of a CALL names a child."""

_SHOWN_AT_ONCE: Final = 8
"""The most variables that one SHOW shows."""

_RANGE: Final = re.compile(r"\d+[-–:]\d*|[-–:]\d+")

_NOTHING: Final = ActionSpec("", "", core=True)
BESIDE_ANSWER: Final = frozenset({"ANSWER", "REMEMBER", "VAR", "SKILL", "COMPRESS"})
"""Actions that can be done beside an answer: nothing that they bring is needed for it."""

_NOT_ALONE: Final = (
    "`ANSWER` was not done: other actions stand in the same message. Read their results first, then write ANSWER or a "
    "message without an action."
)
_END: Final = 50_000
"""The characters at each end of a long text by which it is known again."""

_SETTLED: Final = frozenset({"VAR", "SHOW", "HELP", "COMPRESS", "ANSWER"})
"""Actions that are complete once they are settled. For any other action, settling means that it can't begin, and why.
"""

_TOGETHER: Final = 8
"""The most calls of one agent in progress at a time."""

_COMPARED: Final = 65_536
"""The most bytes of a text passed by name that calls are compared by."""

_TOLD: Final = 5
"""The most functions of a new module that are documented at once; others follow when they become relevant."""


def begin(tree: Tree, agent: Agent, blocks: Sequence[Block], *, cut_off: bool) -> None:
    """Queue the actions of a reply with these blocks.

    `cut_off`: it ended at a length limit, so an unclosed block is not run. Since format 1.3 no unclosed block comes
    here (`core.tree.replies`).
    """
    registry = tree.registry(agent.path)
    for block in blocks:
        if not block.action:
            name_block(agent, block)
        elif cut_off and not block.closed:
            unfinished = (
                "Your message was cut off by the length limit; its unfinished last block was not run."
            )
            agent.mail.feedback.append(labels.note(unfinished))
        else:
            agent.actions.append(_pend(tree, agent, registry, len(agent.actions), block))
    _answers_alone(agent)
    advance(tree, agent)


def _answers_alone(agent: Agent) -> None:
    """Refuse an ANSWER beside actions whose results it should have waited for."""
    answers = [pending for pending in agent.actions if pending.spec.name == ANSWER.name]
    if not answers or all(pending.spec.name in BESIDE_ANSWER for pending in agent.actions):
        return

    for pending in answers:
        pending.spec = _NOTHING
        pending.bound = Bound({"sentence": _NOT_ALONE}, {})


def name_block(agent: Agent, block: Block) -> None:
    """Define a variable from an ordinary code block with `name=…` on its first line."""
    if "name=" not in block.info:
        return

    parts = split(block.info)
    if isinstance(parts, Mistake):
        return
    _, arguments = parts
    for argument in arguments:
        if argument.key == "name" and NAME.fullmatch(argument.text):
            value = code_value(block.info, block.body, agent.path, origin.by(agent))
            agent.table.define(argument.text, value)


def _pend(tree: Tree, agent: Agent, registry: Registry, index: int, block: Block) -> Pending:
    """The action that a block writes, as far as it is known before its turn."""
    name = block.info.split(None, 1)[0]
    spec = registry.find(name)
    if isinstance(spec, ActionSpec):
        return Pending(index, name, block.info, block.body, spec)
    if not registry.is_action(name):
        # An action before it brings its module (`core.tree.expected_functions`), or does not.
        return Pending(index, name, block.info, block.body, _NOTHING)
    return Pending(index, name, block.info, block.body, _NOTHING, _unknown(tree, agent, registry, name))


def _unknown(tree: Tree, agent: Agent, registry: Registry, name: str) -> Bound:
    """What is said about a function that does not exist."""
    sentence = f"There is no function `{name}`."
    unknown = registry.find(name)
    if isinstance(unknown, UnknownFunction):
        specs = [registry.find(other) for other in unknown.nearest]
        origin.hear_names(tree, agent, [spec for spec in specs if isinstance(spec, ActionSpec)])

        nearest = ", ".join(f"`{other}`" for other in unknown.nearest)
        if nearest:
            sentence = f"{sentence} The nearest names are {nearest}."
    return Bound({"sentence": sentence}, {})


def advance(tree: Tree, agent: Agent) -> None:
    """Settle the first pending actions for as long as they need nothing from outside."""
    while agent.actions and not agent.actions[0].call:
        head = agent.actions[0]
        _comes_first(tree, agent, head)
        feedback = _settle(tree, agent, head)
        if feedback is None:
            break

        if feedback:
            agent.mail.feedback.append(feedback)
        agent.actions.pop(0)
        is_done = head.bound is not None and head.spec.name in _SETTLED
        if not is_done:
            agent.mail.refused.append(str(feedback))
        if tree.follows_1_3:
            _count(agent, head, feedback, done=is_done)
    _look_ahead(tree, agent)


def _count(agent: Agent, pending: Pending, feedback: Feedback, *, done: bool) -> None:
    """Count an action that was settled here, or that could not begin, against going round in circles."""
    text = feedback if isinstance(feedback, str) else f"{feedback.label}\n{_marks(feedback.text)}"
    if done and pending.bound is not None:
        loops.watch_success(agent, pending.written, kind_digest(pending.spec.name, pending.bound), text)
        return

    # Documentation may follow the mistake, the first time.
    mistake = text.partition("\n")[0]
    loops.watch(agent, pending.written, text_value(mistake).sha256, mistake)


def _marks(text: str) -> str:
    """What tells a text from others: all of it or, if it is long, its size and its ends."""
    if len(text) <= READ_AT_ONCE:
        return text
    return f"{len(text)} {text[:_END]}{text[-_END:]}"


def _comes_first(tree: Tree, agent: Agent, pending: Pending) -> None:
    """Ask again, if necessary, about a call that a person was asked about before its turn, which has come now.

    What the person was shown is what will be made. But the agent may meanwhile have read other content from outside,
    which the question did not show and no call of this function brought. The person is then asked again.
    """
    if pending.ahead is None:
        return

    read_since = agent.labels - pending.ahead - {f"tool:{pending.spec.name}"}
    pending.ahead = None
    if origin.strange(tree, read_since):
        pending.asked = 0
        pending.asked_of = ""
        pending.answer = None


def _reads(pending: Pending) -> bool:
    return pending.spec.module is not None and pending.spec.impact == 0


def bind_pending(tree: Tree, agent: Agent, pending: Pending) -> Bound | Mistake:
    """The arguments of an action as they are written, with the variables that its agent has now."""
    if tree.follows_1_3:
        spec = pending.spec
        if spec is PLAN:
            spec = plan_checks.with_parameters(spec, pending.info)
        bound = read_action(spec, pending.info, pending.body, agent.table)
        return _without_lost(tree, agent, pending, bound) if tree.blobs.told else bound

    parts = split(pending.info, nested=False)
    if isinstance(parts, Mistake):
        return parts
    spec = pending.spec
    if spec.name == REMEMBER_BEFORE_1_3.name:
        spec = REMEMBER_BEFORE_1_3
    return bind(spec, parts[1], pending.body, agent.table)


class _LostContent(Mistake):
    """A call that is written rightly and passes on a variable whose content was lost."""


def _without_lost(tree: Tree, agent: Agent, pending: Pending, bound: Bound | Mistake) -> Bound | Mistake:
    """The same; a mistake if a variable is passed whose content was lost."""
    if isinstance(bound, Mistake):
        return bound

    lost = {value.sha256 for value in bound.attached.values()} & tree.blobs.told
    for name, value in agent.table.items() if lost else ():
        if value.sha256 in lost:
            return _LostContent(labels.content_lost(pending.written, name, value))
    return bound


def _look_ahead(tree: Tree, agent: Agent) -> None:
    """Bind the reading calls that follow a reading head, up to the first that must wait for its turn.

    A call must wait if it does more than read, belongs to a state machine, names a variable that does not exist yet, or
    was made before without completing.
    """
    if not agent.actions or agent.actions[0].bound is None:
        return

    made = set(agent.guards.incomplete)
    for pending in agent.actions:
        if not _reads(pending) or has_states(tree, pending.spec):
            return

        if pending.bound is None:
            bound = bind_pending(tree, agent, pending)
            if isinstance(bound, Mistake) or call_of(tree, pending.spec.name, bound) in made:
                return
            pending.bound = bound
            agent.context.use(pending.spec.name)
        made.add(call_of(tree, pending.spec.name, pending.bound))


def together(agent: Agent) -> list[Pending]:
    """The calls to make now: the first pending action, and the calls bound after it that may overlap with it."""
    now = takewhile(lambda pending: _reads(pending) and pending.bound is not None, agent.actions)
    return list(islice(now, _TOGETHER)) or agent.actions[:1]


def _settle(tree: Tree, agent: Agent, pending: Pending) -> Feedback | None:
    """Return feedback for an action that is settled now; None if it needs an outcome from outside."""
    if pending.bound is None and pending.spec is _NOTHING:
        _look_up(tree, agent, pending)
    if pending.bound is None:
        mistake = _bind(tree, agent, pending)
        if mistake is not None:
            return mistake
    bound = pending.bound
    assert bound is not None

    if pending.spec.core:
        # The feedback depends on numbers or names that were read, and so reveals them.
        origin.read(agent, join(bound.labels.values()))

    match pending.spec.name:
        case "":
            return str(bound.arguments["sentence"])
        case "VAR":
            return _define(agent, bound)
        case "ANSWER":
            return _answer(agent, bound)
        case "SHOW":
            return _show(tree, agent, bound)
        case "HELP":
            return help_pages.answer(tree, agent, argument_text(bound, "name"))
        case "COMPRESS":
            return compression.compress_for(tree, agent, argument_text(bound, "summary"))
        case "WAIT" | "QUERY" as name:
            return _wait(tree, agent, name, bound)
        case "CALL" | "CALL_ASYNC":
            return _aim(tree, agent, pending, bound)
        case "PLAN":
            wrong = plan_checks.aim(tree, agent, pending, bound, argument_text(bound, "plan"))
            if wrong is not None:
                return notes.refused(tree, agent, PLAN, wrong)
            agent.context.use(PLAN.name)
            return None
        case name:
            # Known from here on, whether or not the gate allows it: a context must not reveal that.
            agent.context.use(name)
            return _refuse(tree, agent, name, bound)


def _bind(tree: Tree, agent: Agent, pending: Pending) -> Feedback | None:
    """Bind an action whose turn has come. Returns feedback if it is written wrongly."""
    # CALL has more parameters where agents elsewhere can be called.
    is_call = pending.spec.name == CALL.name
    opens_plan = is_call and tree.follows_1_3 and plan_checks.opens_plan(pending.info)
    if opens_plan:
        pending.spec = PLAN

    bound = bind_pending(tree, agent, pending)
    if isinstance(bound, Bound):
        # A call may leave the goal to the plan that it uses.
        uses_kept = pending.spec is PLAN and tree.follows_1_3 and "from" in bound.arguments
        if opens_plan or uses_kept:
            bound = plan_checks.with_goal(bound)
    if isinstance(bound, _LostContent):
        return bound.sentence
    if isinstance(bound, Mistake):
        # The mistake names parameters.
        origin.document(agent, [pending.spec])
        if pending.spec is PLAN and (instead := plan_checks.with_kept(tree, pending)):
            return instead
        return notes.refused(tree, agent, pending.spec, _with_child(pending, bound.sentence))

    pending.bound = bound
    return None


def _wait(tree: Tree, agent: Agent, action: str, bound: Bound) -> Feedback | None:
    """Return feedback for a WAIT or QUERY that can't begin; None: it has an outcome."""
    # The names passed decide which children it waits for and what it reports about them.
    origin.read(agent, origin.passed(bound))
    if child_waits.is_for_nobody(tree, agent, bound):
        names = child_waits.wanted(tree, agent, bound).unknown
        return labels.no_such_child(names, agent.children.values(), action=action)

    agent.context.use(action)
    return _refuse(tree, agent, action, bound)


def _look_up(tree: Tree, agent: Agent, pending: Pending) -> None:
    """Find the function of a module that an action before this one should have brought."""
    registry = tree.registry(agent.path)
    spec = registry.find(pending.written)
    if isinstance(spec, ActionSpec):
        pending.spec = spec
    else:
        pending.bound = _unknown(tree, agent, registry, pending.written)


def _refuse(tree: Tree, agent: Agent, function: str, bound: Bound) -> str | None:
    """Refuse to make a call once more that did not complete; None if this call may be made.

    Why it did not complete plays no part: a model must not be able to tell a denial from a loss (law 7). Once more is
    allowed, because what was lost may be there again.
    """
    call = call_of(tree, function, bound)
    count = agent.guards.incomplete.get(call, 0)
    if count < loops.ATTEMPTS:
        return None

    agent.guards.incomplete[call] = count + 1
    if count + 1 >= loops.ATTEMPTS + loops.UNCHANGED:
        agent.guards.ended = f"{labels.incomplete(function)} The same call was repeated unchanged."
    return labels.refused_repeat(function)


def _with_child(pending: Pending, sentence: str) -> str:
    """Name the child in what is wrong with a CALL, since a reply may hold several."""
    name = pending.spec.name
    if name not in ("CALL", "CALL_ASYNC"):
        return sentence
    child = child_named_in(pending)
    if not child:
        return sentence
    return sentence.replace(f"`{name}` was not run", f"`{name} {child}` was not run", 1)


def child_named_in(pending: Pending) -> str:
    """The child that the first line of a CALL names; empty if it names none."""
    match = _CHILD.match(pending.info)
    return "" if match is None else match.group(1)


def _aim(tree: Tree, agent: Agent, pending: Pending, bound: Bound) -> str | None:
    """Note which agent, here or elsewhere, a CALL is for. Returns a sentence if the call can't be made at all."""
    name = argument_text(bound, "name")
    at = argument_text(bound, "at").strip()
    if not remote.is_remote(agent, name, at):
        return _aim_at_child(tree, agent, pending, bound)

    message = argument_text(bound, "message")
    wrong = remote.aim(tree, agent, pending, name=name, at=at, text=message)
    return wrong or _refuse(tree, agent, pending.spec.name, bound)


def _aim_at_child(tree: Tree, agent: Agent, pending: Pending, bound: Bound) -> str | None:
    child = argument_text(bound, "name")
    refused = f"`{pending.spec.name} {child}` was not run"

    model = bound.arguments.get("model")
    if isinstance(model, str) and model not in tree.roles:
        return f"{refused}: there is no model role {model!r}; there are {', '.join(sorted(tree.roles))}."

    path = f"{agent.path.rstrip('/')}/{child}"
    if path not in tree.agents:
        if agent.depth + 1 > tree.bounds.depth:
            return f"{refused}: agents may be at most {tree.bounds.depth} deep. Do this yourself."
        if len(tree.agents) >= tree.bounds.agents:
            return (
                f"{refused}: there are {tree.bounds.agents} agents, the most there may be. Use one of them."
            )
    pending.child = path
    return None


def argument_text(bound: Bound, name: str) -> str:
    """A text argument, whether written or passed by value."""
    if name in bound.attached:
        return bound.attached[name].text()
    return str(bound.arguments.get(name, ""))


def digest_of(bound: Bound) -> str:
    """The digest of an action's arguments in its `call` record: enough to tell calls apart that are not forged."""
    return whole_digest_of(bound)[:16]


def whole_digest_of(bound: Bound) -> str:
    """The digest that a ticket, and a person's yes, is bound to. It is collision-resistant."""
    if not bound.digests:
        attached = {name: value.sha256 for name, value in bound.attached.items()}
        bound.digests.append(arguments_digest(bound.arguments, attached))
    return bound.digests[0]


def _answer(agent: Agent, bound: Bound) -> str:
    """Make the body, or what the agent wrote last in this task, its answer. Returns a sentence if there is nothing."""
    text = argument_text(bound, "text")
    turn = agent.turn
    if not text.strip():
        text, turn = agent.guards.wrote
    if not text:
        return (
            "`ANSWER` was not done: you have written no answer yet. Write it as a message without an action."
        )
    agent.answer = Deliver(text, turn)
    return ""


def kind_digest(function: str, bound: Bound) -> str:
    """The digest of a call's kind (`core.gate.kind_of_call`)."""
    if len(bound.digests) < 2:
        whole_digest_of(bound)
        passed = {name: _comparable(value) for name, value in bound.attached.items()}
        bound.digests.append(kind_of(function, {**bound.arguments, **passed}))
    return bound.digests[1]


def _comparable(value: Value) -> str:
    """The text of a value that was passed by name, or its digest if it is long or no text."""
    if value.is_text and value.size <= _COMPARED:
        return value.text()
    return value.sha256


def call_of(tree: Tree, function: str, bound: Bound) -> Call:
    """A call, as it is counted: before format 1.3, only calls with the very same arguments were the same."""
    if tree.follows_1_3:
        return function, kind_digest(function, bound)
    return function, digest_of(bound)


def _define(agent: Agent, bound: Bound) -> str:
    """Make a variable: of another one, which keeps its type and its sources, or of what is written."""
    name = argument_text(bound, "name")
    value = bound.attached.get("value")
    if value is None:
        written = argument_text(bound, "value")
        media = media_of(str(bound.arguments.get("type", "")))
        value = text_value(written, media=media, labels=origin.by(agent), origin=agent.path)

    agent.table.define(name, value)
    return f"Kept {labels.describe(name, value)}."


def _show(tree: Tree, agent: Agent, bound: Bound) -> Feedback:
    """Show each variable that a SHOW names. What is said about the last is returned; the others stand before it."""
    lines = str(bound.arguments.get("lines", ""))
    characters = str(bound.arguments.get("chars", ""))
    passed = bound.attached.get("name")
    if passed is not None:
        names_of_it = (name for name, value in agent.table.items() if value is passed)
        return _show_one(tree, agent, next(names_of_it, ""), passed, lines, characters)

    words = [word.lstrip("$") for word in str(bound.arguments.get("name", "")).replace(",", " ").split()]
    ends_with_range = len(words) > 1 and _RANGE.fullmatch(words[-1]) is not None
    if ends_with_range and not lines:
        lines = words.pop()
    names = list(dict.fromkeys(words)) or [""]

    shown = [
        _show_one(tree, agent, name, agent.table.get(name), lines, characters)
        for name in names[:_SHOWN_AT_ONCE]
    ]
    if names[_SHOWN_AT_ONCE:]:
        shown.append(f"One SHOW shows {_SHOWN_AT_ONCE} variables; write another for the rest.")
    agent.mail.feedback += shown[:-1]
    return shown[-1]


def _show_one(
    tree: Tree, agent: Agent, name: str, value: Value | None, lines: str, characters: str
) -> Feedback:
    """Show one variable, or say why it can't be shown."""
    if value is None:
        have = ", ".join(f"${other}" for other, _ in agent.table.listed()[:_NAMED]) or "none"
        return f"`SHOW` was not run: you have no variable ${name}. You have {have}."

    if value.sha256 in tree.blobs.told:
        return labels.content_lost("SHOW", name, value)

    if not value.is_text:
        if _attach(tree, agent, name, value):
            origin.read(agent, value.labels)
            return f"{labels.describe(name, value)} stands behind this message."
        return f"`SHOW` was not run: {labels.describe(name, value)} is not text.{_why_unseen(tree, agent, name, value)}"

    # What is wrong with a range tells how long the text is.
    origin.read(agent, value.labels)
    selected = select(readable(value), lines, characters)
    if isinstance(selected, str):
        return f"`SHOW` was not run for ${name}: {selected}."
    label = labels.result_label(f"SHOW {name}{selected.title}", variable=None, exit_status=None)
    room = room_for(tree, agent, selected.text)
    beyond = f"\n{selected.beyond}" if selected.beyond else ""
    return Passage(label, selected.text, room, name, beyond, asked=selected)


def outcome(tree: Tree, agent: Agent, pending: Pending, record: Record, result: Result) -> Feedback:
    """Return feedback for an action from its `result` record. A value that it brought becomes a variable."""
    match result.status:
        case "incomplete":
            return labels.incomplete(pending.spec.name)
        case "cancelled":
            return _stopped(tree, agent, pending, record, result)
        case "forked" if pending.call:
            return f"`{pending.written}` had begun where the session was forked; what came of it is not known here."
        case "forked":
            return f"`{pending.written}` was not carried out: the session was forked here."
        case "skipped" if pending.call and pending.child:
            return (
                f"`{pending.written}`: {pending.child} goes on working; collect its reply with WAIT or QUERY."
            )
        case "skipped" if agent.mail.urgent:
            return f"`{pending.written}` was not run: a message to you came first."
        case "skipped":
            return f"`{pending.written}` was not run; your work was stopped before it."
        case "interrupted":
            return f"`{pending.written}` was interrupted; its outcome is unknown, and it was not run again."
        case "ok" if pending.spec.name == "REMEMBER":
            return f"Remembered as {tree.session}/{record.n}."
        case "ok" if pending.spec.name == "RECALL":
            ids = [row.id for row in result.rows]
            return labels.recalled(pending.written, zip(lines_in(record.body), ids, strict=False))
        case "error" if pending.spec.name in ("REMEMBER", "RECALL"):
            return record.body
        case "ok" if pending.spec.name in ("LOAD", "DEPLOY"):
            return _brought(tree, agent, pending)
        case "ok" if pending.remote:
            return _answered(tree, agent, pending, record, result)
        case _:
            return _brought_value(tree, agent, pending, record, result)


def _brought_value(tree: Tree, agent: Agent, pending: Pending, record: Record, result: Result) -> Passage:
    """What an agent reads of the value that a call brought, which becomes a variable."""
    value = result_value(tree, agent, pending, record, result)
    quiet = _is_said_at_once(value)
    stem = pending.remote or pending.spec.name.rsplit(".", 1)[-1].lower()
    variable = agent.table.keep(stem, value, quiet=quiet)

    label = labels.result_label(
        pending.written,
        variable=None if quiet else variable,
        exit_status=exit_status(dict(result.data or {})),
        error=result.status == "error",
    )
    passage = _passage(tree, agent, label, value, variable, result)
    remarks = _made_aside(result) + _overwrote(tree, agent) + _fresh(tree, pending, result)
    return replace(passage, after=passage.after + remarks) if remarks else passage


def _made_aside(result: Result) -> str:
    """Say what a call of an agent that may only read changed where nothing is kept."""
    return f"\n{labels.made_aside(result.aside)}" if result.aside else ""


def _overwrote(tree: Tree, agent: Agent) -> str:
    """Say which files its calls changed that another agent had written, and who hears of it."""
    rows: dict[tuple[str, bool], list[tuple[str, tuple[str, ...]]]] = {}
    for each in apply_file_owners.for_writer(tree, agent):
        rows.setdefault((each.decides, each.at_once), []).append((each.path, each.of))

    told = ""
    for (decides, at_once), files in rows.items():
        say = labels.wrote_at_once if at_once else labels.overwrote
        told += "\n" + say(files, "" if decides == agent.caller else decides)
    return told


def _fresh(tree: Tree, pending: Pending, result: Result) -> str:
    """Say that a module with a state was started afresh, for whatever reason. Only a result says so: before, a loss
    would be told from a denial."""
    module = pending.spec.module
    if not result.fresh or module is None or not has_states(tree, pending.spec):
        return ""
    return "\n" + labels.started_afresh(module)


def _is_said_at_once(value: Value) -> bool:
    """Whether a result is no more than a short line. It keeps its name, so that later results have the names that an
    agent expects and can use in the same reply, but it is not worth being listed."""
    if not value.is_text or value.size > _LINE * 4:
        return False
    text = readable(value)
    return len(text) <= _LINE and "\n" not in text


def _passage(tree: Tree, agent: Agent, label: str, value: Value, variable: str, result: Result) -> Passage:
    """What an agent reads of a value that an action brought. `result`: what else it brought."""
    text = _shown(tree, agent, value, variable)
    artifacts = "".join(f"\n{line}" for line in _artifacts(tree, agent, result, value.labels))
    return Passage(label, text, room_for(tree, agent, text), variable, artifacts)


def _answered(tree: Tree, agent: Agent, pending: Pending, record: Record, result: Result) -> Passage:
    """The answer of a remote agent, which is read like the message of a child."""
    name = pending.remote
    value = result_value(tree, agent, pending, record, result)
    variable = agent.table.keep(name, value)
    if value.is_text:
        message = Incoming(record.n, "child", result.function, value.text(), {}, labels=value.labels)
        capture(message.text, agent.table, message)

    source = remote.source(agent.remote[name], name)
    label = labels.message_label(f"{source}, kept as ${variable}", ())
    return _passage(tree, agent, label, value, variable, result)


def has_output(record: Record, result: Result) -> bool:
    """Whether a call printed something that its agent reads, although the call did not complete.

    What a lost module had printed is only for people: an agent must not be able to distinguish it from a denial.
    """
    return result.status != "incomplete" and (result.blob is not None or bool(record.body))


def _stopped(tree: Tree, agent: Agent, pending: Pending, record: Record, result: Result) -> Feedback:
    """That a call was ended, and what it had printed by then."""
    what = f"`{pending.written}` was cancelled before it ended."
    if not has_output(record, result):
        return what

    value = result_value(tree, agent, pending, record, result)
    quiet = _is_said_at_once(value)
    variable = agent.table.keep(pending.spec.name.rsplit(".", 1)[-1], value, quiet=quiet)
    printed = labels.printed_label(None if quiet else variable)
    text = _shown(tree, agent, value, variable)
    return Passage(f"{what} {printed}", text, room_for(tree, agent, text), variable)


def _brought(tree: Tree, agent: Agent, pending: Pending) -> str:
    """Describe a newly available module: its functions, and the documentation of the first of them."""
    module = "" if pending.bound is None else argument_text(pending.bound, "name")
    specs = [spec for spec in tree.registry(agent.path).functions() if spec.module == module]
    paragraphs = [labels.brought(pending.written, module, lines(specs))]
    origin.read(agent, origin.passed(pending.bound))

    documented = [spec for spec in specs if spec.documentation][:_TOLD]
    if pending.spec.name == "LOAD":
        paragraphs += notes.learn(tree, agent, documented)
    else:
        # DEPLOY documents functions from source that the agent itself passed.
        paragraphs += [notes.note(tree, spec) for spec in documented]
        agent.context.known.update(spec.name for spec in documented)
    return "\n\n".join(paragraphs)


def _artifacts(tree: Tree, agent: Agent, result: Result, provenance: Labels) -> Iterator[str]:
    """Keep what a call produced in addition to its result. Yields one line about each."""
    for artifact in result.artifacts:
        media = artifact.media or "application/octet-stream"
        value = tree.blobs.value(artifact, media, provenance, result.function, again=tree.current)
        variable = agent.table.keep(_stem(artifact.name), value)
        is_shown = media.startswith(("image/", "audio/", "video/"))
        how = f" ![](${variable}) in an answer shows it." if is_shown else ""
        yield f"It also brought {labels.describe(variable, value)}.{how}"


def _stem(file: str) -> str:
    """The name for the variables of a file, which gets a number: "figure" for "figures/figure-1.png"."""
    name = file.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    without_number = re.sub(r"[-_ ]?[0-9]+$", "", name)
    stem = re.sub(r"[^A-Za-z0-9_]+", "_", without_number).strip("_")
    return stem if NAME.fullmatch(stem) else "artifact"


def _attach(tree: Tree, agent: Agent, name: str, value: Value) -> bool:
    """Attach a value to the agent's next message, if its model takes it and there is room."""
    if tree.blobs.is_lost(value.sha256):
        return False
    shown = part(name, value, tree.roles[agent.model].takes)
    if shown is None or len(agent.mail.parts) >= MOST:
        return False
    agent.mail.parts.append(shown)
    return True


def _why_unseen(tree: Tree, agent: Agent, name: str, value: Value) -> str:
    """Why a picture or a sound is not attached to the agent's next message, as a sentence behind another; or nothing.

    Before format 1.3, nothing was said.
    """
    medium = medium_of(value)
    if medium is None or not tree.follows_1_3:
        return ""

    if medium not in tree.roles[agent.model].takes:
        kind = "pictures" if medium == "image" else "sound"
        return f" Your model takes no {kind}; a person sees it where you write ![caption](${name})."
    if not value.size:
        return " It is empty."
    if len(agent.mail.parts) >= MOST:
        return f" A message shows {MOST} at most; write another SHOW."
    return f" At most {labels.size(LARGEST)} can be shown to you."


def _shown(tree: Tree, agent: Agent, value: Value, variable: str) -> str:
    """What stands for a value in a message: its text, or what else it is."""
    if value.is_text:
        return readable(value)
    if _attach(tree, agent, variable, value):
        return f"({value.media}, {labels.size(value.size)}; it stands behind this message)"
    return f"({value.media}, {labels.size(value.size)}, not text)"


def result_value(tree: Tree, agent: Agent, pending: Pending, record: Record, result: Result) -> Value:
    """The value that the `result` record of a call holds, in its body or in a blob."""
    provenance = origin.of_call(tree, agent, pending)
    media = result.media or "text/plain"
    if result.blob is not None:
        return tree.blobs.value(result.blob, media, provenance, result.function, again=tree.current)
    return text_value(record.body, media=media, labels=provenance, origin=result.function)
