"""What the models that think about a plan, and the agents that carry out its steps, are told: small values in full,
longer ones by name. Pure.

A task names what it builds on. The message that brings it shows the small values, before the task and as data, like any
message (`core.context.values`). A model that writes or judges steps reads them in its question; content from outside stands
there by name only, however short it is: what gives orders must not hold a stranger's text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Literal

from iact.core.context import values
from iact.core.context.tokens import Calibration
from iact.core.gate.provenance import NOTHING, Labels, join
from iact.core.language.grammar import Bound
from iact.core.language.labels import describe, inline, path, size
from iact.core.language.variables import Value, text_value
from iact.core.plan import questions
from iact.core.plan.briefing import Briefing, KnownValue, SaidBefore
from iact.core.plan.contracts import as_text
from iact.core.plan.model import PlanNode
from iact.core.plan.prompt import UNLIMITED
from iact.core.plan.questions import PlanSituation
from iact.core.ports import JSON
from iact.core.records.parts import SeenFile, SeenFiles
from iact.core.tree import origin
from iact.core.tree.agent import Agent
from iact.core.tree.plan_functions import Functions
from iact.core.tree.plan_run import PlanRun, variable_of
from iact.core.tree.tree import Tree

_EXCHANGES: Final = 12
"""The most messages before the request that are told, the newest ones."""

_VARIABLES: Final = 20
"""The most variables of the caller that are named though the plan doesn't mention them."""

_SOURCE: Final = 200
"""The most characters that say where a value comes from."""


@dataclass(frozen=True, slots=True)
class _Handed:
    """A value that an agent step can use."""

    name: str
    """The variable's name."""
    value: Value
    source: str = ""
    """What produced it, in a line; empty where that adds nothing."""


def in_full(tree: Tree, value: Value) -> str | None:
    """The text of a value that a question may give in full; None if its name must do."""
    if origin.strange(tree, value.labels):
        return None
    text = values.in_full(value)
    # Its lines are indented, so that they are not taken for what is said about it.
    return None if text is None else text.replace("\n", "\n    ")


@dataclass(frozen=True, slots=True)
class _Said:
    """A message of a dialogue."""

    who: Literal["person", "agent"]
    text: str
    labels: Labels


def brief(tree: Tree, run: PlanRun, caller: Agent, told: Mapping[str, Value]) -> Labels:
    """Fix what the models that write or judge a plan's steps are told, and return the labels of what they read by that.

    `told`: the values that the plan mentions. Those of which content is shown are tainting, as is what was said before.
    """
    root = tree.root
    before, words = _dialogue(root)
    if caller is not root:
        # What its caller was asked is part of the conversation, and the person's words are still the root's.
        before += [_Said("person", task.text, task.labels) for task in caller.context.chronicle.heard[-1:]]
    shown = before[-_EXCHANGES:]

    # The values that the plan mentions, and names of others.
    known = [KnownValue(describe(name, value), in_full(tree, value)) for name, value in told.items()]
    others = [name for name, _ in caller.table.listed() if name not in told]
    known += [KnownValue(describe(name, caller.table[name])) for name in others[:_VARIABLES]]

    files = run.files or SeenFiles()
    run.briefing = Briefing(
        datetime.fromtimestamp(run.heard, UTC).strftime("%A, %Y-%m-%d"),
        known=tuple(known),
        models=tuple(sorted(tree.roles)),
        words=tuple(said.text for said in words) or _program(run, caller),
        summary=root.context.cut_note,
        conversation=tuple(SaidBefore(said.who, said.text) for said in shown),
        files=tuple(f"{path(file.path)} ({size(file.size)})" for file in files.new),
        more_files=files.more,
        memory=_known(tree, caller),
    )

    contents = join(value.labels for value in told.values() if in_full(tree, value) is not None)
    file_names = NOTHING
    if run.files is not None:
        file_names = tree.shared.files | join(tree.shared.writing.values())
    messages = join(said.labels for said in (*shown, *words))
    return join([contents, file_names, tree.standing.labels, messages])


