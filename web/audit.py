"""HTML of what people are shown beside a dialogue: what the gate asks them, what memory brought, how a plan goes.

None of it is ever in a context, except for what memory brought, which the agent reads as plain lines. As
everywhere, what came from a model, a module or a memory is text here and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from html import escape
from typing import Final

from iact.core.ports import JSON
from iact.core.records.calls import ClearanceAnswer, ClearanceAsk
from iact.core.records.dialogue import Recall
from iact.core.records.hosts import HostAnswer, HostAsk, HostReach, rule_of
from iact.core.records.parts import AttachedValue, MemorySource
from iact.core.records.plans import Ask, Extend, MakeCopy, Node, Plan, TakeOver, Wake
from iact.web.render import NONE, Known, code_block, markdown, output, plain
from iact.web.safe_text import exact


def question_html(asked: ClearanceAsk) -> str:
    """A question to a person, with the call in full and where its arguments come from."""
    function = f'<span class="function">{_plain(asked.function)}</span>'
    impact = f'<span class="badge impact t">{impact_words(asked.impact)}</span>'
    why = "".join(f'<p class="why"><span class="t">{_plain(one)}</span></p>' for one in _reasons(asked))
    read = (
        f'<p class="aside"><span class="t">The agent has read</span>{_labels(asked.read)}</p>'
        if asked.read
        else ""
    )
    return (
        f'<section class="card asked"><header>{function} {impact}</header><div class="card-body">{why}'
        f"{_arguments(asked)}{read}</div></section>"
    )


def impact_words(impact: float) -> str:
    """What a call of an impact does, in words."""
    if impact >= 2:
        return "destroys or sends data out"
    return "changes files" if impact > 0 else "only looks"


def _reasons(asked: ClearanceAsk) -> Iterator[str]:
    """Why a call is asked about, and all that it does, each in a line."""
    if asked.rule == "clearance":
        yield f"Your policy asks before each {asked.function}."
    else:
        yield asked.reason
    # Loaded where it is wanted: a process that only renders has no use for a parser of shell scripts.
    from iact.core.session.verdict import effects_of

    effects = effects_of(asked.function, asked.params)
    yield from (f"{_EFFECTS.get(effect, effect)}: {what}" for effect, what in effects)
    if not effects:
        yield asked.why
    elif asked.impact < 2 and any(effect in ("destroy", "send", "authority") for effect, _ in effects):
        yield "It can reach only this session's own files, so it counts as changing files."


_EFFECTS: Final = {
    "authority": "Changes who may do what",
    "send": "Sends data out",
    "destroy": "Destroys",
    "unknown": "Can't be judged",
    "modify": "Changes",
}


def answer_html(answer: ClearanceAnswer) -> str:
    """The answer to one."""
    verdict = "allowed" if answer.allow else "denied"
    done = "approved" if answer.allow else "denied"
    words = {
        "user": f"You {done} it",
        "time": "Nobody answered in time, so it was denied",
        "endpoint": f"Your approval service {done} it",
    }[answer.by]
    return f'<p class="aside"><span class="badge {verdict} t">{words}</span> <span class="t">{_plain(answer.reason)}</span></p>'


def host_question_html(asked: HostAsk) -> str:
    """A question to a person, whether a module may reach a host."""
    host = f'<span class="function">{_plain(exact(rule_of(asked.host, asked.port)))}</span>'
    module = _plain(asked.module)
    why = (
        '<p class="why"><span class="t">It is not among the hosts that this module may reach.</span></p>'
        '<p class="why"><span class="t">If you allow it, data can go there and come from there.</span></p>'
    )
    return (
        f'<section class="card asked"><header>{host} <span class="badge">{module}</span></header>'
        f'<div class="card-body">{why}</div></section>'
    )


def host_answer_html(answer: HostAnswer) -> str:
    """The answer to one."""
    verdict = "allowed" if answer.allow else "denied"
    words = {
        ("user", True): {
            "once": "You allowed the host once",
            "session": "You allowed the host for this session",
            "always": "You allowed the host always",
        }[answer.lasts],
        ("user", False): "You did not allow the host",
        ("time", False): "Nobody answered in time, so the host was not reached",
        ("core", False): "Nothing waits for this answer any more",
    }.get((answer.by, answer.allow), "")
    return f'<p class="aside"><span class="badge {verdict} t">{words}</span></p>'


ORIGINS: Final = {
    "manifest": "allowed with the module",
    "policy": "allowed by the policy",
    "always": "allowed by you, always",
    "session": "allowed by you, for this session",
    "once": "allowed by you, once",
}
"""Who allowed a host, in words."""


def host_reach_html(reached: HostReach) -> str:
    """A host that a module connects to, and who allowed that."""
    host = f'<span class="function">{_plain(exact(rule_of(reached.host, reached.port)))}</span>'
    return (
        f'<p class="aside"><span class="badge">{_plain(reached.module)}</span> {host} '
        f'<span class="t">{ORIGINS[reached.by]}</span></p>'
    )


def _arguments(asked: ClearanceAsk) -> str:
    attached = asked.attached or {}
    rows = [_argument(name, value, asked.provenance.get(name, ())) for name, value in asked.params.items()]
    rows += [
        _stored(name, one, asked.provenance.get(name, ()))
        for name, one in attached.items()
        if name not in asked.params
    ]
    return (
        f'<dl class="arguments-list">{"".join(rows)}</dl>' if rows else '<p class="aside t">No arguments.</p>'
    )


def _argument(name: str, value: JSON, labels: Iterable[str]) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # All of it, however long: what would be left out here could be what matters.
    return f"<dt>{_plain(name)}{_labels(labels)}</dt><dd>{code_block(exact(text))}</dd>"


def _stored(name: str, value: AttachedValue, labels: Iterable[str]) -> str:
    words = f"{value.size:,} bytes of {value.media or 'an unknown type'}, SHA-256 {value.sha256[:16]}"
    return f'<dt>{_plain(name)}{_labels(labels)}</dt><dd class="aside">{_plain(words)}</dd>'


def _labels(labels: Iterable[str]) -> str:
    """Where a value comes from, as badges; what is neither the user's nor the model's stands out."""
    return "".join(
        f' <span class="badge t {"" if one in ("user", "model") else "strange"}">{_from(one)}</span>'
        for one in labels
    )


def _from(label: str) -> str:
    words = {"user": "from you", "model": "written by the model"}
    return words.get(label) or f"from {_plain(label)}"


def _plain(text: str) -> str:
    """Text for somebody who decides by it: nothing is taken out, nothing is unseen."""
    return escape(exact(text))


# --- memory -------------------------------------------------------------------------------------


def recall_html(recall: Recall, text: str) -> str:
    """What memory brought for one turn, each fragment with what found it and where it is from."""
    lines = [line.removeprefix("- ") for line in text.split("\n") if line]
    if not lines:
        return '<p class="aside t">Nothing was recalled.</p>'
    rows: list[MemorySource | None] = [*recall.rows]
    rows += [None] * (len(lines) - len(rows))
    items = "".join(_fragment(line, row) for line, row in zip(lines, rows, strict=False))
    return f'<p class="aside t">Recalled in {recall.ms} ms:</p><ul class="recalled">{items}</ul>'


def _fragment(line: str, row: MemorySource | None) -> str:
    if row is None:
        return f"<li><p>{plain(line)}</p></li>"
    words = " · ".join(_found(row))
    details = " · ".join(one for one in (f"score {row.score:.2f}", row.why) if one)
    disputed = '<span class="badge incomplete t">contradicted</span>' if row.contradicts else ""
    return f'<li><p>{plain(line)}</p><p class="aside" title="{plain(details)}">{plain(words)}{_labels(row.untrusted)} {disputed}</p></li>'


_GOOD: Final = 0.5
"""Scores from here on are called a good match."""


def _found(row: MemorySource) -> Iterator[str]:
    yield row.kind
    yield "good match" if row.score >= _GOOD else "match"
    if row.agent:
        yield f"by {row.agent}"
    if row.session:
        yield f"in session {row.session}"
    if row.at:
        yield row.at[:10]


# --- plans --------------------------------------------------------------------------------------


def plan_html(plan: Plan, known: Known = NONE) -> str:
    """A version of a plan: what it adds, drops and changes, and why."""
    counts = {"added": len(plan.add), "removed": len(plan.drop), "changed": len(plan.rewire)}
    changes = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    if plan.version == 1:
        changes = "1 step" if len(plan.add) == 1 else f"{len(plan.add)} steps"
    head = f"Plan, version {plan.version}: {changes}." if changes else f"Plan, version {plan.version}."
    why = markdown(plan.reason, known) if plan.reason and plan.version > 1 else ""
    return f'<p class="aside t">{plain(head)}</p>{why}'


def extend_html(more: Extend) -> str:
    """Steps that join a version without a decision: while a plan is written, or thoughts about it."""
    names = ", ".join(str(one.get("id")) for one in more.add)
    return f'<p class="aside t">{plain(f"{names} joined the plan: {more.reason}.")}</p>'


def node_html(node: Node) -> str:
    """A change of one node of a plan."""
    word = "".join(one for one in node.to if "a" <= one <= "z")
    return (
        f'<p class="aside"><span class="function">{plain(node.node)}</span> '
        f'<span class="badge {word} t">{plain(node.to.replace("_", " "))}</span> <span class="t">{plain(node.detail)}</span></p>'
    )


def copy_html(copy: MakeCopy) -> str:
    """A step that races has a copy of the workspace, or takes its turn."""
    if copy.base:
        what = f"{copy.node} works in its own copy of the workspace."
    else:
        what = f"{copy.node} works in the workspace itself when it is its turn, since it can't have a copy: {copy.why}"
    return f'<p class="aside t">{plain(what)}</p>'


def taken_html(taken: TakeOver) -> str:
    """What became of the copy of a step that came first."""
    if taken.version:
        what = f"{taken.node} came first: what it wrote in its copy is in the workspace now."
    elif taken.conflicts:
        named = ", ".join(taken.conflicts)
        what = f"{taken.node} came first, but its copy was not put into the workspace, because somebody else changed this there meanwhile: {named}."
    else:
        what = f"{taken.node} came first, but its copy could not be put into the workspace: {taken.why}"
    return f'<p class="aside t">{plain(what)}</p>'


def draft_html(text: str) -> str:
    """What a planner has written of its plan so far."""
    return f'<details class="quiet"><summary class="t">The planner wrote more of the plan</summary> {output(text)}</details>'


def wake_html(wake: Wake) -> str:
    """A plan goes on by itself."""
    why = (
        "The session was opened again, and the plan goes on." if wake.reopened else "The plan's wait is over."
    )
    return f'<p class="aside t">{why}</p>'


_QUESTIONS: Final = {
    "plan": "for a plan",
    "correct": "to correct its plan",
    "replan": "for a new plan",
    "reflect": "how the plan is going",
    "interject": "what a message means for the plan",
    "observe": "what a result means for the plan",
    "patch": "how to replace a step",
    "analyze": "how the plan is going",
    "judge": "whether the goal was reached",
    "synthesize": "for a report",
}


def ask_html(ask: Ask, text: str) -> str:
    """What a model answered about a plan."""
    what = _QUESTIONS.get(ask.question, ask.question)
    if ask.node:
        what = (
            f'how to replace step "{ask.node}"' if ask.question == "patch" else f'{what} (step "{ask.node}")'
        )
    words = f"Asked the model {what}"
    if ask.failed:
        return f'<p class="aside t">{plain(f"{words}. It gave no valid answer: {ask.failed}")}</p>'
    return f'<details class="quiet"><summary class="t">{plain(words)}</summary>{output(text)}</details>'
