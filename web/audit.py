"""HTML for what is shown next to a dialogue: the gate's questions, memories that were recalled, and a plan's progress.

None of it is ever in a context, except recalled memories, which the agent reads as plain lines. As everywhere, content
from a model, a module or a memory is text here and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from markupsafe import Markup

from iact.core.ports import JSON
from iact.core.records.calls import ClearanceAnswer, ClearanceAsk
from iact.core.records.dialogue import Recall
from iact.core.records.form_values import FormField
from iact.core.records.forms import FormAnswer, FormAsk, FrontEndCall
from iact.core.records.hosts import HostAnswer, HostAsk, HostReach, rule_of
from iact.core.records.parts import AttachedValue, MemorySource
from iact.core.records.plans import Ask, Extend, MakeCopy, Node, Plan, TakeOver, Wake
from iact.core.records.skills import SkillFile, SkillOffer
from iact.core.views.question_text import named_by
from iact.web.markup import NOTHING, html, in_full, joined
from iact.web.reasons import impact_words, in_words
from iact.web.render import aside, code_block, folded, output
from iact.web.safe_text import exact


def question_html(asked: ClearanceAsk) -> Markup:
    """A question to a person, with the complete call and the origin of its arguments."""
    why = (
        html('<p class="why"><span class="t">{}</span></p>', in_full(reason)) for reason in _reasons(asked)
    )
    read = NOTHING
    if asked.read:
        read = html(
            '<p class="aside"><span class="t">The agent has read</span>{labels}</p>',
            labels=_labels(asked.read),
        )

    return html(
        '<section class="card asked"><header><span class="function">{function}</span> '
        '<span class="badge impact t">{impact}</span></header>'
        '<div class="card-body">{why}{arguments}{read}</div></section>',
        function=in_full(asked.function),
        impact=impact_words(asked.impact),
        why=joined(why),
        arguments=_arguments(asked),
        read=read,
    )


def _reasons(asked: ClearanceAsk) -> Iterator[str]:
    """Why a person is asked about a call, and everything that it does, one per line."""
    if asked.rule == "clearance":
        yield f"Your policy asks before each {asked.function}."
    else:
        yield in_words(asked.rule, asked.impact, asked.reason)

    # Imported here because a process that only renders has no use for a parser of shell scripts.
    from iact.core.views.verdict import effects_of

    effects = effects_of(asked.function, asked.params)
    yield from (f"{_EFFECTS.get(effect, effect)}: {what}" for effect, what in effects)
    if not effects:
        yield asked.why

    sounds_worse = any(effect in ("destroy", "send", "authority") for effect, _ in effects)
    if sounds_worse and asked.impact < 2:
        yield "It can reach only this session's own files, so it counts as changing files."


_EFFECTS: Final = {
    "authority": "Changes permissions",
    "send": "Sends data out",
    "destroy": "Destroys",
    "unknown": "Has an unknown effect",
    "modify": "Changes",
}


def answer_html(answer: ClearanceAnswer) -> Markup:
    """The answer to a question."""
    verdict = "allowed" if answer.allow else "denied"
    done = "approved" if answer.allow else "denied"
    by_policy = "Nobody could be asked, and your policy denied it"
    if answer.allow:
        by_policy = "Nobody could be asked, and your policy allowed it"

    words = {
        "user": f"You {done} it",
        "time": "Nobody answered in time, so it was denied",
        "policy": by_policy,
        "endpoint": f"Your approval service {done} it",
    }[answer.by]
    return html(
        '<p class="aside"><span class="badge {} t">{}</span> <span class="t">{}</span></p>',
        verdict,
        words,
        in_full(answer.reason),
    )


_NEW_HOST: Final = html('<p class="why"><span class="t">This address is new here.</span></p>')


def host_question_html(asked: HostAsk) -> Markup:
    """A question to a person: whether a module may reach a host."""
    addresses = (html('<p class="why"><code>{}</code></p>', in_full(address)) for address in asked.addresses)
    return html(
        '<section class="card asked"><header><span class="function">{host}</span> '
        '<span class="badge">{module}</span></header><div class="card-body">'
        "{new}{agents}{addresses}"
        '<p class="why"><span class="t">{named}</span></p>{carried}'
        '<p class="why"><span class="t">If you allow it, the module can send data there and receive data from there.</span></p>'
        "</div></section>",
        host=in_full(rule_of(asked.host, asked.port)),
        module=in_full(asked.module),
        agents=_one_of(asked.agents) if len(asked.agents) > 1 else NOTHING,
        addresses=joined(addresses),
        named=in_full(named_by(asked)),
        new=NOTHING if asked.allowed else _NEW_HOST,
        carried=_carried(asked) if asked.private else NOTHING,
    )


def _carried(asked: HostAsk) -> Markup:
    """What a connection can carry out: whose words its program may follow, what it can send, and what it runs."""
    programs = (html('<pre class="value">{}</pre>', in_full(program)) for program in asked.programs)
    return html(
        '<p class="why"><span class="t">Its program may follow what strangers wrote:</span> {}</p>'
        '<p class="why"><span class="t">It can send what isn\'t public:</span> {}</p>{}'
        '<p class="why"><span class="t">Your yes lets it send there until this session ends.</span></p>',
        in_full(", ".join(asked.strange)),
        in_full(", ".join(asked.private)),
        joined(programs),
    )


def _one_of(agents: Iterable[str]) -> Markup:
    """The agents of which one connects, where it can't be told which."""
    listed = in_full(", ".join(agents))
    return html('<p class="why"><span class="t">One of these agents asks for it:</span> {}</p>', listed)


