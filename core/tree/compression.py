"""How an agent's history is cut: what goes, what stays, and what comes in its place. Pure.

After a cut, a history is the static prompt, one message, and the last turns:

    the first message            its middle is left out if it is very long
    a summary                    by the agent (COMPRESS) or by a model that the core asked
    what depends on no summary   messages of people and of the caller, open work, skills in use, names of variables
    the last turns               as many as there is room for

A summary can be empty, endless or about something else, and the session must go on. What is unfit is refused
(`fault`) and asked for once more; after that, the core's own list of what happened takes its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from iact.core.context.first_message import YOU
from iact.core.context.history import History
from iact.core.context.tokens import MESSAGE_OVERHEAD, estimate, weight
from iact.core.language import labels
from iact.core.ports import ChatMessage
from iact.core.tree import chronicle, notes
from iact.core.tree.agent import Agent
from iact.core.tree.tree import Tree
from iact.core.tree.window import after_cut, shortened

KEPT: Final = 5
"""Messages that survive a compression: the last two turns, and the reply before them."""

Fault = Literal["", "empty", "long", "headings"]
"""Why a summary is refused: it says nothing, it is longer than its share or than what it replaces, or it lacks one of
the headings that were asked for. Empty: it is not."""

_SUMMARY: Final = 1 / 3
"""The share of what is left after a cut that a summary may take."""

_LEAST_SUMMARY: Final = 150
"""The tokens that a summary may take in any window."""

_WORDS: Final = 0.6
"""Words to a token of a summary, so that the number asked for is kept by a model that counts badly."""

_HEADING: Final = re.compile(r"^[\s#>*_\d.)-]*({})\b", re.MULTILINE | re.IGNORECASE)


def summarizer(tree: Tree, agent: Agent) -> str:
    """The role of the model that summarizes an agent's history: "fast", if that model can hold the history."""
    own, fast = tree.roles.get(agent.model), tree.roles.get("fast")
    if own is None or fast is None:
        return agent.model
    return "fast" if fast.context >= own.context and {*own.takes} <= {*fast.takes} else agent.model


def can_cut(tree: Tree, agent: Agent) -> bool:
    """Whether a cut would leave less than there is."""
    context = agent.context
    if not tree.follows_1_3:
        return _cut_before_1_3(tree, agent, "") is not None

    own = len(context.history) - context.history.began
    grown = context.history.tokens > context.after_cut * 9 // 8
    return grown and (own > 1 + KEPT or (own > 1 and context.history.tokens > after_cut(tree, agent)))


def words_for(tree: Tree, agent: Agent) -> int:
    """The most words that a summary of an agent's history is asked to have."""
    return int(_share(tree, agent) * _WORDS)


def fault(tree: Tree, agent: Agent, summary: str, *, headings: bool = True) -> Fault:
    """Why a summary can't take the place of an agent's history. `headings`: whether it must have those asked for."""
    history = agent.context.history
    size = estimate(summary)
    if not summary.strip():
        return "empty"
    if size > min(_share(tree, agent), history.tokens - history.static_tokens):
        return "long"
    found = {match[1].lower() for match in _headings().finditer(summary)}
    return "headings" if headings and len(found) < len(labels.HEADINGS) else ""


def _headings() -> re.Pattern[str]:
    return re.compile(_HEADING.pattern.format("|".join(labels.HEADINGS)), _HEADING.flags)


def compress(tree: Tree, agent: Agent, summary: str, *, written: bool = False) -> bool:
    """Cut an agent's history; False if it is too short.

    `summary`: empty if there is none that is fit. `written`: the agent wrote it, in its last reply.
    """
    if tree.follows_1_3:
        cut = _cut(tree, agent, summary, written=written)
    else:
        cut = _cut_before_1_3(tree, agent, None if written else summary)
    if cut is None:
        return False

    context = agent.context
    context.history, context.after_cut = cut, cut.tokens
    agent.mail.feedback += notes.remind(tree, agent)
    context.full_told, context.told, context.asked_again = False, None, False
    return True


def compress_for(tree: Tree, agent: Agent, summary: str) -> str:
    """Cut an agent's history because it wrote COMPRESS. Returns the feedback."""
    if not can_cut(tree, agent):
        return "`COMPRESS` was not needed: your history is short."

    wrong = fault(tree, agent, summary, headings=False) if tree.follows_1_3 else ""
    if wrong and not agent.context.asked_again:
        agent.context.asked_again = True
        return labels.summary_refused(wrong, words_for(tree, agent))
    compress(tree, agent, "" if wrong else summary, written=not wrong)
    return "Your history was cut."


def _share(tree: Tree, agent: Agent) -> int:
    """The tokens that a summary may take."""
    left = after_cut(tree, agent) - agent.context.history.static_tokens
    return max(_LEAST_SUMMARY, int(left * _SUMMARY))


