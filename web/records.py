"""One journal record as the wire message `record`, its content rendered according to its kind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from markupsafe import Markup

from iact.core.ports import JSON
from iact.core.records.calls import (
    Call,
    ClearanceAnswer,
    ClearanceAsk,
    Effects,
    Gate,
    Result,
    Select,
    Settle,
)
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
    Generation,
    Recall,
    Reply,
    Say,
    Spawn,
    Turn,
    Upload,
)
from iact.core.records.forms import FormAnswer, FormAsk
from iact.core.records.hosts import HostAnswer, HostAsk, HostReach
from iact.core.records.kinds import Control
from iact.core.records.parts import Blob, Reached, Verdict
from iact.core.records.plans import (
    Ask,
    Draft,
    Extend,
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
from iact.core.views.consent import plan_digest, question_digest
from iact.core.views.ending import STOPPED_BY_USER, Outcome, outcome_of, results_in, verdict_on
from iact.core.views.questions import is_question
from iact.core.views.text import IsAction, calls, looks_like_action
from iact.web.audit import (
    answer_html,
    ask_html,
    copy_html,
    draft_html,
    extend_html,
    form_answer_html,
    form_question_html,
    host_answer_html,
    host_question_html,
    host_reach_html,
    node_html,
    plan_html,
    question_html,
    recall_html,
    taken_html,
    wake_html,
)
from iact.web.markup import NOTHING, html, joined
from iact.web.reasons import in_words
from iact.web.render import (
    NONE,
    Known,
    aside,
    code_block,
    folded,
    markdown,
    output,
    reply_with_actions,
    typed,
    unformatted,
)

Fields: TypeAlias = dict[str, JSON]
"""One wire message, or a part of one."""

_BODY_LIMIT: Final = 32_000
_BARE_LIMIT: Final = 2_000
_EXIT_NAMES: Final = ("exit", "exit_status", "exit_code")


def blob_of(record: Record) -> str | None:
    """The SHA-256 of the blob that holds the record's content, if it is stored next to the journal as text."""
    match record.content:
        case Result(blob=Blob() as blob, media=media) if (media or "text/plain").startswith("text/"):
            return blob.sha256
    return None


def record_message(
    record: Record,
    content: str | None = None,
    is_action: IsAction = looks_like_action,
    known: Known = NONE,
) -> Fields:
    """The wire message of `record`: its header fields, `body` (a long one is shortened, and `body_size` is then its
    full length), `html`, and for a turn `messages`, one `{"action", "to", "html"}` for each CALL."""
    return {**header(record), **content_fields(record, content, is_action, known)}


def header(record: Record) -> Fields:
    """The parts of `record`'s wire message that need no rendering: its fields and `body`."""
    return _header(record, _BODY_LIMIT)


def content_fields(
    record: Record, content: str | None, is_action: IsAction = looks_like_action, known: Known = NONE
) -> Fields:
    """The fields that rendering adds to a message: `html`, and `messages` for a turn."""
    fields: Fields = {"html": str(record_html(record, content, is_action, known))}
    if isinstance(record.content, Turn):
        fields["messages"] = _messages(record, is_action, known)
    return fields


def raw_fields(record: Record) -> Fields:
    """The same fields for a record that could not be rendered: its text as it is, which costs next to nothing."""
    fields: Fields = {"html": str(unformatted(record.body))}
    if isinstance(record.content, Turn):
        fields["messages"] = []
    return fields


def bare_message(record: Record, is_action: IsAction = looks_like_action) -> Fields:
    """The wire message of `record` without any HTML; a client requests that with `render` when it needs it."""
    is_of_person = isinstance(record.content, Say | Inject | Reword)
    message = _header(record, _BODY_LIMIT if is_of_person else _BARE_LIMIT)

    if isinstance(record.content, Turn):
        message["messages"] = [
            {"action": index, "to": path} for index, path, _ in _addressed(record, is_action)
        ]

    return message


