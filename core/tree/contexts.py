"""Builds the context of an agent's next turn from its state. Pure, so a replay builds the same bytes.

Whatever is not a function of the agent's own state (the time, files, which messages had arrived when the turn began) is
passed in and is in the turn's record.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from iact.core.context.embeds import MOST, embedded, part
from iact.core.context.excerpt import Feedback, Passage
from iact.core.context.tail import changes, tail
from iact.core.context.values import NO_VALUES, Described, describe_values
from iact.core.gate.provenance import Labels, join
from iact.core.language import labels
from iact.core.language.scanner import scan
from iact.core.language.variables import Table, Value, rename, text_value
from iact.core.ports import Part
from iact.core.records.dialogue import LastTurn
from iact.core.records.parts import Seen
from iact.core.tree import origin
from iact.core.tree.agent import Agent
from iact.core.tree.mail import Incoming
from iact.core.tree.module_states import clauses
from iact.core.tree.notes import FRONT, more_about, note_texts
from iact.core.tree.opening import opening
from iact.core.tree.prepared_context import Composed, PreparedContext, newest_message
from iact.core.tree.tree import Tree
from iact.core.tree.window import fitted, may_be_cut, room_for

_NAMED: Final = re.compile(r"\$(\w+)", re.ASCII)
"""A variable in a label."""

_TURNS_LEFT: Final = 3
_LAST: Final = {
    "turns": "This is your last turn for this task: answer now, with what you have. Actions will not be run.",
    "tokens": "Your budget of tokens is used up: answer now, with what you have. Actions will not be run.",
}


def prepare(
    tree: Tree,
    agent: Agent,
    seen: Seen,
    *,
    notes: Mapping[str, int],
    took: Sequence[int] | None = None,
    last: LastTurn = "",
    full: int = 0,
) -> PreparedContext:
    """Build the context for an agent's next turn: `compose` and `complete` in one."""
    return complete(tree, agent, compose(tree, agent, seen, notes=notes, took=took), last=last, full=full)


def compose(
    tree: Tree,
    agent: Agent,
    seen: Seen,
    *,
    notes: Mapping[str, int],
    took: Sequence[int] | None = None,
) -> Composed:
    """Build all that is new in the context for an agent's next turn, except the parts that depend on its length.

    `notes`: functions to document, each with the message that its note follows (`choose_notes`). `took`: records of the
    messages to include (default: all that wait).
    """
    inbox = agent.mail.ready
    if took is not None:
        wanted = set(took)
        inbox = [message for message in inbox if message.n in wanted]

    # The variables as they will be once the turn is recorded: a context may be built and never used.
    table = agent.table.copy() if inbox else agent.table
    new = heard(tree, agent, inbox, notes, table, catalogue=seen.catalogue)
    parts = [*opening(tree, agent, seen.catalogue), *fitted(tree, agent, new)]

    told = agent.context.told
    recalled = agent.mail.recalled
    modules = clauses(agent)
    named = named_variables(new)
    if told is None:
        state = tail(seen, table, recalled, modules=modules, named=named)
    else:
        state = changes(told, seen, table, recalled, modules=modules, named=named)

    shown = list(agent.mail.parts)
    for message in inbox:
        shown += show(tree, agent, message, table)
    beside = tuple(dict.fromkeys(shown))[:MOST]

    numbers = tuple([message.n for message in inbox])
    newest = newest_message("\n\n".join(parts), state, beside)
    return Composed(tuple(parts), state, beside, numbers, notes, seen, table, newest, sources_of(new))


