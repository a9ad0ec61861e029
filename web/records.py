"""One journal record as the wire message `record`, its content rendered according to its kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from core.language.grammar import Mistake, split
from core.ports import JSON
from core.records.record import Record
from core.tree.shape import STUMBLES, damaged
from web.audit import ask_html, clearance_html, node_html, plan_html, recall_html
from web.render import (
    NONE,
    IsAction,
    Known,
    actions,
    code_block,
    looks_like_action,
    markdown,
    output,
    plain,
    reply_with_actions,
    unformatted,
    with_chips,
)
from web.visible import visible

Fields: TypeAlias = dict[str, JSON]
"""One wire message, or a part of one."""

_BODY_LIMIT: Final = 32_000
_BARE_LIMIT: Final = 2_000
_EXIT_NAMES: Final = ("exit", "exit_status", "exit_code")


def blob_of(record: Record) -> str | None:
    """The SHA-256 of the blob that holds the record's content, if it stands beside the journal as text."""
    blob = record.fields.get("blob")
    digest = blob.get("sha256") if isinstance(blob, dict) and record.kind != "upload" else None
    media = record.text("media") or "text/plain"
    return digest if isinstance(digest, str) and media.startswith("text/") else None


def record_message(
    record: Record,
    content: str | None = None,
    is_action: IsAction = looks_like_action,
    known: Known = NONE,
) -> Fields:
    """The wire message of `record`: its header fields, `body` (shortened if long, then `body_size`
    says how long it is), `html`, and for a turn `messages`, one `{"action", "to", "html"}` for each CALL."""
    return {**header(record), **content_fields(record, content, is_action, known)}


def header(record: Record) -> Fields:
    """What the wire message of `record` has without being rendered: its fields and `body`."""
    return _header(record, _BODY_LIMIT)


def content_fields(
    record: Record, content: str | None, is_action: IsAction = looks_like_action, known: Known = NONE
) -> Fields:
    """What rendering adds to a message: `html`, and `messages` for a turn."""
    try:
        fields: Fields = {"html": record_html(record, content, is_action, known)}
        if record.kind == "turn":
            fields["messages"] = _messages(record, is_action, known)
    except STUMBLES as error:
        return {**raw_fields(record), "html": f'<p class="aside">{plain(str(damaged(record, error)))}</p>'}
    return fields


def raw_fields(record: Record) -> Fields:
    """The same for a record that could not be rendered: its text as it is, which costs next to nothing."""
    fields: Fields = {"html": unformatted(record.body)}
    if record.kind == "turn":
        fields["messages"] = []
    return fields


def bare_message(record: Record, is_action: IsAction = looks_like_action) -> Fields:
    """The wire message of `record` without any HTML: a client asks for that with `render` when it needs it."""
    message = _header(record, _BODY_LIMIT if record.kind == "say" else _BARE_LIMIT)
    if record.kind == "turn":
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
    return message


def record_html(
    record: Record,
    content: str | None = None,
    is_action: IsAction = looks_like_action,
    known: Known = NONE,
) -> str:
    """What stands below the record's heading. `content`: the text of its blob, if it was read.

    `is_action`: which words begin an action block; without it, aliases of modules' functions are not known.
    `known`: the agent's variables, whose names become chips.
    """
    if content is not None:
        record = replace(record, body=content)
    if record.kind == "turn":
        return _turn(record, is_action, known)
    return _BY_KIND.get(record.kind, _other)(record, known)


def _messages(record: Record, is_action: IsAction, known: Known) -> JSON:
    """What a turn says to children: shown in a child's dialogue once its `call` record comes."""
    return [
        {"action": index, "to": path, "html": markdown(text, known)}
        for index, path, text in _addressed(record, is_action)
    ]


def _addressed(record: Record, is_action: IsAction) -> Iterator[tuple[int, str, str]]:
    """Each CALL of a turn: its place among the actions, the child's path, the message."""
    if "CALL" not in record.body:
        return
    for index, block in enumerate(actions(record.body, is_action)):
        taken = split(block.info)
        if isinstance(taken, Mistake) or taken[0] not in ("CALL", "CALL_ASYNC"):
            continue
        named = {argument.key or "name": argument.text for argument in reversed(taken[1])}
        if "name" in named:
            path = f"{record.agent.rstrip('/')}/{named['name']}"
            yield index, path, block.body or named.get("message", "")


def _text(record: Record, known: Known) -> str:
    return markdown(record.body, known)


def _turn(record: Record, is_action: IsAction, known: Known) -> str:
    note = ""
    if record.number("cut"):
        note = (
            '<p class="aside">The model went on past its actions; that text was cut and does not count.</p>'
        )
    if record.text("finish") == "length":
        note = '<p class="aside">The model hit its length limit here.</p>'
    return reply_with_actions(record.body, is_action, known) + note


