"""A journal as one self-contained HTML page: the call tree, every dialogue, and what people were shown besides.

The page needs no script, no other file and no network, and its content policy allows none, so text from an agent, a tool
or a web page is inert in it. Records are rendered by the same renderer as on the browser's page, and look the same; this
module only decides where each record goes. What agents never saw (gate decisions, notices) is marked.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from markupsafe import Markup

from iact import web
from iact.core.ports import JSON
from iact.core.records.calls import Call, Result
from iact.core.records.control import Inject
from iact.core.records.dialogue import Generation, Reply, Say, Turn
from iact.core.records.person import PersonContent
from iact.core.records.record import Record
from iact.core.records.session import Module
from iact.core.stored.blobs import blob
from iact.core.stored.journals import check_integrity
from iact.core.stored.replay import Replay, replay
from iact.core.views.text import IsAction, looks_like_action
from iact.core.views.view import NodeView
from iact.web.markup import NOTHING, html, joined, trusted
from iact.web.records import Fields, header, raw_fields, record_message
from iact.web.render import NONE
from iact.web.render_process import RenderProcess
from iact.web.render_tasks import SECONDS, is_short, question

_HERE: Final = Path(__file__).parent
_STYLES: Final = (
    Path(web.__file__).parent / "static" / "css" / "tokens.css",
    Path(web.__file__).parent / "static" / "css" / "dialogue.css",
    _HERE / "export.css",
)
_ELSEWHERE: Final = frozenset({"open", "module", "call", "close"})
"""Record kinds that are no entry in their agent's dialogue: they are at the top or the bottom of the page, or in the
dialogue of the child that a call is for."""

_UNSEEN: Final = {
    "gate": "gate, never shown to agents",
    "notice": "notice to people, never shown to agents",
    "clearance": "clearance, never shown to agents",
}
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_IMAGE_LIMIT: Final = 4 << 20
_TITLE: Final = 120
_NAMED: Final = 20
"""How many lost contents the page names."""


def page(path: Path, *, at: int | None = None) -> str:
    """Return the HTML page of a journal, up to record `at` (default: all).

    Raises:
        JournalError: the journal can't be read.
        UsageError: there is no record `at`.
    """
    found = replay(path, at=at)
    nodes = found.view.nodes()
    is_action = found.view.is_action("/") or looks_like_action
    with RenderProcess() as process:
        formatter = _Formatter(
            process, found.path.parent, lambda name: is_action(name) or looks_like_action(name)
        )
        dialogues = _Dialogues(found.path.parent, formatter)
        for record in found.records:
            dialogues.take(record)
    ids = {node.path: f"a{number}" for number, node in enumerate(nodes)}
    return html(
        (_HERE / "export.html").read_text(encoding="utf-8"),
        title=_title(found),
        session=found.view.id,
        style=trusted("\n".join(style.read_text(encoding="utf-8") for style in _STYLES)),
        facts=_facts(found),
        tree=_branch(nodes, ids),
        agents=joined(_section(node, ids[node.path], dialogues) for node in nodes),
        origin=joined((_missing(found), _origin(found))),
        modules=_modules(found),
    )


# --- head, tree, foot -----------------------------------------------------------------------------


def _title(found: Replay) -> str:
    said = next((record.body for record in found.records if isinstance(record.content, Say)), "")
    words = " ".join(said.split())
    return (words if len(words) <= _TITLE else words[: _TITLE - 1] + "…") or "A session without a message"


def _facts(found: Replay) -> Markup:
    usage = found.view.usage
    pairs = {
        "from": _when(found.records[0]),
        "to": _when(found.records[-1]),
        "agents": str(len(found.view.nodes())),
        "records": f"{found.at:,}" + (f" of {found.total:,}" if _partial(found) else ""),
        "tokens": f"{usage.prompt_tokens:,} read ({usage.cached_tokens:,} reused), "
        f"{usage.completion_tokens:,} written",
        "model": ", ".join(found.view.models),
    }
    return _pairs(pairs)


def _pairs(pairs: Mapping[str, str]) -> Markup:
    return joined(html("<div><dt>{}</dt><dd>{}</dd></div>", name, value) for name, value in pairs.items())


def _partial(found: Replay) -> bool:
    return found.at < found.total


def _when(record: Record) -> str:
    return f"{record.at[:19].replace('T', ' ')} UTC"


_BEGIN: Final = html("<ul>")
_END: Final = html("</ul>")


def _branch(nodes: Sequence[NodeView], ids: Mapping[str, str]) -> Markup:
    """The tree as nested lists. Not recursive, because an untrusted journal could be nested too deeply."""
    below: defaultdict[str, list[NodeView]] = defaultdict(list)
    for one in nodes:
        below[one.caller].append(one)
    parts, left = [_BEGIN], [iter(below["user"])]
    while left:
        node = next(left[-1], None)
        if node is not None:
            parts += (html("<li>{}", _leaf(ids[node.path], node)), _BEGIN)
            left.append(iter(below[node.path]))
            continue
        left.pop()
        if parts[-1] is _BEGIN:
            parts.pop()  # an empty list
        else:
            parts.append(_END)
        if left:
            parts.append(html("</li>"))
    return joined(parts)


def _leaf(identity: str, node: NodeView) -> Markup:
    turns = f"{node.turns} turn{'s' if node.turns != 1 else ''}"
    return html(
        '<a href="#{identity}"><span class="mark {state}" title="{state}"></span>'
        '<span class="name">{name}</span><span class="count">{turns}</span></a>',
        identity=identity,
        state=node.state,
        name=node.name,
        turns=turns,
    )


def _origin(found: Replay) -> Markup:
    last = found.records[-1]
    part = f"the first {found.at:,} of {found.total:,}" if _partial(found) else f"{found.at:,}"
    return html(
        "Made by iact from the {part} records of a journal; the last one is record {n} with digest "
        "<code>{digest}</code>. The journal itself is the proof: <code>iact replay JOURNAL --verify</code>.",
        part=part,
        n=last.n,
        digest=last.digest,
    )


def _missing(found: Replay) -> Markup:
    """What the page lacks because the session is damaged, in sentences."""
    sentences = list[Markup]()
    lost = [one for one in check_integrity(found.path).lost if one.record <= found.at]
    if lost:
        places = [html('<a href="#r{n}">record {n}</a>', n=one.record) for one in lost[:_NAMED]]
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        sentences.append(
            html("The content of a value was lost in {}{}.", trusted(", ".join(places)), more),
        )
    if found.torn and not _partial(found):
        sentences.append(
            html(
                "The last {} bytes of the journal are an unfinished record, left out here.", f"{found.torn:,}"
            )
        )
    return joined(html("<strong>{}</strong> ", sentence) for sentence in sentences)


def _modules(found: Replay) -> Markup:
    items = [
        html(
            "<li><code>{}</code> {}, {}, record {}</li>",
            module.name,
            module.digest[:12],
            module.origin,
            record.n,
        )
        for record in found.records
        if isinstance(module := record.content, Module)
    ]
    if not items:
        return NOTHING
    return html("<details><summary>Modules ({})</summary><ul>{}</ul></details>", len(items), joined(items))


# --- dialogues ------------------------------------------------------------------------------------


def _section(node: NodeView, identity: str, dialogues: _Dialogues) -> Markup:
    facts = _pairs(
        {
            "called by": "you" if node.caller == "user" else node.caller,
            "turns": str(node.turns),
            "tokens": f"{node.prompt_tokens:,} + {node.completion_tokens:,}",
        }
    )
    return html(
        '<section class="agent" id="{identity}"><details open><summary><span class="mark {state}"></span>'
        '<h2>{path}</h2><span class="state">{state}</span><dl class="facts">{facts}</dl></summary>'
        '<div class="dialogue">\n{entries}</div></details></section>\n',
        identity=identity,
        state=node.state,
        path=node.path,
        facts=facts,
        entries=joined(dialogues.of[node.path]) or html('<p class="empty">Nothing was said here.</p>\n'),
    )


@dataclass(slots=True)
class _Formatter:
    """Formats records as messages, within the page's limits. `is_action`: which words begin an action block.

    `patience`: how many texts may use up their time limit. It bounds the time for one page, as a journal may be untrusted.
    """

    process: RenderProcess
    directory: Path
    is_action: IsAction
    patience: int = 40

    def message(self, record: Record) -> Fields:
        """The message of a record."""
        if is_short(record):
            return record_message(record, None, self.is_action)
        answered = None
        if self.patience > 0:
            answered = self.process.render(question(record, self.directory, self.is_action, NONE))
        if answered is None:
            self.patience -= 1
            return {**header(record), **raw_fields(record)}
        seconds = answered.get("seconds")
        self.patience -= isinstance(seconds, float) and seconds >= SECONDS
        return {**header(record), **answered}


@dataclass(slots=True)
class _Dialogues:
    """The entries of every agent's dialogue as HTML, built record by record.

    `directory`: where the blobs are.

    `sent`: the messages of each turn to children, by the turn's record number. `unread`: the places of interventions
    that no context has contained yet, by record number, as (path, index). `turns`: the places of turns, likewise.
    """

    directory: Path
    formatter: _Formatter
    of: defaultdict[str, list[Markup]] = field(default_factory=lambda: defaultdict(list))
    sent: dict[int, list[Fields]] = field(default_factory=dict)
    unread: dict[int, tuple[str, int]] = field(default_factory=dict)
    turns: dict[int, tuple[str, int]] = field(default_factory=dict)

    def take(self, record: Record) -> None:
        """Add the next record where it belongs."""
        message = self.formatter.message(record)
        self._receipts(record)
        content = record.content
        if isinstance(content, Turn):
            said = message.get("messages")
            self.sent[record.n] = (
                [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []
            )
        if isinstance(content, Call):
            self._address(record, content)
        if isinstance(content, Reply) and content.to not in ("user", record.agent):
            source = f"{record.agent}, its reply"
            self.of[content.to].append(_entry("child", source, record, _html(message), anchor=False))
        if isinstance(content, Turn):
            self.turns[record.n] = record.agent, len(self.of[record.agent])
        if isinstance(content, Reply) and content.of:
            self._mark_replied(content.of)
        if record.kind not in _ELSEWHERE:
            self.of[record.agent].append(self._own(record, _html(message)))

    def _mark_replied(self, turn: int) -> None:
        """Show the text of a turn once if it became the reply: as the reply (`dialogue.css`)."""
        place = self.turns.get(turn)
        if place is not None:
            path, index = place
            self.of[path][index] = self.of[path][index].replace(_OWN, _REPLIED, 1)

    def _address(self, record: Record, call: Call) -> None:
        """Add the message of a CALL to the child's dialogue."""
        for one in self.sent.get(call.turn, []):
            if one.get("action") == call.action:
                path, source = call.to or str(one.get("to")), f"{_name(record.agent)}, its caller"
                self.of[path].append(_entry("incoming", source, record, _html(one)))

    def _own(self, record: Record, shown: Markup) -> Markup:
        who = record.content.who if isinstance(record.content, PersonContent) else ""
        if record.kind in _UNSEEN:
            return html(
                '<div class="unseen" id="r{n}">{shown}<span class="why">{why}</span></div>\n',
                n=record.n,
                shown=shown,
                why=f"{who}: {_UNSEEN[record.kind]}" if who else _UNSEEN[record.kind],
            )
        match record.content:
            case Say():
                return _entry("incoming", who or "You", record, shown)
            case Inject():
                self.unread[record.n] = record.agent, len(self.of[record.agent])
                return _entry("intervention", who or "You", record, shown, note=_UNREAD)
            case Turn(generation=generation):
                return _entry("own", _name(record.agent), record, shown, note=_spent(generation))
            case Reply(to=to, generation=generation):
                source = f"{_name(record.agent)} → {'you' if to == 'user' else to}"
                return _entry("own reply", source, record, shown, note=_spent(generation))
            case Result() as result:
                return _entry("minor", "", record, joined((shown, self._image(result))))
        return _entry("minor", who, record, shown)

    def _receipts(self, record: Record) -> None:
        """Mark the interventions in this record's context as read, with a link to it."""
        match record.content:
            case Turn(generation=Generation(took=took)) | Reply(generation=Generation(took=took)):
                read = took
            case _:
                read = ()
        for n in read:
            place = self.unread.pop(n, None)
            if place is not None:
                path, index = place
                receipt = html(
                    '<span class="receipt">read at <a href="#r{n}">record {n}</a></span>', n=record.n
                )
                self.of[path][index] = self.of[path][index].replace(_UNREAD, receipt, 1)

    def _image(self, result: Result) -> Markup:
        if result.media not in _IMAGES or result.blob is None:
            return NOTHING
        content = blob(self.directory, result.blob.sha256, most=_IMAGE_LIMIT)
        if content is None:
            return html(
                '<p class="empty">The picture is not shown: it is too large, or its content was lost.</p>'
            )
        data = base64.b64encode(content).decode()
        return html('<img alt="{}" src="data:{};base64,{}">', result.function, result.media, trusted(data))


