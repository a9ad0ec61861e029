"""The prefix law, for every conversation that a test records: each context is a prefix of the same agent's next one.

Scripted endpoints and models record their requests in a `Conversation`. The suite checks all of them at the end of
their test (`tests/conftest.py`). There are three exceptions between two contexts of one agent:

- a compression: the next context is the first message, a note, and an unchanged part of the earlier messages, without
  the notice that asked for it;
- a generation without a result (stopped, failed, killed): the same input is sent again, perhaps with more after it;
  the lines about the state and the turns left are written again;
- with `crashes`, a process that was killed: a model is asked before its input is durable, so an agent may fall back
  to an earlier turn.

A test whose conversation is not that of an agent, or that breaks the law on purpose, gives the reason with
`@pytest.mark.no_prefix_law("reason")`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from iact.core.language.labels import SUMMARIZE, context_full
from iact.core.tree.compression import KEPT

Messages = tuple[tuple[str, str], ...]
"""The (role, content) of each message of a context."""

Key = tuple[str, str]
"""(model, path): the model's name distinguishes agents of different sessions."""

_FULL: Final = re.escape(context_full(77)).replace("77", r"\d+")
_ANEW: Final = re.compile(
    rf"(?:\n\nNotice by the system: (?:\d+ turns left for|This is your last turn|Your budget of tokens)[^\n]*|\n\n{_FULL})*"
    r"(?:\n\n\(state\) [^\n]*)?\Z"
)
_ASKED: Final = re.compile(rf"\n\n{_FULL}")
_CUT: Final = "\n\nNotice by the system: The history that stood here "
_PENDING: list[Conversation] = []


def drain() -> list[Conversation]:
    """The conversations that began since the last call."""
    found = list(_PENDING)
    _PENDING.clear()
    return found


def lasting(content: str) -> str:
    """An input without the parts that a repeated turn changes: the state, and how much is left."""
    return _ANEW.sub("", content, count=1)


class Conversation:
    """The requests to one endpoint or model, in order."""

    def __init__(self, *, crashes: bool = False) -> None:
        self.crashes = crashes
        self.asked: list[tuple[Key, Messages]] = []
        _PENDING.append(self)

    def take(self, model: str, agent: str, messages: Messages) -> None:
        """Record one request. Requests without an agent are ignored."""
        if agent:
            self.asked.append(((model, agent), messages))

    def check(self) -> int:
        """Check the law. Returns how many pairs were compared."""
        return prefix_law(self.asked, crashes=self.crashes)


def prefix_law(asked: Sequence[tuple[Key, Messages]], *, crashes: bool = False) -> int:
    """Check all contexts. Returns how many pairs were compared."""
    latest: dict[Key, list[Messages]] = {}
    compared = 0
    for number, (key, now) in enumerate(asked, 1):
        seen = latest.setdefault(key, [])
        while crashes and seen and not _was_cut(seen[-1], now) and len(seen[-1]) > len(now):
            seen.pop()
        if seen:
            _follows(f"request {number}, by {key[1]}", seen[-1], now)
            compared += 1
        seen.append(now)
    return compared


def _follows(who: str, before: Messages, now: Messages) -> None:
    last = len(before) - 1
    if _was_cut(before, now):
        _keeps(who, before, now)
        return
    assert now[:last] == before[:last], f"{who}: history changed"
    assert len(now) > last, f"{who}: history became shorter"
    assert now[last][0] == before[last][0], f"{who}: an input changed its role"
    if len(now) > len(before):
        if not before[last][1].startswith(SUMMARIZE):
            assert now[last] == before[last], f"{who}: an input changed once it was history"
        assert now[len(before)][0] == "assistant", f"{who}: its own reply does not follow its input"
    elif not any(one[last][1].startswith(SUMMARIZE) for one in (now, before)):
        sent, again = lasting(before[last][1]), now[last][1]
        assert again.startswith(sent), f"{who}: the input of a repeated turn changed: {again!r}, not {sent!r}"


def _was_cut(before: Messages, now: Messages) -> bool:
    """Whether there was a compression between two contexts: the first message says so, and did not before.

    Two summaries may be the same; then the history is shorter than that which was to be summarized.
    """
    if not len(before) > 1 < len(now) or now[:1] != before[:1] or _CUT not in now[1][1]:
        return False
    summarized = before[-1][1].startswith(SUMMARIZE) and len(now) < len(before)
    return summarized or now[1] != before[1]


def _keeps(who: str, before: Messages, now: Messages) -> None:
    """Check the result of a compression: the first message with a note, and the last messages unchanged."""
    begun = lasting(before[1][1]).partition(_CUT)[0]
    first = now[1][1].partition(_CUT)[0]
    assert _is_whole_or_shortened(begun, first), f"{who}: the first message changed in a compression"
    before = tuple((role, _ASKED.sub("", content)) for role, content in before)
    # Everything between the first message and the new input was kept. A model that only summarizes is asked after any
    # number of turns, of which the first were kept.
    lengths = range(1, KEPT + 1) if now[-1][1].startswith(SUMMARIZE) else [len(now) - 3]
    stood = any(_stood_at_the_end(before, now[2 : 2 + length]) for length in lengths)
    assert stood, f"{who}: what a compression kept is not what stood there"


def _stood_at_the_end(before: Messages, kept: Messages) -> bool:
    """Whether the end of a history is this. Behind `before` stands the reply to it, which is in no request yet."""
    for history in (
        before,
        before[:-1],
    ):  # with its input, and without it: it may ask for a summary, or come anew
        if history[len(history) - len(kept) :] == kept:
            return True

    *earlier, reply = kept
    if reply[0] != "assistant":
        return False
    if not earlier and any(_is_whole_or_shortened(content, reply[1]) for _, content in before[2:]):
        return True
    was_summarized = before[-1][1].startswith(SUMMARIZE)
    return not was_summarized and before[len(before) - len(earlier) :] == tuple(earlier)


def _is_whole_or_shortened(text: str, shown: str) -> bool:
    """Whether both are one text, of which either may lack the middle because a small window has no room for it."""
    if shown == text:
        return True
    begin, cut, end = _around(shown)
    other_begin, other_cut, other_end = _around(text)
    begins = begin.startswith(other_begin) or other_begin.startswith(begin)
    return bool(cut or other_cut) and begins and (end.endswith(other_end) or other_end.endswith(end))


def _around(text: str) -> tuple[str, str, str]:
    """What stands before and after all that was left out, and the rest between; a whole text twice."""
    begin, cut, rest = text.partition("\n[… ")
    return (begin, cut, rest.rpartition("…]\n")[2]) if cut else (text, "", text)