def _header(record: Record, limit: int) -> Fields:
    message: Fields = dict(record.fields)
    message |= {
        "type": "record",
        "n": record.n,
        "at": record.at,
        "kind": record.kind,
        "agent": record.agent,
        "step": record.step,
        "body": record.body[:limit],
    }
    if len(record.body) > limit:
        message["body_size"] = len(record.body)

    if is_question(record):
        message["digest"] = question_digest(record)
    elif record.kind in ("plan", "extend"):
        message["digest"] = plan_digest(record)

    return message


def record_html(
    record: Record,
    content: str | None = None,
    is_action: IsAction = looks_like_action,
    known: Known = NONE,
) -> Markup:
    """The content below the record's heading. `content`: the text of its blob, if it was read.

    `is_action`: which words begin an action block; without it, aliases of modules' functions are not known. `known`:
    the agent's variables, whose names become chips.
    """
    if content is not None:
        record = replace(record, body=content)

    match record.content:
        case Turn() as turn:
            return _turn(turn, record.body, is_action, known)
        case Say() | Reword():
            return typed(record.body, known)
        case Choose() as choice:
            return _choice(choice)
        case ProfileRisk() | ProfileRule() | ProfileTrust() as judged:
            return _judged(judged)
        case Reply() as reply:
            return _reply(reply, record.body, known)
        case Discard() as discard:
            return _discard(discard, record.body, known)
        case Spawn() as spawn:
            return _spawn(spawn, record.body, known)
        case Upload() as upload:
            return _upload(upload)
        case Compress():
            return _compressed(record.body, known)
        case Distill():
            return _summarized("A model was asked what of this is worth remembering", record.body, known)
        case Recall() as recall:
            return recall_html(recall, record.body)
        case Call() as call:
            return html('<p class="aside t">{function} is called.</p>', function=call.function)
        case Gate() as gate:
            return _gate(gate)
        case ClearanceAsk() as asked:
            return question_html(asked)
        case ClearanceAnswer() as answer:
            return answer_html(answer)
        case HostAsk() as host_question:
            return host_question_html(host_question)
        case HostAnswer() as host_answer:
            return host_answer_html(host_answer)
        case FormAsk() as form:
            return form_question_html(form)
        case FormAnswer() as form_answer:
            return form_answer_html(form_answer)
        case HostReach() as reached:
            return host_reach_html(reached)
        case Result() as result:
            return _result(result, record.body, known)
        case Select() as select:
            return _select(select)
        case Effects() as effects:
            return _effects(effects)
        case Settle() as settle:
            return _settled(settle)
        case Plan() as plan:
            return plan_html(plan)
        case Extend() as extension:
            return extend_html(extension)
        case Node() as node:
            return node_html(node)
        case MakeCopy() as copy:
            return copy_html(copy)
        case TakeOver() as taken:
            return taken_html(taken)
        case Ask() as ask:
            return ask_html(ask, record.body)
        case Draft():
            return draft_html(record.body)
        case Wake() as wake:
            return wake_html(wake)
        case Cancel(by="core"):
            return html('<p class="aside t">Ended: {body}</p>', body=record.body)
        case Open() | Adopt() | Module() | Notice() | Fork() | Epoch() | Close() as event:
            return _event(event, record.body)
        case Migrate() as migration:
            return _migrated(migration)
        case Inject() as inject:
            return _injected(inject, record.body, known)

    if isinstance(record.content, Control):
        return aside(_done(record.content))
    return _other(record)


def _choice(choice: Choose) -> Markup:
    """How a message is worked on, and why."""
    return html(
        '<p class="aside"><span class="t">Mode: {mode}.</span> <span class="t">{why}</span></p>',
        mode=choice.mode,
        why=choice.why,
    )


def _compressed(summary: str, known: Known) -> Markup:
    if not summary:
        return html(
            '<p class="quiet t">The history so far was cut without a summary: none could be used.</p>'
        )
    return _summarized("The history so far was summarized", summary, known)


