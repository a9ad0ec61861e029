"""Counts over the records of a session: which documentation was given, used and missing, and which turns were lost."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.contexts.segments import Kind, segments
from iact.core.language.actions import CORE_ACTIONS
from iact.core.language.scanner import scan
from iact.core.ports import ChatMessage
from iact.core.records.calls import Call, Result, Select
from iact.core.records.dialogue import Generation, Reply, Turn
from iact.core.records.record import Record
from iact.core.records.session import Module
from iact.core.stored.replay import contexts_of

SOON: Final = 3
"""A note is of use if its function is written in this many turns, the one that reads it included."""

_TAUGHT: Final = frozenset(
    {"CALL", "CALL_ASYNC", "WAIT", "QUERY", "VAR", "SHOW", "REMEMBER", "RECALL", "HELP", "ANSWER"}
)
"""Actions that the fixed prompt teaches: nothing else has to document them."""

_KEEPS: Final = frozenset({"VAR", "COMPRESS"})
"""Actions that have an effect without a record of their own."""

_READS: Final = frozenset({"SHOW", "HELP"})

_CONFIRMS: Final = frozenset({"ANSWER"})

_COMMANDS: Final = frozenset(
    {"bash", "sh", "shell", "console", "zsh", "python", "py", "tool_code", "tool_call"}
)
_CALLS: Final = re.compile(r"<tool_call>|<function=|<invoke |\[TOOL_CALLS\]|<\|python_tag\|>")
_MANIFEST: Final = re.compile(r"`{3,}json\n(.*)\n`{3,}", re.DOTALL)
"""The body of a `module` record, unless it is the reason why the module is gone."""

_BARE: Final = re.compile(rf"[`*]*(?:{'|'.join(sorted(CORE_ACTIONS))})\b[^\n]*")
"""The name of an action at the beginning of a line, as it is written without a block."""

_LEFT_OUT: Final = re.compile(r"Notice by the system: [^\n]*(?:left out|was not run|not run)", re.IGNORECASE)


@dataclass
class Counts:
    """What was counted, in one session or several."""

    sessions: int = 0
    requests: int = 0
    turns: int = 0
    notes: int = 0
    """Notes of documentation that were given."""
    notes_used: int = 0
    """Notes whose function was written within `SOON` turns."""
    pairs: int = 0
    """Pairs of an agent and a function that it wrote."""
    pairs_documented: int = 0
    """Pairs whose function had a signature or a note in the context of its first use."""
    shortened: int = 0
    """Replies of which something was cut off."""
    shortened_told: int = 0
    """Shortened replies whose agent read in its next context that something was left out."""
    unsaid: int = 0
    """Answers that end with a command or a call in another form that was never run, and that nobody asked about."""
    idle: int = 0
    """Turns after which nothing had happened: all of their actions were refused, or none was understood."""
    reading: int = 0
    """Turns that only read a variable or documentation."""
    confirming: int = 0
    """Turns that only said that the text before was the answer."""
    child_characters: int = 0
    """Characters of the last contexts of agents below the root."""
    child_needless: int = 0
    """Of these, the notes about functions that the agent never wrote."""
    characters: Counter[Kind] = field(default_factory=Counter)
    """Characters of the agents' last contexts, by kind."""

    def add(self, other: Counts) -> None:
        """Add what was counted elsewhere."""
        for name in self.__dataclass_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, Counter):
                mine.update(theirs)
            else:
                setattr(self, name, mine + theirs)


@dataclass
class _Agent:
    """One agent, as far as its records were read."""

    turn: int = 0
    noted: list[tuple[str, int]] = field(default_factory=list)
    """The functions of notes, each with the turn that read it first."""
    known: set[str] = field(default_factory=set)
    """Functions whose signature or documentation it has read."""
    documented: set[str] = field(default_factory=set)
    """Functions that it knew when it wrote them first."""
    written: dict[str, list[int]] = field(default_factory=dict)
    """The turns that wrote a function."""
    context: Sequence[ChatMessage] = ()
    was_shortened: bool = False


@dataclass
class _Wrote:
    """The actions of one turn, and whether anything came of them."""

    names: tuple[str, ...]
    acted: bool


