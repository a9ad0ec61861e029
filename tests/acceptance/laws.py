"""The laws that every recorded run must keep, whatever it tests.

They are checked from outside: on the requests to the endpoint, and on the journal on disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from iact.core.journal import read_journal
from iact.core.language.scanner import scan
from iact.core.records.record import Record
from iact.core.stored.replay import replay
from iact.core.tree.agent import Agent
from iact.core.tree.tree import Tree
from tests import prefix
from tests.endpoint import Request

_CALLS = ("CALL", "PLAN")
"""What waits for a child's reply. A CALL with a mode is one of a plan."""
_FUNCTIONS = ("shell.run", "BASH")
_ACTIONS = (*_CALLS, "CALL_ASYNC", "WAIT", "QUERY", "VAR", "SHOW", *_FUNCTIONS)

_SETTLED = ("was not run", "was not tried again unchanged")
"""The texts for a call that was settled without its own record: it had a mistake, or was a mere repetition."""


def prefix_law(requests: Sequence[Request], *, crashes: bool = False) -> int:
    """Check the prefix law for an endpoint's requests (`tests.prefix`). Returns how many pairs were compared."""
    asked = [((str(one.body.get("model")), one.agent), one.messages) for one in requests if one.agent]
    return prefix.prefix_law(asked, crashes=crashes)


def journal_law(path: Path) -> list[Record]:
    """Check that the journal is whole and verifies, and that every action has one outcome. Returns its records."""
    contents = read_journal(path)
    assert contents.torn == 0, f"{path} ends in {contents.torn} bytes that are no record"
    tree = replay(path, verify=True).tree
    _one_outcome_each(contents.records, tree)
    return contents.records


def _one_outcome_each(records: Sequence[Record], tree: Tree) -> None:
    """Check that no action has two outcomes, and that every action of agents at rest has one."""
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
    """The action that a record is about: (agent, turn, index)."""
    return record.agent, record.number("turn"), record.number("action")


def _told_after(agent: Agent, turn: Record) -> str:
    """The next input of an agent after a turn. It settles actions with mistakes."""
    messages = agent.context.history.messages()
    after = [
        later.content
        for message, later in pairwise(messages)
        if message.role == "assistant" and message.content == turn.body
    ]
    return "\n".join([*after, *map(str, agent.mail.feedback)])


def _answered(records: Sequence[Record]) -> Counter[tuple[str, int, int]]:
    """For each CALL and PLAN, the number of the child's replies while it waited."""
    waiting: dict[str, tuple[str, int, int]] = {}
    found: Counter[tuple[str, int, int]] = Counter()
    for one in records:
        place = _place(one)
        if one.kind == "call" and one.text("function") in _CALLS:
            waiting[one.text("to")] = place
        elif one.kind == "result":
            waiting = {child: call for child, call in waiting.items() if call != place}
        elif one.kind == "reply" and one.agent in waiting:
            found[waiting.pop(one.agent)] += 1
    return found