def _cut(tree: Tree, agent: Agent, summary: str, *, written: bool) -> History | None:
    """The history after a cut; None if there is nothing to cut."""
    if not can_cut(tree, agent):
        return None

    context, history = agent.context, agent.context.history
    left = after_cut(tree, agent) - history.static_tokens
    first = _first(context.first, left // 3)
    if first != context.first:
        context.at_first.clear()  # documentation may have stood in its middle
    left -= estimate(first)

    # An agent's own summary stands in its last reply, unless that has no room.
    stays = written and _size(history.messages()[-1]) <= left
    said = _note(summary, stays=stays)
    left -= estimate(said)
    kept = _last_turns(history, left if stays else left // 2)
    left -= sum(map(_size, kept))

    seen = "\n".join([first, *(message.content for message in kept)])
    facts = _facts(tree, agent, seen=seen, room=left, alone=not summary)
    context.cut_note = "\n\n".join([said, *facts])
    return history.anew(ChatMessage("user", f"{first}\n\n{context.cut_note}"), kept)


def _first(text: str, room: int) -> str:
    """The first message in about `room` tokens: who the agent is and its task before what all agents share."""
    if estimate(text) <= room:
        return text
    shared, you, own = text.partition(YOU)
    own = shortened(you + own, room * 2 // 3)
    return shortened(shared, room - estimate(own)) + own


def _note(summary: str, *, stays: bool) -> str:
    """What is said about a cut. `stays`: the summary is in the agent's last reply."""
    if stays:
        return labels.compressed(None)
    return labels.compressed(summary) if summary else labels.cut_without_summary()


def _size(message: ChatMessage) -> int:
    return weight(message) + MESSAGE_OVERHEAD


def _last_turns(history: History, room: int) -> list[ChatMessage]:
    """The last messages of a history, of which the last is a reply: as many as fit, and one at least."""
    kept = history.last(KEPT)
    # Roles alternate, so messages go in pairs, and the first that stays is a reply.
    kept = kept[1 - len(kept) % 2 :]
    # Obeyed, the notice that asks for a cut would ask for another one.
    kept = [replace(message, content=labels.without_context_full(message.content)) for message in kept]
    while len(kept) > 1 and sum(map(_size, kept)) > room:
        kept = kept[2:]
    if len(kept) == 1 and _size(kept[0]) > room:
        return [ChatMessage(kept[0].role, shortened(kept[0].content, room))]
    return kept


def _facts(tree: Tree, agent: Agent, *, seen: str, room: int, alone: bool) -> list[str]:
    """What an agent must know whatever a summary says, in paragraphs of about `room` tokens together.

    `seen`: what stays in the history, and need not be said again. `alone`: there is no summary, so this is all.
    """
    known = agent.context.chronicle
    told = chronicle.message_lines(known, agent.table, seen=seen)
    named = [labels.describe(name, value) for name, value in agent.table.named()]
    working = [path for path in agent.children.values() if tree.agents[path].active]
    paragraphs = [
        ("Messages to you so far", told, 0.5),
        ("At work for you", [f"- {path}" for path in working], 0.2),
        ("Skills in use", [f"- `{skill}.read` says how it is done" for skill in known.skills], 0.2),
        ("Variables with a name of yours or of the user's", [f"- {one}" for one in named], 0.3),
    ]
    if alone:
        paragraphs += [
            ("Replies of your children", [f"- {line}" for line in known.replies], 0.3),
            ("Files that you wrote", [f"- {labels.path(one)}" for one in known.files], 0.3),
            ("What you did", [f"- {line}" for line in known.done], 1.0),
        ]

    made = list[str]()
    for title, lines, share in paragraphs:
        newest = _newest(lines, int(room * share))
        if newest:
            made.append("\n".join([f"{title}:", *newest]))
            room -= estimate(made[-1])
    return made


def _newest(lines: Sequence[str], room: int) -> list[str]:
    """The last of these lines that fit, after a line about those that don't."""
    kept = list[str]()
    for line in reversed(lines):
        room -= estimate(line) + 1
        if room < 0:
            break
        kept.insert(0, line)
    left = len(lines) - len(kept)
    return [f"- ({left} older ones are not repeated here)", *kept] if left else kept


def _cut_before_1_3(tree: Tree, agent: Agent, summary: str | None) -> History | None:
    """The history after a cut by the rules of older formats: the first message, the summary, and the last turns."""
    first = ChatMessage("user", f"{agent.context.first}\n\n{labels.compressed(summary)}")
    history, role = agent.context.history, tree.roles.get(agent.model)
    most = role.context * 4 // 5 if role is not None else history.tokens
    shortest: History | None = None
    for keep in range(KEPT, 0, -2):
        cut = history.cut(first, keep)
        if cut is None and history.tokens <= most:
            return None
        shortest = cut or shortest
        if cut is not None and cut.tokens <= most:
            break
    return shortest
