"""One record of a journal: what it holds, and its exact bytes.

A record is a header comment of one line of JSON, a heading for people, the body taken by its
length, and a trailer with the digest over everything before it:

    <!-- iact {"n":12,"at":"…Z","kind":"reply","agent":"/coder","step":7,"bytes":431,"prev":"9f2c41aa"} -->
    ### 12 · /coder → /

    <exactly 431 bytes>

    <!-- /12 6b1e09d3 -->

Reader and writer share this file and nothing else: `encode` gives the bytes of one record,
`core.journal.parser` turns bytes, in pieces of any size, back into records. The body is taken by its length,
so nothing inside it can be mistaken for structure.

The header of a record that this installation appended ends with one more field, `"seal":"…"`: sixteen hex digits
that only it can make (`core.journal.seal`). Trailer and chain cover it as they cover all else.

Kinds and their own fields (a reader ignores fields that it does not know):

    open     format, session, version, prompt (digest), primer, models {role: name}, grant, policy, bounds,
             workspace
    say      (body: the user's text)
    turn     a model's text that holds actions: model, role, context (digest), took [n], seen {}, notes [function],
             usage {prompt,cached,completion,estimated?}, ms, first_ms, finish (stop|length|cut), cut (bytes)
    reply    the message to the caller: to, status (ok|failed|cancelled|bound), and, when a model wrote it,
             the fields of `turn`; when a plan ended by itself: plan (concluded|partial|failed), answer, missing
             {step: why}, ended_by (a bound), warnings
    discard  a generation that was stopped; never enters a context: reason (pause|interrupt|cancel|restart)
    call     about to be dispatched: turn, action (index in the turn), function, impact, args (digest)
    gate     a decision; never enters a context: turn, action, function, allow, by, impact, reason,
             endpoint (true: one is asked about every call), ask (the clearance record that it waited for)
    clearance  a question or its answer; never enters a context: turn, action, function, op (ask|answer), and
             ask: to (person|endpoint), rule (provenance|clearance), impact, why (its impact), reason (it is
             asked), user, seconds (a person has), params {} (the call in full), attached {parameter: {media, size,
             sha256 if it is too long for params}}, provenance {parameter: [label]}, read [label] (by the agent);
             answer: ask (the question's record), allow, by (user|endpoint|time), reason, remember ("call" or a
             rule {function, arguments {parameter: pattern}})
    result   turn, action, function, call, status (ok|error|incomplete|cancelled|interrupted), var, media, ms,
             data {} (exit status and the like); body: the output, or blob {sha256, size}; of RECALL: rows and
             body as in `recall`; of REMEMBER: kind_of, supersedes (id), body: what is remembered; of a call that may
             have written: version (of the workspace behind it), or unkept (true: none could be kept), or unchanged (the
             last record before a look at the overlay that saw nothing new)
    recall   what memory brought for the agent's next turn: rows [{id, kind, score, why, at, session, agent,
             untrusted?, contradicts?}], meant {function: record of the message about it}, ms; body: one line for each row, as the agent reads it
    spawn    a child begins (agent = the child): caller, model, grant, and for a plan: plan {mode, options,
             thinks}; body: its role text
    draw     an agent takes more of the budget of those above it, before it asks its model: tokens
    control  op (pause|resume|inject|cancel|intent|lockdown|policy|declassify|plan|restore|apply|drop|overlay), by,
             and for inject: mode, for intent and lockdown: value, for overlay (by core: modules see the live directory
             through one, or do not any more): value, for apply and drop (of what waits): paths [path] or blob, force
             (true: in spite of conflicts), for restore: version, for policy: policy {}, for declassify: variable (none: all that the agent
             has read), for plan (a person starts one): budget; body: the injected text, or the plan
    module   name, version, digest, origin, stake; body: the manifest as JSON
    plan     a version of a plan begins (agent = the plan): version, parent, reason, add [step], drop [id],
             rewire [step]; body: the steps that it adds, for people
    node     a step's state changed: node, version (the one that governs it), cause, from, to, t (seconds since the
             plan's start), attempt, detail; when it executed: validation, and output or result (the record with it)
    fire     a step is about to be carried out: node, attempt, turn, action, function, to; body: its arguments as
             JSON, if they are not what its refs resolve to. Its gate, call and result records name the same action
    ask      a model answered a question about a plan: question, node, role, model, digest (of the question),
             usage; body: the answer
    state    a module came to another state by itself, outside of a call: function (by which its agent has
             to do with it), state {name, offers, note}
    effects  somebody looked at the overlay of a live directory, and something was new; never in a context: after
             (call|person|open), seen (the last record before the look), changes [{path, kind (add|modify|delete),
             was, now {type, mode, size, content (its SHA-256), target}, conflict}] or blob, gone [path] (waited, and
             is now as in the directory); and what follows: calls [n]
             (that ran since the last one), impact, why, apply (at once; true: written ahead), held (why not:
             impact|provenance|conflict|pending|lockdown|unasked), reason (in words)
    settle   what became of changes that record `of` meant to apply or drop: of, left [{path, outcome
             (conflict|failed), why}] (all others: done), notes [as left] (what there is to know of what was applied)
    notice   for people, never in a context: level, code
    adopt    what stands before was copied from a session that this installation did not make, and has no authority
             here: from (session), after (its last record shared), session (this one), sha256 (over all bytes before
             this record), by, grant, policy, bounds, models (as in `open`), workspace (current|none), left_out {files,
             blobs, versions: how many}
    fork     what stands before was copied: from (session), after (its last record shared), session (this one),
             workspace (version|current|live|none: files as they were behind that record, as they were when it was
             forked, a directory of the user's, none)
    migrate  from here on the rules and prompts are those of another version: from, to, models (as in `open`)
    close    the session was closed in order; it can be opened again, and then goes on behind this
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, get_args

from core.characters import HIDDEN
from core.errors import UsageError
from core.journal.seal import PLAIN_END, Sealer
from core.language.containers import Containers
from core.ports import JSON

FORMAT: Final = "1.2"
"""The major version rises when an older program could not read what we write; the minor one when the rules by
which records change a tree are others, so that what stands there can be read, but not verified any more.

    1.2  labels follow what a call touched; decisions are compared field by field
    1.1  what runs short draws by a record of its own (1.0: by a field of its turn), and small starts are lent