def host_answer_html(answer: HostAnswer) -> Markup:
    """The answer to a question about a host."""
    verdict = "allowed" if answer.allow else "denied"
    words = {
        ("user", True): {
            "once": "You allowed the host once",
            "session": "You allowed the host for this session",
            "always": "You allowed the host always",
        }[answer.lasts],
        ("user", False): "You did not allow the host",
        ("time", False): "Nobody answered in time, so the host was not reached",
        ("core", False): "This answer is no longer needed",
        ("policy", False): "No one could be asked, so the host was not reached",
    }.get((answer.by, answer.allow), "")
    return html('<p class="aside"><span class="badge {} t">{}</span></p>', verdict, words)


def skill_offer_html(offer: SkillOffer) -> Markup:
    """A skill that an agent offers: all of it, as it would be kept."""
    there = "It replaces the skill of this name." if offer.replaces else "There is no skill of this name yet."
    read = NOTHING
    if offer.read:
        read = html(
            '<p class="why"><span class="t">Its agent and its files have received untrusted content from:</span> {}</p>',
            joined(html('<span class="badge">{}</span> ', in_full(source)) for source in offer.read),
        )
    gone = (
        html(
            '<p class="why"><span class="t">Files that are no longer in it:</span> <code>{}</code></p>',
            in_full(path),
        )
        for path in offer.gone
    )

    return html(
        '<section class="card asked"><header><span class="function">{name}</span> '
        '<span class="badge strange t">written by an agent</span></header><div class="card-body">'
        '<blockquote class="foreign"><p>{description}</p></blockquote>'
        '<p class="why"><span class="t">{there}</span></p>{read}{files}{gone}'
        '<p class="why"><span class="t">If you approve it, agents in this and later sessions find it, trust its text, '
        "and may run its scripts.</span></p></div></section>",
        name=in_full(offer.name),
        description=in_full(offer.description),
        there=there,
        read=read,
        files=joined(_skill_file(file, replaces=offer.replaces) for file in offer.files),
        gone=joined(gone),
    )


def _skill_file(file: SkillFile, *, replaces: bool) -> Markup:
    """A file of a skill, and what is changed in it if it is there already. All of it is unfolded: a person who approves
    it must have seen it."""
    change = html(' <span class="badge t">{}</span>', file.change) if replaces else NOTHING
    differs = NOTHING
    if file.differs:
        differs = html(
            '<p class="why"><span class="t">What is changed in it:</span></p>{}',
            code_block(exact(file.differs), "diff"),
        )

    return html(
        '<p class="why"><code>{}</code>{}</p>{}{}',
        in_full(file.path),
        change,
        differs,
        code_block(exact(file.text)),
    )