def _reply(record: Record, known: Known) -> str:
    status = record.text("status")
    badge = (
        "" if status in ("", "ok") else f'<p><span class="badge {_word(status)}">{plain(status)}</span></p>'
    )
    return badge + markdown(record.body, known)


def _discard(record: Record, known: Known) -> str:
    reason = plain(record.text("reason") or "stopped")
    return (
        f'<details class="quiet"><summary>Text stopped and discarded ({reason})</summary>'
        f"{output(record.body)}</details>"
    )


def _call(record: Record, known: Known) -> str:
    return f'<p class="aside"><span class="function">{plain(record.text("function"))}</span> is called.</p>'


def _gate(record: Record, known: Known) -> str:
    allowed = record.fields.get("allow") is True
    verdict = "allowed" if allowed else "denied"
    details = [f"by {record.text('by')}"] if record.text("by") else []
    details += [f"impact {record.number('impact')}"] if "impact" in record.fields else []
    details += [record.text("reason")] if record.text("reason") else []
    return (
        f'<p class="aside"><span class="badge {verdict}">{verdict}</span> '
        f'<span class="function">{plain(record.text("function"))}</span> {plain(" · ".join(details))}</p>'
    )


def _result(record: Record, known: Known) -> str:
    status = record.text("status") or "ok"
    facts = [f'<span class="badge {_word(status)}">{plain(status)}</span>']
    facts += [f'<span class="fact">{fact}</span>' for fact in _facts(record, known)]
    stored = isinstance(record.fields.get("blob"), dict) and not record.body
    body = _blob(record) if stored else _result_body(record, known)
    return (
        f'<section class="card result"><header><span class="function">{plain(record.text("function"))}</span> '
        f"{' '.join(facts)}</header>{body}</section>"
    )


def _facts(record: Record, known: Known) -> list[str]:
    data = record.fields.get("data")
    exits = [data[name] for name in _EXIT_NAMES if name in data] if isinstance(data, dict) else []
    facts = [plain(f"exit {exits[0]}")] if exits else []
    facts += [_duration(record.number("ms"))] if "ms" in record.fields else []
    return facts + ([visible(with_chips(f"${record.text('var')}", known))] if record.text("var") else [])


def _result_body(record: Record, known: Known) -> str:
    if not record.body.strip():
        return '<p class="aside">No output.</p>'
    if record.text("function") in ("CALL", "CALL_ASYNC", "WAIT", "QUERY"):
        return f'<div class="card-body">{markdown(record.body, known)}</div>'
    return output(record.body)


def _blob(record: Record) -> str:
    blob = record.fields.get("blob")
    size = blob.get("size") if isinstance(blob, dict) else None
    amount = f"{size:,} bytes" if isinstance(size, int) else "A large value"
    return f'<p class="aside">{amount}, kept beside the journal.</p>'


def _spawn(record: Record, known: Known) -> str:
    caller = plain(record.text("caller") or "/")
    role = f'<div class="role">{markdown(record.body, known)}</div>' if record.body.strip() else ""
    return f'<p class="aside">Begins, called by <span class="function">{caller}</span>.</p>{role}'


_CONTROL_WORDS: Final[Mapping[str, str]] = {
    "pause": "Paused",
    "resume": "Resumed",
    "cancel": "Cancelled",
    "restore": "Files restored",
}
_INTENT_WORDS: Final[Mapping[int, str]] = {0: "observe", 1: "operate", 2: "override"}


def _control(record: Record, known: Known) -> str:
    op = record.text("op")
    if op == "inject":
        mode = plain(record.text("mode") or "deliver")
        return f'<p class="aside">Intervention ({mode})</p>{markdown(record.body, known)}'
    if op == "intent":
        value = record.fields.get("value", record.body.strip())
        word = _INTENT_WORDS.get(value) if isinstance(value, int) else None
        words = f"{value} ({word})" if word else str(value)
        return f'<p class="aside">Intent is now {plain(words)}.</p>'
    if op == "lockdown":
        words = (
            "Locked down: every call is denied" if record.fields.get("value") is True else "The lockdown ends"
        )
        return f'<p class="aside">{words}.</p>'
    if op in ("apply", "drop"):
        return f'<p class="aside">{_intended(record)}</p>'
    if op == "overlay":
        there = record.fields.get("value") is True
        words = (
            "Changes in the directory are kept apart until they are applied"
            if there
            else ("Changes in the directory can't be kept apart for review")
        )
        return f'<p class="aside">{words}.</p>'
    by = record.text("by")
    return f'<p class="aside">{plain(_CONTROL_WORDS.get(op, op))}{plain(f" by {by}") if by else ""}.</p>'


def _intended(record: Record) -> str:
    paths = record.fields.get("paths")
    some = f"{_things(len(paths))}" if isinstance(paths, list) else "many changes"
    done = "Applied" if record.text("op") == "apply" else "Dropped"
    force = ", over what had changed in the directory meanwhile" if record.fields.get("force") is True else ""
    return f"{done} by {plain(record.text('by'))}: {some}{force}."