def _summarized(words: str, text: str, known: Known) -> Markup:
    return html(
        '<details class="quiet"><summary class="t">{}</summary>{}</details>', words, markdown(text, known)
    )


def _migrated(migration: Migrate) -> Markup:
    if migration.from_ == migration.to:
        return aside("From here on, this session goes on with the values that are there.")
    return aside(
        f"From here on, this session follows the rules of a newer iact (journal format {migration.to})."
    )


def _injected(inject: Inject, text: str, known: Known) -> Markup:
    """A person's message to an agent, or about a step of a plan."""
    message = typed(text, known)
    if not inject.node:
        return message
    return html('<p class="aside t">About step {node}.</p>{said}', node=inject.node, said=message)


def _messages(record: Record, is_action: IsAction, known: Known) -> JSON:
    """A turn's messages to children; each is shown in the child's dialogue when its `call` record comes."""
    return [
        {"action": index, "to": path, "html": str(markdown(text, known))}
        for index, path, text in _addressed(record, is_action)
    ]


def _addressed(record: Record, is_action: IsAction) -> Iterator[tuple[int, str, str]]:
    """Each CALL of a turn: its index among the actions, the child's path, the message."""
    for block in calls(record.body, is_action):
        yield block.index, f"{record.agent.rstrip('/')}/{block.to}", block.message


def _turn(turn: Turn, text: str, is_action: IsAction, known: Known) -> Markup:
    note = NOTHING
    if turn.generation.finish == "length":
        note = aside("Cut off at the length limit.")
    elif turn.generation.cut:
        note = aside(
            "The model went on with a result or a message that it had invented; that text was left out."
        )

    return joined((_reasoning(turn.generation), reply_with_actions(text, is_action, known), note))


_ROUTES: Final[Mapping[str, str]] = {
    "pure": "as written",
    "guarded": "with its rules",
    "repair_eligible": "with its rules, and one repair if needed",
}
"""How a profiled plan runs, in the words of the page."""


def _judged(judged: ProfileRisk | ProfileRule | ProfileTrust) -> Markup:
    """How a plan's profile is judged, or which of its rules applied."""
    match judged:
        case ProfileRisk():
            parts = ", ".join(f"{name} {value:.2f}" for name, value in judged.components.items())
            route = _ROUTES.get(judged.route, judged.route)
            text = f"Risk {judged.risk:.2f} ({parts}): the plan runs {route}."
            return joined((aside(text), _points(judged.rules)))
        case ProfileRule():
            what = {"auto": "an argument", "branch": "a branch", "recovery": "a recovery"}[judged.what]
            return aside(f"{judged.node}: {what} by the rule {judged.rule}.")
        case ProfileTrust():
            return joined((aside(_trust(judged)), _points(judged.issues)))


def _trust(judged: ProfileTrust) -> str:
    """How far a plan's results are trusted, and what follows."""
    penalties = ", ".join(f"{name} {value:.2f}" for name, value in judged.penalties.items())
    less = f" (less {penalties})" if penalties else ""

    text = f"Trust {judged.trust:.2f}{less}: the results are {judged.verification}."
    if judged.repair:
        text += " They will be repaired once."
    if judged.climbs:
        text += f" From here on, the plan is judged as in the mode {judged.climbs}."
    return text


def _points(lines: Sequence[str]) -> Markup:
    if not lines:
        return NOTHING
    return html("<ul>{}</ul>", joined(html("<li>{}</li>", line) for line in lines))


_ENDED: Final[Mapping[str, str]] = {"failed": "failed", "cancelled": "stopped", "bound": "limit reached"}
_SHORT_OF: Final[Mapping[Outcome, str]] = {
    "reached": "", "partly": "reached in part", "unknown": "not known whether reached", "not_reached": "not reached",
    "stopped": "stopped", "failed": "failed",
}  # fmt: skip
_BOUNDS: Final[Mapping[str, str]] = {
    "tokens": "Token limit reached",
    "turns": "Limit of answers reached",
    "time": "Time limit reached",
    "context": "Its model's context window is full",
    "loop": "It repeated itself",
}


