"""What becomes of a model's reply: which of its blocks are run, what its agent is told, whether it is the answer.

A reply either does what it meant, or its agent is told in one line what to write instead: nothing of it is dropped in
silence. The shell asks this before it records a reply, and the fold again when it applies the record, so both come to
the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from iact.core.language import bare, labels, unread
from iact.core.language.actions import (
    ANSWER,
    HELP,
    LOAD,
    QUERY,
    RECALL,
    SHOW,
    WAIT,
    ActionSpec,
    Registry,
)
from iact.core.language.announcing import announces
from iact.core.language.foreign import resolver
from iact.core.language.rewriting import calls_left, is_plain
from iact.core.language.scanner import Block
from iact.core.language.variables import Value, misnamed
from iact.core.records.dialogue import Generation, Held
from iact.core.tree.agent import Agent
from iact.core.tree.child_waits import running_children
from iact.core.tree.expected_functions import with_expected
from iact.core.tree.interpret import BESIDE_ANSWER
from iact.core.tree.prepared_context import ReadReply
from iact.core.tree.tree import Tree

_WAITING: Final = frozenset({WAIT.name, QUERY.name})
_LOOKING: Final = _WAITING | {HELP.name, SHOW.name, RECALL.name}
"""Actions that only bring their agent something to read, and that a text may name without meaning them."""

_TEXTS: Final = frozenset(
    {"content", "changes", "message", "text", "summary", "source", "value", "plan", "folder"}
)
"""Names of parameters whose body is a text that is kept or sent. Other bodies are programs."""


def read_reply(
    tree: Tree,
    agent: Agent,
    text: str,
    blocks: Sequence[Block],
    made: Generation,
    *,
    table: Mapping[str, Value],
    interrupted: bool,
) -> ReadReply:
    """Understand a reply.

    `table`: the variables that its agent had when it wrote. `interrupted`: it must read a message first, so that the
    reply is no answer in any case.
    """
    if not tree.follows_1_3:
        acts = any(block.action for block in blocks)
        return ReadReply(tuple(blocks), (), _held(tree, agent, acts, interrupted), acts)

    if not text.strip() and not agent.guards.only_thought:
        return ReadReply((), (labels.only_thought(),), "thoughts", acts=False)

    registry = tree.registry(agent.path)
    blocks = with_expected(blocks, registry)
    acts = any(block.action for block in blocks)
    run, remarks = _runs(text, blocks, made, registry)
    if made.finish == "cut":
        remarks.append(labels.cut_off())

    names = _names(blocks, registry) if acts else set()
    questions = _questions(agent, text, blocks, registry, acts=acts, goes_on=bool(names - BESIDE_ANSWER))
    if not questions and names & _LOOKING and _may_have_answered(tree, agent, text, blocks, names, made.took):
        questions = (labels.NOT_ANSWERED,)
    if not acts and not questions:
        questions = _misspelt(agent, text, table)
    remarks += [labels.note(question) for question in questions]
    if questions and not acts and not interrupted:
        return ReadReply(run, tuple(remarks), "unread", acts, questions=questions)

    held = _held(tree, agent, acts, interrupted)
    unsure = any(map(labels.is_no_block, questions))
    answer = "" if held or interrupted or unsure else _answer(agent, text, blocks, run, registry)
    if not answer:
        return ReadReply(run, tuple(remarks), held, acts, "", questions)

    says_so = [block for block in run if block.action and _name(block) == ANSWER.name]
    if says_so and announces(answer):
        answer = ""  # what it announces was written before
    elif says_so:
        # It is the answer that this text ends with, and no other.
        run = tuple(block for block in run if block not in says_so)
    elif _announces(text, blocks):
        remarks.append(labels.note(labels.NOT_ANSWERED))
        answer = ""
    if answer and _held(tree, agent, False, interrupted):
        # It would be an answer, and so it is held as any other.
        return ReadReply(run, tuple(remarks), "children", acts, questions=questions)
    return ReadReply(run, tuple(remarks), held, acts, answer, questions)


def _held(tree: Tree, agent: Agent, acts: bool, interrupted: bool) -> Held:
    """Whether a text without actions has to wait for children of the agent that are still at work."""
    if acts or interrupted or agent.guards.warned or not running_children(tree, agent):
        return ""
    return "children"


def _runs(
    text: str, blocks: Sequence[Block], made: Generation, registry: Registry
) -> tuple[tuple[Block, ...], list[str]]:
    """The blocks that are run, and what is said about the others."""
    remarks: list[str] = []
    run = list(blocks)
    early = unread.closed_early(text, blocks, writes=lambda block: _writes(block, registry))
    if early is not None:
        # What stands behind it may be a part of its body, quoted examples of actions included.
        fence = unread.fence_of(text, blocks[early])
        others = any(block.action for block in blocks[early + 1 :])
        remarks.append(labels.closed_early(_name(blocks[early]), fence, others=others))
        run = [block for index, block in enumerate(blocks) if index < early or not block.action]
    elif blocks and blocks[-1].action and not blocks[-1].closed:
        fence = unread.fence_of(text, blocks[-1])
        name, inside = _name(blocks[-1]), unread.actions_in(blocks[-1].body, registry.is_action)
        remarks.append(labels.unclosed(name, fence, inside, cut_off=made.finish == "length"))
        run = run[:-1]
    return tuple(run), remarks


def _questions(
    agent: Agent, text: str, blocks: Sequence[Block], registry: Registry, *, acts: bool, goes_on: bool
) -> tuple[str, ...]:
    """What is asked or said about parts that were perhaps meant to be run. `goes_on`: the reply is no answer, since it
    holds actions that can't be done beside one.

    Whether a text is an answer is asked once in a task. A call of something that does not exist is no answer, so
    another one is told again.
    """
    told = agent.guards.asked
    found = list[str]()
    if not is_plain(text, blocks):
        found += [_calls(text, registry, goes_on=goes_on), _unknown_block(blocks, registry)]
    found.append(_lines(text, blocks, registry, acts=acts))
    if not _was_asked(agent):
        found.append(_quoted(text, blocks, registry))
        if not acts:
            found.append(_commands(text, blocks, registry))
            found.append(_almost(text, blocks, registry) if not any(found) else "")
    if goes_on and len(blocks) > 1 and not told & unread.PASSED_OVER:
        found.append(unread.passed_over(text, blocks, registry))
    return tuple([question for question in found if question and question not in told])


def _may_have_answered(
    tree: Tree,
    agent: Agent,
    text: str,
    blocks: Sequence[Block],
    names: AbstractSet[str],
    took: Sequence[int],
) -> bool:
    """Whether a reply was perhaps an answer, although it holds an action: a line such as `HELP docs` is read as one.

    `names`: of all its actions. `took`: the messages that its agent had read when it wrote. It is told once in a task
    that its text was no answer.
    """
    if names - _LOOKING - BESIDE_ANSWER or _was_asked(agent):
        return False
    if names & _WAITING and _has_children_to_hear(tree, agent, took):
        return False
    before = text[: next(block.start for block in blocks if block.action)]
    return bool(unread.prose(text, blocks)) and not announces(before)


def _has_children_to_hear(tree: Tree, agent: Agent, took: Sequence[int]) -> bool:
    """Whether there is a child to wait for, or a reply of one that was not read."""
    # While a reply is written, what it took is still in the inbox; when it is recorded, no longer.
    unheard = any(message.kind == "child" and message.n not in took for message in agent.mail.inbox)
    return unheard or bool(running_children(tree, agent))


def _was_asked(agent: Agent) -> bool:
    """Whether an agent was asked in this task whether a text was its answer. A mere remark asks nothing."""
    return any(map(labels.asks_about_answer, agent.guards.asked))


def _lines(text: str, blocks: Sequence[Block], registry: Registry, *, acts: bool) -> str:
    """What is said about lines that look like actions and are none."""
    if not bare.may_be_left(text):
        return ""
    if unread.closed_early(text, blocks, writes=lambda block: _writes(block, registry)) is not None:
        return ""  # they are perhaps a part of a body, and their agent is told of that
    lines = bare.left(text, blocks, registry)
    return labels.no_block(lines, acts=acts) if lines else ""


def _misspelt(agent: Agent, text: str, table: Mapping[str, Value]) -> tuple[str, ...]:
    """What is asked about an answer that names a variable wrongly, if there is one that was probably meant.

    Only of a child, which hands values to its caller by their names. Its caller is told of the other names.
    """
    if agent.caller == "user" or _was_asked(agent):
        return ()
    likely = {name: nearest for name, nearest in misnamed(text, table, in_code=False).items() if nearest}
    return (labels.misspelt(likely),) if likely else ()


def _quoted(text: str, blocks: Sequence[Block], registry: Registry) -> str:
    name = unread.quoted(text, blocks, registry.is_action)
    return labels.quoted(name) if name else ""


def _commands(text: str, blocks: Sequence[Block], registry: Registry) -> str:
    """What is said about commands at the end of a reply without an action."""
    language = unread.command_at_end(text, blocks)
    function = unread.RUNNERS.get(language.lower(), "")
    return labels.not_run(language, function) if function in registry else ""


def _almost(text: str, blocks: Sequence[Block], registry: Registry) -> str:
    """What is said about a reply that ends in an action but for the spelling of its function."""
    found = bare.almost(text, blocks, registry)
    if found is None:
        return ""
    if found.exists:
        return labels.almost(found.line, found.name)
    return _of_unknown(found.name, registry)


def _unknown_block(blocks: Sequence[Block], registry: Registry) -> str:
    """What is said about a block that names an action or a function that does not exist; empty if there is none.

    Which modules the catalogue has is not known here, so it may be of one that is not loaded.
    """
    name = unread.unknown_name(blocks)
    return _of_unknown(name, registry) if name else ""


def _of_unknown(name: str, registry: Registry) -> str:
    near = registry.nearest(name) if "." in name else registry.nearest_actions(name)
    return labels.unknown_block(name, near, loads=LOAD.name in registry)


def _calls(text: str, registry: Registry, *, goes_on: bool) -> str:
    """What is said about calls in another form that were not made; empty if there are none.

    `goes_on`: the reply is no answer, so a call that is made elsewhere in it is no example for its reader.
    """
    left = calls_left(text, registry)
    found = next(iter([*left.unknown, *(left.passed_over if goes_on else ())]), None)
    if found is None:
        return ""
    resolve = resolver(registry.names)
    unknown = next((call.name for call in found.calls if not resolve(call.name)), "")
    nearest = _nearest(unknown, registry) if unknown else []
    return labels.other_form(text[found.start : found.end], unknown, nearest)


def _nearest(unknown: str, registry: Registry) -> list[str]:
    """The functions that a name is like, and those that its words mean: `bash_execute` is `shell.run`."""
    words = [word for word in re.split(r"[^a-z0-9]+", unknown.lower()) if word]
    meant = [unread.RUNNERS[word] for word in words if word in unread.RUNNERS]
    names = [*(name for name in meant if name in registry), *registry.nearest(unknown)]
    return list(dict.fromkeys(names))[:3]


def _answer(
    agent: Agent, text: str, blocks: Sequence[Block], run: Sequence[Block], registry: Registry
) -> str:
    """What remains of a reply if all its actions can be done beside an answer; else empty."""
    if len(run) < len(blocks):
        return ""

    acts = False
    for block in run:
        if not block.action:
            continue
        acts = True
        spec = registry.find(_name(block))
        # What a message deploys or loads, and then calls, is not known yet.
        if spec is None or (isinstance(spec, ActionSpec) and spec.name not in BESIDE_ANSWER):
            return ""

        # Who was asked whether a message was the answer means that one, whatever stands beside the word. An ANSWER
        # with a body is one by itself.
        says_so = isinstance(spec, ActionSpec) and spec.name == ANSWER.name
        if says_so and (_was_asked(agent) or block.body.strip()):
            return ""
    return unread.prose(text, blocks) if acts else ""


def _names(blocks: Sequence[Block], registry: Registry) -> set[str]:
    """The names of the actions among these blocks."""
    specs = [registry.find(_name(block)) for block in blocks if block.action]
    return {spec.name for spec in specs if isinstance(spec, ActionSpec)}


def _announces(text: str, blocks: Sequence[Block]) -> bool:
    """Whether a reply stops at its first action, of which its text only says that it comes."""
    acting = [block for block in blocks if block.action]
    behind = text[acting[-1].end :].strip()
    return not behind and announces(text[: acting[0].start])


def _name(block: Block) -> str:
    return block.info.split(None, 1)[0] if block.info else ""


def _writes(block: Block, registry: Registry) -> bool:
    spec = registry.find(_name(block)) if block.action else None
    return isinstance(spec, ActionSpec) and spec.body in _TEXTS
