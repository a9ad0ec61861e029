"""Documentation by use: an agent reads about a function when it is about to need it, once until its history is cut.

A note comes when

1. a message of its caller or of a person names the function, its module, or what it is for;
2. a call of it was refused for its form: then it is in the same feedback;
3. the agent asked for it with HELP;
4. a state of its module opens it: then it stands with the news about the state;
5. a file of its kind is uploaded.

Actions that the static prompt teaches come by 2 and 3 alone.
Results, replies of children and tracebacks bring none, whatever words are in them. A message brings three notes at
most; what else it is about is named behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from iact.core.context.prompt import TAUGHT
from iact.core.context.signature import lines, signature
from iact.core.language import labels
from iact.core.language.actions import CORE_ACTIONS, PLAN, ActionSpec
from iact.core.tree import origin
from iact.core.tree.agent import Agent
from iact.core.tree.mail import Incoming
from iact.core.tree.named_functions import named
from iact.core.tree.opening import documented_at_first, is_listed, is_open_to
from iact.core.tree.tree import Tree

MOST: Final = 3
"""The most notes that one message brings."""

FRONT: Final = -1
"""The place of the notes in the first journals: before everything else."""

_MORE: Final = 8
"""The most functions that are only named behind the notes of a message."""

_REMINDERS: Final = 8
"""The most functions that a cut leaves a note about: those that were used last."""

_FIRST_LINES: Final = 3
"""The most lines about such a function, besides its signature."""

_FOR_TABLES: Final = ("python.run", "sql.query")
_FOR_DOCUMENTS: Final = ("docs.read",)
_FOR_KINDS: Final[Mapping[str, Sequence[str]]] = {
    **dict.fromkeys(("csv", "tsv", "tab-separated-values", "parquet", "json", "sqlite"), _FOR_TABLES),
    **dict.fromkeys(("xlsx", "xls", "ods", "sheet", "ms-excel"), (*_FOR_DOCUMENTS, "python.run")),
    **dict.fromkeys(("pdf", "docx", "doc", "odt", "pptx", "document", "msword"), _FOR_DOCUMENTS),
}
"""The functions that read a kind of file, by the end of its name or of its media type."""


def _undocumented(tree: Tree, agent: Agent, known: AbstractSet[str]) -> list[ActionSpec]:
    """The functions and actions that an agent could use and whose documentation it has not read."""
    if tree.roles[agent.model].small:
        return []
    hidden = known | TAUGHT
    return [
        spec
        for spec in tree.registry(agent.path).documented
        if spec.name not in hidden and is_open_to(tree, agent, spec)
    ]


def choose_notes(tree: Tree, agent: Agent) -> dict[str, int]:
    """Choose the functions whose documentation the waiting messages make relevant.

    Returns each with the record of the message that its note follows. What a message brings depends on that message and
    on those before it: a failed generation is repeated with whatever has arrived since, and what was already sent must
    not move.
    """
    notes = dict[str, int]()
    for message in agent.mail.ready:
        for name in _relevant(tree, agent, message, notes)[:MOST]:
            notes[name] = message.n
    return notes


def noted(notes: Mapping[str, int] | tuple[str, ...] | None) -> dict[str, int]:
    """Return the notes of a turn's record.

    In the first journals they were a mere list, which came before everything else.
    """
    if isinstance(notes, tuple):
        return dict.fromkeys(notes, FRONT)
    return dict(notes or {})


def documented(tree: Tree, notes: Iterable[str], catalogue: int | None) -> list[ActionSpec]:
    """The functions that the notes are about. `catalogue`: the record since which the functions are as documented."""
    functions = tree.functions if catalogue is None else tree.catalogues.get(catalogue, {})
    found = [functions.get(name) or CORE_ACTIONS.get(name) for name in notes]
    return [spec for spec in found if spec is not None]


def note_texts(tree: Tree, notes: Mapping[str, int], catalogue: int | None) -> dict[int, list[str]]:
    """Return the texts of notes, by the record of the message that they follow."""
    texts = dict[int, list[str]]()
    for name, place in notes.items():
        there = texts.setdefault(place, [])
        there += [note(tree, spec) for spec in documented(tree, [name], catalogue)]
    return texts


def more_about(tree: Tree, agent: Agent, message: Incoming, notes: Mapping[str, int]) -> Iterator[str]:
    """Yield what a message that has notes is about besides them, as a paragraph behind them."""
    given = [name for name, place in notes.items() if place == message.n]
    earlier = {name: place for name, place in notes.items() if place != message.n}
    more = [name for name in _relevant(tree, agent, message, earlier) if name not in given]
    # A module that the first message only named comes with all its signatures once it is wanted.
    modules = {name.split(".", 1)[0] for name in (*given, *more)}
    specs = tree.registry(agent.path).functions()
    unlisted = [
        spec
        for spec in specs
        if spec.module in modules
        and spec.name not in given
        and not is_listed(tree, spec)
        and spec.name not in _known(tree, agent)
        and is_open_to(tree, agent, spec)
    ]
    if unlisted:
        yield labels.more_help((), lines(unlisted[:_MORE]))
    named_only = [name for name in more if name not in {spec.name for spec in unlisted}]
    if named_only:
        yield labels.more_help(named_only[:_MORE])


def note(tree: Tree, spec: ActionSpec) -> str:
    """The documentation of a function or an action, as an agent reads it.

    It begins with the signature, unless that is in the list of the first message.
    """
    text = spec.documentation
    if spec.name == PLAN.name and tree.kept:
        text += labels.kept_plans(tree.kept)
    if spec.core or not is_listed(tree, spec):
        text = f"{signature(spec)}\n{text}"
    return labels.documentation(spec.name, spec.alias, text)


def learn(tree: Tree, agent: Agent, specs: Iterable[ActionSpec]) -> list[str]:
    """Let an agent read the documentation of these functions now. Returns the notes of those that it did not know."""
    known = _known(tree, agent)
    told = list[str]()
    for spec in specs:
        if spec.documentation and spec.name not in known:
            told.append(note(tree, spec))
            agent.context.known.add(spec.name)
            origin.document(agent, [spec])
    return told


def refused(tree: Tree, agent: Agent, spec: ActionSpec, sentence: str) -> str:
    """What an agent reads when a call of a function was refused for its form: why, the signature, and the note."""
    if tree.roles[agent.model].small or not tree.follows_1_3:
        return sentence
    return "\n\n".join([f"{sentence}\nIt is used so: `{signature(spec)}`", *learn(tree, agent, [spec])])


def remind(tree: Tree, agent: Agent) -> list[str]:
    """Forget what an agent has read about functions, as its history is cut. Returns notes on those that it used since
    the last cut: how each is called, and the first lines about it.

    What is in its first message stays, and is not repeated.
    """
    used = agent.context.cut()
    registry = tree.registry(agent.path)
    told = list[str]()
    for name in [name for name in used if name not in TAUGHT][-_REMINDERS:]:
        spec = registry.find(name)
        if isinstance(spec, ActionSpec) and is_open_to(tree, agent, spec):
            about = spec.documentation.partition("\n\n")[0].split("\n")[:_FIRST_LINES]
            told.append(labels.shortened_documentation(spec.name, "\n".join([signature(spec), *about])))
            agent.context.known.add(spec.name)
            origin.document(agent, [spec])
    return told


def opened(tree: Tree, agent: Agent, specs: Iterable[ActionSpec]) -> list[str]:
    """The notes about functions that a state of their module opens."""
    if tree.roles[agent.model].small:
        return []
    known = _known(tree, agent)
    new = [spec for spec in specs if spec.documentation and spec.name not in known]
    told = learn(tree, agent, new[:MOST])
    return [*told, labels.more_help([spec.name for spec in new[MOST:]])] if new[MOST:] else told


def _relevant(tree: Tree, agent: Agent, message: Incoming, notes: Mapping[str, int]) -> list[str]:
    """The functions that a message is about and that an agent does not know yet, the best match first.

    `notes`: what messages before it brought.
    """
    known = _known(tree, agent) | notes.keys()
    specs = _undocumented(tree, agent, known)
    if not specs:
        return []
    if message.kind == "upload":
        return _for_upload(message, specs)
    if message.kind not in ("say", "intervention", "caller"):
        return []

    # The task of a plan's step mentions its plan; that is no reason to write a plan.
    caller = tree.agents.get(agent.caller)
    is_step = message.kind == "caller" and caller is not None and caller.plan is not None
    if is_step:
        specs = [spec for spec in specs if spec.name != PLAN.name]

    # Whoever knows some functions of a module has met it; its mere name brings no more of them.
    met = {name.split(".", 1)[0] for name in known}
    return named(message.text, specs, met, tree.kept)


def _for_upload(message: Incoming, specs: Sequence[ActionSpec]) -> list[str]:
    there = {spec.name for spec in specs}
    kinds = [message.file.rsplit(".", 1)[-1].lower()]
    for value in message.values.values():
        kinds += value.media.lower().replace("/", ".").split(".")

    wanted = dict[str, None]()
    for kind in kinds:
        wanted.update(dict.fromkeys(_FOR_KINDS.get(kind, ())))
    return [name for name in wanted if name in there]


def _known(tree: Tree, agent: Agent) -> set[str]:
    """The functions whose documentation an agent has read, or reads with its first message."""
    if not agent.context.fresh:
        return agent.context.known
    return agent.context.known | {spec.name for spec in documented_at_first(tree, agent, None)}