def _reply(reply: Reply, text: str, known: Known) -> Markup:
    results = results_in(text) if reply.plan and reply.to != "user" else None
    if results is not None:
        return _plan_reply(reply, text, results, known)

    if reply.status == "cancelled" and text == STOPPED_BY_USER:
        return aside("Stopped.")

    words = _BOUNDS.get(reply.bound, "") or _ENDED.get(reply.status, "") or _short_of(reply)
    look = reply.status if reply.status != "ok" else "failed"
    badge = html('<p><span class="badge {} t">{}</span></p>', look, words) if words else NOTHING

    # The core's own sentence comes first; what was written until then may follow.
    sentence, _, written = text.partition("\n\n")
    is_by_core = reply.generation is None and reply.status != "ok" and not reply.plan
    if is_by_core and "\n" not in sentence:
        return html('{}<p class="t">{}</p>{}', badge, sentence, markdown(written, known))

    asks = html('<p class="aside t">A question to its caller:</p>') if reply.asks else NOTHING
    return joined((_reasoning(reply.generation), badge, asks, markdown(text, known), _cut_off(reply)))


_REACHED: Final[Mapping[Reached, str]] = {
    "yes": "Its goal is reached.",
    "partly": "Its goal is reached in part.",
    "no": "Its goal is not reached.",
    "unknown": "Whether its goal is reached is not known.",
}


def _plan_reply(reply: Reply, text: str, results: Sequence[tuple[str, str]], known: Known) -> Markup:
    """How a plan ended, in sentences that the page translates. What its caller was told is written for an agent."""
    verdict = verdict_on(reply)
    ended = _REACHED[verdict.reached]
    if verdict.by == "person" and verdict.reached != "yes":
        ended = "It was stopped."
    why = verdict.because if verdict.reached != "yes" else ""

    outcome = html(
        '<p class="plan-ended"><span class="t">{}</span> <span class="t">{}</span></p>', ended, why
    )
    rest = joined((_plan_results(results, known), _plan_lacks(verdict)))
    report = folded("What its caller was told", markdown(text, known))
    return html('{}<div class="plan-rest">{}</div>{}', outcome, rest, report)


def _plan_results(results: Sequence[tuple[str, str]], known: Known) -> Markup:
    """What a plan has found or done, each result under its step if there are several."""
    if len(results) == 1:
        return markdown(results[0][1], known)
    return joined(html("<h4>{}</h4>{}", step, markdown(result, known)) for step, result in results)


def _plan_lacks(verdict: Verdict) -> Markup:
    """What is missing from a plan, and why."""
    if not verdict.missing:
        return NOTHING
    lines = [
        html('<li>{}: <span class="t">{}</span></li>', step, why) for step, why in verdict.missing.items()
    ]
    return html('<p class="t">What is missing:</p><ul>{}</ul>', joined(lines))


def _short_of(reply: Reply) -> str:
    """How a plan ended that did not do everything it should."""
    if not reply.plan or reply.plan == "concluded":
        return ""
    return _SHORT_OF[outcome_of(reply)]


def _cut_off(reply: Reply) -> Markup:
    """A note that the model's length limit cut a reply off, with a button to continue."""
    if reply.generation is None or reply.generation.finish != "length":
        return NOTHING
    return html(
        '<p><span class="badge bound t">cut off at the length limit</span> '
        '<button type="button" class="go-on t">Continue</button></p>'
    )


def refused_html(refused: Sequence[str]) -> Markup:
    """What was wrong with actions that could not even begin, as the agent was told before this turn."""
    return joined(html('<p class="notice error">{}</p>', reason.replace("`", "")) for reason in refused)


def _reasoning(generation: Generation | None) -> Markup:
    """The model's thinking before its reply, folded."""
    if generation is None or not generation.reasoning:
        return NOTHING
    return folded("Thinking", output(generation.reasoning))


_STOPPED: Final[Mapping[str, str]] = {
    "pause": "Stopped when you paused.",
    "interrupt": "Stopped for your message.",
    "cancel": "",  # the reply after it says so
}
"""What is said below a text that a person stopped."""