_UNREAD: Final = html('<span class="receipt">not read yet</span>')
_OWN: Final = html('<article class="entry own"')
_REPLIED: Final = html('<article class="entry own replied"')


def _name(path: str) -> str:
    return path if path != "/" else "Root agent"


def _html(message: Mapping[str, JSON]) -> Markup:
    """The HTML from the shared renderer, which may run in its own process."""
    return trusted(str(message["html"]))


def _entry(
    look: str, source: str, record: Record, shown: Markup, *, note: Markup = NOTHING, anchor: bool = True
) -> Markup:
    """One entry. `anchor`: whether links to the record lead to this entry; a copy elsewhere links to it."""
    head = NOTHING
    if source:
        head = html(
            '<header class="entry-head"><span class="from">{source}</span>{note}'
            '<a class="number" href="#r{n}" title="{when}">{n}</a></header>',
            source=source,
            note=note,
            n=record.n,
            when=_when(record),
        )
    return html(
        '<article class="entry {look}"{attributes}>{head}<div class="entry-body md">{shown}</div></article>\n',
        look=look,
        attributes=html(' id="r{}"', record.n) if anchor else NOTHING,
        head=head,
        shown=shown,
    )


def _spent(generation: Generation | None) -> Markup:
    """The tokens and time that a model's text took, or nothing if no model wrote it."""
    if generation is None:
        return NOTHING
    used = generation.usage
    parts = (f"{used.prompt:,} + {used.completion:,} tokens", f"{generation.ms / 1000:.1f} s")
    return joined(html('<span class="spent">{}</span>', part) for part in parts)