def _step_for_person_html(asked: FormAsk) -> Markup:
    """A step of a plan that is the person's, or a result that they are to accept."""
    if asked.accepts:
        lead = html('<span class="t">A step of the plan gave this; it counts only if you accept it:</span>')
        then = html('<span class="t">What you enter is told to the model that makes it again.</span>')
    else:
        lead = html('<span class="t">The plan gives you this step:</span>')
        then = html(
            '<span class="t">What you enter is the result of the step, and the plan goes on with it.</span>'
        )

    return html(
        '<section class="card asked"><div class="card-body"><p class="why">{}</p><blockquote class="foreign">{}</blockquote>'
        '<p class="why">{}</p></div></section>',
        lead,
        _quoted(asked.message),
        then,
    )


def _quoted(message: str) -> Markup:
    """The lines of a question that is not ours, each a paragraph."""
    return joined(html("<p>{}</p>", in_full(line)) for line in message.splitlines())


def form_question_html(asked: FormAsk) -> Markup:
    """A question to a person: of a module, an agent or a plan, quoted; a tool of their front end; or a skill on
    offer."""
    if asked.skill is not None:
        return skill_offer_html(asked.skill)
    if asked.tool is not None:
        return _front_end_tool_html(asked.tool)
    if asked.by_agent:
        return _question_of_agent_html(asked)
    if asked.by_plan:
        return _step_for_person_html(asked)
    return _question_of_module_html(asked)


def _front_end_tool_html(tool: FrontEndCall) -> Markup:
    """A call of a tool that the person's own front end has."""
    return html(
        '<section class="card asked"><header><span class="function">{}</span></header><div class="card-body">'
        '<p class="why"><span class="t">An agent calls this tool of your front end, which answers automatically. '
        "You can answer in its place.</span></p>{}</div></section>",
        in_full(tool.name),
        code_block(exact(json.dumps(dict(tool.arguments), ensure_ascii=False, indent=1))),
    )


def _question_of_agent_html(asked: FormAsk) -> Markup:
    return html(
        '<section class="card asked"><header><span class="function t">A question</span></header><div class="card-body">'
        '<p class="why"><span class="t">An agent that works on a step of the plan asks:</span></p>'
        '<blockquote class="foreign">{}</blockquote>'
        '<p class="why"><span class="t">Your answer goes to this agent, which then goes on.</span></p></div></section>',
        _quoted(asked.message),
    )


def _question_of_module_html(asked: FormAsk) -> Markup:
    """A module's question in its own words, with the fields to fill in, or an address to open."""
    address = NOTHING
    if asked.url:
        address = html(
            '<p class="why"><span class="t">It wants you to open this address yourself:</span></p>{}',
            code_block(exact(asked.url)),
        )
    fields = NOTHING
    kept = NOTHING
    if asked.fields:
        fields = html(
            '<dl class="arguments-list">{}</dl>', joined(_form_field(field) for field in asked.fields)
        )
        kept = html(
            '<p class="why"><span class="t">Your input is stored in the journal of this session, so do not enter a password.</span></p>'
        )

    return html(
        '<section class="card asked"><header><span class="function">{function}</span> '
        '<span class="badge strange t">from outside</span></header><div class="card-body">'
        '<p class="why"><span class="t">The module asks in its own words:</span></p>'
        '<blockquote class="foreign">{message}</blockquote>{address}{fields}'
        '<p class="why"><span class="t">Your answer goes to this module, which may send it on:</span> '
        '<span class="badge">{module}</span></p>{kept}</div></section>',
        function=in_full(asked.function),
        module=in_full(asked.function.split(".", 1)[0]),
        message=_quoted(asked.message),
        address=address,
        fields=fields,
        kept=kept,
    )


def _form_field(field: FormField) -> Markup:
    needed = html(' <span class="badge t">needed</span>') if field.required else ""
    return html(
        "<dt>{}{}</dt><dd>{}</dd>", in_full(field.title or field.name), needed, in_full(field.description)
    )