"""

Kind = Literal[
    "open", "say", "turn", "reply", "discard", "call", "gate", "result",
    "spawn", "select", "control", "clearance", "upload", "recall", "notice", "module",
    "plan", "node", "fire", "ask", "draw", "compress", "state", "fork", "adopt", "migrate", "close",
    "effects", "settle",
]  # fmt: skip
KINDS: Final[frozenset[str]] = frozenset(get_args(Kind))

GENESIS: Final = "00000000"
"""`prev` of the first record."""

HEAD: Final = b"<!-- iact "
HEAD_END: Final = b" -->\n"
"""How the line of a record's header begins and ends."""
_RESERVED: Final = ("n", "at", "kind", "agent", "step", "bytes", "prev", "wrapped", "seal")
MAX_HEADER: Final = 4 << 20
MAX_BODY: Final = 256 << 20
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_NAME: Final = 200
"""Characters of a name that a heading shows."""

_OPENS: Final = re.compile(r"```|~~~|^ {0,3}<", re.MULTILINE)
_TILDES: Final = re.compile(r"~{3,}")
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>#|&~!])")
_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class Record:
    """One record. `n` counts from 1; `step` is the ordinal of this record within its agent.

    `digest`: first eight hex digits of the SHA-256 over the record's bytes before its trailer. `seal`: who wrote it,
    empty if it does not say; the digest of a sealed record covers it.
    `kind` is a `Kind` for records we write; a reader keeps kinds of newer minor versions as they are.
    """

    n: int
    at: str
    kind: str
    agent: str
    step: int
    body: str = ""
    fields: Mapping[str, JSON] = field(default_factory=dict)
    prev: str = GENESIS
    digest: str = ""
    seal: str = field(default="", compare=False)

    def text(self, name: str) -> str:
        """Field `name` as a string; empty if it is absent or of another type."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> int:
        """Field `name` as an integer; 0 if it is absent or of another type."""
        value = self.fields.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0


def timestamp(now: datetime) -> str:
    """A time in UTC as records have it."""
    return now.isoformat(timespec="microseconds").replace("+00:00", "Z")


def blobs_of(record: Record) -> frozenset[str]:
    """The blobs that a record names: what stands as `sha256` in its fields, at any depth."""
    found: set[str] = set()
    left: list[JSON] = list(record.fields.values())
    while left:
        match left.pop():
            case list() as items:
                left.extend(items)
            case dict() as inner:
                left.extend(inner.values())
                digest = inner.get("sha256")
                if isinstance(digest, str) and _SHA256.fullmatch(digest):
                    found.add(digest)
    return frozenset(found)


def _dump(fields: Mapping[str, object]) -> str:
    """All fields as JSON. ">" is written as an escape: "-->" would end the comment for a Markdown renderer."""
    try:
        text = _JSON.encode(fields)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        for name, value in fields.items():
            _check(name, value)
        raise
    return text.replace(">", "\\u003e").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _check(name: str, value: object) -> None:
    """Whether one field can be stored; what is wrong with a record is told by the name of the field."""
    try:
        _JSON.encode({name: value}).encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"A journal can't store the field {name!r}: it holds a lone surrogate.") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"A journal can't store the field {name!r}: {error}.") from error


def _heading(record: Record) -> str:
    """The line for people: who speaks to whom, or what happened."""
    subject = record.agent
    match record.kind:
        case "say":
            subject = "user → /"
        case "reply":
            subject = f"{record.agent[:_NAME]} → {record.text('to') or 'user'}"
        case "call" | "result" | "gate" | "clearance":
            subject = f"{record.agent[:_NAME]} · {record.kind} {record.text('function')}"
        case "turn":
            pass
        case _:
            subject = f"{record.agent[:_NAME]} · {record.kind}"
    return f"### {record.n} · {_escape(subject)}"


def _escape(text: str) -> str:
    text = text if len(text) <= _NAME else text[: _NAME - 1] + "…"
    return _MARKUP.sub(r"\\\1", HIDDEN.sub("�", text.replace("\t", "�").replace("\n", "�")))


def unbalanced(text: str) -> bool:
    """Whether `text` leaves a block open that would take what follows: a fence, a comment, an element like `<pre>`."""
    normal = text.replace("\r\n", "\n").replace("\r", "\n")
    if not _OPENS.search(normal):
        return False
    blocks = Containers()
    blocks.read(normal + "\n\n")
    return blocks.unending


def _wrap(body: str) -> str:
    longest = max((len(run) for run in _TILDES.findall(body)), default=2)
    fence = "~" * (longest + 1)
    return f"{fence}text\n{body}\n{fence}"


def unwrap(text: str) -> str:
    """A body without the fence that was put around it."""
    start = text.index("\n") + 1
    return text[start : text.rindex("\n")]


def trailer(n: int, digest: str = "00000000") -> bytes:
    """How record `n` ends."""
    return f"\n\n<!-- /{n} {digest} -->\n\n".encode()


def encode(record: Record, sealer: Sealer | None = None) -> tuple[bytes, str]:
    """The bytes of `record` and its digest. Its own `digest` is not looked at; `sealer` makes it a new seal.

    Raises:
        UsageError: a field (named) or the body can't be stored: not JSON, not finite, a reserved name, lone
            surrogates, too long.
    """
    clash = [name for name in _RESERVED if name in record.fields]
    if clash:
        raise UsageError(f"A journal record can't have a field of its own named {clash[0]!r}.")
    wrapped = unbalanced(record.body)
    try:
        body = (_wrap(record.body) if wrapped else record.body).encode()
    except UnicodeEncodeError as error:
        raise UsageError("A journal can't store a body that holds a lone surrogate.") from error
    if len(body) > MAX_BODY:
        raise UsageError(f"A journal can't store a body of {len(body)} bytes; keep it as a blob.")
    fields: dict[str, object] = {
        "n": record.n, "at": record.at, "kind": record.kind, "agent": record.agent, "step": record.step,
        **record.fields, "bytes": len(body), "prev": record.prev,
    }  # fmt: skip
    if wrapped:
        fields["wrapped"] = True
    head = f"<!-- iact {_dump(fields)} -->\n{_heading(record)}\n\n".encode()
    seal = record.seal if sealer is None else sealer.seal(head, body)
    if seal:
        line_end = head.index(b"\n") + 1
        sealed = f',"seal":"{seal}"'.encode()
        head = head[: line_end - len(PLAIN_END)] + sealed + head[line_end - len(PLAIN_END) :]
    if len(head) > MAX_HEADER:
        largest = max(record.fields, key=lambda name: len(_dump({name: record.fields[name]})))
        raise UsageError(f"A journal can't store the field {largest!r}: it is too long; put it in the body.")
    covered = head + body
    digest = hashlib.sha256(covered).hexdigest()[:8]
    return covered + trailer(record.n, digest), digest