_VOID: Final[Mapping[str, str]] = {
    "restart": "The connection broke; started again (show the text)",
    "changed": "Asked again, because something changed in the meantime (show the text)",
    "summary": "A summary that could not be used (show the text)",
}


def _discard(discard: Discard, text: str, known: Known) -> Markup:
    if discard.reason not in _STOPPED:
        return folded(_VOID.get(discard.reason, f"Stopped: {discard.reason} (show the text)"), output(text))

    # Somebody was reading it. Nothing in it was carried out, so its blocks are no cards.
    words = _STOPPED[discard.reason]
    return joined((markdown(text, known), aside(words) if words else NOTHING))


_DENIED: Final = "Clearance was denied:"


def _gate(gate: Gate) -> Markup:
    """Whether a call was allowed. The rule and the impact are among the details."""
    by = f"{gate.by} · " if gate.by else ""
    details = f"{by}impact {gate.impact:g}"
    if gate.reason:
        details += f" · {gate.reason}"

    if gate.allow:
        return html(
            '<p class="aside"><span class="badge allowed t">allowed</span> <span class="function">{}</span> {}</p>',
            gate.function,
            details,
        )

    return html(
        '<p class="denial"><span class="badge denied t">denied</span> <span class="t">{}</span></p>{}',
        _denied(gate),
        folded("Details", html('<p class="aside">{}</p>', details)),
    )


def _denied(gate: Gate) -> str:
    """Who denied a call, and why."""
    _, was_asked, answer = gate.reason.partition(_DENIED)
    if was_asked and not answer.strip():
        return f"You denied {gate.function}."
    if was_asked:
        return f"{gate.function} was denied: {answer.strip()}"
    if gate.reason:
        return f"{gate.function} may not be used here: {gate.reason}"
    return f"{gate.function} may not be used here."


def _result(result: Result, text: str, known: Known) -> Markup:
    look, words = _outcome(result)
    facts = joined(html(' <span class="fact t">{}</span>', fact) for fact in _facts(result))
    if result.blob is not None and not text:
        body = _blob(result.blob)
    else:
        body = _result_body(result, text, known)

    return html(
        '<section class="card result {look}"><header><span class="function">{function}</span> '
        '<span class="badge {look} t">{words}</span>{facts}</header>{body}</section>',
        look=look,
        function=result.function,
        words=words,
        facts=facts,
        body=body,
    )


def _outcome(result: Result) -> tuple[str, str]:
    """How a call ended, as a style and a word for people; a non-zero exit status is a failure."""
    has_run = bool(result.call)
    match result.status:
        case "ok" if any(code not in (0, "0", None) for code in _exits(result)):
            return "failed", "failed"
        case "ok":
            return "ok", "done"
        case "error":
            return "failed", "failed"
        case "incomplete":
            return "incomplete", "did not finish" if has_run else "did not run"
        case "cancelled":
            return "cancelled", "stopped"
        case "interrupted":
            return "interrupted", "interrupted"
        case "skipped":
            return "cancelled", "not run: a message came first"
        case "forked" if has_run:
            return "cancelled", "did not finish: forked here"
        case "forked":
            return "cancelled", "not carried out: forked here"


def _exits(result: Result) -> list[JSON]:
    data = result.data or {}
    return [data[name] for name in _EXIT_NAMES if name in data]


def _facts(result: Result) -> Iterator[str]:
    exits = _exits(result)
    if exits:
        yield f"exit {exits[0]}"
    if result.ms is not None:
        yield _duration(result.ms)

    others = len(result.beside or ())
    if others == 1:
        yield "the files include changes that another call made at the same time"
    elif others:
        yield f"the files include changes that {others:,} other calls made at the same time"


