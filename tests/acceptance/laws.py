"""The laws that every recorded run must keep, whatever it was made for.

They are checked from outside: over what the endpoint was sent, and over the journal on disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from core.journal import Record, read_journal
from core.language.scanner import scan
from core.tree.agent import Agent
from core.tree.replay import replay
from core.tree.tree import Tree
from tests.endpoint import Request

_TAIL = "\n\n(state) "
_CALLS = ("CALL",)
_FUNCTIONS = ("shell.run", "BASH")
_ACTIONS = (*_CALLS, "CALL_ASYNC", "WAIT", "QUERY", "VAR", "SHOW", *_FUNCTIONS)

_SETTLED = ("was not run", "was not tried again unchanged")
"""How an agent hears of a call that was settled without a record of its own: a mistake in it, or a bare repetition."""

Messages = tuple[tuple[str, str], ...]


def without_tail(messages: Messages) -> Messages:
    """A context without its dynamic tail, which is the last paragraph of its last message."""
    role, content = messages[-1]
    head, found, tail = content.rpartition(_TAIL)
    assert found, f"a context ends without a tail: {content[-200:]!r}"
    assert "\n" not in tail, f"the tail is not one paragraph: {tail!r}"
    return (*messages[:-1], (role, head))


def prefix_law(requests: Sequence[Request], *, crashes: bool = False) -> int:
    """Every context without its tail is a prefix of the same agent's next one; gives how many pairs were compared.

    Agents of different sessions are told apart by the model's name, so give each session its own.
    A generation that came to nothing (stopped, failed, killed) is followed by a context that says the
    same and perhaps more; one that was recorded, by one that holds its input unchanged. With `crashes`,
    an agent may fall back to an earlier turn: a model is asked before what it is told is durable.
    """
    latest: dict[tuple[str, str], list[Messages]] = {}
    compared = 0
    for request in requests:
        if not request.agent:
            continue
        seen = latest.setdefault((str(request.body.get("model")), request.agent), [])
        now = without_tail(request.messages)
        while crashes and seen and len(seen[-1]) > len(now):
            seen.pop()
        if seen:
            _follows(request, seen[-1], now)
            compared += 1
        seen.append(now)
    return compared


def _follows(request: Request, before: Messages, now: Messages) -> None:
    who = f"request {request.number}, by {request.agent}"
    last = len(before) - 1
    assert now[:last] == before[:last], f"{who}: history changed"
    assert len(now) > last, f"{who}: history became shorter"
    assert now[last][0] == before[last][0], f"{who}: an input changed its role"
    if len(now) > len(before):
        assert now[last][1] == before[last][1], f"{who}: an input changed once it was history"
        assert now[len(before)][0] == "assistant", f"{who}: its own reply does not follow its input"
    else:
        assert now[last][1].startswith(before[last][1]), f"{who}: the input of a repeated turn changed"


def journal_law(path: Path) -> list[Record]:
    """The journal is whole, verifies, and every action in it has exactly one outcome; gives its records."""
    contents = read_journal(path)
    assert contents.torn == 0, f"{path} ends in {contents.torn} bytes that are no record"
    tree = replay(path, verify=True).tree
    _one_outcome_each(contents.records, tree)
    return contents.records


def _one_outcome_each(records: Sequence[Record], tree: Tree) -> None:
    """No action has two outcomes, and of agents that rest, none has none."""
    outcomes = Counter(_place(one) for one in records if one.kind == "result")
    twice = [key for key, count in outcomes.items() if count > 1]
    assert not twice, f"two outcomes for (agent, turn, action) {twice}"
    answered = _answered(records)
    for turn in [one for one in records if one.kind == "turn" and not tree.agents[one.agent].active]:
        blocks = [block for block in scan(turn.body, _ACTIONS.__contains__).blocks if block.action]
        for index, block in enumerate(blocks):
            key = (turn.agent, turn.n, index)
            count = outcomes[key] + answered[key]
            if count == 0 and block.info.split()[0] in (*_CALLS, *_FUNCTIONS):
                told = _told_after(tree.agents[turn.agent], turn)
                assert any(one in told for one in _SETTLED), f"no outcome of {key}: {block.info}"
            assert count <= 1, f"{count} outcomes of {key}: {block.info}"


def _place(record: Record) -> tuple[str, int, int]:
    """Which action a record is about: (agent, turn, index)."""
    return record.agent, record.number("turn"), record.number("action")


def _told_after(agent: Agent, turn: Record) -> str:
    """What an agent heard next after a turn: an action with a mistake in it is settled there and then."""
    messages = agent.history.messages()
    after = [
        later.content
        for message, later in pairwise(messages)
        if message.role == "assistant" and message.content == turn.body
    ]
    return "\n".join([*after, *agent.feedback])


def _answered(records: Sequence[Record]) -> Counter[tuple[str, int, int]]:
    """For each CALL, how many replies of the child came while it waited."""
    waiting: dict[str, tuple[str, int, int]] = {}
    found: Counter[tuple[str, int, int]] = Counter()
    for one in records:
        place = _place(one)
        if one.kind == "call" and one.text("function") == "CALL":
            waiting[one.text("to")] = place
        elif one.kind == "result":
            waiting = {child: call for child, call in waiting.items() if call != place}
        elif one.kind == "reply" and one.agent in waiting:
            found[waiting.pop(one.agent)] += 1
    return found
