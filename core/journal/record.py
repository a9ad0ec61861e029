"""One record of a journal: its contents, and its exact bytes.

A record is a header comment of one line of JSON, a heading for people, the body, whose length is in the header, and a
trailer with the digest of everything before it:

    <!-- iact {"n":12,"at":"…Z","kind":"reply","agent":"/coder","step":7,"bytes":431,"prev":"9f2c41aa"} -->
    ### 12 · /coder → /

    <exactly 431 bytes>

    <!-- /12 6b1e09d3 -->

Reader and writer share this file and nothing else: `encode` returns the bytes of one record, `core.journal.parser`
turns bytes, in pieces of any size, back into records. The body is read by its length, so nothing inside it can be
mistaken for structure.

The header of a record that this installation appended ends with one more field, `"seal":"…"`: sixteen hex digits that
only this installation can compute (`core.journal.seal`). Trailer and chain cover it like everything else.

The classes in `core.records` describe the fields of each kind.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from iact.core.characters import HIDDEN
from iact.core.errors import UsageError
from iact.core.journal.seal import PLAIN_END, Sealer
from iact.core.language.containers import Containers
from iact.core.ports import JSON
from iact.core.records.record import Record

HEAD: Final = b"<!-- iact "
HEAD_END: Final = b" -->\n"
"""How the line of a record's header begins and ends."""
_RESERVED: Final = frozenset({"n", "at", "kind", "agent", "step", "bytes", "prev", "wrapped", "seal"})
"""The fields that every record's header has, so that no kind has one of that name."""
MAX_HEADER: Final = 4 << 20
"""The most bytes of a header with its heading."""
MAX_BODY: Final = 256 << 20
"""The most bytes of a body."""
_READ_BY_LINE: Final = 32_768
"""The most characters of a body whose blocks are read line by line."""

_NAME: Final = 200
"""The most characters of a name that a heading shows."""

_OPENS: Final = re.compile(r"```|~~~|^ {0,3}<", re.MULTILINE)
_TILDES: Final = re.compile(r"~{3,}")
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>#|&~!])")
_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


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
    """Check that one field can be stored. The error names the field."""
    try:
        _JSON.encode({name: value}).encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"A journal can't store the field {name!r}: it holds a lone surrogate.") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"A journal can't store the field {name!r}: {error}.") from error


def _heading(record: Record, fields: Mapping[str, JSON]) -> str:
    """The line for people: who speaks to whom, or what happened."""
    agent = record.agent[:_NAME]
    match record.kind:
        case "say":
            subject = "user → /"
        case "reply":
            subject = f"{agent} → {fields.get('to') or 'user'}"
        case "call" | "result" | "gate" | "clearance" as kind:
            subject = f"{agent} · {kind} {fields.get('function', '')}"
        case "turn":
            subject = record.agent
        case kind:
            subject = f"{agent} · {kind}"
    return f"### {record.n} · {_escape(subject)}"


@lru_cache(maxsize=4096)  # the same agents do the same things again and again
def _escape(text: str) -> str:
    if len(text) > _NAME:
        text = text[: _NAME - 1] + "…"
    visible = HIDDEN.sub("�", text.replace("\t", "�").replace("\n", "�"))
    return _MARKUP.sub(r"\\\1", visible)


def unbalanced(text: str) -> bool:
    """Whether `text` leaves a block open that would take what follows: a fence, a comment, an element like `<pre>`.

    A long text counts as one that may do so if it opens such a block: reading its lines takes longer than a session
    can stand still.
    """
    if len(text) > _READ_BY_LINE:
        return _OPENS.search(text) is not None or "\r" in text

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
    """Return a body without the fence that was put around it."""
    start = text.index("\n") + 1
    return text[start : text.rindex("\n")]


def trailer(n: int, digest: str = "00000000") -> bytes:
    """Return the trailer of record `n`."""
    return f"\n\n<!-- /{n} {digest} -->\n\n".encode()


def encode(record: Record, sealer: Sealer | None = None) -> tuple[bytes, str]:
    """Return the bytes of `record` and its digest. Ignores its own `digest`; `sealer` creates a new seal.

    Raises:
        UsageError: a field (named) or the body can't be stored: not JSON, not finite, a reserved name, lone
            surrogates, too long.
    """
    own = record.fields
    if not _RESERVED.isdisjoint(own):
        clash = min(_RESERVED & own.keys())
        raise UsageError(f"A journal record can't have a field of its own named {clash!r}.")

    # A body that leaves a block open would swallow the records below it for who reads the file as Markdown.
    wrapped = unbalanced(record.body)
    text = _wrap(record.body) if wrapped else record.body
    try:
        body = text.encode()
    except UnicodeEncodeError as error:
        raise UsageError("A journal can't store a body that holds a lone surrogate.") from error
    if len(body) > MAX_BODY:
        raise UsageError(f"A journal can't store a body of {len(body)} bytes; keep it as a blob.")

    fields: dict[str, object] = {
        "n": record.n, "at": record.at, "kind": record.kind, "agent": record.agent, "step": record.step,
        **own, "bytes": len(body), "prev": record.prev,
    }  # fmt: skip
    if wrapped:
        fields["wrapped"] = True
    head = f"<!-- iact {_dump(fields)} -->\n{_heading(record, own)}\n\n".encode()

    # The seal is the header's last field, and covers what stands there without it.
    seal = record.seal if sealer is None else sealer.seal(head, body)
    if seal:
        fields_end = head.index(b"\n") + 1 - len(PLAIN_END)
        head = head[:fields_end] + f',"seal":"{seal}"'.encode() + head[fields_end:]

    if len(head) > MAX_HEADER:
        largest = max(own, key=lambda name: len(_dump({name: own[name]})))
        raise UsageError(f"A journal can't store the field {largest!r}: it is too long; put it in the body.")

    covered = head + body
    digest = hashlib.sha256(covered).hexdigest()[:8]
    return covered + trailer(record.n, digest), digest