def complete(
    tree: Tree, agent: Agent, composed: Composed, *, last: LastTurn = "", full: int = 0
) -> PreparedContext:
    """Build the context itself. `last`: why this turn is the agent's last ("turns", "tokens"), if it is.

    `full`: how full its context is, in percent, if the agent must be told.
    """
    more: list[str] = []
    remaining = tree.bounds.turns - agent.guards.turns
    if last in _LAST:
        more.append(labels.note(_LAST[last]))
    elif remaining <= _TURNS_LEFT < tree.bounds.turns:
        more.append(labels.note(f"{remaining} turns left for this task, this one included."))
    if full:
        more.append(labels.context_full(full))

    text = "\n\n".join([*composed.parts, *more])
    newest = composed.newest
    if more:
        newest = newest_message(text, composed.tail, composed.beside)
    digest = agent.context.history.digest((newest,))
    return PreparedContext(
        text, composed.tail, composed.beside, composed.took, composed.notes, composed.seen, composed.table, last,
        full, digest, newest, composed.sources,
    )  # fmt: skip


def heard(
    tree: Tree,
    agent: Agent,
    inbox: Sequence[Incoming],
    notes: Mapping[str, int],
    table: Table,
    *,
    catalogue: int | None = None,
) -> list[Feedback]:
    """Return the texts that reached an agent: its feedback and these messages, each followed by its notes.

    Puts what the messages bring into `table`. `catalogue`: the record since which the functions are as documented.
    """
    noted = note_texts(tree, notes, catalogue)
    parts: list[Feedback] = [*noted.get(FRONT, ()), *agent.mail.feedback, *noted.get(0, ())]

    for message in inbox:
        parts.append(receive(tree, agent, message, table))
        if message.n in noted:
            parts += noted[message.n]
            parts += more_about(tree, agent, message, notes)
    return parts


def sources_of(parts: Iterable[Feedback]) -> Labels:
    """The labels of the values whose content these texts show.

    A caller that lets an agent read the texts adds them to what it has read, as SHOW does.
    """
    return join([part.sources for part in parts if isinstance(part, Passage)])


def named_variables(parts: Iterable[Feedback]) -> set[str]:
    """The variables that are named before or behind these texts, which the state line then needn't name again."""
    passages = [part for part in parts if isinstance(part, Passage)]
    return {name for passage in passages for name in _NAMED.findall(f"{passage.label}\n{passage.after}")}


def labels_shown(tree: Tree, agent: Agent, message: Incoming, table: Table) -> Labels:
    """The labels of what a message shows besides its text. `table`: as for `show`, before it takes the message in."""
    return join(value.labels for _, value in _beside(tree, agent, message, table))


def show(tree: Tree, agent: Agent, message: Incoming, table: Table) -> Iterator[Part]:
    """Yield what a message shows besides its text: variables that it embeds, and a file that the user hands over.

    Only variables that came with the message count, but the user may embed any of the agent's. What is already in the
    agent's history is not shown again. `table`: as `receive` left it.
    """
    for shown, _ in _beside(tree, agent, message, table):
        if not any(shown in earlier.parts for earlier in agent.context.history.messages()):
            yield shown


def _beside(tree: Tree, agent: Agent, message: Incoming, table: Table) -> Iterator[tuple[Part, Value]]:
    """What a message shows besides its text, with the values that it is made of."""
    takes = tree.roles[agent.model].takes
    if not takes or message.status != "ok":
        return

    # By the name in the message: the name that its reader knows it by, and the value.
    may_show = {name: (table.receive(name, value), value) for name, value in message.values.items()}
    if message.kind in ("say", "intervention"):
        own = {name: (name, value) for name, value in table.items()}
        may_show = {**own, **may_show}

    names = list(may_show) if message.kind == "upload" else embedded(message.text)
    for name in names:
        if name not in may_show:
            continue
        own_name, value = may_show[name]
        if tree.blobs.is_lost(value.sha256):
            continue
        shown = part(own_name, value, takes)
        if shown is not None:
            yield shown, value


