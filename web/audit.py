"""HTML of what people are shown beside a dialogue: what the gate asks them, what memory brought, how a plan goes.

None of it is ever in a context, except for what memory brought, which the agent reads as plain lines. As
everywhere, what came from a model, a module or a memory is text here and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape

from core.ports import JSON
from core.records.record import Record
from web.render import NONE, Known, code_block, markdown, output, plain
from web.visible import exact


def clearance_html(record: Record, known: Known = NONE) -> str:
    """A question to a person, with the call in full and where its arguments come from; or the answer to one."""
    if "params" not in record.fields:
        return _answer(record)
    function = f'<span class="function">{_plain(record.text("function"))}</span>'
    impact = f'<span class="badge impact">impact {_plain(str(record.fields.get("impact", "?")))}</span>'
    reasons = [record.text("reason"), record.text("why")]
    why = "".join(f'<p class="aside">{_plain(one)}</p>' for one in dict.fromkeys(reasons) if one)
    return (
        f'<section class="card asked"><header>{function} {impact}</header><div class="card-body">{why}'
        f"{_arguments(record)}{_read(record)}</div></section>"
    )


def _answer(record: Record) -> str:
    if record.fields.get("allow") is None:
        return f'<p class="aside">{_plain(record.text("reason") or "Clearance")}</p>'
    allowed = record.fields["allow"] is True
    by = record.text("by")
    words = " ".join(part for part in ("Approved" if allowed else "Denied", f"by {by}" if by else "") if part)
    reason = record.text("reason")
    return (
        f'<p class="aside"><span class="badge {"allowed" if allowed else "denied"}">{_plain(words)}</span>'
        f" {_plain(reason)}</p>"
    )


def _arguments(record: Record) -> str:
    params = record.fields.get("params")
    origins = record.fields.get("provenance")
    attached = record.fields.get("attached")
    named: Mapping[str, JSON] = params if isinstance(params, dict) else {}
    known: Mapping[str, JSON] = origins if isinstance(origins, dict) else {}
    stored: Mapping[str, JSON] = attached if isinstance(attached, dict) else {}
    rows = [_argument(name, value, known.get(name)) for name, value in named.items()]
    rows += [_stored(name, one, known.get(name)) for name, one in stored.items() if name not in named]
    return (
        f'<dl class="arguments-list">{"".join(rows)}</dl>' if rows else '<p class="aside">No arguments.</p>'
    )


def _argument(name: str, value: JSON, labels: JSON) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # All of it, however long: what would be left out here could be what matters.
    return f"<dt>{_plain(name)}{_labels(labels)}</dt><dd>{code_block(exact(text))}</dd>"


def _stored(name: str, about: JSON, labels: JSON) -> str:
    facts = about if isinstance(about, dict) else {}
    size = facts.get("size")
    amount = f"{size:,} bytes" if isinstance(size, int) else "a value"
    words = (
        f"{amount} of {facts.get('media') or 'an unknown type'}, SHA-256 {str(facts.get('sha256', ''))[:16]}"
    )
    return f'<dt>{_plain(name)}{_labels(labels)}</dt><dd class="aside">{_plain(words)}</dd>'


def _labels(labels: JSON) -> str:
    """Where a value comes from, as badges; what is neither the user's nor the model's stands out."""
    names = [str(one) for one in labels] if isinstance(labels, list) else []
    return "".join(
        f' <span class="badge {"" if one in ("user", "model") else "strange"}">from {_plain(one)}</span>'
        for one in names
    )


def _read(record: Record) -> str:
    labels = record.fields.get("read")
    if not isinstance(labels, list) or not labels:
        return ""
    return f'<p class="aside">The agent has read{_labels(labels)}</p>'


def _plain(text: str) -> str:
    """Text for somebody who decides by it: nothing is taken out, nothing is unseen."""
    return escape(exact(text))


# --- memory -------------------------------------------------------------------------------------


def recall_html(record: Record, known: Known = NONE) -> str:
    """What memory brought for one turn, each fragment with what found it and where it is from."""
    rows = record.fields.get("rows")
    facts: Sequence[JSON] = rows if isinstance(rows, list) else ()
    lines = [line.removeprefix("- ") for line in record.body.split("\n") if line]
    if not lines:
        return '<p class="aside">Memory had nothing for this turn.</p>'
    items = [
        _fragment(line, facts[place] if place < len(facts) else None) for place, line in enumerate(lines)
    ]
    took = f" in {record.number('ms')} ms" if "ms" in record.fields else ""
    return f'<p class="aside">Recalled for this turn{took}:</p><ul class="recalled">{"".join(items)}</ul>'


def _fragment(line: str, row: JSON) -> str:
    about = row if isinstance(row, dict) else {}
    score = about.get("score")
    words = [
        str(about.get("kind", "")),
        f"score {score:.2f}" if isinstance(score, int | float) else "",
        str(about.get("why", "")),
        f"by {about['agent']}" if about.get("agent") else "",
        f"in session {about['session']}" if about.get("session") else "",
        str(about.get("at", ""))[:10],
    ]
    disputed = '<span class="badge incomplete">contradicted</span>' if about.get("contradicts") else ""
    return (
        f'<li><p>{plain(line)}</p><p class="aside">{plain(" · ".join(word for word in words if word))}'
        f"{_labels(about.get('untrusted'))} {disputed}</p></li>"
    )


# --- plans --------------------------------------------------------------------------------------


def plan_html(record: Record, known: Known = NONE) -> str:
    """A version of a plan: what it adds, drops and changes, and why."""
    count = {
        name: len(value)
        for name in ("add", "drop", "rewire")
        if isinstance(value := record.fields.get(name), list)
    }
    words = {"add": "added", "drop": "dropped", "rewire": "changed"}
    changes = ", ".join(f"{count[name]} {words[name]}" for name in words if count.get(name))
    number = record.number("version")
    head = f"Plan, version {number}" + (f": {changes}" if changes else "")
    reason = record.text("reason")
    return f'<p class="aside">{plain(head)}.</p>{markdown(reason, known) if reason and number > 1 else ""}'


def node_html(record: Record, known: Known = NONE) -> str:
    """A change of one node of a plan."""
    state = record.text("to") or record.text("state")
    detail = record.text("detail")
    return (
        f'<p class="aside"><span class="function">{plain(record.text("node"))}</span> '
        f'<span class="badge {"".join(one for one in state if "a" <= one <= "z")}">{plain(state.replace("_", " "))}'
        f"</span> {plain(detail)}</p>"
    )


def ask_html(record: Record, known: Known = NONE) -> str:
    """What a model answered about a plan."""
    about = record.text("node")
    words = f"The model was asked: {record.text('question')}" + (f", about {about}" if about else "")
    return f'<details class="quiet"><summary>{plain(words)}</summary>{output(record.body)}</details>'