def before_choosing(tree: Tree, text: str) -> PlanSituation:
    """What the model reads that says what a message is like, before it is chosen how to work on it."""
    root = tree.root
    before, waiting = _dialogue(root)
    shown = [*before, *waiting][-_EXCHANGES:]

    told = root.context.told
    files: tuple[SeenFile, ...] = ()
    if told is not None and told.seen.files is not None:
        files = told.seen.files.new

    names = [name for name, _ in root.table.listed()[:_VARIABLES]]
    briefing = Briefing(
        known=tuple(KnownValue(describe(name, root.table[name])) for name in names),
        words=(text,),
        summary=root.context.cut_note,
        conversation=tuple(SaidBefore(said.who, said.text) for said in shown),
        files=tuple(f"{path(file.path)} ({size(file.size)})" for file in files),
        memory=_known(tree, root),
    )
    return PlanSituation(text, briefing, Functions(tree.registry("/")).all())


def _known(tree: Tree, agent: Agent) -> tuple[str, ...]:
    """What memory says to a plan of this agent: what every agent is told, and what the agent was told last."""
    if not tree.remembers:
        return ()
    return (*tree.standing.lines, *(agent.mail.recalled or agent.context.remembered))


def _dialogue(root: Agent) -> tuple[list[_Said], list[_Said]]:
    """What was said between the person and the root before the present request, and the request, each oldest first."""
    chronicle = root.context.chronicle
    messages = [_Said("person", heard.text, heard.labels) for heard in chronicle.heard]
    before: list[_Said] = []
    answered = 0
    for answer in chronicle.answers:
        before += messages[answered : answer.heard]
        before.append(_Said("agent", answer.text, answer.labels))
        answered = answer.heard

    # If the plan was begun by itself, everything was said before it.
    if not root.active:
        return before, []
    return before, messages[answered:]


def _program(run: PlanRun, caller: Agent) -> tuple[str, ...]:
    """The words of a person who began a plan without a dialogue."""
    is_by_itself = caller.caller == "user" and not caller.active
    if not is_by_itself or not run.source.goal:
        return ()
    return (run.source.goal,)


def window_of(tree: Tree, role: str) -> int:
    """The tokens that the model of a role can read, as our estimate counts them."""
    known = tree.roles.get(role) or tree.roles.get("smart")
    if known is None or known.context <= 0:
        return UNLIMITED
    return int(known.context / tree.calibrations.get(role, Calibration()).factor)


def task_of(
    tree: Tree,
    run: PlanRun,
    plan: Agent,
    node: PlanNode,
    arguments: Mapping[str, JSON],
    refs: Mapping[str, Labels],
    *,
    left_behind: Sequence[str] = (),
) -> Bound:
    """Build the message to the child of an agent step: its task, its purpose, and what it builds on.

    `refs`: the labels of what each of its refs passes on. `left_behind`: the files that an earlier attempt wrote.
    """
    plain: list[str] = []
    handed: list[_Handed] = []
    by_ref: dict[str, int] = {}
    """Steps whose whole results are handed over by the name of a ref, and where in `handed`."""
    other_names: dict[str, list[str]] = {}
    """Names of refs that are the whole result of a step, which is handed over by its own name."""

    # What its parameters say, and the values of its refs.
    for name, value in arguments.items():
        if name not in node.refs:
            plain.append(f"{name}: {as_text(value)}")
            continue

        step = node.refs[name].step
        media = "text/plain" if isinstance(value, str) else "application/json"
        passed = text_value(as_text(value), media=media, labels=refs[name], origin=step)
        source = ""
        if run.machine is not None and _is_its_whole_result(run, node, name, passed):
            # One name is enough: that of the ref, unless another value has it in this plan.
            taken = plan.table.get(variable_of(name))
            is_taken = taken is not None and taken.sha256 != passed.sha256
            if step not in by_ref and not is_taken:
                by_ref[step] = len(handed)
                source = _source(run, step)
            elif f"${name}" not in node.task:
                other_names.setdefault(step, []).append(name)
                continue
        handed.append(_Handed(plan.table.receive(variable_of(name), passed), passed, source))

    # The results of the steps before it, and what their agents brought.
    for step in node.dependencies:
        settled = run.latest.get(step)
        if step not in run.state.outputs or settled is None or settled.value is None:
            continue

        names = "".join(f", your {name}" for name in other_names.get(step, ()))
        if step in by_ref:
            place = by_ref[step]
            handed[place] = replace(handed[place], source=f"{handed[place].source}{names}")
        else:
            source = _source(run, step)
            handed.append(_Handed(variable_of(step), settled.value, f"{source}{names}"))
        handed += [_Handed(name, plan.table[name]) for name in settled.brought if name in plan.table]

    by_name: dict[str, _Handed] = {}
    for item in handed:
        by_name.setdefault(item.name, item)
    handed = list(by_name.values())

    if run.machine is None:
        return _bound(tree, node, _told_then(node, plain, handed))
    message = _told(node, plain, handed, run.machine.run.goal, run.source.constraints, left_behind)
    return _bound(tree, node, message)


