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
    session = replay(path, at=at)
    dialogues = _read_dialogues(session)

    nodes = session.view.nodes()
    ids = {node.path: f"a{number}" for number, node in enumerate(nodes)}
    style = "\n".join(file.read_text(encoding="utf-8") for file in _STYLES)
    return html(
        (_HERE / "export.html").read_text(encoding="utf-8"),
        title=_title(session),
        session=session.view.id,
        style=trusted(style),
        facts=_facts(session),
        tree=_branch(nodes, ids),
        agents=joined(_section(node, ids[node.path], dialogues) for node in nodes),
        origin=joined((_missing(session), _origin(session))),
        modules=_modules(session),
    )


def _read_dialogues(session: Replay) -> _Dialogues:
    """Every dialogue of a session, rendered."""
    known = session.view.is_action("/") or looks_like_action

    def is_action(name: str) -> bool:
        return known(name) or looks_like_action(name)

    folder = session.path.parent
    with RenderProcess() as process:
        dialogues = _Dialogues(folder, _Formatter(process, folder, is_action))
        for record in session.records:
            dialogues.take(record)

    return dialogues


# --- head, tree, foot -----------------------------------------------------------------------------


def _title(session: Replay) -> str:
    message = next((record.body for record in session.records if isinstance(record.content, Say)), "")
    words = " ".join(message.split())
    if not words:
        return "A session without a message"

    return words if len(words) <= _TITLE else words[: _TITLE - 1] + "…"


def _facts(session: Replay) -> Markup:
    usage = session.view.usage
    of_all = f" of {session.total:,}" if _is_partial(session) else ""
    pairs = {
        "from": _when(session.records[0]),
        "to": _when(session.records[-1]),
        "agents": str(len(session.view.nodes())),
        "records": f"{session.at:,}{of_all}",
        "tokens": f"{usage.prompt_tokens:,} read ({usage.cached_tokens:,} reused), "
        f"{usage.completion_tokens:,} written",
        "model": ", ".join(session.view.models),
    }
    return _pairs(pairs)


def _pairs(pairs: Mapping[str, str]) -> Markup:
    return joined(html("<div><dt>{}</dt><dd>{}</dd></div>", name, value) for name, value in pairs.items())


def _is_partial(session: Replay) -> bool:
    return session.at < session.total


def _when(record: Record) -> str:
    return f"{record.at[:19].replace('T', ' ')} UTC"


_BEGIN: Final = html("<ul>")
_END: Final = html("</ul>")


def _branch(nodes: Sequence[NodeView], ids: Mapping[str, str]) -> Markup:
    """The tree as nested lists. Not recursive, because an untrusted journal could be nested too deeply."""
    children: defaultdict[str, list[NodeView]] = defaultdict(list)
    for node in nodes:
        children[node.caller].append(node)

    # A list is begun for each agent, and taken back if it has no children.
    parts = [_BEGIN]
    open_lists = [iter(children["user"])]
    """The agents that are left in each list that is open, from the outermost in."""
    while open_lists:
        child = next(open_lists[-1], None)
        if child is not None:
            parts += (html("<li>{}", _leaf(ids[child.path], child)), _BEGIN)
            open_lists.append(iter(children[child.path]))
            continue

        open_lists.pop()
        if parts[-1] is _BEGIN:
            parts.pop()
        else:
            parts.append(_END)
        if open_lists:
            parts.append(html("</li>"))

    return joined(parts)


def _leaf(identity: str, node: NodeView) -> Markup:
    turns = "1 turn" if node.turns == 1 else f"{node.turns} turns"
    return html(
        '<a href="#{identity}"><span class="mark {state}" title="{state}"></span>'
        '<span class="name">{name}</span><span class="count">{turns}</span></a>',
        identity=identity,
        state=node.state,
        name=node.name,
        turns=turns,
    )


def _origin(session: Replay) -> Markup:
    last = session.records[-1]
    part = f"{session.at:,}"
    if _is_partial(session):
        part = f"the first {session.at:,} of {session.total:,}"

    return html(
        "Made by iact from the {part} records of a journal; the last one is record {n} with digest "
        "<code>{digest}</code>. The journal itself is the proof: <code>iact replay JOURNAL --verify</code>.",
        part=part,
        n=last.n,
        digest=last.digest,
    )