def _result_body(result: Result, text: str, known: Known) -> Markup:
    if result.status == "forked":
        return aside("Not carried out: forked here.")
    if not text.strip():
        return aside("No output.") if result.status in ("ok", "error") else NOTHING
    if result.function in ("CALL", "CALL_ASYNC", "WAIT", "QUERY"):
        return html('<div class="card-body">{}</div>', markdown(text, known))
    return output(text)


def _blob(blob: Blob) -> Markup:
    return html('<p class="aside t">{size:,} bytes, stored next to the journal.</p>', size=blob.size)


def _spawn(spawn: Spawn, text: str, known: Known) -> Markup:
    by = "the root agent" if spawn.caller == "/" else spawn.caller
    begun = html('<p class="aside t">Started by {by}.</p>', by=by)
    return html('{}<div class="role">{}</div>', begun, markdown(text, known)) if text.strip() else begun


def _upload(upload: Upload) -> Markup:
    # The root has the variable only from its next turn on, but it can be viewed already.
    return html(
        '<p class="aside"><span class="t">Uploaded {file} as</span> <button class="chip">${var}</button> '
        '{media}, <span class="t">{size:,} bytes</span></p>',
        file=upload.file,
        var=upload.var,
        media=upload.media,
        size=upload.blob.size,
    )


def _select(select: Select) -> Markup:
    count = len(select.took)
    if count == 0:
        words = "There was no reply."
    elif count == 1:
        words = "1 reply arrived."
    else:
        words = f"{count:,} replies arrived."

    late = html(' <span class="t">The waiting time was up.</span>') if select.timed_out else NOTHING
    return html('<p class="aside"><span class="t">{}</span>{}</p>', words, late)


# --- what people do --------------------------------------------------------------------------------

_INTENT_WORDS: Final[Mapping[float, str]] = {0: "read only", 1: "change files", 2: "anything"}


def _hosts(always: Mapping[str, Sequence[str]], session: Mapping[str, Sequence[str]]) -> str:
    """The hosts that people currently allow."""
    allowed = [
        f"{module}: {', '.join(hosts)} ({lasts})"
        for lists, lasts in ((always, "always"), (session, "this session"))
        for module, hosts in lists.items()
    ]
    if not allowed:
        return "No hosts are allowed by you any more."
    return f"Hosts that you allow are now: {'; '.join(allowed)}."


def _done(content: Control) -> str:
    """What a person did, in words."""
    match content:
        case SetIntent(value=value):
            word = _INTENT_WORDS.get(value)
            return f"Agents may now: {word or f'up to {value:g}'}."
        case Lockdown(value=value):
            return "Tools are switched off for this session." if value else "Tools are switched on again."
        case SwitchMemory(of=of, value=value):
            if of == "session":
                return "Memory is on again in this session." if value else "Memory is off in this session."
            return "Memory is on again for you." if value else "Memory is off for you."
        case ApplyChanges(paths=paths, force=force):
            over = ", over what had changed in the directory meanwhile" if force else ""
            return f"You applied {_listed(paths)}{over}."
        case DropChanges(paths=paths):
            return f"You discarded {_listed(paths)}."
        case UseOverlay(value=value):
            if value:
                return "Changes in your directory wait until you apply them."
            return "Changes in your directory can't be held back for review."
        case RaiseBudget(tokens=0, money=money):
            return f"You added {money:,.2f} to this session's budget."
        case RaiseBudget(tokens=tokens):
            return f"You added {tokens:,} tokens to this session's budget."
        case Pause(node=node):
            return f"You paused step {node}." if node else "You paused."
        case Resume(node=node):
            return f"You resumed step {node}." if node else "You resumed it."
        case Cancel(node=node):
            return f"You stopped step {node}." if node else "You stopped this."
        case Restore(path=""):
            return "You restored an earlier version of the files."
        case Restore(path=path):
            return f"You restored an earlier version of {path}."
        case Declassify(variable=variable) if variable:
            return f"You marked ${variable} as trusted."
        case Declassify():
            return "You marked the content read here as trusted."
        case SetPolicy():
            return "The policy was read again."
        case AllowHosts(always=always, session=session):
            return _hosts(always, session)
        case SetModels(by="core", models=models):
            windows = ", ".join(f"{role}: {terms.context}" for role, terms in models.items())
            return f"From here on, contexts are as long as the endpoint allows ({windows} tokens)."
        case SetModels(models=models):
            played = ", ".join(f"{role}: {terms.model}" for role, terms in models.items())
            return f"From here on, other models answer ({played})."
        case StartPlan():
            return "You started this plan."
        case BeginPlan():
            return "You started the plan."
        case EditPlan():
            return "You changed steps of the plan."
        case RetryStep(node=node):
            return f"You retried step {node}."
        case Inject():
            return "You wrote a message."
        case SendNow():
            return "You had a waiting message read at once."
        case Reword():
            return "You changed a message before it was read."
        case Withdraw():
            return "You withdrew a message before it was read."
        case StopCalls():
            return "You stopped the tools that ran."