def _source(run: PlanRun, step: str) -> str:
    """The source of a value: what its step does, and in whose place, if others failed before it.

    Their errors are left out: a program's words may be a stranger's.
    """
    record = run.state.nodes[step]
    source = _step_in_a_line(record.node)
    failed = [_step_in_a_line(earlier.node) for earlier in questions.lineage(run.state, record)]
    if not failed:
        return source
    return f"{source}, in the place of {', then of '.join(failed)}, which failed"


def _step_in_a_line(node: PlanNode) -> str:
    """What a step does: a long argument is of no use to its reader."""
    return inline(questions.step(node), _SOURCE)


def _is_its_whole_result(run: PlanRun, node: PlanNode, name: str, kept: Value) -> bool:
    """Whether a ref passes on nothing but the result of a step that is handed over anyway, by the step's name."""
    step = node.refs[name].step
    settled = run.latest.get(step)
    if step not in node.dependencies or step not in run.state.outputs:
        return False
    if settled is None or settled.value is None:
        return False

    # The name that the task uses must be there.
    if f"${variable_of(step)}" in node.task:
        return False
    return settled.value.sha256 == kept.sha256 and kept.labels <= settled.value.labels


def _told(
    node: PlanNode,
    plain: Sequence[str],
    handed: Iterable[_Handed],
    goal: str,
    constraints: Sequence[str],
    left_behind: Sequence[str],
) -> str:
    """The message to the agent of a step: its task, what it is for, and what there is for it."""
    about: list[str] = []
    if goal:
        about.append(f"This is one step of a plan. The goal of the plan: {goal}")
    ruled = Briefing(constraints=constraints).ruled()
    if ruled:
        about.append(ruled)
    about += plain
    if node.tools:
        about.append(f"Functions for it: {', '.join(node.tools)}.")
    if left_behind:
        files = ", ".join(f"`{name}`" for name in left_behind)
        about.append(f"Somebody began this before you. What is there of it: {files}.")

    values_lines: list[str] = []
    for item in handed:
        source = f", from {item.source}" if item.source else ""
        values_lines.append(f"- {describe(item.name, item.value)}{source}")
    if values_lines:
        values_lines.insert(0, "What you can build on:")

    paragraphs = [node.task, "\n".join(about), "\n".join(values_lines)]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _told_then(node: PlanNode, plain: Sequence[str], handed: Iterable[_Handed]) -> str:
    """The same in formats 1.0 and 1.1: all values by name, and nothing about the goal."""
    lines = [*plain]
    names = [f"${item.name}" for item in handed]
    if names:
        lines.append("What you can use: " + ", ".join(names) + ".")
    if not lines:
        return node.task
    return "\n".join([node.task, "", *lines])


def _bound(tree: Tree, node: PlanNode, message: str) -> Bound:
    """The arguments of the CALL that a step's agent is called by."""
    given: dict[str, JSON] = {"name": node.call, "message": message}
    if node.role:
        given["role"] = node.role
    if node.model in tree.roles:
        given["model"] = node.model
    if node.intent is not None:
        given["intent"] = node.intent
    if node.scope:
        given["scope"] = " ".join(node.scope)
    return Bound(given, {})