def _things(count: int) -> str:
    return "1 change" if count == 1 else f"{count:,} changes"


def _effects(record: Record, known: Known) -> str:
    """What a look at the overlay of a live directory saw."""
    changes = record.fields.get("changes")
    some = _things(len(changes)) if isinstance(changes, list) else "Many changes"
    if record.fields.get("apply") is True:
        return f'<p class="aside">{some} in the directory, applied at once.</p>'
    reason = record.text("reason")
    if not reason:
        return '<p class="aside">What waits to be applied is not what it was.</p>'
    return f'<p class="aside">{some} in the directory wait for review. {plain(reason)}</p>'


def _settled(record: Record, known: Known) -> str:
    left = record.fields.get("left")
    if not left:
        return '<p class="aside">Done.</p>'
    some = _things(len(left)) if isinstance(left, list) else "Many changes"
    return f'<p class="aside">{some} could not be applied, and still wait.</p>'


def _module(record: Record, known: Known) -> str:
    name, version, digest = record.text("name"), record.text("version"), record.text("digest")
    gone = f" is {plain(record.text('state'))}: {plain(record.body)}" if record.text("state") else ""
    return (
        f'<p class="aside">Module <span class="function">{plain(name)}</span> {plain(version)} '
        f'<span class="address">{plain(digest[:12])}</span>{gone}</p>'
    )


def _notice(record: Record, known: Known) -> str:
    level = _word(record.text("level") or "info")
    return f'<p class="notice {level}">{plain(record.body.strip() or record.text("code"))}</p>'


def _open(record: Record, known: Known) -> str:
    models = record.fields.get("models")
    roles = models.values() if isinstance(models, dict) else ()
    names = ", ".join(dict.fromkeys(str(role.get("model", "")) for role in roles if isinstance(role, dict)))
    with_models = f", with {plain(names)}" if names else ""
    return f'<p class="aside">The session begins{with_models}.</p>'


def _close(record: Record, known: Known) -> str:
    return '<p class="aside">The session was closed.</p>'


def _adopt(record: Record, known: Known) -> str:
    return (
        '<p class="aside">This session was adopted: all above was made elsewhere and counts as foreign. From here on it '
        "is yours.</p>"
    )


def _upload(record: Record, known: Known) -> str:
    blob = record.fields.get("blob")
    size = blob.get("size") if isinstance(blob, dict) else 0
    # The variable is the root's only from its next turn on, and can be looked at all the same.
    return (
        f'<p class="aside">Uploaded {plain(record.text("file"))} as '
        f'<button class="chip">{plain("$" + record.text("var"))}</button> '
        f"{plain(record.text('media'))}, {size:,} bytes</p>"
    )


def _select(record: Record, known: Known) -> str:
    took = record.fields.get("took")
    numbers = ", ".join(str(n) for n in took) if isinstance(took, list) else ""
    what = f"takes the replies at {numbers}" if numbers else "finds no reply"
    late = ", its time being over" if record.fields.get("timed_out") is True else ""
    return f'<p class="aside"><span class="function">{plain(record.text("function"))}</span> {plain(what + late)}.</p>'


def _fork(record: Record, known: Known) -> str:
    source, at = plain(record.text("from")), record.number("after")
    return f'<p class="aside">Forked here from session <span class="function">{source}</span> at record {at}.</p>'


def _other(record: Record, known: Known) -> str:
    fields = json.dumps(dict(record.fields), ensure_ascii=False, indent=1)
    body = output(record.body) if record.body.strip() else ""
    return (
        f'<details class="quiet"><summary>{plain(record.kind)}</summary>{code_block(fields)}{body}</details>'
    )


_BY_KIND: Final[Mapping[str, Callable[[Record, Known], str]]] = {
    "open": _open,
    "say": _text,
    "upload": _upload,
    "reply": _reply,
    "discard": _discard,
    "call": _call,
    "gate": _gate,
    "result": _result,
    "spawn": _spawn,
    "control": _control,
    "effects": _effects,
    "settle": _settled,
    "module": _module,
    "notice": _notice,
    "select": _select,
    "fork": _fork,
    "close": _close,
    "adopt": _adopt,
    "clearance": clearance_html,
    "recall": recall_html,
    "plan": plan_html,
    "node": node_html,
    "ask": ask_html,
}


def _word(text: str) -> str:
    """`text` as a class name: lower-case letters only."""
    return "".join(letter for letter in text.lower() if "a" <= letter <= "z")


def _duration(ms: int) -> str:
    return (
        f"{ms} ms"
        if ms < 1000
        else f"{ms / 1000:.1f} s"
        if ms < 60_000
        else f"{ms // 60_000} min {ms // 1000 % 60} s"
    )