def _listed(changes: Sequence[object] | Blob) -> str:
    """How many changes these are; where they are a blob, there are too many to count here."""
    return "many changes" if isinstance(changes, Blob) else _counted(len(changes))


def _listed_first(changes: Sequence[object] | Blob) -> str:
    """The same, where a sentence begins with it."""
    return "Many changes" if isinstance(changes, Blob) else _counted(len(changes))


def _counted(count: int) -> str:
    return "1 change" if count == 1 else f"{count:,} changes"


def _effects(effects: Effects) -> Markup:
    """What a check of a live directory's overlay found."""
    some = _listed_first(effects.changes)
    if effects.apply:
        return aside(f"{some} in your directory, applied at once.")
    if not effects.reason:
        return aside("The list of waiting changes has changed.")

    waits = f"{some} in your directory wait for your review."
    if some == "1 change":
        waits = "1 change in your directory waits for your review."

    return html(
        '<p class="aside"><span class="t">{waits}</span> <span class="t">{reason}</span></p>',
        waits=waits,
        reason=in_words(effects.held, effects.impact or 0.0, effects.reason),
    )


def _settled(settle: Settle) -> Markup:
    if not settle.left:
        return aside("Done.")
    some = _listed_first(settle.left)
    return aside(f"{some} could not be applied, and must still be reviewed.")


# --- the session -----------------------------------------------------------------------------------


def _event(event: Open | Adopt | Module | Notice | Fork | Epoch | Close, text: str) -> Markup:
    """An event that concerns the whole session."""
    match event:
        case Open(models=models):
            names = ", ".join(dict.fromkeys(role.model for role in models.values()))
            return aside(f"The session begins, with {names}." if names else "The session begins.")
        case Module():
            return _module(event, text)
        case Notice():
            return html('<p class="notice {} t">{}</p>', event.level, text.strip() or event.code)
        case Fork():
            return aside(f"Branched from session {event.from_} after its entry {event.after}.")
        case Adopt():
            return aside(
                "You adopted this session here. Everything above was made by another installation "
                "and is not trusted. From here on, the session is yours."
            )
        case Epoch():
            return aside(f"The session continues on the host {event.host}.")
        case Close():
            return aside("The session was closed.")


def _module(event: Module, text: str) -> Markup:
    words = f"The module {event.name} is available."
    if event.state:
        words = f"The module {event.name} is {event.state}."

    return html(
        '<p class="aside"><span class="t">{words}</span> {version} '
        '<span class="address">{digest}</span> <span class="t">{text}</span></p>',
        words=words,
        version=event.version,
        digest=event.digest[:12],
        text=text.strip(),
    )


def _other(record: Record) -> Markup:
    """A record of a kind that has no words of its own."""
    fields = json.dumps(record.fields, ensure_ascii=False, indent=1)
    return html(
        '<details class="quiet"><summary>{}</summary>{}{}</details>',
        record.kind,
        code_block(fields),
        output(record.body) if record.body.strip() else NOTHING,
    )


def _duration(ms: int) -> str:
    if ms < 1_000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms // 60_000} min {ms // 1000 % 60} s"