def _missing(session: Replay) -> Markup:
    """What the page lacks because the session is damaged, in sentences."""
    sentences = list[Markup]()
    lost = [value for value in check_integrity(session.path).lost if value.record <= session.at]
    if lost:
        links = [html('<a href="#r{n}">record {n}</a>', n=value.record) for value in lost[:_NAMED]]
        places = joined([links[0], *(html(", {}", link) for link in links[1:])])
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        sentences.append(
            html("The content of a value was lost in {}{}.", places, more),
        )

    if session.torn and not _is_partial(session):
        sentences.append(
            html(
                "The last {} bytes of the journal are an unfinished record, left out here.",
                f"{session.torn:,}",
            )
        )

    return joined(html("<strong>{}</strong> ", sentence) for sentence in sentences)


def _modules(session: Replay) -> Markup:
    items = [
        html(
            "<li><code>{}</code> {}, {}, record {}</li>",
            module.name,
            module.digest[:12],
            module.origin,
            record.n,
        )
        for record in session.records
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
    """Formats records as messages, within the page's limits."""

    process: RenderProcess
    directory: Path
    """Where the blobs are."""
    is_action: IsAction
    """Which words begin an action block."""
    patience: int = 40
    """How many texts may use up their time limit. It bounds the time for one page, as a journal may be untrusted."""

    def message(self, record: Record) -> Fields:
        """The message of a record."""
        if is_short(record):
            return record_message(record, None, self.is_action)

        fields: Mapping[str, JSON] | None = None
        if self.patience > 0:
            fields = self.process.render(question(record, self.directory, self.is_action, NONE))
        if fields is None:
            self.patience -= 1
            return {**header(record), **raw_fields(record)}

        seconds = fields.get("seconds")
        if isinstance(seconds, float) and seconds >= SECONDS:
            self.patience -= 1
        return {**header(record), **fields}


@dataclass(slots=True)
class _Dialogues:
    """The entries of every agent's dialogue as HTML, built record by record.

    A place is an agent's path, and the index of an entry in its dialogue.
    """

    directory: Path
    """Where the blobs are."""
    formatter: _Formatter
    of: defaultdict[str, list[Markup]] = field(default_factory=lambda: defaultdict(list))
    """The entries by agent."""
    sent: dict[int, list[Fields]] = field(default_factory=dict)
    """The messages of each turn to children, by the turn's record number."""
    unread: dict[int, tuple[str, int]] = field(default_factory=dict)
    """The places of interventions that no context has contained yet, by record number."""
    turns: dict[int, tuple[str, int]] = field(default_factory=dict)
    """The places of turns, by record number."""

    def take(self, record: Record) -> None:
        """Add the next record where it belongs."""
        message = self.formatter.message(record)
        self._receipts(record)

        # Where else it appears, and what of earlier entries it changes.
        match record.content:
            case Turn():
                self._note_turn(record, message)
            case Call() as call:
                self._address(record, call)
            case Reply() as reply:
                self._deliver(record, reply, message)

        if record.kind not in _ELSEWHERE:
            self.of[record.agent].append(self._own(record, _html(message)))

    def _note_turn(self, record: Record, message: Fields) -> None:
        """Note what a turn sends to children, and the place that its entry will have."""
        messages = message.get("messages")
        if isinstance(messages, list):
            self.sent[record.n] = [sent for sent in messages if isinstance(sent, dict)]
        self.turns[record.n] = record.agent, len(self.of[record.agent])

    def _deliver(self, record: Record, reply: Reply, message: Fields) -> None:
        """Add a reply to the dialogue of the agent that gets it."""
        if reply.to not in ("user", record.agent):
            source = f"{record.agent}, its reply"
            self.of[reply.to].append(_entry("child", source, record, _html(message), anchor=False))
        if reply.of:
            self._mark_replied(reply.of)

    def _mark_replied(self, turn: int) -> None:
        """Show the text of a turn once if it became the reply: as the reply (`dialogue.css`)."""
        place = self.turns.get(turn)
        if place is not None:
            path, index = place
            self.of[path][index] = self.of[path][index].replace(_OWN, _REPLIED, 1)

    def _address(self, record: Record, call: Call) -> None:
        """Add the message of a CALL to the child's dialogue."""
        source = f"{_name(record.agent)}, its caller"
        for message in self.sent.get(call.turn, []):
            if message.get("action") == call.action:
                path = call.to or str(message.get("to"))
                self.of[path].append(_entry("incoming", source, record, _html(message)))

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
                pass
            case _:
                return

        receipt = html('<span class="receipt">read at <a href="#r{n}">record {n}</a></span>', n=record.n)
        for n in took:
            place = self.unread.pop(n, None)
            if place is not None:
                path, index = place
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