def receive(tree: Tree, agent: Agent, message: Incoming, table: Table) -> Feedback:
    """Put what a message brings into `table`. Returns the message's text with its label."""
    if message.kind == "news":
        return labels.note(message.text)
    if message.status != "ok":
        return labels.unfinished(message.child, message.status, message.text)

    # The values that it brings, under names that are free here.
    text = message.text
    brought = dict[str, Value]()
    had_before = frozenset[str]()
    if message.values:
        had_before = frozenset(table)
        names = {name: table.receive(name, value) for name, value in message.values.items()}
        brought = {name: table[name] for name in names.values()}
        text = rename(message.text, names)

    source = message.source
    variable = ""
    if message.kind == "child":
        reply = text_value(text, media="text/markdown", labels=message.labels, origin=message.child)
        variable = table.keep(message.child.rsplit("/", 1)[1], reply)
        what = "child" if tree.agents[message.child].plan is None else "plan"
        source = f"your {what} {message.child}, kept as ${variable}"
    capture(text, table, message)

    shown = labels.clean(text)
    if message.kind == "intervention":
        return labels.intervention(text)
    if message.kind == "child":
        room = room_for(tree, agent, shown)
    else:
        room = len(shown)
        if may_be_cut(tree, agent, text):
            # The rest can then be read from this variable.
            variable = table.keep("message", text_value(text, labels=message.labels, origin=message.source))
            brought = {**brought, variable: table[variable]}

    described = NO_VALUES
    if brought:
        new = brought.keys() - had_before - {variable}
        described = _described(tree, agent, message, brought, new=new)

    label = labels.message_label(source, described.about)
    after = f"\n{labels.unnamed(message.unnamed)}" if message.unnamed else ""
    if message.aside:
        after = f"{after}\n{labels.left_aside(message.aside)}"
    for at_once, say in ((False, labels.overwritten), (True, labels.written_at_once)):
        met = [each for each in message.overwrote if each.at_once == at_once]
        if met:
            rows = [(each.path, each.of, each.by if each.by != message.child else "") for each in met]
            after = f"{after}\n{say(rows)}"
    if message.asks:
        label = labels.question_label(message.child, variable, described.about)
        after = f"{after}\n{labels.how_to_answer(message.child)}"
    return Passage(label, shown, room, variable, after, described.whole, described.sources)


def _described(
    tree: Tree, agent: Agent, message: Incoming, brought: Mapping[str, Value], *, new: Collection[str]
) -> Described:
    """What a message says about the values that it brings. `new`: those that its reader did not have."""
    is_report = message.kind == "child" and tree.agents[message.child].plan is not None
    # The report of a plan shows its result itself; what its steps gave is there to be read.
    room = 0 if is_report and tree.follows_1_3 else room_for(tree, agent, "")
    harmless = _harmless(tree, agent, message, brought)
    blobs = tree.blobs
    return describe_values(
        brought, new=new, begun=harmless, room=room, is_lost=blobs.is_lost, known_lost=blobs.told
    )


def _harmless(tree: Tree, agent: Agent, message: Incoming, values: Mapping[str, Value]) -> list[str]:
    """The values whose first line tells an agent of no source that it does not read of in the message itself.

    An agent must be able to hand on a long text from outside by its name, without having read any of it.
    """
    read = agent.labels | message.labels
    return [name for name, value in values.items() if not origin.strange(tree, value.labels - read)]


def capture(text: str, table: Table, message: Incoming) -> None:
    """Keep the fenced code blocks of an incoming message as `code_1`, `code_2`, …

    `text`: the message's text with its variables renamed.
    """
    if "```" not in text and "~~~" not in text:
        return

    blocks = message.blocks if text == message.text else None
    if blocks is None or any(block.action for block in blocks):
        # Nothing acts here: all blocks are plain.
        blocks = scan(text, lambda name: False).blocks
    for block in blocks:
        table.keep(
            "code", code_value(block.info, block.body, message.child or message.source, message.labels)
        )


def code_value(info: str, body: str, origin: str, provenance: Labels) -> Value:
    """A code block as a value; the first word of its info string becomes the type."""
    language = info.split(None, 1)[0].lower() if info else "plain"
    return text_value(body, media=f"text/{language}", labels=provenance, origin=origin)
