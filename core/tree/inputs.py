"""Builds the context of an agent's next turn from its state: pure, so a replay builds the same bytes.

What is not a function of the agent's own state (the time, files, which messages had arrived when
the turn began) is handed in and stands in the turn's record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from core.context.tail import Seen, tail
from core.language import labels
from core.language.scanner import scan
from core.language.variables import Table, Value, rename, text_value
from core.ports import ChatMessage
from core.tree.agent import Agent, Incoming
from core.tree.tree import Tree

_NOTES: Final = 3
_WORDS: Final = re.compile(r"[\w.]+")
_TURNS_LEFT: Final = 3
_LAST: Final = {
    "turns": "This is your last turn for this task: answer now, with what you have. Actions will not be run.",
    "tokens": "Your budget of tokens is used up: answer now, with what you have. Actions will not be run.",
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """One context, ready to be sent: what is new in it, and the digest over all of it.

    `table`: the agent's variables with those that the messages brought. `last`: why no turn follows, if so;
    `full`: the percentage that the agent was told, if so.
    """

    input: str
    tail: str
    took: tuple[int, ...]
    notes: tuple[str, ...]
    seen: Seen
    table: Table
    last: str
    full: int
    digest: str

    @property
    def newest(self) -> ChatMessage:
        """The last message of the context: this turn's input with the tail."""
        return ChatMessage("user", f"{self.input}\n\n{self.tail}")


def choose_notes(tree: Tree, agent: Agent) -> tuple[str, ...]:
    """Functions whose documentation became relevant with the input that waits: by keyword or by name."""
    if tree.roles[agent.model].small:
        return ()
    text = " ".join([*agent.feedback, *(message.text for message in agent.inbox)]).lower()
    words = set(_WORDS.findall(text))
    found = [
        spec.name
        for spec in tree.registry(agent.path).functions()
        if spec.name not in agent.known
        and spec.documentation
        and (words.intersection(spec.keywords) or spec.name in text or (spec.alias or "\0").lower() in words)
    ]
    return tuple(found[:_NOTES])


def prepare(
    tree: Tree,
    agent: Agent,
    seen: Seen,
    *,
    notes: Sequence[str],
    took: Sequence[int] | None = None,
    last: str = "",
    full: int = 0,
) -> Prepared:
    """Build the context for an agent's next turn.

    `took`: records of the messages it holds (default: all that wait). `last`: why this turn is the agent's last
    ("turns", "tokens"), if it is. `full`: how full its context is, in percent, if it must be told.
    """
    wanted = None if took is None else set(took)
    inbox = [message for message in agent.inbox if wanted is None or message.n in wanted]
    table = agent.table.copy() if inbox else agent.table
    parts = [*_opening(tree, agent), *_documentation(tree, notes), *agent.feedback]
    parts += [receive(tree, message, table) for message in inbox]
    remaining = tree.bounds.turns - agent.turns
    if last in _LAST:
        parts.append(labels.note(_LAST[last]))
    elif remaining <= _TURNS_LEFT < tree.bounds.turns:
        parts.append(labels.note(f"{remaining} turns left for this task, this one included."))
    if full:
        parts.append(labels.context_full(full))
    text, end = "\n\n".join(parts), tail(seen, table)
    digest = agent.history.digest([ChatMessage("user", f"{text}\n\n{end}")])
    taken = tuple(message.n for message in inbox)
    return Prepared(text, end, taken, tuple(notes), seen, table, last, full, digest)


def _opening(tree: Tree, agent: Agent) -> Iterator[str]:
    if agent.fresh and agent.forked:
        yield labels.forked(agent.path, agent.caller, agent.role)
    elif agent.fresh:
        functions = tree.registry(agent.path).functions()
        role = tree.roles[agent.model]
        if role.small:
            # Such a model can use what its examples show it, and is only confused by more.
            shown = "".join(message.content for message in role.static.examples)
            functions = [
                spec for spec in functions if spec.name in shown or (spec.alias or spec.name) in shown
            ]
        listed = [(spec.name, spec.alias, spec.summary) for spec in functions]
        yield labels.opening(agent.path, agent.caller, agent.role, listed)


def _documentation(tree: Tree, notes: Sequence[str]) -> Iterator[str]:
    for name in notes:
        spec = tree.functions.get(name)
        if spec is not None:
            yield labels.documentation(spec.name, spec.alias, spec.documentation)


def receive(tree: Tree, message: Incoming, table: Table) -> str:
    """Put what a message brings into `table`, and label it."""
    if message.status != "ok":
        return labels.unfinished(message.child, message.status, message.text)
    names = {name: table.receive(name, value) for name, value in message.values.items()}
    text = rename(message.text, names)
    if message.kind == "intervention":
        _capture(text, table, message.source)
        return labels.intervention(text)
    brought = {new: table[new] for new in names.values()}
    if message.kind != "child":
        _capture(text, table, message.source)
        return labels.message(message.source, text, brought)
    reply = text_value(text, media="text/markdown", origin=message.child)
    variable = table.keep(message.child.rsplit("/", 1)[1], reply)
    _capture(text, table, message.child)
    shown = labels.shorten(text, tree.bounds.shown, variable)
    return labels.message(f"your child {message.child}, kept as ${variable}", shown, brought)


def _capture(text: str, table: Table, origin: str) -> None:
    """Every fenced code block of an incoming message becomes `code_1`, `code_2`, …"""
    for block in scan(text, lambda name: False).blocks:
        table.keep("code", code_value(block.info, block.body, origin))


def code_value(info: str, body: str, origin: str) -> Value:
    """A code block as a value; the first word of its info string is kept as the type."""
    language = info.split(None, 1)[0].lower() if info else "plain"
    return text_value(body, media=f"text/{language}", origin=origin)
