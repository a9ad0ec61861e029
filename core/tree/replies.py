"""What becomes of a model's reply: which of its blocks are run, what its agent is told, whether it is the answer.

A reply either does what it meant, or its agent is told in one line what to write instead: nothing of it is dropped in
silence. The shell asks this before it records a reply, and the fold again when it applies the record, so both come to
the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import islice
from typing import Final

from iact.core.language import bare, labels, unread
from iact.core.language.actions import (
    ANSWER,
    HELP,
    LOAD,
    MOST_ACTIONS,
    QUERY,
    RECALL,
    SHOW,
    WAIT,
    ActionSpec,
    Registry,
)
from iact.core.language.announcing import announces
from iact.core.language.foreign import resolver
from iact.core.language.rewriting import CallsLeft, calls_left, is_plain
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


class ReplyText:
    """What the text of a reply says by itself, whatever was said before it. Each part is found when it is asked for.

    Finding all of it takes time in proportion to the text. The session finds it in a thread if the text is long
    (`find_all`); the fold, which is asked later, is then given what was found.
    """

    def __init__(self, text: str, blocks: Sequence[Block], registry: Registry) -> None:
        self.text: Final = text
        self.blocks: Final = with_expected(blocks, registry)
        self.registry: Final = registry

    def find_all(self) -> None:
        """Find everything that `read_reply` may ask for."""
        if not self.is_plain:
            _ = self.calls_left, self.unknown_block
        _ = self.lines, self.quoted, self.commands, self.almost, self.passed_over, self.prose, self.names

    @cached_property
    def acts(self) -> bool:
        """Whether it holds an action."""
        return any(block.action for block in self.blocks)

    @cached_property
    def names(self) -> AbstractSet[str]:
        """The names of its actions that exist."""
        specs = [self.registry.find(_name(block)) for block in self.blocks if block.action]
        return {spec.name for spec in specs if isinstance(spec, ActionSpec)}

    @cached_property
    def is_plain(self) -> bool:
        """Whether nothing in it can mean an action but its action blocks."""
        return is_plain(self.text, self.blocks)

    @cached_property
    def prose(self) -> str:
        """It without its action blocks."""
        return unread.prose(self.text, self.blocks)

    @cached_property
    def closed_early(self) -> int | None:
        """The first action block whose body probably goes on behind the fence that closed it."""
        return unread.closed_early(self.text, self.blocks, writes=lambda block: _writes(block, self.registry))

    @cached_property
    def calls_left(self) -> CallsLeft:
        """The calls in another form that were not made."""
        return calls_left(self.text, self.registry)

    @cached_property
    def unknown_block(self) -> str:
        """What is said about a block that names an action or a function that does not exist; empty if there is none.

        Which modules the catalogue has is not known here, so it may be of one that is not loaded.
        """
        name = unread.unknown_name(self.blocks)
        return _of_unknown(name, self.registry) if name else ""

    @cached_property
    def lines(self) -> str:
        """What is said about lines that look like actions and are none."""
        if not bare.may_be_left(self.text):
            return ""
        # They are perhaps a part of a body, and their agent is told of that.
        if self.closed_early is not None:
            return ""

        lines = bare.left(self.text, self.blocks, self.registry)
        return labels.no_block(lines, acts=self.acts) if lines else ""

    @cached_property
    def quoted(self) -> str:
        """What is said about an action in a quote."""
        name = unread.quoted(self.text, self.blocks, self.registry.is_action)
        return labels.quoted(name) if name else ""

    @cached_property
    def commands(self) -> str:
        """What is said about commands at the end of a reply without an action."""
        language = unread.command_at_end(self.text, self.blocks)
        function = unread.RUNNERS.get(language.lower(), "")
        return labels.not_run(language, function) if function in self.registry else ""

    @cached_property
    def almost(self) -> str:
        """What is said about a reply that ends in an action but for the spelling of its function."""
        almost = bare.almost(self.text, self.blocks, self.registry)
        if almost is None:
            return ""
        if almost.exists:
            return labels.almost(almost.line, almost.name)
        return _of_unknown(almost.name, self.registry)

    @cached_property
    def passed_over(self) -> str:
        """What is said about commands beside actions."""
        return unread.passed_over(self.text, self.blocks, self.registry)


def read_reply(
    tree: Tree,
    agent: Agent,
    text: str,
    blocks: Sequence[Block],
    made: Generation,
    *,
    table: Mapping[str, Value],
    interrupted: bool,
    reply: ReplyText | None = None,
) -> ReadReply:
    """Understand a reply.

    `table`: the variables that its agent had when it wrote. `interrupted`: it must read a message first, so that the
    reply is no answer in any case. `reply`: its text, if it was read before by the agent's registry.
    """
    if not tree.follows_1_3:
        acts = any(block.action for block in blocks)
        return ReadReply(tuple(blocks), (), _held(tree, agent, acts, interrupted), acts)

    if not text.strip() and not agent.guards.only_thought:
        return ReadReply((), (labels.only_thought(),), "thoughts", acts=False)

    registry = tree.registry(agent.path)
    if reply is None:
        reply = ReplyText(text, blocks, registry)
    acts = reply.acts
    run, remarks = _runs(reply, made)
    if made.finish == "cut":
        remarks.append(labels.cut_off())

    names = reply.names
    questions = _questions(agent, reply, goes_on=bool(names - BESIDE_ANSWER))
    if not questions and names & _LOOKING and _may_have_answered(tree, agent, reply, made.took):
        questions = (labels.NOT_ANSWERED,)
    if not acts and not questions:
        questions = _misspelt(agent, text, table)
    remarks += [labels.note(question) for question in questions]
    if questions and not acts and not interrupted:
        return ReadReply(run, tuple(remarks), "unread", acts, questions=questions)

    # The text beside actions can be an answer, too.
    held = _held(tree, agent, acts, interrupted)
    is_unsure = any(map(labels.is_no_block, questions))
    answer = ""
    if not (held or interrupted or is_unsure):
        answer = _answer(agent, reply, run)
    if not answer:
        return ReadReply(run, tuple(remarks), held, acts, "", questions)

    says_so = [block for block in run if block.action and _name(block) == ANSWER.name]
    if says_so and announces(answer):
        # What it announces was written before.
        answer = ""
    elif says_so:
        # It is the answer that this text ends with, and no other.
        run = tuple(block for block in run if block not in says_so)
    elif _announces(text, reply.blocks):
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


def _runs(reply: ReplyText, made: Generation) -> tuple[tuple[Block, ...], list[str]]:
    """The blocks that are run, and what is said about the others."""
    text = reply.text
    blocks = reply.blocks
    run = list(blocks)
    remarks: list[str] = []
    early = reply.closed_early
    if early is not None:
        # What stands behind it may be a part of its body, quoted examples of actions included.
        fence = unread.fence_of(text, blocks[early])
        others = any(block.action for block in blocks[early + 1 :])
        remarks.append(labels.closed_early(_name(blocks[early]), fence, others=others))
        run = [block for index, block in enumerate(blocks) if index < early or not block.action]
    elif blocks and blocks[-1].action and not blocks[-1].closed:
        last = blocks[-1]
        fence = unread.fence_of(text, last)
        inside = unread.actions_in(last.body, reply.registry.is_action)
        remarks.append(labels.unclosed(_name(last), fence, inside, cut_off=made.finish == "length"))
        run = run[:-1]

    taken = first_actions(run)
    if len(taken) < len(run):
        remarks.append(labels.too_many_actions(MOST_ACTIONS))
    return tuple(taken), remarks


def first_actions(blocks: Sequence[Block]) -> list[Block]:
    """Blocks up to the last that counts, if more than `MOST_ACTIONS` of them are actions or define a variable."""
    if len(blocks) <= MOST_ACTIONS:
        return list(blocks)

    counting = (index for index, block in enumerate(blocks) if block.action or "name=" in block.info)
    beyond = next(islice(counting, MOST_ACTIONS, None), len(blocks))
    return list(blocks[:beyond])


def _questions(agent: Agent, reply: ReplyText, *, goes_on: bool) -> tuple[str, ...]:
    """What is asked or said about parts that were perhaps meant to be run. `goes_on`: the reply is no answer, since it
    holds actions that can't be done beside one.

    Whether a text is an answer is asked once in a task. A call of something that does not exist is no answer, so
    another one is told again.
    """
    asked_before = agent.guards.asked
    questions = list[str]()
    if not reply.is_plain:
        questions += [_calls(reply, goes_on=goes_on), reply.unknown_block]
    questions.append(reply.lines)

    if not _was_asked(agent):
        questions.append(reply.quoted)
        if not reply.acts:
            questions.append(reply.commands)
            # A likeness is asked about only if there is nothing surer.
            if not any(questions):
                questions.append(reply.almost)

    may_pass_over = goes_on and len(reply.blocks) > 1
    if may_pass_over and not asked_before & unread.PASSED_OVER:
        questions.append(reply.passed_over)
    return tuple([question for question in questions if question and question not in asked_before])


def _may_have_answered(tree: Tree, agent: Agent, reply: ReplyText, took: Sequence[int]) -> bool:
    """Whether a reply was perhaps an answer, although it holds an action: a line such as `HELP docs` is read as one.

    `took`: the messages that its agent had read when it wrote. It is told once in a task
    that its text was no answer.
    """
    if reply.names - _LOOKING - BESIDE_ANSWER or _was_asked(agent):
        return False
    if reply.names & _WAITING and _has_children_to_hear(tree, agent, took):
        return False
    before = reply.text[: next(block.start for block in reply.blocks if block.action)]
    return bool(reply.prose) and not announces(before)


def _has_children_to_hear(tree: Tree, agent: Agent, took: Sequence[int]) -> bool:
    """Whether there is a child to wait for, or a reply of one that was not read."""
    # While a reply is written, what it took is still in the inbox; when it is recorded, no longer.
    unheard = any(message.kind == "child" and message.n not in took for message in agent.mail.inbox)
    return unheard or bool(running_children(tree, agent))


def _was_asked(agent: Agent) -> bool:
    """Whether an agent was asked in this task whether a text was its answer. A mere remark asks nothing."""
    return any(map(labels.asks_about_answer, agent.guards.asked))


def _misspelt(agent: Agent, text: str, table: Mapping[str, Value]) -> tuple[str, ...]:
    """What is asked about an answer that names a variable wrongly, if there is one that was probably meant.

    Only of a child, which hands values to its caller by their names. Its caller is told of the other names.
    """
    if agent.caller == "user" or _was_asked(agent):
        return ()
    likely = {name: nearest for name, nearest in misnamed(text, table, in_code=False).items() if nearest}
    return (labels.misspelt(likely),) if likely else ()


def _of_unknown(name: str, registry: Registry) -> str:
    near = registry.nearest(name) if "." in name else registry.nearest_actions(name)
    return labels.unknown_block(name, near, loads=LOAD.name in registry)


def _calls(reply: ReplyText, *, goes_on: bool) -> str:
    """What is said about calls in another form that were not made; empty if there are none.

    `goes_on`: the reply is no answer, so a call that is made elsewhere in it is no example for its reader.
    """
    left = reply.calls_left
    not_made = list(left.unknown)
    if goes_on:
        not_made += left.passed_over
    if not not_made:
        return ""

    first = not_made[0]
    written = reply.text[first.start : first.end]
    resolve = resolver(reply.registry.names)
    unknown = next((call.name for call in first.calls if not resolve(call.name)), "")
    nearest = _nearest(unknown, reply.registry) if unknown else []
    return labels.other_form(written, unknown, nearest)


def _nearest(unknown: str, registry: Registry) -> list[str]:
    """The functions that a name is like, and those that its words mean: `bash_execute` is `shell.run`."""
    words = [word for word in re.split(r"[^a-z0-9]+", unknown.lower()) if word]
    meant = [unread.RUNNERS[word] for word in words if word in unread.RUNNERS]
    names = [*(name for name in meant if name in registry), *registry.nearest(unknown)]
    return list(dict.fromkeys(names))[:3]


def _answer(agent: Agent, reply: ReplyText, run: Sequence[Block]) -> str:
    """What remains of a reply if all its actions can be done beside an answer; else empty."""
    if len(run) < len(reply.blocks):
        return ""

    acts = False
    for block in run:
        if not block.action:
            continue
        acts = True
        spec = reply.registry.find(_name(block))
        # What a message deploys or loads, and then calls, is not known yet.
        if spec is None or (isinstance(spec, ActionSpec) and spec.name not in BESIDE_ANSWER):
            return ""

        # Who was asked whether a message was the answer means that one, whatever stands beside the word. An ANSWER
        # with a body is one by itself.
        says_so = isinstance(spec, ActionSpec) and spec.name == ANSWER.name
        if says_so and (_was_asked(agent) or block.body.strip()):
            return ""
    return reply.prose if acts else ""


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