def count(records: Sequence[Record], blobs: Callable[[str], bytes]) -> Counts:
    """Count over one session, from its first record. `blobs` reads a blob by its SHA-256."""
    counts = Counts(sessions=1)
    names = _names(records)
    agents: dict[str, _Agent] = {}
    wrote: dict[int, _Wrote] = {}

    for record, context in contexts_of(records, blobs):
        generation = _generation(record)
        if generation is not None:
            agent = agents.setdefault(record.agent, _Agent())
            _read(counts, agent, context, names)
            actions = _actions(record, agent, names)
            counts.shortened += generation.cut > 0
            agent.was_shortened = generation.cut > 0
            if isinstance(record.content, Turn):
                wrote[record.n] = _Wrote(actions, acted=not _KEEPS.isdisjoint(actions))
            else:
                counts.unsaid += _ends_unsaid(record.body)
        _note_effect(record, wrote)

    counts.turns = len(wrote)
    for one in wrote.values():
        only_reads = bool(one.names) and _READS.issuperset(one.names)
        only_confirms = bool(one.names) and _CONFIRMS.issuperset(one.names)
        counts.reading += only_reads
        counts.confirming += only_confirms
        counts.idle += not (one.acted or only_reads or only_confirms)
    for path, agent in agents.items():
        _sum_up(counts, agent, is_child=path != "/")
    return counts


def _generation(record: Record) -> Generation | None:
    match record.content:
        case Turn(generation=generation) | Reply(generation=generation):
            return generation
    return None


def _names(records: Iterable[Record]) -> dict[str, str]:
    """All names of functions and actions, aliases included, each with the function's own name."""
    names = {name: name for name in CORE_ACTIONS}
    for record in records:
        manifest = _MANIFEST.fullmatch(record.body.strip())
        if isinstance(record.content, Module) and manifest is not None:
            for function in json.loads(manifest[1])["functions"]:
                name = f"{record.content.name}.{function['name']}"
                names[name] = name
                if function.get("alias"):
                    names[function["alias"]] = name
    return names


def _read(counts: Counts, agent: _Agent, context: Sequence[ChatMessage], names: dict[str, str]) -> None:
    """Take what an agent reads for the first time: the newest message of a context."""
    counts.requests += 1
    agent.turn += 1
    newest = list(segments(context[-1:] if agent.context else context))
    for segment in newest:
        if segment.kind == "notes":
            agent.noted.append((segment.name, agent.turn))

    told = "\n".join(segment.text for segment in newest)
    agent.known.update(name for name in set(names.values()) if _has_signature(told, name))
    if agent.was_shortened and _LEFT_OUT.search(context[-1].content):
        counts.shortened_told += 1
    agent.context = context


def _has_signature(text: str, name: str) -> bool:
    """Whether a text says how a function is called: its documentation, or a line with its parameters."""
    if f"Documentation of `{name}`" in text:
        return True
    line = rf"^[-* `]*{re.escape(name)}\b[^\n]* · "
    in_short = rf"^- rarely needed\b[^\n]*`{re.escape(name)}[ `]"
    return re.search(f"{line}|{in_short}", text, re.MULTILINE) is not None


def _actions(record: Record, agent: _Agent, names: dict[str, str]) -> tuple[str, ...]:
    """The actions that a reply writes, by the functions' own names."""
    blocks = scan(record.body, names.__contains__).blocks
    written = tuple(names[block.info.split(None, 1)[0]] for block in blocks if block.action)
    for name in written:
        if name not in agent.written and name in agent.known:
            agent.documented.add(name)
        agent.written.setdefault(name, []).append(agent.turn)
    return written


def _note_effect(record: Record, wrote: dict[int, _Wrote]) -> None:
    """Note that something came of a turn's action."""
    match record.content:
        case Call(turn=turn) | Select(turn=turn) if turn in wrote:
            wrote[turn].acted = True
        case Result(turn=turn, status=status) if turn in wrote:
            wrote[turn].acted = wrote[turn].acted or status in ("ok", "error")


def _ends_unsaid(text: str) -> bool:
    """Whether an answer's last block is a command, or the answer holds a call in a form of other products."""
    if _CALLS.search(text) or _BARE.fullmatch(text.strip().rpartition("\n")[2]):
        return True
    blocks = scan(text, lambda name: False).blocks
    if not blocks or text[blocks[-1].end :].strip():
        return False
    language = (blocks[-1].info.split(None, 1) or [""])[0].lower()
    return language in _COMMANDS


def _sum_up(counts: Counts, agent: _Agent, *, is_child: bool) -> None:
    """Count what is known about an agent at the end of its session."""
    counts.notes += len(agent.noted)
    for name, turn in agent.noted:
        counts.notes_used += any(turn <= at < turn + SOON for at in agent.written.get(name, ()))

    for name in agent.written:
        if name not in _TAUGHT and name != "COMPRESS":
            counts.pairs += 1
            counts.pairs_documented += name in agent.documented

    for segment in segments(agent.context):
        counts.characters[segment.kind] += len(segment.text)
        if is_child:
            counts.child_characters += len(segment.text)
            needless = segment.kind == "notes" and segment.name not in agent.written
            counts.child_needless += len(segment.text) if needless else 0
