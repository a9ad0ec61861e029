"""How a turn changes its agent: the context that it answers and its text become history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iact.core.context.tail import Told
from iact.core.context.tokens import Calibration, estimate, estimate_messages
from iact.core.gate.provenance import join
from iact.core.language.labels import ONLY_THOUGHT
from iact.core.language.scanner import Block, scan
from iact.core.ports import ChatMessage, Usage
from iact.core.records.dialogue import Generation, LastTurn
from iact.core.records.parts import Tokens
from iact.core.records.record import Record
from iact.core.tree import chronicle, origin
from iact.core.tree.agent import Agent
from iact.core.tree.contexts import labels_shown, prepare
from iact.core.tree.expectations import expect
from iact.core.tree.notes import documented, noted
from iact.core.tree.opening import documented_at_first, opening_specs
from iact.core.tree.prepared_context import Foreseen, PreparedContext, ReadReply
from iact.core.tree.standing import told_standing
from iact.core.tree.tree import Tree
from iact.core.tree.window import own_reply


def answered(tree: Tree, agent: Agent, made: Generation, last: LastTurn) -> PreparedContext:
    """Build the context that a text answers, from what its record says was seen."""
    return prepare(
        tree, agent, made.seen, notes=noted(made.notes), took=made.took, last=last, full=made.full
    )  # fmt: skip


def _check(tree: Tree, agent: Agent, record: Record, made: Generation) -> None:
    """Check what the record says about a text beyond the context."""
    known = tree.roles.get(agent.model)
    same = made.role == agent.model and (known is None or made.model == known.model)
    expect(tree, record, same, "is by another model than its agent has")
    notes = made.notes
    if notes is not None:
        real = (
            isinstance(notes, Mapping) and len(documented(tree, notes, made.seen.catalogue)) == len(notes) > 0
        )
        placed = isinstance(notes, Mapping) and {*notes.values()} <= {0, *made.took}
        expect(tree, record, real and placed, "notes what stands in no documentation")


@dataclass(frozen=True, slots=True)
class TakenTurn:
    """A turn whose input and text have become history."""

    blocks: Sequence[Block]
    """The fenced blocks of the text."""
    read: ReadReply | None
    """What becomes of the text, if the code that requested it has read it."""


def take_turn(
    tree: Tree, agent: Agent, record: Record, made: Generation, *, last: LastTurn = ""
) -> TakenTurn:
    """Apply a turn: the model's input and its text become history.

    `last`: why this was the agent's last turn.
    """
    sent = made.context
    foreseen = _foreseen(tree, agent)
    if foreseen is not None and foreseen.prepared.digest == sent:
        prepared = foreseen.prepared
    else:
        prepared = answered(tree, agent, made, last)

    read: ReadReply | None = None
    if foreseen is not None and foreseen.scanned.kept == record.body:
        blocks = foreseen.scanned.blocks
        read = foreseen.read
    else:
        blocks = scan(record.body, tree.registry(agent.path).is_action).blocks

    if prepared.digest != sent:
        expect(tree, record, False, f"answers a context with digest {sent}, not {prepared.digest}")
    if tree.strict:
        _check(tree, agent, record, made)
    stays = tree.layout == "changes"
    agent.context.history.push(
        prepared.newest if stays else ChatMessage("user", prepared.input, prepared.parts)
    )
    agent.context.told = Told(prepared.seen, prepared.table.bindings) if stays else None
    agent.context.told_of_modules()
    for message in agent.mail.inbox:
        if message.n in prepared.took:
            origin.read(agent, message.labels | labels_shown(tree, agent, message, prepared.table))
            chronicle.hear(agent, message, record)
    origin.read(agent, prepared.sources)
    if told_standing(tree, agent):
        origin.read(agent, tree.standing.labels)
    if prepared.seen.files is not None:  # anyone who could write there chose the names
        origin.read(agent, tree.shared.files | join(tree.shared.writing.values()))
    agent.context.remembered = agent.mail.recalled or agent.context.remembered
    agent.mail.take(prepared.took)
    if agent.mail.refused:
        tree.refused[record.n] = tuple(agent.mail.refused)
        agent.mail.refused.clear()
    if agent.context.fresh:
        agent.context.first = prepared.input
        catalogue = prepared.seen.catalogue
        at_first = documented_at_first(tree, agent, catalogue)
        if not tree.all_vouched:
            origin.hear_names(tree, agent, opening_specs(tree, agent, catalogue))
            origin.document(agent, at_first)
        agent.context.begin([*(spec.name for spec in at_first), *prepared.notes])
    agent.table = prepared.table
    said = record.body if record.body.strip() or not tree.follows_1_3 else ONLY_THOUGHT
    agent.context.history.push(ChatMessage("assistant", own_reply(tree, agent, said)))
    agent.context.full_told = agent.context.full_told or prepared.full > 0
    _calibrate(tree, agent, made.usage, prepared)
    if prepared.notes:
        agent.context.known.update(prepared.notes)
        origin.document(agent, documented(tree, prepared.notes, prepared.seen.catalogue))
    agent.turn = record.n
    agent.answer = None
    agent.guards.turns += 1
    agent.all_turns += 1
    count(tree, agent, made.usage)
    return TakenTurn(blocks, read)


def _foreseen(tree: Tree, agent: Agent) -> Foreseen | None:
    """What was computed in advance for the record that is being applied; None if the state has changed since."""
    foreseen = tree.foreseen.pop(agent.path, None)
    # The record is a step of the agent itself.
    before = agent.step - 1, tree.epoch
    return foreseen if foreseen is not None and foreseen.stamp == before else None


def _calibrate(tree: Tree, agent: Agent, usage: Tokens, prepared: PreparedContext) -> None:
    """Learn from the endpoint's token count how far our estimate is off for this model."""
    if not usage.estimated:
        reply = agent.context.history.messages()[-1]
        dropped = estimate(prepared.tail) if tree.layout == "whole" else 0
        before = agent.context.history.tokens - estimate_messages([reply]) + dropped
        known = tree.calibrations.get(agent.model, Calibration())
        tree.calibrations[agent.model] = known.observe(before, usage.prompt)


def count(tree: Tree, agent: Agent, usage: Tokens, role: str = "") -> None:
    """Add the usage of a model call to what the agent has spent. `role`: set if the model is not the agent's own."""
    agent.account.spent += usage.prompt + usage.completion
    played = tree.roles.get(role or agent.model)
    if played is not None and played.price is not None:
        tree.cost += played.price.of(usage.prompt, usage.cached, usage.completion)
    old = agent.usage
    agent.usage = Usage(
        old.prompt_tokens + usage.prompt,
        old.cached_tokens + usage.cached,
        old.completion_tokens + usage.completion,
        old.estimated or usage.estimated,
    )