def form_answer_html(answer: FormAnswer) -> Markup:
    """The answer to a form, with the values that were passed on."""
    verdict = "allowed" if answer.decision == "accept" else "denied"
    words = {
        ("user", "accept"): "You answered it",
        ("user", "decline"): "You did not answer it",
        ("time", "cancel"): "Nobody answered it in time",
        ("core", "cancel"): "This answer is no longer needed",
        ("policy", "cancel"): "No one could be asked",
    }.get((answer.by, answer.decision), "")
    outcome = html('<p class="aside"><span class="badge {} t">{}</span></p>', verdict, words)

    rows = [
        html("<dt>{}</dt><dd>{}</dd>", in_full(name), code_block(exact(_shown(value))))
        for name, value in (answer.values or {}).items()
    ]
    if not rows:
        return outcome
    return html('{}<dl class="arguments-list">{}</dl>', outcome, joined(rows))


def _shown(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


ORIGINS: Final = {
    "manifest": "allowed with the module",
    "policy": "allowed by the policy",
    "always": "allowed by you, always",
    "session": "allowed by you, for this session",
    "once": "allowed by you, once",
}
"""Who allowed a host, in words."""


def host_reach_html(reached: HostReach) -> Markup:
    """A host that a module connects to, and who allowed that."""
    return html(
        '<p class="aside"><span class="badge">{}</span> <span class="function">{}</span> <span class="t">{}</span></p>',
        in_full(reached.module),
        in_full(rule_of(reached.host, reached.port)),
        ORIGINS[reached.by],
    )


def _arguments(asked: ClearanceAsk) -> Markup:
    """The arguments of a call: those that are written out, then those whose value is stored."""
    rows = [_argument(name, value, asked.provenance.get(name, ())) for name, value in asked.params.items()]
    rows += [
        _stored(name, value, asked.provenance.get(name, ()))
        for name, value in (asked.attached or {}).items()
        if name not in asked.params
    ]
    if not rows:
        return aside("No arguments.")
    return html('<dl class="arguments-list">{}</dl>', joined(rows))


def _argument(name: str, value: JSON, labels: Iterable[str]) -> Markup:
    # All of it, however long: what would be left out here could be what matters.
    return html("<dt>{}{}</dt><dd>{}</dd>", in_full(name), _labels(labels), code_block(exact(_shown(value))))


def _stored(name: str, value: AttachedValue, labels: Iterable[str]) -> Markup:
    words = f"{value.size:,} bytes of {value.media or 'an unknown type'}, SHA-256 {value.sha256}"
    is_text = (value.media or "").startswith("text/")
    opener = NOTHING
    if is_text and value.sha256:
        opener = html(
            ' <button type="button" class="link open-value t" data-sha256="{}">Open in full</button>',
            value.sha256,
        )

    return html(
        '<dt>{}{}</dt><dd class="aside">{}{}</dd>',
        in_full(name),
        _labels(labels),
        in_full(words),
        opener,
    )


def _labels(labels: Iterable[str]) -> Markup:
    """Where a value comes from, as badges; origins other than the user and the model are highlighted."""
    badges: list[Markup] = []
    for label in labels:
        look = "" if label in ("user", "model") else "strange"
        badges.append(html(' <span class="badge t {}">{}</span>', look, in_full(_from(label))))
    return joined(badges)


def _from(label: str) -> str:
    words = {"user": "from you", "model": "written by the model"}
    return words.get(label) or f"from {label}"


# --- memory -------------------------------------------------------------------------------------


def recall_html(recall: Recall, text: str) -> Markup:
    """The memories recalled for one turn, each with how it was found and where it is from."""
    lines = [line.removeprefix("- ") for line in text.split("\n") if line]
    if not lines:
        return aside("Nothing was recalled.")

    if recall.standing:
        items = joined(html("<li><p>{}</p></li>", line) for line in lines)
        return html(
            '<p class="aside t">Every agent of this session is told:</p><ul class="recalled">{}</ul>', items
        )

    # Some lines may have no source that is known.
    rows: list[MemorySource | None] = [*recall.rows]
    rows += [None] * (len(lines) - len(rows))
    return html(
        '<p class="aside t">Recalled in {ms} ms:</p><ul class="recalled">{items}</ul>',
        ms=recall.ms,
        items=joined(_fragment(line, row) for line, row in zip(lines, rows, strict=False)),
    )


def _fragment(line: str, row: MemorySource | None) -> Markup:
    if row is None:
        return html("<li><p>{}</p></li>", line)

    details = [f"score {row.score:.2f}"]
    if row.why:
        details.append(row.why)
    disputed = NOTHING
    if row.contradicts:
        disputed = html('<span class="badge incomplete t">contradicted</span>')

    return html(
        '<li><p>{line}</p><p class="aside" title="{details}">{words}{labels} {disputed}</p></li>',
        line=line,
        details=" · ".join(details),
        words=" · ".join(_source(row)),
        labels=_labels(row.untrusted),
        disputed=disputed,
    )


_GOOD: Final = 0.5
"""Scores from here on are called a good match."""


def _source(row: MemorySource) -> Iterator[str]:
    """How well a memory fits, and where it is from."""
    yield row.kind
    yield "good match" if row.score >= _GOOD else "match"
    if row.agent:
        yield f"by {row.agent}"
    if row.session:
        yield f"in session {row.session}"
    if row.at:
        yield row.at[:10]


# --- plans --------------------------------------------------------------------------------------


def plan_html(plan: Plan) -> Markup:
    """A version of a plan: what it adds, drops and changes, and why."""
    counts = {"added": len(plan.add), "removed": len(plan.drop), "changed": len(plan.rewire)}
    changes = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    if plan.version == 1:
        changes = "1 step" if len(plan.add) == 1 else f"{len(plan.add)} steps"

    head = f"Plan, version {plan.version}: {changes}." if changes else f"Plan, version {plan.version}."
    if plan.version == 1 or not plan.reason:
        return aside(head)
    return joined((aside(head), html('<p class="aside t">{}</p>', plan.reason)))


def extend_html(extension: Extend) -> Markup:
    """Steps that join a version without a decision: while the plan or its reasoning is being written."""
    names = ", ".join(str(step.get("id")) for step in extension.add)
    return aside(f"{names} joined the plan: {extension.reason}.")


def node_html(node: Node) -> Markup:
    """A change of one node of a plan."""
    look = "".join(letter for letter in node.to if "a" <= letter <= "z")
    return html(
        '<p class="aside"><span class="function">{}</span> <span class="badge {} t">{}</span> '
        '<span class="t">{}</span></p>',
        node.node,
        look,
        node.to.replace("_", " "),
        node.detail,
    )


def copy_html(copy: MakeCopy) -> Markup:
    """A racing step has a copy of the workspace, or takes its turn."""
    if copy.base:
        what = f"{copy.node} works in its own copy of the workspace."
    else:
        what = (
            f"{copy.node} works in the workspace itself when its turn comes, because it can't have a "
            f"copy: {copy.why}"
        )
    return aside(what)


def taken_html(taken: TakeOver) -> Markup:
    """What happened to the copy of the step that came first."""
    if taken.version:
        what = f"{taken.node} came first. The files from its copy are now in the workspace."
    elif taken.conflicts:
        named = ", ".join(taken.conflicts)
        what = (
            f"{taken.node} came first, but its copy was not put into the workspace, because somebody else "
            f"changed this there in the meantime: {named}."
        )
    else:
        what = f"{taken.node} came first, but its copy could not be put into the workspace: {taken.why}"
    return aside(what)


def draft_html(text: str) -> Markup:
    """The part of its plan that a planner has written so far."""
    return folded("The planner wrote more of the plan", output(text))


def wake_html(wake: Wake) -> Markup:
    """A plan continues automatically."""
    if wake.reopened:
        return aside("The session was opened again, and the plan continues.")
    return aside("The plan has finished waiting.")


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
    "profile": "for a plan with its risks",
    "repair": "for a corrected plan",
    "reason": "for the answer",
    "compact": "for shorter texts",
    "answer": "what to answer an agent",
    "word": "what a message asks of the plan",
}


def ask_html(ask: Ask, text: str) -> Markup:
    """A model's answer about a plan."""
    what = _QUESTIONS.get(ask.question, ask.question)
    if ask.node and ask.question == "patch":
        what = f'how to replace step "{ask.node}"'
    elif ask.node:
        what = f'{what} (step "{ask.node}")'

    words = f"Asked the model {what}"
    if ask.failed:
        return aside(f"{words}. It returned no valid answer: {ask.failed}")
    return folded(words, output(text))
